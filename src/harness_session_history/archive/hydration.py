"""A cited span -> the entry that was indexed from it, or nothing (contract section 7).

What comes back was read from the transcript now, and its fingerprint is the one stored at indexing.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Collection, Iterator, Sequence
from typing import Any, Final, Literal, NamedTuple

import msgspec

from ..model.entries import ASSISTANT, entry_key, linear_id, milliseconds
from ..model.names import plain_id
from ..model.sources import FileIdentity
from ..text.clean import AUTHOR_CHARS, one_line
from .files import Unreadable, opened, read_at
from .projection import DetailBlock, Part, ToolCall, parts, project, text_of, tool_calls, view_of
from .records import loads, loose, loose_content, read_line, unpaired

__all__ = ["Hydrated", "Hydration", "Unreadable", "Wanted", "hydrate", "tool_statuses"]

Status = Literal["ok", "error"]

_MAX_SPAN: Final = 512 << 20
_BLOCK: Final = 1 << 20
_MAX_COUNTED: Final = 64 << 20
_LONGEST: Final = 64 << 20


class Wanted(NamedTuple):
    """A citation as the index stores it."""

    node: int
    offset: int
    length: int
    key: bytes
    role: int
    time: int | None


class Hydrated(msgspec.Struct):
    """A verified user or assistant entry.

    ``text`` is what was indexed; ``apart``, if not empty, how the index read it (see ``text.clean.searchable``); ``view`` the same with ``[image]`` where an image stands; ``parts`` also holds the
    other placeholders. Names are cleaned and bounded.
    """

    node: int
    entry_id: str
    role: int
    time: int | None
    text: str
    apart: str
    view: str
    parts: list[Part]
    tools: list[ToolCall]
    author: str | None


class Hydration(NamedTuple):
    """The answers in the order of the request (None: not what was indexed), and the state of the file they came from."""

    entries: list[Hydrated | None]
    identity: FileIdentity


class _Message(msgspec.Struct):
    role: str = ""
    content: str | list[DetailBlock] | None = None
    timestamp: str | int | float | None = None
    author: Any = None


class _Entry(msgspec.Struct):
    type: str = ""
    id: str | None = None
    timestamp: str | int | float | None = None
    message: _Message | None = None
    author: Any = None


_decoder: Final = msgspec.json.Decoder(_Entry)


def hydrate(
    path: str | bytes | os.PathLike[str], wanted: Sequence[Wanted], seen: FileIdentity | None = None
) -> Hydration:
    """Reads and verifies the wanted spans of one transcript, which was ``seen`` at indexing (see ``opened``).

    Every answer is None if the file has become shorter since. One that grew is fine: the spans are verified one by one.
    Raises ``Unreadable``, also if another file has taken the path.
    """
    with opened(path, seen) as (descriptor, now):
        cut = seen is not None and now.size < seen.size
        numbers = _Numbers(descriptor)
        return Hydration([None if cut else _hydrate(descriptor, now.size, w, numbers) for w in wanted], now)


class _Numbers:
    """Counts the values in the lines of a version 1 transcript, as its entries are named by such numbers."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        #: Where lines begin, as far as was counted, and how many values lie before each.
        self._starts, self._counts = [0], [0]

    def before(self, offset: int) -> int | None:
        """How many values lie before ``offset``; None where counting them would take long."""
        if offset > _MAX_COUNTED:
            return None
        starts, counts = self._starts, self._counts
        for line in _lines(self._descriptor, starts[-1], offset):
            if starts[-1] + len(line) >= offset:
                break
            counts.append(counts[-1] + self._values(line, starts[-1]))
            starts.append(starts[-1] + len(line) + 1)
        at = bisect_right(starts, offset) - 1
        begun = read_at(self._descriptor, offset - starts[at], starts[at])
        return counts[at] + self._values(begun, starts[at])

    def _values(self, line: bytes, start: int) -> int:
        line = line if start else line.removeprefix(b"\xef\xbb\xbf")
        return len(read_line(line)[0]) if line.strip(b" \t\r") else 0


def _hydrate(descriptor: int, size: int, wanted: Wanted, numbers: _Numbers) -> Hydrated | None:
    if wanted.offset < 0 or not 0 < wanted.length <= _MAX_SPAN or wanted.offset + wanted.length > size:
        return None
    record = read_at(descriptor, wanted.length, wanted.offset)
    if len(record) != wanted.length:
        return None
    entry = _decode(record)
    message = None if entry is None else entry.message
    if entry is None or entry.type != "message" or message is None:
        return None
    if message.role != ("assistant" if wanted.role == ASSISTANT else "user"):
        return None
    content = message.content or []
    time = milliseconds(entry.timestamp)
    if time is None:
        time = milliseconds(message.timestamp)
    pieces = parts(wanted.role, content)
    text = text_of(pieces)
    entry_id = _verified_id(entry.id, wanted, time, text, record, numbers)
    if entry_id is None or time != wanted.time:
        return None
    return Hydrated(
        wanted.node,
        entry_id,
        wanted.role,
        time,
        text,
        project(wanted.role, content)[1],
        view_of(pieces),
        pieces,
        tool_calls(content) if wanted.role == ASSISTANT else [],
        _author(message.author) or _author(entry.author),
    )


def _verified_id(
    stored: str | None, wanted: Wanted, time: int | None, text: str, record: bytes, numbers: _Numbers
) -> str | None:
    if stored:
        return plain_id(stored) if entry_key(stored, wanted.role, time, text) == wanted.key else None
    # In a version 1 transcript the id holds the number of the parsed line: one more than the node's where the header
    # came first, the node's own where there is none; more only where values that are no entries lie before.
    for number in _likely_numbers(wanted, numbers):
        entry_id = linear_id(number, record)
        if entry_key(entry_id, wanted.role, time, text) == wanted.key:
            return entry_id
    return None


def _likely_numbers(wanted: Wanted, numbers: _Numbers) -> Iterator[int]:
    yield wanted.node + 1
    yield wanted.node
    counted = numbers.before(wanted.offset)
    if counted is not None:
        yield counted


def _decode(record: bytes) -> _Entry | None:
    try:
        return _decoder.decode(record)
    except (msgspec.DecodeError, RecursionError, ValueError):
        pass
    try:
        value = loads(record)
    except ValueError:
        return None
    if not isinstance(value, dict):
        return None
    message = value.get("message")
    if isinstance(message, dict):
        message = loose(_Message, message, content=loose_content(DetailBlock, message.get("content")))
    entry = loose(_Entry, value, message=message if isinstance(message, _Message) else None)
    entry.id = entry.id and unpaired(entry.id)
    return entry


def _author(value: object) -> str | None:
    """Who said it, where a host wrote that down: a name, or an object with one."""
    if isinstance(value, dict):
        value = value.get("name")
    return one_line(value, AUTHOR_CHARS) or None


class _Result(msgspec.Struct):
    role: str = ""
    toolCallId: str | None = None
    isError: bool = False


class _ResultEntry(msgspec.Struct):
    type: str = ""
    message: _Result | None = None


_result_decoder: Final = msgspec.json.Decoder(_ResultEntry)


def tool_statuses(
    path: str | bytes | os.PathLike[str],
    start: int,
    end: int,
    call_ids: Collection[str],
    seen: FileIdentity | None = None,
) -> dict[str, Status]:
    """How the given tool calls ended, by the results in the bytes from ``start`` (a line's first) to ``end``.

    A call without a result there is left out. Stops as soon as all are known. Raises ``Unreadable``.
    """
    missing = set(call_ids)
    found: dict[str, Status] = {}
    with opened(path, seen) as (descriptor, identity):
        for line in _lines(descriptor, start, min(end, identity.size)):
            if not missing:
                break
            if b"toolCallId" not in line:
                continue
            result = _result(line)
            if result is not None and result.toolCallId in missing:
                missing.remove(result.toolCallId)
                found[result.toolCallId] = "error" if result.isError else "ok"
    return found


def _lines(descriptor: int, start: int, end: int) -> Iterator[bytes]:
    """The lines of a byte range; of one that is very long only the beginning."""
    pieces, length = list[bytes](), 0
    while start < end:
        data = read_at(descriptor, min(_BLOCK, end - start), start)
        if not data:
            break
        start += len(data)
        first, *rest = data.split(b"\n")
        if length <= _LONGEST:
            pieces.append(first)
            length += len(first)
        if rest:
            yield b"".join(pieces)
            yield from rest[:-1]
            pieces, length = [rest[-1]], len(rest[-1])
    yield b"".join(pieces)


def _result(line: bytes) -> _Result | None:
    """The tool result that a line holds, if it is one."""
    try:
        message = _result_decoder.decode(line).message
    except (msgspec.DecodeError, RecursionError, ValueError):
        try:
            value = loads(line)
        except ValueError:
            return None
        told = value.get("message") if isinstance(value, dict) else None
        message = loose(_Result, told) if isinstance(told, dict) else None
    return message if message is not None and message.role == "toolResult" else None
