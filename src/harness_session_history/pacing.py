"""Long loops in one thread of a program whose other threads, above all an event loop, must not wait for them.

Python has a thread make room for another one only after 5 ms, unless it stands back by itself.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

T = TypeVar("T")


class Cancelled(Exception):
    """The caller has gone; nobody waits for the answer."""


#: Seconds after which a thread makes room for the others.
SECONDS = 0.002


def let_others_run() -> None:
    """Lets a thread that waits for this one go on."""
    time.sleep(0)


def paced(values: Iterable[T], many: int) -> Iterator[T]:
    """The values; after every `many` of them the others have their turn. Choose `many` for a millisecond or two."""
    left = iter(values)
    while batch := list(islice(left, many)):
        yield from batch
        if len(batch) == many:
            let_others_run()


class Pacer:
    """For work in steps of unknown length: called between them, it stands back where it is time."""

    def __init__(self) -> None:
        self._began = time.monotonic()

    def __call__(self) -> None:
        if time.monotonic() - self._began > SECONDS:
            let_others_run()
            self._began = time.monotonic()
