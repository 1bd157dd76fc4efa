"""`open`: one cited entry with its neighbours, within a budget, verified."""

from __future__ import annotations

import hashlib
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builder import SessionBuilder, line, stamp
from harness_session_history import CitationUnavailable, EntryNotVisible, InvalidRequest, SessionNotFound
from world import World, append, replace


def chain(world: World, *texts: str, name: str = "a") -> tuple[SessionBuilder, list[str]]:
    session = world.session(name)
    ids = [session.say("assistant" if number % 2 else "user", text) for number, text in enumerate(texts)]
    session.save()
    return session, ids


# -- the window ------------------------------------------------------------------------------------------------------


def test_two_neighbours_on_each_side_are_the_default(world: World) -> None:
    session, ids = chain(world, *"abcdefg")
    answer = world.open(session, ids[3])
    assert [message["text"] for message in answer["messages"]] == list("bcdef")
    assert [message["entryId"] for message in answer["messages"]] == ids[1:6]
    assert [message["role"] for message in answer["messages"]] == [
        "assistant",
        "user",
        "assistant",
        "user",
        "assistant",
    ]
    assert (answer["moreBefore"], answer["moreAfter"]) == (1, 1)
    assert not (answer["truncated"] or answer["truncatedBefore"] or answer["truncatedAfter"])
    assert answer["citation"] == {"sessionId": session.id, "entryId": ids[3]}
    assert (answer["sessionId"], answer["entryId"]) == (session.id, ids[3])
    assert answer["session"]["sessionId"] == session.id
    for message in answer["messages"]:
        assert message["citation"] == {"sessionId": session.id, "entryId": message["entryId"]}


def test_before_and_after_can_be_nothing(world: World) -> None:
    session, ids = chain(world, *"abcde")
    answer = world.open(session, ids[2], before=0, after=0)
    assert [message["text"] for message in answer["messages"]] == ["c"]
    assert (answer["moreBefore"], answer["moreAfter"]) == (2, 2) and not answer["truncated"]


def test_before_and_after_can_be_eight(world: World) -> None:
    session, ids = chain(world, *"abcdefghijklmnopqrstuvwxyz")
    answer = world.open(session, ids[10], before=8, after=8)
    assert "".join(message["text"] for message in answer["messages"]) == "cdefghijklmnopqrs"
    assert (answer["moreBefore"], answer["moreAfter"]) == (2, 7)


def test_at_the_ends_there_is_less(world: World) -> None:
    session, ids = chain(world, *"abc")
    first, last = world.open(session, ids[0]), world.open(session, ids[2])
    assert (first["moreBefore"], first["moreAfter"]) == (0, 0) and len(first["messages"]) == 3
    assert (last["moreBefore"], last["moreAfter"]) == (0, 0) and len(last["messages"]) == 3


def test_only_entries_with_text_are_neighbours(world: World) -> None:
    session = world.session("a")
    first = session.user("first")
    session.tool("tool output")
    session.add("model_change", provider="p", modelId="m")
    session.say("system", "system words")
    session.say("bashExecution", None, extra={"command": "ls", "output": "files"})
    target = session.assistant("target")
    session.add("custom_message", customType="x", content="custom words", display=True)
    session.add("compaction", summary="summary words", firstKeptEntryId=first, tokensBefore=1)
    session.user("last")
    session.save()
    assert world.opened(session, target, before=1, after=1) == ["first", "target", "last"]


# -- the budget ------------------------------------------------------------------------------------------------------


def test_a_target_that_is_too_long_is_cut_inside_the_budget(world: World) -> None:
    session, ids = chain(world, "before", "word " * 200, "after")
    answer = world.open(session, ids[1], max_chars=256)
    (message,) = answer["messages"]
    assert len(message["text"]) == 256 and message["text"].endswith("…") and message["textTruncated"]
    assert answer["truncated"] and answer["truncatedBefore"] and answer["truncatedAfter"]
    assert (answer["moreBefore"], answer["moreAfter"]) == (1, 1)


def test_a_target_that_just_fits_is_whole(world: World) -> None:
    session, ids = chain(world, "x" * 256)
    (message,) = world.open(session, ids[0], max_chars=256)["messages"]
    assert message["text"] == "x" * 256 and not message["textTruncated"]
    session, ids = chain(world, "x" * 257, name="b")
    answer = world.open(session, ids[0], max_chars=256)
    assert answer["messages"][0]["text"] == "x" * 255 + "…" and answer["truncated"] and not answer["truncatedBefore"]


def test_the_budget_counts_code_points(world: World) -> None:
    session, ids = chain(world, "評" * 256)
    assert world.opened(session, ids[0], max_chars=256) == ["評" * 256]
    session, ids = chain(world, "😀" * 300, name="b")
    assert world.opened(session, ids[0], max_chars=256) == ["😀" * 255 + "…"]


def test_a_cut_falls_between_characters_as_people_see_them(world: World) -> None:
    session, ids = chain(world, "x" * 254 + "e\u0301" * 50)
    (text,) = world.opened(session, ids[0], max_chars=256)
    assert text == "x" * 254 + "…"


def test_the_earlier_neighbour_comes_before_the_later_at_each_distance(world: World) -> None:
    session, ids = chain(world, "b" * 100, "T" * 100, "c" * 100)
    answer = world.open(session, ids[1], max_chars=256, before=1, after=1)
    assert [message["text"][0] for message in answer["messages"]] == ["b", "T"]
    assert not answer["truncatedBefore"] and answer["truncatedAfter"] and answer["moreAfter"] == 1


def test_the_first_neighbour_that_does_not_fit_ends_its_side_only(world: World) -> None:
    session, ids = chain(world, "p", "q" * 300, "T", "r" * 50, "s" * 50, "t" * 50)
    answer = world.open(session, ids[2], max_chars=256, before=8, after=8)
    assert [message["text"][0] for message in answer["messages"]] == ["T", "r", "s", "t"]
    assert answer["truncatedBefore"] and not answer["truncatedAfter"]
    assert (answer["moreBefore"], answer["moreAfter"]) == (2, 0)


def test_neighbours_are_never_cut(world: World) -> None:
    session, ids = chain(world, "b" * 200, "T" * 100, "c" * 156)
    answer = world.open(session, ids[1], max_chars=256)
    assert [(message["text"], message["textTruncated"]) for message in answer["messages"]] == [
        ("T" * 100, False),
        ("c" * 156, False),
    ]


@settings(max_examples=25, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 400), min_size=1, max_size=12),
    budget=st.integers(256, 1200),
    before=st.integers(0, 8),
    after=st.integers(0, 8),
    data=st.data(),
)
def test_the_budget_is_spent_as_the_contract_says(
    tmp_path_factory: pytest.TempPathFactory,
    sizes: list[int],
    budget: int,
    before: int,
    after: int,
    data: st.DataObject,
) -> None:
    at = data.draw(st.integers(0, len(sizes) - 1))
    world = World(tmp_path_factory.mktemp("law"))
    session, ids = chain(world, *("x" * size for size in sizes))
    answer = world.open(session, ids[at], max_chars=budget, before=before, after=after)
    world.close()
    left = budget - min(budget, sizes[at])
    low = high = at
    open_before, open_after = True, True
    for distance in range(1, 9):
        if open_before and distance <= before and at - distance >= 0:
            open_before = sizes[at - distance] <= left
            if open_before:
                low, left = at - distance, left - sizes[at - distance]
        if open_after and distance <= after and at + distance < len(sizes):
            open_after = sizes[at + distance] <= left
            if open_after:
                high, left = at + distance, left - sizes[at + distance]
    assert [message["entryId"] for message in answer["messages"]] == ids[low : high + 1]
    assert sum(len(message["text"]) for message in answer["messages"]) <= budget
    assert (answer["moreBefore"], answer["moreAfter"]) == (low, len(sizes) - 1 - high)
    assert (answer["truncatedBefore"], answer["truncatedAfter"]) == (not open_before, not open_after)
    assert answer["truncated"] == (not open_before or not open_after or sizes[at] > budget)


# -- what a message shows --------------------------------------------------------------------------------------------


def test_images_show_as_a_placeholder_in_their_place(world: World) -> None:
    session = world.session("a")
    image = {"type": "image", "data": "QUJD", "mimeType": "image/png"}
    entry = session.user([{"type": "text", "text": "before"}, image, {"type": "text", "text": "after"}])
    session.save()
    assert world.opened(session, entry) == ["before\n\n[image]\n\nafter"]
    assert world.texts("before") == ["before\n\nafter"]


def test_an_entry_with_nothing_but_an_image_is_not_visible(world: World) -> None:
    session = world.session("a")
    entry = session.user([{"type": "image", "data": "QUJD", "mimeType": "image/png"}])
    session.user("x")
    session.save()
    world.refresh()
    world.refused(EntryNotVisible, operation="open", session_id=session.id, entry_id=entry)


def test_tools_are_named_with_how_they_ended_and_nothing_else(world: World) -> None:
    session = world.session("a")
    session.user("go")
    calls = [{"type": "toolCall", "id": key, "name": name, "arguments": {"secret": "argument"}}
             for key, name in (("c1", "bash"), ("c2", "edit"), ("c3", "read"))]  # fmt: skip
    target = session.assistant([{"type": "text", "text": "working"}, {"type": "thinking", "thinking": "hm"}, *calls])
    session.say("toolResult", "secret result", extra={"toolCallId": "c1", "toolName": "bash", "isError": False})
    session.say("toolResult", "secret error", extra={"toolCallId": "c2", "toolName": "edit", "isError": True})
    session.assistant("done")
    session.save()
    answer = world.open(session, target)
    by_id = {message["entryId"]: message for message in answer["messages"]}
    assert by_id[target]["tools"] == [
        {"name": "bash", "status": "ok"},
        {"name": "edit", "status": "error"},
        {"name": "read", "status": "unanswered"},
    ]
    assert [("tools" in message) for message in answer["messages"]] == [False, True, False]
    assert "secret" not in json.dumps(answer) and "hm" not in by_id[target]["text"]


def test_a_result_on_the_target_s_branch_counts_though_another_branch_lies_between(world: World) -> None:
    session = world.session("a")
    root = session.user("go")
    call = {"type": "toolCall", "id": "c1", "name": "bash", "arguments": None}
    target = session.assistant([{"type": "text", "text": "working"}, call])
    session.user("another process speaks", parent=root)
    session.assistant("and answers")
    session.say("toolResult", "x", extra={"toolCallId": "c1", "toolName": "bash", "isError": True}, parent=target)
    session.assistant("failed")
    session.save()
    (_, message, _) = world.open(session, target)["messages"]
    assert message["tools"] == [{"name": "bash", "status": "error"}]


def test_a_result_after_the_next_entry_belongs_to_another_call(world: World) -> None:
    session = world.session("a")
    call = {"type": "toolCall", "id": "call_1", "name": "bash", "arguments": {}}
    target = session.assistant([{"type": "text", "text": "first"}, call])
    session.user("interrupted")
    session.tool("x", call="call_1")
    session.save()
    assert world.open(session, target, after=0)["messages"][0]["tools"] == [{"name": "bash", "status": "unanswered"}]


def test_hostile_tool_names_are_cleaned_and_bounded(world: World) -> None:
    session = world.session("a")
    calls = [{"type": "toolCall", "id": 5, "name": name} for name in ("a\x1b[31mb\nc", "n" * 5000, None, {"x": 1})]
    target = session.assistant([{"type": "text", "text": "x"}, *calls])
    session.save()
    names = [tool["name"] for tool in world.open(session, target)["messages"][0]["tools"]]
    assert names[0] == "ab c" and len(names[1]) <= 128 and all(names)


def test_skill_bodies_and_markers_are_folded(world: World) -> None:
    session = world.session("a")
    body = '<skill name="deploy" location="/x/SKILL.md">\nsecret body\n</skill>\nship it\n<!-- persistent-harness-input:abc -->'
    entry = session.user(body)
    session.save()
    assert world.opened(session, entry) == ["[skill: deploy]\nship it"]
    assert not world.hits("secret body")


def test_text_is_cleaned(world: World) -> None:
    session = world.session("a")
    entry = session.user(
        "a\r\nb\rc\x1b[31mred\x1b[0m\x1b]8;;http://x\x07link\x1b]8;;\x07 \u202eevil\u2066 \x00nul\x07bell \U000e0041tag"
    )
    session.save()
    assert world.opened(session, entry) == ["a\nb\ncredlink evil  nul bell tag"]


# -- branches --------------------------------------------------------------------------------------------------------


def forked(world: World) -> tuple[SessionBuilder, dict[str, str]]:
    """root - left1 - left2 - left3 (abandoned) and root - right1 - right2 (visible), left2 also - side."""
    session = world.session("a")
    ids = {"root": session.user("root")}
    for name in ("left1", "left2"):
        ids[name] = session.assistant(name)
    ids["side"] = session.user("side")
    ids["left3"] = session.user("left3", parent=ids["left2"])
    ids["right1"] = session.assistant("right1", parent=ids["root"])
    ids["right2"] = session.user("right2")
    session.save()
    return session, ids


def test_neighbours_are_those_of_the_visible_branch(world: World) -> None:
    session, ids = forked(world)
    assert world.opened(session, ids["root"]) == ["root", "right1", "right2"]
    assert world.opened(session, ids["right2"], branch="any") == ["root", "right1", "right2"]


def test_an_abandoned_entry_opens_only_with_any_branch(world: World) -> None:
    session, ids = forked(world)
    world.refresh()
    world.refused(EntryNotVisible, operation="open", session_id=session.id, entry_id=ids["left1"])
    answer = world.open(session, ids["left1"], branch="any")
    assert [message["text"] for message in answer["messages"]] == ["root", "left1", "left2", "left3"]
    assert (answer["moreBefore"], answer["moreAfter"]) == (0, 0)


def test_any_branch_shows_the_latest_line_of_descendants(world: World) -> None:
    session, ids = forked(world)
    assert world.opened(session, ids["left2"], branch="any") == ["root", "left1", "left2", "left3"]
    assert world.opened(session, ids["side"], branch="any", before=1) == ["left2", "side"]


def test_the_latest_line_is_the_one_written_last_not_the_first_child(world: World) -> None:
    session = world.session("a")
    root = session.user("root")
    off = session.user("off")
    old = session.assistant("old child")
    session.assistant("new child", parent=off)
    session.user("grandchild of the old", parent=old)
    session.user("visible", parent=root)
    session.save()
    assert world.opened(session, off, branch="any") == ["root", "off", "old child", "grandchild of the old"]


def test_a_replaced_entry_is_no_neighbour_on_any_branch(world: World) -> None:
    session = world.session("a")
    first = session.user("first")
    second = session.assistant("second")
    session.user("replaced", key="twice", parent=second)
    elsewhere = session.user("elsewhere", parent=None)
    session.user("replacing", key="twice", parent=elsewhere)
    session.save()
    answer = world.open(session, first, branch="any")
    assert [message["text"] for message in answer["messages"]] == ["first", "second"]
    assert (answer["moreAfter"], answer["truncated"]) == (0, False)


def test_any_branch_shows_what_follows_behind_a_stored_leaf(world: World) -> None:
    session, ids = chain(world, "first", "second", "third")
    session.add("leaf", targetId=ids[0])
    session.save()
    assert world.opened(session, ids[0]) == ["first"]
    assert world.opened(session, ids[0], branch="any") == ["first", "second", "third"]


def test_any_branch_needs_no_tree_where_the_visible_one_is_the_latest(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    session, ids = forked(world)
    world.refresh()
    monkeypatch.delattr("harness_session_history.answer.branch.tree_columns")
    assert world.opened(session, ids["root"], branch="any", refresh=False) == ["root", "right1", "right2"]


def test_a_stored_leaf_moves_the_visible_branch(world: World) -> None:
    session = world.session("a")
    first = session.user("first")
    second = session.assistant("second")
    third = session.user("third")
    session.add("leaf", targetId=second)
    session.save()
    assert world.opened(session, first) == ["first", "second"]
    world.refused(EntryNotVisible, operation="open", session_id=session.id, entry_id=third)


def test_an_entry_of_any_type_is_the_leaf(world: World) -> None:
    session = world.session("a")
    first = session.user("first")
    session.assistant("second")
    session.user("third")
    session.add("label", targetId=first, label="x", parent=first)
    session.save()
    assert world.opened(session, first) == ["first"]


def test_an_unknown_type_is_a_link_like_any_other(world: World) -> None:
    session = world.session("a")
    first = session.user("first")
    session.add("type_of_next_year", payload=[1, 2])
    session.say("role_of_next_year", "words")
    session.assistant("second")
    session.save()
    assert world.opened(session, first) == ["first", "second"]


def test_the_last_of_two_entries_with_one_id_counts(world: World) -> None:
    session = world.session("a")
    session.user("root")
    session.user("older words", key="dddd0001")
    session.user("newer words", key="dddd0001", parent=None)
    session.save()
    assert world.opened(session, "dddd0001") == ["newer words"]
    assert world.texts("older") == [] and world.texts("older", branch="any") == []


# -- version 1 -------------------------------------------------------------------------------------------------------


def version_one(world: World, *texts: str) -> tuple[SessionBuilder, list[str]]:
    """A transcript without ids; the ids that its entries get."""
    session = world.session("one", version=None, provider="p", modelId="m")
    for number, text in enumerate(texts):
        made = session.message("user", text, at=stamp(number))
        del made["id"], made["parentId"]
        session.raw(line(made))
    ids = [f"v1-{n}-{hashlib.sha256(raw).hexdigest()[:8]}" for n, raw in enumerate(session.lines) if n]
    session.save()
    return session, ids


def test_entries_of_version_one_are_named_by_number_and_line(world: World) -> None:
    session, ids = version_one(world, "alpha", "beta", "gamma")
    assert world.found("beta") == [ids[1]]
    assert world.opened(session, ids[1]) == ["alpha", "beta", "gamma"]


def test_lines_that_do_not_parse_are_not_counted_in_version_one(world: World) -> None:
    session, _ = version_one(world, "alpha")
    session.raw("{broken")
    session.raw("")
    made = session.message("user", "beta")
    del made["id"], made["parentId"]
    session.raw(line(made))
    session.save()
    assert world.found("beta") == [f"v1-2-{hashlib.sha256(session.lines[-1]).hexdigest()[:8]}"]


def test_an_id_of_version_one_stays_while_the_file_grows(world: World) -> None:
    session, ids = version_one(world, "alpha", "beta")
    world.refresh()
    made = session.message("user", "gamma")
    del made["id"], made["parentId"]
    append(session.path(), [line(made).encode()])
    assert world.opened(session, ids[1]) == ["alpha", "beta", "gamma"]


# -- errors ----------------------------------------------------------------------------------------------------------


def test_a_session_out_of_reach_is_told_like_an_unknown_one(world: World) -> None:
    current, deleted = world.say("current", "x"), world.session("deleted")
    deleted.user("x")
    deleted.save(name=f"2026-03-02T10-00-00-000Z_{deleted.id}.jsonl.deleted.2026-03-03T00-00-00.000Z")
    world.history(current_session_id=current.id)
    world.refresh()
    errors = [
        world.refused(SessionNotFound, operation="open", session_id=session_id, entry_id="e")
        for session_id in ("unknown", current.id, deleted.id)
    ]
    assert len({(str(error), error.hint, error.code, error.retryable) for error in errors}) == 1
    assert errors[0].code == "session_not_found" and isinstance(errors[0], LookupError)


def test_the_scope_can_be_widened(world: World) -> None:
    current, deleted = world.session("current"), world.session("deleted")
    for session in (current, deleted):
        session.user("words", key="e1")
    current.save()
    deleted.save(name=f"2026-03-02T10-00-00-000Z_{deleted.id}.jsonl.deleted.2026-03-03T00-00-00.000Z")
    world.history(current_session_id=current.id)
    assert world.opened(current, "e1", include_current=True) == ["words"]
    answer = world.open(deleted, "e1", include_deleted=True)
    assert answer["session"]["deleted"] and answer["messages"][0]["text"] == "words"


def test_the_kind_filters(world: World) -> None:
    session, ids = chain(world, "x")
    world.refresh()
    world.refused(SessionNotFound, operation="open", session_id=session.id, entry_id=ids[0], kind="child")
    assert world.opened(session, ids[0], kind="root") == ["x"]


def test_an_unknown_entry_and_one_that_is_no_message_are_told_alike(world: World) -> None:
    session = world.session("a")
    session.user("x")
    asked, told = session.tool("result")
    info = session.add("session_info", name="n")
    session.save()
    world.refresh()
    errors = [
        world.refused(EntryNotVisible, operation="open", session_id=session.id, entry_id=entry)
        for entry in ("unknown", asked, told, info)
    ]
    assert len({str(error) for error in errors}) == 1
    assert errors[0].code == "entry_not_visible" and isinstance(errors[0], LookupError)


def test_missing_arguments_are_refused(world: World) -> None:
    for arguments in ({}, {"session_id": "s"}, {"entry_id": "e"}, {"session_id": "s", "entry_id": ""}):
        error = world.refused(InvalidRequest, operation="open", **arguments)
        assert error.code == "invalid_request" and isinstance(error, ValueError)


# -- verification ----------------------------------------------------------------------------------------------------


def test_an_append_leaves_citations_valid(world: World) -> None:
    session, ids = chain(world, "one", "two")
    world.refresh()
    session.user("three")
    append(session.path(), session.lines[-1:])
    assert world.opened(session, ids[0], refresh=False) == ["one", "two"]


def test_a_rewritten_target_is_not_served(world: World) -> None:
    session, ids = chain(world, "first words", "middle words", "last words")
    world.refresh()
    replace(session.path(), "middle", "MIDDLE")
    error = world.refused(CitationUnavailable, operation="open", session_id=session.id, entry_id=ids[1])
    assert error.code == "citation_unavailable"
    assert world.opened(session, ids[1]) == ["first words", "MIDDLE words", "last words"]


def test_a_rewrite_elsewhere_in_the_file_makes_a_citation_unavailable_too(world: World) -> None:
    session, ids = chain(world, "first words", "middle words", "last words")
    world.refresh()
    replace(session.path(), "middle", "longer middle")
    world.refused(CitationUnavailable, operation="open", session_id=session.id, entry_id=ids[2])


def test_a_replaced_file_is_not_served(world: World) -> None:
    session, ids = chain(world, "words")
    world.refresh()
    path = session.path()
    path.unlink()
    session.lines[-1] = session.lines[-1].replace(b"words", b"lies!")
    session.save()
    world.refused(CitationUnavailable, operation="open", session_id=session.id, entry_id=ids[0])


def test_a_truncated_file_is_not_served(world: World) -> None:
    session, ids = chain(world, "one", "two", "three")
    world.refresh()
    with open(session.path(), "r+b") as file:
        file.truncate(file.seek(0, 2) - 40)
    world.refused(CitationUnavailable, operation="open", session_id=session.id, entry_id=ids[2])


def test_a_file_that_is_gone_is_not_served(world: World) -> None:
    session, ids = chain(world, "one")
    world.refresh()
    session.path().unlink()
    world.refused(CitationUnavailable, operation="open", session_id=session.id, entry_id=ids[0])
    world.refresh()
    world.refused(SessionNotFound, operation="open", session_id=session.id, entry_id=ids[0])
    world.refused(CitationUnavailable, operation="open", session_id=session.id, entry_id=ids[0], include_deleted=True)


def test_ids_that_look_strange_can_be_opened(world: World) -> None:
    session = world.session("a", id="séssion id/with:signs")
    session.user("findme", key="entry “ñ” /:%_")
    session.save(name="s.jsonl")
    (hit,) = world.hits("findme")
    assert world.opened(hit["citation"]["sessionId"], hit["citation"]["entryId"]) == ["findme"]
    assert hit["locator"] == "session:séssion id/with:signs/entry:entry “ñ” /:%_"


@pytest.mark.parametrize("key", ["two\nlines", "\x1b[31mred", "x" * 128, "é" * 128, " ", "0"])
def test_whatever_an_entry_s_id_is_what_was_found_can_be_opened(world: World, key: str) -> None:
    session = world.session("a")
    session.user("findme", key=key)
    session.save()
    assert world.found("findme") == [key]
    assert world.opened(session, key) == ["findme"]
