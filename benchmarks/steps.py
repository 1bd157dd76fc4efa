"""Where the processor's time of a cold index goes, step by step. Nothing runs beside it, so the steps add up to less than the
whole takes where several processes share the processors."""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from harness_session_history import SessionHistory
from harness_session_history.archive.records import entry_decoder
from harness_session_history.archive.transcript import TranscriptReader
from harness_session_history.model.sources import FileIdentity
from harness_session_history.refresh.extract import Task, read

from .bare import transcripts

MOST_BYTES = 300_000_000
BLOCK = 1 << 20


def of(root: Path, index: str) -> Iterator[tuple[str, float]]:
    """(step, seconds of processor time per GB): each step of reading without the steps before it, then writing."""
    files, size = [], 0
    for path in transcripts(root):
        if size < MOST_BYTES:
            files.append(path)
            size += path.stat().st_size
    before = 0.0
    for step, work in (
        ("reading the bytes", _read),
        ("decoding", _decode),
        ("one pass over the entries", _parse),
        ("analysis and packing", _analyse),
        ("encoding for the writer", _encode),
    ):
        spent = min(_spent(work, files) for _ in range(2)) * 1e9 / size
        yield step, spent - before
        before = spent
    history = SessionHistory(roots=[root], index=index, maintenance=False)
    history.stand_alone()
    begun = resource.getrusage(resource.RUSAGE_SELF)
    history.refresh_now()
    ended = resource.getrusage(resource.RUSAGE_SELF)
    history.close_now()
    everything = sum(path.stat().st_size for path in transcripts(root))
    spent = ended.ru_utime + ended.ru_stime - begun.ru_utime - begun.ru_stime
    yield "writing (with reading, if that is little)", spent * 1e9 / everything


def _spent(work: Callable[[Path], None], files: list[Path]) -> float:
    begun = time.process_time()
    for file in files:
        work(file)
    return time.process_time() - begun


def _blocks(file: Path) -> Iterator[memoryview]:
    """Whole lines, as many as a block holds or one that is longer."""
    buffer, filled = bytearray(BLOCK), 0
    with file.open("rb", buffering=0) as stream:
        while True:
            if filled == len(buffer):
                buffer.extend(bytes(len(buffer)))
            with memoryview(buffer) as view:
                count = stream.readinto(view[filled:])
            if not count:
                return
            filled += count
            cut = buffer.rfind(b"\n", 0, filled) + 1
            with memoryview(buffer) as view:
                yield view[:cut]
            buffer[: filled - cut] = buffer[cut:filled]
            filled -= cut


def _read(file: Path) -> None:
    for _ in _blocks(file):
        pass


def _decode(file: Path) -> None:
    for block in _blocks(file):
        entry_decoder.decode_lines(block)


def _parse(file: Path) -> None:
    for _ in TranscriptReader(file):
        pass


def _analyse(file: Path) -> None:
    for _ in read(Task(os.fsencode(file), FileIdentity.of(os.stat(file)))):
        pass


def _encode(file: Path) -> None:
    for frame in read(Task(os.fsencode(file), FileIdentity.of(os.stat(file)))):
        msgspec.msgpack.encode(frame)
