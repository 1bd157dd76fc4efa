"""The files of one refresh that wait to be read, and how far the refresh has come."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from .archive.sources import SourceFile, Walk
from .budget import Progress
from .index.catalog import Catalog
from .index.freshness import Difference
from .index.records import SourceRow
from .index.schema import SESSION

if TYPE_CHECKING:
    from .reading import Begin, End, Part


@dataclass
class Item:
    """One file that has to be read."""

    file: SourceFile
    row: SourceRow | None
    roomy: bool = False  # it has more entries than a file of its size should
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


class Backlog:
    """The newest files first, then what has to be read because of what was written meanwhile."""

    def __init__(self, seen: Walk, progress: Progress | None) -> None:
        self.seen, self.progress = seen, progress
        self.waiting: deque[Item] = deque()
        #: Bytes of everything that was ever queued.
        self.bytes = 0
        self._bytes_done = self._files = self._files_done = 0

    def fill(self, difference: Difference, catalog: Catalog) -> None:
        """Queues what differs."""
        items = [Item(file, catalog.sources.get(file.path)) for file in difference.new]
        items += [Item(file, row) for file, row in difference.changed]
        items += [Item(file, row) for file, row in difference.unreadable]
        items.sort(key=lambda item: max(item.file.stamp, item.file.identity.mtime_ns // 1_000_000), reverse=True)
        for item in items:
            self._add(item)

    def add_asked(self, paths: list[bytes]) -> None:
        """Queues files that have to be read from their start because another file of their session has changed."""
        if not paths:
            return
        queued = {item.file.path for item in self.waiting}
        for path in paths:
            file = self.seen.files.get(path)
            if file is not None and path not in queued:
                self._add(Item(file, None))

    def add_again(self, item: Item) -> None:
        """Queues a file that did not hold still while it was read."""
        self._add(replace(item, begin=None, parts=[], end=None))

    def _add(self, item: Item) -> None:
        self.waiting.append(item)
        self._files += 1
        self.bytes += item.bytes

    def tell(self, item: Item) -> None:
        """A file has been dealt with."""
        self._files_done += 1
        self._bytes_done += item.bytes
        if self.progress is not None:
            self.progress(self._files_done, self._files, self._bytes_done, self.bytes)
