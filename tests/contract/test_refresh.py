"""What a refresh does to the snapshot, and what an answer says of its freshness (contract: snapshot, freshness, refresh)."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from builder import SessionBuilder
from harness_session_history import (
    CitationUnavailable,
    IndexUnavailable,
    InvalidRequest,
    RefreshIncomplete,
    SessionHistory,
    SessionNotFound,
)
from harness_session_history.archive import appends, files, scanner, transcript
from harness_session_history.index import lock as locks
from harness_session_history.index.lock import FileLock
from harness_session_history.model.limits import LIMITS
from harness_session_history.model.sources import FileIdentity
from harness_session_history.refresh import extract
from harness_session_history.refresh.extract import Task, read
from index_contents import contents
from world import World, append, replace, touch


@pytest.fixture
def bytes_read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many bytes are read from transcripts while they are indexed."""
    counts: list[int] = []
    plain = transcript._read_into

    def counted(descriptor: int, view: memoryview) -> int:
        counts.append(plain(descriptor, view))
        return counts[-1]

    monkeypatch.setattr(transcript, "_read_into", counted)
    return counts


def while_reading(monkeypatch: pytest.MonkeyPatch, happen: Callable[[str], None]) -> None:
    """Something happens to each file just after its last byte was read."""
    plain = transcript.fingerprint
    path_of: dict[int, str] = {}
    opened = files._open

    def remember(path: str, seen: FileIdentity) -> tuple[int, FileIdentity]:
        descriptor, identity = opened(path, seen)
        path_of[descriptor] = str(path)
        return descriptor, identity

    def then(descriptor: int, facts: Any) -> int:
        found = plain(descriptor, facts)
        happen(path_of[descriptor])
        return found

    monkeypatch.setattr(files, "_open", remember)
    monkeypatch.setattr(transcript, "fingerprint", then)


# -- freshness -----------------------------------------------------------------------------------------------------------


def test_an_answer_counts_what_differs_from_the_snapshot(world: World) -> None:
    paths = {name: world.say(name, f"word {name}").path() for name in "abcde"}
    world.refresh()
    append(paths["a"], [b'{"type":"x"}'])
    os.remove(paths["b"])
    world.say("new", "word")
    (paths["c"].parent / f"2026-03-02T10-00-00-000Z_{'0' * 8}.jsonl").write_text("no session\n")
    sources = world.sources()
    assert sources["indexed"] == 3 and sources["changed"] == 2 and sources["missing"] == 2
    assert sources["selected"] == 7 and sources["pendingMaintenance"] == 4
    assert not world.ask(operation="list")["complete"]


def test_an_answer_about_one_session_counts_only_its_file(world: World) -> None:
    session = world.say("a", "word")
    other = world.say("b", "word")
    world.refresh()
    append(other.path(), [b'{"type":"x"}'])
    answer = world.ask(operation="list", session_id=session.id)
    assert answer["complete"] and answer["freshness"]["sources"]["selected"] == 1
    assert world.sources(session_id=other.id)["changed"] == 1


def test_a_change_that_keeps_size_and_time_is_seen(world: World) -> None:
    path = world.say("a", "before").path()
    world.refresh()
    status = path.stat()
    replace(path, "before", "behind")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert world.sources()["changed"] == 1
    assert world.texts("behind") == ["behind"]


def test_what_was_seen_before_the_snapshot_does_not_vouch_for_it(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """However long a look is believed, a snapshot that was made after it is compared with a look of its own."""
    monkeypatch.setattr(LIMITS, "cheap_seconds", 0.0)
    monkeypatch.setattr(LIMITS, "keep_factor", 10_000_000)
    session = world.say("a", "one")
    history = world.history()
    world.refresh()
    other = SessionHistory(roots=[world.root], index=world.index, maintenance=False)
    session.user("two")
    session.save()
    asyncio.run(other(operation="list", refresh=True))
    asyncio.run(other.close())
    session.user("three")
    session.save()
    answer = asyncio.run(history(operation="list"))
    assert answer["freshness"]["sources"]["changed"] == 1


@pytest.mark.parametrize("what", ["written", "new", "gone", "new folder"])
def test_what_is_likeliest_to_change_is_looked_at_by_every_call(
    world: World, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long a look is believed: a conversation that goes on, begins or goes is seen at once."""
    monkeypatch.setattr(LIMITS, "cheap_seconds", 0.0)
    monkeypatch.setattr(LIMITS, "keep_factor", 10_000_000)
    monkeypatch.setattr(LIMITS, "tick_seconds", -1.0)  # (the folders were made just now)
    session = world.say("a", "one")
    world.say("b", "one")
    world.refresh()
    assert world.sources()["indexed"] == world.sources()["indexed"] == 2
    if what == "written":
        session.user("two")
        session.save()
    elif what == "gone":
        session.path().unlink()
    else:
        world.session("c", cwd="/w/new" if what == "new folder" else "/w/demo").save()
    assert world.sources()["pendingMaintenance"] == 1


def test_a_look_is_shared_by_calls_within_two_seconds(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LIMITS, "cheap_seconds", 0.0)
    monkeypatch.setattr(LIMITS, "keep_factor", 10_000_000)
    monkeypatch.setattr(LIMITS, "tick_seconds", -1.0)  # (the folders were made just now)
    walks: list[float] = []
    plain = scanner.walk

    def counted(*arguments: Any, **options: Any) -> Any:
        walks.append(time.monotonic())
        return plain(*arguments, **options)

    monkeypatch.setattr(scanner, "walk", counted)
    world.say("a", "word")
    world.refresh()
    world.history()
    walks.clear()
    world.sources()
    world.sources()
    assert len(walks) == 1
    monkeypatch.setattr(LIMITS, "fresh_seconds", 0.0)
    world.sources()
    assert len(walks) == 2


def test_a_folder_that_has_gone_makes_its_sessions_unavailable_and_not_deleted(world: World) -> None:
    kept = world.say("a", "word")
    session = world.session("b")
    session.user("word")
    path = session.save("--other--")
    world.refresh()
    path.rename(world.folder / "aside.jsonl")
    path.parent.rmdir()
    assert world.sources()["unavailable"] == 1
    assert sorted(world.listed()) == sorted([kept.id, session.id])  # no refresh can bring it back, so none is refused
    answer = world.search("word", refresh=True)
    assert not answer["complete"] and answer["unavailableSessionIds"] == [session.id]
    assert [hit["session"]["sessionId"] for hit in answer["results"]] == [kept.id]


def test_a_root_that_is_away_makes_its_sessions_unavailable_and_brings_them_back(world: World) -> None:
    session = world.say("a", "word")
    world.refresh()
    world.root.rename(world.agent / "away")
    assert world.sources()["unavailable"] == 1
    assert world.listed(refresh=False) == [session.id]
    assert world.search("word", refresh=False)["unavailableSessionIds"] == [session.id]
    (world.agent / "away").rename(world.root)
    assert world.texts("word", refresh=False) == ["word"]


def test_a_file_that_cannot_be_read_is_unavailable_and_its_session_is_not_deleted(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = world.say("a", "word")
    world.say("b", "other")
    world.refresh()
    append(session.path(), [b'{"type":"x"}'])
    plain = files._open

    def refuse(path: str, seen: FileIdentity) -> tuple[int, FileIdentity]:
        if session.id in str(path):
            raise files.Unreadable("made up")
        return plain(path, seen)

    with monkeypatch.context() as patched:
        patched.setattr(files, "_open", refuse)
        for _ in range(2):  # no try can help, so a refresh does not raise for ever
            assert world.ask(operation="list", refresh=True)["complete"] is False
        assert session.id in world.listed(refresh=False) and world.sources()["unavailable"] == 1
    assert world.texts("word") == ["word"]
    assert world.sources()["unavailable"] == 0


def test_another_file_of_a_session_stands_in_for_one_that_cannot_be_read(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    older = world.session("a")
    older.user("common word")
    older.save(name="older.jsonl")
    newer = world.session("a")
    newer.user("common word")
    newer.user("newer word")
    path = newer.save()
    world.refresh()
    append(path, [b'{"type":"x"}'])
    plain = files._open

    def refuse(path: str, seen: FileIdentity) -> tuple[int, FileIdentity]:
        if newer.id in str(path):
            raise files.Unreadable("made up")
        return plain(path, seen)

    monkeypatch.setattr(files, "_open", refuse)
    assert world.texts("common") == ["common word"] and world.sources()["unavailable"] == 1


# -- reading only what is new --------------------------------------------------------------------------------------------


def test_an_append_reads_only_the_new_bytes(world: World, bytes_read: list[int]) -> None:
    session = world.session("a")
    for n in range(2000):
        session.user(f"word {n}")
    path = session.save()
    world.refresh()
    bytes_read.clear()
    session.lines.clear()
    session.user("late addition")
    append(path, session.lines)
    assert world.texts("addition") == ["late addition"]
    assert sum(bytes_read) == len(session.lines[0]) + 1
    assert world.view(session)["messageCount"] == 2001


@pytest.mark.parametrize("late", ["branch", "name", "label", "leaf", "torn"])
def test_late_entries_are_read_on_alike(world: World, bytes_read: list[int], late: str) -> None:
    session = world.session("a")
    first = session.user("first")
    session.assistant("second")
    path = session.save()
    if late == "torn":
        with open(path, "ab") as file:
            file.write(b'{"type":"message","id":"tttttttt","parentId":null,"timestamp":"2026-03-02T10:00:30Z",')
    world.refresh()
    size = path.stat().st_size
    bytes_read.clear()
    session.lines.clear()
    if late == "branch":
        session.user("another second", parent=first)
    elif late == "name":
        session.add("session_info", name="a late name")
    elif late == "label":
        session.add("label", targetId=first, label="late")
    elif late == "leaf":
        session.add("leaf", targetId=first)
    else:
        session.raw('"message":{"role":"user","content":"mended"}}')
    append(path, session.lines)
    world.refresh()
    torn = (
        len(b'{"type":"message","id":"tttttttt","parentId":null,"timestamp":"2026-03-02T10:00:30Z",')
        if late == "torn"
        else 0
    )
    assert sum(bytes_read) == path.stat().st_size - size + torn
    assert len(world.found("second", refresh=False)) == (0 if late in ("leaf", "torn") else 1)
    assert (world.view(session)["name"] == "a late name") == (late == "name")
    assert world.found("mended", refresh=False) == (["tttttttt"] if late == "torn" else [])


@pytest.mark.parametrize("how", ["rewrite", "replace", "truncate", "migrate"])
def test_anything_else_reads_the_session_whole(world: World, bytes_read: list[int], how: str) -> None:
    session = world.session("a")
    for n in range(20):
        session.user(f"word{n}")
    path = session.save()
    world.refresh()
    bytes_read.clear()
    data = path.read_bytes()
    if how == "rewrite":
        replace(path, "word0", "changed")
    elif how == "replace":
        path.with_suffix(".tmp").write_bytes(data + data.splitlines(keepends=True)[-1])
        os.replace(path.with_suffix(".tmp"), path)
    elif how == "truncate":
        os.truncate(path, data.rindex(b'{"type"'))
    else:
        replace(path, '"version":3', '"version":2')
    world.refresh()
    assert sum(bytes_read) == path.stat().st_size
    assert world.found("word19", refresh=False) == ([] if how == "truncate" else [session.last])


def test_lines_may_end_in_either_way_within_one_file(world: World) -> None:
    session = world.session("a")
    first = session.user("first word")
    session.user("second word")
    path = session.save()
    session.lines.clear()
    last = session.user("last word")
    with open(path, "ab") as file:
        file.write(session.lines[0] + b"\r\n")
    assert sorted(world.texts("word")) == ["first word", "last word", "second word"]
    assert world.opened(session, first, refresh=False) == world.opened(session, last, refresh=False)


# -- one session, several files ------------------------------------------------------------------------------------------


def test_what_only_a_deleted_file_held_goes_with_it(world: World) -> None:
    older = world.session("a")
    older.user("older words")
    older.save(name="older.jsonl")
    newer = world.session("a")
    newer.user("newer words", at="2026-03-05T10:00:00.000Z")
    path = newer.save()
    assert sorted(world.texts("words")) == ["newer words", "older words"]
    assert world.sources()["duplicate"] == 0 and world.view(newer)["messageCount"] == 1
    os.remove(path)
    assert world.texts("words") == ["older words"]
    assert world.sources()["duplicate"] == 0


def test_a_file_that_grows_past_the_other_leads(world: World) -> None:
    one = world.session("a")
    one.user("one word")
    path = one.save(name="one.jsonl")
    two = world.session("a")
    two.user("two word", at="2026-03-05T10:00:00.000Z")
    two.save(name="two.jsonl")
    assert world.view(one)["updatedAt"] == "2026-03-05T10:00:00.000Z"
    one.lines.clear()
    one.user("late word", at="2026-03-06T10:00:00.000Z")
    append(path, one.lines)
    assert world.view(one)["updatedAt"] == "2026-03-06T10:00:00.000Z"
    assert sorted(world.texts("word")) == ["late word", "one word", "two word"]


def test_a_header_that_gets_another_id_takes_its_session_along(world: World) -> None:
    session = world.say("a", "word")
    world.refresh()
    other = world.session("b")
    replace(session.path(), session.id, other.id)
    assert world.sessions_found("word") == [other.id]
    assert world.listed(refresh=False) == [other.id]
    assert world.listed(refresh=False, include_deleted=True) == [other.id, session.id]


def test_a_session_whose_file_moves_is_never_shown_as_deleted(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    session = world.say("a", "word")
    world.refresh()
    to = world.root / "--elsewhere--"
    to.mkdir()
    session.path().rename(to / "another name.jsonl")
    seen: list[list[str]] = []
    other = SessionHistory(roots=[world.root], index=world.index, maintenance=False)

    def look(path: str) -> None:
        seen.append([view["sessionId"] for view in asyncio.run(other(operation="list"))["results"]])

    while_reading(monkeypatch, look)
    world.refresh()
    asyncio.run(other.close())
    assert seen == [[session.id]]
    assert world.texts("word", refresh=False) == ["word"]
    assert world.listed(refresh=False, include_deleted=True) == [session.id]


def test_a_copy_with_deleted_in_its_name_stands_in_for_the_file(world: World) -> None:
    session = world.say("a", "word")
    path = session.path()
    path.rename(path.with_name(path.name + ".deleted.2026-03-02T12-24-51.414Z"))
    assert world.texts("word") == []
    assert world.texts("word", include_deleted=True) == ["word"]
    session.save()
    assert world.texts("word") == ["word"]


# -- what happens while files are read -----------------------------------------------------------------------------------


def test_a_file_that_grows_while_it_is_read_counts_as_done(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    session = world.say("a", "word")
    session.lines.clear()
    session.user("late word")
    while_reading(monkeypatch, lambda path: append(Path(path), session.lines))
    answer = world.search("word", refresh=True)
    assert [hit["snippet"] for hit in answer["results"]] == ["word"]
    assert answer["freshness"]["sources"]["changed"] == 1


def test_a_file_that_is_replaced_once_while_it_is_read_is_read_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = world.say("a", "word").path()
    other = world.folder / "other.jsonl"
    other.write_bytes(path.read_bytes().replace(b"word", b"another word"))

    def once(_: str) -> None:
        if other.exists():
            os.replace(other, path)

    while_reading(monkeypatch, once)
    assert world.texts("word") == ["another word"]


def test_a_file_that_does_not_hold_still_is_reported_and_the_rest_is_committed(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    restless = world.say("a", "word").path()
    world.say("b", "other")
    data = restless.read_bytes()

    def again(path: str) -> None:
        if path == str(restless):
            restless.with_suffix(".tmp").write_bytes(data)
            os.replace(restless.with_suffix(".tmp"), restless)

    with monkeypatch.context() as patched:
        while_reading(patched, again)
        problem = world.refused(RefreshIncomplete, operation="list", refresh=True)
        assert problem.details == {"done": 1, "left": 0, "unsettled": 1, "unavailable": 0}
        assert world.texts("other", refresh=False) == ["other"] and world.texts("word", refresh=False) == []
        assert world.sources()["missing"] == 1
    assert world.texts("word") == ["word"]


def test_a_file_that_vanishes_while_it_is_read_is_no_failure(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.say("a", "word")
    while_reading(monkeypatch, os.remove)
    world.refresh()
    assert world.listed() == []


def test_nobody_sees_a_part_of_a_session(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LIMITS, "session_entries", 10)
    monkeypatch.setattr(LIMITS, "chunk_nodes", 20)
    monkeypatch.setattr(LIMITS, "block_bytes", 4096)
    session = world.session("a")
    for n in range(500):
        session.user(f"word {n}")
    session.save()
    other = SessionHistory(roots=[world.root], index=world.index, maintenance=False)
    asyncio.run(other(operation="list", refresh=True))
    session.lines[1] = session.lines[1].replace(b"word", b"werd")
    session.save()
    seen: set[int] = set()
    plain = read

    def watched(task: Task) -> Iterator[Any]:
        for frame in plain(task):
            seen.add(asyncio.run(other(operation="list"))["results"][0]["messageCount"])
            seen.add(asyncio.run(other(operation="search", query="word", limit=1))["rankedAll"] * 500)
            yield frame

    monkeypatch.setattr("harness_session_history.refresh.extract.read", watched)
    world.refresh()
    asyncio.run(other.close())
    assert seen == {500}


# -- budget, progress, cancelling ----------------------------------------------------------------------------------------


class Slow:
    """Reading that takes its time per file, on a clock of its own; counts the files read."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
        self.files = 0
        offset = 0.0
        clock = time.monotonic

        def slowly(task: Task) -> Iterator[Any]:
            nonlocal offset
            self.files += 1
            offset += seconds
            yield from read(task)

        monkeypatch.setattr("harness_session_history.refresh.extract.read", slowly)
        monkeypatch.setattr("harness_session_history.refresh.run.time.monotonic", lambda: clock() + offset)


def test_a_refresh_that_runs_out_of_time_says_so_and_goes_on_where_it_stopped(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(10):
        world.say(f"s{n}", f"word{n}")
    Slow(monkeypatch, 6.0)
    problem = world.refused(RefreshIncomplete, operation="list", refresh=True)
    assert problem.retryable and problem.details["done"] > 0 and problem.details["left"] > 0
    assert problem.details["done"] + problem.details["left"] == 10
    assert world.sources()["indexed"] == problem.details["done"]
    again = world.refused(RefreshIncomplete, operation="list", refresh=True)
    assert again.details["left"] < problem.details["left"]
    assert len(world.listed()) == 10


def test_the_first_call_builds_for_a_while_and_answers_from_what_that_gave(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(10):
        world.say(f"s{n}", "word")
    Slow(monkeypatch, 1.5)
    answer = world.search("word", refresh=False)
    assert 0 < len(answer["results"]) < 10 and not answer["complete"]
    assert answer["freshness"]["sources"]["missing"] == 10 - len(answer["results"])


def test_the_newest_sessions_come_first(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    for n in range(10):
        session = world.session(f"s{n}")
        session.user("word")
        os.utime(session.save(name=f"2026-03-{n + 10:02}T10-00-00-000Z_{session.id}.jsonl"), (1e9, 1e9))
    Slow(monkeypatch, 6.0)
    world.refused(RefreshIncomplete, operation="list", refresh=True)
    indexed = {view["sessionId"] for view in world.list(refresh=False)}
    assert indexed == {world.session(f"s{9 - n}").id for n in range(len(indexed))}


def test_one_session_alone_can_be_refreshed(world: World) -> None:
    one, other = world.say("a", "word"), world.say("b", "word")
    world.refresh()
    for session in (one, other):
        session.user("late word")
        session.save()
    world.ask(operation="list", session_id=one.id, refresh=True)
    assert world.sessions_found("late", refresh=False) == [one.id]
    assert world.sources()["changed"] == 1


def test_a_session_that_has_moved_is_found_where_it_is_now(world: World) -> None:
    session = world.say("a", "word")
    world.refresh()
    session.path().rename(session.path().with_name("moved.jsonl"))
    assert world.texts("word", session_id=session.id) == ["word"]


def test_progress_never_exceeds_its_totals(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = [world.say(f"s{n}", "word").path() for n in range(5)]
    twin = world.session("s0")
    twin.user("newer word", at="2026-03-09T10:00:00.000Z")
    twin_path = twin.save(name="twin.jsonl")
    told: list[tuple[int, int, int, int]] = []
    history = world.history()
    restless = {str(paths[1]): 1}

    def once(path: str) -> None:
        if restless.pop(path, 0):
            replace(Path(path), "word", "werd")

    while_reading(monkeypatch, once)
    for _ in range(2):
        asyncio.run(history.refresh(progress=lambda *numbers: told.append(numbers)))
        os.remove(twin_path) if twin_path.exists() else None
    assert told and all(files <= all_files and size <= all_bytes for files, all_files, size, all_bytes in told)
    assert told[-1][0] == told[-1][1] and told[-1][2] == told[-1][3]


def test_cancelling_a_refresh_stops_it_and_leaves_everything_usable(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(20):
        world.say(f"s{n}", f"word{n}")
    started, stopped = threading.Event(), threading.Event()

    def slowly(task: Task) -> Iterator[Any]:
        started.set()
        for frame in read(task):
            time.sleep(0.02)
            yield frame
        stopped.set()

    history = world.history()

    async def cancel() -> None:
        call = asyncio.create_task(history(operation="list", refresh=True))
        await asyncio.to_thread(started.wait)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

    with monkeypatch.context() as patched:
        patched.setattr("harness_session_history.refresh.extract.read", slowly)
        asyncio.run(cancel())
        asyncio.run(history(operation="list"))  # waits its turn behind what is being stopped
    assert len(world.listed(limit=20)) == 20  # in another event loop
    contents(world.index)


def test_closing_during_a_call_lets_it_finish_and_refuses_the_next(world: World) -> None:
    world.say("a", "word")
    history = world.history()

    async def close_during_a_call() -> Any:
        call = asyncio.create_task(history(operation="list", refresh=True))
        await asyncio.sleep(0)
        await history.close()
        return await call

    assert len(asyncio.run(close_during_a_call())["results"]) == 1
    assert "closed" in str(world.refused(IndexUnavailable, operation="list"))


# -- waiting for another writer ------------------------------------------------------------------------------------------


def test_a_refresh_waits_for_another_within_its_own_budget(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    session = world.say("a", "word")
    world.refresh()
    session.user("more")
    session.save()
    monkeypatch.setattr(LIMITS, "refresh_seconds", 0.2)
    lock = locks.FileLock(str(world.index) + ".lock")
    assert lock.acquire()
    problem = world.refused(RefreshIncomplete, operation="list", refresh=True)
    assert problem.details["left"] == 1
    assert world.texts("word", refresh=False) == ["word"]
    lock.release()
    assert world.texts("more") == ["more"]


def test_a_first_call_answers_although_another_holds_the_lock(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.say("a", "word")
    monkeypatch.setattr(LIMITS, "first_build_seconds", 0.2)
    world.index.parent.mkdir(mode=0o700)
    lock = locks.FileLock(str(world.index) + ".lock")
    assert lock.acquire()
    answer = world.search("word", refresh=False)
    assert answer["results"] == [] and not answer["complete"]
    assert answer["freshness"]["snapshotAt"] is None and answer["freshness"]["sources"]["missing"] == 1
    lock.release()
    assert world.texts("word", refresh=False) == ["word"]


def test_a_writer_that_was_overtaken_begins_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the lock does not hold (its file was removed), a plan is not carried out over another writer's work."""
    world.say("a", "word a")
    other = SessionHistory(roots=[world.root], index=world.index, maintenance=False)
    reads: list[str] = []

    def overtake(path: str) -> None:
        reads.append(path)
        if len(reads) == 1:
            os.remove(str(world.index) + ".lock")
            asyncio.run(other.refresh())

    with monkeypatch.context() as patched:
        while_reading(patched, overtake)
        assert world.texts("word") == ["word a"]
    asyncio.run(other.close())
    assert len(reads) == 2  # by the overtaken one and by the other; what was left to do then was nothing
    world.close()
    assert len(contents(world.index)["sessions"]) == 1


# -- one index, several sets of roots ------------------------------------------------------------------------------------


def test_what_an_index_knows_of_other_roots_is_neither_shown_nor_counted(world: World) -> None:
    mine = world.say("a", "common word")
    others = World(world.folder / "others")
    theirs = others.say("b", "common word")
    gone = others.say("c", "common word")
    others.index = world.index
    others.refresh()
    os.remove(gone.path())
    others.refresh()
    others.close()
    answer = world.search("common", refresh=True, include_deleted=True)
    assert [hit["session"]["sessionId"] for hit in answer["results"]] == [mine.id]
    assert answer["complete"] and answer["freshness"]["sources"]["selected"] == 1
    assert world.listed(include_deleted=True) == [mine.id]
    world.refused(SessionNotFound, operation="open", session_id=theirs.id, entry_id=str(theirs.last))
    world.history(roots=[world.root, others.root])
    assert sorted(world.sessions_found("common", refresh=False)) == sorted([mine.id, theirs.id])


def test_a_folder_that_is_renamed_takes_its_sessions_along(world: World) -> None:
    sessions = [world.say(f"s{n}", f"common word{n}") for n in range(3)]
    world.refresh()
    for old, new in (("--w-demo--", "--z--"), ("--z--", "--a--"), ("--a--", "--w-demo--")):
        (world.root / old).rename(world.root / new)
        assert len(world.texts("common")) == 3
        assert world.sources() == {**world.sources(), "indexed": 3, "unavailable": 0, "duplicate": 0}
    assert sorted(world.listed(include_deleted=True)) == sorted(session.id for session in sessions)


def test_a_copy_stands_in_for_a_file_whose_root_is_away_until_it_comes_back(world: World) -> None:
    (world.folder / "second").mkdir()
    copy = world.session("a")
    copy.user("older words")
    copy.save()
    session = world.session("a")
    session.user("newer words", at="2026-03-05T10:00:00.000Z")
    path = session.save()
    path.rename(world.folder / "second" / "s.jsonl")
    copy.save()
    world.history(roots=[world.root, world.folder / "second"])
    assert sorted(world.texts("words")) == ["newer words", "older words"]
    (world.folder / "second").rename(world.folder / "away")
    append(copy.path(), [b'{"type":"x"}'])
    world.refused(RefreshIncomplete, operation="list", refresh=True)
    assert world.texts("words", refresh=False) == ["older words"]
    (world.folder / "away").rename(world.folder / "second")
    assert sorted(world.texts("words")) == ["newer words", "older words"]


def test_when_the_folder_of_a_file_is_gone_and_others_hold_all_of_it_nothing_is_unavailable(world: World) -> None:
    session = world.session("a")
    session.user("word")
    first, second = session.save("--a--"), session.save("--b--")
    world.refresh()
    shutil.rmtree(first.parent)
    assert world.texts("word") == ["word"] and world.sources() == {**world.sources(), "indexed": 1, "unavailable": 0}
    session.save("--a--")
    world.refresh()
    shutil.rmtree(second.parent)
    assert world.texts("word") == ["word"] and world.sources() == {**world.sources(), "indexed": 1, "unavailable": 0}


def test_what_only_a_file_of_a_folder_that_has_gone_held_is_unavailable(world: World) -> None:
    session = world.session("a")
    session.user("word")
    session.save("--a--")
    session.user("another word")
    path = session.save("--b--")
    world.refresh()
    shutil.rmtree(path.parent)
    answer = world.search("word")
    assert [hit["snippet"] for hit in answer["results"]] == ["word"] and not answer["complete"]
    assert answer["unavailableSessionIds"] == [session.id]


def test_of_files_that_share_an_id_only_those_below_the_roots_of_now_count(world: World) -> None:
    session = world.session("a")
    session.user("the word here")
    session.save()
    others = World(world.folder / "others")
    other = others.session("a")
    other.user("the word there", at="2026-03-05T10:00:00.000Z")
    other.save()
    world.history(roots=[world.root, others.root])
    shared = world.session("a")
    shared.user("the same word")
    shared.save(name="copy.jsonl")
    (others.root / "--w-demo--" / "copy.jsonl").write_bytes((world.root / "--w-demo--" / "copy.jsonl").read_bytes())
    assert sorted(world.texts("word")) == ["the same word", "the word here", "the word there"]
    for _ in range(2):
        world.history(roots=[world.root])
        assert sorted(world.texts("word", refresh=False)) == ["the same word", "the word here"]
        assert world.sources()["indexed"] == 2 and world.sources()["pendingMaintenance"] == 0
        world.history(roots=[others.root])
        assert sorted(world.texts("word", refresh=False)) == ["the same word", "the word there"]


# -- of one session, asked for by itself ---------------------------------------------------------------------------------


@pytest.mark.parametrize("wrong", ["", "n" * 129, 7, "\ud800"])
def test_a_refresh_of_an_id_that_can_be_none_is_an_invalid_request(world: World, wrong: Any) -> None:
    world.say("a", "alpha")
    history = world.history()
    with pytest.raises(InvalidRequest):
        history.refresh_now(wrong)
    with pytest.raises(InvalidRequest):
        asyncio.run(history.refresh(wrong))
    assert not world.index.exists()


def test_a_refresh_of_a_session_that_there_is_not_says_so_when_everything_was_read(world: World) -> None:
    known = world.say("a", "alpha")
    history = world.history(current_session_id=known.id)
    with pytest.raises(SessionNotFound):
        history.refresh_now("nobody")
    with pytest.raises(SessionNotFound):
        asyncio.run(history.refresh("nobody"))
    assert world.sources()["indexed"] == 1
    assert history.refresh_now(known.id)["sources"] == asyncio.run(history.refresh(known.id))["sources"]


@pytest.mark.parametrize("known", [False, True])
def test_a_session_is_refreshed_from_whatever_file_holds_it(world: World, known: bool) -> None:
    """A session is identified by its header's id: files may be named after another one, or after none."""
    first, second = world.session("a"), world.session("b")
    first.user("the word of a")
    second.user("the word of b")
    if known:
        world.say("a", "an older word", at="2026-01-01T00:00:00.000Z")
        world.refresh()
        first.user("one more")
    first.save(name=f"2026-03-02T10-00-00-000Z_{second.id}.jsonl")
    second.save(name=f"2026-03-02T10-00-00-000Z_{first.id}.jsonl")
    world.session("c").save(name="other.jsonl")
    answer = world.search("the word of", session_id=first.id, refresh=True)
    assert [hit["snippet"] for hit in answer["results"]] == ["the word of a"] and answer["complete"]


def test_a_refresh_of_a_session_reads_no_other(world: World) -> None:
    world.say("a", "word")
    world.say("b", "word")
    world.search("word", session_id=world.session("a").id, refresh=True)
    assert world.sources()["missing"] == 1


def rewritten_within_and_grown(world: World) -> tuple[SessionBuilder, str]:
    """A session whose file was changed in its midst, at the same length, and went on; and the entry that was changed."""
    session = world.session("a")
    for number in range(60):
        session.user(f"turn {number} " + "filler " * 20)
    changed = session.user("the password is hunter1")
    for number in range(60):
        session.user(f"turn {number} " + "filler " * 20)
    session.save()
    world.refresh()
    replace(session.path(), "hunter1", "removed")
    append(session.path(), [b'{"type":"x"}'])
    return session, changed


@pytest.fixture
def few_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are compared as only long ones are, and by so few samples that a change in the midst is between them."""
    monkeypatch.setattr(LIMITS, "whole_bytes", 0)
    monkeypatch.setattr(appends, "_SAMPLES", 1)


@pytest.mark.parametrize("by", ["whole", "samples"])
def test_a_change_in_the_midst_of_the_same_length_is_seen_though_the_file_grew(
    world: World, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    if by == "samples":
        monkeypatch.setattr(LIMITS, "whole_bytes", 0)
    rewritten_within_and_grown(world)
    answer = world.search("removed")
    assert [hit["snippet"] for hit in answer["results"]] == ["the password is removed"] and answer["complete"]
    assert world.texts("hunter1") == []


@pytest.mark.usefixtures("few_samples")
def test_a_file_that_was_rewritten_within_and_has_grown_is_read_anew_once_that_shows(world: World) -> None:
    rewritten_within_and_grown(world)
    answer = world.search("hunter1", refresh=True)
    assert answer["results"] == [] and answer["complete"] is not bool(answer["unavailableSessionIds"])
    assert world.texts("removed") == ["the password is removed"]


@pytest.mark.usefixtures("few_samples")
def test_an_answer_that_meets_a_file_that_was_rewritten_within_has_it_read_anew(world: World) -> None:
    session, _ = rewritten_within_and_grown(world)
    world.refresh()  # as far as anybody can see it has only grown
    answer = world.search("hunter1", refresh=False)
    assert answer["unavailableSessionIds"] == [session.id] and not answer["complete"]
    world.close()  # (it is noted beside the answer)
    assert world.sources()["changed"] == 1
    world.refresh()
    assert world.texts("removed", refresh=False) == ["the password is removed"]


@pytest.mark.usefixtures("few_samples")
def test_what_is_opened_in_a_file_that_was_rewritten_within_is_read_anew(world: World) -> None:
    session, changed = rewritten_within_and_grown(world)
    with contextlib.suppress(CitationUnavailable):  # (where it shows only when the bytes are read)
        world.opened(session, changed, refresh=True)
    assert world.opened(session, changed, refresh=True)[2] == "the password is removed"


@pytest.mark.usefixtures("few_samples")
def test_a_hint_that_meets_a_file_that_was_rewritten_within_has_it_read_anew(world: World) -> None:
    rewritten_within_and_grown(world)
    world.search("password removed")
    assert world.texts("password removed") == ["the password is removed"]  # (the old words are near to these)


def test_progress_counts_sessions_and_no_files_that_are_none(world: World) -> None:
    for number in range(3):
        path = world.say(f"s{number}", "word").path()
        path.with_name(f"other{number}.jsonl").write_text('{"agent":"another"}\n')
    told: list[tuple[int, int, int, int]] = []
    world.history().refresh_now(progress=lambda *numbers: told.append(numbers))
    assert told[-1][:2] == (3, 3) and all(done <= files for done, files, _, _ in told)


def test_catching_up_finds_what_was_just_said_without_a_refresh(world: World) -> None:
    world.say("a", "word")
    world.refresh()
    world.say("b", "later word")
    history = world.history(catch_up=5.0)
    answer = history.ask(query="later")
    assert len(answer["results"]) == 1 and answer["complete"]


def test_catching_up_leaves_much_work_to_maintenance(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.say("a", "word")
    world.refresh()
    world.say("b", "later word")
    monkeypatch.setattr(LIMITS, "elsewhere_bytes", 1)
    answer = world.history(catch_up=5.0).ask(query="later")
    assert not answer["results"] and not answer["complete"]


def test_catching_up_does_not_wait_for_another_writer(world: World) -> None:
    world.say("a", "word")
    world.refresh()
    world.say("b", "later word")
    with FileLock(str(world.index) + ".lock").held(1.0):
        began = time.monotonic()
        assert not world.history(catch_up=0.05).ask(query="later")["complete"]
        assert time.monotonic() - began < 5


def test_a_line_beyond_the_setting_is_damaged_and_nothing_else_is_lost(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = world.session("a")
    before = session.user("word before")
    session.user("word " + "long " * 300_000)
    session.user("word after", parent=before)
    path = session.save()
    monkeypatch.setenv("SESSION_HISTORY_MAX_LINE", "1")
    world.history()
    assert sorted(world.texts("word", snippet_chars=80)) == ["word after", "word before"]
    assert world.sources()["damaged"] == 1
    monkeypatch.setenv("SESSION_HISTORY_MAX_LINE", "2")
    world.history()
    touch(path, 1_800_000_000)
    assert len(world.hits("word", branch="any")) == 3 and world.sources()["damaged"] == 0


def test_a_giant_is_read_after_all_others(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a search finds something in the first seconds."""
    monkeypatch.setattr("harness_session_history.refresh.plan.GIANT_BYTES", 5_000)
    order: list[str] = []
    plain = extract.read

    def watched(task: Task) -> Any:
        order.append(os.fsdecode(task.path))
        return plain(task)

    monkeypatch.setattr(extract, "read", watched)
    paths = [str(world.say(name, text).path()) for name, text in (("a", "old"), ("b", "new"), ("c", "giant " * 1000))]
    for second, path in enumerate(paths):
        renamed = path.replace("T10-00-00", f"T10-00-0{second}")
        os.rename(path, renamed)
        touch(Path(renamed), 1)
        paths[second] = renamed
    world.refresh()
    assert order == [paths[1], paths[0], paths[2]]
