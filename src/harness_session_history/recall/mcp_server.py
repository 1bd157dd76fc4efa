"""A Model Context Protocol server over standard input and output: `session_history`, `history_search`, `history_read`.

`history_handoff` is not offered: only the host could apply it. Needs the extra ``mcp`` (the official SDK).
"""

from __future__ import annotations

from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import mcp_types as types
from mcp.server.lowlevel.server import Server
from mcp.server.stdio import stdio_server

from .adapters import call
from .session_history_tool import session_history_tool
from .tools import RECALL, Tool, history_tools

if TYPE_CHECKING:
    from ..history import SessionHistory


def offered(history: SessionHistory) -> list[Tool]:
    """The tools that need no control of the host."""
    own = history_tools(history=history)
    return [session_history_tool(history=history), own.search, own.read]


def make_server(history: SessionHistory) -> Server[Any]:
    """The server; the conversation is the calling session of the history's settings."""
    tools = offered(history)
    shown = [
        types.Tool(
            name=tool.name,
            description=tool.description,
            input_schema=tool.input_schema,
            annotations=types.ToolAnnotations(read_only_hint=True, open_world_hint=False),
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
        "session-history",
        version=version("harness-session-history"),
        instructions=RECALL,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


async def serve(history: SessionHistory) -> None:
    """Serves until the client closes standard input."""
    server = make_server(history)
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())
