"""Bytes of a session file -> chunks of entries with their spans, and what is damaged (contract section 6).

The file is streamed through one buffer that is as long as the longest line; a line that is longer than a limit is passed
over, and is damaged. Whole blocks of lines go through the typed
decoder at once; only a block with something unusual in it is read line by line.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from ..model.entries import Chunk, Facts, milliseconds
from ..model.limits import LIMITS
from ..model.names import MAX_ID_CHARS, named_id, plain_id
from ..model.sources import MAX_LINE, FileIdentity
from ..text.clean import clean, visible
from .appends import fingerprint
from .columns import Collector
from .files import NotASession, Unreadable, opened
from .records import Record, entry_decoder, is_entry, loads, read_line, unpaired

__all__ = ["NotASession", "TranscriptReader", "Unreadable", "session_of"]

_KEPT_BUFFER: Final = 16 << 20
_CHUNK_BYTES: Final = 8 << 20
_CHUNK_CHARS: Final = 1 << 20
_OPENING_LINES: Final = 200
_OPENING_BYTES: Final = 32 << 20
_FIRST_LOOK: Final = 1 << 16
_DAMAGED_LINES: Final = 20
_PATH_CHARS: Final = 4096
_BOM: Final = b"\xef\xbb\xbf"


class TranscriptReader:
    """Reads one session file; iterate over it once for its chunks, then ``facts`` is complete.

    ``seen`` is the file that is meant (see ``opened``), ``resume`` continues where the facts of an earlier reading end
    (see ``can_resume``). ``stop`` leaves out what lies
    at or beyond that size; without it, what is appended after the file was opened. ``identity`` is the file's state
    before the first byte was read. Iterating raises ``NotASession`` and ``Unreadable``.
    """

    identity: FileIdentity

    def __init__(
        self,
        path: str | bytes | os.PathLike[str],
        seen: FileIdentity | None = None,
        *,
        resume: Facts | None = None,
        stop: int | None = None,
        max_line: int = MAX_LINE,
    ) -> None:
        if resume is not None and resume.linear:
            raise ValueError("a version 1 transcript is always read from the start")
        self._path, self._seen, self._stop, self._max_line = os.fspath(path), seen, stop, max_line
        self._resumed = resume is not None
        self.facts = Facts() if resume is None else msgspec.structs.replace(resume)
        self.facts.damaged_lines = list(self.facts.damaged_lines)
        self._opened = self._resumed
        self._collector = Collector(self.facts)

    def __iter__(self) -> Iterator[Chunk]:
        with opened(self._path, self._seen) as (descriptor, self.identity):
            yield from self._read(descriptor)

    def _read(self, descriptor: int) -> Iterator[Chunk]:
        facts, end = self.facts, self.identity.size
        if self._stop is not None:
            end = min(end, self._stop)
        facts.size = end
        position, flushed = facts.offset, facts.offset
        if position:
            os.lseek(descriptor, position, os.SEEK_SET)
        buffer, filled = bytearray(min(LIMITS.block_bytes, max(end - position, 1)) + 1), 0
        counted_tail, dropped = facts.open_tail, 0  # bytes of a line that is too long, which are not kept
        facts.torn_tail = facts.torn_tail and counted_tail
        while position < end:
            if filled == len(buffer):
                buffer.extend(bytes(len(buffer)))
            with memoryview(buffer) as view:
                count = _read_into(
                    descriptor, view[filled : filled + min(len(buffer) - filled, LIMITS.block_bytes, end - position)]
                )
            if count == 0:
                raise Unreadable("the file was cut short while it was read")
            position += count
            cut = buffer.rfind(b"\n", filled, filled + count) + 1
            filled += count
            if not self._opened and not cut and dropped + filled > _OPENING_BYTES:
                self._open_by_name()
            if not cut:
                if filled > self._max_line or dropped:
                    skipped = _behind_hole(descriptor, position, end)
                    dropped, filled, position = dropped + filled + skipped - position, 0, skipped
                    del buffer[LIMITS.block_bytes + 1 :]
                continue
            begin = buffer.find(b"\n", filled - count, filled) + 1
            if counted_tail:
                self._close_tail(dropped + begin)
            elif dropped or begin > self._max_line + 1:
                facts.lines += 1
                facts.offset += dropped + begin
                self._damage(facts.lines)
            else:
                begin = 0
            counted_tail, dropped = False, 0
            self._take_lines(buffer, begin, cut)
            filled -= cut
            if len(buffer) > _KEPT_BUFFER and filled < LIMITS.block_bytes:
                buffer = buffer[cut : cut + filled] + bytes(LIMITS.block_bytes)
            else:
                buffer[:filled] = buffer[cut : cut + filled]
            if self._collector.pending and self._is_due(facts.offset - flushed):
                flushed = facts.offset
                yield self._collector.take()
        if dropped:
            facts.torn_tail = True
        elif filled and not counted_tail:
            self._take_tail(bytes(memoryview(buffer)[:filled]))
        if not self._opened:
            self._open_by_name(facts.damaged or facts.torn_tail)
        if self._collector.pending:
            yield self._collector.take()
        self._collector.settle()
        facts.fingerprint = fingerprint(descriptor, facts)

    def _is_due(self, consumed: int) -> bool:
        held = self._collector
        return consumed >= _CHUNK_BYTES or held.text_chars >= _CHUNK_CHARS or held.pending >= LIMITS.chunk_nodes

    def _close_tail(self, length: int) -> None:
        """The line that was counted before its end was there has ended."""
        facts = self.facts
        facts.offset += length
        if facts.torn_tail:
            self._damage(facts.lines)
        facts.open_tail = facts.torn_tail = False

    def _take_tail(self, line: bytes) -> None:
        """An unterminated last line counts if it parses; what of it does not may still be completed."""
        facts = self.facts
        if not line.strip(b" \t\r"):
            return
        begin = len(_BOM) if facts.offset == 0 and line.startswith(_BOM) else 0
        body = line[:-1] if line.endswith(b"\r") else line
        records, damaged = read_line(body[begin:])
        facts.open_tail, facts.torn_tail = bool(records), damaged
        if records:
            facts.lines += 1
            self._take_records(body, begin, records)

    def _take_lines(self, buffer: bytearray, begin: int, end: int) -> None:
        """Whole lines; ``buffer[begin]`` is the byte at ``facts.offset``."""
        facts = self.facts
        base = facts.offset - begin
        while begin < end and not self._opened:
            stop = buffer.find(b"\n", begin, end)
            self._take_line(buffer, begin, stop, base)
            begin = stop + 1
            facts.offset = base + begin
            if not self._opened and (facts.lines > _OPENING_LINES or facts.offset > _OPENING_BYTES):
                self._open_by_name(facts.damaged)
        if begin < end and not self._take_block(buffer, begin, end, base):
            while begin < end:
                stop = buffer.find(b"\n", begin, end)
                self._take_line(buffer, begin, stop, base)
                begin = stop + 1
        facts.offset = base + end

    def _take_block(self, buffer: bytearray, begin: int, end: int, base: int) -> bool:
        """All lines at once; False, with nothing taken, if one of them is not exactly one plain record."""
        with memoryview(buffer) as view:
            try:
                entries = entry_decoder.decode_lines(view[begin:end])
            except (msgspec.DecodeError, RecursionError, ValueError):
                return False
            stops: list[int] = []
            append, find = stops.append, buffer.find
            stop = find(b"\n", begin, end)
            while stop >= 0:
                append(stop)
                stop = find(b"\n", stop + 1, end)
            starts = [begin, *[stop + 1 for stop in stops[:-1]]]
            if buffer.startswith(b"}\r\n", end - 3):
                if buffer.count(b"}\r\n", begin, end) != len(stops):
                    return False
                stops = [stop - 1 for stop in stops]
            # The decoder takes two records on one line and one record on two lines. Neither can happen where every
            # line begins and ends with a brace and there are as many records as lines.
            byte = buffer.__getitem__
            firsts, lasts = bytes(map(byte, starts)), bytes([byte(stop - 1) for stop in stops])
            if not len(entries) == len(stops) == firsts.count(b"{") == lasts.count(b"}"):
                return False
            self.facts.lines += len(stops)
            self._collector.add(entries, starts, stops, view, base)
        return True

    def _take_line(self, buffer: bytearray, begin: int, stop: int, base: int) -> None:
        facts = self.facts
        facts.lines += 1
        if stop > begin and buffer[stop - 1] == 0x0D:
            stop -= 1
        if base + begin == 0 and buffer.startswith(_BOM):
            begin = len(_BOM)
        line = bytes(memoryview(buffer)[begin:stop])
        if not line.strip(b" \t\r"):
            return
        records, damaged = read_line(line)
        if damaged:
            self._damage(facts.lines)
        self._take_records(line, 0, records, base + begin)

    def _take_records(self, line: bytes, begin: int, records: list[Record], base: int | None = None) -> None:
        """The records of one line; their spans count from ``begin`` in it."""
        base = self.facts.offset if base is None else base
        with memoryview(line) as view:
            for entry, start, end in records:
                if not self._opened and not self._open_with(line[begin + start : begin + end]):
                    self.facts.parsed_lines += 1
                elif entry is None:
                    self._collector.skip_value()
                else:
                    self._collector.add((entry,), (begin + start,), (begin + end,), view, base)

    def _damage(self, line: int) -> None:
        self.facts.damaged += 1
        if len(self.facts.damaged_lines) < _DAMAGED_LINES:
            self.facts.damaged_lines.append(line)

    def _open_with(self, record: bytes) -> bool:
        """Decides by a record what the file is; False if the next one has to be asked. Raises ``NotASession``."""
        value = loads(record)
        if not isinstance(value, dict):
            return False
        if value.get("kind") == "header" and "v" in value:
            raise Unreadable("it is of a version that cannot be read")
        facts = self.facts
        if value.get("type") == "session":
            session_id = value.get("id")
            if not isinstance(session_id, str) or not 0 < len(session_id) <= MAX_ID_CHARS:
                return False
            facts.session_id = plain_id(unpaired(session_id))
            facts.version = _version(value)
            facts.cwd = _seen(value.get("cwd"))
            facts.parent_session = _parent(value.get("parentSession")) or _parent(value.get("branchedFrom"))
            facts.started = milliseconds(value.get("timestamp"))
        elif is_entry(value):
            facts.version = 3 if value.get("id") else 1
            self._take_name()
        else:
            return False
        facts.linear = facts.version < 2
        self._opened = True
        self._collector = Collector(facts)
        return True

    def _take_name(self) -> None:
        """The name of the file stands in for its header. Raises ``NotASession``."""
        session_id = named_id(os.fsencode(os.path.basename(self._path)))
        if session_id is None:
            raise NotASession
        self.facts.session_id, self.facts.named_by_file = unpaired(session_id), True

    def _open_by_name(self, damaged: int = True) -> None:
        """Nothing could be read so far: a damaged session, if the name says that it is one. Raises ``NotASession``."""
        if self.facts.parsed_lines or not damaged:
            raise NotASession
        self._take_name()
        self._opened = True


def _version(header: dict[str, Any]) -> int:
    version = header.get("version", 1)
    return version if isinstance(version, int) and not isinstance(version, bool) and 0 <= version < 10_000 else 3


def _parent(value: object) -> str | None:
    """A session by its path or its id."""
    path = _path(value)
    if path is None or "/" in path or "\\" in path or path.endswith(".jsonl"):
        return path
    return plain_id(unpaired(str(value)))


def _seen(value: object) -> str | None:
    """A path that is only shown and compared."""
    path = _path(value)
    return None if path is None else visible(path) or None


def _path(value: object) -> str | None:
    return clean(value) if isinstance(value, str) and 0 < len(value) <= _PATH_CHARS else None


def _behind_hole(descriptor: int, position: int, end: int) -> int:
    """Where the next bytes stand that are really in the file: a sparse one may seem endless."""
    try:
        return min(end, os.lseek(descriptor, position, os.SEEK_DATA))
    except (AttributeError, OSError) as error:
        return end if getattr(error, "errno", None) == errno.ENXIO else position


def _read_into(descriptor: int, view: memoryview) -> int:
    if hasattr(os, "readv"):
        return os.readv(descriptor, [view])
    data = os.read(descriptor, len(view))
    view[: len(data)] = data
    return len(data)


def session_of(path: str | os.PathLike[str] | bytes, seen: FileIdentity) -> str | None:
    """The id of the session that a file holds by its header (or, where there is none, by its name), None if it is no
    session; hardly more of it is read than that takes. Raises ``Unreadable``."""
    for stop in (_FIRST_LOOK, _OPENING_BYTES):
        reader = TranscriptReader(path, seen, stop=stop)
        try:
            next(iter(reader), None)
        except NotASession:
            if reader.identity.size <= stop:
                break
        else:
            return reader.facts.session_id
    return None
