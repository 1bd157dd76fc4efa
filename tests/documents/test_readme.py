"""README.md: short, and everything it names exists."""

from __future__ import annotations

import ast
import importlib
import re
import runpy
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from harness_session_history.errors import InvalidRequest
from harness_session_history.options import arguments_of, parse
from harness_session_history.request import ARGUMENTS, build_request

PROJECT = Path(__file__).parents[2]
TEXT = (PROJECT / "README.md").read_text(encoding="utf-8")
PYPROJECT = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))
DEV = runpy.run_path(str(PROJECT / "dev.py"))


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", TEXT, re.DOTALL)


def shell_lines() -> list[list[str]]:
    return [shlex.split(line, comments=True) for block in blocks("bash") for line in block.splitlines()]


def test_it_fits_two_screens() -> None:
    assert len(TEXT.splitlines()) <= 100


def test_the_two_commands_of_the_setup_come_first() -> None:
    assert shell_lines()[:2] == [["python3", "dev.py", "demo"], ["python3", "dev.py", "test"]]
    assert TEXT.index("dev.py demo") < 200


def test_every_command_of_dev_py_exists() -> None:
    named = [words[2] for words in shell_lines() if words[:2] == ["python3", "dev.py"]]
    assert named and set(named) <= set(DEV["COMMANDS"])


def test_every_command_of_the_shell_is_accepted_by_it() -> None:
    lines = [words[1:] for words in shell_lines() if words[0] == "session-history"]
    assert {words[0] for words in lines} == {"search", "open", "list", "refresh"}
    for words in lines:
        arguments = arguments_of(parse([w.replace("$PWD", "/w") for w in words]))
        if arguments is not None:
            build_request(**arguments)


def test_the_shell_refuses_what_it_does_not_know() -> None:
    with pytest.raises(InvalidRequest):
        parse(["find", "x"])


def test_the_demo_searches_for_what_the_readme_shows() -> None:
    assert f'"{DEV["QUERY"]}"' in TEXT
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
    named = re.findall(r"`([a-z]+)` \(", TEXT.split("## Extras")[1]) + re.findall(r"\.\[([a-z]+)\]", TEXT)
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
