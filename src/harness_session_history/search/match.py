"""A query against one text: whether it holds, where its terms are, and the snippet that shows most of them.

The index decides by stems what is found. Here the found texts are looked at again: phrases and prefixes are verified
on the words themselves, and terms are located the way the index finds them. A long text is never analysed as a whole
for that: a plain search in its folded characters names the places, and only these are read.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

from ..text.analysis import unify
from ..text.clean import break_after, break_before
from ..text.tokens import Reading, read
from .candidates import Looked, Place, Sweep, candidates
from .pattern import Pattern
from .query import Query

_PLACES = 32  # of a term, at least, are looked at
_PLACES_TOGETHER = 1_000  # where there are several terms, of which any two may stand together only once
_READ_AT_ONCE = 2_000  # code points
_PART = 200  # code points for which a place takes as long to read
_READ_AT_MOST = 20_000  # code points of words that cannot be searched for, and of a text that is swept
_READS = 6  # windows tried for a snippet
_NEAR = 300  # code points from a rare term within which a frequent one is looked for
_MANY_TERMS = 4  # from so many on, they are looked for in one pass


class Matcher:
    """One query, to be held against many texts (cleaned texts of entries, any length)."""

    def __init__(self, query: Query) -> None:
        self._patterns = [Pattern(term) for term in query.terms]
        self._literal = [i for i, term in enumerate(query.terms) if term.literal]
        many = len(self._patterns)
        self._most = max(_PLACES, _PLACES_TOGETHER // many if many > 1 else 0)
        self._reach = max((pattern.length for pattern in self._patterns), default=0)
        self._sweep = Sweep(self._patterns) if len(self._patterns) >= _MANY_TERMS else None

    @cached_property
    def _hints(self) -> tuple[str, ...]:
        return tuple(hint for pattern in self._patterns for hint in pattern.hints)

    def _to_read(self, looked: Looked) -> Iterable[tuple[int, Reading]]:
        """The words of a text that cannot be searched for, as far as they may be those of a term."""
        return () if looked.complete else looked.readings(self._hints, self._reach)

    def holds(self, text: str) -> bool:
        """Whether ``text`` holds the terms that the index cannot decide: phrases word for word, and prefixes."""
        if not self._literal:
            return True
        looked = self._looked(text)
        return all(self._stands(self._patterns[term], looked) for term in self._literal)

    def held(self, text: str) -> set[int]:
        """Numbers of the terms that stand in ``text``."""
        looked = self._looked(text)
        return {at for at, pattern in enumerate(self._patterns) if self._stands(pattern, looked)}

    @staticmethod
    def _looked(text: str) -> Looked:
        """A text of which only the words matter, not their places: then its simpler form may be told as a whole."""
        looked = Looked(text)
        if not looked.complete:
            simpler = Looked(unify(text)[0])
            if simpler.complete:
                return simpler
        return looked

    def spans(self, text: str, limit: int = 200) -> list[tuple[int, int, int]]:
        """Where the terms stand in ``text``, as (start, end, index of the term), by place, at most ``limit``."""
        looked = Looked(text)
        found: set[tuple[int, int, int]] = set()
        if len(text) <= _READ_AT_ONCE:
            found.update(self._read(looked, 0, len(text), range(len(self._patterns))))
        else:
            for place in self._places(looked):
                if place.sure:
                    found.add(place[:3])
                else:
                    found.update(self._read(looked, place.start, place.end, [place.term]))
        return sorted(found)[:limit]

    def snippet(self, text: str, chars: int) -> tuple[str, bool]:
        """At most ``chars`` code points of ``text`` holding as many of the terms as possible, and whether it was cut.

        A cut side ends with ``…``, which counts. Of windows with as many terms the one with the longer and rarer ones
        is taken, then the earliest. It is cut between grapheme clusters, unless one alone is longer than the limit.
        """
        if len(text) <= chars:
            return text, False
        return _window(text, chars, *self._best(text, chars - 2)), True

    def _stands(self, pattern: Pattern, looked: Looked) -> bool:
        text, folded = looked.text, looked.folded
        unsure = []
        for place in candidates(pattern, 0, text, folded, 0, len(folded)):
            if place.sure:
                return True
            unsure.append(place)
        if len(unsure) > max(_PLACES, len(text) // _PART):
            return any(True for _ in pattern.found(read(text)))
        if any(True for place in unsure for _ in pattern.found(looked.part(place.start, place.end)[1])):
            return True
        return any(True for _, reading in self._to_read(looked) for _ in pattern.found(reading))

    def _read(self, looked: Looked, start: int, end: int, terms: Iterable[int]) -> set[tuple[int, int, int]]:
        begin, reading = looked.part(start, end)
        return {(begin + a, begin + b, term) for term in terms for a, b in self._patterns[term].found(reading)}

    def _swept(self, text: str) -> tuple[list[Place], frozenset[int]]:
        """All places of the terms that can be found in one pass, and which terms these are."""
        if self._sweep is None or len(text) > _READ_AT_MOST or not text.isascii():
            return [], frozenset()
        return self._sweep.places(text), self._sweep.terms

    def _places(self, looked: Looked) -> list[Place]:
        """The first places of each term, and those of frequent terms near them, by position."""
        text, folded = looked.text, looked.folded
        places, swept = self._swept(text)
        frequent = []
        for term, pattern in enumerate(self._patterns):
            if term in swept:
                continue
            some = _first(candidates(pattern, term, text, folded, 0, len(folded)), self._most)
            places += some
            if len(some) == self._most:
                frequent.append(term)
        characters = 0
        for begin, reading in self._to_read(looked):
            for term, pattern in enumerate(self._patterns):
                places += [Place(begin + start, begin + end, term, True) for start, end in pattern.found(reading)]
            characters += reading.tokens[-1].end if reading.tokens else 0
            if characters > _READ_AT_MOST:
                break
        rare = [place for place in places if place.term not in frequent]
        for term in frequent:
            for place in rare[:_PLACES]:
                near = max(0, place.start - _NEAR), place.end + _NEAR
                places += _first(candidates(self._patterns[term], term, text, folded, *near), 2)
        return sorted(set(places))

    def _best(self, text: str, room: int) -> tuple[int, int]:
        """The stretch of ``text`` of at most ``room`` code points that a snippet should hold."""
        looked = Looked(text)
        places = self._places(looked)
        best, most = (0, 0), 0
        for _ in range(_READS):
            group = self._group(places, room)
            wanted = {place.term for place in group}
            if len(wanted) <= most:
                break
            spans = {place[:3] for place in group if place.sure}
            unsure = [place for place in group if not place.sure]
            for place in unsure:
                spans |= self._read(looked, place.start, place.end, [place.term])
            stretch, terms = self._fitting(sorted(spans), room)
            if terms > most:
                best, most = stretch, terms
            if terms == len(wanted):
                break
            places = [place for place in places if place not in unsure]
        return best

    def _group(self, places: list[Place], room: int) -> list[Place]:
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

    def _shortest(self, group: list[Place]) -> list[Place]:
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


def _first(places: Iterable[Place], number: int) -> list[Place]:
    return [place for place, _ in zip(places, range(number), strict=False)]


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
