"""Worker processes of one history: started, followed and ended from here.

A worker refreshes within a budget while its caller waits, so that a large refresh never holds the caller's event loop; or it
maintains the index while nobody waits, one worker per index across all processes (an advisory lock that dies with it). Both
take one order on their standard input and end when that does, save a maintainer that the shell started: it goes on alone.
"""

from __future__ import annotations

import contextlib
import os
import queue
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import IO, TYPE_CHECKING

import msgspec

from ..errors import log_warning
from ..index.file import worker_lock
from ..model.limits import LIMITS
from ..refresh.plan import Budget, Lost, Outcome, Progress, Stopped
from ..refresh.processes import end, start, written
from ..settings import Settings

if TYPE_CHECKING:
    import subprocess

#: Seconds between two scans with a watcher: it may miss something.
LOOK_SECONDS = 30.0
#: Back-off between maintainers: max(REST_SECONDS, REST_FACTOR × the last one's duration).
REST_FACTOR, REST_SECONDS = 2.0, 2.0
#: Back-off after a maintainer that could not be started.
FAILED_REST_SECONDS = 60.0
#: Seconds that a worker may take to end when it is told to.
STOP_SECONDS = 5.0
#: Seconds after its deadline that a worker may take to say what it did.
GRACE_SECONDS = 1.0


class Order(msgspec.Struct):
    """What a worker is told, as the first line of its standard input."""

    settings: Settings
    #: Refresh until this deadline (monotonic time, the same in all processes), or maintain the index.
    maintain: bool
    session_id: str | None = None
    deadline: float | None = None
    #: A maintainer that goes on when its standard input ends.
    detached: bool = False
    #: The descriptor of the maintainer's lock, which the caller has taken for it (where that can be done).
    lock: int | None = None


class Report(msgspec.Struct, omit_defaults=True):
    """One line of what a refreshing worker says: how far it is, or (last) what it did."""

    progress: tuple[int, int, int, int] | None = None
    outcome: Outcome | None = None


class Maintainer:
    """A maintaining worker, and a thread that waits for its end: so nothing is left of it when it has ended, however long
    nobody asks; and this program may end before it."""

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
        """Whether it ends within `seconds`, for which this waits."""
        self._follower.join(seconds)
        return not self._follower.is_alive()


class Supervisor:
    """Starts the workers of one history; at most one at a time maintains."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        #: A maintainer that the shell starts outlives it.
        self.detached = False
        self._maintainer: Maintainer | None = None
        self._rest_until = 0.0

    # -- refreshing ---------------------------------------------------------------------------------------------------

    def refresh(self, session_id: str | None, budget: Budget, progress: Progress | None) -> Outcome:
        """The outcome of a refresh that a worker does.

        Raises Lost where none can be started or it ends without a word, and Stopped if the caller has gone.
        """
        try:
            process = start("engine.worker", answers=True)
        except OSError as error:
            raise Lost from error
        lines: queue.Queue[bytes] = queue.Queue()
        threading.Thread(target=_pump, args=(process.stdout, lines), daemon=True).start()
        try:
            _tell(process, Order(self.settings, maintain=False, session_id=session_id, deadline=budget.deadline))
            return _followed(lines, budget, progress)
        finally:
            end(process)

    # -- maintaining --------------------------------------------------------------------------------------------------

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
        """Ends a maintainer that belongs to this program; what it has committed stays."""
        worker = self._maintainer
        if worker is None or self.detached:
            return
        worker.dismiss()
        if not worker.ends_within(STOP_SECONDS):
            worker.process.kill()
            worker.ends_within(None)

    def forget(self) -> None:
        """In a process that was forked: the worker belongs to the other one, and must not wait for this one's end too."""
        worker, self._maintainer = self._maintainer, None
        if worker is not None:
            worker.dismiss()

    def _busy(self) -> bool:
        worker = self._maintainer
        if worker is not None and worker.seconds is not None:
            self._maintainer = None
            self._rest_until = worker.began + worker.seconds + max(REST_SECONDS, REST_FACTOR * worker.seconds)
        return self._maintainer is not None or time.monotonic() < self._rest_until

    def _start(self, lock: int | None) -> None:
        try:
            process = start(
                "engine.worker",
                answers=False,
                cwd=os.path.dirname(self.settings.index),
                start_new_session=True,
                pass_fds=() if lock is None else (lock,),
            )
        except OSError as error:
            log_warning("maintenance cannot be started: %s", error)
            self._rest_until = time.monotonic() + FAILED_REST_SECONDS
            return
        _tell(process, Order(self.settings, maintain=True, detached=self.detached, lock=lock))
        self._maintainer = Maintainer(process)
        if self.detached:
            self._maintainer.dismiss()


def _tell(process: subprocess.Popen[bytes], order: Order) -> None:
    assert process.stdin is not None
    with contextlib.suppress(OSError):  # (one that has ended is met when it is followed)
        process.stdin.write(written(order))
        process.stdin.flush()


def _followed(lines: queue.Queue[bytes], budget: Budget, progress: Progress | None) -> Outcome:
    decoder = msgspec.json.Decoder(Report)
    last = None if budget.deadline is None else budget.deadline + GRACE_SECONDS
    while True:
        if budget.cancelled():
            raise Stopped
        if last is not None and time.monotonic() > last:
            return Outcome(left=1)
        try:
            line = lines.get(timeout=0.02)
        except queue.Empty:
            continue
        if not line:
            raise Lost
        report = decoder.decode(line)
        if report.outcome is not None:
            return report.outcome
        if report.progress is not None and progress is not None:
            progress(*report.progress)


def _pump(stream: IO[bytes], lines: queue.Queue[bytes]) -> None:
    with contextlib.suppress(OSError, ValueError):
        for line in stream:
            lines.put(line)
    lines.put(b"")


def changes(roots: list[str], stopped: Callable[[], bool]) -> Iterator[None]:
    """Yields whenever something below the roots may have changed, until `stopped`."""
    present = [root for root in roots if os.path.isdir(root)]
    try:
        from watchfiles import watch
    except ImportError:
        present = []
    if not present:
        while _slept(LIMITS.watch_seconds, stopped):
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
