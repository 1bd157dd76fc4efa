"""The tree of a transcript: leaf, branches, context boundary (contract sections 6 and 11)."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builder import ArchiveBuilder, SessionBuilder
from harness_session_history.archive import branch
from harness_session_history.archive.branch import Boundary, Tree
from harness_session_history.model.entries import Mark, entry_hash, id_column
from transcripts import read


@pytest.fixture
def session(tmp_path: Path) -> SessionBuilder:
    return ArchiveBuilder(tmp_path).session("a")


def tree_of(session: SessionBuilder) -> Tree:
    return read(session.save()).tree


def grown(*entries: tuple[str, str | None], marks: list[Mark] | None = None) -> Tree:
    """A tree of (id, parent id) entries."""
    links: dict[int, int | None] = {}
    before: str | None = None
    for node, (entry_id, parent) in enumerate(entries):
        if parent != before:
            links[node] = entry_hash(parent) if parent else None
        before = entry_id
    return Tree([(id_column([e for e, _ in entries]), b"\3" * len(entries), links, marks or [])])


def test_a_linear_transcript_is_one_branch(session: SessionBuilder) -> None:
    for n in range(4):
        session.user(str(n))
    tree = tree_of(session)
    assert (len(tree), tree.leaf, tree.visible_path, tree.visible) == (4, 3, [0, 1, 2, 3], b"\1\1\1\1")
    assert tree.ordered and tree.superseded == frozenset() and tree.parent(0) is None and tree.parent(3) == 2


def test_an_empty_transcript_has_no_leaf(session: SessionBuilder) -> None:
    tree = tree_of(session)
    assert (tree.leaf, tree.visible_path, tree.visible, tree.boundary()) == (None, [], b"", None)


def test_the_last_entry_is_the_leaf_whatever_its_type(session: SessionBuilder) -> None:
    first = session.user("one")
    session.assistant("two")
    session.add("session_info", parent=first, name="late rename")
    tree = tree_of(session)
    assert tree.leaf == 2 and tree.visible_path == [0, 2]


def test_a_branch_leaves_the_other_one_out() -> None:
    tree = grown(("a", None), ("b", "a"), ("c", "b"), ("d", "a"), ("e", "d"))
    assert tree.visible == b"\1\0\0\1\1" and tree.position(4) == 2 and tree.position(1) is None


def test_a_missing_parent_ends_the_branch() -> None:
    assert grown(("a", None), ("b", "gone"), ("c", "b")).visible_path == [1, 2]


def test_a_new_root_ends_the_branch() -> None:
    assert grown(("a", None), ("b", "a"), ("c", None)).visible_path == [2]


@pytest.mark.parametrize(
    ("entries", "path"),
    [
        ([("a", "a")], [0]),
        ([("a", "b"), ("b", "a")], [0, 1]),
        ([("a", "b"), ("b", "a"), ("c", "b")], [0, 1, 2]),
        ([("a", None), ("b", "a"), ("a", "b")], [1, 2]),
        ([("a", "c"), ("b", "a"), ("c", "b")], [0, 1, 2]),
        ([("a", "d"), ("b", "a"), ("c", "b"), ("d", "b")], [0, 1, 3]),
    ],
)
def test_a_cycle_ends_the_branch(entries: list[tuple[str, str | None]], path: list[int]) -> None:
    tree = grown(*entries)
    assert tree.visible_path == path
    assert all(tree.line_through(node) for node in range(len(tree)))


def test_a_parent_that_lies_later_in_the_file_is_found() -> None:
    tree = grown(("a", None), ("c", "b"), ("b", "a"), ("d", "c"))
    assert tree.visible_path == [0, 2, 1, 3] and not tree.ordered and tree.position(2) == 1


def test_the_last_of_two_entries_with_one_id_counts() -> None:
    tree = grown(("a", None), ("b", "a"), ("c", "b"), ("b", "a"), ("d", "b"))
    assert tree.find(entry_hash("b")) == 3 and tree.superseded == {1}
    assert tree.visible_path == [0, 3, 4] and tree.parent(2) == 3
    assert tree.path(2) == [0, 3, 2]


def test_a_stored_leaf_that_is_last_moves_the_leaf(session: SessionBuilder) -> None:
    first = session.user("one")
    session.assistant("two")
    session.add("leaf", targetId=first)
    assert tree_of(session).visible_path == [0]


def test_entries_after_a_stored_leaf_move_on(session: SessionBuilder) -> None:
    first = session.user("one")
    session.assistant("two")
    session.add("leaf", targetId=first)
    session.user("three", parent=first)
    assert tree_of(session).visible_path == [0, 3]


def test_a_stored_leaf_before_the_root_hides_everything(session: SessionBuilder) -> None:
    session.user("one")
    session.add("leaf", targetId=None)
    tree = tree_of(session)
    assert tree.leaf is None and tree.visible == b"\0\0"


def test_a_stored_leaf_without_its_target_stands_for_itself(session: SessionBuilder) -> None:
    session.user("one")
    session.add("leaf", targetId="gone")
    assert tree_of(session).visible_path == [0, 1]


def test_stored_leaves_that_point_at_each_other_end() -> None:
    tree = grown(
        ("a", None), ("b", "a"), ("c", "b"), marks=[(1, "leaf", entry_hash("c")), (2, "leaf", entry_hash("b"))]
    )
    assert tree.leaf in (1, 2)


def test_the_line_through_an_entry_goes_down_to_its_newest_descendant() -> None:
    tree = grown(("a", None), ("b", "a"), ("c", "b"), ("d", "b"), ("e", "a"), ("f", "d"), ("g", "e"))
    assert tree.line_through(1) == [0, 1, 3, 5]
    assert tree.line_through(2) == [0, 1, 2]
    assert tree.line_through(0) == [0, 4, 6]
    assert tree.line_through(6) == [0, 4, 6]


@pytest.mark.parametrize(
    ("entries", "line"),
    [
        ([("a", None), ("b", "a"), ("x", "b"), ("r", None), ("x", "r")], [0, 1]),
        ([("a", None), ("b", "a"), ("x", "a"), ("r", None), ("x", "r")], [0, 1]),
        ([("a", None), ("x", "a"), ("x", None)], [0]),
        ([("a", None), ("x", "a"), ("b", "x"), ("x", None)], [0]),
    ],
)
def test_a_replaced_entry_is_nobody_s_descendant(entries: list[tuple[str, str | None]], line: list[int]) -> None:
    assert grown(*entries).line_through(0) == line


# Context boundary


def test_without_a_compaction_or_reset_there_is_no_boundary(session: SessionBuilder) -> None:
    session.user("one")
    assert tree_of(session).boundary() is None


def test_a_compaction_begins_the_context_at_its_first_kept_entry(session: SessionBuilder) -> None:
    session.user("one")
    kept = session.user("two")
    session.add("compaction", summary="s", firstKeptEntryId=kept)
    session.user("three")
    assert tree_of(session).boundary() == Boundary("compaction", 1)


def test_the_newest_compaction_counts_even_if_it_keeps_an_older_entry(session: SessionBuilder) -> None:
    kept = session.user("one")
    later = session.user("two")
    session.add("compaction", firstKeptEntryId=later)
    session.add("compaction", firstKeptEntryId=kept)
    assert tree_of(session).boundary() == Boundary("compaction", 0)


@pytest.mark.parametrize("kept", ["gone", None, "self1", "off1", "later1"])
def test_a_compaction_that_keeps_nothing_on_its_branch_is_the_boundary(
    session: SessionBuilder, kept: str | None
) -> None:
    root = session.user("one")
    session.user("left", key="off1")
    session.user("two", parent=root)
    session.add("compaction", key="self1", firstKeptEntryId=kept)
    session.user("three", key="later1")
    assert tree_of(session).boundary() == Boundary("compaction", 3)


@pytest.mark.parametrize(("kind", "fields"), [("reset", {}), ("pi.reset", {}), ("custom", {"customType": "pi.reset"})])
def test_a_reset_is_its_own_boundary(session: SessionBuilder, kind: str, fields: dict[str, str]) -> None:
    kept = session.user("one")
    session.add("compaction", firstKeptEntryId=kept)
    session.add(kind, **fields)
    session.user("two")
    assert tree_of(session).boundary() == Boundary("reset", 2)


def test_a_boundary_on_a_branch_that_was_left_does_not_count(session: SessionBuilder) -> None:
    root = session.user("one")
    session.add("reset")
    session.user("two", parent=root)
    assert tree_of(session).boundary() is None


# Laws

ids = st.sampled_from("abcdefgh")
forests = st.lists(st.tuples(ids, st.none() | ids | st.just("z")), max_size=14)


def above(entries: list[tuple[str, str | None]], node: int) -> list[int]:
    """The plain definition of a path, root first."""
    last = {entry_id: n for n, (entry_id, _) in enumerate(entries)}
    found: list[int] = []
    at: int | None = node
    while at is not None and at not in found:
        found.append(at)
        parent = entries[at][1]
        at = None if parent is None else last.get(parent)
    return found[::-1]


@settings(deadline=None, max_examples=300)
@given(forests)
def test_paths_are_those_of_the_plain_definition(entries: list[tuple[str, str | None]]) -> None:
    tree = grown(*entries)
    last = {entry_id: n for n, (entry_id, _) in enumerate(entries)}
    assert tree.superseded == {n for n, (entry_id, _) in enumerate(entries) if last[entry_id] != n}
    for node in range(len(entries)):
        assert tree.path(node) == above(entries, node)
        below = [n for n in last.values() if node in above(entries, n)]
        assert tree.line_through(node) == above(entries, max(below, default=node))
    if entries:
        path = above(entries, len(entries) - 1)
        assert tree.visible_path == path and tree.ordered == (path == sorted(path))
        assert [tree.position(n) for n in path] == list(range(len(path)))
        assert [n for n, seen in enumerate(tree.visible) if seen] == sorted(path)


@settings(deadline=None)
@given(forests, st.integers(0, 14))
def test_a_tree_of_several_chunks_is_the_same_tree(entries: list[tuple[str, str | None]], cut: int) -> None:
    whole = grown(*entries)
    links = whole._links
    first = (whole.ids[: 8 * cut], whole.kinds[:cut], {n: t for n, t in links.items() if n < cut}, [])
    second = (whole.ids[8 * cut :], whole.kinds[cut:], {n: t for n, t in links.items() if n >= cut}, [])
    assert Tree([first, second]).visible_path == whole.visible_path


def test_a_large_tree_with_many_branches_is_walked_quickly() -> None:
    count = 120_000
    made: list[tuple[str, str | None]] = [("0", None)]
    for n in range(1, count):
        made.append((str(n), str(n - 3) if n % 3 == 0 else str(n - 1)))
    tree = grown(*made)
    assert tree.visible.count(1) == count // 3 + 2
    assert tree.line_through(1) == [0, 1, 2]
    assert len(tree.line_through(3)) == len(tree.visible_path)


@given(st.lists(st.integers(-9, 9), max_size=30))
def test_ids_are_told_apart_however_many_at_a_time(numbers: list[int]) -> None:
    for at_once in (1, 4, 100):
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(branch, "AT_ONCE", at_once)
            assert branch._all_differ(numbers) == (len(set(numbers)) == len(numbers))
