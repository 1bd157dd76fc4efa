#!/usr/bin/env python3
"""Sets this project up in a virtual environment of its own and runs it. Needs nothing but Python 3.11 or newer.

    python3 dev.py demo            search the example transcripts
    python3 dev.py test [ARGS]     run the tests (ARGS go to pytest)
    python3 dev.py run ARGS        session-history ARGS, from any folder and over your own sessions
    python3 dev.py skill FOLDER    put the skill into an agent's skill folder, as FOLDER/session-history

Nothing is installed outside the environment (`.venv` next to this file, in the user's cache where this folder cannot be
written, or `--venv DIR`), so a system Python that refuses global installs is fine. A second run skips the installation
unless pyproject.toml has changed.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

PROJECT = Path(__file__).resolve().parent
OLDEST = (3, 11)
COMMANDS = ("demo", "test", "run", "skill")
#: What a command needs that an installed skill does not have.
NEEDS = {"demo": "examples", "test": "tests"}
SKILL_NAME = "session-history"
SKILL_FILES = ("SKILL.md", "README.md", "CHANGELOG.md", "LICENSE", "pyproject.toml", "dev.py", "src", "docs")
QUERY = "deployment rollback decision"


def main() -> int:
    if sys.version_info < OLDEST:
        return run_with_newer_python()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--venv", type=Path, default=None, metavar="DIR", help="the environment to use")
    parser.add_argument("command", choices=COMMANDS)
    parser.add_argument("rest", nargs=argparse.REMAINDER, metavar="ARGS")
    options = parser.parse_args()
    if options.command == "demo" and options.rest:
        parser.error("demo takes no arguments")
    needed = NEEDS.get(options.command)
    if needed is not None and not (PROJECT / needed).is_dir():
        parser.error(f"{options.command} needs the whole project; this is the skill alone, without `{needed}`")
    if options.command == "skill":
        if len(options.rest) != 1:
            parser.error("skill takes one argument, the agent's skill folder")
        return install_skill(Path(options.rest[0]).expanduser())
    venv = (options.venv or usual_venv()).absolute()
    with alone(venv):
        python = install(venv, "test" if options.command == "test" else "terminal")
    if options.command == "demo":
        return run_demo(python, venv)
    if options.command == "test":
        return run_tests(python, options.rest)
    command = [str(python), "-m", "harness_session_history", *options.rest]
    if os.name == "posix":
        os.execv(python, command)  # nothing stands between the caller's signals and the program
    return subprocess.call(command)


def install_skill(folder: Path) -> int:
    """Copies what the skill needs, and nothing else, to ``folder/session-history``; an earlier copy is replaced."""
    target = folder / SKILL_NAME
    if target.exists() and not (target / "SKILL.md").exists():
        raise SystemExit(f"dev.py: {target} is there and is no skill; move it away")
    if target.exists() and target.resolve() == PROJECT:
        raise SystemExit(f"dev.py: {target} is this very folder")
    folder.mkdir(parents=True, exist_ok=True)
    if target.is_symlink():
        target.unlink()
    for name in SKILL_FILES:
        source, copy = PROJECT / name, target / name
        if source.is_dir():
            shutil.rmtree(copy, ignore_errors=True)
            shutil.copytree(source, copy, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            target.mkdir(exist_ok=True)
            shutil.copyfile(source, copy)
    print(target)
    return 0


def usual_venv() -> Path:
    """`.venv` beside this file; where that cannot be written, a place in the user's cache that belongs to this folder."""
    beside = PROJECT / ".venv"
    if os.access(PROJECT if not beside.exists() else beside, os.W_OK):
        return beside
    home = Path.home()
    cache = os.environ.get("LOCALAPPDATA") if os.name == "nt" else os.environ.get("XDG_CACHE_HOME")
    usual = home / "Library" / "Caches" if sys.platform == "darwin" else home / ".cache"
    folder = hashlib.sha256(bytes(PROJECT)).hexdigest()[:16]
    return Path(cache or usual) / "harness-session-history" / "environments" / folder


@contextlib.contextmanager
def alone(venv: Path) -> Iterator[None]:
    """One process at a time sets an environment up; the others wait for it."""
    venv.parent.mkdir(parents=True, exist_ok=True)
    with open(venv.parent / f"{venv.name}.lock", "a", encoding="ascii") as lock:
        if sys.platform == "win32":
            import msvcrt

            lock.seek(0)
            msvcrt.locking(lock.fileno(), msvcrt.LK_LOCK, 1)
        else:
            import fcntl

            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def run_tests(python: Path, arguments: list[str]) -> int:
    return subprocess.call([python, "-m", "pytest", *arguments], cwd=PROJECT)


def run_demo(python: Path, venv: Path) -> int:
    """A search over `examples/sessions`, with an index of its own and none of the reader's settings."""
    index = venv / "demo" / "history.sqlite3"
    own = {name: value for name, value in os.environ.items() if not name.startswith(("SESSION_HISTORY_", "PI_"))}
    words = ["--root", "examples/sessions", "--index", str(index), "--no-maintenance", "search", "--limit", "3", QUERY]
    say(f'session-history --root examples/sessions search --limit 3 "{QUERY}"\n')
    status = subprocess.call([python, "-m", "harness_session_history", *words], cwd=PROJECT, env=own)
    say("\nOpen a hit:         python3 dev.py run --root examples/sessions open SESSION_ID ENTRY_ID")
    say('Your own sessions:  python3 dev.py run search "words that were said"')
    return status


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
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
