"""Odd transcripts as ordinary input: torn and glued lines, broken trees, shapes of content, encodings, sizes, places, each in its
smallest form, and what becomes of it.
"""

from __future__ import annotations

import json
import os
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from builder import line, stamp, uid
from harness_session_history import EntryNotVisible
from world import World, append, touch

ID = uid("fault")


def header(**fields: Any) -> bytes:
    made = {"type": "session", "version": 3, "id": ID, "timestamp": stamp(0), "cwd": "/x", **fields}
    return json.dumps(made).encode()


def message(key: str | None, parent: str | None, text: Any, role: str = "user", **fields: Any) -> bytes:
    body = {"role": role, "content": text}
    return line(
        {"type": "message", "id": key, "parentId": parent, "timestamp": stamp(1), "message": body, **fields}
    ).encode()


def entry(kind: str, key: str, parent: str | None, **fields: Any) -> bytes:
    return json.dumps({"type": kind, "id": key, "parentId": parent, "timestamp": stamp(1), **fields}).encode()


def put(world: World, *lines: bytes, end: bytes = b"\n", name: str | None = None) -> Path:
    path = world.root / "--x--" / (name or f"2026-03-02T10-00-00-000Z_{ID}.jsonl")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"\n".join(lines) + end)
    return path


def found(world: World, *words: str, **arguments: Any) -> bool:
    """Whether every word is found, each in exactly one entry."""
    return all(len(world.texts(word, **arguments)) == 1 for word in words)


def state(path: Path) -> tuple[bytes, int, int]:
    status = os.stat(path)
    return path.read_bytes(), status.st_mtime_ns, status.st_ctime_ns


# -- torn, glued, corrupt ----------------------------------------------------------------------------------------------


def test_record_glued_to_a_torn_one_is_read(world: World) -> None:
    torn = put(world, header(), message("a", None, "alpha"), b'{"type":"message"', end=b"")
    assert found(world, "alpha")
    append(torn, [message("b", "a", "beta"), message("c", "b", "gamma")])
    assert found(world, "alpha", "beta", "gamma") and world.sources()["damaged"] == 1


def test_line_that_is_cut_inside_a_character_costs_only_itself(world: World) -> None:
    cut = message("b", "a", "beta 評")
    put(world, header(), message("a", None, "alpha"), cut[: cut.index("評".encode()) + 2], end=b"")
    assert found(world, "alpha") and world.texts("beta") == [] and world.sources()["damaged"] == 0  # not ended yet


def test_torn_line_that_is_completed_later_is_read(world: World) -> None:
    cut = message("b", "a", "beta 評")
    at = cut.index("評".encode()) + 1
    path = put(world, header(), message("a", None, "alpha"), cut[:at], end=b"")
    world.refresh()
    append(path, [cut[at:]])
    assert found(world, "alpha", "beta") and world.sources()["damaged"] == 0


def test_file_that_came_back_without_its_header_is_still_its_session(world: World) -> None:
    put(world, message("b", "a", "beta"))
    assert found(world, "beta") and world.sessions_found("beta") == [ID]


def test_file_of_another_kind_is_never_written(world: World) -> None:
    path = put(world, b'{"event":"something else"}', b"plain text")
    before = state(path)
    assert world.texts("text") == [] and world.sources()["selected"] == 0
    assert state(path) == before


def test_bad_first_line_does_not_cost_the_transcript(world: World) -> None:
    put(world, b'{"type":"sess', message("a", None, "alpha"), message("b", "a", "beta"))
    assert found(world, "alpha", "beta") and world.sources()["damaged"] == 1


def test_an_empty_file_is_nothing_until_it_is_filled(world: World) -> None:
    path = put(world, end=b"")
    assert world.listed() == [] and path.read_bytes() == b""
    append(path, [message("a", None, "alpha")])
    assert found(world, "alpha")


def test_file_that_is_being_rewritten_is_read_again_when_it_is_whole(world: World) -> None:
    path = put(world, header(version=2), message("a", None, "alpha"), message("b", "a", "beta"))
    whole = path.read_bytes()
    assert found(world, "alpha", "beta")
    for half in (b"", whole[: len(whole) // 2]):
        path.write_bytes(half)
        world.search("alpha", refresh=False)
        path.write_bytes(whole.replace(b'"version": 2', b'"version": 3'))
        assert found(world, "alpha", "beta")


@pytest.mark.parametrize("number", [1, 200, 143_000])
def test_run_of_nul_bytes_costs_nothing_around_it(world: World, number: int) -> None:
    put(world, header(), message("a", None, "alpha"), b"\0" * number, message("b", "a", "beta"))
    assert found(world, "alpha", "beta")


def test_nul_bytes_on_the_line_of_a_record_do_not_cost_the_record(world: World) -> None:
    put(world, header(), message("a", None, "alpha") + b"\0" * 300, b"\0" * 300 + message("b", "a", "beta"))
    assert found(world, "alpha", "beta")


def test_cut_record_followed_by_a_whole_one_costs_only_the_cut_one(world: World) -> None:
    cut = message("b", "a", "beta and more")[:-20]
    put(world, header(), message("a", None, "alpha"), cut + message("c", "a", "gamma"))
    assert found(world, "alpha", "gamma") and world.texts("beta") == [] and world.sources()["damaged"] == 1


def test_two_whole_records_on_one_line_are_both_read(world: World) -> None:
    put(world, header(), message("a", None, "alpha") + message("b", "a", "beta"))
    assert found(world, "alpha", "beta") and world.opened(ID, "b") == ["alpha", "beta"]


def test_child_of_an_entry_that_was_never_written_is_a_root(world: World) -> None:
    put(world, header(), message("a", None, "alpha"), message("c", "missing", "gamma"))
    assert found(world, "gamma") and world.texts("alpha") == []
    assert world.opened(ID, "c") == ["gamma"] and world.opened(ID, "a", branch="any") == ["alpha"]


def test_second_header_and_repeated_entries_change_nothing(world: World) -> None:
    one = message("a", None, "alpha")
    put(world, header(), one, header(id="other"), one, message("b", "a", "beta"))
    assert (
        found(world, "alpha", "beta")
        and world.sessions_found("beta") == [ID]
        and world.opened(ID, "b") == ["alpha", "beta"]
    )


def test_current_session_without_a_file_is_no_error(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    put(world, header(), message("a", None, "alpha"))
    monkeypatch.setenv("PI_SESSION_ID", "not-there-yet")
    monkeypatch.setenv("PI_SESSION_FILE", str(world.root / "--x--" / "2026-03-02T10-00-00-000Z_not-there-yet.jsonl"))
    world.history()
    assert found(world, "alpha") and world.ask(operation="list")["complete"]


# -- tree --------------------------------------------------------------------------------------------------------------


def test_cycle_of_parents_ends(world: World) -> None:
    put(
        world, header(), message("a", None, "alpha"), message("b", "a", "beta", "assistant"), message("a", "b", "gamma")
    )
    assert found(world, "beta", "gamma") and world.texts("alpha") == []
    assert sorted(world.opened(ID, "b")) == ["beta", "gamma"]


def test_an_entry_that_is_its_own_parent_is_a_root(world: World) -> None:
    put(world, header(), message("a", "a", "alpha"), message("b", "a", "beta"))
    assert world.opened(ID, "b") == ["alpha", "beta"]


def test_an_entry_whose_parent_is_a_dropped_label_is_found_on_any_branch(world: World) -> None:
    put(world, header(), message("a", None, "alpha"), message("c", "gone-label", "gamma", "assistant"))
    assert found(world, "gamma") and found(world, "alpha", branch="any")


def test_compaction_that_keeps_from_an_unknown_entry_hides_nothing(world: World) -> None:
    put(world, header(), message("a", None, "alpha"), entry("compaction", "k", "a", summary="s", firstKeptEntryId="gone"),
        message("b", "k", "beta"))  # fmt: skip
    assert found(world, "alpha", "beta") and world.opened(ID, "a") == ["alpha", "beta"]


def test_two_compactions_hide_nothing(world: World) -> None:
    put(world, header(), message("a", None, "alpha"), entry("compaction", "k1", "a", summary="s", firstKeptEntryId="a"),
        message("b", "k1", "beta"), entry("compaction", "k2", "b", summary="s", firstKeptEntryId="b"), message("c", "k2", "gamma"))  # fmt: skip
    assert found(world, "alpha", "beta", "gamma")


def test_stale_rename_moves_the_branch_but_loses_nothing(world: World) -> None:
    put(world, header(), message("a", None, "alpha"), message("b", "a", "beta"), message("c", "b", "gamma"),
        entry("session_info", "n", "a", name="renamed"))  # fmt: skip
    assert found(world, "alpha") and world.texts("gamma") == [] and found(world, "beta", "gamma", branch="any")
    assert world.search("gamma", refresh=False)["hints"]["offBranchMatches"] == 1
    assert world.list()[0]["name"] == "renamed"


def test_of_two_compactions_after_a_retry_the_leaf_s_counts(world: World) -> None:
    put(world, header(), message("a", None, "alpha"), entry("compaction", "k1", "a", summary="s", firstKeptEntryId="a"),
        entry("compaction", "k2", "a", summary="s", firstKeptEntryId="a"), message("d", "k2", "delta"))  # fmt: skip
    assert world.opened(ID, "d") == ["alpha", "delta"]


def test_two_processes_that_write_in_turn_make_two_branches(world: World) -> None:
    lines = [header(), message("r", None, "root")]
    for number in range(4):
        for side in "xy":
            lines.append(
                message(f"{side}{number}", f"{side}{number - 1}" if number else "r", f"side{side} turn{number}")
            )
    put(world, *lines)
    assert world.opened(ID, "y3", before=8) == ["root", *(f"sidey turn{number}" for number in range(4))]
    assert len(world.texts("turn1")) == 1 and len(world.texts("turn1", branch="any")) == 2
    assert world.opened(ID, "x0", branch="any", after=8) == ["root", *(f"sidex turn{number}" for number in range(4))]


def test_rows_of_a_wrong_shape_are_passed_over(world: World) -> None:
    put(world, header(), message("a", None, "alpha"), b'{"type":"message","id":1}', b"5", b"[]", b"null", b'"x"', b"true",
        b'{"type":"message","id":"w","parentId":"a","message":"text"}', b'{"type":"message","id":"v","parentId":{},"message":[]}',
        b"{}", message("b", "a", "beta"))  # fmt: skip
    assert found(world, "alpha", "beta") and world.opened(ID, "b") == ["alpha", "beta"]


# -- shapes of content -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "content",
    [None, {}, 5, True, [None], [5, "x"], [{"type": "text"}], [{"type": "text", "text": None}], [{"type": "text", "text": 5}], [{}],
     [[]], "", "   ", [{"type": "text", "text": " \n "}], [{"type": 5, "text": "hidden"}], [{"text": "hidden"}]],
)  # fmt: skip
def test_content_of_any_shape_costs_only_itself(world: World, content: Any) -> None:
    put(world, header(), message("a", None, "alpha"), message("b", "a", content), message("c", "b", "gamma"))
    assert found(world, "alpha", "gamma") and world.texts("hidden") == [] and len(world.listed()) == 1
    world.refused(EntryNotVisible, operation="open", session_id=ID, entry_id="b")
    assert world.opened(ID, "c") == ["alpha", "gamma"]


def test_message_without_content_or_without_anything_costs_only_itself(world: World) -> None:
    put(world, header(), message("a", None, "alpha"), entry("message", "b", "a", message={"role": "user"}),
        entry("message", "c", "b", message=None), entry("message", "d", "c"), message("e", "d", "epsilon"))  # fmt: skip
    assert world.opened(ID, "e") == ["alpha", "epsilon"]


def test_good_blocks_beside_bad_ones_are_text(world: World) -> None:
    content = [
        None,
        {"type": "text", "text": "alpha"},
        5,
        {"type": "text"},
        {"type": "new", "x": 1},
        {"type": "text", "text": "omega"},
    ]
    put(world, header(), message("a", None, content), message("b", "a", ["just a string"]))
    assert world.texts("alpha") == ["alpha\n\nomega"]


def test_strings_of_system_and_developer_messages_stay_out(world: World) -> None:
    put(
        world,
        header(),
        message("a", None, "alpha"),
        message("b", "a", "beta", "system"),
        message("c", "b", "gamma", "developer"),
    )
    assert found(world, "alpha") and world.texts("beta") == [] and world.texts("gamma") == []


@pytest.mark.parametrize("arguments", [None, "x", 5, [], {"a": None}])
def test_tool_call_with_arguments_of_any_shape_is_named(world: World, arguments: Any) -> None:
    call = {"type": "toolCall", "id": "t", "name": "bash", "arguments": arguments}
    put(world, header(), message("a", None, [{"type": "text", "text": "alpha"}, call], "assistant"))
    (shown,) = world.open(ID, "a")["messages"]
    assert shown["tools"] == [{"name": "bash", "status": "unanswered"}]


def test_megabytes_of_bytes_pasted_as_text_do_no_harm(world: World) -> None:
    rubbish = "".join(chr(1 + number % 31) + "\ufffd\u0085" for number in range(300_000))
    put(world, header(), message("a", None, "alpha " + rubbish + " omega"), message("b", "a", "beta"))
    assert found(world, "alpha", "beta")
    assert len(world.open(ID, "a", max_chars=300)["messages"][0]["text"]) <= 300


def test_line_of_many_megabytes_in_a_tool_result_does_no_harm(world: World) -> None:
    result = entry(
        "message",
        "b",
        "a",
        message={"role": "toolResult", "toolCallId": "t", "content": [], "details": {"diff": "x" * 5_000_000}},
    )
    put(world, header(), message("a", None, "alpha"), result, message("c", "b", "gamma"))
    assert found(world, "alpha", "gamma")


def test_name_of_several_lines_is_one_line(world: World) -> None:
    put(world, header(), message("a", None, "alpha"), entry("session_info", "n", "a", name="a\nb"))
    assert [view["name"] for view in world.list()] == ["a b"]


# -- encoding ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mark", ["\u2028", "\u2029", "\u0085"])
def test_only_a_line_feed_ends_a_line(world: World, mark: str) -> None:
    raw = message("a", None, "alpha@beta").replace(b"@", mark.encode())
    put(world, header(), raw, message("b", "a", "gamma"))
    assert found(world, "alpha", "beta", "gamma") and world.sources()["damaged"] == 0


@pytest.mark.parametrize("mark", [b"\x0b", b"\x0c", b"\x1c", b"\x1e"])
def test_raw_control_character_costs_at_most_its_line(world: World, mark: bytes) -> None:
    put(world, header(), message("a", None, "alpha@beta").replace(b"@", mark), message("b", "a", "gamma"))
    assert found(world, "gamma") and world.sources()["damaged"] <= 1


def test_half_a_surrogate_pair_becomes_a_replacement_character(world: World) -> None:
    put(world, header(), message("a", None, "alpha@").replace(b"@", b"\\ud83d"))
    assert world.texts("alpha") == ["alpha\ufffd"] and world.opened(ID, "a") == ["alpha\ufffd"]


def test_half_a_pair_before_letters_costs_only_itself(world: World) -> None:
    put(world, header(), message("a", None, "alpha @ade9").replace(b"@", b"\\uD83E"))
    assert world.texts("alpha") == ["alpha \ufffdade9"]


def test_nul_in_the_text_becomes_a_space(world: World) -> None:
    put(world, header(), message("a", None, "alpha\0omega"))
    assert world.texts("omega") == ["alpha omega"]


def test_emoji_need_no_locale(world: World) -> None:
    put(world, header(), message("a", None, "alpha 🚀👩🏽‍💻"))
    assert world.texts("alpha") == ["alpha 🚀👩🏽‍💻"]


# -- size, speed -------------------------------------------------------------------------------------------------------


def test_memory_is_bounded_by_a_line_not_by_the_file(world: World) -> None:
    lines = [header(), message("a", None, "alpha")]
    lines += [entry("custom", f"c{number}", "a", customType="x", data="x" * 100_000) for number in range(400)]
    put(world, *lines, message("b", "a", "beta"))
    del lines
    tracemalloc.start()
    try:
        assert found(world, "beta")
        assert tracemalloc.get_traced_memory()[1] < 25_000_000
    finally:
        tracemalloc.stop()


def test_no_line_is_too_long(world: World) -> None:
    put(
        world,
        header(),
        message("a", None, "alpha"),
        message("b", "a", "r" * 5_400_000, "toolResult"),
        message("c", "b", "gamma " + "w " * 2_500_000),
    )
    assert found(world, "alpha", "gamma")


def test_thousands_of_snapshot_lines_are_links_and_nothing_else(world: World) -> None:
    lines = [
        entry("custom", f"c{number}", f"c{number - 1}" if number else "a", customType="x", data="zzz")
        for number in range(20_000)
    ]
    put(world, header(), message("a", None, "alpha"), *lines, message("b", "c19999", "beta"))
    assert world.opened(ID, "b") == ["alpha", "beta"] and world.texts("zzz") == []


def test_metadata_are_kept_and_an_unchanged_file_is_not_opened_again(world: World) -> None:
    path = put(world, header(), message("a", None, "alpha"))
    world.refresh()
    status = os.stat(path)
    os.utime(path, ns=(0, status.st_mtime_ns))
    world.refresh()
    before = os.stat(path).st_atime_ns
    for _ in range(3):
        world.ask(operation="list")
    assert os.stat(path).st_atime_ns == before


def test_rename_in_the_middle_of_a_megabyte_is_seen(world: World) -> None:
    filler = [message(f"m{number}", f"m{number - 1}" if number else None, "x" * 1000) for number in range(1000)]
    put(world, header(), *filler[:500], entry("session_info", "n", "m499", name="renamed"), *filler[500:])
    assert [view["name"] for view in world.list()] == ["renamed"]


def test_many_small_lines_are_read(world: World) -> None:
    put(
        world,
        header(),
        *(message(f"m{number}", f"m{number - 1}" if number else None, "tiny") for number in range(20_000)),
        message("z", "m19999", "omega"),
    )
    assert found(world, "omega") and [view["messageCount"] for view in world.list()] == [20_001]


def test_an_append_reads_no_more_than_the_append(world: World) -> None:
    path = put(
        world,
        header(),
        message("a", None, "alpha"),
        *(message(f"m{n}", "a", "r" * 50_000, "toolResult") for n in range(200)),
    )
    world.refresh()
    append(path, [message("b", "a", "beta")])
    tracemalloc.start()
    try:
        assert found(world, "alpha", "beta")
        assert tracemalloc.get_traced_memory()[1] < 5_000_000
    finally:
        tracemalloc.stop()


# -- identity, discovery -----------------------------------------------------------------------------------------------


def test_forks_are_not_counted_again(world: World) -> None:
    lines = [message("a", None, "alpha"), message("b", "a", "beta", "assistant")]
    path = put(world, header(), *lines)
    for number in range(6):
        put(
            world,
            header(id=f"fork{number}", parentSession=str(path), timestamp=stamp(100 + number)),
            *lines,
            name=f"fork{number}.jsonl",
        )
    (hit,) = world.hits("alpha")
    assert hit["citation"]["sessionId"] == ID and len(hit["alsoIn"]) == 6


def test_two_folders_that_share_an_encoded_name_are_two(world: World) -> None:
    put(world, header(cwd="/a/b-c"), message("a", None, "alpha"))
    put(world, header(id="other", cwd="/a-b/c"), message("a", None, "alpha too"), name="other.jsonl")
    assert world.sessions_found("alpha", cwd="/a/b-c") == [ID] and world.sessions_found("alpha", cwd="/a-b/c") == [
        "other"
    ]


def test_sessions_below_folders_of_the_root_are_found(world: World) -> None:
    put(world, header(), message("a", None, "alpha"))
    assert found(world, "alpha")


def test_subagents_are_found_as_children_and_their_artifacts_are_not(world: World) -> None:
    path = put(world, header(), message("a", None, "alpha"))
    run = path.with_suffix("") / "r1" / "run-0"
    artifacts = path.parent / "subagent-artifacts"
    run.mkdir(parents=True)
    artifacts.mkdir()
    (run / "session.jsonl").write_bytes(header(id="child") + b"\n" + message("a", None, "beta") + b"\n")
    (artifacts / "x.jsonl").write_bytes(b'{"type":"message","role":"assistant","text":"gamma"}\n')
    (hit,) = world.hits("beta")
    assert hit["session"]["kind"] == "child" and hit["session"]["parentSessionId"] == ID
    assert world.texts("gamma") == [] and world.sources()["selected"] == 2


def test_flat_files_beside_folders_of_one_root_are_found(world: World) -> None:
    put(world, header(), message("a", None, "alpha"))
    (world.root / "flat.jsonl").write_bytes(header(id="flat") + b"\n" + message("a", None, "beta") + b"\n")
    assert found(world, "alpha", "beta")


def test_pi_s_places_may_be_one_folder(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    put(world, header(), message("a", None, "alpha"))
    (world.root / "flat.jsonl").write_bytes(header(id="flat") + b"\n" + message("a", None, "beta") + b"\n")
    monkeypatch.setenv("PI_CODING_AGENT_DIR", str(world.agent))
    monkeypatch.setenv("PI_CODING_AGENT_SESSION_DIR", str(world.root))
    world.history(roots=None)
    assert found(world, "alpha", "beta") and world.sources()["selected"] == 2


def test_linked_folder_is_neither_missed_nor_doubled(world: World) -> None:
    path = put(world, header(), message("a", None, "alpha"))
    os.symlink(path.parent, world.root / "--y--")
    assert found(world, "alpha") and world.sources()["duplicate"] == 0


def test_the_id_in_the_header_wins_over_the_name(world: World) -> None:
    put(world, header(id="in-header"), message("a", None, "alpha"))
    assert world.sessions_found("alpha") == ["in-header"]


def test_an_imported_copy_is_one_session_with_the_latest_activity(world: World) -> None:
    put(world, header(), message("a", None, "alpha"), name="s.jsonl")
    put(world, header(), message("a", None, "alpha"), message("b", "a", "beta", timestamp=stamp(50)), name="s-1.jsonl")
    assert found(world, "alpha", "beta") and world.listed() == [ID] and world.sources()["duplicate"] == 1


def test_session_that_is_not_on_disk_yet_is_no_error(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PI_SESSION_ID", ID)
    world.history()
    assert world.search("alpha")["currentSession"] == "excluded" and world.listed(include_current=True) == []


def test_touching_a_file_is_no_activity(world: World) -> None:
    touch(
        put(
            world,
            header(timestamp="2025-01-01T00:00:00Z"),
            message("a", None, "alpha", timestamp="2025-01-01T00:00:00Z"),
        ),
        2e9,
    )
    put(world, header(id="newer"), message("a", None, "beta"), name="newer.jsonl")
    assert world.listed() == ["newer", ID]


def test_header_behind_a_title_line_is_found(world: World) -> None:
    put(world, b'{"type":"title","title":"t"}', header(), message("a", None, "alpha"), name="omp.jsonl")
    assert world.sessions_found("alpha") == [ID]


def test_digits_of_ids_are_not_found(world: World) -> None:
    put(world, header(id="01024000-1024-7024-8024-102410241024"), message("10241024", None, "alpha"), name="x.jsonl")
    assert world.texts("1024") == [] and world.texts("1024*") == []


def test_sessions_in_the_agent_s_own_folder_are_found_when_it_is_a_root(world: World) -> None:
    (world.agent / "x.jsonl").write_bytes(header() + b"\n" + message("a", None, "alpha") + b"\n")
    world.history(roots=[world.agent])
    assert found(world, "alpha")


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="counts descriptors by /proc")
def test_files_that_are_no_sessions_leave_no_descriptor_open(world: World) -> None:
    put(world, header(), message("a", None, "alpha"))
    for number in range(40):
        put(world, b'{"some":"thing"}', name=f"foreign{number}.jsonl")
    world.refresh()
    before = len(os.listdir("/proc/self/fd"))
    for number in range(5):
        put(world, b'{"some":"thing else"}', name=f"foreign{number}.jsonl")
        world.refresh()
    assert len(os.listdir("/proc/self/fd")) <= before + 2


# -- bad input in general ----------------------------------------------------------------------------------------------


def test_blank_lines_are_skipped_also_before_the_header(world: World) -> None:
    put(world, b"", b"  \t ", header(), b"", message("a", None, "alpha"), b" ", message("b", "a", "beta"), b"")
    assert found(world, "alpha", "beta") and world.sources()["damaged"] == 0


def test_bad_line_is_skipped_anywhere(world: World) -> None:
    put(world, b"{bad", header(), b"bad", message("a", None, "alpha"), b"]", message("b", "a", "beta"), b"}")
    assert found(world, "alpha", "beta") and world.sources()["damaged"] == 1


def test_partial_last_line_is_left_alone_and_nothing_is_written(world: World) -> None:
    path = put(world, header(), message("a", None, "alpha"), b'{"type":"message","id":"b"', end=b"")
    before = state(path)
    assert found(world, "alpha") and world.sources()["damaged"] == 0 and state(path) == before


def test_whole_last_line_without_an_end_counts(world: World) -> None:
    path = put(world, header(), message("a", None, "alpha"), message("b", "a", "beta"), end=b"")
    before = state(path)
    assert found(world, "alpha", "beta") and state(path) == before
    with open(path, "ab") as file:
        file.write(b"\n" + message("c", "b", "gamma") + b"\n")
    assert found(world, "alpha", "beta", "gamma") and world.opened(ID, "b") == ["alpha", "beta", "gamma"]


def test_ends_of_lines_of_another_system_are_accepted(world: World) -> None:
    put(world, header() + b"\r", message("a", None, "alpha") + b"\r", message("b", "a", "beta") + b"\r")
    assert found(world, "alpha", "beta") and world.opened(ID, "b") == ["alpha", "beta"]


def test_byte_order_mark_is_accepted(world: World) -> None:
    put(world, b"\xef\xbb\xbf" + header(), message("a", None, "alpha"))
    assert found(world, "alpha") and world.sources()["damaged"] == 0


@pytest.mark.parametrize("first", [b"5", b'"x"', b"[1]", b"null", b"false"])
def test_first_line_that_is_no_object_does_not_hide_the_header(world: World, first: bytes) -> None:
    put(world, first, header(), message("a", None, "alpha"))
    assert found(world, "alpha") and world.sessions_found("alpha") == [ID]


@pytest.mark.parametrize("bad", [None, 5, "", {}])
def test_header_without_a_usable_id_leaves_the_name_to_tell_it(world: World, bad: Any) -> None:
    put(world, header(id=bad), message("a", None, "alpha"))
    assert world.sessions_found("alpha") == [ID]


@pytest.mark.parametrize("scalar", [b"5", b'"x"', b"[1]", b"null"])
def test_scalar_line_is_no_entry_and_no_leaf(world: World, scalar: bytes) -> None:
    put(world, header(), message("a", None, "alpha"), scalar, message("b", "a", "beta"), scalar)
    assert world.opened(ID, "b") == ["alpha", "beta"]


def test_an_unknown_type_at_the_end_is_the_leaf(world: World) -> None:
    put(world, header(), message("a", None, "alpha"), message("b", "a", "beta"), entry("of_next_year", "u", "a", x=1))
    assert found(world, "alpha") and world.texts("beta") == []


def test_an_entry_without_an_id_hides_nothing(world: World) -> None:
    put(world, header(), message("a", None, "alpha"), message("b", "a", "beta"), b'{"type":"custom","parentId":"a"}')
    assert found(world, "alpha", "beta")


def test_the_last_of_two_entries_with_one_id_counts(world: World) -> None:
    put(
        world,
        header(),
        message("a", None, "alpha"),
        message("b", "a", "older"),
        message("b", "a", "newer"),
        message("c", "b", "gamma"),
    )
    assert world.opened(ID, "c") == ["alpha", "newer", "gamma"] and world.texts("older", branch="any") == []


def test_parent_may_stand_later_in_the_file(world: World) -> None:
    put(world, header(), message("b", "a", "beta"), message("a", None, "alpha"), message("c", "b", "gamma"))
    assert world.opened(ID, "c") == ["alpha", "beta", "gamma"]
    assert world.opened(ID, "a") == ["alpha", "beta", "gamma"]
    assert world.opened(ID, "b", before=1, after=1) == ["alpha", "beta", "gamma"]


def test_bytes_that_are_no_utf8_become_replacement_characters(world: World) -> None:
    put(world, header(), message("a", None, "alpha @ omega").replace(b"@", b"\xff\xfe\xc3"))
    (text,) = world.texts("alpha")
    assert text.startswith("alpha \ufffd") and text.endswith(" omega")


def test_of_two_equal_keys_the_last_counts(world: World) -> None:
    raw = b'{"type":"message","id":"z","id":"a","parentId":null,"timestamp":"x","message":{"role":"user","content":"older","content":"newer"}}'
    put(world, header(), raw)
    assert world.found("newer") == ["a"] and world.texts("older") == []


@pytest.mark.parametrize("literal", [b"NaN", b"Infinity", b"-Infinity"])
def test_numbers_that_are_none_make_a_line_damaged(world: World, literal: bytes) -> None:
    put(
        world,
        header(),
        message("a", None, "alpha"),
        message("b", "a", "beta", extra="@").replace(b'"@"', literal),
        message("c", "a", "gamma"),
    )
    assert found(world, "alpha", "gamma") and world.texts("beta") == [] and world.sources()["damaged"] == 1


def test_number_beyond_all_bounds_is_no_time(world: World) -> None:
    put(world, header(), message("a", None, "alpha", timestamp="@").replace(b'"@"', b"1e400"))
    assert [hit["createdAt"] for hit in world.hits("alpha")] == [None]


def test_an_integer_of_thousands_of_digits_costs_no_more_than_its_line(world: World) -> None:
    put(
        world,
        header(),
        message("a", None, "alpha"),
        message("b", "a", "beta", extra="@").replace(b'"@"', b"9" * 5000),
        message("c", "a", "gamma"),
    )
    assert found(world, "alpha", "gamma") and len(world.listed()) == 1


@pytest.mark.parametrize("depth", [900, 5_000, 100_000])
def test_deep_nesting_costs_no_more_than_its_line(world: World, depth: int) -> None:
    deep = b'{"type":"custom","id":"d","parentId":"a","data":' + b"[" * depth + b"]" * depth + b"}"
    put(world, header(), message("a", None, "alpha"), deep, message("c", "a", "gamma"))
    assert found(world, "alpha", "gamma") and world.opened(ID, "c") == ["alpha", "gamma"]


def test_header_of_a_megabyte_is_a_header(world: World) -> None:
    put(world, header(metadata={"x": "y" * 1_200_000}), message("a", None, "alpha"), name="big.jsonl")
    assert world.sessions_found("alpha") == [ID]


@pytest.mark.parametrize("version", [3, 4, 99, "3", 2])
def test_version_that_nobody_knows_is_read_like_the_last(world: World, version: Any) -> None:
    put(world, header(version=version), message("a", None, "alpha"), message("b", "a", "beta"))
    assert world.opened(ID, "b") == ["alpha", "beta"]
