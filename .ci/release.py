#!/usr/bin/env python3
"""Makes the two files of a release and tries each out. Uploads nothing.

    python3 .ci/release.py [FOLDER]     FOLDER takes the files that passed; by default `dist`

Builds the source distribution, and the wheel from it; runs `twine check`; installs each into an empty environment,
searches the examples there and opens a hit. Needs Python 3.11 or newer and a package index (PyPI or a mirror).
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
VERSION: str = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
SAME = "import harness_session_history as one, session_history as two; assert one.SessionHistory is two.SessionHistory"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=PROJECT / "dist", metavar="FOLDER")
    folder: Path = parser.parse_args().folder
    if changed := uncommitted():
        raise SystemExit(f"release.py: not committed: {', '.join(changed[:5])}. What is built is what lies here.")
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        python = environment(scratch / "tools", "build>=1", "twine>=6")
        files = build(python, scratch / "built")
        run(python, "-m", "twine", "check", "--strict", *files)
        for file in files:
            hits = try_out(file, scratch / file.name.removeprefix("harness_session_history-"))
            print(
                f"{file.name}: {file.stat().st_size:,} bytes, installed alone, {hits} hits in the examples", flush=True
            )
        folder.mkdir(parents=True, exist_ok=True)
        for file in files:
            shutil.move(file, folder / file.name)
    print(f"both are in {folder}; docs/release.md says what comes next")
    return 0


def uncommitted() -> list[str]:
    """Files that are not as they were committed; none outside of git, as in an unpacked source distribution."""
    if not (PROJECT / ".git").exists():
        return []
    return [line[3:] for line in run("git", "status", "--porcelain", cwd=PROJECT).splitlines()]


def build(python: Path, folder: Path) -> list[Path]:
    """The source distribution, and the wheel that was built from it."""
    run(python, "-m", "build", "--outdir", folder, PROJECT)
    files = sorted(folder.iterdir())
    expected = [f"harness_session_history-{VERSION}{end}" for end in ("-py3-none-any.whl", ".tar.gz")]
    if [file.name for file in files] != expected:
        raise SystemExit(f"release.py: {expected} should have been built, not {[file.name for file in files]}")
    return files


def try_out(file: Path, folder: Path) -> int:
    """Installs `file` with nothing else in `folder`, which is made, and uses it there; how many hits a search found."""
    python = environment(folder / "venv", file)
    run(python, "-m", "pip", "check")
    run(python, "-c", SAME, cwd=folder)
    shell: list[str | Path] = [python.with_name("session-history.exe" if os.name == "nt" else "session-history")]
    if (said := run(*shell, "--version", cwd=folder).strip()) != VERSION:
        raise SystemExit(f"release.py: {file.name} says that it is version {said}, not {VERSION}")
    shell += ["--root", PROJECT / "examples" / "sessions", "--index", folder / "index" / "history.sqlite3"]
    shell += ["--no-maintenance"]
    found = json.loads(run(*shell, "search", "--json", "rollback decision", cwd=folder))
    if not found["complete"] or not found["results"]:
        raise SystemExit(f"release.py: {file.name} does not find what the examples say: {found}")
    cited = found["results"][0]["citation"]
    run(*shell, "open", "--json", cited["sessionId"], cited["entryId"], cwd=folder)
    return len(found["results"])


def environment(folder: Path, *packages: str | Path) -> Path:
    """A new virtual environment with `packages`; its Python."""
    run(sys.executable, "-m", "venv", folder)
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    run(python, "-m", "pip", "install", "--quiet", *packages)
    return python


def run(*words: str | Path, cwd: Path | None = None) -> str:
    """What the command prints; ends with what it said where it fails. None of the caller's settings counts."""
    own = {name: value for name, value in os.environ.items() if not name.startswith(("SESSION_HISTORY_", "PI_"))}
    own |= {"PIP_USER": "0", "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PYTHONPATH": ""}
    command = [str(word) for word in words]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False, cwd=cwd, env=own)
    if done.returncode:
        raise SystemExit(f"release.py: {' '.join(command)} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
