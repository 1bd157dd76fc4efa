"""An advisory lock on a file that the operating system drops when its process ends, however it ends."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterator


class FileLock:
    """Exclusive lock between processes, and between the threads of one process (each object opens the file anew)."""

    #: Whether a held lock can be handed to a child.
    inheritable = sys.platform != "win32"

    def __init__(self, path: str) -> None:
        self.path = path
        self._descriptor: int | None = None

    def acquire(self) -> bool:
        """Takes the lock now if it is free; never waits. Raises OSError if the lock file cannot be made."""
        while True:
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)
            _open.add(descriptor)
            try:
                locked = _try_lock(descriptor)
                there = locked and self._is_there(descriptor)
            except BaseException:
                _close(descriptor)
                raise
            if there:
                self._descriptor = descriptor
                return True
            _close(descriptor)
            if not locked:
                return False
            # The file was removed between opening and locking it: nobody else would meet this lock.

    def _is_there(self, descriptor: int) -> bool:
        try:
            named, held = os.stat(self.path), os.fstat(descriptor)
        except FileNotFoundError:
            return False
        return (named.st_dev, named.st_ino) == (held.st_dev, held.st_ino)

    def wait(self, seconds: float, cancelled: Callable[[], bool] = lambda: False) -> bool:
        """Takes the lock within `seconds`; False if they pass or the caller gives up."""
        deadline = time.monotonic() + seconds
        pause = 0.001
        while not self.acquire():
            if cancelled() or time.monotonic() >= deadline:
                return False
            time.sleep(min(pause, max(0.0, deadline - time.monotonic())))
            pause = min(pause * 2, 0.05)
        return True

    def hand_over(self) -> int:
        """The descriptor that holds the lock, for a child that inherits it; closing it here does not drop the child's."""
        assert self._descriptor is not None
        return self._descriptor

    def take_over(self, descriptor: int) -> None:
        """Holds a lock that the parent has taken and handed over."""
        self._descriptor = descriptor
        _open.add(descriptor)
        os.set_inheritable(descriptor, False)

    def release(self) -> None:
        if self._descriptor is not None:
            _close(self._descriptor)  # closing drops the lock
            self._descriptor = None

    @contextlib.contextmanager
    def held(self, seconds: float, cancelled: Callable[[], bool] = lambda: False) -> Iterator[bool]:
        """``with lock.held(5.0) as held``: `held` says whether the lock was had in time."""
        held = self.wait(seconds, cancelled)
        try:
            yield held
        finally:
            if held:
                self.release()


#: The descriptors of this process that hold locks, or are about to.
_open: set[int] = set()


def _close(descriptor: int) -> None:
    _open.discard(descriptor)
    os.close(descriptor)


def _after_in_child() -> None:
    """In a process that was forked: as long as it had the descriptors too, the other one could not drop its locks."""
    while _open:
        with contextlib.suppress(OSError):
            os.close(_open.pop())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_in_child)


if sys.platform == "win32":
    import msvcrt

    def _try_lock(descriptor: int) -> bool:
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

else:
    import fcntl

    def _try_lock(descriptor: int) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
