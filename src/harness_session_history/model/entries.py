"""Plain types that travel from the archive to the index: entries, chunks, facts of a transcript.

Nodes are the entries of one transcript in file order, numbered from 0 (the header is not a node). The index knows
a node by the hash of its entry id, never by the id itself.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Final, Literal, TypeAlias

import msgspec

from .names import plain_id

USER: Final = 0
ASSISTANT: Final = 1

KIND_OTHER: Final = 0
KIND_USER_BARE: Final = 1
KIND_ASSISTANT_BARE: Final = 2
KIND_USER_TEXT: Final = 3
KIND_ASSISTANT_TEXT: Final = 4

MarkKind: TypeAlias = Literal["compaction", "reset", "leaf"]
Mark: TypeAlias = tuple[int, MarkKind, int | None]
"""(node, mark, hash of the entry it points at); a leaf mark without target stands before the root."""


class TextEntry(msgspec.Struct, array_like=True, gc=False):
    """A user or assistant message entry; ``offset`` and ``length`` are the span of its record in bytes."""

    node: int
    role: int
    time: int | None
    offset: int
    length: int
    key: bytes
    text: str
    search_text: str = ""


class Chunk(msgspec.Struct, array_like=True):
    """A run of consecutive nodes.

    ``ids`` holds 8 bytes (little endian) per node, ``kinds`` one. ``links`` names the parent's hash (None: a root) of
    those nodes only whose parent is not the node just before; node 0 is listed unless it is a root.
    """

    first_node: int
    ids: bytes
    kinds: bytes
    links: dict[int, int | None]
    marks: list[Mark]
    entries: list[TextEntry]


class Facts(msgspec.Struct):
    """What is known of a transcript after reading it up to ``offset``, and the state from which an append is read on.

    Times are milliseconds since the epoch. ``offset`` lies just after the last LF; ``open_tail`` says that records of
    an unterminated last line were counted although it lies after ``offset``, ``torn_tail`` that such a line holds bytes
    that could not be read (not part of ``damaged``). ``fingerprint`` is of what was
    read: up to ``size`` with an open tail, else to ``offset``.
    """

    session_id: str = ""
    named_by_file: bool = False
    version: int = 3
    linear: bool = False
    cwd: str | None = None
    parent_session: str | None = None
    started: int | None = None
    name: str | None = None
    first_time: int | None = None
    last_time: int | None = None
    untimed: bool = False
    offset: int = 0
    open_tail: bool = False
    torn_tail: bool = False
    nodes: int = 0
    parsed_lines: int = 0
    lines: int = 0
    last_id: int | None = None
    damaged: int = 0
    damaged_lines: list[int] = []
    fingerprint: int = 0
    size: int = 0

    @property
    def is_spoilt(self) -> bool:
        """Whether nothing could be read, so that a header may still come (or what there is of it be completed)."""
        return self.named_by_file and not self.nodes

    @property
    def unreadable_lines(self) -> int:
        """Damaged lines; an unfinished last one may still be being written, so it counts only where it is all there is."""
        return self.damaged + (self.torn_tail and self.is_spoilt)


_first_int64: Final = struct.Struct("<q").unpack_from


def entry_hash(entry_id: str) -> int:
    """The number by which the index knows an entry, signed: an id of 8 bytes (Pi's have 8 hex digits) as it is, any other
    by the first 8 bytes of its SHA-256."""
    return int(_first_int64(_id_bytes(entry_id))[0])


def _id_bytes(entry_id: str) -> bytes:
    raw = plain_id(entry_id).encode("utf-8", "surrogatepass")
    return raw if len(raw) == 8 else sha256(raw).digest()[:8]


def id_column(entry_ids: Sequence[str]) -> bytes:
    """The hashes of many ids, 8 bytes each (little endian)."""
    if set(map(len, entry_ids)) == {8}:
        joined = "".join(entry_ids)
        if joined.isascii() and "\x7f" not in joined:
            return joined.encode()
    return b"".join([_id_bytes(entry_id) for entry_id in entry_ids])


def find_id(packed: bytes, id_: bytes) -> int | None:
    """Place of the last occurrence of an 8-byte id among packed ids."""
    at = packed.rfind(id_)
    while at >= 0 and at % 8:
        at = packed.rfind(id_, 0, at + 7)
    return at // 8 if at >= 0 else None


def linear_id(n: int, record: bytes | memoryview) -> str:
    """The id of entry ``n`` (counting parsed lines, the header is 0) of a version 1 transcript, by its line."""
    return f"v1-{n}-{sha256(record).hexdigest()[:8]}"


def entry_key(entry_id: str, role: int, time: int | None, text: str) -> bytes:
    """8 bytes: the fingerprint of what a citation promises: entry id, role, time and cleaned text; without text, of the
    id alone (as in a chunk's ``ids``).

    Hydration recomputes it from the cited bytes; equal keys of texts in two transcripts are verbatim copies. Neither id
    nor text may hold lone surrogates (records are read without them).
    """
    if not text:
        return _id_bytes(entry_id)
    entry_id = plain_id(entry_id)
    content = f"{role} {time} {len(entry_id)} {entry_id}{text}"
    return sha256(content.encode()).digest()[:8]


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND: Final = timedelta(milliseconds=1)
FIRST_MS, LAST_MS = -62_135_596_800_000, 253_402_300_799_999


def milliseconds(value: object) -> int | None:
    """A time stamp of the format (ISO string, or a number of milliseconds) as milliseconds, None if it is neither.

    Further digits are cut off, as JavaScript does it.
    """
    if isinstance(value, str):
        try:
            found = (datetime.fromisoformat(value) - _EPOCH) // _MILLISECOND
        except TypeError:  # without a zone: taken for UTC
            found = (datetime.fromisoformat(value).replace(tzinfo=UTC) - _EPOCH) // _MILLISECOND
        except (ValueError, OverflowError):
            return None
        return found if FIRST_MS <= found <= LAST_MS else None
    if isinstance(value, (int, float)) and not isinstance(value, bool) and FIRST_MS <= value <= LAST_MS:
        return int(value)
    return None


Columns: TypeAlias = tuple[bytes, bytes, Mapping[int, int | None], Sequence[Mark]]
"""(ids, kinds, links, marks) of a chunk, as in ``entries.Chunk``; node numbers count from the transcript's start."""

#: Kind bytes of entries that have text, and the role each stands for.
TEXT_ROLES = {3: 0, 4: 1}
