"""Spans and trees as the index packs them: what goes in comes out, however it was cut into rows."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from hashlib import sha256

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_session_history.index import packing as runs
from harness_session_history.index import spans, trees
from harness_session_history.index.packing import RUN_ENTRIES, RUN_MS, Columns, Located
from harness_session_history.index.schema import TABLES, Extent, IntegrityFault, TreePart
from harness_session_history.index.spans import Spans
from harness_session_history.model.entries import Mark

SESSION, OTHER = Extent(70_000, 4), Extent(70_004, 4)
BASE = SESSION.low
DAY = 86_400_000

Entry = tuple[int, int | None, int, int, bool]
"""(step to the next place, time, gap before it, length, whether it has text)"""
_times = st.none() | st.integers(0, 3) | st.integers(1_700_000_000_000, 1_700_000_000_000 + DAY)
made: st.SearchStrategy[list[Entry]] = st.lists(
    st.tuples(st.integers(1, 9), _times, st.integers(0, 10**7), st.integers(1, 10**6), st.booleans()), max_size=200
)


@pytest.fixture
def connection() -> Iterator[apsw.Connection]:
    made = apsw.Connection(":memory:")
    made.execute(TABLES)
    yield made
    made.close()


def fresh() -> apsw.Connection:
    made = apsw.Connection(":memory:")
    made.execute(TABLES)
    return made


def key(n: int) -> bytes:
    return sha256(b"%d" % n).digest()[:8]


def columns(entries: list[Entry]) -> Columns:
    place = offset = 0
    made = Columns([], [], [], [], [])
    for n, (step, time, gap, length, text) in enumerate(entries):
        place, offset = place + step, offset + gap
        for column, value in zip(made, (place, time, offset, length, key(n) if text else b""), strict=True):
            column.append(value)  # type: ignore[arg-type]
        offset += length
    return made


def located(made: Columns, base: int = BASE) -> list[Located]:
    rows = [base + place for place in made.places]
    bases = [base] * len(rows)
    return [Located(*one) for one in zip(rows, bases, made.times, made.offsets, made.lengths, made.keys, strict=True)]


def part(made: Columns, start: int, end: int) -> Columns:
    return made.only(range(start, end))


@given(made, st.lists(st.integers(0, 200), max_size=6))
def test_spans_come_out_as_they_went_in_whatever_the_parts(entries: list[Entry], cuts: list[int]) -> None:
    connection, all_ = fresh(), columns(entries)
    edges = sorted({0, len(entries), *(cut for cut in cuts if cut < len(entries))})
    for start, end in itertools.pairwise(edges):
        spans.append(connection, SESSION, runs.pack(part(all_, start, end)))
    wanted = located(all_)
    low, high = BASE, SESSION.high
    assert list(Spans(connection).between(low, high)) == wanted
    assert list(Spans(connection).between(low, high, descending=True)) == wanted[::-1]
    looking = Spans(connection)
    assert [looking.locate(one.row) for one in wanted] == wanted
    assert looking.times([one.row for one in wanted]) == {one.row: one.time for one in wanted}
    assert spans.texts(connection, SESSION) == [one for one in wanted if one.text]
    connection.close()


@given(made)
def test_a_run_is_short_in_entries_and_in_time(entries: list[Entry]) -> None:
    for run in runs.pack(columns(entries)):
        own = runs.unpack(run.packed, run.keys)
        assert 0 < len(own.places) <= RUN_ENTRIES
        times = [runs.NO_TIME if time is None else time for time in own.times]
        assert (run.low, run.high) == (min(times), max(times)) and run.high - run.low <= RUN_MS


@given(made, st.sets(st.integers(0, 199)))
def test_what_is_removed_is_gone_and_nothing_else(entries: list[Entry], out: set[int]) -> None:
    connection, wanted = fresh(), located(columns(entries))
    spans.append(connection, SESSION, runs.pack(columns(entries)))
    gone = [one for at, one in enumerate(wanted) if at in out]
    assert spans.remove(connection, [one.row for one in gone]) == [one for one in gone if one.text]
    left = [one for at, one in enumerate(wanted) if at not in out]
    assert list(Spans(connection).between(0, (1 << 63) - 1)) == left
    assert all(Spans(connection).locate(one.row) is None for one in gone)
    connection.close()


def test_a_row_of_no_entry_is_not_found(connection: apsw.Connection) -> None:
    spans.append(connection, SESSION, runs.pack(columns([(4, 1, 0, 10, True), (4, 2, 0, 10, True)])))
    looking = Spans(connection)
    assert looking.locate(BASE | 4) is not None
    for row in (0, BASE, BASE | 3, BASE | 5, BASE | 9, OTHER.low | 4):
        assert looking.locate(row) is None


@given(made, made)
def test_copies_are_the_entries_of_other_sessions_with_the_same_key_and_time(
    entries: list[Entry], others: list[Entry]
) -> None:
    connection = fresh()
    one, two = columns(entries), columns(others)  # equal keys wherever both have an entry at that position
    spans.append(connection, SESSION, runs.pack(one))
    spans.append(connection, OTHER, runs.pack(two))
    theirs = located(two, OTHER.low)
    looking = Spans(connection)
    for mine in located(one):
        if mine.text:
            same = [other for other in theirs if (other.key, other.time) == (mine.key, mine.time)]
            assert looking.copies(mine) == same
    connection.close()


@pytest.mark.parametrize("packed", [b"", b"\x00", b"\x94\x90\x90\x90\x90", b"\xc1" * 40])
def test_a_run_that_makes_no_sense_is_noticed(connection: apsw.Connection, packed: bytes) -> None:
    spans.append(connection, SESSION, runs.pack(columns([(4, 1, 0, 10, True)])))
    connection.execute("UPDATE spans SET packed=?", (packed,))
    with pytest.raises(IntegrityFault):
        Spans(connection).locate(BASE | 4)


# -- trees -------------------------------------------------------------------------------------------------------------

_ids = st.one_of(st.binary(min_size=8, max_size=8), st.integers(0, 1 << 32).map(lambda n: b"%08x" % (n & 0xFFFFFFFF)))
_nodes = st.lists(st.tuples(_ids, st.integers(0, 4)), min_size=1, max_size=600)


@given(_nodes, st.lists(st.integers(0, 600), max_size=6), st.lists(st.integers(0, 600), max_size=4))
def test_trees_come_out_as_they_went_in_whatever_the_parts(
    nodes: list[tuple[bytes, int]], cuts: list[int], odd: list[int]
) -> None:
    connection = fresh()
    ids, kinds = b"".join(id_ for id_, _ in nodes), bytes(kind for _, kind in nodes)
    links: dict[int, int | None] = {node: None if node % 2 else node for node in odd if node < len(nodes)}
    marks: list[Mark] = [(node, "leaf", None) for node in sorted(odd) if node < len(nodes)]
    edges = sorted({0, len(nodes), *(cut for cut in cuts if cut < len(nodes))})
    for start, end in itertools.pairwise(edges):
        own = {node: to for node, to in links.items() if start <= node < end}
        parts: list[TreePart] = list(
            trees.split(
                start, ids[8 * start : 8 * end], kinds[start:end], own, [m for m in marks if start <= m[0] < end]
            )
        )
        trees.append(connection, SESSION, parts)
    assert trees.end_of(connection, SESSION) == len(nodes)
    found = trees.tree_columns(connection, SESSION, len(nodes))
    assert b"".join(one[0] for one in found) == ids and b"".join(one[1] for one in found) == kinds
    assert {node: to for one in found for node, to in one[2].items()} == links
    assert [mark for one in found for mark in one[3]] == marks
    texts = [kind in (3, 4) for kind in kinds]
    for node, (id_, kind) in enumerate(nodes):
        last = max(at for at, (other, _) in enumerate(nodes) if other == id_)
        if node == last:
            place = trees.find(connection, SESSION, len(nodes), id_)
            assert place == (node, kind, sum(texts[:node]), sum(texts[node + 1 :]))
        assert trees.has_any(connection, SESSION, {id_, b"nowhere!"}, below=node) == any(
            other == id_ for other, _ in nodes[:node]
        )
    assert trees.holders(connection, nodes[0][0])
    assert trees.find(connection, SESSION, len(nodes), b"\xff" * 7 + b"\x01") is None
    connection.close()


def test_a_tree_with_a_part_missing_is_noticed(connection: apsw.Connection) -> None:
    trees.append(connection, SESSION, list(trees.split(0, b"%08x" % 1 * 300, bytes(300), {}, [])))
    connection.execute("DELETE FROM trees WHERE id = ?", (BASE,))
    with pytest.raises(IntegrityFault):
        trees.find(connection, SESSION, 300, b"%08x" % 1)
    with pytest.raises(IntegrityFault):
        trees.tree_columns(connection, SESSION, 300)
