"""Real files, where they are at hand: nothing of them is part of this project."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness_session_history import EntryNotVisible
from world import World

CORPUS = Path(__file__).parents[3] / "shared" / "corpus"
pytestmark = pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus is not here")


@pytest.fixture
def pi(world: World) -> World:
    world.history(roots=[CORPUS / "pi-1.6"])
    return world


@pytest.fixture
def old(world: World) -> World:
    world.history(roots=[CORPUS / "pi-v1"])
    return world


def stored(entry_id: str) -> dict[str, Any]:
    """The line of the corpus that holds an entry as its first file does."""
    for path in sorted((CORPUS / "pi-1.6").rglob("*.jsonl")):
        for raw in path.read_text("utf-8").splitlines():
            found: dict[str, Any] = json.loads(raw)
            if found.get("id") == entry_id:
                return found
    raise AssertionError(entry_id)


def test_the_decision_is_cited_and_opens_with_two_neighbours(pi: World) -> None:
    answer = pi.search("deployment rollback decision")
    assert answer["complete"] and answer["results"]
    hit = answer["results"][0]
    assert hit["role"] == "assistant"
    entry = stored(hit["citation"]["entryId"])
    assert entry["message"]["role"] == "assistant" and "decision" in json.dumps(entry).lower()
    opened = pi.open(hit["citation"]["sessionId"], hit["citation"]["entryId"], before=1, after=1)
    assert [message["entryId"] for message in opened["messages"]][1:2] == [hit["citation"]["entryId"]]
    assert 2 <= len(opened["messages"]) <= 3


def test_every_file_is_a_session_and_nothing_is_damaged(pi: World) -> None:
    answer = pi.ask(operation="list", refresh=True, limit=20)
    files = list((CORPUS / "pi-1.6").rglob("*.jsonl"))
    sources = answer["freshness"]["sources"]
    assert len(answer["results"]) == sources["selected"] == sources["indexed"] == len(files)
    assert sources["damaged"] == sources["duplicate"] == 0 and answer["complete"]
    assert {view["kind"] for view in answer["results"]} == {"root", "child"}
    assert any(view["parentSessionId"] for view in answer["results"] if view["kind"] == "child")


def test_the_visible_branch_is_pi_s_own(pi: World) -> None:
    pi.refresh()
    compared = 0
    for raw in (CORPUS / "pi-1.6.branches.jsonl").read_text("utf-8").splitlines():
        expected = json.loads(raw)
        lines = [json.loads(one) for one in (CORPUS / expected["file"]).read_text("utf-8").splitlines()]
        entries = {entry["id"]: entry for entry in lines[1:]}
        spoken = [
            key for key in expected["branch"] if entries[key]["type"] == "message" and speaks(entries[key]["message"])
        ]
        for place, key in enumerate(spoken):
            opened = pi.open(lines[0]["id"], key, refresh=False, before=1, after=1, max_chars=16_000)
            assert [message["entryId"] for message in opened["messages"]] == spoken[max(0, place - 1) : place + 2]
            assert opened["moreBefore"] == max(0, place - 1) and opened["moreAfter"] == max(0, len(spoken) - place - 2)
            compared += 1
        for key in entries.keys() - set(expected["branch"]):
            pi.refused(EntryNotVisible, operation="open", session_id=lines[0]["id"], entry_id=key)
    assert compared > 10


def speaks(message: dict[str, Any]) -> bool:
    """Whether a stored message is a user's or an assistant's with text."""
    content = message.get("content")
    texts = (
        [content]
        if isinstance(content, str)
        else [block.get("text", "") for block in content or [] if block.get("type") == "text"]
    )
    return message["role"] in ("user", "assistant") and any(text.strip() for text in texts)


def test_words_of_version_one_sessions_are_found_and_open_with_neighbours(old: World) -> None:
    for path in sorted((CORPUS / "pi-v1").glob("*.jsonl")):
        lines = [json.loads(raw) for raw in path.read_text("utf-8").splitlines()]
        texts = [
            (number, block["text"])
            for number, entry in enumerate(lines)
            if entry["type"] == "message" and entry["message"]["role"] == "assistant"
            for block in entry["message"]["content"]
            if block["type"] == "text" and len(block["text"].split()) > 8
        ]
        number, text = texts[len(texts) // 2]
        words = [word for word in text.split() if word.isascii() and word.isalpha()][:8]
        hits = old.hits(" ".join(words), session_id=lines[0]["id"])
        entries = [hit["citation"]["entryId"] for hit in hits]
        wanted = [entry for entry in entries if entry.startswith(f"v1-{number}-")]
        assert wanted, (path.name, words)
        opened = old.open(lines[0]["id"], wanted[0], before=1, after=1, max_chars=16_000)
        assert wanted[0] in [message["entryId"] for message in opened["messages"]] and len(opened["messages"]) == 3
