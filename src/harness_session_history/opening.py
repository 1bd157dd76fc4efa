"""The open operation: one cited entry with its neighbours on the branch, verified and within a budget of characters."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import islice
from typing import Any

import apsw

from .archive.branch import Tree
from .archive.entries import entry_hash
from .archive.hydration import Hydrated
from .arguments import ROLES
from .errors import CitationUnavailable, EntryNotVisible
from .evidence import Evidence
from .index.graphemes import break_before
from .index.records import SessionRow
from .index.runs import Located
from .index.trees import find, tree_columns
from .request import OpenRequest
from .response import iso
from .sessions import TEXT_ROLES
from .views import Views


class Neighbourhood:
    """The entries before and after a target, nearest first, and how many there are on each side."""

    def __init__(self, before: Sequence[int], after: Sequence[int], count_before: int, count_after: int) -> None:
        self.before, self.after = before, after
        self.count_before, self.count_after = count_before, count_after


def open_entry(connection: apsw.Connection, views: Views, request: OpenRequest) -> dict[str, Any]:
    """The part of an open answer that comes from the snapshot and the cited bytes.

    Raises SessionNotFound, EntryNotVisible, CitationUnavailable.
    """
    session = views.session(request)
    if session.source is None:
        raise CitationUnavailable(
            "the session's file is gone; only its metadata is left", hint="search without it, or restore the file"
        )
    evidence = Evidence(connection, views.catalog)
    target, around = _find(connection, evidence, session, request)
    located = evidence.locate_many([target, *around.before, *around.after])
    by_row = dict(zip((one.row for one in located), evidence.hydrate(located), strict=True))
    if by_row.get(target) is None:
        raise CitationUnavailable(
            "the cited bytes no longer say what was indexed", hint="search again with refresh=True and cite anew"
        )
    window = _Window(request.max_chars)
    window.target(by_row[target])
    window.fill([by_row.get(row) for row in around.before], [by_row.get(row) for row in around.after])
    shown_before, shown_after = window.before[::-1], window.after
    rows = list(around.before[: len(shown_before)][::-1]) + [target] + list(around.after[: len(shown_after)])
    entries = [*shown_before, by_row[target], *shown_after]
    spans = {one.row: one for one in located}
    messages = [
        _message(entry, session, text, cut, spans[row], evidence)
        for row, entry, (text, cut) in zip(
            rows,
            [entry for entry in entries if entry is not None],
            [(entry.view, False) for entry in shown_before]
            + [(window.text, window.text_cut)]
            + [(entry.view, False) for entry in shown_after],
            strict=True,
        )
    ]
    cut_before, cut_after = len(shown_before) < len(around.before), len(shown_after) < len(around.after)
    return {
        "session": views.view(session),
        "sessionId": session.session_id,
        "entryId": request.entry_id,
        "messages": messages,
        "truncated": window.text_cut or cut_before or cut_after,
        "truncatedBefore": cut_before,
        "truncatedAfter": cut_after,
        "moreBefore": around.count_before - len(shown_before),
        "moreAfter": around.count_after - len(shown_after),
        "citation": {"sessionId": session.session_id, "entryId": request.entry_id},
    }


class _Window:
    """Spends the budget: the target first, then neighbours by distance, the earlier before the later, each whole."""

    def __init__(self, budget: int) -> None:
        self.left = budget
        self.text, self.text_cut = "", False
        self.before: list[Hydrated] = []
        self.after: list[Hydrated] = []

    def target(self, entry: Hydrated | None) -> None:
        assert entry is not None
        self.text, self.text_cut = cut(entry.view, self.left)
        self.left -= len(self.text)

    def fill(self, before: list[Hydrated | None], after: list[Hydrated | None]) -> None:
        sides = [(before, self.before), (after, self.after)]
        for distance in range(max(len(before), len(after))):
            for side, taken in sides:
                # A side that has ended stays ended: what was taken is shorter than the distance.
                if distance >= len(side) or len(taken) < distance:
                    continue
                entry = side[distance]
                if entry is not None and len(entry.view) <= self.left:
                    taken.append(entry)
                    self.left -= len(entry.view)


def cut(text: str, limit: int) -> tuple[str, bool]:
    """The text, cut between grapheme clusters with ``…`` inside the limit (code points) if it is longer."""
    if len(text) <= limit:
        return text, False
    return text[: break_before(text, limit - 1) or limit - 1] + "…", True


def _message(
    entry: Hydrated, session: SessionRow, text: str, text_cut: bool, located: Located, evidence: Evidence
) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "entryId": entry.entry_id,
        "role": ROLES[entry.role],
        "text": text,
        "textTruncated": text_cut,
        "createdAt": iso(located.time),
        "citation": {"sessionId": session.session_id, "entryId": entry.entry_id},
    }
    if entry.tools:
        statuses = evidence.statuses(located, [tool.call_id for tool in entry.tools])
        shown["tools"] = [
            {"name": tool.name, "status": statuses.get(tool.call_id, "unanswered")} for tool in entry.tools
        ]
    return shown


def _find(
    connection: apsw.Connection, evidence: Evidence, session: SessionRow, request: OpenRequest
) -> tuple[int, Neighbourhood]:
    # Where the file ends with its leaf, the visible branch is the latest line of every entry on it.
    ends_with_leaf = session.leaf == session.nodes - 1
    if session.ordered and (request.branch == "visible" or ends_with_leaf):
        found = _find_in_order(connection, evidence, session, request)
        if found is not None:
            return found
        if request.branch == "visible":
            raise _not_visible(request)
    return _find_in_tree(connection, session, request)


def _not_visible(request: OpenRequest) -> EntryNotVisible:
    return EntryNotVisible(
        "no such entry is visible in this session",
        hint='branch="any" also opens entries of abandoned branches' if request.branch == "visible" else "",
    )


def _find_in_order(
    connection: apsw.Connection, evidence: Evidence, session: SessionRow, request: OpenRequest
) -> tuple[int, Neighbourhood] | None:
    """The entry on the visible branch, None if it is not on it. Where that branch has the order of the file (nearly
    always), neighbours are neighbouring rows, without a tree."""
    wanted = entry_hash(request.entry_id).to_bytes(8, "little", signed=True)
    extent = session.extent
    place = find(connection, extent, session.nodes, wanted)
    if place is None or place.kind not in TEXT_ROLES:
        return None
    target = extent.row(place.node, TEXT_ROLES[place.kind])
    low, high = extent.low, extent.high
    hidden = {row for (row,) in connection.execute("SELECT id FROM hidden WHERE id BETWEEN ? AND ?", (low, high))}
    if target in hidden:
        return None
    before = _nearest(evidence.spans.between(low, target - 1, descending=True), request.before, hidden)
    after = _nearest(evidence.spans.between(target + 1, high), request.after, hidden)
    hidden_before = sum(1 for row in hidden if row < target)
    count_before, count_after = place.before - hidden_before, place.after - (len(hidden) - hidden_before)
    return target, Neighbourhood(before, after, count_before, count_after)


def _nearest(entries: Iterable[Located], limit: int, hidden: Collection[int]) -> list[int]:
    return list(islice((one.row for one in entries if one.text and one.row not in hidden), limit))


def _find_in_tree(connection: apsw.Connection, session: SessionRow, request: OpenRequest) -> tuple[int, Neighbourhood]:
    extent = session.extent
    tree = Tree(tree_columns(connection, extent, session.nodes), unique=session.ordered)
    kinds = tree.kinds
    node = tree.find(entry_hash(request.entry_id))
    if node is None or kinds[node] not in TEXT_ROLES:
        raise _not_visible(request)
    if request.branch == "any":
        line = tree.line_through(node)
    elif tree.visible[node]:
        line = tree.visible_path
    else:
        raise _not_visible(request)
    rows = [extent.row(one, TEXT_ROLES[kinds[one]]) for one in line if kinds[one] in TEXT_ROLES]
    target = extent.row(node, TEXT_ROLES[kinds[node]])
    at = rows.index(target)
    before, after = rows[max(0, at - request.before) : at][::-1], rows[at + 1 : at + 1 + request.after]
    return target, Neighbourhood(before, after, at, len(rows) - at - 1)
