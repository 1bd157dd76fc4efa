"""A large refresh in a process of its own, so that the caller's event loop never waits for this process's interpreter.

The child does what the caller would have done, under the same lock and budget, and says so on its standard
output, one JSON document a line. It ends when its standard input does: nothing is left behind by a caller that is killed.
"""

from __future__ import annotations

import contextlib
import os
import queue
import sys
import threading
import time
from typing import BinaryIO

import msgspec

from ..errors import SessionHistoryError
from ..refresh.plan import Budget, Lost, Outcome, Progress, Stopped
from ..refresh.processes import end, read, start, written
from ..settings import Settings

#: How long after its deadline a child may still take to say what it did.
GRACE_SECONDS = 1.0


class Order(msgspec.Struct):
    """What a child is told, on the first line of its standard input. `deadline` is a moment of monotonic time, which is
    the same in all processes; None: no end."""

    settings: Settings
    session_id: str | None
    deadline: float | None
    readers: int


class Report(msgspec.Struct, omit_defaults=True):
    """One line of what a child says: how far it is, or (last) what it did."""

    progress: tuple[int, int, int, int] | None = None
    outcome: Outcome | None = None


def refresh(
    settings: Settings, session_id: str | None, budget: Budget, progress: Progress | None, readers: int
) -> Outcome:
    """The outcome of a refresh that a child does, with so many reading processes started at once.

    Raises Lost, and Stopped if the caller has gone.
    """
    try:
        child = start("engine.remote", answers=True)
    except OSError as error:
        raise Lost from error
    lines: queue.Queue[bytes] = queue.Queue()
    assert child.stdin is not None and child.stdout is not None
    threading.Thread(target=_pump, args=(child.stdout, lines), daemon=True).start()
    try:
        order = Order(settings, session_id, budget.deadline, readers)
        with contextlib.suppress(OSError):
            child.stdin.write(written(order))
            child.stdin.flush()
        return _followed(lines, budget, progress)
    finally:
        end(child)


def _followed(lines: queue.Queue[bytes], budget: Budget, progress: Progress | None) -> Outcome:
    decoder = msgspec.json.Decoder(Report)
    last = None if budget.deadline is None else budget.deadline + GRACE_SECONDS
    while True:
        if budget.cancelled():
            raise Stopped
        if last is not None and time.monotonic() > last:
            return Outcome(left=1)
        try:
            line = lines.get(timeout=0.02)
        except queue.Empty:
            continue
        if not line:
            raise Lost
        report = decoder.decode(line)
        if report.outcome is not None:
            return report.outcome
        if report.progress is not None and progress is not None:
            progress(*report.progress)


def _pump(stream: BinaryIO, lines: queue.Queue[bytes]) -> None:
    with contextlib.suppress(OSError, ValueError):
        for line in stream:
            lines.put(line)
    lines.put(b"")


def main() -> None:
    """The child: does what it is told."""
    from ..archive.scanner import Lookout
    from ..index.connection import Desk
    from ..index.file import IndexFile
    from ..index.freshness import prefixes
    from ..refresh.readers import start_readers
    from ..refresh.updater import Updater

    order = read(sys.stdin.buffer.readline(), Order)
    # Before there is a second thread, so that they may be copies of this process.
    readers = start_readers(order.readers)
    threading.Thread(target=_end_with_the_caller, daemon=True).start()
    settings, index = order.settings, IndexFile(order.settings.index)
    desk = Desk(index, prefixes(root.path for root in settings.roots))
    updater = Updater(settings, index, Lookout(settings.roots), alone=True, readers=readers)
    try:
        outcome = updater.refresh(desk, Budget(order.deadline), _Teller(), order.session_id)
    except SessionHistoryError:
        return  # the caller tries for itself and meets the same error
    finally:
        desk.close()
        for child in readers:
            end(child)
    _say(Report(outcome=outcome))


class _Teller:
    """Tells the caller how far the work is, a few times a second."""

    def __init__(self) -> None:
        self._told = 0.0

    def __call__(self, files: int, all_files: int, size: int, all_bytes: int) -> None:
        now = time.monotonic()
        if now - self._told > 0.1 or files == all_files:
            self._told = now
            _say(Report(progress=(files, all_files, size, all_bytes)))


def _say(report: Report) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(report) + b"\n")
    sys.stdout.buffer.flush()


def _end_with_the_caller() -> None:
    os.read(sys.stdin.fileno(), 1)  # not through the buffer: its lock must be free when the interpreter ends
    os._exit(1)  # a transaction that is cut off so is rolled back by whoever opens the index next


if __name__ == "__main__":
    main()
