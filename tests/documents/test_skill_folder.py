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

from unprivileged import bound

PROJECT = Path(__file__).parents[2]
DEV: dict[str, Any] = runpy.run_path(str(PROJECT / "dev.py"))

LOADER = """
const {loadSkillsFromDir} = await import(process.argv[1]);
const found = loadSkillsFromDir({dir: process.argv[2], source: "user"});
console.log(JSON.stringify(found));
"""


def install(folder: Path) -> Path:
    """Copies the skill as the documentation says, without an environment; returns its folder."""
    done = subprocess.run(
        [sys.executable, PROJECT / "dev.py", "skill", "--copy-only", folder],
        capture_output=True,
        text=True,
        check=True,
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


def dev_skill(*words: object, **more: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, PROJECT / "dev.py", "skill", *words]
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, **more)


def test_help_is_help_and_makes_nothing(tmp_path: Path) -> None:
    done = dev_skill("--help", cwd=tmp_path)
    assert done.returncode == 0 and "FOLDER" in done.stdout and list(tmp_path.iterdir()) == []


def test_an_unknown_option_is_no_folder(tmp_path: Path) -> None:
    done = dev_skill("--copyonly", tmp_path, cwd=tmp_path)
    assert done.returncode == 2 and "--copyonly" in done.stderr and list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("file", "is no folder"),
        ("file/below", "cannot be written"),
        ("dangling", "is no folder"),
        ("", "is empty"),
        (" ", "is empty"),
        ("~no-such-user/skills", "home directory"),
        ("other-skill", "is a skill itself"),
        ("checkout", "a checkout of the whole project"),
        ("others", "no copy of this skill"),
    ],
)
@pytest.mark.skipif(os.name == "nt", reason="links")
def test_what_is_no_skill_folder_is_refused_in_two_lines_and_stays_as_it_is(
    tmp_path: Path, words: str, said: str
) -> None:
    (tmp_path / "file").write_text("mine")
    (tmp_path / "dangling").symlink_to(tmp_path / "nothing")
    for name in ("other-skill", "checkout/session-history/tests", "others/session-history"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "other-skill" / "SKILL.md").write_text("other")
    (tmp_path / "others" / "session-history" / "SKILL.md").write_text("somebody else's")
    before = sorted(tmp_path.rglob("*"))
    done = dev_skill("--copy-only", words, cwd=tmp_path)
    assert done.returncode == 1 and said in done.stderr and len(done.stderr.splitlines()) == 2, done.stderr
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("already", ["absent", "empty", "a copy"])
def test_the_target_itself_may_be_named(tmp_path: Path, already: str) -> None:
    target = tmp_path / "session-history"
    if already == "empty":
        target.mkdir()
    if already == "a copy":
        install(tmp_path)
    assert install(target) == target
    assert {path.name for path in target.iterdir()} == set(DEV["SKILL_FILES"])


def test_the_words_dot_and_trailing_slash_name_the_target_too(tmp_path: Path) -> None:
    target = install(tmp_path)
    for words in (".", f"{target}{os.sep}"):
        assert dev_skill("--copy-only", words, cwd=target).stdout.strip() == str(target)
    assert not (target / "session-history").exists()


def test_a_copy_cannot_replace_itself(skill: Path) -> None:
    done = subprocess.run(
        [sys.executable, skill / "dev.py", "skill", skill.parent], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1 and "this very folder" in done.stderr


@pytest.mark.skipif(os.name == "nt", reason="modes")
@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_nobody_else_may_change_what_was_copied_whatever_the_umask(tmp_path: Path, umask: int) -> None:
    done = dev_skill("--copy-only", tmp_path / "skills", umask=umask)
    for path in Path(done.stdout.strip()).rglob("*"):
        assert path.stat().st_mode & 0o022 == 0, path
        assert path.stat().st_mode & 0o400


@pytest.mark.skipif(os.name == "nt", reason="modes")
def test_a_copy_of_a_read_only_copy_can_be_replaced(tmp_path: Path) -> None:
    first = install(tmp_path / "first")
    for path in (*first.rglob("*"), first):
        path.chmod(path.stat().st_mode & ~0o222)
    for _ in range(2):
        subprocess.run([*bound(), sys.executable, first / "dev.py", "skill", "--copy-only", tmp_path], check=True)
    assert {path.name for path in (tmp_path / "session-history").iterdir()} == set(DEV["SKILL_FILES"])


# --- two copies, one for Pi


def test_a_second_copy_that_pi_reads_too_is_told(tmp_path: Path) -> None:
    home = {**os.environ, "HOME": str(tmp_path), "USERPROFILE": str(tmp_path)}
    told = [dev_skill("--copy-only", tmp_path / where, env=home).stderr for where in (
        ".claude/skills", ".agents/skills", ".pi/agent/skills", ".agents/skills",
    )]  # fmt: skip
    assert told[0] == told[1] == ""
    assert str(tmp_path / ".agents/skills/session-history") in told[2] and "one name" in told[2]
    assert str(tmp_path / ".pi/agent/skills/session-history") in told[3]


@pytest.mark.skipif(os.name == "nt", reason="links")
def test_a_link_from_the_one_to_the_other_is_no_second_copy(tmp_path: Path) -> None:
    home = {**os.environ, "HOME": str(tmp_path)}
    (tmp_path / ".pi/agent/skills").mkdir(parents=True)
    (tmp_path / ".pi/agent/skills/session-history").symlink_to(tmp_path / ".agents/skills/session-history")
    assert dev_skill("--copy-only", tmp_path / ".agents/skills", env=home).stderr == ""


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


PLACES = """
const {loadSkills} = await import(process.argv[1]);
const home = process.argv[2];
const found = loadSkills({cwd: home, agentDir: home + "/.pi/agent", skillPaths: [home + "/.agents/skills"], includeDefaults: true});
console.log(JSON.stringify(found));
"""


@pytest.mark.skipif(shutil.which("node") is None or os.name == "nt", reason="needs node, and links")
@pytest.mark.parametrize("second", ["none", "copy", "link"])
def test_pi_warns_of_two_copies_and_of_nothing_else(tmp_path: Path, second: str) -> None:
    package = pi_package()
    if package is None:
        pytest.skip("needs @earendil-works/pi-coding-agent (PI_PACKAGE names its folder)")
    shared = install(tmp_path / ".agents" / "skills")
    own = tmp_path / ".pi" / "agent" / "skills"
    own.mkdir(parents=True)
    if second == "copy":
        install(own)
    if second == "link":
        (own / "session-history").symlink_to(shared)
    done = subprocess.run(
        ["node", "--input-type=module", "-e", PLACES, str(package / "dist/core/skills.js"), str(tmp_path)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    found = json.loads(done.stdout)
    assert len(found["skills"]) == 1
    assert [one["type"] for one in found["diagnostics"]] == (["collision"] if second == "copy" else [])
