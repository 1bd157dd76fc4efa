"""Lines beyond the limit: passed over while they stream, and damaged; memory is bounded whatever a file holds."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder import line
from harness_session_history.archive.appends import can_resume
from harness_session_history.archive.hydration import tool_statuses
from harness_session_history.archive.transcript import TranscriptReader
from harness_session_history.model.entries import Facts
from harness_session_history.model.limits import LIMITS
from harness_session_history.model.sources import FileIdentity
from transcripts import HEADER, brief, lines, message

LONG = 300  # never less than a block, as in the settings


def texts(path: Path, resume: Facts | None = None, max_line: int = LONG) -> tuple[list[str], Facts]:
    reader = TranscriptReader(path, resume=resume, max_line=max_line)
    found = [entry.text for chunk in reader for entry in chunk.entries]
    return found, reader.facts


def of_length(length: int, entry_id: str = "long") -> bytes:
    """A line of exactly this many bytes, without its end."""
    return message(entry_id, "x" * (length - len(message(entry_id, ""))))


@pytest.mark.parametrize("block", [1, 7, 64, LONG])
@pytest.mark.parametrize(("length", "read"), [(LONG - 1, True), (LONG, True), (LONG + 1, False), (9 * LONG, False)])
def test_a_line_beyond_the_limit_is_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, length: int, read: bool, block: int
) -> None:
    monkeypatch.setattr(LIMITS, "block_bytes", block)
    path = tmp_path / "t.jsonl"
    path.write_bytes(
        lines(message("a", "1"), of_length(length), message("b", "2", "long"), b"broken", message("c", "3", "b"))
    )
    found, facts = texts(path)
    assert [text for text in found if len(text) == 1] == ["1", "2", "3"] and len(found) == 3 + read
    assert facts.damaged_lines == ([5] if read else [3, 5]) and facts.lines == 6


@brief
@given(
    lengths=st.lists(st.integers(150, 600), max_size=8),
    block=st.integers(1, LONG),
    cut=st.integers(0, 5000),
    end=st.booleans(),
)
def test_reading_on_gives_what_reading_anew_gives(
    tmp_path: Path, lengths: list[int], block: int, cut: int, end: bool
) -> None:
    data = lines(
        *[of_length(length, f"id{number:04}") for number, length in enumerate(lengths)], end=b"\n" if end else b""
    )
    path = tmp_path / "t.jsonl"
    kept, LIMITS.block_bytes = LIMITS.block_bytes, block
    try:
        path.write_bytes(data[: len(HEADER) + 1 + cut])
        before, facts = texts(path)
        known = FileIdentity.of(os.stat(path))
        with open(path, "ab") as file:
            file.write(data[len(HEADER) + 1 + cut :])
        anew, whole = texts(path)
        short = [length for length in lengths if length <= LONG]
        assert len(anew) == len(short) and whole.damaged + whole.torn_tail == len(lengths) - len(short)
        if can_resume(path, facts, known, FileIdentity.of(os.stat(path))):
            after, joined = texts(path, facts)
            assert before + after == anew and joined == whole
    finally:
        LIMITS.block_bytes = kept


def test_results_of_tools_are_looked_for_behind_a_line_beyond_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness_session_history.archive.hydration._LONGEST", LONG)
    result = line(
        {"type": "message", "id": "r", "message": {"role": "toolResult", "toolCallId": "t", "isError": True}}
    ).encode()
    path = tmp_path / "t.jsonl"
    path.write_bytes(lines(of_length(9 * LONG), result))
    assert tool_statuses(path, 0, 1 << 40, ["t"]) == {"t": "error"}


def repeated(unit: bytes) -> Callable[[BinaryIO, bytes], None]:
    """One message of 180 MB."""

    def write(file: BinaryIO, _last: bytes) -> None:
        file.write(b'{"type":"message","id":"s","message":{"role":"user","content":"')
        file.writelines(unit * (1_000_000 // len(unit)) for _ in range(180))
        file.write(b'"}}\n')

    return write


def hole(file: BinaryIO, last: bytes) -> None:
    file.seek(1 << 40, os.SEEK_CUR)
    file.write(b"\n" + last + b"\n")


def zeros(file: BinaryIO, last: bytes) -> None:
    file.writelines(bytes(1 << 20) for _ in range(400))
    file.write(b"\n" + last + b"\n")


GIANTS: dict[str, Callable[[BinaryIO, bytes], object]] = {
    "zeros": zeros,
    "a sparse terabyte": lambda file, last: file.truncate(1 << 40),
    "a hole between lines": hole,
    "surrogates": repeated(b"\\ud83d"),
    "one long text": repeated(b"x"),
}


@pytest.mark.skipif(sys.platform != "linux", reason="a limit of memory that holds")
@pytest.mark.parametrize("giant", GIANTS.values(), ids=GIANTS.keys())
def test_memory_is_bounded_whatever_a_file_holds(tmp_path: Path, giant: Callable[[BinaryIO, bytes], object]) -> None:
    path = tmp_path / "t.jsonl"
    first, last = message("a", "first"), message("b", "last", "a")
    with open(path, "wb") as file:
        file.write(HEADER + b"\n" + first + b"\n")
        giant(file, last)
    program = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))\n"
        "from harness_session_history.archive.transcript import TranscriptReader\n"
        "reader = TranscriptReader(sys.argv[1])\n"
        "print([entry.text for chunk in reader for entry in chunk.entries if len(entry.text) < 9], reader.facts.torn_tail)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(path)], capture_output=True, text=True, timeout=50, check=False
    )
    assert "'first'" in done.stdout, done.stderr
    assert "'last'" in done.stdout or giant not in (zeros, hole)
