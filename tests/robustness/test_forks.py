"""A program that forks: parent and child both go on, each with connections, threads and locks of its own."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from world import World, without_environment

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing is forked here")

#: What every program here begins with. (A program that forks has to be a process of its own: this one has threads.)
BEGINNING = """
import asyncio, os, sys, threading, time
from harness_session_history import IndexUnavailable, SessionHistory, session_history
from harness_session_history.engine import threads
from harness_session_history.index.lock import FileLock
index = os.environ["SESSION_HISTORY_INDEX"]

def found(history=session_history, **more):
    return len(asyncio.run(asyncio.wait_for(history(query="word", **more), 30))["results"])

def in_child(work):
    process = os.fork()
    if process:
        return process
    try:
        work()
        sys.stdout.flush()
    finally:
        os._exit(0)

def ended(process):
    assert os.waitpid(process, 0)[1] == 0
"""


def run(world: World, program: str, maintenance: str = "off") -> list[str]:
    """What a program says, line by line; it must end by itself."""
    environment = {
        **without_environment(dict(os.environ)),
        "SESSION_HISTORY_ROOTS": str(world.root),
        "SESSION_HISTORY_INDEX": str(world.index),
        "SESSION_HISTORY_MAINTENANCE": maintenance,
    }
    # (Later Pythons warn of every fork of a program with threads.)
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", BEGINNING + program]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=90, check=False)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    return done.stdout.split()


def test_the_default_history_answers_in_both_processes(world: World) -> None:
    world.say("a", "word")
    program = """
print(found(refresh=True), flush=True)
ended(in_child(lambda: print(found(), found(refresh=True))))
print(found(refresh=True))
"""
    assert run(world, program) == ["1", "1", "1", "1"]


def test_a_history_that_is_used_by_both_processes_at_the_same_time_answers_both(world: World) -> None:
    world.say("a", "word")
    program = """
history = SessionHistory()
found(history, refresh=True)
def ask():
    sys.stdout.write(" ".join(str(found(history, refresh=True)) for _ in range(20)) + "\\n")
child = in_child(ask)
ask()
ended(child)
"""
    assert run(world, program) == ["1"] * 40


def test_a_child_that_ends_like_any_program_leaves_the_index_to_the_parent(world: World) -> None:
    world.say("a", "word")
    program = """
found(refresh=True)
process = os.fork()
if not process:
    print(found())
    sys.exit()
ended(process)
print(found(), found(refresh=True))
"""
    assert run(world, program) == ["1", "1", "1"]


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_a_child_begins_without_any_file_of_the_index(world: World) -> None:
    world.say("a", "word")
    program = """
def files():
    links = [f"/proc/self/fd/{number}" for number in range(3, 64)]
    return [link for link in links if os.path.islink(link) and "history.sqlite3" in os.readlink(link)]
found(refresh=True)
lock = FileLock(index + ".worker"); assert lock.acquire()
print(len(files()) > 1, flush=True)
ended(in_child(lambda: print(files())))
"""
    assert run(world, program) == ["True", "[]"]


def test_a_closed_history_is_closed_in_the_child_too(world: World) -> None:
    program = """
history = SessionHistory()
asyncio.run(history.close())
def ask():
    try:
        found(history)
    except IndexUnavailable as problem:
        print(str(problem).split()[-1])
ended(in_child(ask))
"""
    assert run(world, program) == ["closed"]


def test_a_lock_of_the_parent_is_free_when_the_parent_drops_it(world: World) -> None:
    world.refresh()
    program = """
lock = FileLock(index + ".lock")
assert lock.acquire()
reading, writing = os.pipe()
started, starting = os.pipe()
child = in_child(lambda: (os.write(starting, b"x"), os.close(writing), os.read(reading, 1)))
os.read(started, 1)
lock.release()
print(FileLock(index + ".lock").acquire())
os.close(writing); ended(child)
"""
    assert run(world, program) == ["True"]


def test_the_worker_of_the_parent_ends_with_the_parent_and_not_with_the_child(world: World) -> None:
    world.say("a", "word")
    world.refresh()
    world.say("b", "late word")
    program = """
lock = FileLock(index + ".lock")
assert lock.acquire()  # so that the worker has to wait
history = SessionHistory()
found(history)
worker = history._engine.supervisor._maintainer.process.pid
reading, writing = os.pipe()
def stay():
    os.close(writing)
    asyncio.run(history.close())
    os.kill(worker, 0)  # it is still there
    print("there", flush=True)
    os.read(reading, 1)
child = in_child(stay)
time.sleep(0.3)
os.kill(worker, 0)
asyncio.run(history.close())
try:
    os.kill(worker, 0)
except ProcessLookupError:
    print("gone")
os.close(writing); ended(child)
"""
    assert run(world, program, maintenance="on") == ["there", "gone"]


def test_a_process_that_is_forked_while_a_call_works_refuses_that_index(world: World) -> None:
    world.say("a", "word")
    world.refresh()
    world.say("b", "word")
    program = """
threads.FORK_WAIT_SECONDS = 0.1
lock = FileLock(index + ".lock")
assert lock.acquire()
history, found_first = SessionHistory(), []
found(history)
call = threading.Thread(target=lambda: found_first.append(found(history, refresh=True)))
call.start()
while not history._engine.writers.is_busy:
    time.sleep(0.001)
def ask():
    for one in (history, SessionHistory(), session_history):
        try:
            found(one)
        except IndexUnavailable as problem:
            print("forked" in str(problem) and "spawn" in problem.hint)
    print(found(SessionHistory(index=index + ".d/other")))
ended(in_child(ask))
lock.release()
call.join()
print(*found_first)
"""
    assert run(world, program) == ["True", "True", "True", "2", "2"]


def test_a_fork_waits_a_little_for_a_call_that_works(world: World) -> None:
    world.say("a", "word")
    world.refresh()
    world.say("b", "word")
    program = """
threads.FORK_WAIT_SECONDS = 30
lock = FileLock(index + ".lock")
assert lock.acquire()
history = SessionHistory()
found(history)
call = threading.Thread(target=lambda: found(history, refresh=True))
call.start()
while not history._engine.writers.is_busy:
    time.sleep(0.001)
threading.Timer(0.1, lock.release).start()
ended(in_child(lambda: print(found(history))))
call.join()
"""
    assert run(world, program) == ["2"]
