"""What an empty answer says instead of nothing: which words occur, what to ask instead, which entries come nearest."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import apsw

from .errors import InvalidRequest
from .finding import Finder, render
from .index.hints import Nearest, corrections, nearest, sessions_with_all
from .index.match import Matcher
from .index.query import Query, Term, parse
from .index.search import Searcher
from .request import SearchRequest
from .views import Views

#: Near entries and sessions that are shown.
SHOWN = 5
#: Matches outside the visible branch are counted up to here.
COUNTED = 1000
#: Where a term can only be verified on the text, so many candidates are read to count it.
VERIFIED = 50


def hints(
    connection: apsw.Connection,
    searcher: Searcher,
    views: Views,
    request: SearchRequest,
    query: Query,
    check: Callable[[], None],
) -> dict[str, Any]:
    """The ``hints`` of a search answer without results."""
    helper = _Helper(connection, searcher, views, request, check)
    counts = [helper.count(term) for term in query.terms]
    return {
        "terms": [{"term": term.text, "entries": count} for term, count in zip(query.terms, counts, strict=True)],
        "suggestion": helper.suggestion(query, counts),
        "nearest": helper.nearest(query, counts),
        "sessions": helper.sessions(query, counts),
        "offBranchMatches": helper.off_branch(query),
    }


class _Helper:
    def __init__(
        self,
        connection: apsw.Connection,
        searcher: Searcher,
        views: Views,
        request: SearchRequest,
        check: Callable[[], None],
    ) -> None:
        self.connection, self.searcher, self.views = connection, searcher, views
        self.request, self.check = request, check

    def _finder(self, matcher: Matcher, searcher: Searcher) -> Finder:
        return Finder(self.connection, self.views, searcher.scope, matcher, self.check)

    def count(self, term: Term) -> int:
        """In how many entries in scope a term occurs."""
        count = self.searcher.count(term.expression)
        if term.literal and 0 < count <= VERIFIED:
            alone = Query(term.text, (term,))
            rows = list(self.searcher.matches(term.expression, VERIFIED))
            hits, _ = self._finder(Matcher(alone), self.searcher).take(rows, VERIFIED, diverse=False, verify=True)
            count = len(hits)
        return count

    def _has_results(self, text: str) -> bool:
        try:
            query = parse(text)
        except InvalidRequest:
            return False
        verify = query.literal
        rows = self.searcher.matches(query.expression, VERIFIED)
        hits, _ = self._finder(Matcher(query), self.searcher).take(rows, 1, diverse=False, verify=verify)
        return bool(hits)

    def suggestion(self, query: Query, counts: Sequence[int]) -> str | None:
        """A query that has results: misspelt words corrected, else the words dropped that occur nowhere, else one word."""
        written = [term.text for term in query.terms]
        corrected = list(written)
        for at, (term, count) in enumerate(zip(query.terms, counts, strict=True)):
            if count == 0:
                self.check()
                better = corrections(self.searcher, term)
                if better:
                    corrected[at] = better
        for candidate in self._candidates(written, corrected, counts):
            if candidate and candidate != written and self._has_results(" ".join(candidate)):
                return " ".join(candidate)
        return None

    def _candidates(
        self, written: list[str], corrected: list[str], counts: Sequence[int]
    ) -> Iterable[list[str]]:
        yield corrected
        yield [
            word for word, old, count in zip(corrected, written, counts, strict=True) if count or word != old
        ]
        yield [word for word, count in zip(written, counts, strict=True) if count]
        present = [(count, at) for at, count in enumerate(counts) if count]
        for _, dropped in sorted(present):
            yield [word for at, word in enumerate(written) if counts[at] and at != dropped]

    def nearest(self, query: Query, counts: Sequence[int]) -> list[dict[str, Any]]:
        present = [term for term, count in zip(query.terms, counts, strict=True) if count]
        if not present:
            return []
        matcher = Matcher(query)
        found: dict[int, Nearest] = {one.row: one for one in nearest(self.searcher, present, self.check)}
        hits, _ = self._finder(matcher, self.searcher).take(list(found), SHOWN, diverse=False, verify=False)
        shown = []
        for hit in hits:
            rendered, _ = render(hit, self.views, matcher, self.request.snippet_chars)
            near = found.get(hit.located.row)
            held = {term.text for term in near.terms} if near else set()
            shown.append({**rendered, "missingTerms": [term.text for term in query.terms if term.text not in held]})
        return shown

    def sessions(self, query: Query, counts: Sequence[int]) -> list[dict[str, Any]]:
        if not all(counts) or len(query.terms) < 2:
            return []
        keys = sessions_with_all(self.searcher, query.terms, counts, SHOWN, self.check)
        return [self.views.view(self.views.catalog.sessions[key]) for key in keys]

    def off_branch(self, query: Query) -> int:
        if self.request.branch == "any":
            return 0
        wider = Searcher(
            self.connection, self.searcher.weigher, replace(self.searcher.scope, off_branch=True), self.views.catalog
        )
        rows = list(wider.matches(query.expression, COUNTED))
        if not query.literal:
            return len(rows)
        finder = self._finder(Matcher(query), wider)
        hits, _ = finder.take(rows[:VERIFIED], VERIFIED, diverse=False, verify=True)
        return len(hits)
