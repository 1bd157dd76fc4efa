"""What the folders on the way to a session file make of it: a child of the session after which one of them is named.

A name does not always say whether a file is a session: a file after which a folder of transcripts is named, and whose own
name carries no session id, is looked into. So this is worked out only where a folder really holds transcripts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from ..model.sources import FileIdentity, Place
from .files import Unreadable

CHILD_FOLDERS: Final = frozenset({b"subagents", b"tasks", b"forks"})
"""Folders (below a root) in which every session is a child."""


class Level(msgspec.Struct):
    """A folder on the way: the level above it (None for a root), the files beside it after which it is named."""

    above: Level | None
    siblings: Sequence[bytes]
    for_children: bool
    known: Place | None = None

    def place(self, is_session: Callable[[bytes], bool]) -> Place:
        """The place of the files below; `is_session` is asked about siblings where no nearer one is a session."""
        if self.known is None:
            assert self.above is not None
            over = self.above.place(is_session)
            parent = next(filter(is_session, self.siblings), None)
            if parent is not None:
                self.known = Place(over.root, True, parent)
            elif self.for_children and not over.child:
                self.known = Place(over.root, True, None)
            else:
                self.known = over
        return self.known


def top_level(root: int) -> Level:
    """The level of a root, by its position."""
    return Level(None, (), False, Place(root, False, None))


def begins_as_session(path: bytes, seen: FileIdentity) -> bool:
    """Whether a file begins as a session's does (hardly more of it is read than that takes), or cannot be looked into."""
    from .transcript import session_of  # (hardly ever wanted)

    try:
        return session_of(path, seen) is not None
    except Unreadable:
        return True
