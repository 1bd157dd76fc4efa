"""What a type checker knows of the package: a misspelt key, argument or name is an error, and what is right is none."""

from __future__ import annotations

import re
import subprocess
import sys
import typing
from importlib.metadata import version
from pathlib import Path

import pytest

import harness_session_history
from harness_session_history import response

pytest.importorskip("mypy", reason="needs the type checker")

HEAD = """\
import harness_session_history as h
from harness_session_history import (
    Hit, ListAnswer, ListResult, Message, OpenAnswer, OpenResult, SearchAnswer, SearchResult, SessionHistory, session_history,
)
"""


def errors(folder: Path, *lines: str) -> set[int]:
    """The lines (from 1) that mypy refuses."""
    code = HEAD + "async def asked(history: SessionHistory) -> None:\n" + "".join(f"    {line}\n" for line in lines)
    file = folder / "caller.py"
    file.write_text(code, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--cache-dir", str(folder / "cache"), str(file)],
        capture_output=True, text=True, timeout=300, cwd=folder, check=False,
    )  # fmt: skip
    found = re.findall(r"caller\.py:(\d+): error", done.stdout)
    assert len(found) == done.stdout.count("error:") and not done.stderr, done.stdout + done.stderr
    return {int(line) - HEAD.count("\n") - 1 for line in found}


RIGHT = (
    'found: SearchResult = await session_history(query="x", limit=3, roles=["user"])',
    'hits: list[Hit] = found["results"]',
    'name: str = found["results"][0]["session"]["name"]',
    'listed: ListResult = await history(operation="list", cwd="/w")',
    'last: str | None = listed["results"][0]["lastEntryId"]',
    'opened: OpenResult = await history(operation="open", session_id="s", entry_id="e")',
    'messages: list[Message] = opened["messages"]',
    'rows: list[dict[str, object]] = opened.to_records()',
    'where: str = h.__version__',
    'tools = h.history_tools("s"); print(tools.search.name)',
    'print(found.copy(), {**found.copy()}, len(listed), "results" in listed)',
)  # fmt: skip
WRONG = (
    'found["result"]',
    'found["results"][0]["snipet"]',
    'found["messages"]',
    'found["results"][0]["session"]["lastEntryId"]',
    'listed["results"][0]["citation"]',
    'opened["messages"][0]["texts"]',
    'found["freshness"]["sources"]["chnaged"]',
    'found.to_record()',
    'number: int = found["query"]',
    'await session_history(query="x", limits=3)',
    'await session_history(query="x", limit="3")',
    'await history(operation="serach", query="x")',
    'await history(kind="leaf")',
    'await history("x")',
    'h.session_histroy',
    'SessionHistory(root="/w")',
)  # fmt: skip


def test_what_is_right_passes_and_what_is_misspelt_is_an_error(tmp_path: Path) -> None:
    assert errors(tmp_path, *RIGHT, *WRONG) == set(range(len(RIGHT) + 1, len(RIGHT) + len(WRONG) + 1))


def test_the_keys_of_each_answer_are_those_of_its_declared_shape(tmp_path: Path) -> None:
    lines = []
    for operation, shape in response.ANSWERS.items():
        result, answer = f"{operation.title()}Result", f"{operation.title()}Answer"
        lines += [f"{operation}: {result} = await history(operation={operation!r})", f"{operation}_shape: {answer}"]
        for key in typing.get_type_hints(shape):
            # Assigned in both directions: the types are the same.
            lines += [
                f'{operation}_{key} = {operation}["{key}"]; {operation}_{key} = {operation}_shape["{key}"]',
                f'{operation}_shape_{key} = {operation}_shape["{key}"]; {operation}_shape_{key} = {operation}["{key}"]',
            ]
    assert errors(tmp_path, *lines) == set()


def test_every_exported_name_is_there() -> None:
    for name in harness_session_history.__all__:
        assert getattr(harness_session_history, name) is not None
    assert harness_session_history.__version__ == version("harness-session-history")
    with pytest.raises(AttributeError):
        harness_session_history.nothing_of_the_kind  # noqa: B018
