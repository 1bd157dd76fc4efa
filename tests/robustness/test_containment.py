"""Whatever one file does to its reader costs that file only: every other session is indexed and answered, `doctor` gives the
reason, the log has the traceback."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import Callable
from typing import Any

import pytest

from harness_session_history import RefreshIncomplete
from harness_session_history.archive import columns, files, hydration, records, transcript
from harness_session_history.doctor.diagnose import diagnose
from harness_session_history.refresh import extract
from world import World

MARK = "poisonous"

#: Each step of reading a file: where it is looked up, and the name.
READING: list[tuple[Any, str]] = [
    (transcript, "_read_into"), (transcript, "read_line"), (transcript, "loads"), (transcript, "is_entry"),
    (transcript, "fingerprint"), (transcript, "Collector"), (records, "loads"), (records, "complete_objects"),
    (columns, "project_all"), (columns, "entry_key"), (columns, "milliseconds"), (columns, "id_column"),
    (columns, "details"), (files, "_open"), (extract, "documents"), (extract, "_part"), (extract.trees, "split"),
    (extract.runs, "pack"),
]  # fmt: skip
#: Each step of reading a cited entry again.
CITING: list[tuple[Any, str]] = [
    (files, "_open"), (hydration, "read_at"), (hydration, "parts"), (hydration, "text_of"), (hydration, "view_of"),
    (hydration, "entry_key"), (hydration, "milliseconds"), (hydration, "_decode"), (hydration, "_hydrate"),
]  # fmt: skip
FAULTS = [RecursionError, MemoryError, OverflowError, UnicodeDecodeError, KeyError, AssertionError, PermissionError]


def raised(kind: type[Exception]) -> Exception:
    return UnicodeDecodeError("utf-8", b"\xff", 0, 1, "made up") if kind is UnicodeDecodeError else kind("made up")


def raising(monkeypatch: pytest.MonkeyPatch, module: Any, name: str, kind: type[Exception], where: str) -> None:
    """Makes a step raise while the file whose path holds `where` is open."""
    plain, opened = getattr(module, name), files._open
    reading: list[str] = [""]

    def remember(path: Any, seen: Any) -> Any:
        reading[0] = os.fsdecode(path)
        return opened(path, seen)

    def step(*arguments: Any, **named: Any) -> Any:
        if where in reading[0] or (name == "_open" and where in os.fsdecode(arguments[0])):
            raise raised(kind)
        return plain(*arguments, **named)

    if name != "_open":
        monkeypatch.setattr(files, "_open", remember)
    monkeypatch.setattr(module, name, step)


def refreshed(world: World) -> None:
    try:
        world.refresh()
    except RefreshIncomplete as problem:
        assert problem.details["unavailable"] and not problem.details["left"]


def report(world: World) -> dict[str, Any]:
    history = world._history or world.history()
    return asyncio.run(diagnose(history))


def odd(world: World) -> None:
    """One session with something of everything that is decoded, beside two plain ones."""
    session = world.session(MARK)
    session.raw("broken {")
    session.user(f"word {MARK}")
    session.add("session_info", name="a name")
    session.add("compaction", summary="s", firstKeptEntryId=session.last)
    session.raw('{"type":"message","id":1,"message":{"role":"user","content":[{"type":"text","text":7}]}}')
    session.save(folder=f"--{MARK}--")
    world.say("a", "word one")
    world.say("b", "word two")


@pytest.mark.parametrize("kind", FAULTS)
@pytest.mark.parametrize(("module", "name"), READING, ids=[name for _, name in READING])
def test_a_step_of_reading_that_raises_costs_its_file_only(
    world: World, monkeypatch: pytest.MonkeyPatch, module: Any, name: str, kind: type[Exception]
) -> None:
    odd(world)
    with monkeypatch.context() as patched:
        raising(patched, module, name, kind, f"--{MARK}--")
        refreshed(world)
        answer = world.search("word", refresh=False)
        found = {hit["snippet"] for hit in answer["results"]}
        assert {"word one", "word two"} <= found
        if f"word {MARK}" not in found:
            assert not answer["complete"] and answer["freshness"]["sources"]["unavailable"] == 1
    refreshed(world)
    assert len(world.texts("word", refresh=False)) == 3, "it is read when nothing is in the way any more"


@pytest.mark.parametrize("kind", FAULTS)
@pytest.mark.parametrize(("module", "name"), CITING, ids=[name for _, name in CITING])
def test_a_step_of_citing_that_raises_costs_its_file_only(
    world: World, monkeypatch: pytest.MonkeyPatch, module: Any, name: str, kind: type[Exception]
) -> None:
    odd(world)
    world.refresh()
    raising(monkeypatch, module, name, kind, f"--{MARK}--")
    answer = world.search("word", refresh=False)
    assert sorted(hit["snippet"] for hit in answer["results"]) == ["word one", "word two"]
    assert answer["unavailableSessionIds"] == [world.session(MARK).id]


def test_the_reason_is_in_the_report_and_the_traceback_in_the_log(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    odd(world)
    with monkeypatch.context() as patched, caplog.at_level(logging.WARNING, "harness_session_history"):
        raising(patched, extract, "documents", OverflowError, f"--{MARK}--")
        refreshed(world)
    (said,) = report(world)["unavailable"]
    assert MARK in said["path"] and "OverflowError" in said["reason"]
    assert any(record.exc_info and record.exc_info[0] is OverflowError for record in caplog.records)


def test_a_file_that_decides_a_place_and_cannot_be_read_takes_nothing_down(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file after which a folder is named is looked into by the walk, before anything is indexed."""
    parent = world.session("parent")
    parent.user("word above")
    parent.save(folder=".", name=f"{MARK}.jsonl")
    world.session("child").save(folder=MARK)
    world.say("a", "word one")
    raising(monkeypatch, transcript, "loads", RecursionError, f"{MARK}.jsonl")
    refreshed(world)
    assert world.texts("word", refresh=False) == ["word one"]


ODDITIES: dict[str, bytes] = {
    "a long number beside deep nesting": b'{"type":"x","n":'
    + b"9" * 4_301
    + b',"d":'
    + b"[" * 1_000
    + b"]" * 1_000
    + b"}",
    "a long number in deep nesting": b'{"type":"x","d":' + b"[" * 1_000 + b"9" * 4_301 + b"]" * 1_000 + b"}",
    "a long number": b'{"type":"x","id":"x1","timestamp":' + b"9" * 4_301 + b"}",
    "deep nesting": b'{"type":"x","id":"x1","d":' + b'{"a":' * 100_000 + b"1" + b"}" * 100_000 + b"}",
    "nesting that never ends": b'{"type":"x","id":"x1","d":' + b"[" * 200_000,
    "a long number in a damaged line": b'}{"type":"x","id":"x1","parentId":"y","n":' + b"9" * 4_301 + b"}",
}


@pytest.mark.parametrize("digits", [640, 4300])
@pytest.mark.parametrize("oddity", ODDITIES.values(), ids=ODDITIES.keys())
def test_an_odd_line_costs_only_itself(world: World, oddity: bytes, digits: int) -> None:
    """Also where this interpreter reads shorter numbers only."""
    limit = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(digits)
    try:
        session = world.session("odd")
        session.user("word before")
        session.raw(oddity)
        session.user("word after")
        session.save()
        assert sorted(world.texts("word")) == ["word after", "word before"]
    finally:
        sys.set_int_max_str_digits(limit)


def test_a_file_time_that_the_index_cannot_hold_is_only_a_time(world: World) -> None:
    path = world.say("a", "word one").path()
    world.say("b", "word two")
    far = 13_569_465_600 * 10**9  # in the year 2400
    os.utime(path, ns=(far, far))
    for _ in range(2):
        answer = world.search("word")
        assert len(answer["results"]) == 2 and answer["complete"]


def test_an_inode_that_the_index_cannot_hold_is_only_a_number(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some network file systems use all 64 bits."""
    from harness_session_history.model import sources

    plain: Callable[[os.stat_result], Any] = sources._fields
    monkeypatch.setattr(sources, "_fields", lambda stat: (plain(stat)[0], plain(stat)[1] + (1 << 63), *plain(stat)[2:]))
    world.say("a", "word one")
    for _ in range(2):
        answer = world.search("word")
        assert len(answer["results"]) == 1 and answer["complete"]
