"""What lies below the roots now, looked at as seldom as possible.

A scan is a walk over all folders, or a second look at the files that a walk has found: cheaper, and as true. A file that
appears, goes or is renamed changes its folder; one that is written changes only itself. So where no folder has changed
since the walk, the states of the folders and of each known file tell all that a walk would tell. Whatever is out of the
ordinary (links, folders that cannot be read, owners or permissions that change) is left to a walk.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable
from heapq import nlargest
from typing import Final

import msgspec

from ..model.limits import LIMITS
from ..model.sources import FileIdentity, Root, SourceFile, Walk, state_of
from .discovery import walk
from .parentage import begins_as_session

#: Number of files that are watched: those written last, with their folders and the roots.
WATCHED = 16


class ArchiveScanner:
    """Scans the files below the roots and caches what it saw. Shared by the connections of one history."""

    def __init__(self, roots: tuple[Root, ...]) -> None:
        self.roots = roots
        self._seen: _Seen | None = None
        self._listing: Listing | None = None

    def walk(self, cancelled: Callable[[], bool]) -> Walk:
        """What is there now, not from the cache. Raises WalkCancelled."""
        again = revisit(self._listing, cancelled) if self._listing is not None else None
        if again is None:
            began = time.time_ns()
            again = walk(self.roots, cancelled=cancelled)
            self._listing = remember(again, began)
        return again

    def forget(self) -> None:
        """Empties the cache: what was seen says nothing of the snapshot that there is now."""
        self._seen = None

    def keep(self, snapshot: object, seen: Walk) -> None:
        """Caches a walk of this moment for the next `seen_for` with the same snapshot, and for no other."""
        self._seen = _Seen(snapshot, seen, once=True)

    def seen_for(self, snapshot: object, cancelled: Callable[[], bool]) -> Walk:
        """A walk that began after `snapshot` was read (any value that tells snapshots apart), cached or new.

        What was seen before must not vouch for a later snapshot. Raises WalkCancelled.
        """
        seen = self._seen
        if seen is None or seen.snapshot != snapshot or not seen.is_fresh():
            seen = self._seen = _Seen(snapshot, self.walk(cancelled))
        return seen.walk


class _Seen:
    """What a walk saw, and the snapshot that it may vouch for: the one that was read before the walk began."""

    def __init__(self, snapshot: object, seen: Walk, *, once: bool = False) -> None:
        self.snapshot, self.walk, self.once = snapshot, seen, once
        self.seconds = time.monotonic() - seen.started
        self._watched = self._watch() if self.seconds >= LIMITS.cheap_seconds else []

    def is_fresh(self) -> bool:
        """Whether it may still be used."""
        age = time.monotonic() - self.walk.started
        if self.once:
            self.once = False
            return age <= LIMITS.fresh_seconds
        kept = LIMITS.keep_factor * self.seconds if self.seconds >= LIMITS.cheap_seconds else 0.0
        return age <= min(LIMITS.fresh_seconds, kept) and self._holds_still()

    def _holds_still(self) -> bool:
        """Whether the files that were written last are as they were seen, and no other one has come or gone beside them:
        a conversation that goes on and one that begins show there."""
        return all(_state(path) == state for path, state in self._watched)

    def _watch(self) -> list[tuple[bytes, FileIdentity | None]]:
        files = nlargest(WATCHED, self.walk.files.values(), key=_written)
        folders = {os.path.dirname(file.path) for file in files}
        folders.update(os.fsencode(root.path) for root in self.walk.roots)
        began = time.time_ns() - int((time.monotonic() - self.walk.started + LIMITS.tick_seconds) * 1e9)
        seen = [(folder, _state(folder)) for folder in folders]
        # One that has changed since the walk began may have changed after the walk had been there.
        settled = [(folder, None if state is not None and state.mtime_ns > began else state) for folder, state in seen]
        return [*((file.path, file.identity) for file in files), *settled]


def _written(file: SourceFile) -> int:
    return file.state[3]


def _state(path: bytes) -> FileIdentity | None:
    try:
        return FileIdentity.of(os.stat(path))
    except OSError:
        return None


#: A folder that changed so shortly before the walk may change again without a new time stamp (file systems keep these
#: to two seconds at worst): its listing is not relied on.
_SETTLED_NS: Final = 2_500_000_000
_CHECKED_EVERY: Final = 1024

_FolderState = tuple[int, int, int, int]


class Listing(msgspec.Struct, frozen=True):
    """A walk, and the states of its folders right after it."""

    walk: Walk
    folders: dict[bytes, _FolderState]


def remember(walk: Walk, began_ns: int) -> Listing | None:
    """What a second look can rely on, None if it cannot; `began_ns` is the wall clock's time before the walk."""
    if walk.aliases or walk.unavailable:
        return None
    folders = {}
    for folder in walk.folders:
        try:
            status = os.stat(folder)
        except OSError:
            return None
        if max(status.st_mtime_ns, status.st_ctime_ns) > began_ns - _SETTLED_NS:
            return None
        folders[folder] = _folder_state(status)
    return Listing(walk, folders)


def revisit(listing: Listing, cancelled: Callable[[], bool]) -> Walk | None:
    """The same files as they are now; None where only a walk can tell, or if `cancelled`."""
    before = listing.walk
    started = time.monotonic()
    try:
        if any(_folder_state(os.stat(folder)) != state for folder, state in listing.folders.items()):
            return None
        if any(not root.reachable and os.path.lexists(root.path) for root in before.roots):
            return None
        written: dict[bytes, SourceFile] = {}
        look = os.stat
        for number, (path, file) in enumerate(before.files.items()):
            if number % _CHECKED_EVERY == 0 and cancelled():
                return None
            status = look(path)
            state = state_of(status)
            if state != file.state:
                grown = state[2] != file.state[2] or state[3] != file.state[3]
                if not grown or state[1] != file.state[1] or not stat.S_ISREG(status.st_mode):
                    return None  # its owner, its permissions or its names have changed, or it is another file
                if path in before.judged and begins_as_session(path, FileIdentity(*state)) != before.judged[path]:
                    return None  # the files below the folder that is named after it have another place by now
                written[path] = SourceFile(path, state, file.place)
    except OSError:
        return None
    # Where nothing is new, not even the dictionary: who has compared it need not compare it again.
    files = {**before.files, **written} if written else before.files
    return Walk(files, before.roots, before.folders, [], {}, started, before.judged)


def _folder_state(status: os.stat_result) -> _FolderState:
    return status.st_dev, status.st_ino, status.st_mtime_ns, status.st_ctime_ns
