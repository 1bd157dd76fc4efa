"""What the search table is told of a text, and that what is told can be found."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fts_table import found, texts
from harness_session_history.text.analysis import document
from harness_session_history.text.tokens import Reading


def words_of(text: str) -> list[str]:
    return Reading(text).words


@pytest.mark.parametrize(
    ("text", "body", "whole"),
    [
        ("set maxRetryCount", "set max Retry Count", "maxRetryCount"),
        ("HTTPServerError", "HTTP Server Error", "HTTPServerError"),
        ("sha256Sum", "sha256 Sum", "sha256Sum"),
        ("the IDs and URLs of A4B7C9", "the IDs and URLs of A4B7C9", ""),
        ("max_retry_count MAX_RETRY", "max_retry_count MAX_RETRY", ""),
        ("größeÄnderung", "grösse Änderung", "grösseÄnderung"),
    ],
)
def test_identifiers_are_cut_where_their_case_changes(text: str, body: str, whole: str) -> None:
    assert document(text) == (body, whole)


def test_text_without_anything_to_cut_comes_back_as_it_is() -> None:
    text = "Nothing here — not even naïve “quotes” — is to be cut. ✅"
    assert document(text)[0] is text


def test_a_very_long_run_of_letters_is_no_identifier() -> None:
    text = "aB" * 5_000
    assert document(text) == (text, "")


@pytest.mark.parametrize("text", ["评审", "カナ", "한글", "ไทย", "ລາວ", "ㄅㄆ", "𠀀𠀁"])
def test_each_character_of_a_script_without_spaces_is_a_word(text: str) -> None:
    assert len(words_of(text)) == len(text)


@pytest.mark.parametrize(
    "text", ["done🥳", "🤖Done", "done🫠", "DONE🏽", "₺done", "done⏸", "\u2e40done", "\u2068done\u2069"]
)
def test_a_symbol_newer_than_the_tokenizer_is_no_letter(text: str) -> None:
    assert words_of(text) == ["done"]


def test_marks_that_are_vowels_are_kept() -> None:
    assert len(words_of("किताब")) == 1
    assert words_of("กิน") != words_of("กุน")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Straße", "STRASSE"),
        ("ﬁle", "file"),
        ("ＦＵＬＬ", "full"),
        ("ｶﾞ", "ガ"),
        ("Łódź", "lodz"),
        ("Καλημέρα", "ΚΑΛΗΜΕΡΑ"),
        ("ещё", "ЕЩЕ"),
        ("مُحَمَّد", "محمد"),
        ("שָׁלוֹם", "שלום"),
        ("⼀", "一"),
        *[
            pair.split("/")
            for pair in [
                "ễ/e",
                "ǡ/a",
                "ǣ/ae",
                "ѝ/и",
                "ά/α",
                "å/a",
                "ü/u",
                "æ/ae",
                "ø/o",
                "أ/ا",
                "إ/ا",
                "آ/ا",
                "ٱ/ا",
                "ؤ/و",
                "ئ/ي",
                "ى/ي",
                "ی/ي",
                "ک/ك",
                "ة/ه",
                "ﻹ/لا",
                "kB/kb",
                "pH/ph",
            ]
        ],
    ],
)
def test_spellings_of_one_word_are_one(one: str, other: str) -> None:
    assert words_of(one) == words_of(other)


@pytest.mark.parametrize(
    "pair", ["й/и", "ї/і", "ў/у", "क़/क", "が/か", "っ/つ", "国/國", "ü/ue", "٣/3", "colour/color", "organise/organize"]
)
def test_words_that_are_no_spellings_of_one_stay_apart(pair: str) -> None:
    one, other = pair.split("/")
    assert found(one, other) == found(other, one) == []


def test_a_soft_hyphen_leaves_the_word_and_its_parts_findable() -> None:
    text = "very impor\u00adtant"
    assert found("important", text) == found("impor", text) == found('"very important"', text) == [text]


@pytest.mark.parametrize("glue", ["\u200b", "\u200c", "\u200d", "\u2060", "\ufeff", "\u00ad", "\ue0b0", "\0"])
def test_invisible_characters_never_glue_words(glue: str) -> None:
    assert words_of(f"alpha{glue}beta") == ["alpha", "beta"]


def test_words_glued_by_a_removed_escape_sequence_are_found_apart_and_together() -> None:
    assert document("redgreen lamp", "red green lamp") == ("red green lamp", "redgreen")


@given(st.text(st.characters()), st.text(st.characters()))
def test_the_columns_hold_neither_nul_nor_half_characters(text: str, search_text: str) -> None:
    for column in document(text, search_text):
        assert "\0" not in column
        column.encode()


@given(texts)
@settings(max_examples=200)
def test_composed_and_decomposed_text_hold_the_same_words(text: str) -> None:
    composed, decomposed = unicodedata.normalize("NFC", text), unicodedata.normalize("NFD", text)
    split = {word for word in words_of(composed)} ^ {word for word in words_of(decomposed)}
    wholes = [Reading(kind).compounds() for kind in (composed, decomposed) if Reading(kind).compounds()]
    assert not split or wholes


@given(texts)
@settings(max_examples=200)
def test_tokens_are_read_where_they_stand(text: str) -> None:
    reading = Reading(text)
    places = [reading.place(at, at + 1) for at in range(len(reading.words))]
    assert places == sorted(places)
    for (start, end), word in zip(places, reading.words, strict=True):
        assert 0 <= start < end <= len(text)
        assert word in words_of(text[start:end]) or not text.isascii()
