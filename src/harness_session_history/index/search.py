"""Finds and ranks the rows of the index that match: filters first, then rank and limit. Reads no transcript.

Ranking is BM25 over the matching rows. `ORDER BY rank` of FTS5 scores every match and counts each phrase over the whole
index, which is a second for a word that stands everywhere; here the newest RANKED rows are scored by an auxiliary
function with document frequencies that are counted up to a bound and estimated above it. Up to RANKED matches the
ranking is over all of them.
"""

from __future__ import annotations

import heapq
import math
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import apsw

from .catalog import Catalog
from .limited import Limited
from .query import Query, Term
from .schema import SLOT_SHIFT
from .scope import Scope
from .soundness import Unsound
from .spans import Spans
from .weigher import Weigher

#: So many of the newest matches are ranked.
RANKED = 2000
#: Where more match, one session gives at most this many of them, so that it cannot crowd out the others.
PER_SESSION = 200
#: Up to this many matches are sorted by time in one go.
SORTED = 10_000
#: Document frequencies are counted up to here and estimated above.
COUNTED = 1000
#: So many rows of a prefix are looked at to find RANKED that leave room for all sessions.
SCANNED = 20_000
#: A prefix is taken to stand in one of so many rows: to count it would cost as much as to search for it.
PREFIX_SHARE = 50
#: Rows are counted for so long, then estimated.
COUNT_SECONDS = 0.004
#: A scan over filtered sessions that takes longer goes on session by session; up to FEW sessions it begins so.
SCAN_SECONDS, FEW = 0.02, 16
#: Looking into one session costs about as much as looking at so many matches.
RANGE_COST = 200
#: Every row there can be.
EVERYWHERE = (0, (1 << 63) - 1)


@dataclass(frozen=True)
class Ranked:
    """Rows, best first, each with its score; `all` is False where only the newest matches were ranked."""

    rows: list[tuple[float, int]]
    all: bool


class Searcher:
    """Questions to one connection within one scope. Runs inside a read transaction of the caller."""

    def __init__(self, connection: apsw.Connection, weigher: Weigher, scope: Scope, catalog: Catalog) -> None:
        self.connection, self.weigher, self.scope, self.catalog = connection, weigher, scope, catalog
        self.sessions = catalog.sessions
        self.spans = Spans(connection)
        if scope.partly:
            connection.create_scalar_function("is_within", self._is_within, 3)
        self._frequencies: dict[str, int] = {}
        self._condition, self._bindings = scope.conditions(catalog.slots_of)
        self._known_condition, self._known_bindings = scope.conditions(catalog.slots_of, known=True)

    def _is_within(self, *row_since_until: Any) -> bool:
        return self.spans.is_within(*row_since_until)

    def session_of(self, row: int) -> int:
        """The key of the session that has a row."""
        return self.catalog.session_of(row)

    def rows_of(self, session: int) -> tuple[int, int]:
        """The first and the last row that a session can have."""
        extent = self.sessions[session].extent
        return extent.low, extent.high

    def _is_one_session(self, rows: tuple[int, int]) -> bool:
        keys = self.catalog.ordered_keys()
        first, last = (bisect_right(keys, row >> SLOT_SHIFT) for row in rows)
        return first == last

    # -- ranking ------------------------------------------------------------------------------------------------------

    def rank(self, query: Query) -> Ranked:
        """All matching rows by BM25, or the newest RANKED of them; equal scores by row, newer first."""
        self._weigh_for(query.terms)
        if "*" in query.expression:
            # The rows of a prefix are gathered anew by every statement, and that is most of its cost: one must do.
            found, everything = self._one_scan(query.expression)
        else:
            found = self._find(query.expression, RANKED + 1, weigh=True)
            everything = len(found) <= RANKED
            if not everything:
                found = found[:RANKED]
                counted = Counter(self.session_of(row) for row, _ in found)
                if max(counted.values()) > PER_SESSION and self._more_sessions(len(counted)):
                    found = self._find(query.expression, RANKED, per_session=PER_SESSION, weigh=True)
        return Ranked(sorted([(score, row) for row, score in found], reverse=True), everything)

    def _one_scan(self, expression: str) -> tuple[list[tuple[int, float]], bool]:
        found: list[tuple[int, float]] = []
        counted: Counter[int] = Counter()
        scanned = within_share = 0
        for row, score in self._execute(expression, *EVERYWHERE, SCANNED, weigh=True):
            scanned += 1
            session = self.session_of(row)
            counted[session] += 1
            within_share += counted[session] <= PER_SESSION
            if len(found) < RANKED or counted[session] <= PER_SESSION:
                found.append((row, score))
            if scanned > RANKED and within_share >= RANKED:
                break
        if scanned <= RANKED:
            return found, True
        kept: Counter[int] = Counter()
        fair = []
        for row, score in found:
            session = self.session_of(row)
            kept[session] += 1
            if len(counted) == 1 or kept[session] <= PER_SESSION:
                fair.append((row, score))
        return fair[:RANKED], False

    def _more_sessions(self, found: int) -> bool:
        allowed = self.scope.sessions
        return len(self.sessions if allowed is None else allowed) > found

    def _weigh_for(self, terms: Sequence[Term]) -> None:
        self.weigher.set(terms, self.rarities(terms) if len(terms) > 1 else (1.0,))

    def rarities(self, terms: Sequence[Term]) -> list[float]:
        """How much each term tells: its inverse document frequency."""
        plain = [term.expression for term in terms if "*" not in term.expression]
        self.weigher.learn(plain, self.catalog.revision)
        return [self.rarity(term) for term in terms]

    def rarity(self, term: Term) -> float:
        """Inverse document frequency, never below a small positive value."""
        documents = self.weigher.documents
        frequency = min(documents, self.frequency(term.expression))
        return max(1e-6, math.log((documents - frequency + 0.5) / (frequency + 0.5) + 1.0))

    def frequency(self, expression: str) -> int:
        """How many rows of the index match, in scope or not: exact below COUNTED, an estimate from there on."""
        if "*" in expression:
            return self.weigher.documents // PREFIX_SHARE
        known = self._frequencies.get(expression)
        if known is None:
            known = self._frequencies[expression] = self._estimate(expression)
        return known

    def _estimate(self, expression: str) -> int:
        sql = "SELECT count(*), min(rowid) FROM (SELECT rowid FROM search WHERE search MATCH ? ORDER BY rowid DESC LIMIT ?)"
        found = self.connection.execute(sql, (expression, COUNTED)).fetchone()
        assert found is not None
        count, lowest = found
        if count < COUNTED:
            return int(count)
        keys = self.catalog.ordered_keys()
        newer = len(keys) - bisect_left(keys, lowest >> SLOT_SHIFT)
        return int(count * len(keys) / max(1, newer))

    # -- counting -----------------------------------------------------------------------------------------------------

    def count(self, expression: str, seconds: float = COUNT_SECONDS) -> int:
        """How many rows in scope match: exact, unless counting takes longer than so many seconds (then an estimate)."""
        sql = f"SELECT count(*) FROM search WHERE search MATCH ?{self._condition}"
        with Limited(self.connection, seconds) as limited:
            row = self.connection.execute(sql, (expression, *self._bindings())).fetchone()
            return int(row[0]) if row else 0
        assert limited.overran
        return self._estimate(expression)

    def exists(self, expression: str) -> bool:
        """Whether anything in the index matches, in scope or not: cheap, and no more than a reason to count."""
        sql = "SELECT 1 FROM search WHERE search MATCH ? LIMIT 1"
        return self.connection.execute(sql, (expression,)).fetchone() is not None

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

    # -- scanning -----------------------------------------------------------------------------------------------------

    def matches(self, expression: str, limit: int, *, within: tuple[int, int] = EVERYWHERE) -> list[int]:
        """Rows in scope that match, the highest (in general the newest) first, at most `limit`."""
        return [row for row, _ in self._find(expression, limit, within=within)]

    def _find(
        self,
        expression: str,
        limit: int,
        *,
        within: tuple[int, int] = EVERYWHERE,
        per_session: int | None = None,
        weigh: bool = False,
    ) -> list[tuple[int, float]]:
        """Rows in scope that match, each with its score where they are weighed, the highest first."""
        allowed = self.scope.sessions
        if allowed is None:
            return self._skipping(expression, limit, within, per_session, weigh)
        if self._is_one_session(within):
            return self._scan(expression, *within, limit, weigh)
        found: list[tuple[int, float]] = []
        high = within[1]
        if not self._by_range(expression, allowed, limit):
            # Quick unless the word is common and the sessions are not: then it is stopped and goes on by session.
            with Limited(self.connection, SCAN_SECONDS) as scan:
                self._scan(expression, *within, limit, weigh, into=found)
            if not scan.overran:
                if per_session is None:
                    return found
                found = []
            elif found:
                high = found[-1][0] - 1
        for key in sorted(allowed, reverse=True):
            low, top = self.rows_of(key)
            if low <= high and top >= within[0] and len(found) < limit:
                most = limit - len(found) if per_session is None else min(limit - len(found), per_session)
                low, top = max(low, within[0]), min(top, high)
                found += self._execute(expression, low, top, most, weigh=weigh, known=True)
        return found

    def _by_range(self, expression: str, allowed: frozenset[int], limit: int) -> bool:
        """Whether looking into the allowed sessions one by one costs less than looking at every match: by how many of
        either it takes to find enough, if the matches are spread evenly."""
        if len(allowed) <= FEW:
            return True
        everywhere, frequency = len(self.sessions), max(1, self.frequency(expression))
        looked_into = min(len(allowed), limit * everywhere // frequency)
        looked_at = min(frequency, limit * everywhere // len(allowed))
        return looked_into * RANGE_COST < looked_at

    def _skipping(
        self, expression: str, limit: int, within: tuple[int, int], per_session: int | None, weigh: bool
    ) -> list[tuple[int, float]]:
        """A scan that leaves a session behind once it has given enough."""
        if per_session is None:
            return self._scan(expression, *within, limit, weigh)
        low, high = within
        found: list[tuple[int, float]] = []
        counted: Counter[int] = Counter()
        while len(found) < limit:
            block = self._scan(expression, low, high, min(limit - len(found), per_session), weigh)
            for row, score in block:
                session = self.session_of(row)
                found.append((row, score))
                high = row - 1
                counted[session] += 1
                if counted[session] >= per_session:
                    high = self.rows_of(session)[0] - 1
                    break
            else:
                if len(block) < per_session:
                    break
        return found

    def _scan(
        self,
        expression: str,
        low: int,
        high: int,
        limit: int,
        weigh: bool,
        into: list[tuple[int, float]] | None = None,
    ) -> list[tuple[int, float]]:
        found: list[tuple[int, float]] = [] if into is None else into
        found.extend(self._execute(expression, low, high, limit, weigh=weigh))
        return found

    def _execute(
        self, expression: str, low: int, high: int, limit: int, *, weigh: bool, known: bool = False
    ) -> Iterator[tuple[int, float]]:
        condition = self._known_condition if known else self._condition
        bindings = self._known_bindings if known else self._bindings
        sql = (
            f"SELECT rowid, {'weigh(search)' if weigh else '0.0'} FROM search "
            f"WHERE search MATCH ? AND rowid BETWEEN ? AND ?{condition} ORDER BY rowid DESC LIMIT ?"
        )
        return self.connection.execute(sql, (expression, low, high, *bindings(), limit))


def _order(moment: int | None, newest: bool) -> int:
    if moment is None:
        return 1 << 62
    return -moment if newest else moment
