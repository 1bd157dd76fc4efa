"""A file is read only if it is the one that the walk saw: what takes its place meanwhile shows nothing."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from builder import SessionBuilder
from harness_session_history import CitationUnavailable
from harness_session_history.refresh import extract
from world import World


def private(world: World) -> Path:
    """Another's session under the same id, outside the roots."""
    folder = world.folder / "private"
    other = SessionBuilder(World(folder), "a")
    other.user("common secret")
    return other.save()


def link(path: Path, target: Path) -> None:
    path.unlink()
    path.symlink_to(target)


def hard_link(path: Path, target: Path) -> None:
    path.unlink()
    os.link(target, path)


def linked_folder(path: Path, target: Path) -> None:
    path.parent.rename(path.parent.with_name("moved"))
    path.parent.symlink_to(target.parent)
    if target.name != path.name:
        target.rename(target.with_name(path.name))


def copy(path: Path, target: Path) -> None:
    path.unlink()
    shutil.copy(target, path)


SWAPS: dict[str, Callable[[Path, Path], None]] = {"link": link, "folder": linked_folder}


@pytest.mark.parametrize("swap", SWAPS.values(), ids=SWAPS.keys())
def test_what_takes_its_place_between_walk_and_reading_is_not_read(
    world: World, monkeypatch: pytest.MonkeyPatch, swap: Callable[[Path, Path], None]
) -> None:
    session = world.session("a")
    session.user("common word")
    path, target = session.save(folder="--w-demo--/deep"), private(world)
    world.say("b", "common other")
    plain, done = extract.read, []

    def raced(task: extract.Task) -> Iterator[extract.Frame]:
        if os.fsdecode(task.path) == str(path) and not done:
            done.append(True)
            swap(path, target)
        return plain(task)

    monkeypatch.setattr(extract, "read", raced)
    answer = world.search("common", refresh=False)
    assert [hit["snippet"] for hit in answer["results"]] == ["common other"] and done
    assert world.texts("secret", refresh=False) == []


@pytest.mark.parametrize("swap", [*SWAPS.values(), hard_link, copy], ids=[*SWAPS, "hard link", "copy"])
def test_what_takes_its_place_after_indexing_is_not_cited(world: World, swap: Callable[[Path, Path], None]) -> None:
    session = world.say("a", "common word")
    world.refresh()
    swap(session.path(), private(world))
    answer = world.search("common", refresh=False)
    assert answer["results"] == [] and answer["unavailableSessionIds"] == [session.id]
    session.lines.clear()
    session.count = 0
    world.refused(CitationUnavailable, operation="open", session_id=session.id, entry_id=session.user(""))


def test_a_file_that_was_replaced_before_it_was_read_is_read_as_it_is_now(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As by a program that writes a copy and renames it."""
    path = world.say("a", "common word").path()
    plain, done = extract.read, []

    def raced(task: extract.Task) -> Iterator[extract.Frame]:
        if not done:
            done.append(True)
            copied = path.with_suffix(".new")
            shutil.copy(path, copied)
            os.replace(copied, path)
        return plain(task)

    monkeypatch.setattr(extract, "read", raced)
    assert world.texts("common") == ["common word"] and done
