"""Why an entry of a transcript is or is not text: one pass over the file, for a person who looks for it.

Slow and thorough where reading a transcript is fast: only lines that mention the id are looked into.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final, Literal

import msgspec

from ..archive.files import opened
from ..archive.projection import project
from ..archive.records import Record, loads, read_line
from ..model.entries import ASSISTANT, USER, linear_id
from ..model.names import is_session_name
from ..text.clean import one_line

_LONGEST: Final = 64 << 20
_BOM: Final = b"\xef\xbb\xbf"
_LINEAR: Final = re.compile(r"v1-(\d{1,9})-[0-9a-f]{8}")
_ROLES: Final = {"toolResult": "a tool result", "system": "a system message", "developer": "a developer message"}
_TYPES: Final = {
    "custom": "a custom entry",
    "custom_message": "a custom message",
    "compaction": "a compaction summary",
    "branch_summary": "a branch summary",
    "label": "a label",
    "session_info": "a session's name",
    "model_change": "a change of model",
    "thinking_level_change": "a change of the thinking level",
    "leaf": "a stored leaf",
    "reset": "a reset",
}


class Occurrence(msgspec.Struct, frozen=True):
    """An entry that carries the id: in which line (1-based), what it is, and whether it has text."""

    line: int
    what: str
    text: bool


class Inspection(msgspec.Struct):
    """What a file says of one entry id; line numbers are 1-based, as an editor counts them."""

    found: list[Occurrence] = []
    #: Lines with parts that could not be read and that name the id.
    damaged: list[int] = []
    #: Lines of entries that name it as their parent.
    children: list[int] = []
    #: Version 1: the id that the entry at this place has now, if its line has changed.
    now: str | None = None


def inspect(path: str | os.PathLike[str], entry_id: str) -> Inspection:
    """Looks for an entry id in a transcript. Raises ``Unreadable``."""
    seen = Inspection()
    needles = {json.dumps(entry_id, ensure_ascii=ascii)[1:-1].encode("utf-8", "replace") for ascii in (True, False)}
    linear = _LINEAR.fullmatch(entry_id)
    parsed = 0
    for number, line in _lines(path):
        mentioned = any(needle in line for needle in needles)
        if not mentioned and linear is None:
            continue
        records, damaged = read_line(line)
        for record in records:
            if linear is not None and parsed == int(linear[1]) and record.entry is not None and not record.entry.id:
                seen.now = linear_id(parsed, line[record.start : record.end])
                if seen.now == entry_id:
                    seen.found.append(_occurrence(number, record, line))
            parsed += 1
            if record.entry is not None and record.entry.id == entry_id and record.entry.type != "session":
                seen.found.append(_occurrence(number, record, line))
            elif record.entry is not None and record.entry.parentId == entry_id:
                seen.children.append(number)
        if damaged and mentioned:
            seen.damaged.append(number)
    if seen.now == entry_id:
        seen.now = None
    return seen


def named_files(folder: str, session_id: str) -> list[tuple[str, int | None]]:
    """Session files below a folder, whoever owns them, whose name carries the id: (path, owner's user id)."""
    found: list[tuple[str, int | None]] = []
    for above, _, names in os.walk(folder):
        for name in names:
            if session_id in name and is_session_name(os.fsencode(name)):
                path = os.path.join(above, name)
                owner = None
                with suppress(OSError):
                    owner = os.lstat(path).st_uid
                found.append((path, owner))
    return sorted(found)


def _lines(path: str | os.PathLike[str]) -> Iterator[tuple[int, bytes]]:
    """The lines of a file that are not blank, with their numbers."""
    with opened(path) as (descriptor, _), os.fdopen(descriptor, "rb", closefd=False) as file:
        number, whole = 0, True
        while raw := file.readline(_LONGEST):
            begins, whole = whole, raw.endswith(b"\n")
            if not begins:
                continue  # the rest of a line that is too long
            number += 1
            line = raw.removesuffix(b"\n").removesuffix(b"\r")
            if number == 1:
                line = line.removeprefix(_BOM)
            if line.strip(b" \t\r"):
                yield number, line


def _occurrence(number: int, record: Record, line: bytes) -> Occurrence:
    entry = record.entry
    assert entry is not None
    if entry.type != "message":
        what = _TYPES.get(entry.type) or f"an entry of type {one_line(entry.type, 40) or 'unknown'}"
        return Occurrence(number, what, False)
    value = loads(line[record.start : record.end])
    message = value.get("message") if isinstance(value, dict) else None
    role = message.get("role") if isinstance(message, dict) else None
    if role not in ("user", "assistant"):
        what = _ROLES.get(str(role)) or f"a message of role {one_line(role, 40) or 'unknown'}"
        return Occurrence(number, what, False)
    content = getattr(entry.message, "content", "")
    text, _ = project(ASSISTANT if role == "assistant" else USER, content)
    article: Literal["a", "an"] = "an" if role == "assistant" else "a"
    if text:
        return Occurrence(number, f"{article} {role} message", True)
    return Occurrence(number, f"{article} {role} message without text ({_blocks(message)})", False)


def _blocks(message: Any) -> str:
    """What a message without text holds, by the types of its blocks."""
    content = message.get("content")
    if not isinstance(content, list):
        return "it is empty"
    kinds = {str(b.get("type")) for b in content if isinstance(b, dict)}
    said = {"thinking": "thinking", "toolCall": "tool calls", "image": "images", "text": "text that is left out"}
    return "only " + ", ".join(sorted({said.get(kind, "other blocks") for kind in kinds})) if kinds else "it is empty"
