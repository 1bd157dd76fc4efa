"""The ways to look for rows: whichever is taken, the same rows are found, the last ones first."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from builder import stamp
from harness_session_history.index.catalog import Catalog
from harness_session_history.index.file import IndexFile
from harness_session_history.search import rank, scan
from harness_session_history.search.bm25 import Scorer
from harness_session_history.search.expression import Expression
from harness_session_history.search.query import parse
from harness_session_history.search.rank import Searcher
from harness_session_history.search.scope import Scope
from world import World

#: What makes one way the only one that is taken.
WAYS: dict[str, dict[str, float]] = {
    "session by session": {"STATEMENT_COST": 0},
    "many sessions at once": {"STATEMENT_COST": 1 << 40},
    "from the end of each": {"MODERATE": 0},
    "prefixes as they are": {"ALONE": 0, "BESIDE_OTHERS": 0},
    "by estimates": {"SMALL": 0, "COUNTED": 2, "SAMPLE": 2, "LATEST": 3},
}
QUERIES = ("alpha", "alpha beta", "al*", "al* beta", '"alpha beta"', " ".join(["alpha", "beta", *"cdefghijk"]))


class Index:
    """A small index, and what its rows are known to be without any of the ways."""

    def __init__(self, world: World) -> None:
        self.connection, _ = IndexFile(str(world.index)).connect()
        self.catalog = Catalog()
        self.catalog.update(self.connection)
        self.keys = self.catalog.ordered_keys()

    def searcher(self, keys: list[int] | None) -> Searcher:
        scope = Scope(sessions=None if keys is None else frozenset(keys))
        return Searcher(self.connection, Scorer(self.connection), scope, self.catalog)

    def rows(self, expression: Expression, keys: list[int] | None) -> list[tuple[int, list[int]]]:
        """The sessions that have matches, the one that was active last first, with their rows."""
        found = [
            row
            for (row,) in self.connection.execute("SELECT rowid FROM search WHERE search MATCH ?", (str(expression),))
        ]
        rows = []
        for key in self.catalog.latest_keys():
            extent = self.catalog.sessions[key].extent
            own = sorted([row for row in found if extent.low <= row <= extent.high], reverse=True)
            if own and (keys is None or key in keys):
                rows.append((key, own))
        return rows


@pytest.fixture
def index(world: World) -> Iterator[Index]:
    """Twelve sessions of one to seven matching entries, and some others between these; every third goes on at the end."""
    sessions = []
    for number in range(12):
        texts = [f"alpha beta c d e f g h i j k {number} {n}" for n in range(1 + number % 3 * 3)]
        said = (*texts[:2], "nothing of the kind", *texts[2:], "alpine")
        sessions.append(world.say(f"s{number}", *said, start=stamp(number * 3600)))
    world.refresh()
    for number, session in enumerate(sessions):
        if number % 3 == 1:
            session.user("alpha beta c d e f g h i j k", at=stamp((20 - number) * 3600))
            session.save()
    world.refresh()
    index = Index(world)
    assert index.catalog.latest_keys() != index.keys[::-1]
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
        all_rows = [row for _, rows in known for row in rows]
        for wanted in (1, 3, 10, 1000):
            assert scanner.matches(expression, wanted) == all_rows[:wanted]
            for share in (0, 1, 2, 5):
                found = scanner.by_session(scanner.spelled_out(expression), wanted, share=share)
                expected = [(key, rows[:share] if share else rows) for key, rows in known]
                assert [(key, [row for row, _ in rows]) for key, rows in found] == expected
        for key, rows in known:
            found_of_one = scanner.of_session(expression, key, 2, below=rows[0])
            assert [row for row, _ in found_of_one] == rows[1:3]
        assert scanner.count(expression) == len(all_rows) or way == "by estimates"


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("way", WAYS)
def test_the_sessions_that_were_active_last_are_ranked_and_none_crowds_out_the_others(
    index: Index, way: str, query: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in WAYS[way].items():
        monkeypatch.setattr(scan, name, value)
    for name, value in {"RANKED": 7, "PER_SESSION": 2, "FEW_TERMS": 11, "AS_TERMS": 1}.items():
        monkeypatch.setattr(rank, name, value)
    parsed = parse(query)
    for keys in (None, index.keys[1::3], index.keys[2:9]):
        ranked = index.searcher(keys).rank(parsed)
        assert not ranked.all and all(score > 0 for _, score in ranked.rows)
        expected = [row for _, rows in index.rows(parsed.expression, keys) for row in rows[:2]][:7]
        assert sorted(row for row, _ in ranked.rows) == sorted(expected)


def test_where_few_sessions_match_each_gives_more_than_its_share(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rank, "RANKED", 7)
    monkeypatch.setattr(rank, "PER_SESSION", 2)
    keys = [key for key, rows in index.rows("alpha", None) if len(rows) > 3][:2]
    ranked, (first, second) = index.searcher(keys).rank(parse("alpha")), index.rows("alpha", keys)
    assert not ranked.all
    assert {row for row, _ in ranked.rows} == {*first[1][:5], *second[1][:2]}
    assert index.searcher(keys[:1]).rank(parse("alpha")).all
