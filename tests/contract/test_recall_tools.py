"""The tools as objects: what they take, what they refuse, how other hosts have them, and the whole story of a handoff."""

from __future__ import annotations

import asyncio
import io
import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import harness_session_history
from builder import ArchiveBuilder, SessionBuilder
from harness_session_history import InvalidRequest, SessionHistory, cli
from harness_session_history import history as default
from harness_session_history.recall.adapters import (
    anthropic_result,
    anthropic_tools,
    call,
    openai_result,
    openai_tools,
    responses_result,
    responses_tools,
)
from harness_session_history.recall.session_history_tool import session_history_tool
from harness_session_history.recall.tools import HistoryTools, history_tools, prompt_section
from recall_calls import ask, called, entries, found, history

NAMES = ["history_search", "history_read", "history_handoff"]


@pytest.fixture
def session(tmp_path: Path) -> SessionBuilder:
    s = ArchiveBuilder(tmp_path).session("own")
    s.user("plover")
    s.save()
    return s


# -- what they are ----------------------------------------------------------------------------------------------------


def test_there_are_three_tools_each_also_by_its_name() -> None:
    tools = history_tools("some-session")
    assert [tool.name for tool in tools] == NAMES
    assert isinstance(tools, HistoryTools) and tools.search.name == "history_search" and tools.handoff is tools[2]
    assert all(isinstance(tool.description, str) and len(tool.description) > 40 for tool in tools)


def test_the_package_itself_has_them() -> None:
    assert harness_session_history.history_tools is history_tools
    assert harness_session_history.prompt_section is prompt_section


def test_arguments_may_come_as_the_mapping_that_a_model_sent(session: SessionBuilder) -> None:
    async def run() -> None:
        async with history(session.archive) as own:
            tools = history_tools(session.id, history=own)
            assert await tools.read({"mode": "tail"}) == await tools.read(mode="tail")
            assert await tools.read({"mode": "tail"}, count=1) == await tools.read(mode="tail", count=1)
            for wrong in ([("mode", "tail")], "tail", {1: "tail"}):
                with pytest.raises(InvalidRequest):
                    await tools.read(wrong)  # type: ignore[arg-type]

    asyncio.run(run())


def test_no_tool_takes_a_session_id() -> None:
    for tool in history_tools("some-session"):
        assert "session" not in json.dumps(list(tool.input_schema["properties"]))
        with pytest.raises(InvalidRequest, match="no such argument"):
            asyncio.run(tool(session_id="another"))


def test_schemas_are_plain_objects_without_references() -> None:
    for tool in [*history_tools("x"), session_history_tool()]:
        assert tool.input_schema["type"] == "object" and tool.input_schema["additionalProperties"] is False
        assert "$ref" not in json.dumps(tool.input_schema) and "anyOf" not in json.dumps(tool.input_schema)
        for declared in tool.input_schema["properties"].values():
            assert declared["type"] and declared["description"]


def test_schemas_state_the_bounds() -> None:
    search, read, handoff = (tool.input_schema for tool in history_tools("x"))
    assert search["required"] == ["query"] and search["properties"]["query"]["maxLength"] == 500
    assert {k: search["properties"]["limit"][k] for k in ("minimum", "maximum", "default")} == {
        "minimum": 1,
        "maximum": 20,
        "default": 10,
    }
    assert read["required"] == ["mode"] and read["properties"]["mode"]["enum"] == ["items", "range", "tail"]
    assert set(read["properties"]) == {"mode", "entries", "around", "from", "to", "limit", "count", "cursor"}
    assert read["properties"]["entries"]["maxItems"] == 20
    maxima = {name: read["properties"][name]["maximum"] for name in ("around", "limit", "count")}
    assert maxima == {"around": 5, "limit": 50, "count": 20}
    assert handoff["required"] == ["text"] and handoff["properties"]["text"]["maxLength"] == 100_000


def test_what_a_model_is_told_is_short_and_names_the_tools() -> None:
    assert all(name in prompt_section for name in NAMES)
    assert len(prompt_section) < 1_800
    for words in ("still stored", "history_search first", "only for what you need", "Do not guess", "not instructions"):
        assert words in prompt_section


def test_what_a_mode_needs_is_told_in_words_as_the_schema_is_flat() -> None:
    read = history_tools("x").read
    for told in (read.description, read.input_schema["properties"]["mode"]["description"]):
        assert "needs entries" in told.replace("\n", " ") and "needs from" in told
    assert not {"oneOf", "anyOf", "allOf", "if"} & read.input_schema.keys()


def test_roles_are_declared_to_be_unique() -> None:
    roles = session_history_tool().input_schema["properties"]["roles"]
    assert roles["uniqueItems"] is True and roles["maxItems"] == 2


@pytest.mark.parametrize("tool, arguments", [
    ("search", {"query": "plover", "limit": 10.0}),
    ("read", {"mode": "tail", "count": 3.0}),
    ("read", {"mode": "range", "from": "first", "limit": 1.0}),
    ("read", {"mode": "items", "entries": ["first"], "around": 0.0}),
])  # fmt: skip
def test_a_number_without_a_fraction_is_an_integer_as_in_json_schema(
    tmp_path: Path, tool: str, arguments: dict[str, Any]
) -> None:
    s = ArchiveBuilder(tmp_path).session("own")
    s.user("plover", key="first")
    s.save()
    given = {"history_search": "hits", "history_read": "entries"}[f"history_{tool}"]
    assert ask(s, tool, **arguments)[given]


def test_the_same_holds_for_the_tool_over_past_sessions(session: SessionBuilder) -> None:
    async def run() -> None:
        async with history(session.archive) as own:
            tool = session_history_tool(history=own)
            assert (await tool(query="plover", limit=5.0, snippet_chars=80.0))["results"]
            for wrong in (5.5, float("nan"), float("inf"), 21.0, True, "5"):
                with pytest.raises(InvalidRequest):
                    await tool(query="plover", limit=wrong)

    asyncio.run(run())


# -- what they refuse -------------------------------------------------------------------------------------------------

WRONG: list[tuple[str, dict[str, Any], str]] = [
    ("search", {}, "needs query"),
    ("search", {"query": ""}, "a string of 1–500 characters"),
    ("search", {"query": "x" * 501}, "a string of 1–500 characters; got 501 characters of type str"),
    ("search", {"query": 5}, "got a value of type int"),
    ("search", {"query": "plover \ud800"}, "query must be"),
    ("search", {"query": "plover", "limit": 0}, "an integer 1–20"),
    ("search", {"query": "plover", "limit": 21}, "an integer 1–20; got 21, of type int"),
    ("search", {"query": "plover", "limit": True}, "got a value of type bool"),
    ("search", {"query": "plover", "limit": 5.5}, "got a value of type float"),
    ("search", {"query": "plover", "limit": float("inf")}, "got a value of type float"),
    ("search", {"query": "plover", "limit": 0.0}, "an integer 1–20"),
    ("search", {"query": "plover", "limit": "5"}, "got a value of type str"),
    ("search", {"query": "plover", "before": "x" * 129}, "before must be"),
    ("search", {"query": "plover", "around": 1}, "no such argument"),
    ("read", {}, "needs mode"),
    ("read", {"mode": "all"}, "one of items, range, tail"),
    ("read", {"mode": "items"}, "needs entries"),
    ("read", {"mode": "items", "entries": []}, "a list of 1–20"),
    ("read", {"mode": "items", "entries": ["x"] * 21}, "a list of 1–20"),
    ("read", {"mode": "items", "entries": "x"}, "got a value of type str"),
    ("read", {"mode": "items", "entries": [5]}, "strings of 1–128 characters"),
    ("read", {"mode": "items", "entries": ["x"], "around": 6}, "an integer 0–5"),
    ("read", {"mode": "items", "entries": ["x"], "count": 3}, "mode items does not take count"),
    ("read", {"mode": "range"}, "needs from"),
    ("read", {"mode": "range", "from": "x", "limit": 51}, "an integer 1–50"),
    ("read", {"mode": "range", "from": "x", "entries": ["x"]}, "mode range does not take entries"),
    ("read", {"mode": "tail", "count": 21}, "an integer 1–20"),
    ("read", {"mode": "tail", "from": "x"}, "mode tail does not take from"),
    ("handoff", {}, "needs text"),
    ("handoff", {"text": ""}, "a string of 1–100000 characters"),
    ("handoff", {"text": " \n\t"}, "text is blank"),
    ("handoff", {"text": "x" * 100_001}, "a string of 1–100000 characters"),
    ("handoff", {"text": ["x"]}, "got a value of type list"),
]


@pytest.mark.parametrize("tool, arguments, message", WRONG)
def test_wrong_arguments_are_refused_in_words(
    session: SessionBuilder, tool: str, arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidRequest) as refused:
        ask(session, tool, **arguments)
    assert message in str(refused.value) and refused.value.hint


@pytest.mark.parametrize(
    "arguments", [{"query": "secret" * 90}, {"query": "x", "before": "secret" * 30}, {"secret": 1}]
)
def test_refusals_never_repeat_the_value(session: SessionBuilder, arguments: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest) as refused:
        ask(session, "search", **arguments)
    assert "secret" not in str(refused.value) + refused.value.hint


def test_none_counts_as_not_given(session: SessionBuilder) -> None:
    assert ask(session, "search", query="plover", before=None, limit=None)["hits"]
    assert ask(session, "read", mode="tail", entries=None, cursor=None)["entries"]


def test_an_unknown_caller_is_refused_when_a_tool_is_called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SESSION_HISTORY_CURRENT", "PI_SESSION_ID"):
        monkeypatch.delenv(name, raising=False)

    async def run() -> None:
        async with history(ArchiveBuilder(tmp_path)) as own:
            tools = history_tools(history=own)
            for tool, arguments in ((tools.search, {"query": "x"}), (tools.read, {"mode": "tail"})):
                with pytest.raises(InvalidRequest, match="the calling conversation is unknown"):
                    await tool(**arguments)

    asyncio.run(run())


@pytest.mark.parametrize("session_id", ["", "x" * 129, 5])
def test_a_session_id_that_is_none_is_refused_at_once(session_id: Any) -> None:
    with pytest.raises(InvalidRequest, match="session_id"):
        history_tools(session_id)


def test_the_calling_session_of_the_settings_is_the_default(session: SessionBuilder) -> None:
    async def run() -> None:
        async with history(session.archive, current_session_id=session.id) as own:
            assert (await called(own, None, "read", mode="tail"))["entries"][0]["text"] == "plover"

    asyncio.run(run())


def test_without_a_history_the_default_one_answers(session: SessionBuilder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SESSION_HISTORY_ROOTS", str(session.archive.root))
    monkeypatch.setenv("SESSION_HISTORY_INDEX", str(session.archive.agent / "index" / "history.sqlite3"))
    monkeypatch.setenv("SESSION_HISTORY_MAINTENANCE", "off")
    monkeypatch.setenv("PI_SESSION_ID", session.id)
    monkeypatch.setattr(default, "_default", {})

    async def run() -> None:
        found = await history_tools().search(query="plover")
        assert len(found["hits"]) == 1
        past = await session_history_tool()(query="plover", include_current=True)
        assert len(past["results"]) == 1
        await default.default_history().close()

    asyncio.run(run())


# -- handoff ----------------------------------------------------------------------------------------------------------


def test_a_handoff_is_the_control_and_nothing_else(tmp_path: Path) -> None:
    s = ArchiveBuilder(tmp_path).session("own")
    text = " \u8bc4\u5ba1 </history>\n" + "x" * 99_000
    result = ask(s, "handoff", text=text)
    assert dict(result) == {"control": {"handoff": text}}
    assert text not in result.text and json.loads(json.dumps(result)) == result


def test_a_handoff_writes_nothing_and_needs_no_conversation(tmp_path: Path) -> None:
    archive = ArchiveBuilder(tmp_path)
    ask(archive.session("unknown"), "handoff", text="go on")
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


# -- the story --------------------------------------------------------------------------------------------------------


def test_a_conversation_goes_on_past_a_compaction_and_a_handoff(tmp_path: Path) -> None:
    s = ArchiveBuilder(tmp_path).session("own")

    async def run() -> None:
        async with history(s.archive, current_session_id=s.id) as own:
            tools = history_tools(history=own)
            s.user("Where do we keep the retry limit?")
            decided = s.assistant("In settings.toml: max_retries = 7, decided with the plover team.")
            s.tool("wrote settings.toml", name="edit")
            before = [s.user("Fine."), s.assistant("Then I go on with the tests.")]
            s.save()
            assert [hit["entry"] for hit in (await tools.search(query="plover"))["hits"]] == [decided]

            kept = s.user("Now the tests.")
            s.assistant("Written.")
            s.add("compaction", summary="Some limit was set.", firstKeptEntryId=kept, tokensBefore=9)
            s.user("What was the limit again? Not plover guesses, please.")
            s.save()
            hits = (await tools.search(query="max_retries plover"))["hits"]
            assert [hit["entry"] for hit in hits] == [decided]
            (entry,) = (await tools.read(mode="items", entries=[decided]))["entries"]
            assert "max_retries = 7" in entry["text"]
            assert entries(await tools.read(mode="tail", count=2)) == before

            handed = await tools.handoff(text=f"The limit is 7, see entry {decided}. Next: release notes.")
            s.tool("handed off", name="history_handoff", call="h")
            s.add("reset")
            s.user(handed["control"]["handoff"])
            s.save()
            tail = await tools.read(mode="tail", count=2)
            assert [entry["text"] for entry in tail["entries"]] == [
                "Written.",
                "What was the limit again? Not plover guesses, please.",
            ]
            assert [hit["entry"] for hit in (await tools.search(query="decided plover"))["hits"]] == [decided]

    asyncio.run(run())


def test_the_transcript_is_only_read(session: SessionBuilder) -> None:
    path = session.path()
    data = path.read_bytes()
    before = path.stat()
    found(session, "plover")
    ask(session, "read", mode="tail")
    after = path.stat()
    assert path.read_bytes() == data
    assert (before.st_mtime_ns, before.st_atime_ns, before.st_size) == (
        after.st_mtime_ns,
        after.st_atime_ns,
        after.st_size,
    )


# -- other hosts ------------------------------------------------------------------------------------------------------


def test_the_formats_of_other_hosts() -> None:
    tools = history_tools("x")
    assert anthropic_tools(tools)[0] == {
        "name": "history_search",
        "description": tools.search.description,
        "input_schema": tools.search.input_schema,
    }
    function = {
        "name": "history_read",
        "description": tools.read.description,
        "parameters": tools.read.input_schema,
    }
    assert openai_tools(tools)[1] == {"type": "function", "function": function}
    assert responses_tools(tools)[1] == {"type": "function", **function}


def test_a_models_call_is_answered_in_its_hosts_format(session: SessionBuilder) -> None:
    async def run() -> None:
        async with history(session.archive) as own:
            tools = [*history_tools(session.id, history=own), session_history_tool(history=own)]
            done = await call(tools, "history_search", '{"query": "plover"}')
            assert not done.is_error and done.text.startswith("<history ") and done.control is None
            block = anthropic_result("toolu_1", done)
            assert block == {"type": "tool_result", "tool_use_id": "toolu_1", "content": done.text, "is_error": False}
            assert openai_result("call_1", done) == {"role": "tool", "tool_call_id": "call_1", "content": done.text}
            assert responses_result("call_1", done)["output"] == done.text
            handed = await call(tools, "history_handoff", {"text": "go on"})
            assert handed.control == {"handoff": "go on"}
            past = await call(tools, "session_history", {"query": "plover"})
            assert past.text.count("\n> plover\n") == 1 and "\nNext: " in past.text

    asyncio.run(run())


@pytest.mark.parametrize(
    "name, arguments",
    [("history_forget", {}), ("history_search", {"query": ""}), ("history_search", "not json"), ("history_search", "[1]"),
     ("history_read", {"mode": "items", "entries": ["nowhere"]}), ("session_history", {"query": "x", "limit": 99}),
     ("session_history", {"colour": "red"})],
)  # fmt: skip
def test_a_wrong_call_becomes_an_error_that_the_model_can_read(
    session: SessionBuilder, name: str, arguments: dict[str, Any] | str
) -> None:
    async def run() -> None:
        async with history(session.archive) as own:
            tools = [*history_tools(session.id, history=own), session_history_tool(history=own)]
            done = await call(tools, name, arguments)
            assert done.is_error and done.text.startswith(("invalid_request: ", "entry_not_visible: "))

    asyncio.run(run())


# -- the shell --------------------------------------------------------------------------------------------------------


def shell(session: SessionBuilder, *words: str) -> list[str]:
    index = session.archive.agent.parent / "index" / "history.sqlite3"
    return ["--root", str(session.archive.root), "--index", str(index), "--no-maintenance", *words]


def test_the_shell_prints_the_tools(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["tools"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert [tool["name"] for tool in printed] == NAMES and printed[0]["input_schema"]["required"] == ["query"]


def test_the_shell_calls_a_tool(session: SessionBuilder, capsys: pytest.CaptureFixture[str]) -> None:
    words = shell(session, "--current", session.id, "tools", "history_search", '{"query": "plover"}')
    assert cli.main(words) == 0
    printed = json.loads(capsys.readouterr().out)
    assert len(printed["result"]["hits"]) == 1 and printed["text"].startswith("<history ")


def test_the_shell_reads_long_arguments_from_standard_input(
    session: SessionBuilder, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Whatever the locale says, and with the byte order mark that some editors begin a file with.
    sent = json.dumps({"text": "go on 评审"}, ensure_ascii=False).encode()
    for raw in (sent, b"\xef\xbb\xbf" + sent):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(raw), encoding="ascii"))
        assert cli.main(shell(session, "tools", "history_handoff", "-")) == 0
        assert json.loads(capsys.readouterr().out)["result"] == {"control": {"handoff": "go on 评审"}}


@pytest.mark.parametrize("raw", [None, b"\xff", b'{"text": "\xe8\xaf"}', b"", b"[]"])
@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_what_cannot_be_read_from_standard_input_is_an_invalid_request(
    session: SessionBuilder,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    raw: bytes | None,
    encoding: str,
) -> None:
    stdin = None if raw is None else io.TextIOWrapper(io.BytesIO(raw), encoding=encoding)
    monkeypatch.setattr(sys, "stdin", stdin)
    assert cli.main(shell(session, "--json", "tools", "history_handoff", "-")) == 2
    assert json.loads(capsys.readouterr().out)["error"]["code"] == "invalid_request"


def test_the_shell_without_standard_input_refuses_to_read_from_it(session: SessionBuilder) -> None:
    words = shell(session, "--json", "tools", "history_handoff", "-")
    command = shlex.join([sys.executable, "-m", "harness_session_history", *words])
    done = subprocess.run(["bash", "-c", f"{command} <&-"], capture_output=True, check=False)
    assert done.returncode == 2 and json.loads(done.stdout)["error"]["code"] == "invalid_request"


@pytest.mark.parametrize("words", [("history_forget",), ("history_search", "{"), ("history_search", '{"query": ""}')])
def test_the_shell_refuses_a_wrong_call(
    session: SessionBuilder, words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(shell(session, "--json", "--current", session.id, "tools", *words)) == 2
    assert json.loads(capsys.readouterr().out)["error"]["code"] == "invalid_request"


def test_importing_the_package_loads_neither_the_calls_nor_the_protocol() -> None:
    heavy = "('mcp', 'pydantic', 'harness_session_history.answer.conversation')"
    code = f"import sys; from harness_session_history import history_tools; print([m for m in sys.modules if m in {heavy}])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_history_knows_its_conversation(session: SessionBuilder) -> None:
    async def run() -> None:
        own: SessionHistory
        async with history(session.archive, current_session_id=session.id) as own:
            answer = await own.conversation().search("plover")
            assert len(answer["hits"]) == 1
            with pytest.raises(InvalidRequest):
                await own.conversation().search("...")

    asyncio.run(run())
