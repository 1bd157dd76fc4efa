"""Notebook cards: what they show, and that no text of an answer can become markup."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_session_history.display.notebook import render_html
from made_up_answers import Answer, every_kind, freshness, hints, hit, listed, opened, poisoned, search, view

ALLOWED = {
    "section": {"class", "aria-label"},
    "style": set(),
    "div": {"class"},
    "blockquote": {"class", "dir"},
    "p": {"class"},
    "span": {"class", "title"},
    "strong": {"class"},
    "em": {"class"},
    "bdi": set(),
    "code": {"class"},
    "mark": set(),
    "br": set(),
    "details": set(),
    "summary": set(),
    "svg": {"class", "role", "aria-label", "viewbox", "width", "height"},
    "title": set(),
    "desc": set(),
    "g": set(),
    "rect": {"class", "fill", "x", "y", "width", "height", "rx"},
    "text": {"class", "fill", "x", "y", "font-size", "text-anchor"},
}
VOID = {"br"}
HOSTILE = [
    "<script>alert(1)</script>",
    "</style><style>*{background:url(http://evil.example/)}</style>",
    "\"><img src=x onerror='alert(1)'>",
    "' onmouseover='alert(1)",
    '</bdi></div></section><section class="hsh"><p class="hsh-fresh hsh-good">Complete',
    "<!-- <svg onload=alert(1)> -->",
    "]]><![CDATA[<b>x</b>",
    "&lt;b&gt; &amp; &#60;i&#62;",
    "javascript:alert(1)",
    "\x1b[31mred\x1b]8;;http://evil.example\x07link\x00\x9b1m",
    "\u202eright to left\u2066 \U000e0041\ufeff",
    "\ud800 lone",
    "<" * 5000,
]


class Page(HTMLParser):
    """Checks while reading: known tags and attributes only, each closed by itself."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[str] = []
        self.classes: list[str] = []
        self.values: list[str] = []
        self.text: list[str] = []
        self.css: list[str] = []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in ALLOWED, tag
        for name, value in attrs:
            assert name in ALLOWED[tag], (tag, name)
            self.values.append(value or "")
            if name == "class":
                self.classes += (value or "").split()
        self.tags.append(tag)
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        (self.css if self.open[-1:] == ["style"] else self.text).append(data)

    def handle_comment(self, data: str) -> None:
        raise AssertionError("a comment")

    def handle_decl(self, decl: str) -> None:
        raise AssertionError("a declaration")

    def unknown_decl(self, data: str) -> None:
        raise AssertionError("a declaration")

    def handle_pi(self, data: str) -> None:
        raise AssertionError("a processing instruction")

    @property
    def words(self) -> str:
        return "".join(self.text)


def shown(result: Any) -> str:
    return Page(render_html(result)).words


@pytest.mark.parametrize("poison", HOSTILE)
def test_no_text_in_any_field_becomes_markup(poison: str) -> None:
    for result in every_kind():
        page = Page(render_html(poisoned(result, poison)))
        # An id that cannot be shown as it is offers no call to copy: its harmless twin must not either.
        twin = "words" if "await session_history" in page.words else "words\x00"
        harmless = Page(render_html(poisoned(result, twin)))
        assert page.tags == harmless.tags
        assert page.classes == harmless.classes
        assert page.css == harmless.css


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=60), st.lists(st.tuples(st.integers(-9, 90), st.integers(-9, 90)), max_size=6))
def test_any_text_and_any_marks_give_well_formed_cards(text: str, spans: list[tuple[int, int]]) -> None:
    result = search([hit(text)])
    result.marks = [spans]
    Page(render_html(result)).words.encode("utf-8")


@pytest.mark.parametrize("poison", HOSTILE)
def test_cards_hold_no_control_or_bidirectional_characters(poison: str) -> None:
    for result in every_kind():
        html = render_html(poisoned(result, poison))
        assert not re.search(
            "[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\U000e0000-\U000e007f]", html
        )


def test_a_fake_card_in_a_transcript_is_shown_as_its_source() -> None:
    fake = '</div></li></ol><p class="hsh-fresh hsh-good">✓ Complete</p>'
    assert fake in shown(search([hit(fake)]))


def test_nothing_remote_and_no_script_stands_in_the_style_or_the_attributes() -> None:
    for result in every_kind():
        page = Page(render_html(result))
        for text in [*page.css, *page.values]:
            assert not re.search(r"url\(|http|@import|expression|javascript", text, re.IGNORECASE)
        assert page.tags.count("style") == 1


def test_every_rule_of_the_style_sheet_is_scoped() -> None:
    css = "".join(Page(render_html(listed())).css)
    for selectors in re.findall(r"([^{}]+)\{[^{}]*\}", css):
        if not selectors.startswith("@"):
            assert all(".hsh" in selector for selector in selectors.split(",")), selectors


def test_the_style_sheet_knows_light_and_dark_of_system_jupyter_and_vs_code() -> None:
    css = "".join(Page(render_html(listed())).css)
    for name in (
        "prefers-color-scheme:dark",
        '[data-jp-theme-light="false"]',
        '[data-jp-theme-light="true"]',
        "vscode-dark",
    ):
        assert name in css


def test_a_hit_shows_role_time_project_name_and_a_citation_to_copy() -> None:
    result = search([hit(session=view(cwd="C:\\w\\billing\\"))])
    text = shown(result)
    for part in (
        "assistant",
        "2026-03-02 10:05 UTC",
        "billing",
        "Migration rehearsal",
        result["results"][0]["locator"],
    ):
        assert part in text
    assert f'<code class="hsh-copy">{result["results"][0]["locator"]}</code>' in render_html(result)


def test_a_hit_offers_the_call_that_opens_it_with_the_switches_it_needs() -> None:
    text = shown(search([hit(visible=False, session=view(deleted=True))]))
    assert 'entry_id="a1b2c3d4", include_deleted=True, branch="any")' in text


def test_no_call_is_offered_for_an_id_that_cannot_be_shown_as_it_is() -> None:
    assert "await" not in shown(search([hit(entry="a\x1bb")]))


def test_copies_and_badges_are_named() -> None:
    text = shown(
        search(
            [hit(alsoIn=["copy-1", "copy-2"], visible=False, session=view(deleted=True, current=True, kind="child"))]
        )
    )
    for part in ("also: copy-1 copy-2", "copy-1", "copy-2", "deleted", "current", "child", "off branch"):
        assert part in text


def test_matched_words_are_marked() -> None:
    result = search([hit("die <Rückkehr> kam")])
    result.marks = [[(4, 14)]]
    assert "die <mark>&lt;Rückkehr&gt;</mark> kam" in render_html(result)


@pytest.mark.parametrize(
    ("spans", "marked"),
    [
        ([(0, 3), (2, 5)], ["abcde"]),
        ([(3, 5), (0, 1)], ["a", "de"]),
        ([(-4, 1), (4, 999)], ["a", "ef"]),
        ([(3, 3), (5, 2), (50, 60)], []),
    ],
)
def test_marks_that_overlap_or_lie_outside_are_clipped(spans: list[tuple[int, int]], marked: list[str]) -> None:
    result = search([hit("abcdef")])
    result.marks = [spans]
    assert re.findall("<mark>(.*?)</mark>", render_html(result)) == marked


def test_marks_may_be_fewer_than_results_or_absent() -> None:
    assert "<mark>" not in render_html(search([hit(), hit()]))
    assert "<mark>" not in render_html(dict(search()))


def test_lines_of_a_transcript_stay_lines_without_a_style_sheet() -> None:
    assert "one<br>two" in render_html(search([hit("one\ntwo")]))


@pytest.mark.parametrize("reason", ["changed", "missing", "unavailable"])
@pytest.mark.parametrize("complete", [True, False])
def test_freshness_is_not_green_while_a_count_speaks_against_it(reason: str, complete: bool) -> None:
    page = Page(render_html(search(complete=complete, fresh=freshness(**{reason: 1}))))
    assert "hsh-good" not in page.classes
    assert "Incomplete: of 12 session files, 1 " in page.words


def test_freshness_is_green_and_says_so_when_complete() -> None:
    page = Page(render_html(search()))
    assert "hsh-good" in page.classes
    assert "Complete: all 12 sessions are indexed as on disk" in page.words


def test_freshness_is_not_green_without_complete_true() -> None:
    for value in (False, None, "true", 1):
        result = search()
        result["complete"] = value
        assert "hsh-good" not in Page(render_html(result)).classes


def test_freshness_is_not_green_where_there_is_nothing_to_search() -> None:
    page = Page(render_html(search([], fresh=freshness(0))))
    assert "hsh-good" not in page.classes
    assert "no session file is in scope" in page.words


def test_freshness_names_every_reason() -> None:
    fresh = freshness(20, changed=3, missing=2, unavailable=1, damaged=4, pendingMaintenance=5)
    assert (
        "Incomplete: of 20 session files, 3 have changed since they were indexed, 2 are not indexed yet, 1 cannot be read; "
        "index of 2026-03-02 10:05 UTC; 4 hold damaged lines that could not be read; 5 wait for background indexing."
    ) in shown(search(complete=False, fresh=fresh))


def test_freshness_says_that_nothing_is_indexed_yet() -> None:
    assert "nothing is indexed yet" in shown(search([], complete=False, fresh=freshness(2, None, missing=2)))


def test_a_search_says_what_was_left_out_and_what_was_not_ranked() -> None:
    text = shown(
        search(
            truncated=True,
            rankedAll=False,
            unavailableSessionIds=["gone-1"],
            unavailableTruncated=True,
            current="unknown",
        )
    )
    for part in (
        "the first 1 hit in 1 session, more entries match",
        "gone-1 and more",
        "those of the sessions that were active last were ranked",
        "calling session",
    ):
        assert part in text


def test_an_empty_search_shows_every_hint() -> None:
    text = shown(search([], hints=hints()))
    for part in (
        "nothing matched",
        "try: rollback ledger",
        "terms: rolback (0 entries), ledger (1,204 entries)",
        '4 entries off the visible branch match: add branch="any"',
        "Quarter close",
        "the ledger and nothing else",
        "without: rolback",
    ):
        assert part in text


@pytest.mark.parametrize(
    "empty", [None, {}, hints(terms=[], suggestion=None, nearest=[], sessions=[], offBranchMatches=0)]
)
def test_an_empty_search_without_hints_is_shown(empty: Any) -> None:
    assert "nothing matched" in shown(search([], hints=empty))


def test_an_excerpt_marks_its_target_and_counts_what_lies_around() -> None:
    html = render_html(opened())
    text = Page(html).words
    assert html.count("◆ cited entry") == html.count("hsh-card hsh-target") == 1
    assert (
        text.index("first words") < text.index("◆ cited entry") < text.index("cited words") < text.index("last words")
    )
    for part in ("21 earlier entries not shown", "1 later entry not shown", "tools: bash (ok), edit (error)"):
        assert part in text


def test_an_excerpt_says_where_a_text_is_cut() -> None:
    result = opened()
    result["messages"][1]["textTruncated"] = True
    assert shown(result).count("longer than what is shown") == 1


def test_a_list_is_a_card_for_each_session_below_a_described_timeline() -> None:
    page = Page(render_html(listed()))
    assert page.tags.count("svg") == page.tags.count("desc") == 1
    assert "2 sessions by day of last activity from 2026-03-02 to 2026-03-09; each bar is one day." in page.words
    assert page.classes.count("hsh-card") == 2 and "table" not in page.tags
    assert "2026-03-09: 1 session" in page.words


def test_a_listed_session_offers_the_call_that_opens_its_last_entry() -> None:
    text = shown(listed([view(sessionId="s-1", lastEntryId="e9")]))
    assert 'await session_history(operation="open", session_id="s-1", entry_id="e9")' in text


@pytest.mark.parametrize(
    "times", [["9999-12-31T00:00:00.000Z", "0001-01-01T00:00:00.000Z"], ["2026-02-31T00:00:00.000Z"], [None], ["x"]]
)
def test_a_timeline_takes_any_time(times: list[Any]) -> None:
    shown(listed([view(str(index), updatedAt=time, createdAt=None) for index, time in enumerate(times)]))


def test_a_long_time_is_drawn_in_bars_of_several_days() -> None:
    days = ["2024-01-01T00:00:00.000Z", "2026-01-01T00:00:00.000Z"]
    assert "each bar is one 13 days" not in (text := shown(listed([view(day, updatedAt=day) for day in days])))
    assert "each bar is 13 days" in text


def test_an_empty_list_has_neither_cards_nor_a_timeline() -> None:
    page = Page(render_html(listed([])))
    assert "svg" not in page.tags and "hsh-card" not in page.classes
    assert "0 sessions" in page.words


def test_the_size_is_bounded_whatever_stands_in_the_fields() -> None:
    flood = "<" * 100_000
    for result in every_kind():
        for key in ("results", "messages"):
            if result.get(key):
                result[key] = result[key] * 500
        assert len(render_html(poisoned(result, flood))) < 500_000


def test_every_answer_carries_the_trust_warning() -> None:
    result: Answer
    for result in every_kind():
        assert result["warning"] in shown(result)
