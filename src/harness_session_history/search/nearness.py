"""How near to each other the terms of a query stand in one entry, by their places in the index."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

#: Weights: the terms stand TOGETHER, and IN_ORDER of the query; half of it where HALF other words stand between them. PHRASE:
#: no word stands between them, which tells more than anything else.
TOGETHER, IN_ORDER, HALF, PHRASE = 2.0, 1.0, 6, 10.0


def nearness(places: Sequence[Sequence[tuple[int, int]]]) -> float:
    """By what the score of an entry is multiplied: 1 or more. `places`: the first and the last word of each place of each
    term, in the order of the query."""
    starts, ends = [-1] * len(places), [0] * len(places)
    best = 0.0
    for start, end, term in sorted([(start, end, term) for term, some in enumerate(places) for start, end in some]):
        starts[term], ends[term] = start, end
        first = min(starts)
        if first >= 0:
            words = sum(ends) - sum(starts) + len(places)
            between = max(0, max(ends) - first + 1 - words)
            in_order = all(one < other for one, other in pairwise(starts))
            worth = (TOGETHER + IN_ORDER * in_order) / (1 + between / HALF)
            best = max(best, worth + PHRASE * (in_order and not between))
    return 1 + best
