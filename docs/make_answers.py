"""Writes `answers.md` from the declared types of the answers.

python docs/make_answers.py
"""

from __future__ import annotations

import types
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, NotRequired, Union, get_args, get_origin, get_type_hints, is_typeddict

from harness_session_history import errors, response
from harness_session_history.cli import STATUS

PAGE = Path(__file__).with_name("answers.md")
SHAPES: tuple[Any, ...] = (
    response.Answer,
    response.ListAnswer,
    response.SearchAnswer,
    response.OpenAnswer,
    response.Hit,
    response.NearHit,
    response.Message,
    response.Hints,
    response.TermCount,
    response.SessionView,
    response.ListedSession,
    response.Citation,
    response.ToolUse,
    response.Freshness,
    response.Sources,
)

HEAD = f"""# Answers

Schema version {response.SCHEMA_VERSION}. A field is never removed or changed in meaning within a version; a new one may be added.
This page is written by `docs/make_answers.py` from the types in `response.py`, and a test compares the two.

An answer is a `HistoryResult`: a dict of one of the shapes below, and the one JSON document that the shell prints. Times are
ISO-8601 in UTC with milliseconds and a `Z`; counts of characters are Unicode code points. `HistoryResult.to_records()` gives
flat rows for a data frame. `HistoryResult.marks` (the spans of matched words per snippet) and `HistoryResult.function` (what its
cards offer to call) are not part of the JSON.
"""

FOOT = """## Errors

Each is a `SessionHistoryError` with `code`, `hint` and `retryable`; with `--json` the shell prints
`{"error": {"code", "message", "hint", "retryable"}}`, with `details` (counts) where there are any.

| code | exit | retryable | means |
|---|---|---|---|
"""


def page() -> str:
    shapes = "\n".join(_shape(shape) for shape in SHAPES)
    return f"{HEAD}\n{shapes}\n{FOOT}{_errors()}"


def _shape(shape: Any) -> str:
    base = _base(shape)
    inherited = set() if base is None else set(get_type_hints(base))
    extends = "" if base is None else f" All fields of {_words(base)}, and:"
    rows = [
        f"| `{name}` | {kind}{'' if always else ', not always there'} | {meaning} |"
        for name, kind, meaning, always in fields(shape)
        if name not in inherited
    ]
    about = (shape.__doc__ or "").strip().replace("``", "`")
    return "\n".join(
        [f"## {shape.__name__}", "", about + extends, "", "| field | type | meaning |", "|---|---|---|", *rows, ""]
    )


def _base(shape: Any) -> Any:
    """The shape that this one extends: the largest whose fields it has all, word for word."""
    own = get_type_hints(shape, include_extras=True).items()
    others = {other.__name__: get_type_hints(other, include_extras=True).items() for other in SHAPES}
    smaller = [other for other in SHAPES if others[other.__name__] < own]
    return max(smaller, key=lambda other: len(others[other.__name__]), default=None)


def fields(shape: Any) -> Iterator[tuple[str, str, str, bool]]:
    """(name, type in words, meaning, whether it is always there) of each field."""
    for name, hint in get_type_hints(shape, include_extras=True).items():
        always = get_origin(hint) is not NotRequired
        inner = hint if always else get_args(hint)[0]
        kind, meaning = get_args(inner)[:2] if get_origin(inner) is Annotated else (inner, "")
        yield name, _words(kind), meaning, always


def _words(kind: Any) -> str:
    """A type as a person reads it."""
    plain = {str: "string", int: "integer", bool: "boolean", type(None): "null"}
    if kind in plain:
        return plain[kind]
    if is_typeddict(kind):
        return f"[{kind.__name__}](#{kind.__name__.lower()})"
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is list:
        return f"list of {_words(arguments[0])}"
    if origin is Literal:
        return " or ".join(f"`{str(value).lower() if isinstance(value, bool) else value}`" for value in arguments)
    if origin in (Union, types.UnionType):
        return " or ".join(_words(argument) for argument in arguments)
    raise TypeError(f"no words for {kind!r}")


def _errors() -> str:
    base = errors.SessionHistoryError
    kinds = {kind.code: kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, base)}
    return "".join(
        f"| `{code}` | {status} | {'yes' if kinds[code].retryable else 'no'} | {_sentence(kinds[code])} |\n"
        for code, status in STATUS.items()
    )


def _sentence(kind: type) -> str:
    return " ".join((kind.__doc__ or "").replace("``", "`").split())


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
