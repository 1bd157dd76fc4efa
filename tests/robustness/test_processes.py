"""Work that is done in processes of its own: a large refresh, and reading within it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from builder import ArchiveBuilder
from harness_session_history import IndexUnavailable, SessionHistory
from harness_session_history.doctor.diagnose import diagnose
from harness_session_history.engine.supervisor import Order
from harness_session_history.index.lock import FileLock
from harness_session_history.model.limits import LIMITS
from harness_session_history.model.sources import FileIdentity
from harness_session_history.refresh.extract import Task
from harness_session_history.refresh.processes import end, start
from harness_session_history.refresh.readers import read_frame, write_frame
from index_contents import contents, differences
from world import World, append, replace

Started = list["subprocess.Popen[bytes]"]


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Iterator[Started]:
    """The processes that were started; none is left at the end."""
    processes: Started = []
    plain = subprocess.Popen

    class Noted(plain):  # type: ignore[type-arg, valid-type, misc]
        def __init__(self, *arguments: object, **options: object) -> None:
            super().__init__(*arguments, **options)
            processes.append(self)

    monkeypatch.setattr(subprocess, "Popen", Noted)
    yield processes
    left = [process for process in processes if process.poll() is None]
    for process in left:
        process.kill()
    assert not left


@pytest.fixture(params=["elsewhere", "parallel"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    name = "elsewhere_bytes" if request.param == "elsewhere" else "parallel_bytes"
    monkeypatch.setattr(LIMITS, name, 0)
    return str(request.param)


def fill(world: World) -> None:
    for n in range(12):
        world.say(f"s{n}", f"common word{n}", f"more of word{n}")
    world.session("empty").save(name="2026-03-02T10-00-00-000Z_empty.jsonl")
    (world.root / "--w-demo--" / "other.jsonl").write_text("no session\n")


def without(world: World) -> dict[str, Any]:
    """What an index says that this process made alone."""
    apart = world.folder / "alone" / "history.sqlite3"
    history = SessionHistory(roots=[world.root], index=apart, maintenance=False)
    asyncio.run(history(operation="list", refresh=True))
    asyncio.run(history.close())
    return contents(apart)


def within(world: World) -> dict[str, Any]:
    world.close()
    return contents(world.index)


def test_the_index_is_the_same(world: World, started: Started, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(world)
    assert len(world.found("common", limit=20)) == 12 and started
    session = world.session("s3")
    replace(session.path(), "more of", "less of")
    append(
        world.session("s4").path(),
        [b'{"type":"custom","id":"cccccccc","parentId":null,"timestamp":"2026-03-02T10:00:00Z"}'],
    )
    world.session("s5").path().unlink()
    world.refresh()
    monkeypatch.undo()
    assert not differences(within(world), without(world))


def test_progress_is_told_from_the_other_process(world: World, started: Started, way: str) -> None:
    fill(world)
    told: list[tuple[int, int, int, int]] = []
    asyncio.run(world.history().refresh(progress=lambda *numbers: told.append(numbers)))
    assert told and told[-1][0] == told[-1][1] == 13 and told[-1][2] == told[-1][3]


def test_what_cannot_be_brought_up_to_date_is_reported(world: World, started: Started, way: str) -> None:
    fill(world)
    (world.root / "--w-demo--" / f"2026-03-02T10-00-00-000Z_{'0' * 8}.jsonl").write_text('{"kind":"header","v":4}\n')
    answer = world.ask(operation="list", refresh=True)
    assert not answer["complete"] and answer["freshness"]["sources"]["unavailable"] == 1
    assert len(world.found("common", refresh=False, limit=20)) == 12


@pytest.mark.parametrize("how", ["at once", "not at all"])
def test_a_process_that_is_lost_is_made_up_for(
    world: World, way: str, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(world)
    plain = subprocess.Popen

    def lost(command: list[str], **options: Any) -> subprocess.Popen[bytes]:
        if how == "not at all":
            raise OSError("made up")
        return plain([sys.executable, "-c", "import os; os._exit(1)"], **options)

    monkeypatch.setattr(subprocess, "Popen", lost)
    assert len(world.found("common", limit=20)) == 12
    monkeypatch.undo()
    assert not differences(within(world), without(world))


@pytest.mark.parametrize("executable", [None, ""])
def test_where_the_interpreter_has_no_file_of_its_own_all_is_done_in_one_process(
    world: World, started: Started, way: str, executable: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(world)
    monkeypatch.setattr(sys, "executable", executable)
    world.history(maintenance=True)
    assert len(world.found("common", limit=20)) == 12 and not started
    world.say("late", "late word")
    assert not world.search("common", refresh=False)["complete"] and not started  # nor is there a worker


@pytest.mark.skipif(sys.platform != "linux", reason="paths are Unicode elsewhere")
def test_paths_need_not_be_unicode(world: World, started: Started, way: str) -> None:
    world.root = world.root / os.fsdecode(b"caf\xe9")
    world.index = world.folder / os.fsdecode(b"ind\xe9x") / os.fsdecode(b"\xff.sqlite3")
    fill(world)
    history = world.history(current_session_id="\udce9")
    assert len(world.found("common", limit=20)) == 12 and started
    report = asyncio.run(diagnose(history))
    assert report["index"]["state"] == "sound" and report["sources"]["indexed"] == 13
    session = world.session("s3")
    session.user("late")
    session.save()
    world.index.parent.chmod(0o500)
    assert (
        len(world.found("common", refresh=False, limit=20)) == 11
    )  # (read only, and the one that has changed is stale)
    world.index.parent.chmod(0o700)
    assert len(world.found("late")) == 1


def test_cancelling_ends_the_process(world: World, started: Started, way: str) -> None:
    fill(world)
    history = world.history()

    async def cancel() -> None:
        call = asyncio.create_task(history(operation="list", refresh=True))
        while not started:
            await asyncio.sleep(0.005)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await history(operation="list")

    asyncio.run(cancel())
    assert len(world.found("common", limit=20)) == 12


def test_an_index_that_cannot_be_written_is_reported(
    world: World, started: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(world)
    world.refresh()
    world.say("late", "late word")
    lock = Path(str(world.index) + ".lock")
    lock.unlink()
    lock.mkdir()  # where the lock should be
    monkeypatch.setattr(LIMITS, "elsewhere_bytes", 0)
    assert world.refused(IndexUnavailable, operation="list", refresh=True).hint
    assert len(world.found("common", refresh=False, limit=20)) == 12


@pytest.mark.parametrize("name", ["elsewhere_bytes", "parallel_bytes"])
def test_a_killed_caller_leaves_no_process_behind(world: World, name: str) -> None:
    fill(world)
    program = (
        "import asyncio, os, subprocess, sys, time\n"
        "from harness_session_history import SessionHistory\n"
        "from harness_session_history.refresh import indexer as indexer, readers as pipeline, run as refresh\n"
        "from harness_session_history.model.limits import LIMITS\n"
        f"LIMITS.{name} = 0\n"
        "plain = subprocess.Popen\n"
        "class Told(plain):\n"
        "    def __init__(self, *arguments, **options):\n"
        "        super().__init__(*arguments, **options); print(self.pid, flush=True)\n"
        "subprocess.Popen = Told\n"
        "indexer.Indexer.take = lambda self, item, frames: time.sleep(60)\n"
        "history = SessionHistory(roots=[sys.argv[1]], index=sys.argv[2], maintenance=False)\n"
        "asyncio.run(history(operation='list', refresh=True))"
    )
    held = FileLock(str(world.index) + ".lock")
    if name == "elsewhere_bytes":
        world.index.parent.mkdir(mode=0o700)
        assert held.acquire()  # so that the process has to wait
    caller = subprocess.Popen(
        [sys.executable, "-c", program, str(world.root), str(world.index)], stdout=subprocess.PIPE, text=True
    )
    assert caller.stdout is not None
    child = int(caller.stdout.readline())
    os.kill(child, 0)
    caller.kill()
    caller.wait()
    deadline = time.monotonic() + 20
    while is_running(child):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    held.release()


def bearing(mark: str) -> list[str]:
    """The processes that have inherited a mark in their environment, but for this one."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if mark.encode() in (folder / "environ").read_bytes() and int(folder.name) != os.getpid():
                found.append(folder.name)
    return found


def wait_until(reached: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not reached():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_a_killed_process_of_a_refresh_leaves_no_reader_behind(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MARK", str(tmp_path))
    for name in ("a", "b"):
        world.say(name, "word " * (LIMITS.parallel_bytes // 9))  # enough for reading processes
    world.index.parent.mkdir(mode=0o700)
    worker = start("engine.worker", answers=True)
    assert worker.stdin is not None
    worker.stdin.write(msgspec.json.encode(Order(world.history().settings, maintain=False)) + b"\n")
    worker.stdin.flush()
    wait_until(lambda: len(bearing(str(tmp_path))) >= 2)
    end(worker)
    wait_until(lambda: not bearing(str(tmp_path)))


def is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    try:
        return ") Z" not in Path(f"/proc/{process}/stat").read_text()  # ended, and nobody has asked how
    except OSError:
        return sys.platform != "linux"


def test_what_lies_in_the_callers_folder_stands_in_for_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    (folder / "msgspec.py").write_text("raise SystemExit(3)\n")
    monkeypatch.chdir(folder)
    session = ArchiveBuilder(tmp_path).session("a")
    session.user("hello")
    child = start("refresh.readers", answers=True)
    assert child.stdin is not None and child.stdout is not None
    with child:
        path = session.save()
        write_frame(child.stdin, Task(os.fsencode(path), FileIdentity.of(os.stat(path))))
        child.stdin.close()
        frames = [frame for frame in iter(lambda: read_frame(child.stdout), None)]
    assert len(frames) == 3 and child.returncode == 0
