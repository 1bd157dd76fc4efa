"""The end of a transcript, and reading on where an earlier reading stopped (contract sections 6 and 7)."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder import ArchiveBuilder, line
from harness_session_history.archive.appends import can_resume
from harness_session_history.archive.hydration import hydrate
from harness_session_history.archive.transcript import TranscriptReader
from harness_session_history.model.entries import Chunk, Facts
from harness_session_history.model.sources import FileIdentity
from transcripts import HEADER, Made, Reading, brief, lines, made_entries, message, read, read_bytes, write


@pytest.fixture
def archive(tmp_path: Path) -> ArchiveBuilder:
    return ArchiveBuilder(tmp_path)


def test_an_unterminated_last_line_counts_if_it_parses(tmp_path: Path) -> None:
    data = lines(message("a", "1"), message("b", "2", "a"), end=b"")
    facts = read_bytes(tmp_path, data).facts
    assert facts.nodes == 2 and (facts.open_tail, facts.torn_tail, facts.damaged) == (True, False, 0)
    assert data[facts.offset :] == message("b", "2", "a") and facts.size == len(data)


def test_a_torn_last_line_is_no_damage_yet(tmp_path: Path) -> None:
    reading = read_bytes(tmp_path, lines(message("a", "1")) + b'{"type":"mes')
    assert reading.texts == ["1"]
    assert (reading.facts.open_tail, reading.facts.torn_tail, reading.facts.damaged, reading.facts.lines) == (
        False,
        True,
        0,
        2,
    )


def test_a_whole_record_in_a_torn_last_line_is_read(tmp_path: Path) -> None:
    facts = read_bytes(tmp_path, lines(message("a", "1") + b'{"type":"mes', end=b"")).facts
    assert facts.nodes == 1 and facts.open_tail and facts.torn_tail


def test_a_reading_can_stop_before_the_end(tmp_path: Path) -> None:
    data = lines(message("a", "1"), message("b", "2", "a"))
    path = tmp_path / "t.jsonl"
    path.write_bytes(data)
    stop = data.index(b"\n", len(HEADER) + 1) + 1
    reading = read(path, stop=stop)
    assert reading.texts == ["1"] and reading.facts.size == reading.facts.offset == stop


def identity(path: Path) -> FileIdentity:
    return FileIdentity.of(os.stat(path))


def resumable(path: Path, reading: Reading) -> bool:
    now = identity(path)
    return can_resume(path, reading.facts, now, now)


DAMAGED = b"\n".join(
    [
        b"\xef\xbb\xbf" + HEADER,
        message("a", "one"),
        b'{"type":"mess',
        b"",
        message("b", "two", "a") + message("c", "three", "b"),
        line({"type": "session_info", "id": "d", "parentId": "c", "name": "named"}).encode(),
        b'{"type":"message","id":"cut","message":{"role":' + message("e", "vier \u8bc4", "d"),
        message("f", "five", "b", "assistant") + b"\r",
        message("g", [None, {"type": "text", "text": "six"}], "f") + b"\0\0",
        line({"type": "leaf", "id": "h", "parentId": "g", "targetId": "c"}).encode(),
        message("i", "seven", "c"),
    ]
)


def test_reading_on_from_any_byte_equals_reading_whole(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(DAMAGED + b"\n")
    whole = read(path)
    resumed = 0
    for stop in range(len(HEADER) + 3, len(DAMAGED)):
        part = read(path, stop=stop)
        if resumable(path, part):
            resumed += 1
            assert read(path, resume=part) == whole, stop
        else:
            assert part.facts.open_tail, stop
    assert resumed > len(DAMAGED) * 0.7


def test_only_growth_can_be_read_on(tmp_path: Path) -> None:
    data = lines(message("a", "1"), message("b", "2", "a"))
    path = tmp_path / "t.jsonl"
    path.write_bytes(data)
    reading = read(path)
    assert not resumable(path, reading)
    grown = data + message("c", "3", "b") + b"\n"
    for changed in (grown.replace(b"demo", b"DEMO"), grown.replace(b'"text":"2"', b'"text":"9"'), grown[10:]):
        path.write_bytes(changed)
        assert not resumable(path, reading)
    path.write_bytes(grown)
    assert resumable(path, reading)
    now = identity(path)
    assert not can_resume(path, reading.facts, now._replace(ino=now.ino + 1), now)
    assert not can_resume(tmp_path / "missing.jsonl", reading.facts, now, now)


def test_a_changed_open_tail_is_not_read_on(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(lines(message("a", "1"), message("b", "2", "a"), end=b""))
    reading = read(path)
    path.write_bytes(lines(message("a", "1"), message("b", "9", "a")))
    assert not resumable(path, reading)
    path.write_bytes(lines(message("a", "1"), message("b", "2", "a")))
    assert resumable(path, reading)
    path.write_bytes(lines(message("a", "1"), message("b", "2", "a") + b" x"))
    assert not resumable(path, reading)


def test_version_1_is_always_read_from_the_start(archive: ArchiveBuilder) -> None:
    session = archive.session("a", version=None)
    session.user("x")
    path = session.save()
    reading = read(path)
    path.write_bytes(path.read_bytes() + b"{}\n")
    assert not resumable(path, reading)
    with pytest.raises(ValueError, match="version 1"):
        TranscriptReader(path, resume=reading.facts)


def test_reading_leaves_no_trace(archive: ArchiveBuilder) -> None:
    session = archive.session("a")
    session.user("x")
    path = session.save(end=b"")
    os.utime(path, ns=(1, 2))
    before, data = os.stat(path), path.read_bytes()
    os.utime(path, ns=(1, 2))
    hydrate(path, read(path).wanted)
    after = os.stat(path)
    assert (after.st_mtime_ns, after.st_size) == (before.st_mtime_ns, before.st_size)
    assert after.st_atime_ns == 1
    assert path.read_bytes() == data


def test_long_transcripts_come_in_several_chunks(archive: ArchiveBuilder) -> None:
    session = archive.session("a")
    for n in range(60):
        session.user(f"{n} " + "word " * 10_000)
        session.tool("x" * 60_000)
    path = session.save()
    chunks = list(TranscriptReader(path))
    assert len(chunks) > 2 and all(sum(len(e.text) for e in c.entries) <= 2_200_000 for c in chunks)
    reading = read(path)
    assert reading.facts.nodes == 180 and reading.links == {} and len(reading.texts) == 60


def test_a_line_longer_than_any_buffer_is_read(archive: ArchiveBuilder) -> None:
    session = archive.session("a")
    session.user("before")
    session.tool("x y z " * 1_500_000)
    session.user("after")
    reading = read(session.save())
    assert reading.texts == ["before", "after"] and reading.links == {}


def test_chunks_and_facts_travel_between_processes(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(DAMAGED)
    reader = TranscriptReader(path)
    chunks = list(reader)
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(chunks), type=list[Chunk]) == chunks
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(reader.facts), type=Facts) == reader.facts


# Laws


@brief
@given(made=made_entries, cut=st.floats(0, 1))
def test_a_reading_in_two_parts_equals_one(tmp_path: Path, made: Made, cut: float) -> None:
    path = write(tmp_path, made).path
    whole, data = read(path), path.read_bytes()
    first = data.index(b"\n")
    part = read(path, stop=first + int((len(data) - first) * cut))
    if resumable(path, part):
        assert read(path, resume=part) == whole
