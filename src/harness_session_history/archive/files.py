"""The one door to transcripts: each is opened read only, as it was seen, without a trace on it; and whatever reading one
does to its reader costs that file only."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

from ..errors import log_warning
from ..model.sources import FileIdentity

_FLAGS = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_NO_ACCESS_TIME = getattr(os, "O_NOATIME", 0)
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)


class Unreadable(Exception):
    """A file that gives nothing now; the message says why and holds no path."""


class Replaced(Unreadable):
    """The expected file is gone, or another one, or one of another owner, stands in its place."""


class NotASession(Exception):
    """The file does not begin with a session header, and its name does not stand in for one."""


@contextmanager
def opened(
    path: str | bytes | os.PathLike[str], seen: FileIdentity | None = None
) -> Iterator[tuple[int, FileIdentity]]:
    """A descriptor of a regular file and its identity at that moment, to be read within the ``with``.

    With `seen`, device, inode and owner must be those of that identity, before a byte is read (else ``Replaced``); without
    it, the path must not be a link. Raises ``Unreadable`` for whatever goes wrong within, see ``contained``.
    """
    with contained():
        descriptor, identity = _open(path, seen)
        try:
            yield descriptor, identity
        finally:
            os.close(descriptor)


@contextmanager
def contained() -> Iterator[None]:
    """Reading one file: any exception within that is not ours becomes ``Unreadable``, with its traceback in the log, so that
    no file can take down its reader."""
    try:
        yield
    except (Unreadable, NotASession):
        raise
    except FileNotFoundError as error:
        raise Replaced(reason(error)) from error
    except OSError as error:
        raise Unreadable(reason(error)) from error
    except Exception as error:
        log_warning("a transcript cannot be read: %s", type(error).__name__, exc_info=error)
        raise Unreadable(f"reading it failed: {type(error).__name__}") from error


def _open(path: str | bytes | os.PathLike[str], seen: FileIdentity | None) -> tuple[int, FileIdentity]:
    """The access time is left alone where the system allows it (its own files only), and a pipe that is named like a
    transcript does not block."""
    # A link inside the roots is a name like any other; what it leads to is compared with what the walk saw.
    flags = _FLAGS | (_NO_LINK if seen is None else 0)
    try:
        descriptor = os.open(path, flags | _NO_ACCESS_TIME)
    except PermissionError:
        descriptor = os.open(path, flags)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise Unreadable("not a regular file")
        identity = FileIdentity.of(status)
        if seen is not None and not seen.is_file(identity):
            raise Replaced("another file stands in its place")
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor, identity


def open_regular(path: str) -> BinaryIO:
    """A regular file for reading; what else may lie there does not block. Raises OSError."""
    descriptor = os.open(path, _FLAGS)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "not a regular file")
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def read_at(descriptor: int, length: int, offset: int) -> bytes:
    """``length`` bytes from ``offset``, fewer only at the end of the file. Raises ``OSError``."""
    if hasattr(os, "pread"):
        data = os.pread(descriptor, length, offset)
        while 0 < len(data) < length:
            more = os.pread(descriptor, length - len(data), offset + len(data))
            if not more:
                break
            data += more
        return data
    os.lseek(descriptor, offset, os.SEEK_SET)
    pieces: list[bytes] = []
    while length > 0 and (piece := os.read(descriptor, length)):
        pieces.append(piece)
        length -= len(piece)
    return b"".join(pieces)


def reason(error: Exception) -> str:
    """Why the system refused, without the path that its own message holds."""
    number = getattr(error, "errno", None)
    return os.strerror(number) if number else errno.errorcode[errno.EINVAL]
