"""The place of an index: its folder, its locks, and whose the file is that lies there. Nothing of the user's is overwritten."""

from __future__ import annotations

import contextlib
import os
import stat
import sys
from itertools import count

import apsw

from ..errors import IndexUnavailable, log_warning
from ..model.names import INDEX_NAME
from .lock import FileLock
from .schema import APPLICATION_ID

_COMPANIONS = ("-wal", "-shm", "-journal")
#: Ends the name of the lock that is held while an index is made.
_MAKING = ".making"
#: How long a call waits for another process that makes or heals the index.
WAIT_SECONDS = 10.0

Identity = tuple[int, int]


class IndexPlace:
    """A path for an index, whatever lies there."""

    def __init__(self, path: str) -> None:
        self.path = os.path.abspath(path)

    def lock(self) -> FileLock:
        """The one writer's lock (advisory; it dies with its process)."""
        return FileLock(self.path + ".lock")

    def identity(self) -> Identity | None:
        """(device, inode) of the file now, None if there is none: a reader's connection is stale when it changes."""
        try:
            st = os.stat(self.path)
        except OSError:
            return None
        return st.st_dev, st.st_ino

    def is_still(self, identity: Identity | None) -> bool:
        """Whether the file is the one of that identity."""
        return identity is not None and self.identity() == identity

    def stamp(self) -> tuple[int, ...] | None:
        """(size, time of the last change, length of the log) of the file now."""
        try:
            st = os.stat(self.path)
        except OSError:
            return None
        return st.st_size, st.st_mtime_ns, self.wal_bytes()

    def wal_bytes(self) -> int:
        """Length of the write-ahead log."""
        try:
            return os.stat(self.path + "-wal").st_size
        except OSError:
            return 0

    def making(self) -> contextlib.AbstractContextManager[bool]:
        """Held for the moment in which a file is made: not the writer's lock, which may be held for long."""
        return FileLock(self.path + _MAKING).held(WAIT_SECONDS)

    def prepare_folder(self) -> None:
        """Makes the index's folder if need be. Raises IndexUnavailable if that fails, or if others own it or can enter it."""
        folder = os.path.dirname(self.path)
        try:
            os.makedirs(folder, mode=0o700, exist_ok=True)
            st = os.stat(folder)
        except OSError as error:
            raise IndexUnavailable(
                f"the index folder cannot be made ({error.strerror})",
                hint="set SESSION_HISTORY_INDEX to a file in a folder of your own",
            ) from error
        if hasattr(os, "geteuid") and st.st_uid != os.geteuid():
            raise _of_another("folder")
        if os.name == "posix" and st.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise IndexUnavailable(
                "the index folder can be entered by others",
                hint="set SESSION_HISTORY_INDEX to a file in a folder of its own, or run `session-history doctor`",
            )
        with contextlib.suppress(OSError):
            st = os.lstat(self.path)
            if not stat.S_ISREG(st.st_mode):
                raise IndexUnavailable("the index path is not a regular file", hint="choose another index file")
            if hasattr(os, "geteuid") and st.st_uid != os.geteuid():
                raise _of_another("file")

    def is_ours(self) -> bool | None:
        """Whether the file bears our mark; None if there is none, or an empty one. Nothing of it is changed.

        Asked by SQLite: had this process opened the file itself, closing it would drop the locks that it has on it.
        """
        if not os.path.exists(self.path) or os.path.getsize(self.path) == 0:
            return None
        flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
        try:
            connection = apsw.Connection(uri_of(self.path) + "?mode=ro&immutable=1", flags=flags)
            try:
                return bool(connection.pragma("application_id") == APPLICATION_ID)
            finally:
                connection.close(True)
        except (apsw.NotADBError, apsw.CorruptError):
            return False

    def refuse_foreign(self) -> None:
        """Raises IndexUnavailable if the path names a file of the user's: a transcript, or one without our mark under
        another name than ours, where no index was made before (the lock for that would lie beside it)."""
        if self.is_ours() is False:
            self.refuse_transcript()
            if os.path.basename(self.path) != INDEX_NAME and not os.path.exists(self.path + _MAKING):
                raise IndexUnavailable(
                    "the index path names a file that is no index of this program; it was left as it is",
                    hint="choose another index file",
                )

    def clear_away(self) -> None:
        """Removes an index of ours; a file without our mark is given another name.

        The file goes before its log, so that nobody can open it without; what is left of a log is never seen by the next
        file (it would be replayed over it), because that is made only when all is gone.
        """
        aside = None
        if self.is_ours() is False:
            self.refuse_transcript()
            numbered = (f"{self.path}.aside-{number}" for number in count(1))
            aside = next(name for name in numbered if not os.path.lexists(name))
            log_warning("what stood in the place of the index is no index of ours; it is now called %s", aside)
        for suffix in ("", *_COMPANIONS):
            with contextlib.suppress(FileNotFoundError):
                if aside is None:
                    os.remove(self.path + suffix)
                else:
                    os.rename(self.path + suffix, aside + suffix)

    def refuse_transcript(self) -> None:
        """Raises IndexUnavailable if the path names a transcript."""
        # A slip in a setting must not cost a transcript; an index never begins so. (Only where there is no connection to
        # the file: closing it here would drop this process's locks.)
        with contextlib.suppress(FileNotFoundError), open(self.path, "rb") as file:
            if file.read(1) in (b"{", b"\xef"):
                raise IndexUnavailable(
                    "the index path names a file that looks like a transcript", hint="choose another index file"
                )


def uri_of(path: str) -> str:
    from urllib.parse import quote

    return "file:" + quote(os.fsencode(path.replace("\\", "/") if sys.platform == "win32" else path))


def _of_another(what: str) -> IndexUnavailable:
    return IndexUnavailable(
        f"the index {what} belongs to another user",
        hint="set SESSION_HISTORY_INDEX to a file in a folder of your own; if it was made by a call as root, have root delete it",
    )
