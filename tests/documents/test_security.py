"""SECURITY.md: every promise names tests that are there."""

from __future__ import annotations

import re
from pathlib import Path

PROJECT = Path(__file__).parents[2]
PAGE = (PROJECT / "SECURITY.md").read_text(encoding="utf-8")


def test_every_promise_names_tests_that_are_there() -> None:
    rows = [line.split("|")[1:3] for line in PAGE.splitlines() if line.startswith("| ") and "held by" not in line]
    assert len(rows) > 10
    for promise, held_by in rows:
        named = re.findall(r"`(tests/[^`]+\.py)`", held_by)
        assert named, promise
        for path in named:
            assert "def test_" in (PROJECT / path).read_text(encoding="utf-8"), path


def test_its_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#:]*)\)", PAGE):
        assert (PROJECT / target).exists()
