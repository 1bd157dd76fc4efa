"""A query against the texts of found entries: which terms stand there, where, and the snippet that shows most of them.

The tokens by which the index found an entry decide this too: a text is analysed again as it was for the index, and each
place of a term is one of its runs of tokens. Of a long text only the blocks are analysed that hold letters of a term.

For ranking: ``places(text)`` are all places of all terms in the order of the text (for how close they stand),
``held(text)`` the terms that have any, ``typed(text)`` those that stand there in the very form that was typed. A text's
places are found once: the first question about it costs about what it cost to index it (less for one longer than WHOLE),
each further one next to nothing.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import groupby
from typing import NamedTuple

from ..text.analysis import JOINERS, foreign_characters, is_unspaced
from ..text.clean import break_after, break_before
from ..text.tokens import Reading
from .pattern import Pattern
from .query import Query

#: A text of at most this many code points is analysed as a whole, a longer one in blocks of about BLOCK, cut before white
#: space.
WHOLE, BLOCK = 3_000, 300
#: How many code points a snippet may give up to end between words.
NEAR = 32
#: Texts whose places are remembered.
REMEMBERED = 64

_BLOCKS = re.compile(rf".{{1,{BLOCK}}}\S*", re.DOTALL)
_BEGINNING = re.compile(rf".{{1,{WHOLE - 1}}}(?=\s)", re.DOTALL)
_WORDS = re.compile(r"[A-Za-z0-9]\S*")
_PLAIN = re.compile("[A-Z]?[a-z0-9]+|[A-Z0-9]+")


class Place(NamedTuple):
    """A place of a term, by its number in the query: ``start`` and ``end`` in code points of the text."""

    start: int
    end: int
    term: int


class Matcher:
    """One query, to be held against many texts (cleaned texts of entries, any length). Used by one thread at a time."""

    def __init__(self, query: Query) -> None:
        self._query = query
        self._patterns = [Pattern(term, term.quoted) for term in query.terms]
        self._literal = {at for at, term in enumerate(query.terms) if term.literal}
        self._heads: tuple[dict[str, list[int]], dict[str, list[int]]] = ({}, {})
        for term, pattern in enumerate(self._patterns):
            for head in pattern.heads if not pattern.begins else ():
                self._heads[pattern.exact].setdefault(head, []).append(term)
        self._beginnings = {at: tuple(one.heads) for at, one in enumerate(self._patterns) if one.begins}
        self._compounds = {name for pattern in self._patterns for name in pattern.compounds}
        self._prefixes = tuple([name for pattern in self._patterns if pattern.prefix for name in pattern.compounds])
        self._needles = tuple(dict.fromkeys(needle for pattern in self._patterns for needle in pattern.needles))
        self._reach = max([pattern.size for pattern in self._patterns], default=1) - 1
        self._places: dict[tuple[str, str], Sequence[Place]] = {}
        self._typed: dict[tuple[int, str], bool] = {}
        self._marks: dict[str, list[tuple[int, int]]] = {}

    @cached_property
    def _exact(self) -> list[Pattern]:
        return [Pattern(term, True) for term in self._query.terms]

    def places(self, text: str, apart: str = "") -> Sequence[Place]:
        """Every place of every term in ``text``, by start, end and term.

        ``apart``, here and below: the text with spaces where something was removed between two words, if the index read it
        so (``Hydrated.apart``).
        """
        known = self._places.get((text, apart))
        if known is None:
            if len(self._places) >= REMEMBERED:
                self._places.clear()
            known = self._read(text)
            if apart:
                known = sorted({*known, *_closed(self._read(apart), apart, text)})
            self._places[text, apart] = known
        return known

    def held(self, text: str, apart: str = "") -> set[int]:
        """Numbers of the terms that stand in ``text``."""
        return {place.term for place in self.places(text, apart)}

    def holds(self, text: str, apart: str = "") -> bool:
        """Whether ``text`` holds the terms that the index alone cannot tell (``literal``)."""
        return not self._literal or any(self._literal <= self.held(*part) for part in self._parts(text, apart))

    def typed(self, text: str, apart: str = "") -> set[int]:
        """Numbers of the terms that stand in ``text`` in the form that was typed: its words as such, not only their stems."""
        if self._words and text.isascii() and not apart:
            lower = text.lower()
            return {at for at, word in enumerate(self._words) if _stands_free(word, text, lower)}
        places = self.places(text, apart)
        return {place.term for place in places if self._is_typed(place.term, text[place.start : place.end])}

    @cached_property
    def _words(self) -> list[str]:
        """The terms as plain words in small letters; none unless all are such."""
        words = [term.text.lower() for term in self._query.terms if _PLAIN.fullmatch(term.text)]
        return words if len(words) == len(self._query.terms) else []

    def marker(self) -> Callable[[str], list[tuple[int, int]]]:
        """What gives the (start, end) of each place of a term in a snippet of this matcher, or in any text. It keeps no text."""
        query, known = self._query, self._marks
        return lambda snippet: known[snippet] if snippet in known else [p[:2] for p in Matcher(query).places(snippet)]

    def snippet(self, text: str, chars: int, apart: str = "", masked: str | None = None) -> tuple[str, bool]:
        """At most ``chars`` code points of ``text`` holding as many of the terms as possible, and whether it was cut.

        A cut side ends with ``…``, which counts. Of windows with as many terms the one with the longer and rarer ones
        is taken, then the earliest. It is cut between words where one ends nearby, else between grapheme clusters (unless
        one alone is longer than the limit). With ``masked``, the text as it may be shown, it is cut from that: all places are the same.
        """
        given = text if masked is None else masked
        if len(text) <= chars:
            if apart:
                self._marks[given] = [place[:2] for place in self.places(text, apart)]
            return given, False
        for part in self._parts(text, apart):
            places = self.places(*part)
            stretch, terms = self._best(places, chars - 2)
            if terms == len(self._patterns):
                break
        begin, stop = _window(text, chars, *stretch)
        if stop > len(part[0]):
            places = self.places(text, apart)
        snippet = ("…" if begin else "") + given[begin:stop] + ("…" if stop < len(text) else "")
        shift = (begin > 0) - begin
        shown = [p for p in places if begin <= p.start and p.end <= stop] or [
            Place(*stretch, 0)
        ]  # (that may be too long)
        self._marks[snippet] = [(p.start + shift, min(p.end, stop) + shift) for p in shown if p.start < p.end]
        return snippet, True

    def _parts(self, text: str, apart: str) -> Iterator[tuple[str, str]]:
        """The text, but first the beginning of a long one of which nobody asked for all places: it may be enough."""
        first = len(text) > WHOLE and not apart and (text, apart) not in self._places and _BEGINNING.match(text)
        if first:
            yield first[0], ""
        yield text, apart

    def _read(self, text: str) -> list[Place]:
        parts = [(0, text)] if len(text) <= WHOLE else self._worth_reading(text)
        return [place for begin, part in parts for place in self._found(Reading(part), begin)]

    def _found(self, reading: Reading, begin: int) -> list[Place]:
        """The places of the terms in a part of a text that begins at ``begin``."""
        compounds = reading.compounds(self._is_wanted)
        starts: dict[int, list[int]] = {}
        for exact, heads in enumerate(self._heads):
            if heads:
                tokens = enumerate(reading.words if exact else reading.stems)
                firsts = [(at, token) for at, token in tokens if token in heads]
                firsts += [(at, one.word if exact else one.stem) for at, some in compounds.items() for one in some]
                for at, token in firsts:
                    for term in heads.get(token, ()):
                        starts.setdefault(term, []).append(at)
        for term, begins in self._beginnings.items():
            starts[term] = [at for at, word in enumerate(reading.words) if word.startswith(begins)]
            starts[term] += [at for at, some in compounds.items() if any(one.word.startswith(begins) for one in some)]
        found = []
        for term, some in starts.items():
            for first, after in self._patterns[term].found(reading, compounds, some):
                start, end = reading.place(first, after)
                found.append(Place(begin + start, begin + end, term))
        return sorted(found)

    def _is_wanted(self, word: str, stem: str) -> bool:
        return stem in self._compounds or word in self._compounds or word.startswith(self._prefixes)

    def _worth_reading(self, text: str) -> Iterator[tuple[int, str]]:
        """The parts of a long text where terms may stand, each with its beginning; no term stands across an end of one."""
        blocks = [match.span() for match in _BLOCKS.finditer(text)]
        worth = bytearray(len(blocks))
        for at, (start, end) in enumerate(blocks):
            block = text[start:end]
            folded = block.lower()
            if any(needle in folded for needle in self._needles) or not _tells_all(block):
                worth[at] = 1
        if self._reach:
            for at in [at for at, wanted in enumerate(worth) if wanted]:
                for step in (-1, 1):
                    beside, words = at + step, 0
                    while 0 <= beside < len(blocks) and words < self._reach:
                        worth[beside] = worth[beside] or 2
                        words += len(_WORDS.findall(text, *blocks[beside]))
                        beside += step
        for wanted, some in groupby(enumerate(worth), key=lambda one: one[1] > 0):
            if wanted:
                run = [at for at, _ in some]
                start, end = blocks[run[0]][0], blocks[run[-1]][1]
                yield start, text[start:end]

    def _is_typed(self, term: int, written: str) -> bool:
        known = self._typed.get((term, written))
        if known is None:
            pattern = self._exact[term]
            reading = Reading(written)
            known = self._typed[term, written] = bool(
                pattern.found(reading, reading.compounds(), range(len(reading.stems)))
            )
        return known

    def _best(self, places: Sequence[Place], room: int) -> tuple[tuple[int, int], int]:
        """The stretch of the text of at most ``room`` code points (or the first place, if all are longer) that
        holds the most terms, and how many."""
        places = [place for place in places if place.end - place.start <= room] or places
        number = [0] * len(self._patterns)
        for place in places:
            number[place.term] += 1
        worth = [pattern.length / max(1, n) for pattern, n in zip(self._patterns, number, strict=True)]
        inside = [0] * len(self._patterns)
        best, best_score, last, distinct, value = (0, 0), (0, 0.0), 0, 0, 0.0
        for first, place in enumerate(places):
            while last < len(places) and (places[last].end - place.start <= room or last == first):
                term = places[last].term
                if not inside[term]:
                    distinct, value = distinct + 1, value + worth[term]
                inside[term] += 1
                last += 1
            if (distinct, value) > (best_score[0], best_score[1] + 1e-9):
                best, best_score = (first, last), (distinct, value)
            inside[place.term] -= 1
            if not inside[place.term]:
                distinct, value = distinct - 1, value - worth[place.term]
        group = places[slice(*best)]
        firsts = {place.term: place for place in reversed(group)}.values()  # (not the later ones of each term)
        return ((group[0].start, max(place.end for place in firsts)) if group else (0, 0)), len(firsts)


class _Neutral(dict[str, bool]):
    """Whether a character only separates words, and lower case leaves it alone."""

    def __missing__(self, character: str) -> bool:
        words = Reading(f"a{character}b").words
        known = words == ["a", "b"] and character not in JOINERS and character.lower() == character
        if len(self) < 20_000:
            self[character] = known
        return known


_NEUTRAL = _Neutral()


def _tells_all(text: str) -> bool:
    """Whether all words of ``text`` stand in it folded when it is only brought to lower case."""
    return text.isascii() or all(map(_NEUTRAL.__getitem__, foreign_characters(text)))


def _closed(places: list[Place], apart: str, text: str) -> Iterator[Place]:
    """Where places in ``apart`` stand in ``text``."""
    gaps: list[int] = []
    for at, character in enumerate(apart):
        if text[at - len(gaps) : at - len(gaps) + 1] != character:
            gaps.append(at)
    for start, end, term in places:
        yield Place(start - bisect_left(gaps, start), end - bisect_left(gaps, end), term)


def _stands_free(word: str, text: str, lower: str) -> bool:
    """Whether a word stands in an ASCII text on its own or as a part of an identifier; ``lower``: the text in small letters."""
    at = lower.find(word)
    while at >= 0:
        end = at + len(word)
        before, after = text[at - 1 : at], text[end : end + 1]
        begins = not before.isalnum() or (text[at].isupper() and not before.isupper())
        if begins and (not after.isalnum() or (after.isupper() and not text[end - 1].isupper())):
            return True
        at = lower.find(word, at + 1)
    return False


def _window(text: str, chars: int, start: int, end: int) -> tuple[int, int]:
    """The stretch of the longer ``text``, with room for the marks of its cut ends, around that from ``start`` to ``end``."""
    size = len(text)
    begin = max(0, start - max(0, chars - 2 - (end - start)) // 3)
    if begin + chars - (begin > 0) >= size:
        begin = max(0, size - chars + 1)
    if begin:
        limit = min(start, begin + NEAR)
        words = _between_words(text, range(begin, limit + 1))
        begin = min(start, break_after(text, begin)) if words is None else words
    stop = begin + chars - (begin > 0)
    if stop < size:
        words = _between_words(text, range(stop - 1, max(end, begin + 1, stop - 1 - NEAR) - 1, -1))
        stop = max(break_before(text, stop - 1), begin) if words is None else words
        if stop == begin:  # one cluster is longer than the limit
            stop = begin + chars - (begin > 0) - 1
    return begin, min(stop, size)


def _between_words(text: str, places: range) -> int | None:
    """The first of ``places`` beside white space or in a script without it, else the first where no word goes on, or None."""
    found = None
    for place in places:
        before, after = text[place - 1], text[place : place + 1]
        spaced = (before if places.step > 0 else after).isspace() or is_unspaced(before) or is_unspaced(after)
        if (spaced or (found is None and not (_in_word(before) and _in_word(after)))) and break_before(
            text, place
        ) == place:
            if spaced:
                return place
            found = place
    return found


def _in_word(character: str) -> bool:
    return character.isalnum() or unicodedata.category(character)[0] == "M" or character in JOINERS
