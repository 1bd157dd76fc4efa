"""Where a text may be cut: between grapheme clusters, never inside one."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

from ..model.names import UNSEEN

#: Most characters of a name, a tool's name, an author.
NAME_CHARS: Final = 200
TOOL_CHARS: Final = 128
AUTHOR_CHARS: Final = 80


_BIDI: Final = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
_TAGS: Final = "\U000e0000-\U000e007f"
_STRING_BODY: Final = r"[^\x07\x0a\x0d\x1b\x80-\x9f]*+"
# A string sequence (OSC, DCS, SOS, PM, APC) without its terminator loses only its introducer: the text behind it stays.
# An 8-bit introducer of nothing complete is a control character like any other.
_ESCAPE: Final = (
    rf"(?:\x1b[\]P^_X]|[\x90\x98\x9d-\x9f]){_STRING_BODY}(?:\x07|\x1b\\|\x9c)"
    r"|\x1b\[[0-?]*+[ -/]*+[@-~]?"
    r"|\x9b[0-?]*+[ -/]*+[@-~]"
    r"|\x1b[ -/]++[0-~]?"
    r"|\x1b[0-~]"
)
_REMOVED: Final = re.compile(f"(?:{_ESCAPE}|[{_BIDI}{_TAGS}])++")
_DIRTY: Final = re.compile(f"[\x00-\x08\x0b-\x1f\x7f-\x9f{_BIDI}\ud800-\udfff{_TAGS}]")
_DIRTY_ASCII: Final = bytes([*range(0x09), *range(0x0B, 0x20), 0x7F])
_REPLACED: Final[dict[int, str]] = {
    code: " " for code in (*range(0x20), *range(0x7F, 0xA0)) if code not in (0x09, 0x0A)
}
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


def is_clean(text: str) -> bool:
    """Whether ``clean`` would return the text unchanged."""
    if text.isascii():
        raw = text.encode("ascii")
        return len(raw.translate(None, _DIRTY_ASCII)) == len(raw)
    # Everything dirty counts as unprintable, and so does little else: the slow search is rarely needed.
    return text.replace("\n", "").replace("\t", "").isprintable() or _DIRTY.search(text) is None


def clean(text: str) -> str:
    """The text without anything that could steer a terminal, reorder a line or break UTF-8. Idempotent.

    CR LF and CR become LF; escape sequences (7-bit and 8-bit), bidirectional controls and tag characters vanish; each
    other control character except tab and LF becomes a space, each lone surrogate U+FFFD.
    """
    return text if is_clean(text) else _scrub(text, "")


def searchable(text: str) -> str:
    """``clean``, but what vanishes between two visible characters leaves a space, so that no words are glued.

    Returns "" where that makes no difference.
    """
    if is_clean(text):
        return ""
    apart = _scrub(text, _gap)
    return "" if apart == _scrub(text, "") else apart


def _scrub(text: str, removed: str | Callable[[re.Match[str]], str]) -> str:
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    text = _REMOVED.sub(removed, text).translate(_REPLACED)
    return _SURROGATE.sub("\ufffd", text)


def _gap(match: re.Match[str]) -> str:
    before, after = match.string[match.start() - 1 : match.start()], match.string[match.end() : match.end() + 1]
    return " " if before and after and not before.isspace() and not after.isspace() else ""


def visible(text: str) -> str:
    """A cleaned name or path without the characters that nobody sees."""
    return text if text.isascii() else re.sub(f"[{UNSEEN}]", "", text)


def one_line(text: object, limit: int = NAME_CHARS) -> str:
    """A name from a transcript: cleaned, white space folded, at most ``limit`` characters; "" if it is not a string."""
    if not isinstance(text, str):
        return ""
    folded = " ".join(clean(text[: limit * 8]).split())
    return " ".join(visible(folded).split())[:limit].rstrip()


_FURTHEST = 4_096  # code points looked back for a sure break


def break_after(text: str, position: int) -> int:
    """The first cluster boundary of ``text`` at or after ``position``."""
    return next((place for place in _breaks(text, position) if place >= position), len(text))


def break_before(text: str, position: int) -> int:
    """The last cluster boundary of ``text`` at or before ``position``."""
    last = 0
    for place in _breaks(text, position):
        if place > position:
            break
        last = place
    return last


def _simple(character: str) -> bool:
    """Whether ``character`` is always a cluster of its own beside another such one (CR LF apart)."""
    return (
        character < "\u0300"
        or "\u2010" <= character <= "\u2027"
        or "\u3400" <= character <= "\u9fff"
        or "\u3041" <= character <= "\u3096"
        or "\u30a1" <= character <= "\u30fa"
        or "\uac00" <= character <= "\ud7a3"
    )


def _sure(text: str, position: int) -> bool:
    if position <= 0 or position >= len(text):
        return True
    before, after = text[position - 1], text[position]
    return _simple(before) and _simple(after) and not (before == "\r" and after == "\n")


def _breaks(text: str, position: int) -> Iterator[int]:
    """Boundaries of ``text`` from a sure one at or before ``position`` on, until one is beyond it."""
    if _sure(text, position):
        yield position
        return
    from apsw.unicode import grapheme_next_break  # costs milliseconds to import, and English hardly needs it

    place = position - 1
    while place > position - _FURTHEST and not _sure(text, place):
        place -= 1
    place = max(place, 0)
    yield place
    while place <= position and place < len(text):
        place = grapheme_next_break(text, place)
        yield place


def cut(text: str, limit: int) -> tuple[str, bool]:
    """The text, cut between grapheme clusters with ``…`` inside the limit (code points) if it is longer."""
    if len(text) <= limit:
        return text, False
    return text[: break_before(text, limit - 1) or limit - 1] + "…", True
