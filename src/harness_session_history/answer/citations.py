"""From a row of the index to the entry in its file: where it lies, and what the cited bytes say when read again.

One of the places where archive and index meet.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import apsw

from ..archive.files import Unreadable
from ..archive.hydration import Hydrated, Status, Wanted, hydrate, tool_statuses
from ..index.catalog import Catalog
from ..index.packing import Located
from ..index.schema import IntegrityFault
from ..index.spans import Spans
from ..index.trees import id_at, tree_columns
from ..model.entries import ASSISTANT, KIND_ASSISTANT_BARE, KIND_ASSISTANT_TEXT
from ..model.sources import FileIdentity

_END = 1 << 62
#: The kind bytes of assistant entries.
_ASSISTANT = (KIND_ASSISTANT_BARE, KIND_ASSISTANT_TEXT)


class Evidence:
    """Reads cited entries of one snapshot."""

    def __init__(self, connection: apsw.Connection, catalog: Catalog) -> None:
        self.connection, self.catalog = connection, catalog
        self.spans = Spans(connection)

    def locate(self, row: int) -> Located | None:
        found = self.spans.locate(row)
        return None if found is None else self._of_known_session(found)

    def locate_many(self, rows: Iterable[int]) -> list[Located]:
        return [located for located in map(self.locate, rows) if located is not None]

    def copies(self, located: Located) -> list[Located]:
        """The entries of other sessions that have the id, time, role and text of this one."""
        return [self._of_known_session(copy) for copy in self.spans.copies(located)]

    def _of_known_session(self, located: Located) -> Located:
        if located.session not in self.catalog.sessions:
            raise IntegrityFault("a session is missing")
        return located

    def hidden(self, row: int) -> bool:
        """Whether an entry is off its session's visible branch."""
        return self.connection.execute("SELECT 1 FROM hidden WHERE id=?", (row,)).fetchone() is not None

    def _file(self, session: int) -> tuple[bytes, FileIdentity | None]:
        """The file of a session, and as what it was indexed; None if it has none any more."""
        path = self.catalog.sessions[session].path or b""
        row = self.catalog.sources.get(path)
        return path, None if row is None else FileIdentity(*row.identity)

    def hydrate(self, wanted: Sequence[Located]) -> list[Hydrated | None]:
        """Entries of one session, read again; None where the bytes no longer say what was indexed."""
        path, known = self._file(wanted[0].session) if wanted else (b"", None)
        if known is None:
            return [None] * len(wanted)
        spans = [
            Wanted(one.node, one.offset, one.length, one.key or self._id(one), one.role, one.time) for one in wanted
        ]
        try:
            found = hydrate(path, spans, known)
        except Unreadable:
            return [None] * len(wanted)
        if None in found.entries and found.identity.size >= known.size:
            self.catalog.doubted[path] = found.identity
        return found.entries

    def _id(self, located: Located) -> bytes:
        """The hash of an entry's id, which is the key of one without text."""
        return id_at(self.connection, located.row)

    def statuses(self, located: Located, calls: Sequence[str]) -> dict[str, Status]:
        """How an assistant entry's tool calls ended, by the results between it and the next assistant entry (a user may
        have said something meanwhile); a call that is not in the answer was not answered there."""
        path, known = self._file(located.session)
        if known is None:
            return {}
        start, wanted = located.offset + located.length, set(calls)
        last = self.catalog.sessions[located.session].extent.high
        following = next((one for one in self.spans.between(located.row + 1, last) if one.role == ASSISTANT), None)
        try:
            found = tool_statuses(path, start, _END if following is None else following.offset, wanted, known)
            if following is not None and found.keys() != wanted:
                end = self._end_on_line(located)
                if end is None or end > following.offset:
                    found |= tool_statuses(path, following.offset, end or _END, wanted - found.keys(), known)
        except Unreadable:
            return {}
        return found

    def _end_on_line(self, located: Located) -> int | None:
        """Where the next assistant entry on the same branch begins: another branch may have been written in between."""
        from ..archive.branch import Tree

        session = self.catalog.sessions[located.session]
        columns = tree_columns(self.connection, session.extent, session.nodes)
        if not any(links for _, _, links, _ in columns):
            return 0  # without branches that is the next one of the file
        kinds = b"".join(column[1] for column in columns)
        for node in Tree(columns).line_through(located.node):
            if node > located.node and kinds[node] in _ASSISTANT:
                following = self.locate(session.extent.row(node, ASSISTANT))
                return None if following is None else following.offset
        return None
