"""Writes sessions into the index, each as a whole: replace, extend, drop. Every method runs inside a transaction of
the caller; nothing here reads a transcript or decides what to write."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter, itemgetter
from typing import Literal

import apsw

from . import spans, trees
from .packing import NO_TIME, Located
from .schema import (
    FIRST_KEY,
    GONE,
    SESSION_COLUMNS,
    Entries,
    Extent,
    SessionRow,
    SourceRow,
    TreePart,
    quick_counts,
    slots_for,
)

#: Text that is held back until it is written in one go.
TEXT_CHARACTERS = 10_000_000
#: Nodes that a session can grow by, at least, before it needs another extent.
SPARE_NODES = 64


class Overtaken(Exception):
    """Somebody else has written although this writer holds the lock, or the file is another one by now."""


class Writer:
    """One connection that may write. The caller holds the writer's lock."""

    def __init__(self, connection: apsw.Connection, is_current: Callable[[], bool] = lambda: True) -> None:
        self.connection, self._is_current = connection, is_current
        self._revision = 0
        self._committed: int | None = None
        self._documents = 0
        self._texts: list[tuple[int, str, str]] = []
        self._characters = 0
        #: Key and time of the entries whose tokens were removed in this transaction.
        self._removed: list[tuple[bytes, int | None]] = []

    def follow(self, revision: int) -> None:
        """What will be written was planned on this revision."""
        self._committed = revision

    def begin(self) -> None:
        """Opens a transaction; all rows that it touches carry the next revision. Raises Overtaken.

        The lock is advisory and a file: it may be removed, or a file system may not honour it. What was planned on the
        strength of it must not be written over what another writer wrote, nor into a file that was replaced.
        """
        self.connection.execute("BEGIN IMMEDIATE")
        revision = self.note("revision")
        if not self._is_current() or (self._committed is not None and revision != self._committed):
            self.rollback()
            raise Overtaken
        self._committed, self._revision = revision, revision + 1
        self._documents = self.note("documents")

    def commit(self) -> None:
        """Makes what was written the snapshot that everybody sees."""
        self.write_texts()
        self.connection.execute("INSERT INTO search(search) VALUES('flush')")  # so that its pages can be counted
        notes = {**quick_counts(self.connection), "documents": self._documents}
        for name, value in notes.items():
            self.set_note(name, value)
        held = spans.Spans(self.connection).holds
        if not all(held(key, moment) for key, moment in self._removed):  # what came back elsewhere is not gone
            self.set_note("purge", 1)
        self.set_note("waste", self.note("waste") + len(self._removed))
        self._removed = []
        self.set_note("revision", self._revision)
        self.set_note("snapshot_at", int(time.time() * 1000))
        self.connection.execute("COMMIT")
        self._committed = self._revision

    def rollback(self) -> None:
        self._texts, self._removed, self._characters = [], [], 0
        if self.connection.in_transaction:
            self.connection.execute("ROLLBACK")

    # -- extents --------------------------------------------------------------------------------------------------

    def session_at(self, path: bytes) -> tuple[Extent, str] | None:
        """(extent, session id) of what the snapshot has of the file at a path."""
        row = self.connection.execute(
            "SELECT s.key, s.slots, s.session_id FROM sources f JOIN sessions s ON s.key = f.session WHERE f.path=?",
            (path,),
        ).fetchone()
        return None if row is None else (Extent(row[0], row[1]), row[2])

    def files_of(self, session_id: str) -> list[SessionRow]:
        """The rows of a session's files, the leading one first."""
        rows = self.connection.execute(f"SELECT {SESSION_COLUMNS} FROM sessions WHERE session_id=?", (session_id,))
        return sorted([SessionRow(*row) for row in rows], key=attrgetter("standing"))

    def extent_at(self, key: int) -> Extent:
        """The extent of a session that is there."""
        row = self.connection.execute("SELECT key, slots FROM sessions WHERE key=?", (key,)).fetchone()
        assert row is not None
        return Extent(*row)

    def allocate(self, stamps: Sequence[int], nodes: Sequence[int]) -> list[Extent]:
        """Free extents for new sessions of `nodes` nodes each, given their times in ascending order: newer ones above what
        is there and older ones below it (so that the order of rows is nearly the order of time)."""
        slots = [slots_for(count + max(SPARE_NODES, count // 4)) for count in nodes]
        low, end, newest = self._bounds()
        older = sum(1 for stamp in stamps if stamp < newest)
        if sum(slots[:older]) >= low:  # no room below
            older = 0
        starts = [low - sum(slots[:older]), end]
        extents = []
        for at, count in enumerate(slots):
            extents.append(Extent(starts[at >= older], count))
            starts[at >= older] += count
        return extents

    def _bounds(self) -> tuple[int, int, int]:
        """(lowest key, first free one above the highest, stamp of the highest)."""
        lowest = self.connection.execute("SELECT min(key) FROM sessions").fetchone()
        highest = self.connection.execute("SELECT key, slots FROM sessions ORDER BY key DESC LIMIT 1").fetchone()
        if highest is None or lowest is None:
            return FIRST_KEY, FIRST_KEY, -(1 << 62)
        stamp = self.connection.execute("SELECT max(stamp) FROM sources WHERE session=?", (highest[0],)).fetchone()
        return int(lowest[0]), int(highest[0] + highest[1]), int(stamp[0] or 0) if stamp else 0

    # -- sessions ---------------------------------------------------------------------------------------------------

    def clear(self, extent: Extent) -> None:
        """Removes every entry, tree row and token of a session file; its row stays."""
        self._forget_tokens(spans.texts(self.connection, extent))
        for table in ("spans", "hidden", "shadowed", "trees"):
            self.connection.execute(f"DELETE FROM {table} WHERE id BETWEEN ? AND ?", (extent.low, extent.high))

    def add(self, extent: Extent, entries: Entries, tree: Sequence[TreePart]) -> None:
        """Entries and nodes that follow those that the session has."""
        spans.append(self.connection, extent, entries.runs)
        trees.append(self.connection, extent, tree)
        # The full-text rows wait for the end of the transaction: FTS5 ends a segment at every statement that SQLite
        # guards by a savepoint (any upsert is one), and small segments have to be merged again.
        base = extent.low
        self._documents += len(entries.text_places)
        rows = [base + place for place in entries.text_places]
        self._texts += zip(rows, entries.bodies, entries.wholes, strict=True)
        self._characters += sum(map(len, entries.bodies))
        if self._characters > TEXT_CHARACTERS:
            self.write_texts()

    def remove_entries(self, extent: Extent, nodes: Iterable[int]) -> None:
        """Drops entries that a later entry of the same id has replaced."""
        rows = [extent.row(node, role) for node in nodes for role in (0, 1)]
        self._forget_tokens(spans.remove(self.connection, rows))
        for table in ("hidden", "shadowed"):
            self.connection.executemany(f"DELETE FROM {table} WHERE id=?", [(row,) for row in rows])

    def times(self, extent: Extent) -> tuple[int | None, int | None]:
        """The earliest and the latest time of a session's entries."""
        found = self.connection.execute(
            "SELECT min(low), max(high) FROM spans WHERE id BETWEEN ? AND ? AND low>?",
            (extent.low, extent.high, NO_TIME),
        ).fetchone()
        return (None, None) if found is None else (found[0], found[1])

    def set_rows(self, table: Literal["hidden", "shadowed"], extent: Extent, rows: set[int]) -> None:
        """Makes `rows` exactly the rows of this session file that a table holds."""
        before = self.rows_in(table, extent)
        self.connection.executemany(f"DELETE FROM {table} WHERE id=?", [(row,) for row in sorted(before - rows)])
        self.connection.executemany(f"INSERT INTO {table} VALUES(?)", [(row,) for row in sorted(rows - before)])

    def rows_in(self, table: Literal["hidden", "shadowed"], extent: Extent) -> set[int]:
        """The rows of a session file that a table holds."""
        found = self.connection.execute(f"SELECT id FROM {table} WHERE id BETWEEN ? AND ?", (extent.low, extent.high))
        return {int(row) for (row,) in found}

    def source_at(self, path: bytes) -> tuple[int, str | None, int | None] | None:
        """(id, session id, session key) of the file at a path, as last written."""
        return self.connection.execute("SELECT id, session_id, session FROM sources WHERE path=?", (path,)).fetchone()

    def session_state(self, session: int) -> tuple[int, int | None, int, bool]:
        """(nodes, leaf, visible messages, whether the path has the order of the file) as last written."""
        row = self.connection.execute(
            "SELECT nodes, leaf, messages, ordered FROM sessions WHERE key=?", (session,)
        ).fetchone()
        assert row is not None
        return int(row[0]), row[1], int(row[2]), bool(row[3])

    def forget_session(self, session: int) -> None:
        """Removes the row of a session file, of which no entry is left."""
        self.connection.execute("DELETE FROM sessions WHERE key=?", (session,))

    def set_duplicate(self, session: int, duplicate: bool) -> None:
        """Notes whether every entry of a session file stands in another one of the session."""
        self.connection.execute(
            "UPDATE sessions SET duplicate=?, revision=? WHERE key=?", (duplicate, self._revision, session)
        )

    def put_session(self, extent: Extent, session_id: str, **columns: object) -> None:
        """Writes the row of a session. Columns as in the table."""
        names = ["key", "slots", "session_id", *columns, "revision"]
        updates = ", ".join(f"{name}=excluded.{name}" for name in names[1:])
        self.connection.execute(
            f"INSERT INTO sessions({', '.join(names)}) VALUES({', '.join('?' * len(names))}) "
            f"ON CONFLICT(key) DO UPDATE SET {updates}",
            (*extent, session_id, *columns.values(), self._revision),
        )

    # -- sources ----------------------------------------------------------------------------------------------------

    def put_source(self, row: SourceRow, facts: bytes | None) -> int:
        """Writes the row of a file; returns its id."""
        values = (
            row.path, *row.identity, row.state, row.child, row.parent_path, row.tombstoned, row.stamp,
            row.session_id, row.session, row.damaged, row.indexed_at, facts, self._revision,
        )  # fmt: skip
        names = (
            "path, dev, ino, size, mtime_ns, ctime_ns, uid, state, child, parent_path, tombstoned, stamp, "
            "session_id, session, damaged, indexed_at, facts, revision"
        )
        updates = ", ".join(f"{name}=excluded.{name}" for name in names.split(", ")[1:])
        found = self.connection.execute(
            f"INSERT INTO sources({names}) VALUES({', '.join('?' * len(values))}) "
            f"ON CONFLICT(path) DO UPDATE SET {updates} RETURNING id",
            values,
        ).fetchone()
        assert found is not None
        return int(found[0])

    def mark_changed(self, source: int) -> None:
        """Makes the next comparison see this file as changed, so that it is read whatever happens to this run."""
        self.connection.execute(
            "UPDATE sources SET mtime_ns=-1, facts=NULL, revision=? WHERE id=?", (self._revision, source)
        )

    def forget_source(self, source: int) -> None:
        """The file is gone: its row only says so from now on."""
        self.connection.execute(
            "UPDATE sources SET state=?, session=NULL, session_id=NULL, facts=NULL, damaged=0, revision=? WHERE id=?",
            (GONE, self._revision, source),
        )

    def tombstone(self, session: int) -> None:
        """The file is gone: its metadata stays, its text does not."""
        self.clear(self.extent_at(session))
        self.connection.execute(
            "UPDATE sessions SET source=NULL, nodes=0, leaf=NULL, duplicate=0, revision=? WHERE key=?",
            (self._revision, session),
        )

    def write_texts(self) -> None:
        """Writes the texts that were held back."""
        texts, self._texts, self._characters = self._texts, [], 0
        if texts:
            texts.sort(key=itemgetter(0))  # a step down would end a segment, too
            self.connection.executemany("INSERT INTO search(rowid, body, whole) VALUES(?,?,?)", texts)

    def _forget_tokens(self, entries: Sequence[Located]) -> None:
        self._documents -= len(entries)
        gone, unwritten = {one.row for one in entries}, {text[0] for text in self._texts}
        self._texts = [text for text in self._texts if text[0] not in gone]
        self._removed += [(one.key, one.time) for one in entries if one.row not in unwritten]
        self.connection.executemany("DELETE FROM search WHERE rowid=?", [(one.row,) for one in entries])

    def note(self, name: str) -> int:
        """A number that the index keeps; 0 without one."""
        row = self.connection.execute("SELECT value FROM meta WHERE name=?", (name,)).fetchone()
        return int(row[0] or 0) if row else 0

    def set_note(self, name: str, value: int) -> None:
        """Keeps a number in the index, within the transaction."""
        self.connection.execute("INSERT OR REPLACE INTO meta VALUES(?,?)", (name, value))
