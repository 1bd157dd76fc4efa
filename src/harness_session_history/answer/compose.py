"""Composes answers from the last committed snapshot, within one read transaction."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar, cast

import apsw

from ..archive.registry import Registry
from ..archive.scanner import ArchiveScanner
from ..index.connection import IndexHandle
from ..index.file import IndexFile
from ..index.freshness import Difference, compare, own_files
from ..model.limits import LIMITS
from ..pacing import Cancelled, Pacer
from ..request import AnyRequest, OpenRequest, SearchRequest
from ..response import WARNING, Answer, Freshness, ListBody, OpenBody, SearchBody, Sources, Spans, iso
from ..result import RESULTS, HistoryResult
from ..search.bm25 import Scorer
from .branch import Snapshot, Work
from .empty import without_sessions
from .redact import finish
from .sessions import SessionViews

T = TypeVar("T")


class Answerer:
    """Composes the answers of one history; `found_work` is told where one shows that there is something to maintain."""

    def __init__(
        self,
        index: IndexFile,
        registry: Registry,
        scanner: ArchiveScanner,
        current: str | None,
        found_work: Callable[[], None],
        redact: bool,
    ) -> None:
        self.index, self.registry, self.scanner = index, registry, scanner
        self.current, self.found_work, self.redact = current, found_work, redact

    def answer(
        self, request: AnyRequest, handle: IndexHandle, connection: apsw.Connection, cancelled: Callable[[], bool]
    ) -> HistoryResult:
        """The answer to a request from the snapshot as it is. Raises WalkCancelled and Cancelled if the caller has gone."""
        views = self.views(handle)
        difference, freshness = self.freshness(handle, request.session_id, cancelled, views.sources_of(request))
        if handle.catalog.purge or handle.catalog.merge or self._wal_is_long():
            self.found_work()
        marker: Callable[[str], Spans] | None = None
        body: ListBody | SearchBody | OpenBody
        if isinstance(request, SearchRequest):
            from ..search.query import parse
            from ..search.rank import Searcher
            from .search import search

            searcher = Searcher(connection, handle.companion(Scorer), views.scope(request), handle.catalog)
            check = partial(_check, cancelled, Pacer())
            body, marker = search(connection, searcher, views, request, parse(request.query), check)
        elif isinstance(request, OpenRequest):
            from .open import open_entry

            body = open_entry(connection, views, request)
        else:
            from .list import listed

            results, truncated = listed(connection, views, request)
            body = {"results": results, "truncated": truncated}
        if not body.get("results", True):
            handle.verify(finds_nothing=True)
        doubted = [
            path for path, state in handle.catalog.doubted.items() if handle.catalog.sources[path].identity == state
        ]
        common: Answer = {
            "operation": request.operation,
            "dataOnly": True,
            "warning": WARNING,
            "complete": difference.complete and not doubted,
            "freshness": _doubting(freshness, len(doubted)) if doubted else freshness,
            "currentSession": views.current_said(request),
        }
        if self.redact:
            common["redacted"] = finish(body)
        values: dict[str, Any] = {**common, **body}
        values |= {name: values.pop(name) for name in ("freshness", "currentSession")}  # (they are read last)
        return RESULTS[request.operation](values, marker=marker)

    def recalled(
        self, work: Work[T], handle: IndexHandle, connection: apsw.Connection, cancelled: Callable[[], bool]
    ) -> T:
        """What a tool for one's own conversation works out over the snapshot."""
        check = partial(_check, cancelled, Pacer())
        result = work(Snapshot(connection, self.views(handle), handle.companion(Scorer), check))
        if isinstance(result, dict) and result.get("hits") == []:
            handle.verify(finds_nothing=True)
        if isinstance(result, dict) and self.redact:
            result["redacted"] = finish(result)
        return result

    def is_behind(self, handle: IndexHandle, _connection: apsw.Connection, cancelled: Callable[[], bool]) -> bool:
        """Whether there is a snapshot and it lacks something that can be read."""
        if handle.catalog.snapshot_at is None:
            return False
        seen = self.scanner.seen_for(handle.snapshot, cancelled)
        behind = bool(compare(seen, handle.catalog).pending)
        if not behind:
            self.scanner.keep(handle.snapshot, seen)  # the answer need not look again
        return behind

    def is_current(self, session_id: str, handle: IndexHandle) -> bool:
        """Whether the snapshot has the session's own files as they are on disk."""
        files = own_files(handle.catalog, session_id)
        return files is not None and not compare(files, handle.catalog, session_id).pending

    def freshness(
        self,
        handle: IndexHandle,
        session_id: str | None,
        cancelled: Callable[[], bool],
        selected: frozenset[int] | None = None,
    ) -> tuple[Difference, Freshness]:
        """How all files, or the `selected` ones, or those of one session, differ from the snapshot; and the ``freshness`` of an
        answer. What is not read yet may belong to any selection.

        Raises WalkCancelled.
        """
        seen = self.scanner.seen_for(handle.snapshot, cancelled)
        difference = compare(seen, handle.catalog)
        if difference.pending:
            self.found_work()
        nothing = without_sessions(seen, difference, handle.catalog)
        if session_id is not None:
            own = compare(seen, handle.catalog, session_id)
            # A session that neither the snapshot nor a file name knows may be in any file that is not read yet.
            known = bool(handle.catalog.files_of(session_id)) or bool(own.counts()["selected"])
            difference = own if known else difference.narrowed(frozenset(), handle.catalog, seen.files)
            if selected is not None and not selected and handle.catalog.files_of(session_id):
                difference = Difference()
        elif selected is not None:
            difference = difference.narrowed(selected, handle.catalog, seen.files)
        said: Freshness = {
            "snapshotAt": iso(handle.catalog.snapshot_at),
            "oldestIndexedAt": iso(difference.oldest_indexed_at),
            "newestIndexedAt": iso(difference.newest_indexed_at),
            "checkedAt": iso(int((time.time() - (time.monotonic() - seen.started)) * 1000)) or "",
            "sources": cast(Sources, difference.counts()),
        }
        if nothing:
            said["note"] = nothing
        return difference, said

    def views(self, handle: IndexHandle) -> SessionViews:
        return SessionViews(handle.catalog, self.registry.entries(), self.current, self.scanner.roots, self.redact)

    def _wal_is_long(self) -> bool:
        return self.index.wal_bytes() > LIMITS.long_wal_bytes


def _doubting(freshness: Freshness, count: int) -> Freshness:
    """The freshness where files that looked unchanged were found to say something else."""
    sources = freshness["sources"].copy()
    sources["indexed"] -= count
    sources["changed"] += count
    sources["pendingMaintenance"] += count
    return {**freshness, "sources": sources}


def _check(cancelled: Callable[[], bool], pacer: Pacer) -> None:
    """Called between the steps of an answer."""
    if cancelled():
        raise Cancelled
    pacer()
