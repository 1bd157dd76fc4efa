"""What the three tools do: arguments that were checked, a call of the conversation, an answer as data and as text."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from .arguments import A, HandoffArguments, ReadArguments, SearchArguments, checked, schema
from .tools import Tool, ToolResult, the_history
from .wrapper import quoted, shown_id, wrapped

if TYPE_CHECKING:
    from ..history import SessionHistory

#: UTF-8 bytes of one answer, as data and as text.
MOST_BYTES = 50_000
#: Of these, so many are kept for what surrounds the entries.
FRAME_BYTES = 3_000
SNIPPET_CHARS = 300
#: Entries that a range and a tail give if nothing is said.
RANGE, TAIL = 20, 10


SEARCH = (
    "Search earlier entries of this conversation that are no longer in your context (after a compaction or a handoff). "
    "Every word must stand in one entry; case and inflection do not matter. Answers entry ids with snippets: read the "
    "entries with history_read before you rely on them."
)
READ = (
    "Read earlier entries of this conversation word for word: by the ids that history_search found (mode items, needs "
    "entries), from one entry on (mode range, needs from), or the last ones before what is in your context (mode tail). "
    "Tool calls are shown by name and status only. If the answer says that more follows, call again with its cursor."
)
HANDOFF = (
    "Hand your work over to a new context, which begins with the text you write and can read this conversation with "
    "history_search and history_read. Nothing else is carried over."
)


def tools_of(session_id: str | None, history: SessionHistory | None) -> Iterator[Tool]:
    """The tools for searching, reading and handing off, in this order."""
    yield _tool("history_search", SEARCH, SearchArguments, partial(_search, session_id, history))
    yield _tool("history_read", READ, ReadArguments, partial(_read, session_id, history))
    yield _tool("history_handoff", HANDOFF, HandoffArguments, _hand_off)


def _tool(name: str, description: str, declared: type[A], perform: Callable[[A], Awaitable[ToolResult]]) -> Tool:
    async def call(given: dict[str, Any]) -> ToolResult:
        return await perform(checked(declared, given))

    return Tool(name, description, partial(schema, declared), call)


async def _search(session_id: str | None, history: SessionHistory | None, arguments: SearchArguments) -> ToolResult:
    conversation = the_history(history).conversation(session_id)
    answer = await conversation.search(
        arguments.query, before=arguments.before or None, limit=arguments.limit, snippet_chars=SNIPPET_CHARS
    )
    notes = [] if answer["hits"] else ["Nothing found: try fewer or other words."]
    if answer["more"]:
        notes.append("More entries match: raise limit or add a word.")
    if "indexedUpTo" in answer:
        last = answer["indexedUpTo"]
        notes.append("Nothing is searchable yet." if last is None else f"Searched up to entry {shown_id(last)} only.")
    return ToolResult(answer, wrapped(conversation.session_id, map(quoted, answer["hits"]), notes))


async def _read(session_id: str | None, history: SessionHistory | None, arguments: ReadArguments) -> ToolResult:
    conversation = the_history(history).conversation(session_id)
    cursor = arguments.cursor or None
    space: dict[str, Any] = {"max_bytes": MOST_BYTES - FRAME_BYTES, "cost": _cost}
    if arguments.mode == "items":
        answer = await conversation.items(arguments.entries or (), around=arguments.around or 0, cursor=cursor, **space)
    elif arguments.mode == "range":
        start, end = arguments.start or None, arguments.to or None
        answer = await conversation.range(start, end, limit=arguments.limit or RANGE, cursor=cursor, **space)
    else:
        answer = await conversation.tail(arguments.count or TAIL, cursor=cursor, **space)
    notes = [] if answer["entries"] else ["Nothing to show."]
    if answer["truncated"]:
        notes.append("Cut to fit.")
    if "next" in answer:
        whither = "Earlier entries" if arguments.mode == "tail" else "More"
        notes.append(f"{whither} can be read: call history_read again as before, with cursor {answer['next']}")
    return ToolResult(answer, wrapped(conversation.session_id, map(quoted, answer["entries"]), notes))


async def _hand_off(arguments: HandoffArguments) -> ToolResult:
    return ToolResult({"control": {"handoff": arguments.text}}, "The handoff was given to the host.")


def _cost(entry: dict[str, Any]) -> int:
    """What an entry takes of an answer, in bytes: as data or as text, whichever is more, and what joins it to the next."""
    return 2 + max(len(json.dumps(entry, ensure_ascii=False).encode()), len(quoted(entry).encode()))
