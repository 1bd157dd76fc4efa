"""Which files are session files, whose they are, and what their places and names say."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder import ArchiveBuilder
from harness_session_history.archive.discovery import MAX_DEPTH, walk
from harness_session_history.model import names
from harness_session_history.model.names import cwd_key, cwd_within
from harness_session_history.model.sources import FileIdentity, Root, SourceFile, Walk, WalkCancelled

OTHER = 4242
needs_chown = pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root gives files away")


def at(path: Path | str, *, explicit: bool = True, required: bool = True) -> Root:
    return Root(str(path), explicit, required)


def put(path: Path, content: bytes = b'{"type":"session","id":"s"}\n') -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def give(path: Path, user: int = OTHER) -> Path:
    os.chown(path, user, -1, follow_symlinks=False)
    return path


def names_in(found: Walk, root: Path) -> list[str]:
    return sorted(os.path.relpath(os.fsdecode(path), root) for path in found.files)


def failures(found: Walk, root: Path) -> dict[str, str]:
    return {os.path.relpath(os.fsdecode(path), root): reason for path, reason in found.unavailable}


def source(found: Walk, path: Path) -> SourceFile:
    return found.files[os.fsencode(path)]


def refuse(monkeypatch: pytest.MonkeyPatch, name: str, path: Path, code: int) -> None:
    """Makes ``os.<name>`` fail for one path, whoever runs the tests."""
    real: Callable[..., Any] = getattr(os, name)

    def failing(given: Any, *rest: Any, **more: Any) -> Any:
        if given == os.fsencode(path):
            raise OSError(code, os.strerror(code))
        return real(given, *rest, **more)

    monkeypatch.setattr(os, name, failing)


# What is a session file


def test_files_at_any_depth_are_found_flat_and_nested(tmp_path: Path) -> None:
    for name in ("flat.jsonl", "--w--/one.jsonl", "--w--/a/b/c/two.jsonl"):
        put(tmp_path / name)
    assert names_in(walk([at(tmp_path)]), tmp_path) == ["--w--/a/b/c/two.jsonl", "--w--/one.jsonl", "flat.jsonl"]


def test_only_names_of_session_files_count(tmp_path: Path) -> None:
    good = [
        ".hidden.jsonl",
        ".jsonl",
        "a.jsonl",
        "a.jsonl.deleted.1767225600000",
        "a.jsonl.reset.2026-03-02T10-00-00.000Z",
    ]
    bad = [
        "a.JSONL",
        "a.json",
        "a.jsonl.bak",
        "a.jsonl.deleted",
        "a.jsonl.reset.",
        "a.jsonl.reset.2026.tmp",
        "jsonl",
        "a.jsonl~",
    ]
    for name in good + bad:
        put(tmp_path / name)
    assert names_in(walk([at(tmp_path)]), tmp_path) == sorted(good)


def test_a_folder_named_like_a_session_file_is_a_folder(tmp_path: Path) -> None:
    put(tmp_path / "x.jsonl" / "a.jsonl")
    assert names_in(walk([at(tmp_path)]), tmp_path) == ["x.jsonl/a.jsonl"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes")
def test_only_regular_files_count(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.jsonl")
    os.symlink(tmp_path / "pipe.jsonl", tmp_path / "link.jsonl")
    found = walk([at(tmp_path)])
    assert not found.files and not found.unavailable


def test_names_need_not_be_valid_utf_8(tmp_path: Path) -> None:
    folder = os.fsencode(tmp_path) + b"/\xff\xfe"
    os.mkdir(folder)
    path = folder + b"/\xe9_\x80.jsonl"
    with open(path, "wb"):
        pass
    found = walk([at(tmp_path)])
    assert list(found.files) == [path] and found.files[path].named_id is None


def test_a_found_file_carries_the_identity_of_its_stat(tmp_path: Path) -> None:
    path = put(tmp_path / "a.jsonl", b"abc\n")
    assert source(walk([at(tmp_path)]), path).identity == FileIdentity.of(os.stat(path))


def test_no_file_is_opened_whose_name_or_place_says_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path / "a.jsonl")
    put(tmp_path / "a" / "notes.txt")
    stem = "2026-03-02T10-00-00-000Z_some-id"
    put(tmp_path / f"{stem}.jsonl", b"")
    child = put(tmp_path / stem / "run" / "session.jsonl")
    monkeypatch.delattr(os, "open")
    assert source(walk([at(tmp_path)]), child).child


# Roots


def test_a_missing_root_that_was_named_is_unreachable_and_reported(tmp_path: Path) -> None:
    (state,) = walk([at(tmp_path / "gone")]).roots
    assert (state.path, state.reachable, state.reported) == (str(tmp_path / "gone"), False, True)


def test_a_missing_default_place_is_unreachable_but_not_reported(tmp_path: Path) -> None:
    (state,) = walk([at(tmp_path / "gone", explicit=False, required=False)]).roots
    assert not state.reachable and not state.reported


def test_a_root_that_is_a_file_is_reported(tmp_path: Path) -> None:
    (state,) = walk([at(put(tmp_path / "a.jsonl"), required=False)]).roots
    assert not state.reachable and state.reported and state.reason == os.strerror(errno.ENOTDIR)


def test_a_root_that_cannot_be_listed_is_reported_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refuse(monkeypatch, "scandir", tmp_path, errno.EACCES)
    found = walk([at(tmp_path, required=False)])
    assert not found.roots[0].reachable and found.roots[0].reported and not found.unavailable and not found.folders


def test_one_unreachable_root_does_not_hide_another(tmp_path: Path) -> None:
    put(tmp_path / "here" / "a.jsonl")
    found = walk([at(tmp_path / "gone"), at(tmp_path / "here")])
    assert [state.reachable for state in found.roots] == [False, True]
    assert [s.root for s in found.files.values()] == [1]


@pytest.mark.parametrize("turned", [False, True])
def test_a_root_inside_another_is_walked_once_whatever_their_order(tmp_path: Path, turned: bool) -> None:
    inner = put(tmp_path / "subagents" / "a.jsonl").parent
    put(tmp_path / "b.jsonl")
    roots = [at(tmp_path), at(inner)]
    found = walk(roots[::-1] if turned else roots)
    assert names_in(found, tmp_path) == ["b.jsonl", "subagents/a.jsonl"]
    assert source(found, inner / "a.jsonl").child and all(state.reachable for state in found.roots)


def test_flat_files_in_pi_s_own_root_are_found_beside_its_subfolders(tmp_path: Path) -> None:
    archive = ArchiveBuilder(tmp_path)
    flat, nested = archive.session("flat").save("."), archive.session("nested").save()
    found = walk([at(archive.root), at(archive.root, explicit=False)])
    assert set(found.files) == {os.fsencode(flat), os.fsencode(nested)}


def test_a_root_may_be_a_link_to_a_folder(tmp_path: Path) -> None:
    put(tmp_path / "real" / "a.jsonl")
    os.symlink("real", tmp_path / "link")
    assert names_in(walk([at(tmp_path / "link")]), tmp_path) == ["link/a.jsonl"]


# Links


def test_a_folder_link_is_followed_wherever_it_leads(tmp_path: Path) -> None:
    put(tmp_path / "elsewhere" / "deep" / "a.jsonl")
    (tmp_path / "root").mkdir()
    os.symlink("../elsewhere", tmp_path / "root" / "link")
    assert names_in(walk([at(tmp_path / "root")]), tmp_path) == ["root/link/deep/a.jsonl"]


def test_a_deeper_folder_link_is_followed_only_where_the_walk_comes_anyway(tmp_path: Path) -> None:
    put(tmp_path / "elsewhere" / "b.jsonl")
    inside = put(tmp_path / "root" / "m" / "a.jsonl")
    put(tmp_path / "root" / "p" / "c.jsonl")
    os.symlink("../../elsewhere", tmp_path / "root" / "p" / "out")
    os.symlink("../m", tmp_path / "root" / "p" / "in")
    found = walk([at(tmp_path / "root")])
    assert names_in(found, tmp_path) == ["root/m/a.jsonl", "root/p/c.jsonl"] and not found.unavailable
    assert os.fsencode(tmp_path / "root" / "p" / "in") in found.folders and inside.exists()


def test_links_behind_a_followed_link_lead_no_further(tmp_path: Path) -> None:
    put(tmp_path / "elsewhere" / "a.jsonl")
    put(tmp_path / "further" / "b.jsonl")
    (tmp_path / "root").mkdir()
    os.symlink("../elsewhere", tmp_path / "root" / "link")
    os.symlink("../further", tmp_path / "elsewhere" / "on")
    assert names_in(walk([at(tmp_path / "root")]), tmp_path) == ["root/link/a.jsonl"]


@pytest.mark.parametrize("place", [".", "p"])
def test_a_link_to_everything_costs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    put(tmp_path / "root" / "p" / "a.jsonl")
    os.symlink("/", tmp_path / "root" / place / "all")
    os.symlink(tmp_path, tmp_path / "root" / place / "above")
    listed: list[bytes] = []
    plain = os.scandir
    monkeypatch.setattr(os, "scandir", lambda path: (listed.append(path), plain(path))[1])
    assert names_in(walk([at(tmp_path / "root")]), tmp_path) == ["root/p/a.jsonl"]
    assert len(listed) == 2


def test_two_ways_to_one_folder_give_each_file_once_by_its_own_path(tmp_path: Path) -> None:
    put(tmp_path / "m" / "a.jsonl")
    for link in ("a-link", "z-link"):
        os.symlink("m", tmp_path / link)
    found = walk([at(tmp_path)])
    assert names_in(found, tmp_path) == ["m/a.jsonl"]
    assert os.fsencode(tmp_path / "z-link") in found.folders


def test_a_cycle_of_folder_links_ends(tmp_path: Path) -> None:
    put(tmp_path / "a" / "x.jsonl")
    put(tmp_path / "b" / "y.jsonl")
    os.symlink("..", tmp_path / "a" / "up")
    os.symlink("../b", tmp_path / "a" / "b")
    os.symlink("../a", tmp_path / "b" / "a")
    os.symlink("self", tmp_path / "self")
    assert names_in(walk([at(tmp_path)]), tmp_path) == ["a/x.jsonl", "b/y.jsonl"]


def test_a_broken_folder_link_is_no_session_file(tmp_path: Path) -> None:
    os.symlink("/nonexistent/folder", tmp_path / "--broken--")
    assert not walk([at(tmp_path)]).unavailable


def test_a_broken_link_named_like_a_session_file_is_unavailable(tmp_path: Path) -> None:
    os.symlink("gone.jsonl", tmp_path / "a.jsonl")
    os.symlink("b.jsonl", tmp_path / "b.jsonl")
    assert set(failures(walk([at(tmp_path)]), tmp_path)) == {"a.jsonl", "b.jsonl"}


def test_a_file_link_and_its_target_inside_the_roots_are_one_source(tmp_path: Path) -> None:
    target = put(tmp_path / "z" / "target.jsonl")
    os.symlink("z/target.jsonl", tmp_path / "a.jsonl")
    found = walk([at(tmp_path)])
    assert names_in(found, tmp_path) == ["z/target.jsonl"] and not found.unavailable
    assert found.aliases == {os.fsencode(tmp_path / "a.jsonl"): os.fsencode(target)}


def test_a_file_link_into_another_root_is_inside_the_roots(tmp_path: Path) -> None:
    put(tmp_path / "two" / "a.jsonl")
    (tmp_path / "one").mkdir()
    os.symlink("../two/a.jsonl", tmp_path / "one" / "link.jsonl")
    found = walk([at(tmp_path / "one"), at(tmp_path / "two")])
    assert names_in(found, tmp_path) == ["two/a.jsonl"] and not found.unavailable


def test_a_file_link_to_a_file_inside_the_roots_of_any_name_is_a_source(tmp_path: Path) -> None:
    put(tmp_path / "kept" / "a.txt")
    os.symlink("kept/a.txt", tmp_path / "a.jsonl")
    os.symlink("kept/a.txt", tmp_path / "b.jsonl")
    assert names_in(walk([at(tmp_path)]), tmp_path) == ["a.jsonl"]


def test_a_file_link_that_leaves_the_roots_is_unavailable(tmp_path: Path) -> None:
    put(tmp_path / "outside.jsonl")
    (tmp_path / "root").mkdir()
    os.symlink("../outside.jsonl", tmp_path / "root" / "a.jsonl")
    found = walk([at(tmp_path / "root")])
    assert not found.files and failures(found, tmp_path) == {"root/a.jsonl": "a link that leaves the roots"}


def test_hard_links_are_one_source_by_the_name_that_is_not_deleted(tmp_path: Path) -> None:
    first = put(tmp_path / "a.jsonl.deleted.1767225600000")
    for name in ("c.jsonl", "b.jsonl"):
        os.link(first, tmp_path / name)
    found = walk([at(tmp_path)])
    assert names_in(found, tmp_path) == ["b.jsonl"] and len(found.aliases) == 2


# Owners


@needs_chown
def test_another_user_s_files_are_passed_over_in_silence(tmp_path: Path) -> None:
    put(tmp_path / "mine.jsonl")
    give(put(tmp_path / "theirs.jsonl"))
    os.symlink("theirs.jsonl", tmp_path / "link.jsonl")
    os.symlink("nowhere", tmp_path / "broken.jsonl")
    give(tmp_path / "broken.jsonl")
    found = walk([at(tmp_path)])
    assert names_in(found, tmp_path) == ["mine.jsonl"] and not found.unavailable


@needs_chown
@pytest.mark.parametrize(("explicit", "expected"), [(True, ["mine.jsonl", "theirs.jsonl"]), (False, ["mine.jsonl"])])
def test_the_owner_of_a_root_counts_only_if_the_root_was_named(
    tmp_path: Path, explicit: bool, expected: list[str]
) -> None:
    put(tmp_path / "mine.jsonl")
    give(put(tmp_path / "theirs.jsonl"))
    give(put(tmp_path / "third.jsonl"), OTHER + 1)
    give(tmp_path)
    assert names_in(walk([at(tmp_path, explicit=explicit)]), tmp_path) == expected


@needs_chown
@pytest.mark.parametrize("turned", [False, True])
def test_the_owner_of_an_inner_root_counts_only_in_it(tmp_path: Path, turned: bool) -> None:
    inner = give(put(tmp_path / "inner" / "deep" / "a.jsonl")).parent.parent
    give(put(tmp_path / "b.jsonl"))
    give(inner)
    roots = [at(tmp_path, explicit=False), at(inner)]
    assert names_in(walk(roots[::-1] if turned else roots), tmp_path) == ["inner/deep/a.jsonl"]


@needs_chown
def test_who_may_only_write_below_a_root_cannot_widen_it_by_a_link(tmp_path: Path) -> None:
    """A service that reads for a tenant has sessions of its own elsewhere."""
    private = put(tmp_path / "service" / "a.jsonl")
    theirs = put(tmp_path / "elsewhere" / "b.jsonl")
    (tmp_path / "root").mkdir()
    for name in ("service", "elsewhere"):
        os.symlink(f"../{name}", tmp_path / "root" / name)
        os.chown(tmp_path / "root" / name, OTHER, OTHER, follow_symlinks=False)
    for path in (tmp_path / "root", theirs):
        os.chown(path, OTHER, OTHER)
    assert names_in(walk([at(tmp_path / "root")]), tmp_path) == ["root/elsewhere/b.jsonl"]
    os.chown(tmp_path / "root" / "service", 0, 0, follow_symlinks=False)
    assert len(walk([at(tmp_path / "root")]).files) == 2 and private.exists()


@needs_chown
def test_the_effective_user_can_be_given(tmp_path: Path) -> None:
    give(put(tmp_path / "theirs.jsonl"))
    assert names_in(walk([at(tmp_path, explicit=False)], euid=OTHER), tmp_path) == ["theirs.jsonl"]


@needs_chown
def test_another_user_s_closed_folder_is_passed_over_in_silence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    give(put(tmp_path / "theirs" / "a.jsonl").parent)
    refuse(monkeypatch, "scandir", tmp_path / "theirs", errno.EACCES)
    assert not walk([at(tmp_path)]).unavailable


def test_without_owners_on_the_system_every_file_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path / "a.jsonl")
    monkeypatch.delattr(os, "geteuid", raising=False)
    assert names_in(walk([at(tmp_path)]), tmp_path) == ["a.jsonl"]


# Children


def test_files_below_a_folder_named_like_a_sibling_session_are_its_children(tmp_path: Path) -> None:
    parent, child = put(tmp_path / "p.jsonl"), put(tmp_path / "p" / "run" / "run-0" / "session.jsonl")
    found = walk([at(tmp_path)])
    assert not source(found, parent).child and source(found, child).child
    assert found.parent(source(found, child)) is source(found, parent)


def test_the_nearest_sibling_is_the_parent(tmp_path: Path) -> None:
    put(tmp_path / "p.jsonl")
    middle = put(tmp_path / "p" / "q.jsonl")
    found = walk([at(tmp_path)])
    put(tmp_path / "p" / "q" / "forks" / "r.jsonl")
    found = walk([at(tmp_path)])
    assert source(found, tmp_path / "p" / "q" / "forks" / "r.jsonl").parent_path == os.fsencode(middle)


@pytest.mark.parametrize("folder", ["subagents", "tasks", "forks"])
def test_files_under_folders_of_children_are_children(tmp_path: Path, folder: str) -> None:
    child = put(tmp_path / "--w--" / folder / "deep" / "a.jsonl")
    found = walk([at(tmp_path)])
    assert source(found, child).child and found.parent(source(found, child)) is None


def test_a_root_that_is_named_like_a_folder_of_children_holds_none(tmp_path: Path) -> None:
    path = put(tmp_path / "tasks" / "a.jsonl")
    assert not source(walk([at(tmp_path / "tasks")]), path).child


def test_a_folder_beside_other_sessions_makes_no_children(tmp_path: Path) -> None:
    put(tmp_path / "p.jsonl")
    path = put(tmp_path / "q" / "a.jsonl")
    assert not source(walk([at(tmp_path)]), path).child


FOREIGN = {
    "nothing": b"",
    "another log": b'{"agent":"x"}\n' * 300,
    "a log of long lines": b'{"agent":"' + b"x" * 70_000 + b'"}\n',
    "entries without a header": b'{"type":"message","id":"a","parentId":null,"timestamp":1,"message":{"role":"user"}}\n',
}


@pytest.mark.parametrize("content", FOREIGN.values(), ids=FOREIGN)
def test_a_folder_named_like_a_file_that_is_no_session_makes_no_children(tmp_path: Path, content: bytes) -> None:
    put(tmp_path / "notes.jsonl", content)
    path = put(tmp_path / "notes" / "a.jsonl")
    assert not source(walk([at(tmp_path)]), path).child


def test_a_sibling_s_header_may_stand_behind_other_lines(tmp_path: Path) -> None:
    put(
        tmp_path / "p.jsonl", b'{"type":"title"}\nnonsense\n{"x":"' + b"x" * 70_000 + b'"}\n{"type":"session","id":"s"}'
    )
    path = put(tmp_path / "p" / "a.jsonl")
    assert source(walk([at(tmp_path)]), path).child


def test_a_folder_that_makes_no_children_leaves_them_those_of_the_one_above(tmp_path: Path) -> None:
    parent = put(tmp_path / "p.jsonl")
    put(tmp_path / "p" / "notes.jsonl", b"[]\n")
    path = put(tmp_path / "p" / "notes" / "a.jsonl")
    put(tmp_path / "tasks.jsonl", b"[]\n")
    task = put(tmp_path / "tasks" / "a.jsonl")
    found = walk([at(tmp_path)])
    assert found.parent(source(found, path)) is source(found, parent)
    assert source(found, task).child and source(found, task).parent_path is None


def test_of_several_siblings_of_one_stem_the_session_is_the_parent(tmp_path: Path) -> None:
    put(tmp_path / "p.jsonl", b"[]\n")
    put(tmp_path / "p.jsonl.deleted.2026-03-02T10-00-00-000Z")
    archived = put(tmp_path / "p.jsonl.reset.2026-03-02T10-00-00-000Z")
    path = put(tmp_path / "p" / "a.jsonl")
    assert source(walk([at(tmp_path)]), path).parent_path == os.fsencode(archived)


def test_a_sibling_that_cannot_be_looked_into_is_taken_at_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path / "p.jsonl")
    path = put(tmp_path / "p" / "a.jsonl")
    refuse(monkeypatch, "open", tmp_path / "p.jsonl", errno.EACCES)
    assert source(walk([at(tmp_path)]), path).child


@pytest.mark.parametrize("mark", [".reset.2026-03-02T10-00-00-000Z", ".deleted.1767225600000"])
def test_an_archived_or_deleted_parent_keeps_its_children(tmp_path: Path, mark: str) -> None:
    parent = put(tmp_path / f"p.jsonl{mark}")
    child = put(tmp_path / "p" / "a.jsonl")
    assert source(walk([at(tmp_path)]), child).parent_path == os.fsencode(parent)


def test_a_parent_that_is_a_link_is_the_file_it_leads_to(tmp_path: Path) -> None:
    real = put(tmp_path / "z" / "real.jsonl")
    os.symlink("z/real.jsonl", tmp_path / "p.jsonl")
    child = put(tmp_path / "p" / "a.jsonl")
    found = walk([at(tmp_path)])
    assert source(found, child).child and found.parent(source(found, child)) is source(found, real)


def test_children_behind_a_folder_link_are_children(tmp_path: Path) -> None:
    put(tmp_path / "root" / "p.jsonl")
    put(tmp_path / "elsewhere" / "a.jsonl")
    os.symlink("../elsewhere", tmp_path / "root" / "p")
    assert source(walk([at(tmp_path / "root")]), tmp_path / "root" / "p" / "a.jsonl").child


def test_a_subagent_tree_is_found_with_its_artifacts(tmp_path: Path) -> None:
    archive = ArchiveBuilder(tmp_path)
    parent = archive.session("parent").save()
    below = parent.with_suffix("")
    for name in (
        "r1/run-0/session.jsonl",
        "async-2/run-0/session.jsonl",
        "forks/f.jsonl",
        "subagent-artifacts/x.jsonl",
    ):
        put(below / name)
    found = walk([at(archive.root)])
    children = [s for s in found.files.values() if s.child]
    assert len(children) == 4 and all(found.parent(s) is source(found, parent) for s in children)


# What cannot be read, and what vanishes


def test_an_unreadable_folder_is_unavailable_and_not_among_the_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path / "shut" / "a.jsonl")
    put(tmp_path / "open" / "b.jsonl")
    refuse(monkeypatch, "scandir", tmp_path / "shut", errno.EACCES)
    found = walk([at(tmp_path)])
    assert failures(found, tmp_path) == {"shut": os.strerror(errno.EACCES)} and names_in(found, tmp_path) == [
        "open/b.jsonl"
    ]
    assert found.folders == {os.fsencode(tmp_path), os.fsencode(tmp_path / "open")}


def test_a_folder_out_of_reach_is_reported_beside_an_unreachable_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path / "shut" / "a.jsonl")
    refuse(monkeypatch, "stat", tmp_path / "shut", errno.EIO)
    found = walk([at(tmp_path), at(tmp_path / "gone")])
    assert failures(found, tmp_path) == {"shut": os.strerror(errno.EIO)}


@pytest.mark.parametrize("call", ["stat", "scandir"])
@pytest.mark.parametrize("code", [errno.ENOENT, errno.ENOTDIR])
def test_a_folder_that_vanishes_during_the_walk_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, code: int
) -> None:
    put(tmp_path / "going" / "a.jsonl")
    put(tmp_path / "b.jsonl")
    refuse(monkeypatch, call, tmp_path / "going", code)
    found = walk([at(tmp_path)])
    assert names_in(found, tmp_path) == ["b.jsonl"] and not found.unavailable
    assert found.folders == {os.fsencode(tmp_path)}


def test_folders_nested_beyond_reason_are_reported(tmp_path: Path) -> None:
    put(tmp_path / Path(*["d"] * MAX_DEPTH) / "in.jsonl")
    put(tmp_path / Path(*["d"] * (MAX_DEPTH + 1)) / "out.jsonl")
    found = walk([at(tmp_path)])
    assert [s.name for s in found.files.values()] == [b"in.jsonl"]
    assert [reason for _, reason in found.unavailable] == ["nested too deeply"]


def test_a_cancelled_walk_says_nothing(tmp_path: Path) -> None:
    put(tmp_path / "a.jsonl")
    with pytest.raises(WalkCancelled):
        walk([at(tmp_path)], cancelled=lambda: True)


def test_a_large_flat_folder_can_be_cancelled_in_its_midst(tmp_path: Path) -> None:
    for number in range(1500):
        put(tmp_path / f"{number}.jsonl", b"")
    answers = iter([False, False, True])
    with pytest.raises(WalkCancelled):
        walk([at(tmp_path)], cancelled=lambda: next(answers))


# Names


@pytest.mark.parametrize(
    ("name", "said", "time"),
    [
        (b"2026-03-02T10-00-00-000Z_01a2-b.jsonl", "01a2-b", 1772445600000),
        (b"2026-03-02T10-00-00-250Z_my_own.id.jsonl", "my_own.id", 1772445600250),
        (b"2026-03-02T10-00-00-000Z_a.jsonl.reset.2026-04-01T00-00-00-000Z", "a", 1772445600000),
        (b"2026-03-02T10-00-00-000Z_a.jsonl.deleted.1767225600000", "a", 1772445600000),
        (b"2026-13-02T10-00-00-000Z_a.jsonl", "a", None),
        (b"2026-03-02T10-00-00-000Z_\xff.jsonl", None, 1772445600000),
        (b"2026-03-02T10-00-00-000Z_" + b"x" * 129 + b".jsonl", None, 1772445600000),
        (b"2026-03-02T10-00-00-000Z_.jsonl", None, None),
        (b"session.jsonl", None, None),
        (b"2026-03-02T10-00-00-000Z_a.json", None, None),
    ],
)
def test_a_name_carries_a_session_id_and_a_time(name: bytes, said: str | None, time: int | None) -> None:
    assert (names.named_id(name), names.named_time(name)) == (said, time)


def test_without_a_time_in_the_name_the_stamp_is_the_file_s(tmp_path: Path) -> None:
    path = put(tmp_path / "session.jsonl")
    os.utime(path, (5, 5))
    assert source(walk([at(tmp_path)]), path).stamp == 5000


def test_a_deleted_name_is_a_tombstone_and_a_reset_one_is_not() -> None:
    assert names.is_tombstoned(b"a.jsonl.deleted.1") and names.is_tombstoned(b"a.jsonl.reset.1.deleted.2")
    assert not names.is_tombstoned(b"a.jsonl.reset.1") and not names.is_tombstoned(b"a.deleted.1.jsonl")


# Working folders


@pytest.mark.parametrize(
    ("cwd", "folder"),
    [
        ("/w/demo", "/w/demo"),
        ("/w/demo/", "/w/demo"),
        ("/w/demo", "/w/demo//"),
        ("/w/demo/src", "/w"),
        ("/w/demo", "/"),
        ("/", "/"),
        ("/w/./demo", "/w/demo/."),
        ("D:\\x", "d:/x/"),
        ("\\\\?\\D:\\x\\y", "D:\\x"),
        ("d:/x", "D:"),
        ("\\\\?\\UNC\\host\\share\\a", "\\\\host\\share"),
        ("//host/share", "\\\\host\\share\\"),
        ("w/demo", "w"),
    ],
)
def test_a_folder_holds_itself_and_what_lies_below(cwd: str, folder: str) -> None:
    assert cwd_within(cwd, folder)


@pytest.mark.parametrize(
    ("cwd", "folder"),
    [
        (None, "/"),
        ("/w/demo2", "/w/demo"),
        ("/w", "/w/demo"),
        ("/W/demo", "/w/demo"),
        ("D:\\xy", "D:\\x"),
        ("D:\\x", "/"),
        ("w/demo", "/"),
        ("w", "."),
        ("w", ""),
        ("", "/"),
    ],
)
def test_other_folders_lie_outside(cwd: str | None, folder: str) -> None:
    assert not cwd_within(cwd, folder)


_parts = st.lists(
    st.text(st.characters(blacklist_characters="/\\:\0"), min_size=1).filter(lambda part: part != "."), min_size=1
)


@given(_parts, _parts, st.sampled_from(["/", "C:\\", "\\\\?\\C:\\", "\\\\?\\UNC\\"]), st.sampled_from("/\\"))
def test_any_folder_holds_what_is_joined_to_it_and_not_the_other_way(
    above: list[str], below: list[str], top: str, sep: str
) -> None:
    folder = top + sep.join(above)
    assert cwd_within(folder + sep + sep.join(below) + sep, folder) and not cwd_within(
        folder, folder + sep + sep.join(below)
    )
    assert cwd_key(cwd_key(folder)) == cwd_key(folder)
