"""What a walk over the roots found: session files, told by metadata alone."""

from __future__ import annotations

import os
from operator import attrgetter
from typing import NamedTuple

import msgspec

from . import names

MAX_LINE = 64 << 20
"""Bytes of the longest line of a transcript that is read, unless a setting says otherwise."""

State = tuple[int, int, int, int, int, int]
"""The fields of a `FileIdentity`, as a bare tuple."""


class FileIdentity(NamedTuple):
    """What tells one state of a file from another without reading it."""

    dev: int
    ino: int
    size: int
    mtime_ns: int
    ctime_ns: int
    uid: int

    @classmethod
    def of(cls, stat: os.stat_result) -> FileIdentity:
        return cls(*state_of(stat))

    def is_file(self, other: FileIdentity) -> bool:
        """Whether both are states of one file of one owner."""
        return (self.dev, self.ino, self.uid) == (other.dev, other.ino, other.uid)


_fields = attrgetter(*("st_" + field for field in FileIdentity._fields))
_LIMIT = 1 << 63


def state_of(stat: os.stat_result) -> State:
    """The fields of a file's identity; numbers that SQLite cannot hold (inodes from 2^63 on, times after 2262) are folded."""
    state: State = _fields(stat)
    if max(state) < _LIMIT and min(state) >= -_LIMIT:
        return state
    return tuple((value + _LIMIT) % (2 * _LIMIT) - _LIMIT for value in state)  # type: ignore[return-value]


class Place(msgspec.Struct, frozen=True):
    """What the folder of a session file says of it; shared by the files of one folder."""

    root: int
    """Position of the root in the roots that were asked for."""
    child: bool
    parent_path: bytes | None
    """The session file beside a folder on the way, after which that folder is named; the nearest one."""


class SourceFile(msgspec.Struct, frozen=True, gc=False):
    """One session file as the walk saw it. What its name says is worked out only when it is asked for."""

    path: bytes
    state: State
    """Equal to its `FileIdentity`, but made faster: there may be a hundred thousand of them."""
    place: Place

    @property
    def identity(self) -> FileIdentity:
        return FileIdentity(*self.state)

    @property
    def name(self) -> bytes:
        return os.path.basename(self.path)

    @property
    def root(self) -> int:
        return self.place.root

    @property
    def child(self) -> bool:
        return self.place.child

    @property
    def parent_path(self) -> bytes | None:
        return self.place.parent_path

    @property
    def tombstoned(self) -> bool:
        return names.is_tombstoned(self.name)

    @property
    def named_id(self) -> str | None:
        return names.named_id(self.name)

    @property
    def stamp(self) -> int:
        """The time in the name, else the file's mtime: ms since the epoch; good for an order of work, for nothing else."""
        said = names.named_time(self.name)
        return self.identity.mtime_ns // 1_000_000 if said is None else said


class RootState(msgspec.Struct, frozen=True):
    """Whether a root could be walked; if not, `reported` says whether that makes an answer incomplete, `reason` why."""

    path: str
    reachable: bool
    reported: bool = False
    reason: str = ""


class Walk(msgspec.Struct):
    """What lay under the roots. Paths are bytes (`os.fsencode`)."""

    files: dict[bytes, SourceFile]
    roots: list[RootState]
    folders: set[bytes]
    """Folders that were read to their end: a known file that is missing there is gone, elsewhere it is only out of reach."""
    unavailable: list[tuple[bytes, str]]
    """Files and folders that should have counted but could not be read, with the reason; roots are not among them."""
    aliases: dict[bytes, bytes]
    """Other names (links) of the files that count: to their path in `files`."""
    started: float
    """`time.monotonic()` before the first look: nothing here is known to be true of any later time."""
    judged: dict[bytes, bool] = {}
    """Files after which a folder is named and whose name carries no session id: whether they begin as a session's does."""

    def parent(self, source: SourceFile) -> SourceFile | None:
        """The session file after which a folder above `source` is named, if that file counts."""
        path = source.parent_path
        return None if path is None else self.files.get(self.aliases.get(path, path))


class WalkCancelled(Exception):
    """The walk was told to stop; what it had seen so far says nothing about what it had not, so it is dropped."""


class Root(NamedTuple):
    """One folder under which session files lie."""

    path: str
    """Absolute, without ``~``."""
    explicit: bool
    """Named by an argument or the environment: then the files of the folder's owner count too."""
    required: bool
    """Whether an answer is incomplete where this folder is missing; a default place may well not exist."""
    label: str | None = None
    """What a session below says of it: ``project`` for a folder that was found by the settings or the place of a project,
    which may have come with somebody else's repository."""
