"""What comes first: entries in which the terms stand together, and in the form in which they were typed."""

from __future__ import annotations

import pytest

from builder import stamp
from world import World

TALK = "Some words about the rest of the work that is still to do. " * 8


def first(world: World, query: str) -> str:
    return world.texts(query, snippet_chars=800)[0]


def test_words_that_stand_together_come_before_those_that_stand_far_apart(world: World) -> None:
    for number in range(8):
        world.say(
            f"far{number}",
            f"plan {number}: the feature has a note; a flag day; toggle it, note the flag and the feature",
        )
    world.say("near", f"{TALK}The feature flag is called zebra. {TALK}")
    assert "zebra" in first(world, "feature flag")


def test_words_in_the_order_of_the_query_come_before_the_same_words_in_another(world: World) -> None:
    world.say("a", "the flag feature is one", "the feature flag is two", "a flag of that feature is three")
    assert [text.split()[-1] for text in world.texts("feature flag")] == ["two", "one", "three"]


def test_the_nearer_the_words_stand_the_better(world: World) -> None:
    gaps = (9, 0, 4, 1)
    world.say("a", *(f"{'x ' * (9 - gap)}alpha {'y ' * gap}beta gamma" for gap in gaps))
    assert [text.count("y") for text in world.texts("alpha beta")] == sorted(gaps)


@pytest.mark.parametrize(
    ("typed", "other"),
    [("k8s", "k8"), ("ios", "io"), ("https", "http"), ("news", "new"), ("30s", "30"), ("theme", "them"), ("iOS", "IO")],
)
def test_the_form_that_was_typed_comes_before_one_that_shares_its_stem(world: World, typed: str, other: str) -> None:
    session = world.session("a")
    session.user(f"some longer notes about our {typed} and what else there was to say of it", at=stamp(0))
    for number in range(30):
        session.user(f"our {other} notes, {other}", at=stamp(number + 1))
    session.save()
    assert typed in world.texts(typed, session_id=session.id)[0]
    session.user(f"our {typed} notes", at=stamp(0))
    session.save()
    assert typed in world.texts(f"{typed} notes", session_id=session.id)[0]


def test_the_stem_is_found_though_the_form_comes_first(world: World) -> None:
    world.say("a", "we deployed it", "the deployment", "deploy it")
    assert world.texts("deploy")[0] == "deploy it" and len(world.texts("deploy")) == 3
    assert world.texts("deployed")[0] == "we deployed it"


def test_a_phrase_in_quotes_and_a_prefix_have_no_other_form(world: World) -> None:
    world.say("a", "pools pools pools", "the pool", "pooling")
    assert world.texts('"pool"') == ["the pool"]
    assert len(world.texts("pool*")) == 3


def test_equal_entries_come_newest_first_whatever_their_sessions_are(world: World) -> None:
    for number in (3, 1, 2):
        world.say(f"s{number}", f"alpha beta {number}", start=stamp(number * 1000))
    assert [text[-1] for text in world.texts("alpha beta")] == ["3", "2", "1"]


def test_a_term_of_as_many_characters_as_a_query_may_have_is_ranked_like_any_other(world: World) -> None:
    word = "x" * 512
    world.say("a", f"{word} one", f"{word} two")
    assert len(world.texts(word)) == 2
