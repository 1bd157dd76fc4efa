"""Transcripts of every version and in every state of damage (contract section 6)."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from builder import ArchiveBuilder, line, stamp, uid
from harness_session_history.archive.branch import Tree
from harness_session_history.archive.entries import FileIdentity, entry_hash, entry_key, linear_id, milliseconds
from harness_session_history.archive.hydration import hydrate
from harness_session_history.archive.transcript import (
    NotASession,
    TranscriptReader,
    Unreadable,
    can_resume,
    id_from_name,
)
from reading import Reading, read, read_bytes

CORPUS = Path(__file__).resolve().parents[2] / "shared" / "corpus"
HEADER = line({"type": "session", "version": 3, "id": "s1", "timestamp": stamp(0), "cwd": "/w/demo"}).encode()
NAMED = "2026-03-02T10-00-00-000Z_named-1.jsonl"
fast = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture
def archive(tmp_path: Path) -> ArchiveBuilder:
    return ArchiveBuilder(tmp_path)


def message(entry_id: str, text: object, parent: str | None = None, role: str = "user", second: int = 1) -> bytes:
    content = [{"type": "text", "text": text}] if isinstance(text, str) else text
    made = {"type": "message", "id": entry_id, "parentId": parent, "timestamp": stamp(second)}
    return line({**made, "message": {"role": role, "content": content, "timestamp": 1}}).encode()


def lines(*parts: bytes, end: bytes = b"\n") -> bytes:
    return b"\n".join([HEADER, *parts]) + end


# Header and identity


def test_the_header_tells_who_where_and_when(archive: ArchiveBuilder) -> None:
    session = archive.session("a", cwd="/w/shop", parentSession="/x/parent.jsonl")
    session.user("hello", at=stamp(5))
    session.assistant("hi", at=stamp(9))
    facts = read(session.save()).facts
    assert (facts.session_id, facts.cwd, facts.parent_session) == (session.id, "/w/shop", "/x/parent.jsonl")
    assert (facts.version, facts.linear, facts.named_by_file) == (3, False, False)
    assert facts.started == milliseconds(stamp(0))
    assert (facts.first_time, facts.last_time) == (milliseconds(stamp(5)), milliseconds(stamp(9)))


def test_the_old_name_of_the_parent_session_is_understood(archive: ArchiveBuilder) -> None:
    session = archive.session("a", version=2, branchedFrom="/x/old.jsonl")
    session.user("hello")
    assert read(session.save()).facts.parent_session == "/x/old.jsonl"


@pytest.mark.parametrize(("given_version", "version"), [(99, 99), ("3", 3), (None, 3), (True, 3), (2, 2), (3.0, 3)])
def test_unknown_versions_are_read_as_the_newest(tmp_path: Path, given_version: object, version: int) -> None:
    header = line({"type": "session", "version": given_version, "id": "s1"}).encode()
    reading = read_bytes(tmp_path, header + b"\n" + message("a", "hello") + b"\n")
    assert reading.facts.version == version and reading.texts == ["hello"]


def test_header_fields_of_a_wrong_type_count_as_absent(tmp_path: Path) -> None:
    header = line(
        {"type": "session", "version": 3, "id": "s1", "timestamp": {}, "cwd": 5, "parentSession": []}
    ).encode()
    facts = read_bytes(tmp_path, header + b"\n").facts
    assert (facts.cwd, facts.parent_session, facts.started) == (None, None, None)


def test_a_header_behind_blank_damaged_and_foreign_lines_is_found(tmp_path: Path) -> None:
    before = b'\n  \r\n{"type":"sess\n{"type":"title","title":"t"}\n5\n'
    reading = read_bytes(tmp_path, before + lines(message("a", "hello")))
    assert reading.facts.session_id == "s1" and reading.texts == ["hello"]
    assert (reading.facts.damaged, reading.facts.damaged_lines, reading.facts.nodes) == (1, [3], 1)


def test_a_second_header_changes_nothing_and_is_no_entry(tmp_path: Path) -> None:
    second = line({"type": "session", "version": 1, "id": "s2", "cwd": "/other"}).encode()
    reading = read_bytes(tmp_path, lines(message("a", "one"), second, message("b", "two", "a")))
    assert reading.facts.session_id == "s1" and reading.facts.nodes == 2 and reading.links == {}


def test_a_byte_order_mark_and_cr_lf_ends_are_accepted(archive: ArchiveBuilder) -> None:
    session = archive.session("a")
    session.user("one")
    session.assistant("two")
    path = session.save(eol=b"\r\n", end=b"\r\n", prefix=b"\xef\xbb\xbf")
    reading = read(path)
    assert reading.texts == ["one", "two"] and reading.facts.damaged == 0
    assert [h.text for h in hydrate(path, reading.wanted).entries if h] == ["one", "two"]


def test_a_headerless_file_of_entries_is_named_by_its_file(archive: ArchiveBuilder) -> None:
    session = archive.session("a", header=False)
    session.user("hello")
    facts = read(session.save()).facts
    assert (facts.session_id, facts.named_by_file, facts.cwd) == (session.id, True, None)


def test_a_headerless_file_without_an_id_in_its_name_is_not_a_session(tmp_path: Path) -> None:
    with pytest.raises(NotASession):
        read_bytes(tmp_path, message("a", "hello") + b"\n", "session.jsonl")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\n\n",
        b"plain terminal text\n",
        b'{"agent":"w","task":"x","ts":1}\n',
        b'{"v":4,"kind":"header","id":"x","storageVersion":1,"createdAt":1,"cwd":"/"}\n' + message("a", "x") + b"\n",
        b'{"parentUuid":null,"sessionId":"x","type":"user","message":{"role":"user","content":"q"},"uuid":"u",'
        b'"timestamp":"2026-03-02T10:00:00.000Z"}\n',
        b'{"type":"session","id":5,"version":3}\n',
        line({"type": "session", "id": "x" * 129}).encode() + b"\n",
        b"[1]\n5\n",
        b'{"type":"message"',
    ],
)
def test_other_files_are_not_sessions_whatever_their_name(tmp_path: Path, data: bytes) -> None:
    for name in ("x.jsonl", NAMED):
        with pytest.raises(NotASession):
            read_bytes(tmp_path, data, name)


def test_a_foreign_file_is_given_up_early(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.jsonl"
    with path.open("wb") as file:
        file.write(b'{"a":1}\n' * 100_000)
        file.truncate(3 << 30)
    with pytest.raises(NotASession):
        list(TranscriptReader(path))
    with path.open("wb") as file:
        file.truncate(3 << 30)
    with pytest.raises(NotASession):
        list(TranscriptReader(path))


@pytest.mark.parametrize(
    ("name", "session_id"),
    [
        ("2026-03-02T10-00-00-000Z_abc.jsonl", "abc"),
        ("2026-03-02T10-00-00-000Z_a_b.jsonl.reset.2026-03-03T00-00-00.000Z", "a_b"),
        ("2026-03-02T10-00-00-000Z_abc.jsonl.deleted.2026-03-03T00-00-00.000Z", "abc"),
        ("session.jsonl", None),
        ("my_notes.jsonl", None),
        ("2026-03-02T10-00-00-000Z_.jsonl", None),
        ("2026-03-02T10-00-00-000Z_abc.json", None),
    ],
)
def test_the_id_in_a_file_name(name: str, session_id: str | None) -> None:
    assert id_from_name(name) == session_id


def test_what_cannot_be_opened_is_unreadable_and_the_message_holds_no_path(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.jsonl"
    os.mkfifo(pipe)
    for path in (tmp_path / "missing.jsonl", tmp_path, pipe):
        with pytest.raises(Unreadable) as caught:
            list(TranscriptReader(path))
        assert str(tmp_path) not in str(caught.value)


# Entries


def test_every_known_and_unknown_type_is_a_link_of_the_tree(tmp_path: Path) -> None:
    types = ["model_change", "label", "session_info", "usage", "context_edit", "custom", "from_the_future"]
    made = [
        line({"type": t, "id": f"e{i}", "parentId": f"e{i - 1}" if i else None}).encode() for i, t in enumerate(types)
    ]
    reading = read_bytes(tmp_path, lines(*made, message("last", "end", f"e{len(types) - 1}")))
    assert reading.kinds == b"\0" * len(types) + b"\3" and reading.links == {}


def test_kinds_tell_role_and_text_apart(archive: ArchiveBuilder) -> None:
    session = archive.session("a")
    session.user("q")
    session.tool("result")
    session.assistant("a")
    session.user([{"type": "image", "data": "AAAA", "mimeType": "image/png"}])
    session.user(" \n ")
    session.add("custom_message", customType="x", content="not text", display=True)
    for role in ("system", "developer", "bashExecution", "custom", "hookMessage", "martian"):
        session.say(role, "not text")
    reading = read(session.save())
    assert list(reading.kinds) == [3, 2, 0, 4, 1, 1, 0, 0, 0, 0, 0, 0, 0]
    assert reading.texts == ["q", "a"]


def test_only_parents_that_are_not_the_entry_before_are_listed(tmp_path: Path) -> None:
    reading = read_bytes(
        tmp_path, lines(message("a", "1", "gone"), message("b", "2", "a"), message("c", "3", "a"), message("d", "4"))
    )
    assert reading.links == {0: entry_hash("gone"), 2: entry_hash("a"), 3: None}


@pytest.mark.parametrize("parent", ["null", '""', "5", "[]", None])
def test_a_parent_that_names_nothing_makes_a_root(tmp_path: Path, parent: str | None) -> None:
    rest = "" if parent is None else f'"parentId":{parent},'
    odd = f'{{"type":"x",{rest}"id":"b"}}'.encode()
    assert read_bytes(tmp_path, lines(message("a", "1"), odd)).links == {1: None}


@pytest.mark.parametrize(
    "odd",
    [
        b'{"type":"message"}',
        b'{"type":"message","id":5,"message":{"role":"user","content":"x"}}',
        b'{"type":"message","id":"","parentId":null,"message":{"role":"user","content":"x"}}',
        b"5",
        b'"text"',
        b"[1,2]",
        b"null",
        b"{}",
    ],
)
def test_values_without_an_id_are_no_entries_and_no_damage(tmp_path: Path, odd: bytes) -> None:
    reading = read_bytes(tmp_path, lines(message("a", "1"), odd, message("b", "2", "a")))
    assert (reading.facts.nodes, reading.facts.damaged, reading.links) == (2, 0, {})
    assert reading.texts == ["1", "2"]


@pytest.mark.parametrize(
    "body",
    [
        "null",
        '"text"',
        "[]",
        "{}",
        '{"role":null}',
        '{"role":"user"}',
        '{"role":"user","content":null}',
        '{"role":"user","content":5}',
        '{"role":"user","content":{"type":"text","text":"no"}}',
        '{"role":"assistant","content":[null,5,"no",{},{"type":"text"},{"type":"text","text":null},{"type":5,"text":"no"}]}',
        '{"role":"assistant","content":[{"type":"toolCall","arguments":null}]}',
        '{"role":["user"],"content":"no"}',
    ],
)
def test_messages_of_an_unexpected_shape_have_no_text_and_harm_nobody(tmp_path: Path, body: str) -> None:
    odd = f'{{"type":"message","id":"b","parentId":"a","timestamp":[],"message":{body}}}'.encode()
    reading = read_bytes(tmp_path, lines(message("a", "1"), odd, message("c", "2", "b")))
    assert reading.texts == ["1", "2"] and reading.facts.damaged == 0 and reading.links == {}


def test_a_block_of_a_wrong_shape_costs_only_itself(tmp_path: Path) -> None:
    blocks = [None, {"type": "text", "text": "one"}, {"type": "text", "text": 5}, {"type": "text", "text": "two"}]
    path = tmp_path / "t.jsonl"
    reading = read_bytes(tmp_path, lines(message("a", blocks)))
    assert reading.texts == ["one\n\ntwo"]
    assert [h.text for h in hydrate(path, reading.wanted).entries if h] == ["one\n\ntwo"]


def test_an_id_too_long_to_be_cited_still_links(tmp_path: Path) -> None:
    long = "x" * 129
    reading = read_bytes(tmp_path, lines(message(long, "hidden"), message("b", "shown", long)))
    assert reading.texts == ["shown"] and reading.links == {} and list(reading.kinds) == [0, 3]


@pytest.mark.parametrize(
    ("stamped", "inner", "expected"),
    [
        ('"2026-03-02T10:00:01.250Z"', "1", 1772445601250),
        ('"2026-03-02T11:00:01.250+01:00"', "1", 1772445601250),
        ('"2026-03-02T10:00:01"', "1", 1772445601000),
        ("1772445601250", "1", 1772445601250),
        ("null", "1772445601250", 1772445601250),
        ('"yesterday"', "1772445601250.7", 1772445601250),
        ("{}", "null", None),
        ("1e400", "1e400", None),
        ("true", '"x"', None),
        ("9" * 5000, "1" * 5000, None),
        ('"' + "9" * 5000 + '"', "-1e300", None),
    ],
)
def test_the_time_is_the_entrys_else_the_messages(
    tmp_path: Path, stamped: str, inner: str, expected: int | None
) -> None:
    body = f'{{"role":"user","content":"x","timestamp":{inner}}}'
    odd = f'{{"type":"message","id":"a","parentId":null,"timestamp":{stamped},"message":{body}}}'.encode()
    path = tmp_path / "t.jsonl"
    reading = read_bytes(tmp_path, lines(odd))
    assert reading.entries[0].time == expected and reading.facts.last_time == expected
    assert hydrate(path, reading.wanted).entries[0] is not None


def test_the_last_name_counts_and_an_empty_one_clears_it(archive: ArchiveBuilder) -> None:
    session = archive.session("a")
    session.add("session_info", name="first")
    session.user("x")
    session.add("session_info", name="  two\x1b[31m\nlines  " + "x" * 400)
    session.add("session_info", name=5)
    name = read(session.save()).facts.name
    assert name is not None and name.startswith("two lines xxx") and len(name) == 200
    session.add("session_info", name="")
    assert read(session.save()).facts.name is None


def test_marks_of_compactions_resets_and_stored_leaves(archive: ArchiveBuilder) -> None:
    session = archive.session("a")
    kept = session.user("kept")
    session.add("compaction", summary="s", firstKeptEntryId=kept)
    session.add("compaction", summary="s")
    session.add("reset")
    session.add("pi.reset")
    session.add("custom", customType="pi.reset")
    session.add("custom", customType="other", data={"customType": "reset"})
    session.add("leaf", targetId=kept)
    session.add("leaf", targetId=None)
    session.add("leaf")
    target = entry_hash(kept)
    assert read(session.save()).marks == [
        (1, "compaction", target),
        (2, "compaction", None),
        (3, "reset", None),
        (4, "reset", None),
        (5, "reset", None),
        (7, "leaf", target),
        (8, "leaf", None),
    ]


def test_keys_tell_entries_apart_by_id_role_time_and_text() -> None:
    keys = {
        entry_key(*fields)
        for fields in [
            ("a", 0, 1, "x"),
            ("b", 0, 1, "x"),
            ("a", 1, 1, "x"),
            ("a", 0, 2, "x"),
            ("a", 0, None, "x"),
            ("a", 0, 1, "y"),
            ("ax", 0, 1, ""),
        ]
    }
    assert len(keys) == 7 and all(-(2**63) <= key < 2**63 for key in keys)


# Version 1


def test_version_1_entries_get_ids_from_their_lines(archive: ArchiveBuilder) -> None:
    session = archive.session("a", version=None)
    for text in ("one", "two", "three"):
        made = session.message("user", text)
        session.raw(line({k: v for k, v in made.items() if k not in ("id", "parentId")}))
    session.raw(b'{"type":"mess')
    session.raw(line({"type": "compaction", "timestamp": stamp(9), "summary": "s", "firstKeptEntryIndex": 2}))
    path = session.save(eol=b"\r\n")
    reading = read(path)
    ids = [linear_id(n, session.lines[n]) for n in (1, 2, 3)]
    assert reading.facts.linear and reading.facts.version == 1 and reading.facts.damaged == 1
    assert reading.has(*ids, linear_id(4, session.lines[5])) and reading.links == {}
    assert reading.marks == [(3, "compaction", entry_hash(ids[1]))]
    assert [h.entry_id for h in hydrate(path, reading.wanted).entries if h] == ids


def test_a_version_1_entry_that_has_an_id_keeps_it(tmp_path: Path) -> None:
    header = line({"type": "session", "id": "s1"}).encode()
    bare = line({"type": "message", "timestamp": stamp(1), "message": {"role": "user", "content": "x"}}).encode()
    own = line({"type": "message", "id": "own", "message": {"role": "user", "content": "y"}}).encode()
    placed = line(
        {"type": "message", "id": "placed", "parentId": None, "message": {"role": "user", "content": "z"}}
    ).encode()
    reading = read_bytes(tmp_path, b"\n".join([header, bare, own, placed, bare]) + b"\n")
    assert reading.has(linear_id(1, bare), "own", "placed", linear_id(4, bare)) and reading.links == {2: None}


def test_numbers_of_version_1_count_parsed_lines(tmp_path: Path) -> None:
    header = line({"type": "session", "id": "s1"}).encode()
    first, second = (
        line({"type": "message", "timestamp": stamp(n), "message": {"role": "user", "content": f"say {n}"}}).encode()
        for n in (1, 2)
    )
    compaction = line({"type": "compaction", "firstKeptEntryIndex": 4}).encode()
    reading = read_bytes(
        tmp_path, b"\n".join([b'{"type":"title"}', header, b"7", b"null", b"", first, second, compaction]) + b"\n"
    )
    assert reading.has(linear_id(3, first), linear_id(4, second))
    assert reading.marks == [(2, "compaction", entry_hash(linear_id(4, second)))]
    assert [h.text for h in hydrate(tmp_path / "t.jsonl", reading.wanted).entries if h] == ["say 1", "say 2"]


@pytest.mark.parametrize("index", [0, 2, 5, -1, "1", None, 1.5])
def test_a_kept_index_that_names_no_earlier_entry_is_unresolved(tmp_path: Path, index: object) -> None:
    header = line({"type": "session", "id": "s1"}).encode()
    bare = line({"type": "message", "timestamp": stamp(1), "message": {"role": "user", "content": "x"}}).encode()
    compaction = line({"type": "compaction", "timestamp": stamp(2), "firstKeptEntryIndex": index}).encode()
    reading = read_bytes(tmp_path, b"\n".join([header, bare, compaction, bare]) + b"\n")
    kept = reading.tree.boundary()
    assert kept is not None and kept.node == 1


def test_a_headerless_version_1_file_is_read_too(tmp_path: Path) -> None:
    bare = line({"type": "message", "timestamp": stamp(1), "message": {"role": "user", "content": "x"}}).encode()
    reading = read_bytes(tmp_path, bare + b"\n" + bare + b"\n", NAMED)
    assert reading.facts.linear and reading.has(linear_id(0, bare), linear_id(1, bare))
    assert all(hydrate(tmp_path / NAMED, reading.wanted).entries)


# Damage


def test_lines_end_at_line_feeds_only(tmp_path: Path) -> None:
    odd = "a\u2028b\u2029c\u0085d"
    assert read_bytes(tmp_path, lines(message("a", odd))).texts == ["a\u2028b\u2029c d"]


@pytest.mark.parametrize(
    "broken", [b'{"type":"mess', b"\0" * 50, b"}{", b'{"a":NaN}', b'{"a":"\x01"}', b"[1,", b"{'a':1}", b'{"a":01}']
)
def test_a_broken_line_costs_only_itself(tmp_path: Path, broken: bytes) -> None:
    reading = read_bytes(tmp_path, lines(message("a", "1"), broken, message("b", "2", "a")))
    assert reading.texts == ["1", "2"] and reading.links == {}
    assert (reading.facts.damaged, reading.facts.damaged_lines, reading.facts.lines) == (1, [3], 4)


def test_the_numbers_of_the_first_damaged_lines_are_kept(tmp_path: Path) -> None:
    facts = read_bytes(tmp_path, lines(*[b"broken"] * 30)).facts
    assert facts.damaged == 30 and facts.damaged_lines == list(range(2, 22))


def test_a_record_broken_over_three_lines_costs_three_lines(tmp_path: Path) -> None:
    broken = message("x", "L1@L2@L3", "a", role="toolResult").replace(b"@", b"\n")
    reading = read_bytes(tmp_path, lines(message("a", "1"), broken, message("b", "2", "x")))
    assert reading.texts == ["1", "2"] and reading.facts.damaged == 3


def test_a_record_spread_over_lines_between_its_tokens_is_damage_too(tmp_path: Path) -> None:
    glued = message("a", "1") + message("b", "2", "a")
    spread = b'{"type":"x",\n"id":"c"}'
    reading = read_bytes(tmp_path, lines(glued, spread, message("d", "3", "b")))
    assert reading.texts == ["1", "2", "3"] and not reading.has("c") and reading.facts.damaged == 2


def test_lone_surrogates_become_replacement_characters(tmp_path: Path) -> None:
    odd = message("a", "x@y", "p@").replace(b"@", b"\\ud83d")
    reading = read_bytes(tmp_path, lines(message("p@", "0").replace(b"@", b"\\ud83d"), odd))
    assert reading.texts == ["0", "x\ufffdy"] and reading.facts.damaged == 0 and reading.links == {}
    assert [h.text for h in hydrate(tmp_path / "t.jsonl", reading.wanted).entries if h] == ["0", "x\ufffdy"]


def test_invalid_utf8_becomes_replacement_characters(tmp_path: Path) -> None:
    odd = message("a", "x@y").replace(b"@", b"\xff\xe8\xaf")
    reading = read_bytes(tmp_path, lines(odd))
    assert reading.texts == ["x\ufffd\ufffdy"] and reading.facts.damaged == 0


def test_deeply_nested_and_absurdly_long_values_do_not_hide_an_entry(tmp_path: Path) -> None:
    deep = b'{"type":"custom","id":"a","parentId":null,"data":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    long = b'{"type":"custom","id":"b","parentId":"a","timestamp":' + b"7" * 9000 + b"}"
    reading = read_bytes(tmp_path, lines(deep, long, message("c", "end", "b")))
    assert reading.facts.damaged == 0 and reading.has("a", "b", "c") and reading.links == {}


def test_two_records_glued_together_are_both_read(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    reading = read_bytes(tmp_path, lines(message("a", "1") + message("b", "2", "a") + b" " + message("c", "3", "b")))
    assert reading.texts == ["1", "2", "3"] and reading.facts.damaged == 0
    assert [h.text for h in hydrate(path, reading.wanted).entries if h] == ["1", "2", "3"]


def test_records_between_nul_bytes_are_read(tmp_path: Path) -> None:
    glued = b"\0\0" + message("a", "1") + b"\0" * 9 + message("b", "2", "a") + b"\0"
    reading = read_bytes(tmp_path, lines(glued, message("c", "3", "b")))
    assert reading.texts == ["1", "2", "3"] and reading.facts.damaged == 1


def test_a_header_glued_to_the_first_entry_is_found(tmp_path: Path) -> None:
    reading = read_bytes(tmp_path, HEADER + message("a", "1") + b"\n" + message("b", "2", "a") + b"\n")
    assert reading.facts.session_id == "s1" and reading.texts == ["1", "2"] and reading.links == {}


CUT = message(
    "cut",
    [
        {"type": "text", "text": 'a "q" \\ {"b": [1, {"c"} \u8bc4'},
        {"type": "toolCall", "id": "t", "arguments": {"x": [1.5e3, True]}},
    ],
    "a",
    "assistant",
)


def test_a_record_behind_one_that_was_cut_anywhere_is_read(tmp_path: Path) -> None:
    whole, last = message("whole", "2", "a"), message("last", "3", "whole")
    cuts = [CUT[:at] + whole for at in range(1, len(CUT))]
    path = tmp_path / "t.jsonl"
    reading = read_bytes(tmp_path, lines(*cuts, last))
    assert reading.texts == ["2"] * len(cuts) + ["3"] and reading.facts.damaged == len(cuts)
    assert all(h and h.text in ("2", "3") for h in hydrate(path, reading.wanted).entries)


def test_several_cut_and_whole_records_on_one_line_are_told_apart(tmp_path: Path) -> None:
    for at in range(1, len(CUT), 3):
        glued = CUT[:at] + message("b", "2") + CUT[: len(CUT) - at] + message("c", "3") + message("d", "4") + CUT[:at]
        reading = read_bytes(tmp_path, lines(message("a", "1"), glued, message("e", "5")))
        assert reading.texts == ["1", "2", "3", "4", "5"], at


def test_what_is_nested_in_a_broken_record_stays_inside(tmp_path: Path) -> None:
    inner = {
        "type": "message",
        "id": "inner",
        "parentId": None,
        "timestamp": stamp(1),
        "message": {"role": "user", "content": "secret"},
    }
    result = line(
        {
            "type": "message",
            "id": "x",
            "message": {"role": "toolResult", "details": [{"entry": inner, "more": 1}, inner, "@"]},
        }
    )
    reading = read_bytes(tmp_path, lines(result.replace("@", "\x01").encode(), message("b", "2")))
    assert reading.texts == ["2"] and reading.facts.damaged == 1


@pytest.mark.parametrize(
    "unit",
    [b'{"a":', b'{"', b'{"a"', b"[", b'{"x":{"y":1},', b'\\"{"', b'"', b'{"type":"x","id":"', b'{"k":"v"}', b"{ "],
)
def test_a_huge_broken_line_is_read_in_one_go(tmp_path: Path, unit: bytes) -> None:
    broken = b'{"type":"message","id":"x","text":"' + unit * (400_000 // len(unit)) + b"\x01"
    reading = read_bytes(tmp_path, lines(broken + message("b", "2")))
    assert reading.texts == ["2"] and reading.facts.damaged == 1


# The end of the file, and reading on


def test_an_unterminated_last_line_counts_if_it_parses(tmp_path: Path) -> None:
    data = lines(message("a", "1"), message("b", "2", "a"), end=b"")
    facts = read_bytes(tmp_path, data).facts
    assert facts.nodes == 2 and (facts.open_tail, facts.torn_tail, facts.damaged) == (True, False, 0)
    assert data[facts.offset :] == message("b", "2", "a") and facts.size == len(data)


def test_a_torn_last_line_is_no_damage_yet(tmp_path: Path) -> None:
    reading = read_bytes(tmp_path, lines(message("a", "1")) + b'{"type":"mes')
    assert reading.texts == ["1"]
    assert (reading.facts.open_tail, reading.facts.torn_tail, reading.facts.damaged, reading.facts.lines) == (
        False,
        True,
        0,
        2,
    )


def test_a_whole_record_in_a_torn_last_line_is_read(tmp_path: Path) -> None:
    facts = read_bytes(tmp_path, lines(message("a", "1") + b'{"type":"mes', end=b"")).facts
    assert facts.nodes == 1 and facts.open_tail and facts.torn_tail


def test_a_reading_can_stop_before_the_end(tmp_path: Path) -> None:
    data = lines(message("a", "1"), message("b", "2", "a"))
    path = tmp_path / "t.jsonl"
    path.write_bytes(data)
    stop = data.index(b"\n", len(HEADER) + 1) + 1
    reading = read(path, stop=stop)
    assert reading.texts == ["1"] and reading.facts.size == reading.facts.offset == stop


def identity(path: Path) -> FileIdentity:
    return FileIdentity.of(os.stat(path))


def resumable(path: Path, reading: Reading) -> bool:
    now = identity(path)
    return can_resume(path, reading.facts, now, now)


DAMAGED = b"\n".join(
    [
        b"\xef\xbb\xbf" + HEADER,
        message("a", "one"),
        b'{"type":"mess',
        b"",
        message("b", "two", "a") + message("c", "three", "b"),
        line({"type": "session_info", "id": "d", "parentId": "c", "name": "named"}).encode(),
        CUT[:40] + message("e", "vier \u8bc4", "d"),
        message("f", "five", "b", "assistant") + b"\r",
        message("g", [None, {"type": "text", "text": "six"}], "f") + b"\0\0",
        line({"type": "leaf", "id": "h", "parentId": "g", "targetId": "c"}).encode(),
        message("i", "seven", "c"),
    ]
)


def test_reading_on_from_any_byte_equals_reading_whole(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(DAMAGED + b"\n")
    whole = read(path)
    resumed = 0
    for stop in range(len(HEADER) + 3, len(DAMAGED)):
        part = read(path, stop=stop)
        if resumable(path, part):
            resumed += 1
            assert read(path, resume=part) == whole, stop
        else:
            assert part.facts.open_tail, stop
    assert resumed > len(DAMAGED) * 0.9


def test_only_growth_can_be_read_on(tmp_path: Path) -> None:
    data = lines(message("a", "1"), message("b", "2", "a"))
    path = tmp_path / "t.jsonl"
    path.write_bytes(data)
    reading = read(path)
    assert not resumable(path, reading)
    grown = data + message("c", "3", "b") + b"\n"
    for changed in (grown.replace(b"demo", b"DEMO"), grown.replace(b'"text":"2"', b'"text":"9"'), grown[10:]):
        path.write_bytes(changed)
        assert not resumable(path, reading)
    path.write_bytes(grown)
    assert resumable(path, reading)
    now = identity(path)
    assert not can_resume(path, reading.facts, now._replace(ino=now.ino + 1), now)
    assert not can_resume(tmp_path / "missing.jsonl", reading.facts, now, now)


def test_a_changed_open_tail_is_not_read_on(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(lines(message("a", "1"), message("b", "2", "a"), end=b""))
    reading = read(path)
    path.write_bytes(lines(message("a", "1"), message("b", "9", "a")))
    assert not resumable(path, reading)
    path.write_bytes(lines(message("a", "1"), message("b", "2", "a")))
    assert resumable(path, reading)
    path.write_bytes(lines(message("a", "1"), message("b", "2", "a") + b" x"))
    assert not resumable(path, reading)


def test_version_1_is_always_read_from_the_start(archive: ArchiveBuilder) -> None:
    session = archive.session("a", version=None)
    session.user("x")
    path = session.save()
    reading = read(path)
    path.write_bytes(path.read_bytes() + b"{}\n")
    assert not resumable(path, reading)
    with pytest.raises(ValueError, match="version 1"):
        TranscriptReader(path, resume=reading.facts)


def test_reading_leaves_no_trace(archive: ArchiveBuilder) -> None:
    session = archive.session("a")
    session.user("x")
    path = session.save(end=b"")
    os.utime(path, ns=(1, 2))
    before, data = os.stat(path), path.read_bytes()
    os.utime(path, ns=(1, 2))
    hydrate(path, read(path).wanted)
    after = os.stat(path)
    assert (after.st_mtime_ns, after.st_size) == (before.st_mtime_ns, before.st_size)
    assert after.st_atime_ns == 1
    assert path.read_bytes() == data


def test_long_transcripts_come_in_several_chunks(archive: ArchiveBuilder) -> None:
    session = archive.session("a")
    for n in range(60):
        session.user(f"{n} " + "word " * 10_000)
        session.tool("x" * 60_000)
    path = session.save()
    chunks = list(TranscriptReader(path))
    assert len(chunks) > 2 and all(sum(e.chars for e in c.entries) <= 2_200_000 for c in chunks)
    reading = read(path)
    assert reading.facts.nodes == 180 and reading.links == {} and len(reading.texts) == 60


def test_a_line_longer_than_any_buffer_is_read(archive: ArchiveBuilder) -> None:
    session = archive.session("a")
    session.user("before")
    session.tool("x y z " * 1_500_000)
    session.user("after")
    reading = read(session.save())
    assert reading.texts == ["before", "after"] and reading.links == {}


# Laws

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
entries = st.lists(
    st.tuples(st.sampled_from(["user", "assistant", "toolResult", "label"]), texts, st.integers(0, 9)), max_size=12
)


def build(
    folder: Path, made: list[tuple[str, str, int]], name: str = "s"
) -> tuple[Path, list[str], dict[str, str | None], list[bytes]]:
    session = ArchiveBuilder(folder).session(name)
    ids: list[str] = []
    parents: dict[str, str | None] = {}
    for n, (kind, text, back) in enumerate(made):
        parent = None if back == 0 else ids[-min(back, len(ids))] if ids else None
        entry_id = uid(f"{name}{n}")[:8]
        if kind == "label":
            session.add("label", key=entry_id, parent=parent, label=text)
        else:
            session.say(kind, text, key=entry_id, parent=parent)
        ids.append(entry_id)
        parents[entry_id] = parent
    return session.save(), ids, parents, session.lines


@fast
@given(made=entries)
def test_what_was_written_is_read(tmp_path: Path, made: list[tuple[str, str, int]]) -> None:
    path, ids, parents, _ = build(tmp_path, made)
    reading = read(path)
    tree = reading.tree
    assert [tree.hash_of(n) for n in range(len(tree))] == [entry_hash(i) for i in ids]
    above = [tree.parent(n) for n in range(len(tree))]
    assert [None if p is None else ids[p] for p in above] == [parents[i] for i in ids]
    assert len(reading.entries) == sum(kind in ("user", "assistant") for kind, _, _ in made)
    answers = hydrate(path, reading.wanted).entries
    assert [h and (h.entry_id, h.role, h.time, h.text) for h in answers] == [
        (ids[e.node], e.role, e.time, e.text) for e in reading.entries
    ]


@fast
@given(made=entries, junk=st.binary(max_size=60), at=st.integers(0, 12))
def test_damage_costs_only_its_own_lines(
    tmp_path: Path, made: list[tuple[str, str, int]], junk: bytes, at: int
) -> None:
    path, _, _, written = build(tmp_path, made)
    clean = read(path)
    at = 1 + at % max(len(written), 1)
    path.write_bytes(b"\n".join([*written[:at], b"\x02" + junk.replace(b"{", b"("), *written[at:]]) + b"\n")
    hurt = read(path)
    assert (hurt.ids, hurt.kinds, hurt.links, hurt.texts) == (clean.ids, clean.kinds, clean.links, clean.texts)
    assert hurt.facts.damaged >= 1


@fast
@given(made=entries, cut=st.floats(0, 1))
def test_a_reading_in_two_parts_equals_one(tmp_path: Path, made: list[tuple[str, str, int]], cut: float) -> None:
    path, _, _, written = build(tmp_path, made)
    whole, data = read(path), path.read_bytes()
    stop = len(written[0]) + int((len(data) - len(written[0])) * cut)
    part = read(path, stop=stop)
    if resumable(path, part):
        assert read(path, resume=part) == whole


@fast
@given(data=st.binary(max_size=300))
def test_no_bytes_crash_the_reader(tmp_path: Path, data: bytes) -> None:
    reading = read_bytes(tmp_path, HEADER + b"\n" + data)
    assert reading.facts.offset <= reading.facts.size
    hydrate(tmp_path / "t.jsonl", reading.wanted)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["type", "id", "role", "content", "text", "message"]), inner, max_size=3)
    ),
    max_leaves=12,
)


@fast
@given(
    value=st.dictionaries(
        st.sampled_from(["type", "id", "parentId", "timestamp", "message", "customType", "name", "targetId"]),
        json_values,
    )
)
def test_no_entry_of_any_shape_crashes_the_reader(tmp_path: Path, value: dict[str, object]) -> None:
    odd = json.dumps(value).encode()
    typed = json.dumps({**value, "type": "message", "id": "x"}).encode()
    reading = read_bytes(tmp_path, lines(odd, typed, message("z", "end", "x")))
    assert reading.texts[-1] == "end"
    assert all(hydrate(tmp_path / "t.jsonl", reading.wanted).entries)


# Real files


@pytest.mark.skipif(not (CORPUS / "pi-1.6.branches.jsonl").exists(), reason="the corpus is not here")
def test_leaf_and_branch_of_real_files_are_what_pi_computes() -> None:
    for record in map(json.loads, (CORPUS / "pi-1.6.branches.jsonl").read_text("utf-8").splitlines()):
        path = CORPUS / record["file"]
        reading = read(path)
        tree = reading.tree
        assert reading.facts.damaged == 0
        assert tree.leaf is not None and tree.hash_of(tree.leaf) == entry_hash(record["leaf"])
        assert [tree.hash_of(n) for n in tree.visible_path] == [entry_hash(i) for i in record["branch"]]
        assert all(hydrate(path, reading.wanted).entries)


@pytest.mark.skipif(not (CORPUS / "pi-v1").exists(), reason="the corpus is not here")
@pytest.mark.parametrize(("name", "count", "kept"), [("large-session", 1018, None), ("before-compaction", 1002, 550)])
def test_real_version_1_files_are_read_without_damage(name: str, count: int, kept: int | None) -> None:
    path = CORPUS / "pi-v1" / f"{name}.jsonl"
    reading = read(path)
    assert reading.facts.linear and reading.facts.damaged == 0 and reading.facts.nodes == count
    tree: Tree = reading.tree
    assert tree.visible == b"\1" * count
    boundary = tree.boundary()
    assert (boundary.node if boundary else None) == kept
    assert all(
        h and h.text == e.text for h, e in zip(hydrate(path, reading.wanted).entries, reading.entries, strict=True)
    )
