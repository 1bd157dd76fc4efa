"""Transcripts of every version: header, entries, ids (contract section 6)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given

from builder import ArchiveBuilder, line, stamp
from harness_session_history.archive.files import Unreadable
from harness_session_history.archive.hydration import hydrate
from harness_session_history.archive.transcript import NotASession, TranscriptReader
from harness_session_history.model.entries import entry_hash, entry_key, linear_id, milliseconds
from transcripts import NAMED, Made, brief, lines, made_entries, message, read, read_bytes, write


@pytest.fixture
def archive(tmp_path: Path) -> ArchiveBuilder:
    return ArchiveBuilder(tmp_path)


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


@pytest.mark.parametrize(
    "first",
    [
        {"type": "message", "id": "a", "timestamp": stamp(1), "message": {"role": "user", "content": "1"}},
        {"type": "message", "id": "a", "parentId": None, "message": {"role": "user", "content": "1", "timestamp": 1}},
        {"type": "message", "id": "a", "message": {"role": "user", "content": "1"}},
        {"type": "session_info", "id": "a", "timestamp": stamp(1), "name": "named"},
        {"type": "label", "id": "a", "parentId": None, "targetId": "x"},
        {"type": "new", "id": "a", "parentId": None, "timestamp": None},
    ],
)
def test_a_headerless_file_keeps_a_first_entry_that_lacks_something(tmp_path: Path, first: dict[str, object]) -> None:
    reading = read_bytes(tmp_path, line(first).encode() + b"\n" + message("b", "2", "a") + b"\n", NAMED)
    assert reading.facts.version == 3 and reading.visible_ids("a", "b") == ["a", "b"]


def test_a_headerless_file_without_an_id_in_its_name_is_not_a_session(tmp_path: Path) -> None:
    with pytest.raises(NotASession):
        read_bytes(tmp_path, message("a", "hello") + b"\n", "session.jsonl")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\n\n",
        b'{"agent":"w","task":"x","ts":1}\n',
        b'{"parentUuid":null,"sessionId":"x","type":"user","message":{"role":"user"},"uuid":"u","timestamp":"2026-03-02"}\n',
        b'{"type":"message","id":"a","text":"hello"}\n{"type":"event","id":"b","timestamp":1}\n',
        b'{"type":"usage","timestamp":1,"tokens":2}\n',
        b'{"type":"session","id":5,"version":3}\n',
        line({"type": "session", "id": "x" * 129}).encode() + b"\n",
        b"[1]\n5\n",
    ],
)
def test_other_files_are_not_sessions_whatever_their_name(tmp_path: Path, data: bytes) -> None:
    for name in ("x.jsonl", NAMED):
        with pytest.raises(NotASession):
            read_bytes(tmp_path, data, name)


@pytest.mark.parametrize("data", [b"plain terminal text\n", b'{"type":"message"', b"\0" * 50, b"bad\n" * 300])
def test_where_nothing_can_be_read_the_name_says_whether_it_is_a_session(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(NotASession):
        read_bytes(tmp_path, data, "x.jsonl")
    facts = read_bytes(tmp_path, data, NAMED).facts
    assert facts.named_by_file and facts.nodes == 0 and facts.unreadable_lines == max(1, data.count(b"\n"))


def test_a_transcript_of_another_version_cannot_be_read(tmp_path: Path) -> None:
    data = b'{"v":4,"kind":"header","id":"x","storageVersion":1,"createdAt":1,"cwd":"/"}\n' + message("a", "x") + b"\n"
    for name in ("x.jsonl", NAMED):
        with pytest.raises(Unreadable):
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


def test_the_last_name_that_is_not_blank_counts(archive: ArchiveBuilder) -> None:
    session = archive.session("a")
    session.add("session_info", name="first")
    session.user("x")
    session.add("session_info", name="  two\x1b[31m\nlines  " + "x" * 400)
    for blank in (5, None, "", " \n"):
        session.add("session_info", name=blank)
    name = read(session.save()).facts.name
    assert name is not None and name.startswith("two lines xxx") and len(name) == 200


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
    assert len(keys) == 7 and all(len(key) == 8 for key in keys)


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


# Laws


@brief
@given(made_entries)
def test_what_was_written_is_read(tmp_path: Path, made: Made) -> None:
    written = write(tmp_path, made)
    reading = read(written.path)
    tree = reading.tree
    assert [tree.hash_of(n) for n in range(len(tree))] == [entry_hash(i) for i in written.ids]
    above = [tree.parent(n) for n in range(len(tree))]
    assert [None if p is None else written.ids[p] for p in above] == written.parents
    assert len(reading.entries) == sum(kind in ("user", "assistant") for kind, _, _ in made)
    answers = hydrate(written.path, reading.wanted).entries
    assert [h and (h.entry_id, h.role, h.time, h.text) for h in answers] == [
        (written.ids[e.node], e.role, e.time, e.text) for e in reading.entries
    ]
