"""The arguments of list, search and open, and the typed request that is made of them.

`Arguments` is the declaration: signature, bounds, defaults, words, schema and options come from it (see `arguments`).
`build_request` touches no file and no database, so a refused argument costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, ClassVar, Literal, NotRequired, TypedDict, get_args, get_origin, get_type_hints

from msgspec import Struct

from .arguments import Argument, Table, check, check_query, checked, declared
from .model.names import MAX_ID_CHARS, plain_id

Operation = Literal["list", "search", "open"]
Kind = Literal["any", "root", "child"]
Role = Literal["user", "assistant"]
Sort = Literal["relevance", "newest", "oldest"]
Branch = Literal["visible", "any"]

OPERATIONS: tuple[Operation, ...] = get_args(Operation)
ROLES: tuple[Role, ...] = get_args(Role)
_EACH, _FOUND, _SEARCH, _OPEN = OPERATIONS, ("list", "search"), ("search",), ("open",)


class Asked(TypedDict, total=False):
    operation: Annotated[Operation, Argument("what to do", "search", operations=_EACH)]


class Details(TypedDict, total=False):
    """What ``session_history`` takes beside the operation."""

    query: Annotated[
        str | None,
        Argument(
            'words that must all occur in one entry; "…" is a phrase, word* a prefix',
            low=1, high=512, operations=_SEARCH, required=_SEARCH,
        ),
    ]  # fmt: skip
    session_id: Annotated[
        str | None, Argument("only this session", low=1, high=MAX_ID_CHARS, operations=_EACH, required=_OPEN)
    ]
    entry_id: Annotated[
        str | None, Argument("the entry to show", low=1, high=MAX_ID_CHARS, operations=_OPEN, required=_OPEN)
    ]
    kind: Annotated[Kind, Argument("root or child sessions", "any", operations=_EACH)]
    include_deleted: Annotated[bool, Argument("also sessions that were deleted", False, operations=_EACH)]
    include_current: Annotated[bool, Argument("also the calling session", False, operations=_EACH)]
    cwd: Annotated[
        str | None, Argument("sessions that worked in this folder or below it", low=1, high=4096, operations=_FOUND)
    ]
    since: Annotated[
        str | None, Argument("not before this time (inclusive; UTC without a zone)", operations=_FOUND, type="time")
    ]
    until: Annotated[
        str | None, Argument("before this time (exclusive; UTC without a zone)", operations=_FOUND, type="time")
    ]
    roles: Annotated[
        list[Role] | tuple[Role, ...], Argument("who wrote the entry", ROLES, operations=_SEARCH, type="roles")
    ]
    limit: Annotated[int, Argument("most results", 10, low=1, high=20, operations=_FOUND)]
    sort: Annotated[Sort, Argument("order of results", "relevance", operations=_SEARCH)]
    snippet_chars: Annotated[int, Argument("longest snippet, in characters", 320, low=80, high=800, operations=_SEARCH)]
    branch: Annotated[Branch, Argument("any: also abandoned branches", "visible", operations=("search", "open"))]
    before: Annotated[int, Argument("entries before the target", 2, low=0, high=8, operations=_OPEN)]
    after: Annotated[int, Argument("entries after the target", 2, low=0, high=8, operations=_OPEN)]
    max_chars: Annotated[
        int, Argument("longest sum of texts, in characters", 6000, low=256, high=16000, operations=_OPEN)
    ]
    refresh: Annotated[bool, Argument("first bring the selected sessions up to date", False, operations=_EACH)]


class Arguments(Asked, Details, total=False):
    """What ``session_history`` takes; what is left out has its default."""


ARGUMENTS = declared(Arguments)


class Request(Struct, frozen=True, kw_only=True):
    """What every operation takes. One subclass per operation; all values are checked and defaults filled in."""

    operation: ClassVar[Operation]
    session_id: str | None
    kind: Kind
    include_deleted: bool
    include_current: bool
    refresh: bool


class ListRequest(Request, frozen=True, kw_only=True):
    """``since`` (inclusive) and ``until`` (exclusive) are milliseconds since the epoch, UTC."""

    operation: ClassVar[Operation] = "list"
    cwd: str | None
    since: int | None
    until: int | None
    limit: int


class SearchRequest(Request, frozen=True, kw_only=True):
    """``query`` is checked for its size only; its syntax belongs to the query language. Times as in `ListRequest`."""

    operation: ClassVar[Operation] = "search"
    query: str
    cwd: str | None
    since: int | None
    until: int | None
    roles: tuple[Role, ...]
    limit: int
    sort: Sort
    snippet_chars: int
    branch: Branch


class OpenRequest(Request, frozen=True, kw_only=True):
    """One entry with its neighbours."""

    operation: ClassVar[Operation] = "open"
    session_id: str
    entry_id: str
    branch: Branch
    before: int
    after: int
    max_chars: int


AnyRequest = ListRequest | SearchRequest | OpenRequest

_REQUESTS: dict[str, Callable[..., AnyRequest]] = {
    "list": ListRequest,
    "search": SearchRequest,
    "open": OpenRequest,
}


def build_request(**given: object) -> AnyRequest:
    """The checked request; None counts as not given where it is the default.

    Raises `InvalidRequest` for a missing or wrong value and for an argument that the operation does not take, and
    `TypeError` for a name that is no argument at all.
    """
    return request_of(ARGUMENTS, given)


def request_of(table: Table, given: Mapping[str, object]) -> AnyRequest:
    """As `build_request`, with the arguments named as `table` does in messages."""
    unknown = [name for name in given if name not in table]
    if unknown:
        raise TypeError(f"unexpected argument {unknown[0]!r}")
    operation = str(check(table["operation"], given.get("operation", "search")))
    values = checked(table, given, operation)
    del values["operation"]
    for name in ("session_id", "entry_id"):
        if isinstance(values.get(name), str):
            values[name] = plain_id(values[name])
    if operation == "search":
        check_query(table["query"], values["query"])
    return _REQUESTS[operation](**values)


def documentation() -> str:
    """What help says of the call: its arguments, the fields of its answers, its errors."""
    from inspect import getdoc

    from .errors import SessionHistoryError
    from .response import BODIES, Answer

    lines = [
        "What past sessions said: list sessions, search their entries, open one entry with its neighbours.",
        "",
        "Arguments (the operations that take each):",
        *(f"  {name}: {argument.bound}, {argument.usual} ({', '.join(argument.operations)}): {argument.meaning}"
          for name, argument in ARGUMENTS.items()),
        "",
        "Returns a HistoryResult, a dict. Times are ISO-8601 in UTC, counts of characters Unicode code points. Its fields:",
        *_fields("every answer", Answer),
        *(line for operation, body in BODIES.items() for line in _fields(operation, body)),
        "",
        "Raises:",
        *(f"  {error.__name__}: {getdoc(error)}" for error in SessionHistoryError.__subclasses__()),
    ]  # fmt: skip
    return "\n".join(lines)


def _fields(whose: str, shape: type) -> list[str]:
    """The fields of a declared shape, with their meanings."""
    lines = [f"  of {whose}:"]
    for name, hint in get_type_hints(shape, include_extras=True).items():
        optional = get_origin(hint) is NotRequired
        _, meaning = get_args(get_args(hint)[0] if optional else hint)
        lines.append(f"    {name}: {meaning}" + (" (not always there)" if optional else ""))
    return lines
