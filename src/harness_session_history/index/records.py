"""What the index is given and what it knows, as plain values. No SQL, no files."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import NamedTuple

from msgspec import Struct

from .schema import SLOT_SHIFT

#: Length of the hash of an entry.
KEY_BYTES = 8


class Extent(NamedTuple):
    """The rows of one session: so many slots from its key on."""

    key: int
    slots: int

    @property
    def low(self) -> int:
        """The first row."""
        return self.key << SLOT_SHIFT

    @property
    def high(self) -> int:
        """The last row."""
        return (self.key + self.slots << SLOT_SHIFT) - 1

    @property
    def room(self) -> int:
        """How many nodes it has room for."""
        return self.slots << SLOT_SHIFT - 1

    def row(self, node: int, role: int) -> int:
        return self.low + (node << 1 | role)

    def node(self, row: int) -> int:
        return row - self.low >> 1


def slots_for(nodes: int) -> int:
    """How many slots so many nodes take."""
    return max(1, -(-nodes >> SLOT_SHIFT - 1))


class Run(NamedTuple):
    """Consecutive user or assistant entries of one session as they are stored (see runs.py), but for the session:
    ``first`` is the place of the first (``node << 1 | role``), ``low`` and ``high`` bound the times, ``keys`` are the
    hashes of the entries with text."""

    first: int
    low: int
    high: int
    packed: bytes
    keys: bytes


class Entries(NamedTuple):
    """User and assistant entries ready to be written, ascending by place; and the analysed text of those that have any."""

    runs: list[Run]
    text_places: list[int]
    bodies: list[str]
    wholes: list[str]


class TreePart(NamedTuple):
    """Consecutive nodes of one transcript in columns, see the tables."""

    first_node: int
    ids: bytes
    kinds: bytes
    links: bytes  # msgpack of [links, marks]


class SourceRow(Struct, frozen=True, gc=False):
    """What the snapshot says of one file."""

    id: int
    path: bytes
    identity: tuple[int, int, int, int, int]
    state: int
    child: bool
    parent_path: bytes | None
    tombstoned: bool
    stamp: int
    session_id: str | None
    session: int | None
    last_time: int | None
    damaged: int
    indexed_at: int


class SessionRow(Struct, frozen=True, gc=False):
    """What the snapshot says of one session. Times are milliseconds since the epoch, UTC."""

    key: int
    slots: int
    session_id: str
    source: int | None
    cwd: str | None
    name: str | None
    parent: str | None
    child: bool
    parent_path: bytes | None
    path: bytes | None
    tombstoned: bool
    started: int | None
    first_time: int | None
    last_time: int | None
    messages: int
    nodes: int
    leaf: int | None
    ordered: bool
    untimed: bool

    @property
    def extent(self) -> Extent:
        return Extent(self.key, self.slots)

    @property
    def deleted(self) -> bool:
        return bool(self.tombstoned) or self.source is None

    @property
    def activity(self) -> int | None:
        """Latest message, else the header's time."""
        return self.last_time if self.last_time is not None else self.started


def integers(values: Sequence[int]) -> array[int]:
    """Values as the buffer that ``apsw.carray`` binds. It takes no empty one: -1, which no row has, stands for none."""
    return array("q", values or (-1,))
