"""What an answer without results says instead: counts, another query, the nearest entries, sessions, other branches."""

from __future__ import annotations

from typing import Any

import pytest

from builder import stamp
from harness_session_history.answer import hints as hinting
from harness_session_history.search import scan
from world import World


def hints(world: World, query: str, **arguments: Any) -> dict[str, Any]:
    answer = world.search(query, **arguments)
    assert answer["results"] == []
    found: dict[str, Any] = answer["hints"]
    return found


def counts(world: World, query: str, **arguments: Any) -> dict[str, int]:
    return {term["term"]: term["entries"] for term in hints(world, query, **arguments)["terms"]}


def test_there_are_hints_where_fewer_than_five_entries_match(world: World) -> None:
    world.say("a", *(f"findme {number}" for number in range(5)), "rare findme", "rare thing")
    assert "hints" not in world.search("findme")
    assert "hints" not in world.search("rare", limit=1)  # truncated
    beside = {"terms", "nearest", "sessions"}
    assert set(world.search("rare")["hints"]) == beside
    assert set(hints(world, "nowhere")) == beside | {"suggestion", "offBranchMatches", "outsideFilters"}


def test_an_empty_archive_has_empty_hints(world: World) -> None:
    assert hints(world, "one two") == {
        "terms": [{"term": "one", "entries": 0}, {"term": "two", "entries": 0}],
        "nearest": [],
        "sessions": [],
        "suggestion": None,
        "offBranchMatches": 0,
        "outsideFilters": 0,
    }


# -- counts ----------------------------------------------------------------------------------------------------------


def test_each_term_is_counted_as_it_was_typed(world: World) -> None:
    world.say("a", "connection pool", "connection pools", "weather")
    assert counts(world, 'Connections "pool" weather* nowhere') == {
        "Connections": 2,
        '"pool"': 1,
        "weather*": 1,
        "nowhere": 0,
    }


def test_terms_are_counted_within_the_scope_and_the_filters(world: World) -> None:
    session = world.say("a", "alpha", "alpha", cwd="/w/one")
    world.say("b", "alpha", "beta", cwd="/w/two")
    assert counts(world, "alpha beta") == {"alpha": 3, "beta": 1}
    assert counts(world, "alpha beta", cwd="/w/one") == {"alpha": 2, "beta": 0}
    assert counts(world, "alpha beta", session_id=session.id) == {"alpha": 2, "beta": 0}
    assert counts(world, "alpha beta", roles=["assistant"]) == {"alpha": 0, "beta": 0}
    world.history(current_session_id=session.id)
    assert counts(world, "alpha beta") == {"alpha": 1, "beta": 1}


def test_off_branch_entries_are_not_counted(world: World) -> None:
    session = world.session("a")
    root = session.user("alpha")
    session.user("alpha beta gamma")
    session.user("alpha", parent=root)
    session.save()
    assert counts(world, "alpha gamma") == {"alpha": 2, "gamma": 0}


def test_a_phrase_that_only_looks_like_a_match_is_not_counted(world: World) -> None:
    world.say("a", *(f"we deploy the pool {number}" for number in range(60)))
    assert counts(world, '"deployed the"') == {'"deployed the"': 0}
    assert counts(world, '"deployed the" pool')['"deployed the"'] == 0


# -- suggestion ------------------------------------------------------------------------------------------------------


def test_a_misspelt_word_is_corrected(world: World) -> None:
    world.say("a", "the rollback decision stands")
    for typed in (
        "rolback decision",
        "rollbcak decision",
        "rollbackk decision",
        "rollbqck decision",
        "Rolback decision",
    ):
        assert hints(world, typed)["suggestion"] == "rollback decision", typed


def test_of_words_that_the_index_cannot_tell_apart_the_one_that_was_written_is_suggested(world: World) -> None:
    world.say("a", "authentication tokens expire")
    assert hints(world, "authentcation")["suggestion"] == "authentication"
    assert hints(world, "authentcation expire")["suggestion"] == "authentication expire"


def test_two_misspelt_words_are_corrected_at_once(world: World) -> None:
    world.say("a", "the rollback decision stands")
    assert hints(world, "rolback decison")["suggestion"] == "rollback decision"


def test_an_impossible_term_is_dropped(world: World) -> None:
    world.say("a", "the rollback decision stands")
    assert hints(world, "rollback zzyzx decision")["suggestion"] == "rollback decision"


def test_a_suggestion_has_results(world: World) -> None:
    world.say("a", "alpha beta", "gamma delta", "alpha gamma")
    for query in (
        "alpha beta gamma",
        "alpha delta",
        "alpah delta",
        '"beta alpha"',
        "gam* alpha beta",
        '"alpha beta gamma" delta',
        "zzyzx",
    ):
        suggestion = hints(world, query)["suggestion"]
        assert suggestion is None or world.texts(suggestion), (query, suggestion)


def test_a_suggestion_has_results_under_the_same_filters(world: World) -> None:
    world.say("a", "rollback elsewhere", cwd="/w/one")
    world.say("b", "something else", cwd="/w/two")
    assert hints(world, "rolback", cwd="/w/two")["suggestion"] is None
    assert hints(world, "rolback")["suggestion"] == "rollback"


def test_a_suggestion_keeps_the_words_that_tell_most(world: World) -> None:
    world.say("a", *(f"the theme of the day is {number}" for number in range(40)), "terraform plan", "terraform apply")
    assert hints(world, "terraform theme")["suggestion"] == "terraform"
    assert hints(world, "theme terraform zzyzx")["suggestion"] == "terraform"
    assert hints(world, "terraform apply theme day")["suggestion"] == "terraform apply"


def test_a_query_of_little_that_is_left_is_not_suggested(world: World) -> None:
    world.say("a", "one alpha", "two beta", "three gamma", "four delta", "five epsilon")
    assert hints(world, "alpha beta gamma delta epsilon")["suggestion"] is None


def test_without_anything_to_suggest_there_is_null(world: World) -> None:
    world.say("a", "alpha")
    assert hints(world, "zzyzx qqqqq")["suggestion"] is None


# -- nearest ---------------------------------------------------------------------------------------------------------


def test_the_nearest_entries_hold_most_of_the_terms_best_first(world: World) -> None:
    world.say("a", "connection pool limits", "connection closed", "weather report")
    near = hints(world, "connection pool saturation limits")["nearest"]
    assert [one["snippet"] for one in near] == ["connection pool limits", "connection closed"]
    assert [one["missingTerms"] for one in near] == [["saturation"], ["pool", "saturation", "limits"]]


def test_rare_words_weigh_more_than_common_ones(world: World) -> None:
    world.say("a", *(f"the report of the day {number}" for number in range(50)), "zebra crossing")
    near = hints(world, "the zebra of nowhere")["nearest"]
    assert near[0]["snippet"] == "zebra crossing" and near[0]["missingTerms"] == ["the", "of", "nowhere"]


def test_there_are_at_most_five_and_a_copy_is_none_of_them(world: World) -> None:
    session = world.session("a", start=stamp(0))
    for number in range(7):
        session.user(f"alpha {number}")
    session.save()
    fork = world.session("b", start=stamp(5000), parentSession=str(session.path()))
    fork.lines += session.lines[1:]
    fork.save()
    near = hints(world, "alpha zzyzx")["nearest"]
    assert len(near) == 5 and len({one["citation"]["entryId"] for one in near}) == 5
    assert all(one["alsoIn"] == [fork.id] and one["missingTerms"] == ["zzyzx"] for one in near)


def test_the_nearest_entries_are_under_the_same_filters(world: World) -> None:
    inside = world.say("a", "alpha inside", cwd="/w/one")
    world.say("b", "alpha beta outside", cwd="/w/two")
    near = hints(world, "alpha beta gamma", cwd="/w/one")["nearest"]
    assert [one["citation"]["sessionId"] for one in near] == [inside.id]
    assert hints(world, "alpha beta gamma", until="2020-01-01")["nearest"] == []
    assert hints(world, "alpha beta gamma", roles=["assistant"])["nearest"] == []


def test_a_phrase_that_is_not_there_word_for_word_is_missing(world: World) -> None:
    world.say("a", "we deploy the pool today")
    (near,) = hints(world, '"deployed the" today')["nearest"]
    assert near["missingTerms"] == ['"deployed the"']


def test_the_snippets_of_nearest_entries_keep_to_the_limit(world: World) -> None:
    world.say("a", "lorem ipsum " * 200 + "alpha " + "dolor sit " * 200)
    (near,) = hints(world, "alpha zzyzx", snippet_chars=80)["nearest"]
    assert len(near["snippet"]) <= 80 and "alpha" in near["snippet"]


def test_results_and_nearest_entries_are_five_together_and_none_stands_twice(world: World) -> None:
    world.say("a", "alpha beta", "alpha beta", *(f"alpha {number}" for number in range(9)))
    for limit, near in ((20, 3), (4, 2), (2, 0)):
        answer = world.search("alpha beta", limit=limit)
        assert len(answer["results"]) == 2 and len(answer["hints"]["nearest"]) == near
        cited = [one["citation"]["entryId"] for one in answer["results"] + answer["hints"]["nearest"]]
        assert len(set(cited)) == len(cited)
        assert all(one["missingTerms"] == ["beta"] for one in answer["hints"]["nearest"])


def test_an_entry_that_holds_none_of_the_terms_is_not_near(world: World) -> None:
    world.say("a", "the otters question", "nothing of the kind", "again nothing")
    found = hints(world, "otters zzyzx")["nearest"]
    assert [one["snippet"] for one in found] == ["the otters question"]


def test_a_question_and_its_answer_are_found_by_words_of_both(world: World) -> None:
    session = world.session("a")
    session.user("which queue do we take for the otters?")
    session.assistant("SQLite with one writer, since laptops are often offline")
    session.save()
    for number in range(7):
        other = world.session(f"n{number}")
        other.user("what else works?")
        other.assistant("SQLite works offline too.")
        other.save()
    first, second, *others = hints(world, "otters queue sqlite offline")["nearest"]
    assert {first["role"], second["role"]} == {"user", "assistant"}
    by_role = {one["role"]: one for one in (first, second)}
    assert by_role["user"]["missingTerms"] == by_role["user"]["nearby"] == ["sqlite", "offline"]
    assert by_role["assistant"]["missingTerms"] == by_role["assistant"]["nearby"] == ["otters", "queue"]
    assert all(one["missingTerms"] == ["otters", "queue"] and one["nearby"] == [] for one in others)


def test_only_the_two_entries_before_and_after_on_the_branch_are_nearby(world: World) -> None:
    session = world.session("a")
    session.user("gamma")
    root = session.user("beta")
    session.user("abandoned delta", parent=root)
    session.last = root
    session.assistant("filler")
    session.user("alpha")
    session.assistant("filler")
    session.assistant("epsilon")
    session.user("zeta")
    session.save()
    near = {one["snippet"]: one for one in hints(world, "alpha beta gamma delta epsilon zeta")["nearest"]}
    assert near["alpha"]["nearby"] == ["beta", "epsilon"]
    assert near["beta"]["nearby"] == ["alpha", "gamma"]
    assert "abandoned delta" not in near
    near = {one["snippet"]: one for one in hints(world, "alpha beta gamma delta", branch="any")["nearest"]}
    assert near["abandoned delta"]["nearby"] == ["beta", "gamma"] and "delta" not in near["beta"]["nearby"]


def test_neighbours_count_whoever_wrote_them_and_whenever(world: World) -> None:
    session = world.session("a")
    session.user("which queue for the otters?", at=stamp(0))
    session.assistant("SQLite works offline", at=stamp(7200))
    session.save()
    for filters in ({"roles": ["assistant"]}, {"since": stamp(3600)}):
        (near,) = hints(world, "otters queue sqlite offline", **filters)["nearest"]
        assert near["role"] == "assistant" and near["nearby"] == ["otters", "queue"]


def test_of_nearest_entries_that_say_the_same_the_others_come_last(world: World) -> None:
    world.say("a", *["the otters are here again"] * 7, "otters somewhere else", "about otters in general and some rest")
    near = hints(world, "otters again zzyzx")["nearest"]
    assert len({one["snippet"] for one in near[:3]}) == 3


def test_words_that_only_make_a_sentence_weigh_next_to_nothing_in_a_small_archive(world: World) -> None:
    world.say(
        "a",
        "How did we make sure that the build is green?",
        "Deliveries wait in a journal and survive crashes",
        "What did we do that day, and how?",
    )
    found = hints(world, "How did we make sure that queued deliveries survive a crash?")
    assert (
        found["nearest"][0]["snippet"].startswith("Deliveries") and found["suggestion"] == "deliveries survive crash?"
    )


def test_a_word_of_another_language_is_not_taken_for_one_that_only_makes_a_sentence(world: World) -> None:
    world.say("a", "will war was can", "der Abend im Will", "etwas anderes")
    assert hints(world, "Will Abend zzyzx")["nearest"][0]["snippet"] == "der Abend im Will"
    assert hints(world, "who")["terms"] == [{"term": "who", "entries": 0}]


# -- sessions and branches -------------------------------------------------------------------------------------------


def test_sessions_in_which_every_term_occurs_are_named(world: World) -> None:
    both = world.say("a", "alpha", "beta")
    world.say("b", "alpha")
    world.say("c", "beta")
    found = hints(world, "alpha beta")["sessions"]
    assert [view["sessionId"] for view in found] == [both.id]


def test_at_most_five_sessions_are_named_and_none_for_one_term(world: World) -> None:
    for number in range(7):
        world.say(f"s{number}", "alpha", "beta")
    assert len(hints(world, "alpha beta")["sessions"]) == 5
    assert hints(world, "zzyzx")["sessions"] == []


def test_a_session_is_found_by_its_name_beside_results_too(world: World) -> None:
    named = world.session("a", cwd="/w/one")
    named.user("something else entirely")
    named.add("session_info", name="Kingfisher migration")
    named.save()
    world.say("b", "the kingfisher migration is planned")
    other = world.say("c", "nothing", cwd="/w/kingfisher")
    found = world.search("migrations kingfisher")
    assert len(found["results"]) == 1 and [one["sessionId"] for one in found["hints"]["sessions"]] == [named.id]
    assert [one["sessionId"] for one in hints(world, "kingfisher", cwd="/w/kingfisher")["sessions"]] == [other.id]
    assert [one["sessionId"] for one in hints(world, world.view(other)["name"])["sessions"]] == [other.id]
    assert [one["sessionId"] for one in hints(world, world.view(other)["shortId"])["sessions"]] == [other.id]
    assert hints(world, "kingfisher", cwd="/w/one", roles=["assistant"])["sessions"] != []


def test_names_of_every_script_and_of_letters_that_may_be_an_id_are_found(world: World) -> None:
    for number, name in enumerate(("Échelle d'accès", "评审会议", "feature decade", "maxRetryCount")):
        session = world.session(f"s{number}")
        session.user("nothing of it")
        session.add("session_info", name=name)
        session.save()
    for query in ("echelle", "评审", "feature", "decades", "retry", '"feature decade"', "feat*"):
        assert len(hints(world, query)["sessions"]) == 1, query
    assert hints(world, "echelles feature")["sessions"] == []


def test_sessions_out_of_scope_are_not_named(world: World) -> None:
    session = world.say("a", "alpha", "beta")
    world.history(current_session_id=session.id)
    found = hints(world, "alpha beta")
    assert found["sessions"] == [] and found["nearest"] == [] and counts(world, "alpha beta") == {"alpha": 0, "beta": 0}


def test_matches_off_the_visible_branch_are_counted(world: World) -> None:
    session = world.session("a")
    root = session.user("root")
    for _ in range(3):
        session.user("alpha beta abandoned")
    session.user("visible", parent=root)
    session.save()
    assert hints(world, "alpha beta")["offBranchMatches"] == 3
    assert hints(world, '"alpha beta"')["offBranchMatches"] == 3
    assert hints(world, '"beta alpha"')["offBranchMatches"] == 0
    assert hints(world, "alpha zzyzx", branch="any")["offBranchMatches"] == 0


def test_a_visible_match_that_cannot_be_read_is_not_off_the_branch(world: World) -> None:
    session = world.say("a", "alpha beta")
    world.refresh()
    session.path().unlink()
    answer = world.search("alpha beta", refresh=False)
    assert answer["results"] == [] and answer["unavailableSessionIds"] == [session.id]
    assert answer["hints"]["offBranchMatches"] == 0 and answer["hints"]["nearest"] == []


def test_matches_outside_the_filters_are_counted(world: World) -> None:
    session = world.say("a", "alpha beta", cwd="/w/one")
    world.say("b", "gamma", cwd="/w/two")
    for filters in ({"cwd": "/w/two"}, {"since": "2030-01-01"}, {"kind": "child"}, {"roles": ["assistant"]}):
        assert hints(world, "alpha", **filters)["outsideFilters"] == 1, filters
        assert hints(world, '"alpha beta"', **filters)["outsideFilters"] == 1, filters
        assert hints(world, '"beta alpha"', **filters)["outsideFilters"] == 0, filters
    assert hints(world, "zzyzx")["outsideFilters"] == 0
    world.history(current_session_id=session.id)
    assert hints(world, "alpha", cwd="/w/two")["outsideFilters"] == 0  # the current session stays out of scope


# -- phrases among thousands of look-alikes --------------------------------------------------------------------------


def test_a_phrase_is_found_behind_thousands_of_entries_that_only_look_like_it(world: World) -> None:
    crowd = world.session("crowd", start=stamp(9000))
    for number in range(2500):
        crowd.user(f"she deploys it {number}", at=stamp(10_000 + number))
    crowd.save()
    wanted = world.session("wanted", start=stamp(0))
    wanted.user("we deployed it")
    wanted.save()
    for sort in ("relevance", "newest", "oldest"):
        assert world.texts('"deployed it"', sort=sort) == ["we deployed it"], sort


def test_many_common_words_have_hints_too(world: World) -> None:
    words = [f"word{letter}" for letter in "abcdefghijklmnopqrstuvwxyzabcdef"]
    words = [f"{word}{number}" for number, word in enumerate(words)]
    world.say("a", *(" ".join(words[:number] + words[number + 1 :]) for number in range(32)))
    found = hints(world, " ".join(words))
    assert [term["entries"] for term in found["terms"]] == [31] * 32
    assert all(len(near["missingTerms"]) == 1 for near in found["nearest"]) and len(found["nearest"]) == 5


def test_an_entry_that_holds_a_term_is_nearer_than_one_that_holds_parts_of_terms(world: World) -> None:
    world.say("a", "the pool was raised", "pool is fine", "pool again here", "a quorum")
    near = hints(world, "pool tx-quorum")["nearest"]
    assert [one["missingTerms"] for one in near] == [["tx-quorum"]] * 3 + [["pool", "tx-quorum"]]


def test_quoted_words_are_counted_behind_entries_that_only_look_like_them(world: World) -> None:
    world.say("a", *["we saw errors"] * 3, *(f"the error number {number}" for number in range(150)))
    found = hints(world, '"errors" zzyzx')
    assert found["terms"] == [{"term": '"errors"', "entries": 3}, {"term": "zzyzx", "entries": 0}]
    assert found["suggestion"] == '"errors"' and "errors" in found["nearest"][0]["snippet"]


def test_a_quoted_word_that_is_nowhere_is_suggested_without_quotes(world: World) -> None:
    world.say("a", "one error here")
    found = hints(world, '"errors"')
    assert found["terms"] == [{"term": '"errors"', "entries": 0}] and found["suggestion"] == "errors"
    assert found["nearest"][0]["missingTerms"] == ['"errors"']


def test_all_matches_off_the_branch_are_counted_however_many_there_are(world: World) -> None:
    session = world.session("a")
    root = session.user("root")
    session.user("alpha errors happened")
    for number in range(1100):
        session.user(f"alpha beta {number}")
    session.last = root
    for number in range(600):
        session.user(f"error {number}")
    session.save()
    assert [hints(world, query)["offBranchMatches"] for query in ("alpha", '"errors"')] == [1101, 1]


@pytest.mark.parametrize(
    "filters", [{"cwd": "/nowhere"}, {"kind": "child"}, {"since": "2030-01-01"}, {"session_id": "none"}, {}]
)
def test_counts_keep_to_the_scope_when_there_is_no_time_to_count(
    world: World, filters: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hinting, "COUNT_SECONDS", -1.0)
    monkeypatch.setattr(scan, "SMALL", 0)
    monkeypatch.setattr(scan, "COUNTED", 5)
    for number in range(30):
        world.say(f"s{number}", f"the one of the others {number}")
    terms = hints(world, 'the one of th* "of the" wh* nosuchword', **filters)["terms"]
    assert [one["entries"] for one in terms] == ([30, 30, 30, 30, 30, 0, 0] if not filters else [0] * 7)


@pytest.mark.parametrize(
    ("query", "better"),
    [
        ("deplyoment?", "deployment"),
        ("(deplyoment)", "deployment"),
        ("ошибкаа", "ошибка"),
        ("max_rety_count", "max_retry_count"),
        ("src/pool/handlr.ts", "src/pool/handler.ts"),
        ("maxRetyCount", "maxRetryCount"),
    ],
)
def test_words_are_corrected_among_punctuation_in_identifiers_and_in_other_scripts(
    world: World, query: str, better: str
) -> None:
    world.say("a", "the deployment", "ошибка в коде", "max_retry_count", "in src/pool/handler.ts")
    assert hints(world, query)["suggestion"] == better


def test_where_a_term_must_be_dropped_the_corrected_ones_are_kept(world: World) -> None:
    world.say("a", "the rollback decision", "a migration", "one more migration")
    assert hints(world, "rollback decison migration")["suggestion"] == "rollback decision"
