"""`search`: what is found, in which order, how it is shown and cited."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builder import SessionBuilder, line, stamp
from harness_session_history import InvalidRequest
from world import World, append, replace

# -- terms -----------------------------------------------------------------------------------------------------------


def test_every_term_is_required_in_one_entry(world: World) -> None:
    session = world.say("a", "rollback only", "decision only", "a rollback decision")
    assert world.texts("rollback decision") == ["a rollback decision"]
    assert world.texts("  decision \u3000 rollback ") == ["a rollback decision"]
    assert world.sessions_found("rollback") == [session.id, session.id]


def test_operators_are_plain_words(world: World) -> None:
    world.say("a", "red AND blue", "red blue", "NOT near OR")
    assert world.texts("red AND blue") == ["red AND blue"]
    assert world.texts("NOT NEAR") == ["NOT near OR"]
    assert world.texts("red NOT blue") == []


@pytest.mark.parametrize(
    "query",
    ["(red", "red)", "{a b}: red", "body:red", "whole : red", "^red", "-red", "red+blue", "NEAR(red blue, 2)", "50%", "a_b",
     "'; DROP TABLE entries; --", "red' OR '1'='1", "red\u00a0blue", "\u200b red", "★red", "\ufeffred", "\u202ered"],
)  # fmt: skip
def test_no_query_raises_an_sql_error(world: World, query: str) -> None:
    world.say("a", "red blue 50 a_b")
    world.search(query)


@pytest.mark.parametrize(
    "query",
    [
        "",
        " ",
        "...",
        "\u200b",
        '"open',
        'one "two',
        "a*",
        "*",
        "re*d",
        "*red",
        '""',
        '"..."',
        '" "',
        "a\tb",
        "a\nb",
        "x\x9bx",
    ],
)
def test_a_query_that_means_nothing_is_refused_before_anything_is_read(world: World, query: str) -> None:
    error = world.refused(InvalidRequest, operation="search", query=query)
    assert "query" in str(error) and error.hint
    assert not world.index.exists()


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    made = World(tmp_path_factory.mktemp("words"))
    made.say("a", "red blue maxRetryCount 评审 über deployments", "C++ next/diff.ts e\u0301")
    made.refresh()
    yield made
    made.close()


@settings(max_examples=150, deadline=None)
@given(
    st.text(min_size=1, max_size=40)
    | st.lists(st.sampled_from(['"', "*", "\\", "(", ")", ":", "^", "-", "+", "AND", "NEAR", "red", "评", "é", "fooBar", "{", "'", "."]), max_size=24)
    .map(lambda parts: " ".join(parts) if len(parts) % 2 else "".join(parts))
)  # fmt: skip
def test_any_query_is_answered_or_refused(words: World, query: str) -> None:
    try:
        words.search(query, refresh=False)
    except InvalidRequest as refusal:
        assert refusal.hint


@pytest.mark.parametrize(
    "query",
    ["评" * 170, "a" * 512, " ".join(["fooBarBaz"] * 32), " ".join(f"fooBar{n}" for n in range(32)), "a.b" * 170, '"' + "a b " * 100 + '"',
     "xa*" + " yz*" * 30, "aB" * 256, "a_b-c.d/e" * 50, " ".join(f"{chr(97 + n % 26)}{n}.{n}" for n in range(32)), "데" * 170, "e\u0301" * 170],
)  # fmt: skip
def test_the_largest_queries_are_answered(words: World, query: str) -> None:
    words.search(query, refresh=False)


def test_at_most_thirty_two_terms(world: World) -> None:
    world.say("a", " ".join(f"w{number}" for number in range(32)))
    assert len(world.texts(" ".join(f"w{number}" for number in range(32)))) == 1
    world.refused(InvalidRequest, query=" ".join(f"w{number}" for number in range(33)))


def test_case_and_diacritics_do_not_matter(world: World) -> None:
    texts = ["Größe der Straße", "CAFÉ society", "naive cafe\u0301", "İstanbul trip", "Ünïcödé"]
    world.say("a", *texts)
    for query, number in (
        ("grosse", 1),
        ("GRÖSSE", 1),
        ("strasse", 1),
        ("cafe", 2),
        ("café", 2),
        ("istanbul", 1),
        ("unicode", 1),
    ):
        assert len(world.texts(query)) == number, query


def test_inflection_does_not_matter(world: World) -> None:
    world.say("a", "we deployed it", "she deploys it", "the deployment", "deploying now", "deplorable")
    assert len(world.texts("deploy")) == 4
    assert len(world.texts("deployments")) >= 1


def test_a_quoted_phrase_means_just_these_words(world: World) -> None:
    world.say("a", "we deployed the pools", "we deploy the pools", "the pools we deployed")
    assert world.texts('"deployed the"') == ["we deployed the pools"]
    assert world.texts('"deploy"') == ["we deploy the pools"]
    assert world.texts('"pool"') == []
    assert world.texts('"Deployed THE"') == ["we deployed the pools"]


def test_a_phrase_may_hold_quotes_and_backslashes(world: World) -> None:
    world.say("a", 'he said "stop" to C:\\temp\\x now')
    assert len(world.texts('"said \\"stop\\" to"')) == 1
    assert len(world.texts('"C:\\\\temp\\\\x"')) == 1


def test_a_term_with_punctuation_is_the_phrase_of_its_parts(world: World) -> None:
    world.say("a", "see tx.draft here", "the draft tx", "next/diff.ts fails", "a diff, next ts", "in C++ code", "gen-itgc ran", "wrong book",
              "the wrong-book case")  # fmt: skip
    assert world.texts("tx.draft") == ["see tx.draft here"]
    assert world.texts("next/diff.ts") == ["next/diff.ts fails"]
    assert world.texts("C++") == ["in C++ code"]
    assert world.texts("gen-itgc") == ["gen-itgc ran"]
    assert sorted(world.texts("wrong-book")) == ["the wrong-book case", "wrong book"]


def test_a_star_asks_for_a_beginning(world: World) -> None:
    world.say("a", "migration", "migrate", "migrant", "emigrate", "数据库")
    assert sorted(world.texts("migra*")) == ["migrant", "migrate", "migration"]
    assert sorted(world.texts("migrat*")) == ["migrate", "migration"]
    assert world.texts("数*") == ["数据库"]
    assert world.texts("migrations*") == []


def test_parts_of_identifiers_match(world: World) -> None:
    texts = ["maxRetryCount", "max_retry_count", "max-retry-count", "MAX_RETRY_COUNT", "src/max/retry.ts"]
    world.say("a", *texts)
    assert sorted(world.texts("retry")) == sorted(texts)
    assert len(world.texts("maxRetryCount")) >= 1 and "maxRetryCount" in world.texts("maxretrycount")
    assert set(world.texts("max_retry_count")) >= {
        "max_retry_count",
        "max-retry-count",
        "maxRetryCount",
        "MAX_RETRY_COUNT",
    }


def test_scripts_without_spaces_match_anywhere(world: World) -> None:
    world.say(
        "a",
        "明天下午三点开项目评审会议",
        "重跑gen-itgc后检查",
        "データベースを移行する",
        "데이터베이스를 다시",
        "ฐานข้อมูลใหม่",
    )
    for query in (
        "评审",
        "会",
        "项目评审会议",
        "itgc",
        "重跑gen",
        "移行",
        "ベース",
        "데이터",
        "ข้อมูล",
        "三",
    ):
        assert len(world.texts(query)) == 1, query
    assert world.texts("审评") == []


def test_escape_sequences_do_not_glue_or_split_words(world: World) -> None:
    world.say("a", "\x1b[32mgreen\x1b[0mword and dash\u00ading and left\x1b[0mright")
    assert len(world.texts("green")) == 1 and len(world.texts("word")) == 1
    for query, marked in (
        ("green", "green"),
        ('"word and"', "word and"),
        ("greenword", "greenword"),
        ("right", "right"),
    ):
        result = world.search(query)
        (start, end), *_ = result.marks[0]
        assert result["results"][0]["snippet"][start:end] == marked


@pytest.mark.parametrize("before", ["", "\x1b[1mfil\x1b[0mler\x1b[1m and more\x1b[0m " * 40])
def test_a_snippet_shows_the_word_that_a_removed_escape_sequence_glued(world: World, before: str) -> None:
    world.say("a", f"{before}then \x1b[32mgreen\x1b[0mword came " + "\x1b[1mno\x1b[0mthing " * 100)
    for query in ("green", "greenword", '"word came"'):
        result = world.search(query, snippet_chars=80)
        snippet = result["results"][0]["snippet"]
        assert "then greenword came" in snippet and result.marks[0]


def test_a_query_with_a_supplementary_character_works(world: World) -> None:
    world.say("a", "ship it 🚀 now", "𠮷野家 lunch")
    assert len(world.texts("𠮷")) == 1
    assert len(world.texts("ship 🚀")) == 1


# -- what is never found ---------------------------------------------------------------------------------------------


def test_only_what_people_and_assistants_said_is_found(world: World) -> None:
    session = world.session("a")
    first = session.user("said zzuser")
    session.assistant([
        {"type": "thinking", "thinking": "zzthinking"},
        {"type": "toolCall", "id": "c", "name": "zztool", "arguments": {"x": "zzargument"}},
        {"type": "text", "text": "said zzassistant"},
    ])  # fmt: skip
    session.say("toolResult", "zzresult", extra={"toolCallId": "c", "toolName": "zztool"})
    session.say("system", "zzsystem")
    session.say("developer", "zzdeveloper")
    session.say("custom", "zzcustomrole")
    session.say("bashExecution", None, extra={"command": "zzcommand", "output": "zzoutput"})
    session.add("custom", customType="x", data={"t": "zzcustom"})
    session.add("custom_message", customType="x", content="zzcustommessage", display=True)
    session.add("compaction", summary="zzcompaction", firstKeptEntryId=first)
    session.add("branch_summary", fromId=first, summary="zzbranch")
    session.add("label", targetId=first, label="zzlabel")
    session.add("session_info", name="zzname")
    session.user("<skill name='deploy' location='/x'>zzskill</skill> go <!-- persistent-harness-input:zzmarker -->")
    session.user([{"type": "image", "data": "zzimage", "mimeType": "image/png"}, {"type": "text", "text": "end"}])
    session.save()
    assert len(world.texts("zzuser")) == len(world.texts("zzassistant")) == 1
    for word in ("thinking", "tool", "argument", "result", "system", "developer", "customrole", "command", "output", "custom",
                 "custommessage", "compaction", "branch", "label", "name", "skill", "marker", "image"):  # fmt: skip
        assert world.search("zz" + word, refresh=False)["results"] == [], word


def test_digits_inside_session_ids_are_not_found(world: World) -> None:
    world.say("a", "words", id="1024-1024-1024")
    assert world.texts("1024") == []


# -- filters ---------------------------------------------------------------------------------------------------------


def test_roles_filter(world: World) -> None:
    session = world.session("a")
    asked, told = session.user("findme"), session.assistant("findme")
    session.save()
    assert world.found("findme", roles=["user"]) == [asked]
    assert world.found("findme", roles=("assistant",)) == [told]
    assert set(world.found("findme", roles=["assistant", "user"])) == {asked, told}


def test_since_and_until_filter_by_the_entry_s_time(world: World) -> None:
    session = world.session("a")
    for moment in ("2026-03-01T23:59:59.999Z", "2026-03-02T00:00:00.000Z", "2026-03-03T00:00:00.000Z"):
        session.user("findme " + moment[8:10], at=moment)
    session.save()

    def days(**filters: str) -> list[str]:
        return sorted(world.texts("findme", **filters))

    assert days(since="2026-03-02") == ["findme 02", "findme 03"]
    assert days(until="2026-03-03") == ["findme 01", "findme 02"]
    assert days(since="2026-03-02", until="2026-03-03") == ["findme 02"]
    assert days(since="2026-03-02T00:00:00.001Z") == ["findme 03"]
    assert days(since="2026-03-02T01:00+01:00", until="2026-03-02T00:00:00.001") == ["findme 02"]
    assert days(since="2026-03-05", until="2026-03-01") == []


def test_an_entry_without_a_time_is_found_but_not_between_times(world: World) -> None:
    session = world.session("a")
    session.user("findme", at="never")
    session.save()
    assert len(world.texts("findme")) == 1 and world.texts("findme", since="1970-01-01") == []


def test_filters_without_any_session_give_nothing(world: World) -> None:
    world.say("a", "findme")
    for filters in ({"kind": "child"}, {"session_id": "unknown"}, {"cwd": "/elsewhere"}):
        answer = world.search("findme", **filters)
        assert answer["results"] == [] and not answer["truncated"] and answer["rankedAll"]


@pytest.mark.parametrize("filters", ["session", "kind", "cwd", "since", "roles", "current"])
def test_filters_hold_before_ranking_and_limit(world: World, filters: str) -> None:
    crowd = world.session("crowd", cwd="/w/crowd")
    for number in range(300):
        crowd.user("findme findme", at=stamp(number))
    path = crowd.save()
    wanted = world.session("wanted", cwd="/w/wanted")
    entry = wanted.assistant("the findme that is wanted among many other words that make it rank lower", at=stamp(5000))
    wanted.save(folder=f"--w-demo--/{path.stem}")
    arguments = {
        "session": {"session_id": wanted.id}, "kind": {"kind": "child"}, "cwd": {"cwd": "/w/wanted/"},
        "since": {"since": stamp(5000)}, "roles": {"roles": ["assistant"]}, "current": {},
    }[filters]  # fmt: skip
    if filters == "current":
        world.history(current_session_id=crowd.id)
    answer = world.search("findme", limit=1, **arguments)
    assert [hit["citation"]["entryId"] for hit in answer["results"]] == [entry] and not answer["truncated"]


@pytest.mark.parametrize("folder", ["D:\\shop", "d:/shop/", "\\\\?\\D:\\shop", "D:\\shop\\", "D:/shop"])
def test_folders_of_windows_are_one_whatever_their_form(world: World, folder: str) -> None:
    inside = [
        world.say(str(n), "findme", cwd=cwd).id
        for n, cwd in enumerate(("D:\\shop", "d:/shop/api", "\\\\?\\D:\\shop\\web\\", "D:\\SHOP"))
    ]
    for number, cwd in enumerate(("D:\\shopping", "E:\\shop", "/D:/shop", "shop")):
        world.say(f"other{number}", "findme", cwd=cwd)
    assert sorted(world.sessions_found("findme", cwd=folder)) == sorted(inside)
    assert sorted(world.listed(cwd=folder, refresh=False)) == sorted(inside)


def test_folders_are_compared_by_components(world: World) -> None:
    inside = [world.say(str(n), "findme", cwd=cwd).id for n, cwd in enumerate(("/a/b", "/a/b/c", "/a/b/"))]
    for number, cwd in enumerate(("/a/bc", "/a", "/A/b", "/a/c/b")):
        world.say(f"other{number}", "findme", cwd=cwd)
    for folder in ("/a/b", "/a/b/", "/a//b"):
        assert sorted(world.sessions_found("findme", cwd=folder)) == sorted(inside)
    assert len(world.sessions_found("findme", cwd="/", limit=20)) == 7


def test_the_folder_of_the_file_says_nothing(world: World) -> None:
    one, other = world.session("a", cwd="/a/b-c"), world.session("b", cwd="/a-b/c")
    for session in (one, other):
        session.user("findme")
        session.save(folder="--a-b-c--")
    assert world.sessions_found("findme", cwd="/a/b-c") == [one.id]


# -- rank, ties, order -----------------------------------------------------------------------------------------------


def test_equal_matches_come_newest_first(world: World) -> None:
    entries = []
    for number, second in enumerate((30, 10, 50, 20, 40)):
        session = world.session(f"s{number}")
        entries.append((second, session.user("findme", at=stamp(second))))
        session.save()
    assert world.found("findme") == [entry for _, entry in sorted(entries, reverse=True)]


def test_newest_and_oldest_are_by_time_not_by_place(world: World) -> None:
    session = world.session("a")
    entries = sorted(
        (second, session.user("findme " + "x " * second, at=stamp(second))) for second in (30, 10, 50, 20, 40)
    )
    session.user("findme undated", at="never")
    session.save()
    ordered = [entry for _, entry in entries]
    assert world.found("findme", sort="oldest")[:5] == ordered
    assert world.found("findme", sort="newest")[:5] == ordered[::-1]
    assert len(world.found("findme", sort="newest")) == 6


def test_of_one_moment_the_later_line_is_the_newer(world: World) -> None:
    session = world.session("a")
    entries = [session.user("findme", at=stamp(1)) for _ in range(4)]
    session.save()
    assert world.found("findme", sort="newest") == entries[::-1]
    assert world.found("findme", sort="oldest") == entries
    assert world.found("findme") == entries[::-1]


def test_newest_and_oldest_are_exact_among_thousands(world: World) -> None:
    """Far more matches than are sorted at once, in an order of files that is not the order of times."""
    expected = []
    for number in range(13):
        session = world.session(f"s{number}", start=stamp(number))
        for place in range(1000):
            second = (place * 7919 + number * 104729) % 20011
            expected.append((second, number, place, session.user("findme", at=stamp(second), key=f"e{number}x{place}")))
        session.save(name=f"s{number}.jsonl")
    expected.sort()
    for sort, order in (("oldest", expected), ("newest", expected[::-1])):
        answer = world.search("findme", sort=sort, limit=20)
        times = [hit["createdAt"] for hit in answer["results"]]
        assert times == [stamp(second) for second, *_ in order[:20]]
        assert answer["rankedAll"] and answer["truncated"]


def test_the_limit_is_hard_and_says_what_it_cuts(world: World) -> None:
    for number in range(12):
        world.say(f"s{number}", "findme")
    assert len(world.hits("findme")) == 10 and world.search("findme")["truncated"]
    answer = world.search("findme", limit=12)
    assert len(answer["results"]) == 12 and not answer["truncated"]
    answer = world.search("findme", limit=1, sort="oldest")
    assert len(answer["results"]) == 1 and answer["truncated"]


# -- one session does not crowd out the others -----------------------------------------------------------------------


def crowded(world: World, number: int) -> SessionBuilder:
    crowd = world.session("crowd", start=stamp(0))
    for place in range(number):
        crowd.user("findme findme", at=stamp(20_000 + place))
    crowd.save()
    return crowd


def test_three_of_a_session_while_others_have_matches(world: World) -> None:
    crowd = crowded(world, 50)
    others = [
        world.say(f"s{number}", "findme and many other words", "findme once more there").id for number in range(3)
    ]
    found = world.sessions_found("findme", limit=9)
    assert found.count(crowd.id) == 3 and [found.count(other) for other in others] == [2, 2, 2]


def test_the_rest_of_the_limit_is_filled_from_the_crowd(world: World) -> None:
    crowd = crowded(world, 50)
    other = world.say("other", "findme and many other words that make it rank lower").id
    answer = world.search("findme", limit=10)
    found = [hit["citation"]["sessionId"] for hit in answer["results"]]
    assert found.count(crowd.id) == 9 and found.count(other) == 1 and answer["truncated"]
    assert found[-1] == other  # results stand in the order of their rank
    assert world.sessions_found("findme", limit=4).count(crowd.id) == 3


def test_one_session_with_thousands_of_matches_leaves_room(world: World) -> None:
    crowd = crowded(world, 5000)
    others = [world.say(f"s{number}", "findme here").id for number in range(4)]
    answer = world.search("findme", limit=7)
    found = [hit["citation"]["sessionId"] for hit in answer["results"]]
    assert found.count(crowd.id) == 3 and set(found) == {crowd.id, *others}
    assert answer["truncated"] and not answer["rankedAll"]


@pytest.mark.parametrize("query", ['"findme"', "find*", '"findme here"', "findme he*"])
def test_phrases_and_prefixes_leave_room_too(world: World, query: str) -> None:
    crowd = world.session("crowd", start=stamp(0))
    for place in range(2500):
        crowd.user("findme here", at=stamp(20_000 + place))
    crowd.save()
    others = [world.say(f"s{number}", "findme here").id for number in range(4)]
    found = world.sessions_found(query, limit=7)
    assert found.count(crowd.id) == 3 and set(found) == {crowd.id, *others}


def test_a_lost_file_with_thousands_of_matches_hides_nothing(world: World) -> None:
    crowd = crowded(world, 3000)
    other = world.say("other", "findme")
    world.refresh()
    crowd.path().unlink()
    for sort in ("relevance", "newest", "oldest"):
        answer = world.search("findme", refresh=False, sort=sort)
        assert [hit["citation"]["sessionId"] for hit in answer["results"]] == [other.id], sort
        assert answer["unavailableSessionIds"] == [crowd.id] and not answer["complete"]


def test_copies_by_the_thousand_hide_nothing(world: World) -> None:
    session = world.session("original", start=stamp(0))
    for number in range(250):
        session.user("findme findme")
    session.save()
    for number in range(12):
        fork(world, session, f"f{number}").save()
    other = world.session("other", start=stamp(0))
    other.user("findme once among other words", at="2020-01-01T00:00:00Z")
    other.save(name="other.jsonl")
    answer = world.search("findme", limit=20)
    found = [hit["citation"]["sessionId"] for hit in answer["results"]]
    assert len(found) == 20 and other.id in found and answer["truncated"]
    assert len({hit["citation"]["entryId"] for hit in answer["results"]}) == 20


def test_of_many_words_fewer_are_ranked_and_the_answer_says_so(world: World) -> None:
    session = world.session("a")
    words = [f"word{letter}" for letter in "abcdefghijklmnopqrstuvwxyzäöüßøæ"]
    for _ in range(1000):
        session.user(" ".join(words))
    session.save()
    assert world.search(" ".join(words[:8]))["rankedAll"]
    answer = world.search(" ".join(words))
    assert not answer["rankedAll"] and answer["truncated"] and len(answer["results"]) == 10


def test_with_a_session_or_an_order_by_time_there_is_no_share(world: World) -> None:
    crowd = crowded(world, 20)
    world.say("other", "findme")
    assert world.sessions_found("findme", session_id=crowd.id) == [crowd.id] * 10
    assert world.sessions_found("findme", sort="newest") == [crowd.id] * 10


# -- forks and copies ------------------------------------------------------------------------------------------------


def fork(
    world: World,
    original: SessionBuilder,
    name: str,
    *,
    count: int | None = None,
    start: str | None = None,
    **header: str,
) -> SessionBuilder:
    """A session that copies the first entries of another."""
    made = world.session(name, start=start or stamp(5000), **{"parentSession": str(original.path()), **header})
    made.lines += original.lines[1:] if count is None else original.lines[1 : 1 + count]
    made.count, made.last = 1000, original.last
    return made


def original(world: World) -> tuple[SessionBuilder, str]:
    session = world.session("original", start=stamp(0))
    entry = session.user("shared findme")
    session.assistant("an answer")
    session.save()
    return session, entry


def test_copies_are_one_hit_cited_where_it_was_written_first(world: World) -> None:
    session, entry = original(world)
    forks = []
    for name in ("x", "y"):
        made = fork(world, session, name)
        made.user("own " + name)
        made.save()
        forks.append(made.id)
    (hit,) = world.hits("findme")
    assert hit["citation"] == {"sessionId": session.id, "entryId": entry}
    assert sorted(hit["alsoIn"]) == sorted(forks)


def test_a_fork_of_a_fork_is_one_hit_too(world: World) -> None:
    session, _ = original(world)
    one = fork(world, session, "one", start=stamp(6000))
    one.save()
    two = fork(world, one, "two", start=stamp(7000))
    two.save()
    (hit,) = world.hits("findme")
    assert hit["citation"]["sessionId"] == session.id and sorted(hit["alsoIn"]) == sorted([one.id, two.id])


def test_an_ancestor_comes_first_even_if_its_clock_was_wrong(world: World) -> None:
    session = world.session("z-original", start=stamp(9000))
    session.user("shared findme")
    session.save()
    one = fork(world, session, "b", start=stamp(9000))
    one.save()
    two = fork(world, one, "a", start=stamp(10))
    two.save()
    (hit,) = world.hits("findme")
    assert hit["citation"]["sessionId"] == session.id


def test_the_same_words_at_another_time_are_another_hit(world: World) -> None:
    world.say("a", "findme")
    other = world.session("b")
    other.user("findme", at=stamp(99))
    other.save()
    assert len(world.hits("findme")) == 2


@pytest.mark.parametrize("change", ["id", "role", "text", "time"])
def test_what_differs_in_anything_is_no_copy(world: World, change: str) -> None:
    for name in ("a", "b"):
        session = world.session(name)
        other = name == "b"
        session.say(
            "assistant" if other and change == "role" else "user",
            "findme!" if other and change == "text" else "findme",
            key="bbbb0001" if other and change == "id" else "aaaa0001",
            at=stamp(2 if other and change == "time" else 1),
        )
        session.save()
    assert len(world.hits("findme")) == 2 and not any("alsoIn" in hit for hit in world.hits("findme"))


def test_copies_never_use_up_the_limit(world: World) -> None:
    session = world.session("original", start=stamp(0))
    for number in range(5):
        session.user(f"findme {number}")
    session.save()
    for number in range(12):
        fork(world, session, f"f{number}").save()
    other = world.say("other", "findme among other words", start=stamp(9000))
    answer = world.search("findme", limit=5)
    found = [hit["citation"]["sessionId"] for hit in answer["results"]]
    assert sorted(found) == sorted([session.id] * 4 + [other.id]) and answer["truncated"]
    answer = world.search("findme", limit=6)
    assert len(answer["results"]) == 6 and not answer["truncated"]
    assert {len(hit.get("alsoIn", [])) for hit in answer["results"]} == {12, 0}


def test_at_most_twenty_copies_are_named(world: World) -> None:
    session, _ = original(world)
    for number in range(25):
        fork(world, session, f"f{number}").save()
    (hit,) = world.hits("findme")
    assert len(hit["alsoIn"]) == 20


def test_when_the_original_is_deleted_the_next_copy_is_cited(world: World) -> None:
    session, _ = original(world)
    one = fork(world, session, "one", start=stamp(6000))
    one.save()
    two = fork(world, session, "two", start=stamp(7000))
    two.save()
    world.refresh()
    session.path().unlink()
    (hit,) = world.hits("findme")
    assert hit["citation"]["sessionId"] == one.id and hit["alsoIn"] == [two.id]


def test_when_the_original_is_the_current_session_a_copy_is_cited(world: World) -> None:
    session, _ = original(world)
    one = fork(world, session, "one")
    one.save()
    world.history(current_session_id=session.id)
    (hit,) = world.hits("findme")
    assert hit["citation"]["sessionId"] == one.id and "alsoIn" not in hit


def test_a_copy_out_of_scope_is_not_named(world: World) -> None:
    session, _ = original(world)
    one = fork(world, session, "one")
    one.save()
    world.history(current_session_id=one.id)
    (hit,) = world.hits("findme")
    assert hit["citation"]["sessionId"] == session.id and "alsoIn" not in hit


def test_when_the_original_is_of_another_kind_or_folder_the_copy_is_cited(world: World) -> None:
    session, _ = original(world)
    one = fork(world, session, "one", cwd="/w/elsewhere")
    one.save(folder="--w-demo--/forks")
    assert world.sessions_found("findme", kind="child") == [one.id]
    assert world.sessions_found("findme", cwd="/w/elsewhere") == [one.id]
    assert world.sessions_found("findme", session_id=one.id) == [one.id]


@pytest.mark.parametrize("damage", ["rewritten", "gone"])
def test_when_the_original_cannot_be_read_the_next_copy_is_cited(world: World, damage: str) -> None:
    session, _ = original(world)
    one = fork(world, session, "one")
    one.save()
    world.refresh()
    if damage == "rewritten":
        replace(session.path(), "shared", "SHARED")
    else:
        session.path().unlink()
    answer = world.search("findme", refresh=False)
    (hit,) = answer["results"]
    assert hit["citation"]["sessionId"] == one.id and "alsoIn" not in hit
    assert answer["unavailableSessionIds"] == [session.id]


def test_a_copy_that_is_off_its_branch_is_not_cited(world: World) -> None:
    session = world.session("original", start=stamp(0))
    root = session.user("root")
    session.user("shared findme")
    lines = list(session.lines)
    session.user("elsewhere", parent=root)
    session.save()
    made = world.session("fork", start=stamp(5000), parentSession=str(session.path()))
    made.lines += lines[1:]
    made.save()
    (hit,) = world.hits("findme")
    assert hit["citation"]["sessionId"] == made.id and hit["visible"] and "alsoIn" not in hit
    (hit,) = world.hits("findme", branch="any")
    assert hit["citation"]["sessionId"] == session.id and not hit["visible"] and hit["alsoIn"] == [made.id]


def test_one_entry_twice_in_one_session_is_no_copy_of_itself(world: World) -> None:
    session = world.session("a")
    session.user("findme", key="aaaa0001", at=stamp(1))
    session.raw(session.lines[-1])
    session.save()
    (hit,) = world.hits("findme")
    assert "alsoIn" not in hit


# -- branches --------------------------------------------------------------------------------------------------------


def test_abandoned_entries_are_found_only_with_any_branch(world: World) -> None:
    session = world.session("a")
    root = session.user("root")
    off = session.assistant("findme abandoned")
    on = session.assistant("findme kept", parent=root)
    session.save()
    assert world.found("findme") == [on]
    hits = {hit["citation"]["entryId"]: hit["visible"] for hit in world.hits("findme", branch="any")}
    assert hits == {on: True, off: False}


def test_an_append_can_move_the_branch(world: World) -> None:
    session = world.session("a")
    root = session.user("root")
    first = session.assistant("findme first")
    path = session.save()
    assert world.found("findme") == [first]
    second = session.assistant("findme second", parent=root)
    append(path, session.lines[-1:])
    assert world.found("findme") == [second]
    session.user("back", parent=first)
    append(path, session.lines[-1:])
    assert world.found("findme") == [first]


# -- unavailable -----------------------------------------------------------------------------------------------------


def test_what_can_no_longer_be_verified_is_left_out_and_named(world: World) -> None:
    session, kept = world.say("a", "findme one", "findme two"), world.say("b", "findme three")
    world.refresh()
    replace(session.path(), "findme one", "findme ONE")
    answer = world.search("findme", refresh=False)
    assert kept.id in [hit["citation"]["sessionId"] for hit in answer["results"]]
    assert not any("one" in hit["snippet"].lower() for hit in answer["results"])
    assert answer["unavailableSessionIds"] == [session.id] and not answer["unavailableTruncated"]
    assert not answer["complete"] and answer["freshness"]["sources"]["changed"] == 1


def test_at_most_twenty_unavailable_sessions_are_named(world: World) -> None:
    sessions = [world.say(f"s{number}", "findme one") for number in range(22)]
    world.refresh()
    for session in sessions:
        session.path().unlink()
    answer = world.search("findme", refresh=False)
    assert answer["results"] == [] and len(answer["unavailableSessionIds"]) == 20 and answer["unavailableTruncated"]


def test_an_append_leaves_hits_valid(world: World) -> None:
    session = world.session("a")
    session.user("findme")
    path = session.save()
    world.refresh()
    session.user("more")
    append(path, session.lines[-1:])
    assert world.texts("findme", refresh=False) == ["findme"]


# -- what a hit shows ------------------------------------------------------------------------------------------------


def test_a_hit_tells_all_that_is_needed_to_cite_it(world: World) -> None:
    session = world.session("a")
    entry = session.assistant("the findme", at="2026-03-02T11:22:33.444+02:00")
    session.save()
    answer = world.search("findme")
    (hit,) = answer["results"]
    assert hit["citation"] == {"sessionId": session.id, "entryId": entry} and hit["role"] == "assistant"
    assert hit["createdAt"] == "2026-03-02T09:22:33.444Z" and hit["snippet"] == "the findme"
    assert hit["snippetTruncated"] is False and hit["visible"] is True and "alsoIn" not in hit
    assert hit["locator"] == f"session:{session.id}/entry:{entry}" and hit["session"]["sessionId"] == session.id
    assert answer["query"] == "findme" and answer["unavailableSessionIds"] == [] and answer["rankedAll"] is True


def test_the_query_comes_back_as_it_was_asked(world: World) -> None:
    world.say("a", "x")
    assert world.search('  Ünï "a  b" ')["query"] == '  Ünï "a  b" '


@pytest.mark.parametrize("size", [80, 81, 320, 800])
def test_a_snippet_is_never_longer_than_asked_for(world: World, size: int) -> None:
    filler = "lorem ipsum 日本語 😀👩🏽‍💻 e\u0301 " * 60
    world.say(
        "a", f"findme {filler}", f"{filler} findme {filler}", f"{filler} findme", "x" * 3000 + " findme " + "y" * 3000
    )
    hits = world.hits("findme", snippet_chars=size)
    assert len(hits) == 4
    for hit in hits:
        assert len(hit["snippet"]) <= size and "findme" in hit["snippet"] and hit["snippetTruncated"]
        body = hit["snippet"].strip("…")
        assert not unicodedata.combining(body[0]) and body[0] not in "\u200d🏽" and not body.endswith("\u200d")


def test_a_snippet_shows_as_many_terms_as_possible(world: World) -> None:
    filler = "lorem ipsum dolor " * 60
    world.say("a", f"alpha {filler} beta {filler} alpha then beta and gamma {filler} gamma")
    (snippet,) = world.texts("alpha beta gamma", snippet_chars=80)
    assert all(word in snippet for word in ("alpha", "beta", "gamma"))


def test_a_snippet_finds_terms_the_way_the_index_does(world: World) -> None:
    filler = "lorem ipsum dolor " * 60
    for query, shown in (("retry", "maxRetryCount"), ("cafe", "Café"), ("deploy", "deployments"), ("评审", "项目评审会议"), ("strasse", "Straße"),
                         ('"kept whole"', "kept whole"), ("prefi*", "prefixes"), ("tx.draft", "tx.draft")):  # fmt: skip
        world.say(query, f"{filler}{shown} {filler}")
        assert shown in world.texts(query, snippet_chars=80)[0], query


def test_a_text_of_exactly_the_limit_is_whole(world: World) -> None:
    text = "findme " + "x" * 73
    world.say("a", text)
    (hit,) = world.hits("findme", snippet_chars=80)
    assert hit["snippet"] == text and not hit["snippetTruncated"]


# -- hostile text ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    ["findme \\ud83d", "findme \\ud83Eade9", "findme \\u0000b", "findme \\u001b]0;title\\u0007 x", "findme \\u202e evil", "findme <script>",
     "findme \\u2028 line", "findme \\uffff\\ufffe", "findme \\udbff\\udfff", "findme \\u009b31m", "findme \\u0085 next", "findme \\ufeff x"],
)  # fmt: skip
def test_hostile_text_comes_back_harmless(world: World, text: str) -> None:
    session = world.session("a")
    session.raw(line(session.message("user", "TEXT")).replace("TEXT", text))
    session.save()
    (snippet,) = world.texts("findme")
    snippet.encode("utf-8")
    assert not any(ord(c) < 32 or 0x7F <= ord(c) < 0xA0 or c in "\u202e" for c in snippet)


def test_megabytes_of_rubbish_in_a_message_do_no_harm(world: World) -> None:
    session = world.session("a")
    session.user("findme " + ("\ufffd\x01\x02\x1b[" * 200_000))
    session.user("findme too")
    session.save()
    assert len(world.texts("findme")) == 2


@pytest.mark.parametrize("query", ['RED"RED"', "red red", "red Red fox", "red* red*"])
def test_a_term_may_be_asked_for_twice(world: World, query: str) -> None:
    world.say("a", "red fox")
    assert len(world.found(query)) == 1
