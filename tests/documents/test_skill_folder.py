"""The skill folder: what the Agent Skills specification asks of it, what Pi's loader makes of it, and that it runs."""

from __future__ import annotations

import json
import os
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PROJECT = Path(__file__).parents[2]
DEV: dict[str, Any] = runpy.run_path(str(PROJECT / "dev.py"))

LOADER = """
const {loadSkillsFromDir} = await import(process.argv[1]);
const found = loadSkillsFromDir({dir: process.argv[2], source: "user"});
console.log(JSON.stringify(found));
"""


def install(folder: Path) -> Path:
    """Installs the skill as the documentation says; returns its folder."""
    done = subprocess.run(
        [sys.executable, PROJECT / "dev.py", "skill", folder],
        capture_output=True,
        text=True,
        check=True,
        cwd=folder.parent,
    )
    return Path(done.stdout.strip())


@pytest.fixture(scope="module")
def skill(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install(tmp_path_factory.mktemp("home") / "skills")


def front_matter(folder: Path) -> dict[str, str]:
    lines = (folder / "SKILL.md").read_text(encoding="utf-8").split("---\n")[1].splitlines()
    pairs = (line.split(": ", 1) for line in lines)
    return {key: json.loads(value) if value.startswith('"') else value for key, value in pairs}


@pytest.mark.parametrize("command", ["demo", "test"])
def test_what_needs_the_whole_project_says_so_in_the_skill_folder(skill: Path, command: str) -> None:
    done = subprocess.run([sys.executable, skill / "dev.py", command], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "needs the whole project" in done.stderr


# --- the specification


def test_the_name_is_that_of_the_folder(skill: Path) -> None:
    name = front_matter(skill)["name"]
    assert name == skill.name == "session-history"
    assert len(name) <= 64 and re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name)


def test_the_fields_are_those_of_the_specification_and_within_their_lengths(skill: Path) -> None:
    fields = front_matter(skill)
    assert set(fields) <= {"name", "description", "license", "compatibility", "metadata", "allowed-tools"}
    assert 1 <= len(fields["description"].strip()) <= 1024
    assert 1 <= len(fields["compatibility"].strip()) <= 500


def test_the_file_is_utf8_with_unix_line_ends_and_short(skill: Path) -> None:
    raw = (skill / "SKILL.md").read_bytes()
    assert raw.startswith(b"---\n") and b"\r" not in raw
    assert len(raw.decode("utf-8").splitlines()) <= 150


def test_the_paths_it_names_are_relative_and_at_most_one_level_deep(skill: Path) -> None:
    text = (skill / "SKILL.md").read_text(encoding="utf-8")
    named = re.findall(r"SKILL_FOLDER/([\w./-]+)", text) + re.findall(r"\]\(([^)#:]+)\)", text)
    assert named
    for path in named:
        assert path.count("/") <= 1 and ".." not in path
        assert (skill / path).is_file()


def test_the_folder_holds_what_is_needed_and_nothing_of_the_workshop(skill: Path) -> None:
    assert {path.name for path in skill.iterdir()} == set(DEV["SKILL_FILES"])
    assert not list(skill.rglob("__pycache__"))


# --- installing


def test_installing_again_replaces_what_was_there(tmp_path: Path) -> None:
    folder = install(tmp_path / "skills")
    stale = folder / "src" / "stale.py"
    stale.write_text("")
    assert install(tmp_path / "skills") == folder
    assert not stale.exists() and (folder / "SKILL.md").exists()


def test_installing_never_touches_a_folder_that_is_no_skill(tmp_path: Path) -> None:
    mine = tmp_path / "skills" / "session-history"
    mine.mkdir(parents=True)
    (mine / "kept.txt").write_text("mine")
    with pytest.raises(subprocess.CalledProcessError):
        install(tmp_path / "skills")
    assert [path.name for path in mine.iterdir()] == ["kept.txt"]


@pytest.mark.skipif(os.name == "nt", reason="links")
def test_a_linked_repository_is_replaced_by_a_copy_and_stays_as_it_is(tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    repository.mkdir()
    (repository / "SKILL.md").write_text("linked")
    (tmp_path / "skills").mkdir()
    (tmp_path / "skills" / "session-history").symlink_to(repository)
    assert not install(tmp_path / "skills").is_symlink()
    assert [path.name for path in repository.iterdir()] == ["SKILL.md"]


def test_in_a_folder_that_cannot_be_written_the_environment_goes_to_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(DEV["os"], "access", lambda path, mode: False)
    venv = DEV["usual_venv"]()
    assert tmp_path in venv.parents


# --- Pi's own loader


def pi_package() -> Path | None:
    """Pi's package: named by PI_PACKAGE, beside the project, or installed for the whole system."""
    places = [os.environ.get("PI_PACKAGE", "")]
    name = "@earendil-works/pi-coding-agent"
    places.append(str(PROJECT / "node_modules" / name))
    if shutil.which("npm"):
        found = subprocess.run(["npm", "root", "-g"], capture_output=True, text=True, check=False).stdout.strip()
        places.append(str(Path(found or ".") / name))
    return next((Path(place) for place in places if place and (Path(place) / "dist/core/skills.js").is_file()), None)


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
def test_pis_own_loader_takes_it_without_a_word(skill: Path) -> None:
    package = pi_package()
    if package is None:
        pytest.skip("needs @earendil-works/pi-coding-agent (PI_PACKAGE names its folder)")
    done = subprocess.run(
        ["node", "--input-type=module", "-e", LOADER, str(package / "dist/core/skills.js"), str(skill.parent)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    found = json.loads(done.stdout)
    assert found["diagnostics"] == []
    assert [(one["name"], one["filePath"]) for one in found["skills"]] == [("session-history", str(skill / "SKILL.md"))]
    assert found["skills"][0]["description"] == front_matter(skill)["description"]


# --- from an agent's shell


@pytest.mark.slow
def test_it_runs_from_another_folder_with_nothing_but_a_home(tmp_path: Path) -> None:
    home, elsewhere = tmp_path / "home", tmp_path / "elsewhere"
    shutil.copytree(PROJECT / "examples" / "sessions", home / ".pi" / "agent" / "sessions")
    elsewhere.mkdir()
    folder = install(home / ".pi" / "agent" / "skills")
    kept = {
        name: os.environ[name]
        for name in ("PATH", "SYSTEMROOT", "PIP_INDEX_URL", "PIP_CONFIG_FILE")
        if name in os.environ
    }
    configured = Path.home() / ".config" / "pip" / "pip.conf"
    if configured.is_file():
        kept.setdefault("PIP_CONFIG_FILE", str(configured))

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, folder / "dev.py", "run", *words], capture_output=True, text=True, check=False,
            cwd=elsewhere, env={**kept, "HOME": str(home), "USERPROFILE": str(home)},
        )  # fmt: skip

    found = run("search", "rollback decision", "--limit", "2")
    assert found.returncode == 0, found.stderr
    answer = json.loads(found.stdout)
    assert answer["complete"] and answer["results"]
    cited = answer["results"][0]["citation"]
    opened = run("open", cited["sessionId"], cited["entryId"])
    assert json.loads(opened.stdout)["messages"] and not opened.stderr
    assert json.loads(run("doctor").stdout)["ok"]
    assert list(elsewhere.iterdir()) == []
    assert {path.name for path in folder.iterdir()} == {*DEV["SKILL_FILES"], ".venv", ".venv.lock"}
