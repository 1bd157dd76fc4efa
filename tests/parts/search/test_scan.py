"""The ways to look for rows: whichever is taken, the same rows are found, the last ones first."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from builder import stamp
from harness_session_history.index.catalog import Catalog
from harness_session_history.index.file import IndexFile
from harness_session_history.search import rank as search
from harness_session_history.search import scan
from harness_session_history.search.bm25 import Weigher
from harness_session_history.search.query import parse
from harness_session_history.search.rank import Searcher
from harness_session_history.search.scan import EVERYWHERE
from harness_session_history.search.scope import Scope
from world import World

#: What makes one way the only one that is taken.
WAYS: dict[str, dict[str, float]] = {
    "session by session": {"FEW": 1000},
    "some sessions at once": {"FEW": 0, "RANGE_COST": 1 << 40},
    "from the end of each": {"FEW": 1000, "MODERATE": 0},
    "closer together than it seemed": {"FEW": 0, "RANGE_COST": 1 << 40, "AT_ONCE": 1},
    "prefixes as they are": {"FEW": 0, "RANGE_COST": 1 << 40, "SCATTERED": 0.01},
}
QUERIES = ("alpha", "alpha beta", "al*", "al* beta", '"alpha beta"', " ".join(["alpha", "beta", *"cdefghijk"]))

Rows = list[tuple[int, float]]


class Index:
    """A small index, and what its rows are known to be without any of the ways."""

    def __init__(self, world: World) -> None:
        self.connection, _ = IndexFile(str(world.index)).connect()
        self.catalog = Catalog()
        self.catalog.update(self.connection)
        self.keys = self.catalog.ordered_keys()

    def searcher(self, keys: list[int] | None) -> Searcher:
        scope = Scope(sessions=None if keys is None else frozenset(keys))
        return Searcher(self.connection, Weigher(self.connection), scope, self.catalog)

    def rows(self, expression: str, keys: list[int] | None) -> Rows:
        found = self.connection.execute("SELECT rowid FROM search WHERE search MATCH ?", (expression,))
        extents = [self.catalog.sessions[key].extent for key in (self.keys if keys is None else keys)]
        allowed = [row for (row,) in found if any(one.low <= row <= one.high for one in extents)]
        return [(row, 0.0) for row in sorted(allowed, reverse=True)]


@pytest.fixture
def index(world: World) -> Iterator[Index]:
    """Twelve sessions of one to seven matching entries, and some others between these."""
    for number in range(12):
        texts = [f"alpha beta c d e f g h i j k {number} {n}" for n in range(1 + number % 3 * 3)]
        world.say(f"s{number}", *texts[:2], "nothing of the kind", *texts[2:], "alpine", start=stamp(number * 3600))
    world.refresh()
    index = Index(world)
    yield index
    index.connection.close()


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("way", WAYS)
def test_every_way_finds_the_same(index: Index, way: str, query: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in WAYS[way].items():
        monkeypatch.setattr(scan, name, value)
    expression = parse(query).expression
    for keys in (None, index.keys[1::3], index.keys[2:9], index.keys[4:5], []):
        known, scanner = index.rows(expression, keys), index.searcher(keys)
        inner = (known[-3][0], known[2][0]) if len(known) > 5 else EVERYWHERE
        for low, high in (EVERYWHERE, inner, *(scanner.rows_of(key) for key in index.keys[4:6])):
            within = [(row, score) for row, score in known if low <= row <= high]
            for limit in (1, 3, 10, 1000):
                assert scanner.matches(expression, limit, within=(low, high)) == [row for row, _ in within[:limit]]
                for share in (1, 2, 5):
                    found = scanner.find(expression, limit, within=(low, high), per_session=share)
                    expected = scanner.shared_out(within, share)
                    assert found == expected[: max(limit, len(found))] and len(found) >= min(limit, len(expected))


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("way", WAYS)
def test_no_session_crowds_out_the_others_whichever_way(
    index: Index, way: str, query: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in WAYS[way].items():
        monkeypatch.setattr(scan, name, value)
    monkeypatch.setattr(search, "RANKED", 7)
    monkeypatch.setattr(search, "PER_SESSION", 2)
    monkeypatch.setattr(search, "FEW_TERMS", 11)
    parsed = parse(query)
    for keys in (None, index.keys[1::3], index.keys[2:9]):
        searcher = index.searcher(keys)
        ranked = searcher.rank(parsed)
        assert not ranked.all and all(score > 0 for score, _ in ranked.rows)
        expected = searcher.shared_out(index.rows(parsed.expression, keys), 2)[:7]
        assert sorted(row for _, row in ranked.rows) == sorted(row for row, _ in expected)


def test_what_one_session_has_too_many_of_is_left_out(index: Index) -> None:
    searcher = index.searcher(None)
    first, second = (searcher.rows_of(key)[0] for key in index.keys[:2])
    rows = [(second + 2, 0.5), (second + 1, 0.7), (second, 0.1), (first + 1, 0.2)]
    assert searcher.shared_out(rows, 2) == [rows[0], rows[1], rows[3]]
    assert searcher.shared_out(rows, 3) == rows
