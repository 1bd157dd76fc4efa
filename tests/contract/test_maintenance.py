"""The worker in the background, and what keeps the index small and clean (contract: snapshot, freshness, refresh)."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path

import apsw
import pytest

from harness_session_history import IndexUnavailable, SessionHistory
from harness_session_history.engine import supervisor as maintenance
from harness_session_history.index.file import WAL_BYTES, worker_lock
from harness_session_history.index.lock import FileLock
from harness_session_history.index.upkeep import truncate_wal
from harness_session_history.model.limits import LIMITS
from index_contents import contents
from world import World, append, replace

Started = list["subprocess.Popen[bytes]"]


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Iterator[Started]:
    """The workers that were started; none may be left at the end."""
    workers: Started = []
    plain = subprocess.Popen

    class Noted(plain):  # type: ignore[type-arg, valid-type, misc]
        def __init__(self, *arguments: object, **options: object) -> None:
            super().__init__(*arguments, **options)
            workers.append(self)

    monkeypatch.setattr(subprocess, "Popen", Noted)
    yield workers
    for worker in workers:
        try:
            assert worker.wait(20) in (0, -signal.SIGKILL)
        except subprocess.TimeoutExpired:
            worker.kill()
            raise


def until(true: Callable[[], bool], seconds: float = 20.0) -> None:
    """Waits for something that happens in another process."""
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.02)


def is_free(lock: FileLock) -> bool:
    if lock.acquire():
        lock.release()
        return True
    return False


def wal_bytes(world: World) -> int:
    log = Path(str(world.index) + "-wal")
    return log.stat().st_size if log.exists() else 0


def behind(world: World) -> World:
    """A snapshot and a file that it does not know."""
    world.say("a", "word")
    world.refresh()
    world.say("b", "late word")
    return world


# -- the worker ------------------------------------------------------------------------------------------------------------


def test_a_call_that_finds_work_has_it_done_in_the_background(world: World, started: Started) -> None:
    behind(world).history(maintenance=True)
    assert len(world.found("word", refresh=False)) == 1 and len(started) == 1
    until(lambda: len(world.found("word", refresh=False)) == 2)


def test_a_call_that_finds_none_starts_nothing(world: World, started: Started) -> None:
    world.say("a", "word")
    world.history(maintenance=True)
    world.refresh()
    world.found("word", refresh=False)
    assert not started


@pytest.mark.parametrize("how", ["argument", "environment"])
def test_it_can_be_switched_off(world: World, started: Started, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    if how == "environment":
        monkeypatch.setenv("SESSION_HISTORY_MAINTENANCE", "off")
    behind(world).history(maintenance=how == "environment")
    world.found("word", refresh=False)
    assert not started


def test_no_second_worker_is_started_while_one_runs(world: World, started: Started) -> None:
    """Not by the same history, and not by another one, from the moment of the start on."""
    behind(world).history(maintenance=True)
    held = FileLock(str(world.index) + ".lock")  # so that the worker has to wait
    assert held.acquire()
    others = [SessionHistory(roots=[world.root], index=world.index, maintenance=True) for _ in range(3)]
    world.found("word", refresh=False)
    for other in others:
        asyncio.run(other(operation="list"))
    world.found("word", refresh=False)
    assert len(started) == 1
    held.release()
    until(lambda: len(world.found("word", refresh=False)) == 2)
    for other in others:
        asyncio.run(other.close())


def test_a_worker_ends_with_the_program_that_started_it(world: World, started: Started) -> None:
    behind(world).history(maintenance=True)
    held = FileLock(str(world.index) + ".lock")
    assert held.acquire()
    world.found("word", refresh=False)
    world.close()
    assert started[0].poll() is not None and is_free(worker_lock(str(world.index)))
    held.release()


@pytest.mark.parametrize("detached", [False, True])
def test_a_killed_program_leaves_no_worker_but_a_detached_one(world: World, detached: bool) -> None:
    behind(world)
    world.close()
    held = FileLock(str(world.index) + ".lock")
    assert held.acquire()
    program = (
        "import asyncio, os, sys\n"
        "from harness_session_history import SessionHistory\n"
        "history = SessionHistory(roots=[sys.argv[1]], index=sys.argv[2])\n"
        f"if {detached}: history.stand_alone()\n"
        "asyncio.run(history(operation='list')); os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", program, str(world.root), str(world.index)], check=False)
    lock = worker_lock(str(world.index))
    if detached:
        assert not is_free(lock)
        held.release()
    until(lambda: is_free(lock))
    held.release()
    assert len(world.found("word", refresh=False)) == (2 if detached else 1)


def test_the_lock_of_a_killed_worker_is_free_again(world: World, started: Started) -> None:
    behind(world).history(maintenance=True)
    held = FileLock(str(world.index) + ".lock")
    assert held.acquire()
    world.found("word", refresh=False)
    assert not is_free(worker_lock(str(world.index)))
    started[0].kill()
    started[0].wait()
    assert is_free(worker_lock(str(world.index)))
    held.release()
    assert len(world.found("word")) == 2


def test_a_command_hands_its_work_to_a_worker_that_goes_on_alone(world: World) -> None:
    behind(world)
    world.close()
    command = [sys.executable, "-m", "harness_session_history", "search", "word", "--json"]
    done = subprocess.run(
        [*command, "--root", str(world.root), "--index", str(world.index)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    until(lambda: is_free(worker_lock(str(world.index))))
    assert len(world.found("word", refresh=False)) == 2


def test_work_in_the_foreground_is_refused_while_a_worker_runs(world: World) -> None:
    behind(world)
    held = worker_lock(str(world.index))
    assert held.acquire()
    with pytest.raises(IndexUnavailable):
        asyncio.run(world.history().maintain())
    held.release()
    asyncio.run(world.history().maintain())
    assert len(world.found("word", refresh=False)) == 2


def test_watching_takes_in_what_comes_until_it_is_cancelled(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LIMITS, "watch_seconds", 0.05)
    behind(world)
    history = world.history()

    async def watch() -> None:
        task = asyncio.create_task(history.maintain(watch=True))
        while len((await history(query="word"))["results"]) < 2:
            await asyncio.sleep(0.02)
        world.say("c", "later word")
        while len((await history(query="word"))["results"]) < 3:
            await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(asyncio.wait_for(watch(), 30))
    until(lambda: is_free(worker_lock(str(world.index))))


def test_what_came_before_the_watcher_was_there_is_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    watchfiles = pytest.importorskip("watchfiles")
    monkeypatch.setattr(watchfiles, "watch", lambda *_, **__: iter([set(), set(), set()]))  # it sees nothing
    assert len(list(maintenance.changes([str(tmp_path)], lambda: False))) == 1


def test_watching_ends_when_the_history_is_closed(world: World) -> None:
    behind(world)
    history = world.history()

    async def watch() -> None:
        task = asyncio.create_task(history.maintain(watch=True))
        while len((await history(query="word"))["results"]) < 2:
            await asyncio.sleep(0.02)
        await history.close()
        await task

    asyncio.run(asyncio.wait_for(watch(), 30))
    assert is_free(worker_lock(str(world.index)))


@pytest.mark.skipif(sys.platform != "linux", reason="paths are Unicode elsewhere")
def test_a_worker_is_told_paths_that_are_not_unicode(world: World, started: Started) -> None:
    world.root = world.root / os.fsdecode(b"caf\xe9")
    world.index = world.folder / os.fsdecode(b"ind\xe9x") / os.fsdecode(b"\xff.sqlite3")
    behind(world).history(maintenance=True)
    assert len(world.found("word", refresh=False)) == 1 and len(started) == 1
    until(lambda: len(world.found("word", refresh=False)) == 2)


def test_nothing_is_left_of_a_worker_that_has_ended_though_nobody_asks(world: World, started: Started) -> None:
    behind(world).history(maintenance=True)
    world.found("word", refresh=False)
    until(lambda: started[0].returncode is not None)  # (this only looks, it does not ask the system)
    assert started[0].stdin is not None
    until(lambda: started[0].stdin.closed)  # type: ignore[union-attr]


UNCLOSED = (
    "import asyncio\n"
    "from harness_session_history import session_history\n"
    "print(len(asyncio.run(session_history(query='word'))['results']))"
)


def test_a_program_that_ends_while_its_worker_runs_ends_without_a_word(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    behind(world)
    world.close()
    monkeypatch.setenv("SESSION_HISTORY_ROOTS", str(world.root))
    monkeypatch.setenv("SESSION_HISTORY_INDEX", str(world.index))
    held = FileLock(str(world.index) + ".lock")
    assert held.acquire()
    command = [sys.executable, "-W", "error", "-c", UNCLOSED]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "1\n", "")
    until(lambda: is_free(worker_lock(str(world.index))))
    held.release()


def test_a_worker_that_cannot_write_is_not_started(
    world: World, started: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    behind(world).history(maintenance=True)

    def refuse(_: FileLock) -> bool:
        raise PermissionError

    monkeypatch.setattr(FileLock, "acquire", refuse)
    assert len(world.found("word", refresh=False)) == 1 and not started


# -- what deleted sessions said ------------------------------------------------------------------------------------------------


def maintain(world: World) -> None:
    """A round of maintenance; the index stays open, as it does in a program that goes on."""
    asyncio.run((world._history or world.history()).maintain())


def bytes_seen_by_others(world: World) -> bytes:
    """The bytes of the index and its log. (Read in another process: closing a file here would drop SQLite's locks.)"""
    program = "import sys; [sys.stdout.buffer.write(open(path, 'rb').read()) for path in sys.argv[1:]]"
    files = [path for path in sorted(world.index.parent.iterdir()) if "sqlite3" in path.name]
    return subprocess.run([sys.executable, "-c", program, *map(str, files)], capture_output=True, check=True).stdout


@pytest.mark.parametrize("others", [0, 40])
def test_the_tokens_of_a_deleted_session_are_gone_from_the_bytes(world: World, others: int) -> None:
    for n in range(others):
        world.say(f"s{n}", "common words " + "filling " * 50)
    # (No word begins like another: FTS5 stores only where a word differs from the one before.)
    session = world.say("a", "secretword and Xyloquench")
    world.refresh()
    assert {word in bytes_seen_by_others(world) for word in (b"secretword", b"xyloquench")} == {True}
    os.remove(session.path())
    world.refresh()
    maintain(world)
    found = bytes_seen_by_others(world)
    assert b"secretword" not in found and b"xyloquench" not in found
    assert wal_bytes(world) == 0
    assert len(world.found("common", refresh=False, limit=20)) == min(others, 20)


def rewritten(path: Path) -> None:
    data = path.read_bytes().replace(b"secretword", b"[gone]").replace(b"Xyloquench", b"[gone too]")
    path.with_suffix(".new").write_bytes(data)
    os.replace(path.with_suffix(".new"), path)


def edited(path: Path) -> None:
    replace(path, "secretword", "**********")
    replace(path, "Xyloquench", "++++++++++")


def edited_and_grown(path: Path) -> None:
    edited(path)
    append(path, [b'{"type":"message","id":"new","parentId":null,"message":{"role":"user","content":"common later"}}'])


def truncated(path: Path) -> None:
    os.truncate(path, path.read_bytes().index(b'{"type":"message"'))


def superseded(path: Path) -> None:
    lines = [json.loads(line) for line in path.read_bytes().splitlines()[1:]]
    for entry in lines:
        entry["message"]["content"] = "common"
    append(path, [json.dumps(entry).encode() for entry in lines])


@pytest.mark.parametrize(
    ("scrub", "size"), [*product([rewritten, edited, edited_and_grown, truncated, superseded], [1, 400])]
)
def test_the_tokens_of_what_was_scrubbed_are_gone_from_the_bytes(
    world: World, monkeypatch: pytest.MonkeyPatch, scrub: Callable[[Path], None], size: int
) -> None:
    monkeypatch.setattr(LIMITS, "session_entries", 100)  # so that the larger one is written while it is read
    for n in range(20):
        world.say(f"s{n}", "common words " + "filling " * 50)
    session = world.session("a")
    for n in range(size):
        session.user("secretword and Xyloquench" if n == size // 2 else f"common {n}")
    path = session.save()
    world.refresh()
    assert b"secretword" in bytes_seen_by_others(world)
    scrub(path)
    world.refresh()
    maintain(world)
    found = bytes_seen_by_others(world)
    assert b"secretword" not in found and b"xyloquench" not in found and wal_bytes(world) == 0
    assert len(world.found("common", refresh=False, limit=20)) == 20
    assert not world.found("secretword", refresh=False)


def test_nothing_is_purged_for_what_comes_back_in_the_same_words(world: World) -> None:
    path = world.say("a", "common one", "common two").path()
    world.refresh()
    path.with_suffix(".new").write_bytes(path.read_bytes())
    os.replace(path.with_suffix(".new"), path)
    world.refresh()
    (purge,) = apsw.Connection(str(world.index)).execute("SELECT value FROM meta WHERE name='purge'").fetchone()
    assert purge == 0 and len(world.found("common", refresh=False)) == 2


def test_a_worker_is_called_for_what_a_refresh_has_left_to_purge(world: World, started: Started) -> None:
    world.say("b", "other")
    session = world.say("a", "secretword")
    world.refresh()
    os.remove(session.path())
    world.refresh()
    world.history(maintenance=True)
    world.listed(refresh=False)
    assert len(started) == 1
    started[0].wait(20)
    assert b"secretword" not in bytes_seen_by_others(world)


def test_a_purge_waits_for_a_reader_that_holds_the_log(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LIMITS, "patience_ms", 10)
    world.say("b", "other")
    session = world.say("a", "secretword")
    world.refresh()
    reader = apsw.Connection(str(world.index))
    reader.execute("BEGIN; SELECT count(*) FROM spans")
    os.remove(session.path())
    world.refresh()
    maintain(world)
    reader.execute("COMMIT")
    reader.close()
    maintain(world)
    assert b"secretword" not in bytes_seen_by_others(world)


def test_a_restored_session_is_found_again_after_a_purge(world: World) -> None:
    session = world.say("a", "secretword")
    world.refresh()
    data = session.path().read_bytes()
    os.remove(session.path())
    world.refresh()
    maintain(world)
    session.path().write_bytes(data)
    assert world.texts("secretword") == ["secretword"]
    world.close()
    contents(world.index)


# -- growth --------------------------------------------------------------------------------------------------------------------


def grow(world: World, times: int) -> int:
    """So many appends, each with a refresh of its own; returns the most segments that there ever were."""
    session = world.session("a")
    session.user("beginning")
    path = session.save()
    history = world.history()
    world.say("b", "other " * 20)
    segments = 0
    counter = apsw.Connection(":memory:")

    async def work() -> None:
        nonlocal segments
        for n in range(times):
            session.lines.clear()
            session.user(f"addition number{n} with some words that are common to all of them " * 3)
            append(path, session.lines)
            await history(operation="list", refresh=True)
            if n % 10 == 0:
                segments = max(segments, count_segments(world))

    asyncio.run(work())
    counter.close()
    return segments


def count_segments(world: World) -> int:
    connection = apsw.Connection(str(world.index))
    try:
        return int(connection.execute("SELECT count(DISTINCT segid) FROM search_idx").get)
    finally:
        connection.close()


def size_after_closing(world: World) -> int:
    world.close()
    return world.index.stat().st_size


def check_growth(world: World, times: int) -> None:
    segments = grow(world, times)
    assert segments <= 48  # FTS5 fails at 2000
    assert wal_bytes(world) <= 4 * WAL_BYTES
    maintain(world)
    assert wal_bytes(world) == 0
    grown = size_after_closing(world)
    world.index = world.folder / "anew" / "history.sqlite3"
    world.refresh()
    assert grown <= 2 * size_after_closing(world)


def test_many_appends_do_not_bloat_the_index(world: World) -> None:
    check_growth(world, 150)


@pytest.mark.slow
def test_five_hundred_appends_do_not_bloat_the_index(world: World) -> None:
    check_growth(world, 500)


def test_the_log_is_emptied_after_a_large_refresh(world: World) -> None:
    for n in range(200):
        session = world.session(f"s{n}")
        for turn in range(30):
            session.user(f"word{n} turn{turn} " + " ".join(f"w{n}x{turn}x{k}" for k in range(30)))
        session.save()
    world.refresh()
    assert world.index.stat().st_size > 2 * WAL_BYTES > 2 * wal_bytes(world)


def test_a_long_reader_holds_nobody_up_and_the_log_shrinks_when_it_ends(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LIMITS, "patience_ms", 10)
    world.say("a", "word")
    world.refresh()
    reader = apsw.Connection(str(world.index))
    reader.execute("BEGIN")
    seen = reader.execute("SELECT count(*) FROM spans").get
    for n in range(30):
        world.say(f"s{n}", " ".join(f"word{n}x{k}" for k in range(300)))
        world.refresh()
        assert len(world.found(f"word{n}x7", refresh=False)) == 1
    maintain(world)
    held = wal_bytes(world)
    assert held > 0 and reader.execute("SELECT count(*) FROM spans").get == seen
    reader.execute("COMMIT")
    reader.close()
    maintain(world)
    assert wal_bytes(world) == 0


def test_a_worker_is_called_for_a_log_that_has_become_long(
    world: World, started: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.say("a", "word")
    world.refresh()
    monkeypatch.setattr(LIMITS, "long_wal_bytes", 1)
    reader = apsw.Connection(str(world.index))
    reader.execute("SELECT count(*) FROM spans").get  # noqa: B018  (keeps the log from being removed)
    world.history(maintenance=True)
    assert wal_bytes(world) > 1
    world.listed(refresh=False)
    assert len(started) == 1
    started[0].wait(20)
    assert wal_bytes(world) == 0
    reader.close()


@pytest.mark.parametrize("error", [apsw.FullError, apsw.IOError, apsw.BusyError])
def test_a_log_that_cannot_be_emptied_is_left_for_another_time(error: type[apsw.Error]) -> None:
    class Full:
        def set_busy_timeout(self, milliseconds: int) -> None: ...

        def wal_checkpoint(self, **mode: int) -> None:
            raise error("made up")

    assert not truncate_wal(Full())  # type: ignore[arg-type]


def test_many_replaced_sessions_leave_few_segments(world: World) -> None:
    """Whatever is replaced in one refresh, in one go or one after the other, segments stay far from FTS5's limit."""
    for turn in range(4):
        for n in range(60):
            world.say(f"s{n}", f"version{turn} of session{n}")
        world.refresh()
    assert count_segments(world) <= 48
    assert len(world.found("version3", refresh=False, limit=20)) == 20 and not world.found("version2", refresh=False)


def segments(world: World) -> int:
    connection = apsw.Connection(str(world.index))
    found = connection.execute("SELECT count(DISTINCT segid) FROM search_idx").get
    connection.close()
    assert isinstance(found, int)
    return found


def test_many_small_refreshes_leave_few_segments(world: World) -> None:
    session = world.session("a")
    session.user("word0 common")
    session.save()
    most = 0
    for n in range(1, 60):
        session.lines.clear()
        session.user(f"word{n} common")
        append(session.path(), session.lines)
        assert world.texts(f"word{n}") == [f"word{n} common"]
        most = max(most, segments(world))
    assert 8 < most <= 20
    assert len(world.texts("common", limit=20)) == 20


def test_maintenance_joins_segments(world: World) -> None:
    for n in range(12):
        world.say(f"s{n}", f"word{n} common")
        world.refresh()
    assert segments(world) == 12
    maintain(world)
    assert segments(world) == 1
    assert len(world.texts("common")) == 10


def test_segments_that_a_large_refresh_had_no_time_to_join_are_left_to_maintenance(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(12):
        world.say(f"s{n}", f"word{n} common")
        world.refresh()
    monkeypatch.setattr(LIMITS, "parallel_bytes", 0)
    monkeypatch.setattr(LIMITS, "merge_seconds", 1e9)
    world.say("last", "word12 common")
    world.refresh()
    assert segments(world) == 13
    handle = world._history._engine.readers.handle  # type: ignore[union-attr]
    world.texts("common")
    assert handle.catalog.merge
    maintain(world)
    assert segments(world) == 1
    world.texts("common")
    assert not handle.catalog.merge


def pages(index: Path) -> int:
    connection = apsw.Connection(str(index), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        return int(connection.pragma("page_count"))
    finally:
        connection.close()


def test_an_index_without_a_worker_stays_below_twice_the_size_of_a_new_one(world: World) -> None:
    chance = random.Random(7)
    words = [f"word{n}" for n in range(3000)]

    def said() -> list[str]:
        return [" ".join(chance.choices(words, k=80)) for _ in range(30)]

    for n in range(20):
        world.say(f"s{n}", *said())
    world.refresh()
    sizes = []
    for n in range(100):
        world.say(f"s{n % 20}", *said())  # every word of it is another one
        world.refresh()
        sizes.append(pages(world.index))
    world.close()
    new = world.folder / "new" / "history.sqlite3"
    world.history(index=new)
    world.refresh()
    assert max(sizes) <= 2 * pages(new)
