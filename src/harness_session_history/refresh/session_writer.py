"""Writes session files into the index: which of their entries are on the visible branch, and, where several files carry one
session id, which of them hold the same entries.

One of the places where archive and index meet: the tree's rules come from the archive, the rows are the index's.
Everything runs inside a transaction of the caller, who calls `settle` before it is committed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

import msgspec

from ..archive.branch import Tree
from ..index import trees
from ..index.schema import Entries, Extent, IntegrityFault, SessionRow, SourceRow, TreePart
from ..index.spans import Spans
from ..index.writer import Writer
from ..model.entries import TEXT_ROLES, Columns, Facts


class Outgrown(Exception):
    """A session has more entries than its extent has room for."""


class SessionWriter:
    """Writes per file; remembers which sessions that concerns."""

    def __init__(self, writer: Writer) -> None:
        self.writer = writer
        self._touched: set[str] = set()

    def fresh(self, extent: Extent) -> SessionStore:
        """Stores a file that is read from its start, beside what the snapshot has of it until it is whole."""
        return SessionStore(self, extent)

    def replacement(self, path: bytes, extent: Extent) -> SessionStore:
        """Stores a file that was read from its start, in the place of what the snapshot has of it."""
        former = self.writer.session_at(path)
        if former is not None and former[0].key == extent.key:
            self.writer.clear(extent)
        return SessionStore(self, extent)

    def extension(self, row: SourceRow) -> Extension:
        """Stores what was appended to a file."""
        assert row.session is not None
        return Extension(self, self.writer.extent_at(row.session))

    def put(self, extent: Extent, row: SourceRow, facts: Facts, leaf: int | None, messages: int, ordered: bool) -> None:
        """Writes the rows of a file and of what it holds, which may have been another session before."""
        former = self.writer.session_at(row.path)
        if former is not None and former[0].key != extent.key:
            if former[1] == facts.session_id:
                self.writer.clear(former[0])
                self.writer.forget_session(former[0].key)
            else:
                self.bury(former[0].key, former[1])
        source = self.writer.put_source(msgspec.structs.replace(row, session=extent.key), msgspec.msgpack.encode(facts))
        self.writer.put_session(
            extent, facts.session_id, source=source, cwd=facts.cwd, name=facts.name, parent=facts.parent_session,
            child=row.child, parent_path=row.parent_path, path=row.path, tombstoned=row.tombstoned,
            started=facts.started, first_time=facts.first_time, last_time=facts.last_time, messages=messages,
            nodes=facts.nodes, leaf=leaf, ordered=ordered, untimed=facts.untimed, size=facts.size,
        )  # fmt: skip
        self._touched.add(facts.session_id)

    def bury(self, session: int, session_id: str) -> None:
        """A file is gone or carries this session no longer: at most its metadata stays."""
        self.writer.tombstone(session)
        self._touched.add(session_id)

    def settle(self) -> None:
        """Brings what depends on all files of a session up to date, for each session that was written."""
        for session_id in sorted(self._touched):
            files = self.writer.files_of(session_id)
            there = [file for file in files if file.source is not None]
            for file in [file for file in files if file.source is None][0 if there else 1 :]:
                self.writer.forget_session(file.key)
            if len(there) > 1 or any(self.writer.rows_in("shadowed", file.extent) or file.duplicate for file in there):
                self._compare(there)
        self._touched.clear()

    def _compare(self, files: Sequence[SessionRow]) -> None:
        """Notes what several files of one session hold; the leading one comes first. An entry is shadowed where another row
        of it is found whenever it is: not deleted unless this one is, not off the visible branch unless this one is."""
        texts = {file.key: self._texts(file.extent) for file in files}
        hidden = {file.key: self.writer.rows_in("hidden", file.extent) for file in files}
        shadowed: dict[int, set[int]] = {file.key: set() for file in files}
        visible: set[bytes] = set()
        known: set[bytes] = set()
        for deleted in (False, True):
            for off_branch in (False, True):
                for key in [file.key for file in files if file.deleted == deleted]:
                    for row, entry in texts[key]:
                        if (row in hidden[key]) == off_branch:
                            if entry in visible or (off_branch and entry in known):
                                shadowed[key].add(row)
                            (known if off_branch else visible).add(entry)
        held = {file.key: self._held(file) for file in files}
        copies = Counter(entry for entries in held.values() for entry in entries)
        for file in reversed(files):
            duplicate = file is not files[0] and all(copies[entry] > 1 for entry in held[file.key])
            if duplicate:
                copies.subtract(held[file.key])
            if duplicate != bool(file.duplicate):
                self.writer.set_duplicate(file.key, duplicate)
            self.writer.set_rows("shadowed", file.extent, shadowed[file.key])

    def is_elsewhere(self, row: SourceRow, out_of_reach: Collection[bytes]) -> bool:
        """Whether every entry of a file stands in files of its session that are there."""
        files = self.writer.files_of(row.session_id or "")
        own = [self._held(file) for file in files if file.key == row.session]
        others = [file for file in files if file.source is not None and file.path not in out_of_reach]
        return bool(own and others) and own[0] <= set().union(*(self._held(file) for file in others))

    def _texts(self, extent: Extent) -> list[tuple[int, bytes]]:
        """(row, fingerprint) of the entries with text."""
        entries = Spans(self.writer.connection).between(extent.low, extent.high)
        return [(one.row, one.key) for one in entries if one.text]

    def _held(self, file: SessionRow) -> set[bytes]:
        """What tells which entries a file holds: the ids of all and the fingerprints of those with text."""
        found = {entry for _, entry in self._texts(file.extent)}
        for ids, _, _, _ in trees.tree_columns(self.writer.connection, file.extent, file.nodes):
            found.update(ids[at : at + 8] for at in range(0, len(ids), 8))
        return found


class SessionStore:
    """Takes the parts of one file in order; `finish` makes a session of them."""

    def __init__(self, sessions: SessionWriter, extent: Extent) -> None:
        self.sessions, self.writer, self.extent = sessions, sessions.writer, extent
        self.parts: list[Columns] = []

    def add(self, entries: Entries, tree: Sequence[TreePart]) -> None:
        """Raises Outgrown where the file needs more room than it was given."""
        if tree[-1].first_node + len(tree[-1].kinds) > self.extent.room:
            raise Outgrown
        self.writer.add(self.extent, entries, tree)
        self.parts += [(part.ids, part.kinds, *trees.decoded(part.links)) for part in tree]

    def finish(self, row: SourceRow, facts: Facts) -> None:
        """Writes what depends on the tree, then the rows of the file."""
        tree = Tree(self.parts)
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
        self.writer.set_rows("hidden", self.extent, hidden)
        self.sessions.put(self.extent, row, facts, tree.leaf, messages, tree.ordered and not superseded)


class Extension(SessionStore):
    """What was appended to a file. Where the new entries only go on from the leaf, nothing older is looked at."""

    def __init__(self, sessions: SessionWriter, extent: Extent) -> None:
        super().__init__(sessions, extent)
        self.before = self.writer.session_state(extent.key)
        if trees.end_of(self.writer.connection, extent) != self.before[0]:
            raise IntegrityFault("a part of a tree is missing")

    def finish(self, row: SourceRow, facts: Facts) -> None:
        nodes, leaf, messages, ordered = self.before
        if self._goes_on(nodes, leaf):
            added = sum(kinds.count(kind) for _, kinds, _, _ in self.parts for kind in TEXT_ROLES)
            leaf = facts.nodes - 1 if facts.nodes else None
            self.sessions.put(self.extent, row, facts, leaf, messages + added, ordered)
        else:
            self.parts = trees.tree_columns(self.writer.connection, self.extent, facts.nodes)
            super().finish(row, facts)

    def _goes_on(self, nodes: int, leaf: int | None) -> bool:
        if nodes and leaf != nodes - 1:
            return False
        if any(links or any(mark == "leaf" for _, mark, _ in marks) for _, _, links, marks in self.parts):
            return False
        ids = b"".join(part[0] for part in self.parts)
        new = {ids[at : at + 8] for at in range(0, len(ids), 8)}
        return len(new) * 8 == len(ids) and not trees.has_any(self.writer.connection, self.extent, new, below=nodes)
