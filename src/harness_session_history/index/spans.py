"""Where each user or assistant entry stands in its file, when it was written, and the hash that its rendering must have.

The entries of a session are kept in runs of up to RUN_ENTRIES, one row each and packed: a row per entry, and an index
beside it to find copies by, would take as much room as the full-text index does. A run is found by its first row, and
the runs that may hold a copy of an entry by their times.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from operator import add, sub
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from .records import KEY_BYTES, Extent, Run
from .schema import SLOT_SHIFT
from .soundness import Unsound

if TYPE_CHECKING:
    import apsw

#: Entries of one run, at most.
RUN_ENTRIES = 64
#: The entries of one run lie within so many milliseconds, so that few runs can hold a given moment.
RUN_MS = 4 * 3_600_000
#: Stands for the time of an entry that has none.
NO_TIME = -(1 << 62)
#: Runs that are kept for the rest of a request.
_KEPT = 2048


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
    """The entries of a run. Raises Unsound if that is none."""
    marks, time_steps, gaps, lengths = _decoded(packed, keys)
    times = [None if moment == NO_TIME else moment for moment in accumulate(time_steps)]
    offsets = list(accumulate(map(add, gaps, [0, *lengths[:-1]])))
    each = iter([keys[at : at + KEY_BYTES] for at in range(0, len(keys), KEY_BYTES)])
    return Columns(
        [mark >> 1 for mark in marks], times, offsets, lengths, [next(each) if m & 1 else b"" for m in marks]
    )


def _decoded(packed: bytes, keys: bytes) -> tuple[list[int], list[int], list[int], list[int]]:
    """(marks, steps of the times, gaps, lengths) of a run; a mark is ``place << 1 | has text``. Raises Unsound."""
    try:
        steps, time_steps, gaps, lengths = _decode(packed)
    except msgspec.DecodeError as error:
        raise Unsound("a run of entries cannot be read") from error
    marks = list(accumulate(steps))
    if not marks or not len(marks) == len(time_steps) == len(gaps) == len(lengths) or _texts(marks) != len(keys):
        raise Unsound("a run of entries is incomplete")
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


class Spans:
    """Looks into the runs of one snapshot. Raises Unsound where a run says nothing that makes sense."""

    def __init__(self, connection: apsw.Connection) -> None:
        self.connection = connection
        self._last: StoredRun | None = None
        self._runs: dict[int, StoredRun] = {}

    def locate(self, row: int) -> Located | None:
        """The entry of a row, None if there is none."""
        run = self.run_of(row)
        return None if run is None else run.at(row)

    def times(self, rows: Iterable[int]) -> dict[int, int | None]:
        """The times of these rows' entries."""
        found = {}
        for row in rows:
            located = self.locate(row)
            if located is not None:
                found[row] = located.time
        return found

    def is_within(self, row: int, since: int, until: int) -> bool:
        """Whether the entry of a row was written from ``since`` to before ``until``."""
        located = self.locate(row)
        return located is not None and located.time is not None and since <= located.time < until

    def between(self, low: int, high: int, *, descending: bool = False) -> Iterator[Located]:
        """The entries of the rows from ``low`` to ``high``."""
        begin = self.connection.execute("SELECT max(id) FROM spans WHERE id<=?", (low,)).fetchone()
        start = low if begin is None or begin[0] is None else begin[0]
        order = "DESC" if descending else ""
        for id_, packed, keys in self.connection.execute(
            f"SELECT id, packed, keys FROM spans WHERE id BETWEEN ? AND ? ORDER BY id {order}", (start, high)
        ):
            entries = StoredRun(id_, packed, keys).all()
            yield from (one for one in (reversed(entries) if descending else entries) if low <= one.row <= high)

    def copies(self, located: Located) -> list[Located]:
        """The entries with text of other sessions that have the key and the time of this one."""
        moment = NO_TIME if located.time is None else located.time
        own = self.run_of(located.row)
        found = []
        for id_, packed, keys in self.connection.execute(
            "SELECT id, packed, keys FROM spans WHERE low BETWEEN ? AND ? AND high >= ? AND id <> ? AND instr(keys, ?) > 0",
            (moment - RUN_MS, moment, moment, -1 if own is None else own.id, located.key),
        ):
            others = StoredRun(id_, packed, keys).all()
            found += [one for one in others if one.key == located.key and one.time == located.time]
        return [one for one in found if one.base != located.base]

    def run_of(self, row: int) -> StoredRun | None:
        """The run that a row would be in, if it is anywhere."""
        if self._last is not None and self._last.id <= row <= self._last.end:
            return self._last
        found = self._runs.get(row)
        if found is None:
            stored = self.connection.execute(
                "SELECT id, packed, keys FROM spans WHERE id<=? ORDER BY id DESC LIMIT 1", (row,)
            ).fetchone()
            if stored is None:
                return None
            if len(self._runs) > _KEPT:
                self._runs.clear()
            found = self._runs[row] = StoredRun(*stored)
        self._last = found
        return found


class StoredRun:
    """A run that is looked into. Most are for one entry, so what the others have is not made."""

    def __init__(self, id_: int, packed: bytes, keys: bytes) -> None:
        self.id, self._packed, self._keys = id_, packed, keys
        self._marks, self._time_steps, self._gaps, self._lengths = _decoded(packed, keys)
        self.base = id_ - (self._marks[0] >> 1)
        #: The row of the last entry.
        self.end = self.base + (self._marks[-1] >> 1)

    def at(self, row: int) -> Located | None:
        """The entry of a row, None if it is not in the run."""
        marks = self._marks
        at = bisect_left(marks, row - self.base << 1)
        if at == len(marks) or marks[at] >> 1 != row - self.base:
            return None
        moment, length = sum(self._time_steps[: at + 1]), self._lengths[at]
        offset = sum(self._gaps[: at + 1]) + sum(self._lengths[:at])
        begin = _texts(marks[:at])
        key = self._keys[begin : begin + KEY_BYTES] if marks[at] & 1 else b""
        return Located(row, self.base, None if moment == NO_TIME else moment, offset, length, key)

    def all(self) -> list[Located]:
        """The entries in order."""
        return [
            Located(self.base + place, self.base, time, offset, length, key)
            for place, time, offset, length, key in zip(*self.columns(), strict=True)
        ]

    def columns(self) -> Columns:
        return unpack(self._packed, self._keys)


# -- writing ------------------------------------------------------------------------------------------------------------


def append(connection: apsw.Connection, extent: Extent, runs: Sequence[Run]) -> None:
    """Adds runs behind those that a session has; a last one that is not full is filled up."""
    if not runs:
        return
    first, *rest = runs
    last = connection.execute(
        "SELECT id, packed, keys FROM spans WHERE id BETWEEN ? AND ? ORDER BY id DESC LIMIT 1",
        (extent.low, extent.high),
    ).fetchone()
    if last is not None:
        # Runs that cannot become one stay as they are.
        before, after = unpack(last[1], last[2]), unpack(first.packed, first.keys)
        if len(before.places) + len(after.places) <= RUN_ENTRIES:
            joined = pack(before.then(after))
            if len(joined) == 1:
                connection.execute("DELETE FROM spans WHERE id=?", (last[0],))
                first = joined[0]
    _insert(connection, extent.low, (first, *rest))


def text_rows(connection: apsw.Connection, extent: Extent) -> list[int]:
    """The rows of a session's entries that have text."""
    return [one.row for one in Spans(connection).between(extent.low, extent.high) if one.text]


def remove(connection: apsw.Connection, rows: Iterable[int]) -> list[int]:
    """Takes entries out of their runs; returns the rows of those that had text."""
    spans, gone, runs = Spans(connection), {}, {}
    for row in rows:
        run = spans.run_of(row)
        located = None if run is None else run.at(row)
        if run is not None and located is not None:
            gone[row], runs[run.id] = located, run
    for id_, run in runs.items():
        columns = run.columns()
        kept = [at for at, place in enumerate(columns.places) if run.base + place not in gone]
        connection.execute("DELETE FROM spans WHERE id=?", (id_,))
        _insert(connection, run.base, pack(columns.only(kept)))
    return sorted(row for row, one in gone.items() if one.text)


def _insert(connection: apsw.Connection, base: int, runs: Iterable[Run]) -> None:
    connection.executemany("INSERT INTO spans VALUES(?,?,?,?,?)", [(base + run[0], *run[1:]) for run in runs])
