"""An empty scope is said in words: by search and list in every form, and by the doctor."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from builder import SessionBuilder
from harness_session_history import cli
from world import World


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def shell(world: World, capsys: pytest.CaptureFixture[str], *words: str, root: Path | None = None) -> str:
    settings = ["--root", str(root or world.root), "--index", str(world.index), "--no-maintenance"]
    cli.main([*settings, *words])
    return capsys.readouterr().out


FORMS = (["search", "plover"], ["list"])


@pytest.mark.parametrize("words", FORMS)
@pytest.mark.parametrize("form", ["text", "cards", "json"])
def test_a_root_that_does_not_exist_is_named(
    world: World, capsys: pytest.CaptureFixture[str], words: list[str], form: str
) -> None:
    away = world.root.parent / "nowhere"
    said = " ".join(shell(world, capsys, *words, "--format", form, root=away).split())
    assert "no Pi session under " in said and "No such file or directory" in said
    assert form == "json" or "No sessions: no Pi session under" in said and "Complete" not in said


@pytest.mark.parametrize("words", FORMS)
def test_a_root_of_other_agents_transcripts_says_how_many_files_are_of_another_format(
    world: World, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    folder = world.root / "-w-project"
    folder.mkdir(parents=True)
    for number in range(3):
        line = {"type": "user", "sessionId": "x", "uuid": str(number), "message": {"role": "user", "content": "plover"}}
        (folder / f"other{number}.jsonl").write_text(json.dumps(line) + "\n")
    said = shell(world, capsys, *words)
    assert f"No sessions: no Pi session under {world.root}; 3 files of another format." in said
    note = json.loads(shell(world, capsys, *words, "--json"))["freshness"]["note"]
    assert note == f"no Pi session under {world.root}; 3 files of another format"
    report = shell(world, capsys, "doctor")
    assert f"There is no Pi session under {world.root}; 3 files of another format" in report
    assert "Healthy" not in report and f"root    {world.root} (0 files, 3 of another format)" in report


def test_an_empty_root_is_said_by_search_list_and_doctor(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    world.root.mkdir(parents=True, exist_ok=True)
    for words in FORMS:
        assert f"No sessions: no Pi session under {world.root}." in shell(world, capsys, *words)
    assert f"There is no Pi session under {world.root}: every search is empty." in shell(world, capsys, "doctor")


def test_an_answer_over_sessions_has_no_such_note(world: World) -> None:
    world.say("a", "plover")
    assert "note" not in world.search("plover")["freshness"] and "note" not in world.search("zeppelin")["freshness"]


def test_what_a_filter_left_outside_is_said_with_the_filter(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    session: SessionBuilder = world.say("a", "a plover", cwd="/w/here")
    said = shell(world, capsys, "search", "plover", "--cwd", "/w/elsewhere")
    assert "filters: 1 entry matches without --cwd /w/elsewhere\n" in said
    assert session.id not in said and said.endswith(" search plover\n")
    since = shell(world, capsys, "search", "plover", "--since", "2199-01-01", "--roles", "user")
    assert "filters: 1 entry matches without --since 2199-01-01, --roles user\n" in since


def test_a_list_from_which_a_filter_left_nothing_names_the_filter(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    world.say("a", "a plover", cwd="/w/here")
    assert "none is left by --since 2199-01-01\n" in shell(world, capsys, "list", "--since", "2199-01-01")
    assert "No sessions: --kind child, --cwd /w/else leave no session to look in.\n" in shell(
        world, capsys, "list", "--cwd", "/w/else", "--kind", "child"
    )
