"""One conversation: what of it lies before its context boundary, searched and read again (contract section 11).

One of the places where archive and index meet. `SessionHistory.conversation` makes a `Conversation`; each of its calls
brings the conversation's file up to date and then works on one snapshot.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from functools import partial
from typing import Protocol, TypeVar

from ..errors import EntryNotVisible
from ..request import ROLES
from ..search.match import Matcher
from ..search.query import MAX_CHARS, Query, parse
from ..search.rank import Searcher, ordered_rows
from .branch import Cost, EarlierEntries, EarlierHit, EarlierHits, Line, Room, Snapshot, Work
from .citations import Evidence
from .hits import Finder

T = TypeVar("T")


class _Run(Protocol):
    def __call__(self, session_id: str, work: Work[T], /) -> Awaitable[T]: ...


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
    ) -> EarlierHits:
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
    ) -> EarlierEntries:
        """``{entries: [{entry, role, author?, text, tool?}], next?, truncated}``: these entries and `around`
        entries before and after each, in the order of the conversation, each once.

        ``next`` is the `cursor` that goes on where the space ended. Raises EntryNotVisible, CitationUnavailable, and
        InvalidRequest for a cursor that does not fit.
        """
        from .conversation_read import read_items

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
    ) -> EarlierEntries:
        """As `items`: the entries from `start` to `end` (to the leaf without one), at most `limit`; errors as there."""
        from .conversation_read import read_range

        room = Room(max_bytes, cost)
        return await self._run(self.session_id, partial(read_range, self.session_id, start, end, limit, cursor, room))

    async def tail(self, count: int = 10, *, cursor: str | None = None, max_bytes: int, cost: Cost) -> EarlierEntries:
        """As `items`: the `count` entries immediately before the context boundary; ``next`` goes further back."""
        from .conversation_read import read_tail

        room = Room(max_bytes, cost)
        return await self._run(self.session_id, partial(read_tail, self.session_id, count, cursor, room))


def _search(
    session_id: str, query: Query, before: str | None, limit: int, snippet_chars: int, snapshot: Snapshot
) -> EarlierHits:
    line = Line(snapshot, session_id)
    bound, reaches = line.boundary, not line.is_behind()
    if before is not None:
        found = line.position_before(before)
        if found is None and (reaches or not line.has_later(before)):
            raise EntryNotVisible("before is no entry of this conversation", hint="give the id of one of its entries")
        bound, reaches = (len(line.nodes), False) if found is None else (found, True)
    matcher = Matcher(query)
    scope = line.scope(bound)
    searcher = Searcher(snapshot.connection, snapshot.scorer, scope, line.catalog)
    finder = Finder(snapshot.connection, snapshot.views, scope, matcher, snapshot.check)
    rows, beyond = ordered_rows(searcher, query, "relevance")
    hits, more = finder.take(rows, limit, diverse=False, verify=query.literal, beyond=beyond)
    answer: EarlierHits = {"hits": [], "more": more or finder.gave_up}
    for hit in hits:
        shown = snapshot.views.shown(hit.entry)
        snippet, _ = matcher.snippet(hit.entry.text, snippet_chars, hit.entry.apart, shown.text)
        one: EarlierHit = {"entry": hit.entry.entry_id, "role": ROLES[hit.entry.role], "snippet": snippet}
        if shown.author:
            one["author"] = shown.author
        answer["hits"].append(one)
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
