"""Ranks the rows of the index that match: filters first, then rank and limit. Reads no transcript.

Ranking is BM25 over the matching rows. `ORDER BY rank` of FTS5 scores every match and counts each phrase over the whole
index, which is a second for a word that stands everywhere; here rows are scored by an auxiliary function with document
frequencies that are counted up to a bound and estimated above it. Up to RANKED matches the ranking is over all of them,
else over those of the sessions that were active last. Where rows are equal, their times, sessions and places decide:
nothing depends on where the index keeps them.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import TypeAlias

from ..text.tokens import stems
from .bm25 import MOST_TERMS
from .expression import Expression
from .nearness import nearness
from .query import Query, Term, conjunction
from .scan import NEVER, Row, Scanner

#: So many matches are ranked.
RANKED = 2000
#: Where more match, one session gives at most this many of them as long as there are others.
PER_SESSION = 200
#: Of more terms than this fewer rows are ranked: each of them costs more to find and to score. A prefix, which stands for
#: many words, counts as AS_TERMS terms.
FEW_TERMS, AS_TERMS = 8, 32
#: Number of best rows whose nearness is compared (COMPARED), and whose texts are read to see whether the terms stand as they
#: were typed (READ; READ_OF_STEMS where the typed word is its own stem, so that most of its forms are alike).
COMPARED, READ, READ_OF_STEMS = 300, 60, 12
#: What it is worth that the terms stand as they were typed: more than how often they stand.
EXACT = 10.0
#: Rows that are looked for at once where nobody knows how many will be wanted.
AT_ONCE = 1000

#: Further rows, without those of sessions that the given function calls full.
Beyond: TypeAlias = Callable[[Callable[[int], bool]], Iterable[int]]
#: Tells for each of some rows which terms of the query stand in it in the form that was typed (their numbers).
Typed: TypeAlias = Callable[[Sequence[int]], Sequence[set[int]]]


@dataclass(frozen=True)
class Ranked:
    """Rows with their scores; `all` is False where more match than were ranked."""

    rows: list[Row]
    all: bool


class Searcher(Scanner):
    """Questions to one connection within one scope. Runs inside a read transaction of the caller."""

    # -- ranking ------------------------------------------------------------------------------------------------------

    def rank(self, query: Query) -> Ranked:
        """All matching rows by BM25, or RANKED of them (fewer for many terms), of the sessions that were active last."""
        asked = tuple({term.expression: term for term in query.terms}.values())  # as the conjunction has each once
        terms = [term._replace(expression=self.spelled_out(term.expression, len(asked))) for term in asked]
        self.scorer.set(terms, self.rarities(asked) if len(terms) > 1 else (1.0,))
        many = AS_TERMS if any(term.kind == "prefix" for term in terms) else len(terms)
        most = _of_terms(RANKED, many)
        found, everything = self._latest(conjunction(terms), most)
        if 1 < len(terms) <= MOST_TERMS:
            best = heapq.nlargest(COMPARED, found, key=_score)
            nearer = {row: score * nearness(self.scorer.places(row)) for row, score in best}
            found = [(row, nearer.get(row, score)) for row, score in found]
        return Ranked(found, everything)

    def _latest(self, expression: Expression, most: int) -> tuple[list[Row], bool]:
        """The matches of the sessions that were active last with their scores, at most `most`, and whether these are all."""
        alone = self.scope.sessions is not None and len(self.scope.sessions) == 1
        share = most if alone else max(1, most * PER_SESSION // RANKED)
        found: list[Row] = []
        left: list[tuple[int, list[Row]]] = []
        for key, rows in self.by_session(expression, most + 1, share=share + 1, weigh=True):
            found += rows[:share]
            if len(rows) > share:
                left.append((key, rows[:share]))
            if len(found) > most:
                return found[:most], False
        for key, first in left:  # all others have given what they have
            if len(found) <= most:
                found += self.of_session(expression, key, most + 1 - len(found), below=first[-1][0], weigh=True)
        return found[:most], len(found) <= most

    def in_order(self, rows: Iterable[Row]) -> Iterator[int]:
        """These rows by score; those of one score by time, the newest first, then by session and place."""
        for _, equal in groupby(sorted(rows, key=_score, reverse=True), key=_score):
            group = [row for row, _ in equal]
            yield from self.newest_first(group) if len(group) > 1 else group

    def newest_first(self, rows: Sequence[int]) -> list[int]:
        """These rows by time, the newest first, then by session and place."""
        times = self.spans.times(rows)
        return [row for *_, row in sorted(self._by_age(row, times.get(row), True) for row in rows)]

    def _by_age(self, row: int, moment: int | None, newest: bool) -> tuple[int, str, bytes, int, int]:
        """What rows are ordered by that are ordered by time; those without a time come last."""
        session = self.sessions[self.session_of(row)]
        place = row - session.extent.low
        age = NEVER if moment is None else -moment if newest else moment
        return age, *session.order, -place if newest else place, row

    def rarities(self, terms: Sequence[Term]) -> list[float]:
        """How much each term tells: its inverse document frequency, never below a small positive value."""
        documents = self.documents
        found = [min(documents, self.frequency(term.expression)) for term in terms]
        return [max(1e-6, math.log((documents - count + 0.5) / (count + 0.5) + 1.0)) for count in found]

    # -- by time ------------------------------------------------------------------------------------------------------

    def by_time(self, query: Query, newest: bool) -> Iterator[int]:
        """All matching rows, exactly in the order of their entries' times (entries without a time come last)."""
        waiting: list[tuple[int, str, bytes, int, int]] = []
        expression = self.spelled_out(query.expression)
        for key, rows in self.by_session(expression, AT_ONCE, oldest=not newest):
            # No session that comes later can hold a better entry.
            bound = self.ended(key) if newest else self.began(key)
            while waiting and waiting[0][0] < bound:
                yield heapq.heappop(waiting)[-1]
            times = self.spans.times([row for row, _ in rows])
            for row, _ in rows:
                heapq.heappush(waiting, self._by_age(row, times.get(row), newest))
        while waiting:
            yield heapq.heappop(waiting)[-1]


def _of_terms(rows: int, terms: int) -> int:
    """The share of `rows` that is left for a query of `terms` terms."""
    return rows * FEW_TERMS // max(terms, FEW_TERMS)


def _score(row: Row) -> float:
    return row[1]


def ordered_rows(
    searcher: Searcher, query: Query, sort: str, typed: Typed | None = None
) -> tuple[Iterator[int], Beyond | None]:
    """The matching rows in the order asked for, and what gives the others where not all of them were ranked."""
    if sort != "relevance":
        return searcher.by_time(query, newest=sort == "newest"), None
    ranked = searcher.rank(query)
    rows = ranked.rows if typed is None else _typed_first(searcher, query, ranked.rows, typed)
    return searcher.in_order(rows), None if ranked.all else partial(_latest_first, searcher, query)


def _typed_first(searcher: Searcher, query: Query, rows: list[Row], typed: Typed) -> list[Row]:
    """The rows with their scores raised where the terms stand in the very form that was typed."""
    wanted = {at for at, term in enumerate(query.terms) if not term.quoted}
    if not wanted or len(rows) < 2:
        return rows
    terms = [query.terms[at] for at in wanted]
    words = [word for term in terms for word in (*term.parts, *[word.whole for word in term.words])]
    most = _of_terms(READ_OF_STEMS if stems(words) == words else READ, len(query.terms))
    best = heapq.nlargest(most, rows, key=_score)
    rarities = searcher.rarities(query.terms)
    everything = sum([rarities[at] for at in wanted])
    found = typed([row for row, _ in best])
    worth = [1 + EXACT * sum([rarities[at] for at in sorted(held & wanted)]) / everything for held in found]
    raised = {row: score * factor for (row, score), factor in zip(best, worth, strict=True)}
    return [(row, raised.get(row, score)) for row, score in rows]


def _latest_first(searcher: Searcher, query: Query, full: Callable[[int], bool]) -> Iterator[int]:
    for key, rows in searcher.by_session(searcher.spelled_out(query.expression), 2 * RANKED):
        for row, _ in rows:
            if full(key):
                break
            yield row
