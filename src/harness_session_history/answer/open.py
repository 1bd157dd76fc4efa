"""The open operation: one cited entry with its neighbours on the branch, verified and within a budget of characters."""

from __future__ import annotations

from collections.abc import Sequence

import apsw

from ..archive.hydration import Hydrated
from ..errors import CitationUnavailable, EntryNotVisible
from ..index.packing import Located
from ..index.schema import SessionRow
from ..request import ROLES, OpenRequest
from ..response import Message, OpenBody, iso
from ..text.clean import cut
from .branch import Neighbourhood, find_around
from .citations import Evidence
from .sessions import SessionViews


def open_entry(connection: apsw.Connection, views: SessionViews, request: OpenRequest) -> OpenBody:
    """The part of an open answer that comes from the snapshot and the cited bytes.

    Raises SessionNotFound, EntryNotVisible, CitationUnavailable.
    """
    files = views.files(request)
    evidence = Evidence(connection, views.catalog)
    session, target, around, located, by_row = _read(connection, evidence, files, request)
    by_row = {row: None if entry is None else views.shown(entry) for row, entry in by_row.items()}
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


def _read(
    connection: apsw.Connection, evidence: Evidence, files: Sequence[SessionRow], request: OpenRequest
) -> tuple[SessionRow, int, Neighbourhood, list[Located], dict[int, Hydrated | None]]:
    """The file of the session that has the entry, the first whose bytes still say so; the entry's row, what is around it
    there, where all of this lies, and what it says."""
    refused: EntryNotVisible | CitationUnavailable | None = None
    for session in files:
        if session.source is None:
            refused = CitationUnavailable(
                "the session's file is gone; only its metadata is left", hint="search without it, or restore the file"
            )
            break
        try:
            target, around = find_around(connection, evidence, session, request)
        except EntryNotVisible as error:
            refused = refused or error
            continue
        located = evidence.locate_many([target, *around.before, *around.after])
        by_row = dict(zip((one.row for one in located), evidence.hydrate(located), strict=True))
        if by_row.get(target) is not None:
            return session, target, around, located, by_row
        refused = CitationUnavailable(
            "the cited bytes no longer say what was indexed", hint="search again with refresh=True and cite anew"
        )
    assert refused is not None
    raise refused


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


def _message(
    entry: Hydrated, session: SessionRow, text: str, text_cut: bool, located: Located, evidence: Evidence
) -> Message:
    shown: Message = {
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
