"""The arguments of the tools: the declared types are the JSON Schema that a model sees and the check of what it sends."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, TypeVar

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from ..errors import InvalidRequest

EntryId = Annotated[str, Meta(min_length=1, max_length=128)]


class Arguments(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What one tool takes."""

    def check(self) -> None:
        """Raises InvalidRequest for values that do not go together."""


class SearchArguments(Arguments, frozen=True, kw_only=True):
    query: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=500,
            description='Words that must all stand in one entry; "…" is a phrase, word* a prefix.',
        ),
    ]
    before: (
        Annotated[
            str,
            Meta(
                min_length=1,
                max_length=128,
                description="An entry id: search what stands before it, instead of what has left your context.",
            ),
        ]
        | UnsetType
    ) = UNSET
    limit: Annotated[int, Meta(ge=1, le=20, description="Most hits.")] = 10


class ReadArguments(Arguments, frozen=True, kw_only=True):
    mode: Annotated[
        Literal["items", "range", "tail"],
        Meta(
            description="items: the entries named (needs entries, takes around); range: from one entry on (needs from, "
            "takes to and limit); tail: the last entries before what is in your context (takes count). Each takes cursor.",
            extra_json_schema={"type": "string"},
        ),
    ]
    entries: (
        Annotated[list[EntryId], Meta(min_length=1, max_length=20, description="items: ids of the entries to read.")]
        | UnsetType
    ) = UNSET
    around: (
        Annotated[int, Meta(ge=0, le=5, description="items: also so many entries before and after each. Default: 0.")]
        | UnsetType
    ) = UNSET
    start: (
        Annotated[str, Meta(min_length=1, max_length=128, description="range: id of the first entry.")] | UnsetType
    ) = msgspec.field(name="from", default=UNSET)
    to: (
        Annotated[
            str,
            Meta(
                min_length=1, max_length=128, description="range: id of the last entry. Default: the newest there is."
            ),
        ]
        | UnsetType
    ) = UNSET
    limit: Annotated[int, Meta(ge=1, le=50, description="range: most entries. Default: 20.")] | UnsetType = UNSET
    count: Annotated[int, Meta(ge=1, le=20, description="tail: how many entries. Default: 10.")] | UnsetType = UNSET
    cursor: (
        Annotated[
            str,
            Meta(
                min_length=1,
                max_length=256,
                description="To go on: the next of the last answer, with the same arguments as before.",
            ),
        ]
        | UnsetType
    ) = UNSET

    takes: ClassVar[dict[str, tuple[str, ...]]] = {
        "items": ("entries", "around"),
        "range": ("from", "to", "limit"),
        "tail": ("count",),
    }

    def check(self) -> None:
        given = {field.encode_name for field in msgspec.structs.fields(self) if getattr(self, field.name) is not UNSET}
        for name in given - {"mode", "cursor", *self.takes[self.mode]}:
            raise InvalidRequest(f"mode {self.mode} does not take {name}", hint=f"leave {name} out")
        if self.mode == "items" and "entries" not in given:
            raise InvalidRequest("mode items needs entries (a list of 1–20 entry ids)", hint="give entries")
        if self.mode == "range" and not given & {"from", "cursor"}:
            raise InvalidRequest("mode range needs from (an entry id)", hint="give from")


class HandoffArguments(Arguments, frozen=True, kw_only=True):
    text: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=100_000,
            description="All that the work needs to go on in a new context: the task, what was decided and done, what is "
            "next, and the ids of entries worth reading again.",
        ),
    ]

    def check(self) -> None:
        if not self.text.strip():
            raise InvalidRequest("text is blank", hint="write down what the work needs to go on")


A = TypeVar("A", bound=Arguments)


def schema(declared: type[Arguments]) -> dict[str, Any]:
    """The JSON Schema of a tool's arguments: an object, without references."""
    _, components = msgspec.json.schema_components([declared])
    made: dict[str, Any] = dict(components[declared.__name__])
    made.pop("title", None)
    made.pop("description", None)
    return made


def checked(declared: type[A], given: Mapping[str, object]) -> A:
    """The arguments, if they are right; None counts as not given, and ``from_`` as ``from``.

    Raises InvalidRequest, which names the argument, its bound and the value's type, never what a string says.
    """
    values = {name.removesuffix("_"): value for name, value in given.items() if value is not None}
    fields = {field.encode_name: field for field in msgspec.structs.fields(declared)}
    if not values.keys() <= fields.keys():
        raise InvalidRequest("there is no such argument", hint="the arguments are " + ", ".join(fields))
    properties = schema(declared)["properties"]
    for name, field in fields.items():
        bound = _bound(properties[name])
        if name in values and properties[name].get("type") == "integer":
            values[name] = integral(values[name])
        if name not in values:
            if field.required:
                raise InvalidRequest(f"{name} is missing ({bound})", hint=f"give {name}")
            continue
        try:
            msgspec.convert(values[name], field.type)
            _refuse_surrogates(values[name])
        except ValueError:
            got = f"{_measured(properties[name], values[name])} of type {type(values[name]).__name__}"
            raise InvalidRequest(f"{name} must be {bound}; got {got}", hint=f"give {name} as {bound}") from None
    made = msgspec.convert(values, declared)
    made.check()
    return made


def integral(value: object) -> object:
    """A number without a fraction as the integer that it is to JSON Schema: some models write 10.0."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _bound(declared: dict[str, Any]) -> str:
    """The bound of an argument in words."""
    if "enum" in declared:
        return "one of " + ", ".join(declared["enum"])
    if declared["type"] == "integer":
        return f"an integer {declared['minimum']}–{declared['maximum']}"
    if declared["type"] == "array":
        items = declared["items"]
        of = f"strings of {items['minLength']}–{items['maxLength']} characters"
        return f"a list of {declared['minItems']}–{declared['maxItems']} {of}"
    return f"a string of {declared['minLength']}–{declared['maxLength']} characters"


def _measured(declared: dict[str, Any], value: object) -> str:
    """What is wrong with a value, if that is its size."""
    if declared.get("type") == "integer" and type(value) is int and abs(value) < 10**9:
        return f"{value},"
    size = len(value) if isinstance(value, str) and "maxLength" in declared else None
    if size is not None and not declared["minLength"] <= size <= declared["maxLength"]:
        return f"{size} characters"
    return "a value"


_SURROGATE = re.compile("[\ud800-\udfff]")


def _refuse_surrogates(value: object) -> None:
    """Half of a surrogate pair is no character and has no UTF-8 form."""
    if isinstance(value, str):
        if _SURROGATE.search(value):
            raise ValueError
    elif isinstance(value, (list, tuple)):
        for one in value:
            _refuse_surrogates(one)
