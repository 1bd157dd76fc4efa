"""The documentation of the tools and its examples: everything named exists, everything shown runs."""

from __future__ import annotations

import ast
import importlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from builder import ArchiveBuilder
from harness_session_history.options import parse
from harness_session_history.recall.tools import history_tools

PROJECT = Path(__file__).parents[2]
TEXT = (PROJECT / "docs" / "recall.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", TEXT, re.DOTALL)


@pytest.mark.parametrize("block", blocks("python"))
def test_python_blocks_compile_and_import_what_exists(block: str) -> None:
    for node in ast.walk(ast.parse(block)):
        if isinstance(node, ast.ImportFrom):
            module = importlib.import_module(node.module or "")
            assert all(hasattr(module, alias.name) for alias in node.names)


def test_shell_lines_are_accepted_by_the_shell() -> None:
    lines = [shlex.split(line) for block in blocks("bash") for line in block.splitlines()]
    own = [words[1:] for words in lines if words[0] == "session-history"]
    assert len(own) == 4
    for words in own:
        assert parse(words[: words.index("#")] if "#" in words else words).command in (
            "mcp",
            "tools",
        )


def test_every_argument_of_every_tool_is_in_the_table() -> None:
    for tool in history_tools("x"):
        row = next(line for line in TEXT.splitlines() if line.startswith(f"| `{tool.name}`"))
        for name in tool.input_schema["properties"]:
            assert f"`{name}`" in row or f"`{name}?`" in row


def test_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", TEXT):
        assert (PROJECT / "docs" / target).exists(), target


def test_the_demo_tells_the_whole_story() -> None:
    sessions = PROJECT / "examples" / "sessions"
    before = {path: path.read_bytes() for path in sessions.rglob("*.jsonl")}
    done = subprocess.run(
        [sys.executable, PROJECT / "examples" / "recall_demo.py"], capture_output=True, encoding="utf-8", check=True
    )
    assert done.stdout.count("<history ") == done.stdout.count("</history>") == 3
    assert "webhook_events with a unique key" in done.stdout and '{"control": {"handoff": ' in done.stdout
    assert done.stdout.rstrip().endswith("</history>") and "webhooks are now handled once" in done.stdout
    assert {path: path.read_bytes() for path in sessions.rglob("*.jsonl")} == before


PI = """
import { spawnSync } from "node:child_process";
const tools = {}, handlers = {}, sent = [];
let compaction;
const ctx = {
  sessionManager: { getSessionDir: () => process.env.FOLDER, getSessionId: () => process.env.SESSION },
  compact: ({ onComplete }) => {
    compaction = handlers.session_before_compact({ preparation: { firstKeptEntryId: "k", tokensBefore: 5 } });
    onComplete();
  },
};
const pi = {
  exec: async (command, args) => spawnSync(command, args, { encoding: "utf8" }),
  registerTool: (tool) => { tools[tool.name] = tool; },
  on: (name, handler) => { handlers[name] = handler; },
  sendUserMessage: (text) => sent.push(text),
};
const { default: extension } = await import(process.env.EXTENSION);
await extension(pi);
const found = await tools.history_search.execute("1", { query: "plover" }, undefined, undefined, ctx);
const failed = await tools.history_search.execute("2", { query: "" }, undefined, undefined, ctx).catch((e) => e.message);
const ignored = handlers.session_before_compact({ preparation: {} }) ?? null;
const handed = await tools.history_handoff.execute("3", { text: "go on" }, undefined, undefined, ctx);
handlers.agent_settled({}, ctx);
console.log(JSON.stringify({ names: Object.keys(tools), found, failed, ignored, handed, compaction, sent }));
"""


@pytest.mark.skipif(os.name == "nt" or shutil.which("node") is None, reason="needs Node and a POSIX shell")
def test_the_pi_extension_calls_the_tools_and_applies_a_handoff(tmp_path: Path) -> None:
    command = tmp_path / "session-history"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m harness_session_history "$@"\n', encoding="utf-8")
    command.chmod(0o755)
    s = ArchiveBuilder(tmp_path).session("own")
    s.user("plover")
    path = s.save()
    extension = tmp_path / "extension.mjs"
    shutil.copyfile(PROJECT / "examples" / "pi-recall.js", extension)
    (tmp_path / "pi.mjs").write_text(PI, encoding="utf-8")
    environment = {**os.environ, "SESSION_HISTORY_COMMAND": str(command), "SESSION_HISTORY_MAINTENANCE": "off"}
    environment |= {"FOLDER": str(path.parent), "SESSION": s.id, "EXTENSION": extension.as_uri()}
    environment |= {"SESSION_HISTORY_INDEX": str(tmp_path / "index" / "history.sqlite3")}
    done = subprocess.run(
        ["node", tmp_path / "pi.mjs"], capture_output=True, encoding="utf-8", env=environment, check=True
    )
    told = json.loads(done.stdout)
    assert told["names"] == ["history_search", "history_read", "history_handoff"]
    assert told["found"]["content"][0]["text"].startswith("<history ") and told["found"]["details"]["hits"]
    assert told["failed"].startswith("invalid_request: query") and told["ignored"] is None
    assert told["handed"]["terminate"] is True and told["sent"] == ["Go on as handed off."]
    assert told["compaction"]["compaction"] == {"summary": "go on", "firstKeptEntryId": "k", "tokensBefore": 5}
