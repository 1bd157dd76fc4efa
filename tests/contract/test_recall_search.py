"""history_search: bounded before it ranks, brought up to date first, honest about what it does not know."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from builder import ArchiveBuilder, SessionBuilder
from harness_session_history import EntryNotVisible, InvalidRequest, RefreshIncomplete, SessionHistory, SessionNotFound
from harness_session_history.model.limits import LIMITS
from recall_calls import ask, called, found, history


@pytest.fixture
def archive(tmp_path: Path) -> ArchiveBuilder:
    return ArchiveBuilder(tmp_path)


def long_and_compacted(archive: ArchiveBuilder) -> tuple[SessionBuilder, list[str], list[str]]:
    """A session with its earlier and later entries; the later ones hold the word more often and alone."""
    s = archive.session("own")
    earlier = [s.user(f"in passing, step {n} mentions the plover among many other words") for n in range(3)]
    kept = s.user("plover")
    later = [kept, *(s.assistant("plover plover") for _ in range(30))]
    s.add("compaction", summary="x", firstKeptEntryId=kept, tokensBefore=1)
    s.save()
    return s, earlier, later


def test_entries_after_the_boundary_do_not_appear_though_they_would_rank_higher(archive: ArchiveBuilder) -> None:
    s, earlier, _ = long_and_compacted(archive)
    assert sorted(found(s, "plover", limit=3)) == sorted(earlier)


def test_the_bound_holds_before_so_many_are_ranked(archive: ArchiveBuilder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness_session_history.search.rank.RANKED", 5)
    s, earlier, _ = long_and_compacted(archive)
    answer = ask(s, "search", query="plover")
    assert sorted(hit["entry"] for hit in answer["hits"]) == sorted(earlier) and not answer["more"]


LONG_QUERIES = ["评审" * 250, "데" * 500, "𠀀" * 500, "é" * 500, "ﷲ" * 500, "สวัสดี" * 83, "क्षत्रिय " * 32, "😀評" * 250,
                " ".join("評審" * 7 for _ in range(32)), '"' + "é à " * 124 + '"', "ﬃB" * 250, "слово" * 12 + "*" + " яжю*" * 31]  # fmt: skip


@pytest.mark.parametrize("query", LONG_QUERIES)
def test_a_query_has_five_hundred_characters_of_any_script(archive: ArchiveBuilder, query: str) -> None:
    assert len(query) <= 500 and len(query.encode()) > 224
    s = archive.session("own")
    said = s.user(query.replace("*", "").replace('"', ""))
    s.add("reset")
    s.save()
    assert found(s, query) == [said]


def test_other_sessions_do_not_appear(archive: ArchiveBuilder) -> None:
    other = archive.session("other")
    other.user("plover plover plover")
    other.save()
    s = archive.session("own")
    said = s.user("only one plover, and many other words beside it")
    s.save()
    assert found(s, "plover") == [said]


def test_a_copy_in_another_session_is_cited_here(archive: ArchiveBuilder) -> None:
    s = archive.session("own")
    said = s.user("copied plover")
    s.save()
    fork = archive.session("fork", start="2026-03-02T09:00:00.000Z")
    fork.lines.append(s.lines[1])
    fork.save()
    assert found(s, "plover") == [said]


def test_abandoned_branches_do_not_appear(archive: ArchiveBuilder) -> None:
    s = archive.session("own")
    root = s.user("root")
    s.user("abandoned plover plover")
    right = s.user("a plover among many other words on this branch", parent=root)
    s.save()
    assert found(s, "plover") == [right]


def test_before_takes_the_place_of_the_boundary(archive: ArchiveBuilder) -> None:
    s, earlier, later = long_and_compacted(archive)
    assert found(s, "plover", before=earlier[1]) == [earlier[0]]
    assert sorted(found(s, "plover", before=later[1])) == sorted([*earlier, later[0]])


def test_before_may_be_an_entry_of_any_kind(archive: ArchiveBuilder) -> None:
    s = archive.session("own")
    one = s.user("one plover")
    _, result = s.tool("output")
    two = s.user("two plover")
    mark = s.add("model_change", provider="p", modelId="m")
    s.user("three plover")
    s.save()
    assert found(s, "plover", before=result) == [one]
    assert sorted(found(s, "plover", before=mark)) == sorted([one, two])


def test_before_an_abandoned_entry_is_what_it_goes_back_to(archive: ArchiveBuilder) -> None:
    s = archive.session("own")
    root = s.user("root plover")
    s.user("left plover")
    abandoned = s.user("further left plover")
    s.user("right plover", parent=root)
    s.save()
    assert found(s, "plover", before=abandoned) == [root]


def test_before_an_orphan_there_is_nothing(archive: ArchiveBuilder) -> None:
    s = archive.session("own")
    s.user("root plover", key="root")
    s.user("orphan plover", key="orphan", parent="missing")
    s.user("right plover", parent="root")
    s.save()
    assert found(s, "plover", before="orphan") == []


def test_an_entry_of_another_session_is_refused_as_before(archive: ArchiveBuilder) -> None:
    other = archive.session("other")
    foreign = other.user("plover")
    other.save()
    s = archive.session("own")
    s.user("plover")
    s.save()
    with pytest.raises(EntryNotVisible):
        ask(s, "search", query="plover", before=foreign)


def test_hits_have_just_the_fields_that_are_promised(archive: ArchiveBuilder) -> None:
    s = archive.session("own")
    said = s.user("word " * 200 + "plover")
    s.save()
    answer = ask(s, "search", query="plover")
    assert set(answer) == {"hits", "more"} and answer["more"] is False
    (hit,) = answer["hits"]
    assert set(hit) == {"entry", "role", "snippet"} and hit["entry"] == said and hit["role"] == "user"
    assert "plover" in hit["snippet"] and len(hit["snippet"]) <= 300


def test_an_author_is_named_where_the_transcript_has_one(archive: ArchiveBuilder) -> None:
    s = archive.session("own")
    s.user("plover", extra={"author": {"name": "Ada Example"}})
    s.save()
    assert ask(s, "search", query="plover")["hits"][0]["author"] == "Ada Example"


def test_more_says_that_the_limit_left_hits_out(archive: ArchiveBuilder) -> None:
    s = archive.session("own")
    for n in range(4):
        s.user(f"plover {n}")
    s.save()
    answer = ask(s, "search", query="plover", limit=3)
    assert len(answer["hits"]) == 3 and answer["more"] and "More entries match" in answer.text
    assert not ask(s, "search", query="plover", limit=4)["more"]


def test_a_phrase_is_held_against_the_words_themselves(archive: ArchiveBuilder) -> None:
    s = archive.session("own")
    exact = s.user("the deployed service")
    s.user("the deploy service")
    s.save()
    assert found(s, '"deployed service"') == [exact]


def test_it_finds_text_of_an_entry_that_called_history_before(archive: ArchiveBuilder) -> None:
    s = archive.session("own")
    said = s.assistant([{"type": "text", "text": "plover"}, {"type": "toolCall", "id": "c", "name": "history_search"}])
    s.save()
    assert found(s, "plover") == [said]


def test_what_was_just_written_is_found(archive: ArchiveBuilder) -> None:
    s = archive.session("own")
    s.user("first")
    s.save()

    async def run() -> list[str]:
        async with history(archive) as own:
            await called(own, s.id, "search", query="first")
            said = s.user("appended plover")
            s.save()
            hits = (await called(own, s.id, "search", query="plover"))["hits"]
            assert [hit["entry"] for hit in hits] == [said]
            return [said]

    assert asyncio.run(run())


def test_only_the_conversations_own_file_is_read(archive: ArchiveBuilder) -> None:
    s = archive.session("own")
    s.user("plover")
    s.save()
    found(s, "plover")
    other = archive.session("other")
    other.user("heron")
    other.save()
    s.user("another plover")
    s.save()
    assert len(found(s, "plover")) == 2

    async def listed() -> dict[str, int]:
        async with history(archive) as own:
            return dict((await own(operation="list"))["freshness"]["sources"])

    assert asyncio.run(listed())["missing"] == 1


def test_the_current_session_is_searched_though_other_searches_leave_it_out(archive: ArchiveBuilder) -> None:
    s = archive.session("own")
    said = s.user("plover")
    s.save()

    async def run() -> None:
        async with history(archive, current_session_id=s.id) as own:
            assert [hit["entry"] for hit in (await called(own, None, "search", query="plover"))["hits"]] == [said]
            assert (await own(query="plover"))["results"] == []

    asyncio.run(run())


class Busy:
    """Somebody else writes the index all the time."""

    def __init__(self, own: SessionHistory, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(LIMITS, "recall_seconds", 0.05)
        monkeypatch.setattr(LIMITS, "refresh_seconds", 0.05)
        self.lock = own._engine.index.lock()

    def __enter__(self) -> None:
        assert self.lock.acquire()

    def __exit__(self, *what: object) -> None:
        self.lock.release()


def test_it_says_so_when_before_lies_after_what_is_indexed(
    archive: ArchiveBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    s = archive.session("own")
    s.user("one plover")
    known = s.assistant("two plover")
    s.save()

    async def run() -> None:
        async with history(archive) as own:
            await called(own, s.id, "search", query="plover")
            s.user("three plover")
            new = s.user("four")
            s.save()
            with Busy(own, monkeypatch):
                answer = await called(own, s.id, "search", query="plover", before=new)
                assert len(answer["hits"]) == 2 and answer["indexedUpTo"] == known
                assert f"Searched up to entry {known} only." in answer.text
                assert "indexedUpTo" not in await called(own, s.id, "search", query="plover", before=known)
                assert (await called(own, s.id, "search", query="plover"))["indexedUpTo"] == known
                with pytest.raises(EntryNotVisible):
                    await called(own, s.id, "search", query="plover", before="nowhere")
            answer = await called(own, s.id, "search", query="plover", before=new)
            assert len(answer["hits"]) == 3 and "indexedUpTo" not in answer

    asyncio.run(run())


def test_a_conversation_that_cannot_be_indexed_yet_is_not_called_unknown(
    archive: ArchiveBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    s = archive.session("own")
    s.user("plover")
    s.save()

    async def run() -> None:
        async with history(archive) as own:
            own._engine.readers.handle.connection()
            with Busy(own, monkeypatch), pytest.raises(RefreshIncomplete):
                await called(own, s.id, "search", query="plover")

    asyncio.run(run())


def test_a_rewritten_conversation_is_read_anew(archive: ArchiveBuilder) -> None:
    s = archive.session("own")
    s.user("old plover")
    path = s.save()
    assert len(found(s, "plover")) == 1
    path.write_bytes(path.read_bytes().replace(b"old plover", b"new heron "))
    assert found(s, "plover") == [] and len(found(s, "heron")) == 1


def test_a_file_that_was_moved_is_found_again(archive: ArchiveBuilder) -> None:
    s = archive.session("own")
    s.user("plover")
    path = s.save()
    found(s, "plover")
    (archive.root / "--w-other--").mkdir()
    path.rename(archive.root / "--w-other--" / path.name)
    assert len(found(s, "plover")) == 1


@pytest.mark.parametrize("way", ["unknown", "gone", "deleted"])
def test_a_conversation_that_is_not_there_is_refused_alike(archive: ArchiveBuilder, way: str) -> None:
    s = archive.session("own")
    s.user("plover")
    if way != "unknown":
        path = s.save()
        found(s, "plover")
        path.rename(
            path.with_name(path.name + ".deleted.2026-04-01T00-00-00-000Z")
        ) if way == "deleted" else path.unlink()
    with pytest.raises(SessionNotFound) as refused:
        ask(s, "search", query="plover")
    assert str(refused.value) == "no such conversation is in scope"


def test_a_wrong_query_is_refused_before_anything_is_looked_at(archive: ArchiveBuilder) -> None:
    s = archive.session("never saved")
    for query in ('"unclosed', "...", "a*b", "  "):
        with pytest.raises(InvalidRequest):
            ask(s, "search", query=query)


def test_a_damaged_index_heals_on_the_way(archive: ArchiveBuilder) -> None:
    s = archive.session("own")
    said = s.user("plover")
    s.save()
    found(s, "plover")
    index = archive.agent.parent / "index" / "history.sqlite3"
    data = bytearray(index.read_bytes())
    data[8192:] = b"\x55" * (len(data) - 8192)
    index.write_bytes(data)
    assert found(s, "plover") == [said]


def test_the_callers_loop_goes_on_meanwhile(archive: ArchiveBuilder) -> None:
    s = archive.session("own")
    for n in range(300):
        s.user(f"plover {n} " * 50)
    s.save()

    async def run() -> int:
        beats = 0

        async def beat() -> None:
            nonlocal beats
            while True:
                await asyncio.sleep(0)
                beats += 1

        async with history(archive) as own:
            heart = asyncio.create_task(beat())
            await called(own, s.id, "search", query="plover")
            heart.cancel()
        return beats

    assert asyncio.run(run()) > 10
