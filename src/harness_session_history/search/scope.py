"""Which rows of the index a search may find."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ..index.schema import SLOT_SHIFT, integers


@dataclass(frozen=True)
class Scope:
    """Which rows may be found. `sessions` are the keys allowed (None: all but `excluded`); of those that are `partly`
    within the times asked for, each entry's time is looked at. Entries off the visible branch are left out, unless
    `off_branch`; with `only_off_branch` all others are.

    `once`: an entry that several files of a session hold is found in one of them.

    Within one session, `span` (first and last row) or `rows` (each of them) bound what may be found further.
    """

    sessions: frozenset[int] | None = None
    excluded: frozenset[int] = frozenset()
    role: int | None = None
    since: int | None = None
    until: int | None = None
    partly: frozenset[int] = frozenset()
    off_branch: bool = False
    only_off_branch: bool = False
    once: bool = False
    span: tuple[int, int] | None = None
    rows: tuple[int, ...] | None = None

    def within(self, session: int) -> bool:
        return session not in self.excluded if self.sessions is None else session in self.sessions

    def conditions(self, slots_of: Callable[[Iterable[int]], list[int]]) -> tuple[str, list[array[int]]]:
        """What holds for a row of a session that is allowed, as SQL over rows of `search`, and what is bound in it.

        `slots_of` gives the slots of sessions.
        """
        parts: list[str] = []
        values: list[array[int]] = []
        # A plus keeps FTS5 from searching once for each of some rows.
        if self.span is not None:
            parts.append(f" AND rowid BETWEEN {int(self.span[0])} AND {int(self.span[1])}")
        if self.rows is not None:
            parts.append(" AND +rowid IN (SELECT value FROM carray(?))")
            values.append(integers(self.rows))
        if self.role is not None:
            parts.append(f" AND (rowid & 1) = {int(self.role)}")
        if self.only_off_branch:
            parts.append(" AND +rowid IN (SELECT id FROM hidden)")
        elif not self.off_branch:
            parts.append(" AND rowid NOT IN (SELECT id FROM hidden)")
        if self.once:
            parts.append(" AND rowid NOT IN (SELECT id FROM shadowed)")
        if self.partly:
            low = -(1 << 62) if self.since is None else self.since
            high = (1 << 62) if self.until is None else self.until
            parts.append(
                f" AND ((rowid >> {SLOT_SHIFT}) NOT IN (SELECT value FROM carray(?))"
                f" OR is_within(rowid, {int(low)}, {int(high)}))"
            )
            values.append(integers(slots_of(sorted(self.partly))))
        return "".join(parts), values
