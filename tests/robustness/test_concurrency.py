"""Many processes and threads over one index: everybody gets a right answer, and nobody hears of a locked database."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import apsw
import pytest

from harness_session_history import IndexUnavailable, RefreshIncomplete, SessionHistory, SessionHistoryError
from harness_session_history.engine import calls as engine
from harness_session_history.index.lock import FileLock
from harness_session_history.model.limits import LIMITS
from harness_session_history.refresh.plan import Budget, Outcome
from index_contents import contents
from world import World, append

_ASK = """
import asyncio, json, sys
from harness_session_history import SessionHistory, SessionHistoryError
async def main():
    answers = []
    async with SessionHistory(roots=[sys.argv[1]], index=sys.argv[2], maintenance=False) as history:
        sys.stdin.readline()
        for arguments in json.loads(sys.argv[3]):
            try:
                answers.append(await history(**arguments))
            except SessionHistoryError as error:
                answers.append(error.as_dict())
    print(json.dumps(answers))
asyncio.run(main())
"""


def start(world: World, *calls: dict[str, Any]) -> subprocess.Popen[str]:
    """A process that is ready to ask and waits for a line to begin."""
    command = [sys.executable, "-c", _ASK, str(world.root), str(world.index), json.dumps(calls)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def all_at_once(*processes: subprocess.Popen[str]) -> list[list[dict[str, Any]]]:
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    said = []
    for process in processes:
        out, errors = process.communicate(timeout=60)
        assert process.returncode == 0 and "Traceback" not in errors, errors
        said.append(json.loads(out))
    return said


def fill(world: World, sessions: int = 60) -> None:
    for n in range(sessions):
        session = world.session(f"s{n}")
        for turn in range(20):
            session.user(f"common word{n} turn{turn}")
        session.save()


def test_four_cold_processes_at_once_all_find_everything(world: World) -> None:
    fill(world)
    calls = {"query": "word7", "refresh": True}, {"query": "common", "limit": 20}, {"operation": "list", "limit": 20}
    for word, common, listed in all_at_once(*(start(world, *calls) for _ in range(4))):
        assert word["complete"] and {hit["session"]["sessionId"] for hit in word["results"]} == {world.session("s7").id}
        assert len(common["results"]) == len(listed["results"]) == 20
    assert len(contents(world.index)["sessions"]) == 60


def test_four_cold_processes_without_a_refresh_answer_too(world: World) -> None:
    fill(world)
    for (answer,) in all_at_once(*(start(world, {"query": "common"}) for _ in range(4))):
        assert answer["results"] or not answer["complete"]
    world.refresh()
    world.close()
    assert len(contents(world.index)["sessions"]) == 60


def test_processes_that_meet_a_damaged_index_heal_it_together(world: World) -> None:
    fill(world, 20)
    world.index.parent.mkdir(mode=0o700)
    world.index.write_bytes(b"not a database" * 1000)
    for (answer,) in all_at_once(*(start(world, {"query": "word7", "refresh": True}) for _ in range(4))):
        assert len(answer["results"]) == 10, answer
    assert len(contents(world.index)["sessions"]) == 20


def test_readers_go_on_while_others_write(world: World) -> None:
    fill(world, 20)
    world.refresh()
    history = SessionHistory(roots=[world.root], index=world.index, maintenance=False)
    done = threading.Event()
    problems: list[Exception] = []

    def write() -> None:
        try:
            for turn in range(30):
                session = world.session(f"s{turn % 20}")
                session.lines.clear()
                session.user(f"common late{turn}", key=f"late{turn:04}")
                append(session.path(), session.lines)
                asyncio.run(history(operation="list", refresh=True))
        except Exception as problem:  # noqa: BLE001  (told by the test)
            problems.append(problem)
        finally:
            done.set()

    writer = threading.Thread(target=write)
    writer.start()
    answers = 0
    while not done.is_set() or not answers:
        answer = world.search("common", refresh=False, limit=20, sort="newest")
        assert len(answer["results"]) == 20
        answers += 1
    writer.join()
    asyncio.run(history.close())
    assert not problems and answers


def test_a_reader_sees_one_snapshot_to_the_end(world: World) -> None:
    """A search and the session views of its hits are of one moment, whatever is committed in between."""
    fill(world, 5)
    world.refresh()
    other = SessionHistory(roots=[world.root], index=world.index, maintenance=False)
    reader = apsw.Connection(str(world.index))
    reader.execute("BEGIN")
    before = reader.execute("SELECT count(*) FROM spans").get
    world.say("late", "common late")
    asyncio.run(other(operation="list", refresh=True))
    assert reader.execute("SELECT count(*) FROM spans").get == before
    reader.close()
    asyncio.run(other.close())
    assert len(world.found("late")) == 1


def test_a_program_that_locks_the_index_is_waited_for_and_then_reported(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LIMITS, "busy_ms", 100)
    session = world.say("a", "word")
    world.refresh()
    session.user("more")
    session.save()
    stranger = apsw.Connection(str(world.index))
    stranger.execute("BEGIN IMMEDIATE")
    problem = world.refused(SessionHistoryError, operation="list", refresh=True)
    assert problem.code == "refresh_incomplete" and "locked" not in str(problem)
    assert world.texts("word", refresh=False) == ["word"]
    stranger.execute("ROLLBACK")
    stranger.close()
    assert world.texts("more") == ["more"]


def test_many_tasks_of_one_loop_are_answered(world: World) -> None:
    fill(world, 10)
    history = world.history()

    async def ask() -> list[dict[str, Any]]:
        calls = [history(query=f"word{n}", refresh=n % 3 == 0) for n in range(10)]
        return await asyncio.gather(*calls)

    assert all(answer["results"] for answer in asyncio.run(ask()))


def test_threads_with_loops_of_their_own_share_a_history(world: World) -> None:
    fill(world, 10)
    history = world.history()
    found: list[int] = []

    def ask(n: int) -> None:
        found.append(len(asyncio.run(history(query=f"word{n}", refresh=True))["results"]))

    threads = [threading.Thread(target=ask, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [10] * 6


def test_the_loop_goes_on_while_a_call_works(world: World) -> None:
    fill(world, 60)
    history = world.history()
    beats = 0

    async def beat() -> None:
        nonlocal beats
        while True:
            beats += 1
            await asyncio.sleep(0)

    async def ask() -> None:
        heart = asyncio.create_task(beat())
        await history(operation="list", refresh=True)
        heart.cancel()

    asyncio.run(ask())
    assert beats > 100


def test_index_and_log_of_one_process_survive_the_end_of_another(world: World) -> None:
    """The last one to close a database removes its log; nobody may take himself for the last one while others are there."""
    fill(world, 10)
    world.refresh()
    assert world.found("word7", refresh=False)
    for n in range(3):
        world.say(f"late{n}", f"late word{n}")
        ((answer,),) = all_at_once(start(world, {"operation": "list", "refresh": True}))
        assert answer["complete"] and Path(str(world.index) + "-shm").exists()
        assert len(world.found("late", refresh=False)) == n + 1


# -- closing -----------------------------------------------------------------------------------------------------------------


class Busy:
    """The lane that writes is busy, because somebody else holds the index."""

    def __init__(self, world: World, history: SessionHistory) -> None:
        self.history, self.lock = history, FileLock(str(world.index) + ".lock")

    async def __aenter__(self) -> None:
        assert self.lock.acquire()
        self.refreshing = asyncio.create_task(self.history.refresh())
        await asyncio.sleep(0)

    async def __aexit__(self, *what: object) -> None:
        self.lock.release()
        await self.refreshing


def behind(world: World) -> SessionHistory:
    """A history whose snapshot is of one session of two."""
    world.say("a", "word")
    world.refresh()
    world.say("b", "late word")
    return world.history()


def test_a_call_that_has_begun_is_finished_in_all_its_steps_before_the_history_is_closed(world: World) -> None:
    history = behind(world)
    lock = FileLock(str(world.index) + ".lock")
    assert lock.acquire()

    async def scenario() -> dict[str, Any]:
        call = asyncio.create_task(history(query="word", refresh=True))
        await asyncio.sleep(0)
        closing = asyncio.create_task(history.close())
        while not history._work.threads.closed:
            await asyncio.sleep(0.01)
        with pytest.raises(IndexUnavailable, match="closed"):
            await history(query="word")
        assert not closing.done()
        lock.release()
        await closing
        return await call

    assert len(asyncio.run(scenario())["results"]) == 2


def test_closing_waits_for_calls_of_a_loop_that_it_holds_up_itself(world: World) -> None:
    history = behind(world)

    async def scenario() -> dict[str, Any]:
        call = asyncio.create_task(history(query="word", refresh=True))
        await asyncio.sleep(0)
        history.close_now()
        return await call

    assert len(asyncio.run(scenario())["results"]) == 2


def test_closing_does_not_wait_for_a_call_that_was_cancelled(world: World) -> None:
    history = behind(world)

    async def scenario() -> None:
        async with Busy(world, history):
            call = asyncio.create_task(history(query="word", refresh=True))
            await asyncio.sleep(0)
            call.cancel()
        await history.close()
        with pytest.raises(asyncio.CancelledError):
            await call

    asyncio.run(scenario())


def test_whoever_closes_a_history_second_waits_for_the_first(world: World) -> None:
    history = behind(world)
    lock = FileLock(str(world.index) + ".lock")
    assert lock.acquire()

    async def scenario() -> None:
        call = asyncio.create_task(history(query="word", refresh=True))
        await asyncio.sleep(0)
        closings = [asyncio.create_task(history.close()) for _ in range(2)]
        await asyncio.sleep(0.05)
        assert not any(closing.done() for closing in closings)
        lock.release()
        await asyncio.gather(call, *closings)

    asyncio.run(scenario())


# -- waiting for a lane --------------------------------------------------------------------------------------------------------


def test_a_refresh_that_waits_for_another_of_its_history_is_incomplete_at_its_deadline_and_never_done(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    history = behind(world)
    monkeypatch.setattr(LIMITS, "refresh_seconds", 0.1)
    done: list[object] = []
    plain = history._engine.updater.refresh

    def counted(*given: Any, **more: Any) -> Outcome:
        done.append(given)
        return plain(*given, **more)

    monkeypatch.setattr(history._engine.updater, "refresh", counted)

    async def scenario() -> None:
        async with Busy(world, history):
            with pytest.raises(RefreshIncomplete) as problem:
                await history(query="word", refresh=True)
            assert problem.value.details["left"] == 1
            assert len((await history(query="word"))["results"]) == 1  # plain answers go on
        assert len((await history(query="word"))["results"]) == 2

    asyncio.run(scenario())
    assert len(done) == 1


def test_a_refresh_in_a_thread_of_its_own_waits_no_longer_for_a_busy_lane(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    history = behind(world)
    monkeypatch.setattr(LIMITS, "refresh_seconds", 0.1)

    async def scenario() -> None:
        async with Busy(world, history):
            with pytest.raises(RefreshIncomplete):
                await asyncio.to_thread(history.ask, operation="list", refresh=True)

    asyncio.run(scenario())


def test_a_first_call_does_not_wait_for_a_busy_lane_to_the_end(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LIMITS, "first_build_seconds", 0.1)
    world.say("a", "word")
    history = world.history()

    async def scenario() -> None:
        history._engine.index.prepare_folder()
        async with Busy(world, history):
            assert not (await history(query="word"))["complete"]
        assert (await history(query="word"))["complete"]

    asyncio.run(scenario())


def test_a_conversation_does_not_wait_for_a_busy_lane_to_the_end(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LIMITS, "recall_seconds", 0.1)
    session = world.say("a", "word")
    world.refresh()
    session.user("late word")
    session.save()
    history = world.history()

    async def scenario() -> None:
        conversation = history.conversation(session.id)
        async with Busy(world, history):
            assert len((await conversation.search("word"))["hits"]) == 1
        assert len((await conversation.search("word"))["hits"]) == 2

    asyncio.run(scenario())


def test_reading_ends_so_early_that_what_was_read_can_be_saved_in_time(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    history = behind(world)
    deadlines: list[float | None] = []

    def noted(_handle: object, budget: Budget, *_: object, **more: object) -> Outcome:
        deadlines.append(budget.deadline)
        return Outcome()

    monkeypatch.setattr(history._engine.updater, "refresh", noted)
    latest = time.monotonic() + LIMITS.refresh_seconds - engine.RESERVE_SECONDS
    history.ask(operation="list", refresh=True)
    assert deadlines[0] is not None
    assert latest <= deadlines[0] <= time.monotonic() + LIMITS.refresh_seconds - engine.RESERVE_SECONDS
