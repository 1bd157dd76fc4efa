"""What one history does, and in which of its lanes: one reads, one writes, so that a search never waits for a refresh.
Calls are written as steps, which run outside a caller's loop or in the caller's own thread.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property, partial
from typing import TYPE_CHECKING, TypeVar

import apsw

from ..answer.compose import Answerer
from ..archive.registry import Registry
from ..archive.scanner import Lookout
from ..errors import CitationUnavailable, IndexUnavailable, RefreshIncomplete, SessionNotFound, log_warning
from ..index.connection import ATTEMPTS, Cancelled, Damaged, Desk, damaged_again, unavailable
from ..index.file import IndexFile, worker_lock
from ..index.freshness import prefixes
from ..model.sources import Walk
from ..refresh.plan import Budget, Outcome, Progress
from ..request import AnyRequest, SearchRequest
from ..settings import Settings
from .supervisor import Maintainer, changes
from .threads import Lanes, Late, Step, Steps

if TYPE_CHECKING:
    from concurrent.futures import Future

    from ..answer.branch import Work
    from ..model.sources import FileIdentity
    from ..refresh.updater import Updater


T = TypeVar("T")

#: ``refresh=True`` has this long, from the call.
REFRESH_SECONDS = 25.0
#: A conversation that is known is brought up to date for so long, then answered as it is.
RECALL_SECONDS = 5.0
#: Without a snapshot, the first call builds one for so long.
FIRST_BUILD_SECONDS = 5.0
#: So much of that time is kept for what comes after the reading: saving what was read, ending processes, answering.
RESERVE_SECONDS = 0.5


class Engine(Lanes):
    """Works for one history. `alone`: nobody's event loop has to be kept free, so large work needs no process of its own."""

    def __init__(self, settings: Settings, *, alone: bool) -> None:
        self.settings, self.alone = settings, alone
        self.maintainer = Maintainer(settings)
        super().__init__(IndexFile(settings.index), prefixes(root.path for root in settings.roots))
        self.lookout = Lookout(settings.roots)
        self.answerer = Answerer(
            self.index,
            Registry(settings.registry),
            self.lookout,
            settings.current_session,
            self.maintainer.found_work,
        )
        #: Files that were read anew because of what an answer found in them, and their states at that time.
        self._reread: dict[bytes, FileIdentity] = {}

    @cached_property
    def updater(self) -> Updater:
        """What writes; loaded only by a call that finds something to write."""
        from ..refresh.updater import Updater

        return Updater(self.settings, self.index, self.lookout, alone=self.alone)

    def close(self) -> None:
        super().close()
        self.maintainer.stop()

    def renew(self) -> None:
        super().renew()
        self.maintainer.forget()

    # -- steps --------------------------------------------------------------------------------------------------------

    def answering(self, request: AnyRequest) -> Steps:
        """The answer to a checked request, after a refresh if it asks for one."""
        if isinstance(request, SearchRequest):
            from ..search.query import parse

            parse(request.query)  # refused before any file is looked at
        deadline = _deadline(REFRESH_SECONDS) if request.refresh else None
        try:
            return (yield from self._answered(request, deadline))
        except Late:
            raise Outcome(left=1, waited=True).incomplete() from None

    def _answered(self, request: AnyRequest, deadline: float | None) -> Steps:
        """The answer, after a refresh until the deadline if there is one. Raises Late if that could not begin in time."""
        doubted = False
        for _ in range(ATTEMPTS):
            try:
                if deadline is not None:
                    yield Step(self.writers, partial(self._refreshed, request.session_id, deadline, None), deadline)
                answer = yield Step(self.readers, partial(self.answerer.answered, request, deadline is not None))
                if answer is None:
                    # Nothing is indexed yet (or any more): build for a short while and answer from what that gave.
                    yield from self._first_built()
                    answer = yield Step(self.readers, partial(self.answerer.answered, request, True))
                if doubted or not self.readers.desk.catalog.doubted:
                    return answer
                doubted = yield from self._doubts(deadline)
                if not doubted:
                    return answer
            except CitationUnavailable:
                doubted = not doubted and (yield from self._doubts(deadline))
                if not doubted:
                    raise
            except Damaged as damage:
                yield Step(self.writers, partial(self.updater.heal, damage), deadline)
        raise damaged_again()

    def _doubts(self, deadline: float | None) -> Steps:
        """Sees to it that files are read anew of which something else was indexed than they say (they were rewritten in
        their midst, and then went on as if they had only grown). True if that has been done, so that a refresh until the
        deadline now reads them; without a deadline it is left to maintenance."""
        found = yield Step(self.readers, self.answerer.take_doubted)
        new = {path: state for path, state in found.items() if self._reread.get(path) != state}
        if not new:
            return False  # they were read anew as they are, and still do not: nothing more can be done
        job = partial(self._read_anew, new)
        if deadline is None:
            self.writers.submit(job, threading.Event()).add_done_callback(_log_failure)
            return False
        try:
            yield Step(self.writers, job, deadline)
        except Late:
            return False
        return True

    def _read_anew(self, files: dict[bytes, FileIdentity], desk: Desk, cancelled: Callable[[], bool]) -> None:
        if self.updater.read_anew(list(files), desk, cancelled):
            self._reread.update(files)

    def recalling(self, session_id: str, work: Work[T]) -> Steps:
        """Brings the conversation's own file up to date, then works on the snapshot."""
        doubted = False
        for _ in range(ATTEMPTS):
            incomplete: RefreshIncomplete | IndexUnavailable | None = None
            try:
                known, current = yield Step(
                    self.readers, partial(self.answerer.in_snapshot, partial(self._standing, session_id))
                )
                if not current:
                    deadline = _deadline(RECALL_SECONDS if known else REFRESH_SECONDS)
                    try:
                        yield Step(self.writers, partial(self._caught_up, session_id, deadline), deadline)
                    except Late:
                        incomplete = Outcome(left=1, waited=True).incomplete()
                    except (RefreshIncomplete, IndexUnavailable) as error:
                        incomplete = error  # the answer itself says how far the snapshot reaches
                return (
                    yield Step(self.readers, partial(self.answerer.in_snapshot, partial(self.answerer.recalled, work)))
                )
            except SessionNotFound:
                if incomplete is not None and _may_hide(incomplete):
                    raise incomplete from None  # it may be in a file that was not read
                raise
            except CitationUnavailable:
                doubted = not doubted and (yield from self._doubts(time.monotonic() + RECALL_SECONDS))
                if not doubted:
                    raise
            except Damaged as damage:
                yield Step(self.writers, partial(self.updater.heal, damage))
        raise damaged_again()

    def refreshing(self, session_id: str | None, progress: Progress | None) -> Steps:
        """Brings everything or one session up to date; ends with the freshness after it."""
        for _ in range(ATTEMPTS):
            try:
                yield Step(self.writers, partial(self._refreshed, session_id, None, progress))
                return (
                    yield Step(
                        self.readers,
                        partial(self.answerer.in_snapshot, partial(self.answerer.freshness_now, session_id)),
                    )
                )
            except Damaged as damage:
                yield Step(self.writers, partial(self.updater.heal, damage))
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

    def _standing(
        self, session_id: str, desk: Desk, connection: apsw.Connection, cancelled: Callable[[], bool]
    ) -> tuple[bool, bool]:
        """Whether the snapshot knows the session's own files, and has them as they are."""
        from ..index.freshness import own_files

        known = own_files(desk.catalog, session_id) is not None
        return known, known and self.answerer.is_current(session_id, desk, connection, cancelled)

    def _caught_up(self, session_id: str, deadline: float, desk: Desk, cancelled: Callable[[], bool]) -> None:
        """Brings one session up to date, by its own files where these are known; or raises RefreshIncomplete."""
        from ..index.freshness import own_files

        budget = Budget(deadline, cancelled)

        def look() -> Walk:
            return own_files(desk.catalog, session_id) or self.lookout.walk(budget.over)

        self.updater.refresh_fully(desk, budget, session_id=session_id, look=look)

    def _first_built(self) -> Steps:
        """A snapshot of what can be read in a short while."""
        deadline = _deadline(FIRST_BUILD_SECONDS)

        def build(desk: Desk, cancelled: Callable[[], bool]) -> None:
            self.updater.refresh(desk, Budget(deadline, cancelled))

        with suppress(Late):  # whoever works there builds it
            yield Step(self.writers, build, deadline)

    # -- maintenance --------------------------------------------------------------------------------------------------

    def maintain_alone(self, stopped: Callable[[], bool], watch: bool, progress: Progress | None) -> None:
        """Maintenance as the one worker of the index; with `watch`, whenever something changes, until it is `stopped` or the
        history closed. Raises IndexUnavailable."""
        with self.call():
            lock = worker_lock(self.settings.index)
            self.writers.submit(lambda desk, _cancelled: desk.connection(), threading.Event()).result()
            try:
                if not lock.acquire():
                    raise IndexUnavailable("another worker maintains this index", hint="let it finish, or stop it")
            except OSError as error:
                raise unavailable("written", error) from error
            try:
                self._maintain(stopped, progress)
                if watch:
                    self._watch(lambda: stopped() or self.closed)
            finally:
                lock.release()

    def _watch(self, stopped: Callable[[], bool]) -> None:
        for _ in changes([root.path for root in self.settings.roots], stopped):
            try:
                self._maintain(stopped, None)
            except IndexUnavailable as error:
                log_warning("maintenance: %s", error)  # the next round may do better

    def maintain(self, stopped: Callable[[], bool], progress: Progress | None = None) -> None:
        """One round of maintenance in the writing lane: refresh, purge, empty the log. Raises IndexUnavailable."""
        with self.call():
            self._maintain(stopped, progress)

    def _maintain(self, stopped: Callable[[], bool], progress: Progress | None) -> None:
        try:
            self.writers.submit(partial(self.updater.maintain, stopped, progress), threading.Event()).result()
        except Cancelled:
            return


def _deadline(seconds: float) -> float:
    """When work must be over whose caller is to be answered in so many seconds."""
    return time.monotonic() + seconds - min(RESERVE_SECONDS, seconds / 10)


def _may_hide(problem: RefreshIncomplete | IndexUnavailable) -> bool:
    """Whether files were left that may hold what was not found."""
    return isinstance(problem, IndexUnavailable) or bool(problem.details["left"] or problem.details["unsettled"])


def _log_failure(work: Future[None]) -> None:
    """Says why work that nobody waits for has failed."""
    if not work.cancelled() and (error := work.exception()) is not None:
        log_warning("files cannot be marked to be read anew: %s", error)
