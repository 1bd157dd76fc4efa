"""Processes of our own: this interpreter running one of this package's modules."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys

TYPE_CHECKING = False  # as type checkers know it: a child that only starts others does without `typing`
if TYPE_CHECKING:
    from typing import Any


def start(module: str, *words: str, answers: bool, **more: Any) -> subprocess.Popen[bytes]:
    """A child that runs `module` and reads its orders from its standard input; `answers` if its output is wanted.

    `more` goes to ``subprocess.Popen``. Raises OSError.
    """
    return subprocess.Popen(
        # -P: what lies in the caller's folder must not stand in for a module that the child imports.
        [sys.executable, "-P", "-m", f"harness_session_history.{module}", *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE if answers else subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=_environment(),
        **more,
    )


def end(child: subprocess.Popen[bytes]) -> None:
    """Ends a child, whatever it is doing."""
    child.kill()
    child.wait()
    for stream in (child.stdin, child.stdout):
        with contextlib.suppress(OSError, ValueError):
            if stream is not None:
                stream.close()


def _environment() -> dict[str, str]:
    """The environment in which a child finds this very package."""
    home = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    paths = [home, *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
