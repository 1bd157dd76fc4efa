"""A query against one text: whether it holds, where its terms are, and the snippet that shows most of them.

The index decides by stems what is found. Here the found texts are looked at again: phrases and prefixes are verified
on the words themselves, and terms are located the way the index finds them. A long text is never analysed as a whole
for that: a plain search in its folded characters names the places, and only these are read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from .analysis import in_word, is_unspaced, unify
from .graphemes import break_after, break_before
from .pattern import Pattern
from .query import Query
from .tokens import Reading, read, skeleton

_PLACES = 32  # per term: more of them make no better snippet
_READ_AT_ONCE = 2_000  # code points
_READ_AT_MOST = 20_000  # code points, where a text's words cannot be searched for
_READS = 6  # windows tried for a snippet
_REACH = 20  # code points read before and behind a place: words may be inflected, or have much between them
_NEAR = 300  # code points from a rare term within which a frequent one is looked for
_LONGEST_WORD = 130

_ASCII_LETTERS = re.compile("[a-z0-9]*").match  # matches everywhere


class _Place(NamedTuple):
    """A place in a text where a term may stand; ``sure`` if nothing more need be read to know."""

    start: int
    end: int
    term: int
    sure: bool


class Matcher:
    """One query, to be held against many texts (cleaned texts of entries, any length)."""

    def __init__(self, query: Query) -> None:
        self._patterns = [Pattern(term) for term in query.terms]
        self._literal = [i for i, term in enumerate(query.terms) if term.literal]

    def holds(self, text: str) -> bool:
        """Whether ``text`` holds the terms that the index cannot decide: phrases word for word, and prefixes."""
        if not self._literal:
            return True
        folded, complete = skeleton(text)
        if not complete:  # the places in the text do not matter here, so its simpler form will do
            unified, _ = unify(text)
            if (again := skeleton(unified))[1]:
                text, (folded, complete) = unified, again
        return all(self._stands(self._patterns[term], text, folded, complete) for term in self._literal)

    def held(self, text: str) -> set[int]:
        """Numbers of the terms that stand in ``text``."""
        folded, complete = skeleton(text)
        return {at for at, pattern in enumerate(self._patterns) if self._stands(pattern, text, folded, complete)}

    def spans(self, text: str, limit: int = 200) -> list[tuple[int, int, int]]:
        """Where the terms stand in ``text``, as (start, end, index of the term), by place, at most ``limit``."""
        found: set[tuple[int, int, int]] = set()
        if len(text) <= _READ_AT_ONCE:
            found.update(self._read(text, 0, len(text), range(len(self._patterns))))
        else:
            for place in self._places(text):
                if place.sure:
                    found.add(place[:3])
                else:
                    found.update(self._read(text, place.start, place.end, [place.term]))
        return sorted(found)[:limit]

    def snippet(self, text: str, chars: int) -> tuple[str, bool]:
        """At most ``chars`` code points of ``text`` holding as many of the terms as possible, and whether it was cut.

        A cut side ends with ``…``, which counts. Of windows with as many terms the one with the longer and rarer ones
        is taken, then the earliest. It is cut between grapheme clusters, unless one alone is longer than the limit.
        """
        if len(text) <= chars:
            return text, False
        return _window(text, chars, *self._best(text, chars - 2)), True

    def _stands(self, pattern: Pattern, text: str, folded: str, complete: bool) -> bool:
        if not complete:
            return any(True for _ in pattern.found(read(text)))
        for tried, place in enumerate(self._candidates(pattern, 0, text, folded, 0, len(folded))):
            if place.sure or any(True for _ in pattern.found(_part(text, place.start, place.end)[1])):
                return True
            if tried > _PLACES:
                return any(True for _ in pattern.found(read(text)))
        return False

    def _read(self, text: str, start: int, end: int, terms: Iterable[int]) -> set[tuple[int, int, int]]:
        begin, reading = _part(text, start, end)
        return {(begin + a, begin + b, term) for term in terms for a, b in self._patterns[term].found(reading)}

    def _candidates(
        self, pattern: Pattern, term: int, text: str, folded: str, start: int, end: int
    ) -> Iterator[_Place]:
        """Where the term may stand between ``start`` and ``end`` of the ``folded`` text."""
        if pattern.expression is not None:
            match = pattern.expression.search(folded, start, end)
            while match:
                yield _Place(match.start(), match.end(), term, pattern.unspaced)
                match = pattern.expression.search(folded, match.start() + 1, end)
            return
        for needle in pattern.needles:
            position = folded.find(needle, start, end)
            while position >= 0:
                after = position + len(needle)
                if _begins_word(text, folded, position):
                    if not pattern.single:
                        yield _Place(max(0, position - pattern.before), position + pattern.length, term, False)
                    elif is_unspaced(folded[position]):
                        yield _Place(position, after, term, True)
                    else:
                        after = _word_end(folded, after)
                        if pattern.is_word(folded[position:after]):
                            yield _Place(position, after, term, True)
                        elif _maybe_cut(text, position, after):
                            yield _Place(position, position + len(needle), term, False)
                position = folded.find(needle, after, end)

    def _places(self, text: str) -> list[_Place]:
        """The first places of each term, and those of frequent terms near them, by position."""
        folded, complete = skeleton(text)
        if not complete and len(text) <= _READ_AT_MOST:
            spans = self._read(text, 0, len(text), range(len(self._patterns)))
            return [_Place(*span, True) for span in sorted(spans)]
        places: list[_Place] = []
        frequent = []
        for term, pattern in enumerate(self._patterns):
            some = _first(self._candidates(pattern, term, text, folded, 0, len(folded)), _PLACES)
            places += some
            if len(some) == _PLACES:
                frequent.append(term)
            elif not some and not complete:
                read = self._read(text, 0, _READ_AT_MOST, [term])
                places += [_Place(start, end, term, True) for start, end, _ in sorted(read)[:_PLACES]]
        rare = [place for place in places if place.term not in frequent]
        for term in frequent:
            for place in rare[:_PLACES]:
                near = max(0, place.start - _NEAR), place.end + _NEAR
                places += _first(self._candidates(self._patterns[term], term, text, folded, *near), 2)
        return sorted(set(places))

    def _best(self, text: str, room: int) -> tuple[int, int]:
        """The stretch of ``text`` of at most ``room`` code points that a snippet should hold."""
        places = self._places(text)
        best, most = (0, 0), 0
        for _ in range(_READS):
            group = self._group(places, room)
            wanted = {place.term for place in group}
            if len(wanted) <= most:
                break
            spans = {place[:3] for place in group if place.sure}
            unsure = [place for place in group if not place.sure]
            for place in unsure:
                spans |= self._read(text, place.start, place.end, [place.term])
            stretch, terms = self._fitting(sorted(spans), room)
            if terms > most:
                best, most = stretch, terms
            if terms == len(wanted):
                break
            places = [place for place in places if place not in unsure]
        return best

    def _group(self, places: list[_Place], room: int) -> list[_Place]:
        """The places within ``room`` that hold the most terms."""
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
        return self._shortest(places[slice(*best)])

    def _shortest(self, group: list[_Place]) -> list[_Place]:
        """``group`` without places at its end that repeat a term."""
        seen = set()
        needed = 0
        for i, place in enumerate(group):
            if place.term not in seen:
                seen.add(place.term)
                needed = i + 1
        return group[:needed]

    def _fitting(self, spans: list[tuple[int, int, int]], room: int) -> tuple[tuple[int, int], int]:
        """The stretch from the first of ``spans`` that fits into ``room``, and how many terms it holds."""
        if not spans:
            return (0, 0), 0
        start, end = spans[0][:2]
        terms = {spans[0][2]}
        for _, after, term in spans:
            if after - start <= room:
                terms.add(term)
                end = max(end, after)
        return (start, end), len(terms)


def _first(places: Iterable[_Place], number: int) -> list[_Place]:
    return [place for place, _ in zip(places, range(number), strict=False)]


def _begins_word(text: str, folded: str, position: int) -> bool:
    """Whether a word may begin at ``position``: behind no letter, at a change of case or in an unspaced script."""
    if position == 0 or not in_word(folded[position - 1]) or text[position].isupper():
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


def _part(text: str, start: int, end: int) -> tuple[int, Reading]:
    """What stands around ``text[start:end]``, read with whole words at its ends, and where that begins."""
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
    reading = read(text[start:end])
    return start, reading


def _window(text: str, chars: int, start: int, end: int) -> str:
    """``chars`` code points of the longer ``text`` around its stretch from ``start`` to ``end``, cut ends marked."""
    size = len(text)
    room = max(0, chars - 2 - (end - start))
    begin = max(0, start - room // 3)
    if begin + chars - (begin > 0) >= size:
        begin = max(0, size - chars + 1)
    if begin:
        begin = min(start, break_after(text, _word_start(text, begin, start)))
    stop = begin + chars - (begin > 0)
    if stop < size:
        stop = max(break_before(text, stop - 1), begin)
        if stop == begin:  # one cluster is longer than the limit
            stop = begin + chars - (begin > 0) - 1
    return ("…" if begin else "") + text[begin:stop] + ("…" if stop < size else "")


def _word_start(text: str, begin: int, start: int) -> int:
    """A place behind white space a little after ``begin``, well before ``start``; else ``begin``."""
    for place in range(begin, begin + min(24, (start - begin) // 2) + 1):
        if text[place - 1].isspace():
            return place
    return begin
