"""A progress bar on standard error: files, bytes and the time left."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self, TextIO

_EVERY = 0.1  # seconds between two drawings
_BAR = 24


class Progress:
    """Callable as ``progress(files_done, files_total, bytes_done, bytes_total)``, from any thread.

    On a terminal one line is redrawn at most ten times a second. Elsewhere there is one line when work begins and one
    when it ends. Use it as a context manager: an interruption leaves a finished line that says how far it came.
    ``clock`` counts seconds; nothing is shown of work that takes less than ``patience`` of them. A stream that cannot be written to ends the display, not the work.
    """

    def __init__(self, stream: TextIO, *, clock: Callable[[], float] = time.monotonic, patience: float = 0.0) -> None:
        self._stream, self._clock = stream, clock
        self._live = stream.isatty()
        self._patience, self._first_call = patience, clock()
        self._lock = threading.Lock()
        self._begun: float | None = None
        self._first_bytes = 0
        self._drawn_at = 0.0
        self._drawn_width = 0
        self._counts = (0, 0, 0, 0)
        self._closed = False

    def __call__(self, files_done: int, files_total: int, bytes_done: int, bytes_total: int) -> None:
        with self._lock:
            if self._closed:
                return
            now = self._clock()
            self._counts = (files_done, files_total, bytes_done, bytes_total)
            if now - self._first_call < self._patience:
                return
            if self._begun is None:
                self._begun, self._first_bytes = now, bytes_done
                if not self._live:
                    self._write(f"indexing {files_total:,} files, {size(bytes_total)}\n")
            elif now - self._drawn_at < _EVERY:
                return
            if self._live:
                self._drawn_at = now
                self._draw(self._line(now))

    def close(self, *, interrupted: bool = False) -> None:
        """End the line; says where it stopped when ``interrupted``. A second call does nothing."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            if self._begun is None:
                return
            done, total, read, _ = self._counts
            took = span(self._clock() - self._begun)
            verb = "stopped after" if interrupted else "indexed"
            line = f"{verb} {done:,} of {total:,} files, {size(read)} in {took}"
            if interrupted:
                line += "; what is done is kept"
            if self._live:
                self._draw(line)
                self._write("\n")
            else:
                self._write(line + "\n")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close(interrupted=kind is not None)

    def _line(self, now: float) -> str:
        done, total, read, all_bytes = self._counts
        share = min(1.0, read / all_bytes) if all_bytes > 0 else 1.0
        filled = int(share * _BAR)
        bar = "#" * filled + "-" * (_BAR - filled)
        line = f"[{bar}] {share:4.0%}  {done:,}/{total:,} files  {size(read)}/{size(all_bytes)}"
        gained, elapsed = read - self._first_bytes, now - (self._begun or now)
        if gained > 0 and elapsed > 0 and all_bytes > read:
            line += f"  {span((all_bytes - read) * elapsed / gained)} left"
        return line

    def _draw(self, line: str) -> None:
        """Over the line drawn before, padded with spaces: that works on terminals without escape sequences too."""
        line = line[: self._columns() - 1]
        self._write("\r" + line.ljust(self._drawn_width))
        self._drawn_width = len(line)

    def _columns(self) -> int:
        try:
            return max(20, os.get_terminal_size(self._stream.fileno()).columns)
        except (OSError, ValueError):
            return 80  # a terminal that does not tell its size

    def _write(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):
            self._closed = True  # the stream is gone; the work that is being watched goes on


def size(count: int) -> str:
    """``512 B``, ``3.4 MB`` (powers of 1000)."""
    if count < 1000:
        return f"{max(0, count)} B"
    value = float(count)
    for unit in ("kB", "MB", "GB"):
        value /= 1000
        if value < 999.95:
            return f"{value:.1f} {unit}"
    return f"{value / 1000:.1f} TB"


def span(seconds: float) -> str:
    """``42 s``, ``3 min 05 s``, ``2 h 10 min``."""
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02} s"
    return f"{whole // 3600} h {whole // 60 % 60:02} min"
