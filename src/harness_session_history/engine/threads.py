"""In which thread a call runs, and which connection to the index it may use.

A lane is a connection and a lock. One lane reads and one writes, so that a search never waits for a refresh. A call is a
plain function: it runs from its beginning to its end in one worker thread, or in the caller's own.

What ``os.fork`` means: no connection to SQLite may be open in a process that is copied, for the copy would take the locks
that it finds noted for its own, while the operating system has given it none. So connections are closed before a fork, and
both processes make new ones.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from ..errors import IndexUnavailable
from ..pacing import Cancelled

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

    from ..index.connection import IndexHandle

T = TypeVar("T")

#: Threads for calls that read, and for those that write. Few: each call waits for its lane's one connection anyway.
READING_THREADS, WRITING_THREADS = 16, 2
#: Seconds for which a fork waits for calls that run.
FORK_WAIT_SECONDS = 0.3
#: Seconds between two looks whether the caller of a waiting call has gone.
POLL_SECONDS = 0.05


class Late(Exception):
    """The lane did not become free before the deadline, so the work was not begun and never will be."""


class Lane:
    """A connection to the index and the lock that gives it to one call at a time. `make` makes the connection's handle."""

    def __init__(self, make: Callable[[], IndexHandle]) -> None:
        self._make = make
        self.renew()

    def renew(self) -> None:
        """In a process that was forked: the connection and the lock that may be held belong to the other one."""
        self.handle = self._make()
        self._lock = threading.Lock()

    @contextmanager
    def held(self, cancelled: Callable[[], bool], deadline: float | None = None) -> Iterator[IndexHandle]:
        """``with lane.held(...) as handle``. `deadline`: monotonic time until which to wait for the lane; None: for ever.

        Raises Late, and Cancelled if the caller has gone.
        """
        while not self._lock.acquire(timeout=_left(deadline, POLL_SECONDS)):
            if cancelled():
                raise Cancelled
            if deadline is not None and time.monotonic() >= deadline:
                raise Late
        try:
            if cancelled():
                raise Cancelled
            yield self.handle
        finally:
            self._lock.release()

    @property
    def is_busy(self) -> bool:
        """Whether a call uses the connection just now."""
        return self._lock.locked()

    def rest(self, seconds: float) -> bool:
        """Closes the connection and gives it to nobody until `go_on`; False if it is not free within `seconds`."""
        if not self._lock.acquire(timeout=seconds):
            return False
        self.handle.close()
        return True

    def go_on(self) -> None:
        """Ends the rest."""
        self._lock.release()

    def close(self) -> None:
        """Waits for the call that runs, then closes the connection."""
        with self._lock:
            self.handle.close()


class CallThreads:
    """The threads in which the calls of one history run, and the lanes that they share over the index file `index`."""

    def __init__(self, index: str) -> None:
        self.index = index
        self.closed = False
        #: Put to rest before a fork and renewed in the new process.
        self.lanes: list[Lane] = []
        #: What else has to be done in a process that was forked.
        self.in_fork: list[Callable[[], None]] = []
        self._set_up()
        _known[id(self)] = self

    def _set_up(self) -> None:
        self._pools: dict[str, ThreadPoolExecutor] = {}
        self._running = 0
        self._changed = threading.Condition()

    def renew(self) -> None:
        """In a process that was forked: what belongs to the other one is forgotten."""
        self._set_up()
        for lane in self.lanes:
            lane.renew()
        for renewed in self.in_fork:
            renewed()

    def close(self) -> None:
        """Refuses new calls, waits for those that run, ends the threads and connections."""
        with self._changed:
            self.closed = True
            self._changed.wait_for(lambda: not self._running)
        for pool in self._pools.values():
            pool.shutdown()
        for lane in self.lanes:
            lane.close()

    async def awaited(
        self, work: Callable[[Callable[[], bool]], T], *, writes: bool, deadline: float | None = None
    ) -> T:
        """Runs `work` in a thread; it is given a function that tells whether the caller has gone.

        Cancelling the awaiting task stops the work. Raises Late if no thread was free before the deadline, and
        IndexUnavailable if closed.
        """
        import asyncio

        cancelled, late = threading.Event(), False
        future = self._submit(work, cancelled.is_set, writes)

        def give_up() -> None:
            nonlocal late
            late = future.cancel()

        loop = asyncio.get_running_loop()
        timer = None if deadline is None else loop.call_later(_left(deadline, deadline), give_up)
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            cancelled.set()
            if late:
                raise Late from None
            raise
        finally:
            if timer is not None:
                timer.cancel()

    def _submit(
        self, work: Callable[[Callable[[], bool]], T], cancelled: Callable[[], bool], writes: bool
    ) -> Future[T]:
        from concurrent.futures import ThreadPoolExecutor

        self._begin()
        try:
            with self._changed:
                name, size = ("write", WRITING_THREADS) if writes else ("read", READING_THREADS)
                if name not in self._pools:
                    self._pools[name] = ThreadPoolExecutor(size, thread_name_prefix=f"session-history-{name}")
                future = self._pools[name].submit(work, cancelled)
        except RuntimeError as error:  # the interpreter is ending
            self._end()
            raise closed() from error
        future.add_done_callback(lambda _: self._end())
        return future

    @contextmanager
    def call(self) -> Iterator[None]:
        """What is done within is a call, for which closing waits. Raises IndexUnavailable if closed."""
        self._begin()
        try:
            yield
        finally:
            self._end()

    def _begin(self) -> None:
        if self.index in _inherited:
            raise IndexUnavailable(
                "this process was forked while the index was in use",
                hint="fork while no call runs, or start processes in another way (multiprocessing: spawn)",
            )
        with self._changed:
            if self.closed:
                raise closed()
            self._running += 1

    def _end(self) -> None:
        with self._changed:
            self._running -= 1
            self._changed.notify_all()


def closed() -> IndexUnavailable:
    """The error of a call to a history that is closed."""
    return IndexUnavailable("this history is closed", hint="make a new SessionHistory")


def _left(deadline: float | None, most: float) -> float:
    """Seconds until the deadline, at most `most`."""
    return most if deadline is None else max(0.0, min(most, deadline - time.monotonic()))


_known: weakref.WeakValueDictionary[int, CallThreads] = weakref.WeakValueDictionary()
#: The lanes that each thread which is about to fork has put to rest.
_resting: dict[int, list[Lane]] = {}
#: Index files that were in use when this process was forked: it must not open them.
_inherited: set[str] = set()


def _all() -> list[CallThreads]:
    return [threads for reference in _known.valuerefs() if (threads := reference()) is not None]


def _before_fork() -> None:
    deadline = time.monotonic() + FORK_WAIT_SECONDS
    resting = _resting[threading.get_ident()] = []
    for lane in (lane for threads in _all() for lane in threads.lanes):
        if lane.rest(max(0.0, deadline - time.monotonic())):
            resting.append(lane)


def _after_fork_in_parent() -> None:
    for lane in _resting.pop(threading.get_ident(), ()):
        lane.go_on()


def _after_fork_in_child() -> None:
    rested = _resting.pop(threading.get_ident(), [])
    _resting.clear()
    for threads in _all():
        if any(lane not in rested for lane in threads.lanes):
            _inherited.add(threads.index)
        threads.renew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)
