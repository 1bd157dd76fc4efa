"""ARCHITECTURE.md names the rooms that there are, and no others."""

from __future__ import annotations

import re
from pathlib import Path

PROJECT = Path(__file__).parents[2]
PACKAGE = PROJECT / "src" / "harness_session_history"
PAGE = (PROJECT / "ARCHITECTURE.md").read_text(encoding="utf-8")


def test_the_table_of_rooms_is_the_tree() -> None:
    rows = [line.split("|")[1] for line in PAGE.splitlines() if line.startswith("| `")]
    named = {name.rstrip("/") for row in rows for name in re.findall("`([^`]+)`", row)}
    there = {path.name for path in PACKAGE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    assert named == there - {"__init__.py", "__main__.py"}


def test_every_module_that_it_names_is_there() -> None:
    named = {name.split(".")[0] for name in re.findall(r"`([a-z_]+/[a-z_0-9]+[.A-Za-z_]*)`", PAGE)}
    assert named and {name for name in named if not (PACKAGE / f"{name}.py").exists()} == set()
