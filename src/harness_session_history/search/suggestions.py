"""Questions to the index for an answer that would be empty: counts, spelling, entries that hold most of the terms."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import islice

from ..text.tokens import stems
from .expression import Phrase
from .query import Term
from .rank import Searcher

#: So many of a term's newest rows are considered for the nearest entries, and of all terms together about so many.
PER_TERM, TOGETHER = 1000, 6000
#: So many of these are worth reading.
CANDIDATES = 24
#: Bound on the work of one kind of hint, once so many sessions or words have been tried: an answer over a small archive
#: must not depend on the moment.
SECONDS, TRIED = 0.03, 50
#: Folded letters of scripts that are written in words; a slip is one of the same script.
_ALPHABETS = (
    "abcdefghijklmnopqrstuvwxyz0123456789",
    "абвгдежзийклмнопрстуфхцчшщъыьэюяіїєґ",
    "αβγδεζηθικλμνξοπρσςτυφχψω",
)


def nearest(searcher: Searcher, terms: Sequence[Term], check: Callable[[], None]) -> list[int]:
    """Rows that hold most of the terms, as far as the index tells quickly, weighted by rarity, best first.

    Candidates are the newest rows of each term, beginning with the rarest: all of its rows unless the term is common,
    and then it weighs little. Which of the common terms stand in them is left to whoever reads them.
    """
    weight: dict[int, float] = defaultdict(float)
    considered = 0
    deadline = time.monotonic() + SECONDS
    by_rarity = sorted(zip(searcher.rarities(terms), range(len(terms)), terms, strict=True), reverse=True)
    for rarity, _, term in by_rarity:
        check()
        if considered >= TOGETHER or (weight and time.monotonic() > deadline):
            break
        rows = searcher.matches(term.expression, PER_TERM)
        considered += len(rows)
        for row in rows:
            weight[row] += rarity
    return list(islice(searcher.in_order(weight.items()), CANDIDATES))


def sessions_with_all(
    searcher: Searcher, terms: Sequence[Term], counts: Sequence[int], limit: int, check: Callable[[], None]
) -> list[int]:
    """Keys of sessions in scope in which every term stands somewhere, newest first."""
    deadline = time.monotonic() + SECONDS
    by_rarity = [term for _, term in sorted(zip(counts, terms, strict=True), key=lambda pair: pair[0])]
    keys = dict.fromkeys(searcher.session_of(row) for row in searcher.matches(by_rarity[0].expression, PER_TERM))
    found: list[int] = []
    for tried, key in enumerate(keys):
        check()
        if len(found) == limit or (tried >= TRIED and time.monotonic() > deadline):
            break
        if all(searcher.of_session(term.expression, key, 1) for term in by_rarity[1:]):
            found.append(key)
    return found


def corrections(searcher: Searcher, word: str, until: float) -> list[str]:
    """The most frequent word in scope that is one slip away from a folded word that stands nowhere; looked for until then.

    Several where the index, which holds stems, cannot tell them apart; the likeliest slip first.
    """
    alphabet = next((letters for letters in _ALPHABETS if word[0] in letters), "")
    if not word.isalnum() or not alphabet or not 4 <= len(word) <= 24:
        return []
    best: list[str] = []
    most = 0
    for candidate in _slips(word, alphabet):
        expression = Phrase((candidate,))
        if searcher.exists(expression):
            frequency = searcher.frequency(expression)
            if frequency > most and searcher.matches(expression, 1):
                best, most = [candidate], frequency
            elif frequency == most and best and stems([candidate]) == stems(best[:1]):
                best.append(candidate)
        if time.monotonic() > until:
            break
    return best


def _slips(word: str, alphabet: str) -> Iterator[str]:
    """Words one slip away: two letters swapped, one left out, one too many, one wrong; the likelier kinds first."""
    seen = {word}
    for candidate in _all_slips(word, alphabet):
        if candidate not in seen:
            seen.add(candidate)
            yield candidate


def _all_slips(word: str, alphabet: str) -> Iterator[str]:
    for at in range(len(word) - 1):
        yield word[:at] + word[at + 1] + word[at] + word[at + 2 :]
    for at in range(len(word)):
        yield word[:at] + word[at + 1 :]
    for at in range(len(word) + 1):
        for letter in alphabet:
            yield word[:at] + letter + word[at:]
    for at in range(len(word)):
        for letter in alphabet:
            yield word[:at] + letter + word[at + 1 :]
