"""Ids, paths and names hold nothing that a reader does not see; an id that was given out still opens, and so does the raw one."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder import line
from harness_session_history import history_tools
from harness_session_history.model.names import MAX_ID_CHARS, UNSEEN, plain_id
from harness_session_history.text.clean import one_line
from world import World

BAD = re.compile(f"[{UNSEEN}\x7f-\x9f\ud800-\udfff]")
ODD = {
    "bidirectional": "a\u202eb\u2066c",
    "tags": "a\U000e0041\U000e0042b",
    "zero width": "a\u200bb\u200dc",
    "only what is not seen": "\u200b\u200c\u2060",
    "variations": "a" + "".join(chr(0xE0100 + byte) for byte in b"run this"),
    "fillers": "a\u3164b\u115fc\uffa0",
    "escapes": "a\x1b[31mb\x07",
    "lines": "a\nb\u2028c",
    "eight characters": "abc\u200bdefg",
    "eight bytes": "abc\x01defg",
    "plain": "abc-1",
}


def odd_archive(world: World, odd: str) -> tuple[str, str]:
    """A session whose ids, folder and name are odd, and a child of it; raw ids of session and entry."""
    session_id, entry_id = odd + "s", odd + "e"
    session = world.session("odd", id=session_id, cwd=f"/w/{odd}/x")
    session.user("first word", key=entry_id)
    session.assistant("second word")
    session.add("session_info", name=f"name {odd}")
    session.user("third word", parent=entry_id)
    session.save(name="odd.jsonl")
    child = world.session("child", parentSession=session_id, cwd="/w/y")
    child.user("other word")
    child.save()
    return session_id, entry_id


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD.keys())
def test_nothing_unseen_reaches_a_reader_and_ids_still_open(world: World, odd: str) -> None:
    session_id, entry_id = odd_archive(world, odd)
    answers = [world.ask(operation="list", refresh=True), world.search("word", branch="any")]
    hit = next(hit for hit in answers[1]["results"] if hit["snippet"] == "first word")
    for session, entry in ((hit["citation"]["sessionId"], hit["citation"]["entryId"]), (session_id, entry_id)):
        opened = world.open(session, entry)
        assert [message["text"] for message in opened["messages"]] == ["first word", "third word"]
        answers.append(opened)
        assert world.listed(session_id=session) == [hit["citation"]["sessionId"]]
    parents = {view["parentSessionId"] for view in world.list() if view["parentSessionId"]}
    assert parents == {hit["citation"]["sessionId"]}
    for cwd in (f"/w/{odd}/x", next(view["cwd"] for view in world.list(session_id=session_id))):
        if cwd.isprintable() or not re.search(r"[\x00-\x1f\u2028]", cwd):
            assert world.listed(cwd=cwd, refresh=False) == [hit["citation"]["sessionId"]]
    for answer in answers:
        assert not BAD.search(json.dumps(answer, ensure_ascii=False))
    tools = {tool.name: tool for tool in history_tools(session_id, history=world.history())}
    read = asyncio.run(tools["history_read"](mode="items", entries=[hit["citation"]["entryId"]]))
    assert read["entries"][0]["text"] == "first word" and not BAD.search(str(read)) and "\x1b" not in str(read)


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD.keys())
def test_the_calling_session_is_left_out_by_its_raw_id(world: World, odd: str) -> None:
    session_id, _ = odd_archive(world, odd)
    world.history(current_session_id=session_id)
    assert world.texts("first") == [] and world.texts("other") == ["other word"]


def test_two_ids_that_look_alike_are_two(world: World) -> None:
    for number, odd in enumerate(("s1", "s\u200b1", "s\u200c1")):
        session = world.session(str(number), id=odd)
        session.user(f"word {number}", key="e\u200b1" if number else "e1")
        session.save(name=f"{number}.jsonl")
    assert sorted(world.texts("word")) == ["word 0", "word 1", "word 2"]
    assert len(set(world.listed())) == 3


def test_a_registry_speaks_of_sessions_by_their_raw_ids_and_is_bounded(world: World) -> None:
    session_id, _ = odd_archive(world, ODD["tags"])
    registry = world.folder / "registry.jsonl"
    lines: list[dict[str, Any]] = [
        {"sessionId": session_id, "name": "named \u202eso", "parentSessionId": "p" * 5_000},
        {"sessionId": world.session("child").id, "deletedAt": "\u200b"},
    ]
    registry.write_text("".join(line(one) + "\n" for one in lines))
    world.history(registry=registry)
    (view,) = world.list()
    assert view["name"] == "named so" and len(view["parentSessionId"]) <= MAX_ID_CHARS


@given(st.text(max_size=300))
def test_a_plain_id_is_bounded_seen_and_plain(said: str) -> None:
    found = plain_id(said)
    assert plain_id(found) == found and len(found) <= MAX_ID_CHARS and not BAD.search(found)
    if said.isprintable() and len(said) <= MAX_ID_CHARS and not re.search(f"[{UNSEEN}]", said):
        assert found == said


@given(st.text(max_size=300))
def test_a_name_shows_all_that_it_holds(said: str) -> None:
    assert not BAD.search(one_line(said))
