"""`SessionHistory`: list, search and open over one set of transcripts and one index; `session_history`: the same call over
one default history, made from the environment when it is first asked.

Every answer comes from the last committed snapshot and from cited bytes that were read again.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar, Unpack, overload

from .engine.threads import CallThreads, Late
from .errors import InvalidRequest, SessionNotFound
from .model.limits import LIMITS
from .model.names import plain_id
from .request import ARGUMENTS, Arguments, ListRequest, build_request
from .result import HistoryResult
from .settings import CATCH_UP_SECONDS, VARIABLES, Settings

if TYPE_CHECKING:
    from collections.abc import Callable

    from .answer.branch import Work
    from .answer.conversation import Conversation
    from .engine.calls import Engine
    from .refresh.plan import Progress
    from .request import AnyRequest, Details, Operation
    from .response import Freshness
    from .result import ListResult, OpenResult, SearchResult
    from .settings import PathArgument


T = TypeVar("T")


if TYPE_CHECKING:

    class Call:
        """What a type checker knows of a call: its arguments, and the answer to each operation."""

        @overload
        async def __call__(self, *, operation: Literal["list"], **arguments: Unpack[Details]) -> ListResult: ...
        @overload
        async def __call__(self, *, operation: Literal["open"], **arguments: Unpack[Details]) -> OpenResult: ...
        @overload
        async def __call__(
            self, *, operation: Literal["search"] = "search", **arguments: Unpack[Details]
        ) -> SearchResult: ...
        @overload
        async def __call__(self, *, operation: Operation, **arguments: Unpack[Details]) -> HistoryResult: ...
        async def __call__(self, **arguments: Any) -> Any: ...
else:
    Call = object


class SessionHistory(Call):
    """Past sessions under `roots`, answered from `index`; what is None comes from the environment when this is made.

    ``await history(operation=...)`` answers (see `__call__`), ``await history.refresh()`` brings the index up to date,
    ``await history.close()`` (or ``async with``) ends it.

    Arguments:
      roots: a folder of sessions or a list of them (str or path); None: SESSION_HISTORY_ROOTS, else Pi's own places
      index: the index file (str or path), made where there is none; None: one per set of roots in the user's cache folder
      current_session_id: id of the session that asks, which is left out, at most 128 characters; None: unknown, or from
        SESSION_HISTORY_CURRENT or PI_SESSION_ID
      registry: a file of JSON Lines that know more of sessions; None: SESSION_HISTORY_REGISTRY, else none
      maintenance: whether a call that finds work may have it done in the background
      catch_up: seconds from 0 to 25 for which a call first reads what changed, if that is little; None:
        SESSION_HISTORY_CATCH_UP, else 0
      redact: whether secrets are masked in every text (needs the extra); None: SESSION_HISTORY_REDACT, else not

    Raises InvalidRequest for a wrong setting.
    """

    def __init__(
        self,
        *,
        roots: PathArgument | list[PathArgument] | tuple[PathArgument, ...] | None = None,
        index: PathArgument | None = None,
        current_session_id: str | None = None,
        registry: PathArgument | None = None,
        maintenance: bool = True,
        catch_up: float | None = None,
        redact: bool | None = None,
    ) -> None:
        self.settings = Settings.resolve(
            roots=roots,
            index=index,
            current_session_id=current_session_id,
            registry=registry,
            maintenance=maintenance,
            catch_up=catch_up,
            redact=redact,
        )
        self._work = _Work(self.settings)
        self._usual_catch_up = 0.0

    @property
    def _engine(self) -> Engine:
        return self._work.engine()

    def stand_alone(self) -> None:
        """For a program without a loop to keep free that ends at once, as the shell: large work needs no process of its
        own, background work that a call has started goes on without the program, and a call catches up (see `Settings`)."""
        self._usual_catch_up = CATCH_UP_SECONDS
        self._engine.alone = self._engine.supervisor.detached = True

    def show_progress(self, progress: Progress) -> None:
        """Has `progress` told how far a call is that reads transcripts before it answers."""
        self._engine.progress = progress

    def session_ids(self, said: str, **scope: bool) -> list[str]:
        """Ids of the indexed sessions in scope that have this id or short id, else of those whose id or short id begins so;
        worked out in this thread. `scope`: ``include_deleted``, ``include_current``."""
        request = build_request(operation="list", **scope)
        assert isinstance(request, ListRequest)
        with self._work.threads.call():
            return self._engine.session_ids(said, request, _never)

    if not TYPE_CHECKING:

        async def __call__(self, **arguments):
            return await self.call(arguments)

    async def call(self, arguments: Arguments, *, catch_up: float = 0.0) -> HistoryResult:
        """As ``await history(**arguments)``; `catch_up` are the seconds of catching up where the settings name none."""
        request = build_request(**arguments)
        answer = await self._work.awaited(partial(self._answer, request, catch_up, time.monotonic()), request)
        answer.asked = {"operation": request.operation, **arguments}
        return answer

    def ask(self, **arguments: object) -> HistoryResult:
        """The same call for a program without an event loop: the answer is worked out in this thread."""
        return self.answer(build_request(**arguments))

    def answer(self, request: AnyRequest) -> HistoryResult:
        """The answer to a checked request, worked out in this thread."""
        with self._work.threads.call():
            return self._answer(request, self._usual_catch_up, time.monotonic(), _never)

    def _answer(
        self, request: AnyRequest, catch_up: float, began: float, cancelled: Callable[[], bool]
    ) -> HistoryResult:
        said = self.settings.catch_up
        return self._engine.answer(request, began, cancelled, catch_up=catch_up if said is None else said)

    async def refresh(self, session_id: str | None = None, progress: Progress | None = None) -> Freshness:
        """Brings everything (or one session) up to date, without a limit of time; returns the freshness after it.

        Raises RefreshIncomplete if a file cannot be read or does not hold still, InvalidRequest for an id that can be
        none, and SessionNotFound for one that no session has, once everything was read.
        """
        return await self._work.threads.awaited(partial(self._refresh, session_id, progress), writes=True)

    def refresh_now(self, session_id: str | None = None, progress: Progress | None = None) -> Freshness:
        """As `refresh`, worked out in this thread."""
        with self._work.threads.call():
            return self._refresh(session_id, progress, _never)

    def _refresh(self, session_id: str | None, progress: Progress | None, cancelled: Callable[[], bool]) -> Freshness:
        engine = self._engine
        if session_id is None:
            return engine.refresh(None, progress, cancelled)
        known = build_request(operation="list", session_id=session_id, include_deleted=True, include_current=True)
        freshness = engine.refresh(known.session_id, progress, cancelled)
        if not engine.answer(known, time.monotonic(), cancelled)["results"]:
            raise SessionNotFound("no session of this id is in scope", hint="list shows the ids of all sessions")
        return freshness

    def conversation(self, session_id: str | None = None) -> Conversation:
        """One conversation, for the tools that recall it; by default the one that is calling.

        Raises InvalidRequest if no id is given and the caller's own is unknown.
        """
        from .answer.conversation import Conversation

        own = self.settings.current_session if session_id is None else session_id
        if own is None:
            raise InvalidRequest(
                "the calling conversation is unknown",
                hint="name it: history_tools(session_id), SESSION_HISTORY_CURRENT, or --current",
            )
        return Conversation(plain_id(own), self._recall)

    async def _recall(self, session_id: str, work: Work[T]) -> T:
        def recalled(cancelled: Callable[[], bool]) -> T:
            return self._engine.recall(session_id, work, cancelled)

        return await self._work.threads.awaited(recalled, writes=False)

    async def maintain(self, *, watch: bool = False, progress: Progress | None = None) -> None:
        """Brings everything up to date and cleans up, without a caller's budget; with `watch`, again and again.

        Raises IndexUnavailable if another worker of this index runs.
        """
        await self._work.threads.awaited(lambda stopped: self._engine.maintain(watch, progress, stopped), writes=True)

    async def close(self) -> None:
        """Ends the threads and connections. Calls that run are finished first; new ones raise IndexUnavailable."""
        import asyncio

        await asyncio.get_running_loop().run_in_executor(None, self.close_now)

    def close_now(self) -> None:
        """As `close`, in this thread."""
        self._work.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


class _Work:
    """The threads of one history, and its engine: made, and what it needs imported, in the thread of the first call."""

    def __init__(self, settings: Settings) -> None:
        self.settings, self.threads = settings, CallThreads(settings.index)
        self._engine: Engine | None = None
        self._lock = threading.Lock()

    def engine(self) -> Engine:
        with self._lock:
            if self._engine is None:
                from .engine.calls import Engine

                self._engine = Engine(self.settings, self.threads)
            return self._engine

    async def awaited(self, work: Callable[[Callable[[], bool]], T], request: AnyRequest) -> T:
        """What `work` gives in a thread; a refresh that no thread was free for is incomplete."""
        deadline = time.monotonic() + LIMITS.refresh_seconds if request.refresh else None
        try:
            return await self.threads.awaited(work, writes=request.refresh, deadline=deadline)
        except Late:
            from .refresh.plan import Outcome

            raise Outcome(left=1, waited=True).incomplete() from None

    def close(self) -> None:
        self.threads.close()
        if self._engine is not None:
            self._engine.supervisor.stop()


def _never() -> bool:
    """For a call in the caller's own thread: it cannot go before its answer."""
    return False


#: The one history, by the environment that it was made from.
_default: dict[tuple[str | None, ...], SessionHistory] = {}


def default_history() -> SessionHistory:
    """The one history that is made from the environment; made anew if a setting in it has changed since. The former one is
    closed when nobody uses it any more.

    Raises InvalidRequest for a wrong setting.
    """
    now = tuple(map(os.environ.get, VARIABLES))
    history = _default.get(now)
    if history is None:
        made = SessionHistory()
        history = _default.setdefault(now, made)  # another thread may have been as quick
        if history is made:
            weakref.finalize(made, _close_apart, made._work.close).atexit = False
    for other in [key for key in _default.copy() if key != now]:
        _default.pop(other, None)
    return history


def _close_apart(close: Callable[[], None]) -> None:
    # Not here: whoever was the last to use it may be somebody's loop.
    threading.Thread(target=close, name="session-history-close", daemon=True).start()


if TYPE_CHECKING:
    session_history: Call
else:

    async def session_history(**arguments):
        answer = await default_history().call(arguments)
        answer.function = "session_history"
        return answer


def describe() -> None:
    """Gives the two calls their signature and documentation, from the declarations. (Apart, as it costs milliseconds that a
    program which only asks does not need.)"""
    from .arguments import signature
    from .request import documentation

    text = documentation()
    calls: tuple[tuple[Any, bool], ...] = (SessionHistory.__call__, True), (session_history, False)
    for call, bound in calls:
        call.__doc__ = text
        call.__signature__ = signature(Arguments, ARGUMENTS, HistoryResult, bound=bound)
