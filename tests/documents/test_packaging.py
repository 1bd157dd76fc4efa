"""What is built installs into an empty environment and works there."""

from __future__ import annotations

import runpy
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest

PROJECT = Path(__file__).parents[2]
METADATA = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
RELEASE_SCRIPT = PROJECT / ".ci" / "release.py"


@pytest.fixture(scope="module")
def release() -> dict[str, Any]:
    if not RELEASE_SCRIPT.is_file():
        pytest.skip("needs the whole project, with .ci")
    return runpy.run_path(str(RELEASE_SCRIPT))


@pytest.fixture(scope="module")
def built(release: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The wheel and the source distribution, the wheel built from the latter."""
    pytest.importorskip("build")
    files = release["build"](Path(sys.executable), tmp_path_factory.mktemp("dist"))
    return {path.suffix: path for path in files}


def test_the_metadata_is_whole() -> None:
    assert set(METADATA["optional-dependencies"]) == {"terminal", "watch", "mcp", "redact", "notebook", "test"}
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
def test_it_installs_and_runs_in_an_empty_environment(
    release: dict[str, Any], built: dict[str, Path], tmp_path: Path, kind: str
) -> None:
    assert release["try_out"](built[kind], tmp_path) > 0


def test_a_release_is_refused_while_something_is_not_committed(
    release: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is built is what lies in the folder, not what was committed."""
    monkeypatch.setattr(sys, "argv", ["release.py", str(tmp_path / "dist")])
    monkeypatch.setitem(release["main"].__globals__, "uncommitted", lambda: ["src/new.py"])
    with pytest.raises(SystemExit, match="not committed: src/new.py"):
        release["main"]()
    assert not (tmp_path / "dist").exists()


def test_what_an_artefact_must_do_is_not_taken_for_granted(release: dict[str, Any]) -> None:
    with pytest.raises(SystemExit, match="failed:\nsaid"):
        release["run"](sys.executable, "-c", "print('said'); raise SystemExit(3)")
