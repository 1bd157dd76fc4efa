"""The tree of one transcript: leaf, visible branch, lines of descent, context boundary (contract sections 6 and 11).

Almost every entry's parent is the entry before it, so the tree is kept as runs: a run is a stretch of nodes that
follow one another, and only the first node of a run has a parent elsewhere. Walking up costs the number of runs, not of
entries.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Final, Literal, NamedTuple

from ..model.entries import Columns, Mark, find_id

_ROOT: Final = -1


class Boundary(NamedTuple):
    """Where the active context begins: ``node`` is the first entry still in context, or the reset itself."""

    kind: Literal["compaction", "reset"]
    node: int


#: So many ids are looked for one by one before all of them are put into a dictionary.
LOOKED_UP = 64
#: So many ids are compared with each other in one go.
AT_ONCE = 50_000


class Tree:
    """The entries of one transcript as a tree, built from the columns of its chunks in order.

    ``unique`` says that no two entries are known to share an id, which saves looking for such pairs.
    """

    def __init__(self, chunks: Iterable[Columns], *, unique: bool = False) -> None:
        ids: list[bytes] = []
        kinds: list[bytes] = []
        self._links: dict[int, int | None] = {}
        self.marks: list[Mark] = []
        for chunk_ids, chunk_kinds, links, marks in chunks:
            ids.append(chunk_ids)
            kinds.append(chunk_kinds)
            self._links.update(links)
            self.marks += marks
        self.ids = b"".join(ids)
        self.kinds = b"".join(kinds)
        self._unique = unique
        self._looked_up = 0

    def __len__(self) -> int:
        return len(self.kinds)

    @cached_property
    def _nodes(self) -> dict[int, int]:
        return dict(zip(_numbers(self.ids), range(len(self))))

    def find(self, entry_hash: int) -> int | None:
        """The node of an id; the last one where several carry it."""
        if self._looked_up < LOOKED_UP and "_nodes" not in self.__dict__:
            # A dictionary of all ids costs far more than a few looks into the packed ones.
            self._looked_up += 1
            return find_id(self.ids, entry_hash.to_bytes(8, "little", signed=True))
        return self._nodes.get(entry_hash)

    def hash_of(self, node: int) -> int:
        """The id hash of a node."""
        return int.from_bytes(self.ids[8 * node : 8 * node + 8], "little", signed=True)

    @cached_property
    def superseded(self) -> frozenset[int]:
        """Nodes whose id a later node carries too; they are on no branch."""
        return frozenset() if self._unique else superseded_nodes(self.ids)

    @cached_property
    def _parents(self) -> dict[int, int]:
        """Parent of each node that begins a run; ``_ROOT`` also where the parent is missing."""
        parents = {0: _ROOT}
        # Only the few ids that are somebody's parent elsewhere: a dictionary of all would cost far more memory.
        wanted = {target for target in self._links.values() if target is not None}
        places = {value: node for node, value in enumerate(_numbers(self.ids)) if value in wanted} if wanted else {}
        for node, target in self._links.items():
            parents[node] = _ROOT if target is None else places.get(target, _ROOT)
        for node in self.superseded:
            if node + 1 < len(self) and node + 1 not in self._links:
                parents[node + 1] = self._nodes[self.hash_of(node)]
        return parents

    @cached_property
    def _starts(self) -> list[int]:
        return sorted(self._parents)

    def _start_of(self, node: int) -> int:
        starts = self._starts
        return starts[bisect_right(starts, node) - 1]

    def parent(self, node: int) -> int | None:
        """The node above, None for a root and where the parent is missing."""
        found = self._parents.get(node, node - 1)
        return None if found == _ROOT else found

    @cached_property
    def leaf(self) -> int | None:
        """The node at which the visible branch ends: the last one, or where a stored leaf entry that is last points.

        None for an empty tree and for a leaf before the root. A stored leaf whose target is missing stands for itself.
        """
        node = len(self) - 1
        targets = {at: target for at, mark, target in self.marks if mark == "leaf"}
        seen: set[int] = set()
        while node in targets and node not in seen:
            seen.add(node)
            target = targets[node]
            if target is None:
                return None
            found = self.find(target)
            if found is None:
                break
            node = found
        return node if node >= 0 else None

    def _ranges(self, node: int) -> list[range]:
        """The way from a root down to ``node`` as ranges of consecutive nodes. Ends at a cycle or a missing parent."""
        found: list[range] = []
        seen = bytearray(len(self))
        while node != _ROOT:
            start = self._start_of(node)
            again = seen.rfind(1, start, node + 1)
            if again >= 0:
                if again < node:
                    found.append(range(again + 1, node + 1))
                break
            found.append(range(start, node + 1))
            seen[start : node + 1] = b"\1" * (node + 1 - start)
            node = self._parents[start]
        found.reverse()
        return found

    def path(self, node: int) -> list[int]:
        """The nodes from a root to ``node``."""
        return [n for part in self._ranges(node) for n in part]

    @cached_property
    def _visible_ranges(self) -> list[range]:
        return [] if self.leaf is None else self._ranges(self.leaf)

    @cached_property
    def visible(self) -> bytes:
        """One byte per node: 1 on the visible branch, else 0."""
        mask = bytearray(len(self))
        for part in self._visible_ranges:
            mask[part.start : part.stop] = b"\1" * len(part)
        return bytes(mask)

    @property
    def visible_path(self) -> list[int]:
        """The nodes of the visible branch from root to leaf."""
        return [n for part in self._visible_ranges for n in part]

    @cached_property
    def ordered(self) -> bool:
        """Whether the visible branch runs in file order (it does unless a parent lies after its child)."""
        parts = self._visible_ranges
        return all(a.stop <= b.start for a, b in pairwise(parts))

    def position(self, node: int) -> int | None:
        """How many nodes lie before ``node`` on the visible branch, None if it is not on it."""
        if not 0 <= node < len(self) or not self.visible[node]:
            return None
        before = 0
        for part in self._visible_ranges:
            if node in part:
                return before + node - part.start
            before += len(part)
        return None

    def line_through(self, node: int) -> list[int]:
        """The ancestors of ``node``, itself, and its latest line of descendants (the one that holds the newest).

        Of entries that a later one of the same id has replaced, none is a descendant.
        """
        return self.path(self._newest_below(node))

    def _newest_below(self, node: int) -> int:
        starts = self._starts
        ends = [start - 1 for start in starts[1:]] + [len(self) - 1]
        above: dict[int, bool] = {}
        superseded = self.superseded
        for start, end in zip(reversed(starts), reversed(ends)):
            # Within a run everything hangs below its first node, so the last node of the run stands for all of it. Only
            # that one can have been replaced: what follows a replaced node hangs elsewhere and begins a run.
            end -= end in superseded
            if end < start:
                continue
            walked: list[int] = []
            at, found = end, False
            while True:
                if start <= node <= at:
                    found = True
                    break
                if start in above:
                    found = above[start]
                    break
                above[start] = False
                walked.append(start)
                at = self._parents[start]
                if at == _ROOT:
                    break
                start = self._start_of(at)
            for passed in walked:
                above[passed] = found
            if found:
                return end
        return node

    def boundary(self) -> Boundary | None:
        """The context boundary: by the newest compaction or reset on the visible branch, None without one."""
        newest: tuple[int, Mark] | None = None
        for mark in self.marks:
            position = None if mark[1] == "leaf" else self.position(mark[0])
            if position is not None and (newest is None or position > newest[0]):
                newest = (position, mark)
        if newest is None:
            return None
        node, kind, target = newest[1]
        if kind != "compaction":
            return Boundary("reset", node)
        kept = None if target is None else self.find(target)
        before = None if kept is None else self.position(kept)
        return Boundary("compaction", node if kept is None or before is None or before >= newest[0] else kept)


def superseded_nodes(ids: bytes) -> frozenset[int]:
    """Places of packed ids (8 bytes each) that occur again further on."""
    numbers = _numbers(ids)
    if _all_differ(numbers):
        return frozenset()
    last = dict(zip(numbers, range(len(numbers))))
    return frozenset(place for place, number in enumerate(numbers) if last[number] != place)


def _all_differ(numbers: Sequence[int]) -> bool:
    """Whether no number occurs twice; a part of them at a time, as a set of very many takes much memory."""
    if len(numbers) <= AT_ONCE:
        return len(set(numbers)) == len(numbers)
    parts = [array("q") for _ in range(1 + len(numbers) // AT_ONCE)]
    for number in numbers:
        parts[number % len(parts)].append(number)
    return all(len(set(own)) == len(own) for own in parts)


def _numbers(ids: bytes) -> Sequence[int]:
    if sys.byteorder == "little":
        return memoryview(ids).cast("q")
    numbers = array("q", ids)
    numbers.byteswap()
    return numbers
