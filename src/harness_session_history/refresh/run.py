"""Brings the index up to date with the files: finds what differs, has it read, and has it written session by session.

One of the places where archive and index meet. It holds the writer's lock while it writes, works within a budget, and
leaves a state from which the next run goes on: every session is in the snapshot as a whole or not at all.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING

import apsw
import msgspec

from ..errors import log_warning
from ..index.catalog import Catalog
from ..index.file import CACHE_KB, IndexFile
from ..index.freshness import Difference, compare
from ..index.schema import SESSION, SourceRow
from ..index.writer import Overtaken, Writer
from ..model.entries import Facts
from ..model.limits import LIMITS
from ..model.sources import MAX_LINE, FileIdentity, SourceFile, Walk, WalkCancelled
from .plan import Budget, Item, Outcome, Progress, Stopped, WorkQueue, volume
from .session_writer import SessionWriter

if TYPE_CHECKING:
    from .extract import Task
    from .indexer import Indexer
    from .readers import Readers


#: How far beyond its time a run may write what it has read.
SAVE_SECONDS = 0.3
#: Processes that read at the same time, at most.
MOST_READERS = 4
#: Memory for pages while much is written, of which little is read again.
WRITING_CACHE_KB = 4_096


class Refresh:
    """One run over one index."""

    def __init__(
        self,
        index: IndexFile,
        connection: apsw.Connection,
        catalog: Catalog,
        walk: Callable[[], Walk],
        budget: Budget,
        progress: Progress | None = None,
        elsewhere: Callable[[], Outcome] | None = None,
        is_current: Callable[[], bool] = lambda: True,
        max_line: int = MAX_LINE,
    ) -> None:
        #: Does the work in another process, if it is much.
        self.elsewhere, self.is_current, self.max_line = elsewhere, is_current, max_line
        self.index, self.connection, self.catalog = index, connection, catalog
        self.walk, self.budget, self.progress = walk, budget, progress
        self.writer = Writer(connection, is_current)
        self.sessions = SessionWriter(self.writer)
        self.outcome = Outcome()
        self.wrote = False
        self.seen: Walk | None = None
        self.difference: Difference | None = None  # of all files, if that was looked at

    def run(self, session_id: str | None = None) -> None:
        """Brings the selected files up to date as they are now.

        Raises Stopped if the caller has gone, Overtaken if another file or another writer's work lies there by now.
        """
        try:
            self._run(session_id)
        except WalkCancelled:
            self.outcome.left = max(1, self.outcome.left)  # the time was over before everything had been looked at
        self._raise_if_cancelled()

    def _run(self, session_id: str | None) -> None:
        difference = self._look(session_id)
        if not (difference.pending or difference.unreadable or self._copied(difference)):
            self.outcome.away = len(difference.away) + difference.unreachable
            return
        if self.elsewhere is not None and volume(difference) >= LIMITS.elsewhere_bytes:
            self.outcome, self.wrote = self.elsewhere(), True
            return
        began = time.monotonic()
        with self.index.lock().held(self.budget.left(), self.budget.cancelled) as held:
            if not held:
                self.outcome.waited, self.outcome.left = True, difference.pending
                return
            if not self.is_current():
                raise Overtaken
            if self.catalog.update(self.connection) or time.monotonic() - began > 0.5:
                difference = self._look(session_id)
            self.outcome.away = len(difference.away) + difference.unreachable
            self.wrote = True
            self._write(difference)

    def _write(self, difference: Difference) -> None:
        from ..index.upkeep import merge_some  # (what reads and writes is loaded by a run that has something to read)
        from .indexer import Indexer

        assert self.seen is not None
        work_queue = WorkQueue(self.seen, self.progress, self.walk)
        indexer = Indexer(self.writer, self.sessions, work_queue, self.budget, self.outcome)
        moved = _moved(difference)
        staying = {row.path for row in moved}
        self.connection.set_progress_handler(self.budget.over, 2000)
        self.connection.set_busy_timeout(min(LIMITS.busy_ms, int(self.budget.left() * 1000) + 1))
        self.writer.follow(self.catalog.revision)
        try:
            self._drop([row for row in difference.gone if row.path not in staying])
            work_queue.fill(difference, self.catalog)
            if work_queue.bytes >= LIMITS.parallel_bytes:
                self.connection.pragma("cache_size", -WRITING_CACHE_KB)
            self._work(work_queue, indexer)
            # What has moved is dropped only now, so that no snapshot shows its session as deleted.
            out_of_reach = {row.path for row in (*difference.gone, *difference.lost, *difference.away)}
            self._drop([*moved, *(row for row in difference.lost if self.sessions.is_elsewhere(row, out_of_reach))])
            moved = []
            if work_queue.bytes >= LIMITS.parallel_bytes:
                self._merge()
            else:
                merge_some(self.writer, self.budget.over)
        except (Stopped, apsw.InterruptError):
            self.writer.rollback()
            self.connection.set_progress_handler(None)
            if not self.budget.cancelled():
                self._save(indexer)
            self.outcome.left = len(work_queue.waiting) + len(indexer.batch) + len(moved)
        except (apsw.BusyError, apsw.LockedError):
            self.outcome.waited = True
            self.outcome.left = len(work_queue.waiting) + len(indexer.batch) + len(moved)
        finally:
            self.connection.set_progress_handler(None)
            self.connection.set_busy_timeout(LIMITS.busy_ms)
            self.writer.rollback()
            self.connection.pragma("cache_size", -CACHE_KB)

    def _save(self, indexer: Indexer) -> None:
        """Writes what was read when the time was over, if that is quickly done or nothing else came of this run: so
        every run gets on, however short it is."""
        until = time.monotonic() + SAVE_SECONDS
        if self.outcome.done:
            self.connection.set_progress_handler(lambda: time.monotonic() > until, 2000)
        try:
            indexer.flush()
        except apsw.InterruptError:
            self.writer.rollback()

    def _look(self, session_id: str | None) -> Difference:
        """What differs on disk from the snapshot, which is read first."""
        self.catalog.update(self.connection)
        self.seen = self.walk()
        if session_id is not None:
            own = compare(self.seen, self.catalog, session_id)
            self._add_strangers(session_id, own)
            nothing = self.catalog.snapshot_at is None and not own.counts()["selected"]
            if not own.gone and not own.lost and not nothing:  # (one that is not where it was may be in any file)
                return own
        self.difference = compare(self.seen, self.catalog)
        return self.difference

    def _add_strangers(self, session_id: str, own: Difference) -> None:
        """Adds the files that are not read yet and belong to the session by their header, whatever their names say."""
        from ..archive.files import Unreadable
        from ..archive.transcript import session_of

        def holds(file: SourceFile) -> bool:
            try:
                return session_of(file.path, file.identity) == session_id
            except Unreadable:
                return False

        assert self.seen is not None
        everything = compare(self.seen, self.catalog)
        known = {file.path for file in own.new} | {file.path for file, _ in own.changed}
        for file, row in [*((file, None) for file in everything.new), *everything.changed]:
            self.budget.check()
            if file.path not in known and holds(file):
                if row is None:
                    own.new.append(file)
                else:
                    own.changed.append((file, row))

    def _copied(self, difference: Difference) -> bool:
        """Whether what was in a folder that has gone may stand in other files of its session."""
        return any(row.session_id in self.catalog.shared for row in difference.lost)

    def _raise_if_cancelled(self) -> None:
        if self.budget.cancelled():
            raise Stopped

    def _drop(self, gone: Sequence[SourceRow]) -> None:
        if not gone:
            return
        self.writer.begin()
        for row in gone:
            self.writer.forget_source(row.id)
            if row.session is not None and row.session_id is not None:
                self.sessions.bury(row.session, row.session_id)
        self.sessions.settle()
        self.writer.commit()

    def _merge(self) -> None:
        """After much work, joins segments while there is time, and gives the pages back that this frees. What is left is
        noted for maintenance."""
        from ..index.upkeep import FEW_SEGMENTS, give_back, merge, note_merge, segments

        def over() -> bool:
            return self.budget.cancelled() or self.budget.left() <= LIMITS.merge_seconds

        merge(self.writer, over)
        while give_back(self.connection) and not over():
            pass
        note_merge(self.writer, segments(self.writer) > FEW_SEGMENTS)

    def _work(self, work_queue: WorkQueue, indexer: Indexer) -> None:
        """Reads and writes until nothing waits any more."""
        from .extract import read
        from .readers import ReaderLost

        waiting = work_queue.waiting
        readers, unread = self._readers(waiting), len(waiting)
        try:
            while waiting:
                self.budget.check()
                item = waiting[0]
                try:
                    indexer.take(item, readers.frames(self.budget.check) if readers else read(self._task(item)))
                except ReaderLost:
                    log_warning("a reading process was lost; going on without")
                    self.writer.rollback()
                    if readers is not None:
                        readers.close()
                        readers = None
                    continue
                waiting.popleft()
                unread -= 1
                if unread == 0 and readers is not None:
                    readers.close()
                    readers = None
                if indexer.is_full():
                    indexer.flush()
                work_queue.tell(item)
                if not waiting:
                    indexer.flush()
        finally:
            if readers is not None:
                readers.close()

    def _readers(self, waiting: Collection[Item]) -> Readers | None:
        """Processes that read what waits now, if that is much; what is queued later is read here."""
        count = readers_for(sum(item.bytes for item in waiting), len(waiting))
        if count == 0:
            return None
        from .readers import Readers, start_readers

        try:
            return Readers([self._task(item) for item in waiting], start_readers(count))
        except OSError as error:
            log_warning("no process can be started for reading: %s", error)
            return None

    def _task(self, item: Item) -> Task:
        from .extract import Task

        row = item.row
        task = Task(item.file.path, item.file.identity, self.max_line)
        if row is None or row.state != SESSION or row.session is None:
            return task
        found = self.connection.execute("SELECT facts FROM sources WHERE id=?", (row.id,)).fetchone()
        if found is None or found[0] is None:
            return task
        task.resume, task.known = msgspec.msgpack.decode(found[0], type=Facts), FileIdentity(*row.identity)
        return task


def readers_for(size: int, files: int) -> int:
    """The number of processes that should read `size` bytes of `files` files: none for little, else one for each processor.

    With the one that writes these are more than there are processors; reading is most of the work, so none is ever idle.
    """
    if size < LIMITS.parallel_bytes or not sys.executable:
        return 0
    return min(MOST_READERS, files, os.cpu_count() or 1)


def _moved(difference: Difference) -> list[SourceRow]:
    """Files that are gone from their place while a new one has the id of their session in its name, or is the same file."""
    ids = {file.named_id for file in difference.new}
    files = {file.state[:2] for file in difference.new}
    return [row for row in difference.gone if row.session_id in ids or row.identity[:2] in files]
