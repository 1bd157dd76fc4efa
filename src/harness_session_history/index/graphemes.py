"""Where a text may be cut: between grapheme clusters, never inside one."""

from __future__ import annotations

from collections.abc import Iterator

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
