"""Calls the tools of one conversation for the tests: a fresh history over the builder's archive for each call."""

from __future__ import annotations

import asyncio
from typing import Any

from builder import ArchiveBuilder, SessionBuilder
from harness_session_history import SessionHistory
from harness_session_history.recall.tools import HistoryTools, ToolResult, history_tools


def history(archive: ArchiveBuilder, **settings: Any) -> SessionHistory:
    index = archive.agent.parent / "index" / "history.sqlite3"
    return SessionHistory(roots=[archive.root], index=index, maintenance=False, **settings)


async def called(own: SessionHistory, session_id: str | None, tool: str, **arguments: Any) -> ToolResult:
    tools: HistoryTools = history_tools(session_id, history=own)
    return await {one.name: one for one in tools}[f"history_{tool}"](**arguments)


def ask(session: SessionBuilder, tool: str, **arguments: Any) -> ToolResult:
    """One call of ``history_<tool>`` for this session, whose file must have been saved."""

    async def run() -> ToolResult:
        async with history(session.archive) as own:
            return await called(own, session.id, tool, **arguments)

    return asyncio.run(run())


def found(session: SessionBuilder, query: str, **arguments: Any) -> list[str]:
    """The entries that history_search finds, sorted by nothing but rank."""
    return [hit["entry"] for hit in ask(session, "search", query=query, **arguments)["hits"]]


def entries(result: ToolResult) -> list[str]:
    return [entry["entry"] for entry in result["entries"]]


def last(session: SessionBuilder, count: int = 20) -> list[str]:
    """What the tail gives."""
    return entries(ask(session, "read", mode="tail", count=count))
