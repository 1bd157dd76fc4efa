"""The tree of a session as the index keeps it: columns of ids, kinds, links and marks, a few rows each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import apsw
import msgspec

from .soundness import Unsound

if TYPE_CHECKING:
    from ..archive.branch import Columns


def tree_columns(connection: apsw.Connection, session: int, nodes: int | None = None) -> list[Columns]:
    """(ids, kinds, links, marks) of all of a session's nodes, in order.

    There must be as many as the session has, or as `nodes` says. Raises Unsound.
    """
    if nodes is None:
        row = connection.execute("SELECT nodes FROM sessions WHERE key=?", (session,)).fetchone()
        nodes = int(row[0]) if row else 0
    rows = connection.execute("SELECT ids, kinds, links FROM trees WHERE session=? ORDER BY first_node", (session,))
    columns: list[Columns] = [(ids, kinds, *msgspec.msgpack.decode(links, strict=False)) for ids, kinds, links in rows]
    if sum(len(kinds) for _, kinds, _, _ in columns) != nodes:
        raise Unsound("a part of a tree is missing")
    return columns


def joined_links(one: bytes, two: bytes) -> bytes:
    """The links and marks of two parts that follow each other, as one."""
    links, marks = msgspec.msgpack.decode(one)
    more_links, more_marks = msgspec.msgpack.decode(two)
    links.update(more_links)
    return msgspec.msgpack.encode([links, marks + more_marks])
