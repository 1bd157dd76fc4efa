"""Runs of entries, packed: where each user or assistant entry stands in its file, when it was written, and the hash that
its rendering must have. No SQL; the rows are in ``spans``.

A run holds up to RUN_ENTRIES consecutive entries of one session: a row per entry, and an index beside it to find copies by,
would take as much room as the full-text index does.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import accumulate
from operator import add, sub
from typing import NamedTuple

import msgspec

from .schema import KEY_BYTES, SLOT_SHIFT, IntegrityFault, Run

#: Entries of one run, at most.
RUN_ENTRIES = 64
#: Milliseconds within which the entries of one run lie, so that few runs can hold a given moment.
RUN_MS = 4 * 3_600_000
#: Stands for the time of an entry that has none.
NO_TIME = -(1 << 62)


class Located(NamedTuple):
    """One entry of the snapshot and its span (bytes) in the session's file; ``base`` is the session's first row, ``key``
    is empty if the entry has no text."""

    row: int
    base: int
    time: int | None
    offset: int
    length: int
    key: bytes

    @property
    def session(self) -> int:
        return self.base >> SLOT_SHIFT

    @property
    def node(self) -> int:
        return self.row - self.base >> 1

    @property
    def role(self) -> int:
        return self.row & 1

    @property
    def text(self) -> bool:
        """Whether the entry has any."""
        return self.key != b""


class Columns(NamedTuple):
    """Entries in ascending order of their places; the key of one without text is empty."""

    places: list[int]
    times: list[int | None]
    offsets: list[int]
    lengths: list[int]
    keys: list[bytes]

    def only(self, kept: Sequence[int]) -> Columns:
        """Those of the entries that stand at these positions."""
        places, times, offsets, lengths, keys = self
        return Columns(
            [places[at] for at in kept],
            [times[at] for at in kept],
            [offsets[at] for at in kept],
            [lengths[at] for at in kept],
            [keys[at] for at in kept],
        )

    def then(self, others: Columns) -> Columns:
        """These entries and those that follow them."""
        places, times, offsets, lengths, keys = others
        return Columns(
            self.places + places,
            self.times + times,
            self.offsets + offsets,
            self.lengths + lengths,
            self.keys + keys,
        )


def pack(entries: Columns) -> list[Run]:
    """Entries as runs."""
    places, times, offsets, lengths, keys = entries
    marks = [place << 1 | (key != b"") for place, key in zip(places, keys, strict=True)]
    moments = [NO_TIME if time is None else time for time in times]
    mark_steps = [0, *map(sub, marks[1:], marks)]
    time_steps = [0, *map(sub, moments[1:], moments)]
    gaps = [0, *map(sub, offsets[1:], map(add, offsets, lengths))]
    runs = []
    for start, end in _cut(moments):
        packed = msgspec.msgpack.encode(
            (
                [marks[start], *mark_steps[start + 1 : end]],
                [moments[start], *time_steps[start + 1 : end]],
                [offsets[start], *gaps[start + 1 : end]],
                lengths[start:end],
            )
        )
        own = moments[start:end]
        runs.append(Run(places[start], min(own), max(own), packed, b"".join(keys[start:end])))
    return runs


def unpack(packed: bytes, keys: bytes) -> Columns:
    """The entries of a run. Raises IntegrityFault if that is none."""
    marks, time_steps, gaps, lengths = _decoded(packed, keys)
    times = [None if moment == NO_TIME else moment for moment in accumulate(time_steps)]
    offsets = list(accumulate(map(add, gaps, [0, *lengths[:-1]])))
    each = iter([keys[at : at + KEY_BYTES] for at in range(0, len(keys), KEY_BYTES)])
    return Columns(
        [mark >> 1 for mark in marks], times, offsets, lengths, [next(each) if m & 1 else b"" for m in marks]
    )


def _decoded(packed: bytes, keys: bytes) -> tuple[list[int], list[int], list[int], list[int]]:
    """(marks, steps of the times, gaps, lengths) of a run; a mark is ``place << 1 | has text``. Raises IntegrityFault."""
    try:
        steps, time_steps, gaps, lengths = _decode(packed)
    except msgspec.DecodeError as error:
        raise IntegrityFault("a run of entries cannot be read") from error
    marks = list(accumulate(steps))
    if not marks or not len(marks) == len(time_steps) == len(gaps) == len(lengths) or _texts(marks) != len(keys):
        raise IntegrityFault("a run of entries is incomplete")
    return marks, time_steps, gaps, lengths


_decode = msgspec.msgpack.Decoder(tuple[list[int], list[int], list[int], list[int]]).decode


def _texts(marks: Sequence[int]) -> int:
    """How many bytes the keys of these entries take."""
    return KEY_BYTES * sum([mark & 1 for mark in marks])


def _cut(moments: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Where runs begin and end."""
    start = 0
    while start < len(moments):
        end = min(start + RUN_ENTRIES, len(moments))
        own = moments[start:end]
        if max(own) - min(own) > RUN_MS:
            end = start + _within(own)
        yield start, end
        start = end


def _within(moments: Sequence[int]) -> int:
    """How many of the first moments lie within RUN_MS of each other."""
    low = high = moments[0]
    for at, moment in enumerate(moments):
        low, high = min(low, moment), max(high, moment)
        if high - low > RUN_MS:
            return at
    return len(moments)


class StoredRun:
    """A run that is looked into. Most are for one entry, so what the others have is not made."""

    def __init__(self, id_: int, packed: bytes, keys: bytes) -> None:
        self.id, self._packed, self._keys = id_, packed, keys
        self._marks, self._time_steps, self._gaps, self._lengths = _decoded(packed, keys)
        self.base = id_ - (self._marks[0] >> 1)
        #: The row of the last entry.
        self.end = self.base + (self._marks[-1] >> 1)

    def __len__(self) -> int:
        return len(self._marks)

    def position(self, row: int) -> int:
        """How many entries of the run come before a row."""
        return bisect_left(self._marks, row - self.base << 1)

    def at(self, row: int) -> Located | None:
        """The entry of a row, None if it is not in the run."""
        at = self.position(row)
        return self.entry(at) if at < len(self) and self._marks[at] >> 1 == row - self.base else None

    def entry(self, at: int) -> Located:
        """The entry at a position."""
        mark, moment = self._marks[at], sum(self._time_steps[: at + 1])
        offset = sum(self._gaps[: at + 1]) + sum(self._lengths[:at])
        begin = _texts(self._marks[:at])
        key = self._keys[begin : begin + KEY_BYTES] if mark & 1 else b""
        time = None if moment == NO_TIME else moment
        return Located(self.base + (mark >> 1), self.base, time, offset, self._lengths[at], key)

    def of_key(self, key: bytes) -> list[Located]:
        """The entries with text that have this key."""
        found = []
        begin = self._keys.find(key)
        while begin >= 0:
            if begin % KEY_BYTES == 0:
                texts = [at for at, mark in enumerate(self._marks) if mark & 1]
                found.append(self.entry(texts[begin // KEY_BYTES]))
            begin = self._keys.find(key, begin + 1)
        return found

    def columns(self) -> Columns:
        return unpack(self._packed, self._keys)
