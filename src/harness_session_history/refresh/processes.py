"""Worker processes: this interpreter running one of this package's modules, with orders on its standard input."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    import subprocess
    from typing import Any

    import msgspec

T = TypeVar("T")


def start(module: str, *, answers: bool, **more: Any) -> subprocess.Popen[bytes]:
    """A process that runs `module`; `answers` if its standard output is wanted. `more` goes to ``subprocess.Popen``.

    Raises OSError, also where this interpreter is part of another program.
    """
    import subprocess

    if not sys.executable:
        raise FileNotFoundError("the interpreter's own file is unknown")
    return subprocess.Popen(
        # -P: what lies in the caller's folder must not stand in for a module that the process imports.
        [sys.executable, "-P", "-m", f"harness_session_history.{module}"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE if answers else subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=_environment(),
        **more,
    )


def end(process: subprocess.Popen[bytes]) -> None:
    """Ends a process, whatever it is doing."""
    process.kill()
    process.wait()
    for stream in (process.stdin, process.stdout):
        with contextlib.suppress(OSError, ValueError):
            if stream is not None:
                stream.close()


def written(order: msgspec.Struct) -> bytes:
    """An order as a line of JSON. (By the standard library: paths need not be UTF-8, and it takes any string.)"""
    import json

    import msgspec

    return json.dumps(msgspec.to_builtins(order)).encode() + b"\n"


def read(line: bytes, kind: type[T]) -> T:
    """The order that was `written`."""
    import json

    import msgspec

    return msgspec.convert(json.loads(line), kind)


def _environment() -> dict[str, str]:
    """The environment in which the process finds this very package."""
    home = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    paths = [home, *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
