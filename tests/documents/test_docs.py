"""The documents: short, in agreement with the code, and every link and command in them works."""

from __future__ import annotations

import ast
import inspect
import json
import re
import runpy
import shlex
import tomllib
from pathlib import Path
from typing import Any, get_type_hints

import pytest

from harness_session_history.archive.registry import Registry
from harness_session_history.options import arguments_of, parse
from harness_session_history.request import build_request
from harness_session_history.response import SCHEMA_VERSION
from harness_session_history.settings import Settings

PROJECT = Path(__file__).parents[2]
DOCS = PROJECT / "docs"
PAGES = sorted(DOCS.glob("*.md"))
GENERATOR: dict[str, Any] = runpy.run_path(str(DOCS / "make_answers.py"))
PYPROJECT = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))


def text(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def blocks(language: str) -> list[tuple[Path, str]]:
    return [(page, block) for page in PAGES for block in re.findall(rf"```{language}\n(.*?)```", text(page), re.DOTALL)]


def anchor(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_page_is_short(page: Path) -> None:
    assert len(text(page).splitlines()) <= {
        "answers.md": 220,
        "recall.md": 160,
        "performance.md": 170,
        "snapshot.md": 110,
    }.get(page.name, 90)


@pytest.mark.parametrize("page", [*PAGES, PROJECT / "CHANGELOG.md", PROJECT / "README.md"], ids=lambda page: page.name)
def test_every_link_leads_somewhere(page: Path) -> None:
    for target, fragment in re.findall(r"\]\(([^)#:]*)(?:#([^)]+))?\)", text(page)):
        linked = page.parent / target if target else page
        assert linked.exists(), target
        if fragment:
            assert fragment in {anchor(heading) for heading in re.findall(r"^#+ (.*)$", text(linked), re.MULTILINE)}


def test_the_readme_links_every_page() -> None:
    linked = set(re.findall(r"\]\((docs/[^)]+\.md)\)", text(PROJECT / "README.md")))
    assert linked == {f"docs/{page.name}" for page in PAGES}


def test_the_page_of_the_answers_is_that_of_the_declared_types() -> None:
    assert text(DOCS / "answers.md") == GENERATOR["page"](), "run `python docs/make_answers.py`"


def test_the_page_of_the_answers_has_every_field_of_every_shape() -> None:
    page = text(DOCS / "answers.md")
    assert f"Schema version {SCHEMA_VERSION}." in page
    for shape in GENERATOR["SHAPES"]:
        for name, _, meaning, _ in GENERATOR["fields"](shape):
            assert meaning and f"| `{name}` |" in page
        assert set(get_type_hints(shape)) == {name for name, *_ in GENERATOR["fields"](shape)}


def test_no_declared_shape_is_left_out() -> None:
    from harness_session_history import response

    declared = {name for name, value in vars(response).items() if hasattr(value, "__required_keys__")}
    declared -= {"ListBody", "SearchBody", "OpenBody"}  # parts of the answers
    assert declared == {shape.__name__ for shape in GENERATOR["SHAPES"]}


def test_every_command_is_accepted_by_the_shell() -> None:
    lines = [shlex.split(line, comments=True) for _, block in blocks("bash") for line in block.splitlines()]
    named = re.findall(r"`(session-history [^`]*)`", "".join(text(page) for page in PAGES))
    lines += [shlex.split(line) for line in named if "…" not in line]
    commands = [words[1:] for words in lines if words[:1] == ["session-history"]]
    assert len(commands) > 5
    for words in commands:
        arguments = arguments_of(parse(words))
        if arguments is not None and "CITATION" not in words:  # which stands for one
            build_request(**arguments)


def test_every_extra_that_is_named_exists() -> None:
    named = re.findall(r"\.\[([a-z]+)\]", "".join(text(page) for page in PAGES))
    assert named and set(named) <= set(PYPROJECT["project"]["optional-dependencies"])


def test_every_python_example_compiles() -> None:
    for page, block in blocks("python"):
        compile(block, page.name, "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)


def test_the_settings_page_names_every_variable_and_argument() -> None:
    page = text(DOCS / "settings.md")
    source = (PROJECT / "src/harness_session_history/settings.py").read_text(encoding="utf-8")
    for name in set(re.findall(r'"((?:SESSION_HISTORY|PI)_[A-Z_]+)"', source)):
        assert f"{name}" in page
    for argument in set(inspect.signature(Settings.resolve).parameters) - {"environ"}:
        assert f"`{argument}" in page


def test_the_registry_example_is_understood(tmp_path: Path) -> None:
    (block,) = [block for page, block in blocks("json") if page.name == "hosting.md"]
    path = tmp_path / "registry.jsonl"
    path.write_text(block, encoding="utf-8")
    one, two = Registry(str(path)).entries().values()
    assert (one.kind, one.name) == ("child", "Release review") and two.deleted_at
    assert set(json.loads(block.splitlines()[0])) <= {
        "sessionId",
        "kind",
        "parentSessionId",
        "name",
        "deletedAt",
        "file",
    }


def test_the_screenshot_is_a_picture() -> None:
    assert (DOCS / "notebook.png").read_bytes().startswith(b"\x89PNG")
