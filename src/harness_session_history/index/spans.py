"""The spans of entries as the index keeps them: runs in rows (see ``runs``), found by their first entry, or by their times
where copies of an entry are looked for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from .packing import NO_TIME, RUN_ENTRIES, RUN_MS, Located, StoredRun, pack, unpack
from .schema import Extent, Run

if TYPE_CHECKING:
    import apsw


#: Runs that are kept for the rest of a request.
_KEPT = 2048


class Spans:
    """Looks into the runs of one snapshot. Raises IntegrityFault where a run says nothing that makes sense."""

    def __init__(self, connection: apsw.Connection) -> None:
        self.connection = connection
        self._last: StoredRun | None = None
        self._runs: dict[int, StoredRun] = {}
        self._holding: dict[int, StoredRun] = {}

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
            run = StoredRun(id_, packed, keys)
            places = range(run.position(low), run.position(high + 1))
            for position in reversed(places) if descending else places:
                yield run.entry(position)

    def copies(self, located: Located) -> list[Located]:
        """The entries with text of other sessions that have the key and the time of this one."""
        moment = NO_TIME if located.time is None else located.time
        own = self.run_of(located.row)
        found = []
        for (id_,) in self.connection.execute(
            "SELECT id FROM spans WHERE low BETWEEN ? AND ? AND high >= ? AND id <> ? AND instr(keys, ?) > 0",
            (moment - RUN_MS, moment, moment, -1 if own is None else own.id, located.key),
        ):
            run = self._holding.get(id_)
            if run is None:
                if len(self._holding) > _KEPT:
                    self._holding.clear()
                stored = self.connection.execute("SELECT id, packed, keys FROM spans WHERE id=?", (id_,)).fetchone()
                assert stored is not None
                run = self._holding[id_] = StoredRun(*stored)
            found += [one for one in run.of_key(located.key) if one.time == located.time]
        return [one for one in found if one.base != located.base]

    def holds(self, key: bytes, time: int | None) -> bool:
        """Whether any session has an entry with this key, written at this time."""
        moment = NO_TIME if time is None else time
        found = self.connection.execute(
            "SELECT 1 FROM spans WHERE low BETWEEN ? AND ? AND high >= ? AND instr(keys, ?) > 0",
            (moment - RUN_MS, moment, moment, key),
        ).fetchone()
        return found is not None

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


def texts(connection: apsw.Connection, extent: Extent) -> list[Located]:
    """A session's entries that have text."""
    return [one for one in Spans(connection).between(extent.low, extent.high) if one.text]


def remove(connection: apsw.Connection, rows: Iterable[int]) -> list[Located]:
    """Takes entries out of their runs; returns those that had text."""
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
    return sorted(one for one in gone.values() if one.text)


def _insert(connection: apsw.Connection, base: int, runs: Iterable[Run]) -> None:
    connection.executemany("INSERT INTO spans VALUES(?,?,?,?,?)", [(base + run[0], *run[1:]) for run in runs])
