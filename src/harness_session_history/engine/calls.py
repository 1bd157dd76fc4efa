"""What each call of a history does: refresh, answer, recall, maintain; each a plain function that runs in one thread."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property, partial
from typing import TYPE_CHECKING, TypeVar

import apsw

from ..answer.compose import Answerer
from ..archive.registry import Registry
from ..archive.scanner import ArchiveScanner
from ..errors import IndexUnavailable, RefreshIncomplete, SessionNotFound, log_warning
from ..index.connection import ATTEMPTS, Damaged, IndexHandle, damaged_again, unavailable
from ..index.file import IndexFile, worker_lock
from ..index.freshness import own_files, prefixes
from ..model.limits import LIMITS
from ..model.sources import FileIdentity
from ..pacing import Cancelled
from ..refresh.plan import Budget, Outcome, Progress
from ..request import AnyRequest, ListRequest, SearchRequest
from ..settings import Settings
from .supervisor import Supervisor, changes
from .threads import CallThreads, Lane, Late

if TYPE_CHECKING:
    from ..answer.branch import Work
    from ..refresh.updater import Updater
    from ..response import Freshness
    from ..result import HistoryResult

T = TypeVar("T")
Cancel = Callable[[], bool]
"""Tells whether the caller has gone, so that the work can end."""

#: Seconds of these that are kept for what comes after the reading: committing, ending processes, answering.
RESERVE_SECONDS = 0.5


class Engine:
    """Works for one history, in `threads`."""

    def __init__(self, settings: Settings, threads: CallThreads) -> None:
        self.settings, self.threads = settings, threads
        #: Nobody's event loop has to be kept free, so large work needs no process of its own.
        self.alone = False
        #: Told how far a call is that reads before it answers.
        self.progress: Progress | None = None
        self.supervisor = Supervisor(settings)
        self.index = IndexFile(settings.index)
        make = partial(IndexHandle, self.index, prefixes(root.path for root in settings.roots))
        #: One connection reads and one writes, so that a search never waits for a refresh.
        self.readers, self.writers = Lane(make), Lane(make)
        threads.lanes += [self.readers, self.writers]
        threads.in_fork.append(self.supervisor.forget)
        self.scanner = ArchiveScanner(settings.roots)
        self.answerer = Answerer(
            self.index,
            Registry(settings.registry),
            self.scanner,
            settings.current_session,
            self.supervisor.found_work,
            settings.redact,
        )
        #: Files that were marked to be read anew because of what an answer found in them, with their states at that time.
        self._marked: dict[bytes, FileIdentity] = {}

    @cached_property
    def updater(self) -> Updater:
        """What writes; loaded only by a call that finds something to write."""
        from ..refresh.updater import Updater

        return Updater(self.index, self.scanner, self.settings.max_line)

    # -- answers ------------------------------------------------------------------------------------------------------

    def answer(self, request: AnyRequest, began: float, cancelled: Cancel, *, catch_up: float = 0.0) -> HistoryResult:
        """The answer to a checked request that came at `began` (monotonic time), after a refresh if it asks for one, else
        after reading what changed if `catch_up` seconds are enough for that."""
        deadline: float | None = None
        if isinstance(request, SearchRequest):
            from ..search.query import parse

            parse(request.query)  # refused before any file is looked at
        if request.refresh:
            deadline = deadline_of(LIMITS.refresh_seconds, began)

        def from_snapshot(handle: IndexHandle, connection: apsw.Connection, stopped: Cancel) -> HistoryResult | None:
            if handle.catalog.snapshot_at is None and not request.refresh:
                return None
            return self.answerer.answer(request, handle, connection, stopped)

        def answered() -> HistoryResult:
            if request.refresh:
                self._refresh(request.session_id, deadline, self.progress, cancelled)
            elif catch_up and self._read(self.answerer.is_behind, cancelled):
                self._read_little(began + catch_up, cancelled)
            answer = self._read(from_snapshot, cancelled)
            if answer is None:
                self._build_first(cancelled)
                answer = self._read(partial(self.answerer.answer, request), cancelled)
            return answer

        return self._healing(answered, cancelled, deadline)

    def session_ids(self, said: str, request: ListRequest, cancelled: Cancel) -> list[str]:
        """Ids of the sessions in a request's scope that `said` names (see `SessionViews.named`)."""
        look = lambda handle, _connection, _stopped: self.answerer.views(handle).named(said, request)
        return self._healing(lambda: self._read(look, cancelled), cancelled)

    def recall(self, session_id: str, work: Work[T], cancelled: Cancel) -> T:
        """Brings the conversation's own file up to date, then works on the snapshot."""

        def standing(handle: IndexHandle, _connection: apsw.Connection, _cancelled: Cancel) -> tuple[bool, bool]:
            known = own_files(handle.catalog, session_id) is not None
            return known, known and self.answerer.is_current(session_id, handle)

        def recalled() -> T:
            incomplete: RefreshIncomplete | IndexUnavailable | None = None
            known, current = self._read(standing, cancelled)
            if not current:
                try:
                    self._catch_up(
                        session_id, deadline_of(LIMITS.recall_seconds if known else LIMITS.refresh_seconds), cancelled
                    )
                except (RefreshIncomplete, IndexUnavailable) as error:
                    incomplete = error  # the answer itself says how far the snapshot reaches
            try:
                return self._read(partial(self.answerer.recalled, work), cancelled)
            except SessionNotFound:
                if incomplete is not None and _may_hide(incomplete):
                    raise incomplete from None  # it may be in a file that was not read
                raise

        return self._healing(recalled, cancelled)

    def refresh(self, session_id: str | None, progress: Progress | None, cancelled: Cancel) -> Freshness:
        """Brings everything or one session up to date; returns the freshness after it."""

        def refreshed() -> Freshness:
            self._refresh(session_id, None, progress, cancelled)
            return self._read(
                lambda handle, _connection, stopped: self.answerer.freshness(handle, session_id, stopped)[1], cancelled
            )

        return self._healing(refreshed, cancelled)

    def _healing(self, work: Callable[[], T], cancelled: Cancel, deadline: float | None = None) -> T:
        """What `work` gives; begun again where the index turned out to be damaged, over an empty one."""
        for _ in range(ATTEMPTS):
            try:
                return work()
            except Damaged as damage:
                with self.writers.held(cancelled, deadline) as handle:
                    self.updater.heal(damage, handle)
            except Late:
                raise Outcome(left=1, waited=True).incomplete() from None
        raise damaged_again()

    def _read(self, work: Callable[[IndexHandle, apsw.Connection, Cancel], T], cancelled: Cancel) -> T:
        """What `work` gives within one read transaction."""
        doubted: dict[bytes, FileIdentity] = {}
        try:
            with self.readers.held(cancelled) as handle:
                try:
                    return handle.read(work, cancelled)
                finally:
                    doubted, handle.catalog.doubted = handle.catalog.doubted, {}
        finally:
            if new := {path: state for path, state in doubted.items() if self._marked.get(path) != state}:
                self._mark(new)

    def _mark(self, files: dict[bytes, FileIdentity]) -> None:
        """Has files read from their start by the next refresh, whoever's it is: they were rewritten in their midst and then
        went on as if they had only grown, so that their bytes no longer match their stored hashes."""
        try:
            with self.writers.held(lambda: False, time.monotonic()) as handle:
                if self.updater.read_anew(list(files), handle):
                    self._marked.update(files)
                    self.supervisor.found_work()
        except Late:
            pass  # whoever writes now may be reading them; the next call that meets them marks them
        except IndexUnavailable as error:
            log_warning("files cannot be marked to be read anew: %s", error)

    def _read_little(self, deadline: float, cancelled: Cancel) -> None:
        """Brings everything up to date if that is little work and nobody else writes; else leaves it as it is."""
        with suppress(Late, IndexUnavailable), self.writers.held(cancelled, time.monotonic()) as handle:
            self.updater.refresh(handle, Budget(deadline, cancelled), elsewhere=lambda: Outcome(left=1))

    def _build_first(self, cancelled: Cancel) -> None:
        """A snapshot of what can be read in a short while."""
        deadline = deadline_of(LIMITS.first_build_seconds)
        with suppress(Late), self.writers.held(cancelled, deadline) as handle:  # (else whoever works there builds it)
            self._updated(handle, Budget(deadline, cancelled), self.progress)

    def _refresh(
        self, session_id: str | None, deadline: float | None, progress: Progress | None, cancelled: Cancel
    ) -> None:
        """Brings the selected files up to date. Raises RefreshIncomplete and Late."""
        with self.writers.held(cancelled, deadline) as handle:
            outcome = self._updated(handle, Budget(deadline, cancelled), progress, session_id)
        self._require(outcome)

    def _catch_up(self, session_id: str, deadline: float, cancelled: Cancel) -> None:
        """Brings one session up to date, by its own files where these are known. Raises RefreshIncomplete."""
        budget = Budget(deadline, cancelled)
        try:
            with self.writers.held(cancelled, deadline) as handle:
                look = lambda: own_files(handle.catalog, session_id) or self.scanner.walk(budget.over)
                outcome = self.updater.refresh(handle, budget, session_id=session_id, look=look)
        except Late:
            outcome = Outcome(left=1, waited=True)
        self._require(outcome)

    def _updated(
        self, handle: IndexHandle, budget: Budget, progress: Progress | None = None, session_id: str | None = None
    ) -> Outcome:
        """The outcome of a refresh; large work is done in a process of its own where a caller's loop must be kept free."""
        elsewhere = None if self.alone else partial(self.supervisor.refresh, session_id, budget, progress)
        return self.updater.refresh(handle, budget, progress, session_id, elsewhere=elsewhere)

    def _require(self, outcome: Outcome) -> None:
        if not outcome.settled:
            self.scanner.forget()
            raise outcome.incomplete()

    # -- maintenance --------------------------------------------------------------------------------------------------

    def maintain(self, watch: bool, progress: Progress | None, stopped: Cancel) -> None:
        """Maintenance as the one worker of the index; with `watch`, whenever something changes, until it is `stopped` or the
        history closed. Raises IndexUnavailable."""
        lock = worker_lock(self.settings.index)
        with self.writers.held(stopped) as handle:
            handle.connection()
        try:
            if not lock.acquire():
                raise IndexUnavailable("another worker maintains this index", hint="let it finish, or stop it")
        except OSError as error:
            raise unavailable("written", error) from error
        try:
            self._maintain(stopped, progress)
            if watch:
                self._watch(lambda: stopped() or self.threads.closed)
        finally:
            lock.release()

    def _watch(self, stopped: Cancel) -> None:
        for _ in changes([root.path for root in self.settings.roots], stopped):
            try:
                self._maintain(stopped, None)
            except IndexUnavailable as error:
                log_warning("maintenance: %s", error)  # the next round may do better

    def _maintain(self, stopped: Cancel, progress: Progress | None) -> None:
        with suppress(Cancelled), self.writers.held(stopped) as handle:
            budget = Budget(None, stopped)
            self._updated(handle, budget, progress)
            self.updater.tidy(handle, stopped)


def deadline_of(seconds: float, began: float | None = None) -> float:
    """Monotonic deadline for the work of a call that must answer in `seconds` from `began` (None: now); a reserve is kept
    for commit and answer."""
    return (time.monotonic() if began is None else began) + seconds - min(RESERVE_SECONDS, seconds / 10)


def _may_hide(problem: RefreshIncomplete | IndexUnavailable) -> bool:
    """Whether files were left that may hold what was not found."""
    return isinstance(problem, IndexUnavailable) or bool(problem.details["left"] or problem.details["unsettled"])
