"""What state an index file is in: looked at read-only, never made, healed or replaced here.

Unlike `IndexFile.connect`, which puts an empty index in the place of one that is no good, this says what is there.
"""

from __future__ import annotations

import os
import shutil
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Literal

import apsw
import msgspec

from ..errors import IndexUnavailable
from ..index.catalog import is_moment
from ..index.file import IndexFile, open_database
from ..index.integrity import fault
from ..index.lock import FileLock
from ..index.schema import ODD, TABLE_NAMES, VERSION
from ..search.vocabulary import TABLE

State = Literal["sound", "absent", "refused", "foreign", "outdated", "damaged", "unreadable"]

#: A check of a very large index is given up after this many seconds, and said to be unfinished.
CHECK_SECONDS = 120.0
#: Faults of one check that are reported.
FAULTS = 10
OK, UNFINISHED = "ok", "unfinished"


class Health(msgspec.Struct, rename="camel", kw_only=True):
    """An index file as it was found. Sizes are bytes, times milliseconds since the epoch."""

    path: str
    state: State = "absent"
    #: Why the state is not `sound`, without a path.
    reason: str = ""
    folder_mode: str | None = None
    file_mode: str | None = None
    size: int = 0
    log_size: int = 0
    free_bytes: int | None = None
    schema_version: int | None = None
    expected_version: int = VERSION
    sqlite_version: str = ""
    snapshot_at: int | None = None
    sessions: int = 0
    #: User and assistant entries that have text.
    entries: int = 0
    #: `ok`, `unfinished`, or what is wrong; None where it could not be run. The pages of the file, the full-text index,
    #: and the number of rows against what the last commit noted.
    quick_check: str | None = None
    full_text_check: str | None = None
    rows_check: str | None = None
    writable: bool = False
    not_writable_because: str = ""
    #: Whether tokens of deleted sessions wait to be purged.
    purge_pending: bool = False


def examine(path: str, cancelled: Callable[[], bool] = lambda: False) -> Health:
    """Everything that can be said of the index at `path` by looking at it. Never raises for what it finds."""
    health = Health(path=path, sqlite_version=apsw.sqlite_lib_version())
    if not _look_at_files(health):
        return health
    try:
        if IndexFile(path).is_ours() is False:
            health.state, health.reason = "refused", "it is no index of this program"
            IndexFile(path).refuse_transcript()
            health.state = "foreign"
            IndexFile(path).refuse_foreign()
        else:
            with reading(path, cancelled) as connection:
                _look_inside(health, connection)
    except IndexUnavailable as refusal:
        health.reason = health.not_writable_because = str(refusal)
        return health
    except (apsw.CorruptError, apsw.SQLError, *ODD) as error:
        health.state, health.reason = "damaged", str(error)
    except (apsw.Error, OSError) as error:
        health.state, health.reason = "unreadable", _said(error)
    health.writable, health.not_writable_because = _try_writing(path)
    return health


@contextmanager
def reading(path: str, cancelled: Callable[[], bool] = lambda: False) -> Iterator[apsw.Connection]:
    """A connection that only reads, inside one transaction. Raises apsw.Error if that cannot be had."""
    try:
        # Not opened as read-only where it need not be: such a connection would leave its log files lying about.
        connection = open_database(path, apsw.SQLITE_OPEN_READWRITE)
        connection.pragma("temp_store", "memory")
        connection.execute(TABLE)  # (what a search would make for itself, if it could)
        connection.pragma("query_only", True)
        connection.execute("SELECT count(*) FROM sqlite_schema").get  # noqa: B018  (the first read opens the log)
    except (apsw.CantOpenError, apsw.ReadOnlyError, apsw.IOError, apsw.PermissionsError):
        connection = IndexFile(path).open_read_only()
    try:
        connection.set_busy_timeout(2_000)
        connection.set_progress_handler(cancelled, 5_000)
        connection.execute("BEGIN")
        yield connection
    finally:
        connection.close(True)


def is_held(lock: FileLock) -> bool | None:
    """Whether another process holds a lock; None where that cannot be told. Makes no file."""
    if not os.path.exists(lock.path):
        return False
    try:
        if not lock.acquire():
            return True
    except OSError:
        return None
    lock.release()
    return False


def _look_at_files(health: Health) -> bool:
    """Modes, sizes, space; False if there is nothing to be opened."""
    folder = os.path.dirname(health.path)
    try:
        mode = os.stat(folder).st_mode
    except FileNotFoundError:
        health.reason = "its folder is not there yet"
        health.writable, health.not_writable_because = _can_make(folder)
        return False
    except OSError as error:
        health.state, health.reason = "refused", f"its folder cannot be looked at: {error.strerror}"
        return False
    health.folder_mode = f"{stat.S_IMODE(mode):04o}"
    health.free_bytes = shutil.disk_usage(folder).free
    try:
        # The folder is there, so this makes nothing: it is what every call does first.
        IndexFile(health.path).prepare_folder()
    except IndexUnavailable as refusal:
        health.state, health.reason, health.not_writable_because = "refused", str(refusal), str(refusal)
        return False
    try:
        status = os.stat(health.path)
    except FileNotFoundError:
        health.reason = "no index has been made yet"
        health.writable, health.not_writable_because = _can_make(folder)
        return False
    except OSError as error:
        health.state, health.reason = "unreadable", error.strerror or "it cannot be looked at"
        return False
    health.file_mode, health.size = f"{stat.S_IMODE(status.st_mode):04o}", status.st_size
    if os.path.exists(health.path + "-wal"):
        health.log_size = os.path.getsize(health.path + "-wal")
    return True


def _look_inside(health: Health, connection: apsw.Connection) -> None:
    version = connection.pragma("user_version")
    health.schema_version = int(version)
    if version != VERSION:
        health.state, health.reason = "outdated", f"it has schema version {version}, this program needs {VERSION}"
        return
    for table in sorted(TABLE_NAMES):
        connection.execute(f"SELECT 1 FROM {table} LIMIT 1").get  # noqa: B018  (raises SQLError if it is missing)
    health.state = "sound"
    deadline = time.monotonic() + CHECK_SECONDS
    health.quick_check = _check(connection, "PRAGMA quick_check", deadline)
    health.full_text_check = _check(connection, "PRAGMA integrity_check(search)", deadline)
    health.rows_check = _check_rows(connection)
    checks = (health.quick_check, health.full_text_check, health.rows_check)
    faults = [fault for fault in checks if fault not in (OK, UNFINISHED)]
    if faults:
        health.state, health.reason = "damaged", faults[0] or "a check failed"
    # Told even of a damaged index, as far as it can still be read.
    values = dict(connection.execute("SELECT name, value FROM meta"))
    health.snapshot_at = values["snapshot_at"] if is_moment(values.get("snapshot_at")) else None
    health.purge_pending = bool(values.get("purge"))
    health.sessions = _count(connection, "sessions")
    health.entries = _count(connection, "search_docsize")


def _check(connection: apsw.Connection, pragma: str, deadline: float) -> str:
    """`ok`, `unfinished`, or the first faults."""
    connection.set_progress_handler(lambda: time.monotonic() > deadline, 100_000, id="check")
    try:
        said = [str(row[0]) for row in connection.execute(pragma)]
    except apsw.InterruptError:
        return UNFINISHED
    except apsw.Error as error:
        return str(error)
    finally:
        connection.set_progress_handler(None, id="check")
    return "; ".join(said[:FAULTS])


def _check_rows(connection: apsw.Connection) -> str:
    """Whether there are as many rows as the last commit noted, and each says what it can say."""
    return fault(connection) or OK


def _count(connection: apsw.Connection, table: str) -> int:
    return int(connection.execute(f"SELECT count(*) FROM {table}").get)


def _try_writing(path: str) -> tuple[bool, str]:
    """Really begins to write, and takes it back."""
    try:
        connection = open_database(path, apsw.SQLITE_OPEN_READWRITE)
        try:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("ROLLBACK")
        finally:
            connection.close(True)
    except (apsw.BusyError, apsw.LockedError):
        return True, ""  # another process writes just now, so it can be written
    except (apsw.NotADBError, apsw.CorruptError):
        return _can_make(os.path.dirname(path))  # such a file is not written but replaced
    except (apsw.Error, OSError) as error:
        return False, _said(error)
    return True, ""


def _can_make(folder: str) -> tuple[bool, str]:
    """Whether a file can be made in the folder, or the folder above it that is there."""
    while not os.path.isdir(folder):
        above = os.path.dirname(folder)
        if above == folder or os.path.lexists(folder):
            return False, "its folder cannot be made"
        folder = above
    effective = {"effective_ids": True} if os.access in os.supports_effective_ids else {}
    if os.access(folder, os.W_OK | os.X_OK, **effective):
        return True, ""
    return False, "its folder cannot be written"


def _said(error: Exception) -> str:
    number: Any = getattr(error, "errno", None)
    return os.strerror(number) if number else f"{type(error).__name__.removesuffix('Error')}: {error}"
