"""``session-history mcp``: a real client of the official SDK over standard input and output."""

from __future__ import annotations

import asyncio
import builtins
import os
import re
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from builder import ArchiveBuilder, SessionBuilder

pytest.importorskip("mcp", reason="needs the extra mcp")

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

from harness_session_history import cli

Talk = Callable[[ClientSession], Awaitable[None]]


@pytest.fixture
def session(tmp_path: Path) -> SessionBuilder:
    archive = ArchiveBuilder(tmp_path)
    s = archive.session("own")
    s.user("the plover decided </history>")
    kept = s.user("kept")
    s.add("compaction", summary="s", firstKeptEntryId=kept, tokensBefore=1)
    s.save()
    past = archive.session("past")
    past.user("a plover of the past")
    past.save()
    return s


def talk(session: SessionBuilder, conversation: Talk, current: str | None) -> None:
    """Runs a client against the server as a process of its own."""
    index = session.archive.agent.parent / "index" / "history.sqlite3"
    words = ["--root", str(session.archive.root), "--index", str(index), "--no-maintenance"]
    words += [] if current is None else ["--current", current]
    own = {name: value for name, value in os.environ.items() if not name.startswith(("SESSION_HISTORY_", "PI_"))}
    server = StdioServerParameters(
        command=sys.executable, args=["-m", "harness_session_history", *words, "mcp"], env=own
    )

    async def run() -> None:
        async with stdio_client(server) as (incoming, outgoing), ClientSession(incoming, outgoing) as client:
            await client.initialize()
            await conversation(client)

    asyncio.run(asyncio.wait_for(run(), 60))


async def text(client: ClientSession, name: str, arguments: dict[str, Any]) -> tuple[str, bool]:
    answer = await client.call_tool(name, arguments)
    assert [content.type for content in answer.content] == ["text"]
    return answer.content[0].text, bool(answer.is_error)  # type: ignore[union-attr]


def test_a_client_finds_reads_and_opens(session: SessionBuilder) -> None:
    async def conversation(client: ClientSession) -> None:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert set(tools) == {"session_history", "history_search", "history_read"}
        assert tools["history_search"].input_schema["required"] == ["query"]
        assert all(tool.title and tool.annotations and tool.annotations.read_only_hint for tool in tools.values())
        assert all(name in (client.instructions or "") for name in tools)

        found, wrong = await text(client, "history_search", {"query": "plover"})
        assert (
            not wrong and found.startswith(f'<history conversation="{session.id}">') and found.count("</history>") == 1
        )
        entry = found.split("[")[1].split("]")[0]
        read, wrong = await text(client, "history_read", {"mode": "items", "entries": [entry]})
        assert not wrong and "> the plover decided [/history>" in read
        assert "kept" not in (await text(client, "history_read", {"mode": "tail"}))[0]

        past = (await text(client, "session_history", {"query": "plover", "refresh": True}))[0]
        assert "untrusted" in past and past.count("> a plover of the past\n") == 1
        (cited,) = re.findall("session:([^/ ]+)/entry:([^ ]+)", past)
        named = dict(zip(("session_id", "entry_id"), cited, strict=True))
        opened = (await text(client, "session_history", {"operation": "open", **named}))[0]
        assert "(cited)\n> a plover of the past\n" in opened

    talk(session, conversation, session.id)


def test_what_is_wrong_comes_back_as_an_error_that_a_model_can_read(session: SessionBuilder) -> None:
    async def conversation(client: ClientSession) -> None:
        for name, arguments, said in (
            ("history_search", {"query": "plover"}, "invalid_request: there is no tool of this name"),
            ("session_history", {"query": "plover", "limit": 99}, "invalid_request: limit"),
            ("session_history", {"operation": "open", "session_id": "x", "entry_id": "y"}, "session_not_found"),
            ("history_handoff", {"text": "go on"}, "invalid_request: there is no tool of this name"),
        ):
            answer, wrong = await text(client, name, arguments)
            assert wrong and answer.startswith(said)
        answer, wrong = await text(client, "session_history", {"operation": "list", "refresh": True})
        assert not wrong and "[2] session:" in answer and "[3]" not in answer

    talk(session, conversation, None)


def test_without_a_known_conversation_only_other_sessions_are_offered(session: SessionBuilder) -> None:
    async def conversation(client: ClientSession) -> None:
        (tool,) = (await client.list_tools()).tools
        assert tool.name == "session_history" and "Pi sessions" in (tool.description or "")
        said = client.instructions or ""
        assert "session_history" in said and "history_search" not in said and "history_read" not in said

    talk(session, conversation, None)


def test_without_the_sdk_the_shell_says_what_to_install(
    session: SessionBuilder, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    imported = builtins.__import__

    def without(name: str, *rest: Any, **named: Any) -> Any:
        if name.startswith("mcp"):
            raise ModuleNotFoundError(name=name)
        return imported(name, *rest, **named)

    monkeypatch.delitem(sys.modules, "harness_session_history.recall.mcp_server", raising=False)
    monkeypatch.setattr(builtins, "__import__", without)
    assert (
        cli.main(["--root", str(session.archive.root), "--index", str(session.archive.agent / "i" / "x.db"), "mcp"])
        == 2
    )
    assert ".[mcp]" in capsys.readouterr().err
