"""`list`: which sessions there are, in which order, and what is said of each."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import pytest

from builder import SessionBuilder, line, stamp
from world import World, append, touch


def short(session_id: str) -> str:
    return hashlib.sha256(session_id.encode()).hexdigest()[:8]


# -- order, limit, filters -------------------------------------------------------------------------------------------


def test_an_empty_archive_lists_nothing_and_is_complete(world: World) -> None:
    answer = world.ask(operation="list")
    assert answer["results"] == [] and not answer["truncated"] and answer["complete"]
    assert answer["freshness"]["sources"]["selected"] == 0


def test_the_latest_activity_comes_first_whatever_the_header_says(world: World) -> None:
    early = world.session("early", start=stamp(9000))
    early.user("x", at=stamp(10))
    early.save()
    late = world.session("late", start=stamp(0))
    late.user("x", at=stamp(20))
    late.save()
    assert world.listed() == [late.id, early.id]


def test_sessions_of_the_same_moment_are_ordered_by_id(world: World) -> None:
    ids = ["b", "c", "a"]
    for one in ids:
        session = world.session(one, id=one)
        session.user("x", at=stamp(5))
        session.save()
    assert world.listed() == ["a", "b", "c"]


def test_the_limit_is_ten_and_says_what_it_cuts(world: World) -> None:
    for number in range(11):
        world.say(f"s{number}", "x")
    answer = world.ask(operation="list", refresh=True)
    assert len(answer["results"]) == 10 and answer["truncated"]
    answer = world.ask(operation="list", limit=11)
    assert len(answer["results"]) == 11 and not answer["truncated"]


def test_since_is_inclusive_and_until_exclusive_by_last_activity(world: World) -> None:
    session = world.session("a")
    session.user("x", at="2026-03-01T23:59:59.999Z")
    session.user("x", at="2026-03-02T00:00:00.000Z")
    session.save()
    assert world.listed(since="2026-03-02") == [session.id]
    assert world.listed(since="2026-03-02T00:00:00.001Z") == []
    assert world.listed(until="2026-03-02") == []
    assert world.listed(until="2026-03-02T00:00:00.001Z") == [session.id]
    assert world.listed(since="2026-03-02T01:00:00+01:00") == [session.id]
    assert world.listed(since="2026-03-02T01:00:00+00:59") == []


def test_filters_hold_before_the_limit(world: World) -> None:
    wanted = world.session("wanted", cwd="/w/wanted")
    wanted.user("x", at=stamp(1))
    wanted.save()
    for number in range(25):
        world.say(f"s{number}", "x", "y", "z")
    answer = world.ask(operation="list", cwd="/w/wanted", limit=1, refresh=True)
    assert [view["sessionId"] for view in answer["results"]] == [wanted.id] and not answer["truncated"]


def test_a_session_id_filters(world: World) -> None:
    world.say("a", "x")
    other = world.say("b", "x")
    assert world.listed(session_id=other.id) == [other.id]
    assert world.listed(session_id="unknown") == []


# -- what a view says ------------------------------------------------------------------------------------------------


def test_a_view_tells_a_session_without_its_text(world: World) -> None:
    session = world.session("a", cwd="/w/demo", start=stamp(0))
    first = session.user("secret words", at=stamp(60))
    last = session.assistant("secret answer", at=stamp(120))
    session.save()
    (view,) = world.list()
    assert view == {
        "firstEntryId": first,
        "lastEntryId": last,
        "sessionId": session.id,
        "shortId": short(session.id),
        "name": f"demo-{short(session.id)}",
        "kind": "root",
        "depth": 0,
        "lineage": f"demo-{short(session.id)}",
        "deleted": False,
        "current": False,
        "cwd": "/w/demo",
        "createdAt": "2026-03-02T10:01:00.000Z",
        "updatedAt": "2026-03-02T10:02:00.000Z",
        "messageCount": 2,
        "parentSessionId": None,
    }


def test_times_come_from_the_earliest_and_latest_message_not_from_the_order_of_lines(world: World) -> None:
    session = world.session("a", start=stamp(500))
    for second in (30, 10, 20):
        session.user("x", at=stamp(second))
    session.add("session_info", name="late rename", at=stamp(999))
    session.save()
    view = world.view(session)
    assert (view["createdAt"], view["updatedAt"]) == (stamp(10), stamp(30))


@pytest.mark.parametrize("read_on", [False, True])
def test_the_time_of_a_replaced_entry_is_no_time_of_the_session(world: World, read_on: bool) -> None:
    session = world.session("a")
    session.user("x", at=stamp(20))
    session.user("early", at=stamp(10), key="early")
    session.user("late", at=stamp(90), key="late")
    session.user("y", at=stamp(30))
    if read_on:
        session.save()
        assert world.view(session)["updatedAt"] == stamp(90)
    session.user("early again", at=stamp(25), key="early", parent=None)
    session.add("label", at=stamp(99), key="late")
    session.save()
    for _ in range(2):
        view = world.view(session)
        assert (view["createdAt"], view["updatedAt"]) == (stamp(20), stamp(30))
        touch(session.path(), 1.7e9)


def test_a_session_whose_only_message_was_replaced_has_the_header_s_times(world: World) -> None:
    session = world.session("a", start=stamp(500))
    session.user("x", at=stamp(10), key="twice")
    session.add("label", at=stamp(20), key="twice", parent=None)
    session.save()
    view = world.view(session)
    assert view["createdAt"] == view["updatedAt"] == stamp(500)


def test_times_fall_back_to_the_header_never_to_the_file(world: World) -> None:
    session = world.session("a", start="2025-05-06T07:08:09.123Z")
    session.add("model_change", provider="p", modelId="m", at=stamp(5))
    touch(session.save(), 1.7e9)
    view = world.view(session)
    assert view["createdAt"] == view["updatedAt"] == "2025-05-06T07:08:09.123Z"


def test_without_any_time_there_is_none(world: World) -> None:
    session = world.session("a", start="never")
    session.raw(
        json.dumps({"type": "message", "id": "e1", "parentId": None, "message": {"role": "user", "content": "x"}})
    )
    session.save()
    view = world.view(session)
    assert view["createdAt"] is None and view["updatedAt"] is None


def test_a_message_time_in_milliseconds_stands_in_for_a_bad_entry_time(world: World) -> None:
    session = world.session("a")
    session.user("findme", at="yesterday", extra={"timestamp": 1772445600123})
    session.save()
    assert world.hits("findme")[0]["createdAt"] == "2026-03-02T10:00:00.123Z"


def test_absurd_times_are_no_times(world: World) -> None:
    session = world.session("a")
    for number, value in enumerate(("1e400", "-1e300", "true", "[]", "{}", '"9999999999999"', "1" + "0" * 30)):
        made = session.message("user", f"findme {number}", at="AT")
        session.raw(line(made).replace('"AT"', value))
    session.save()
    assert [hit["createdAt"] for hit in world.hits("findme", session_id=session.id)] == [None] * 7


def test_only_messages_with_text_on_the_visible_branch_are_counted(world: World) -> None:
    session = world.session("a")
    root = session.user("one")
    session.user("abandoned")
    session.assistant([{"type": "toolCall", "id": "c", "name": "bash", "arguments": {}}], parent=root)
    session.say("toolResult", "no message")
    session.say("system", "no message")
    session.assistant("two")
    session.save()
    assert world.view(session)["messageCount"] == 2


# -- names -----------------------------------------------------------------------------------------------------------


def test_the_last_name_that_is_not_blank_counts(world: World) -> None:
    session = world.session("a")
    session.user("x")
    session.add("session_info", name="First name")
    session.add("session_info", name="Second name")
    session.add("session_info", name="   ")
    session.add("session_info", name="")
    session.save()
    assert world.view(session)["name"] == "Second name"


def test_a_name_is_one_cleaned_line(world: World) -> None:
    session = world.session("a")
    session.user("x")
    session.add("session_info", name="two\nlines \x1b[31mred\x1b[0m \u202eback")
    session.save()
    assert world.view(session)["name"] == "two lines red back"


def test_a_name_given_on_an_abandoned_branch_counts_too(world: World) -> None:
    session = world.session("a")
    root = session.user("x")
    session.add("session_info", name="Given name")
    session.user("y", parent=root)
    session.save()
    assert world.view(session)["name"] == "Given name"


def test_a_name_in_the_middle_of_a_large_file_is_found(world: World) -> None:
    session = world.session("a")
    for number in range(60):
        session.tool("x" * 10_000)
        if number == 30:
            session.add("session_info", name="In the middle")
    session.user("y")
    session.save()
    assert world.view(session)["name"] == "In the middle"


def test_names_of_a_wrong_type_are_no_names(world: World) -> None:
    session = world.session("a")
    session.user("x")
    session.add("session_info", name="Good")
    session.add("session_info", name=17)
    session.add("session_info", name={"a": 1})
    session.save()
    assert world.view(session)["name"] == "Good"


def test_a_name_is_never_longer_than_two_hundred_characters(world: World) -> None:
    session = world.session("a")
    session.user("x")
    session.add("session_info", name="n" * 5000)
    session.save()
    assert len(world.view(session)["name"]) == 200


def test_folders_of_any_system_give_the_name(world: World) -> None:
    for key, cwd, folder in (("a", "C:\\Users\\dev\\shop", "shop"), ("b", "/w/shop/", "shop"), ("c", "/", "session")):
        session = world.session(key, cwd=cwd)
        session.user("x")
        session.save()
        assert world.view(session)["name"] == f"{folder}-{short(session.id)}"


def test_a_hostile_folder_stays_one_line_and_valid(world: World) -> None:
    session = world.session("a", cwd="/w/bad\x1b[31m\nname\u202e")
    session.user("x")
    session.save()
    view = world.view(session)
    assert "\n" not in view["name"] and "\x1b" not in view["name"] and "\u202e" not in view["name"]
    surrogate = world.session("b")
    surrogate.lines[0] = surrogate.lines[0].replace(b'"/w/demo"', b'"/w/x\\ud83d"')
    surrogate.user("x")
    surrogate.save()
    assert world.view(surrogate)["name"].endswith(short(surrogate.id))


def test_a_header_without_a_usable_folder_still_counts(world: World) -> None:
    session = world.session("a", cwd=["not", "a", "string"])  # type: ignore[arg-type]
    session.user("x")
    session.save()
    assert world.view(session)["cwd"] is None


# -- kind, parents, lineage ------------------------------------------------------------------------------------------


def test_a_parent_is_told_by_its_path(world: World) -> None:
    parent = world.session("parent")
    parent.user("x")
    path = parent.save()
    fork = world.say("fork", "y", parentSession=str(path))
    view = world.view(fork)
    assert view["parentSessionId"] == parent.id and view["depth"] == 1 and view["kind"] == "root"
    assert view["lineage"] == f"demo-{short(parent.id)}/demo-{short(fork.id)}"


def test_a_parent_is_told_by_its_id(world: World) -> None:
    parent = world.say("parent", "x")
    assert world.view(world.say("fork", "y", parentSession=parent.id))["parentSessionId"] == parent.id


def test_a_parent_whose_file_has_moved_is_told_by_the_name_in_the_path(world: World) -> None:
    parent = world.say("parent", "x")
    for number, path in enumerate(
        (f"/gone/2026-03-02T10-00-00-000Z_{parent.id}.jsonl", f"C:\\gone\\2026-03-02T10-00-00-000Z_{parent.id}.jsonl")
    ):
        assert world.view(world.say(f"fork{number}", "y", parentSession=path))["parentSessionId"] == parent.id


def test_an_older_header_says_branched_from(world: World) -> None:
    parent = world.session("parent")
    parent.user("x")
    path = parent.save()
    fork = world.session("fork", version=2, branchedFrom=str(path))
    fork.user("y")
    fork.save()
    assert world.view(fork)["parentSessionId"] == parent.id


def test_a_parent_that_is_only_a_duplicate_file_is_still_told(world: World) -> None:
    parent = world.session("parent")
    parent.user("x")
    copy = parent.save(name="copy.jsonl")
    parent.user("later")
    parent.save()
    assert world.view(world.say("fork", "y", parentSession=str(copy)))["parentSessionId"] == parent.id


def test_a_file_below_a_folder_named_like_a_session_file_is_its_child(world: World) -> None:
    parent = world.session("parent")
    parent.user("x")
    path = parent.save()
    child = world.session("child")
    child.user("y")
    child.save(folder=f"--w-demo--/{path.stem}/run1/run-0", name="session.jsonl")
    view = world.view(child)
    assert (view["kind"], view["parentSessionId"], view["depth"]) == ("child", parent.id, 1)
    assert world.listed(kind="child") == [child.id] and world.listed(kind="root") == [parent.id]


def parent_and_child(world: World) -> tuple[SessionBuilder, SessionBuilder, Path]:
    """A session, one below the folder that is named after its file, and that file."""
    parent = world.session("parent")
    parent.user("x")
    path = parent.save(name="parent.jsonl")
    child = world.session("child")
    child.user("y")
    child.save("--w-demo--/parent/run-1")
    world.refresh()
    return parent, child, path


def test_a_parent_whose_file_is_gone_is_still_told_by_its_path(world: World) -> None:
    parent = world.session("parent")
    parent.user("x")
    path = parent.save(name="parent.jsonl")
    fork = world.say("fork", "y", parentSession=str(path))
    world.refresh()
    path.unlink()
    assert world.view(parent, include_deleted=True)["deleted"]
    assert world.view(fork)["parentSessionId"] == parent.id


def test_a_child_stays_one_when_its_parent_s_file_is_gone(world: World) -> None:
    parent, child, path = parent_and_child(world)
    path.unlink()
    view = world.view(child)
    assert (view["kind"], view["parentSessionId"], view["depth"]) == ("child", parent.id, 1)
    assert world.listed(kind="child") == [child.id] and world.listed(kind="root") == []


def test_of_a_parent_that_is_gone_and_one_that_is_there_the_nearer_counts(world: World) -> None:
    parent, child, path = parent_and_child(world)
    inner = world.session("inner")
    inner.user("z")
    inner.save("--w-demo--/parent/run-1/" + child.path().stem)
    child_path = child.path("--w-demo--/parent/run-1")
    child_path.unlink()
    assert world.view(inner)["parentSessionId"] == child.id
    child_path.write_bytes(b"\n".join(child.lines) + b"\n")
    path.unlink()
    assert world.view(inner)["parentSessionId"] == child.id and world.view(child)["parentSessionId"] == parent.id


def test_another_session_at_the_path_of_one_that_is_gone_is_the_parent(world: World) -> None:
    _, child, path = parent_and_child(world)
    path.unlink()
    world.refresh()
    other = world.session("other")
    other.user("z")
    other.save(name="parent.jsonl")
    assert world.view(child)["parentSessionId"] == other.id


def test_a_parent_is_told_by_its_path_though_the_root_is_a_link(world: World) -> None:
    parent = world.session("parent")
    parent.user("x")
    fork = world.say("fork", "y", parentSession=str(parent.save(name="parent.jsonl")))
    (world.folder / "link").symlink_to(world.root)
    world.history(roots=[world.folder / "link"])
    assert world.view(fork)["parentSessionId"] == parent.id


def test_folders_for_children_make_children(world: World) -> None:
    for name in ("subagents", "tasks", "forks"):
        session = world.session(name)
        session.user("x")
        session.save(folder=f"--w-demo--/{name}")
        view = world.view(session)
        assert (view["kind"], view["depth"], view["parentSessionId"]) == ("child", 1, None)


def test_lineage_runs_from_the_top_ancestor_down(world: World) -> None:
    above: str | None = None
    for number in range(4):
        header = {} if above is None else {"parentSession": above}
        session = world.session(f"s{number}", **header)
        session.user("x")
        session.add("session_info", name=f"n{number}")
        above = str(session.save())
    view = world.view(session)
    assert view["lineage"] == "n0/n1/n2/n3" and view["depth"] == 3


def test_parents_in_a_circle_end(world: World) -> None:
    one, other = (
        world.session("a", parentSession="b-id", id="a-id"),
        world.session("b", parentSession="a-id", id="b-id"),
    )
    for session in (one, other):
        session.user("x")
        session.save()
    assert world.view(one)["lineage"].count("/") == 1
    own = world.session("c", parentSession="c-id", id="c-id")
    own.user("x")
    own.save()
    assert world.view(own)["lineage"] == world.view(own)["name"]


def test_the_registry_has_the_last_word(world: World) -> None:
    session, parent = world.session("a"), world.say("parent", "x")
    session.user("x")
    session.add("session_info", name="own name")
    session.save()
    registry = world.folder / "registry.jsonl"
    lines = [
        {"sessionId": session.id, "kind": "child", "name": "First"},
        {"sessionId": session.id, "name": "Given by the host", "parentSessionId": parent.id},
    ]
    registry.write_text("".join(json.dumps(line) + "\n" for line in lines))
    world.history(registry=registry)
    view = world.view(session)
    assert (view["kind"], view["name"], view["parentSessionId"]) == ("child", "Given by the host", parent.id)
    assert world.listed(kind="child") == [session.id]


def test_a_change_of_the_registry_needs_no_refresh(world: World) -> None:
    session = world.say("a", "x")
    registry = world.folder / "registry.jsonl"
    world.history(registry=registry)
    assert world.listed() == [session.id]
    registry.write_text(json.dumps({"sessionId": session.id, "deletedAt": "2026-03-05T00:00:00Z"}) + "\n")
    assert world.listed(refresh=False) == []
    assert [view["deleted"] for view in world.list(refresh=False, include_deleted=True)] == [True]


# -- freshness -------------------------------------------------------------------------------------------------------


def test_the_first_call_builds_a_snapshot(world: World) -> None:
    session = world.say("a", "x")
    answer = world.ask(operation="list")
    assert [view["sessionId"] for view in answer["results"]] == [session.id] and answer["complete"]
    fresh = answer["freshness"]
    assert fresh["snapshotAt"] and fresh["oldestIndexedAt"] and fresh["newestIndexedAt"] and fresh["checkedAt"]


def test_unchanged_files_are_indexed(world: World) -> None:
    world.say("a", "x")
    world.say("b", "x")
    world.refresh()
    zero = dict.fromkeys(("changed", "missing", "unavailable", "duplicate", "damaged", "pendingMaintenance"), 0)
    assert world.sources() == {"selected": 2, "indexed": 2, **zero}


def test_a_new_file_is_missing_until_it_is_indexed(world: World) -> None:
    world.say("a", "x")
    world.refresh()
    world.say("b", "x")
    answer = world.ask(operation="list")
    sources = answer["freshness"]["sources"]
    assert (sources["missing"], sources["indexed"], sources["selected"]) == (1, 1, 2) and not answer["complete"]
    assert sources["pendingMaintenance"] == 1
    world.refresh()
    assert world.ask(operation="list")["complete"]


def test_a_grown_file_is_changed(world: World) -> None:
    session = world.session("a")
    session.user("x")
    path = session.save()
    world.refresh()
    session.user("y")
    append(path, session.lines[-1:])
    sources = world.sources()
    assert (sources["changed"], sources["indexed"], sources["missing"]) == (1, 0, 0)


def test_a_touched_file_is_changed_because_only_metadata_are_compared(world: World) -> None:
    session = world.session("a")
    session.user("x")
    path = session.save()
    world.refresh()
    touch(path, 1.7e9)
    assert world.sources()["changed"] == 1


def test_a_removed_file_is_changed_until_it_is_noticed(world: World) -> None:
    session = world.session("a")
    session.user("x")
    path = session.save()
    world.say("b", "x")
    world.refresh()
    path.unlink()
    assert not world.ask(operation="list")["complete"]
    world.refresh()
    assert world.sources()["selected"] == 1 and world.ask(operation="list")["complete"]


def test_a_second_file_of_a_session_is_a_duplicate(world: World) -> None:
    session = world.session("a")
    session.user("x")
    session.save()
    session.save(name="copy.jsonl")
    world.refresh()
    sources = world.sources()
    assert (sources["selected"], sources["indexed"], sources["duplicate"]) == (2, 1, 1)
    assert world.ask(operation="list")["complete"]


def test_damage_is_counted_and_does_not_make_an_answer_incomplete(world: World) -> None:
    session = world.session("a")
    session.user("x")
    session.raw("{broken")
    session.save()
    world.refresh()
    assert world.sources()["damaged"] == 1 and world.ask(operation="list")["complete"]


@pytest.mark.parametrize("data", ["plain text", "\0" * 3000, '{"type":"sess'])
@pytest.mark.parametrize("end", [b"", b"\n"])
def test_a_file_named_like_a_session_of_which_nothing_can_be_read_is_damaged(
    world: World, data: str, end: bytes
) -> None:
    session = world.session("a", header=False)
    session.raw(data)
    session.save(end=end)
    other = world.say("b", "x")
    assert world.ask(operation="list", refresh=True)["complete"]
    sources = world.sources()
    assert (sources["unavailable"], sources["selected"], sources["indexed"], sources["damaged"]) == (0, 2, 2, 1)
    whole = world.session("a")
    whole.user("word")
    whole.save()
    assert world.texts("word") == ["word"] and world.sources()["damaged"] == 0
    assert sorted(world.listed()) == sorted([session.id, other.id])


def test_a_header_that_is_still_being_written_is_read_when_it_is_whole(world: World) -> None:
    session = world.session("a")
    session.user("word")
    path = session.save()
    whole = path.read_bytes()
    path.write_bytes(whole[:20])
    world.refresh()
    assert world.sources()["damaged"] == 1
    append(path, [whole[20:].rstrip(b"\n")])
    assert world.texts("word") == ["word"] and world.sources()["damaged"] == 0
    assert world.view(session)["cwd"] == "/w/demo"


def test_a_file_of_a_version_that_cannot_be_read_is_unavailable_and_no_refresh_raises_for_it(world: World) -> None:
    session = world.session("a", header=False)
    session.raw('{"v":4,"kind":"header","id":"x","storageVersion":1,"createdAt":1,"cwd":"/"}')
    session.save()
    world.say("b", "word")
    for _ in range(2):
        answer = world.search("word")
        assert answer["results"] and answer["complete"] is False
        assert answer["freshness"]["sources"] == {**answer["freshness"]["sources"], "unavailable": 1, "indexed": 1}


def test_a_file_named_like_a_session_that_is_none_is_not_counted(world: World) -> None:
    session = world.session("a", header=False)
    session.raw('{"event":"something else"}')
    session.save(name=f"{session.id}.jsonl")
    answer = world.ask(operation="list", refresh=True)
    assert answer["complete"] and answer["freshness"]["sources"]["selected"] == 0


def test_other_jsonl_files_are_not_counted(world: World) -> None:
    path = world.say("a", "x").save()
    (path.parent / "notes.jsonl").write_text('{"role":"user"}\n')
    (path.parent / "empty.jsonl").write_text("")
    (path.parent / "notes.txt").write_text("x")
    world.refresh()
    assert world.sources()["selected"] == 1 and world.ask(operation="list")["complete"]


def test_one_session_asked_for_is_the_only_one_selected(world: World) -> None:
    session = world.say("a", "x")
    world.refresh()
    world.say("b", "x")
    answer = world.ask(operation="list", session_id=session.id)
    assert answer["complete"] and answer["freshness"]["sources"]["selected"] == 1


def test_an_unreachable_root_makes_its_sessions_unavailable_not_deleted(world: World) -> None:
    session = world.say("a", "x")
    world.refresh()
    os.rename(world.root, world.root.with_name("away"))
    answer = world.ask(operation="list")
    assert not answer["complete"] and answer["freshness"]["sources"]["unavailable"] == 1
    assert [view["sessionId"] for view in answer["results"]] == [session.id]
    assert answer["results"][0]["deleted"] is False
    os.rename(world.root.with_name("away"), world.root)
    assert world.ask(operation="list")["complete"]


def test_a_root_that_was_never_there_is_unavailable(world: World) -> None:
    world.say("a", "x")
    world.history(roots=[world.root, world.folder / "nowhere"])
    answer = world.ask(operation="list")
    assert len(answer["results"]) == 1 and not answer["complete"]
    assert answer["freshness"]["sources"]["unavailable"] == 1


# -- first and last entry ----------------------------------------------------------------------------------------------


def ends(world: World, session: SessionBuilder) -> tuple[str | None, str | None]:
    """First and last entry of the session, each of which opens with nothing before or after it."""
    view = world.view(session)
    for side, entry in (("moreBefore", view["firstEntryId"]), ("moreAfter", view["lastEntryId"])):
        if entry is not None:
            opened = world.ask(operation="open", session_id=session.id, entry_id=entry, before=0, after=0)
            assert opened[side] == 0 and opened["citation"]["entryId"] == entry
    return view["firstEntryId"], view["lastEntryId"]


def test_a_listed_session_names_the_first_and_last_entry_with_text(world: World) -> None:
    session = world.session("s")
    session.add("model_change", provider="p", modelId="m")
    first = session.user("one")
    session.tool("output")
    last = session.assistant("two")
    session.tool("output")
    session.add("label", label="x")
    session.save()
    assert ends(world, session) == (first, last)


def test_first_and_last_entry_are_those_of_the_visible_branch(world: World) -> None:
    session = world.session("s")
    session.user("abandoned root")
    first = session.user("root", parent=None)
    session.assistant("abandoned")
    last = session.assistant("kept", parent=first)
    session.assistant("abandoned, too", parent=first)
    session.add("leaf", targetId=last)
    session.save()
    assert ends(world, session) == (first, last)


def test_entries_that_do_not_stand_in_the_order_of_the_file_have_ends_as_well(world: World) -> None:
    session = world.session("s")
    last = session.user("said second", key="00000002", parent="00000001")
    first = session.user("said first", key="00000001", parent=None)
    session.add("leaf", targetId=last)
    session.save()
    assert ends(world, session) == (first, last)


@pytest.mark.parametrize("key", ["an id of its own", "ABCDEFGH", "müll", "x" * 128])
def test_ids_unlike_pis_are_given_as_they_are_written(world: World, key: str) -> None:
    session = world.session("s")
    session.user("one", key=key)
    session.save()
    assert ends(world, session) == (key, key)


def test_the_only_entry_is_first_and_last_and_without_one_there_is_none(world: World) -> None:
    one, none = world.session("one"), world.session("none")
    entry = one.user("alone")
    one.save()
    none.tool("output")
    none.save()
    assert ends(world, one) == (entry, entry)
    assert ends(world, none) == (None, None)


def test_an_appended_entry_is_the_last_one_after_a_refresh(world: World) -> None:
    session = world.session("s")
    first = session.user("one")
    session.save()
    world.refresh()
    last = session.assistant("two")
    session.save()
    assert ends(world, session) == (first, last)


def test_a_session_whose_file_is_gone_names_no_entry(world: World) -> None:
    session = world.session("s")
    session.user("one")
    path = session.save()
    world.refresh()
    path.unlink()
    (view,) = world.list(include_deleted=True)
    assert view["deleted"] and (view["firstEntryId"], view["lastEntryId"]) == (None, None)
