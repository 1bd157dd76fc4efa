"""SKILL.md: valid for the Agent Skills specification, and in agreement with the code."""

from __future__ import annotations

import ast
import inspect
import json
import re
from pathlib import Path
from typing import get_type_hints

import pytest

from harness_session_history import errors
from harness_session_history.cli import STATUS
from harness_session_history.options import arguments_of, parse
from harness_session_history.request import ARGUMENTS, Argument, build_request
from harness_session_history.response import Answer, Hints, Hit, ListAnswer, NearHit, OpenAnswer, SearchAnswer

PROJECT = Path(__file__).parents[2]
TEXT = (PROJECT / "SKILL.md").read_text(encoding="utf-8")


def front_matter() -> dict[str, str]:
    """The keys between the two rulers: plain one-line scalars, or double-quoted ones, which are JSON strings."""
    found = {}
    for line in TEXT.split("---\n")[1].splitlines():
        key, value = line.split(": ", 1)
        found[key] = json.loads(value) if value.startswith('"') else value
    return found


def table(header: str) -> list[list[str]]:
    """The rows of the table whose first heading is given, cells without backquotes."""
    rows = TEXT.split(f"| {header} |", 1)[1].split("\n\n", 1)[0].splitlines()[2:]
    return [[cell.strip().strip("`") for cell in row.strip("|").split("|")] for row in rows]


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", TEXT, re.DOTALL)


def documented(argument: Argument) -> list[str]:
    operations = ", ".join(o + (" (required)" if o in argument.required else "") for o in argument.operations)
    default = ", ".join(argument.default) if isinstance(argument.default, tuple) else argument.default
    return [argument.name, operations, argument.bound, "" if default is None else str(default)]


def test_the_front_matter_follows_the_specification() -> None:
    assert TEXT.startswith("---\n")
    keys = front_matter()
    assert set(keys) <= {"name", "description", "license", "compatibility", "metadata", "allowed-tools"}
    assert keys["name"] == "session-history" and re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", keys["name"])
    assert 1 <= len(keys["description"]) <= 1024
    assert 1 <= len(keys["compatibility"]) <= 500


def test_unquoted_values_are_plain_yaml_scalars() -> None:
    for line in TEXT.split("---\n")[1].splitlines():
        value = line.split(": ", 1)[1]
        assert value.startswith('"') or not re.search(r": | #|^[\[{>|*&!%@`'\"-]", value), line


def test_the_description_begins_with_when_to_use_it() -> None:
    assert front_matter()["description"].startswith("Use when ")


def test_it_is_short() -> None:
    assert len(TEXT.splitlines()) <= 150


def test_its_argument_table_is_that_of_the_code() -> None:
    assert table("argument") == [documented(argument) for argument in ARGUMENTS.values()]


def test_its_error_table_is_that_of_the_code() -> None:
    assert {row[0]: int(row[1]) for row in table("code")} == STATUS
    codes = {e.code for e in vars(errors).values() if inspect.isclass(e) and issubclass(e, errors.SessionHistoryError)}
    assert codes - {errors.SessionHistoryError.code} == set(STATUS)


def test_its_shell_examples_are_accepted_by_the_shell() -> None:
    lines = [line for block in blocks("bash") for line in block.splitlines()]
    assert lines
    for line in lines:
        words = line.replace('"$PWD"', "/w").replace('"rollback decision"', "rollback").split()
        assert words[:3] == ["python3", "SKILL_FOLDER/dev.py", "run"]
        arguments = arguments_of(parse(words[3:]))
        assert arguments is not None
        build_request(**arguments)


def test_its_python_examples_pass_only_known_arguments() -> None:
    calls = []
    for block in blocks("python"):
        tree = compile(block, "SKILL.md", "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        calls += [
            n for n in ast.walk(tree) if isinstance(n, ast.Call) and getattr(n.func, "id", "") == "session_history"
        ]
    assert len(calls) == 2
    for call in calls:
        assert {keyword.arg for keyword in call.keywords} <= set(ARGUMENTS)


@pytest.mark.parametrize(
    ("shape", "fields"),
    [
        (Answer, ["complete", "currentSession"]),
        (ListAnswer, ["truncated"]),
        (SearchAnswer, ["unavailableSessionIds", "rankedAll", "hints"]),
        (OpenAnswer, ["truncatedBefore", "truncatedAfter", "moreBefore", "moreAfter"]),
        (Hit, ["citation", "alsoIn", "visible"]),
        (NearHit, ["missingTerms"]),
        (Hints, ["suggestion", "nearest", "sessions", "offBranchMatches"]),
    ],
)
def test_it_says_what_to_do_with_each_telling_field_of_an_answer(shape: type, fields: list[str]) -> None:
    assert set(fields) <= set(get_type_hints(shape))
    for field in fields:
        assert re.search(rf"`(results\[\]\.)?{field}(: [^`]+)?`", TEXT), field


def test_it_says_what_matters_about_trust() -> None:
    trust = TEXT.split("## Trust")[1].split("##")[0]
    assert "untrusted" in trust and "not\ninstructions" in trust


def test_the_files_it_names_are_there() -> None:
    for name in re.findall(r"SKILL_FOLDER/(\S+)", TEXT):
        assert (PROJECT / name).is_file()
