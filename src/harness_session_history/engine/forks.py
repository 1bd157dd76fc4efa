"""What ``os.fork`` means for the histories of a program.

No connection to SQLite may be open in a process that is copied: the copy would take the locks that it finds noted for its
own, while the operating system has given it none. So connections are closed before, and both processes make new ones.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from typing import TYPE_CHECKING

from ..errors import IndexUnavailable
from ..refresh import processes as children

if TYPE_CHECKING:
    from .threads import Lane, Lanes


#: How long the program that forks waits for calls that run.
WAIT_SECONDS = 0.3

_known: weakref.WeakValueDictionary[int, Lanes] = weakref.WeakValueDictionary()
#: The lanes that each thread which is about to fork has put to rest.
_resting: dict[int, list[Lane]] = {}
#: Index files that were in use when this process was forked.
_inherited: set[str] = set()


def follow(lanes: Lanes) -> None:
    """Has the lanes put to rest before a fork, and renewed in the child."""
    _known[id(lanes)] = lanes


def check(index: str) -> None:
    """Raises IndexUnavailable for an index that this process must not open."""
    if index in _inherited:
        raise IndexUnavailable(
            "this process was forked while the index was in use",
            hint="fork while no call runs, or start processes in another way (multiprocessing: spawn)",
        )


def _all() -> list[Lanes]:
    return [lanes for reference in _known.valuerefs() if (lanes := reference()) is not None]


def _before() -> None:
    if children.copying:
        return  # that copy has nothing to do with any index
    until = time.monotonic() + WAIT_SECONDS
    resting = _resting[threading.get_ident()] = []
    for lanes in _all():
        for lane in (lanes.readers, lanes.writers):
            if lane.rest(max(0.0, until - time.monotonic())):
                resting.append(lane)


def _after_in_parent() -> None:
    for lane in _resting.pop(threading.get_ident(), ()):
        lane.go_on()


def _after_in_child() -> None:
    if children.copying:
        return
    rested = _resting.pop(threading.get_ident(), [])
    _resting.clear()
    for lanes in _all():
        if lanes.readers not in rested or lanes.writers not in rested:
            _inherited.add(lanes.index.path)
        lanes.renew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child)
