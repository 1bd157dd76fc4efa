"""Lanes and calls: a lane works at one desk, one job after another; the steps of a call go from lane to lane."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from ..index.connection import Cancelled, Desk, closed
from . import forks

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

    from ..index.file import IndexFile


T = TypeVar("T")
Job = Callable[[Desk, Callable[[], bool]], T]


class Late(Exception):
    """The lane did not become free in time, so the job was not begun and never will be."""


class Lane:
    """Runs jobs one after another at one desk, in a thread that is there from the first job on, or in the caller's.

    `until`, here and below: the moment of monotonic time until which a job may wait for its turn; None: for ever.
    """

    def __init__(self, name: str, desk: Desk) -> None:
        self.name, self.desk = name, desk
        self._pool: ThreadPoolExecutor | None = None
        self._unfinished = 0
        self._lock = threading.Lock()
        self._working = threading.Lock()

    def submit(self, job: Job[T], cancelled: threading.Event, until: float | None = None) -> Future[T]:
        """Queues a job; `cancelled` ends it, before it begins or in the middle. The future of a late one is cancelled."""
        with self._lock:
            if self._pool is None:
                from concurrent.futures import ThreadPoolExecutor

                self._pool = ThreadPoolExecutor(1, thread_name_prefix=f"session-history-{self.name}")
            try:
                future = self._pool.submit(self.run, job, cancelled.is_set, until)
            except RuntimeError as error:  # the interpreter is ending
                raise closed() from error
            waits = self._unfinished > 0
            self._unfinished += 1
        future.add_done_callback(self._finished)
        if waits and until is not None:
            timer = threading.Timer(max(0.0, until - time.monotonic()), future.cancel)
            timer.daemon = True
            timer.start()
            future.add_done_callback(lambda _: timer.cancel())
        return future

    def _finished(self, _: Future[Any]) -> None:
        with self._lock:
            self._unfinished -= 1

    def run(self, job: Job[T], cancelled: Callable[[], bool], until: float | None = None) -> T:
        """Runs a job in this thread. Raises Late, and Cancelled if nobody wants it any more."""
        if cancelled():
            raise Cancelled
        if not self._working.acquire(timeout=-1 if until is None else max(0.0, until - time.monotonic())):
            raise Late
        try:
            return job(self.desk, cancelled)
        finally:
            self._working.release()

    def rest(self, seconds: float) -> bool:
        """Closes the connection and begins nothing until `go_on`; False if the lane is not free within so many seconds."""
        if not self._working.acquire(timeout=seconds):
            return False
        self.desk.close()
        return True

    def go_on(self) -> None:
        """Ends the rest."""
        self._working.release()

    def close(self) -> None:
        """Waits for what runs, then closes the connection. No job may come after that."""
        if self._pool is not None:
            self._pool.shutdown()
        with self._working:
            self.desk.close()


class Step(NamedTuple):
    """What a call does next: a job in a lane, whose result comes back into the steps."""

    lane: Lane
    job: Job[Any]
    until: float | None = None


#: Yields what to do next; its value is the call's. A step that was late raises Late in it.
Steps = Generator[Step, Any, Any]


class Call:
    """A call that is awaited: the end of one step begins the next, in the thread of the lane, whatever the caller does."""

    def __init__(self, steps: Steps, ended: Callable[[], None]) -> None:
        from concurrent.futures import Future

        self._steps = steps
        #: Set to end the call.
        self.cancelled = threading.Event()
        self.answer: Future[Any] = Future()
        self.answer.set_running_or_notify_cancel()  # a caller who gives up leaves it to its end
        self.answer.add_done_callback(lambda _: ended())
        self._go_on(partial(next, steps))

    def _go_on(self, next_step: Callable[[], Step]) -> None:
        try:
            lane, job, until = next_step()
            future = lane.submit(job, self.cancelled, until)
        except StopIteration as end:
            self.answer.set_result(end.value)
        except BaseException as error:  # noqa: BLE001  (it is the caller's)
            self.answer.set_exception(error)
        else:
            future.add_done_callback(self._stepped)

    def _stepped(self, future: Future[Any]) -> None:
        error = Late() if future.cancelled() else future.exception()
        if error is None:
            self._go_on(partial(self._steps.send, future.result()))
        else:
            self._go_on(partial(self._steps.throw, error))


class Lanes:
    """The lane that reads and the one that writes over one index, and the calls that run in them. `below`: see `Catalog`."""

    def __init__(self, index: IndexFile, below: tuple[bytes, ...]) -> None:
        self.index, self._below = index, below
        self.closed = False
        self._set_up()
        forks.follow(self)

    def _set_up(self) -> None:
        self.readers, self.writers = (Lane(name, Desk(self.index, self._below)) for name in ("read", "write"))
        self._running = 0
        self._changed = threading.Condition()

    def renew(self) -> None:
        """In a process that was forked: what belongs to the other one is forgotten."""
        self._set_up()

    def close(self) -> None:
        """Refuses new calls, waits for those that run, ends the threads and connections."""
        with self._changed:
            self.closed = True
            self._changed.wait_for(lambda: not self._running)
        self.readers.close()
        self.writers.close()

    async def awaited(self, steps: Steps) -> Any:
        """Runs a call outside the caller's loop; cancelling the caller stops the work. Raises IndexUnavailable if closed."""
        import asyncio

        self._begin()
        call = Call(steps, self._end)
        try:
            return await asyncio.wrap_future(call.answer)
        except asyncio.CancelledError:
            call.cancelled.set()
            raise

    def run(self, steps: Steps) -> Any:
        """Runs a call in this thread. Raises IndexUnavailable if closed."""
        with self.call():
            try:
                step = next(steps)
                while True:
                    try:
                        result = step.lane.run(step.job, lambda: False, step.until)
                    except Exception as error:  # noqa: BLE001  (the steps decide what it means)
                        step = steps.throw(error)
                    else:
                        step = steps.send(result)
            except StopIteration as end:
                return end.value

    @contextmanager
    def call(self) -> Iterator[None]:
        """What is done within is a call, for which closing waits. Raises IndexUnavailable if closed."""
        self._begin()
        try:
            yield
        finally:
            self._end()

    def _begin(self) -> None:
        forks.check(self.index.path)
        with self._changed:
            if self.closed:
                raise closed()
            self._running += 1

    def _end(self) -> None:
        with self._changed:
            self._running -= 1
            self._changed.notify_all()
