"""Declared arguments: the one place from which bounds, checks, words, JSON schemas, options and signatures come.

A caller's arguments are a ``TypedDict`` whose annotations carry an `Argument` each: ``Annotated[int, Argument("most results",
default=10, low=1, high=20)]``. `declared` reads such a class; `check` holds a value against its argument.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any, Literal, Required, get_args, get_origin, get_type_hints

from msgspec import Struct
from msgspec.structs import replace

from .errors import InvalidRequest
from .model.names import MAX_ID_CHARS, is_absolute


class Argument(Struct, frozen=True):
    """What is declared of one argument beside its Python type, of which `declared` takes `name`, `type` and `choices`.

    ``low`` and ``high`` bound an integer's value, a string's length in code points or a list's number of strings;
    ``operations`` (or modes) are those that take it, none meaning all; ``required`` are those that cannot do without it.
    """

    meaning: str
    default: object = None
    low: int = 0
    high: int = 0
    operations: tuple[str, ...] = ()
    required: tuple[str, ...] = ()
    type: Literal["string", "integer", "boolean", "choice", "roles", "time", "ids"] | None = None
    name: str = ""
    choices: tuple[str, ...] = ()

    @property
    def bound(self) -> str:
        """Type and bound in words, as documentation and messages say it."""
        words = ", ".join(self.choices)
        return {
            "string": f"{'absolute path' if self.name == 'cwd' else 'string'} of {self.low}–{self.high} characters",
            "integer": f"integer {self.low}–{self.high}",
            "boolean": "boolean",
            "choice": f"one of {words}",
            "roles": f"list of 1–{len(self.choices)} unique of {words}",
            "time": "ISO-8601 date or time",
            "ids": f"list of {self.low}–{self.high} strings of 1–{MAX_ID_CHARS} characters",
        }[self.type or "string"]

    @property
    def usual(self) -> str:
        """Its default, or what needs it, in words."""
        default = f"default {self.default!r}"
        if self.default is not None or not self.required:
            return default
        return f"required for {', '.join(self.required)}" + (
            f", {default} for others" if self.required != self.operations else ""
        )

    @property
    def option(self) -> str:
        """The name as an option of the shell."""
        return "--" + self.name.replace("_", "-")

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON Schema of its values."""
        words = {"type": "string", "enum": list(self.choices)}
        an_id = {"type": "string", "minLength": 1, "maxLength": MAX_ID_CHARS}
        takers = f"{', '.join(self.operations)}: " if self.operations else ""
        made: dict[str, Any] = {"description": f"{takers}{self.meaning}."}
        match self.type:
            case "integer":
                made |= {"type": "integer", "minimum": self.low, "maximum": self.high}
            case "boolean":
                made |= {"type": "boolean"}
            case "choice":
                made |= words
            case "roles":
                many = {"minItems": 1, "maxItems": len(self.choices), "uniqueItems": True}
                made |= {"type": "array", "items": words, **many}
            case "time":
                made |= {"type": "string"}
            case "ids":
                made |= {"type": "array", "items": an_id, "minItems": self.low, "maxItems": self.high}
            case _:
                made |= {"type": "string", "minLength": self.low, "maxLength": self.high}
        if self.default is not None:
            made["default"] = list(self.default) if isinstance(self.default, tuple) else self.default
        return made


if TYPE_CHECKING:
    from inspect import Signature

Table = dict[str, Argument]
_TYPES: dict[object, Literal["string", "integer", "boolean"]] = {str: "string", int: "integer", bool: "boolean"}


def declared(arguments: type) -> Table:
    """The arguments that a ``TypedDict`` declares, by their names, in order."""
    table = {}
    for name, hint in get_type_hints(arguments, include_extras=True).items():
        while get_origin(hint) is Required:
            (hint,) = get_args(hint)
        assert get_origin(hint) is Annotated
        plain, argument = get_args(hint)
        choices = tuple(dict.fromkeys(word for one in (plain, *get_args(plain)) for word in _words(one)))
        found = argument.type or ("choice" if choices else None)
        kinds = [_TYPES[one] for one in (plain, *get_args(plain)) if one in _TYPES]
        table[name] = replace(argument, name=name, type=found or kinds[0], choices=choices)
    return table


def _words(hint: object) -> tuple[str, ...]:
    if get_origin(hint) is Literal:
        return get_args(hint)
    return (
        tuple(word for inner in get_args(hint) for word in _words(inner)) if get_origin(hint) in (list, tuple) else ()
    )


def schema(table: Table) -> dict[str, Any]:
    """The JSON Schema of all arguments: a flat object, without references."""
    return {
        "type": "object",
        "properties": {name: argument.schema for name, argument in table.items()},
        "required": [name for name, argument in table.items() if argument.required and not argument.operations],
        "additionalProperties": False,
    }


def checked(table: Table, given: Mapping[str, object], operation: str, called: str = "") -> dict[str, Any]:
    """The values of the arguments that `operation` takes, checked and with their defaults.

    None counts as not given where it is the default. Raises InvalidRequest for a missing or wrong value and for an argument
    that the operation (`called` so in messages) does not take; it names the argument, its bound and the value's type, never what a string says.
    """
    given = {name: value for name, value in given.items() if value is not None or table[name].default is not None}
    for name in given:
        takers = table[name].operations
        if takers and operation not in takers:
            raise InvalidRequest(
                f"{called or operation} does not take {name}",
                hint=f"{name} belongs to {' and '.join(takers)}; leave it out.",
            )
    values: dict[str, Any] = {}
    for name, argument in table.items():
        if argument.operations and operation not in argument.operations:
            continue
        if name in given:
            values[name] = check(argument, given[name])
        elif operation in argument.required:
            raise InvalidRequest(f"{called or operation} needs {name} ({argument.bound})", hint=f"Give {name}.")
        else:
            values[name] = argument.default
    return values


def from_json(table: Table, sent: Mapping[str, object]) -> dict[str, object]:
    """The arguments as a model or a client sent them, who may send all there are: None is not given, nor are "" and [] for
    what is not needed, nor a default where the operation (or mode) does not take the argument; ``from_`` is ``from``, and
    10.0 the integer that it is to JSON Schema. Raises InvalidRequest for a name that there is not."""
    given = {name.removesuffix("_"): value for name, value in sent.items() if value is not None}
    if not given.keys() <= table.keys():
        raise InvalidRequest("there is no such argument", hint="the arguments are " + ", ".join(table))
    chosen = next((given.get(name) or table[name].default for name in ("operation", "mode") if name in table), None)
    for name, value in list(given.items()):
        argument = table[name]
        taken = not argument.operations or chosen in argument.operations
        if argument.type == "integer" and isinstance(value, float) and value.is_integer():
            value = given[name] = int(value)
        usual = list(argument.default) if isinstance(argument.default, tuple) else argument.default
        idle = not taken and (type(value), value) == (type(usual), usual)
        needed = bool(argument.required) if not argument.operations else chosen in argument.required
        if idle or (value in ("", []) and not needed):
            del given[name]
    return given


def check(argument: Argument, value: object) -> object:
    """The value as a request holds it (roles as a tuple, times as milliseconds), or `InvalidRequest`."""
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
        case "ids":
            valid = isinstance(value, (list, tuple)) and argument.low <= len(value) <= argument.high
            valid = valid and all(_is_id(one) for one in value)  # type: ignore[attr-defined]
        case _:
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


def _is_id(value: object) -> bool:
    return isinstance(value, str) and 1 <= len(value) <= MAX_ID_CHARS and not re.search(_SURROGATE, value)


def _string(argument: Argument, value: object) -> str:
    if not isinstance(value, str) or not argument.low <= len(value) <= argument.high:
        raise _refused(argument, value)
    if re.search(_SURROGATE, value):
        raise _refused(argument, value, "Write whole characters.", "half of a surrogate pair in a value")
    # An id may hold whatever a transcript holds, a folder's name any character but NUL.
    if argument.name == "cwd" and "\0" in value:
        raise _refused(
            argument, value, "Write a space instead of a control character.", "a control character in a value"
        )
    if argument.name == "cwd" and not is_absolute(value):
        hint = "Write an absolute path: os.path.abspath(os.path.expanduser(…)) makes one."
        raise _refused(argument, value, hint, "a relative path")
    return value


def resolved(folder: str) -> str:
    """A folder as one types it in a shell, as an absolute path; one that another system would know stays as it is."""
    if is_absolute(folder) and not os.path.isabs(folder):
        return folder
    here, shown = os.getcwd(), os.environ.get("PWD", "")
    if os.path.isabs(shown) and os.path.exists(shown) and os.path.samefile(shown, here):
        here = shown  # (as the shell knows it, by way of a link)
    return os.path.normpath(os.path.join(here, os.path.expanduser(folder)))


def check_query(argument: Argument, value: str) -> None:
    """What is asked of a query beside its length: words, no control characters, and as many bytes in UTF-8 as characters."""
    if re.search(_CONTROL, value):
        raise _refused(
            argument, value, "Write a space instead of a control character.", "a control character in a value"
        )
    if (size := len(value.encode())) > argument.high:
        hint = f"At most {argument.high} bytes in UTF-8; search for fewer words."
        raise _refused(argument, value, hint, f"{size} bytes")
    if not value.strip():
        raise _refused(argument, value, "Give at least one word.", "only white space")


_ISO = (
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})"
    r"(?:T((?:[01][0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9])?)(?:(?<=:..:..)[.,]([0-9]{1,9}))?"
    r"(Z|[+-](?:[01][0-9]|2[0-3])(?::?[0-5][0-9])?)?)?"
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


def _time(argument: Argument, value: object) -> int:
    """Milliseconds since the epoch, rounded up.

    Entry times are whole milliseconds, so ``time >= since`` and ``time < until`` both stay exact under rounding up.
    """
    hint = f"Write {argument.name} like 2026-03-02, 2026-03-02T10:00 or 2026-03-02T10:00:00.000Z."
    match = re.fullmatch(_ISO, value) if isinstance(value, str) else None
    if match is None:
        raise _refused(argument, value, hint)
    day, clock, fraction, zone = match.groups()
    try:
        moment = datetime.fromisoformat(f"{day}T{clock or '00:00'}{zone or 'Z'}")
    except ValueError:
        raise _refused(argument, value, hint) from None
    digits = (fraction or "").ljust(3, "0")
    return (moment - _EPOCH) // _MILLISECOND + int(digits[:3]) + (1 if digits[3:].strip("0") else 0)


def signature(arguments: type, table: Table, returns: type, *, bound: bool) -> Signature:
    """The signature of a call that takes these arguments by name; `bound`: it is a method."""
    from inspect import Parameter, Signature

    hints = get_type_hints(arguments)
    named = [
        Parameter(name, Parameter.KEYWORD_ONLY, default=argument.default, annotation=hints[name])
        for name, argument in table.items()
    ]
    own = [Parameter("self", Parameter.POSITIONAL_OR_KEYWORD)] if bound else []
    return Signature([*own, *named], return_annotation=returns)
