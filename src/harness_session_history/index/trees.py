"""The tree of a session as the index keeps it: columns of ids, kinds, links and marks, some nodes a row."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from ..model.entries import KIND_ASSISTANT_TEXT, KIND_USER_TEXT, Mark, find_id
from .schema import Extent, IntegrityFault, TreePart

if TYPE_CHECKING:
    import apsw

    from ..model.entries import Columns


#: Nodes of one row, at most: some kilobytes, so that several rows fill a page.
ROW_NODES = 128
#: So many ids are looked for one by one, more of them all at once.
FEW_IDS = 16


class Place(NamedTuple):
    """Where an id stands in a session: its node and kind, and how many entries with text come before and after it."""

    node: int
    kind: int
    before: int
    after: int


def split(
    first_node: int, ids: bytes, kinds: bytes, links: Mapping[int, int | None], marks: Sequence[Mark]
) -> Iterator[TreePart]:
    """Consecutive nodes as parts that fit into a row each. Arguments as in `archive.entries.Chunk`."""
    for start in range(0, len(kinds), ROW_NODES):
        end, first = start + ROW_NODES, first_node + start
        own = {node: to for node, to in links.items() if first <= node < first + ROW_NODES} if links else {}
        yield TreePart(
            first,
            ids[8 * start : 8 * end],
            kinds[start:end],
            _encoded(own, [mark for mark in marks if first <= mark[0] < first + ROW_NODES] if marks else []),
        )


def tree_columns(connection: apsw.Connection, extent: Extent, nodes: int) -> list[Columns]:
    """(ids, kinds, links, marks) of all of a session's nodes, in order; there must be as many as `nodes` says.

    Raises IntegrityFault.
    """
    columns: list[Columns] = [
        (_ids(ids, count), _kinds(kinds, count), *decoded(links))
        for count, ids, kinds, links in connection.execute(
            "SELECT nodes, ids, kinds, links FROM trees WHERE id BETWEEN ? AND ? ORDER BY id", (extent.low, extent.high)
        )
    ]
    if sum(len(kinds) for _, kinds, _, _ in columns) != nodes:
        raise IntegrityFault("a part of a tree is missing")
    return columns


def find(connection: apsw.Connection, extent: Extent, nodes: int, id_: bytes) -> Place | None:
    """Where the last entry of an (8-byte) id stands in a session of `nodes` nodes. Raises IntegrityFault."""
    low, high = extent.low, extent.high
    counted = connection.execute("SELECT sum(nodes), sum(texts) FROM trees WHERE id BETWEEN ? AND ?", (low, high))
    found, texts = counted.fetchone() or (0, 0)
    if (found or 0) != nodes:
        raise IntegrityFault("a part of a tree is missing")
    for row, ids in _holding(connection, id_, low, high):
        at = find_id(ids, id_)
        if at is None:
            continue
        kinds = _kinds(connection.execute("SELECT kinds FROM trees WHERE id=?", (row,)).get, len(ids) // 8)
        earlier = connection.execute("SELECT sum(texts) FROM trees WHERE id BETWEEN ? AND ?", (low, row - 1)).fetchone()
        before = int((earlier and earlier[0]) or 0) + _texts(kinds[:at])
        return Place(extent.node(row) + at, kinds[at], before, int(texts) - before - _texts(kinds[at : at + 1]))
    tree_columns(connection, extent, nodes)  # it must be readable before it is said to hold nothing of the kind
    return None


def id_at(connection: apsw.Connection, row: int) -> bytes:
    """The (8-byte) id of the entry of a row. Raises IntegrityFault."""
    found = connection.execute(
        "SELECT id, ids, nodes FROM trees WHERE id<=? ORDER BY id DESC LIMIT 1", (row,)
    ).fetchone()
    at = 0 if found is None else row - found[0] >> 1
    if found is None or at >= found[2]:
        raise IntegrityFault("a part of a tree is missing")
    return _ids(found[1], found[2])[8 * at : 8 * at + 8]


def holders(connection: apsw.Connection, id_: bytes) -> list[int]:
    """Rows of sessions that have an entry of an (8-byte) id, at least one of each."""
    return [row for row, ids in _holding(connection, id_, 0, (1 << 63) - 1) if find_id(ids, id_) is not None]


def has_any(connection: apsw.Connection, extent: Extent, ids: set[bytes], *, below: int) -> bool:
    """Whether any of these ids stands in a session's tree before node `below`."""
    low, high = extent.low, extent.high
    rows: Iterable[tuple[int, bytes]]
    if len(ids) <= FEW_IDS:
        rows = (found for id_ in ids for found in _holding(connection, id_, low, high))
    else:
        rows = (
            (row, _ids(packed, count))
            for row, packed, count in connection.execute(
                "SELECT id, ids, nodes FROM trees WHERE id BETWEEN ? AND ?", (low, high)
            )
        )
    for row, packed in rows:
        own = packed[: max(0, below - extent.node(row)) * 8]
        if not ids.isdisjoint(own[at : at + 8] for at in range(0, len(own), 8)):
            return True
    return False


def end_of(connection: apsw.Connection, extent: Extent) -> int:
    """How many nodes a session's tree has, by its last row."""
    last = _last(connection, extent)
    return 0 if last is None else extent.node(last[0]) + last[1]


def append(connection: apsw.Connection, extent: Extent, parts: Sequence[TreePart]) -> None:
    """Adds nodes behind those that a session has; a last row with room for the first part takes it in."""
    first, *rest = parts
    last = _last(connection, extent)
    if last is not None and last[1] + len(first.kinds) <= ROW_NODES:
        row, count, ids, kinds, links = last
        connection.execute("DELETE FROM trees WHERE id=?", (row,))
        first = TreePart(
            extent.node(row),
            _ids(ids, count) + first.ids,
            _kinds(kinds, count) + first.kinds,
            _joined(links, first.links),
        )
    connection.executemany(
        "INSERT INTO trees VALUES(?,?,?,?,?,?)",
        [
            (
                extent.row(one.first_node, 0),
                len(one.kinds),
                _texts(one.kinds),
                _stored(one.ids),
                zlib.compress(one.kinds, 1),
                one.links,
            )
            for one in (first, *rest)
        ],
    )


def _last(connection: apsw.Connection, extent: Extent) -> tuple[int, int, bytes, bytes, bytes] | None:
    return connection.execute(
        "SELECT id, nodes, ids, kinds, links FROM trees WHERE id BETWEEN ? AND ? ORDER BY id DESC LIMIT 1",
        (extent.low, extent.high),
    ).fetchone()


def _holding(connection: apsw.Connection, id_: bytes, low: int, high: int) -> Iterator[tuple[int, bytes]]:
    """(row, ids) of the rows that may hold an id, the last first."""
    for row, ids, count in connection.execute(
        "SELECT id, ids, nodes FROM trees WHERE id BETWEEN ? AND ? AND (instr(ids, ?) OR instr(ids, ?)) ORDER BY id DESC",
        (low, high, id_, _stored(id_)),
    ):
        yield row, _ids(ids, count)


def _stored(ids: bytes) -> bytes:
    """Ids as they are stored: those of 8 hex digits, which are Pi's own, in half the bytes."""
    try:
        half = bytes.fromhex(ids.decode("ascii"))
    except ValueError:
        return ids
    return half if half.hex().encode() == ids else ids


def _ids(stored: bytes, nodes: int) -> bytes:
    """Stored ids with 8 bytes each."""
    ids = stored.hex().encode() if len(stored) == 4 * nodes else stored
    if len(ids) != 8 * nodes:
        raise IntegrityFault("a part of a tree cannot be read")
    return ids


def _kinds(stored: bytes, nodes: int) -> bytes:
    try:
        kinds = zlib.decompress(stored)
    except zlib.error as error:
        raise IntegrityFault("a part of a tree cannot be read") from error
    if len(kinds) != nodes:
        raise IntegrityFault("a part of a tree cannot be read")
    return kinds


def _texts(kinds: bytes) -> int:
    return kinds.count(KIND_USER_TEXT) + kinds.count(KIND_ASSISTANT_TEXT)


def decoded(links: bytes) -> tuple[dict[int, int | None], list[Mark]]:
    """The links and marks of a part. Raises IntegrityFault."""
    try:
        return _decode(links)
    except msgspec.DecodeError as error:
        raise IntegrityFault("a part of a tree cannot be read") from error


_decode = msgspec.msgpack.Decoder(tuple[dict[int, int | None], list[Mark]]).decode


def _encoded(links: Mapping[int, int | None], marks: Sequence[Mark]) -> bytes:
    return msgspec.msgpack.encode((links, marks))


def _joined(one: bytes, two: bytes) -> bytes:
    """The links and marks of two parts that follow each other, as one."""
    links, marks = decoded(one)
    more_links, more_marks = decoded(two)
    return _encoded(links | more_links, marks + more_marks)
