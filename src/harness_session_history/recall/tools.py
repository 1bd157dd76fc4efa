"""The tools as a host meets them: plain objects with a name, a description and a JSON Schema, awaited with arguments."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import InvalidRequest

if TYPE_CHECKING:
    from ..history import SessionHistory


class ToolResult(dict[str, Any]):
    """What a tool answers: a real dict of the documented fields. ``text`` (also ``str(result)``) is what a model is given."""

    def __init__(self, values: dict[str, Any], text: str) -> None:
        super().__init__(values)
        self.text = text

    def __str__(self) -> str:
        return self.text


class Tool:
    """One tool. ``await tool(**arguments)`` gives a `ToolResult`, ``await tool(arguments)`` with a mapping likewise; wrong
    arguments raise InvalidRequest.

    `schema` makes the JSON Schema of the arguments; `perform` checks and takes them.
    """

    def __init__(
        self,
        name: str,
        description: str,
        schema: Callable[[], dict[str, Any]],
        perform: Callable[[dict[str, Any]], Awaitable[ToolResult]],
    ) -> None:
        self.name, self.description = name, description
        self._schema, self._perform = schema, perform

    @cached_property
    def input_schema(self) -> dict[str, Any]:
        """JSON Schema of the arguments."""
        return self._schema()

    async def __call__(self, given: Mapping[str, Any] | None = None, /, **arguments: Any) -> ToolResult:
        if given is not None and not (isinstance(given, Mapping) and all(isinstance(name, str) for name in given)):
            raise InvalidRequest(
                "the arguments must be an object", hint="give them by name, or as one mapping of names"
            )
        return await self._perform({**(given or {}), **arguments})

    def __repr__(self) -> str:
        return f"<tool {self.name}>"


class HistoryTools(NamedTuple):
    """The three tools of one conversation; a tuple of them, and each by its name."""

    search: Tool
    read: Tool
    handoff: Tool


def history_tools(session_id: str | None = None, *, history: SessionHistory | None = None) -> HistoryTools:
    """The tools by which one conversation is recalled: ``history_search``, ``history_read``, ``history_handoff``.

    Without `session_id` it is the calling session of the settings, without `history` the default history; both are
    looked up when a tool is called (InvalidRequest if the session is unknown then). None of them writes anything.
    """
    if session_id is not None and not (isinstance(session_id, str) and 1 <= len(session_id) <= 128):
        raise InvalidRequest(
            "session_id must be a string of 1–128 characters", hint="leave it out for the caller's own"
        )
    from .calls import tools_of

    return HistoryTools(*tools_of(session_id, history))


def the_history(history: SessionHistory | None) -> SessionHistory:
    from ..default import default_history

    return default_history() if history is None else history
