"""Why a session or an entry is not found: the real `list` and `open` are asked with each widening, and what the files say
tells the reason where none of them finds it. Every reason that holds, each in a sentence, with a command where one helps."""

from __future__ import annotations

import os
from itertools import chain, combinations
from typing import Any

from ..answer.list import listed
from ..answer.open import open_entry
from ..answer.sessions import SessionViews
from ..archive.files import Unreadable
from ..errors import CitationUnavailable, SessionHistoryError
from ..index.schema import FOREIGN, GONE, UNREADABLE, SessionRow
from ..index.trees import holders
from ..model.entries import entry_hash
from ..model.names import named_id
from ..request import ListRequest, OpenRequest, build_request
from .case import Case, for_shell, shown, usual_settings, why_unreadable
from .inspection import Inspection, inspect, named_files

#: What a call can be told, to find what a plain one does not: the reason that this was needed, argument, value, option.
WIDENINGS = (
    ("deleted", "include_deleted", True, ["--include-deleted"]),
    ("current", "include_current", True, ["--include-current"]),
    ("other_branch", "branch", "any", ["--branch", "any"]),
)
_CURRENT = "It is the calling session, which is left out."
#: Other sessions that hold an entry of the id and are named.
ELSEWHERE = 5
_NO_INDEX, _DELETED = "index_unavailable", "deleted"


def explain(case: Case, session_id: str, entry_id: str | None) -> dict[str, Any]:
    """``{sessionId, entryId, found, reasons, files, command}``; `found` is whether a plain call finds it now.

    Codes of a session: ``not_indexed, stale, current, deleted, other_user, outside_roots, unavailable, unreadable,
    not_a_session, other_id, index_unavailable, unknown``; of an entry: ``damaged, other_branch, not_text, superseded,
    """
    return _Explanation(case, session_id, entry_id).explained()


class _Explanation:
    def __init__(self, case: Case, session_id: str, entry_id: str | None) -> None:
        self.case, self.session_id, self.entry_id = case, session_id, entry_id
        self.reasons: list[dict[str, Any]] = []
        self.files = _files(case, session_id)
        self.views = SessionViews(case.catalog, case.registry, case.settings.current_session)
        self.refresh = case.command("refresh", "--session-id", session_id)
        #: What the widest call said against it.
        self.refused: SessionHistoryError | None = None

    def explained(self) -> dict[str, Any]:
        key = self.case.catalog.key_by_id.get(self.session_id)
        session = None if key is None else self.case.catalog.sessions[key]
        wide = self._finding_widenings()
        if self.case.connection is None:
            text = "There is no index that can be read: this is what the files alone say."
            self._add(_NO_INDEX, text, self.case.command("doctor"))
        if session is None:
            self._unknown_session()
        else:
            self._known_session(session)
        if self.entry_id is not None and wide is None:
            self._explain_entry(self.entry_id)
        elif self.entry_id is not None:  # an append leaves what was indexed as it is
            self.reasons = [one for one in self.reasons if one["code"] not in ("stale", "not_indexed")]
        for code, *_ in wide or ():
            if code == "other_branch":
                self._add(code, "It is on an abandoned branch, which is searched only with --branch any.")
        gone = wide is not None and any(one["code"] == _DELETED for one in self.reasons)
        if gone and wide is not None and WIDENINGS[0] not in wide:
            wide = [WIDENINGS[0], *wide]
        asked = (
            ["list", "--session-id", self.session_id]
            if self.entry_id is None
            else ["open", self.session_id, self.entry_id]
        )
        return {
            "sessionId": self.session_id,
            "entryId": self.entry_id,
            "found": wide == [],
            "reasons": self.reasons,
            "files": [{"path": path, "state": state} for path, state in self.files],
            "command": None
            if wide is None
            else self.case.command(*asked, *chain.from_iterable(one[3] for one in wide)),
        }

    def _add(self, code: str, text: str, command: str | None = None) -> None:
        self.reasons.append({"code": code, "text": text, "command": command})

    # -- asking ---------------------------------------------------------------------------------------------------------

    def _finding_widenings(self) -> list[tuple[str, str, Any, list[str]]] | None:
        """The fewest widenings with which it is found; None if no call finds it."""
        possible = WIDENINGS if self.entry_id is not None else WIDENINGS[:2]
        if self.case.connection is None:
            return None
        for count in range(len(possible) + 1):
            for chosen in combinations(possible, count):
                if self._is_found({argument: value for _, argument, value, _ in chosen}):
                    return list(chosen)
        return None

    def _is_found(self, wide: dict[str, Any]) -> bool:
        assert self.case.connection is not None
        if self.entry_id is None:
            asked = build_request(operation="list", session_id=self.session_id, **wide)
            assert isinstance(asked, ListRequest)
            return bool(listed(self.case.connection, self.views, asked)[0])
        wanted = build_request(operation="open", session_id=self.session_id, entry_id=self.entry_id, **wide)
        assert isinstance(wanted, OpenRequest)
        try:
            open_entry(self.case.connection, self.views, wanted)
        except SessionHistoryError as error:
            self.refused = error
            return False
        return True

    # -- the session ----------------------------------------------------------------------------------------------------

    def _unknown_session(self) -> None:
        """A session that is not in the index: told by the files that are named after it."""
        case = self.case
        for raw, state in self.files:
            path, why = shown(raw), state.partition(": ")[2]
            if state.startswith("of another user"):
                self._add("other_user", f"Its file {path} is {state}; only one's own sessions count.")
            elif state == "not a session":
                self._add("not_a_session", f"Its file {path} does not begin like a session, so it is none.")
            elif state.startswith("unreadable"):
                self._add("unreadable", f"Its file {path} cannot be read ({why}).")
            elif state.startswith("unavailable"):
                self._add("unavailable", f"Its file {path} is not read: {why}.")
            elif state in ("not indexed", "changed since it was indexed"):
                self._add("not_indexed", f"Its file {path} is not indexed yet.", self.refresh)
            elif state in ("indexed", "duplicate"):
                other = case.catalog.sources[raw].session_id
                self._add("other_id", f"The file {path} is named after it, but its header says session {other}.")
        if self.session_id == case.settings.current_session:
            self._add("current", _CURRENT)
        if any(one["code"] != _NO_INDEX for one in self.reasons):
            return
        for root in case.walk.roots:
            if not root.reachable and root.reported:
                self._add("unavailable", f"It may lie under {shown(root.path)}, which cannot be read ({root.reason}).")
        said = case.registry.get(self.session_id)
        if said is not None:
            where = f" and places it at {said.file}" if said.file else ""
            self._add("unavailable", f"The registry knows it{where}; no file under the roots has this id.")
        elsewhere = _outside(case, self.session_id)
        if elsewhere is not None:
            self._add("outside_roots", f"The file {elsewhere} is named after it, but lies outside the roots.")
        pending = case.difference.counts()["missing"]
        if pending:
            text = f"It may be in one of {pending} files that are not indexed yet."
            self._add("not_indexed", text, case.command("refresh"))
        if not self.reasons or self.reasons[-1]["code"] == _NO_INDEX:
            places = ", ".join(shown(root.path) for root in case.settings.roots)
            self._add("unknown", f"No file under {places} has this session id.", case.command("list"))

    def _known_session(self, session: SessionRow) -> None:
        case = self.case
        deleted = self._why_deleted(session)
        if deleted:
            self._add(_DELETED, deleted)
        elif session.path is not None and session.path not in case.walk.files:
            text = f"Its file {shown(session.path)} is out of reach: a folder above it cannot be read."
            self._add("unavailable", text)
        if session.session_id == case.settings.current_session:
            self._add("current", _CURRENT)
        changed = next((path for path, state in self.files if state == "changed since it was indexed"), None)
        if changed is not None:
            text = f"Its file {shown(changed)} has changed since it was indexed: what was added later is not found."
            self._add("stale", text, self.refresh)
        waiting = next((path for path, state in self.files if state == "not indexed"), None)
        if waiting is not None:
            self._add("not_indexed", f"Another file of it, {shown(waiting)}, is not indexed yet.", self.refresh)

    def _why_deleted(self, session: SessionRow) -> str:
        said = self.case.registry.get(session.session_id)
        if said is not None and said.deleted_at:
            return f"The registry says that it was deleted ({said.deleted_at})."
        if session.source is None:
            return "Its file is gone; only its metadata is left, its text was dropped from the index."
        if session.tombstoned:
            return "The name of its file says that it was deleted."
        path = session.path
        if path is None or path in self.case.walk.files or os.path.dirname(path) not in self.case.walk.folders:
            return ""
        return f"Its file {shown(path)} is gone; the index will say so after the next refresh."

    # -- the entry ------------------------------------------------------------------------------------------------------

    def _explain_entry(self, entry_id: str) -> None:
        """What the session's files say of an entry that no call opens."""
        seen: list[tuple[bytes, Inspection]] = []
        for path in (path for path, _ in self.files if path in self.case.walk.files):
            try:
                seen.append((path, inspect(os.fsdecode(path), entry_id)))
            except Unreadable as problem:
                if not any(one["code"] == "unreadable" for one in self.reasons):
                    self._add("unreadable", f"The file {shown(path)} cannot be read ({problem}).")
        if not seen:
            return self._look_elsewhere(entry_id)
        for path, told in sorted(seen, key=lambda one: (not one[1].found, not one[1].damaged, not one[1].children)):
            return self._in_file(told) if told.found else self._not_in_file(path, told, entry_id)

    def _in_file(self, seen: Inspection) -> None:
        *earlier, last = seen.found
        first = next((one for one in earlier if one.text), None)
        if not last.text and first is not None:
            text = f"Line {first.line} has it with text, but line {last.line} holds {last.what} of the same id, and the last counts."
            self._add("superseded", text)
        elif not last.text:
            text = f"It is {last.what} (line {last.line}): only the text of user and assistant messages is found."
            self._add("not_text", text)
        elif isinstance(self.refused, CitationUnavailable):
            text = f"Line {last.line} no longer says what was indexed, so it is not shown."
            self._add("changed", text, self.refresh)
        elif not any(reason["code"] == "not_indexed" for reason in self.reasons):
            text = f"It is in the file (line {last.line}) and not indexed yet."
            self._add("not_indexed", text, self.refresh)

    def _not_in_file(self, path: bytes, seen: Inspection, entry_id: str) -> None:
        def line(number: int) -> str:
            return f"sed -n '{number}p' {for_shell(path)}"

        if seen.damaged:
            lines = ", ".join(map(str, seen.damaged))
            return self._add(
                "damaged", f"Line {lines} names it and is damaged, so it cannot be read.", line(seen.damaged[0])
            )
        if seen.now is not None:
            return self._add("changed", f"The line that it cited has changed; the entry there is now {seen.now}.")
        if isinstance(self.refused, CitationUnavailable):
            self._add("changed", "The index has it, the file no longer does.", self.refresh)
        elif seen.children:
            text = f"Line {seen.children[0]} names it as its parent, but the file holds no entry of this id that can be read."
            self._add("damaged", text, line(seen.children[0]))
        self._look_elsewhere(entry_id)
        if not any(one["code"] in ("damaged", "elsewhere", "changed") for one in self.reasons):
            self._add("unknown_entry", "No entry of this id is known.")

    def _look_elsewhere(self, entry_id: str) -> None:
        """Other sessions in which the id occurs: a citation may name the wrong one."""
        if self.case.connection is None:
            return
        wanted, catalog = entry_hash(entry_id).to_bytes(8, "little", signed=True), self.case.catalog
        keys = sorted({catalog.session_of(row) for row in holders(self.case.connection, wanted)})
        ids = dict.fromkeys(catalog.sessions[key].session_id for key in keys)
        for other in [one for one in ids if one != self.session_id][:ELSEWHERE]:
            self._add(
                "elsewhere", f"An entry of this id is in session {other}.", self.case.command("open", other, entry_id)
            )


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
    own = case.catalog.sessions.get(-1 if row.session is None else row.session)
    return "duplicate" if own is not None and own.duplicate else "indexed"


def _passed_over(case: Case, path: bytes, owner: int | None) -> str:
    if path in case.walk.aliases:
        return f"another name of {shown(case.walk.aliases[path])}"
    if owner is not None and hasattr(os, "geteuid") and owner != os.geteuid():
        return f"of another user (user id {owner})"
    return "not counted"


def _outside(case: Case, session_id: str) -> str | None:
    """A file in Pi's own places, where these are not among the roots."""
    usual = usual_settings("SESSION_HISTORY_ROOTS")
    known = {root.path for root in case.settings.roots}
    for root in usual.roots if usual is not None else ():
        if root.path not in known:
            for path, _ in named_files(root.path, session_id):
                return shown(path)
    return None
