"""What may not leak and may not change: text in the index, in errors and in logs; modes; the transcripts themselves."""

from __future__ import annotations

import asyncio
import logging
import os
import stat
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from builder import stamp
from harness_session_history import IndexUnavailable, InvalidRequest, SessionHistory, SessionHistoryError
from world import World, append, replace

SECRET = "the cardinal flew over violet mountains yesterday"
posix = pytest.mark.skipif(os.name != "posix", reason="modes are POSIX's")


# -- the index holds no readable text --------------------------------------------------------------------------------


def phrases(text: str) -> list[bytes]:
    """Every pair of neighbouring words."""
    words = text.split()
    return [f"{one} {other}".encode() for one, other in pairwise(words)]


def test_the_index_holds_no_phrase_of_a_transcript(world: World) -> None:
    session = world.session("a")
    session.user(SECRET)
    session.assistant(SECRET.title())
    session.tool(SECRET)
    session.add("compaction", summary=SECRET, firstKeptEntryId="x")
    session.add("custom_message", customType="x", content=SECRET, display=True)
    session.save()
    assert len(world.texts("cardinal mountains")) == 2
    world.search(SECRET + " nowhere")
    data = world.index_bytes()
    world.close()
    data += world.index_bytes()
    for phrase in phrases(SECRET):
        assert phrase not in data and phrase.title() not in data
        assert phrase.decode().encode("utf-16-le") not in data


def test_the_index_holds_no_damaged_line_and_no_unknown_entry(world: World) -> None:
    session = world.session("a")
    session.raw('{"type":"message","broken ' + SECRET)
    session.add("of_next_year", payload=SECRET)
    session.say("role_of_next_year", SECRET)
    session.user("x")
    session.save()
    world.refresh()
    data = world.index_bytes()
    assert not any(phrase in data for phrase in phrases(SECRET))


# -- modes -----------------------------------------------------------------------------------------------------------


@posix
def test_the_index_folder_is_private_and_so_are_its_files(world: World) -> None:
    before = os.umask(0)
    try:
        world.say("a", "x")
        world.refresh()
    finally:
        os.umask(before)
    assert stat.S_IMODE(world.index.parent.stat().st_mode) == 0o700
    files = list(world.index.parent.iterdir())
    assert world.index in files
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}


@posix
@pytest.mark.parametrize("mode", [0o750, 0o705, 0o701, 0o770, 0o777])
def test_a_folder_that_others_can_enter_is_refused(world: World, mode: int) -> None:
    world.say("a", "x")
    world.index.parent.mkdir()
    world.index.parent.chmod(mode)
    error = world.refused(IndexUnavailable, operation="list")
    assert error.code == "index_unavailable" and error.hint
    assert list(world.index.parent.iterdir()) == []


def test_an_index_path_that_names_a_transcript_does_not_cost_it(world: World) -> None:
    path = world.say("a", "x").path()
    path.parent.chmod(0o700)
    before = path.read_bytes()
    world.history(index=path)
    world.refused(IndexUnavailable, operation="list")
    assert path.read_bytes() == before


@pytest.mark.parametrize("content", [b"", b"not a database at all", b"SQLite format 3\0" + b"x" * 5000])
def test_a_foreign_or_damaged_index_is_replaced(world: World, content: bytes) -> None:
    session = world.say("a", "findme")
    world.index.parent.mkdir(mode=0o700)
    world.index.write_bytes(content)
    assert world.sessions_found("findme", refresh=False) == [session.id]
    assert stat.S_IMODE(world.index.stat().st_mode) == 0o600 or os.name != "posix"


# -- transcripts do not change ---------------------------------------------------------------------------------------


def states(root: Path) -> dict[str, tuple[Any, ...]]:
    """Bytes, times and modes of everything below a folder, and what its folders hold."""
    found = {}
    for folder, _, names in os.walk(root):
        for path in [folder, *(os.path.join(folder, name) for name in names)]:
            status = os.lstat(path)
            data = Path(path).read_bytes() if os.path.isfile(path) else b""
            found[path] = (status.st_mtime_ns, status.st_ctime_ns, status.st_mode, status.st_ino, status.st_size, data)
    return found


def test_no_operation_changes_a_transcript(world: World) -> None:
    session = world.session("a")
    root = session.user("findme")
    session.assistant("off the branch")
    session.user("visible", parent=root)
    session.raw("{broken")
    session.save(end=b"")
    old = world.session("old", version=None)
    old.raw('{"type":"message","timestamp":"2025-12-01T00:00:00Z","message":{"role":"user","content":"findme old"}}')
    old.save()
    second = world.session("second", version=2)
    second.user("findme second", extra={"hooks": 1})
    second.save(end=b"\r\n", eol=b"\r\n")
    empty = world.session("empty", header=False)
    empty.save(end=b"")
    before = states(world.agent)
    for _ in range(2):
        for sort in ("relevance", "newest"):
            for hit in world.hits("findme", sort=sort, branch="any"):
                world.open(hit["citation"]["sessionId"], hit["citation"]["entryId"], branch="any")
        world.search("nothing like that")
        world.list(include_deleted=True, include_current=True)
    world.close()
    assert states(world.agent) == before


# -- errors and logs -------------------------------------------------------------------------------------------------


def assert_silent(text: str, world: World) -> None:
    assert str(world.folder) not in text and world.root.name not in text.split("/") and ".jsonl" not in text
    assert not any(phrase.decode() in text.lower() for phrase in phrases(SECRET))


def test_errors_hold_no_text_and_no_path(world: World) -> None:
    session = world.session("a")
    entry = session.user(SECRET)
    path = session.save()
    world.refresh()
    calls: list[dict[str, Any]] = [
        {"operation": "search", "query": f'"{SECRET}'},
        {"operation": SECRET},
        {"operation": "list", "kind": SECRET},
        {"operation": "list", "since": SECRET},
        {"operation": "list", "cwd": f"{path}\0"},
        {"operation": "list", "limit": SECRET},
        {"operation": "search", "query": SECRET, "roles": [SECRET]},
        {"operation": "search", "query": SECRET * 20},
        {"operation": "search", "query": SECRET, "entry_id": "e"},
        {"operation": "open", "session_id": str(path)[:128], "entry_id": entry},
        {"operation": "open", "session_id": session.id, "entry_id": SECRET},
    ]
    replace(path, "violet", "orange")
    calls.append({"operation": "open", "session_id": session.id, "entry_id": entry})
    path.unlink()
    path.mkdir()
    calls.append({"operation": "open", "session_id": session.id, "entry_id": entry})
    for arguments in calls:
        error = world.refused(SessionHistoryError, **arguments)
        assert_silent(f"{error} {error.hint} {error.code}", world)


def test_an_index_that_cannot_be_made_is_told_without_its_path(world: World) -> None:
    (world.folder / "file").write_text("x")
    world.history(index=world.folder / "file" / "history.sqlite3")
    error = world.refused(IndexUnavailable, operation="list")
    assert_silent(f"{error} {error.hint}", world)


def test_logs_hold_no_text(world: World, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    session = world.session("a")
    session.user(SECRET)
    session.raw('{"type":"message" ' + SECRET)
    path = session.save()
    foreign = world.session("b", header=False)
    foreign.raw('{"kind":"header","v":4,"id":"' + SECRET + '"}')
    foreign.save()
    world.search(SECRET, refresh=False)
    replace(path, "violet", "orange")
    world.search(SECRET, refresh=False)
    append(path, [SECRET.encode()])
    world.search("cardinal", refresh=False)
    assert world.ask(operation="list", refresh=True)["complete"] is False
    said = "\n".join(record.getMessage() + str(record.exc_text or "") for record in caplog.records)
    assert not any(phrase.decode() in said.lower() for phrase in phrases(SECRET))


def test_a_list_holds_no_text(world: World) -> None:
    session = world.session("a")
    session.user(SECRET)
    session.add("session_info", name="   ")
    session.add("label", targetId="x", label=SECRET)
    session.add("compaction", summary=SECRET)
    session.save()
    answer = world.ask(operation="list", refresh=True)
    assert not any(phrase.decode() in str(answer) for phrase in phrases(SECRET))


def test_arguments_are_refused_before_anything_is_touched(world: World) -> None:
    history = SessionHistory(
        roots=[world.folder / "nowhere"], index=world.folder / "never" / "index.sqlite3", maintenance=False
    )
    for arguments in (
        {"operation": "search"},
        {"operation": "list", "limit": 0},
        {"operation": "search", "query": "..."},
        {"query": "a*"},
    ):
        with pytest.raises(InvalidRequest):
            asyncio.run(history(**arguments))  # type: ignore[arg-type]
    asyncio.run(history.close())
    assert not (world.folder / "never").exists()


def test_what_was_deleted_is_not_found_in_the_index_after_maintenance(world: World) -> None:
    session = world.session("a", start=stamp(0))
    session.user("xylophonist quizzically")
    path = session.save()
    world.say("b", "stays")
    history = world.history()
    world.refresh()
    assert b"xylophon" in world.index_bytes()
    path.unlink()
    asyncio.run(history.maintain())
    world.close()
    data = world.index_bytes()
    assert b"xylophon" not in data and b"quizzic" not in data


def test_an_index_file_that_others_could_read_is_closed_to_them(world: World) -> None:
    world.say("a", "hello there")
    world.found("hello")
    world.index.chmod(0o644)
    world.history().close_now()
    fresh = world.history()
    fresh.ask(query="hello")
    assert world.index.stat().st_mode & 0o777 == 0o600
    fresh.close_now()
