"""What one history does, and in which of its threads: one lane reads, one writes, so that a search never waits for a
refresh. Calls are written as steps, which run outside a caller's loop or in the caller's own thread.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, TypeVar

import apsw

from . import log
from .answering import Answerer
from .archive.registry import Registry
from .archive.sources import Walk
from .budget import Budget, Progress
from .desk import ATTEMPTS, Cancelled, Damaged, Desk, Job, Lane, closed, damaged_again, unavailable
from .errors import IndexUnavailable, RefreshIncomplete, SessionNotFound
from .index.file import IndexFile
from .index.freshness import prefixes
from .lookout import Lookout
from .maintenance import Maintainer, changes, worker_lock
from .request import AnyRequest, SearchRequest
from .settings import Settings

if TYPE_CHECKING:
    from .conversation import Work
    from .updating import Updater

T = TypeVar("T")
#: A step names the lane that runs it; its result comes back into the generator, its value is the end's result.
Steps = Generator[tuple[Lane, Job[Any]], Any, Any]

#: ``refresh=True`` has this long, from the call.
REFRESH_SECONDS = 25.0
#: A conversation that is known is brought up to date for so long, then answered as it is.
RECALL_SECONDS = 5.0
#: Without a snapshot, the first call builds one for so long.
FIRST_BUILD_SECONDS = 5.0


class Engine:
    """Works for one history. `alone`: nobody's event loop has to be kept free, so large work needs no process of its own."""

    def __init__(self, settings: Settings, *, alone: bool) -> None:
        self.settings, self.alone = settings, alone
        self.maintainer = Maintainer(settings)
        self.index = IndexFile(settings.index)
        below = prefixes(root.path for root in settings.roots)
        self.readers, self.writers = Lane("read", self.index, below), Lane("write", self.index, below)
        self.lookout = Lookout(settings.roots)
        self.answerer = Answerer(
            self.index,
            Registry(settings.registry),
            self.lookout,
            settings.current_session,
            self.maintainer.found_work,
        )
        self.closed = False

    @cached_property
    def updater(self) -> Updater:
        """What writes; loaded only by a call that finds something to write."""
        from .updating import Updater

        return Updater(self.settings, self.index, self.lookout, alone=self.alone)

    def close(self) -> None:
        """Ends the threads and connections; a call that runs is finished first."""
        if not self.closed:
            self.closed = True
            self.readers.close()
            self.writers.close()
            self.maintainer.stop()

    # -- who runs what ------------------------------------------------------------------------------------------------

    async def awaited(self, steps: Steps) -> Any:
        """Runs the steps outside the caller's loop; cancelling the caller stops the work."""
        import asyncio

        cancelled = threading.Event()
        try:
            step = next(steps)
            while True:
                self._raise_if_closed()
                lane, job = step
                try:
                    result = await asyncio.wrap_future(lane.submit(job, cancelled))
                except Exception as error:  # noqa: BLE001  (the steps decide what it means)
                    step = steps.throw(error)
                else:
                    step = steps.send(result)
        except StopIteration as end:
            return end.value
        except asyncio.CancelledError:
            cancelled.set()
            raise

    def run(self, steps: Steps) -> Any:
        """Runs the steps in this thread."""
        try:
            step = next(steps)
            while True:
                self._raise_if_closed()
                lane, job = step
                try:
                    result = lane.run(job, lambda: False)
                except Exception as error:  # noqa: BLE001
                    step = steps.throw(error)
                else:
                    step = steps.send(result)
        except StopIteration as end:
            return end.value

    def _raise_if_closed(self) -> None:
        if self.closed:
            raise closed()

    # -- steps --------------------------------------------------------------------------------------------------------

    def answering(self, request: AnyRequest) -> Steps:
        """The answer to a checked request, after a refresh if it asks for one."""
        if isinstance(request, SearchRequest):
            from .index.query import parse

            parse(request.query)  # refused before any file is looked at
        deadline = time.monotonic() + REFRESH_SECONDS
        for attempt in range(ATTEMPTS):
            try:
                if request.refresh:
                    yield self.writers, partial(self._refreshed, request.session_id, deadline, None)
                as_it_is = request.refresh or attempt > 1
                answer = yield self.readers, partial(self.answerer.answered, request, as_it_is)
            except Damaged as damage:
                yield self.writers, partial(self.updater.heal, damage)
                continue
            if answer is not None:
                return answer
            # Nothing is indexed yet (or any more): build for a short while and answer from what that gave.
            yield self.writers, self._first_built
        raise damaged_again()

    def recalling(self, session_id: str, work: Work[T]) -> Steps:
        """Brings the conversation's own file up to date, then works on the snapshot."""
        for _ in range(2):
            incomplete: RefreshIncomplete | IndexUnavailable | None = None
            try:
                if not (
                    yield (
                        self.readers,
                        partial(self.answerer.in_snapshot, partial(self.answerer.is_current, session_id)),
                    )
                ):
                    try:
                        yield self.writers, partial(self._caught_up, session_id, time.monotonic())
                    except (RefreshIncomplete, IndexUnavailable) as error:
                        incomplete = error  # the answer itself says how far the snapshot reaches
                return (yield self.readers, partial(self.answerer.in_snapshot, partial(self.answerer.recalled, work)))
            except SessionNotFound:
                if incomplete is not None and _may_hide(incomplete):
                    raise incomplete from None  # it may be in a file that was not read
                raise
            except Damaged as damage:
                yield self.writers, partial(self.updater.heal, damage)
        raise damaged_again()

    def refreshing(self, session_id: str | None, progress: Progress | None) -> Steps:
        """Brings everything or one session up to date; ends with the freshness after it."""
        for _ in range(ATTEMPTS):
            try:
                yield self.writers, partial(self._refreshed, session_id, None, progress)
                return (
                    yield (
                        self.readers,
                        partial(self.answerer.in_snapshot, partial(self.answerer.freshness_now, session_id)),
                    )
                )
            except Damaged as damage:
                yield self.writers, partial(self.updater.heal, damage)
        raise damaged_again()

    def _refreshed(
        self,
        session_id: str | None,
        deadline: float | None,
        progress: Progress | None,
        desk: Desk,
        cancelled: Callable[[], bool],
    ) -> None:
        """Brings the selected files up to date or raises RefreshIncomplete."""
        self.updater.refresh_fully(desk, Budget(deadline, cancelled), progress, session_id)

    def _caught_up(self, session_id: str, began: float, desk: Desk, cancelled: Callable[[], bool]) -> None:
        """Brings one session up to date, by its own files where these are known; or raises RefreshIncomplete."""
        from .conversation import own_files

        def known(desk: Desk, _connection: apsw.Connection, _cancelled: Callable[[], bool]) -> bool:
            return own_files(desk.catalog, session_id) is not None

        seconds = RECALL_SECONDS if desk.read(known, cancelled) else REFRESH_SECONDS
        budget = Budget(began + seconds, cancelled)

        def look() -> Walk:
            return own_files(desk.catalog, session_id) or self.lookout.walk(budget.over)

        self.updater.refresh_fully(desk, budget, session_id=session_id, look=look)

    def _first_built(self, desk: Desk, cancelled: Callable[[], bool]) -> None:
        self.updater.refresh(desk, Budget(time.monotonic() + FIRST_BUILD_SECONDS, cancelled))

    # -- maintenance --------------------------------------------------------------------------------------------------

    def maintain_alone(self, stopped: Callable[[], bool], watch: bool, progress: Progress | None) -> None:
        """Maintenance as the one worker of the index; with `watch`, whenever something changes. Raises IndexUnavailable."""
        lock = worker_lock(self.settings.index)
        self.writers.submit(lambda desk, _cancelled: desk.connection(), threading.Event()).result()
        try:
            if not lock.acquire():
                raise IndexUnavailable("another worker maintains this index", hint="let it finish, or stop it")
        except OSError as error:
            raise unavailable("written", error) from error
        try:
            self.maintain(stopped, progress)
            if watch:
                for _ in changes([root.path for root in self.settings.roots], stopped):
                    try:
                        self.maintain(stopped, None)
                    except IndexUnavailable as error:
                        if self.closed:
                            return
                        log.warning("maintenance: %s", error)  # the next round may do better
        finally:
            lock.release()

    def maintain(self, stopped: Callable[[], bool], progress: Progress | None = None) -> None:
        """One round of maintenance in the writing lane: refresh, purge, empty the log. Raises IndexUnavailable."""
        try:
            self.writers.submit(partial(self.updater.maintain, stopped, progress), threading.Event()).result()
        except Cancelled:
            return


def _may_hide(problem: RefreshIncomplete | IndexUnavailable) -> bool:
    """Whether files were left that may hold what was not found."""
    return isinstance(problem, IndexUnavailable) or bool(problem.details["left"] or problem.details["unsettled"])
