"""`kill -9` at any instant: whoever asks next gets the right answer, from what was committed and what is read anew."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from index_contents import answers, contents, differences
from world import World, append, history_alone

# Says when it begins, so that the moment of the kill is not spent on starting Python.
_WORK = """
import asyncio, sys
from harness_session_history.model.limits import LIMITS
from harness_session_history import SessionHistory
from harness_session_history.model.limits import LIMITS
LIMITS.batch_entries = LIMITS.session_entries = 60
LIMITS.step_pages = 2
history = SessionHistory(roots=[sys.argv[1]], index=sys.argv[2], maintenance=False)
print("begins", flush=True)
sys.stdin.readline()
if sys.argv[3] == "maintain":
    asyncio.run(history.maintain())
else:
    asyncio.run(history(operation="list", refresh=True))
print("done", flush=True)
"""
WORDS = "common", "word7", "word23", "late"


def start(world: World, work: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", _WORK, str(world.root), str(world.index), work]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert process.stdout is not None and process.stdout.readline() == "begins\n"
    return process


def kill(process: subprocess.Popen[str], after: float) -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()
    time.sleep(after)
    process.send_signal(signal.SIGKILL)
    process.communicate()


def seconds_of(world: World, work: str) -> float:
    """How long the work takes if nobody disturbs it."""
    process = start(world, work)
    began = time.monotonic()
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write("\n")
    process.stdin.flush()
    assert process.stdout.readline() == "done\n"
    seconds = time.monotonic() - began
    process.communicate()
    return seconds


def fill(world: World) -> None:
    for n in range(40):
        session = world.session(f"s{n}")
        for turn in range(20):
            session.user(f"common word{n} turn{turn} " + "filling " * 10)
        session.save()


@pytest.fixture
def wanted(tmp_path: Path) -> Iterator[Path]:
    """Where an index is built that nobody disturbed."""
    (tmp_path / "anew").mkdir(mode=0o700)
    yield tmp_path / "anew" / "history.sqlite3"


def check_against(world: World, anew: Path) -> None:
    """The index that was disturbed says what one built from nothing says."""
    for path in anew.parent.iterdir():
        path.unlink()
    undisturbed, disturbed = history_alone(world.root, anew), history_alone(world.root, world.index)
    try:
        undisturbed.refresh_now()
        disturbed.refresh_now()
        assert not differences(answers(disturbed, *WORDS), answers(undisturbed, *WORDS))
        assert not differences(contents(world.index), contents(anew))
    finally:
        undisturbed.close_now()
        disturbed.close_now()


def answers_truly(world: World) -> None:
    """Before anything is refreshed: a whole answer is complete, and one that is not says so."""
    answer = world.search("word7", refresh=False, limit=20)
    assert len(answer["results"]) == 20 or not answer["complete"]
    for view in world.list(refresh=False, limit=20):
        assert view["messageCount"] in (20, 21)  # a session is there as a whole or not at all
    world.close()


def kill_cold_builds(world: World, anew: Path, times: int, seed: int) -> None:
    chance = random.Random(seed)
    fill(world)
    whole = seconds_of(world, "build")
    for _ in range(times):
        for path in world.index.parent.iterdir():
            path.unlink()
        for _ in range(chance.choice([1, 1, 2])):
            kill(start(world, "build"), chance.uniform(0.0, whole))
        answers_truly(world)
    check_against(world, anew)


def kill_refreshes(world: World, anew: Path, times: int, seed: int) -> None:
    chance = random.Random(seed)
    fill(world)
    world.refresh()
    world.close()
    paths = sorted(world.root.rglob("*.jsonl"))
    for turn in range(times):
        for path in chance.sample(paths, 15):
            data = path.read_bytes()
            if data.count(b"\n") == 21:
                guest = world.session("guest")
                guest.user(
                    f"common late turn{turn}", key=f"late{turn:04}", parent=json.loads(data.splitlines()[-1])["id"]
                )
                append(path, guest.lines[1:])
            else:
                path.write_bytes(data[: data[:-1].rindex(b"\n") + 1])
        kill(start(world, "build"), chance.uniform(0.0, 0.15))
        answers_truly(world)
    check_against(world, anew)


def kill_maintenance(world: World, anew: Path, times: int, seed: int) -> None:
    chance = random.Random(seed)
    fill(world)
    world.refresh()
    world.close()
    for turn in range(times):
        world.say(f"secret{turn}", f"secretword{turn}")
        world.refresh()
        world.close()
        os.remove(world.session(f"secret{turn}").path())
        kill(start(world, "maintain"), chance.uniform(0.0, 0.15))
        answers_truly(world)
    asyncio.run(world.history().maintain())
    world.close()
    assert b"secretword" not in world.index_bytes()
    check_against(world, anew)


def test_a_cold_build_may_be_killed_at_any_instant(world: World, wanted: Path) -> None:
    kill_cold_builds(world, wanted, 5, seed=1)


def test_a_refresh_may_be_killed_at_any_instant(world: World, wanted: Path) -> None:
    kill_refreshes(world, wanted, 4, seed=2)


def test_maintenance_may_be_killed_at_any_instant(world: World, wanted: Path) -> None:
    kill_maintenance(world, wanted, 4, seed=3)


@pytest.mark.slow
def test_a_cold_build_may_be_killed_at_two_hundred_instants(world: World, wanted: Path) -> None:
    kill_cold_builds(world, wanted, 200, seed=int(time.time()))


@pytest.mark.slow
def test_a_refresh_may_be_killed_at_a_hundred_instants(world: World, wanted: Path) -> None:
    kill_refreshes(world, wanted, 100, seed=int(time.time()))


@pytest.mark.slow
def test_maintenance_may_be_killed_at_a_hundred_instants(world: World, wanted: Path) -> None:
    kill_maintenance(world, wanted, 100, seed=int(time.time()))
