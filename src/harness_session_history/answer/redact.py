"""Masks secrets in what an answer shows, where that is asked for (setting `redact`): a help against slips, no boundary.

A text is masked as a whole, before anything of it is cut off: each character of a secret becomes HIDDEN, so that all places
stay what they are. When the answer is done, each run of these becomes a short mask, and is counted (`finish`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from ..archive.hydration import Hydrated
from ..archive.projection import Part
from ..errors import IndexUnavailable
from ..text.clean import AUTHOR_CHARS, TOOL_CHARS

if TYPE_CHECKING:
    from kingfisher_sdk import Scanner

#: Stands for one character of a secret; a control character, of which no cleaned text has any.
HIDDEN = "\x91"
#: What is shown in its place, at most so often: neither more than was there, nor how much that was.
MASK, MASK_CHARS = "*", 8
#: The fields of an answer that hold texts and names of transcripts.
_FIELDS = frozenset(("snippet", "text", "name", "lineage", "cwd", "author"))
#: Characters of a secret from which on it is looked for a second time in its text, and of how many secrets of one text.
_REPEATED, _MOST_REPEATED = 8, 256
_CHARACTER = re.compile(rb"[\x00-\x7f\xc0-\xff][\x80-\xbf]*")
_RUN = re.compile(HIDDEN + "+")
_CUT_WORD = re.compile(r"\S{8,}\Z")


@lru_cache(1)
def _scanner() -> Scanner:
    from kingfisher_sdk import Scanner

    return Scanner()


def masked(text: str, bound: int | None = None) -> str:
    """The text with HIDDEN for each character of a secret. A name that was cut at its `bound` may end within one, which
    nobody can tell: its last word is hidden, if it is long.

    Raises IndexUnavailable where secrets cannot be looked for: nothing is shown unmasked then.
    """
    raw = text.replace(HIDDEN, " ").encode("utf-8", "replace")
    shown, done = list[bytes](), 0
    for start, end in sorted(_secrets(raw)):
        if end > done:
            start = max(start, done)
            shown += [raw[done:start], _CHARACTER.sub(HIDDEN.encode(), raw[start:end])]
            done = end
    hidden = b"".join([*shown, raw[done:]]).decode("utf-8", "replace")
    if bound is not None and len(text) >= bound - 1:  # white space at the end is cut, too
        hidden = _CUT_WORD.sub(lambda word: HIDDEN * len(word[0]), hidden)
    return hidden


def _secrets(raw: bytes) -> Iterator[tuple[int, int]]:
    """Where secrets stand: what the library knows as such, also where it counts only together with another, and the same
    again elsewhere in the text."""
    try:
        findings = _scanner().scan(raw)
    except Exception as problem:
        raise IndexUnavailable(
            "secrets cannot be masked: the library that finds them does not work here",
            hint='pip install --force-reinstall "harness-session-history[redact]", or switch redact off',
        ) from problem
    spans = [(finding.location["start_offset"], finding.location["end_offset"]) for finding in findings]
    yield from spans
    known = dict.fromkeys(raw[start:end] for start, end in spans if end - start >= _REPEATED)
    for secret in list(known)[:_MOST_REPEATED]:
        at = raw.find(secret)
        while at >= 0:
            yield at, at + len(secret)
            at = raw.find(secret, at + len(secret))


def masked_entry(entry: Hydrated) -> Hydrated:
    """The entry as it may be shown; what is looked for is looked for in the entry itself."""
    whole = "\n\n".join([part.text for part in entry.parts])
    return replace(
        entry,
        text=masked(entry.text),
        view=masked(entry.view),
        parts=[Part("text", masked(whole))] if entry.parts else [],
        tools=[tool._replace(name=masked(tool.name, TOOL_CHARS)) for tool in entry.tools],
        author=None if entry.author is None else masked(entry.author, AUTHOR_CHARS),
    )


def finish(answer: Any) -> int:
    """Puts masks where something is HIDDEN in the texts of an answer; returns how many."""
    count = 0
    for key, value in answer.items() if isinstance(answer, dict) else enumerate(answer):
        if isinstance(value, dict | list):
            count += finish(value)
        elif key in _FIELDS and isinstance(value, str):
            answer[key], found = _RUN.subn(lambda run: MASK * min(len(run[0]), MASK_CHARS), value)
            count += found
    return count
