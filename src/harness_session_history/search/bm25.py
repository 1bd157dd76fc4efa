"""BM25 as an auxiliary function of FTS5: the score of one row for terms whose rarities are given."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import apsw

if TYPE_CHECKING:
    from .query import Term


K1, B = 1.2, 0.75
#: The score of a row that was not to be scored.
UNWANTED = -1.0


class Weigher:
    """The auxiliary function of one connection: a row's BM25 score for the terms that were set last."""

    def __init__(self, connection: apsw.Connection) -> None:
        self.connection = connection
        self.documents, self.mean = 1, 1.0
        self._revision: int | None = None
        self._unmeasured = True
        self._rarities: Sequence[float] = (1.0,)
        self._groups: Sequence[int] = ()
        self._is_wanted: Callable[[int], bool] | None = None
        connection.register_fts5_function("weigh", self._weigh)
        connection.register_fts5_function("measure", self._measure)

    def learn(self, expressions: Iterable[str], revision: int) -> None:
        """Takes the index's size (rows, mean length in tokens) from a match of any of these, once per revision."""
        for expression in expressions:
            if revision == self._revision:
                return
            sql = "SELECT measure(search) FROM search WHERE search MATCH ? LIMIT 1"
            if self.connection.execute(sql, (expression,)).fetchone() is not None:
                self._revision = revision

    def set(self, terms: Sequence[Term], rarities: Sequence[float]) -> None:
        """What rows are scored for from now on."""
        self._rarities, self._unmeasured = rarities, True
        self._groups = [at for at, term in enumerate(terms) for _ in range(phrases_of(term))]

    @contextlib.contextmanager
    def only(self, is_wanted: Callable[[int], bool]) -> Iterator[None]:
        """Meanwhile only such rows are scored (others are UNWANTED); it is asked once for each, in their order."""
        self._is_wanted = is_wanted
        try:
            yield
        finally:
            self._is_wanted = None

    def _measure(self, api: apsw.FTS5ExtensionApi, *_: object) -> int:
        self._unmeasured = False
        self.documents = max(1, api.row_count)
        self.mean = max(1.0, api.column_total_size(-1) / self.documents)
        return 0

    def _weigh(self, api: apsw.FTS5ExtensionApi, *_: object) -> float:
        if self._is_wanted is not None and not self._is_wanted(api.rowid):
            return UNWANTED
        if self._unmeasured:
            self._measure(api)
        norm = K1 * (1 - B + B * api.column_size(-1) / self.mean)
        rarities = self._rarities
        if len(rarities) == 1:
            count = api.inst_count
            return rarities[0] * count * (K1 + 1) / (count + norm)
        counts = [0] * len(rarities)
        for phrase, group in enumerate(self._groups):
            for column in api.phrase_locations(phrase):
                counts[group] += len(column)
        return sum([r * c * (K1 + 1) / (c + norm) for r, c in zip(rarities, counts, strict=True) if c])


def phrases_of(term: Term) -> int:
    """How many FTS5 phrases a term's expression has (each is one quoted string; words hold no quotes)."""
    return term.expression.count('"') // 2
