"""Cited spans come back verified or not at all (contract section 7)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from builder import ArchiveBuilder, SessionBuilder, line
from harness_session_history.archive.files import Unreadable
from harness_session_history.archive.hydration import hydrate, tool_statuses
from harness_session_history.model.entries import milliseconds
from harness_session_history.model.sources import FileIdentity
from transcripts import read


@pytest.fixture
def session(tmp_path: Path) -> SessionBuilder:
    return ArchiveBuilder(tmp_path).session("a")


def test_an_entry_comes_back_as_it_was_indexed(session: SessionBuilder) -> None:
    first = session.user("hello\x1b[31m there", at="2026-03-02T10:00:01.250Z")
    path = session.save()
    answer = hydrate(path, read(path).wanted)
    (entry,) = answer.entries
    assert entry is not None and (entry.node, entry.entry_id, entry.role, entry.text) == (0, first, 0, "hello there")
    assert entry.time == milliseconds("2026-03-02T10:00:01.250Z")
    assert answer.identity == FileIdentity.of(os.stat(path))


def test_it_brings_the_view_the_parts_and_the_tool_calls(session: SessionBuilder) -> None:
    session.user([{"type": "text", "text": "see"}, {"type": "image", "data": "AAAA", "mimeType": "image/png"}])
    session.assistant(
        [
            {"type": "thinking", "thinking": "hidden"},
            {"type": "text", "text": "done"},
            {"type": "toolCall", "id": "t1", "name": "bash", "arguments": {"command": "hidden"}},
        ],
        extra={"author": "Ada\n\x1b[1m L"},
    )
    path = session.save()
    asked, told = hydrate(path, read(path).wanted).entries
    assert asked is not None and (asked.text, asked.view, asked.author) == ("see", "see\n\n[image]", None)
    assert told is not None and [p.text for p in told.parts] == ["[thinking]", "done"]
    assert told.tools == [("t1", "bash")] and told.author == "Ada L"


def test_an_append_leaves_citations_valid(session: SessionBuilder) -> None:
    session.user("one")
    path = session.save()
    wanted, before = read(path).wanted, FileIdentity.of(os.stat(path))
    with path.open("ab") as file:
        file.write(b'{"type":"x"}\n')
    (entry,) = hydrate(path, wanted, seen=before).entries
    assert entry is not None and entry.text == "one"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"middle", b"MIDDLE"),
        (b'"user"', b'"tool"'),
        (b"10:00:01", b"10:00:02"),
        (b'"message","id":"', b'"message","id":"f'),
        (b'{"type":"message"', b'{"type":"messagE"'),
        (b'{"type":"message"', b'{"type":"message '),
        (b'"content"', b'"contenT"'),
    ],
)
def test_bytes_that_say_something_else_are_not_returned(session: SessionBuilder, old: bytes, new: bytes) -> None:
    session.user("the middle one")
    path = session.save()
    wanted = read(path).wanted
    path.write_bytes(path.read_bytes().replace(old, new))
    assert hydrate(path, wanted).entries == [None]


def test_a_truncated_file_gives_only_what_is_left(session: SessionBuilder) -> None:
    session.user("one")
    session.user("two")
    path = session.save()
    wanted = read(path).wanted
    os.truncate(path, wanted[1].offset + 5)
    one, two = hydrate(path, wanted).entries
    assert one is not None and two is None


def test_another_file_at_the_same_path_gives_nothing(session: SessionBuilder) -> None:
    session.user("one")
    path = session.save()
    wanted, before = read(path).wanted, FileIdentity.of(os.stat(path))
    copy = path.with_suffix(".new")
    copy.write_bytes(path.read_bytes())
    os.replace(copy, path)
    with pytest.raises(Unreadable):
        hydrate(path, wanted, seen=before)


def test_spans_that_were_never_given_out_are_refused(session: SessionBuilder) -> None:
    session.user("one")
    path = session.save()
    (good,) = read(path).wanted
    odd = [
        good._replace(offset=-1),
        good._replace(length=0),
        good._replace(length=1 << 40),
        good._replace(offset=good.offset + 1),
    ]
    odd += [good._replace(key=good.key[::-1]), good._replace(key=b""), good._replace(role=1)]
    assert hydrate(path, odd).entries == [None] * len(odd)


def test_an_id_may_change_its_place_in_the_file_but_not_its_record(session: SessionBuilder) -> None:
    session.user("one")
    path = session.save()
    (good,) = read(path).wanted
    (entry,) = hydrate(path, [good._replace(node=7)]).entries
    assert entry is not None and entry.text == "one"


def test_a_version_1_record_at_another_place_is_another_entry(tmp_path: Path) -> None:
    session = ArchiveBuilder(tmp_path).session("a", version=None)
    for text in ("one", "two"):
        made = session.message("user", text)
        session.raw(line({k: v for k, v in made.items() if k not in ("id", "parentId")}))
    path = session.save()
    wanted = read(path).wanted
    assert all(hydrate(path, wanted).entries)
    path.write_bytes(path.read_bytes().replace(b"one", b"ONE"))
    one, two = hydrate(path, wanted).entries
    assert one is None and two is not None


def test_version_1_records_are_told_whatever_lies_before_them(tmp_path: Path) -> None:
    session = ArchiveBuilder(tmp_path).session("a", version=None)
    said = []
    for number in range(40):
        odd = [b"[]", b"7", b"null", b"", b'{"type":"mess', b'{"type":"title"}{"type":"title"}', session.lines[0]]
        session.lines += [odd[at % len(odd)] for at in range(number * 5)]
        made = session.message("user", f"say {number}")
        said.append(line({key: value for key, value in made.items() if key not in ("id", "parentId")}).encode())
        session.raw(b'{"type":"mess' + said[-1] if number % 3 else said[-1])
    path = session.save(prefix=b"\xef\xbb\xbf", eol=b"\r\n")
    reading = read(path)
    for wanted in (reading.wanted, reading.wanted[::-1], reading.wanted[-1:]):
        entries = hydrate(path, wanted).entries
        assert all(entries) and len(entries) == len(wanted)


def test_values_before_a_version_1_record_are_counted_only_so_far(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = ArchiveBuilder(tmp_path).session("a", version=None)
    for text in ("one", "two"):
        session.lines += [b"[]"] * 3
        made = session.message("user", text)
        session.raw(line({key: value for key, value in made.items() if key not in ("id", "parentId")}))
    path = session.save()
    wanted = read(path).wanted
    monkeypatch.setattr("harness_session_history.archive.hydration._MAX_COUNTED", wanted[0].offset)
    one, two = hydrate(path, wanted).entries
    assert one is not None and two is None


def test_a_file_that_is_gone_is_unreadable(session: SessionBuilder, tmp_path: Path) -> None:
    with pytest.raises(Unreadable):
        hydrate(tmp_path / "gone.jsonl", [])
    with pytest.raises(Unreadable):
        tool_statuses(tmp_path / "gone.jsonl", 0, 10, ["t"])


# Tool calls


def test_tool_calls_end_well_or_badly_or_not_at_all(session: SessionBuilder) -> None:
    session.tool("fine", call="good")
    session.tool("oh", call="bad", error=True)
    session.assistant([{"type": "toolCall", "id": "open", "name": "bash", "arguments": {}}])
    session.say("user", '"toolCallId":"open"')
    size = session.save().stat().st_size
    assert tool_statuses(session.path(), 0, size, ["good", "bad", "open"]) == {"good": "ok", "bad": "error"}


def test_only_results_in_the_given_bytes_count(session: SessionBuilder) -> None:
    session.tool("fine", call="first")
    end = len(b"\n".join(session.lines)) + 1
    session.tool("fine", call="second")
    path = session.save()
    assert tool_statuses(path, 0, end, ["first", "second"]) == {"first": "ok"}
    assert tool_statuses(path, end, 1 << 40, ["first", "second"]) == {"second": "ok"}
    assert tool_statuses(path, 0, end, []) == {}


def test_odd_and_huge_results_are_understood(session: SessionBuilder) -> None:
    for call, content in (("a", "x" * 3_000_000), ("b", None), ("c", "text")):
        session.say("toolResult", content, extra={"toolCallId": call, "isError": "no" if call == "c" else call == "b"})
    odd = line(session.message("toolResult", "@", extra={"toolCallId": "d", "isError": False}))
    session.raw(odd.replace("@", "\\ud83d"))
    session.raw('{"toolCallId":')
    session.raw('{"type":"message","message":{"role":"user","toolCallId":"e"}}')
    path = session.save(end=b"")
    found = tool_statuses(path, 0, path.stat().st_size, list("abcde"))
    assert found == {"a": "ok", "b": "error", "c": "ok", "d": "ok"}


# Laws

parts = st.lists(
    st.fixed_dictionaries({"type": st.sampled_from(["text", "image", "thinking", "odd"]), "text": st.text(max_size=20)})
    | st.none()
    | st.text(max_size=3),
    max_size=4,
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(contents=st.lists(st.tuples(st.sampled_from(["user", "assistant"]), parts | st.text(max_size=20)), max_size=6))
def test_what_was_read_is_what_comes_back(tmp_path: Path, contents: list[tuple[str, object]]) -> None:
    session = ArchiveBuilder(tmp_path).session("a")
    for role, content in contents:
        made = session.message(role, [])
        made["message"]["content"] = content
        session.raw(line(made))
    path = session.save()
    reading = read(path)
    answers = hydrate(path, reading.wanted).entries
    assert [h and (h.node, h.role, h.time, h.text) for h in answers] == [
        (e.node, e.role, e.time, e.text) for e in reading.entries
    ]
