"""Whether a file only grew since it was read, so that reading may go on where it ended."""

from __future__ import annotations

import os
from typing import Final
from zlib import crc32

from ..model.entries import Facts
from ..model.limits import LIMITS
from ..model.sources import FileIdentity
from .files import Unreadable, opened, read_at

_PIECE: Final = 1 << 20
_SAMPLES, _SAMPLE = 256, 4096


def fingerprint(descriptor: int, facts: Facts) -> int:
    """A checksum of the bytes that the facts rest on: of all of them where that is quickly done, else of the beginning, the
    end and samples between."""
    covered = facts.size if facts.open_tail else facts.offset
    found = 0
    if covered <= LIMITS.whole_bytes:
        parts = [(start, min(_PIECE, covered - start)) for start in range(0, covered, _PIECE)]
    else:
        piece = min(_PIECE, covered // 4)
        step = (covered - 2 * piece) // _SAMPLES
        parts = [(piece + at * step, _SAMPLE) for at in range(_SAMPLES)]
        parts += [(0, piece), (covered - piece, piece)]
    for start, length in parts:
        found = crc32(read_at(descriptor, length, start), found)
    return found


def can_resume(
    path: str | os.PathLike[str], facts: Facts, old_identity: FileIdentity, new_identity: FileIdentity
) -> bool:
    """Whether the file only grew since ``facts`` were read, so that reading may go on at ``facts.offset``.

    Judged by device, inode, owner and size, the checksum of what was read, and, if the last line
    had no end then, by the bytes that follow it now. False also if the file cannot be read.
    """
    if facts.linear or facts.is_spoilt or not old_identity.is_file(new_identity):
        return False
    try:
        with opened(path, new_identity) as (descriptor, identity):
            if identity.size <= facts.size or fingerprint(descriptor, facts) != facts.fingerprint:
                return False
            return not facts.open_tail or read_at(descriptor, 2, facts.size).startswith((b"\n", b"\r\n"))
    except Unreadable:
        return False
