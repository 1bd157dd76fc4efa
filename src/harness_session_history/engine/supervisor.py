"""Work on the index without a caller who waits: one worker per index across all processes.

A call that found work starts it in a process of its own. One that a program started ends with that program; one that
the shell started goes on alone until the work is done. Both hold an advisory lock, so no second one runs.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import msgspec

from ..errors import log_warning
from ..index.file import worker_lock
from ..settings import Settings

if TYPE_CHECKING:
    import subprocess


#: With ``watch`` and without a watcher of the file system, the files are looked at this often.
POLL_SECONDS = 2.0
#: With a watcher, everything is looked at this often all the same.
LOOK_SECONDS = 30.0
#: After a worker has ended, the next one is not started before so many times its duration have passed.
REST_FACTOR, REST_SECONDS = 2.0, 2.0
#: How long a worker may take to end when it is told to.
STOP_SECONDS = 5.0


class Job(msgspec.Struct):
    """What a worker is told on its standard input, in one line."""

    settings: Settings
    detached: bool
    #: The descriptor of the worker's lock, which the caller has taken for it (where that can be done).
    lock: int | None = None


class Worker:
    """A worker that was started, and a thread that waits for its end: so nothing is left of it when it has ended, however
    long nobody asks; and this program may end before it."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process, self.began = process, time.monotonic()
        #: How long it worked, once it has ended.
        self.seconds: float | None = None
        self._follower = threading.Thread(target=self._follow, name="session-history-worker", daemon=True)
        self._follower.start()

    def _follow(self) -> None:
        self.process.wait()
        self.seconds = time.monotonic() - self.began
        self.dismiss()

    def dismiss(self) -> None:
        """Ends its standard input: one that belongs to this program ends with that."""
        assert self.process.stdin is not None
        with contextlib.suppress(OSError):
            self.process.stdin.close()

    def ends_within(self, seconds: float | None) -> bool:
        """Waits for its end so long."""
        self._follower.join(seconds)
        return not self._follower.is_alive()


class Maintainer:
    """Starts workers for one history, at most one at a time."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        #: A worker that the shell starts outlives it.
        self.detached = False
        self._worker: Worker | None = None
        self._rest_until = 0.0

    def found_work(self) -> None:
        """Has the index brought up to date in the background, unless that is switched off or under way."""
        if not self.settings.maintenance or not sys.executable or self._busy():
            return
        lock = worker_lock(self.settings.index)
        try:
            if not lock.acquire():
                return
        except OSError:
            return  # the folder cannot be written, so there is nothing that a worker could do
        if not lock.inheritable:
            lock.release()
        try:
            self._start(lock.hand_over() if lock.inheritable else None)
        finally:
            lock.release()

    def stop(self) -> None:
        """Ends a worker that belongs to this program; what it has committed stays."""
        worker = self._worker
        if worker is None or self.detached:
            return
        worker.dismiss()
        if not worker.ends_within(STOP_SECONDS):
            worker.process.kill()
            worker.ends_within(None)

    def forget(self) -> None:
        """In a process that was forked: the worker belongs to the other one, and must not wait for this one's end too."""
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.dismiss()

    def _busy(self) -> bool:
        worker, now = self._worker, time.monotonic()
        if worker is not None and worker.seconds is not None:
            self._worker = None
            self._rest_until = worker.began + worker.seconds + max(REST_SECONDS, REST_FACTOR * worker.seconds)
        return self._worker is not None or now < self._rest_until

    def _start(self, lock: int | None) -> None:
        from ..refresh.processes import start, written

        try:
            process = start(
                "engine.supervisor",
                answers=False,
                cwd=os.path.dirname(self.settings.index),
                start_new_session=True,
                pass_fds=() if lock is None else (lock,),
            )
        except OSError as error:
            log_warning("maintenance cannot be started: %s", error)
            self._rest_until = time.monotonic() + 60.0
            return
        assert process.stdin is not None
        with contextlib.suppress(OSError):
            process.stdin.write(written(Job(self.settings, self.detached, lock)))
            process.stdin.flush()
        self._worker = Worker(process)
        if self.detached:
            self._worker.dismiss()


def changes(roots: list[str], stopped: Callable[[], bool]) -> Iterator[None]:
    """Yields whenever something below the roots may have changed, until `stopped`."""
    present = [root for root in roots if os.path.isdir(root)]
    try:
        from watchfiles import watch
    except ImportError:
        present = []
    if not present:
        while _slept(POLL_SECONDS, stopped):
            yield
        return
    looked = -LOOK_SECONDS  # at first at once: something may have come before the watcher was there
    for found in watch(
        *present, rust_timeout=500, yield_on_timeout=True, debounce=200, step=50, ignore_permission_denied=True
    ):
        if stopped():
            return
        # A watcher may miss what happens in a folder that it cannot watch or does not know yet.
        if found or time.monotonic() - looked > LOOK_SECONDS:
            looked = time.monotonic()
            yield


def _slept(seconds: float, stopped: Callable[[], bool]) -> bool:
    """Sleeps for a while; False as soon as the sleeper is to stop."""
    until = time.monotonic() + seconds
    while not stopped():
        left = until - time.monotonic()
        if left <= 0:
            return True
        time.sleep(min(left, 0.1))
    return False


def main() -> None:
    """A worker: does what there is to do and ends, or ends when the program that started it does."""
    from ..refresh.processes import read

    job = read(sys.stdin.buffer.readline(), Job)
    stop = threading.Event()
    if not job.detached:

        def follow() -> None:
            # Not through the buffer: its lock, still held when the interpreter ends, would abort the process.
            os.read(sys.stdin.fileno(), 1)
            stop.set()

        threading.Thread(target=follow, daemon=True).start()
    if hasattr(os, "nice"):
        os.nice(5)
    lock = worker_lock(job.settings.index)
    if job.lock is not None:
        lock.take_over(job.lock)
    elif not lock.acquire():
        return
    from ..history import SessionHistory

    history = SessionHistory.of(job.settings)
    try:
        history.maintain_now(stop.is_set)
    finally:
        history.close_now()
        lock.release()


if __name__ == "__main__":
    main()
