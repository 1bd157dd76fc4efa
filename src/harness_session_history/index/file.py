"""The index file: how it is made, opened and healed.

An index of ours that is damaged or of another version is replaced by an empty one, and whoever finds an empty one indexes
the transcripts again. A file that is not ours is never overwritten.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator

import apsw

from ..errors import IndexUnavailable, log_warning
from ..model.limits import LIMITS
from .lock import FileLock
from .place import Identity, IndexPlace, uri_of
from .schema import APPLICATION_ID, NOTES, ODD, TABLE_NAMES, TABLES, VERSION, IntegrityFault, check, quick_counts

#: An index that cannot be opened because of these is no index, or no longer one.
DAMAGE = (apsw.NotADBError, apsw.CorruptError, apsw.SQLError, IntegrityFault)
#: A log longer than this (bytes) is emptied after a refresh; twenty times as long, and a worker is called for it.
WAL_BYTES = 1 << 20
#: Memory for pages of one connection.
CACHE_KB = 16_384


class IndexFile(IndexPlace):
    """The ways to open the index of one place. Holds no connection itself."""

    def connect(self) -> tuple[apsw.Connection, Identity]:
        """A connection to a sound index, made or healed if need be, and which file it is to; read-only where the folder is.

        Raises IndexUnavailable where that is impossible.
        """
        self.prepare_folder()
        with self._translated_errors():
            opened = self._open_sound()
            if opened is not None:
                return opened
            self.refuse_foreign()
            with self.making() as alone:
                # Whoever waited may find that another process has made or healed the file meanwhile.
                opened = self._open_sound()
                if opened is None and alone:
                    self._make()
                    opened = self._open_sound()
            if opened is None:
                raise IndexUnavailable("the index could not be made", hint="run `session-history doctor`")
            return opened

    def replace(self, damaged: Identity | None) -> None:
        """Puts an empty index in the place of one that turned out to be damaged, unless that has happened already.

        Whoever works on the old file keeps it until it notices. Raises IndexUnavailable if it cannot be done.
        """
        with self._translated_errors(), self.making() as alone:
            if alone and self.identity() == damaged:
                log_warning("the index was damaged and is being rebuilt")
                self._make()

    def _open_sound(self) -> tuple[apsw.Connection, Identity] | None:
        """A connection if the file is an index of this version, None if it is anything else or absent."""
        for _ in range(100):
            identity = self.identity()
            if identity is None:
                return None
            connection: apsw.Connection | None = None
            try:
                if not self.is_ours():
                    return None
                if os.name == "posix" and os.stat(self.path).st_mode & (stat.S_IRWXG | stat.S_IRWXO):
                    os.chmod(self.path, 0o600)
                connection = self._open()
                sound = connection.pragma("user_version") == VERSION and self._has_tables(connection)
                if sound:
                    with reading(connection):
                        check(connection, thorough=False)
            except (*DAMAGE, *ODD) as error:
                log_warning("index: %s", error)
                sound = False
            except BaseException:
                if connection is not None:
                    connection.close(True)
                raise
            if sound and connection is not None and self.identity() == identity:
                return connection, identity
            if connection is not None:
                connection.close(True)
            if self.identity() == identity:
                return None
            # It was replaced while it was opened: what was opened may be one file with the log of another.
        return None

    def _open(self) -> apsw.Connection:
        connection = None
        try:
            connection = open_database(self.path, apsw.SQLITE_OPEN_READWRITE)
            connection.set_busy_timeout(LIMITS.busy_ms)
            _configure(connection)
            connection.execute("SELECT count(*) FROM sqlite_schema").get  # noqa: B018  (the first read opens the WAL)
            return connection
        except (apsw.CantOpenError, apsw.ReadOnlyError, apsw.IOError, apsw.FullError, apsw.PermissionsError):
            if connection is not None:
                connection.close(True)
            return self.open_read_only()
        except apsw.Error:
            if connection is not None:
                connection.close(True)
            raise

    def open_read_only(self) -> apsw.Connection:
        """Opens an index in a folder that cannot be written: what was checkpointed, never a half-applied log."""
        if self.wal_bytes():
            connection = open_database(self.path, apsw.SQLITE_OPEN_READONLY)
        else:
            uri = uri_of(self.path) + "?mode=ro&immutable=1"
            connection = apsw.Connection(uri, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
        try:
            connection.set_busy_timeout(LIMITS.busy_ms)
            _configure(connection)
            connection.execute("SELECT count(*) FROM sqlite_schema").get  # noqa: B018
        except apsw.Error:
            connection.close(True)
            raise
        return connection

    @staticmethod
    def _has_tables(connection: apsw.Connection) -> bool:
        names = {row[0] for row in connection.execute("SELECT name FROM sqlite_schema WHERE type='table'")}
        return names >= TABLE_NAMES

    def _make(self) -> None:
        """Puts an empty index in the place of whatever is there. The caller holds the lock."""
        self.clear_away()
        # Made with its mode before SQLite sees it: the -wal and -shm files take the mode of the database.
        os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        connection = open_database(self.path, apsw.SQLITE_OPEN_READWRITE)
        try:
            connection.set_busy_timeout(LIMITS.busy_ms)
            connection.pragma("page_size", 8192)
            connection.pragma("auto_vacuum", "incremental")
            connection.pragma("application_id", APPLICATION_ID)  # the first thing that is written: now the file is ours
            connection.pragma("journal_mode", "wal")
            _configure(connection)
            with connection:
                connection.execute(TABLES)
                connection.execute(
                    "INSERT INTO meta VALUES('revision', 0), ('snapshot_at', NULL), ('purge', 0), ('merge', 0), ('waste', 0)"
                )
                counts = {**dict.fromkeys(NOTES, 0), **quick_counts(connection)}
                connection.executemany("INSERT INTO meta VALUES(?,?)", list(counts.items()))
                connection.pragma("user_version", VERSION)
        finally:
            connection.close(True)

    @contextlib.contextmanager
    def _translated_errors(self) -> Iterator[None]:
        try:
            yield
        except (apsw.Error, OSError) as error:
            log_warning("index: %s", type(error).__name__, exc_info=error)
            raise IndexUnavailable(
                f"the index cannot be opened ({type(error).__name__})",
                hint="check that its folder can be written and its disk has space, or run `session-history doctor`",
            ) from error


def _configure(connection: apsw.Connection) -> None:
    connection.pragma("synchronous", "normal")
    connection.pragma("temp_store", "memory")
    connection.pragma("cache_size", -CACHE_KB)
    connection.pragma("journal_size_limit", 1 << 20)
    # Freed pages are zeroed: what a deleted session said must not linger in them.
    connection.pragma("secure_delete", True)


@contextlib.contextmanager
def reading(connection: apsw.Connection) -> Iterator[None]:
    """A transaction in which everything that is read belongs to one snapshot."""
    connection.execute("BEGIN")
    try:
        yield
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def open_database(path: str, flags: int) -> apsw.Connection:
    """A connection to the database at a path, which need not be UTF-8. Raises apsw.Error."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return apsw.Connection(uri_of(path), flags=flags | apsw.SQLITE_OPEN_URI)
    return apsw.Connection(path, flags=flags)


def worker_lock(index: str) -> FileLock:
    """Held by the one worker of an index as long as it runs."""
    return FileLock(index + ".worker")
