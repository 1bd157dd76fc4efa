"""One connection to the index with its catalog and whatever else is kept warm between calls; statements with a deadline."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Self, TypeVar

import apsw

from ..errors import EntryNotVisible, IndexUnavailable, SessionNotFound, log_warning
from ..model.sources import WalkCancelled
from ..pacing import Cancelled
from .catalog import Catalog
from .file import DAMAGE, IndexFile
from .integrity import blaming
from .place import Identity
from .schema import check

T = TypeVar("T")

#: How often a call begins again over an index that turned out to be damaged or was replaced.
ATTEMPTS = 4


class Damaged(Exception):
    """The index turned out to be damaged while it was read."""

    def __init__(self, identity: Identity | None) -> None:
        super().__init__("damaged index")
        self.identity = identity


class IndexHandle:
    """A connection to one index and what is kept warm between calls. Used by one thread at a time.

    `below`: see `Catalog`.
    """

    def __init__(self, index: IndexFile, below: tuple[bytes, ...]) -> None:
        self.index, self._below = index, below
        self.catalog = Catalog(below)
        self._connection: apsw.Connection | None = None
        self._identity: Identity | None = None
        self._companions: dict[object, Any] = {}
        self._stamp: tuple[int, ...] | None = None
        self._trusted: tuple[int, int] | None = None
        self._counted = False

    def connection(self) -> apsw.Connection:
        """The connection, opened anew if the index file has been replaced. Raises IndexUnavailable."""
        if self._connection is not None and self._is_current():
            return self._connection
        self.close()
        self._connection, self._identity = self.index.connect()
        # A file that cannot be written is read without its locks, so only its time says that it was changed; and a log
        # that somebody writes says that there is more than it shows.
        self._stamp = self.index.stamp() if self._connection.readonly("main") else None
        return self._connection

    def _is_current(self) -> bool:
        identity = self.index.identity()
        return identity is not None and identity == self._identity and self._stamp in (None, self.index.stamp())

    def verify(self, *, finds_nothing: bool = False) -> None:
        """Makes sure that the snapshot still holds what was committed; inside the transaction that reads it.

        Costs next to nothing unless the file was changed by somebody who is no writer of ours, or an answer is about to
        say that there is nothing. Raises IntegrityFault.
        """
        assert self._connection is not None
        version, revision = self._connection.data_version(), self.catalog.revision
        if self._trusted != (version, revision):
            # Every writer raises the revision. (Emptying the log changes only the version: then this is for nothing.)
            tampered = self._trusted is not None and self._trusted[1] == revision
            self._trusted, self._counted = (version, revision), False
            if tampered:
                self._check()
        if finds_nothing:
            self._check()

    def _check(self) -> None:
        assert self._connection is not None
        if not self._counted:
            check(self._connection, thorough=True)
            self._counted = True

    def companion(self, make: Callable[[apsw.Connection], T]) -> T:
        """What `make` makes of the open connection, once for as long as it is open (a scoring function, for example)."""
        if make not in self._companions:
            self._companions[make] = make(self.connection())
        made: T = self._companions[make]
        return made

    @property
    def is_open(self) -> bool:
        return self._connection is not None

    @property
    def identity(self) -> Identity | None:
        """Which file the connection is to."""
        return self._identity

    @property
    def snapshot(self) -> object:
        """What tells the snapshot that the catalog holds from any other."""
        return self.catalog.revision, self.identity

    def read(
        self, work: Callable[[IndexHandle, apsw.Connection, Callable[[], bool]], T], cancelled: Callable[[], bool]
    ) -> T:
        """Works within one read transaction, for which the catalog is up to date.

        Raises Damaged, Cancelled, IndexUnavailable, and what `work` raises.
        """
        connection = self.connection()
        connection.set_progress_handler(cancelled, 5000, id=self)
        try:
            with blaming(connection):
                connection.execute("BEGIN")
                self.catalog.update(connection)
                self.verify()
                try:
                    return work(self, connection, cancelled)
                except (SessionNotFound, EntryNotVisible):
                    self.verify(finds_nothing=True)
                    raise
        except DAMAGE as error:
            log_warning("the index is damaged: %s", error)
            identity = self.identity
            self.close()
            raise Damaged(identity) from error
        except (apsw.InterruptError, WalkCancelled) as error:
            raise Cancelled from error
        except apsw.Error as error:
            self.close()
            raise unavailable("read", error) from error
        finally:
            if self.is_open:
                connection.set_progress_handler(None, id=self)
                try:
                    if connection.in_transaction:
                        connection.execute("ROLLBACK")
                except apsw.Error as error:
                    log_warning("a connection to the index is given up: %s", error)
                    self.close()

    def close(self) -> None:
        """Closes the connection and forgets all that was kept."""
        if self._connection is not None:
            with suppress(apsw.Error):  # what was committed is in the file, whatever closing it meets
                self._connection.close(True)
        self._connection = self._identity = self._stamp = self._trusted = None
        self._companions = {}
        self._counted = False
        self.catalog = Catalog(self._below)


def unavailable(verb: str, error: Exception) -> IndexUnavailable:
    """The error for an index that cannot be read or written (`verb`)."""
    log_warning("the index cannot be %s", verb, exc_info=error)
    if isinstance(error, (apsw.BusyError, apsw.LockedError)):
        return IndexUnavailable("another program holds the index", hint="try again in a moment")
    hint = "check the disk's space and the index folder" + (", or ask without refresh" if verb == "written" else "")
    return IndexUnavailable(f"the index cannot be {verb} ({type(error).__name__})", hint=hint)


def damaged_again() -> IndexUnavailable:
    """The error for an index that is damaged whenever it has been made anew."""
    return IndexUnavailable("the index is damaged and does not stay healed", hint="run `session-history doctor`")


class Limited:
    """``with`` it, statements are stopped when the time is over, and that is no error: `overran` says so."""

    def __init__(self, connection: apsw.Connection, seconds: float) -> None:
        self.connection, self.seconds, self.overran = connection, seconds, False

    def __enter__(self) -> Self:
        deadline = time.monotonic() + self.seconds

        def over() -> bool:
            self.overran = self.overran or time.monotonic() > deadline
            return self.overran

        self.connection.set_progress_handler(over, 500, id=self)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> bool:
        self.connection.set_progress_handler(None, id=self)
        return self.overran and isinstance(error, apsw.InterruptError)
