"""A setting that names something of the user's in the place of the index: it is never overwritten."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from harness_session_history import IndexUnavailable
from harness_session_history.index import schema
from index_contents import contents
from world import World


def database(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE accounts(name)")
    connection.execute("INSERT INTO accounts VALUES('a person')")
    connection.commit()
    connection.close()


def database_with_a_log(path: Path) -> None:
    """As a program leaves it that was killed: what it wrote last is in the log only."""
    database(path)
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode=wal")
    connection.execute("INSERT INTO accounts VALUES('another')")
    connection.commit()
    saved = {suffix: Path(str(path) + suffix).read_bytes() for suffix in ("", "-wal")}
    connection.close()
    for suffix, data in saved.items():
        Path(str(path) + suffix).write_bytes(data)


def numbered_database(path: Path) -> None:
    """Another program's, with a mark and a version of its own."""
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA application_id=1")
    connection.execute(f"PRAGMA user_version={schema.VERSION}")
    for table in schema.TABLE_NAMES:
        connection.execute(f"CREATE TABLE {table}(a)")
    connection.commit()
    connection.close()


FOREIGN: dict[str, Callable[[Path], object]] = {
    "a database": database,
    "a database with a log": database_with_a_log,
    "a database of the same tables": numbered_database,
    "a text": lambda path: path.write_text("dear diary"),
    "a short text": lambda path: path.write_text("x"),
    "a long text": lambda path: path.write_text("SQLite format 2\0" * 10_000),
    "zeros": lambda path: path.write_bytes(bytes(100_000)),
    "a transcript": lambda path: path.write_text('{"type":"session","version":3,"id":"a"}\n'),
    "a folder": lambda path: path.mkdir(),
    "a link": lambda path: path.symlink_to("elsewhere"),
}


def state(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Name, mode and content of everything in a folder."""
    return {
        path.name: (path.lstat().st_mode, path.read_bytes() if path.is_file() else b"") for path in folder.iterdir()
    }


@pytest.mark.parametrize("make", FOREIGN.values(), ids=FOREIGN.keys())
def test_what_is_not_ours_is_left_as_it_is(world: World, make: Callable[[Path], object]) -> None:
    folder = world.folder / "own"
    folder.mkdir(mode=0o700)
    make(folder / "file")
    before = state(folder)
    world.say("a", "word")
    world.history(index=folder / "file")
    for arguments in ({"operation": "list"}, {"operation": "search", "query": "word", "refresh": True}):
        problem = world.refused(IndexUnavailable, **arguments)
        assert problem.hint and str(folder) not in str(problem)
        assert state(folder) == before


def test_nothing_is_lost_of_a_file_that_was_put_in_the_place_of_an_index(world: World) -> None:
    """Whether it is our own with a damaged head or the user's cannot be told: it gets another name."""
    world.say("a", "word")
    world.refresh()
    for number in (1, 2):
        world.close()
        world.index.unlink()
        database_with_a_log(world.index)
        assert world.texts("word", refresh=False) == ["word"]
        aside = world.index.with_name(f"{world.index.name}.aside-{number}")
        connection = sqlite3.connect(aside)
        assert connection.execute("SELECT count(*) FROM accounts").fetchone() == (2,)
        connection.close()
    world.close()
    assert len(contents(world.index)["sessions"]) == 1


def test_a_transcript_is_not_moved_even_there(world: World) -> None:
    world.say("a", "word")
    world.refresh()
    world.close()
    world.index.write_text('{"type":"session","version":3,"id":"b"}\n')
    world.refused(IndexUnavailable, operation="list")
    assert world.index.read_text().startswith('{"type":"session"')


def test_an_empty_file_is_taken_for_the_index(world: World) -> None:
    """As programs make it that ask for a temporary name."""
    world.index.parent.mkdir(mode=0o700)
    world.index.touch(0o644)
    world.say("a", "word")
    assert world.texts("word") == ["word"] and world.index.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("version", [schema.VERSION - 1, schema.VERSION + 1])
def test_an_index_of_ours_of_another_version_is_replaced(world: World, version: int) -> None:
    """It is ours by its mark, and disposable."""
    world.say("a", "word")
    world.refresh()
    world.close()
    connection = sqlite3.connect(world.index)
    connection.execute(f"PRAGMA user_version={version}")
    connection.close()
    assert world.texts("word", refresh=False) == ["word"]
    assert not list(world.index.parent.glob("*.aside-*"))


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize("what", ["folder", "file"])
def test_an_index_of_another_user_is_refused(world: World, what: str) -> None:
    world.say("a", "word")
    world.refresh()
    world.close()
    os.chown(world.index if what == "file" else world.index.parent, 65534, 65534)
    before = state(world.index.parent)
    problem = world.refused(IndexUnavailable, operation="list")
    assert "another user" in str(problem) and "SESSION_HISTORY_INDEX" in problem.hint
    assert state(world.index.parent) == before
