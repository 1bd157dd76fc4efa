"""What an index says, as plain values that do not depend on how it came about: for comparing one index with another."""

from __future__ import annotations

import asyncio
import os
from collections import defaultdict
from itertools import product
from pathlib import Path
from typing import Any

import apsw
import msgspec

from harness_session_history import SessionHistory
from harness_session_history.index.schema import GONE, SESSION, Extent, check
from harness_session_history.index.spans import Spans
from harness_session_history.index.trees import tree_columns
from harness_session_history.model.entries import Facts

_SESSION = (
    "key, slots, session_id, cwd, name, parent, child, parent_path, path, tombstoned, started, first_time, last_time, messages, "
    "nodes, leaf, ordered, untimed, size, duplicate"
)
_SOURCE = (
    "path, dev, ino, size, mtime_ns, ctime_ns, state, child, parent_path, tombstoned, session_id, session IS NOT NULL, "
    "damaged, facts"
)


def contents(index: Path) -> dict[str, Any]:
    """Everything that matters in an index: what is said of files and sessions, entries, trees and every token.

    Sessions that are only remembered (their file is gone) and files that are gone are left out.
    """
    connection = apsw.Connection(str(index), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        check(connection, thorough=True)
        connection.execute("INSERT INTO search(search, rank) VALUES('integrity-check', 0)")
        connection.execute("CREATE VIRTUAL TABLE temp.tokens USING fts5vocab(main, search, instance)")
        rows = connection.execute(f"SELECT {_SOURCE} FROM sources WHERE state<>{GONE}")
        sources = {row[0]: _source(row) for row in rows if os.path.exists(row[0])}
        tokens: dict[int, list[tuple[int, int, str]]] = defaultdict(list)
        for term, row, column, offset in connection.execute("SELECT term, doc, col, offset FROM tokens"):
            tokens[row].append((column, offset, term))
        shadowed = {row for (row,) in connection.execute("SELECT id FROM shadowed")}
        hidden = {row for (row,) in connection.execute("SELECT id FROM hidden")}
        entries: dict[int, list[Any]] = defaultdict(list)
        for one in Spans(connection).between(0, (1 << 63) - 1):
            said = one.node, one.role, *one[2:], one.row in hidden, one.row in shadowed, sorted(tokens.pop(one.row, ()))
            entries[one.session].append(said)
        assert not tokens, "tokens without an entry"
        sessions = {}
        for key, slots, *said in connection.execute(f"SELECT {_SESSION} FROM sessions WHERE source IS NOT NULL"):
            tree = _tree(connection, Extent(key, slots), said[-6])
            sessions[said[6]] = {"said": said, "entries": entries.pop(key, []), "tree": tree}
        assert not entries, "entries without a session"
        return {"sources": sources, "sessions": sessions}
    finally:
        connection.close()


def _source(row: Any) -> tuple[Any, ...]:
    *said, facts = row
    state = said[6]
    return *said, msgspec.msgpack.decode(facts, type=Facts) if facts is not None and state == SESSION else facts


def _tree(connection: apsw.Connection, extent: Extent, nodes: int) -> tuple[Any, ...]:
    columns = tree_columns(connection, extent, nodes)
    links: dict[int, int | None] = {}
    marks: list[Any] = []
    for _, _, some_links, some_marks in columns:
        links |= some_links
        marks += [tuple(mark) for mark in some_marks]
    return b"".join(one[0] for one in columns), b"".join(one[1] for one in columns), links, marks


SORTS = ("relevance", "newest", "oldest")


def answers(history: SessionHistory, *queries: str, parents: bool = True) -> list[Any]:
    """What a history says without looking at files again, apart from what is remembered of deleted files: where there are
    some, leave out `parents`."""

    async def ask() -> list[Any]:
        said: list[Any] = [(await history(operation="list", limit=20))["results"]]
        for query, branch, sort, deleted in product(queries, ("visible", "any"), SORTS, (False, True)):
            answer = await history(query=query, limit=3, sort=sort, branch=branch, include_deleted=deleted)  # type: ignore[arg-type]
            said.append({k: v for k, v in answer.items() if k not in ("freshness", "complete")})
        return said

    said = asyncio.run(ask())
    return said if parents else _without_parents(said)


def _without_parents(value: Any) -> Any:
    """An answer without what session views say of the sessions above."""
    if isinstance(value, dict):
        left_out = ("kind", "depth", "lineage", "parentSessionId")
        return {k: _without_parents(v) for k, v in value.items() if k not in left_out}
    return [_without_parents(one) for one in value] if isinstance(value, list) else value


def differences(one: Any, other: Any, at: str = "") -> list[str]:
    """Where two such values differ, for a message that can be read."""
    if isinstance(one, dict) and isinstance(other, dict):
        found = [f"{at}: {key!r} is on one side only" for key in sorted(one.keys() ^ other.keys(), key=str)]
        return found + [
            d for key in one.keys() & other.keys() for d in differences(one[key], other[key], f"{at}/{key!r}")
        ]
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)) and len(one) == len(other):
        return [d for n, (a, b) in enumerate(zip(one, other, strict=True)) for d in differences(a, b, f"{at}[{n}]")]
    return [] if one == other else [f"{at}: {one!r} is not {other!r}"]
