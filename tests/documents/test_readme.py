"""README.md: short, and everything it names exists."""

from __future__ import annotations

import ast
import importlib
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from harness_session_history.errors import InvalidRequest
from harness_session_history.options import parse
from harness_session_history.request import ARGUMENTS

PROJECT = Path(__file__).parents[2]
TEXT = (PROJECT / "README.md").read_text(encoding="utf-8")
PYPROJECT = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))
DEV = runpy.run_path(str(PROJECT / "dev.py"))


SESSION = "019d8c67-20e6-7b63-898d-6ab9fa6c3a45"
#: What a reader puts in the place of a word that stands for something.
STANDS_FOR = {"CITATION": f"session:{SESSION}/entry:72bf7afe", "ID": SESSION, "ENTRY": "72bf7afe"}


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", TEXT, re.DOTALL)


def shell_lines() -> list[list[str]]:
    return [shlex.split(line, comments=True) for block in blocks("bash") for line in block.splitlines()]


def shell(folder: Path, *words: str) -> str:
    """What the shell answers over the examples, with an index below ``folder``."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SESSION_HISTORY_", "PI_"))}
    settings = {"ROOTS": PROJECT / "examples" / "sessions", "INDEX": folder / "index" / "h.sqlite3", "CURRENT": "none"}
    named = {f"SESSION_HISTORY_{name}": str(value) for name, value in {**settings, "MAINTENANCE": "off"}.items()}
    command = [sys.executable, "-P", "-m", "harness_session_history", *words]
    variables = {**kept, **named, "PYTHONUTF8": "1"}
    done = subprocess.run(command, cwd=PROJECT, env=variables, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, (words, done.stderr)
    return done.stdout


def test_it_is_short() -> None:
    assert len(TEXT.splitlines()) <= 92


def test_a_picture_comes_first_then_what_it_is_and_the_two_commands_of_the_setup() -> None:
    assert re.match(r"# harness-session-history\n\n!\[[^\]]+\]\(docs/terminal\.svg\)\n\n[A-Z]", TEXT)
    assert shell_lines()[:2] == [["python3", "dev.py", "demo"], ["python3", "dev.py", "test"]]
    assert TEXT.index("dev.py demo") < 600


def test_the_picture_is_what_its_script_makes_of_the_examples() -> None:
    pytest.importorskip("rich")
    script = runpy.run_path(str(PROJECT / "docs" / "make_picture.py"))
    made = script["PICTURE"].read_text(encoding="utf-8")
    assert made == script["picture"](), "run `python docs/make_picture.py`"


def test_the_picture_takes_nothing_from_elsewhere() -> None:
    picture = (PROJECT / "docs" / "terminal.svg").read_text(encoding="utf-8")
    assert not re.search(r"@font-face|@import|<script|<image|<use|href|url\((?!#)", picture)
    assert re.findall(r"[a-z]+://[^\"]+", picture) == ["http://www.w3.org/2000/svg"]  # a name of the format


@pytest.mark.parametrize("page", ["README.md", "docs/text.md"])
def test_the_sample_is_what_the_shell_prints(page: str, tmp_path: Path) -> None:
    (sample,) = re.findall(r"```text\n(.*?)```", (PROJECT / page).read_text(encoding="utf-8"), re.DOTALL)
    command, _, shown = sample.partition("\n")
    words = shlex.split(command.removeprefix("$ ").removesuffix("| cat"))[1:]
    printed = shell(tmp_path, *words)
    assert re.sub(r"checked \S+ \S+Z", "checked", shown) == re.sub(r"checked \S+ \S+Z", "checked", printed)


def test_every_command_of_the_shell_answers_as_it_stands(tmp_path: Path) -> None:
    pages = (TEXT, (PROJECT / "docs" / "getting-started.md").read_text(encoding="utf-8"))
    lines = [
        line
        for page in pages
        for block in re.findall(r"```bash\n(.*?)```", page, re.DOTALL)
        for line in block.splitlines()
    ]
    lines = [line for line in lines if line.startswith("session-history ")]
    assert len(lines) >= 6
    for line in lines:
        words = [STANDS_FOR.get(word, word) for word in shlex.split(line, comments=True)[1:]]
        assert shell(tmp_path, *words), line


def test_what_the_demo_names_to_be_typed_next_works(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert DEV["run_demo"](Path(sys.executable)) == 0
    shown = capfd.readouterr().out
    following = shown.splitlines()[-1].partition("python3 dev.py run ")[2]
    cited = re.findall(r"^\[1\] (\S+)", shown, re.MULTILINE)
    assert "(cited)" in shell(tmp_path, *shlex.split(following.replace("CITATION", cited[0])))


@pytest.mark.slow
def test_a_newcomer_can_type_all_of_it_in_a_fresh_clone(tmp_path: Path) -> None:
    """Every line of README.md and docs/getting-started.md, in their order, with an environment and a home of their own."""
    clone, home = tmp_path / "clone", tmp_path / "home"
    shutil.copytree(
        PROJECT, clone, ignore=shutil.ignore_patterns(".venv*", ".git", "__pycache__", ".*_cache", ".hypothesis")
    )
    shutil.copytree(PROJECT / "examples" / "sessions", home / ".pi" / "agent" / "sessions")
    subprocess.run([sys.executable, "-m", "venv", home / "own"], check=True)
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("SESSION_HISTORY_", "PI_", "XDG_"))
    }
    variables = {**kept, "HOME": str(home), "PATH": f"{home / 'own' / 'bin'}{os.pathsep}{os.environ['PATH']}"}
    pages = (TEXT, (PROJECT / "docs" / "getting-started.md").read_text(encoding="utf-8"))
    lines = [
        line
        for page in pages
        for block in re.findall(r"```bash\n(.*?)```", page, re.DOTALL)
        for line in block.splitlines()
    ]
    named = re.findall(r"`(pip install [^`]+)`", "".join(pages))
    for line in [*dict.fromkeys(named), *lines]:
        line = line.replace("dev.py test", "dev.py test --collect-only -q").replace(
            "jupyter lab", "jupyter lab --version"
        )
        for word, meant in STANDS_FOR.items():
            line = line.replace(f" {word}", f" {meant}")
        done = subprocess.run(line, shell=True, cwd=clone, env=variables, capture_output=True, text=True, check=False)
        assert done.returncode == 0, (line, done.stdout[-2000:], done.stderr[-2000:])


def test_every_command_of_dev_py_exists() -> None:
    named = [words[2] for words in shell_lines() if words[:2] == ["python3", "dev.py"]]
    assert named and set(named) <= set(DEV["COMMANDS"])


def test_every_command_of_the_shell_is_accepted_by_it() -> None:
    lines = [words[1:] for words in shell_lines() if words[0] == "session-history"]
    assert {words[0] for words in lines} >= {"search", "open", "list", "refresh"}
    for words in lines:
        parse(words)


def test_the_shell_refuses_what_it_does_not_know() -> None:
    with pytest.raises(InvalidRequest):
        parse(["find", "x"])


def test_the_demo_has_something_to_search() -> None:
    assert list((PROJECT / "examples" / "sessions").rglob("*.jsonl"))


@pytest.mark.parametrize("block", blocks("python"))
def test_every_python_example_compiles_and_uses_what_exists(block: str) -> None:
    tree = compile(block, "README.md", "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            module = importlib.import_module(node.module or "")
            assert all(hasattr(module, alias.name) for alias in node.names)
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "session_history":
            assert {keyword.arg for keyword in node.keywords} <= set(ARGUMENTS)


def test_every_extra_exists() -> None:
    extras = PYPROJECT["project"]["optional-dependencies"]
    named = re.findall(r"`([a-z]+)`", TEXT.split("- Extras: ")[1].split("\n\n")[0]) + re.findall(
        r"\.\[([a-z]+)\]", TEXT
    )
    assert named and set(named) <= set(extras)


def test_every_link_into_the_project_leads_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", TEXT):
        assert (PROJECT / target).exists(), target


def test_the_console_script_is_the_shell() -> None:
    module, function = PYPROJECT["project"]["scripts"]["session-history"].split(":")
    assert callable(getattr(importlib.import_module(module), function))


def test_the_setup_never_clears_a_folder_that_is_no_environment(tmp_path: Path) -> None:
    (tmp_path / "kept.txt").write_text("mine")
    done = subprocess.run(
        [sys.executable, PROJECT / "dev.py", "--venv", tmp_path, "demo"], capture_output=True, check=False
    )
    assert done.returncode != 0 and b"no virtual environment" in done.stderr
    assert (tmp_path / "kept.txt").read_text() == "mine"
