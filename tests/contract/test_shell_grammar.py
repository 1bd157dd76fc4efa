"""What may be typed: words and options in any order, parts of ids, times in words; and what a mistake is answered with."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from builder import ArchiveBuilder, SessionBuilder
from harness_session_history import InvalidRequest, cli
from harness_session_history.options import arguments_of, parse
from harness_session_history.response import short_id


def given(*words: str) -> dict[str, Any]:
    """The arguments that these words ask for."""
    arguments = arguments_of(parse(words))
    assert arguments is not None
    return arguments


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    assert cli.main(["--json", *words]) == 2
    error: dict[str, Any] = json.loads(capsys.readouterr().out)["error"]
    return error


# -- order ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        "search rollback decision --limit 3 --include-deleted --root /w",
        "--root /w --limit 3 --include-deleted search rollback decision",
        "search --limit=3 rollback --root /w --include-deleted decision",
        "--include-deleted search --root=/w rollback decision --limit 3",
        "--limit 3 search --include-deleted --root /w -- rollback decision",
    ],
)
def test_options_and_words_may_stand_anywhere(words: str) -> None:
    wanted = {"operation": "search", "query": "rollback decision", "limit": 3, "include_deleted": True}
    assert given(*words.split()) == wanted
    assert parse(words.split()).root == ["/w"]


def test_a_query_may_have_any_number_of_words() -> None:
    words = [f"w{number}" for number in range(40)]
    assert given("search", *words[:20], "--limit", "2", *words[20:])["query"] == " ".join(words)


@pytest.mark.parametrize(
    ("words", "query"),
    [
        (["search", "-5", "degrees"], "-5 degrees"),
        (["search", "--", "--limit", "3"], "--limit 3"),
        (["search", "-"], "-"),
        (["search", "minus -x"], "minus -x"),
        (["search", '"a phrase"', "b*"], '"a phrase" b*'),
    ],
)
def test_what_is_no_option_is_a_word_of_the_query(words: list[str], query: str) -> None:
    assert given(*words) == {"operation": "search", "query": query}


def test_roots_before_and_after_the_command_add_up() -> None:
    assert parse(["--root", "a", "list", "--root", "b"]).root == ["a", "b"]


def test_an_option_is_no_value_of_the_option_before_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert "--limit: expected one argument" in refused(capsys, "list", "--limit", "--refresh")["message"]


def test_doctor_and_refresh_take_the_session_as_the_other_commands_do() -> None:
    for command in ("refresh", "doctor"):
        assert parse([command, "--session-id", "s"]).session_id == parse([command, "--session", "s"]).session_id == "s"
    assert parse(["doctor", "--session-id", "s", "--entry-id", "e"]).entry_id == "e"


# -- mistakes --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("serach x", "search"),
        ("lsit", "list"),
        ("opne a b", "open"),
        ("docter", "doctor"),
        ("list --limt 3", "--limit"),
        ("search x --include-delete", "--include-deleted"),
        ("open a b --max-char 300", "--max-chars"),
        ("doctor --sesion-id x", "--session-id"),
    ],
)
def test_a_slip_is_answered_with_what_was_meant(capsys: pytest.CaptureFixture[str], words: str, meant: str) -> None:
    assert refused(capsys, *words.split())["hint"].startswith(f"Did you mean {meant}? ")


def test_nothing_is_suggested_where_nothing_is_near(capsys: pytest.CaptureFixture[str]) -> None:
    assert "mean" not in refused(capsys, "frobnicate")["hint"]
    assert "mean" not in refused(capsys, "list", "--xyz")["hint"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("search x --limit 99", "--limit must be an integer 1–20; got 99, of type int"),
        ("search x --snippet-chars ten", "--snippet-chars must be an integer 80–800"),
        ("list --since someday", "--since must be an ISO-8601 date or time"),
        ("list --kind leaf", "--kind must be one of any, root, child"),
        ("search x --roles user,system", "--roles must be a list"),
        ("open s e --before 9", "--before must be an integer 0–8"),
        (f"open {'s' * 129} e", "SESSION must be a string of 1–128 characters"),
        (f"open s {'e' * 129}", "ENTRY must be a string of 1–128 characters"),
        (f"search {'q' * 513}", "QUERY must be a string of 1–512 characters"),
        (f"list --session-id {'s' * 129}", "--session-id must be a string of 1–128 characters"),
    ],
)
def test_a_wrong_value_is_named_as_it_was_typed(capsys: pytest.CaptureFixture[str], words: str, message: str) -> None:
    assert refused(capsys, *words.split())["message"].startswith(message)


# -- times -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "ago"),
    [
        ("7d", timedelta(days=7)),
        ("12h", timedelta(hours=12)),
        ("90m", timedelta(minutes=90)),
        ("2w", timedelta(weeks=2)),
        ("7D ago", timedelta(days=7)),
        ("0d", timedelta()),
    ],
)
def test_a_time_may_be_said_as_a_time_before_now(said: str, ago: timedelta) -> None:
    for name in ("since", "until"):
        at = datetime.fromisoformat(given("list", f"--{name}", said)[name])
        assert abs(datetime.now(UTC) - ago - at) < timedelta(minutes=1)


@pytest.mark.skipif(not hasattr(time, "tzset"), reason="the zone cannot be set")
@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo", "America/Los_Angeles"])
def test_a_day_begins_where_the_person_is(zone: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        today = datetime.fromisoformat(given("list", "--since", "today")["since"]).astimezone()
        yesterday = datetime.fromisoformat(given("list", "--since", "Yesterday")["since"]).astimezone()
        assert (today.hour, today.minute, today.second, yesterday.hour) == (0, 0, 0, 0)
        assert today.date() == datetime.now().date() and yesterday.date() == today.date() - timedelta(days=1)
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize("said", ["2026-03-02", "2026-03-02T10:00+02:00"])
def test_a_written_time_is_passed_on_as_it_is(said: str) -> None:
    assert given("search", "x", "--since", said)["since"] == said


@pytest.mark.parametrize("said", ["d", "-7d", "7y", "999999w", "7 d", "tomorrow", "٧d", ""])
def test_a_time_that_is_none_is_refused(capsys: pytest.CaptureFixture[str], said: str) -> None:
    error = refused(capsys, "list", f"--since={said}")
    assert error["message"].startswith("--since must be")
    assert "7d" in error["hint"] and "yesterday" in error["hint"]


# -- sessions --------------------------------------------------------------------------------------------------------------


@pytest.fixture
def archive(tmp_path: Path) -> tuple[SessionBuilder, SessionBuilder]:
    archive = ArchiveBuilder(tmp_path)
    made = []
    for name, id_ in (("one", "0192aaaa-0000-7000-8000-000000000001"), ("two", "0192aaab-0000-7000-8000-000000000002")):
        session = archive.session(name, id=id_)
        session.user(f"the plover of {name}")
        session.assistant(f"last word of {name}")
        session.save()
        made.append(session)
    return made[0], made[1]


def run(session: SessionBuilder, capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, Any]]:
    index = session.archive.agent.parent / "i" / "history.sqlite3"
    status = cli.main(
        ["--root", str(session.archive.root), "--index", str(index), "--no-maintenance", "--json", *words]
    )
    return status, json.loads(capsys.readouterr().out)


def test_open_without_an_entry_shows_the_last_one(
    archive: tuple[SessionBuilder, SessionBuilder], capsys: pytest.CaptureFixture[str]
) -> None:
    status, answer = run(archive[0], capsys, "open", archive[0].id)
    assert status == 0 and answer["moreAfter"] == 0
    assert [message["text"] for message in answer["messages"]] == ["the plover of one", "last word of one"]
    assert answer["entryId"] == archive[0].last


def parts_of(session: SessionBuilder) -> list[str]:
    short = short_id(session.id)
    return [short, short.upper(), short[:6], session.id, session.id[:8], session.id[:-1]]


def test_a_session_may_be_named_by_a_part_of_its_id_that_is_its_alone(
    archive: tuple[SessionBuilder, SessionBuilder], capsys: pytest.CaptureFixture[str]
) -> None:
    one, two = archive
    for said in parts_of(one):
        assert run(one, capsys, "open", said, one.last or "")[1]["sessionId"] == one.id
        assert run(one, capsys, "open", said)[1]["sessionId"] == one.id
        assert run(one, capsys, "open", f"session:{said}/entry:{one.last}")[1]["sessionId"] == one.id
        (listed,) = run(one, capsys, "list", "--session-id", said)[1]["results"]
        assert listed["sessionId"] == one.id
        hits = run(one, capsys, "search", "plover", "--session-id", said)[1]["results"]
        assert [hit["session"]["sessionId"] for hit in hits] == [one.id]
        assert run(one, capsys, "refresh", "--session-id", said)[0] == 0
    assert run(two, capsys, "open", two.id[:8])[1]["sessionId"] == two.id


def test_a_part_of_two_ids_is_refused(
    archive: tuple[SessionBuilder, SessionBuilder], capsys: pytest.CaptureFixture[str]
) -> None:
    status, answer = run(archive[0], capsys, "open", "0192aaa")
    assert status == 2 and answer["error"]["message"] == "the ids of 2 sessions begin so"


@pytest.mark.parametrize("said", ["0192bbbb", "zzzz", "019", "nothing"])
def test_a_part_of_no_id_is_not_found(
    archive: tuple[SessionBuilder, SessionBuilder], capsys: pytest.CaptureFixture[str], said: str
) -> None:
    for words in (["open", said], ["open", said, "e"]):
        assert run(archive[0], capsys, *words)[1]["error"]["code"] == "session_not_found"
    assert run(archive[0], capsys, "list", "--session-id", said)[1]["results"] == []


def test_a_part_of_an_id_finds_nothing_out_of_scope(
    archive: tuple[SessionBuilder, SessionBuilder], capsys: pytest.CaptureFixture[str]
) -> None:
    one, _ = archive
    for said in parts_of(one):
        status, hidden = run(one, capsys, "--current", one.id, "open", said)
        assert status == 3 and hidden["error"]["code"] == "session_not_found"
        assert run(one, capsys, "--current", one.id, "--include-current", "open", said)[1]["sessionId"] == one.id


def test_a_session_without_entries_says_that_none_can_be_shown(
    archive: tuple[SessionBuilder, SessionBuilder], capsys: pytest.CaptureFixture[str]
) -> None:
    empty = archive[0].archive.session("empty", id="0192cccc-0000-7000-8000-000000000003")
    empty.tool("output")
    empty.save()
    status, answer = run(empty, capsys, "open", "0192cccc", "--refresh")
    assert status == 3 and answer["error"]["code"] == "entry_not_visible"


def test_a_new_session_is_found_by_its_short_id_though_it_is_not_indexed_yet(
    archive: tuple[SessionBuilder, SessionBuilder], capsys: pytest.CaptureFixture[str]
) -> None:
    run(archive[0], capsys, "list")
    late = archive[0].archive.session("late", id="0192dddd-0000-7000-8000-000000000004")
    late.user("just now")
    late.save()
    assert run(late, capsys, "open", short_id(late.id))[1]["messages"][0]["text"] == "just now"


def test_words_that_ask_for_nothing_are_refused_before_anything_is_read() -> None:
    with pytest.raises(InvalidRequest, match="a command is missing"):
        parse(["--root", "/w"])
