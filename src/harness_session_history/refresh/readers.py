"""Reading in processes of its own: files are parsed and analysed there while this process writes what came before."""

from __future__ import annotations

import contextlib
import gc
import os
import struct
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import IO, TYPE_CHECKING

import msgspec

from .extract import End, Failed, Frame, Task, read

if TYPE_CHECKING:
    import subprocess


#: Bytes of a reader's frames that may wait for the writer: as much as is read while a batch is written; of a single file,
#: which is written as it is read, less.
WAITING_BYTES, WAITING_OF_ONE = 16 << 20, 2 << 20
#: Readers are as many as there are processors, so they leave the one that writes its turn (steps of niceness).
STANDING_BACK = 10
#: Files that the operating system is told of before they are read.
AHEAD = 8
_LENGTH = struct.Struct("<I")
_PIPE_BYTES = 1 << 20


class ReaderLost(Exception):
    """A reading process ended before it had delivered everything."""


def write_frame(stream: IO[bytes], value: object) -> None:
    """One length-prefixed msgpack value."""
    body = msgspec.msgpack.encode(value)
    stream.write(_LENGTH.pack(len(body)))
    stream.write(body)


def read_frame(stream: IO[bytes]) -> bytes | None:
    """The bytes of the next value, None at the end of the stream."""
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack(head)
    body = stream.read(length)
    return body if len(body) == length else None


class _Buffer:
    """Frames between the thread that fetches them and the writer, bounded by their bytes."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._frames: deque[bytes | None] = deque()
        self._bytes = 0
        self._changed = threading.Condition()
        self._closed = False

    def put(self, body: bytes | None) -> bool:
        """Waits for room; False if nobody wants it any more."""
        with self._changed:
            while self._bytes > self._limit and not self._closed:
                self._changed.wait()
            self._frames.append(body)
            self._bytes += len(body or b"")
            self._changed.notify_all()
            return not self._closed

    def get(self, seconds: float) -> bytes | None:
        """The next frame, None at the end. Raises TimeoutError if none comes in time."""
        with self._changed:
            if not self._frames and not self._changed.wait_for(lambda: self._frames, seconds):
                raise TimeoutError
            body = self._frames.popleft()
            self._bytes -= len(body or b"")
            self._changed.notify_all()
            return body

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()


class ReaderProcess:
    """One process that reads tasks in order; `frames` gives those of the next task."""

    def __init__(self, process: subprocess.Popen[bytes], tasks: Sequence[Task]) -> None:
        self._process = process
        self._frames = _Buffer(WAITING_BYTES if len(tasks) > 1 else WAITING_OF_ONE)
        self._decoder = msgspec.msgpack.Decoder(Frame)
        for target, arguments in ((self._feed, (tasks,)), (self._pump, ())):
            threading.Thread(target=target, args=arguments, daemon=True).start()

    def frames(self, check: Callable[[], None]) -> Iterator[Frame]:
        """The frames of the next task. Raises ReaderLost, and whatever `check` raises while it waits."""
        while True:
            try:
                body = self._frames.get(0.05)
            except TimeoutError:
                check()
                continue
            if body is None:
                raise ReaderLost
            frame = self._decoder.decode(body)
            yield frame
            if isinstance(frame, End | Failed):
                return

    def close(self) -> None:
        """Ends the process and the threads."""
        from .processes import end

        self._frames.close()
        end(self._process)

    def _feed(self, tasks: Sequence[Task]) -> None:
        stream = self._process.stdin
        assert stream is not None
        with contextlib.suppress(OSError, ValueError):
            for task in tasks:
                write_frame(stream, task)
            stream.close()

    def _pump(self) -> None:
        stream = self._process.stdout
        assert stream is not None
        while True:
            try:
                body = read_frame(stream)
            except (OSError, ValueError):
                body = None
            if not self._frames.put(body) or body is None:
                return


class Readers:
    """Some reading processes; the tasks' frames come in the order of the tasks."""

    def __init__(self, tasks: Sequence[Task], processes: Sequence[subprocess.Popen[bytes]]) -> None:
        self._readers = [ReaderProcess(process, tasks[at :: len(processes)]) for at, process in enumerate(processes)]
        self._next = 0

    def frames(self, check: Callable[[], None]) -> Iterator[Frame]:
        """The frames of the next task; they must be taken to the end before the next call."""
        reader = self._readers[self._next % len(self._readers)]
        self._next += 1
        return reader.frames(check)

    def close(self) -> None:
        for reader in self._readers:
            reader.close()


def start_readers(count: int) -> list[subprocess.Popen[bytes]]:
    """`count` reading processes that wait for their tasks. Raises OSError."""
    from .processes import end, start  # (not wanted by the process itself, which runs this module as well)

    processes: list[subprocess.Popen[bytes]] = []
    try:
        for _ in range(count):
            processes.append(start("refresh.readers", answers=True))
    except OSError:
        for process in processes:
            end(process)
        raise
    return processes


def serve(tasks: IO[bytes], frames: IO[bytes]) -> None:
    """The process: reads tasks from one stream and writes their frames to the other."""
    if hasattr(os, "nice"):
        os.nice(STANDING_BACK)
    gc.disable()  # what is read holds no cycles, and looking for some would take a twentieth of the time
    if sys.platform == "linux":
        import fcntl

        with contextlib.suppress(OSError):
            fcntl.fcntl(frames, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
    with contextlib.suppress(BrokenPipeError):
        for task in _announced(tasks):
            for frame in read(task):
                write_frame(frames, frame)
                frames.flush()


def _announced(stream: IO[bytes]) -> Iterator[Task]:
    """The tasks; the operating system is told of the files of the next few, so that it fetches them meanwhile."""
    decoder = msgspec.msgpack.Decoder(Task)
    ahead: deque[Task] = deque()
    while (body := read_frame(stream)) is not None:
        task = decoder.decode(body)
        _announce(task.path)
        ahead.append(task)
        if len(ahead) > AHEAD:
            yield ahead.popleft()
    yield from ahead


def _announce(path: bytes) -> None:
    if not hasattr(os, "posix_fadvise"):
        return
    with contextlib.suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW)
        try:
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_WILLNEED)
        finally:
            os.close(descriptor)


if __name__ == "__main__":
    serve(sys.stdin.buffer, sys.stdout.buffer)
