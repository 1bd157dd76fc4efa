"""The list operation: sessions by their latest activity, each with the first and the last entry of its visible branch."""

from __future__ import annotations

import re

import apsw

from ..archive.branch import Tree
from ..index.schema import SessionRow
from ..index.trees import id_at, tree_columns
from ..request import ListRequest
from ..response import ListedSession
from .branch import hidden_rows, text_rows, text_rows_along
from .citations import Evidence
from .sessions import SessionViews

#: Ids of 8 bytes stand in the index as they are; such as these, which are Pi's, need not be read in the transcript.
_PLAIN_ID = re.compile(rb"[0-9a-f]{8}")


def listed(connection: apsw.Connection, views: SessionViews, request: ListRequest) -> tuple[list[ListedSession], bool]:
    """The session views of a list answer, latest activity first, and whether there are more."""
    selected, sessions = views.selected_keys(request), views.catalog.sessions
    latest = [sessions[key] for key in views.catalog.latest_keys() if key in selected]
    if views.catalog.shared:
        latest = [one for one in latest if views.catalog.leading(one.key) is one]
    if request.since is not None or request.until is not None:
        latest = [one for one in latest if _within(one.activity, request.since, request.until)]
    evidence = Evidence(connection, views.catalog)
    results: list[ListedSession] = []
    for session in latest[: request.limit]:
        first, last = _ends(evidence, session)
        results.append({**views.view(session), "firstEntryId": first, "lastEntryId": last})
    return results, len(latest) > request.limit


def _within(moment: int | None, since: int | None, until: int | None) -> bool:
    if since is None and until is None:
        return True
    return moment is not None and (since is None or moment >= since) and (until is None or moment < until)


def _ends(evidence: Evidence, session: SessionRow) -> tuple[str | None, str | None]:
    """Ids of the first and the last user or assistant entry with text on the visible branch; None without one, or where its
    id is none of Pi's and the transcript no longer says it."""
    connection, extent = evidence.connection, session.extent
    if not session.messages or session.source is None:
        return None, None
    if session.ordered:
        hidden = hidden_rows(connection, session)
        found = [
            next(text_rows(evidence, extent.low, extent.high, hidden, descending=descending), None)
            for descending in (False, True)
        ]
    else:
        tree = Tree(tree_columns(connection, extent, session.nodes))
        rows = text_rows_along(tree, extent, tree.visible_path)
        found = [rows[0], rows[-1]] if rows else [None, None]
    return _id(evidence, found[0]), _id(evidence, found[1])


def _id(evidence: Evidence, row: int | None) -> str | None:
    if row is None:
        return None
    hashed = id_at(evidence.connection, row)
    if _PLAIN_ID.fullmatch(hashed):
        return hashed.decode()
    located = evidence.locate(row)
    entry = None if located is None else evidence.hydrate([located])[0]
    return None if entry is None else entry.entry_id
