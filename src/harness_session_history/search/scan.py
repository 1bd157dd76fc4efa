"""Finds the rows of the index that match within a scope, in the way that costs the least. Scores, sorts and reads nothing.

Rows are asked for session by session, those first that were active last: what comes first depends on the transcripts
alone, not on where the index keeps them. What FTS5 costs decides how many sessions one statement looks into. To begin in
the midst of the rows costs it little forwards and ten times as much backwards, and something for each word; a prefix costs
it a merge of all places of all its words before the first row, whatever is asked for.
"""

from __future__ import annotations

import heapq
import math
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import accumulate, islice
from typing import Any

import apsw

from ..index.catalog import Catalog
from ..index.connection import Limited
from ..index.schema import SLOT_SHIFT, integers
from ..index.spans import Spans
from .bm25 import Scorer
from .expression import Expression, Phrase
from .scope import Scope
from .vocabulary import ALONE, BESIDE_OTHERS, Vocabulary

#: Document frequencies are counted up to COUNTED and estimated above: from the rate in SAMPLE sessions, the largest of the
#: LATEST that were active last.
COUNTED, SAMPLE, LATEST = 4000, 8, 64
#: An expression of more phrases is a prefix with its words spelled out.
FEW_PHRASES = 40
#: A prefix is taken to stand in one of PREFIX_SHARE rows of a large index: to count it would cost as much as to search for it.
PREFIX_SHARE = 3
#: Seconds for which rows are counted before they are estimated.
COUNT_SECONDS = 0.004
#: Rows of an index in which nothing takes long enough to be estimated.
SMALL = 20_000
#: A statement costs about as much as looking at STATEMENT_COST rows of the rarest word that is required; with several
#: phrases up to COSTLIEST times as much.
STATEMENT_COST, COSTLIEST = 400, 6
#: A session of more messages is searched on its own, and from its end where not all of its rows are wanted.
MODERATE = 2000
#: Factor by which the number of sessions grows that are looked into next, where those before did not give enough.
GROWTH = 16

#: The last row that there can be, and what stands for the time of an entry that has none.
LAST, NEVER = (1 << 63) - 1, 1 << 62

#: Words of a phrase are taken to stand together in one of TOGETHER rows in which they stand.
TOGETHER = 4

Row = tuple[int, float]


class Scanner:
    """Looks for rows over one connection within one scope. Runs inside a read transaction of the caller."""

    def __init__(self, connection: apsw.Connection, scorer: Scorer, scope: Scope, catalog: Catalog) -> None:
        self.connection, self.scorer, self.scope, self.catalog = connection, scorer, scope, catalog
        self.sessions = catalog.sessions
        self.spans = Spans(connection)
        self._vocabulary = Vocabulary(connection)
        if scope.partly:
            connection.create_scalar_function("is_within", self._is_within, 3)
        self._condition, self._values = scope.conditions(catalog.slots_of)
        scorer.follow(catalog.revision)

    def _is_within(self, *row_since_until: Any) -> bool:
        return self.spans.is_within(*row_since_until)

    def session_of(self, row: int) -> int:
        """The key of the session that a row belongs to."""
        return self.catalog.session_of(row)

    @cached_property
    def keys(self) -> list[int]:
        """Keys of the sessions in scope, those that were active last first."""
        latest, allowed, excluded = self.catalog.latest_keys(), self.scope.sessions, self.scope.excluded
        if allowed is not None:
            return [key for key in latest if key in allowed]
        return [key for key in latest if key not in excluded] if excluded else latest

    # -- scanning -----------------------------------------------------------------------------------------------------

    def matches(self, expression: Expression, limit: int) -> list[int]:
        """Rows in scope that match, of the sessions that were active last, and of each its last ones first; at most
        `limit`."""
        sessions = self.by_session(self.spelled_out(expression), limit, share=limit)
        return list(islice((row for _, rows in sessions for row, _ in rows), limit))

    def of_session(
        self, expression: Expression, session: int, limit: int, *, below: int = LAST, weigh: bool = False
    ) -> list[Row]:
        """The last matching rows of one session, those `below` a row, at most `limit`; none if it is not in scope."""
        low, high = self._rows_of(session)
        expression = self.spelled_out(expression)
        within = self.scope.within(session)
        return list(self._execute(expression, low, min(high, below - 1), last=limit, weigh=weigh)) if within else []

    def by_session(
        self, expression: Expression, wanted: int, *, share: int = 0, weigh: bool = False, oldest: bool = False
    ) -> Iterator[tuple[int, list[Row]]]:
        """The sessions that have matches, those that were active last first, or those that began first; each with its
        rows, the last first, at most `share` (0: all). `wanted`: about how many rows will be used of all together."""
        order = self.began if oldest else self.ended
        frequency = self._rarest(expression) // self._strictness(expression)
        if frequency <= 2 * wanted:
            found = self._grouped(self._execute(expression, *self._everything, weigh=weigh), share)
            for key in sorted(found, key=lambda key: (order(key), self.sessions[key].order)):
                yield key, found[key]
            return
        keys = sorted(self.keys, key=order) if oldest else self.keys
        at, given, some = 0, 0, self._enough(wanted * 5 // 4 * self.documents // frequency, keys)
        while at < len(keys):
            block = keys[at : at + some]
            found = self._of_sessions(expression, block, share, weigh)
            yield from ((key, found[key]) for key in block if key in found)
            at, given = at + some, given + sum(map(len, found.values()))
            least = 4 if expression.has_prefix else 1
            some = at * max(least, min(GROWTH, wanted // max(1, given)))

    def began(self, key: int) -> int:
        """When the first entry of a session was written."""
        first = self.sessions[key].first_time
        return NEVER if first is None else first

    def ended(self, key: int) -> int:
        """How long ago a session was active last."""
        activity = self.sessions[key].activity
        return NEVER if activity is None else -activity

    def _enough(self, messages: int, keys: Sequence[int]) -> int:
        """How many of the first of these sessions have `messages` messages together."""
        totals = enumerate(accumulate(self.sessions[key].messages for key in keys), 1)
        return next((count for count, total in totals if total >= messages), len(keys))

    def _of_sessions(
        self, expression: Expression, keys: Sequence[int], share: int, weigh: bool
    ) -> dict[int, list[Row]]:
        """The matching rows of these sessions, the last of each first, at most `share`."""
        alone = share and not expression.has_prefix
        large = {key for key in keys if self.sessions[key].messages > MODERATE} if alone else set()
        found = {key: list(self._execute(expression, *self._rows_of(key), last=share, weigh=weigh)) for key in large}
        for cluster in self._clusters(expression, [key for key in keys if key not in large] if large else keys):
            found |= self._grouped(self._execute(expression, *self._only(cluster), weigh=weigh), share)
        return {key: rows for key, rows in found.items() if rows} if large else found

    def _grouped(self, rows: Iterable[Row], share: int) -> dict[int, list[Row]]:
        """Ascending rows by their session, the last of each first, at most `share`."""
        found: dict[int, list[Row]] = {}
        for one in rows:
            found.setdefault(self.session_of(one[0]), []).append(one)
        return {key: some[: -share - 1 : -1] if share else some[::-1] for key, some in found.items()}

    @cached_property
    def _everything(self) -> tuple[int, int, str, list[Any]]:
        """All sessions in scope, as `_only` gives them."""
        if self.scope.sessions is None and not self.scope.excluded:
            return 0, LAST, "", []
        return self._only(sorted(self.keys)) if self.keys else (1, 0, "", [])

    def _clusters(self, expression: Expression, keys: Sequence[int]) -> Iterator[list[int]]:
        """These sessions, ascending, those together that one statement should look into: what lies between two of them
        costs less to look at than a statement."""
        if expression.has_prefix or len(keys) < 2:
            yield from [sorted(keys)] if keys else []
            return
        cost = STATEMENT_COST * min(COSTLIEST, 1 + len(expression.phrases) // 10)
        gap = cost * len(self.sessions) // max(1, self._rarest(expression))
        wanted, everything = sorted(keys), self.catalog.ordered_keys()
        start, last = 0, bisect_left(everything, wanted[0])
        for at in range(1, len(wanted)):
            place = bisect_left(everything, wanted[at], last)
            if place - last > gap + 1:
                yield wanted[start:at]
                start = at
            last = place
        yield wanted[start:]

    def _only(self, cluster: list[int]) -> tuple[int, int, str, list[Any]]:
        """The first and the last row of sessions, which ascend, and as SQL, with its bindings, that a row is of one of them."""
        everything = self.catalog.ordered_keys()
        between = everything[bisect_left(everything, cluster[0]) : bisect_left(everything, cluster[-1]) + 1]
        low, high = self._rows_of(cluster[0])[0], self._rows_of(cluster[-1])[1]
        if len(between) == len(cluster):
            return low, high, "", []
        others = len(between) < 2 * len(cluster)
        slots = self.catalog.slots_of(sorted(set(between).difference(cluster)) if others else cluster)
        condition = f" AND (rowid >> {SLOT_SHIFT}) {'NOT IN' if others else 'IN'} (SELECT value FROM carray(?))"
        return low, high, condition, [integers(slots)]

    def _rows_of(self, session: int) -> tuple[int, int]:
        """The first and the last row that a session can have."""
        extent = self.sessions[session].extent
        return extent.low, extent.high

    def _execute(
        self,
        expression: Expression,
        low: int,
        high: int,
        only: str = "",
        slots: Sequence[Any] = (),
        *,
        last: int = 0,
        weigh: bool = False,
    ) -> Iterator[Row]:
        """The matching rows from `low` to `high`: all of them, the first first, or the `last` of them, the last first."""
        sql = (
            f"SELECT rowid, {'weigh(search)' if weigh else '0.0'} FROM search WHERE search MATCH ? AND rowid BETWEEN ? AND ?"
            f"{self._condition}{only} ORDER BY rowid {'DESC' if last else 'ASC'} LIMIT ?"
        )
        bindings = map(apsw.carray, (*self._values, *slots))
        return self.connection.execute(sql, (str(expression), low, high, *bindings, last or -1))

    # -- counting -----------------------------------------------------------------------------------------------------

    @cached_property
    def documents(self) -> int:
        """How many rows the index has."""
        row = self.connection.execute("SELECT value FROM meta WHERE name='documents'").fetchone()
        return int(row[0] or 0) if row else 0

    def frequency(self, expression: Expression) -> int:
        """How many rows of the index match, in scope or not: exact in a small index and below COUNTED, else an estimate."""
        expression = self.spelled_out(expression)
        if self.documents > SMALL and (expression.has_prefix or len(expression.phrases) > FEW_PHRASES):
            return self.documents // PREFIX_SHARE
        known = self.scorer.frequencies.get(expression)
        if known is None:
            known = self.scorer.frequencies[expression] = self._frequency(expression)
        return known

    def _frequency(self, expression: Expression) -> int:
        if self.documents <= SMALL:
            return self._counted(expression)
        counted = self._counted(expression, limit=COUNTED)
        if counted < COUNTED:
            return counted
        extents, messages = self._sample
        return max(counted, sum([self._counted(expression, *rows) for rows in extents]) * self.documents // messages)

    @cached_property
    def _sample(self) -> tuple[list[tuple[int, int]], int]:
        """The first and the last row of each of some sessions, and how many messages these have together."""
        known = map(self.sessions.__getitem__, self.catalog.latest_keys())
        latest = islice((one for one in known if one.source is not None), LATEST)
        some = heapq.nlargest(SAMPLE, latest, key=lambda one: one.messages)
        return [(one.extent.low, one.extent.high) for one in some], max(1, sum([one.messages for one in some]))

    def _counted(
        self,
        expression: Expression,
        low: int = 0,
        high: int = LAST,
        only: str = "",
        slots: Sequence[Any] = (),
        limit: int = -1,
    ) -> int:
        """How many rows from `low` to `high` match, up to `limit`."""
        rows = f"SELECT rowid FROM search WHERE search MATCH ? AND rowid BETWEEN ? AND ?{only} LIMIT ?"
        bindings = (str(expression), low, high, *map(apsw.carray, slots), limit)
        found = self.connection.execute(f"SELECT count(*) FROM ({rows})", bindings).fetchone()
        return int(found[0]) if found else 0

    def _rarest(self, expression: Expression) -> int:
        """In about how many rows the rarest word stands that is required."""
        parts: list[Expression] = []
        for part in expression.required:  # of several ways to say it, the first stands for all
            words = part.phrases[0].words
            parts += [Phrase((word,)) for word in words] if len(words) > 1 else [part]
        return min(map(self.frequency, parts))

    @staticmethod
    def _strictness(expression: Expression) -> int:
        """About how many times as many rows hold the rarest word that is required as hold all of the words as required."""
        together = max([len(part.phrases[0].words) for part in expression.required])
        return int(len(expression.required) * TOGETHER ** (together - 1))

    def spelled_out(self, expression: Expression, terms: int = 1) -> Expression:
        """An expression with the words in place of its prefixes, where it is sought in that way (beside other `terms`)."""
        most = ALONE if terms == 1 and not expression.conjoins else BESIDE_OTHERS
        return self._vocabulary.spelled_out(expression, most)

    def count(self, expression: Expression, seconds: float = COUNT_SECONDS) -> int:
        """How many rows in scope match: exact, unless counting takes longer than `seconds` (then an estimate); in
        a small index always exact."""
        if not self.keys:
            return 0
        expression, small = self.spelled_out(expression), self.documents <= SMALL
        if seconds > 0 or small:
            low, high, only, slots = self._everything
            with Limited(self.connection, math.inf if small else seconds):
                return self._counted(expression, low, high, self._condition + only, (*self._values, *slots))
        if expression.has_prefix and not self.exists(expression):
            return 0
        return self.frequency(expression) * self._messages // max(1, self.documents)

    def standing(self, words: Sequence[str]) -> list[str]:
        """Those of some folded words that stand in the index, in scope or not."""
        return self._vocabulary.standing(words)

    @cached_property
    def _messages(self) -> int:
        """How many messages the sessions in scope have together."""
        return sum([self.sessions[key].messages for key in self.keys])

    def exists(self, expression: Expression) -> bool:
        """Whether anything in the index matches, in scope or not: cheap, and no more than a reason to count."""
        return self._counted(self.spelled_out(expression), limit=1) > 0
