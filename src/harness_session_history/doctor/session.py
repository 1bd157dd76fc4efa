"""Why a session or an entry is not found: every reason that holds, each in a sentence, with a command where one helps."""

from __future__ import annotations

import os
from typing import Any

from ..index.schema import FOREIGN, GONE, UNREADABLE, SessionRow
from ..model.names import named_id
from .case import Case, shown, usual_settings, why_unreadable
from .entry import EntryTrace, Finding, text_line
from .inspection import named_files


def explain(case: Case, session_id: str, entry_id: str | None) -> dict[str, Any]:
    """``{sessionId, entryId, found, reasons, files, command}``; `found` is whether a plain call finds it now.

    Codes of a session: ``not_indexed, stale, current, deleted, other_user, outside_roots, unavailable, unreadable,
    not_a_session, other_id, index_unavailable, unknown``; of an entry: ``damaged, other_branch, not_text, superseded,
    not_indexed, changed, not_citable, elsewhere, unknown_entry``.
    """
    key = case.catalog.key_by_id.get(session_id)
    session = None if key is None else case.catalog.sessions[key]
    files = _files(case, session_id)
    finding = Finding()
    if case.connection is None:
        finding.add(
            "index_unavailable",
            "There is no index that can be read: this is what the files alone say.",
            case.command("doctor"),
        )
    if session is None:
        _unknown_session(case, session_id, files, finding)
    else:
        _known_session(case, session, files, finding)
    there = session is not None
    if entry_id is not None:
        own = [case.catalog.sessions[key] for key in case.catalog.files_of(session_id)]
        holding = next(
            (one for one in own if one.path is not None and text_line(one.path, entry_id) is not None), session
        )
        there = EntryTrace(case, holding, session_id, entry_id, files, finding).look()
    opening = None
    if there and all(reason["code"] in _WIDENED for reason in finding.reasons):
        words = ["list", "--session-id", session_id] if entry_id is None else ["open", session_id, entry_id]
        opening = case.command(*words, *finding.options)
    return {
        "sessionId": session_id,
        "entryId": entry_id,
        "found": opening is not None and not finding.options,
        "reasons": finding.reasons,
        "files": [{"path": path, "state": state} for path, state in files],
        "command": opening,
    }


#: Reasons that a call can be told to pass over, and one that hides only what is newer than the index.
_WIDENED = {"current", "deleted", "other_branch", "stale"}


def _files(case: Case, session_id: str) -> list[tuple[bytes, str]]:
    """Every file that has to do with a session id, and what became of it."""
    states: dict[bytes, str] = {}
    for path, row in case.catalog.sources.items():
        if row.session_id == session_id and row.state != GONE:
            states[path] = _state(case, path)
    for path, file in case.walk.files.items():
        if file.named_id == session_id:
            states.setdefault(path, _state(case, path))
    for path, reason in case.walk.unavailable:
        if named_id(os.path.basename(path)) == session_id:
            states[path] = f"unavailable: {reason}"
    for root in case.settings.roots:
        for name, owner in named_files(root.path, session_id):
            path = os.fsencode(name)
            if path not in states and named_id(os.path.basename(path)) == session_id:
                states[path] = _passed_over(case, path, owner)
    return sorted(states.items())


def _state(case: Case, path: bytes) -> str:
    file, row = case.walk.files.get(path), case.catalog.sources.get(path)
    if file is None:
        return "gone" if os.path.dirname(path) in case.walk.folders else "out of reach"
    if row is None or row.state == GONE:
        return "not indexed"
    if row.identity != file.state:
        return "changed since it was indexed"
    if row.state == FOREIGN:
        return "not a session"
    if row.state == UNREADABLE:
        return f"unreadable: {why_unreadable(case, path)}"
    return (
        "duplicate"
        if row.session in case.catalog.sessions and case.catalog.sessions[row.session].duplicate
        else "indexed"
    )


def _passed_over(case: Case, path: bytes, owner: int | None) -> str:
    if path in case.walk.aliases:
        return f"another name of {shown(case.walk.aliases[path])}"
    if owner is not None and hasattr(os, "geteuid") and owner != os.geteuid():
        return f"of another user (user id {owner})"
    return "not counted"


def _unknown_session(case: Case, session_id: str, files: list[tuple[bytes, str]], finding: Finding) -> None:
    """A session that is not in the index: told by the files that are named after it."""
    refresh = case.command("refresh", "--session-id", session_id)
    for raw, state in files:
        path = shown(raw)
        if state.startswith("of another user"):
            finding.add("other_user", f"Its file {path} is {state}; only one's own sessions count.")
        elif state == "not a session":
            finding.add("not_a_session", f"Its file {path} does not begin like a session, so it is none.")
        elif state.startswith("unreadable"):
            finding.add("unreadable", f"Its file {path} cannot be read ({state.partition(': ')[2]}).")
        elif state.startswith("unavailable"):
            finding.add("unavailable", f"Its file {path} is not read: {state.partition(': ')[2]}.")
        elif state in ("not indexed", "changed since it was indexed"):
            finding.add("not_indexed", f"Its file {path} is not indexed yet.", refresh)
        elif state in ("indexed", "duplicate"):
            row = case.catalog.sources[raw]
            finding.add("other_id", f"The file {path} is named after it, but its header says session {row.session_id}.")
    if session_id == case.settings.current_session:
        finding.add("current", "It is the calling session, which is left out.")
        finding.options.append("--include-current")
    if finding.reasons and not (len(finding.reasons) == 1 and finding.reasons[0]["code"] == "index_unavailable"):
        return
    for root in case.walk.roots:
        if not root.reachable and root.reported:
            finding.add("unavailable", f"It may lie under {shown(root.path)}, which cannot be read ({root.reason}).")
    said = case.registry.get(session_id)
    if said is not None:
        where = f" and places it at {said.file}" if said.file else ""
        finding.add("unavailable", f"The registry knows it{where}; no file under the roots has this id.")
    elsewhere = _outside(case, session_id)
    if elsewhere is not None:
        finding.add("outside_roots", f"The file {elsewhere} is named after it, but lies outside the roots.")
    pending = case.difference.counts()["missing"]
    if pending:
        finding.add(
            "not_indexed", f"It may be in one of {pending} files that are not indexed yet.", case.command("refresh")
        )
    if not finding.reasons or finding.reasons[-1]["code"] == "index_unavailable":
        places = ", ".join(shown(root.path) for root in case.settings.roots)
        finding.add("unknown", f"No file under {places} has this session id.", case.command("list"))


def _outside(case: Case, session_id: str) -> str | None:
    """A file in Pi's own places, where these are not among the roots."""
    usual = usual_settings("SESSION_HISTORY_ROOTS")
    known = {root.path for root in case.settings.roots}
    for root in usual.roots if usual is not None else ():
        if root.path not in known:
            for path, _ in named_files(root.path, session_id):
                return shown(path)
    return None


def _known_session(case: Case, session: SessionRow, files: list[tuple[bytes, str]], finding: Finding) -> None:
    said = case.registry.get(session.session_id)
    refresh = case.command("refresh", "--session-id", session.session_id)
    file = case.walk.files.get(session.path) if session.path is not None else None
    deleted = ""
    if said is not None and said.deleted_at:
        deleted = f"The registry says that it was deleted ({said.deleted_at})."
    elif session.source is None:
        deleted = "Its file is gone; only its metadata is left, its text was dropped from the index."
    elif session.tombstoned:
        deleted = "The name of its file says that it was deleted."
    elif file is None and session.path is not None:
        if os.path.dirname(session.path) in case.walk.folders:
            deleted = f"Its file {shown(session.path)} is gone; the index will say so after the next refresh."
        else:
            finding.add(
                "unavailable", f"Its file {shown(session.path)} is out of reach: a folder above it cannot be read."
            )
    if deleted:
        finding.add("deleted", deleted)
        finding.options.append("--include-deleted")
    if session.session_id == case.settings.current_session:
        finding.add("current", "It is the calling session, which is left out.")
        finding.options.append("--include-current")
    if session.path is not None and (session.path, "changed since it was indexed") in files:
        text = f"Its file {shown(session.path)} has changed since it was indexed: what was added later is not found."
        finding.add("stale", text, refresh)
    waiting = next((path for path, state in files if state == "not indexed"), None)
    if waiting is not None:
        finding.add("not_indexed", f"Another file of it, {shown(waiting)}, is not indexed yet.", refresh)
