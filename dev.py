#!/usr/bin/env python3
"""Sets this project up in a virtual environment of its own and runs it. Needs nothing but Python 3.11 or newer.

    python3 dev.py demo            search the example transcripts
    python3 dev.py test [ARGS]     run the tests (ARGS go to pytest)
    python3 dev.py run ARGS        session-history ARGS, from any folder and over your own sessions
    python3 dev.py skill FOLDER    put the skill into an agent's skill folder, as FOLDER/session-history

Nothing is installed outside the environment, so a system Python that refuses global installs is fine. The environment
of a checkout is `.venv` beside this file. Installed skills have theirs in the user's cache folder: copies with the same
content share one. Where the one place cannot be written the other is taken; `--venv DIR` names any other. What is ready
is used as it is, whichever Python calls, also where nothing may be written.
"""

from __future__ import annotations

import argparse
import errno
import hashlib
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import IO, NoReturn

PROJECT = Path(__file__).resolve().parent
OLDEST = (3, 11)
COMMANDS = ("demo", "test", "run", "skill")
#: What a command needs that an installed skill does not have.
NEEDS = {"demo": "examples", "test": "tests"}
SKILL_NAME = "session-history"
SKILL_FILES = ("SKILL.md", "README.md", "CHANGELOG.md", "LICENSE", "pyproject.toml", "dev.py", "src", "docs")
#: Pi reads both, and warns if each holds a copy of its own.
PI_READS = ("~/.pi/agent/skills", "~/.agents/skills")
QUERY = "deployment rollback decision"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--venv", type=Path, default=None, metavar="DIR", help="the environment to use")
    parser.add_argument("command", choices=COMMANDS)
    parser.add_argument("rest", nargs=argparse.REMAINDER, metavar="ARGS")
    options = parser.parse_args()
    needed = NEEDS.get(options.command)
    if needed is not None and not (PROJECT / needed).is_dir():
        parser.error(f"{options.command} needs the whole project; this is the skill alone, without `{needed}`")
    if options.command == "skill":
        return install_skill(options.rest, options.venv)
    if options.command == "demo" and options.rest:
        parser.error("demo takes no arguments")
    venv = environment(PROJECT, options.venv, "test" if options.command == "test" else "terminal")
    if options.command == "demo":
        return run_demo(python_of(venv))
    if options.command == "test":
        return subprocess.call([python_of(venv), "-m", "pytest", *options.rest], cwd=PROJECT)
    # -P: what lies in the caller's folder must not stand in for a module of the program.
    command = [str(python_of(venv)), "-P", "-m", "harness_session_history", *options.rest]
    # Where only ASCII is known, Python loads no compiled module from a folder with another letter.
    variables = any_letter() if sys.getfilesystemencoding() == "ascii" else dict(os.environ)
    # What it names to be typed next must work where it was called like this.
    variables["SESSION_HISTORY_PROGRAM"] = f"python3 {shlex.quote(str(PROJECT / 'dev.py'))} run"
    if os.name == "posix":
        os.execve(command[0], command, variables)  # nothing stands between the caller's signals and the program
    return subprocess.call(command, env=variables)


def run_demo(python: Path) -> int:
    """A search over `examples/sessions`, with an index of its own and none of the reader's settings."""
    own = {name: value for name, value in os.environ.items() if not name.startswith(("SESSION_HISTORY_", "PI_"))}
    say(f'python3 dev.py run --root examples/sessions search --limit 3 "{QUERY}"\n')
    words = ["--root", "examples/sessions", "search", "--limit", "3", QUERY]
    with tempfile.TemporaryDirectory() as folder:
        # In variables, so that what the answer names to be typed next does not name a folder that is gone by then.
        own["SESSION_HISTORY_INDEX"] = os.path.join(folder, "history.sqlite3")
        own |= {"SESSION_HISTORY_MAINTENANCE": "off", "SESSION_HISTORY_PROGRAM": "python3 dev.py run"}
        status = subprocess.call([python, "-P", "-m", "harness_session_history", *words], cwd=PROJECT, env=own)
    say('\nYour own sessions:  python3 dev.py run search "words that were said"')
    return status


# --- the skill


def install_skill(words: list[str], venv: Path | None) -> int:
    """Copies what the skill needs, and nothing else, replaces an earlier copy, and sets the environment up."""
    parser = argparse.ArgumentParser(
        prog="dev.py skill",
        description="Puts the skill into an agent's skill folder, as FOLDER/session-history, or replaces the copy there,"
        " and sets its environment up. Prints where the skill is.",
    )
    parser.add_argument(
        "folder", metavar="FOLDER", help="such as ~/.pi/agent/skills, ~/.claude/skills, ~/.agents/skills"
    )
    parser.add_argument("--copy-only", action="store_true", help="leave the environment to the skill's first call")
    options = parser.parse_args(words)
    target = skill_target(options.folder)
    os.umask(os.umask(0) | 0o022)  # nobody else may change what will be run
    try:
        if target.is_symlink():
            target.unlink()
        target.mkdir(parents=True, exist_ok=True)
        for name in SKILL_FILES:
            # The new one is whole before the old one goes, for somebody may be calling.
            fresh = target / f".{name}.new"
            remove(fresh)
            copy(PROJECT / name, fresh)
            remove(target / name)
            fresh.rename(target / name)
    except OSError as problem:
        fail(
            f"{target} cannot be written: {problem}", "Name a skill folder that is yours, or set its permissions right."
        )
    print(target, flush=True)
    say_collisions(target)
    if not options.copy_only:
        used = environment(target, venv, "terminal")
        say(f"its environment: {megabytes(used)} MB in {used}")
        if used.resolve() != target.resolve() / ".venv":
            remove(target / ".venv")  # of a copy that had its own
            remove(target / ".venv.lock")
    remove_stale()
    return 0


def skill_target(words: str) -> Path:
    """The skill's folder in, or at, the folder that was named; refuses what would damage or hide something."""
    if not words.strip():
        fail("the folder's name is empty", "Name an agent's skill folder, such as ~/.pi/agent/skills.")
    try:
        folder = Path(os.path.abspath(Path(words).expanduser()))
    except RuntimeError as problem:
        fail(f"{words}: {problem}", "Name the skill folder by its whole path.")
    if os.path.lexists(folder) and not folder.is_dir():
        fail(f"{folder} is no folder", "Name an agent's skill folder, such as ~/.pi/agent/skills.")
    target = folder if folder.name == SKILL_NAME else folder / SKILL_NAME
    if target != folder and (folder / "SKILL.md").exists():
        fail(f"{folder} is a skill itself", f"Name the folder that holds the skills: {folder.parent}")
    if target.exists() and target.resolve() == PROJECT:
        fail(f"{target} is this very folder", "Run dev.py of another copy to replace it.")
    if target.is_symlink() or not target.exists():
        return target
    if is_checkout(target):
        fail(f"{target} is a checkout of the whole project", "Bring it up to date with git, or move it away.")
    if not target.is_dir() or (
        any(target.iterdir()) and not all((target / n).exists() for n in ("SKILL.md", "dev.py"))
    ):
        fail(f"{target} is there and is no copy of this skill", "Move it away.")
    return target


def copy(source: Path, target: Path) -> None:
    """Contents only: what comes out is the caller's own, with the modes that are usual for the caller."""
    if not source.is_dir():
        shutil.copyfile(source, target)
        return
    target.mkdir()
    for child in source.iterdir():
        if child.name != "__pycache__":
            copy(child, target / child.name)


def remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    elif os.path.lexists(path):
        path.unlink()


def say_collisions(target: Path) -> None:
    """A word about the other copy that Pi would find beside this one."""
    places = [Path(os.path.expanduser(folder), SKILL_NAME) for folder in PI_READS]
    for other in places:
        if target in places and (other / "SKILL.md").exists() and other.resolve() != target.resolve():
            say(f"note: Pi reads {other} too and warns that two skills have one name. Keep one of them.")


# --- the environment


def environment(project: Path, named: Path | None, extra: str) -> Path:
    """The environment with `project` and what `extra` needs: the first that is ready, else one that is set up now."""
    wanted = identity(project)
    shared = environments()
    ours = [] if shared is None else [shared / wanted / "venv"]
    beside = [project / ".venv"]
    places = [named.absolute()] if named else beside + ours if is_checkout(project) else ours + beside
    for venv in places:
        if is_ready(venv, extra, wanted):
            if venv in ours:
                note(project, venv)
            return venv
    maker = new_enough_python()
    os.umask(os.umask(0) | 0o022)  # nobody else may change what will be run
    refused = []
    for venv in places:
        try:
            lock = open_lock(venv)
        except OSError as problem:
            refused.append(f"{venv} ({problem.strerror or problem})")
            continue
        with lock:
            wait_for(lock)
            if venv in ours:
                note(project, venv)
            if not is_ready(venv, extra, wanted):  # another process may have done it meanwhile
                set_up(project, venv, extra, wanted, maker)
        if venv in ours:
            remove_stale()
        return venv
    fail(
        f"there is no place for the environment: {', '.join(refused)}",
        "Set XDG_CACHE_HOME to a folder that you may write, or name one: python3 dev.py --venv DIR run ...",
    )


def identity(project: Path) -> str:
    """What an environment's content is known by. A checkout is installed in place, so that it is the folder; of a skill
    a copy is installed, so that it is what the skill's folder holds."""
    digest = hashlib.sha256((project / "pyproject.toml").read_bytes())
    if is_checkout(project):
        digest.update(os.fsencode(project))
    else:
        for path in sorted((project / "src").rglob("*.py")):
            digest.update(b"\0" + os.fsencode(path.relative_to(project).as_posix()) + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def is_checkout(project: Path) -> bool:
    return (project / "tests").is_dir()


def environments() -> Path | None:
    """The folder of the environments that copies share; None for a user without a home."""
    usual = {"win32": "~/AppData/Local", "darwin": "~/Library/Caches"}.get(sys.platform, "~/.cache")
    named = os.environ.get("LOCALAPPDATA" if os.name == "nt" else "XDG_CACHE_HOME", "")
    cache = Path(named if os.path.isabs(named) else os.path.expanduser(usual))
    return cache / "harness-session-history" / "environments" if cache.is_absolute() else None


def python_of(venv: Path) -> Path:
    return venv / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def is_ready(venv: Path, extra: str, wanted: str) -> bool:
    """Whether `venv` holds what is wanted, installed for the Python that it has now. Who calls does not matter."""
    stamp = venv / f"installed-{extra}"
    try:
        installed, _, python = stamp.read_bytes().partition(b"\n")
    except OSError:
        return False
    if installed != wanted.encode() or not python_of(venv).exists():
        return False
    if python == real_python(venv):
        return True
    # The system has another Python there now. A repaired one (3.12.1, 3.12.2) finds what was installed, 3.13 does not.
    if not works([python_of(venv), "-P", "-c", "import harness_session_history"]):
        return False
    write_stamp(stamp, wanted)
    return True


def real_python(venv: Path) -> bytes:
    return os.fsencode(os.path.realpath(python_of(venv)))


def write_stamp(stamp: Path, wanted: str) -> None:
    try:
        stamp.write_bytes(wanted.encode() + b"\n" + real_python(stamp.parent))
    except OSError:
        pass  # it may not be written: the environment works, and is looked at again by the next call


def open_lock(venv: Path) -> IO[bytes]:
    """The file that stands for the right to set `venv` up. Raises OSError where nothing may be written."""
    venv.parent.mkdir(parents=True, exist_ok=True)
    return open(venv.parent / f"{venv.name}.lock", "ab")


def wait_for(lock: IO[bytes]) -> None:
    """One process at a time sets an environment up; the others wait for it."""
    if sys.platform != "win32":
        import fcntl

        return fcntl.flock(lock, fcntl.LOCK_EX)
    import msvcrt

    lock.seek(0)
    while True:
        try:
            return msvcrt.locking(lock.fileno(), msvcrt.LK_LOCK, 1)
        except OSError as problem:  # it waits for ten seconds only
            if problem.errno != errno.EDEADLK:
                raise


def set_up(project: Path, venv: Path, extra: str, wanted: str, maker: str) -> None:
    say(f"setting up {venv} ...")
    started = time.monotonic()
    pip = make_environment(venv, maker)
    place = ["--editable"] if is_checkout(project) else []
    # A personal pip configuration may ask for --user installs, which no virtual environment allows.
    quiet = {"PIP_RETRIES": "2", **any_letter(), "PIP_USER": "0", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    # The project is "." to pip: whatever letters its path has, pip need not take them apart.
    words = [*pip, "install", "--quiet", *place, f".[{extra}]"]
    done = subprocess.run(words, env=quiet, cwd=project, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    if done.returncode:
        log = venv / "pip.log"
        log.write_bytes(done.stdout)
        said = [line for line in done.stdout.decode(errors="replace").splitlines() if "ERROR: " in line]
        fail(
            f"pip could not install into {venv}: {said[-1].strip()[:200] if said else 'see its log'}",
            f"It needs a package index: connect, or set PIP_INDEX_URL to a mirror, and call again. Its log: {log}",
        )
    if place and not str(project).isascii():
        # Python reads this file in the encoding of the locale, which may not know the letters of the path.
        for link in venv.rglob("*harness_session_history*.pth"):
            source = os.fsencode(project / "src")
            link.write_text(f"import os, sys; sys.path.append(os.fsdecode({source!r}))\n", encoding="ascii")
    write_stamp(venv / f"installed-{extra}", wanted)
    say(f"done: {time.monotonic() - started:.0f} s, {megabytes(venv)} MB")


def make_environment(venv: Path, maker: str) -> list[str | Path]:
    """Makes the environment with the Python `maker` if need be; returns the command that is pip for it."""
    python = python_of(venv)
    own_pip: list[str | Path] = [python, "-m", "pip"]
    # Some systems ship Python without ensurepip. Their pip, if there is one, can install into the environment.
    outer_pip: list[str | Path] = [maker, "-m", "pip", "--python", python]
    for pip in (own_pip, outer_pip):
        if python.exists() and works([*pip, "--version"]):
            return pip
    if venv.exists() and any(venv.iterdir()) and not (venv / "pyvenv.cfg").exists():
        fail(f"{venv} is no virtual environment", "Move it away, or name another with --venv.")
    for pip, options in ((own_pip, ["--clear"]), (outer_pip, ["--clear", "--without-pip"])):
        if works([maker, "-m", "venv", *options, venv]) and works([*pip, "--version"]):
            return pip
    fail(
        f"this Python cannot make a virtual environment with pip in {venv}.",
        f"Debian, Ubuntu: sudo apt install {Path(maker).resolve().name}-venv",
        "elsewhere:      install what gives Python its modules `venv` and `ensurepip`, or `pip`",
        f"{maker} -m venv {venv}   says more",
    )


def note(project: Path, venv: Path) -> None:
    """Writes down that this copy uses the shared environment."""
    mark = venv.parent / "copies" / hashlib.sha256(os.fsencode(project)).hexdigest()[:16]
    try:
        if not mark.exists():
            mark.parent.mkdir(exist_ok=True)
            mark.write_bytes(os.fsencode(project))
    except OSError:
        pass  # where nothing may be written nobody removes anything either


def remove_stale() -> None:
    """Removes the shared environments that no copy needs any more: each is gone, or its content is another one now."""
    folder = environments()
    try:
        for one in folder.iterdir() if folder is not None else ():
            copies = [Path(os.fsdecode(mark.read_bytes())) for mark in (one / "copies").glob("*")]
            if copies and not any(needs(project, one.name) for project in copies):
                shutil.rmtree(one)
                say(f"removed {one}: no copy of the skill needs it any more")
    except OSError:
        pass  # it stays: that costs room, and nothing else


def needs(project: Path, wanted: str) -> bool:
    try:
        return identity(project) == wanted
    except FileNotFoundError:
        return False
    except OSError:
        return True  # it is there and cannot be read


def megabytes(folder: Path) -> int:
    files = (Path(place, name) for place, _, names in os.walk(folder) for name in names)
    return round(sum(path.lstat().st_size for path in files) / 1e6)


def new_enough_python() -> str:
    """The Python that makes environments: this one, or the newest that is found where this one is too old."""
    if sys.version_info >= OLDEST:
        return sys.executable
    for minor in range(19, OLDEST[1] - 1, -1):
        found = shutil.which(f"python3.{minor}")
        if found and works([found, "--version"]):
            return found
    needed, running = ".".join(map(str, OLDEST)), ".".join(map(str, sys.version_info[:2]))
    fail(f"Python {needed} or newer is needed; this is {running}", f"Install one: it is found as python{needed} or so.")


def works(command: list[str | Path]) -> bool:
    try:
        return subprocess.run(command, capture_output=True, check=False, env=any_letter()).returncode == 0
    except OSError:
        return False


def any_letter() -> dict[str, str]:
    """The environment variables with which Python, venv and pip know every letter of a path under every locale."""
    return {**os.environ, "PYTHONUTF8": "1"}


def say(words: str) -> None:
    print(words, file=sys.stderr, flush=True)


def fail(problem: str, *advice: str) -> NoReturn:
    """Says in short lines what is wrong and what to do."""
    raise SystemExit("\n  ".join([f"dev.py: {problem}", *advice]))


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
