"""Finds and ranks the rows of the index that match: filters first, then rank and limit. Reads no transcript.

Ranking is BM25 over the matching rows. `ORDER BY rank` of FTS5 scores every match and counts each phrase over the whole
index, which is a second for a word that stands everywhere; here the newest RANKED rows are scored by an auxiliary
function with document frequencies that are counted up to a bound and estimated above it. Up to RANKED matches the
ranking is over all of them.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from ..index.schema import Unsound
from .bm25 import UNWANTED
from .query import Query, Term, conjunction
from .scan import PREFIX_SHARE, Scanner

#: So many of the newest matches are ranked.
RANKED = 2000
#: Where more match, one session gives at most this many of them, so that it cannot crowd out the others.
PER_SESSION = 200
#: Of more terms than this fewer rows are ranked: each of them costs more to find and to score.
FEW_TERMS = 8
#: Up to this many matches are sorted by time in one go.
SORTED = 10_000
#: So many times as many rows are looked at in one scan to find those that leave room for all sessions.
SCANNED = 10


@dataclass(frozen=True)
class Ranked:
    """Rows, best first, each with its score; `all` is False where only the newest matches were ranked."""

    rows: list[tuple[float, int]]
    all: bool


class Searcher(Scanner):
    """Questions to one connection within one scope. Runs inside a read transaction of the caller."""

    # -- ranking ------------------------------------------------------------------------------------------------------

    def rank(self, query: Query) -> Ranked:
        """All matching rows by BM25, or the newest RANKED of them (fewer for many terms); equal scores by row, newer first."""
        terms = [term._replace(expression=self.spelled_out(term.expression, len(query.terms))) for term in query.terms]
        expression = conjunction(terms)
        self.weigher.set(terms, self.rarities(query.terms) if len(terms) > 1 else (1.0,))
        most = _ranked_of(len(terms))
        costly = "*" in query.expression or len(terms) > FEW_TERMS
        if "*" in expression or (costly and self.scope.sessions is None):
            # Here every statement costs much before it gives its first row: one must do.
            found, everything = self._one_scan(expression, most)
        else:
            found = self.find(expression, most + 1, weigh=True)
            everything = len(found) <= most
            if not everything:
                found = self._varied(expression, found, most)
        return Ranked(sorted([(score, row) for row, score in found], reverse=True), everything)

    def _one_scan(self, expression: str, most: int) -> tuple[list[tuple[int, float]], bool]:
        """The newest matches with their scores, at most `most`, and whether these are all; where they are not, no
        session gives more than its share as far as others have any among the first."""
        counted: Counter[int] = Counter()
        share, scanned, shared = _share_of(most), 0, 0

        def is_wanted(row: int) -> bool:
            nonlocal scanned, shared
            session = self.session_of(row)
            counted[session] += 1
            scanned += 1
            shared += counted[session] <= share
            return scanned <= most or counted[session] <= share

        found: list[tuple[int, float]] = []
        with self.weigher.only(is_wanted):
            for row, score in self.execute(expression, *self.bounds, most * SCANNED, weigh=True):
                if score != UNWANTED:
                    found.append((row, score))
                if scanned > most and shared >= most:
                    break
        if scanned <= most or len(counted) == 1:
            return found[:most], scanned <= most
        return self.shared_out(found, share)[:most], False

    def _varied(self, expression: str, found: list[tuple[int, float]], most: int) -> list[tuple[int, float]]:
        """The newest `most` matches, but of no session more than its share as far as there are other sessions; `found`
        are the newest of them and more than so many."""
        counted = Counter(self.session_of(row) for row, _ in found[:most])
        share = _share_of(most)
        if max(counted.values()) <= share or not self._more_sessions(len(counted)):
            return found[:most]
        varied = self.shared_out(found, share)
        last = found[-1][0]
        session = self.session_of(last)
        before = self.rows_of(session)[0] - 1
        left = share - sum(self.session_of(row) == session for row, _ in varied)
        if left and len(varied) < most:
            varied += self.find(expression, left, within=(before + 1, last - 1), weigh=True)[:left]
        if len(varied) < most:
            varied += self.find(expression, most - len(varied), within=(0, before), per_session=share, weigh=True)
        return varied[:most]

    def _more_sessions(self, found: int) -> bool:
        allowed = self.scope.sessions
        return len(self.sessions if allowed is None else allowed) > found

    def rarities(self, terms: Sequence[Term]) -> list[float]:
        """How much each term tells: its inverse document frequency."""
        plain = [term.expression for term in terms if "*" not in term.expression]
        self.weigher.learn(plain, self.catalog.revision)
        return [self.rarity(term) for term in terms]

    def rarity(self, term: Term) -> float:
        """Inverse document frequency, never below a small positive value."""
        documents = self.weigher.documents
        found = documents // PREFIX_SHARE if "*" in term.expression else self.frequency(term.expression)
        frequency = min(documents, found)
        return max(1e-6, math.log((documents - frequency + 0.5) / (frequency + 0.5) + 1.0))

    # -- by time ------------------------------------------------------------------------------------------------------

    def by_time(self, query: Query, newest: bool) -> Iterator[int]:
        """All matching rows, exactly in the order of their entries' times (entries without a time come last)."""
        rows = self.matches(query.expression, SORTED + 1)
        if len(rows) > SORTED:
            keys = [key for key in self.sessions if self.scope.within(key) and self.sessions[key].source is not None]
            yield from self._by_session(
                keys, newest, lambda key: self.matches(query.expression, 1 << 62, within=self.rows_of(key))
            )
            return
        by_session: dict[int, list[int]] = {}
        for row in rows:
            by_session.setdefault(self.session_of(row), []).append(row)
        yield from self._by_session(by_session, newest, by_session.__getitem__)

    def times(self, rows: Sequence[int]) -> dict[int, int | None]:
        """The times of these rows' entries."""
        return self.spans.times(rows)

    def _by_session(self, keys: Iterable[int], newest: bool, rows_of: Callable[[int], Sequence[int]]) -> Iterator[int]:
        """Session by session, the one with the best time first, until no later one can hold a better entry."""
        bounds = []
        for key in keys:
            session = self.sessions.get(key)
            if session is None:
                raise Unsound("a session is missing")
            bounds.append((_order(session.last_time if newest else session.first_time, newest), key))
        heapq.heapify(bounds)
        waiting: list[tuple[int, str, int]] = []
        while bounds or waiting:
            if waiting and (not bounds or waiting[0][0] < bounds[0][0]):
                yield abs(heapq.heappop(waiting)[2])
                continue
            _, key = heapq.heappop(bounds)
            rows, session_id = rows_of(key), self.sessions[key].session_id
            times = self.times(rows)
            # Of one time: by session (not by where it stands in the index, which its history decides), then by place.
            for row in rows:
                heapq.heappush(waiting, (_order(times.get(row), newest), session_id, -row if newest else row))


def _ranked_of(terms: int) -> int:
    """How many rows are ranked for so many terms."""
    return RANKED * FEW_TERMS // max(terms, FEW_TERMS)


def _share_of(ranked: int) -> int:
    """How many of so many ranked rows one session may give."""
    return max(1, ranked * PER_SESSION // RANKED)


def _order(moment: int | None, newest: bool) -> int:
    if moment is None:
        return 1 << 62
    return -moment if newest else moment


#: Candidates beyond those that were ranked are fetched in blocks of so many at first, each larger than the one before: to
#: begin again costs something, for prefixes as much as all of it.
BLOCK, GROWTH = 2000, 8


#: Further rows, without those of sessions that the given function calls full.
Beyond: TypeAlias = Callable[[Callable[[int], bool]], Iterable[int]]


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
