"""Questions to the index for an answer with few results or none: which rows hold some of the terms, sessions, spelling."""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable, Iterator, Sequence

from ..index.schema import SLOT_SHIFT
from ..text.tokens import stems
from .expression import Expression, Phrase
from .query import Term
from .rank import Searcher

#: Rows that are looked at of each term (those of the sessions that were active last), and of all terms together.
PER_TERM, TOGETHER = 2000, 12_000
#: Rows within 2**NEAR_SHIFT of each other are taken to stand near, as far as that can be told without looking.
NEAR_SHIFT = 6
#: Number of sessions that are tried for one that holds every term, whatever the time.
TRIED = 50
#: Folded letters of scripts that are written in words; a slip is one of the same script.
_ALPHABETS = (
    "abcdefghijklmnopqrstuvwxyz0123456789",
    "абвгдежзийклмнопрстуфхцчшщъыьэюяіїєґ",
    "αβγδεζηθικλμνξοπρσςτυφχψω",
)


def holding(
    searcher: Searcher,
    terms: Sequence[tuple[Expression, float, Sequence[int] | None]],
    check: Callable[[], None],
    until: float,
) -> dict[int, int]:
    """Rows that hold some of the terms, each with the numbers of these as bits, as far as the index tells quickly. Of a
    term: what finds it, how much it tells, and its rows where these are known. The terms that tell most come first, and
    where they have given much, or it takes too long, the others are left out."""
    held: dict[int, int] = {}
    looked_at = 0
    for at in sorted(range(len(terms)), key=lambda at: -terms[at][1]):
        check()
        if looked_at >= TOGETHER or (held and time.monotonic() > until):
            break
        expression, _, known = terms[at]
        rows = searcher.matches(expression, PER_TERM) if known is None else known
        looked_at += len(rows)
        for row in rows:
            held[row] = held.get(row, 0) | 1 << at
    return held


def promising(held: dict[int, int], weights: Sequence[float], role: int | None, most: int) -> list[int]:
    """The rows of a role (None: of any) that hold most, what stands near them counting half; equal ones in their order."""
    beside: dict[int, int] = {}
    for row, mask in held.items():
        place = row >> NEAR_SHIFT
        beside[place] = beside.get(place, 0) | mask
    worth: dict[int, float] = {}
    last = (1 << SLOT_SHIFT - NEAR_SHIFT) - 1

    def weight(mask: int) -> float:
        if mask not in worth:
            worth[mask] = sum([weight for at, weight in enumerate(weights) if mask >> at & 1])
        return worth[mask]

    def promise(row: int) -> float:
        mask, place = held[row], row >> NEAR_SHIFT
        near = beside[place]
        if place & last:  # (not the rows of the session before)
            near |= beside.get(place - 1, 0)
        if place & last != last:
            near |= beside.get(place + 1, 0)
        return weight(mask) + weight(near & ~mask) / 2

    return heapq.nlargest(most, (row for row in held if role is None or row & 1 == role), key=promise)


def sessions_with_all(
    searcher: Searcher, terms: Sequence[Term], counts: Sequence[int], check: Callable[[], None], until: float
) -> Iterator[int]:
    """Keys of sessions in scope in which every term stands somewhere, those that were active last first."""
    by_rarity = [term for _, term in sorted(zip(counts, terms, strict=True), key=lambda pair: pair[0])]
    keys = dict.fromkeys(searcher.session_of(row) for row in searcher.matches(by_rarity[0].expression, PER_TERM))
    for tried, key in enumerate(keys):
        check()
        if tried >= TRIED and time.monotonic() > until:
            break
        if all(searcher.of_session(term.expression, key, 1) for term in by_rarity[1:]):
            yield key


def corrections(searcher: Searcher, word: str, until: float) -> list[str]:
    """The most frequent word in scope that is one slip away from a folded word that stands nowhere; looked for until then.

    Several where the index, which holds stems, cannot tell them apart; the likeliest slip first.
    """
    alphabet = next((letters for letters in _ALPHABETS if word[0] in letters), "")
    if not word.isalnum() or not alphabet or not 4 <= len(word) <= 24:
        return []
    best: list[str] = []
    most = 0
    for candidate in searcher.standing(list(_slips(word, alphabet))):
        expression = Phrase((candidate,))
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
