"""Answers: a real dict, its declared shape, its records."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, get_type_hints

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_session_history import response
from harness_session_history.response import HistoryResult, OpenAnswer, SearchAnswer, iso, short_id

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


def test_every_declared_field_says_what_it_means() -> None:
    shapes = [v for v in vars(response).values() if isinstance(v, type) and hasattr(v, "__required_keys__")]
    assert len(shapes) >= 12
    for shape in shapes:
        assert shape.__doc__
        for name, hint in get_type_hints(shape, include_extras=True).items():
            described = getattr(hint, "__metadata__", None) or hint.__args__[0].__metadata__
            assert described[0], f"{shape.__name__}.{name}"


def test_only_what_the_contract_calls_optional_may_be_absent() -> None:
    assert SearchAnswer.__optional_keys__ == {"hints"}
    assert OpenAnswer.__optional_keys__ == set()
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
