"""After a fault everything is as new: the next call is right, no lock is held, no descriptor is left, and no caller ever
meets an error that is not the package's."""

from __future__ import annotations

import asyncio
import errno
import fcntl
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from harness_session_history import SessionHistoryError
from harness_session_history.index import lock as locks
from harness_session_history.index.lock import FileLock
from world import World

ERRORS = [errno.EIO, errno.ENOSPC, errno.EMFILE, errno.EACCES, errno.ESTALE]
CALLS: list[tuple[Any, str]] = [
    (os, "open"), (os, "stat"), (os, "lstat"), (os, "fstat"), (os, "scandir"), (os, "pread"), (os, "readv"),
    (os, "makedirs"), (os, "lseek"), (fcntl, "flock"),
]  # fmt: skip


def everything(world: World) -> list[Any]:
    """What each operation says, an error by its class."""
    session = world.session("a")
    said: list[Any] = []
    for arguments in (
        {"operation": "list", "refresh": True},
        {"operation": "search", "query": "word", "refresh": True},
        {"operation": "search", "query": "word"},
        {"operation": "open", "session_id": session.id, "entry_id": session.user("")},
    ):
        try:
            said.append(asyncio.run((world._history or world.history())(**arguments)))  # type: ignore[arg-type]
        except SessionHistoryError as error:
            said.append(type(error).__name__)
        session.count = 0
    return said


def is_right(said: list[Any]) -> bool:
    counts = [
        len(one["results"]) if "results" in one else len(one["messages"]) for one in said if isinstance(one, dict)
    ]
    return counts == [2, 2, 2, 1]


@pytest.fixture
def small(world: World) -> World:
    world.say("a", "word one")
    session = world.session("b")
    session.user("word two")
    session.add("label", targetId="x")
    session.save()
    return world


@pytest.mark.parametrize("indexed", [False, True], ids=["new", "indexed"])
@pytest.mark.parametrize(("module", "name"), CALLS, ids=[name for _, name in CALLS])
def test_an_error_of_the_system_is_an_error_of_ours_once(
    small: World, monkeypatch: pytest.MonkeyPatch, module: Any, name: str, indexed: bool
) -> None:
    plain: Callable[..., Any] = getattr(module, name)
    count = 0

    def failing(at: int) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            nonlocal count
            count += 1
            if count == at:
                raise OSError(ERRORS[at % len(ERRORS)], "made up", "a path that nobody should see")
            return plain(*arguments, **named)

        return call

    if indexed:
        assert is_right(everything(small))
    for at in range(1, 40):
        count = 0
        if not indexed:
            small.close()
            for path in small.index.parent.glob("*"):
                path.unlink()
        with monkeypatch.context() as patched:
            patched.setattr(module, name, failing(at))
            said = everything(small)
        assert all(isinstance(one, (dict, str)) for one in said)
        assert is_right(everything(small)), (at, said)
        assert not locks._open, "a lock is held"
        if count < at:
            break


@pytest.mark.parametrize("what", ["read", "write", "sync", "open"])
def test_an_error_of_the_disk_is_an_error_of_ours_once(small: World, what: str) -> None:
    from test_faults import Faulty

    faulty = Faulty()
    try:
        for at in range(1, 60):
            count = 0

            def fails(kind: str, name: str, at: int = at) -> type[apsw.Error] | None:
                nonlocal count
                count += kind == what
                return (
                    [apsw.IOError, apsw.FullError, apsw.CantOpenError][at % 3] if kind == what and count == at else None
                )

            Faulty.fails = staticmethod(fails)
            small.close()
            everything(small)
            Faulty.fails = staticmethod(lambda kind, name: None)
            assert is_right(everything(small)), at
            if count < at:
                break
    finally:
        Faulty.fails = staticmethod(lambda kind, name: None)
        small.close()
        faulty.unregister()


def test_a_lock_whose_file_cannot_be_looked_at_is_not_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock = FileLock(str(tmp_path / "lock"))
    for module, name in ((os, "stat"), (os, "fstat"), (fcntl, "flock")):

        def fails(*_: object) -> Iterator[None]:
            raise OSError(errno.EIO, "made up")

        with monkeypatch.context() as patched, pytest.raises(OSError):
            patched.setattr(module, name, fails)
            lock.acquire()
        assert not locks._open
        other = FileLock(lock.path)
        assert other.acquire()
        other.release()


def test_a_reader_that_fell_back_returns_to_the_live_index(small: World, monkeypatch: pytest.MonkeyPatch) -> None:
    from harness_session_history.index.file import IndexFile

    assert is_right(everything(small))
    history = small.history()
    plain = IndexFile._open

    def fallen(self: IndexFile) -> apsw.Connection:
        return self.open_read_only()

    with monkeypatch.context() as patched:
        patched.setattr(IndexFile, "_open", fallen)
        assert len(asyncio.run(history(query="word"))["results"]) == 2
    assert IndexFile._open is plain
    other = World(small.folder)
    other.say("d", "word three")
    other.refresh()  # stays open: what it wrote is in the log
    assert len(asyncio.run(history(query="word"))["results"]) == 3
    other.close()
