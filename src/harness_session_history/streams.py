"""The standard streams of the shell: UTF-8 whatever the locale says, and quiet where nobody reads any more."""

from __future__ import annotations

import io
import os
import sys

from .display.words import one_line
from .errors import InvalidRequest


def speak_utf8() -> None:
    """Whatever the locale says. A lone surrogate becomes its escape, which inside a JSON string is valid JSON."""
    if sys.stderr is None:  # closed: what is said there is lost, and must not be taken for output
        sys.stderr = io.StringIO()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")


def read_stdin() -> str:
    """All of standard input as UTF-8, whatever the locale says. Raises InvalidRequest."""
    if sys.stdin is None:
        raise InvalidRequest("standard input is closed", hint="send one JSON object")
    try:
        return sys.stdin.buffer.read().decode("utf-8-sig")
    except OSError as error:
        raise InvalidRequest(f"standard input cannot be read ({error.strerror})", hint="send one JSON object") from None
    except UnicodeDecodeError:
        raise InvalidRequest("standard input is not UTF-8", hint="send one JSON object as UTF-8") from None


class OutputLost(Exception):
    """Standard output takes no more; ``status`` is what to exit with."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


def write(text: str, end: str = "\n") -> None:
    """Prints at once, so that a closed pipe or a full disk is noticed here and not as the interpreter ends."""
    try:
        print(text, end=end, flush=True)
    except BrokenPipeError:
        _forget(sys.stdout)
        raise OutputLost(0) from None  # the reader had enough
    except OSError as error:
        _forget(sys.stdout)
        complain(f"the answer cannot be written: {error.strerror}")
        raise OutputLost(1) from None


def on_terminal() -> bool:
    return sys.stdout is not None and sys.stdout.isatty()


def complain(*lines: str) -> None:
    """Says what went wrong; an argument that is repeated in it cannot steer the terminal."""
    try:
        said = "\n  ".join(one_line(line, 2_000) for line in lines if line)
        print(f"session-history: {said}", file=sys.stderr, flush=True)
    except OSError:
        _forget(sys.stderr)


def _forget(stream: object) -> None:
    """Nobody reads it any more; the interpreter's own last flush must not complain about that."""
    if isinstance(stream, io.TextIOWrapper):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
