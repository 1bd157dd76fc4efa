"""Processes of our own: this interpreter running one of this package's modules, or a copy of this very process."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import IO, TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from typing import Any

    import msgspec


T = TypeVar("T")

#: Whether this process is being copied just now, by a `Copy` and by nobody else.
copying = False


class Child(Protocol):
    """A process that takes orders on one stream and may answer on another."""

    @property
    def stdin(self) -> IO[bytes] | None: ...
    @property
    def stdout(self) -> IO[bytes] | None: ...
    def kill(self) -> None: ...
    def wait(self) -> int: ...


def start(module: str, *words: str, answers: bool, **more: Any) -> subprocess.Popen[bytes]:
    """A child that runs `module` and reads its orders from its standard input; `answers` if its output is wanted.

    `more` goes to ``subprocess.Popen``. Raises OSError, also where this interpreter is part of another program.
    """
    import subprocess

    if not sys.executable:
        raise FileNotFoundError("the interpreter's own file is unknown")

    return subprocess.Popen(
        # -P: what lies in the caller's folder must not stand in for a module that the child imports.
        [sys.executable, "-P", "-m", f"harness_session_history.{module}", *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE if answers else subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=_environment(),
        **more,
    )


def may_copy() -> bool:
    """Whether this process may be copied: only where no other thread can hold a lock that the copy would wait for, and
    where the system's own libraries stand it."""
    import threading

    return sys.platform == "linux" and threading.active_count() == 1


class Copy:
    """A copy of this process that does `work` with its orders and its answers, and then ends. Raises OSError.

    It is there at once, with all that is loaded; but it may use nothing that this process has opened.
    """

    def __init__(self, work: Callable[[IO[bytes], IO[bytes]], object]) -> None:
        orders, stdin = os.pipe()
        stdout, answers = os.pipe()
        global copying
        copying = True
        try:
            self.pid = os.fork()
        except OSError:
            for end in (orders, stdin, stdout, answers):
                os.close(end)
            raise
        finally:
            copying = False
        if self.pid == 0:
            _work_alone(work, orders, answers)
        os.close(orders)
        os.close(answers)
        self.stdin: IO[bytes] = os.fdopen(stdin, "wb")
        self.stdout: IO[bytes] = os.fdopen(stdout, "rb")
        self._status: int | None = None

    def kill(self) -> None:
        if self._status is None:
            import signal

            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)

    def wait(self) -> int:
        if self._status is None:
            self._status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self._status


def _work_alone(work: Callable[[IO[bytes], IO[bytes]], object], orders: int, answers: int) -> None:
    """What the copy does. Never returns: what belongs to the process that was copied is not cleaned up twice."""
    import signal

    status = 1
    try:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        os.dup2(orders, 0)
        os.dup2(answers, 1)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        _close_from(3)
        work(os.fdopen(0, "rb"), os.fdopen(1, "wb"))
        status = 0
    finally:
        os._exit(status)


def _close_from(first: int) -> None:
    """Closes all descriptors from this one on. (There may be room for a thousand million of them, so not one by one.)"""
    try:
        there = [int(name) for name in os.listdir("/proc/self/fd")]
    except OSError:
        os.closerange(first, 1 << 16)
        return
    for descriptor in there:
        if descriptor >= first:
            with contextlib.suppress(OSError):  # the one by which they were listed
                os.close(descriptor)


def end(child: Child) -> None:
    """Ends a child, whatever it is doing."""
    child.kill()
    child.wait()
    for stream in (child.stdin, child.stdout):
        with contextlib.suppress(OSError, ValueError):
            if stream is not None:
                stream.close()


def written(order: msgspec.Struct) -> bytes:
    """An order as a line of JSON. (By the standard library: paths need not be UTF-8, and it takes any string.)"""
    import json

    import msgspec

    return json.dumps(msgspec.to_builtins(order)).encode() + b"\n"


def read(line: bytes, kind: type[T]) -> T:
    """The order that was `written`."""
    import json

    import msgspec

    return msgspec.convert(json.loads(line), kind)


def _environment() -> dict[str, str]:
    """The environment in which a child finds this very package."""
    home = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    paths = [home, *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
