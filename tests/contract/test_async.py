"""The caller's event loop is never held up, calls can be cancelled, and the module-level function is the same thing."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from harness_session_history import IndexUnavailable, SessionHistory, session_history
from harness_session_history import history as default
from harness_session_history.index.lock import FileLock
from world import World, check_answer, without_environment


async def beats_during(work: Callable[[], Awaitable[Any]]) -> tuple[int, float]:
    """How often a heartbeat of this loop beat while the work went on, and its longest pause in seconds."""
    loop = asyncio.get_running_loop()
    beats, longest, done = 0, 0.0, False

    async def heartbeat() -> None:
        nonlocal beats, longest
        last = loop.time()
        while not done:
            await asyncio.sleep(0.002)
            now = loop.time()
            beats, longest, last = beats + 1, max(longest, now - last), now

    task = asyncio.create_task(heartbeat())
    await asyncio.sleep(0)
    await work()
    done = True
    await task
    return beats, longest


def big(world: World, sessions: int = 12, entries: int = 1500) -> None:
    for number in range(sessions):
        session = world.session(f"s{number}")
        for place in range(entries):
            session.user(f"findme number{place} " + "lorem ipsum dolor sit amet " * 12)
        session.save()


def test_a_heartbeat_goes_on_during_a_cold_refresh_and_searches(world: World) -> None:
    big(world)
    history = world.history()

    async def work() -> None:
        await history(operation="list", refresh=True)
        await asyncio.gather(*(history(query=f"findme number{place}") for place in range(20)))

    beats, longest = asyncio.run(beats_during(work))
    assert beats >= 10 and longest < 2.0  # generous: nothing that hangs stays below it


def test_a_call_that_is_cancelled_ends_and_leaves_a_history_that_works(world: World) -> None:
    big(world, sessions=6)
    history = world.history()

    async def scenario() -> dict[str, Any]:
        task = asyncio.create_task(history(operation="list", refresh=True))
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return await history(operation="search", query="findme number7", refresh=True)

    answer = asyncio.run(asyncio.wait_for(scenario(), 60))
    check_answer(answer)
    assert answer["complete"] and len(answer["results"]) == 6


def test_a_timeout_around_a_call_works(world: World) -> None:
    big(world, sessions=4)
    history = world.history()

    async def scenario() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(history(operation="list", refresh=True), 0.01)

    asyncio.run(scenario())


def test_a_call_that_was_cancelled_before_it_began_does_nothing(world: World) -> None:
    history = world.history()

    async def scenario() -> None:
        task = asyncio.create_task(history(operation="list"))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(scenario())
    assert not world.index.exists()


def test_many_calls_at_once_are_all_answered(world: World) -> None:
    session = world.say("a", *(f"findme number{place}" for place in range(50)))
    history = world.history()

    async def scenario() -> list[dict[str, Any]]:
        return await asyncio.gather(*(history(query=f"number{place}", refresh=place % 7 == 0) for place in range(50)))

    answers = asyncio.run(scenario())
    assert [[hit["snippet"] for hit in answer["results"]] for answer in answers] == [
        [f"findme number{place}"] for place in range(50)
    ]
    assert {hit["citation"]["sessionId"] for answer in answers for hit in answer["results"]} == {session.id}


def test_one_history_serves_several_loops_and_threads(world: World) -> None:
    world.say("a", "findme")
    history = world.history()
    answers: list[int] = []

    def call() -> None:
        for _ in range(3):
            answers.append(len(asyncio.run(history(query="findme"))["results"]))

    threads = [threading.Thread(target=call) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert answers == [1] * 12


def test_a_history_is_a_context_and_refuses_work_after_its_end(world: World) -> None:
    world.say("a", "findme")

    async def scenario() -> SessionHistory:
        async with SessionHistory(roots=[world.root], index=world.index, maintenance=False) as history:
            assert len((await history(query="findme"))["results"]) == 1
        await history.close()
        return history

    history = asyncio.run(scenario())
    with pytest.raises(IndexUnavailable):
        asyncio.run(history(query="findme"))


def test_an_unknown_argument_is_a_type_error(world: World) -> None:
    history = world.history()
    for call in (history, session_history):
        with pytest.raises(TypeError):
            asyncio.run(call(query="x", nonsense=1))  # type: ignore[call-arg, operator]
        with pytest.raises(TypeError):
            call("search", "x")  # type: ignore[call-arg, misc, operator]
    assert not world.index.exists()


SCRIPT = """
import asyncio, json
from harness_session_history import session_history
async def main():
    found = await session_history(query="findme", refresh=True)
    listed = await session_history(operation="list")
    hit = found["results"][0]["citation"]
    opened = await session_history(operation="open", session_id=hit["sessionId"], entry_id=hit["entryId"])
    return [found, listed, opened]
print(json.dumps(asyncio.run(main())))
"""


def test_the_default_history_is_made_from_the_environment(world: World) -> None:
    world.say("a", "findme")
    current = world.say("now", "findme too")
    environment = {
        **without_environment(dict(os.environ)),
        "SESSION_HISTORY_ROOTS": str(world.root),
        "SESSION_HISTORY_INDEX": str(world.index),
        "SESSION_HISTORY_CURRENT": current.id,
        "SESSION_HISTORY_MAINTENANCE": "off",
    }
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, timeout=60, check=True
    )
    found, listed, opened = json.loads(done.stdout)
    for answer in (found, listed, opened):
        check_answer(answer)
    assert found["currentSession"] == "excluded" and len(found["results"]) == len(listed["results"]) == 1
    assert [message["text"] for message in opened["messages"]] == ["findme"]
    assert world.index.exists() and done.stderr == ""


FOLLOWING = """
import asyncio, os
from harness_session_history import session_history
async def main():
    for name in ("one", "two", "two"):
        os.environ["SESSION_HISTORY_ROOTS"] = os.path.join(os.environ["PLACE"], name)
        os.environ["SESSION_HISTORY_INDEX"] = os.path.join(os.environ["PLACE"], "index-" + name, "history.sqlite3")
        print(*[hit["snippet"] for hit in (await session_history(query="findme"))["results"]])
asyncio.run(main())
"""


def test_the_default_history_follows_an_environment_that_changes(world: World) -> None:
    for name in ("one", "two"):
        session = world.session(name)
        session.user("findme in " + name)
        session.save(folder=name)
    environment = {
        **without_environment(dict(os.environ)),
        "PLACE": str(world.root),
        "SESSION_HISTORY_MAINTENANCE": "off",
    }
    done = subprocess.run(
        [sys.executable, "-c", FOLLOWING], env=environment, capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.splitlines() == ["findme in one", "findme in two", "findme in two"] and done.stderr == ""


def by_default(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The default history is one over this world, and nobody has asked it yet."""
    monkeypatch.setattr(default, "_default", {})
    monkeypatch.setenv("SESSION_HISTORY_ROOTS", str(world.root))
    monkeypatch.setenv("SESSION_HISTORY_INDEX", str(world.index))
    monkeypatch.setenv("SESSION_HISTORY_MAINTENANCE", "off")


def test_threads_that_are_the_first_to_ask_the_default_history_at_the_same_time_are_all_answered(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.say("a", "findme")
    by_default(world, monkeypatch)
    start = threading.Barrier(4)

    def call() -> int:
        start.wait()
        return len(asyncio.run(session_history(query="findme", refresh=True))["results"])

    with ThreadPoolExecutor(4) as threads:
        for _ in range(10):
            assert [call.result() for call in [threads.submit(call) for _ in range(4)]] == [1] * 4
            default._default.clear()


def test_a_call_is_finished_on_a_default_history_that_is_replaced_meanwhile(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.say("a", "findme")
    world.refresh()
    world.say("b", "findme")
    by_default(world, monkeypatch)
    held = FileLock(str(world.index) + ".lock")
    assert held.acquire()

    async def scenario() -> list[int]:
        first = asyncio.create_task(session_history(query="findme", refresh=True))
        await asyncio.sleep(0)
        monkeypatch.setenv("SESSION_HISTORY_CURRENT", "somebody")
        second = await session_history(query="findme")
        held.release()
        return [len(answer["results"]) for answer in (await first, second)]

    assert asyncio.run(scenario()) == [2, 1]


def test_a_default_history_that_was_replaced_is_closed_when_nobody_uses_it_any_more(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_default(world, monkeypatch)
    asyncio.run(session_history(operation="list"))
    former = default.default_history()
    threads = former._work.threads
    monkeypatch.setenv("SESSION_HISTORY_CURRENT", "somebody")
    assert default.default_history() is not former and not threads.closed
    asyncio.run(former(operation="list"))
    del former
    deadline = time.monotonic() + 20
    while not threads.closed:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_the_function_takes_what_a_history_takes() -> None:
    import inspect

    assert [str(one) for one in inspect.signature(session_history).parameters.values()] == [
        str(one) for name, one in inspect.signature(SessionHistory.__call__).parameters.items() if name != "self"
    ]
