"""Masking of secrets, an extra: in every text of an answer alike, before it is cut, with a count. All secrets are made up here
when the tests run."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import random
import string
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_session_history import IndexUnavailable, InvalidRequest, SessionHistory, SessionHistoryError
from harness_session_history.answer import redact
from harness_session_history.answer.redact import HIDDEN, finish, masked
from recall_calls import called, history
from world import World, check_answer

installed = importlib.util.find_spec("kingfisher_sdk") is not None
needs_library = pytest.mark.skipif(not installed, reason="the extra redact is not installed")

_random = random.Random(7)


def drawn(count: int, letters: str = string.ascii_letters + string.digits) -> str:
    return "".join(_random.choice(letters) for _ in range(count))


#: In pieces, so that nothing that looks for secrets finds one in this file.
KEY_ID, KEY = "AK" + "IA" + drawn(16, string.ascii_uppercase + "234567"), drawn(40)
TOKEN = "gh" + "p_" + drawn(36)
PASSWORD = drawn(14)
PEM_BODY = [drawn(64) for _ in range(12)]
SECRETS = {
    "a GitHub token": (f"use {TOKEN} here", [TOKEN]),
    "an AWS key pair": (f"aws_access_key_id = {KEY_ID}\naws_secret_access_key = {KEY}", [KEY_ID, KEY]),
    "half of an AWS key pair": (f"AWS_SECRET_ACCESS_KEY={KEY}", [KEY]),
    "a private key": (
        "\n".join(["-----BEGIN " + "RSA PRIVATE KEY-----", *PEM_BODY, "-----END RSA " + "PRIVATE KEY-----"]),
        PEM_BODY,
    ),
    "a Slack token": ((slack := "xo" + f"xb-{drawn(12, '0123456789')}-{drawn(12, '0123456789')}-{drawn(24)}"), [slack]),
    "a Stripe key": ((stripe := "sk" + "_live_" + drawn(24)), [stripe]),
    "an npm token": ((npm := "np" + "m_" + drawn(36)), [npm]),
    "a password in an address": ("post" + f"gres://admin:{PASSWORD}@db.acme-internal.io:5432/main", [PASSWORD]),
}  # fmt: skip


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.close()


def shows(answer: Any, secret: str, piece: int = 8) -> bool:
    """Whether so long a piece of the secret stands anywhere in an answer."""
    said = json.dumps(answer, ensure_ascii=False)
    return any(secret[at : at + piece] in said for at in range(len(secret) - piece + 1))


# -- entries ----------------------------------------------------------------------------------------------------------


@needs_library
@pytest.mark.parametrize("kind", SECRETS)
def test_a_known_secret_is_masked_in_snippets_and_excerpts_and_counted(world: World, kind: str) -> None:
    text, secrets = SECRETS[kind]
    session = world.session("a")
    entry = session.user(f"the zebra is\n{text}\nuntil friday")
    session.save()
    world.history(redact=True)
    for answer in (world.search("zebra"), world.open(session, entry)):
        assert not any(shows(answer, secret) for secret in secrets)
        assert answer["redacted"] >= 1
        assert "***" in str(answer.get("results") or answer["messages"]) and HIDDEN not in str(answer)
    assert world.opened(session, entry)[0].startswith("the zebra is\n")
    assert world.opened(session, entry)[0].endswith("\nuntil friday")


@needs_library
@settings(max_examples=60, deadline=None)
@given(before=st.integers(0, 90), after=st.integers(0, 90), chars=st.integers(80, 140))
def test_however_a_snippet_is_cut_it_shows_no_piece_of_a_secret(before: int, after: int, chars: int) -> None:
    from harness_session_history.search.match import Matcher
    from harness_session_history.search.query import parse

    text = f"{'w ' * 40}zebra {'x ' * before}{TOKEN} {'y ' * after}zebra{' z' * 60}"
    snippet = {"snippet": Matcher(parse("zebra")).snippet(text, chars, "", masked(text))[0]}
    finish(snippet)
    assert "zebra" in snippet["snippet"] and len(snippet["snippet"]) <= chars
    assert not shows(snippet, TOKEN, piece=3)


@needs_library
def test_an_excerpt_that_is_cut_within_a_secret_shows_no_piece_of_it(world: World) -> None:
    session = world.session("a")
    entry = session.user("w " * 130 + TOKEN + " and so on" * 20)
    session.save()
    world.history(redact=True)
    for room in range(256, 330, 6):
        answer = world.open(session, entry, refresh=False, max_chars=room)
        assert not shows(answer, TOKEN, piece=4) and len(answer["messages"][0]["text"]) <= room


@needs_library
def test_a_snippet_around_a_match_within_a_secret_is_given_without_marks_in_the_mask(world: World) -> None:
    world.say("a", f"{'before ' * 40}{TOKEN}{' behind' * 40}")
    world.history(redact=True)
    answer = world.search(TOKEN[:12] + "*")
    (hit,) = answer["results"]
    assert "********" in hit["snippet"] and not shows(hit, TOKEN, piece=5)
    assert answer.marks == [[]]  # type: ignore[attr-defined]


@needs_library
def test_marks_stand_on_the_words_found_also_behind_a_mask(world: World) -> None:
    world.say("a", f"{'before ' * 40}{TOKEN} then zebra {' behind' * 40}")
    world.history(redact=True)
    answer = world.search("zebra")
    (hit,) = answer["results"]
    ((start, end),) = answer.marks[0]  # type: ignore[attr-defined]
    assert hit["snippet"][start:end] == "zebra" and "********" in hit["snippet"]


@needs_library
def test_a_secret_that_stands_again_where_nothing_tells_what_it_is_is_masked_there_too(world: World) -> None:
    session = world.session("a")
    entry = session.user(f"AWS_SECRET_ACCESS_KEY={KEY}\nzebra: somebody wrote {KEY} on the board")
    session.save()
    world.history(redact=True)
    answer = world.open(session, entry)
    assert not shows(answer, KEY) and answer["redacted"] == 2


@needs_library
def test_text_of_other_scripts_around_a_secret_stays_as_it_is(world: World) -> None:
    session = world.session("a")
    entry = session.user(f"\ufeff评审会议 😀 é {TOKEN} 明天 ñ {TOKEN} é́")
    session.save()
    world.history(redact=True)
    assert world.opened(session, entry)[0].endswith("评审会议 😀 é ******** 明天 ñ ******** é́")


@needs_library
@settings(max_examples=60, deadline=None)
@given(st.lists(st.one_of(st.just(TOKEN), st.just(KEY_ID), st.text(max_size=20)), max_size=8))
def test_a_masked_text_has_the_same_places(pieces: list[str]) -> None:
    text = " ".join(pieces)
    hidden = masked(text)
    assert len(hidden) == len(text) and TOKEN not in hidden
    assert all(new in (HIDDEN, old) or old == HIDDEN for old, new in zip(text, hidden, strict=True))


@needs_library
def test_a_mask_does_not_tell_how_long_the_secret_is_nor_takes_more_room() -> None:
    for size, mask in ((1, "*"), (8, "********"), (1700, "********")):
        said = {"text": "a " + HIDDEN * size + " b", "entry": HIDDEN}
        assert finish(said) == 1 and said == {"text": f"a {mask} b", "entry": HIDDEN}


# -- names, and who else shows texts ----------------------------------------------------------------------------------


@needs_library
def test_names_folders_and_lineages_are_masked_alike(world: World) -> None:
    parent = world.session("a", cwd=f"/w/{TOKEN}")
    parent.user("zebra")
    parent.save()
    child = world.session("b", cwd="/w/demo", parentSession=parent.id)
    child.user("zebra")
    child.add("session_info", name=f"rotate {TOKEN} soon")
    child.save()
    world.history(redact=True)
    listed = world.ask(operation="list", refresh=True)
    opened = world.ask(operation="list", session_id=child.id)["results"][0]
    for answer in (listed, opened, world.search("zebra"), world.search("zebra quokka")):
        assert not shows(answer, TOKEN)
    assert opened["name"] == "rotate ******** soon" and opened["lineage"].endswith("/rotate ******** soon")
    assert (
        opened["parentSessionId"] == parent.id and listed["redacted"] == 6
    )  # name, lineage, folder; name, twice in the lineage


@needs_library
def test_a_name_that_was_cut_within_a_secret_shows_no_piece_of_it(world: World) -> None:
    for room in range(1, 40, 6):
        session = world.session(f"s{room}")
        session.user("zebra")
        words = ("w " * 100)[: 200 - room]
        session.add("session_info", name=words.strip() + " " + TOKEN)
        session.save()
    world.history(redact=True)
    for view in world.list():
        assert not shows(view, TOKEN, piece=9)


@needs_library
def test_a_session_is_still_found_by_what_its_name_hides(world: World) -> None:
    session = world.session("a")
    session.user("zebra")
    session.add("session_info", name=f"rotate {TOKEN}")
    session.save()
    world.history(redact=True)
    (view,) = world.search(f"{TOKEN} rotate")["hints"]["sessions"]
    assert view["sessionId"] == session.id and view["name"] == "rotate ********"


@needs_library
def test_tools_and_their_callers_names_are_masked(world: World) -> None:
    session = world.session("a")
    session.user(f"zebra {TOKEN}", extra={"author": f"bot {TOKEN}"})
    asked, _ = session.tool("done", name=f"run_{TOKEN}")
    call = {"type": "toolCall", "id": "c", "name": f"say {TOKEN}", "arguments": {}}
    last = session.assistant([{"type": "text", "text": "quokka"}, call])
    session.save()
    world.history(redact=True)
    message = world.open(session, last)["messages"][-1]
    assert message["tools"] == [{"name": "say ********", "status": "unanswered"}]

    async def recalled() -> list[Any]:
        async with history(world, redact=True) as own:
            found = await called(own, session.id, "search", query="zebra")
            read = await called(own, session.id, "read", mode="items", entries=[asked], around=1)
            return [found, found.text, read, read.text]

    answers = asyncio.run(recalled())
    assert not any(shows(answer, TOKEN) or HIDDEN in str(answer) for answer in answers)
    assert answers[0]["hits"][0]["author"] == "bot ********" and answers[0]["redacted"] == 2
    assert answers[2]["redacted"] >= 3


@needs_library
def test_recall_reads_on_within_a_secret_that_a_page_was_cut_in(world: World) -> None:
    session = world.session("a")
    entry = session.user("word " * 9_300 + f"{TOKEN} " * 400 + "end")
    session.save()

    async def pages() -> list[Any]:
        async with history(world, redact=True) as own:
            read = [await called(own, session.id, "read", mode="items", entries=[entry])]
            while "next" in read[-1] and len(read) < 9:
                again = read[-1]["next"]
                read.append(await called(own, session.id, "read", mode="items", entries=[entry], cursor=again))
            return read

    read = asyncio.run(pages())
    assert len(read) > 1 and not any(shows([one, one.text], TOKEN) for one in read)
    assert read[-1]["entries"][0]["text"].endswith("end") and all(len(one.text.encode()) <= 50_000 for one in read)


@needs_library
def test_cards_and_text_say_that_there_are_masks(world: World) -> None:
    from harness_session_history.display.terminal import render_text

    world.say("a", f"zebra {TOKEN}")
    world.history(redact=True)
    answer: Any = world.search("zebra")
    for shown in (answer.text_for_model(), render_text(answer, color=False, width=100), answer._repr_html_()):
        assert TOKEN not in shown and "1 place masked with asterisks" in shown


@needs_library
def test_what_is_suggested_is_no_secret(world: World) -> None:
    world.say("a", f"zebra {TOKEN}", "quokka only")
    world.history(redact=True)
    answer = world.search(f"{TOKEN} wombatt quokkaa")
    assert not shows(answer["hints"]["suggestion"], TOKEN)


# -- on and off -------------------------------------------------------------------------------------------------------


def test_without_the_setting_nothing_is_masked_counted_or_loaded(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redact, "_scanner", lambda: pytest.fail("looked for secrets"))
    session = world.say("a", f"zebra {TOKEN}")
    answer = world.search("zebra")
    assert TOKEN in answer["results"][0]["snippet"] and "redacted" not in answer
    assert "redacted" not in world.ask(operation="list", session_id=session.id)


@needs_library
def test_an_answer_without_a_secret_counts_none(world: World) -> None:
    world.say("a", "zebra and its password is in the safe")
    world.history(redact=True)
    answer = world.search("zebra")
    assert answer["redacted"] == 0 and answer["results"][0]["snippet"] == "zebra and its password is in the safe"


@needs_library
def test_the_environment_switches_it_on_and_an_argument_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Callable[[], SessionHistory]] = [
        lambda: SessionHistory(roots=[tmp_path], index=tmp_path / "i" / "i"),
        lambda: SessionHistory(roots=[tmp_path], index=tmp_path / "i" / "i", redact=False),
        lambda: SessionHistory(roots=[tmp_path], index=tmp_path / "i" / "i", redact=True),
    ]
    for said, expected in (("", [False, False, True]), ("off", [False, False, True]), ("on", [True, False, True])):
        monkeypatch.setenv("SESSION_HISTORY_REDACT", said)
        assert [make().settings.redact for make in asked] == expected
    monkeypatch.setenv("SESSION_HISTORY_REDACT", "yes")
    with pytest.raises(InvalidRequest, match="SESSION_HISTORY_REDACT must be on or off"):
        asked[0]()


def test_another_type_than_a_boolean_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="redact must be True or False, not int"):
        SessionHistory(roots=[tmp_path], index=tmp_path / "i", redact=1)  # type: ignore[arg-type]


def test_without_the_extra_it_is_refused_with_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "kingfisher_sdk", None)
    with pytest.raises(InvalidRequest) as refused:
        SessionHistory(roots=[tmp_path], index=tmp_path / "i", redact=True)
    assert 'pip install "harness-session-history[redact]"' in str(refused.value)
    monkeypatch.setenv("SESSION_HISTORY_REDACT", "on")
    with pytest.raises(InvalidRequest):
        SessionHistory(roots=[tmp_path], index=tmp_path / "i")


@needs_library
def test_where_the_library_fails_nothing_is_shown_unmasked(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken:
        def scan(self, _raw: bytes) -> list[Any]:
            raise RuntimeError("broken")

    session = world.say("a", "zebra")
    world.history(redact=True)
    for broken in (lambda: Broken(), lambda: __import__("no_such_library")):
        monkeypatch.setattr(redact, "_scanner", broken)
        for arguments in ({"operation": "list"}, {"query": "zebra"}):
            error: SessionHistoryError = world.refused(IndexUnavailable, session_id=session.id, **arguments)
            assert "harness-session-history[redact]" in error.hint


def test_the_declared_shapes_know_the_count(world: World) -> None:
    world.say("a", "zebra")
    answer = world.search("zebra")
    check_answer({**answer, "redacted": 0})
    with pytest.raises(AssertionError):
        check_answer({**answer, "masked": 0})
