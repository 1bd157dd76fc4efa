"""Arguments: what is taken, what is refused, and how it is said."""

from __future__ import annotations

import inspect
from datetime import UTC, datetime, timedelta, timezone
from typing import Any, NotRequired, get_args, get_origin, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_session_history.arguments import Argument
from harness_session_history.errors import InvalidRequest, SessionHistoryError
from harness_session_history.request import (
    ARGUMENTS,
    OPERATIONS,
    ListRequest,
    OpenRequest,
    SearchRequest,
    build_request,
)

MINIMUM: dict[str, dict[str, Any]] = {
    "list": {"operation": "list"},
    "search": {"query": "word"},
    "open": {"operation": "open", "session_id": "s", "entry_id": "e"},
}
GOOD: dict[str, Any] = {"boolean": True, "roles": ["user"], "time": "2026-03-02", "string": "word"}


def good(argument: Argument) -> Any:
    """Some allowed value."""
    if argument.type == "integer":
        return argument.low
    if argument.name == "cwd":
        return "/word"
    return argument.choices[-1] if argument.type == "choice" else GOOD[argument.type or "string"]


def refused(**arguments: Any) -> InvalidRequest:
    with pytest.raises(InvalidRequest) as caught:
        build_request(**arguments)
    assert caught.value.hint
    return caught.value


def test_the_operation_is_search_unless_said_otherwise() -> None:
    assert isinstance(build_request(query="word"), SearchRequest)


def test_a_search_gets_the_defaults_of_the_contract() -> None:
    assert build_request(query="word") == SearchRequest(
        query="word",
        session_id=None,
        kind="any",
        include_deleted=False,
        include_current=False,
        refresh=False,
        cwd=None,
        since=None,
        until=None,
        roles=("user", "assistant"),
        limit=10,
        sort="relevance",
        snippet_chars=320,
        branch="visible",
    )


def test_a_list_gets_the_defaults_of_the_contract() -> None:
    made = build_request(operation="list")
    assert isinstance(made, ListRequest)
    assert (made.limit, made.kind, made.session_id, made.cwd, made.since, made.until) == (
        10,
        "any",
        None,
        None,
        None,
        None,
    )


def test_an_open_gets_the_defaults_of_the_contract() -> None:
    made = build_request(operation="open", session_id="s", entry_id="e")
    assert isinstance(made, OpenRequest)
    assert (made.before, made.after, made.max_chars, made.branch) == (2, 2, 6000, "visible")


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("name", [name for name in ARGUMENTS if name != "operation"])
def test_an_operation_takes_exactly_the_arguments_of_the_table(operation: str, name: str) -> None:
    argument = ARGUMENTS[name]
    call = {**MINIMUM[operation], name: good(argument)}
    if operation in argument.operations:
        build_request(**call)
    else:
        assert name in str(refused(**call))


def test_an_argument_that_is_not_taken_is_refused_even_with_its_default() -> None:
    assert "limit" in str(refused(**MINIMUM["open"], limit=10))


def test_none_counts_as_not_given_where_none_is_the_default() -> None:
    build_request(query="word", session_id=None, cwd=None, since=None, until=None, entry_id=None)


@pytest.mark.parametrize("name", [name for name, a in ARGUMENTS.items() if a.default is not None])
def test_none_is_a_wrong_type_where_there_is_another_default(name: str) -> None:
    operation = ARGUMENTS[name].operations[0]
    assert "NoneType" in str(refused(**{**MINIMUM[operation], name: None}))


def test_an_unknown_name_is_a_type_error() -> None:
    with pytest.raises(TypeError):
        build_request(query="word", colour="red")


@pytest.mark.parametrize(("operation", "name"), [(o, n) for n, a in ARGUMENTS.items() for o in a.required])
def test_a_required_argument_that_is_missing_is_named(operation: str, name: str) -> None:
    call = {k: v for k, v in MINIMUM[operation].items() if k != name}
    assert name in str(refused(**call))


@pytest.mark.parametrize("name", [name for name, a in ARGUMENTS.items() if a.type == "integer"])
def test_integers_keep_to_their_bounds(name: str) -> None:
    argument = ARGUMENTS[name]
    call = MINIMUM[argument.operations[0]]
    for value in (argument.low, argument.high):
        assert getattr(build_request(**call, **{name: value}), name) == value
    for wrong in (argument.low - 1, argument.high + 1, True, float(argument.low), str(argument.low), 10**40):
        message = str(refused(**call, **{name: wrong}))
        assert name in message and f"{argument.low}–{argument.high}" in message and type(wrong).__name__ in message


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"limit": 99}, "limit must be an integer 1–20; got 99, of type int"),
        ({"limit": 10**40}, "limit must be an integer 1–20; got a value of type int"),
        ({"query": "x" * 600}, "query must be a string of 1–512 characters; got 600 characters of type str"),
        ({"query": "é" * 300}, "query must be a string of 1–512 characters; got 600 bytes of type str"),
        ({"query": " "}, "query must be a string of 1–512 characters; got only white space of type str"),
    ],
)
def test_a_message_says_what_is_wrong_with_a_value(arguments: dict[str, Any], said: str) -> None:
    assert str(refused(**{"query": "word", **arguments})) == said


@pytest.mark.parametrize("name", [name for name, a in ARGUMENTS.items() if a.type == "boolean"])
@pytest.mark.parametrize("wrong", [1, 0, "true", [], None])
def test_booleans_are_real_booleans(name: str, wrong: object) -> None:
    refused(query="word", **{name: wrong})


@pytest.mark.parametrize("name", [name for name, a in ARGUMENTS.items() if a.type == "choice"])
@pytest.mark.parametrize("wrong", ["", "ANY", "Search", 1, [], {}, b"any", True])
def test_choices_are_exactly_their_words(name: str, wrong: object) -> None:
    operation = ARGUMENTS[name].operations[-1]
    refused(**{**MINIMUM[operation], name: wrong})


@pytest.mark.parametrize("value", [["user"], ("assistant",), ["assistant", "user"], ("user", "assistant")])
def test_roles_are_one_or_two_words(value: Any) -> None:
    made = build_request(query="word", roles=value)
    assert isinstance(made, SearchRequest) and set(made.roles) == set(value) and isinstance(made.roles, tuple)


@pytest.mark.parametrize(
    "wrong", [[], ["user", "user"], "user", ["tool"], [1], {"user"}, ["user", "assistant", "user"], [[]]]
)
def test_other_roles_are_refused(wrong: object) -> None:
    refused(query="word", roles=wrong)


@pytest.mark.parametrize(
    "wrong", ["", " ", "x" * 513, "é" * 300, "a\tb", "a\nb", "a\0b", "a\x7fb", "a\x85b", "\ud800", 5, b"word", ["word"]]
)
def test_a_query_is_some_words_within_its_bounds(wrong: object) -> None:
    message = str(refused(query=wrong))
    assert "query" in message and "512" in message


def test_a_query_may_fill_its_bounds() -> None:
    build_request(query="x" * 512)
    build_request(query="é" * 256)


@pytest.mark.parametrize("wrong", ["", "x" * 129, "\udc80", 5, True])
def test_ids_are_short_strings(wrong: object) -> None:
    assert "session_id" in str(refused(operation="open", session_id=wrong, entry_id="e"))
    assert "entry_id" in str(refused(operation="open", session_id="s", entry_id=wrong))


@pytest.mark.parametrize("wrong", ["", "/" * 4097, "/a\0b", "/\ud800", 5])
def test_a_working_folder_is_a_string_within_its_bounds(wrong: object) -> None:
    assert "cwd" in str(refused(query="word", cwd=wrong))


def milliseconds(text: str) -> int:
    made = build_request(operation="list", since=text, until=text)
    assert isinstance(made, ListRequest) and made.since == made.until and made.since is not None
    return made.since


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("2026-03-02", "2026-03-02T00:00:00.000Z"),
        ("2026-03-02T10:00", "2026-03-02T10:00:00Z"),
        ("2026-03-02T10:00:00+02:00", "2026-03-02T08:00:00Z"),
        ("2026-03-02T10:00:00-0530", "2026-03-02T15:30:00Z"),
        ("2026-03-02T10:00:00.5", "2026-03-02T10:00:00.500Z"),
    ],
)
def test_a_date_or_a_time_without_zone_is_utc(text: str, same: str) -> None:
    assert milliseconds(text) == milliseconds(same)


def test_a_time_finer_than_a_millisecond_rounds_up_so_that_both_bounds_stay_exact() -> None:
    assert milliseconds("2026-03-02T10:00:00.0001Z") == milliseconds("2026-03-02T10:00:00.001Z")


@given(
    st.datetimes(
        timezones=st.sampled_from([UTC, timezone(timedelta(hours=9)), timezone(-timedelta(hours=5, minutes=30))])
    )
)
def test_every_iso_time_is_read_as_python_reads_it(moment: datetime) -> None:
    exact = (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    assert milliseconds(moment.isoformat()) == -(-exact // 1000)


@pytest.mark.parametrize(
    "wrong",
    ["", "yesterday", "2026", "2026-03", "2026-3-2", "20260302", "2026-02-30", "2026-W10-1", "0000-01-01", "2026-03-02 10:00",
     "2026-03-02T", "2026-03-02T24:00", "2026-03-02T10", "2026-03-02T10:00:60", "2026-03-02T10:00.5", "2026-03-02T10:00z",
     "2026-03-02Z", "2026-03-02T10:00+24:00", "2026-03-02\n", " 2026-03-02", "２０２６-03-02", 1772409600000, True,
     datetime(2026, 3, 2, tzinfo=UTC)],
)  # fmt: skip
def test_anything_else_is_no_time(wrong: object) -> None:
    for name in ("since", "until"):
        assert name in str(refused(query="word", **{name: wrong}))


@given(st.text(alphabet="abc/\\ \0\ud800", min_size=1).map(lambda text: "secret" * 700 + text))
def test_a_message_never_repeats_the_value(value: str) -> None:
    for call in (
        {"query": value},
        {"query": "word", "cwd": value},
        {"operation": "open", "session_id": value, "entry_id": "e"},
    ):
        error = refused(**call)
        assert "secret" not in str(error) + error.hint


def test_a_refusal_is_a_value_error_with_its_code() -> None:
    error = refused(query="word", limit=0)
    assert isinstance(error, ValueError) and error.code == "invalid_request" and not error.retryable


def test_the_public_functions_have_the_signature_of_the_table() -> None:
    from harness_session_history import SessionHistory, session_history

    for function in (SessionHistory.__call__, session_history):
        parameters = {n: p for n, p in inspect.signature(function).parameters.items() if n != "self"}
        assert list(parameters) == list(ARGUMENTS)
        for name, parameter in parameters.items():
            assert parameter.default == ARGUMENTS[name].default


def test_help_tells_each_argument_with_bound_and_default_the_fields_of_answers_and_the_errors() -> None:
    from harness_session_history import SessionHistory, session_history
    from harness_session_history.response import ANSWERS

    for function in (SessionHistory.__call__, session_history):
        said = inspect.getdoc(function) or ""
        for name, argument in ARGUMENTS.items():
            needed = name in ("query", "session_id", "entry_id")
            usual = "required for" if needed else f"default {argument.default!r}"
            assert f"  {name}: {argument.bound}, {usual}" in said and argument.meaning in said
        for answer in ANSWERS.values():
            for field, hint in get_type_hints(answer, include_extras=True).items():
                meaning = get_args(get_args(hint)[0] if get_origin(hint) is NotRequired else hint)[1]
                assert f"    {field}: {meaning}" in said
        assert all(error.__name__ in said for error in SessionHistoryError.__subclasses__())


def test_the_alias_package_has_the_same_names() -> None:
    pytest.importorskip("harness_session_history.history")
    import harness_session_history
    import session_history

    assert session_history.__all__ == harness_session_history.__all__
    assert session_history.SessionHistory is harness_session_history.SessionHistory
