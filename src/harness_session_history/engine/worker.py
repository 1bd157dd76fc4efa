"""The worker process: refreshes within a budget, or maintains the index, as its order says; then ends.

It works under the same lock and by the same rules as its caller would. When its standard input ends, so does it: nothing is
left behind by a caller that is killed.
"""

from __future__ import annotations

import os
import sys
import threading
import time

import msgspec

from ..archive.scanner import ArchiveScanner
from ..errors import SessionHistoryError
from ..index.connection import IndexHandle
from ..index.file import IndexFile, worker_lock
from ..index.freshness import prefixes
from ..pacing import Cancelled
from ..refresh.plan import Budget
from ..refresh.processes import read
from ..refresh.updater import Updater
from .supervisor import STOP_SECONDS, Order, Report

#: Steps of niceness of a maintainer, for which nobody waits.
MAINTAINER_NICENESS = 5
#: Seconds between two lines that tell how far a refresh is.
PROGRESS_SECONDS = 0.1


def main() -> None:
    """Reads one order and carries it out."""
    order = read(sys.stdin.buffer.readline(), Order)
    stop = threading.Event()
    if not order.detached:
        threading.Thread(target=_end_with_the_caller, args=(stop,), daemon=True).start()
    index = IndexFile(order.settings.index)
    handle = IndexHandle(index, prefixes(root.path for root in order.settings.roots))
    updater = Updater(index, ArchiveScanner(order.settings.roots), order.settings.max_line)
    try:
        (_maintain if order.maintain else _refresh)(order, updater, handle, stop)
    except (Cancelled, SessionHistoryError):
        pass  # the caller has gone; or it tries for itself and meets the same error
    finally:
        handle.close()


def _refresh(order: Order, updater: Updater, handle: IndexHandle, stop: threading.Event) -> None:
    outcome = updater.refresh(handle, Budget(order.deadline, stop.is_set), _Teller(), order.session_id)
    _say(Report(outcome=outcome))


def _maintain(order: Order, updater: Updater, handle: IndexHandle, stop: threading.Event) -> None:
    if hasattr(os, "nice"):
        os.nice(MAINTAINER_NICENESS)
    lock = worker_lock(order.settings.index)
    if order.lock is not None:
        lock.take_over(order.lock)
    elif not lock.acquire():
        return
    try:
        updater.refresh(handle, Budget(None, stop.is_set))
        updater.tidy(handle, stop.is_set)
    finally:
        lock.release()


class _Teller:
    """Tells the caller how far the work is, a few times a second."""

    def __init__(self) -> None:
        self._told = 0.0

    def __call__(self, files: int, all_files: int, size: int, all_bytes: int) -> None:
        now = time.monotonic()
        if now - self._told > PROGRESS_SECONDS or files == all_files:
            self._told = now
            _say(Report(progress=(files, all_files, size, all_bytes)))


def _say(report: Report) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(report) + b"\n")
    sys.stdout.buffer.flush()


def _end_with_the_caller(stop: threading.Event) -> None:
    os.read(sys.stdin.fileno(), 1)  # not through the buffer: its lock must be free when the interpreter ends
    stop.set()
    time.sleep(STOP_SECONDS)
    os._exit(1)  # a transaction that is cut off so is rolled back by whoever opens the index next


if __name__ == "__main__":
    main()
