"""The typed request that is made of a caller's arguments (their names, bounds and defaults are in `arguments`).

`build_request` touches no file and no database, so a refused argument costs nothing.

A caller's function gives every argument whose default is not None as ``unset(default)``: the value shows in
``help()`` as the plain default, yet "not given" can be told from "given with that value", because an argument that
an operation does not take is refused even when it carries its default. For the others None means "not given".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, TypeVar, cast

from msgspec import Struct

from .arguments import ARGUMENTS, Argument, Branch, Kind, Operation, Role, Sort, check
from .errors import InvalidRequest

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
