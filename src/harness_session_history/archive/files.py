"""Opening transcripts: read only, and without leaving a trace on them."""

from __future__ import annotations

import errno
import os
import stat
from typing import BinaryIO

from ..model.sources import FileIdentity

_FLAGS = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_NO_ACCESS_TIME = getattr(os, "O_NOATIME", 0)


class Unreadable(Exception):
    """The operating system did not let the file be read; the message holds no path."""


def open_transcript(path: str | bytes | os.PathLike[str]) -> tuple[int, FileIdentity]:
    """A descriptor of a regular file, and its identity at that moment. The caller closes the descriptor.

    The access time is left alone where the system allows it (its own files only), and a pipe that is named like a
    transcript does not block. Raises ``Unreadable``.
    """
    try:
        try:
            descriptor = os.open(path, _FLAGS | _NO_ACCESS_TIME)
        except PermissionError:
            descriptor = os.open(path, _FLAGS)
    except (OSError, ValueError) as error:
        raise Unreadable(reason(error)) from error
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise Unreadable("not a regular file")
    except OSError as error:
        os.close(descriptor)
        raise Unreadable(reason(error)) from error
    except Unreadable:
        os.close(descriptor)
        raise
    return descriptor, FileIdentity.of(status)


def open_regular(path: str) -> BinaryIO:
    """A regular file for reading; what else may lie there does not block. Raises OSError."""
    descriptor = os.open(path, _FLAGS)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "not a regular file")
    return os.fdopen(descriptor, "rb")


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
