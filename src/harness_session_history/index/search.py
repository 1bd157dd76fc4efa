"""Finds and ranks the rows of the index that match: filters first, then rank and limit. Reads no transcript.

Ranking is BM25 over the matching rows. `ORDER BY rank` of FTS5 scores every match and counts each phrase over the whole
index, which is a second for a word that stands everywhere; here the newest RANKED rows are scored by an auxiliary
function with document frequencies that are counted up to a bound and estimated above it. Up to RANKED matches the
ranking is over all of them.
"""

from __future__ import annotations

import heapq
import math
import time
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import apsw

from .catalog import Catalog
from .query import Query, Term
from .records import integers, session_range
from .schema import SESSION_SHIFT

#: So many of the newest matches are ranked.
RANKED = 2000
#: Where more match, one session gives at most this many of them, so that it cannot crowd out the others.
PER_SESSION = 200
#: Up to this many matches are sorted by time in one go.
SORTED = 10_000
#: Document frequencies are counted up to here and estimated above.
COUNTED = 1000
#: Rows are counted for so long, then estimated.
COUNT_SECONDS = 0.01
#: A filtered scan that takes longer goes on session by session.
SCAN_SECONDS = 0.02

K1, B = 1.2, 0.75


@dataclass(frozen=True)
class Scope:
    """Which rows may be found. `sessions` are the keys allowed (None: all but `excluded`).

    Within one session, `span` (first and last row) or `rows` (each of them) bound what may be found further.
    """

    sessions: frozenset[int] | None = None
    excluded: frozenset[int] = frozenset()
    role: int | None = None
    since: int | None = None
    until: int | None = None
    off_branch: bool = False
    span: tuple[int, int] | None = None
    rows: tuple[int, ...] | None = None

    def within(self, session: int) -> bool:
        return session not in self.excluded if self.sessions is None else session in self.sessions


@dataclass(frozen=True)
class Ranked:
    """Rows, best first, each with its score; `all` is False where only the newest matches were ranked."""

    rows: list[tuple[float, int]]
    all: bool


class Weigher:
    """The auxiliary function of one connection: notes how often each term stands in a row, and how long the row is."""

    def __init__(self, connection: apsw.Connection) -> None:
        self.groups: Sequence[int] = ()
        self.terms = 0
        self.noted: dict[int, tuple[list[int], int]] = {}
        self.documents = 1
        self.mean = 1.0
        connection.register_fts5_function("weigh", self.note)

    def start(self, terms: Sequence[Term]) -> None:
        self.groups = [at for at, term in enumerate(terms) for _ in range(phrases_of(term))]
        self.terms = len(terms)
        self.noted = {}
        self.documents = 0

    def note(self, api: apsw.FTS5ExtensionApi, *_: object) -> int:
        if not self.documents:
            self.documents = max(1, api.row_count)
            self.mean = max(1.0, api.column_total_size(-1) / self.documents)
        counts = [0] * self.terms
        for phrase, group in enumerate(self.groups):
            for column in api.phrase_locations(phrase):
                counts[group] += len(column)
        self.noted[api.rowid] = counts, api.column_size(-1)
        return 0


class Searcher:
    """Questions to one connection within one scope. Runs inside a read transaction of the caller."""

    def __init__(self, connection: apsw.Connection, weigher: Weigher, scope: Scope, catalog: Catalog) -> None:
        self.connection, self.weigher, self.scope, self.catalog = connection, weigher, scope, catalog
        self.sessions = catalog.sessions
        self._overran = False
        self._condition, self._bindings = self._filters()

    # -- ranking ------------------------------------------------------------------------------------------------------

    def rank(self, query: Query) -> Ranked:
        """All matching rows by BM25, or the newest RANKED of them; equal scores by row, newer first."""
        rows, scores, everything = self._weighed(query.expression, query.terms)
        if not everything:
            counted = Counter(row >> SESSION_SHIFT for row in rows)
            if max(counted.values()) > PER_SESSION and self._more_sessions(len(counted)):
                rows, scores, _ = self._weighed(query.expression, query.terms, per_session=PER_SESSION)
        ranked = sorted(zip(scores, rows, strict=True), key=lambda pair: (-pair[0], -pair[1]))
        return Ranked(ranked, everything)

    def _more_sessions(self, found: int) -> bool:
        allowed = self.scope.sessions
        return len(self.sessions if allowed is None else allowed) > found

    def _weighed(
        self, expression: str, terms: Sequence[Term], per_session: int | None = None
    ) -> tuple[list[int], list[float], bool]:
        self.weigher.start(terms)
        rows = list(self.matches(expression, RANKED + 1, per_session=per_session, weigh=True))
        everything = len(rows) <= RANKED and per_session is None
        rows = rows[:RANKED]
        rarity = [self.rarity(term) if len(terms) > 1 else 1.0 for term in terms]
        mean = self.weigher.mean
        scores = []
        for counts, size in map(self.weigher.noted.__getitem__, rows):
            norm = K1 * (1 - B + B * size / mean)
            scores.append(sum(r * c * (K1 + 1) / (c + norm) for r, c in zip(rarity, counts, strict=True) if c))
        return rows, scores, everything

    def rarity(self, term: Term) -> float:
        """Inverse document frequency, never below a small positive value."""
        documents = max(1, self.weigher.documents)
        frequency = self.frequency(term)
        return max(1e-6, math.log((documents - frequency + 0.5) / (frequency + 0.5) + 1.0))

    def frequency(self, term: Term) -> int:
        """In how many rows of the index a term stands: exact up to COUNTED, an estimate above."""
        return self._estimate(term.expression)

    def _estimate(self, expression: str) -> int:
        rows = self.connection.execute(
            "SELECT count(*), min(rowid) FROM (SELECT rowid FROM search WHERE search MATCH ? ORDER BY rowid DESC LIMIT ?)",
            (expression, COUNTED),
        ).fetchone()
        assert rows is not None
        count, lowest = rows
        if count < COUNTED:
            return int(count)
        keys = self.catalog.ordered_keys()
        newer = len(keys) - bisect_left(keys, lowest >> SESSION_SHIFT)
        return int(count * len(keys) / max(1, newer))

    def weigh_row(self, expression: str, terms: Sequence[Term], row: int) -> tuple[float, tuple[Term, ...]]:
        """Score of one row that matches, and the terms that stand in it."""
        self.weigher.start(terms)
        for _ in self.connection.execute(
            "SELECT weigh(search) FROM search WHERE search MATCH ? AND rowid=?", (expression, row)
        ):
            pass
        counts, size = self.weigher.noted[row]
        norm = K1 * (1 - B + B * size / self.weigher.mean)
        held = [
            (self.rarity(term) * count * (K1 + 1) / (count + norm), term)
            for term, count in zip(terms, counts, strict=True)
            if count
        ]
        return sum(score for score, _ in held), tuple(term for _, term in held)

    def count(self, expression: str) -> int:
        """How many rows in scope match: exact, unless counting takes longer than COUNT_SECONDS (then an estimate)."""
        deadline = time.monotonic() + COUNT_SECONDS
        self.connection.set_progress_handler(lambda: time.monotonic() > deadline, 1000, id=self)
        try:
            row = self.connection.execute(
                f"SELECT count(*) FROM search WHERE search MATCH ?{self._condition}", (expression, *self._bindings())
            ).fetchone()
            return int(row[0]) if row else 0
        except apsw.InterruptError:
            if time.monotonic() <= deadline:
                raise
            return self._estimate(expression)
        finally:
            self.connection.set_progress_handler(None, id=self)

    def exists(self, expression: str) -> bool:
        """Whether anything in the index matches, in scope or not: cheap, and no more than a reason to count."""
        sql = "SELECT 1 FROM search WHERE search MATCH ? LIMIT 1"
        return self.connection.execute(sql, (expression,)).fetchone() is not None

    # -- by time ------------------------------------------------------------------------------------------------------

    def by_time(self, query: Query, newest: bool) -> Iterator[int]:
        """All matching rows, exactly in the order of their entries' times (entries without a time come last)."""
        rows = list(self.matches(query.expression, SORTED + 1))
        if len(rows) <= SORTED:
            yield from (row for *_, row in sorted(self._timed(rows, newest)))
            return
        yield from self._by_session(query, newest)

    def _timed(self, rows: Sequence[int], newest: bool) -> list[tuple[int, int, int]]:
        """(order by time, order among those of one time, row)."""
        times = self.times(rows)
        return [(_order(times.get(row), newest), -row if newest else row, row) for row in rows]

    def times(self, rows: Sequence[int]) -> dict[int, int | None]:
        """The times of these rows' entries."""
        if not rows:
            return {}
        sql = "SELECT id, time FROM entries WHERE id IN (SELECT value FROM carray(?))"
        return dict(self.connection.execute(sql, (apsw.carray(integers(rows)),)))

    def _by_session(self, query: Query, newest: bool) -> Iterator[int]:
        """Session by session, the one with the best time first, until no later one can hold a better entry."""
        bounds = []
        for key, session in self.sessions.items():
            if self.scope.within(key) and session.nodes:
                bounds.append((_order(session.last_time if newest else session.first_time, newest), key))
        heapq.heapify(bounds)
        waiting: list[tuple[int, int, int]] = []
        while bounds or waiting:
            if waiting and (not bounds or waiting[0][0] < bounds[0][0]):
                yield heapq.heappop(waiting)[-1]
                continue
            _, key = heapq.heappop(bounds)
            rows = list(self.matches(query.expression, 1 << 62, within=session_range(key)))
            for timed in self._timed(rows, newest):
                heapq.heappush(waiting, timed)

    # -- scanning -----------------------------------------------------------------------------------------------------

    def matches(
        self,
        expression: str,
        limit: int,
        *,
        within: tuple[int, int] = (0, (1 << 63) - 1),
        per_session: int | None = None,
        weigh: bool = False,
    ) -> Iterator[int]:
        """Rows in scope that match, the highest (in general the newest) first, at most `limit`."""
        allowed = self.scope.sessions
        if allowed is not None and len(allowed) <= 8:
            yield from self._session_by_session(
                expression, limit, within, sorted(allowed, reverse=True), per_session, weigh
            )
            return
        low, high = within
        left = limit
        counted: Counter[int] = Counter()
        deadline = time.monotonic() + SCAN_SECONDS
        guarded = allowed is not None and len(allowed) < len(self.sessions) // 4
        while left > 0 and high >= low:
            skipped = False
            for (row,) in self._scan(expression, low, high, left, weigh, deadline if guarded else None):
                high = row - 1
                left -= 1
                yield row
                if per_session is not None:
                    session = row >> SESSION_SHIFT
                    counted[session] += 1
                    if counted[session] >= per_session:
                        high, skipped = (session << SESSION_SHIFT) - 1, True
                        break
            if self._overran:
                rest = sorted((key for key in allowed or () if key <= high >> SESSION_SHIFT), reverse=True)
                yield from self._session_by_session(expression, left, (low, high), rest, per_session, weigh)
                return
            if not skipped:
                return

    def _session_by_session(
        self,
        expression: str,
        limit: int,
        within: tuple[int, int],
        keys: Iterable[int],
        per_session: int | None,
        weigh: bool,
    ) -> Iterator[int]:
        for key in keys:
            low, high = session_range(key)
            low, high = max(low, within[0]), min(high, within[1])
            most = limit if per_session is None else min(limit, per_session)
            for (row,) in self._scan(expression, low, high, most, weigh, None):
                limit -= 1
                yield row
            if limit <= 0:
                return

    def _scan(
        self, expression: str, low: int, high: int, limit: int, weigh: bool, deadline: float | None
    ) -> Iterator[tuple[int]]:
        self._overran = False
        columns = "rowid, weigh(search)" if weigh else "rowid"
        sql = (
            f"SELECT {columns} FROM search WHERE search MATCH ? AND rowid BETWEEN ? AND ?{self._condition} "
            "ORDER BY rowid DESC LIMIT ?"
        )
        if deadline is not None:
            self.connection.set_progress_handler(lambda: time.monotonic() > deadline, 500, id=self)
        try:
            for found in self.connection.execute(sql, (expression, low, high, *self._bindings(), limit)):
                yield (found[0],)
        except apsw.InterruptError:
            if deadline is None or time.monotonic() <= deadline:
                raise
            self._overran = True
        finally:
            if deadline is not None:
                self.connection.set_progress_handler(None, id=self)

    def _filters(self) -> tuple[str, Callable[[], list[Any]]]:
        """The conditions of the scope as SQL, and what makes their bindings."""
        scope = self.scope
        parts: list[str] = []
        values: list[array[int]] = []
        if scope.sessions is not None:
            parts.append(f" AND (rowid >> {SESSION_SHIFT}) IN (SELECT value FROM carray(?))")
            values.append(integers(sorted(scope.sessions)))
        elif scope.excluded:
            parts.append(f" AND (rowid >> {SESSION_SHIFT}) NOT IN (SELECT value FROM carray(?))")
            values.append(integers(sorted(scope.excluded)))
        if scope.span is not None:
            parts.append(f" AND rowid BETWEEN {int(scope.span[0])} AND {int(scope.span[1])}")
        if scope.rows is not None:
            parts.append(" AND rowid IN (SELECT value FROM carray(?))")
            values.append(integers(scope.rows))
        if scope.role is not None:
            parts.append(f" AND (rowid & 1) = {int(scope.role)}")
        if not scope.off_branch:
            parts.append(" AND rowid NOT IN (SELECT id FROM hidden)")
        if scope.since is not None or scope.until is not None:
            low = -(1 << 62) if scope.since is None else scope.since
            high = (1 << 62) if scope.until is None else scope.until
            parts.append(
                f" AND (SELECT time >= {int(low)} AND time < {int(high)} FROM entries WHERE entries.id = search.rowid)"
            )

        return "".join(parts), lambda: [apsw.carray(value) for value in values]


def phrases_of(term: Term) -> int:
    """How many FTS5 phrases a term's expression has (each is one quoted string; words hold no quotes)."""
    return term.expression.count('"') // 2


def _order(moment: int | None, newest: bool) -> int:
    if moment is None:
        return 1 << 62
    return -moment if newest else moment
