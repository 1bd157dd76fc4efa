"""Finds the rows of the index that match within a scope, in the way that costs the least. Scores, sorts and reads nothing.

What FTS5 costs decides the way. It gives the newest matches of anything quickly. To begin in the middle of the rows
costs it little forwards and ten times as much backwards, and something for each word. A prefix costs it a merge of all
places of all its words before the first row, whatever is asked for.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any

import apsw

from ..index.catalog import Catalog
from ..index.connection import Limited
from ..index.schema import SLOT_SHIFT
from ..index.spans import Spans
from .bm25 import Weigher
from .query import conjuncts, words_of_phrase
from .scope import Scope
from .vocabulary import ALONE, BESIDE_OTHERS, Vocabulary

#: Document frequencies are counted up to here and estimated above.
COUNTED = 1000
#: A prefix is taken to stand in one of so many rows: to count it would cost as much as to search for it.
PREFIX_SHARE = 50
#: Rows are counted for so long, then estimated.
COUNT_SECONDS = 0.004
#: Up to so many sessions are always looked into one by one.
FEW = 16
#: In an index of up to so many rows nothing takes long enough to be estimated.
SMALL = 20_000
#: Looking into one session costs about as much as looking at so many rows of the rarest word that is required; more for
#: more than ten words.
RANGE_COST = 400
#: A session of more messages is searched from its end, the newest first.
MODERATE = 2000
#: Where several sessions are searched at once and hold so many matches, fewer sessions are taken.
AT_ONCE = 8000
#: A prefix is not spelled out where fewer than one of so many sessions may be looked into: it is seldom found there, so
#: that its words would have to be looked for again and again.
SCATTERED = 4
#: Every row there can be.
EVERYWHERE = (0, (1 << 63) - 1)


class Scanner:
    """Looks for rows over one connection within one scope. Runs inside a read transaction of the caller."""

    def __init__(self, connection: apsw.Connection, weigher: Weigher, scope: Scope, catalog: Catalog) -> None:
        self.connection, self.weigher, self.scope, self.catalog = connection, weigher, scope, catalog
        self.sessions = catalog.sessions
        self.spans = Spans(connection)
        self._vocabulary = Vocabulary(connection)
        if scope.partly:
            connection.create_scalar_function("is_within", self._is_within, 3)
        self._frequencies: dict[str, int] = {}
        self._condition, self._bindings = scope.conditions(catalog.slots_of)
        self._known_condition, self._known_bindings = scope.conditions(catalog.slots_of, known=True)
        self._allowed = None if scope.sessions is None else sorted(scope.sessions)
        self.bounds = EVERYWHERE
        if self._allowed is not None:
            # None fits where there are no sessions.
            first, last = (self._allowed[0], self._allowed[-1]) if self._allowed else (None, None)
            self.bounds = (1, 0) if first is None or last is None else (self.rows_of(first)[0], self.rows_of(last)[1])
        between = self._sessions_between(self._allowed[0], self._allowed[-1]) if self._allowed else 0
        self._is_scattered = self._allowed is not None and FEW < len(self._allowed) < between // SCATTERED

    def _is_within(self, *row_since_until: Any) -> bool:
        return self.spans.is_within(*row_since_until)

    def session_of(self, row: int) -> int:
        """The key of the session that a row belongs to."""
        return self.catalog.session_of(row)

    def rows_of(self, session: int) -> tuple[int, int]:
        """The first and the last row that a session can have."""
        extent = self.sessions[session].extent
        return extent.low, extent.high

    def shared_out(self, rows: Iterable[tuple[int, float]], share: int) -> list[tuple[int, float]]:
        """These rows, but of each session only so many of the first."""
        counted: Counter[int] = Counter()
        kept = []
        for row, score in rows:
            session = self.session_of(row)
            counted[session] += 1
            if counted[session] <= share:
                kept.append((row, score))
        return kept

    # -- scanning -----------------------------------------------------------------------------------------------------

    def matches(self, expression: str, limit: int, *, within: tuple[int, int] = EVERYWHERE) -> list[int]:
        """Rows in scope that match, the highest (in general the newest) first, at most `limit`."""
        return [row for row, _ in self.find(self.spelled_out(expression), limit, within=within)[:limit]]

    def find(
        self,
        expression: str,
        limit: int,
        *,
        within: tuple[int, int] = EVERYWHERE,
        per_session: int | None = None,
        weigh: bool = False,
    ) -> list[tuple[int, float]]:
        """Rows in scope that match, each with its score where they are weighed, the highest first, at most `per_session`
        of one session: as many as there are up to `limit`, and what was found besides."""
        low, high = max(within[0], self.bounds[0]), min(within[1], self.bounds[1])
        keys = self._only_session(low, high) if self._allowed is None else self._allowed_between(low, high)
        if (self._allowed is None and not keys) or (self._allowed is not None and "*" in expression):
            return self._skipping(expression, limit, (low, high), per_session, weigh)
        found: list[tuple[int, float]] = []
        share = limit if per_session is None else per_session
        together = self._together(expression, keys, limit)
        while keys and len(found) < limit:
            some = self._of_moderate_size(keys[:together])
            first, last = max(low, self.rows_of(some[-1])[0]), min(high, self.rows_of(some[0])[1])
            known = self._allowed is not None and len(some) == self._sessions_between(some[-1], some[0])
            if self._messages(some[0]) > MODERATE:
                most = min(share, limit - len(found))
                found += self.execute(expression, first, last, most, weigh=weigh, known=known)
            else:
                # Forwards, though the newest are wanted: better all rows of a few sessions.
                most = -1 if len(some) <= 2 else max(AT_ONCE, 2 * limit)
                rows = list(self.execute(expression, first, last, most, weigh=weigh, known=known, forwards=True))
                if len(rows) == most:  # they stand closer together than elsewhere
                    together = max(2, len(some) // 8)
                    continue
                found += self.shared_out(reversed(rows), share)
            keys, together = keys[len(some) :], together if together == 1 else together * 2
        return found

    def _only_session(self, low: int, high: int) -> list[int]:
        """The key of the session that rows from `low` to `high` belong to; none if they are those of several."""
        keys = self.catalog.ordered_keys()
        first, last = (bisect_right(keys, row >> SLOT_SHIFT) - 1 for row in (low, high))
        return [keys[first]] if first == last >= 0 else []

    def _allowed_between(self, low: int, high: int) -> list[int]:
        """The keys of the allowed sessions that rows from `low` to `high` belong to (and perhaps of the one before), the
        newest first."""
        allowed = self._allowed or []
        first = max(0, bisect_right(allowed, low >> SLOT_SHIFT) - 1)
        return allowed[first : bisect_right(allowed, high >> SLOT_SHIFT)][::-1]

    def _of_moderate_size(self, keys: list[int]) -> list[int]:
        """The first of these sessions: up to one of more than MODERATE messages, or it alone."""
        large = next((at for at, key in enumerate(keys) if self._messages(key) > MODERATE), len(keys))
        return keys[: max(1, large)]

    def _messages(self, session: int) -> int:
        known = self.sessions.get(session)
        return 0 if known is None else known.messages

    def _together(self, expression: str, keys: Sequence[int], limit: int) -> int:
        """How many of these sessions to look into at once, and at what lies between them: one, where that costs less,
        else as many as it takes to find enough, if the matches are spread evenly."""
        if len(keys) <= FEW:
            return 1
        sessions = self._sessions_between(keys[-1], keys[0])
        frequency = max(1, self._rarest(expression) * sessions // len(self.sessions))
        looked_into = max(1, min(len(keys), limit * sessions * 5 // (4 * frequency)))
        looked_at = min(frequency, limit * sessions // len(keys))
        cost = RANGE_COST * (1 + expression.count('"') // 20)
        return 1 if looked_into * cost < looked_at else looked_into

    def _sessions_between(self, first: int, last: int) -> int:
        keys = self.catalog.ordered_keys()
        return bisect_right(keys, last) - bisect_left(keys, first)

    def _rarest(self, expression: str) -> int:
        """In about how many rows the rarest word stands that is required."""
        return min([self.frequency(word) for part in conjuncts(expression) for word in words_of_phrase(part)])

    def _skipping(
        self, expression: str, limit: int, within: tuple[int, int], per_session: int | None, weigh: bool
    ) -> list[tuple[int, float]]:
        """A scan that leaves a session behind once it has given enough."""
        if per_session is None:
            return list(self.execute(expression, *within, limit, weigh=weigh))
        low, high = within
        found: list[tuple[int, float]] = []
        counted: Counter[int] = Counter()
        while len(found) < limit:
            block = list(self.execute(expression, low, high, min(limit - len(found), per_session), weigh=weigh))
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

    def execute(
        self,
        expression: str,
        low: int,
        high: int,
        limit: int,
        *,
        weigh: bool,
        known: bool = False,
        forwards: bool = False,
    ) -> Iterator[tuple[int, float]]:
        """The matching rows from `low` to `high`, the highest or the lowest first. `known`: all of them are rows of
        allowed sessions."""
        condition = self._known_condition if known else self._condition
        bindings = self._known_bindings if known else self._bindings
        sql = (
            f"SELECT rowid, {'weigh(search)' if weigh else '0.0'} FROM search "
            f"WHERE search MATCH ? AND rowid BETWEEN ? AND ?{condition} ORDER BY rowid {'ASC' if forwards else 'DESC'} LIMIT ?"
        )
        return self.connection.execute(sql, (expression, low, high, *bindings(), limit))

    # -- counting -----------------------------------------------------------------------------------------------------

    def frequency(self, expression: str) -> int:
        """How many rows of the index match, in scope or not: exact below COUNTED, an estimate from there on."""
        expression = self.spelled_out(expression)
        if "*" in expression:
            return self.weigher.documents // PREFIX_SHARE
        known = self._frequencies.get(expression)
        if known is None:
            known = self._frequencies[expression] = self._estimate(expression)
        return known

    def _estimate(self, expression: str) -> int:
        return self._extrapolated(*self._newest(expression), self.catalog.ordered_keys())

    def _newest(self, expression: str, condition: str = "", bindings: Sequence[Any] = ()) -> tuple[int, int]:
        """How many rows match, up to COUNTED of the newest, and the lowest of these."""
        newest = f"SELECT rowid FROM search WHERE search MATCH ?{condition} ORDER BY rowid DESC LIMIT ?"
        sql = f"SELECT count(*), min(rowid) FROM ({newest})"
        found = self.connection.execute(sql, (expression, *bindings, COUNTED)).fetchone()
        assert found is not None
        return int(found[0]), int(found[1] or 0)

    def _extrapolated(self, count: int, lowest: int, keys: Sequence[int]) -> int:
        """How many rows match in these sessions, given how many of the newest do and the lowest of them."""
        if count < COUNTED:
            return count
        newer = len(keys) - bisect_left(keys, self.session_of(lowest))
        return count * len(keys) // max(1, newer)

    def spelled_out(self, expression: str, terms: int = 1) -> str:
        """An expression with the words in place of its prefixes, where it is sought in that way (beside other `terms`)."""
        most = ALONE if terms == 1 and " AND " not in expression else BESIDE_OTHERS
        return expression if self._is_scattered else self._vocabulary.spelled_out(expression, most)

    def count(self, expression: str, seconds: float = COUNT_SECONDS) -> int:
        """How many rows in scope match: exact, unless counting takes longer than so many seconds (then an estimate); in
        a small index always exact."""
        if self._allowed == []:
            return 0
        expression = self.spelled_out(expression)
        small = self.documents <= SMALL
        if seconds > 0 or small:
            sql = f"SELECT count(*) FROM search WHERE search MATCH ?{self._condition}"
            with Limited(self.connection, math.inf if small else seconds):
                row = self.connection.execute(sql, (expression, *self._bindings())).fetchone()
                return int(row[0]) if row else 0
        keys = self.catalog.ordered_keys() if self._allowed is None else self._allowed
        if "*" in expression:
            within = sum([self._messages(key) for key in keys])
            return within // PREFIX_SHARE
        if self._allowed is None:
            count, lowest = self._newest(expression, self._condition, self._bindings())
        else:
            rows = self.matches(expression, COUNTED)
            count, lowest = len(rows), rows[-1] if rows else 0
        return self._extrapolated(count, lowest, keys)

    @cached_property
    def documents(self) -> int:
        """How many rows the index has."""
        row = self.connection.execute("SELECT value FROM meta WHERE name='documents'").fetchone()
        return int(row[0] or 0) if row else 0

    def exists(self, expression: str) -> bool:
        """Whether anything in the index matches, in scope or not: cheap, and no more than a reason to count."""
        sql = "SELECT 1 FROM search WHERE search MATCH ? LIMIT 1"
        return self.connection.execute(sql, (self.spelled_out(expression),)).fetchone() is not None
