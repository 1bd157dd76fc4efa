"""What a host says of sessions in its registry."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from builder import line
from harness_session_history.archive.registry import Registry, RegistryEntry
from harness_session_history.text.clean import NAME_CHARS


def written(folder: Path, *lines: Any, end: str = "\n") -> str:
    path = folder / "registry.jsonl"
    path.write_text("\n".join(said if isinstance(said, str) else line(said) for said in lines) + end, encoding="utf-8")
    return str(path)


def read(path: str) -> Mapping[str, RegistryEntry]:
    return Registry(path).entries()


def test_a_line_says_all_that_a_host_may_know(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        {
            "sessionId": "s",
            "kind": "child",
            "name": "The survey",
            "parentSessionId": "p",
            "deletedAt": "2026-03-02T10:00:00Z",
            "file": "/w/s.jsonl",
            "unknown": 1,
        },
    )
    assert read(path) == {"s": RegistryEntry("s", "child", "The survey", "p", "2026-03-02T10:00:00Z", "/w/s.jsonl")}


def test_a_later_line_replaces_only_the_fields_it_gives(tmp_path: Path) -> None:
    path = written(tmp_path, {"sessionId": "s", "kind": "root", "name": "old"}, {"sessionId": "s", "name": "new"})
    assert read(path)["s"] == RegistryEntry("s", "root", "new")


@pytest.mark.parametrize("back", [None, False, "", " "])
def test_a_later_line_can_take_a_deletion_back(tmp_path: Path, back: Any) -> None:
    path = written(tmp_path, {"sessionId": "s", "deletedAt": "2026-03-02"}, {"sessionId": "s", "deletedAt": back})
    assert read(path)["s"].deleted_at is None


@pytest.mark.parametrize("said", ["2026-03-02T10:00:00Z", "yesterday", 1767225600000, True, {"at": 1}])
def test_whatever_stands_in_deleted_at_is_a_deletion(tmp_path: Path, said: Any) -> None:
    assert read(written(tmp_path, {"sessionId": "s", "deletedAt": said}))["s"].deleted_at


@pytest.mark.parametrize(
    "bad",
    [
        "{",
        "5",
        "[]",
        '"s"',
        "null",
        "{}",
        '{"sessionId": 5}',
        '{"sessionId": ""}',
        "\0\0",
        "[" * 9999,
        line({"sessionId": "x" * 129}),
    ],
)
def test_a_bad_line_costs_only_itself_and_is_logged(tmp_path: Path, bad: str, caplog: pytest.LogCaptureFixture) -> None:
    path = written(tmp_path, {"sessionId": "a"}, bad, {"sessionId": "b"})
    assert set(read(path)) == {"a", "b"} and "line 2" in caplog.text


@pytest.mark.parametrize("wrong", [{"kind": "other"}, {"name": 5}, {"parentSessionId": []}, {"file": True}])
def test_a_field_of_a_wrong_type_does_not_undo_the_deletion_beside_it(tmp_path: Path, wrong: dict[str, Any]) -> None:
    path = written(tmp_path, {"sessionId": "s", "deletedAt": "2026-03-02", **wrong})
    assert read(path) == {"s": RegistryEntry("s", deleted_at="2026-03-02")}


def test_blank_lines_a_byte_order_mark_and_windows_ends_are_accepted(tmp_path: Path) -> None:
    path = written(tmp_path, "\ufeff" + line({"sessionId": "a"}) + "\r", "", "\r", line({"sessionId": "b"}), end="")
    assert set(read(path)) == {"a", "b"}


def test_a_line_separator_in_a_name_does_not_split_the_line(tmp_path: Path) -> None:
    assert read(written(tmp_path, {"sessionId": "s", "name": "a\u2028b"}))["s"].name == "a b"


def test_a_name_is_one_clean_bounded_line(tmp_path: Path) -> None:
    path = written(tmp_path, {"sessionId": "s", "name": "  a\n\tb \u001b[31mred\u001b[0m " + "x" * 500})
    name = read(path)["s"].name
    assert name is not None and name.startswith("a b red xx") and len(name) == NAME_CHARS


@pytest.mark.parametrize("name", [None, "", " \n"])
def test_a_blank_name_is_none(tmp_path: Path, name: str | None) -> None:
    path = written(tmp_path, {"sessionId": "s", "name": "old"}, {"sessionId": "s", "name": name})
    assert read(path)["s"].name is None


def test_an_unreadable_registry_is_logged_and_empty(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert read(str(tmp_path)) == {} and caplog.text


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_in_the_place_of_a_registry_is_not_waited_for(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    os.mkfifo(tmp_path / "registry.jsonl")
    assert read(str(tmp_path / "registry.jsonl")) == {} and "not a regular file" in caplog.text


def test_without_a_registry_nothing_is_said(tmp_path: Path) -> None:
    assert Registry(None).entries() == {} and Registry(str(tmp_path / "none")).entries() == {}


def test_an_unchanged_registry_is_read_once(tmp_path: Path) -> None:
    registry = Registry(written(tmp_path, {"sessionId": "a"}))
    assert registry.entries() is registry.entries()


def test_a_changed_registry_is_read_again(tmp_path: Path) -> None:
    registry = Registry(written(tmp_path, {"sessionId": "a"}))
    registry.entries()
    written(tmp_path, {"sessionId": "a"}, {"sessionId": "b"})
    assert set(registry.entries()) == {"a", "b"}


def test_a_registry_that_is_gone_says_nothing_more(tmp_path: Path) -> None:
    path = written(tmp_path, {"sessionId": "a"})
    registry = Registry(path)
    registry.entries()
    os.remove(path)
    assert registry.entries() == {}


def test_a_registry_that_cannot_be_read_for_now_holds_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path, {"sessionId": "a", "deletedAt": "2026-03-02"})
    registry = Registry(path)
    registry.entries()

    def failing(*_: Any) -> Any:
        raise PermissionError("shut")

    monkeypatch.setattr(os, "stat", failing)
    assert set(registry.entries()) == {"a"}
