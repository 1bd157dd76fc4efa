"""A second look at known files tells what a walk would tell, or says that it cannot."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from builder import ArchiveBuilder
from harness_session_history.archive.discovery import walk
from harness_session_history.archive.scanner import remember, revisit
from harness_session_history.model.sources import Root

LONG_AGO = 1_700_000_000
Roots = tuple[Root, ...]


@pytest.fixture
def roots(tmp_path: Path) -> Roots:
    archive = ArchiveBuilder(tmp_path)
    for name in "ab":
        session = archive.session(name)
        session.user("hello")
        session.save(f"--w-{name}--")
    settle(archive.root)
    return (Root(str(archive.root), True, True),)


def settle(root: Path) -> None:
    """Folders look as if they had not changed for long (their time of content; that of the inode cannot be set)."""
    for folder, _, _ in os.walk(root):
        os.utime(folder, (LONG_AGO, LONG_AGO))


def later() -> int:
    """A wall clock long after all that the test has written."""
    return time.time_ns() + 10_000_000_000


def never() -> bool:
    return False


def only_file(roots: Roots) -> Path:
    return min(Path(roots[0].path).rglob("*.jsonl"))


def test_nothing_changed_is_the_same_walk(roots: Roots) -> None:
    seen = walk(roots)
    listing = remember(seen, later())
    assert listing is not None
    again = revisit(listing, never)
    assert again is not None and again.files == seen.files and again.folders == seen.folders
    assert again.started >= seen.started


def test_an_append_is_seen(roots: Roots) -> None:
    listing = remember(walk(roots), later())
    assert listing is not None
    with only_file(roots).open("ab") as file:
        file.write(b"{}\n")
    again = revisit(listing, never)
    assert again is not None and again.files == walk(roots).files


@pytest.mark.parametrize("change", ["new", "gone", "renamed", "new folder", "permissions", "folder gone"])
def test_what_only_a_walk_can_tell_is_left_to_a_walk(roots: Roots, change: str) -> None:
    listing = remember(walk(roots), later())
    assert listing is not None
    path = only_file(roots)
    match change:
        case "new":
            path.with_name("x.jsonl").write_bytes(b"{}\n")
        case "gone":
            path.unlink()
        case "renamed":
            path.rename(path.with_name("y.jsonl"))
        case "new folder":
            path.with_suffix("").mkdir()
        case "permissions":
            path.chmod(0o600)
        case "folder gone":
            path.unlink()
            path.parent.rmdir()
    assert revisit(listing, never) is None


def sibling(roots: Roots, content: bytes) -> Path:
    """A file of this content beside a folder of the same name that holds a transcript."""
    root = Path(roots[0].path)
    (root / "notes").mkdir()
    (root / "notes" / "a.jsonl").write_bytes(b'{"type":"session","id":"a"}\n')
    path = root / "notes.jsonl"
    path.write_bytes(content)
    settle(root)
    return path


def test_a_sibling_that_becomes_a_session_is_left_to_a_walk(roots: Roots) -> None:
    path = sibling(roots, b"")
    listing = remember(walk(roots), later())
    assert listing is not None
    path.write_bytes(b'{"type":"session","id":"notes"}\n')
    assert revisit(listing, never) is None


def test_a_sibling_that_is_a_session_no_longer_is_left_to_a_walk(roots: Roots) -> None:
    path = sibling(roots, b'{"type":"session","id":"notes"}\n')
    listing = remember(walk(roots), later())
    assert listing is not None
    path.write_bytes(b'{"agent":"x"}\n')
    assert revisit(listing, never) is None


@pytest.mark.parametrize("content", [b'{"agent":"x"}\n', b'{"type":"session","id":"notes"}\n'])
def test_a_sibling_that_only_grows_needs_no_walk(roots: Roots, content: bytes) -> None:
    path = sibling(roots, content)
    listing = remember(walk(roots), later())
    assert listing is not None
    for count in (2, 3):
        path.write_bytes(content * count)
        again = revisit(listing, never)
        assert again is not None and again.files == walk(roots).files


def test_a_folder_that_changed_just_before_the_walk_is_not_relied_on(roots: Roots) -> None:
    only_file(roots).with_name("x.jsonl").write_bytes(b"{}\n")
    assert remember(walk(roots), time.time_ns()) is None


def test_links_are_left_to_a_walk(roots: Roots) -> None:
    path = only_file(roots)
    path.with_name("link.jsonl").symlink_to(path)
    assert remember(walk(roots), later()) is None


def test_a_root_that_appears_is_left_to_a_walk(roots: Roots, tmp_path: Path) -> None:
    more = (*roots, Root(str(tmp_path / "later"), False, False))
    listing = remember(walk(more), later())
    assert listing is not None and revisit(listing, never) is not None
    (tmp_path / "later").mkdir()
    assert revisit(listing, never) is None


def test_a_second_look_that_is_cancelled_tells_nothing(roots: Roots) -> None:
    listing = remember(walk(roots), later())
    assert listing is not None and revisit(listing, lambda: True) is None
