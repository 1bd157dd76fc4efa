"""One way along a branch: the entries around a target for `open`, the ends of a session for `list`, and the visible branch of a
conversation with its context boundary for recall."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple, NotRequired, TypedDict, TypeVar

import apsw
import msgspec

from ..archive.branch import Tree
from ..archive.files import Unreadable
from ..archive.transcript import NotASession, TranscriptReader
from ..errors import EntryNotVisible, SessionNotFound
from ..index.schema import Extent, SessionRow
from ..index.trees import find, tree_columns
from ..model.entries import KIND_OTHER, TEXT_ROLES, Facts, entry_hash
from ..model.sources import FileIdentity
from ..request import OpenRequest, Role
from ..response import ToolUse
from ..search.bm25 import Scorer
from ..search.scope import Scope
from .citations import Evidence
from .sessions import SessionViews

T = TypeVar("T")


class Snapshot(NamedTuple):
    """What one call works on; `check` raises when the caller has gone."""

    connection: apsw.Connection
    views: SessionViews
    scorer: Scorer
    check: Callable[[], None]


Work = Callable[[Snapshot], T]


class EarlierHit(TypedDict):
    """One hit of ``history_search``."""

    entry: str
    role: Role
    author: NotRequired[str]
    snippet: str


class EarlierHits(TypedDict):
    """The answer of ``history_search``."""

    hits: list[EarlierHit]
    more: bool
    indexedUpTo: NotRequired[str | None]


class EarlierEntry(TypedDict):
    """One entry of ``history_read``."""

    entry: str
    role: Role
    author: NotRequired[str]
    text: str
    tool: NotRequired[ToolUse]
    tools: NotRequired[list[ToolUse]]


class EarlierEntries(TypedDict):
    """The answer of ``history_read``."""

    entries: list[EarlierEntry]
    truncated: bool
    next: NotRequired[str]


Cost = Callable[[EarlierEntry], int]


class Room(NamedTuple):
    """How much the entries of one answer may take: `bytes` in all, of which an entry takes `cost(entry)`."""

    bytes: int
    cost: Cost


class Line:
    """The visible branch of a conversation: its nodes have the positions 0, 1, 2 … from the root to the leaf. Where several
    files carry its id, it is the branch of the leading one, which is the live file that was active last.

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
        return Scope(sessions=allowed, rows=tuple(text_rows_along(self.tree, self.extent, self.nodes[:bound])))

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
            source = self.catalog.sources[self.path]
            chunks = TranscriptReader(self.path, FileIdentity(*source.identity), resume=resume)
            return any(wanted in (chunk.ids[at : at + 8] for at in range(0, len(chunk.ids), 8)) for chunk in chunks)
        except (NotASession, Unreadable):
            return False


def _session(views: SessionViews, session_id: str) -> SessionRow:
    files = views.catalog.files_of(session_id)
    session = views.catalog.sessions[files[0]] if files else None
    if session is None or session.path is None or views.is_deleted(session):
        raise SessionNotFound("no such conversation is in scope", hint="check the session id and the roots")
    return session


class Neighbourhood:
    """The entries before and after a target, nearest first, and how many there are on each side."""

    def __init__(self, before: Sequence[int], after: Sequence[int], count_before: int, count_after: int) -> None:
        self.before, self.after = before, after
        self.count_before, self.count_after = count_before, count_after


def find_around(
    connection: apsw.Connection, evidence: Evidence, session: SessionRow, request: OpenRequest
) -> tuple[int, Neighbourhood]:
    # Where the file ends with its leaf, the visible branch is the latest line of every entry on it.
    ends_with_leaf = session.leaf == session.nodes - 1
    if session.ordered and (request.branch == "visible" or ends_with_leaf):
        found = _find_in_order(connection, evidence, session, request)
        if found is not None:
            return found
        if request.branch == "visible":
            raise _not_visible(request)
    return _find_in_tree(connection, session, request)


def _not_visible(request: OpenRequest) -> EntryNotVisible:
    return EntryNotVisible(
        "no such entry is visible in this session",
        hint='branch="any" also opens entries of abandoned branches' if request.branch == "visible" else "",
    )


def _find_in_order(
    connection: apsw.Connection, evidence: Evidence, session: SessionRow, request: OpenRequest
) -> tuple[int, Neighbourhood] | None:
    """The entry on the visible branch, None if it is not on it. Where that branch has the order of the file (nearly
    always), neighbours are neighbouring rows, without a tree."""
    wanted = entry_hash(request.entry_id).to_bytes(8, "little", signed=True)
    extent = session.extent
    place = find(connection, extent, session.nodes, wanted)
    if place is None or place.kind not in TEXT_ROLES:
        return None
    target = extent.row(place.node, TEXT_ROLES[place.kind])
    hidden = hidden_rows(connection, session)
    if target in hidden:
        return None
    before = list(islice(text_rows(evidence, extent.low, target - 1, hidden, descending=True), request.before))
    after = list(islice(text_rows(evidence, target + 1, extent.high, hidden), request.after))
    hidden_before = sum(1 for row in hidden if row < target)
    count_before, count_after = place.before - hidden_before, place.after - (len(hidden) - hidden_before)
    return target, Neighbourhood(before, after, count_before, count_after)


def hidden_rows(connection: apsw.Connection, session: SessionRow) -> set[int]:
    """Rows of a session that are off its visible branch."""
    bounds = session.extent.low, session.extent.high
    return {row for (row,) in connection.execute("SELECT id FROM hidden WHERE id BETWEEN ? AND ?", bounds)}


def text_rows(
    evidence: Evidence, low: int, high: int, hidden: Collection[int], *, descending: bool = False
) -> Iterator[int]:
    """Rows from `low` to `high` whose entries have text and are visible, where a branch has the order of the file."""
    entries = evidence.spans.between(low, high, descending=descending)
    return (one.row for one in entries if one.text and one.row not in hidden)


def text_rows_along(tree: Tree, extent: Extent, nodes: Iterable[int]) -> list[int]:
    """Rows of those of a branch's nodes that are entries with text."""
    return [extent.row(one, TEXT_ROLES[tree.kinds[one]]) for one in nodes if tree.kinds[one] in TEXT_ROLES]


def _find_in_tree(connection: apsw.Connection, session: SessionRow, request: OpenRequest) -> tuple[int, Neighbourhood]:
    extent = session.extent
    tree = Tree(tree_columns(connection, extent, session.nodes), unique=session.ordered)
    kinds = tree.kinds
    node = tree.find(entry_hash(request.entry_id))
    if node is None or kinds[node] not in TEXT_ROLES:
        raise _not_visible(request)
    if request.branch == "any":
        line = tree.line_through(node)
    elif tree.visible[node]:
        line = tree.visible_path
    else:
        raise _not_visible(request)
    rows = text_rows_along(tree, extent, line)
    target = extent.row(node, TEXT_ROLES[kinds[node]])
    at = rows.index(target)
    before, after = rows[max(0, at - request.before) : at][::-1], rows[at + 1 : at + 1 + request.after]
    return target, Neighbourhood(before, after, at, len(rows) - at - 1)
