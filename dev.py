#!/usr/bin/env python3
"""Sets this project up in a virtual environment of its own and runs it. Needs nothing but Python 3.11 or newer.

    python3 dev.py demo            search the example transcripts
    python3 dev.py test [ARGS]     run the tests (ARGS go to pytest)
    python3 dev.py run ARGS        session-history ARGS, from any folder and over your own sessions

Nothing is installed outside the environment (`.venv` next to this file, or `--venv DIR`), so a system Python that
refuses global installs is fine. A second run skips the installation unless pyproject.toml has changed.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).resolve().parent
OLDEST = (3, 11)
COMMANDS = ("demo", "test", "run")
QUERY = "deployment rollback decision"


def main() -> int:
    if sys.version_info < OLDEST:
        return run_with_newer_python()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--venv", type=Path, default=PROJECT / ".venv", metavar="DIR", help="the environment to use")
    parser.add_argument("command", choices=COMMANDS)
    parser.add_argument("rest", nargs=argparse.REMAINDER, metavar="ARGS")
    options = parser.parse_args()
    if options.command == "demo" and options.rest:
        parser.error("demo takes no arguments")
    venv = options.venv.absolute()
    python = install(venv, "test" if options.command == "test" else "terminal")
    if options.command == "demo":
        return run_demo(python, venv)
    if options.command == "test":
        return run_tests(python, options.rest)
    return subprocess.call([python, "-m", "harness_session_history", *options.rest])


def run_tests(python: Path, arguments: list[str]) -> int:
    return subprocess.call([python, "-m", "pytest", *arguments], cwd=PROJECT)


def run_demo(python: Path, venv: Path) -> int:
    """A search over `examples/sessions`, with an index of its own and none of the reader's settings."""
    index = venv / "demo" / "history.sqlite3"
    own = {name: value for name, value in os.environ.items() if not name.startswith(("SESSION_HISTORY_", "PI_"))}
    words = ["--root", "examples/sessions", "--index", str(index), "--no-maintenance", "search", "--limit", "3", QUERY]
    say(f'session-history --root examples/sessions search --limit 3 "{QUERY}"\n')
    return subprocess.call([python, "-m", "harness_session_history", *words], cwd=PROJECT, env=own)


def install(venv: Path, extra: str) -> Path:
    """The environment's Python, with this package and what ``extra`` needs installed in place."""
    python = venv / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    stamp = venv / f"installed-{extra}"
    wanted = hashlib.sha256(
        (PROJECT / "pyproject.toml").read_bytes() + sys.version.encode() + bytes(PROJECT)
    ).hexdigest()
    if python.exists() and stamp.exists() and stamp.read_text() == wanted:
        return python
    say(f"setting up {venv} ...")
    pip = make_environment(venv, python)
    # A personal pip configuration may ask for --user installs, which no virtual environment allows.
    quiet = {**os.environ, "PIP_USER": "0", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    if subprocess.call([*pip, "install", "--quiet", "--editable", f"{PROJECT}[{extra}]"], env=quiet, stdout=sys.stderr):
        raise SystemExit("dev.py: installing failed; pip said why above. It needs a package index (PyPI or a mirror).")
    stamp.write_text(wanted)
    return python


def make_environment(venv: Path, python: Path) -> list[str | Path]:
    """Makes the environment if need be; returns the command that is pip for it."""
    own_pip: list[str | Path] = [python, "-m", "pip"]
    # Some systems ship Python without ensurepip. Their pip, if there is one, can install into the environment.
    outer_pip: list[str | Path] = [sys.executable, "-m", "pip", "--python", python]
    for pip in (own_pip, outer_pip):
        if python.exists() and works([*pip, "--version"]):
            return pip
    if venv.exists() and any(venv.iterdir()) and not (venv / "pyvenv.cfg").exists():
        raise SystemExit(f"dev.py: {venv} is no virtual environment; move it away or name another with --venv")
    for pip, options in ((own_pip, ["--clear"]), (outer_pip, ["--clear", "--without-pip"])):
        if works([sys.executable, "-m", "venv", *options, venv]) and works([*pip, "--version"]):
            return pip
    raise SystemExit(
        f"dev.py: this Python cannot make a virtual environment with pip in {venv}.\n"
        f"  Debian, Ubuntu: sudo apt install python{sys.version_info[0]}.{sys.version_info[1]}-venv\n"
        "  elsewhere:      install what gives Python its modules `venv` and `ensurepip`, or `pip`\n"
        f"  {sys.executable} -m venv {venv}   says more"
    )


def run_with_newer_python() -> int:
    for minor in range(19, OLDEST[1] - 1, -1):
        found = shutil.which(f"python3.{minor}")
        if found and works([found, "--version"]):
            return subprocess.call([found, __file__, *sys.argv[1:]])
    needed, running = ".".join(map(str, OLDEST)), ".".join(map(str, sys.version_info[:2]))
    raise SystemExit(f"dev.py: Python {needed} or newer is needed; this is {running}")


def works(command: list[str | Path]) -> bool:
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def say(words: str) -> None:
    print(words, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
