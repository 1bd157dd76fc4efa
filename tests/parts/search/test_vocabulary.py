"""The index's terms: which begin with something, and prefixes spelled out as the words that do."""

from __future__ import annotations

import apsw
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fts_table import rows, table, texts, words
from harness_session_history import InvalidRequest
from harness_session_history.search import vocabulary
from harness_session_history.search.query import parse
from harness_session_history.search.vocabulary import Vocabulary


def spelled_out(connection: apsw.Connection, query: str, most: int = 500) -> str:
    return str(Vocabulary(connection).spelled_out(parse(query).expression, most))


def test_the_terms_that_begin_with_something_come_in_order() -> None:
    connection = table("depend depot", "deploy dep", "deaf", "deq", "depot")
    assert Vocabulary(connection).beginning("dep", 10) == ["dep", "depend", "deploi", "depot"]
    assert Vocabulary(connection).beginning("dep", 2) == ["dep", "depend"]
    assert Vocabulary(connection).beginning("x", 2) == []


def test_words_whose_stem_stands_somewhere_are_told_in_their_order() -> None:
    connection = table("the deployment of pools")
    assert Vocabulary(connection).standing(["pool", "nowhere", "deployments", "th"]) == ["pool", "deployments"]


def test_a_prefix_becomes_the_words_that_begin_so() -> None:
    assert spelled_out(table("databases", "dative", "date"), "dat*") == '("date" OR "dativ" OR "database")'


def test_a_prefix_of_nothing_becomes_a_word_that_stands_nowhere() -> None:
    assert spelled_out(table("deaf"), "dep*") == '"dep"'


def test_a_prefix_of_too_many_terms_stays_a_prefix() -> None:
    connection = table("depend depot", "deploy")
    assert "*" not in spelled_out(connection, "dep*", 3)
    assert spelled_out(connection, "dep*", 2) == '"dep" *'


def test_a_prefix_stays_one_if_no_word_has_a_stem_that_begins_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vocabulary, "_ENDINGS", ("",))  # the stem "databas" has the stem "databa"
    assert spelled_out(table("databases", "date"), "dat*") == '"dat" *'


def test_the_last_word_of_several_stays_a_prefix() -> None:
    assert spelled_out(table("connection pool", "connection port"), '"connection po"*').count("*") > 0


@given(st.lists(texts, min_size=1, max_size=4), words, st.integers(2, 4))
@example(["databases deployed deployment"], "de", 2)
@example(["whole wholes wholeHeart"], "whole", 4)
def test_a_prefix_spelled_out_finds_the_same(some: list[str], word: str, size: int) -> None:
    connection = table(*some)
    try:
        expression = parse(word[:size] + "*").expression
    except InvalidRequest:
        return
    assert rows(connection, Vocabulary(connection).spelled_out(expression, 500)) == rows(connection, expression)
