"""Writes one session into the index: which of its files counts, which of its entries are on the visible branch.

One of the places where archive and index meet: the tree's rules come from the archive, the rows are the index's.
Everything runs inside a transaction of the caller.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ..archive.branch import Tree
from ..index import trees
from ..index.schema import Entries, Extent, SourceRow, TreePart, Unsound
from ..index.writer import Writer
from ..model.entries import TEXT_ROLES, Columns, Facts

_INVERTED = bytes(range(255, -1, -1))


class Outgrown(Exception):
    """A session has more entries than its extent has room for."""


class SessionWriter:
    """Decides and writes per session; remembers which other files have to be read because of it."""

    def __init__(self, writer: Writer) -> None:
        self.writer = writer
        #: Files that are gone and whose rows are dropped at the end of the run: they count for nothing any more.
        self.leaving: set[bytes] = set()
        #: Files that cannot be found but may come back, with or without their root: they count where there is no other.
        self.lost: set[bytes] = set()
        self.away: set[bytes] = set()
        #: What the paths of all files begin with that may count: an index may know files of other roots.
        self.below: tuple[bytes, ...] = ()
        self._asked: list[bytes] = []

    def take_asked(self) -> list[bytes]:
        """Paths of files that have to be read (again), each handed out once."""
        asked, self._asked = self._asked, []
        return asked

    def counts(self, row: SourceRow, facts: Facts) -> bool:
        """Whether this file is the one that counts for its session: latest activity, then larger, then path."""
        own = _rank(row.last_time, row.identity[2], row.path)
        return all(
            own >= _rank(last_time, size, path)
            for _, path, _, last_time, size in self._files_of(facts.session_id)
            if path != row.path and self._is_there(path)
        )

    def note_duplicate(self, row: SourceRow, facts: Facts) -> None:
        """Records a file of a session for which another file counts."""
        extent = self.writer.extent_of(facts.session_id)
        self.put_source(msgspec.structs.replace(row, session=None), facts)
        files = [file for file in self._files_of(facts.session_id) if self._is_there(file[1])]
        if extent is None or not any(session == extent.key for _, _, session, _, _ in files):
            self.ask_best(facts.session_id)

    def put_source(self, row: SourceRow, facts: Facts) -> int:
        """Writes the row of a file, which may have carried another session before (its header was rewritten)."""
        former = self.writer.source_at(row.path)
        source = self.writer.put_source(row, msgspec.msgpack.encode(facts))
        if former is not None and former[1] != facts.session_id:
            self.lose(former[1])
        return source

    def elect(self, session_id: str, session: int) -> None:
        """A session has lost its file: another file that carries it takes its place, or it becomes a tombstone."""
        if not self.ask_best(session_id):
            self.writer.tombstone(session)

    def lose(self, session_id: str | None) -> None:
        """A file is gone or carries its session no longer; if it was the one that counts, another takes its place."""
        extent = None if session_id is None else self.writer.extent_of(session_id)
        if session_id is not None and extent is not None and self.writer.is_orphan(extent.key):
            self.elect(session_id, extent.key)

    def holds(self, row: SourceRow) -> bool:
        """Whether the snapshot still has of a file what it had when the run began, so that it may be read on."""
        return self.writer.is_unchanged(row)

    def read_again(self, row: SourceRow) -> None:
        """Asks for a file to be read from its start."""
        self.writer.mark_changed(row.id)
        self._asked.append(row.path)

    def _files_of(self, session_id: str) -> list[tuple[int, bytes, int | None, int | None, int]]:
        return [file for file in self.writer.sources_of(session_id) if file[1] not in self.leaving]

    def _is_there(self, path: bytes) -> bool:
        return path not in self.lost and not self._is_elsewhere(path)

    def _is_elsewhere(self, path: bytes) -> bool:
        return path in self.away or bool(self.below and not path.startswith(self.below))

    def ask_best(self, session_id: str) -> bool:
        """Asks for the best of a session's files to be read; False if there is none."""
        files = self._files_of(session_id)
        if not files:
            return False
        there = [file for file in files if self._is_there(file[1])]
        source, path, _, _, _ = max(there or files, key=lambda file: _rank(file[3], file[4], file[1]))
        self.writer.mark_changed(source)
        self._asked.append(path)
        return True

    def set_back(self, source: int, path: bytes) -> None:
        """Another file counts in the place of this one."""
        if path in self.lost:
            self.writer.forget_source(source)
            return
        if self._is_elsewhere(path):
            self.writer.mark_changed(source)  # when it comes back, it has to be asked again which one counts
        self.writer.demote(source)

    def fresh(self, extent: Extent) -> SessionStore:
        """Stores a session that is read from its start, beside what the snapshot has of it until it is whole."""
        return SessionStore(self, extent)

    def replacement(self, session_id: str, extent: Extent) -> SessionStore:
        """Stores a session that was read from its start, in the place of what the snapshot has of it."""
        self._clear_former(session_id, extent)
        return SessionStore(self, extent)

    def _clear_former(self, session_id: str, extent: Extent) -> None:
        former = self.writer.extent_of(session_id)
        if former is not None:
            self.writer.clear(former)
            if former.key != extent.key:
                self.writer.forget_session(former.key)

    def leave_former(self, session_id: str, extent: Extent) -> None:
        """Removes what the snapshot has of a session elsewhere."""
        former = self.writer.extent_of(session_id)
        if former is not None and former.key != extent.key:
            self._clear_former(session_id, extent)

    def extension(self, row: SourceRow) -> Extension:
        """Stores what was appended to a session's file."""
        assert row.session is not None
        return Extension(self, self.writer.extent_at(row.session))


class SessionStore:
    """Takes the parts of one session in order; `finish` makes the session of them."""

    def __init__(self, sessions: SessionWriter, extent: Extent) -> None:
        self.sessions, self.writer, self.extent = sessions, sessions.writer, extent
        self.parts: list[Columns] = []

    def add(self, entries: Entries, tree: Sequence[TreePart]) -> None:
        """Raises Outgrown where the session needs more room than it was given."""
        if tree[-1].first_node + len(tree[-1].kinds) > self.extent.room:
            raise Outgrown
        self.writer.add(self.extent, entries, tree)
        self.parts += [(part.ids, part.kinds, *trees.decoded(part.links)) for part in tree]

    def finish(self, row: SourceRow, facts: Facts) -> bool:
        """Writes the rows of the session and its file; False (nothing of it may stay) if another file counts."""
        if not self.sessions.counts(row, facts):
            return False
        self.sessions.leave_former(facts.session_id, self.extent)
        for source, path, session, _, _ in self.writer.sources_of(facts.session_id):
            if session is not None and path != row.path:
                self.sessions.set_back(source, path)
        self._write_rows(row, facts, Tree(self.parts))
        return True

    def _write_rows(self, row: SourceRow, facts: Facts, tree: Tree) -> SourceRow:
        """Writes what depends on the tree, then the session and its file; returns the row of that."""
        visible, superseded = tree.visible, tree.superseded
        kinds = b"".join(part[1] for part in self.parts)
        hidden, messages = set(), 0
        for node, kind in enumerate(kinds):
            if kind in TEXT_ROLES and node not in superseded:
                if visible[node]:
                    messages += 1
                else:
                    hidden.add(self.extent.row(node, TEXT_ROLES[kind]))
        if superseded:
            self.writer.remove_entries(self.extent, sorted(superseded))
            # What was read on did not know which of the older entries have been replaced.
            first, last = self.writer.times(self.extent)
            facts = msgspec.structs.replace(facts, first_time=first, last_time=last)
            row = msgspec.structs.replace(row, last_time=facts.started if last is None else last)
        self.writer.set_hidden(self.extent, hidden)
        self._put(row, facts, tree.leaf, messages, tree.ordered and not superseded)
        return row

    def _put(self, row: SourceRow, facts: Facts, leaf: int | None, messages: int, ordered: bool) -> None:
        source = self.sessions.put_source(msgspec.structs.replace(row, session=self.extent.key), facts)
        self.writer.put_session(
            self.extent, facts.session_id, source=source, cwd=facts.cwd, name=facts.name, parent=facts.parent_session,
            child=row.child, parent_path=row.parent_path, path=row.path, tombstoned=row.tombstoned,
            started=facts.started, first_time=facts.first_time, last_time=facts.last_time, messages=messages,
            nodes=facts.nodes, leaf=leaf, ordered=ordered, untimed=facts.untimed,
        )  # fmt: skip


class Extension(SessionStore):
    """What was appended to a session. Where the new entries only go on from the leaf, nothing older is looked at."""

    def __init__(self, sessions: SessionWriter, extent: Extent) -> None:
        super().__init__(sessions, extent)
        self.before = self.writer.session_state(extent.key)
        if trees.end_of(self.writer.connection, extent) != self.before[0]:
            raise Unsound("a part of a tree is missing")

    def finish(self, row: SourceRow, facts: Facts) -> bool:
        nodes, leaf, messages, ordered = self.before
        if self._goes_on(nodes, leaf):
            added = sum(kinds.count(kind) for _, kinds, _, _ in self.parts for kind in TEXT_ROLES)
            self._put(row, facts, facts.nodes - 1 if facts.nodes else None, messages + added, ordered)
        else:
            self.parts = trees.tree_columns(self.writer.connection, self.extent, facts.nodes)
            row = self._write_rows(row, facts, Tree(self.parts))
        if not self.sessions.counts(row, facts):
            # Its first message may be older than its header, which until then was its latest activity.
            self.sessions.ask_best(facts.session_id)
        return True

    def _goes_on(self, nodes: int, leaf: int | None) -> bool:
        if nodes and leaf != nodes - 1:
            return False
        if any(links or any(mark == "leaf" for _, mark, _ in marks) for _, _, links, marks in self.parts):
            return False
        ids = b"".join(part[0] for part in self.parts)
        new = {ids[at : at + 8] for at in range(0, len(ids), 8)}
        return len(new) * 8 == len(ids) and not trees.has_any(self.writer.connection, self.extent, new, below=nodes)


def _rank(last_time: int | None, size: int, path: bytes) -> tuple[int, int, bytes]:
    # The smaller path wins a tie: invert the bytes so that a plain comparison says so.
    return (-1 << 62 if last_time is None else last_time, size, path.translate(_INVERTED) + b"\xff")
