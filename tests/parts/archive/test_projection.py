"""What of a message is text, and how text becomes harmless (contract section 5)."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from harness_session_history.archive.projection import Block, DetailBlock, parts, project, text_of, tool_calls, view_of
from harness_session_history.model.entries import ASSISTANT, USER
from harness_session_history.text.clean import clean, is_clean, one_line, searchable

SKILL = '<skill name="terraform" location="/x/SKILL.md">\nReferences.\n\n# Terraform\nAlways plan.\n</skill>'


@pytest.mark.parametrize(
    ("raw", "cleaned"),
    [
        ("plain text, tabs\tand\nlines", "plain text, tabs\tand\nlines"),
        ("a\r\nb\rc\n\rd", "a\nb\nc\n\nd"),
        ("a\x1b[31mred\x1b[0mb", "aredb"),
        ("a\x1b[38;5;200;1m\x1b[?25lb", "ab"),
        ("a\x9b31mb", "ab"),
        ("a\x1b]0;title\x07b\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\c", "ablinkc"),
        ("a\x9d0;title\x9cb", "ab"),
        ("a\x1bP1;2|data\x1b\\b\x1b_apc\x1b\\c\x1b^pm\x9cd\x1bXsos\x9ce", "abcde"),
        ("a\x90dcs\x9cb\x9fapc\x9cc", "abc"),
        ("a\x1b(Bb\x1b#8c\x1b=d\x1b7e", "abcde"),
        ("a\x1b]0;never ended\nb", "a0;never ended\nb"),
        ("a\x9d0;never ended\nb\x9fc", "a 0;never ended\nb c"),
        ("a\x9b", "a "),
        ("a\x9b1é", "a 1é"),
        ("a\x1b[", "a"),
        ("a\x1b[12;", "a"),
        ("a\x1b", "a "),
        ("a\x1b[31é", "aé"),
        ("a\x1b\x1b[0m[31mb", "a [31mb"),
        ("a\x00b\x07c\x08d\x7fe\x85f\x99g", "a b c d e f g"),
        ("\u202eabc\u202c\u2066x\u2069\u200f\u061cy", "abcxy"),
        ("a\U000e0041\U000e007fb", "ab"),
        ("x\ud83d y\ude00", "x\ufffd y\ufffd"),
        ("keeps zero\u200bwidth\u200d\u2028and\ufeff", "keeps zero\u200bwidth\u200d\u2028and\ufeff"),
        ("评审会议\u3000\U0001f64f\U0001f3fd", "评审会议\u3000\U0001f64f\U0001f3fd"),
    ],
)
def test_cleaning(raw: str, cleaned: str) -> None:
    assert clean(raw) == cleaned


HOSTILE = st.text(
    st.sampled_from(
        [*"ab [];m\\\r\n\t", "\x1b", "\x07", "\x9b", "\x9c", "\x9d", "\x90", "\u202e", "\ud83d", "\U000e0041", "é"]
    )
)


@settings(deadline=None)
@given(HOSTILE | st.text(st.characters(categories=["Cc", "Cf", "Cs", "Ll", "Zs"])))
@example("\x1b]\x1b[m\x1b\\")
def test_cleaning_twice_changes_nothing_more(text: str) -> None:
    once = clean(text)
    assert clean(once) == once and is_clean(once)
    assert is_clean(text) == (once == text)
    once.encode("utf-8")
    assert all(unicodedata.category(c) != "Cc" or c in "\t\n" for c in once)


@settings(deadline=None)
@given(HOSTILE)
def test_the_searchable_variant_differs_only_in_spaces(text: str) -> None:
    apart = searchable(text)
    assert "".join((apart or clean(text)).split()) == "".join(clean(text).split())
    assert apart == "" or is_clean(apart)


@pytest.mark.parametrize(
    ("raw", "apart"),
    [
        ("plain", ""),
        ("red\x1b[0mgreen", "red green"),
        ("red\x1b[0m green", ""),
        ("\x1b[31mred\x1b[0m", ""),
        ("one\u202e\u202dtwo", "one two"),
        ("评\U000e0041审", "评 审"),
        ("a\x00b", ""),
    ],
)
def test_what_is_removed_never_glues_words_in_the_index(raw: str, apart: str) -> None:
    assert searchable(raw) == apart


@pytest.mark.parametrize(
    "unit",
    [
        "\x1b]",
        "\x9d",
        "\x1b[",
        "\x1b[1;",
        "\x1bP",
        "\x90\x1b",
        "\u202e",
        "\x1b]a",
        "<skill name='a'>",
        "<skill name='a'><skill name='b'></skill>",
        "<!--",
        "<!-- persistent-harness-input: x -->\n",
        "<skill>b</skill>",
        "<skill ",
    ],
)
def test_hostile_repetition_is_read_in_one_go(unit: str) -> None:
    text = unit * (300_000 // len(unit))
    project(USER, text)
    project(USER, text + "</skill><!-- persistent-harness-input: x -->")


def test_millions_of_characters_of_markers_leave_what_was_said() -> None:
    text = "said" + " <!-- persistent-harness-input: x -->\n" * 110_000
    assert len(text) > 4_000_000 and project(USER, text)[0] == "said"


def test_a_skill_may_name_itself_in_an_element_of_its_own() -> None:
    assert project(USER, "<skill>\n<name>demo</name>\n<path>/x</path>\nBody.\n</skill> go")[0] == "[skill: demo] go"
    assert project(USER, '<skill name="a"><name>b</name></skill>')[0] == "[skill: a]"
    assert project(USER, "<skill>Body. <name>demo</name></skill>")[0] == "[skill: unnamed]"


def test_one_line_folds_and_bounds_names() -> None:
    assert one_line("  a\n\tb\x1b[31m  c ") == "a b c"
    assert one_line("x" * 500) == "x" * 200
    assert one_line(None) == one_line(5) == one_line(" \n") == ""


# Which parts are text


def blocks(*pairs: tuple[str, str | None]) -> list[Block]:
    return [Block(kind, text) for kind, text in pairs]


def test_text_is_the_string_or_the_text_blocks_joined_by_a_blank_line() -> None:
    assert project(USER, "hello") == ("hello", "")
    made = blocks(
        ("text", "one"), ("thinking", "no"), ("image", None), ("toolCall", None), ("text", "two"), ("odd", "no")
    )
    assert project(ASSISTANT, made) == ("one\n\ntwo", "")


def test_blank_blocks_leave_no_gap_and_white_space_alone_is_no_text() -> None:
    assert (
        project(USER, blocks(("text", "one"), ("text", ""), ("text", " \n"), ("text", None), ("text", "two")))[0]
        == "one\n\ntwo"
    )
    for nothing in ("", "  \n\t", "\u3000", "\x00", "\x1b[0m"):
        assert project(USER, nothing) == ("", "") and project(USER, blocks(("text", nothing))) == ("", "")


def test_the_search_text_is_given_only_where_it_differs() -> None:
    assert project(USER, "a\x1b[0mb") == ("ab", "a b")
    assert project(USER, "a \x1b[0mb") == ("a b", "")
    assert project(USER, blocks(("text", "x"), ("text", "a\x1b[0mb"))) == ("x\n\nab", "x\n\na b")


# What clients put into user messages


@pytest.mark.parametrize(
    ("raw", "folded"),
    [
        (SKILL, "[skill: terraform]"),
        (SKILL + "\n\nmove the bucket", "[skill: terraform]\n\nmove the bucket"),
        (f"before {SKILL} between {SKILL} after", "before [skill: terraform] between [skill: terraform] after"),
        ("<skill name='a>b' x=\"\">body</skill>", "[skill: a>b]"),
        ("<skill location='/x'>body</skill>", "[skill: unnamed]"),
        ("<skill>body</skill>", "[skill: unnamed]"),
        ('<skill name="a">out <skill name="b">in</skill> out</skill> rest', "[skill: a] rest"),
        ('<skill name="a">says <skill name="b"> once</skill> rest', "[skill: a] rest"),
        ('<skill name="a">never ends', '<skill name="a">never ends'),
        ("a </skill> alone", "a </skill> alone"),
        ("the <skills> and <skill-name> tags", "the <skills> and <skill-name> tags"),
        ('<skill name="' + "n" * 99 + '\n">b</skill>', "[skill: " + "n" * 64 + "]"),
        ("is 1 <skill 2", "is 1 <skill 2"),
    ],
)
def test_skill_bodies_fold_to_their_name(raw: str, folded: str) -> None:
    assert project(USER, raw)[0] == folded


@pytest.mark.parametrize(
    ("raw", "left"),
    [
        ('do it\n\n<!-- persistent-harness-input: {"id": 1} -->', "do it"),
        ("do it <!--persistent-harness-input:a--> \n<!-- persistent-harness-input:b\nc -->\n", "do it"),
        ("<!-- persistent-harness-input:x -->", ""),
        ("<!-- persistent-harness-input:x --> then more", "<!-- persistent-harness-input:x --> then more"),
        ("a <!-- other --> <!-- persistent-harness-input:x -->", "a <!-- other -->"),
        ("a <!-- persistent-harness-input:x", "a <!-- persistent-harness-input:x"),
        ("a <!-- other -->", "a <!-- other -->"),
    ],
)
def test_the_trailing_harness_marker_is_dropped(raw: str, left: str) -> None:
    assert project(USER, raw)[0] == left
    assert project(USER, blocks(("text", raw), ("image", None)))[0] == left


def test_an_assistant_that_quotes_a_skill_is_left_alone() -> None:
    quoted = SKILL + "<!-- persistent-harness-input:x -->"
    assert project(ASSISTANT, quoted)[0] == quoted


# Renderings


def test_parts_keep_the_order_and_show_placeholders() -> None:
    content = [
        DetailBlock("thinking", None),
        DetailBlock("text", "one\x1b[31m"),
        DetailBlock("image"),
        DetailBlock("attachment", fileName="plan [v2].pdf\n"),
        DetailBlock("file"),
        DetailBlock("text", "two"),
        DetailBlock("toolCall", id="t", name="bash"),
        DetailBlock("martian", "no"),
    ]
    pieces = parts(ASSISTANT, content)
    assert [p.text for p in pieces] == [
        "[thinking]",
        "one",
        "[image]",
        "[attachment: plan [v2).pdf]",
        "[attachment: unnamed]",
        "two",
    ]
    assert text_of(pieces) == "one\n\ntwo" and view_of(pieces) == "one\n\n[image]\n\ntwo"


def test_tool_calls_are_a_name_and_the_id_of_the_call() -> None:
    content = [
        DetailBlock("text", "x"),
        DetailBlock("toolCall", id="t1", name="ba\x1b[0msh\n"),
        DetailBlock("toolCall", id=5, name=None),
    ]
    assert tool_calls(content) == [("t1", "bash"), ("", "unnamed")]
    assert tool_calls("text") == []


@settings(deadline=None)
@given(
    st.sampled_from([USER, ASSISTANT]),
    HOSTILE | st.lists(st.tuples(st.sampled_from(["text", "image", "thinking"]), HOSTILE)),
)
def test_the_shown_text_is_the_indexed_text(role: int, content: str | list[tuple[str, str]]) -> None:
    if isinstance(content, str):
        assert text_of(parts(role, content)) == project(role, content)[0]
    else:
        shown = [DetailBlock(kind, text) for kind, text in content]
        assert text_of(parts(role, shown)) == project(role, blocks(*content))[0]
