"""The tools in the formats of other hosts. Any of the tools here will do, `session_history_tool()` included.

Anthropic's messages:

    tools = [*history_tools(session_id)]
    reply = client.messages.create(tools=anthropic_tools(tools), ...)
    results = [anthropic_result(block.id, await call(tools, block.name, block.input))
               for block in reply.content if block.type == "tool_use"]

OpenAI's chat completions (`openai_tools`, `openai_result`) and responses (`responses_tools`, `responses_result`) alike.
``call(...).control`` is what the host has to apply, if anything.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from ..errors import InvalidRequest, SessionHistoryError
from ..model.names import own_tool
from .tools import Tool


class Called(NamedTuple):
    """How a call ended: the text for the model, whether that is an error, and what the host has to apply."""

    text: str
    is_error: bool = False
    control: dict[str, Any] | None = None


async def call(tools: Iterable[Tool], name: str, arguments: Mapping[str, Any] | str) -> Called:
    """Calls a tool by its name with what a model sent: arguments, or their JSON.

    The errors raised on purpose become the model's text; nothing else is caught.
    """
    try:
        result = await named(tools, name)(**decoded(arguments))
    except SessionHistoryError as error:
        return Called(f"{error.code}: {error}" + (f" ({error.hint})" if error.hint else ""), True)
    return Called(result.text, control=result.get("control"))


def named(tools: Iterable[Tool], name: str) -> Tool:
    """The tool of this name, with or without a client's prefix. Raises InvalidRequest."""
    by_name = {tool.name: tool for tool in tools}
    tool = by_name.get(name) or by_name.get(own_tool(name))
    if tool is None:
        raise InvalidRequest("there is no tool of this name", hint="the tools are " + ", ".join(by_name))
    return tool


def decoded(sent: Mapping[str, Any] | str) -> dict[str, Any]:
    """A model's arguments, from a mapping or from JSON. Raises InvalidRequest."""
    if isinstance(sent, str):
        try:
            sent = json.loads(sent or "{}")
        except (ValueError, RecursionError):
            raise InvalidRequest("the arguments are no valid JSON", hint="send one JSON object") from None
    if not isinstance(sent, Mapping):
        raise InvalidRequest("the arguments are no JSON object", hint="send one JSON object")
    return dict(sent)


def anthropic_tools(tools: Iterable[Tool]) -> list[dict[str, Any]]:
    """For ``tools`` of Anthropic's messages API."""
    return [{"name": t.name, "description": t.description, "input_schema": t.input_schema} for t in tools]


def anthropic_result(tool_use_id: str, called: Called) -> dict[str, Any]:
    """The content block that answers a ``tool_use`` block."""
    return {"type": "tool_result", "tool_use_id": tool_use_id, "content": called.text, "is_error": called.is_error}


def openai_tools(tools: Iterable[Tool]) -> list[dict[str, Any]]:
    """For ``tools`` of OpenAI's chat completions API."""
    return [{"type": "function", "function": _function(tool)} for tool in tools]


def openai_result(tool_call_id: str, called: Called) -> dict[str, Any]:
    """The message that answers one of ``message.tool_calls``."""
    return {"role": "tool", "tool_call_id": tool_call_id, "content": called.text}


def responses_tools(tools: Iterable[Tool]) -> list[dict[str, Any]]:
    """For ``tools`` of OpenAI's responses API."""
    return [{"type": "function", **_function(tool)} for tool in tools]


def responses_result(call_id: str, called: Called) -> dict[str, Any]:
    """The input item that answers a ``function_call`` item."""
    return {"type": "function_call_output", "call_id": call_id, "output": called.text}


def _function(tool: Tool) -> dict[str, Any]:
    return {"name": tool.name, "description": tool.description, "parameters": tool.input_schema}
