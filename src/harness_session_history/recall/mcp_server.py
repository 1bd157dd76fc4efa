"""A Model Context Protocol server over standard input and output: `session_history` and, where the calling conversation is
known, `history_search` and `history_read`.

`history_handoff` is not offered: only the host could apply it. Needs the extra ``mcp`` (the official SDK).
"""

from __future__ import annotations

import asyncio
import sys
import threading
from importlib.metadata import version
from typing import Any, cast

import mcp_types as types
from mcp.server.lowlevel.server import Server
from mcp.server.stdio import stdio_server

from ..model.names import SERVER_NAME
from .adapters import call
from .session_history_tool import PAST, session_history_tool
from .tools import RECALL, History, Tool, history_tools

TITLES = {
    "session_history": "Search past Pi sessions",
    "history_search": "Search this conversation",
    "history_read": "Read this conversation",
}


def offered(history: History) -> list[Tool]:
    """The tools that need no control of the host, and whose conversation is known."""
    own = history_tools(history=history)
    return [session_history_tool(history=history), *([own.search, own.read] if _is_known(history) else [])]


def _is_known(history: History) -> bool:
    return history.settings.current_session is not None


def make_server(history: History) -> Server[Any]:
    """The server; the conversation is the calling session of the history's settings."""
    tools = offered(history)
    shown = [
        types.Tool(
            name=tool.name,
            title=TITLES[tool.name],
            description=tool.description,
            input_schema=tool.input_schema,
            annotations=types.ToolAnnotations(
                title=TITLES[tool.name],
                read_only_hint=True,
                destructive_hint=False,
                idempotent_hint=True,
                open_world_hint=False,
            ),
        )
        for tool in tools
    ]

    async def list_tools(context: object, params: object) -> types.ListToolsResult:
        return types.ListToolsResult(tools=shown)

    async def call_tool(context: object, params: types.CallToolRequestParams) -> types.CallToolResult:
        called = await call(tools, params.name, params.arguments or {})
        return types.CallToolResult(
            content=[types.TextContent(type="text", text=called.text)], is_error=called.is_error
        )

    return Server(
        SERVER_NAME,
        version=version("harness-session-history"),
        instructions=PAST + ("\n" + RECALL if _is_known(history) else ""),
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


class _Lines:
    """Standard input line by line. A daemon thread reads it, so that a read that waits holds up no end of the process."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._lines = asyncio.Queue[bytes](1)
        threading.Thread(target=self._read, name="session-history-stdin", daemon=True).start()

    def _read(self) -> None:
        try:
            for line in [] if sys.stdin is None else sys.stdin.buffer:
                asyncio.run_coroutine_threadsafe(self._lines.put(line), self._loop).result()
            asyncio.run_coroutine_threadsafe(self._lines.put(b""), self._loop).result()
        except (OSError, RuntimeError, asyncio.CancelledError):  # the loop has ended before the input
            pass

    def __aiter__(self) -> _Lines:
        return self

    async def __anext__(self) -> str:
        line = await self._lines.get()
        if not line:
            raise StopAsyncIteration
        return line.decode("utf-8", "replace")


async def serve(history: History) -> None:
    """Serves until the client closes its end of either stream."""
    server = make_server(history)
    try:
        async with stdio_server(stdin=cast(Any, _Lines())) as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())
    except* BrokenPipeError:
        pass  # the client reads no more
