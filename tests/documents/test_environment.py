"""The environment that `dev.py` sets up: who shares it, when it is ready, and what is said where it cannot be had.

The quick tests stand a made-up environment in for the installed one: a virtual environment without pip, whose
`harness_session_history` says that it was called.
"""

from __future__ import annotations

import json
import os
import re
import runpy
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from unprivileged import bound

PROJECT = Path(__file__).parents[2]
DEV: dict[str, Any] = runpy.run_path(str(PROJECT / "dev.py"))
#: What must come through from the surroundings: programs, and where packages are.
KEPT = ("PATH", "SYSTEMROOT", "PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "PIP_CERT", "PIP_CONFIG_FILE")
NO_INDEX = {
    "PIP_INDEX_URL": "http://127.0.0.1:9/simple", "PIP_EXTRA_INDEX_URL": "", "PIP_FIND_LINKS": "", "PIP_RETRIES": "0",
    "PIP_CONFIG_FILE": os.devnull,
}  # fmt: skip
LOCALES = [{}, {"LC_ALL": "C"}, {"LC_ALL": "POSIX"}, {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}]
STUB = "import sys; print('called', *sys.argv[1:])"


def pythons() -> list[str]:
    """Every Python of another version that is at hand, old ones too."""
    places = [*(Path.home() / ".pyenv" / "versions").glob("3.*/bin/python3")]
    places += [Path(found) for minor in range(7, 20) if (found := shutil.which(f"python3.{minor}"))]
    versions = {}
    for place in places:
        asked = subprocess.run(
            [place, "-c", "import sys; print(*sys.version_info[:2])"], capture_output=True, check=False
        )
        if asked.returncode == 0 and (version := tuple(map(int, asked.stdout.split()))) >= (3, 7):
            versions[version] = str(place)
    return [place for version, place in sorted(versions.items()) if version != sys.version_info[:2]]


class Home:
    """A home folder with an installed skill, and nothing else of this machine."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir(parents=True)
        self.skill = self.copy(path / ".agents" / "skills")

    def copy(self, folder: Path) -> Path:
        done = self.dev(PROJECT, "skill", "--copy-only", folder)
        assert done.returncode == 0, done.stderr
        return folder / "session-history"

    def variables(self, **more: str) -> dict[str, str]:
        kept = {name: os.environ[name] for name in KEPT if name in os.environ}
        configured = Path.home() / ".config" / "pip" / "pip.conf"
        if configured.is_file():
            kept.setdefault("PIP_CONFIG_FILE", str(configured))
        return {**kept, "HOME": str(self.path), "USERPROFILE": str(self.path), **more}

    def dev(
        self, folder: Path, *words: object, python: str = sys.executable, prefix: list[str] | None = None, **more: Any
    ) -> subprocess.CompletedProcess[str]:
        command = [*(prefix or []), python, folder / "dev.py", *words]
        env = self.variables(**more.pop("variables", {}))
        more = {"cwd": self.path.parent, **more}
        return subprocess.run(
            [os.fspath(word) for word in command],  # type: ignore[call-overload]
            capture_output=True, encoding="utf-8", check=False, env=env, **more,
        )  # fmt: skip

    def run(self, *words: object, **more: Any) -> subprocess.CompletedProcess[str]:
        return self.dev(self.skill, "run", *words, **more)

    @property
    def shared(self) -> Path:
        return self.path / ".cache" / "harness-session-history" / "environments"

    def ready(self, venv: Path | None = None, modules: dict[str, str] | None = None) -> Path:
        """Makes the environment that the skill would set up, with stubs in it."""
        wanted = DEV["identity"](self.skill)
        venv = venv or self.shared / wanted / "venv"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
        packages = next(venv.glob("lib/python*/site-packages"))
        for name, text in (modules or {"harness_session_history": STUB}).items():
            (packages / name).mkdir()
            (packages / name / "__init__.py").touch()
            (packages / name / "__main__.py").write_text(text)
        if modules is None:
            DEV["write_stamp"](venv / "installed-terminal", wanted)
        return venv

    def freeze(self) -> None:
        for path in (*self.path.rglob("*"), self.path):
            if not path.is_symlink():
                path.chmod(path.stat().st_mode & ~0o222)

    def thaw(self) -> None:
        for path in (self.path, *self.path.rglob("*")):
            if not path.is_symlink():
                path.chmod(path.stat().st_mode | 0o700)


pytestmark = pytest.mark.skipif(os.name == "nt", reason="the made-up environments are those of POSIX")


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    made = Home(tmp_path / "home")
    yield made
    made.thaw()


def assert_two_lines(done: subprocess.CompletedProcess[str], *said: str) -> None:
    lines = done.stderr.removeprefix(next(iter(re.findall(r"^setting up .*\n", done.stderr)), "")).splitlines()
    assert done.returncode == 1 and done.stdout == "", done
    assert len(lines) == 2 and lines[0].startswith("dev.py: ") and all(words in done.stderr for words in said), done


# --- a ready environment


def test_what_is_ready_is_used_without_a_word(home: Home) -> None:
    home.ready()
    done = home.run("search", "--json", "two words", "--help")
    assert (done.stdout, done.stderr) == ("called search --json two words --help\n", "")


def test_installing_the_skill_again_uses_what_is_ready_and_says_where_it_is(home: Home) -> None:
    venv = home.ready()
    done = home.dev(PROJECT, "skill", home.path / ".claude" / "skills")
    assert done.stdout == f"{home.path}/.claude/skills/session-history\n"
    assert re.fullmatch(rf"its environment: \d+ MB in {re.escape(str(venv))}\n", done.stderr)


def test_what_is_ready_is_used_where_nothing_may_be_written(home: Home) -> None:
    home.ready()
    home.freeze()
    done = home.run("list", prefix=bound())
    assert (done.stdout, done.stderr) == ("called list\n", "")


def test_another_copy_uses_it_too_where_nothing_may_be_written(home: Home) -> None:
    home.ready()
    other = home.copy(home.path / "other")
    home.freeze()
    assert home.dev(other, "run", "list", prefix=bound()).stdout == "called list\n"


@pytest.mark.parametrize("python", pythons())
def test_what_is_ready_is_used_whichever_python_calls(home: Home, python: str) -> None:
    home.ready()
    home.freeze()
    done = home.run("list", python=python, prefix=bound())
    assert (done.stdout, done.stderr) == ("called list\n", "")


def test_an_environment_beside_the_skill_is_used_where_it_is_ready(home: Home) -> None:
    home.ready(home.skill / ".venv")
    done = home.run("list")
    assert (done.stdout, done.stderr) == ("called list\n", "") and not home.shared.exists()


def test_a_named_environment_is_used_where_it_is_ready(home: Home, tmp_path: Path) -> None:
    home.ready(tmp_path / "named")
    assert home.dev(home.skill, "--venv", tmp_path / "named", "run", "list").stdout == "called list\n"


@pytest.mark.parametrize("variables", LOCALES, ids=str)
def test_letters_outside_ascii_in_the_path_are_no_matter_under_any_locale(
    tmp_path: Path, variables: dict[str, str]
) -> None:
    home = Home(tmp_path / "späß 日本")
    home.ready()
    for python in (sys.executable, *pythons()):
        done = home.run("list", python=python, variables=variables)
        assert (done.stdout, done.stderr) == ("called list\n", "")


def test_modules_in_the_callers_folder_do_not_stand_in_for_those_of_the_program(home: Home, tmp_path: Path) -> None:
    home.ready()
    for name in ("harness_session_history", "json"):
        (tmp_path / "cwd" / name).mkdir(parents=True)
        for file in ("__init__.py", "__main__.py"):
            (tmp_path / "cwd" / name / file).write_text("raise SystemExit('not this one')")
    assert home.run("list", cwd=tmp_path / "cwd").stdout == "called list\n"


# --- when it is ready


def is_ready(home: Home, venv: Path) -> bool:
    found: bool = DEV["is_ready"](venv, "terminal", DEV["identity"](home.skill))
    return found


def test_a_repaired_python_keeps_it_ready_and_is_remembered(home: Home) -> None:
    venv = home.ready()
    stamp = venv / "installed-terminal"
    before = stamp.read_bytes()
    stamp.write_bytes(before + b"-of-before")
    assert is_ready(home, venv) and stamp.read_bytes() == before


def test_a_python_that_does_not_find_what_was_installed_makes_it_unready(home: Home) -> None:
    venv = home.ready()
    stamp = venv / "installed-terminal"
    stamp.write_bytes(stamp.read_bytes() + b"-of-before")
    lib = next(venv.glob("lib/python*"))
    lib.rename(lib.with_name("python3.1"))
    assert not is_ready(home, venv)


def test_a_python_that_is_gone_makes_it_unready(home: Home) -> None:
    venv = home.ready()
    python = DEV["python_of"](venv)
    python.unlink()
    python.symlink_to(home.path / "nothing")
    assert not is_ready(home, venv)


@pytest.mark.parametrize("file", ["pyproject.toml", "src/session_history/__init__.py", "src/session_history/new.py"])
def test_another_content_is_another_environment(home: Home, file: str) -> None:
    venv = home.ready()
    with open(home.skill / file, "a") as opened:
        opened.write("# changed\n")
    assert not is_ready(home, venv)


def test_what_calling_and_looking_leave_behind_is_no_other_content(home: Home) -> None:
    before = DEV["identity"](home.skill)
    (home.skill / "src" / "session_history" / "__pycache__").mkdir()
    (home.skill / "src" / "session_history" / "__pycache__" / "a.pyc").touch()
    (home.skill / "src" / ".DS_Store").touch()
    assert DEV["identity"](home.skill) == before == DEV["identity"](home.copy(home.path / "other"))


def test_a_checkout_is_known_by_its_folder_for_it_is_installed_in_place(home: Home) -> None:
    other = home.copy(home.path / "other")
    for folder in (home.skill, other):
        (folder / "tests").mkdir()
    assert DEV["identity"](home.skill) != DEV["identity"](other)


def test_one_process_sets_it_up_while_the_others_wait(home: Home) -> None:
    installing = f"""
import pathlib, sys, time
if 'install' in sys.argv:
    site = pathlib.Path(__file__).parents[1]
    with open(site / 'calls', 'a') as calls:
        calls.write('x')
    time.sleep(0.5)
    (site / 'harness_session_history').mkdir()
    (site / 'harness_session_history' / '__main__.py').write_text({STUB!r})
"""
    venv = home.ready(modules={"pip": installing})
    with ThreadPoolExecutor() as pool:
        done = list(pool.map(home.run, ["one", "two", "three"]))
    assert [one.stdout for one in done] == ["called one\n", "called two\n", "called three\n"]
    assert next(venv.glob("lib/python*/site-packages/calls")).read_text() == "x"
    assert sorted(len(one.stderr.splitlines()) for one in done) == [0, 0, 2], "who sets it up says so"


def test_what_is_shared_may_be_changed_by_its_owner_only(home: Home) -> None:
    """Also where the set-up ends early, as here without a package index."""
    home.run("list", variables={**NO_INDEX, "PIP_NO_INDEX": "1"}, umask=0)
    folders = [home.shared.parent, *home.shared.rglob("*")]
    assert len(folders) > 3
    assert [path for path in folders if not path.is_symlink() and path.stat().st_mode & 0o022] == []


# --- environments that nobody needs any more


@pytest.fixture
def shared(home: Home, monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], Path]:
    """Makes the shared environment of a copy, and notes that the copy uses it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(home.path / ".cache"))

    def made(copy: Path) -> Path:
        folder: Path = DEV["environments"]() / DEV["identity"](copy)
        (folder / "venv").mkdir(parents=True, exist_ok=True)
        DEV["note"](copy, folder / "venv")
        return folder

    return made


def test_an_environment_goes_when_its_last_copy_has_another_content(
    home: Home, shared: Callable[[Path], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    other = home.copy(home.path / "other")
    one = shared(home.skill)
    assert shared(other) == one
    (home.skill / "src" / "new.py").touch()
    two = shared(home.skill)
    DEV["remove_stale"]()
    assert one.is_dir() and two.is_dir(), "the other copy still needs the first"
    shutil.rmtree(other)
    DEV["remove_stale"]()
    assert not one.exists() and two.is_dir()
    assert str(one) in capsys.readouterr().err


def test_replacing_a_copy_removes_the_environment_that_it_had_by_itself(home: Home) -> None:
    home.ready()
    home.ready(home.skill / ".venv")
    assert home.dev(PROJECT, "skill", home.skill).returncode == 0
    assert {path.name for path in home.skill.iterdir()} == set(DEV["SKILL_FILES"])


def test_replacing_a_copy_keeps_the_environment_beside_it_where_that_one_is_named(home: Home) -> None:
    """So an environment serves several users: it lies where the skill lies."""
    venv = home.ready(home.skill / ".venv")
    assert home.dev(PROJECT, "--venv", venv, "skill", home.skill).returncode == 0
    assert home.run("list").stdout == "called list\n" and not home.shared.exists()


def test_a_folder_that_is_no_environment_of_a_copy_stays(home: Home, shared: Callable[[Path], Path]) -> None:
    mine = shared(home.skill).parent / "mine"
    mine.mkdir()
    DEV["remove_stale"]()
    assert mine.is_dir()


def test_an_environment_stays_while_its_copy_cannot_be_read(
    home: Home, shared: Callable[[Path], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    one = shared(home.skill)

    def refuse(*_: object) -> str:
        raise PermissionError

    monkeypatch.setitem(DEV["needs"].__globals__, "identity", refuse)
    DEV["remove_stale"]()
    assert one.is_dir()


# --- where it cannot be had


def test_without_a_place_two_lines_say_what_to_do(home: Home) -> None:
    home.freeze()
    assert_two_lines(home.run("list", prefix=bound(), variables=NO_INDEX), "XDG_CACHE_HOME", "--venv", str(home.shared))


def test_without_a_home_the_environment_goes_beside_the_skill(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(DEV["os"].path, "expanduser", lambda path: path)
    assert DEV["environments"]() is None


@pytest.mark.parametrize("cache", ["", "relative/cache"])
def test_a_cache_folder_without_a_whole_path_counts_as_none(monkeypatch: pytest.MonkeyPatch, cache: str) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", cache)
    assert DEV["environments"]().is_relative_to(Path.home())


def test_when_pip_fails_two_lines_say_why_and_what_to_do(home: Home) -> None:
    failing = (
        "import sys\nif 'install' in sys.argv:\n    sys.exit('noise\\nERROR: No matching distribution found\\nnoise')"
    )
    venv = home.ready(modules={"pip": failing})
    done = home.run("list")
    assert_two_lines(done, "ERROR: No matching distribution found", "PIP_INDEX_URL", str(venv / "pip.log"))
    assert "noise" in (venv / "pip.log").read_text()


def test_when_pip_fails_the_skill_is_there_and_it_is_no_success(home: Home) -> None:
    home.ready(modules={"pip": "import sys\nsys.exit('install' in sys.argv)"})
    done = home.dev(PROJECT, "skill", home.path / "second")
    assert done.returncode == 1 and "pip could not install" in done.stderr
    assert done.stdout.strip() == str(home.path / "second" / "session-history")
    assert (home.path / "second" / "session-history" / "SKILL.md").exists()


# --- for real: these install from a package index


@pytest.mark.slow
def test_without_a_package_index_two_lines_say_what_to_do(home: Home) -> None:
    assert_two_lines(home.run("list", variables=NO_INDEX), "No matching distribution found", "PIP_INDEX_URL")


@pytest.mark.slow
@pytest.mark.parametrize("python", [sys.executable, *pythons()])
def test_it_works_for_an_agent_with_nothing_but_a_home(tmp_path: Path, python: str) -> None:
    """A folder with letters, a locale without them, a skill that may not be written, and any Python."""
    home = Home(tmp_path / "späß")
    shutil.copytree(PROJECT / "examples" / "sessions", home.path / ".pi" / "agent" / "sessions")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    plain: dict[str, Any] = {"python": python, "prefix": bound(), "cwd": elsewhere, "variables": LOCALES[-1]}

    done = home.dev(PROJECT, "skill", home.skill, **plain)
    assert done.returncode == 0, done.stderr
    assert re.search(r"done: \d+ s, \d+ MB\n", done.stderr) and len(list(home.shared.iterdir())) == 1
    for path in (home.skill, *home.skill.rglob("*")):
        path.chmod(path.stat().st_mode & ~0o222)

    found = home.run("search", "rollback decision", "--limit", "2", "--json", **plain)
    assert found.returncode == 0, found.stderr
    answer = json.loads(found.stdout)
    assert answer["complete"] and answer["results"]
    cited = answer["results"][0]["citation"]
    opened = home.run("open", cited["sessionId"], cited["entryId"], "--json", **plain)
    assert json.loads(opened.stdout)["messages"] and not opened.stderr
    assert json.loads(home.run("doctor", "--json", **plain).stdout)["ok"]
    assert list(elsewhere.iterdir()) == []
    assert {path.name for path in home.skill.iterdir()} == set(DEV["SKILL_FILES"])
    home.thaw()


@pytest.mark.slow
def test_a_checkout_in_a_folder_with_letters_is_installed_in_place_under_any_locale(tmp_path: Path) -> None:
    checkout = tmp_path / "a;b [c]%20'q' späß"
    checkout.mkdir()
    for name in (*DEV["SKILL_FILES"], "examples", "tests"):
        source = PROJECT / name
        copy: Callable[..., object] = shutil.copytree if source.is_dir() else shutil.copyfile
        copy(source, checkout / name)
    home = Home(tmp_path / "home")
    for variables in LOCALES:
        done = home.dev(checkout, "demo", variables=variables)
        assert done.returncode == 0 and "/entry:" in done.stdout, done.stderr
    (checkout / "src" / "harness_session_history" / "__main__.py").write_text(STUB)
    assert home.dev(checkout, "run", "list").stdout == "called list\n"
