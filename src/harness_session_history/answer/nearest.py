"""The entries that hold most of a query's terms where few hold all of them; a term counts in part where it stands in one
of the two entries before or after on the branch: a question and its answer are found by words of both."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING

import apsw

from ..archive.hydration import Hydrated
from ..index.trees import tree_columns
from ..model.entries import TEXT_ROLES
from ..search.bm25 import MOST_PLACES
from ..search.match import Matcher
from ..search.nearness import IN_ORDER, TOGETHER, nearness
from ..search.query import Query, Term
from ..search.rank import Searcher
from ..search.suggestions import holding, promising
from .citations import Evidence
from .hits import Finder, Hit
from .sessions import SessionViews

if TYPE_CHECKING:
    from ..archive.branch import Tree

#: How many candidates are compared together with their neighbours, and how many of these are read.
COMPARED, READ = 48, 16
#: Neighbours on each side that count, and what a term is worth that stands in the first of them; in the second, half.
REACH, NEARBY = 2, 0.5
#: What it is worth that what an entry holds stands together, and how many characters count as a word for that.
CLOSE, WORD = 0.4, 6


@dataclass(frozen=True)
class Wanted:
    """A term to look for: what it stands for in the query as typed (the number of its term there), how much it tells,
    whether it is that term itself or what is looked for in its place; `rows` that hold it, where only texts tell that."""

    term: Term
    place: int
    weight: float
    itself: bool
    rows: Sequence[int] | None = None


@dataclass(frozen=True)
class Near:
    """An entry that holds some of what is wanted, and the numbers of what stands in it."""

    hit: Hit
    held: frozenset[int]
    score: float


class Nearest:
    """Looks for the nearest entries of one request."""

    def __init__(
        self,
        connection: apsw.Connection,
        searcher: Searcher,
        views: SessionViews,
        check: Callable[[], None],
        until: float,
    ) -> None:
        self.connection, self.searcher, self.views, self.check, self.until = connection, searcher, views, check, until
        self.evidence = Evidence(connection, views.catalog)
        self._hidden: dict[int, set[int]] = {}
        self._trees: dict[int, Tree] = {}

    def find(self, wanted: Sequence[Wanted], shown: Collection[int]) -> list[Near]:
        """The nearest entries, best first, without those of the rows that are `shown` already."""
        weights = [one.weight for one in wanted]
        scope = self.searcher.scope
        everywhere = replace(scope, role=None, since=None, until=None, partly=frozenset())
        wide = Searcher(self.connection, self.searcher.scorer, everywhere, self.views.catalog)
        terms = [(one.term.expression, one.weight, one.rows) for one in wanted]
        held = holding(wide, terms, self.check, self.until)
        rows = promising(held, weights, scope.role, COMPARED + len(shown))
        scored: list[tuple[float, int]] = []
        beside: dict[int, list[float]] = {}
        for row in rows:
            self.check()
            if row in shown or not self._is_within(row):
                continue
            parts = beside[row] = self._parts(self.neighbours(row), held, len(wanted))
            own = held.get(row, 0)
            scored.append(
                (
                    sum([w if own >> at & 1 else w * p for at, (w, p) in enumerate(zip(weights, parts, strict=True))]),
                    row,
                )
            )
        best = [row for _, row in sorted(scored, key=lambda one: -one[0])[:READ]]
        return self._read(best, wanted, beside)

    def _parts(self, neighbours: Sequence[tuple[int, int]], held: dict[int, int], size: int) -> list[float]:
        """For each of what is wanted, what it counts by standing beside an entry."""
        parts = [0.0] * size
        for row, distance in neighbours:
            mask = held.get(row, 0)
            for at in range(size):
                if mask >> at & 1:
                    parts[at] = max(parts[at], NEARBY / distance)
        return parts

    def _read(self, rows: Sequence[int], wanted: Sequence[Wanted], beside: dict[int, list[float]]) -> list[Near]:
        """The entries as their texts say; those that hold only what is looked for in the place of terms come
        after them, and last those that say the same as one before."""
        matcher = Matcher(Query("", tuple([one.term for one in wanted])))
        finder = Finder(self.connection, self.views, self.searcher.scope, matcher, self.check)
        hits, _ = finder.take(rows, len(rows), diverse=False, verify=False)
        found = []
        for hit in hits:
            held = frozenset(matcher.held(hit.entry.text, hit.entry.apart))
            if held:
                parts = beside[rows[hit.place]]
                own = sum([wanted[at].weight for at in sorted(held)]) * _together(matcher, hit.entry, held)
                more = sum([one.weight * parts[at] for at, one in enumerate(wanted) if at not in held])
                found.append(Near(hit, held, own * shortness(len(hit.entry.text)) + more))
        found.sort(key=lambda near: (not any(wanted[at].itself for at in near.held), -near.score))
        firsts: dict[str, Near] = {}
        again = [near for near in found if firsts.setdefault(near.hit.entry.text, near) is not near]
        return [*firsts.values(), *again]

    def confirmed(self, near: Near, wanted: Sequence[Wanted]) -> frozenset[int]:
        """Numbers of what stands in the entries beside one, by their texts, and not in it."""
        matcher = Matcher(Query("", tuple([one.term for one in wanted])))
        found: set[int] = set()
        for row, _ in self.neighbours(near.hit.located.row):
            for located in self.evidence.locate_many([row]):
                entry = self.evidence.hydrate([located])[0]
                found |= set() if entry is None else matcher.held(entry.text, entry.apart)
        return frozenset(found - near.held)

    def _is_within(self, row: int) -> bool:
        scope = self.searcher.scope
        if not scope.partly or self.searcher.session_of(row) not in scope.partly:
            return True
        low, high = scope.since, scope.until
        time = self.searcher.spans.times([row]).get(row)
        return time is not None and (low is None or time >= low) and (high is None or time < high)

    # -- neighbours ---------------------------------------------------------------------------------------------------

    def neighbours(self, row: int) -> list[tuple[int, int]]:
        """The rows before and after one on its branch, each with how far away it is."""
        session = self.searcher.session_of(row)
        known = self.views.catalog.sessions[session]
        low, high = known.extent.low, known.extent.high
        hidden = self._hidden.get(session)
        if hidden is None:
            found = self.connection.execute("SELECT id FROM hidden WHERE id BETWEEN ? AND ?", (low, high))
            hidden = self._hidden[session] = {one for (one,) in found}
        if row in hidden or not known.ordered:
            return self._in_tree(row, session)
        sides = (
            self.evidence.spans.between(low, row - 1, descending=True),
            self.evidence.spans.between(row + 1, high),
        )
        visible = ((one.row for one in side if one.text and one.row not in hidden) for side in sides)
        return [(one, distance) for side in visible for distance, one in enumerate(islice(side, REACH), 1)]

    def _in_tree(self, row: int, session: int) -> list[tuple[int, int]]:
        from ..archive.branch import Tree

        known = self.views.catalog.sessions[session]
        tree = self._trees.get(session)
        if tree is None:
            columns = tree_columns(self.connection, known.extent, known.nodes)
            tree = self._trees[session] = Tree(columns, unique=known.ordered)
        node, kinds = known.extent.node(row), tree.kinds
        line = tree.visible_path if tree.visible[node] else tree.line_through(node)
        rows = [known.extent.row(one, TEXT_ROLES[kinds[one]]) for one in line if kinds[one] in TEXT_ROLES]
        at = rows.index(row)
        near = range(max(0, at - REACH), min(len(rows), at + REACH + 1))
        return [(rows[other], abs(other - at)) for other in near if other != at]


def shortness(characters: int) -> float:
    """A preference for entries that say little else: 1 for an empty one, towards 0.5 for a long one."""
    return 1.0 - 0.5 * characters / (characters + 1500)


def _together(matcher: Matcher, entry: Hydrated, held: Collection[int]) -> float:
    """A preference for entries in which what they hold stands together: 1 where it does not, towards 1 + CLOSE."""
    if len(held) < 2:
        return 1.0
    places: dict[int, list[tuple[int, int]]] = {at: [] for at in sorted(held)}
    for place in matcher.places(entry.text, entry.apart):
        if len(places[place.term]) < MOST_PLACES:
            places[place.term].append((place.start // WORD, place.end // WORD))
    best = TOGETHER + IN_ORDER
    return 1.0 + CLOSE * min(best, nearness(list(places.values())) - 1.0) / best
