"""What is built installs into an empty environment and works there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
METADATA = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PROBE = "import harness_session_history as one, session_history as two; assert one.SessionHistory is two.SessionHistory"


def run(*words: object, cwd: Path) -> str:
    quiet = {**os.environ, "PIP_USER": "0", "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PYTHONPATH": ""}
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True, check=False, cwd=cwd, env=quiet)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The wheel and the source distribution, the wheel built from the latter."""
    pytest.importorskip("build")
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--outdir", folder, PROJECT, cwd=folder)
    return {path.suffix: path for path in folder.iterdir()}


def test_the_metadata_is_whole() -> None:
    assert set(METADATA["optional-dependencies"]) == {"terminal", "watch", "mcp", "notebook", "test"}
    assert METADATA["license"] == "MIT" and (PROJECT / "LICENSE").is_file()
    assert "Typing :: Typed" in METADATA["classifiers"]
    assert METADATA["requires-python"] == ">=3.11"
    assert len(METADATA["dependencies"]) == 3


@pytest.mark.slow
def test_the_wheel_holds_the_packages_and_nothing_else(built: dict[str, Path]) -> None:
    names = zipfile.ZipFile(built[".whl"]).namelist()
    tops = {name.split("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"harness_session_history", "session_history"}
    assert "harness_session_history/py.typed" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)


@pytest.mark.slow
def test_the_source_distribution_holds_what_the_tests_need(built: dict[str, Path]) -> None:
    with tarfile.open(built[".gz"]) as archive:
        inside = {name.split("/", 1)[1] for name in archive.getnames() if "/" in name}
    assert {
        "dev.py",
        "SKILL.md",
        "README.md",
        "LICENSE",
        "pyproject.toml",
        "tests/builder.py",
        "docs/answers.md",
    } <= inside
    assert not any(name.startswith((".venv", ".git/", ".hypothesis")) for name in inside)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [".whl", ".gz"])
def test_it_installs_and_runs_in_an_empty_environment(built: dict[str, Path], tmp_path: Path, kind: str) -> None:
    venv.create(tmp_path / "venv", with_pip=True)
    bin = tmp_path / "venv" / ("Scripts" if os.name == "nt" else "bin")
    run(bin / "python", "-m", "pip", "install", "--quiet", built[kind], cwd=tmp_path)
    run(bin / "python", "-m", "pip", "check", cwd=tmp_path)
    run(bin / "python", "-c", PROBE, cwd=tmp_path)
    assert run(bin / "session-history", "--version", cwd=tmp_path).strip() == METADATA["version"]
    found = run(
        bin / "session-history", "--root", PROJECT / "examples" / "sessions", "--index", tmp_path / "i" / "h.sqlite3",
        "--no-maintenance", "search", "rollback decision", cwd=tmp_path,
    )  # fmt: skip
    assert json.loads(found)["results"]
