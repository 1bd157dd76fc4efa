"""Answers from the last committed snapshot: what a job of the reading lane does within its transaction."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import apsw

from ..archive.registry import Registry
from ..archive.scanner import Lookout
from ..index.connection import Cancelled, Desk
from ..index.file import LONG_LOG_BYTES, IndexFile
from ..index.freshness import compare
from ..model.sources import FileIdentity
from ..pacing import Turns
from ..request import AnyRequest, OpenRequest, SearchRequest
from ..response import WARNING, HistoryResult
from .sessions import Views, listed

if TYPE_CHECKING:
    from .branch import Work


T = TypeVar("T")
#: What is done within one read transaction.
Reading = Callable[[Desk, apsw.Connection, Callable[[], bool]], T]


class Answerer:
    """Composes the answers of one history; `found_work` is told where one shows that there is something to maintain."""

    def __init__(
        self,
        index: IndexFile,
        registry: Registry,
        lookout: Lookout,
        current: str | None,
        found_work: Callable[[], None],
    ) -> None:
        self.index, self.registry, self.lookout = index, registry, lookout
        self.current, self.found_work = current, found_work

    def _views(self, desk: Desk) -> Views:
        return Views(desk.catalog, self.registry.entries(), self.current)

    def answered(
        self, request: AnyRequest, as_it_is: bool, desk: Desk, cancelled: Callable[[], bool]
    ) -> HistoryResult | None:
        """The answer from the snapshot; None if there is none yet, unless the answer is wanted as it is."""

        def answer(desk: Desk, connection: apsw.Connection, cancelled: Callable[[], bool]) -> HistoryResult | None:
            if desk.catalog.snapshot_at is None and not as_it_is:
                return None
            return self._compose(request, desk, connection, cancelled)

        return desk.read(answer, cancelled)

    def in_snapshot(self, work: Reading[T], desk: Desk, cancelled: Callable[[], bool]) -> T:
        """What `work` finds within one read transaction."""
        return desk.read(work, cancelled)

    def is_current(
        self, session_id: str, desk: Desk, connection: apsw.Connection, cancelled: Callable[[], bool]
    ) -> bool:
        """Whether the snapshot has the session's own files as they are on disk."""
        from ..index.freshness import own_files

        files = own_files(desk.catalog, session_id)
        return files is not None and not compare(files, desk.catalog, session_id).pending

    def recalled(self, work: Work[T], desk: Desk, connection: apsw.Connection, cancelled: Callable[[], bool]) -> T:
        """What a tool for one's own conversation works out over the snapshot."""
        from .branch import Snapshot

        views = self._views(desk)
        result = work(Snapshot(connection, views, desk.weigher, partial(_check, cancelled, Turns())))
        if isinstance(result, dict) and result.get("hits") == []:
            desk.verify(finds_nothing=True)
        return result

    def _compose(
        self, request: AnyRequest, desk: Desk, connection: apsw.Connection, cancelled: Callable[[], bool]
    ) -> HistoryResult:
        difference, freshness = self.lookout.freshness(desk, request.session_id, cancelled)
        if difference.pending or desk.catalog.purge or desk.catalog.merge or self.index.log_bytes() > LONG_LOG_BYTES:
            self.found_work()
        views = self._views(desk)
        marker: Callable[[str], list[tuple[int, int]]] | None = None
        if isinstance(request, SearchRequest):
            from ..search.query import parse
            from ..search.rank import Searcher
            from .search import search

            searcher = Searcher(connection, desk.weigher, views.scope(request), desk.catalog)
            body, marker = search(
                connection, searcher, views, request, parse(request.query), partial(_check, cancelled, Turns())
            )
        elif isinstance(request, OpenRequest):
            from .open import open_entry

            body = open_entry(connection, views, request)
        else:
            results, truncated = listed(views, request)
            body = {"results": results, "truncated": truncated}
        if not body.get("results", True):
            desk.verify(finds_nothing=True)
        doubted = [path for path, state in desk.catalog.doubted.items() if desk.catalog.sources[path].identity == state]
        return HistoryResult(
            {
                "operation": request.operation,
                "dataOnly": True,
                "warning": WARNING,
                "complete": difference.complete and not doubted,
                **body,
                "freshness": _doubting(freshness, doubted) if doubted else freshness,
                "currentSession": views.current_said(request),
            },
            marker=marker,
        )

    def take_doubted(self, desk: Desk, _cancelled: Callable[[], bool]) -> dict[bytes, FileIdentity]:
        """The files that turned out not to say what was indexed of them, each once."""
        doubted, desk.catalog.doubted = desk.catalog.doubted, {}
        return doubted

    def freshness_now(
        self, session_id: str | None, desk: Desk, connection: apsw.Connection, cancelled: Callable[[], bool]
    ) -> dict[str, Any]:
        """The freshness of everything or of one session."""
        return self.lookout.freshness(desk, session_id, cancelled)[1]


def _doubting(freshness: dict[str, Any], doubted: list[bytes]) -> dict[str, Any]:
    """The freshness where files that looked unchanged were found to say something else."""
    sources, count = freshness["sources"], len(doubted)
    changed = {"indexed": sources["indexed"] - count, "changed": sources["changed"] + count}
    return {**freshness, "sources": {**sources, **changed, "pendingMaintenance": sources["pendingMaintenance"] + count}}


def _check(cancelled: Callable[[], bool], turns: Turns) -> None:
    """Called between the steps of an answer."""
    if cancelled():
        raise Cancelled
    turns()
