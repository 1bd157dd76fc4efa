"""Damaged transcripts: a bad line costs only itself (contract section 6)."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder import line, stamp
from harness_session_history.archive.hydration import hydrate
from harness_session_history.model.entries import linear_id
from transcripts import HEADER, Made, brief, lines, made_entries, message, read, read_bytes, write


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


#: Where it can be cut so that what follows is surely no part of it. Where its arguments can go on with an object (or where
#: they just were one), a whole record cannot be told from an argument that looks like one, and counts as that.
SURE_CUTS = [
    at for at in range(1, len(CUT)) if not CUT[:at].endswith((b'"arguments":', b'"x":', b'"x":[', b"[1500.0,"))
]


def test_a_record_behind_one_that_was_cut_anywhere_is_read(tmp_path: Path) -> None:
    whole, last = message("whole", "2", "a"), message("last", "3", "whole")
    cuts = [CUT[:at] + whole for at in SURE_CUTS]
    path = tmp_path / "t.jsonl"
    reading = read_bytes(tmp_path, lines(*cuts, last))
    assert reading.texts == ["2"] * len(cuts) + ["3"] and reading.facts.damaged == len(cuts)
    assert all(h and h.text in ("2", "3") for h in hydrate(path, reading.wanted).entries)


UNUSUAL = {
    "a message without a time": {
        "type": "message",
        "id": "b",
        "parentId": "a",
        "message": {"role": "user", "content": "2"},
    },
    "a message with a time of its own": {
        "type": "message",
        "id": "b",
        "parentId": "a",
        "timestamp": None,
        "message": {"role": "user", "content": "2", "timestamp": 1767225605000},
    },
    "a message without a parent": {"type": "message", "id": "b", "message": {"role": "user", "content": "2"}},
    "a known type without a time": {"type": "label", "id": "b", "parentId": "a", "targetId": "a"},
}


@pytest.mark.parametrize("record", UNUSUAL.values(), ids=UNUSUAL)
def test_an_entry_that_lacks_something_is_read_behind_one_that_was_cut_anywhere(
    tmp_path: Path, record: dict[str, object]
) -> None:
    for at in SURE_CUTS:
        reading = read_bytes(tmp_path, lines(message("a", "1"), CUT[:at] + line(record).encode()))
        assert reading.has("a", "b") and reading.facts.damaged == 1, CUT[:at]


def test_a_record_of_any_kind_is_read_where_the_cut_one_cannot_go_on(tmp_path: Path) -> None:
    for odd in ({"type": "new", "id": "b"}, {"id": "b", "anything": 1}, {"type": "message", "id": "b"}):
        for cut in (b'{"type":"message","id":"q","mess', b'{"type":"message","id":"q"', b'{"type":"x","n":12'):
            reading = read_bytes(tmp_path, lines(message("a", "1"), cut + line(odd).encode(), message("c", "3", "b")))
            assert reading.has("a", "b", "c") and reading.links == {1: None}, cut


def test_a_whole_record_between_a_cut_one_and_garbage_is_read(tmp_path: Path) -> None:
    glued = b'{"type":"message","id":"q","mess' + message("b", "2", "a") + b"\x01\x02"
    assert read_bytes(tmp_path, lines(message("a", "1"), glued)).texts == ["1", "2"]


def test_entries_of_version_1_behind_a_cut_one_keep_the_numbers_right(tmp_path: Path) -> None:
    first, last = (
        line({"type": "message", "timestamp": stamp(n), "message": {"role": "user", "content": str(n)}}).encode()
        for n in (1, 4)
    )
    others = [
        {"type": "compaction", "timestamp": stamp(2), "summary": "s", "firstKeptEntryIndex": 1, "tokensBefore": 1},
        {"type": "model_change", "timestamp": stamp(3), "provider": "p", "modelId": "m"},
    ]
    header = line({"type": "session", "id": "s1", "timestamp": stamp(0), "cwd": "/w/demo"}).encode()
    cut = [b'{"type":"mess', b'{"type":"message","message":']
    glued = [at + line(other).encode() for at, other in zip(cut, others, strict=True)]
    reading = read_bytes(tmp_path, b"\n".join([header, first, *glued, last]) + b"\n")
    assert reading.has(linear_id(1, first), linear_id(4, last)) and reading.texts == ["1", "4"]


@pytest.mark.parametrize(
    "inner",
    [
        {"type": "event", "id": "inner", "timestamp": stamp(1)},
        {"type": "paragraph", "id": "inner", "parentId": None},
        {"type": "message", "id": "inner", "text": "hello"},
        {"type": "toolCall", "id": "inner", "name": "bash", "arguments": {}},
    ],
)
def test_arguments_of_a_cut_tool_call_are_no_entries(tmp_path: Path, inner: dict[str, object]) -> None:
    called = {"type": "toolCall", "id": "t", "name": "send", "arguments": inner}
    cut = message("x", [called], None, "assistant").partition(b"}}]")[0] + b"}"
    for behind in (message("b", "2"), b""):
        reading = read_bytes(tmp_path, lines(cut + behind, message("c", "3")))
        assert not reading.has("inner") and reading.texts[-1] == "3"


ENTRY_LIKE = {
    "type": "message",
    "id": "inner",
    "parentId": "a",
    "timestamp": stamp(1),
    "message": {"role": "user", "content": "not said"},
}


@pytest.mark.parametrize("behind", [b"", message("b", "2", "a")], ids=["alone", "glued"])
@pytest.mark.parametrize("field", ["arguments", "details", "data", "x"])
@pytest.mark.parametrize("wrap", [lambda inner: inner, lambda inner: {"y": inner}, lambda inner: [1, {"y": [inner]}]])
def test_what_looks_like_an_entry_in_a_torn_record_is_none(
    tmp_path: Path, field: str, behind: bytes, wrap: Callable[[object], object]
) -> None:
    """Torn right behind it: nothing shows that the record would have gone on."""
    outer = {
        "type": "message",
        "id": "x",
        "parentId": "a",
        "message": {"role": "assistant", "content": [{field: wrap("@")}]},
    }
    inner = line(ENTRY_LIKE)
    for whole in (
        line(outer),
        line({"type": "custom", "id": "x", "parentId": "a", "customType": "c", field: wrap("@")}),
    ):
        torn = (whole.partition('"@"')[0] + inner).encode()
        reading = read_bytes(tmp_path, lines(message("a", "1"), torn + behind, message("c", "3", "a")))
        assert not reading.has("inner") and reading.texts == (["1", "2", "3"] if behind else ["1", "3"])


def test_several_cut_and_whole_records_on_one_line_are_told_apart(tmp_path: Path) -> None:
    for at in SURE_CUTS[::3]:
        if len(CUT) - at not in SURE_CUTS:
            continue
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


# Laws


@brief
@given(made=made_entries, junk=st.binary(max_size=60), at=st.integers(0, 12))
def test_damage_costs_only_its_own_lines(tmp_path: Path, made: Made, junk: bytes, at: int) -> None:
    written = write(tmp_path, made)
    clean = read(written.path)
    at = 1 + at % len(written.lines)
    broken = b"\x02" + junk.replace(b"{", b"(")
    written.path.write_bytes(b"\n".join([*written.lines[:at], broken, *written.lines[at:]]) + b"\n")
    hurt = read(written.path)
    assert (hurt.ids, hurt.kinds, hurt.links, hurt.texts) == (clean.ids, clean.kinds, clean.links, clean.texts)
    assert hurt.facts.damaged >= 1


@brief
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


@brief
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
