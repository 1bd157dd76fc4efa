"""MCP clients as they are: what they send, how they call and configure the server, and how they leave it."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from builder import ArchiveBuilder, SessionBuilder
from harness_session_history import SessionHistory, cli
from harness_session_history.recall import history_tools, session_history_tool
from harness_session_history.recall.adapters import Called, call
from harness_session_history.recall.mcp_config import CLIENTS


@pytest.fixture
def session(tmp_path: Path) -> SessionBuilder:
    s = ArchiveBuilder(tmp_path).session("own")
    s.user("the plover decided")
    s.save()
    return s


def calls(session: SessionBuilder, *wanted: tuple[str, dict[str, Any]]) -> list[Called]:
    async def run() -> list[Called]:
        index = session.archive.agent.parent / "i" / "history.sqlite3"
        async with SessionHistory(roots=[session.archive.root], index=index, maintenance=False) as history:
            tools = [session_history_tool(history=history), *history_tools(session.id, history=history)]
            return [await call(tools, name, arguments) for name, arguments in wanted]

    return asyncio.run(run())


def everything(schema: dict[str, Any], empty: object) -> dict[str, Any]:
    """What a client sends that fills in every argument: its default, else `empty`."""
    return {name: one.get("default", empty) for name, one in schema["properties"].items()}


@pytest.mark.parametrize("empty", [None, "", []])
def test_a_client_that_sends_every_argument_is_answered(session: SessionBuilder, empty: object) -> None:
    past, (search, read, _) = session_history_tool(), history_tools(session.id)
    entry = session.last
    sent = everything(past.input_schema, empty)
    wanted = [
        ("session_history", {**sent, "query": "plover"}),
        ("session_history", {**sent, "operation": "list"}),
        ("session_history", {**sent, "operation": "open", "session_id": session.id, "entry_id": entry}),
        ("history_search", {**everything(search.input_schema, empty), "query": "plover"}),
        ("history_read", {**everything(read.input_schema, empty), "mode": "tail"}),
        ("history_read", {**everything(read.input_schema, empty), "mode": "items", "entries": [entry]}),
        ("history_read", {**everything(read.input_schema, empty), "mode": "range", "from": entry}),
    ]
    for answer in calls(session, *wanted):
        assert not answer.is_error, answer.text


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("session_history", {"query": "x", "before": 3}, "search does not take before"),
        ("session_history", {"query": ""}, "query must be a string of 1–512 characters"),
        ("session_history", {"operation": "list", "query": "x"}, "list does not take query"),
        ("history_read", {"mode": "tail", "around": 1}, "mode tail does not take around"),
        ("history_read", {"mode": "items", "entries": []}, "entries must be"),
        ("history_search", {"query": "x", "limit": 21}, "limit must be"),
    ],
)
def test_what_is_no_default_is_refused_where_it_is_not_taken(
    session: SessionBuilder, name: str, arguments: dict[str, Any], said: str
) -> None:
    (answer,) = calls(session, (name, arguments))
    assert answer.is_error and answer.text.startswith(f"invalid_request: {said}")


@pytest.mark.parametrize(
    "prefix", ["session-history_", "session_history__", "mcp__session-history__", "mcp__past__", "mcp_session-history_"]
)
@pytest.mark.parametrize("name", ["history_search", "session_history"])
def test_a_name_with_a_clients_prefix_is_recognised(session: SessionBuilder, prefix: str, name: str) -> None:
    (answer,) = calls(session, (prefix + name, {"query": "plover"}))
    assert not answer.is_error and "plover" in answer.text


def test_another_tool_is_not_taken_for_one_of_these(session: SessionBuilder) -> None:
    for name in ("web__history_search", "browser_session_history", "session-history_list_files", ""):
        assert calls(session, (name, {"query": "plover"}))[0].is_error


FIRST = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "somebody", "version": "1"},
}


def served(session: SessionBuilder) -> subprocess.Popen[bytes]:
    """A server that has answered its first message."""
    pytest.importorskip("mcp", reason="needs the extra mcp")
    index = session.archive.agent.parent / "i" / "history.sqlite3"
    words = ["--root", str(session.archive.root), "--index", str(index), "--no-maintenance", "mcp"]
    pipe = subprocess.PIPE
    process = subprocess.Popen(
        [sys.executable, "-m", "harness_session_history", *words], stdin=pipe, stdout=pipe, stderr=pipe
    )
    say(process, "initialize", FIRST)
    assert process.stdout is not None and b"serverInfo" in process.stdout.readline()
    return process


def say(process: subprocess.Popen[bytes], method: str, parameters: dict[str, Any]) -> None:
    assert process.stdin is not None
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": parameters}
    process.stdin.write(json.dumps(message).encode() + b"\n")
    process.stdin.flush()


def ended(process: subprocess.Popen[bytes]) -> tuple[int, bytes]:
    with process:
        assert process.stderr is not None
        try:
            return process.wait(20), process.stderr.read()
        finally:
            process.kill()


@pytest.mark.skipif(os.name == "nt", reason="signals are POSIX")
def test_one_interrupt_ends_the_server_quietly(session: SessionBuilder) -> None:
    process = served(session)
    process.send_signal(signal.SIGINT)
    assert ended(process) == (130, b"")


def test_a_client_that_closes_its_output_ends_the_server_quietly(session: SessionBuilder) -> None:
    process = served(session)
    assert process.stdin is not None
    process.stdin.close()
    assert ended(process) == (0, b"")


def test_a_client_that_no_longer_reads_ends_the_server_quietly(session: SessionBuilder) -> None:
    process = served(session)
    assert process.stdout is not None and process.stdin is not None
    process.stdout.close()
    say(process, "tools/list", {})
    assert process.wait(20) == 0
    assert ended(process) == (0, b"")


@pytest.mark.parametrize("client", CLIENTS)
def test_the_printed_configuration_starts_this_program_from_any_folder(
    client: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.main(["--root", "past talks", "--current", "me", "mcp", "--print-config", client]) == 0
    printed, told = capsys.readouterr()
    if client == "claude-code":
        words = shlex.split(printed)
        assert words[:6] == ["claude", "mcp", "add", "--scope", "user", "session-history"] and words[6] == "--"
        command, *arguments = words[7:]
    else:
        (servers,) = json.loads(printed).values()
        command, arguments = servers["session-history"]["command"], servers["session-history"]["args"]
    assert os.path.isabs(command) and os.access(command, os.X_OK) and told.count("\n") == 1
    assert arguments[-5:] == ["--root", str(tmp_path / "past talks"), "--current", "me", "mcp"]
    shown = subprocess.run(
        [command, *arguments[:-5], "--version"], cwd="/", capture_output=True, text=True, timeout=60, check=True
    )
    assert shown.stdout[:1].isdigit()


def test_an_unknown_client_is_refused_with_those_that_are_known(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["mcp", "--print-config", "emacs"]) == 2
    assert "claude-code, claude-desktop, cursor, vscode" in capsys.readouterr().err
