"""What a reader can copy to read on: a command of the shell, or a call in Python, over the history that was asked."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Sequence
from typing import NamedTuple

from . import words
from .words import Answer


class Commands(NamedTuple):
    """``opening`` opens a hit; it is None where an id or a setting cannot be shown exactly as it is, and so not be copied.
    ``any_branch`` is the argument that includes abandoned branches."""

    opening: Callable[[Answer], str | None]
    any_branch: str


def in_shell(settings: Sequence[str] = ()) -> Commands:
    """Commands with the options that named the history (``["--root", "/w"]``)."""
    copyable = all(word.isprintable() and words.one_line(word, len(word)) == word for word in settings)

    def opening(item: Answer) -> str | None:
        ids = words.copyable(item)
        if ids is None or not copyable:
            return None
        flags = [flag for wanted, flag, _ in _extra(item) if wanted]
        return " ".join([shlex.join(["session-history", *settings, "open", *ids]), *flags])

    return Commands(opening, "--branch any")


def in_python(function: str) -> Commands:
    """Calls of ``session_history``, or of a history that the caller holds."""

    def opening(item: Answer) -> str | None:
        ids = words.copyable(item)
        if ids is None:
            return None
        session, entry = (json.dumps(value, ensure_ascii=False) for value in ids)
        extra = "".join(f", {argument}" for wanted, _, argument in _extra(item) if wanted)
        return f'await {function}(operation="open", session_id={session}, entry_id={entry}{extra})'

    return Commands(opening, 'branch="any"')


def _extra(item: Answer) -> list[tuple[bool, str, str]]:
    """Whether each argument is needed to open a hit, as an option and as an argument."""
    view = words.part(item.get("session"))
    return [
        (view.get("deleted") is True, "--include-deleted", "include_deleted=True"),
        (view.get("current") is True, "--include-current", "include_current=True"),
        (item.get("visible") is False, "--branch any", 'branch="any"'),
    ]
