"""One line of a transcript -> its records, whatever is wrong with it.

A ladder, from fast to patient: the typed decoder, which never builds what is not needed (tool results, image data);
generic JSON where a field has an unexpected type or the line is not quite UTF-8; the complete records inside a line
that does not parse.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, NamedTuple, NoReturn, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from .projection import Block
from .salvage import complete_objects, has_waste, shallow


class UserMessage(msgspec.Struct, tag_field="role", tag="user", gc=False):
    content: str | list[Block]
    timestamp: str | int | float | None = None


class AssistantMessage(msgspec.Struct, tag_field="role", tag="assistant", gc=False):
    content: str | list[Block]
    timestamp: str | int | float | None = None


# Messages of these roles are links of the tree and nothing else, so nothing of them is decoded.
class ToolResultMessage(msgspec.Struct, tag_field="role", tag="toolResult", gc=False):
    pass


class SystemMessage(msgspec.Struct, tag_field="role", tag="system", gc=False):
    pass


class DeveloperMessage(msgspec.Struct, tag_field="role", tag="developer", gc=False):
    pass


class BashMessage(msgspec.Struct, tag_field="role", tag="bashExecution", gc=False):
    pass


class CustomMessage(msgspec.Struct, tag_field="role", tag="custom", gc=False):
    pass


class HookMessage(msgspec.Struct, tag_field="role", tag="hookMessage", gc=False):
    pass


Message = (
    UserMessage
    | AssistantMessage
    | ToolResultMessage
    | SystemMessage
    | DeveloperMessage
    | BashMessage
    | CustomMessage
    | HookMessage
)


class Entry(msgspec.Struct, gc=False):
    """The fields of an entry that make the tree and the index."""

    type: str = ""
    id: str | None = None
    parentId: str | None | UnsetType = UNSET
    timestamp: str | int | float | None = None
    message: Message | None = None
    customType: str | None = None


class Details(msgspec.Struct, gc=False):
    """Fields of the few entries that say something about the session as a whole. Of any type: checked where used."""

    type: Any = None
    id: Any = None
    version: Any = None
    timestamp: Any = None
    cwd: Any = None
    parentSession: Any = None
    branchedFrom: Any = None
    name: Any = None
    firstKeptEntryId: Any = None
    firstKeptEntryIndex: Any = None
    targetId: Any = UNSET


class Record(NamedTuple):
    """A parsed value and its span in the line; ``entry`` is None for a value that is not an object."""

    entry: Entry | None
    start: int
    end: int


# Entries that are no messages, by their types: those of version 1, and all that are known (others are entries, too).
_LINEAR_TYPES: Final = frozenset({"compaction", "model_change", "thinking_level_change"})
_TYPES: Final = _LINEAR_TYPES | {
    "active_tools_change", "branch_summary", "context_edit", "custom", "custom_message", "label", "leaf", "pi.reset",
    "reset", "session_info", "usage",
}  # fmt: skip
entry_decoder: Final = msgspec.json.Decoder(Entry)
_details_decoder: Final = msgspec.json.Decoder(Details)
_NOT_DECODED: Final = (msgspec.DecodeError, RecursionError, ValueError)


def read_line(line: bytes) -> tuple[list[Record], bool]:
    """The records of a line that is not blank, and whether it holds anything that could not be read."""
    try:
        return [Record(entry_decoder.decode(line), 0, len(line))], False
    except _NOT_DECODED:
        pass
    try:
        value = loads(line)
    except ValueError:
        return _salvage(line)
    if isinstance(value, dict):
        return [Record(entry_of(value), 0, len(line))], False
    # Pi skips a scalar that is falsy in JavaScript and counts any other value as a parsed line.
    return ([Record(None, 0, len(line))] if value or isinstance(value, list) else []), False


def _salvage(line: bytes) -> tuple[list[Record], bool]:
    records: list[Record] = []
    for candidate in complete_objects(line):
        value = loads(line[candidate.start : candidate.end])
        if isinstance(value, dict) and (not candidate.nested or is_entry(value) or _is_header(value)):
            records.append(Record(entry_of(value), candidate.start, candidate.end))
    return records, has_waste(line, [(r.start, r.end) for r in records])


def is_entry(value: Mapping[str, Any]) -> bool:
    """Whether an object can only be an entry of a Pi session, wherever it stands; with (since version 2) or without an id."""
    kind, entry_id, message = value.get("type"), value.get("id"), value.get("message")
    if kind == "message" and isinstance(message, dict) and "role" in message and "uuid" not in value:
        return True
    if not isinstance(kind, str):
        return False
    if isinstance(entry_id, str) and entry_id:
        return (kind in _TYPES) + ("parentId" in value) + ("timestamp" in value) >= 2
    return kind in _LINEAR_TYPES and "timestamp" in value


def _is_header(value: Mapping[str, Any]) -> bool:
    return value.get("type") == "session" and isinstance(value.get("id"), str)


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def _any_int(digits: str) -> int | float:
    return int(digits) if len(digits) < 600 else float(digits)  # (an interpreter may be told to read no longer ones)


_generic: Final = json.JSONDecoder(parse_constant=_refuse)
_generic_long: Final = json.JSONDecoder(parse_constant=_refuse, parse_int=_any_int)


def loads(data: bytes) -> Any:
    """Any JSON value as JavaScript's parser takes it: invalid UTF-8 becomes U+FFFD, lone surrogates stay.

    Values nested very deep are None, absurdly long integers floats. Raises ``ValueError``.
    """
    text = data.decode("utf-8", "replace").strip(" \t\r\n")
    try:
        try:
            return _generic.decode(text)
        except json.JSONDecodeError:
            raise
        except ValueError:  # a constant that is none, or a number that is too long
            return _generic_long.decode(text)
    except RecursionError:
        reduced = shallow(data)
        if reduced is None:
            raise ValueError("not JSON") from None
        return loads(reduced)


def details(record: bytes) -> Details:
    """The session-wide fields of a record that ``read_line`` or the block decoder accepted."""
    try:
        return _details_decoder.decode(record)
    except _NOT_DECODED:
        pass
    value = loads(record)
    if not isinstance(value, dict):
        return Details()
    known = {field: value[field] for field in Details.__struct_fields__ if field in value}
    return Details(**{field: unpaired(v) if isinstance(v, str) else v for field, v in known.items()})


def unpaired(text: str) -> str:
    """An id as it can be written in UTF-8: lone surrogates become U+FFFD, everywhere alike so that links still hold."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


T = TypeVar("T", bound=msgspec.Struct)


def loose(kind: type[T], value: Mapping[str, Any], **given: Any) -> T:
    """A struct from generic JSON, of which fields of a wrong type count as absent; `given` are fields that are known."""
    for field in msgspec.structs.fields(kind):
        if field.name in value and field.name not in given:
            try:
                given[field.name] = msgspec.convert(value[field.name], field.type)
            except (msgspec.ValidationError, OverflowError):
                pass
    return kind(**given)


def loose_content(block: type[T], content: object) -> str | list[T]:
    """The content of a message; what is no block is left out."""
    if isinstance(content, str):
        return content
    return [loose(block, one) for one in content if isinstance(one, dict)] if isinstance(content, list) else []


_SPOKEN: Final[dict[str, type[UserMessage | AssistantMessage]]] = {"user": UserMessage, "assistant": AssistantMessage}


def entry_of(value: Mapping[str, Any]) -> Entry:
    """An entry from generic JSON."""
    message, told = value.get("message"), None
    if isinstance(message, dict) and (kind := _SPOKEN.get(str(message.get("role")))):
        told = loose(kind, message, content=loose_content(Block, message.get("content")))
    entry = loose(Entry, value, message=told)
    entry.id = entry.id and unpaired(entry.id)
    parent = value.get("parentId", UNSET)
    entry.parentId = unpaired(parent) if isinstance(parent, str) else UNSET if parent is UNSET else None
    return entry
