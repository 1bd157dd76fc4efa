"""Texts held against a query: what holds, where the terms are, and the snippet that shows them."""

from __future__ import annotations

import pytest
from apsw.unicode import grapheme_next_break
from hypothesis import given, settings
from hypothesis import strategies as st

from fts_table import texts
from harness_session_history.search.match import Matcher
from harness_session_history.search.query import parse


def matcher(query: str) -> Matcher:
    return Matcher(parse(query))


def shown(query: str, text: str) -> list[tuple[str, int]]:
    return [(text[start:end], term) for start, end, term in matcher(query).places(text)]


FAR = "filler " * 2_000


@pytest.mark.parametrize("around", ["", FAR])
@pytest.mark.parametrize(
    ("query", "text", "spans"),
    [
        ("deploy pool", "we deployed the pools", [("deployed", 0), ("pools", 1)]),
        ("deploy", "the Deployment", [("Deployment", 0)]),
        ("retry", "set maxRetryCount", [("Retry", 0)]),
        ("maxretrycount", "set maxRetryCount", [("maxRetryCount", 0)]),
        ("maxRetryCount", "set max_retry_count", [("max_retry_count", 0)]),
        ("server", "HTTPServerError", [("Server", 0)]),
        ("itgc", "重跑gen-itgc后", [("itgc", 0)]),
        ("评审", "明天开项目评审会议", [("评审", 0)]),
        ("resume", "re\u0301sume\u0301 résumé", [("re\u0301sume\u0301", 0), ("résumé", 0)]),
        ("strasse", "die Straße", [("Straße", 0)]),
        ("file", "a ﬁle", [("ﬁle", 0)]),
        ("ガ", "ｶﾞ", [("ｶﾞ", 0)]),
        ('"github action"', "the GitHub Action", [("GitHub Action", 0)]),
        ("src/db", "in src/db/pool.ts", [("src/db", 0)]),
        ("migrati*", "the migration", [("migration", 0)]),
        ("important", "impor\u00adtant", [("impor\u00adtant", 0)]),
    ],
)
def test_terms_are_found_where_they_stand(around: str, query: str, text: str, spans: list[tuple[str, int]]) -> None:
    text = f"{text} {around}" if query in ("strasse", "file", "ガ", "resume", "important") else f"{around} {text}"
    assert shown(query, text) == spans


@pytest.mark.parametrize("around", ["", FAR])
def test_phrases_and_prefixes_are_verified_word_for_word(around: str) -> None:
    text = f"{around} we deployed the GitHub action " + "-" * 500 + " later"
    assert matcher('"deployed the"').holds(text)
    assert matcher('"github action later"').holds(text)
    assert matcher("deploye* acti*").holds(text)
    assert not matcher('"deploy the"').holds(text)
    assert not matcher('"the deployed"').holds(text)
    assert not matcher("deployer*").holds(text)


def test_a_query_without_phrase_or_prefix_has_nothing_to_verify() -> None:
    assert matcher("anything").holds("else")


def test_the_window_holds_as_many_terms_as_possible() -> None:
    text = "alpha " + FAR + "alpha beta gamma " + FAR + "beta gamma"
    snippet, cut = matcher("alpha beta gamma").snippet(text, 120)
    assert cut
    assert "alpha beta gamma" in snippet


def test_the_longer_and_rarer_term_wins_where_not_all_fit() -> None:
    text = "pool " * 20 + FAR + "saturation " + FAR
    assert "saturation" in matcher("pool saturation").snippet(text, 80)[0]


def test_a_short_text_is_its_own_snippet() -> None:
    assert matcher("zebra").snippet("line one\n  line two", 80) == ("line one\n  line two", False)


def test_without_any_term_the_snippet_is_the_beginning() -> None:
    snippet, cut = matcher("zebra").snippet(FAR, 80)
    assert cut
    assert snippet.startswith("filler filler")
    assert len(snippet) <= 80


@pytest.mark.parametrize("unit", ["🙏🏽", "—", "e\u0301", "🇩🇪", "评", "👩\u200d💻"])
@pytest.mark.parametrize("chars", [80, 81, 82, 100, 320])
def test_a_snippet_is_cut_between_clusters(unit: str, chars: int) -> None:
    text = "x" * (chars - 3) + " " + unit * 100 + " target " + unit * 400
    snippet, _ = matcher("target").snippet(text, chars)
    assert len(snippet) <= chars
    assert "target" in snippet
    before, _, after = snippet.strip("…").partition("target")
    for side in (before.lstrip("x").strip(), after.strip()):
        assert side == unit * (len(side) // len(unit))


def test_a_cluster_longer_than_the_limit_obeys_it() -> None:
    snippet, cut = matcher("zebra").snippet("e" + "\u0301" * 900, 80)
    assert cut
    assert len(snippet) == 80


def test_a_term_longer_than_the_limit_obeys_it() -> None:
    word = "y" * 300
    snippet, _ = matcher(word).snippet("x " * 100 + word + " x" * 100, 80)
    assert snippet == "…" + "y" * 78 + "…"


@given(texts, st.integers(1, 12), st.data(), st.integers(80, 130))
@settings(max_examples=200)
def test_a_snippet_is_a_stretch_of_the_text_within_the_limit(
    text: str, times: int, data: st.DataObject, chars: int
) -> None:
    text = " ".join([text] * times)
    query = data.draw(st.sampled_from(["deploy pool", "retry", "评", "resume", '"the connection"', "de*"]))
    snippet, cut = matcher(query).snippet(text, chars)
    assert len(snippet) <= chars
    assert cut == (len(text) > chars)
    if cut:
        inner = snippet.removeprefix("…") if not text.startswith(snippet[:-1]) else snippet
        start = text.find(inner.removesuffix("…"))
        assert start >= 0
    breaks, place = {0}, 0
    while place < len(text):
        place = grapheme_next_break(text, place)
        breaks.add(place)
    if cut and not snippet.startswith(text[:5]):
        inner = snippet.removeprefix("…").removesuffix("…")
        assert any(i in breaks for i in range(len(text)) if text.startswith(inner, i))


@given(texts)
@settings(max_examples=200)
def test_places_lie_inside_the_text_in_order(text: str) -> None:
    places = list(matcher('deploy retry 评 "the" max* resume').places(text))
    assert places == sorted(places)
    assert all(0 <= start < end <= len(text) for start, end, _ in places)


def test_a_quoted_capital_that_the_tokenizer_does_not_know_is_found() -> None:
    assert Matcher(parse('"\U0001e900"')).holds("say \U0001e900 twice")


def test_the_window_holds_as_many_of_many_terms_as_possible() -> None:
    many = "alpha beta gamma delta epsilon zeta"
    text = "the " * 400 + "alpha beta gamma " + "alpha " * 400 + many + " the" * 400
    snippet, cut = matcher(f"{many} the").snippet(text, 80)
    assert cut and many in snippet and "the" in snippet


@pytest.mark.parametrize(
    ("word", "query"),
    [
        ("Die Größe der Straße", "größe"),
        ("Die Größe der Straße", "straße"),
        ("con\ufb01guration", "configuration"),
        ("Mu\u0308ller", "Müller"),
        ("va\u0301lido", "valido"),
        ("co\u00adoperation", "cooperation"),
        ("the warning \u26a0\ufe0f stands", "stands"),
        ("re\u0301sume\u0301 of Mu\u0308ller", '"résumé of müller"'),
    ],
)
def test_a_word_far_inside_a_long_text_is_shown_however_it_is_written(word: str, query: str) -> None:
    far = "filler Größe-los naïve " * 2_000
    text = far.replace("Größe-los", "fi\ufb01") + word + " " + far.replace("Größe-los", "")
    snippet, _ = matcher(query).snippet(text, 120)
    assert word in snippet


@given(
    texts, st.sampled_from(["deploy", "resume", '"max retry"', "src/db", "github", "strasse", "conn*", "评审", "file"])
)
@settings(max_examples=300)
def test_terms_are_held_by_a_long_text_as_by_its_words(text: str, query: str) -> None:
    long = f"{FAR[:7000]} {text} {FAR[:7000]}"
    assert matcher(query).held(long) == matcher(query).held(f"filler {text} filler")


def test_a_mark_before_or_behind_a_word_is_none_of_it() -> None:
    assert shown("re", "re\u0301sume\u0301 re re\u0301 " + FAR) == [("re", 0), ("re\u0301", 0)]


def test_the_parts_of_a_term_must_stand_together_however_they_are_written() -> None:
    apart = matcher("github-action")
    assert not apart.holds("The action was taken long before GitHub answered")
    for text in ("github-action", "the GitHub actions", "GitHub_Action", "GithubAction"):
        assert apart.holds(text), text


@pytest.mark.parametrize("more", ["", " the pool that"])
def test_the_end_of_a_word_in_capitals_is_no_word(more: str) -> None:
    text = "EXPORT FOO LATEST GITHUB " + "filler " * 200 + "on port 8080 the test" + " filler" * 200
    assert "on port 8080 the test" in matcher("port test" + more).snippet(text, 120)[0]
    assert matcher("test quokka" + more).held("the LATEST of them") == ({2} if more else set())
    assert not matcher('"errors"').holds("one error in SERVERERRORS")
    assert matcher('"server"').holds("an HTTPServer") and matcher('"errors"').holds("the serverErrors")


def test_terms_that_stand_together_only_once_are_shown_there() -> None:
    text = (
        "cache " * 40 + "filler " * 40 + "pool " * 40 + "filler " * 40 + "the cache pool was merged " + "filler " * 40
    )
    assert "cache pool was merged" in matcher("cache pool").snippet(text, 80)[0]


def test_a_phrase_that_stands_again_and_again_but_for_its_end_is_told_apart_at_once() -> None:
    phrase = "-".join(["ab"] * 40)
    matcher = Matcher(parse(phrase))
    assert matcher.places("-".join(["ab"] * 39)) == []
    assert matcher.places("-".join(["ab"] * 41)) == [(0, 119, 0), (3, 122, 0)]


@pytest.mark.parametrize(
    ("query", "noise", "hit"),
    [
        ("foo.bar", "it is for them. ", "see foo.bar there"),
        ("wrong-book", "the wrong answer came. ", "it was wrong-book again"),
        ("pre-commit", "one more commit here. ", "run pre-commit now"),
        ("v1.2.3", "version 123 was 1. ", "tag v1.2.3 pushed"),
        ('"is it"', "this item is good. ", "what is it really"),
        ("user@host", "the user said so. ", "mail user@host now"),
        ("maxRetryCount", "retry the count. ", "set max_retry_counts now"),
        ("max-retry-count", "retry max. ", "set maxRetryCount now"),
    ],
)
def test_a_term_of_parts_is_shown_though_its_parts_stand_alone_again_and_again(
    query: str, noise: str, hit: str
) -> None:
    text = noise * 1500 + hit + " " + noise * 20
    assert hit in matcher(query).snippet(text, 120)[0]
    assert matcher(query).held(text) == {0} and not matcher(query).held(noise * 1500)


def test_encoded_data_is_looked_through_at_once() -> None:
    data = "isab" * 250_000
    assert not matcher("is-done").held(f"{data} {'-' * 100_000} {data}") and matcher("is-done").held(
        data + " is -- done"
    )
