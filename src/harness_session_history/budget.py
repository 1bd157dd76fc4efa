"""How long work may take, who may end it, and what a refresh says it did."""

from __future__ import annotations

import time
from collections.abc import Callable

import msgspec

from .errors import RefreshIncomplete

#: Told (files done, all files, bytes done, all bytes).
Progress = Callable[[int, int, int, int], None]


class Stopped(Exception):
    """The budget is used up, or the caller has gone."""


class Lost(Exception):
    """A process that was to do the work could not be started, or ended without a word."""


class Budget:
    """Work until a moment of monotonic time (None: without end) that can also be ended from outside."""

    def __init__(self, deadline: float | None, cancelled: Callable[[], bool] = lambda: False) -> None:
        self.deadline, self.cancelled = deadline, cancelled

    def left(self) -> float:
        return 3600.0 if self.deadline is None else max(0.0, self.deadline - time.monotonic())

    def over(self) -> bool:
        return self.cancelled() or (self.deadline is not None and time.monotonic() >= self.deadline)

    def check(self) -> None:
        if self.over():
            raise Stopped


class Outcome(msgspec.Struct):
    """What a run did. It brought everything up to date only if `settled`."""

    done: int = 0
    left: int = 0  # files not reached in time
    unsettled: int = 0  # files that kept changing
    unavailable: int = 0
    waited: bool = False  # another process held the lock to the end

    @property
    def settled(self) -> bool:
        return not (self.left or self.unsettled or self.unavailable or self.waited)

    def counts(self) -> dict[str, int]:
        return {"done": self.done, "left": self.left, "unsettled": self.unsettled, "unavailable": self.unavailable}

    def incomplete(self) -> RefreshIncomplete:
        """The error of a call that wanted everything up to date."""
        counts = self.counts()
        unreadable = not (self.left or self.unsettled or self.waited)
        return RefreshIncomplete(
            "the selected sessions could not all be brought up to date: "
            + ", ".join(f"{count} {what}" for what, count in counts.items()),
            hint="`session-history doctor` says what cannot be read; ask without refresh for the rest"
            if unreadable
            else "what was indexed stays indexed: ask again to go on, or ask without refresh",
            details=counts,
        )
