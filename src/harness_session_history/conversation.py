"""One conversation: what of it lies before its context boundary, searched and read again (contract section 11).

One of the places where archive and index meet. `SessionHistory.conversation` makes a `Conversation`; each of its calls
brings the conversation's file up to date and then works on one snapshot.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol, TypeVar

import apsw
import msgspec

from .archive.branch import Tree
from .archive.entries import KIND_OTHER, Facts, FileIdentity, entry_hash
from .archive.sources import Place, SourceFile, Walk
from .archive.transcript import NotASession, TranscriptReader, Unreadable
from .arguments import ROLES
from .errors import EntryNotVisible, SessionNotFound
from .evidence import Evidence
from .finding import Finder, ordered_rows
from .index.catalog import Catalog
from .index.match import Matcher
from .index.query import MAX_CHARS, Query, parse
from .index.records import SessionRow
from .index.schema import SESSION
from .index.scope import Scope
from .index.search import Searcher
from .index.trees import tree_columns
from .index.weigher import Weigher
from .sessions import TEXT_ROLES
from .views import Views

T = TypeVar("T")


class Snapshot(NamedTuple):
    """What one call works on; `check` raises when the caller has gone."""

    connection: apsw.Connection
    views: Views
    weigher: Weigher
    check: Callable[[], None]


Work = Callable[[Snapshot], T]


Cost = Callable[[dict[str, Any]], int]


class Room(NamedTuple):
    """How much the entries of one answer may take: `bytes` in all, of which an entry takes `cost(entry)`."""

    bytes: int
    cost: Cost


class _Run(Protocol):
    def __call__(self, session_id: str, work: Work[dict[str, Any]], /) -> Awaitable[dict[str, Any]]: ...


class Conversation:
    """The entries of one session's visible branch, for that session's own agent.

    Every call may raise SessionNotFound (unknown or deleted) and IndexUnavailable, and RefreshIncomplete where the
    session is not indexed yet and could not be. `before`, `start` and `end` take the id of any entry of the conversation.
    Reading gives as many entries as fit into `max_bytes`, of which an entry takes `cost(entry)`.
    """

    def __init__(self, session_id: str, run: _Run) -> None:
        self.session_id, self._run = session_id, run

    async def search(
        self, query: str, *, before: str | None = None, limit: int = 10, snippet_chars: int = 300
    ) -> dict[str, Any]:
        """``{hits: [{entry, role, author?, snippet}], more, indexedUpTo?}``, best first: entries before the context
        boundary, or before the entry `before`.

        ``indexedUpTo`` (an entry id, null without any) is there when the snapshot ends before that bound. Raises
        InvalidRequest for a wrong query, EntryNotVisible where `before` is no entry of the conversation.
        """
        # Refused before any file is looked at. Its characters are bounded, so that a script of long ones has as many.
        parsed = parse(query, most_bytes=4 * MAX_CHARS)
        return await self._run(self.session_id, partial(_search, self.session_id, parsed, before, limit, snippet_chars))

    async def items(
        self, entries: Sequence[str], *, around: int = 0, cursor: str | None = None, max_bytes: int, cost: Cost
    ) -> dict[str, Any]:
        """``{entries: [{entry, role, author?, text, tool?}], next?, truncated}``: these entries and `around` so many
        before and after each, in the order of the conversation, each once.

        ``next`` is the `cursor` that goes on where the space ended. Raises EntryNotVisible, CitationUnavailable, and
        InvalidRequest for a cursor that does not fit.
        """
        from .passages import read_items

        room = Room(max_bytes, cost)
        return await self._run(self.session_id, partial(read_items, self.session_id, entries, around, cursor, room))

    async def range(
        self,
        start: str | None,
        end: str | None = None,
        *,
        limit: int = 20,
        cursor: str | None = None,
        max_bytes: int,
        cost: Cost,
    ) -> dict[str, Any]:
        """As `items`: the entries from `start` to `end` (to the leaf without one), at most `limit`; errors as there."""
        from .passages import read_range

        room = Room(max_bytes, cost)
        return await self._run(self.session_id, partial(read_range, self.session_id, start, end, limit, cursor, room))

    async def tail(self, count: int = 10, *, cursor: str | None = None, max_bytes: int, cost: Cost) -> dict[str, Any]:
        """As `items`: the `count` entries immediately before the context boundary; ``next`` goes further back."""
        from .passages import read_tail

        room = Room(max_bytes, cost)
        return await self._run(self.session_id, partial(read_tail, self.session_id, count, cursor, room))


class Line:
    """The visible branch of a session: its nodes have the positions 0, 1, 2 … from the root to the leaf.

    `boundary` is the position of the first entry that is still in context, or of the reset; without either it is one
    more than the leaf's. Raises SessionNotFound.
    """

    def __init__(self, snapshot: Snapshot, session_id: str) -> None:
        self.session = _session(snapshot.views, session_id)
        self.extent = self.session.extent
        self.catalog = snapshot.views.catalog
        self.connection = snapshot.connection
        self.tree = Tree(
            tree_columns(snapshot.connection, self.extent, self.session.nodes), unique=self.session.ordered
        )
        self.nodes = self.tree.visible_path
        boundary = self.tree.boundary()
        position = None if boundary is None else self.tree.position(boundary.node)
        self.boundary = len(self.nodes) if position is None else position

    def position(self, entry_id: str) -> int | None:
        """Where an entry is on the branch; None if it is not on it."""
        node = self.tree.find(entry_hash(entry_id))
        return None if node is None else self.tree.position(node)

    def position_before(self, entry_id: str) -> int | None:
        """How many nodes of the branch come before an entry; for one of an abandoned branch, those that it goes back
        to. None if no entry has this id."""
        node = self.tree.find(entry_hash(entry_id))
        if node is None:
            return None
        position = self.tree.position(node)
        if position is not None:
            return position
        for above in reversed(self.tree.path(node)):
            position = self.tree.position(above)
            if position is not None:
                return position + 1
        return 0

    def row(self, position: int) -> int | None:
        """The row of the user or assistant entry at a position; None where another kind of entry stands."""
        node = self.nodes[position]
        kind = self.tree.kinds[node]
        # Kinds of user entries are odd, those of assistant entries even.
        return None if kind == KIND_OTHER else self.extent.row(node, 1 - kind % 2)

    def scope(self, bound: int) -> Scope:
        """Only what stands before a position, as the index understands it: before ranking and limit."""
        allowed = frozenset((self.session.key,))
        if self.session.ordered:
            first, last = self.extent.low, self.extent.high
            if bound < len(self.nodes):
                last = self.extent.row(self.nodes[bound], 0) - 1
            return Scope(sessions=allowed, span=(first, last))
        texts = [(node, TEXT_ROLES.get(self.tree.kinds[node])) for node in self.nodes[:bound]]
        return Scope(
            sessions=allowed, rows=tuple(self.extent.row(node, role) for node, role in texts if role is not None)
        )

    @property
    def path(self) -> bytes:
        assert self.session.path is not None
        return self.session.path

    def is_behind(self) -> bool:
        """Whether the file is not as the snapshot has it (any more)."""
        source = self.catalog.sources.get(self.path)
        try:
            return source is None or FileIdentity.of(os.stat(self.path)) != source.identity
        except OSError:
            return True

    def has_later(self, entry_id: str) -> bool:
        """Whether the file holds this entry after what is indexed."""
        found = self.connection.execute("SELECT facts FROM sources WHERE path=?", (self.path,)).fetchone()
        facts = None if found is None or found[0] is None else msgspec.msgpack.decode(found[0], type=Facts)
        resume = None if facts is None or facts.linear else facts
        wanted = entry_hash(entry_id).to_bytes(8, "little", signed=True)
        try:
            chunks = TranscriptReader(os.fsdecode(self.path), resume=resume)
            return any(wanted in (chunk.ids[at : at + 8] for at in range(0, len(chunk.ids), 8)) for chunk in chunks)
        except (NotASession, Unreadable):
            return False


def _session(views: Views, session_id: str) -> SessionRow:
    key = views.catalog.key_by_id.get(session_id)
    session = None if key is None else views.catalog.sessions[key]
    if session is None or session.path is None or views.is_deleted(session):
        raise SessionNotFound("no such conversation is in scope", hint="check the session id and the roots")
    return session


def own_files(catalog: Catalog, session_id: str) -> Walk | None:
    """What a walk would find of one session's files, by looking at these alone.

    None where only a walk can tell: the session is new, or one of its files is gone or has been replaced.
    """
    key = catalog.key_by_id.get(session_id)
    if key is None or catalog.sessions[key].source is None:
        return None
    seen = Walk({}, [], set(), [], {}, time.monotonic())
    for path, row in catalog.sources.items():
        if row.state != SESSION or row.session_id != session_id:
            continue
        try:
            status = os.stat(path)
        except OSError:
            return None
        if not stat.S_ISREG(status.st_mode) or (status.st_dev, status.st_ino) != row.identity[:2]:
            return None
        seen.files[path] = SourceFile(path, FileIdentity.of(status), Place(0, row.child, row.parent_path))
    return seen if seen.files else None


def _search(
    session_id: str, query: Query, before: str | None, limit: int, snippet_chars: int, snapshot: Snapshot
) -> dict[str, Any]:
    line = Line(snapshot, session_id)
    bound, reaches = line.boundary, not line.is_behind()
    if before is not None:
        found = line.position_before(before)
        if found is None and (reaches or not line.has_later(before)):
            raise EntryNotVisible("before is no entry of this conversation", hint="give the id of one of its entries")
        bound, reaches = (len(line.nodes), False) if found is None else (found, True)
    matcher = Matcher(query)
    scope = line.scope(bound)
    searcher = Searcher(snapshot.connection, snapshot.weigher, scope, line.catalog)
    finder = Finder(snapshot.connection, snapshot.views, scope, matcher, snapshot.check)
    rows, beyond = ordered_rows(searcher, query, "relevance")
    hits, more = finder.take(rows, limit, diverse=False, verify=query.literal, beyond=beyond)
    answer: dict[str, Any] = {
        "hits": [
            {
                "entry": hit.entry.entry_id,
                "role": ROLES[hit.entry.role],
                **({"author": hit.entry.author} if hit.entry.author else {}),
                "snippet": matcher.snippet(hit.entry.text, snippet_chars)[0],
            }
            for hit in hits
        ],
        "more": more or finder.gave_up,
    }
    if not reaches:
        answer["indexedUpTo"] = _last_entry(snapshot, line)
    return answer


def _last_entry(snapshot: Snapshot, line: Line) -> str | None:
    """The id of the last entry of the branch that the snapshot has."""
    evidence = Evidence(snapshot.connection, line.catalog)
    for position in reversed(range(len(line.nodes))):
        row = line.row(position)
        located = None if row is None else evidence.locate(row)
        entry = None if located is None else evidence.hydrate([located])[0]
        if entry is not None:
            return entry.entry_id
    return None
