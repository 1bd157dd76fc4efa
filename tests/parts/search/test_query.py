"""The query language: what is accepted, what it finds, what is refused and with which advice."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fts_table import found, rows, table, texts, words
from harness_session_history.errors import InvalidRequest
from harness_session_history.search.expression import Phrase, all_of, any_of
from harness_session_history.search.match import Matcher
from harness_session_history.search.query import parse
from harness_session_history.text.tokens import Reading

ENGLISH = [
    "migration",
    "migrations",
    "migrate",
    "deployment",
    "happiness",
    "happy",
    "important",
    "importantly",
    "sensibility",
    "usability",
    "relational",
    "generalizations",
    "sizing",
    "hopping",
    "falling",
    "agency",
    "conflated",
    "organization",
    "organizing",
    "verified",
    "verification",
    "retries",
    "analysis",
    "analyses",
    "studying",
    "they",
    "theyre",
    "used",
    "user",
    "using",
    "cease",
    "ceasing",
    "creation",
    "national",
    "rationalize",
    "electricity",
    "effectiveness",
    "callousness",
    "hopefully",
    "enjoyable",
    "enjoyed",
    "policies",
    "running",
    "controlling",
    "connection",
    "index",
    "indices",
    "kubernetes",
    "redis",
    "dns",
    "aws",
    "ios",
    "postgres",
    "https",
    "caches",
    "added",
    "adding",
    "activated",
    "valency",
    "digitizer",
    "radically",
    "formalize",
]


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("wrong-book", "the wrong-book case"),
        ("wrong-book", "the wrong book case"),
        ("don't", "don't use it"),
        ("src/auth.rs", "see src/auth.rs now"),
        ("v2.1", "release v2.1 today"),
        ("C++", "a C++ file"),
        ("NEAR(", "NEAR by"),
        ("foo AND", "foo AND bar"),
        ("-foo", "foo"),
        ("text:foo", "text: foo"),
        ("{a}:b", "a b here"),
        ("foo -- bar", "bar foo"),
        ("deploy", "we deployed it"),
        ("deploy", "deployments are frozen"),
        ("deployment", "it deploys"),
        ("verify", "verification"),
        ("retry", "max_retry_count"),
        ("retry", "set maxRetryCount"),
        ("maxretrycount", "set maxRetryCount"),
        ("maxRetryCount", "set max_retry_count"),
        ("server", "HTTPServerError"),
        ("github-action", "GitHub Action"),
        ("评审", "明天下午三点开项目评审会议"),
        ("会", "明天下午三点开项目评审会议"),
        ("itgc", "重跑gen-itgc后"),
        ("跑gen", "重跑gen-itgc后"),
        ("베이스", "데이터베이스를"),
        ("resume", "re\u0301sume\u0301"),
        ("評*", "評審"),
        ("maxRe*", "maxRetryCount"),
        ("maxretr*", "maxRetryCount"),
        ("src/db/po*", "src/db/pool.ts"),
        ('"say \\"hi\\" \\\\ there"', 'say "hi" \\ there'),
        ('"two thr"*', "two three"),
    ],
)
def test_a_query_finds(query: str, text: str) -> None:
    assert found(query, text, "something else") == [text]
    assert Matcher(parse(query)).holds(text)


@pytest.mark.parametrize(
    "query",
    [
        "", " ", "...", "--", "🙏", '"unclosed', 'un"closed', "a*b", "a*", "é*", "-a*", "*", "**", "foo**", "*foo", '""',
        '" "', '"--"', "foo -- *", '"foo"*bar', "a\tb", "a\nb", "a\0b", "a\x85b", "\ud800", "x" * 513, "é" * 300,
        " ".join("abcdefghijklmnopqrstuvwxyzabcdefg0123456789")[:200],
    ],
)  # fmt: skip
def test_a_query_that_means_nothing_is_refused_with_advice(query: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        parse(query)
    assert str(refused.value).startswith("query ")
    assert refused.value.hint


def test_something_else_than_a_string_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="int"):
        parse(7)  # type: ignore[arg-type]


def test_thirty_two_terms_are_accepted_and_terms_said_twice_count_once() -> None:
    assert len(parse(" ".join(f"w{i}" for i in range(32))).terms) == 32
    assert len(parse("foo foo FOO").terms) == 1


def test_terms_say_what_they_are() -> None:
    terms = parse('deployed tx.draft "the pool" migrat*').terms
    assert [(term.text, term.kind, term.quoted) for term in terms] == [
        ("deployed", "word", False),
        ("tx.draft", "phrase", False),
        ('"the pool"', "phrase", True),
        ("migrat*", "prefix", True),
    ]
    assert [term.literal for term in terms[:3]] == [False, True, True]  # (tx, draft could stand apart)


def test_a_quoted_phrase_means_just_these_words() -> None:
    matcher = Matcher(parse('"deploy the"'))
    assert not matcher.holds("we deployed the pools")
    assert matcher.holds("Deploy — the pools")


def test_a_star_in_a_phrase_is_only_a_sign() -> None:
    assert found('"a * b"', "a b") == ["a b"]


@pytest.mark.parametrize("word", ENGLISH)
def test_each_beginning_of_a_word_finds_it(word: str) -> None:
    searched = table(word)
    for size in range(2, len(word) + 1):
        query = parse(word[:size] + "*")
        assert rows(searched, query.expression) == [1], word[:size]
        assert Matcher(query).holds(word)


def test_a_prefix_refuses_words_that_only_share_its_stem() -> None:
    assert not Matcher(parse("important*")).holds("import it")
    assert Matcher(parse("important*")).holds("most importantly")


@pytest.mark.parametrize(
    "word",
    [
        "redis",
        "dns",
        "aws",
        "ios",
        "kubernetes",
        "https",
        "Geräte",
        "Möglichkeiten",
        "été",
        "français",
        "сервера",
        "данные",
        "İstanbul",
        "ışık",
        "Αθήνα",
        "λόγος",
    ],
)
def test_names_and_words_of_other_languages_find_themselves(word: str) -> None:
    assert found(word, word, "other") == found(word.upper(), word, "other") == [word]


@given(st.text(max_size=40) | st.text(st.sampled_from("ab\"*\\ .-评é()^:{}+NEARORNOT'%_;"), max_size=30))
@example('"\\"')
@settings(max_examples=400)
def test_every_query_runs_or_is_refused(query: str) -> None:
    try:
        parsed = parse(query)
    except InvalidRequest:
        return
    searched = table("a b", "评审")
    rows(searched, parsed.expression)
    for term in parsed.terms:
        rows(searched, term.expression)


@pytest.mark.parametrize("text", ["00A\U00018cd6", "00\U00040000:0"])
def test_a_letter_that_this_python_does_not_know_is_found_beside_others(text: str) -> None:
    assert Matcher(parse(text)).holds(text)


@given(st.lists(words, min_size=1, max_size=6), st.data())
@settings(max_examples=200)
def test_any_run_of_words_finds_its_text(several: list[str], data: st.DataObject) -> None:
    text = " ".join(several)
    first = data.draw(st.integers(0, len(several) - 1))
    run = " ".join(several[first : data.draw(st.integers(first + 1, len(several)))])
    for query in (run, '"' + run.replace("\\", "\\\\").replace('"', '\\"') + '"'):
        try:
            parsed = parse(query)
        except InvalidRequest:
            continue
        assert rows(table(text), parsed.expression) == [1]
        assert Matcher(parsed).holds(text)


UNSPACED = st.text(
    st.sampled_from("评审会议排期明天下午𠀀𠀁カタナのテストデ데이터베를가각ภาษไทยກຂພသစမខរㄅㄆ々〇")
    | st.characters(min_codepoint=0x4E00, max_codepoint=0x9FFF),
    min_size=1,
    max_size=10,
) | st.sampled_from(["ภาษาไทยที่ดี", "မြန်မာစာ", "ខ្មែរភាសា", "ພາສາລາວ", "བོད་སྐད", "データベース"])


@given(UNSPACED, texts, st.data())
@settings(max_examples=200)
def test_any_run_of_characters_of_a_script_without_spaces_finds_its_text(
    word: str, around: str, data: st.DataObject
) -> None:
    first = data.draw(st.integers(0, len(word) - 1))
    run = word[first : data.draw(st.integers(first + 1, len(word)))]
    if not Reading(run).words:
        return
    text = f"{around} gen{word}-itgc"
    for query in (run, f'"{run}"', f"{run}*"):
        assert rows(table(text), parse(query).expression) == [1]
        assert Matcher(parse(query)).holds(text)


def test_an_expression_is_taken_apart_only_between_what_is_required() -> None:
    query = parse('one deployed "two three" pre*')
    assert query.expression.required == tuple(term.expression for term in query.terms)
    assert query.expression.phrases == tuple(p for term in query.terms for p in term.expression.phrases)


def test_an_expression_is_written_as_fts5_reads_it() -> None:
    one, two = Phrase(("one", "two")), Phrase(("th",), prefix=True, column="whole")
    assert str(all_of([one, any_of([one, two]), any_of([two, two])])) == (
        '("one two" AND ("one two" OR whole : "th" *) AND whole : "th" *)'
    )


def test_what_stands_in_place_of_a_phrase_stands_there_only() -> None:
    one, two = Phrase(("one",)), Phrase(("two",), prefix=True)
    expression = all_of([one, any_of([one, two])])
    replaced = expression.replaced(lambda phrase: any_of([phrase, Phrase(("more",))]) if phrase.prefix else phrase)
    assert str(replaced) == '("one" AND ("one" OR ("two" * OR "more")))'
    assert expression.has_prefix and expression.conjoins and not one.has_prefix and not any_of([one, two]).conjoins
