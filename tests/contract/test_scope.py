"""Which files are sessions, which sessions may be seen, and what has become of the others."""

from __future__ import annotations

import json
import os

import pytest

from builder import SessionBuilder, stamp
from world import World

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
    """A session in two files, whose last entries are so many seconds old."""
    session = world.session("a")
    session.user("shared")
    for name, second in (("one.jsonl", one), ("other.jsonl", other)):
        made = world.session("a")
        made.lines = list(session.lines)
        made.count, made.last = session.count, session.last
        made.user("findme same" if same else f"findme {name}", at=stamp(second))
        made.save(name=name)
    return session


def test_of_two_files_the_one_with_the_latest_activity_counts(world: World) -> None:
    twice(world, 20, 10)
    assert world.texts("findme") == ["findme one.jsonl"]
    twice(world, 20, 30)
    assert world.texts("findme") == ["findme other.jsonl"]
    assert world.sources()["duplicate"] == 1 and len(world.listed()) == 1


@pytest.mark.parametrize("read_on", [False, True])
def test_a_replaced_entry_does_not_make_a_file_the_one_that_counts(world: World, read_on: bool) -> None:
    twice(world, 20, 30)
    session = world.session("a")
    session.user("findme first", at=stamp(10))
    session.user("findme replaced", at=stamp(90), key="late")
    if read_on:
        session.save(name="third.jsonl")
        assert "findme replaced" in world.texts("findme")
    session.user("findme replacing", at=stamp(15), key="late", parent=None)
    session.save(name="third.jsonl")
    assert world.texts("findme") == ["findme other.jsonl"]


def test_of_two_files_of_one_moment_the_larger_counts(world: World) -> None:
    twice(world, 20, 20)
    assert world.texts("findme") == ["findme other.jsonl"]


def test_of_two_equal_files_one_counts(world: World) -> None:
    twice(world, 20, 20, same=True)
    assert world.texts("findme") == ["findme same"] and "alsoIn" not in world.hits("findme")[0]


def test_when_the_file_that_counts_goes_the_other_takes_its_place(world: World) -> None:
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
