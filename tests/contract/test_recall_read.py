"""history_read: entries by id, as a range, as the last before the boundary; whole, in order, within 50 KB."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import structs

from builder import ArchiveBuilder, SessionBuilder, line
from harness_session_history import CitationUnavailable, EntryNotVisible, InvalidRequest
from harness_session_history.answer.conversation_read import Cursor, encoded, read_cursor
from harness_session_history.recall.tools import ToolResult
from recall_calls import ask, called, entries, history

KB50 = 50_000


@pytest.fixture
def session(tmp_path: Path) -> SessionBuilder:
    return ArchiveBuilder(tmp_path).session("own")


def read(s: SessionBuilder, mode: str, **arguments: Any) -> ToolResult:
    return ask(s, "read", mode=mode, **arguments)


def five(s: SessionBuilder) -> list[str]:
    said = [s.user("zero"), s.assistant("one"), s.user("two"), s.assistant("three"), s.user("four")]
    s.save()
    return said


def size(result: ToolResult) -> int:
    return max(len(json.dumps(result, ensure_ascii=False).encode()), len(result.text.encode()))


# -- items ------------------------------------------------------------------------------------------------------------


def test_items_are_exactly_the_requested_entries(session: SessionBuilder) -> None:
    said = five(session)
    result = read(session, "items", entries=[said[1], said[3]])
    assert dict(result) == {
        "entries": [
            {"entry": said[1], "role": "assistant", "text": "one"},
            {"entry": said[3], "role": "assistant", "text": "three"},
        ],
        "truncated": False,
    }


def test_items_come_in_the_order_of_the_conversation_and_each_once(session: SessionBuilder) -> None:
    said = five(session)
    assert entries(read(session, "items", entries=[said[4], said[0], said[4]])) == [said[0], said[4]]


def test_around_adds_neighbours_and_merges_what_overlaps(session: SessionBuilder) -> None:
    said = five(session)
    assert entries(read(session, "items", entries=[said[1]], around=1)) == said[:3]
    assert entries(read(session, "items", entries=[said[3], said[1]], around=1)) == said
    assert entries(read(session, "items", entries=[said[0]], around=5)) == said


def test_around_counts_only_entries_that_have_something_to_show(session: SessionBuilder) -> None:
    one = session.user("one")
    session.tool("output", name="history_read")
    session.add("model_change", provider="p", modelId="m")
    two = session.user("two")
    session.save()
    assert entries(read(session, "items", entries=[two], around=1)) == [one, two]


def test_items_may_be_read_on_either_side_of_the_boundary(session: SessionBuilder) -> None:
    before = session.user("before")
    kept = session.user("kept")
    session.add("compaction", firstKeptEntryId=kept, summary="s", tokensBefore=1)
    after = session.user("after")
    session.save()
    assert entries(read(session, "items", entries=[before, kept, after])) == [before, kept, after]


@pytest.mark.parametrize("what", ["unknown", "abandoned", "result", "compaction", "foreign"])
def test_what_is_no_message_of_the_branch_is_refused(session: SessionBuilder, what: str) -> None:
    other = session.archive.session("other")
    ids = {"foreign": other.user("x"), "unknown": "nowhere"}
    other.save()
    root = session.user("root")
    ids["abandoned"] = session.user("left")
    _, ids["result"] = session.tool("output", call="c")
    session.user("right", parent=root)
    ids["compaction"] = session.add("compaction", summary="s", firstKeptEntryId=root, tokensBefore=1)
    session.save()
    with pytest.raises(EntryNotVisible, match=r"entries\[1\]"):
        read(session, "items", entries=[root, ids[what]])


def test_an_entry_that_only_recalled_history_is_given_empty_where_it_is_named(session: SessionBuilder) -> None:
    asked, _ = session.tool("quoted", name="history_read")
    session.save()
    result = read(session, "items", entries=[asked])
    assert result["entries"] == [{"entry": asked, "role": "assistant", "text": ""}]


# -- range ------------------------------------------------------------------------------------------------------------


def test_a_range_holds_both_its_ends(session: SessionBuilder) -> None:
    said = five(session)
    result = read(session, "range", **{"from": said[1], "to": said[3]})
    assert entries(result) == said[1:4] and "next" not in result and not result["truncated"]


def test_a_range_without_an_end_runs_to_the_newest_entry(session: SessionBuilder) -> None:
    said = five(session)
    assert entries(read(session, "range", from_=said[2])) == said[2:]


def test_a_range_may_begin_and_end_at_entries_of_any_kind(session: SessionBuilder) -> None:
    session.user("zero")
    mark = session.add("model_change", provider="p", modelId="m")
    one = session.user("one")
    end = session.add("thinking_level_change", thinkingLevel="low")
    session.user("two")
    session.save()
    assert entries(read(session, "range", from_=mark, to=end)) == [one]


def test_a_range_leaves_abandoned_branches_out(session: SessionBuilder) -> None:
    root = session.user("root")
    left = session.user("left")
    right = session.user("right", parent=root)
    session.save()
    assert entries(read(session, "range", from_=root)) == [root, right]
    with pytest.raises(EntryNotVisible, match="from"):
        read(session, "range", from_=left)
    with pytest.raises(EntryNotVisible, match="to"):
        read(session, "range", from_=root, to=left)


def test_a_range_that_ends_before_it_begins_is_refused(session: SessionBuilder) -> None:
    said = five(session)
    with pytest.raises(InvalidRequest, match="to lies before from"):
        read(session, "range", from_=said[3], to=said[1])


def test_the_cursor_pages_through_a_range(session: SessionBuilder) -> None:
    said = five(session)
    arguments: dict[str, Any] = {"from": said[0], "to": said[3], "limit": 3}
    first = read(session, "range", **arguments)
    assert entries(first) == said[:3] and not first["truncated"]
    assert first["next"] in first.text
    second = read(session, "range", **arguments, cursor=first["next"])
    assert entries(second) == [said[3]] and "next" not in second


def test_a_cursor_remembers_the_ends_of_its_range(session: SessionBuilder) -> None:
    said = five(session)
    cursor = read(session, "range", from_=said[0], to=said[3], limit=1)["next"]
    assert entries(read(session, "range", cursor=cursor)) == said[1:4]


def test_there_is_no_next_where_nothing_more_is_to_be_shown(session: SessionBuilder) -> None:
    one = session.user("one")
    session.tool("output", name="history_search")
    session.save()
    assert "next" not in read(session, "range", from_=one, limit=1)


def test_a_cursor_stays_valid_under_appends(session: SessionBuilder) -> None:
    said = five(session)
    cursor = read(session, "range", from_=said[0], limit=2)["next"]
    said.append(session.assistant("five"))
    session.save()
    assert entries(read(session, "range", from_=said[0], cursor=cursor)) == said[2:]


def test_a_cursor_stays_valid_within_one_history_and_its_refreshes(session: SessionBuilder) -> None:
    said = five(session)

    async def run() -> None:
        async with history(session.archive) as own:
            first = await called(own, session.id, "read", mode="range", from_=said[0], limit=4)
            session.assistant("five")
            session.save()
            second = await called(own, session.id, "read", mode="range", from_=said[0], cursor=first["next"])
            assert [entry["text"] for entry in second["entries"]] == ["four", "five"]

    asyncio.run(run())


def test_a_cursor_stays_valid_when_an_unterminated_last_line_is_ended(session: SessionBuilder) -> None:
    said = five(session)
    session.save(end=b"")
    cursor = read(session, "range", from_=said[0], limit=2)["next"]
    said.append(session.assistant("five"))
    session.save()
    assert entries(read(session, "range", from_=said[0], cursor=cursor)) == said[2:]


@pytest.mark.parametrize("old, new", [(b"zero", b"ZERO"), (b'"one"', b'"1"'), (b'"two"', b'"two and more"')])
def test_a_cursor_is_refused_after_a_rewrite_of_what_stands_before_it_or_there(
    session: SessionBuilder, old: bytes, new: bytes
) -> None:
    said = five(session)
    cursor = read(session, "range", from_=said[0], limit=2)["next"]
    path = session.path()
    path.write_bytes(path.read_bytes().replace(old, new))
    with pytest.raises(InvalidRequest, match="rewritten"):
        read(session, "range", from_=said[0], cursor=cursor)


def test_a_cursor_is_refused_after_a_truncation(session: SessionBuilder) -> None:
    said = five(session)
    cursor = read(session, "range", from_=said[0], limit=2)["next"]
    del session.lines[-3:]
    session.save()
    with pytest.raises(InvalidRequest, match="rewritten"):
        read(session, "range", from_=said[0], cursor=cursor)


def test_a_cursor_reads_on_in_what_was_rewritten_behind_it(session: SessionBuilder) -> None:
    said = five(session)
    cursor = read(session, "range", from_=said[0], limit=2)["next"]
    path = session.path()
    path.write_bytes(path.read_bytes().replace(b'"four"', b'"four and more"'))
    rest = read(session, "range", from_=said[0], cursor=cursor)
    assert entries(rest) == said[2:] and rest["entries"][-1]["text"] == "four and more"


def test_a_cursor_of_a_branch_that_was_left_is_refused(session: SessionBuilder) -> None:
    said = five(session)
    cursor = read(session, "range", from_=said[0], limit=2)["next"]
    session.user("elsewhere", parent=said[0])
    session.save()
    with pytest.raises(EntryNotVisible, match="left the branch"):
        read(session, "range", from_=said[0], cursor=cursor)


def test_a_cursor_of_another_conversation_is_refused(session: SessionBuilder) -> None:
    said = five(session)
    other = session.archive.session("other")
    for one in session.lines[1:]:
        other.raw(one)
    other.save()
    cursor = read(session, "range", from_=said[0], limit=2)["next"]
    with pytest.raises(InvalidRequest, match="another conversation"):
        read(other, "range", from_=said[0], cursor=cursor)


def test_a_cursor_of_another_request_is_refused(session: SessionBuilder) -> None:
    said = five(session)
    cursor = read(session, "range", from_=said[0], limit=2)["next"]
    for mode, arguments in (
        ("range", {"from": said[1]}),
        ("range", {"from": said[0], "to": said[3]}),
        ("tail", {}),
        ("items", {"entries": [said[0]]}),
    ):
        with pytest.raises(InvalidRequest, match="conversation or request"):
            read(session, mode, **arguments, cursor=cursor)


@pytest.mark.parametrize("cursor", ["x", "AAAA", "é", "mKVyYW5nZQ", "gA", "!!!!", "a" * 256])
def test_what_is_no_cursor_is_refused(session: SessionBuilder, cursor: str) -> None:
    said = five(session)
    with pytest.raises(InvalidRequest, match="cursor"):
        read(session, "range", from_=said[0], cursor=cursor)


def test_a_cursor_is_read_as_it_was_given() -> None:
    extreme = Cursor(-(1 << 63), (1 << 48) - 1, (1 << 63) - 1, -(1 << 63))
    for cursor in (Cursor(-5, 0, 7, None), extreme):
        assert read_cursor(encoded(cursor, b"12345678")) == (cursor, b"12345678")
    assert len(encoded(extreme, b"12345678")) <= 256


def test_a_cursor_with_any_character_changed_is_refused(session: SessionBuilder) -> None:
    said = five(session)
    text = read(session, "range", from_=said[0], limit=2)["next"]
    letters = "AZaz09-_=+/ \n"
    changed = {text[:at] + letter + text[at + 1 :] for at in range(len(text)) for letter in letters}
    shorter = {text[:at] + text[at + 1 :] for at in range(len(text))}
    longer = {text[:at] + letter + text[at:] for at in range(len(text) + 1) for letter in letters}

    async def run() -> None:
        async with history(session.archive) as own:
            for other in (changed | shorter | longer) - {text}:
                with pytest.raises(InvalidRequest, match="cursor"):
                    await called(own, session.id, "read", mode="range", cursor=other)

    asyncio.run(run())


@pytest.mark.parametrize("field", [{"chars": -1}, {"chars": 1 << 62}, {"entry": 1 << 63}, {"first": (1 << 64) - 1}])
def test_a_cursor_that_points_nowhere_is_refused(field: dict[str, int]) -> None:
    with pytest.raises(InvalidRequest, match="cursor is not one that was given"):
        read_cursor(encoded(structs.replace(Cursor(-5, 0, 7, None), **field), b"12345678"))


def test_cursors_of_a_version_1_file_stay_valid_under_appends(tmp_path: Path) -> None:
    s = ArchiveBuilder(tmp_path).session("own", version=None)
    for n in range(4):
        s.raw(line({"type": "message", "message": {"role": "user", "content": f"text {n}"}}))
    s.save()
    (first,) = entries(read(s, "tail", count=1))
    start = entries(read(s, "tail"))[0]
    cursor = read(s, "range", from_=start, limit=3)["next"]
    s.raw(line({"type": "message", "message": {"role": "user", "content": "text 4"}}))
    s.save()
    assert [e["text"] for e in read(s, "range", from_=start, cursor=cursor)["entries"]] == ["text 3", "text 4"]
    assert first.startswith("v1-4-")


# -- tail -------------------------------------------------------------------------------------------------------------


def test_tail_ends_at_the_first_kept_entry_and_not_at_the_compaction(session: SessionBuilder) -> None:
    gone = [session.user("one"), session.assistant("two")]
    kept = session.user("kept")
    session.assistant("also kept")
    session.add("compaction", firstKeptEntryId=kept, summary="s", tokensBefore=1)
    session.user("later")
    session.save()
    assert entries(read(session, "tail")) == gone
    assert entries(read(session, "tail", count=1)) == gone[1:]


def test_tail_gives_ten_entries_and_goes_further_back(session: SessionBuilder) -> None:
    said = [session.user(str(n)) for n in range(14)]
    session.save()
    first = read(session, "tail")
    assert entries(first) == said[4:] and not first["truncated"]
    assert "Earlier entries can be read" in first.text
    second = read(session, "tail", cursor=first["next"])
    assert entries(second) == said[:4] and "next" not in second


# -- rendering --------------------------------------------------------------------------------------------------------


def only(s: SessionBuilder, entry: str) -> dict[str, Any]:
    return dict(read(s, "items", entries=[entry])["entries"][0])


def test_placeholders_stand_for_what_is_not_text(session: SessionBuilder) -> None:
    said = session.user(
        [
            {"type": "text", "text": "look"},
            {"type": "image", "data": "secret", "mimeType": "image/png"},
            {"type": "attachment", "fileName": "plan.pdf", "data": "secret"},
        ]
    )
    answer = session.assistant([{"type": "thinking", "thinking": "secret"}, {"type": "text", "text": "I see"}])
    session.save()
    assert only(session, said)["text"] == "look\n\n[image]\n\n[attachment: plan.pdf]"
    assert only(session, answer)["text"] == "[thinking]\n\nI see"


def test_an_entry_without_text_is_read_by_its_placeholders(session: SessionBuilder) -> None:
    thought = session.assistant([{"type": "thinking", "thinking": "secret"}])
    image = session.user([{"type": "image", "data": "secret", "mimeType": "image/png"}])
    session.save()
    result = read(session, "tail")
    assert [(e["entry"], e["text"]) for e in result["entries"]] == [(thought, "[thinking]"), (image, "[image]")]


@pytest.mark.parametrize("error, status", [(False, "ok"), (True, "error"), (None, "unanswered")])
def test_a_tool_call_is_its_name_and_its_status(session: SessionBuilder, error: bool | None, status: str) -> None:
    if error is None:
        asked = session.assistant([{"type": "toolCall", "id": "c", "name": "bash", "arguments": {"command": "secret"}}])
    else:
        asked, _ = session.tool("secret output", error=error)
    session.save()
    result = read(session, "tail")
    assert result["entries"] == [
        {"entry": asked, "role": "assistant", "text": "", "tool": {"name": "bash", "status": status}}
    ]
    assert f"[tool bash: {status}]" in result.text and "secret" not in result.text + json.dumps(result)


def test_several_calls_of_one_entry_are_all_named(session: SessionBuilder) -> None:
    calls = [{"type": "toolCall", "id": name, "name": name, "arguments": {}} for name in ("bash", "edit")]
    asked = session.assistant([{"type": "text", "text": "both"}, *calls])
    session.say("toolResult", "done", extra={"toolCallId": "edit", "toolName": "edit", "isError": False})
    session.save()
    entry = only(session, asked)
    assert entry["tool"] == {"name": "bash", "status": "unanswered"}
    assert entry["tools"] == [{"name": "bash", "status": "unanswered"}, {"name": "edit", "status": "ok"}]


@pytest.mark.parametrize(
    "name",
    ["history_search", "history_read", "history_handoff", "session_history", "session-history",
     "mcp__session_history__history_read", "mcp__past__session_history"],
)  # fmt: skip
def test_calls_by_which_history_was_recalled_are_left_out(session: SessionBuilder, name: str) -> None:
    one = session.user("one")
    session.tool("quoted", name=name, call="a")
    said = session.assistant([{"type": "text", "text": "two"}, {"type": "toolCall", "id": "b", "name": name}])
    session.save()
    result = read(session, "tail")
    assert entries(result) == [one, said] and all("tool" not in entry for entry in result["entries"])
    assert name not in result.text


@pytest.mark.parametrize(
    "name",
    ["browser_history", "read_session_history_file", "session_history_viewer", "mcp__session_history__list_files",
     "mcp__session-history__read_file", "web__history_search"],
)  # fmt: skip
def test_a_tool_that_is_only_called_alike_is_shown(session: SessionBuilder, name: str) -> None:
    session.tool("output", name=name)
    session.save()
    assert read(session, "tail")["entries"][0]["tool"]["name"] == name


def result(call: str) -> dict[str, Any]:
    return {"toolCallId": call, "toolName": call, "isError": False}


@pytest.mark.parametrize("branches", [False, True])
def test_a_call_is_answered_though_a_user_spoke_before_its_result(session: SessionBuilder, branches: bool) -> None:
    root = session.user("go")
    calls = [{"type": "toolCall", "id": name, "name": name, "arguments": {}} for name in ("bash", "edit", "grep")]
    asked = session.assistant([{"type": "text", "text": "all three"}, *calls])
    session.say("toolResult", "done", extra=result("edit"))
    steered = session.user("and mind the tests")
    if branches:
        session.assistant("abandoned", parent=root)
        session.last = steered
    session.say("toolResult", "done", extra=result("bash"))
    session.assistant("I will")
    session.say("toolResult", "another's of that name", extra=result("grep"))
    session.save()
    statuses = {tool["name"]: tool["status"] for tool in only(session, asked)["tools"]}
    assert statuses == {"bash": "ok", "edit": "ok", "grep": "unanswered"}


def test_text_is_cleaned_as_everywhere(session: SessionBuilder) -> None:
    said = session.user("red \x1b[31mtext\x1b[0m \u202eturned\r\nhere")
    skill = session.user('<skill name="brew">secret body</skill> make tea')
    session.save()
    assert only(session, said)["text"] == "red text turned\nhere"
    assert only(session, skill)["text"] == "[skill: brew] make tea"


def test_authors_are_named_where_the_transcript_has_them(session: SessionBuilder) -> None:
    said = session.user("hello", extra={"author": "Ada\nExample"})
    session.save()
    assert only(session, said)["author"] == "Ada Example"
    assert f'[{said}] user "Ada Example"' in read(session, "tail").text


def test_summaries_results_and_custom_entries_are_never_shown(session: SessionBuilder) -> None:
    one = session.user("one")
    session.add("branch_summary", summary="secret", fromId=one)
    session.add("custom_message", customType="note", content="secret", display=True)
    session.say("system", "secret")
    session.tool("secret")
    session.save()
    result = read(session, "range", from_=one)
    assert "secret" not in result.text and "secret" not in json.dumps(result)


def test_bytes_that_changed_under_the_index_are_not_shown(session: SessionBuilder) -> None:
    said = five(session)

    async def run() -> None:
        async with history(session.archive) as own:
            await called(own, session.id, "read", mode="tail")
            path = session.path()
            stamp = path.stat()
            conversation = own.conversation(session.id)
            await conversation.tail(1, max_bytes=KB50, cost=len)
            # The same size, and looked at as if nothing had changed.
            own._engine.answerer.is_current = lambda *what: True  # type: ignore[method-assign]
            path.write_bytes(path.read_bytes().replace(b"two", b"TWO"))
            assert path.stat().st_ino == stamp.st_ino
            with pytest.raises(CitationUnavailable):
                await called(own, session.id, "read", mode="items", entries=[said[2]])

    asyncio.run(run())


# -- budget -----------------------------------------------------------------------------------------------------------


def big(s: SessionBuilder, count: int = 12, text: str = "ü" * 3_000) -> list[str]:
    said = [s.user(f"{n}: {text}") for n in range(count)]
    s.save()
    return said


@pytest.mark.parametrize("text", ["ü" * 3_000, '\\"\n' * 2_000, "</history>" * 700, "評" * 2_500, "\U0001f9ea" * 1_500])
def test_an_answer_never_exceeds_fifty_kilobytes_and_says_that_it_was_cut(session: SessionBuilder, text: str) -> None:
    said = big(session, text=text)
    result = read(session, "items", entries=said)
    assert 30_000 < size(result) <= KB50
    assert result["truncated"] and "Cut to fit." in result.text
    seen = entries(result)
    assert 0 < len(seen) < len(said) and seen == said[: len(seen)]
    rest = read(session, "items", entries=said, cursor=result["next"])
    while "next" in rest:
        seen += entries(rest)
        rest = read(session, "items", entries=said, cursor=rest["next"])
    assert seen + entries(rest) == said and not rest["truncated"]


def test_what_was_cut_from_a_tail_is_the_earliest(session: SessionBuilder) -> None:
    said = big(session)
    result = read(session, "tail", count=12)
    shown = entries(result)
    assert result["truncated"] and shown == said[-len(shown) :]
    assert entries(read(session, "tail", count=12, cursor=result["next"]))[-1] == said[-len(shown) - 1]


def pages(s: SessionBuilder, mode: str, **arguments: Any) -> list[ToolResult]:
    found = [read(s, mode, **arguments)]
    while "next" in found[-1]:
        found.append(read(s, mode, **arguments, cursor=found[-1]["next"]))
        assert len(found) < 50
    return found


@pytest.mark.parametrize("mode", ["items", "range", "tail"])
def test_an_entry_that_fits_no_answer_is_read_in_pieces(session: SessionBuilder, mode: str) -> None:
    words = " ".join(f"w{n}é" for n in range(20_000))
    said = session.user(words)
    session.save()
    arguments: dict[str, Any] = {"items": {"entries": [said]}, "range": {"from": said}, "tail": {}}[mode]
    found = pages(session, mode, **arguments)
    assert len(found) >= 3 and all(size(page) <= KB50 for page in found)
    assert all(page["truncated"] for page in found[:-1])
    pieces = [page["entries"][0]["text"] for page in found]
    assert all(piece.endswith("…") for piece in pieces[:-1]) and all(piece.startswith("…") for piece in pieces[1:])
    assert "".join(piece.strip("…") for piece in pieces) == words


def test_hundreds_of_tool_calls_in_one_entry_are_cut_to_fit(session: SessionBuilder) -> None:
    session.assistant([{"type": "toolCall", "id": str(n), "name": f"{n}" + "評" * 120} for n in range(500)])
    session.save()
    result = read(session, "tail")
    assert size(result) <= KB50 and len(result["entries"][0]["tools"]) == 32 and result["truncated"]


def test_long_ids_and_names_keep_to_the_budget(tmp_path: Path) -> None:
    s = ArchiveBuilder(tmp_path).session("own", id="\U0001f9ea" * 128)
    for n in range(60):
        s.user("text " * 100, key=f"{n}" + "\U0001f9ea" * 120, extra={"author": "評" * 80})
    s.save(name="2026-03-02T10-00-00-000Z_x.jsonl")
    assert size(read(s, "range", cursor=None, from_=entries(read(s, "tail", count=1))[0])) <= KB50
    first = pages(s, "tail", count=20)[-1]
    assert all(size(page) <= KB50 for page in pages(s, "range", from_=entries(first)[0], limit=50))


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(sizes=st.lists(st.integers(0, 60_000), min_size=1, max_size=6), limit=st.integers(1, 5))
def test_pages_put_together_are_the_whole_range(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int], limit: int
) -> None:
    s = ArchiveBuilder(tmp_path_factory.mktemp("pages")).session("own")
    texts = [f"{n}" + "x" * length for n, length in enumerate(sizes)]
    said = [s.user(text) for text in texts]
    s.save()
    read_back = dict.fromkeys(said, "")
    for page in pages(s, "range", from_=said[0], limit=limit):
        assert size(page) <= KB50
        for entry in page["entries"]:
            read_back[entry["entry"]] += entry["text"].strip("…")
    assert list(read_back.values()) == texts
