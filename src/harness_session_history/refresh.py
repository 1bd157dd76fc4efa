"""Brings the index up to date with the files: finds what differs, reads it, writes it session by session.

One of the places where archive and index meet. It holds the writer's lock while it writes, works within a budget, and
leaves a state from which the next run goes on: every session is in the snapshot as a whole or not at all.
"""

from __future__ import annotations

import logging
import os
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

import apsw
import msgspec

from .archive.discovery import WalkCancelled
from .archive.entries import Facts, FileIdentity
from .archive.sources import SourceFile, Walk
from .budget import Budget, Outcome, Progress, Stopped
from .index.catalog import Catalog
from .index.file import BUSY_MS, IndexFile
from .index.freshness import Difference, compare
from .index.records import SourceRow
from .index.schema import FIRST_KEY, FOREIGN, SESSION, UNREADABLE
from .index.upkeep import STEP_PAGES
from .index.writer import Overtaken, Writer
from .pipeline import ReaderLost, Readers
from .reading import Begin, End, Failed, Frame, Part, Task, read
from .sessions import SessionStore, SessionWriter

log = logging.getLogger("harness_session_history")


#: What is collected before it is written in one transaction, and how much one session may take of memory.
BATCH_CHARACTERS = 2_000_000
BATCH_ENTRIES = 10_000
BATCH_SECONDS = 0.5
#: How far beyond its time a run may write what it has read.
SAVE_SECONDS = 0.3
#: From so many bytes on, a refresh is done in a process of its own (where there is a caller's loop to keep free).
ELSEWHERE_BYTES = 4 << 20
#: From so many bytes on, files are read in processes of their own.
PARALLEL_BYTES = 32 << 20
#: Segments are merged only as long as this much time is left.
MERGE_SECONDS = 1.0
#: How often a file that is replaced while it is read is tried again.
ATTEMPTS = 3


@dataclass
class Item:
    """One file that has to be read."""

    file: SourceFile
    row: SourceRow | None
    key: int = 0  # a free session key, in case it is needed
    attempts: int = 0
    begin: Begin | None = None
    parts: list[Part] = field(default_factory=list)
    end: End | None = None

    @property
    def bytes(self) -> int:
        size = self.file.identity.size
        if self.row is not None and self.row.state == SESSION and size > self.row.identity[2]:
            return size - self.row.identity[2]
        return size


def _volume(difference: Difference) -> int:
    """Bytes that will be read, at most."""
    new = sum(file.identity.size for file in difference.new)
    return new + sum(Item(file, row).bytes for file, row in difference.changed)


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
    ) -> None:
        self.elsewhere, self.is_current = elsewhere, is_current
        self.index, self.connection, self.catalog = index, connection, catalog
        self.walk, self.budget, self.progress = walk, budget, progress
        self.writer = Writer(connection, is_current)
        self.sessions = SessionWriter(self.writer)
        self.outcome = Outcome()
        self.wrote = False
        self.seen: Walk | None = None
        self.difference: Difference | None = None  # of all files, if that was looked at
        self._queue: deque[Item] = deque()
        self._batch: list[Item] = []
        self._batch_characters = self._batch_entries = 0
        self._batch_began = 0.0
        self._moved: list[SourceRow] = []
        self._next_key = FIRST_KEY
        self._files = self._files_done = self._bytes = self._bytes_done = 0

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
        if not difference.pending and not difference.unreadable:
            self.outcome.unavailable = difference.unavailable
            return
        if self.elsewhere is not None and _volume(difference) >= ELSEWHERE_BYTES:
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
            self.outcome.unavailable = difference.unavailable - len(difference.unreadable)
            self.wrote = True
            self._write(difference)

    def _write(self, difference: Difference) -> None:
        self.connection.set_progress_handler(self.budget.over, 2000)
        self.connection.set_busy_timeout(min(BUSY_MS, int(self.budget.left() * 1000) + 1))
        self.writer.follow(self.catalog.revision)
        try:
            self._moved = _moved(difference)
            self.sessions.leaving = {row.path for row in self._moved}
            self.sessions.lost = {row.path for row in difference.lost}
            self.sessions.away = {row.path for row in difference.away}
            self._drop([row for row in difference.gone if row.path not in self.sessions.leaving])
            self._plan(difference)
            self._requeue()
            self._work()
            # What has moved is dropped only now, so that no snapshot shows its session as deleted.
            self._drop(self._moved)
            self._moved = []
            self._requeue()
            if self._queue:
                self._work()
            if self._bytes >= PARALLEL_BYTES:
                self._merge()
        except (Stopped, apsw.InterruptError):
            self.writer.rollback()
            self.connection.set_progress_handler(None)
            if not self.budget.cancelled():
                self._save_batch()
            self.outcome.left = len(self._queue) + len(self._batch) + len(self._moved)
        except (apsw.BusyError, apsw.LockedError):
            self.outcome.waited = True
            self.outcome.left = len(self._queue) + len(self._batch) + len(self._moved)
        finally:
            self.outcome.unavailable = max(0, self.outcome.unavailable - self.sessions.found)
            self.connection.set_progress_handler(None)
            self.connection.set_busy_timeout(BUSY_MS)
            self.writer.rollback()

    def _save_batch(self) -> None:
        """Writes what was read when the time was over, if that is quickly done or nothing else came of this run: so
        every run gets on, however short it is."""
        until = time.monotonic() + SAVE_SECONDS
        if self.outcome.done:
            self.connection.set_progress_handler(lambda: time.monotonic() > until, 2000)
        try:
            self._flush()
        except apsw.InterruptError:
            self.writer.rollback()

    def _look(self, session_id: str | None) -> Difference:
        """What differs on disk from the snapshot, which is read first."""
        self.catalog.update(self.connection)
        self.seen = self.walk()
        if session_id is not None:
            own = compare(self.seen, self.catalog, session_id)
            # The file of a session that is not known, or not where it was, may be any that is not read yet.
            if own.counts()["selected"] and not own.gone and not own.lost:
                return own
        self.difference = compare(self.seen, self.catalog)
        return self.difference

    def _raise_if_cancelled(self) -> None:
        if self.budget.cancelled():
            raise Stopped

    # -- planning ---------------------------------------------------------------------------------------------------

    def _drop(self, gone: Sequence[SourceRow]) -> None:
        if not gone:
            return
        self.writer.begin()
        for row in gone:
            self.writer.forget_source(row.id)
        for row in gone:
            self.sessions.lose(row.session_id)
        self.writer.commit()

    def _plan(self, difference: Difference) -> None:
        items = [Item(file, self.catalog.sources.get(file.path)) for file in difference.new]
        items += [Item(file, row) for file, row in difference.changed]
        items += [Item(file, row) for file, row in difference.unreadable]
        items.sort(key=lambda item: item.file.stamp)
        for item, key in zip(items, self.writer.plan_keys([item.file.stamp for item in items]), strict=True):
            item.key = key
        bounds = self.writer.key_bounds()
        self._next_key = 1 + max([*(item.key for item in items), bounds[1] if bounds else FIRST_KEY])
        items.sort(key=lambda item: max(item.file.stamp, item.file.identity.mtime_ns // 1_000_000), reverse=True)
        for item in items:
            self._enqueue(item)

    def _enqueue(self, item: Item) -> None:
        self._queue.append(item)
        self._files += 1
        self._bytes += item.bytes

    def _merge(self) -> None:
        """After much work, joins segments in short steps while there is time: every search looks into each of them."""
        done = False
        while not done and self.budget.left() > MERGE_SECONDS:
            self.budget.check()
            self.writer.begin()
            done = self.writer.merge_step(STEP_PAGES)
            self.writer.commit()

    # -- reading ----------------------------------------------------------------------------------------------------

    def _work(self) -> None:
        readers = self._readers()
        try:
            while self._queue:
                self.budget.check()
                item = self._queue[0]
                try:
                    frames = readers.frames(self.budget.check) if readers else read(self._task(item))
                    self._take(item, frames)
                except ReaderLost:
                    log.warning("a reading process was lost; going on without")
                    self.writer.rollback()
                    if readers is not None:
                        readers.close()
                        readers = None
                    continue
                self._queue.popleft()
                self._unread -= 1
                if self._unread == 0 and readers is not None:
                    readers.close()
                    readers = None
                if self._batch and (
                    self._batch_characters > BATCH_CHARACTERS
                    or self._batch_entries > BATCH_ENTRIES
                    or time.monotonic() - self._batch_began > BATCH_SECONDS
                ):
                    self._flush()
                self._report(item)
                if not self._queue:
                    self._flush()
        finally:
            if readers is not None:
                readers.close()

    def _readers(self) -> Readers | None:
        """Processes that read what is queued now, if that is much; what is queued later is read here."""
        self._unread = len(self._queue)
        if sum(item.bytes for item in self._queue) < PARALLEL_BYTES or not sys.executable:
            return None
        try:
            return Readers([self._task(item) for item in self._queue])
        except OSError as error:
            log.warning("no process can be started for reading: %s", error)
            return None

    def _task(self, item: Item) -> Task:
        row = item.row
        if row is None or row.state != SESSION or row.session is None:
            return Task(item.file.path)
        found = self.connection.execute("SELECT facts FROM sources WHERE id=?", (row.id,)).fetchone()
        if found is None or found[0] is None:
            return Task(item.file.path)
        return Task(item.file.path, msgspec.msgpack.decode(found[0], type=Facts), FileIdentity(*row.identity))

    def _take(self, item: Item, frames: Iterator[Frame]) -> None:
        """Collects one file's frames for the batch; a large file goes into a transaction of its own as it is read."""
        item.begin, item.parts, item.end = None, [], None
        characters = entries = 0
        for frame in frames:
            self.budget.check()
            if isinstance(frame, Begin):
                item.begin = frame
            elif isinstance(frame, Part):
                item.parts.append(frame)
                characters += frame.characters
                entries += len(frame.entries.places)
                if characters > BATCH_CHARACTERS or entries > BATCH_ENTRIES:
                    self._flush()
                    self._stream(item, frames)
                    return
            elif isinstance(frame, End):
                item.end = frame
                if self._settled(item):
                    if not self._batch:
                        self._batch_began = time.monotonic()
                    self._batch.append(item)
                    self._batch_characters += characters
                    self._batch_entries += entries
            else:
                self._note_failure(item, frame)

    def _stream(self, item: Item, frames: Iterator[Frame]) -> None:
        """Writes a large file as it is read, in one transaction that is given up if the file does not hold still."""
        assert item.begin is not None
        parts, item.parts = item.parts, []
        self.writer.begin()
        store: SessionStore
        if item.begin.resumed and item.row is not None:
            if not self.sessions.holds(item.row):
                self.sessions.read_again(item.row)
                self.writer.commit()
                self._requeue()
                deque(frames, maxlen=0)
                return
            store = self.sessions.extension(item.row)
        else:
            store = self.sessions.fresh(item.key)
        for frame in chain(parts, frames):
            self.budget.check()
            if isinstance(frame, Part):
                store.add(frame.entries, frame.tree)
            elif isinstance(frame, End):
                item.end = frame
                if not self._settled(item):
                    self.writer.rollback()
                    return
                if store.finish(self._source_row(item), frame.facts):
                    self.writer.commit()
                    self.outcome.done += 1
                else:
                    # Another file counts for this session: only this file's row is written.
                    self.writer.rollback()
                    self.writer.begin()
                    self.sessions.note_duplicate(self._source_row(item), frame.facts)
                    self.writer.commit()
                    self.outcome.done += 1
                self._requeue()
            elif isinstance(frame, Failed):
                self.writer.rollback()
                self._note_failure(item, frame)

    def _flush(self) -> None:
        """Writes the batch in one transaction, in ascending order of rows (a step down would cut an FTS5 segment)."""
        if not self._batch:
            return
        self.writer.begin()
        store: SessionStore
        for item in sorted(self._batch, key=self._order):
            assert item.begin is not None and item.end is not None
            facts, row = item.end.facts, self._source_row(item)
            if item.begin.resumed and item.row is not None:
                if not self.sessions.holds(item.row):
                    self.sessions.read_again(item.row)
                    continue
                store = self.sessions.extension(item.row)
            elif self.sessions.counts(row, facts):
                store = self.sessions.replacement(facts.session_id, item.key)
            else:
                self.sessions.note_duplicate(row, facts)
                continue
            for part in item.parts:
                store.add(part.entries, part.tree)
            store.finish(row, facts)
        self.writer.commit()
        self.outcome.done += len(self._batch)
        self._batch.clear()
        self._batch_characters = self._batch_entries = 0
        self._requeue()

    def _order(self, item: Item) -> int:
        assert item.end is not None
        return self.writer.key_of(item.end.facts.session_id) or item.key

    def _source_row(self, item: Item) -> SourceRow:
        assert item.end is not None
        facts = item.end.facts
        return SourceRow(
            0, item.file.path, item.end.identity, SESSION, item.file.child, item.file.parent_path,
            item.file.tombstoned, item.file.stamp, facts.session_id, None,
            facts.last_time if facts.last_time is not None else facts.started,
            facts.damaged + facts.torn_tail, int(time.time() * 1000),
        )  # fmt: skip

    def _settled(self, item: Item) -> bool:
        """Whether the file that was read is still the file of that name; else it is read again, a few times."""
        assert item.end is not None
        try:
            now = FileIdentity.of(os.stat(os.fsdecode(item.file.path)))
        except OSError:
            return True  # it went away after it was read: the next comparison says so
        read_as = item.end.identity
        same_file = (now.dev, now.ino) == (read_as.dev, read_as.ino)
        if same_file and (now.size > read_as.size or now == read_as):
            return True
        self._again(item)
        return False

    def _again(self, item: Item) -> None:
        item.attempts += 1
        if item.attempts >= ATTEMPTS:
            self.outcome.unsettled += 1
            return
        time.sleep(0.01 * item.attempts)
        self._enqueue(replace(item, begin=None, parts=[], end=None))

    def _note_failure(self, item: Item, failure: Failed) -> None:
        if failure.identity is None:
            return  # gone since the walk: the next comparison says so
        state = FOREIGN if failure.foreign else UNREADABLE
        if state == UNREADABLE or (item.file.named_id is not None and failure.identity.size):
            self.outcome.unavailable += 1
        self.writer.begin()
        known = self.writer.source_at(item.file.path)
        source, session_id, session, last_time = known or (0, None, None, None)
        if known is not None:
            self.writer.forget_source(source)
        if state == FOREIGN or session is None or (session_id is not None and self.sessions.ask_best(session_id)):
            kept: tuple[str | None, int | None, int | None] = (None, None, None)
        else:
            kept = session_id, session, last_time  # out of reach, not deleted: what is known of its session stays
        row = SourceRow(
            0, item.file.path, failure.identity, state, item.file.child, item.file.parent_path,
            item.file.tombstoned, item.file.stamp, *kept, 0, int(time.time() * 1000),
        )  # fmt: skip
        self.writer.put_source(row, None)
        if state == FOREIGN:
            self.sessions.lose(session_id)
        self.writer.commit()
        self._requeue()

    def _requeue(self) -> None:
        """Queues files that have to be read because another file of their session has left or lost its place."""
        queued = {item.file.path for item in self._queue}
        for path in self.sessions.take_asked():
            file = self.seen.files.get(path) if self.seen else None
            if file is not None and path not in queued:
                self._enqueue(Item(file, None, key=self._next_key))
                self._next_key += 1

    def _report(self, item: Item) -> None:
        self._files_done += 1
        self._bytes_done += item.bytes
        if self.progress is not None:
            self.progress(self._files_done, self._files, self._bytes_done, self._bytes)


def _moved(difference: Difference) -> list[SourceRow]:
    """Files that are gone from their place while a new one has the id of their session in its name, or is the same file."""
    ids = {file.named_id for file in difference.new}
    files = {file.state[:2] for file in difference.new}
    return [row for row in difference.gone if row.session_id in ids or row.identity[:2] in files]
