"""Real session files, where they are at hand: what is read is what Pi itself computes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness_session_history.archive.entries import (
    entry_hash,
)
from harness_session_history.archive.hydration import hydrate
from reading import read

CORPUS = Path(__file__).resolve().parents[2] / "shared" / "corpus"


@pytest.mark.skipif(not (CORPUS / "pi-1.6.branches.jsonl").exists(), reason="the corpus is not here")
def test_leaf_and_branch_of_real_files_are_what_pi_computes() -> None:
    for record in map(json.loads, (CORPUS / "pi-1.6.branches.jsonl").read_text("utf-8").splitlines()):
        path = CORPUS / record["file"]
        reading = read(path)
        tree = reading.tree
        assert reading.facts.damaged == 0
        assert tree.leaf is not None and tree.hash_of(tree.leaf) == entry_hash(record["leaf"])
        assert [tree.hash_of(n) for n in tree.visible_path] == [entry_hash(i) for i in record["branch"]]
        assert all(hydrate(path, reading.wanted).entries)


@pytest.mark.skipif(not (CORPUS / "pi-v1").exists(), reason="the corpus is not here")
@pytest.mark.parametrize(("name", "count", "kept"), [("large-session", 1018, None), ("before-compaction", 1002, 550)])
def test_real_version_1_files_are_read_without_damage(name: str, count: int, kept: int | None) -> None:
    path = CORPUS / "pi-v1" / f"{name}.jsonl"
    reading = read(path)
    assert reading.facts.linear and reading.facts.damaged == 0 and reading.facts.nodes == count
    tree = reading.tree
    assert tree.visible == b"\1" * count
    boundary = tree.boundary()
    assert (boundary.node if boundary else None) == kept
    assert all(
        h and h.text == e.text for h, e in zip(hydrate(path, reading.wanted).entries, reading.entries, strict=True)
    )
