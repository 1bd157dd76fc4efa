"""Every command, call and argument that a message, a card, a hint, an error or the doctor names works as it stands."""

from __future__ import annotations

import ast
import asyncio
import html
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from builder import uid
from harness_session_history import SessionHistory, cli
from harness_session_history.options import in_words_of_the_shell
from harness_session_history.recall.session_history_tool import session_history_tool
from harness_session_history.request import ARGUMENTS
from world import World

PROGRAM = shlex.join([sys.executable, "-m", "harness_session_history"])
SOURCE = Path(cli.__file__).parent


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """An archive in which there is one of everything, in a folder whose name must be quoted."""
    made = World(tmp_path / "a folder with 'quotes'")
    for number in range(4):
        session = made.session(f"s{number}")
        session.user(f"the plover of {number} nests", at=f"2026-03-0{number + 3}T10:00:00.000Z")
        session.user(f"and the heron {number}", at=f"2026-03-0{number + 3}T10:01:00.000Z")
        session.save()
    branched = made.session("branched")
    first = branched.user("where does the bittern nest")
    branched.assistant("an abandoned bittern", parent=first)
    branched.assistant("in the reeds", parent=first)
    branched.save()
    gone = made.session("deleted")
    gone.user("the plover that was deleted")
    path = gone.save()
    path.rename(path.with_name(path.name + ".deleted.2026-03-03T10-00-00.000Z"))
    made.say("now", "the plover of this very session")
    monkeypatch.setenv("SESSION_HISTORY_PROGRAM", PROGRAM)
    return made


def words_for(world: World) -> list[str]:
    return ["--root", str(world.root), "--index", str(world.index), "--current", uid("now"), "--no-maintenance"]


ASKED = (
    "search plover --limit 2",
    "search plover --sort newest --limit 2",
    "search plover --sort oldest --limit 2",
    "search plover --include-deleted --include-current --limit 20",
    "search bittern --branch any",
    "search abandoned",
    "search plovr",
    "search plover heron",
    "search plover --cwd /nowhere",
    "search plover --since 2199-01-01",
    "list",
    "list --limit 2",
    "list --include-deleted --include-current",
)


def named_in(shown: str) -> list[str]:
    """What is named to be typed: with each citation where the word stands for one, and with what opening that one takes."""
    cited = re.findall(r"(session:\S+/entry:\S+)(?:.*\(open with (.*)\)$)?", shown, re.MULTILINE)
    named = []
    for line in (line[line.index(PROGRAM) :].rstrip("` .") for line in shown.split("\n") if PROGRAM in line):
        named += (
            [line.replace("CITATION", f"{cite} {needs}") for cite, needs in cited] if "CITATION" in line else [line]
        )
    return named


def run(command: str, world: World) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, check=False, cwd=world.root, timeout=60
    )


@pytest.mark.parametrize("form", ["text", "cards"])
def test_every_command_of_an_answer_works_as_it_stands(
    world: World, form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    world.refresh()
    commands: dict[str, str] = {}
    for asked in ASKED:
        assert cli.main([*words_for(world), "--format", form, *asked.split()]) == 0
        commands |= dict.fromkeys(named_in(capsys.readouterr().out), asked)
    world.say("later", "a plover that is not indexed")
    assert cli.main([*words_for(world), "--format", form, "search", "plover"]) == 0
    commands |= dict.fromkeys(named_in(capsys.readouterr().out), "incomplete")
    assert len(commands) >= 9
    for command, asked in commands.items():
        assert "CITATION" not in command
        done = run(command, world)
        assert done.returncode == 0, (asked, command, done.stderr)
        assert "nothing matched" not in done.stdout, (asked, command)


def test_the_argument_that_a_hint_names_finds_what_the_hint_says(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    cli.main([*words_for(world), "search", "abandoned"])
    (argument,) = re.findall(r"match(?:es)?: add (.*)", capsys.readouterr().out)
    assert cli.main([*words_for(world), "search", "abandoned", *shlex.split(argument)]) == 0
    shown = capsys.readouterr().out
    assert "> an abandoned bittern" in shown and "(open with --branch any)" in shown
    (cited,) = re.findall(r"session:\S+/entry:\S+", shown)
    assert cli.main([*words_for(world), "open", cited, "--branch", "any"]) == 0


def test_every_call_of_a_card_works_in_python(world: World) -> None:
    async def ask() -> None:
        async with SessionHistory(
            roots=[world.root], index=world.index, current_session_id=uid("now"), maintenance=False
        ) as history:
            await history.refresh()
            shown = [
                await history(query="plover", include_deleted=True, include_current=True),
                await history(query="bittern", branch="any"),
                await history(query="plover", sort="newest", limit=1),
                await history(operation="list", limit=2),
            ]
            world.say("later", "a plover that is not indexed")
            shown.append(await history(query="plover"))
            calls: set[str] = set()
            for answer in shown:
                plain = answer._repr_mimebundle_()["text/plain"]
                calls |= set(
                    re.findall(r"await history\(.*\)", html.unescape(re.sub("</code>", "\n", answer._repr_html_())))
                )
                assert set(re.findall(r"await history\(.*\)", plain)) <= calls
            assert len(calls) > 8 and any("refresh=True" in call for call in calls)
            for call in calls:
                code = compile(call, "card", "eval", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
                assert (await eval(code, {"history": history}))["operation"] in ("open", "list", "search")

    asyncio.run(ask())


def test_every_call_of_the_tools_text_works_as_the_tools_arguments(world: World) -> None:
    async def ask() -> None:
        async with SessionHistory(roots=[world.root], index=world.index, maintenance=False) as history:
            tool = session_history_tool(history=history)
            calls: set[str] = set()
            given: tuple[dict[str, Any], ...] = (
                {"query": "plover", "limit": 2, "sort": "newest"},
                {"query": "plovr"},
                {"query": "plover", "cwd": "/nowhere"},
                {"operation": "list", "limit": 2},
            )
            for arguments in given:
                text = (await tool(**arguments)).text
                cited = re.findall(r"session:(\S+)/entry:(\S+)", text)
                for call in re.findall(r"session_history (\{.*\})", text):
                    if "…" in call:
                        session, entry = map(json.dumps, cited[0])
                        call = call.replace("…", session, 1).replace("…", entry, 1)
                    calls.add(call)
            assert len(calls) >= 5
            for call in calls:
                text = (await tool(**json.loads(call))).text
                assert "[1] " in text or "(cited)" in text, call

    asyncio.run(ask())


def test_every_command_of_the_doctor_works_as_it_stands(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    reports = []
    for asked in (
        ["doctor"],
        ["doctor", "--session", uid("deleted")],
        ["doctor", "--session", uid("now")],
        ["doctor", "--session", "x"],
    ):
        cli.main([*words_for(world), *asked, "--json"])
        reports.append(json.loads(capsys.readouterr().out))
        world.refresh()
    commands = [problem["command"] for report in reports for problem in report["problems"]]
    for report in reports[1:]:
        commands += [one["command"] for one in [report["session"], *report["session"]["reasons"]] if one["command"]]
    assert len(commands) >= 4
    for command in commands:
        assert run(command, world).returncode == 0, command


WRONG = (
    "search", "search ...", "search x --limit 99", "open x y", "open x", "list --sort newest", "find x", "search x --colour red",
    "open {session} nothing", "tools history_search {{}}", "refresh --session-id nobody",
)  # fmt: skip


def test_every_command_and_option_of_an_errors_hint_exists(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    world.refresh()
    for wrong in WRONG:
        status = cli.main([*words_for(world), *wrong.format(session=uid("s0")).split()])
        told = capsys.readouterr().err
        assert status in (2, 3) and told
        for command in re.findall(r"`([^`]+)`", told):
            if command.startswith(PROGRAM):
                assert run(command, world).returncode == 0, (wrong, command)
        for name in re.findall(r"(?<![\w-])--[a-z-]{3,}", told.replace("--colour", "")):
            assert _is_option(name), (wrong, name)
        assert not re.search(r"\b(include_deleted|include_current|session_id|snippet_chars)\b", told), told


def _is_option(name: str) -> bool:
    known = {argument.option for argument in ARGUMENTS.values()}
    return name in known | {"--help", "--root", "--index", "--current", "--registry", "--json", "--format"}


def test_a_hint_in_python_words_is_told_in_words_of_the_shell() -> None:
    for said, told in (
        (
            'branch="any" also opens entries of abandoned branches',
            "--branch any also opens entries of abandoned branches",
        ),
        ("search again with refresh=True and cite anew", "search again with --refresh and cite anew"),
        (
            "include_deleted and include_current widen the scope",
            "--include-deleted and --include-current widen the scope",
        ),
        ("run `session-history doctor`", f"run `{PROGRAM} doctor`"),
    ):
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("SESSION_HISTORY_PROGRAM", PROGRAM)
            assert in_words_of_the_shell(said) == told


def test_every_command_that_the_source_names_is_accepted_by_the_shell() -> None:
    """Also those that no test above comes across."""
    named = set()
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                named |= set(re.findall(r"`session-history ([^`{|…]+)`", node.value))
    assert named
    for words in named:
        assert cli.main([*shlex.split(words), "--help"]) == 0, words
