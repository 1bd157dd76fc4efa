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

from . import children
from .errors import IndexUnavailable

if TYPE_CHECKING:
    from .engine import Engine
    from .lanes import Lane

#: How long the program that forks waits for calls that run.
WAIT_SECONDS = 0.3

_engines: weakref.WeakValueDictionary[int, Engine] = weakref.WeakValueDictionary()
#: The lanes that each thread which is about to fork has put to rest.
_resting: dict[int, list[Lane]] = {}
#: Index files that were in use when this process was forked.
_inherited: set[str] = set()


def follow(engine: Engine) -> None:
    """Has an engine put to rest before a fork, and renewed in the child."""
    _engines[id(engine)] = engine


def check(index: str) -> None:
    """Raises IndexUnavailable for an index that this process must not open."""
    if index in _inherited:
        raise IndexUnavailable(
            "this process was forked while the index was in use",
            hint="fork while no call runs, or start processes in another way (multiprocessing: spawn)",
        )


def _live() -> list[Engine]:
    return [engine for reference in _engines.valuerefs() if (engine := reference()) is not None]


def _before() -> None:
    if children.copying:
        return  # that copy has nothing to do with any index
    until = time.monotonic() + WAIT_SECONDS
    lanes = _resting[threading.get_ident()] = []
    for engine in _live():
        for lane in (engine.readers, engine.writers):
            if lane.rest(max(0.0, until - time.monotonic())):
                lanes.append(lane)


def _after_in_parent() -> None:
    for lane in _resting.pop(threading.get_ident(), ()):
        lane.go_on()


def _after_in_child() -> None:
    if children.copying:
        return
    rested = _resting.pop(threading.get_ident(), [])
    _resting.clear()
    for engine in _live():
        if engine.readers not in rested or engine.writers not in rested:
            _inherited.add(engine.settings.index)
        engine.renew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child)
