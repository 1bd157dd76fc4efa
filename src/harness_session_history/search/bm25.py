"""BM25 as an auxiliary function of FTS5: the score of one row for terms whose rarities are given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import apsw

if TYPE_CHECKING:
    from .expression import Expression
    from .query import Term


K1, B = 1.2, 0.75
#: Places are kept of the first MOST_TERMS terms, and of each phrase at most MOST_PLACES of a row.
MOST_TERMS, MOST_PLACES = 8, 40


class Scorer:
    """The auxiliary function of one connection: a row's BM25 score for the terms that were set last."""

    def __init__(self, connection: apsw.Connection) -> None:
        self.connection = connection
        #: In how many rows of the index an expression was found, since it changed last.
        self.frequencies: dict[Expression, int] = {}
        self._revision: int | None = None
        self._mean = 0.0
        self._rarities: Sequence[float] = (1.0,)
        self._groups: Sequence[tuple[int, int]] = ()
        self._bodies: dict[int, list[list[int]]] = {}
        connection.register_fts5_function("weigh", self._weigh)

    def follow(self, revision: int) -> None:
        """What is known of another revision of the index is forgotten."""
        if revision != self._revision:
            self._revision, self._mean = revision, 0.0
            self.frequencies.clear()

    def set(self, terms: Sequence[Term], rarities: Sequence[float]) -> None:
        """What rows are scored for from now on."""
        self._rarities = rarities
        self._bodies = {}
        self._groups = [
            (at, len(phrase.words) - 1) for at, term in enumerate(terms) for phrase in term.expression.phrases
        ]

    def _weigh(self, api: apsw.FTS5ExtensionApi, *_: object) -> float:
        if not self._mean:
            self._mean = max(1.0, api.column_total_size(-1) / max(1, api.row_count))
        norm = K1 * (1 - B + B * api.column_size(-1) / self._mean)
        rarities = self._rarities
        if len(rarities) == 1:
            count = api.inst_count
            return rarities[0] * count * (K1 + 1) / (count + norm)
        counts = [0] * len(rarities)
        bodies = []
        for phrase, (group, _more) in enumerate(self._groups):
            body, *others = api.phrase_locations(phrase)
            counts[group] += len(body) + sum(map(len, others))
            bodies.append(body)
        if len(rarities) <= MOST_TERMS:
            self._bodies[api.rowid] = bodies
        return sum([r * c * (K1 + 1) / (c + norm) for r, c in zip(rarities, counts, strict=True) if c])

    def places(self, row: int) -> list[list[tuple[int, int]]]:
        """Where the terms stand in the body of a row that was scored: of each the places, from the first to the last word;
        nothing where it was scored for one term or for many."""
        found: list[list[tuple[int, int]]] = [[] for _ in self._rarities]
        for (group, more), body in zip(self._groups, self._bodies.get(row, ()), strict=False):
            found[group] += [(at, at + more) for at in body[:MOST_PLACES]]
        return found
