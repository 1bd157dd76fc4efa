"""A second look at files that a walk has found: cheaper than another walk, and as true.

A file that appears, goes or is renamed changes its folder; one that is written changes only itself. So where no folder
has changed since the walk, looking at the folders and at each known file tells all that a walk would tell. Whatever is
out of the ordinary (links, folders that cannot be read, owners or permissions that change) is left to a walk.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable
from typing import Final

import msgspec

from .levels import begins_as_session
from .sources import SourceFile, Walk

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
        folders[folder] = _state(status)
    return Listing(walk, folders)


def revisit(listing: Listing, cancelled: Callable[[], bool]) -> Walk | None:
    """The same files as they are now; None where only a walk can tell, or if `cancelled`."""
    before = listing.walk
    started = time.monotonic()
    try:
        if any(_state(os.stat(folder)) != state for folder, state in listing.folders.items()):
            return None
        if any(not root.reachable and os.path.lexists(root.path) for root in before.roots):
            return None
        written: dict[bytes, SourceFile] = {}
        look = os.stat
        for number, (path, file) in enumerate(before.files.items()):
            if number % _CHECKED_EVERY == 0 and cancelled():
                return None
            status = look(path)
            state = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
            if state != file.state:
                grown = state[2] != file.state[2] or state[3] != file.state[3]
                if not grown or state[1] != file.state[1] or not stat.S_ISREG(status.st_mode):
                    return None  # its owner, its permissions or its names have changed, or it is another file
                if path in before.judged and begins_as_session(path) != before.judged[path]:
                    return None  # the files below the folder that is named after it have another place by now
                written[path] = SourceFile(path, state, file.place)
    except OSError:
        return None
    # Where nothing is new, not even the dictionary: who has compared it need not compare it again.
    files = {**before.files, **written} if written else before.files
    return Walk(files, before.roots, before.folders, [], {}, started, before.judged)


def _state(status: os.stat_result) -> _FolderState:
    return status.st_dev, status.st_ino, status.st_mtime_ns, status.st_ctime_ns
