"""The files of one refresh that wait to be read, and how far the refresh has come.

How long work may take, who may end it, and what a refresh says it did."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import msgspec

from ..errors import RefreshIncomplete
from ..index.catalog import Catalog
from ..index.freshness import Difference
from ..index.schema import SESSION, SourceRow
from ..model.sources import SourceFile, Walk

if TYPE_CHECKING:
    from .extract import Begin, End, Part


#: A file of which more is to be read comes after all others, so that a search finds something while it is read.
GIANT_BYTES = 16 << 20


@dataclass
class Item:
    """One file that has to be read."""

    file: SourceFile
    row: SourceRow | None
    roomy: bool = False  # it has more entries than a file of its size should
    foreign: bool = False  # it turned out to be no session
    attempts: int = 0
    begin: Begin | None = None
    parts: list[Part] = field(default_factory=list)
    end: End | None = None

    @property
    def bytes(self) -> int:
        """How much will be read, at most."""
        size = self.file.identity.size
        if self.row is not None and self.row.state == SESSION and size > self.row.identity[2]:
            return size - self.row.identity[2]
        return size


def volume(difference: Difference) -> int:
    """Bytes that will be read, at most."""
    new = sum(file.identity.size for file in difference.new)
    return new + sum(Item(file, row).bytes for file, row in difference.changed)


class WorkQueue:
    """The newest files first, giants after all others, then what has to be read because of what was written meanwhile."""

    def __init__(self, seen: Walk, progress: Progress | None, walk: Callable[[], Walk]) -> None:
        self.seen, self.progress, self._walk = seen, progress, walk
        self.waiting: deque[Item] = deque()
        #: Bytes of everything that was ever queued.
        self.bytes = 0
        self._bytes_done = self._files = self._files_done = 0

    def fill(self, difference: Difference, catalog: Catalog) -> None:
        """Queues what differs."""
        items = [Item(file, catalog.sources.get(file.path)) for file in difference.new]
        items += [Item(file, row) for file, row in difference.changed]
        items += [Item(file, row) for file, row in difference.unreadable]
        items.sort(
            key=lambda item: (item.bytes > GIANT_BYTES, -max(item.file.stamp, item.file.identity.mtime_ns // 1_000_000))
        )
        for item in items:
            self._add(item)

    def add_again(self, item: Item) -> None:
        """Queues a file that has to be read once more, as it was seen."""
        self._add(replace(item, begin=None, parts=[], end=None))

    def look_again(self, item: Item) -> None:
        """Looks for a file that did not hold still, and queues what stands in its place now, if that counts."""
        if os.path.lexists(item.file.path):
            self.seen = self._walk()
            if file := self.seen.files.get(item.file.path):
                self.add_again(replace(item, file=file))

    def _add(self, item: Item) -> None:
        self.waiting.append(item)
        self._files += 1
        self.bytes += item.bytes

    def tell(self, item: Item) -> None:
        """A file has been dealt with; one that is no session is none of those that are counted."""
        if item.foreign:
            self._files -= 1
        else:
            self._files_done += 1
        self._bytes_done += item.bytes
        if self.progress is not None:
            self.progress(self._files_done, self._files, self._bytes_done, self.bytes)


#: Told (session files done, all files that are or may be such, bytes done, all bytes).
Progress = Callable[[int, int, int, int], None]


class Stopped(Exception):
    """The budget is used up, or the caller has gone."""


class Lost(Exception):
    """A process that was to do the work could not be started, or ended without a word."""


class Budget:
    """Work until a moment of monotonic time (None: without end) that can also be ended from outside."""

    def __init__(self, deadline: float | None, cancelled: Callable[[], bool] = lambda: False) -> None:
        self.deadline, self.cancelled = deadline, cancelled

    def left(self) -> float:
        return 3600.0 if self.deadline is None else max(0.0, self.deadline - time.monotonic())

    def over(self) -> bool:
        return self.cancelled() or (self.deadline is not None and time.monotonic() >= self.deadline)

    def check(self) -> None:
        if self.over():
            raise Stopped


class Outcome(msgspec.Struct):
    """What a run did. If it is not `settled`, another try may bring more up to date. (A file that cannot be read whatever is
    tried is no matter of a run: answers count it as unavailable.)"""

    done: int = 0
    left: int = 0  # files not reached in time
    unsettled: int = 0  # files that kept changing
    away: int = 0  # files and roots that are out of reach with their root
    waited: bool = False  # another process held the lock to the end

    @property
    def settled(self) -> bool:
        return not (self.left or self.unsettled or self.away or self.waited)

    def counts(self) -> dict[str, int]:
        return {"done": self.done, "left": self.left, "unsettled": self.unsettled, "unavailable": self.away}

    def incomplete(self) -> RefreshIncomplete:
        """The error of a call that wanted everything up to date."""
        counts = self.counts()
        only_away = not (self.left or self.unsettled or self.waited)
        return RefreshIncomplete(
            "the selected sessions could not all be brought up to date: "
            + ", ".join(f"{count} {what}" for what, count in counts.items()),
            hint="a root cannot be reached: ask again when it is there, or without refresh for the rest"
            if only_away
            else "what was indexed stays indexed: ask again to go on, or ask without refresh",
            details=counts,
        )
