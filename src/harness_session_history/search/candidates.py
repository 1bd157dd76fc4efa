"""Where the terms of a query may stand in a text: looked for in its folded characters, without analysing it.

One text in which terms are looked for: its folded characters, where a plain search finds most words, and the stretches
whose words these do not tell (decomposed accents, ligatures, ß, invisible characters), which must be read."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from ..text.analysis import SUBSTITUTES, in_word, is_unspaced, unify, unjoined
from ..text.tokens import Reading, continues, read, skeleton
from .pattern import Pattern

_ASCII_LETTERS = re.compile("[a-z0-9]*").match  # matches everywhere
_WORDS = re.compile("[A-Za-z0-9]+").finditer
_KEY = 2  # characters by which words are looked up


class Place(NamedTuple):
    """A place in a text where a term may stand; ``sure`` if nothing more need be read to know."""

    start: int
    end: int
    term: int
    sure: bool


def candidates(pattern: Pattern, term: int, text: str, folded: str, start: int, end: int) -> Iterator[Place]:
    """Where the term may stand between ``start`` and ``end`` of the ``folded`` text."""
    if pattern.expression is not None:
        match = pattern.expression.search(folded, start, end)
        while match:
            ends = pattern.prefix or _ends_word(text, folded, match.end())
            if pattern.unspaced or (ends and _begins_word(text, folded, match.start())):
                yield Place(match.start(), match.end(), term, pattern.unspaced)
            match = pattern.expression.search(folded, match.start() + 1, end)
        return
    if pattern.pair is not None:
        match = pattern.pair.search(folded, start, end)
        while match:
            begin = match.start()
            if _begins_word(text, folded, begin):
                yield Place(max(0, begin - pattern.before), max(match.end(), begin + pattern.length), term, False)
            match = pattern.pair.search(folded, begin + 1, end)
        return
    for needle in pattern.needles:
        position = folded.find(needle, start, end)
        while position >= 0:
            after = position + len(needle)
            if _begins_word(text, folded, position):
                if is_unspaced(folded[position]):
                    yield Place(position, after, term, True)
                elif position and in_word(folded[position - 1]):  # at a capital, where the word may be cut or not
                    yield Place(position, after, term, False)
                else:
                    place = _word(pattern, term, text, folded, position, after)
                    if place is not None:
                        yield place
                        after = max(after, place.end)
            position = folded.find(needle, after, end)


def _word(pattern: Pattern, term: int, text: str, folded: str, position: int, after: int) -> Place | None:
    """The place of a term of one word, of which a needle stands from ``position`` to ``after``."""
    end = _word_end(folded, after)
    if pattern.is_word(folded[position:end]):
        return Place(position, end, term, True)
    return Place(position, after, term, False) if _maybe_cut(text, position, end) else None


def _begins_word(text: str, folded: str, position: int) -> bool:
    """Whether a word may begin at ``position``: behind no letter, at a change of case or in an unspaced script."""
    if position == 0 or not in_word(folded[position - 1]) or text[position].isupper():
        return True
    return is_unspaced(folded[position]) or is_unspaced(folded[position - 1])


def _ends_word(text: str, folded: str, position: int) -> bool:
    """Whether a word may end before ``position``: no letter follows, or a change of case or of script."""
    if position >= len(folded) or not in_word(folded[position]) or text[position].isupper():
        return True
    return is_unspaced(folded[position]) or is_unspaced(folded[position - 1])


def _word_end(folded: str, position: int) -> int:
    position = _ASCII_LETTERS(folded, position).end()  # type: ignore[union-attr]
    while position < len(folded) and in_word(folded[position]) and not is_unspaced(folded[position]):
        position += 1
    return position


def _maybe_cut(text: str, start: int, end: int) -> bool:
    """Whether the analysis may see several words in ``text[start:end]``."""
    return not text[start + 1 : end].islower() or not text[end : end + 1].isascii()


class Sweep:
    """Terms of one word each, looked for together: one pass over the words of a text, however many terms there are."""

    def __init__(self, patterns: Sequence[Pattern]) -> None:
        self._patterns = patterns
        self._needles: dict[str, list[tuple[str, int]]] = {}
        terms = [term for term, pattern in enumerate(patterns) if _is_plain(pattern)]
        for term in terms:
            for needle in patterns[term].needles:
                self._needles.setdefault(needle[:_KEY], []).append((needle, term))
        #: The numbers of the terms that it looks for.
        self.terms = frozenset(terms)
        self._known: dict[str, list[Place]] = {}

    def places(self, text: str) -> list[Place]:
        """All places of the terms in an ASCII text."""
        found = []
        known = self._known
        for match in _WORDS(text):
            word = match[0]
            places = known.get(word)
            if places is None:
                places = known[word] = self._within(word, word.lower())
            if places:
                start = match.start()
                found += [Place(start + begin, start + end, term, sure) for begin, end, term, sure in places]
        return found

    def _within(self, word: str, folded: str) -> list[Place]:
        inner = () if word[1:] == folded[1:] else [at for at, letter in enumerate(word) if at and letter.isupper()]
        found = []
        for at in (0, *inner):
            for needle, term in self._beginning(folded, at):
                if folded.startswith(needle, at):
                    after = at + len(needle)
                    whole = None if at else _word(self._patterns[term], term, word, folded, at, after)
                    if at or whole is not None:
                        found.append(whole or Place(at, after, term, False))
        return found

    def _beginning(self, folded: str, at: int) -> list[tuple[str, int]]:
        """The needles that may stand there, each with its term."""
        longer = self._needles.get(folded[at : at + _KEY], _NONE)
        single = self._needles.get(folded[at], _NONE)
        return longer + single if single is not longer else longer


_NONE: list[tuple[str, int]] = []


def _is_plain(pattern: Pattern) -> bool:
    return pattern.single and not any(is_unspaced(needle[0]) for needle in pattern.needles)


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
