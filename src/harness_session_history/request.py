"""The arguments of an operation: one table of names, bounds and defaults, and the check of a single value.

The table (``ARGUMENTS``) is the only place where these are written down; requests, the options of the shell, the tools
and the documentation tests all read it (contract: arguments).

The typed request that is made of a caller's arguments (their names, bounds and defaults are in `arguments`).

`build_request` touches no file and no database, so a refused argument costs nothing.

A caller's function gives every argument whose default is not None as ``unset(default)``: the value shows in
``help()`` as the plain default, yet "not given" can be told from "given with that value", because an argument that
an operation does not take is refused even when it carries its default. For the others None means "not given"."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import ClassVar, Literal, TypeVar, cast

from msgspec import Struct

from .errors import InvalidRequest

Operation = Literal["list", "search", "open"]
Kind = Literal["any", "root", "child"]
Role = Literal["user", "assistant"]
Sort = Literal["relevance", "newest", "oldest"]
Branch = Literal["visible", "any"]

OPERATIONS: tuple[Operation, ...] = ("list", "search", "open")
ROLES: tuple[Role, ...] = ("user", "assistant")


class Argument(Struct, frozen=True):
    """One row of the table.

    ``low`` and ``high`` bound an integer's value or a string's length in code points; ``choices`` are the allowed
    words; ``required`` names the operations that cannot do without it; ``default`` is used when it is not given.
    """

    name: str
    type: Literal["string", "integer", "boolean", "choice", "roles", "time"]
    operations: tuple[Operation, ...]
    meaning: str
    default: object = None
    low: int = 0
    high: int = 0
    choices: tuple[str, ...] = ()
    required: tuple[Operation, ...] = ()

    @property
    def bound(self) -> str:
        """Type and bound in words, as documentation and messages say it."""
        words = ", ".join(self.choices)
        return {
            "string": f"string of {self.low}–{self.high} characters",
            "integer": f"integer {self.low}–{self.high}",
            "boolean": "boolean",
            "choice": f"one of {words}",
            "roles": f"list of 1–{len(self.choices)} unique of {words}",
            "time": "ISO-8601 date or time",
        }[self.type]

    @property
    def option(self) -> str:
        """The name as an option of the shell."""
        return "--" + self.name.replace("_", "-")


_EACH = OPERATIONS
_FOUND: tuple[Operation, ...] = ("list", "search")

ARGUMENTS: dict[str, Argument] = {
    argument.name: argument
    for argument in (
        Argument("operation", "choice", _EACH, "what to do", "search", choices=OPERATIONS),
        Argument(
            "query",
            "string",
            ("search",),
            'words that must all occur in one entry; "…" is a phrase, word* a prefix',
            low=1,
            high=512,
            required=("search",),
        ),
        Argument("session_id", "string", _EACH, "only this session", low=1, high=128, required=("open",)),
        Argument("entry_id", "string", ("open",), "the entry to show", low=1, high=128, required=("open",)),
        Argument("kind", "choice", _EACH, "root or child sessions", "any", choices=("any", "root", "child")),
        Argument("include_deleted", "boolean", _EACH, "also sessions that were deleted", False),
        Argument("include_current", "boolean", _EACH, "also the calling session", False),
        Argument("cwd", "string", _FOUND, "sessions that worked in this folder or below it", low=1, high=4096),
        Argument("since", "time", _FOUND, "not before this time (inclusive; UTC without a zone)"),
        Argument("until", "time", _FOUND, "before this time (exclusive; UTC without a zone)"),
        Argument("roles", "roles", ("search",), "who wrote the entry", ROLES, choices=ROLES),
        Argument("limit", "integer", _FOUND, "most results", 10, low=1, high=20),
        Argument(
            "sort", "choice", ("search",), "order of results", "relevance", choices=("relevance", "newest", "oldest")
        ),
        Argument("snippet_chars", "integer", ("search",), "longest snippet, in characters", 320, low=80, high=800),
        Argument(
            "branch",
            "choice",
            ("search", "open"),
            "any: also abandoned branches",
            "visible",
            choices=("visible", "any"),
        ),
        Argument("before", "integer", ("open",), "entries before the target", 2, low=0, high=8),
        Argument("after", "integer", ("open",), "entries after the target", 2, low=0, high=8),
        Argument("max_chars", "integer", ("open",), "longest sum of texts, in characters", 6000, low=256, high=16000),
        Argument("refresh", "boolean", _EACH, "first bring the selected sessions up to date", False),
    )
}


def check(argument: Argument, value: object) -> object:
    """The value as the request holds it (roles as a tuple, times as milliseconds), or `InvalidRequest`."""
    match argument.type:
        case "boolean":
            valid = isinstance(value, bool)
        case "integer":
            valid = isinstance(value, int) and not isinstance(value, bool) and argument.low <= value <= argument.high
        case "choice":
            valid = isinstance(value, str) and value in argument.choices
        case "roles":
            return _roles(argument, value)
        case "time":
            return _time(argument, value)
        case "string":
            return _string(argument, value)
    if not valid:
        raise _refused(argument, value)
    return value


def _refused(argument: Argument, value: object, hint: str = "", got: str = "") -> InvalidRequest:
    """Names the argument, the bound, and what it got by its type and size: a string may be a path or somebody's words."""
    what = (got or _described(argument, value)) + " of type"
    return InvalidRequest(
        f"{argument.name} must be {_article(argument.bound)}; got {what} {type(value).__name__}",
        hint=hint or f"Give {argument.name} as {_article(argument.bound)}.",
    )


def _described(argument: Argument, value: object) -> str:
    if argument.type == "integer" and type(value) is int and abs(value) < 10**9:
        return f"{value},"
    if argument.type == "string" and isinstance(value, str) and not argument.low <= len(value) <= argument.high:
        return f"{len(value)} characters"
    return "a value"


def _article(bound: str) -> str:
    if bound.startswith("one of"):
        return bound
    return ("an " if bound[0] in "aeiouI" else "a ") + bound


def _roles(argument: Argument, value: object) -> tuple[str, ...]:
    if isinstance(value, (list, tuple)) and 1 <= len(value) <= len(argument.choices):
        words = [word for word in value if isinstance(word, str) and word in argument.choices]
        if len(words) == len(value) == len(set(words)):
            return tuple(role for role in argument.choices if role in words)
    raise _refused(argument, value)


# (Sources: `re` compiles and keeps a pattern at its first use, so that importing costs nothing.)
# C0, DEL and C1: never part of a query. A lone surrogate has no UTF-8 form at all.
_CONTROL = "[\x00-\x1f\x7f-\x9f]"
_SURROGATE = "[\ud800-\udfff]"


def _string(argument: Argument, value: object) -> str:
    if not isinstance(value, str) or not argument.low <= len(value) <= argument.high:
        raise _refused(argument, value)
    if re.search(_SURROGATE, value):
        raise _refused(argument, value, "Write whole characters.", "half of a surrogate pair in a value")
    # An id may hold whatever a transcript holds, a folder's name any character but NUL.
    if (argument.name == "cwd" and "\0" in value) or (argument.name == "query" and re.search(_CONTROL, value)):
        raise _refused(
            argument, value, "Write a space instead of a control character.", "a control character in a value"
        )
    if argument.name == "query":
        size = len(value.encode())
        if size > argument.high:
            hint = f"At most {argument.high} bytes in UTF-8; search for fewer words."
            raise _refused(argument, value, hint, f"{size} bytes")
        if not value.strip():
            raise _refused(argument, value, "Give at least one word.", "only white space")
    return value


_ISO = (
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})"
    r"(?:T((?:[01][0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9])?)(?:(?<=:..:..)[.,]([0-9]{1,9}))?"
    r"(Z|[+-](?:[01][0-9]|2[0-3])(?::?[0-5][0-9])?)?)?"
)
_EPOCH = datetime(1970, 1, 1)
_MILLISECOND = timedelta(milliseconds=1)


def _time(argument: Argument, value: object) -> int:
    """Milliseconds since the epoch, rounded up.

    Entry times are whole milliseconds, so ``time >= since`` and ``time < until`` both stay exact under rounding up.
    """
    match = re.fullmatch(_ISO, value) if isinstance(value, str) else None
    hint = f"Write {argument.name} like 2026-03-02, 2026-03-02T10:00 or 2026-03-02T10:00:00.000Z."
    if match is None:
        raise _refused(argument, value, hint)
    day, clock, fraction, zone = match.groups()
    try:
        moment = datetime.fromisoformat(f"{day}T{clock or '00:00'}")
    except ValueError:
        raise _refused(argument, value, hint) from None
    whole = (moment - _EPOCH - _offset(zone or "Z")) // _MILLISECOND
    digits = (fraction or "").ljust(3, "0")
    return whole + int(digits[:3]) + (1 if digits[3:].strip("0") else 0)


def _offset(zone: str) -> timedelta:
    if zone == "Z":
        return timedelta(0)
    digits = zone[1:].replace(":", "").ljust(4, "0")
    size = timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))
    return -size if zone[0] == "-" else size


T = TypeVar("T")


class Unset:
    """Stands for "not given" in a signature and shows itself as the default that will be used."""

    __slots__ = ("default",)

    def __init__(self, default: object) -> None:
        self.default = default

    def __repr__(self) -> str:
        return repr(self.default)


def unset(default: T) -> T:
    """The default value of a parameter, recognisable as not given; typed as the value it stands for."""
    return cast(T, Unset(default))


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


def build_request(**arguments: object) -> AnyRequest:
    """The checked request. Values that are `Unset`, or None where the default is None, count as not given.

    Raises `InvalidRequest` for a missing or wrong value and for an argument that the operation does not take, and
    `TypeError` for a name that is no argument at all.
    """
    unknown = [name for name in arguments if name not in ARGUMENTS]
    if unknown:
        raise TypeError(f"unexpected argument {unknown[0]!r}")
    given = {name: value for name, value in arguments.items() if _is_given(ARGUMENTS[name], value)}
    operation = str(check(ARGUMENTS["operation"], given.pop("operation", "search")))
    for name in given:
        if operation not in ARGUMENTS[name].operations:
            takers = " and ".join(ARGUMENTS[name].operations)
            raise InvalidRequest(f"{operation} does not take {name}", hint=f"{name} belongs to {takers}; leave it out.")
    values: dict[str, object] = {}
    for argument in ARGUMENTS.values():
        if operation not in argument.operations or argument.name == "operation":
            continue
        if argument.name in given:
            values[argument.name] = check(argument, given[argument.name])
        elif operation in argument.required:
            raise InvalidRequest(f"{operation} needs {argument.name} ({argument.bound})", hint=f"Give {argument.name}.")
        else:
            values[argument.name] = argument.default
    return _REQUESTS[operation](**values)


def _is_given(argument: Argument, value: object) -> bool:
    return not isinstance(value, Unset) and not (value is None and argument.default is None)
