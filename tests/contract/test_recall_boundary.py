"""The context boundary of a conversation: what counts as earlier for its own agent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from builder import ArchiveBuilder, SessionBuilder, line
from recall_calls import found, last


def session(folder: Path, **header: Any) -> SessionBuilder:
    return ArchiveBuilder(folder).session("own", **header)


def compact(s: SessionBuilder, kept: str | None, **fields: Any) -> str:
    fields |= {} if kept is None else {"firstKeptEntryId": kept}
    return s.add("compaction", summary="what the plover said", tokensBefore=9, **fields)


def test_without_a_boundary_everything_so_far_is_earlier(tmp_path: Path) -> None:
    s = session(tmp_path)
    said = [s.user("first plover"), s.assistant("second plover")]
    s.save()
    assert last(s) == said and sorted(found(s, "plover")) == sorted(said)


def test_after_a_compaction_what_it_did_not_keep_is_earlier(tmp_path: Path) -> None:
    s = session(tmp_path)
    gone = [s.user("one plover"), s.assistant("two plover")]
    kept = s.user("kept plover")
    s.assistant("kept too plover")
    compact(s, kept)
    s.user("later plover")
    s.save()
    assert last(s) == gone
    assert sorted(found(s, "plover")) == sorted(gone)


def test_of_several_compactions_the_newest_counts(tmp_path: Path) -> None:
    s = session(tmp_path)
    one, two = s.user("one plover"), s.user("two plover")
    compact(s, two)
    three, four = s.user("three plover"), s.user("four plover")
    compact(s, four)
    s.user("five plover")
    s.save()
    assert last(s) == [one, two, three]
    assert sorted(found(s, "plover")) == sorted([one, two, three])


def test_a_later_compaction_may_keep_more_than_an_earlier_one(tmp_path: Path) -> None:
    s = session(tmp_path)
    one, two = s.user("one"), s.user("two")
    three = s.user("three")
    compact(s, three)
    compact(s, two)
    s.save()
    assert last(s) == [one]


@pytest.mark.parametrize("kept", [None, "nowhere", "itself", "after"])
def test_a_compaction_that_keeps_nothing_of_the_past_is_the_boundary_itself(tmp_path: Path, kept: str | None) -> None:
    s = session(tmp_path)
    gone = [s.user("one plover"), s.assistant("two plover")]
    fields = {None: {}, "itself": {"key": "itself"}}.get(kept, {})
    compact(s, kept, **fields)
    s.user("later plover", key="after")
    s.save()
    assert last(s) == gone
    assert sorted(found(s, "plover")) == sorted(gone)


def test_a_first_kept_entry_on_another_branch_does_not_count(tmp_path: Path) -> None:
    s = session(tmp_path)
    root = s.user("root plover")
    left = s.user("left plover")
    right = s.user("right plover", parent=root)
    compact(s, left)
    s.user("later plover")
    s.save()
    assert last(s) == [root, right]
    assert sorted(found(s, "plover")) == sorted([root, right])


def test_a_boundary_on_a_branch_that_was_left_does_not_count(tmp_path: Path) -> None:
    s = session(tmp_path)
    root = s.user("root plover")
    s.user("left plover")
    compact(s, None)
    right = [s.user("right plover", parent=root), s.assistant("answer plover")]
    s.save()
    assert last(s) == [root, *right]
    assert sorted(found(s, "plover")) == sorted([root, *right])


@pytest.mark.parametrize(
    "reset",
    [
        {"type": "reset"},
        {"type": "pi.reset"},
        {"type": "custom", "customType": "reset"},
        {"type": "custom", "customType": "pi.reset"},
    ],
)
def test_a_reset_is_a_boundary(tmp_path: Path, reset: dict[str, str]) -> None:
    s = session(tmp_path)
    gone = [s.user("one plover"), s.assistant("two plover")]
    s.add(**reset)
    s.user("later plover")
    s.save()
    assert last(s) == gone and sorted(found(s, "plover")) == sorted(gone)


def test_the_newest_of_a_compaction_and_a_reset_counts(tmp_path: Path) -> None:
    s = session(tmp_path)
    one, two = s.user("one"), s.user("two")
    compact(s, two)
    three = s.user("three")
    s.add("reset")
    s.user("four")
    s.save()
    assert last(s) == [one, two, three]
    compact(s, three)
    s.save()
    assert last(s) == [one, two]


def test_a_custom_entry_of_another_kind_is_no_boundary(tmp_path: Path) -> None:
    s = session(tmp_path)
    said = [s.user("one")]
    s.add("custom", customType="presettings")
    said.append(s.user("two"))
    s.save()
    assert last(s) == said


def test_a_stored_leaf_moves_the_boundary_with_the_branch(tmp_path: Path) -> None:
    s = session(tmp_path)
    one, two = s.user("one plover"), s.user("two plover")
    compact(s, two)
    s.add("leaf", targetId=two)
    s.save()
    assert last(s) == [one, two]


def test_in_a_version_1_file_the_index_of_the_first_kept_entry_counts_parsed_lines_and_the_header(
    tmp_path: Path,
) -> None:
    s = session(tmp_path, version=None)
    for text in ("one plover", "two plover"):
        s.raw(line({"type": "message", "message": {"role": "user", "content": text}}))
    s.raw("this line does not parse and is not counted")
    s.raw(line({"type": "message", "message": {"role": "user", "content": "three plover"}}))
    s.raw(line({"type": "compaction", "summary": "s", "firstKeptEntryIndex": 3, "tokensBefore": 1}))
    s.raw(line({"type": "message", "message": {"role": "user", "content": "four plover"}}))
    s.save()
    assert [entry[:5] for entry in last(s)] == ["v1-1-", "v1-2-"]
    assert sorted(entry[:5] for entry in found(s, "plover")) == ["v1-1-", "v1-2-"]


def test_where_a_child_stands_before_its_parent_the_bound_still_holds(tmp_path: Path) -> None:
    s = session(tmp_path)
    root = s.user("root plover")
    s.user("kept plover", key="kept", parent="middle")  # written before its parent
    s.user("middle plover", key="middle", parent=root)
    compact(s, "kept", parent="kept")
    s.user("later plover")
    s.save()
    assert last(s) == [root, "middle"]
    assert sorted(found(s, "plover")) == sorted([root, "middle"])


def test_a_reset_at_the_very_beginning_leaves_nothing(tmp_path: Path) -> None:
    s = session(tmp_path)
    s.add("reset")
    s.user("plover")
    s.save()
    assert last(s) == [] and found(s, "plover") == []
