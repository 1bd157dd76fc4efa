"""Statements that are given up when their time is over."""

from __future__ import annotations

import time
from typing import Self

import apsw


class Limited:
    """``with`` it, statements are stopped when the time is over, and that is no error: `overran` says so."""

    def __init__(self, connection: apsw.Connection, seconds: float) -> None:
        self.connection, self.seconds, self.overran = connection, seconds, False

    def __enter__(self) -> Self:
        deadline = time.monotonic() + self.seconds

        def over() -> bool:
            self.overran = self.overran or time.monotonic() > deadline
            return self.overran

        self.connection.set_progress_handler(over, 500, id=self)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> bool:
        self.connection.set_progress_handler(None, id=self)
        return self.overran and isinstance(error, apsw.InterruptError)
