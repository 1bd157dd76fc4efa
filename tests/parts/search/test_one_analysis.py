"""What the index finds in a text, what is held to stand there, what is marked and what a snippet shows are one analysis."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fts_table import rows, table
from harness_session_history.errors import InvalidRequest
from harness_session_history.search.match import Matcher
from harness_session_history.search.query import Query, parse
from harness_session_history.search.vocabulary import ALONE, BESIDE_OTHERS, Vocabulary

NAMES = (
    "user", "state", "deploy", "verify", "analysis", "retry", "policies", "git", "hub", "max", "count", "the", "it", "API",
    "URL", "id", "k8s", "ios", "x1", "2", "512", "größe", "ключ", "é", "评审", "カナ", "ガ", "키", "ไทย", "नमस्ते", "ǡb", "أحمد", "λόγος",
)  # fmt: skip
STYLES: dict[str, Callable[[list[str]], str]] = {
    "camelCase": lambda some: some[0] + "".join(word.capitalize() for word in some[1:]),
    "PascalCase": lambda some: "".join(word.capitalize() for word in some),
    "snake_case": "_".join,
    "SNAKE_CASE": lambda some: "_".join(some).upper(),
    "kebab-case": "-".join,
    "path": "/".join,
    "dotted": ".".join,
    "glued": "".join,
    "joined": "\u00ad".join,
    "apart": " ".join,
    "called": lambda some: ".".join(some) + "()",
}
PIECES = (
    "BurntSushi/ripgrep", "burntsushi/ripgrep", "NousResearch/hermes", "nousresearch/Herm", "512 kB", "512kb", "16GiB", "30s",
    "SELECT", "set", "DATABASE_URL", "date", "app", "getData()", "useState", "VerificationDeployments", "HTTPServerErrors",
    "sha256Sum", "don't", "“quoted”", "e\u0301te\u0301", "ﬁle", "ｶﾞ", "①", "m²", "👩\u200d💻done", "done🥳", "⚠️", "—", "\ue0b0main",
    "重跑gen-itgc后", "data库", "x" * 130 + "Yz", "C++", "v1.2.3", "a/b", "iT/aB", "tHe", "1\u00ad2", "\u200b", "\u0301", "İstanbul",
    "\n", "…", "...",
)  # fmt: skip

names = st.lists(st.sampled_from(NAMES), min_size=1, max_size=4)
identifiers = st.builds(lambda some, style: STYLES[style](some), names, st.sampled_from(sorted(STYLES)))
letters = st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), min_size=1, max_size=6)
pieces = identifiers | st.sampled_from(PIECES) | letters
texts = st.builds(
    lambda some, glue: glue.join(some), st.lists(pieces, min_size=1, max_size=8), st.sampled_from(["", " ", " "])
)


@st.composite
def queries(draw: st.DrawFn, text: str) -> str:
    """A query made of a stretch of the text, said in another way, or of something else."""
    terms = []
    for _ in range(draw(st.integers(1, 3))):
        words = text.split() or ["x"]
        first = draw(st.integers(0, len(words) - 1))
        term = draw(st.sampled_from([words[first], words[first], " ".join(words[first : first + 3])]) | pieces)
        term = draw(st.sampled_from([term, term.lower(), term.upper(), term.swapcase(), term.title()]))
        for old, new in draw(st.lists(st.sampled_from([("_", "-"), ("/", "."), (" ", "/"), ("", "")]), max_size=2)):
            term = term.replace(old, new)
        term += draw(st.sampled_from(["", "", "", "s", "ed", "ment", "ing"]))
        start = draw(st.sampled_from([0, 0, 0, 1, 2]))
        term = term[start : len(term) - draw(st.sampled_from([0, 0, 0, 1, 2]))].replace("\\", "").replace('"', "")
        kind = draw(st.sampled_from(["{}", "{}", '"{}"', "{}*", '"{}"*']))
        terms.append(kind.format(term if '"' in kind else term.replace("*", "")))
    return " ".join(terms)


texts_and_queries = texts.flatmap(lambda text: st.tuples(st.just(text), queries(text)))


def parsed(query: str) -> Query | None:
    try:
        return parse(query)
    except InvalidRequest:
        return None


def check_index_and_text(text: str, typed: str) -> None:
    query = parsed(typed)
    if query is None:
        return
    index, matcher = table(text), Matcher(query)
    vocabulary = Vocabulary(index)
    held = matcher.held(text)
    for at, term in enumerate(query.terms):
        found = rows(index, vocabulary.spelled_out(term.expression, ALONE)) == [1]
        assert found or at not in held, (term, text)
        assert term.literal or found == (at in held), (term, text)
    found = rows(index, vocabulary.spelled_out(query.expression, BESIDE_OTHERS)) == [1] and (
        not query.literal or matcher.holds(text)
    )
    assert found == (len(held) == len(query.terms)), (query, text)
    assert matcher.typed(text) <= held
    assert matcher.typed(text) >= {at for at in held if query.terms[at].quoted}


FILLERS = (
    "unlike nothing\n",
    "Ünlike nothing\n",
    "unlike — nothing ✅\n",
    "un/like=nothing;\n" + "- " * 200,
    "\u00ad unlike\n",
)


def check_places(text: str, typed: str, filler: str, chars: int, before: int, behind: int) -> None:
    query = parsed(typed)
    if query is None:
        return
    if Matcher(query).held(filler):
        return
    start = before * len(filler)
    long = before * filler + text + "\n" + behind * filler
    alone, places = Matcher(query).places(f"-\n{text}\n-"), Matcher(query).places(long)
    assert [(p.start - start, p.end - start, p.term) for p in places] == [
        (p.start - 2, p.end - 2, p.term) for p in alone
    ]
    matcher = Matcher(query)
    snippet, cut = matcher.snippet(long, chars)
    assert len(snippet) <= chars and cut == (len(long) > chars)
    marked = matcher.marker()(snippet)
    written = {long[place.start : place.end] for place in places}
    shown = [snippet[start:end] for start, end in marked]
    if any(len(place) <= chars - 2 for place in written):
        assert marked and written.issuperset(shown), (query, snippet)
    else:  # (a place longer than the limit is marked as far as it goes)
        assert not written or any(place.startswith(shown[0]) for place in written), (query, snippet)


@given(texts_and_queries)
@example(("iT is aB then", "it/ab"))
@example(("GitHub the Action", '"github action"'))
@example(("maX reTry", "maxRetry"))
@example(("usedselectset", "Use*"))
@example(("useключ us", "use*"))
@example(("theysed they", "they* us*"))
@settings(derandomize=True, max_examples=300, deadline=None)
def test_the_index_finds_a_text_if_and_only_if_the_text_holds_the_terms(text_and_query: tuple[str, str]) -> None:
    check_index_and_text(*text_and_query)


@given(texts_and_queries, st.sampled_from(FILLERS), st.integers(80, 200), st.integers(0, 300), st.integers(0, 300))
@settings(max_examples=150, deadline=None)
def test_a_long_text_holds_what_its_part_holds_and_its_snippet_shows_it(
    text_and_query: tuple[str, str], filler: str, chars: int, before: int, behind: int
) -> None:
    check_places(*text_and_query, filler, chars, before, behind)


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("BurntSushi/ripgrep", "see burntsushi/ripgrep"),
        ("burntsushi/ripgrep", "see BurntSushi/ripgrep"),
        ("NousResearch/herm*", "by nousresearch/hermes"),
        ("nousresearch/herm*", "by NousResearch/Hermes"),
        ("foo_bar/bazQux", "in fooBar/bazqux"),
        ('"512 kb"', "of 512 kB"),
        ("verify/deploys", "the VerificationDeployments"),
        ("verifyDeploys", "the VerificationDeployments"),
        ("retry-policies.deploys", "a RetryPolicy, deployment"),
        ("analyse", "an analysis"),
        ("analysis", "we analysed"),
        ("analyzed", "two analyses"),
        ("emphasis", "emphasized"),
        ("synthesize", "a synthesis"),
        ("a", "the ǡ"),
        ("aeon", "ǣon"),
        ("احمد", "أحمد"),
        ("أحمد", "احمد"),
        ("مسئول", "مسيول"),
        ("کتاب", "كتاب"),
        ("مدرسه", "مدرسة"),
        ("ѐ", "е"),
    ],
)
def test_words_are_found_however_they_are_put_together_inflected_or_marked(query: str, text: str) -> None:
    check_index_and_text(text, query)
    assert Matcher(parse(query)).held(text) == {0}


@pytest.mark.parametrize("several", [7, 40, 4000])
@pytest.mark.parametrize(
    ("query", "noise", "hit"),
    [
        ("user", "useState ", "the user"),
        ("set", "SELECT ", "we set it"),
        ("date", "DATABASE_URL ", "a date"),
        ("date", "getData() ", "a date"),
        ("app", "API ", "the app"),
        ("deploy", "deplorable Deplete DEPLOT ", "deployed"),
        ('"users"', "user User USER ", "users"),
    ],
)
def test_a_word_is_shown_behind_any_number_of_its_look_alikes(several: int, query: str, noise: str, hit: str) -> None:
    text = noise * several + "then " + hit + " came. " + noise * several
    matcher = Matcher(parse(query))
    snippet, _ = matcher.snippet(text, 80)
    ((start, end),) = matcher.marker()(snippet)
    assert hit in snippet and snippet[start:end] in hit


@pytest.mark.parametrize(
    ("query", "text", "typed"),
    [
        ("k8s", "the k8s cluster", {0}),
        ("k8s", "our k8 notes", set()),
        ("https ios", "http, iOS", {1}),
        ("deploy", "Deploy", {0}),
        ("deploy", "deployed", set()),
        ("maxRetryCount", "max_retry_count", {0}),
        ("retries", "maxRetryCount", set()),
        ("retries", "maxRetries", {0}),
        ('"retries" retr*', "retries", {0, 1}),
    ],
)
def test_the_form_that_was_typed_is_told_from_its_stem(query: str, text: str, typed: set[int]) -> None:
    assert Matcher(parse(query)).typed(text) == typed


@pytest.mark.parametrize("chars", [80, 81, 82, 83, 84, 85, 160, 320, 800])
def test_a_snippet_is_cut_between_words(chars: int) -> None:
    for filler in (
        "the saturated connection pool ",
        "in src/db/connection_pool.ts:120 ",
        "किताब पढ़ना ",
        "e\u0301te\u0301 Größe ",
    ):
        text = filler * 60 + "target " + filler * 60
        snippet, _ = Matcher(parse("target")).snippet(text, chars)
        inner = snippet.removeprefix("…").removesuffix("…")
        assert "target" in inner and chars - 40 <= len(snippet) <= chars
        start = text.index(inner)
        before, behind = text[start - 1 : start + 1], text[start + len(inner) - 1 : start + len(inner) + 1]
        assert " " in before and " " in behind, (before, behind)


@pytest.mark.slow
@given(texts_and_queries, st.sampled_from(FILLERS), st.integers(80, 200), st.integers(0, 300), st.integers(0, 300))
@settings(max_examples=6000, deadline=None)
def test_index_text_and_snippet_agree_over_many_texts(
    text_and_query: tuple[str, str], filler: str, chars: int, before: int, behind: int
) -> None:
    check_index_and_text(*text_and_query)
    check_places(*text_and_query, filler, chars, before, behind)
