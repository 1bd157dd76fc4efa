"""One lane of work: a thread of its own with its own connection and catalog, so that no caller's loop ever waits on
SQLite or a disk, and no connection is shared."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

import apsw

from .index.catalog import Catalog
from .index.schema import IndexFile
from .index.search import Weigher

T = TypeVar("T")


class Cancelled(Exception):
    """The caller has gone; nobody waits for the answer."""


class Desk:
    """A connection to one index and what is kept warm between calls. Used by one thread at a time."""

    def __init__(self, index: IndexFile) -> None:
        self.index = index
        self._connection: apsw.Connection | None = None
        self._identity: tuple[int, int] | None = None
        self.catalog = Catalog()
        self._weigher: Weigher | None = None

    def connection(self) -> apsw.Connection:
        """The connection, opened anew if the index file has been replaced. Raises IndexUnavailable."""
        identity = self.index.identity()
        if self._connection is not None and identity == self._identity and identity is not None:
            return self._connection
        self.close()
        self._connection = self.index.connect()
        self._identity = self.index.identity()
        return self._connection

    @property
    def weigher(self) -> Weigher:
        """The scoring function of the open connection."""
        if self._weigher is None:
            self._weigher = Weigher(self.connection())
        return self._weigher

    @property
    def is_open(self) -> bool:
        return self._connection is not None

    @property
    def identity(self) -> tuple[int, int] | None:
        """Which file the connection is to."""
        return self._identity

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close(True)
        self._connection, self._identity, self._weigher, self.catalog = None, None, None, Catalog()


Job = Callable[[Desk, Callable[[], bool]], T]


class Lane:
    """Runs jobs one after another in one thread."""

    def __init__(self, name: str, index: IndexFile) -> None:
        self.desk = Desk(index)
        self._pool = ThreadPoolExecutor(1, thread_name_prefix=f"session-history-{name}")

    def submit(self, job: Job[T], cancelled: threading.Event) -> Future[T]:
        """Queues a job; `cancelled` ends it, before it begins or in the middle."""
        return self._pool.submit(self.run, job, cancelled.is_set)

    def run(self, job: Job[T], cancelled: Callable[[], bool]) -> T:
        """Runs a job in this thread."""
        if cancelled():
            raise Cancelled
        return job(self.desk, cancelled)

    def close(self) -> None:
        """Waits for what runs, then closes the connection."""
        self._pool.submit(self.desk.close).result()
        self._pool.shutdown()
