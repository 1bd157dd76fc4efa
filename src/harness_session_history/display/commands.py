"""What a reader can copy to go on: a command of the shell, a call in Python, or the arguments of the tool, over the history
that was asked. None stands for one that holds something that cannot be shown exactly as it is, and so not be copied."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from . import words

Arguments = Mapping[str, Any]
#: Arguments that choose sessions, and those that choose entries besides.
SESSION_FILTERS = ("session_id", "kind", "cwd")
FILTERS = (*SESSION_FILTERS, "since", "until", "roles")
_FIRST = ("query", "session_id", "entry_id")


class Commands(NamedTuple):
    """``call`` writes a call with these arguments, ``argument`` one argument, as the reader would type them.

    ``asked`` are the arguments of the call that is answered, as far as they are known; ``refresh`` brings the index up to
    date; ``cite`` opens a citation, which takes the place of the word CITATION or of its ids; ``report`` is the doctor's.
    """

    call: Callable[[Arguments], str | None]
    argument: Callable[[str, Any], str]
    refresh: str | None
    cite: str | None
    report: str | None
    asked: Arguments

    def opening(self, view: words.Answer, citation: words.Answer, *, visible: object = True) -> str | None:
        """Opens an entry of a session; with the arguments that bring it into scope."""
        ids = {"session_id": citation.get("sessionId"), "entry_id": citation.get("entryId")}
        if any(not isinstance(value, str) or len(value) > words.ID_CHARS for value in ids.values()):
            return None
        return self.call({"operation": "open", **ids, **_extra(view, visible)})

    def needs(self, view: words.Answer, *, visible: object = True) -> list[str]:
        """The arguments that bring a hit into scope."""
        return [self.argument(name, value) for name, value in _extra(view, visible).items()]

    def again(self, **changed: Any) -> str | None:
        """The same call with some arguments changed (None: left away); only these arguments where the call is not known."""
        if "operation" in self.asked:
            return self.call({name: value for name, value in {**self.asked, **changed}.items() if value is not None})
        return " ".join(self.argument(name, value) for name, value in changed.items())

    def filters(self, among: Sequence[str]) -> list[str]:
        """Those of the call's filters that are not left at their defaults, as the reader typed them."""
        given = {name: self.asked.get(name) for name in among}
        set_ = {name: value for name, value in given.items() if value is not None and value != "any"}
        if len(set_.get("roles") or "") == 2:
            del set_["roles"]
        return [self.argument(name, value) for name, value in set_.items()]


def _extra(view: words.Answer, visible: object) -> dict[str, Any]:
    extra: dict[str, Any] = {f"include_{name}": True for name in ("deleted", "current") if view.get(name) is True}
    return extra | ({"branch": "any"} if visible is False else {})


def in_shell(
    settings: Sequence[str] = (), asked: Arguments | None = None, program: str = "session-history"
) -> Commands:
    """Commands with the options that named the history (``["--root", "/w"]``), called as ``program`` is."""

    def line(given: Sequence[str]) -> str | None:
        return f"{program} {shlex.join(given)}" if all(map(words.is_shown_exactly, given)) else None

    def call(arguments: Arguments) -> str | None:
        operation = arguments.get("operation", "search")
        placed = [n for n in _FIRST if n in arguments and (operation == "open") + (n == "query") and n != "operation"]
        plain = [str(arguments[name]) for name in placed]
        options = [w for n, v in arguments.items() if n not in (*placed, "operation") for w in _option(n, v)]
        if any(word.startswith("-") for word in plain):
            return line([*settings, operation, *options, "--", *plain])
        return line([*settings, operation, *plain, *options])

    return Commands(
        call,
        lambda name, value: words.one_line(shlex.join(_option(name, value)), words.PATH_CHARS),
        line([*settings, "refresh"]),
        line([*settings, "open", "CITATION"]),
        line([*settings, "doctor"]),
        asked or {},
    )


def _option(name: str, value: Any) -> list[str]:
    if value is None or value is False:
        return []
    option = "--" + name.replace("_", "-")
    if value is True:
        return [option]
    return [option, ",".join(value) if isinstance(value, list | tuple) else str(value)]


def in_python(function: str, asked: Arguments | None = None) -> Commands:
    """Calls of ``session_history``, or of a history that the caller holds."""

    def argument(name: str, value: Any) -> str:
        shown = json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)
        return f"{name}={words.one_line(shown, words.PATH_CHARS)}"

    def call(arguments: Arguments) -> str | None:
        if not all(map(words.is_shown_exactly, _strings(arguments))):
            return None
        given = (
            f"{n}={json.dumps(v, ensure_ascii=False) if isinstance(v, str) else repr(v)}" for n, v in arguments.items()
        )
        return f"await {function}({', '.join(given)})"

    report = "session-history doctor"  # (a command of the shell, with the same settings)
    refresh = f'await {function}(operation="list", refresh=True)'
    return Commands(call, argument, refresh, None, report, asked or {})


def in_tool(asked: Arguments | None = None) -> Commands:
    """Arguments of the tool ``session_history``."""

    def call(arguments: Arguments) -> str | None:
        exact = all(map(words.is_shown_exactly, _strings(arguments)))
        return f"session_history {json.dumps(dict(arguments), ensure_ascii=False)}" if exact else None

    def argument(name: str, value: Any) -> str:
        return words.one_line(f'"{name}": {json.dumps(value, ensure_ascii=False)}', words.PATH_CHARS)

    return Commands(
        call,
        argument,
        call({"operation": "list", "refresh": True}),
        'session_history {"operation": "open", "session_id": …, "entry_id": …}',
        None,
        asked or {},
    )


def _strings(arguments: Arguments) -> list[str]:
    return [value for value in arguments.values() if isinstance(value, str)]
