"""Which files are sessions, which sessions may be seen, and what has become of the others."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest

from builder import SessionBuilder, stamp
from harness_session_history import EntryNotVisible, InvalidRequest
from world import World, append

# -- which file is a session -----------------------------------------------------------------------------------------


def test_a_session_is_named_by_its_header_not_by_its_file(world: World) -> None:
    session = world.session("a")
    session.user("findme")
    session.save(name="2026-03-02T10-00-00-000Z_another-id.jsonl")
    assert world.sessions_found("findme") == [session.id]


def test_a_file_without_a_header_is_named_by_its_file(world: World) -> None:
    session = world.session("a", header=False)
    session.user("findme")
    session.save()
    assert world.sessions_found("findme") == [session.id]


def test_a_file_without_a_header_and_without_an_id_in_its_name_is_no_session(world: World) -> None:
    session = world.session("a", header=False)
    session.user("findme")
    session.save(name="notes.jsonl")
    assert world.sessions_found("findme") == []
    assert world.sources()["selected"] == 0 and world.ask(operation="list")["complete"]


def test_a_header_may_stand_behind_another_line(world: World) -> None:
    session = world.session("a", header=False)
    session.raw('{"type":"title","title":"x"}')
    session.raw(
        json.dumps({"type": "session", "version": 3, "id": session.id, "timestamp": stamp(0), "cwd": "/w/demo"})
    )
    session.user("findme")
    session.save()
    assert world.sessions_found("findme") == [session.id]


def test_blank_lines_and_a_byte_order_mark_before_the_header_do_no_harm(world: World) -> None:
    session = world.session("a")
    session.user("findme")
    session.save(prefix=b"\xef\xbb\xbf\n  \r\n", eol=b"\r\n", end=b"\r\n")
    assert world.sessions_found("findme") == [session.id]


def test_flat_and_nested_files_are_found(world: World) -> None:
    expected = set()
    for number, folder in enumerate((".", "--w--", "a/b/c/d", ".hidden", "--w--/sub.dir")):
        session = world.session(str(number))
        session.user("findme")
        session.save(folder=folder)
        expected.add(session.id)
    assert set(world.sessions_found("findme")) == expected


def test_an_archived_session_is_a_session_too(world: World) -> None:
    session = world.session("a")
    session.user("findme")
    session.save(name=f"2026-03-02T10-00-00-000Z_{session.id}.jsonl.reset.2026-03-03T02-13-29.008Z")
    assert world.sessions_found("findme") == [session.id] and world.view(session)["deleted"] is False


@pytest.mark.parametrize(
    "name", ["x.JSONL", "x.jsonl.bak", "x.jsonl~", "x.jsonl.tmp", "x.json", "x.jsonl.gz", "x.jsonl.reset"]
)
def test_other_names_are_not_read(world: World, name: str) -> None:
    session = world.session("a")
    session.user("findme")
    session.save(name=name)
    assert world.sessions_found("findme") == [] and world.sources()["selected"] == 0


def test_a_folder_that_is_named_like_a_session_does_no_harm(world: World) -> None:
    (world.root / "--w--" / "2026-03-02T10-00-00-000Z_x.jsonl").mkdir(parents=True)
    session = world.session("a")
    session.user("findme")
    session.save(folder="--w--/2026-03-02T10-00-00-000Z_x.jsonl")
    assert world.sessions_found("findme") == [session.id] and world.ask(operation="list")["complete"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_that_is_named_like_a_session_does_not_hang(world: World) -> None:
    world.say("a", "findme")
    os.mkfifo(world.root / "--w-demo--" / "2026-03-02T10-00-00-000Z_pipe.jsonl")
    assert len(world.sessions_found("findme", refresh=False)) == 1


# -- several files of one session ------------------------------------------------------------------------------------


def twice(world: World, one: int, other: int, *, same: bool = False) -> SessionBuilder:
    """A session in two files, whose last entries have the given ages in seconds."""
    session = world.session("a")
    session.user("shared")
    for name, second in (("one.jsonl", one), ("other.jsonl", other)):
        made = world.session("a")
        made.lines = list(session.lines)
        made.count, made.last = session.count, session.last
        made.user("findme same" if same else f"findme {name}", at=stamp(second), key="same" if same else name)
        made.save(name=name)
    return session


@pytest.mark.parametrize(("one", "other"), [(20, 10), (20, 30)])
def test_two_files_of_one_id_are_one_session_and_every_entry_of_both_is_found(
    world: World, one: int, other: int
) -> None:
    session = twice(world, one, other)
    assert sorted(world.texts("findme")) == ["findme one.jsonl", "findme other.jsonl"]
    assert world.texts("shared") == ["shared"] and "alsoIn" not in world.hits("shared")[0]
    assert world.sources()["duplicate"] == 0 and world.listed() == [session.id]
    for hit in world.hits("findme"):
        assert world.opened(session, hit["citation"]["entryId"]) == ["shared", hit["snippet"]]


@pytest.mark.parametrize(("one", "other"), [(20, 10), (20, 30)])
def test_of_two_files_the_one_with_the_latest_activity_leads(world: World, one: int, other: int) -> None:
    session = twice(world, one, other)
    assert world.view(session)["updatedAt"] == stamp(max(one, other))


@pytest.mark.parametrize("read_on", [False, True])
def test_a_replaced_entry_does_not_make_a_file_the_leading_one(world: World, read_on: bool) -> None:
    twice(world, 20, 30)
    session = world.session("a")
    session.user("findme first", at=stamp(10))
    session.user("findme replaced", at=stamp(90), key="late")
    if read_on:
        session.save(name="third.jsonl")
        assert "findme replaced" in world.texts("findme")
    session.user("findme replacing", at=stamp(15), key="late", parent=None)
    session.save(name="third.jsonl")
    assert "findme replaced" not in world.texts("findme")
    assert world.view(session)["updatedAt"] == stamp(30)


def test_of_two_files_of_one_moment_the_larger_leads(world: World) -> None:
    session = twice(world, 20, 20)
    (world.root / "--w-demo--" / "other.jsonl").open("ab").write(b'{"type":"session_info","id":"i","name":"larger"}\n')
    assert world.view(session)["name"] == "larger"


def test_of_two_equal_files_each_entry_is_found_once(world: World) -> None:
    twice(world, 20, 20, same=True)
    assert world.texts("findme") == ["findme same"] and "alsoIn" not in world.hits("findme")[0]
    assert world.sources()["duplicate"] == 1
    assert world.search("findme nowhere")["hints"]["terms"][0] == {"term": "findme", "entries": 1}


def test_when_the_leading_file_goes_the_other_takes_its_place(world: World) -> None:
    session = twice(world, 20, 10)
    world.refresh()
    (world.root / "--w-demo--" / "one.jsonl").unlink()
    assert world.texts("findme") == ["findme other.jsonl"]
    assert world.view(session)["deleted"] is False and world.sources()["duplicate"] == 0


# -- deleted ---------------------------------------------------------------------------------------------------------


def test_a_file_named_deleted_is_a_tombstone_whose_text_can_still_be_asked_for(world: World) -> None:
    session = world.session("a")
    session.user("findme")
    session.save(name=f"{session.id}.jsonl.deleted.2026-03-02T12-24-51.414Z")
    assert world.listed() == [] and world.sessions_found("findme") == []
    assert world.listed(include_deleted=True) == [session.id]
    (hit,) = world.hits("findme", include_deleted=True)
    assert hit["session"]["deleted"] is True


def test_a_file_that_is_renamed_to_deleted_becomes_one(world: World) -> None:
    session = world.session("a")
    session.user("findme")
    path = session.save()
    world.refresh()
    path.rename(path.with_name(path.name + ".deleted.2026-03-02T12-24-51.414Z"))
    assert world.sessions_found("findme") == [] and world.listed() == []
    assert world.sessions_found("findme", include_deleted=True) == [session.id]


def test_a_file_that_is_gone_leaves_its_metadata_only(world: World) -> None:
    session = world.session("a")
    session.user("findme")
    path = session.save()
    world.say("b", "stays")
    world.refresh()
    path.unlink()
    assert world.sessions_found("findme", include_deleted=True) == []
    assert session.id not in world.listed(refresh=False)
    views = {view["sessionId"]: view for view in world.list(refresh=False, include_deleted=True)}
    assert (
        views[session.id]["deleted"]
        and views[session.id]["createdAt"] == stamp(1)
        and views[session.id]["cwd"] == "/w/demo"
    )


def test_a_folder_that_is_gone_deletes_nothing(world: World) -> None:
    session = world.session("a")
    session.user("findme")
    path = session.save()
    world.refresh()
    path.parent.rename(world.folder / "away")
    answer = world.ask(operation="list")
    assert [view["deleted"] for view in answer["results"]] == [False] and not answer["complete"]
    assert answer["freshness"]["sources"]["unavailable"] == 1


def test_a_file_that_comes_back_is_a_session_again(world: World) -> None:
    session = world.session("a")
    session.user("findme")
    path = session.save()
    world.refresh()
    path.unlink()
    world.refresh()
    session.save()
    assert world.sessions_found("findme") == [session.id] and world.view(session)["deleted"] is False


def test_the_registry_can_delete_and_undelete(world: World) -> None:
    session = world.say("a", "findme")
    registry = world.folder / "registry.jsonl"
    registry.write_text(json.dumps({"sessionId": session.id, "deletedAt": "2026-03-05T00:00:00Z"}) + "\n")
    world.history(registry=registry)
    assert world.sessions_found("findme") == []
    (hit,) = world.hits("findme", include_deleted=True)
    assert hit["session"]["deleted"] is True
    with open(registry, "a") as file:
        file.write(json.dumps({"sessionId": session.id, "deletedAt": None}) + "\n")
    assert world.sessions_found("findme", refresh=False) == [session.id]


# -- current ---------------------------------------------------------------------------------------------------------


def test_nothing_is_excluded_when_the_current_session_is_unknown(world: World) -> None:
    session = world.say("a", "findme")
    answer = world.search("findme")
    assert answer["currentSession"] == "unknown" and len(answer["results"]) == 1
    assert world.search("findme", include_current=True)["currentSession"] in ("unknown", "included")
    assert world.view(session)["current"] is False


def test_the_current_session_is_left_out_unless_it_is_asked_for(world: World) -> None:
    session, other = world.say("a", "findme"), world.say("b", "findme")
    world.history(current_session_id=session.id)
    answer = world.search("findme")
    assert answer["currentSession"] == "excluded" and world.sessions_found("findme") == [other.id]
    assert world.listed() == [other.id] and world.listed(session_id=session.id) == []
    assert world.sessions_found("findme", session_id=session.id) == []
    assert world.ask(operation="list", include_current=True)["currentSession"] == "included"
    hits = {
        hit["session"]["sessionId"]: hit["session"]["current"] for hit in world.hits("findme", include_current=True)
    }
    assert hits == {session.id: True, other.id: False}


@pytest.mark.parametrize("variable", ["SESSION_HISTORY_CURRENT", "PI_SESSION_ID"])
def test_the_environment_tells_the_current_session(
    world: World, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    session = world.say("a", "findme")
    monkeypatch.setenv(variable, session.id)
    world.history()
    assert world.search("findme")["currentSession"] == "excluded" and world.sessions_found("findme") == []


def test_our_own_variable_goes_before_pi_s(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = world.say("a", "findme"), world.say("b", "findme")
    monkeypatch.setenv("SESSION_HISTORY_CURRENT", one.id)
    monkeypatch.setenv("PI_SESSION_ID", other.id)
    world.history()
    assert world.sessions_found("findme") == [other.id]


def test_a_current_session_without_a_file_does_no_harm(world: World) -> None:
    session = world.say("a", "findme")
    world.history(current_session_id="not-written-yet")
    assert world.search("findme")["currentSession"] == "excluded" and world.sessions_found("findme") == [session.id]


# -- links -----------------------------------------------------------------------------------------------------------


def test_a_folder_link_is_followed_once(world: World) -> None:
    session = world.session("a")
    session.user("findme")
    path = session.save()
    os.symlink(path.parent, world.root / "--link--")
    os.symlink(world.root, path.parent / "circle")
    assert world.sessions_found("findme") == [session.id]
    assert world.sources()["selected"] == 1 and world.ask(operation="list")["complete"]


def test_a_folder_link_out_of_the_roots_is_followed(world: World) -> None:
    session = world.session("a")
    session.user("findme")
    path = session.save()
    outside = world.folder / "outside"
    path.parent.rename(outside)
    os.symlink(outside, world.root / "--link--")
    assert world.sessions_found("findme") == [session.id]


def test_a_file_link_that_leaves_the_roots_is_unavailable(world: World) -> None:
    session = world.session("a")
    session.user("findme")
    path = session.save()
    outside = world.folder / "outside.jsonl"
    path.rename(outside)
    os.symlink(outside, path)
    answer = world.search("findme", refresh=False)
    assert answer["results"] == [] and answer["freshness"]["sources"]["unavailable"] == 1 and not answer["complete"]


def test_a_file_link_inside_the_roots_is_the_same_file(world: World) -> None:
    session = world.session("a")
    session.user("findme")
    path = session.save()
    os.symlink(path, path.with_name("2026-03-02T10-00-00-000Z_link.jsonl"))
    assert world.sessions_found("findme") == [session.id] and world.sources()["selected"] == 1


def test_overlapping_roots_count_a_file_once(world: World) -> None:
    session = world.say("a", "findme")
    world.history(roots=[world.root, world.root / "--w-demo--", str(world.root) + "/", world.agent])
    assert world.sessions_found("findme") == [session.id] and world.sources()["selected"] == 1


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="needs a user whom permissions bind")
def test_a_file_that_may_not_be_read_is_unavailable(world: World) -> None:
    world.say("a", "findme")
    session = world.session("b")
    session.user("findme")
    session.save().chmod(0)
    answer = world.search("findme", refresh=False)
    assert len(answer["results"]) == 1 and answer["freshness"]["sources"]["unavailable"] == 1 and not answer["complete"]


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="needs the right to give files away")
def test_another_user_s_file_is_not_seen_and_not_counted(world: World) -> None:
    world.say("a", "findme")
    session = world.session("b")
    session.user("findme")
    os.chown(session.save(), 4242, -1)
    assert len(world.sessions_found("findme")) == 1
    assert world.sources()["selected"] == 1 and world.ask(operation="list")["complete"]


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="needs the right to give files away")
def test_under_an_explicit_root_the_root_owner_s_files_count(world: World) -> None:
    session, other = world.session("a"), world.session("b")
    for one, owner in ((session, 4242), (other, 4243)):
        one.user("findme")
        os.chown(one.save(), owner, -1)
    os.chown(world.root, 4242, -1)
    assert world.sessions_found("findme") == [session.id] and world.sources()["selected"] == 1


# -- files that share an id ------------------------------------------------------------------------------------------


def forked_in_place(world: World, name: str, *texts: str, **save: Any) -> SessionBuilder:
    """Another file of the session, which begins like the others and goes on with texts of its own."""
    session = world.session("a")
    session.user("how it began")
    for number, text in enumerate(texts):
        session.user(text, key=f"{name}{number}")
    session.save(name=name, **save)
    return session


def test_a_live_file_is_not_hidden_by_a_deleted_one(world: World) -> None:
    session = forked_in_place(world, "live.jsonl", "kept words")
    forked_in_place(world, "old.jsonl.deleted.2026-03-03T00-40-25.665Z", "dropped words", "later dropped words")
    assert world.texts("words") == ["kept words"] and world.view(session)["deleted"] is False
    assert world.view(session)["messageCount"] == 2
    assert sorted(world.texts("words", include_deleted=True)) == ["dropped words", "kept words", "later dropped words"]
    assert world.texts("began", include_deleted=True) == ["how it began"]
    world.refused(EntryNotVisible, operation="open", session_id=session.id, entry_id=OLD + "0")
    assert world.opened(session, OLD + "0", include_deleted=True)[:2] == ["how it began", "dropped words"]


OLD = "old.jsonl.deleted.2026-03-03T00-40-25.665Z"


def test_a_session_is_deleted_once_all_of_its_files_are(world: World) -> None:
    session = forked_in_place(world, "live.jsonl", "kept words")
    forked_in_place(world, OLD, "dropped words")
    world.refresh()
    path = world.root / "--w-demo--" / "live.jsonl"
    path.rename(path.with_name(path.name + ".deleted.2026-03-04T00-40-25.665Z"))
    assert world.texts("words") == [] and world.listed() == []
    (view,) = world.list(include_deleted=True)
    assert view["deleted"] is True and view["sessionId"] == session.id


def test_a_child_that_was_given_its_parents_id_does_not_hide_the_parent(world: World) -> None:
    parent = forked_in_place(world, "parent.jsonl", "words of the parent")
    forked_in_place(world, "run.jsonl", "words of the child", "later", folder="--w-demo--/parent/run-0")
    assert sorted(world.texts("words")) == ["words of the child", "words of the parent"]
    view = world.view(parent)
    assert (view["kind"], view["messageCount"], view["parentSessionId"]) == ("root", 2, None)
    assert world.listed(kind="root") == [parent.id] and world.listed(kind="child") == []
    assert sorted(world.texts("words", kind="root")) == ["words of the child", "words of the parent"]


def test_an_older_copy_is_a_duplicate_and_adds_nothing(world: World) -> None:
    session = forked_in_place(world, "older.jsonl", "findme")
    newer = world.session("a")
    newer.user("how it began")
    newer.user("findme", key="older.jsonl0")
    newer.user("findme later")
    newer.save(name="newer.jsonl")
    answer = world.search("findme")
    assert sorted(hit["snippet"] for hit in answer["results"]) == ["findme", "findme later"]
    sources = answer["freshness"]["sources"]
    assert (sources["selected"], sources["indexed"], sources["duplicate"]) == (2, 1, 1)
    assert world.view(session)["messageCount"] == 3


def test_what_is_abandoned_in_one_file_is_visible_where_another_still_stands_on_it(world: World) -> None:
    session = forked_in_place(world, "one.jsonl", "first way", "way further")
    other = world.session("a")
    start = other.user("how it began")
    other.user("first way", key="one.jsonl0")
    other.user("second way", parent=start)
    other.save(name="other.jsonl")
    assert sorted(world.texts("way")) == ["first way", "second way", "way further"]
    assert [message for message in world.opened(session, "one.jsonl0")] == ["how it began", "first way", "way further"]
    assert sorted(world.texts("way", branch="any")) == ["first way", "second way", "way further"]


def test_no_more_than_three_hits_come_from_the_files_of_one_session(world: World) -> None:
    forked_in_place(world, "one.jsonl", *(f"word {n}" for n in range(4)))
    forked_in_place(world, "other.jsonl", *(f"word again {n}" for n in range(4)))
    elsewhere = [world.say(f"b{n}", "the word elsewhere") for n in range(3)]
    found = world.sessions_found("word", limit=6)
    assert found.count(world.session("a").id) == 3 and {one.id for one in elsewhere} < set(found)


@pytest.mark.parametrize("kind", ["current", "registry"])
def test_all_files_of_a_session_are_left_out_with_it(world: World, kind: str) -> None:
    session = forked_in_place(world, "one.jsonl", "first words")
    forked_in_place(world, "other.jsonl", "second words")
    if kind == "current":
        world.history(current_session_id=session.id)
        wide = {"include_current": True}
    else:
        registry = world.folder / "registry.jsonl"
        registry.write_text(json.dumps({"sessionId": session.id, "deletedAt": "2026-03-05T00:00:00Z"}) + "\n")
        world.history(registry=registry)
        wide = {"include_deleted": True}
    assert world.texts("words") == [] and world.listed() == []
    assert sorted(world.texts("words", **wide)) == ["first words", "second words"]


def test_a_headerless_file_that_goes_on_after_a_reset_is_of_its_session(world: World) -> None:
    session = world.session("a")
    session.user("words before")
    session.save(name=f"{session.id}.jsonl.reset.2026-03-03T02-13-29.008Z")
    later = world.session("a", header=False)
    later.user("words after", at="2026-03-04T00:00:00.000Z", key="after")
    later.save(name=f"{session.id}.jsonl")
    assert sorted(world.texts("words")) == ["words after", "words before"] and world.listed() == [session.id]
    view = world.view(session)  # the header still says where it worked
    assert (view["cwd"], view["name"]) == ("/w/demo", f"demo-{view['shortId']}")
    assert world.listed(cwd="/w/demo") == [session.id]


# -- what a call selects ---------------------------------------------------------------------------------------------


def selected(world: World, **arguments: Any) -> dict[str, int]:
    sources: dict[str, int] = world.ask(operation="list", **arguments)["freshness"]["sources"]
    return {name: sources[name] for name in ("selected", "indexed", "changed", "missing", "duplicate", "damaged")}


def test_the_sources_are_those_that_a_call_selects(world: World) -> None:
    here = world.say("a", "word", cwd="/w/here")
    world.say("b", "word", cwd="/w/elsewhere")
    child = world.session("c", cwd="/w/here/below")
    child.user("word")
    child.raw("{broken")
    child.save(f"--w-demo--/{here.path().stem}")
    world.refresh()
    one = {"changed": 0, "missing": 0, "duplicate": 0, "damaged": 0}
    assert selected(world) == {**one, "selected": 3, "indexed": 3, "damaged": 1}
    assert selected(world, cwd="/w/here") == {**one, "selected": 2, "indexed": 2, "damaged": 1}
    assert selected(world, cwd="/w/here", kind="root") == {**one, "selected": 1, "indexed": 1}
    assert selected(world, kind="child") == {**one, "selected": 1, "indexed": 1, "damaged": 1}
    assert selected(world, session_id=here.id) == {**one, "selected": 1, "indexed": 1}
    for nothing in (
        {"cwd": "/w/nowhere"},
        {"session_id": "nobody"},
        {"session_id": here.id, "kind": "child"},
        {"session_id": here.id, "cwd": "/w/elsewhere"},
    ):
        answer = world.ask(operation="list", **nothing)
        assert answer["freshness"]["sources"]["selected"] == 0 and answer["complete"]


def test_an_id_that_nobody_has_selects_nothing_also_in_the_first_call(world: World) -> None:
    world.say("a", "the walrus rollout")
    answer = world.search("walrus", session_id="nobody")
    assert answer["freshness"]["sources"]["selected"] == 0 and answer["complete"]
    assert answer["hints"]["outsideFilters"] == 1


def test_what_changed_outside_a_selection_does_not_make_its_answer_incomplete(world: World) -> None:
    here = world.say("a", "word", cwd="/w/here")
    other = world.say("b", "word", cwd="/w/elsewhere")
    world.refresh()
    append(other.path(), [b'{"type":"x"}'])
    answer = world.search("word", refresh=False, cwd="/w/here")
    assert answer["complete"] and answer["freshness"]["sources"]["selected"] == 1
    answer = world.search("word", refresh=False, cwd="/w/elsewhere")
    assert not answer["complete"] and answer["freshness"]["sources"]["changed"] == 1
    world.say("c", "word")  # of which nobody knows yet where it worked
    answer = world.search("word", refresh=False, cwd="/w/here")
    assert not answer["complete"] and answer["freshness"]["sources"]["selected"] == 2
    assert not world.search("word", refresh=False, session_id="nobody")["complete"]
    assert world.search("word", refresh=False, session_id=here.id)["complete"]


@pytest.mark.parametrize("field", ["header", "asked"])
def test_a_folder_is_the_same_in_either_form_of_unicode(world: World, field: str) -> None:
    forms = ["/w/caf\u00e9/Z\u00fcrich", "/w/cafe\u0301/Zu\u0308rich"]
    written, asked = forms if field == "header" else forms[::-1]
    session = world.say("a", "word", cwd=written)
    assert world.listed(cwd=asked) == [session.id]


def test_case_does_not_count_below_a_drive_letter_and_counts_elsewhere(world: World) -> None:
    windows = world.say("a", "word", cwd="D:\\Work\\Demo")
    world.say("b", "word", cwd="/w/Demo")
    assert world.listed(cwd="d:/work/demo") == world.listed(cwd="D:\\WORK") == [windows.id]
    assert world.listed(cwd="/w/demo") == []


@pytest.mark.skipif(os.name == "nt", reason="links")
def test_a_folder_is_found_by_the_name_of_a_link_to_it(world: World) -> None:
    (world.folder / "real").mkdir()
    (world.folder / "link").symlink_to(world.folder / "real")
    real = os.path.realpath(world.folder / "real")
    sessions = [world.say("a", "word", cwd=real), world.say("b", "word", cwd=str(world.folder / "link"))]
    assert sorted(world.listed(cwd=str(world.folder / "link"))) == sorted(one.id for one in sessions)


@pytest.mark.parametrize("cwd", [".", "x", "../x", "~/x", "D:x"])
def test_a_relative_folder_is_refused_with_what_to_write(world: World, cwd: str) -> None:
    problem = world.refused(InvalidRequest, operation="list", cwd=cwd)
    assert "cwd" in str(problem) and "absolute" in (problem.hint or "") and cwd + " " not in str(problem)


@pytest.mark.parametrize("asked", [False, True])
def test_what_a_cloned_repository_brings_along_is_not_the_user_s_past(
    world: World, monkeypatch: pytest.MonkeyPatch, asked: bool
) -> None:
    planted = World(world.folder / "repository")
    planted.say("planted", "common planted")
    own = world.say("own", "common own")
    (world.folder / "repository" / ".pi").mkdir()
    (world.folder / "repository" / ".pi" / "settings.json").write_text('{"sessionDir": "agent/sessions"}')
    monkeypatch.chdir(world.folder / "repository")
    for name in ("PI_CODING_AGENT_SESSION_DIR", "SESSION_HISTORY_ROOTS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PI_CODING_AGENT_DIR", str(world.agent))
    monkeypatch.setenv("SESSION_HISTORY_PROJECT_SETTINGS", "on" if asked else "")
    world.history(roots=None)
    hits = world.hits("common")
    assert {hit["snippet"]: hit["session"].get("root") for hit in hits} == (
        {"common own": None, "common planted": "project"} if asked else {"common own": None}
    )
    assert world.view(own).get("root") is None
