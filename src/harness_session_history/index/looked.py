"""One text in which terms are looked for: its folded characters, where a plain search finds most words, and the stretches
whose words these do not tell (decomposed accents, ligatures, ß, invisible characters), which must be read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from .analysis import SUBSTITUTES, unify, unjoined
from .tokens import Reading, continues, read, skeleton

_REACH = 20  # code points read before and behind a place: words may be inflected, or have much between them
_LONGEST_WORD = 130
_READ_AT_ONCE = 4_000


class Looked:
    """``folded`` has every character of ``text`` in its place, but spaces for the words that must be read."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.folded, odd = skeleton(text)
        self._odd = _words_with(odd, text) if odd else []
        if self._odd:
            self.folded = _without(self._odd, self.folded)
        self._readings: list[tuple[int, Reading]] = []
        self._left: Iterator[tuple[int, Reading]] | None = None

    @property
    def complete(self) -> bool:
        """Whether the folded text tells all words."""
        return not self._odd

    def part(self, start: int, end: int) -> tuple[int, Reading]:
        """What stands around ``text[start:end]``, read with whole words at its ends, and where that begins."""
        text = self.text
        if len(text) <= end - start:
            return 0, read(text)
        start, end = max(0, start - _REACH), min(len(text), end + _REACH)
        for _ in range(_LONGEST_WORD):
            if start == 0 or text[start - 1].isspace():
                break
            start -= 1
        for _ in range(_LONGEST_WORD):
            if end >= len(text) or text[end].isspace():
                break
            end += 1
        return start, read(text[start:end])

    def readings(self, needles: tuple[str, ...], reach: int) -> Iterator[tuple[int, Reading]]:
        """The words that must be read and may hold one of the needles, with ``reach`` characters around them, and where
        each reading begins. They are read once, however often they are asked for (always in the same way)."""
        yield from self._readings
        if self._left is None:
            self._left = self._read(needles, reach)
        for reading in self._left:
            self._readings.append(reading)
            yield reading

    def _read(self, needles: tuple[str, ...], reach: int) -> Iterator[tuple[int, Reading]]:
        holding: dict[str, bool] = {}
        words = []
        for start, end in self._odd:
            word = self.text[start:end]
            held = holding.get(word)
            if held is None:
                simpler = skeleton(unjoined(unify(word)[0]))[0]
                held = holding[word] = any(needle in simpler for needle in needles)
            if held:
                words.append((start, end))
        at = 0
        while at < len(words):
            start, end = words[at]
            while at + 1 < len(words) and words[at + 1][0] - end <= 2 * reach and end - start < _READ_AT_ONCE:
                at += 1
                end = words[at][1]
            at += 1
            yield self.part(max(0, start - reach), min(len(self.text), end + reach))


@lru_cache(64)
def _any_of(odd: frozenset[str]) -> re.Pattern[str]:
    """Finds such characters; what only decorates the character before it, only behind a letter."""
    decoration = {c for c in odd if continues(c) and not SUBSTITUTES[ord(c)]}
    marks, others = (re.escape("".join(sorted(some))) for some in (decoration, odd - decoration))
    choices = ([f"[{others}]"] if others else []) + ([rf"(?<=[^\W_])[{marks}]"] if marks else [])
    return re.compile("|".join(choices))


def _words_with(odd: frozenset[str], text: str) -> list[tuple[int, int]]:
    """The words, from white space to white space, that hold such characters."""
    words: list[tuple[int, int]] = []
    for match in _any_of(odd).finditer(text):
        start, end = match.span()
        if words and start < words[-1][1]:
            continue
        lowest = max(start - _LONGEST_WORD, words[-1][1] if words else 0)
        while start > lowest and not text[start - 1].isspace():
            start -= 1
        highest = min(end + _LONGEST_WORD, len(text))
        while end < highest and not text[end].isspace():
            end += 1
        words.append((start, end))
    return words


def _without(words: list[tuple[int, int]], folded: str) -> str:
    pieces: list[str] = []
    last = 0
    for start, end in words:
        pieces += (folded[last:start], " " * (end - start))
        last = end
    return "".join(pieces) + folded[last:]
