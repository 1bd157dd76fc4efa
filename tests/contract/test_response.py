"""Answers: a real dict, its declared shape, its records."""

from __future__ import annotations

import asyncio
import copy
import io
import json
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_type_hints

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder import ArchiveBuilder
from harness_session_history import InvalidRequest, SessionHistory, response, session_history
from harness_session_history.history import default_history
from harness_session_history.response import OpenAnswer, SearchAnswer, iso, short_id
from harness_session_history.result import HistoryResult

VIEW = {
    "sessionId": "s1",
    "shortId": short_id("s1"),
    "name": "demo",
    "kind": "root",
    "depth": 0,
    "lineage": "demo",
    "deleted": False,
    "current": False,
    "cwd": "/w/demo",
    "createdAt": None,
    "updatedAt": None,
    "messageCount": 2,
    "parentSessionId": None,
}
HIT = {
    "citation": {"sessionId": "s1", "entryId": "e1"},
    "role": "user",
    "createdAt": "2026-03-02T10:00:00.000Z",
    "snippet": "word",
    "snippetTruncated": False,
    "visible": True,
    "session": VIEW,
    "locator": "session:s1/entry:e1",
}


def message(entry: str, **more: Any) -> dict[str, Any]:
    citation = {"sessionId": "s1", "entryId": entry}
    return {
        "entryId": entry,
        "role": "user",
        "text": "t",
        "textTruncated": False,
        "createdAt": None,
        "citation": citation,
        **more,
    }


def test_a_result_is_a_dict_in_every_way_that_matters() -> None:
    result = HistoryResult({"operation": "search", "results": [HIT]}, marks=[[(0, 4)]])
    assert isinstance(result, dict) and result["results"][0]["citation"]["sessionId"] == "s1"
    assert json.loads(json.dumps(result)) == result == msgspec.json.decode(msgspec.json.encode(result))


def test_marks_are_no_part_of_the_data() -> None:
    result = HistoryResult({"operation": "list", "results": []}, marks=[[(0, 4)]])
    assert result.marks == [[(0, 4)]] and "marks" not in result
    assert HistoryResult({}).marks == []


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda result: pickle.loads(pickle.dumps(result))])
def test_a_copied_or_pickled_result_is_the_same_with_its_marks(again: Callable[[HistoryResult], HistoryResult]) -> None:
    result = HistoryResult({"operation": "search", "results": [HIT]}, marker=lambda snippet: [(0, len(snippet))])
    second = again(result)
    assert type(second) is HistoryResult and second == result and second.marks == [[(0, 4)]]


def test_a_copied_or_pickled_result_still_knows_what_was_called() -> None:
    result = HistoryResult({"operation": "search", "results": [HIT]})
    assert result.function == "history" and "function" not in result
    result.function = "session_history"
    again = pickle.loads(pickle.dumps(copy.deepcopy(result)))
    assert again.function == "session_history" and again == result


def test_an_answer_knows_whether_the_default_history_or_a_callers_own_was_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = ArchiveBuilder(tmp_path)
    made = archive.session("a")
    made.user("plover")
    made.save()
    monkeypatch.setenv("SESSION_HISTORY_ROOTS", str(archive.root))
    monkeypatch.setenv("SESSION_HISTORY_INDEX", str(tmp_path / "index" / "history.sqlite3"))
    monkeypatch.setenv("SESSION_HISTORY_MAINTENANCE", "off")

    async def run() -> None:
        async with SessionHistory() as history:
            own, usual = await history(query="plover"), await session_history(query="plover")
        assert "await history(" in own._repr_html_() and "await session_history(" in usual._repr_html_()
        await default_history().close()

    asyncio.run(run())


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("screen", [True, False])
def test_ipython_shows_cards_with_a_call_to_copy_and_not_the_dict(
    screen: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    formatters = pytest.importorskip("IPython.core.formatters")
    monkeypatch.setattr(sys, "stdout", Screen() if screen else io.StringIO())
    monkeypatch.setenv("COLUMNS", "60")
    shown, _ = formatters.DisplayFormatter().format(HistoryResult({"operation": "search", "results": [HIT]}))
    assert "demo · user" in shown["text/plain"] and not shown["text/plain"].startswith("{")
    assert 'await history(operation="open", session_id="s1", entry_id="e1")' in shown["text/plain"]
    frame = max(len(line) for line in shown["text/plain"].splitlines() if not line.strip().startswith("open"))
    assert frame == (60 if screen else 100)


def test_ipython_in_a_terminal_prints_the_cards_at_its_prompt(tmp_path: Path) -> None:
    pytest.importorskip("IPython")
    code = "from harness_session_history.result import HistoryResult\n"
    code += f"HistoryResult({{'operation': 'search', 'results': [{HIT!r}]}})\nexit\n"
    done = subprocess.run(
        [sys.executable, "-m", "IPython", "--simple-prompt", "--no-banner", "--colors=NoColor"],
        input=code, capture_output=True, text=True, env={**os.environ, "IPYTHONDIR": str(tmp_path)}, check=True,
    )  # fmt: skip
    assert "demo · user" in done.stdout and "{'operation'" not in done.stdout


def test_records_of_a_search_are_flat_and_have_the_same_keys() -> None:
    result = HistoryResult({"operation": "search", "results": [HIT, {**HIT, "alsoIn": ["s2"]}]})
    first, second = result.to_records()
    assert first.keys() == second.keys()
    assert (first["sessionId"], first["entryId"], first["session.name"], first["alsoIn"]) == ("s1", "e1", "demo", ())
    assert second["alsoIn"] == ("s2",)
    assert not any(isinstance(value, (dict, list)) for value in first.values())


def test_records_of_an_excerpt_name_the_target_and_the_tools() -> None:
    tools = [{"name": "bash", "status": "ok"}]
    result = HistoryResult(
        {"operation": "open", "entryId": "e2", "messages": [message("e1"), message("e2", tools=tools)]}
    )
    first, second = result.to_records()
    assert first.keys() == second.keys()
    assert (first["target"], second["target"], second["tools"], second["sessionId"]) == (
        False,
        True,
        ("bash: ok",),
        "s1",
    )


def test_records_of_a_list_are_the_session_views() -> None:
    assert HistoryResult({"operation": "list", "results": [VIEW]}).to_records() == [VIEW]


def test_the_columns_are_the_keys_of_the_records_and_there_without_any_record(tmp_path: Path) -> None:
    archive = ArchiveBuilder(tmp_path)
    made = archive.session("a")
    entry = made.user("plover")
    made.save()

    async def run() -> None:
        async with SessionHistory(roots=[archive.root], index=tmp_path / "i" / "h.db", maintenance=False) as history:
            for answer in (
                await history(query="plover"),
                await history(operation="list"),
                await history(operation="open", session_id=made.id, entry_id=entry),
            ):
                assert [list(row) for row in answer.to_records()] == [answer.columns]
            empty = await history(query="zeppelin")
            assert empty.to_records() == [] and "session.name" in empty.columns
            pandas = pytest.importorskip("pandas")
            frame = empty.to_frame()
            assert isinstance(frame, pandas.DataFrame) and list(frame.columns) == empty.columns and frame.empty

    asyncio.run(run())


def test_ipython_shows_an_error_of_ours_as_two_lines_with_its_hint(tmp_path: Path) -> None:
    pytest.importorskip("IPython")
    code = "from harness_session_history import session_history\nawait session_history(limit=99)\nexit\n"
    done = subprocess.run(
        [sys.executable, "-m", "IPython", "--simple-prompt", "--no-banner", "--colors=NoColor"],
        input=code, capture_output=True, text=True, env={**os.environ, "IPYTHONDIR": str(tmp_path)}, check=True,
    )  # fmt: skip
    shown = done.stdout[done.stdout.index("InvalidRequest: ") :].split("In [")[0].strip().split("\n")
    assert len(shown) == 2 and shown[1].startswith("  ") and "Traceback" not in done.stdout


def test_elsewhere_the_hint_is_a_note_of_the_error() -> None:
    with pytest.raises(InvalidRequest) as caught:
        asyncio.run(session_history(limit=99))
    assert caught.value.__notes__ == [caught.value.hint]


def test_every_declared_field_says_what_it_means() -> None:
    shapes = [v for v in vars(response).values() if isinstance(v, type) and hasattr(v, "__required_keys__")]
    assert len(shapes) >= 12
    for shape in shapes:
        assert shape.__doc__
        for name, hint in get_type_hints(shape, include_extras=True).items():
            described = getattr(hint, "__metadata__", None) or hint.__args__[0].__metadata__
            assert described[0], f"{shape.__name__}.{name}"


def test_only_what_the_contract_calls_optional_may_be_absent() -> None:
    assert SearchAnswer.__optional_keys__ == {"hints", "redacted"}
    assert OpenAnswer.__optional_keys__ == {"redacted"}
    assert response.Hit.__optional_keys__ == {"alsoIn"}
    assert response.Message.__optional_keys__ == {"tools"}


def test_the_examples_above_have_the_declared_shape() -> None:
    msgspec.convert(HIT, response.Hit, strict=True)
    msgspec.convert(message("e1"), response.Message, strict=True)


@given(st.datetimes(min_value=datetime(1, 1, 1), max_value=datetime(9999, 12, 31)))
def test_a_time_is_written_as_utc_with_milliseconds(moment: datetime) -> None:
    moment = moment.replace(microsecond=moment.microsecond // 1000 * 1000, tzinfo=UTC)
    written = iso(round((moment - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds() * 1000))
    assert written is not None and len(written) == 24 and written.endswith("Z")
    assert datetime.fromisoformat(written) == moment


@pytest.mark.parametrize("wrong", [None, 10**15, -(10**15), 10**30])
def test_a_time_that_no_calendar_holds_is_none(wrong: int | None) -> None:
    assert iso(wrong) is None


def test_a_short_id_is_eight_hex_digits_for_any_id() -> None:
    assert short_id("s1") == "e8bc163c"
    assert len(short_id("\ud800")) == 8
