"""Questions to the index for an answer that would be empty: counts, spelling, entries that hold most of the terms."""

from __future__ import annotations

import heapq
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from .query import Term, any_of
from .records import session_range
from .schema import SESSION_SHIFT
from .search import Searcher

#: So many of a term's newest rows are considered for the nearest entries.
PER_TERM = 500
#: So many of these are weighed in full.
WEIGHED = 20
#: Bound on the work of one kind of hint.
SECONDS = 0.01
_LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"


class Nearest(NamedTuple):
    """A row that holds some of the terms, and its score."""

    row: int
    score: float
    terms: tuple[Term, ...]


def nearest(searcher: Searcher, terms: Sequence[Term], check: Callable[[], None]) -> list[Nearest]:
    """Rows that hold most of the terms, weighted by rarity, best first.

    Candidates are the newest rows of each term, which is all of them unless the term is common (and then it weighs
    little); the best of them are weighed in full.
    """
    # The query as a whole matched nothing, so nothing has been learnt from it.
    searcher.weigher.learn(any_of(terms), searcher.catalog.revision)
    weight: dict[int, float] = defaultdict(float)
    deadline = time.monotonic() + SECONDS
    for rarity, _, term in sorted(((searcher.rarity(term), at, term) for at, term in enumerate(terms)), reverse=True):
        check()
        if weight and time.monotonic() > deadline:
            break
        for row in searcher.matches(term.expression, PER_TERM):
            weight[row] += rarity
    best = heapq.nlargest(WEIGHED, weight, key=lambda row: (weight[row], row))
    found = [
        Nearest(row, score, tuple([terms[at] for at in sorted(held)]))
        for row, score, held in searcher.weigh_rows(terms, best)
    ]
    return sorted(found, key=lambda one: (-one.score, -one.row))


def sessions_with_all(
    searcher: Searcher, terms: Sequence[Term], counts: Sequence[int], limit: int, check: Callable[[], None]
) -> list[int]:
    """Keys of sessions in scope in which every term stands somewhere, newest first."""
    deadline = time.monotonic() + SECONDS
    by_rarity = [term for _, term in sorted(zip(counts, terms, strict=True), key=lambda pair: pair[0])]
    keys = dict.fromkeys(row >> SESSION_SHIFT for row in searcher.matches(by_rarity[0].expression, PER_TERM))
    found: list[int] = []
    for key in keys:
        check()
        if len(found) == limit or time.monotonic() > deadline:
            break
        within = session_range(key)
        if all(searcher.matches(term.expression, 1, within=within) for term in by_rarity[1:]):
            found.append(key)
    return found


def corrections(searcher: Searcher, term: Term) -> str | None:
    """The most frequent word of the index that is one slip away from a word that stands nowhere in scope."""
    word = term.text
    if term.kind != "word" or not word.isascii() or not word.isalnum() or not 4 <= len(word) <= 24:
        return None
    deadline = time.monotonic() + SECONDS
    best, most = None, 0
    for candidate in _slips(word.lower()):
        expression = f'"{candidate}"'  # letters and digits only: nothing of it is syntax
        if searcher.exists(expression):
            frequency = searcher.frequency(expression)
            if frequency > most and searcher.matches(expression, 1):
                best, most = candidate, frequency
        if time.monotonic() > deadline:
            break
    return best


def _slips(word: str) -> Iterator[str]:
    """Words one slip away: two letters swapped, one left out, one too many, one wrong; the likelier kinds first."""
    seen = {word}
    for candidate in _all_slips(word):
        if candidate not in seen:
            seen.add(candidate)
            yield candidate


def _all_slips(word: str) -> Iterator[str]:
    for at in range(len(word) - 1):
        yield word[:at] + word[at + 1] + word[at] + word[at + 2 :]
    for at in range(len(word)):
        yield word[:at] + word[at + 1 :]
    for at in range(len(word) + 1):
        for letter in _LETTERS:
            yield word[:at] + letter + word[at:]
    for at in range(len(word)):
        for letter in _LETTERS:
            yield word[:at] + letter + word[at + 1 :]
