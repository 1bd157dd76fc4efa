"""What was read of the files goes into the index: small files in batches, a large one as it is read."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from operator import itemgetter

from ..index.schema import FOREIGN, NODE_LIMIT, SESSION, UNREADABLE, Extent, SourceRow
from ..index.writer import Writer
from ..model.limits import LIMITS
from ..model.sources import FileIdentity
from .extract import Begin, End, Failed, Frame, Part
from .plan import Budget, Item, Outcome, WorkQueue
from .session_writer import Outgrown, SessionStore, SessionWriter

#: What is collected before it is written in one transaction.
BATCH_CHARACTERS = 10_000_000
BATCH_SECONDS = 1.0
#: How much one session may take of memory: one that has more is written as it is read.
SESSION_CHARACTERS = 2_000_000
#: How often a file that is replaced while it is read is tried again.
ATTEMPTS = 3


class Indexer:
    """Takes one file after the other; every transaction leaves whole sessions. The caller holds the writer's lock."""

    def __init__(
        self, writer: Writer, sessions: SessionWriter, work_queue: WorkQueue, budget: Budget, outcome: Outcome
    ) -> None:
        self.writer, self.sessions, self.work_queue = writer, sessions, work_queue
        self.budget, self.outcome = budget, outcome
        self.batch: list[Item] = []
        self._characters = self._entries = 0
        self._began = 0.0

    def is_full(self) -> bool:
        """Whether the batch should be written before more is read."""
        return bool(self.batch) and (
            self._characters > BATCH_CHARACTERS
            or self._entries > LIMITS.batch_entries
            or time.monotonic() - self._began > BATCH_SECONDS
        )

    def take(self, item: Item, frames: Iterator[Frame]) -> None:
        """Collects one file's frames for the batch; a large file goes into a transaction of its own as it is read.

        Raises Stopped when the budget is used up.
        """
        item.begin, item.parts, item.end = None, [], None
        characters = entries = 0
        for frame in frames:
            self.budget.check()
            if isinstance(frame, Begin):
                item.begin = frame
            elif isinstance(frame, Part):
                item.parts.append(frame)
                characters += frame.characters
                entries += frame.count
                if characters > SESSION_CHARACTERS or entries > LIMITS.session_entries:
                    self.flush()
                    self._stream(item, frames)
                    return
            elif isinstance(frame, End):
                item.end = frame
                if self._settled(item):
                    if not self.batch:
                        self._began = time.monotonic()
                    self.batch.append(item)
                    self._characters += characters
                    self._entries += entries
            else:
                self._note_failure(item, frame)

    def flush(self) -> None:
        """Writes the batch in one transaction, in ascending order of rows (a step down would cut an FTS5 segment)."""
        if not self.batch:
            return
        self.writer.begin()
        store: SessionStore
        for extent, item in sorted(self._placed(), key=itemgetter(0)):
            assert item.begin is not None and item.end is not None
            facts, row = item.end.facts, self._source_row(item)
            if item.begin.resumed and item.row is not None:
                store = self.sessions.extension(item.row)
            else:
                store = self.sessions.replacement(item.file.path, extent)
            for part in item.parts:
                store.add(part.entries, part.tree)
            store.finish(row, facts)
        self.sessions.settle()
        self.writer.commit()
        self.outcome.done += len(self.batch)
        self.batch.clear()
        self._characters = self._entries = 0

    def _stream(self, item: Item, frames: Iterator[Frame]) -> None:
        """Writes a large file as it is read, in one transaction that is given up if the file does not hold still."""
        assert item.begin is not None
        parts, item.parts = item.parts, []
        self.writer.begin()
        store: SessionStore
        if item.begin.resumed and item.row is not None:
            store = self.sessions.extension(item.row)
        else:
            size = item.file.identity.size
            nodes = NODE_LIMIT if item.roomy else min(NODE_LIMIT, size // LIMITS.bytes_per_node)
            store = self.sessions.fresh(self.writer.allocate([item.file.stamp], [nodes])[0])
        for frame in chain(parts, frames):
            self.budget.check()
            if isinstance(frame, Part):
                try:
                    store.add(frame.entries, frame.tree)
                    self.writer.write_texts()  # nothing comes between them that would end a segment
                except Outgrown:
                    self._give_more_room(item)
                    deque(frames, maxlen=0)
                    return
            elif isinstance(frame, End):
                item.end = frame
                if not self._settled(item):
                    self.writer.rollback()
                    return
                store.finish(self._source_row(item), frame.facts)
                self.sessions.settle()
                self.writer.commit()
                self.outcome.done += 1
            elif isinstance(frame, Failed):
                self.writer.rollback()
                self._note_failure(item, frame)

    def _placed(self) -> list[tuple[Extent, Item]]:
        """The files of the batch, each with the extent that it has, or with a new one if it needs that; one that was read on
        and needs that is read again."""
        placed: list[tuple[Extent, Item]] = []
        new: list[tuple[Item, int]] = []
        for item in sorted(self.batch, key=lambda item: (item.file.stamp, item.file.path)):
            assert item.begin is not None and item.end is not None
            facts = item.end.facts
            known = self.writer.session_at(item.file.path)
            if known is not None and known[1] == facts.session_id and known[0].room >= facts.nodes:
                placed.append((known[0], item))
            elif item.begin.resumed:
                self._read_from_start(item)
            else:
                new.append((item, facts.nodes))
        extents = self.writer.allocate([item.file.stamp for item, _ in new], [nodes for _, nodes in new])
        return placed + list(zip(extents, [item for item, _ in new], strict=True))

    def _give_more_room(self, item: Item) -> None:
        """A file that was being streamed has more entries than its extent has room for: it is read again."""
        assert item.begin is not None
        self.writer.rollback()
        if item.begin.resumed:
            self._read_from_start(item)
        else:
            item.roomy = True
            self.work_queue.add_again(item)

    def _read_from_start(self, item: Item) -> None:
        self.work_queue.add_again(replace(item, row=None))

    def _source_row(self, item: Item) -> SourceRow:
        assert item.end is not None
        facts = item.end.facts
        return SourceRow(
            0, item.file.path, item.end.identity, SESSION, item.file.child, item.file.parent_path,
            item.file.tombstoned, item.file.stamp, facts.session_id, None,
            facts.unreadable_lines, int(time.time() * 1000),
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
        self.work_queue.look_again(item)

    def _note_failure(self, item: Item, failure: Failed) -> None:
        if failure.identity is None:
            self._again(item)
            return
        item.foreign = failure.foreign
        state = FOREIGN if failure.foreign else UNREADABLE
        self.writer.begin()
        _, session_id, session = self.writer.source_at(item.file.path) or (0, None, None)
        if state == FOREIGN and session is not None and session_id is not None:
            self.sessions.bury(session, session_id)
        # Out of reach is not deleted: what is known of its session stays.
        kept = (None, None) if state == FOREIGN else (session_id, session)
        row = SourceRow(
            0, item.file.path, failure.identity, state, item.file.child, item.file.parent_path,
            item.file.tombstoned, item.file.stamp, *kept, 0, int(time.time() * 1000),
        )  # fmt: skip
        self.writer.put_source(row, failure.reason.encode() or None)
        self.sessions.settle()
        self.writer.commit()
