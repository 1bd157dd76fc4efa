"""The search operation: ranked rows of the index become verified hits.

Every hit is read again from its cited bytes before it is shown; copies of one entry are one hit; one session does not
crowd out the others; what can no longer be verified is left out and its session named.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import Any, NamedTuple, TypeAlias

import apsw

from .archive.hydration import Hydrated
from .arguments import ROLES
from .evidence import Evidence
from .index.match import Matcher
from .index.query import Query
from .index.records import SessionRow
from .index.runs import Located
from .index.scope import Scope
from .index.search import Searcher
from .index.soundness import Unsound
from .request import SearchRequest
from .response import iso
from .views import Views

#: Results of one session while others still have matches.
PER_SESSION = 3
#: Sessions named in ``alsoIn`` and ``unavailableSessionIds``.
NAMED = 20
#: How long candidates are read and refused (they only look like matches of a phrase, or their file has changed) before
#: an answer by relevance is given without the rest of them, and says so.
VERIFY_SECONDS = 2.0
#: Candidates beyond those that were ranked are fetched in blocks of so many at first, each larger than the one before: to
#: begin again costs something, for prefixes as much as all of it.
BLOCK, GROWTH = 2000, 8


@dataclass
class Hit:
    """One verified hit: the cited entry, its text, its other copies, its place in the ranking."""

    place: int
    located: Located
    session: SessionRow
    entry: Hydrated
    visible: bool
    also_in: list[str] = field(default_factory=list)


class Group(NamedTuple):
    """An entry and its verbatim copies, the one to cite first, at a place in the ranking."""

    place: int
    copies: list[Located]


#: Further rows, without those of sessions that the given function calls full.
Beyond: TypeAlias = Callable[[Callable[[int], bool]], Iterable[int]]


class Finder:
    """Turns rows into hits for one request."""

    def __init__(
        self, connection: apsw.Connection, views: Views, scope: Scope, matcher: Matcher, check: Callable[[], None]
    ) -> None:
        self.connection, self.views, self.scope, self.matcher = connection, views, scope, matcher
        self.evidence = Evidence(connection, views.catalog)
        self.check = check
        self.unavailable: list[str] = []
        self.gave_up = False
        self._seen: set[int] = set()
        self._places = count()

    def take(
        self,
        rows: Iterable[int],
        limit: int,
        *,
        diverse: bool,
        verify: bool,
        beyond: Beyond | None = None,
        seconds: float = VERIFY_SECONDS,
    ) -> tuple[list[Hit], bool]:
        """The first `limit` hits in the order of `rows`, and whether there are more.

        With `diverse`, a session gives at most PER_SESSION of them as long as others have any. Where `rows` do not
        give enough, `beyond` is asked for further ones. Gives up (`gave_up`) at the first candidate that is refused
        after so many seconds.
        """
        hits: list[Hit] = []
        counted: Counter[int] = Counter()
        put_off: list[Group] = []
        deadline = time.monotonic() + seconds

        def full(session: int) -> bool:
            return diverse and counted[session] >= PER_SESSION

        def stages() -> Iterator[tuple[Iterable[Group], bool]]:
            yield self._groups(rows), diverse
            if beyond is not None:
                yield self._groups(beyond(full)), diverse
            yield put_off, False
            if beyond is not None and diverse:
                yield self._groups(beyond(lambda session: False)), False

        for groups, sharing in stages():
            for group in groups:
                if sharing and full(group.copies[0].session):
                    put_off.append(group)
                    continue
                hit = self._verified(group, verify)
                if hit is not None:
                    hits.append(hit)
                    counted[hit.session.key] += 1
                    if len(hits) > limit:
                        return sorted(hits[:limit], key=lambda one: one.place), True
                elif time.monotonic() > deadline:
                    self.gave_up = True
                    return sorted(hits, key=lambda one: one.place), False
        return sorted(hits, key=lambda one: one.place), False

    def _groups(self, rows: Iterable[int]) -> Iterator[Group]:
        """Copies of one entry together, at the place of the first: where it was written first comes first."""
        for place, row in zip(self._places, rows, strict=False):
            if row in self._seen:
                continue
            self.check()
            located = self.evidence.locate(row)
            if located is None:
                raise Unsound("an entry is missing")
            copies = [located, *(one for one in self.evidence.copies(located) if self._in_scope(one))]
            self._seen.update(copy.row for copy in copies)
            if len(copies) > 1:
                copies = self._first_written_first(copies)
            yield Group(place, copies)

    def _in_scope(self, one: Located) -> bool:
        return self.scope.within(one.session) and (self.scope.off_branch or not self.evidence.hidden(one.row))

    def _first_written_first(self, copies: list[Located]) -> list[Located]:
        """Ancestors before their forks, then by the time at which the sessions began."""
        holders = {copy.session for copy in copies}
        sessions = self.views.catalog.sessions

        def written(copy: Located) -> tuple[int, int, int]:
            session = sessions[copy.session]
            above = sum(ancestor.key in holders for ancestor in self.views.lineage(session)[1:])
            began = session.started if session.started is not None else session.first_time
            return above, 1 << 62 if began is None else began, copy.row

        return sorted(copies, key=written)

    def _verified(self, group: Group, verify: bool) -> Hit | None:
        """The first copy whose bytes still say what was indexed, if it really matches."""
        place, copies = group
        for at, located in enumerate(copies):
            entry = self.evidence.hydrate([located])[0]
            session = self.views.catalog.sessions[located.session]
            if entry is None:
                if session.session_id not in self.unavailable:
                    self.unavailable.append(session.session_id)
                continue
            if verify and not self.matcher.holds(entry.text):
                return None
            visible = not self.evidence.hidden(located.row)
            others = [copy for copy in copies[at + 1 :] if copy.session != located.session]
            named = dict.fromkeys(self.views.catalog.sessions[copy.session].session_id for copy in others)
            return Hit(place, located, session, entry, visible, list(named)[:NAMED])
        return None


def render(hit: Hit, views: Views, matcher: Matcher, snippet_chars: int) -> dict[str, Any]:
    """A hit as it stands in an answer."""
    snippet, cut = matcher.snippet(hit.entry.text, snippet_chars)
    session_id, entry_id = hit.session.session_id, hit.entry.entry_id
    shown: dict[str, Any] = {
        "citation": {"sessionId": session_id, "entryId": entry_id},
        "role": ROLES[hit.entry.role],
        "createdAt": iso(hit.located.time),
        "snippet": snippet,
        "snippetTruncated": cut,
        "visible": hit.visible,
        "session": views.view(hit.session),
        "locator": f"session:{session_id}/entry:{entry_id}",
    }
    if hit.also_in:
        shown["alsoIn"] = hit.also_in
    return shown


def marker(matcher: Matcher) -> Callable[[str], list[tuple[int, int]]]:
    """What tells where the matched words are in a snippet."""
    return lambda snippet: [(start, end) for start, end, _ in matcher.spans(snippet)]


def ordered_rows(searcher: Searcher, query: Query, sort: str) -> tuple[Iterator[int], Beyond | None]:
    """The matching rows in the order asked for, and what gives the others where not all of them were ranked."""
    if sort != "relevance":
        return searcher.by_time(query, newest=sort == "newest"), None
    ranked = searcher.rank(query)
    return _ties_by_time(ranked.rows, searcher), None if ranked.all else partial(_newest_first, searcher, query)


def _newest_first(searcher: Searcher, query: Query, full: Callable[[int], bool]) -> Iterator[int]:
    last, block = (1 << 63) - 1, BLOCK
    while True:
        rows = searcher.matches(query.expression, block, within=(0, last))
        for row in rows:
            session = searcher.session_of(row)
            if full(session):
                last, _ = searcher.rows_of(session)
                break
            yield row
        else:
            if len(rows) < block:
                return
            last, block = rows[-1], block * GROWTH
        last -= 1


def _ties_by_time(rows: list[tuple[float, int]], searcher: Searcher) -> Iterator[int]:
    at = 0
    while at < len(rows):
        end = at + 1
        while end < len(rows) and rows[end][0] == rows[at][0]:
            end += 1
        group = [row for _, row in rows[at:end]]
        if len(group) > 1:
            times = searcher.times(group)
            group.sort(key=lambda row: -(times.get(row) or -(1 << 62)))
        yield from group
        at = end


def search(
    connection: apsw.Connection,
    searcher: Searcher,
    views: Views,
    request: SearchRequest,
    query: Query,
    check: Callable[[], None],
) -> tuple[dict[str, Any], Callable[[str], list[tuple[int, int]]]]:
    """The part of a search answer that comes from the snapshot, and what marks the matched words in its snippets."""
    matcher = Matcher(query)
    finder = Finder(connection, views, searcher.scope, matcher, check)
    rows, beyond = ordered_rows(searcher, query, request.sort)
    hits, more = finder.take(
        rows,
        request.limit,
        diverse=request.sort == "relevance" and request.session_id is None,
        verify=query.literal,
        beyond=beyond,
        seconds=VERIFY_SECONDS if request.sort == "relevance" else math.inf,
    )
    results = []
    for hit in hits:
        check()
        results.append(render(hit, views, matcher, request.snippet_chars))
    answer: dict[str, Any] = {
        "query": request.query,
        "results": results,
        "truncated": more or finder.gave_up,
        "rankedAll": beyond is None and not finder.gave_up,
        "unavailableSessionIds": finder.unavailable[:NAMED],
        "unavailableTruncated": len(finder.unavailable) > NAMED,
    }
    if not results:
        from .hinting import hints

        answer["hints"] = hints(connection, searcher, views, request, query, check, sure=not finder.gave_up)
    return answer, marker(matcher)
