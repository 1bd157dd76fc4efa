"""`SessionHistory`: list, search and open over one set of transcripts and one index.

Calls are checked first, then run in threads of the history's own: one lane reads, one writes, so that a search never
waits for a refresh. Every answer comes from the last committed snapshot and from cited bytes that were read again.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Generator
from functools import cached_property, partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

import apsw

from .answering import Answerer, AnyRequest
from .archive.registry import Registry
from .archive.sources import Walk
from .budget import Budget, Outcome, Progress
from .desk import ATTEMPTS, Cancelled, Damaged, Desk, Job, Lane, closed, damaged_again, unavailable
from .errors import IndexUnavailable, InvalidRequest, RefreshIncomplete, SessionNotFound
from .index.file import IndexFile
from .index.freshness import prefixes
from .lookout import Lookout
from .maintenance import Maintainer, changes, worker_lock
from .request import SearchRequest, build_request, unset
from .response import HistoryResult
from .settings import Settings

if TYPE_CHECKING:
    from .arguments import Branch, Kind, Operation, Role, Sort
    from .conversation import Conversation, Work
    from .settings import PathArgument
    from .updating import Updater

log = logging.getLogger("harness_session_history")
log.addHandler(logging.NullHandler())  # heard only by a program that wants to

T = TypeVar("T")
#: A step names the lane that runs it; its result comes back into the generator, its value is the end's result.
Steps = Generator[tuple[Lane, Job[Any]], Any, Any]

#: ``refresh=True`` has this long, from the call.
REFRESH_SECONDS = 25.0
#: A conversation that is known is brought up to date for so long, then answered as it is.
RECALL_SECONDS = 5.0
#: Without a snapshot, the first call builds one for so long.
FIRST_BUILD_SECONDS = 5.0


class SessionHistory:
    """Past sessions under `roots`, answered from `index`; what is None comes from the environment.

    ``await history(operation=...)`` answers, ``await history.refresh()`` brings the index up to date,
    ``await history.close()`` (or ``async with``) ends it. Raises InvalidRequest for a wrong setting.
    """

    def __init__(
        self,
        *,
        roots: PathArgument | list[PathArgument] | tuple[PathArgument, ...] | None = None,
        index: PathArgument | None = None,
        current_session_id: str | None = None,
        registry: PathArgument | None = None,
        maintenance: bool = True,
    ) -> None:
        self._set_up(
            Settings.resolve(
                roots=roots,
                index=index,
                current_session_id=current_session_id,
                registry=registry,
                maintenance=maintenance,
            )
        )

    @classmethod
    def of(cls, settings: Settings) -> SessionHistory:
        """A history over settings that are already resolved, in a process that nobody else works in."""
        history = cls.__new__(cls)
        history._set_up(settings, alone=True)
        return history

    def _set_up(self, settings: Settings, *, alone: bool = False) -> None:
        self.settings = settings
        self.maintainer = Maintainer(settings)
        self._index = IndexFile(self.settings.index)
        below = prefixes(root.path for root in settings.roots)
        self._readers, self._writers = Lane("read", self._index, below), Lane("write", self._index, below)
        self._lookout = Lookout(settings.roots)
        self._answerer = Answerer(
            self._index,
            Registry(settings.registry),
            self._lookout,
            settings.current_session,
            self.maintainer.found_work,
        )
        #: Whether nobody's event loop has to be kept free: then large work needs no process of its own.
        self.alone = alone
        self._closed = False

    async def __call__(
        self,
        *,
        operation: Operation = unset("search"),
        query: str | None = None,
        session_id: str | None = None,
        entry_id: str | None = None,
        kind: Kind = unset("any"),
        include_deleted: bool = unset(False),
        include_current: bool = unset(False),
        cwd: str | None = None,
        since: str | None = None,
        until: str | None = None,
        roles: tuple[Role, ...] | list[Role] = unset(("user", "assistant")),
        limit: int = unset(10),
        sort: Sort = unset("relevance"),
        snippet_chars: int = unset(320),
        branch: Branch = unset("visible"),
        before: int = unset(2),
        after: int = unset(2),
        max_chars: int = unset(6000),
        refresh: bool = unset(False),
    ) -> HistoryResult:
        """One answer; arguments, bounds, fields and errors as the documentation of the answers says."""
        request = build_request(
            operation=operation, query=query, session_id=session_id, entry_id=entry_id, kind=kind,
            include_deleted=include_deleted, include_current=include_current, cwd=cwd, since=since, until=until,
            roles=roles, limit=limit, sort=sort, snippet_chars=snippet_chars, branch=branch, before=before,
            after=after, max_chars=max_chars, refresh=refresh,
        )  # fmt: skip
        answer: HistoryResult = await self._awaited(self._answer_steps(request))
        return answer

    def ask(self, **arguments: object) -> HistoryResult:
        """The same call for a program without an event loop: the answer is worked out in this thread."""
        return self.answer(build_request(**arguments))

    def answer(self, request: AnyRequest) -> HistoryResult:
        """The answer to a checked request, worked out in this thread."""
        answer: HistoryResult = self._run(self._answer_steps(request))
        return answer

    async def refresh(self, session_id: str | None = None, progress: Progress | None = None) -> dict[str, Any]:
        """Brings everything (or one session) up to date, without a limit of time; returns the freshness after it.

        Raises RefreshIncomplete if a file cannot be read or does not hold still.
        """
        freshness: dict[str, Any] = await self._awaited(self._refresh_steps(session_id, progress))
        return freshness

    def refresh_now(self, session_id: str | None = None, progress: Progress | None = None) -> dict[str, Any]:
        """As `refresh`, worked out in this thread."""
        freshness: dict[str, Any] = self._run(self._refresh_steps(session_id, progress))
        return freshness

    def conversation(self, session_id: str | None = None) -> Conversation:
        """One conversation, for the tools that recall it; by default the one that is calling.

        Raises InvalidRequest if no id is given and the caller's own is unknown.
        """
        from .conversation import Conversation

        own = self.settings.current_session if session_id is None else session_id
        if own is None:
            raise InvalidRequest(
                "the calling conversation is unknown",
                hint="name it: history_tools(session_id), SESSION_HISTORY_CURRENT, or --current",
            )
        return Conversation(own, self._recall)

    async def _recall(self, session_id: str, work: Work[T]) -> T:
        answer: T = await self._awaited(self._recall_steps(session_id, work))
        return answer

    async def maintain(self, *, watch: bool = False, progress: Progress | None = None) -> None:
        """Brings everything up to date and cleans up, without a caller's budget; with `watch`, again and again.

        Raises IndexUnavailable if another worker of this index runs.
        """
        import asyncio

        stop = threading.Event()
        try:
            await asyncio.get_running_loop().run_in_executor(
                None, partial(self._maintain_alone, stop.is_set, watch, progress)
            )
        except asyncio.CancelledError:
            stop.set()
            raise

    def _maintain_alone(self, stopped: Callable[[], bool], watch: bool, progress: Progress | None) -> None:
        lock = worker_lock(self.settings.index)
        self._writers.submit(lambda desk, _cancelled: desk.connection(), threading.Event()).result()
        try:
            if not lock.acquire():
                raise IndexUnavailable("another worker maintains this index", hint="let it finish, or stop it")
        except OSError as error:
            raise unavailable("written", error) from error
        try:
            self.maintain_now(stopped, progress)
            if watch:
                for _ in changes([root.path for root in self.settings.roots], stopped):
                    try:
                        self.maintain_now(stopped, None)
                    except IndexUnavailable as error:
                        if self._closed:
                            return
                        log.warning("maintenance: %s", error)  # the next round may do better
        finally:
            lock.release()

    def maintain_now(self, stopped: Callable[[], bool], progress: Progress | None = None) -> None:
        """One round of maintenance in the writing lane: refresh, purge, empty the log. Raises IndexUnavailable."""
        try:
            self._writers.submit(partial(self._updater.maintain, stopped, progress), threading.Event()).result()
        except Cancelled:
            return

    async def close(self) -> None:
        """Ends the threads and connections; a call that runs is finished first."""
        if not self._closed:
            import asyncio

            await asyncio.get_running_loop().run_in_executor(None, self.close_now)

    def close_now(self) -> None:
        """As `close`, in this thread."""
        if not self._closed:
            self._closed = True
            self._readers.close()
            self._writers.close()
            self.maintainer.stop()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    @cached_property
    def _updater(self) -> Updater:
        """What writes; loaded only by a call that finds something to write."""
        from .updating import Updater

        return Updater(self.settings, self._index, self._lookout, alone=self.alone)

    # -- who runs what ------------------------------------------------------------------------------------------------

    async def _awaited(self, steps: Steps) -> Any:
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

    def _run(self, steps: Steps) -> Any:
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
        if self._closed:
            raise closed()

    # -- steps --------------------------------------------------------------------------------------------------------

    def _answer_steps(self, request: AnyRequest) -> Steps:
        if isinstance(request, SearchRequest):
            from .index.query import parse

            parse(request.query)  # refused before any file is looked at
        deadline = time.monotonic() + REFRESH_SECONDS
        for attempt in range(ATTEMPTS):
            try:
                if request.refresh:
                    yield self._writers, partial(self._refreshed, request.session_id, deadline, None)
                as_it_is = request.refresh or attempt > 1
                answer = yield self._readers, partial(self._answerer.answered, request, as_it_is)
            except Damaged as damage:
                yield self._writers, partial(self._updater.heal, damage)
                continue
            if answer is not None:
                return answer
            # Nothing is indexed yet (or any more): build for a short while and answer from what that gave.
            yield self._writers, self._first_built
        raise damaged_again()

    def _recall_steps(self, session_id: str, work: Work[T]) -> Steps:
        """Brings the conversation's own file up to date, then works on the snapshot."""
        for _ in range(2):
            incomplete: RefreshIncomplete | IndexUnavailable | None = None
            try:
                if not (
                    yield (
                        self._readers,
                        partial(self._answerer.in_snapshot, partial(self._answerer.is_current, session_id)),
                    )
                ):
                    try:
                        yield self._writers, partial(self._caught_up, session_id, time.monotonic())
                    except (RefreshIncomplete, IndexUnavailable) as error:
                        incomplete = error  # the answer itself says how far the snapshot reaches
                return (
                    yield self._readers, partial(self._answerer.in_snapshot, partial(self._answerer.recalled, work))
                )
            except SessionNotFound:
                if incomplete is not None and _may_hide(incomplete):
                    raise incomplete from None  # it may be in a file that was not read
                raise
            except Damaged as damage:
                yield self._writers, partial(self._updater.heal, damage)
        raise damaged_again()

    def _refresh_steps(self, session_id: str | None, progress: Progress | None) -> Steps:
        for _ in range(ATTEMPTS):
            try:
                yield self._writers, partial(self._refreshed, session_id, None, progress)
                return (
                    yield (
                        self._readers,
                        partial(self._answerer.in_snapshot, partial(self._answerer.freshness_now, session_id)),
                    )
                )
            except Damaged as damage:
                yield self._writers, partial(self._updater.heal, damage)
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
        self._updater.refresh_fully(desk, Budget(deadline, cancelled), progress, session_id)

    def _caught_up(self, session_id: str, began: float, desk: Desk, cancelled: Callable[[], bool]) -> None:
        """Brings one session up to date, by its own files where these are known; or raises RefreshIncomplete."""
        from .conversation import own_files

        def known(desk: Desk, _connection: apsw.Connection, _cancelled: Callable[[], bool]) -> bool:
            return own_files(desk.catalog, session_id) is not None

        seconds = RECALL_SECONDS if desk.read(known, cancelled) else REFRESH_SECONDS
        budget = Budget(began + seconds, cancelled)

        def look() -> Walk:
            return own_files(desk.catalog, session_id) or self._lookout.walk(budget.over)

        self._updater.refresh_fully(desk, budget, session_id=session_id, look=look)

    def _first_built(self, desk: Desk, cancelled: Callable[[], bool]) -> None:
        self._updater.refresh(desk, Budget(time.monotonic() + FIRST_BUILD_SECONDS, cancelled))

    def refresh_here(self, session_id: str | None, budget: Budget, progress: Progress | None) -> Outcome:
        """A refresh in this thread and process."""
        return self._updater.refresh(self._writers.desk, budget, progress, session_id)


def _may_hide(problem: RefreshIncomplete | IndexUnavailable) -> bool:
    """Whether files were left that may hold what was not found."""
    return isinstance(problem, IndexUnavailable) or bool(problem.details["left"] or problem.details["unsettled"])
