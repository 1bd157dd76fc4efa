"""Reading in processes of its own: files are parsed and analysed there while this process writes what came before."""

from __future__ import annotations

import contextlib
import os
import queue
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import IO

import msgspec

from .maintenance import child_environment
from .reading import End, Failed, Frame, Task, read

#: Frames that wait for the writer; a frame is at most a few megabytes.
WAITING = 2
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


class ReaderProcess:
    """One child that reads tasks in order; `frames` gives those of the next task."""

    def __init__(self, tasks: Sequence[Task]) -> None:
        self._child = subprocess.Popen(
            [sys.executable, "-m", "harness_session_history.pipeline"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=child_environment(),
        )
        self._frames: queue.Queue[bytes | None] = queue.Queue(WAITING)
        self._closed = threading.Event()
        self._decoder = msgspec.msgpack.Decoder(Frame)
        for target, arguments in ((self._feed, (tasks,)), (self._pump, ())):
            threading.Thread(target=target, args=arguments, daemon=True).start()

    def frames(self, check: Callable[[], None]) -> Iterator[Frame]:
        """The frames of the next task. Raises ReaderLost, and whatever `check` raises while it waits."""
        while True:
            try:
                body = self._frames.get(timeout=0.05)
            except queue.Empty:
                check()
                continue
            if body is None:
                raise ReaderLost
            frame = self._decoder.decode(body)
            yield frame
            if isinstance(frame, End | Failed):
                return

    def close(self) -> None:
        """Ends the child and the threads."""
        self._closed.set()
        self._child.kill()
        self._child.wait()
        for stream in (self._child.stdin, self._child.stdout):
            with contextlib.suppress(OSError, ValueError):
                if stream is not None:
                    stream.close()

    def _feed(self, tasks: Sequence[Task]) -> None:
        stream = self._child.stdin
        assert stream is not None
        with contextlib.suppress(OSError, ValueError):
            for task in tasks:
                write_frame(stream, task)
            stream.close()

    def _pump(self) -> None:
        stream = self._child.stdout
        assert stream is not None
        while not self._closed.is_set():
            try:
                body = read_frame(stream)
            except (OSError, ValueError):
                body = None
            while not self._closed.is_set():
                with contextlib.suppress(queue.Full):
                    self._frames.put(body, timeout=0.2)
                    break
            if body is None:
                return


class Readers:
    """As many reading processes as there are processors to spare; the tasks' frames come in the order of the tasks."""

    def __init__(self, tasks: Sequence[Task]) -> None:
        count = max(1, min(4, (os.cpu_count() or 2) - 1, len(tasks)))
        self._readers: list[ReaderProcess] = []
        try:
            for at in range(count):
                self._readers.append(ReaderProcess(tasks[at::count]))
        except OSError:
            self.close()
            raise
        self._next = 0

    def frames(self, check: Callable[[], None]) -> Iterator[Frame]:
        """The frames of the next task; they must be taken to the end before the next call."""
        reader = self._readers[self._next % len(self._readers)]
        self._next += 1
        return reader.frames(check)

    def close(self) -> None:
        for reader in self._readers:
            reader.close()


def main() -> None:
    """The child: reads tasks from standard input and writes their frames to standard output."""
    tasks, frames = sys.stdin.buffer, sys.stdout.buffer
    if sys.platform == "linux":
        import fcntl

        with contextlib.suppress(OSError):
            fcntl.fcntl(frames, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
    decoder = msgspec.msgpack.Decoder(Task)
    with contextlib.suppress(BrokenPipeError):
        while (body := read_frame(tasks)) is not None:
            for frame in read(decoder.decode(body)):
                write_frame(frames, frame)
                frames.flush()


if __name__ == "__main__":
    main()
