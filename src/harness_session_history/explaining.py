"""Why a session or an entry is not found: every reason that holds, each in a sentence, with a command where one helps."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

from .archive.branch import Tree
from .archive.entries import MAX_ID_CHARS, entry_hash
from .archive.files import Unreadable
from .archive.inspection import Inspection, inspect, named_files
from .archive.names import named_id
from .casework import Case, for_shell, shown, why_unreadable
from .evidence import Evidence
from .index.records import SessionRow, row_id
from .index.schema import FOREIGN, GONE, UNREADABLE
from .index.writer import find_id, tree_columns
from .sessions import TEXT_ROLES

#: Other sessions that hold an entry of the id and are named.
ELSEWHERE = 5


@dataclass
class Finding:
    """What is known so far. ``options`` are what a call must be told to find it all the same."""

    reasons: list[dict[str, Any]] = field(default_factory=list)
    options: list[str] = field(default_factory=list)

    def add(self, code: str, text: str, command: str | None = None) -> None:
        self.reasons.append({"code": code, "text": text, "command": command})


def explain(case: Case, session_id: str, entry_id: str | None) -> dict[str, Any]:
    """``{sessionId, entryId, found, reasons, files, command}``; `found` is whether a plain call finds it now.

    Codes of a session: ``not_indexed, stale, current, deleted, other_user, outside_roots, unavailable, unreadable,
    not_a_session, other_id, index_unavailable, unknown``; of an entry: ``damaged, other_branch, not_text, superseded,
    duplicate_file, not_indexed, changed, not_citable, elsewhere, unknown_entry``.
    """
    key = case.catalog.key_by_id.get(session_id)
    session = None if key is None else case.catalog.sessions[key]
    files = _files(case, session_id)
    finding = Finding()
    if case.connection is None:
        finding.add(
            "index_unavailable", "There is no index that can be read: this is what the files alone say.", case.command("doctor")
        )
    if session is None:
        _unknown_session(case, session_id, files, finding)
    else:
        _known_session(case, session, files, finding)
    if entry_id is not None:
        _Entry(case, session, session_id, entry_id, files, finding).look()
    opening = None
    if entry_id is not None and all(reason["code"] in _WIDENED for reason in finding.reasons):
        opening = case.command("open", session_id, entry_id, *finding.options)
    elif entry_id is None and session is not None and all(r["code"] in _WIDENED for r in finding.reasons):
        opening = case.command("list", "--session-id", session_id, *finding.options)
    return {
        "sessionId": session_id,
        "entryId": entry_id,
        "found": opening is not None and not finding.options,
        "reasons": finding.reasons,
        "files": files,
        "command": opening,
    }


#: Reasons that a call can be told to pass over, and one that hides only what is newer than the index.
_WIDENED = {"current", "deleted", "other_branch", "stale"}


def _files(case: Case, session_id: str) -> list[dict[str, Any]]:
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
    return [{"path": shown(path), "state": state} for path, state in sorted(states.items())]


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
        return f"unreadable: {why_unreadable(path)}"
    return "indexed" if row.session is not None else "duplicate"


def _passed_over(case: Case, path: bytes, owner: int | None) -> str:
    if path in case.walk.aliases:
        return f"another name of {shown(case.walk.aliases[path])}"
    if owner is not None and hasattr(os, "geteuid") and owner != os.geteuid():
        return f"of another user (user id {owner})"
    return "not counted"


def _unknown_session(case: Case, session_id: str, files: list[dict[str, Any]], finding: Finding) -> None:
    """A session that is not in the index: told by the files that are named after it."""
    refresh = case.command("refresh", "--session-id", session_id)
    for file in files:
        path, state = file["path"], str(file["state"])
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
            row = case.catalog.sources[os.fsencode(path)]
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
        finding.add("not_indexed", f"It may be in one of {pending} files that are not indexed yet.", case.command("refresh"))
    if not finding.reasons or finding.reasons[-1]["code"] == "index_unavailable":
        places = ", ".join(shown(root.path) for root in case.settings.roots)
        finding.add("unknown", f"No file under {places} has this session id.", case.command("list"))


def _outside(case: Case, session_id: str) -> str | None:
    """A file in Pi's own places, where these are not among the roots."""
    from .settings import Settings

    environ = {name: value for name, value in os.environ.items() if name != "SESSION_HISTORY_ROOTS"}
    known = {root.path for root in case.settings.roots}
    for root in Settings.resolve(environ=environ).roots:
        if root.path not in known:
            for path, _ in named_files(root.path, session_id):
                return shown(path)
    return None


def _known_session(case: Case, session: SessionRow, files: list[dict[str, Any]], finding: Finding) -> None:
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
            finding.add("unavailable", f"Its file {shown(session.path)} is out of reach: a folder above it cannot be read.")
    if deleted:
        finding.add("deleted", deleted)
        finding.options.append("--include-deleted")
    if session.session_id == case.settings.current_session:
        finding.add("current", "It is the calling session, which is left out.")
        finding.options.append("--include-current")
    counting = next((one for one in files if session.path is not None and one["path"] == shown(session.path)), None)
    if counting is not None and counting["state"] == "changed since it was indexed":
        text = f"Its file {counting['path']} has changed since it was indexed: what was added later is not found."
        finding.add("stale", text, refresh)
    waiting = next((one for one in files if one["state"] == "not indexed"), None)
    if waiting is not None:
        finding.add("not_indexed", f"Another file of it, {waiting['path']}, is not indexed yet.", refresh)


class _Entry:
    """One entry that is looked for: in the index, in the session's file, then elsewhere."""

    def __init__(
        self,
        case: Case,
        session: SessionRow | None,
        session_id: str,
        entry_id: str,
        files: list[dict[str, Any]],
        finding: Finding,
    ) -> None:
        self.case, self.session, self.session_id, self.entry_id = case, session, session_id, entry_id
        self.files, self.finding = files, finding
        self.refresh = case.command("refresh", "--session-id", session_id)

    def look(self) -> None:
        path = self._path()
        seen = Inspection()
        if path is not None:
            try:
                seen = inspect(os.fsdecode(path), self.entry_id)
            except Unreadable as problem:
                self.finding.add("unreadable", f"The file {shown(path)} cannot be read ({problem}).")
                return
        tree, node = self._node()
        if seen.found:
            self._in_file(seen, tree, node)
        else:
            self._not_in_file(seen, node is not None)

    def _path(self) -> bytes | None:
        if self.session is not None and self.session.path is not None:
            return self.session.path if self.session.path in self.case.walk.files else None
        own = (os.fsencode(one["path"]) for one in self.files)
        return next((path for path in own if path in self.case.walk.files), None)

    def _node(self) -> tuple[Tree | None, int | None]:
        if self.case.connection is None or self.session is None or self.session.source is None:
            return None, None
        tree = Tree(tree_columns(self.case.connection, self.session.key))
        return tree, tree.find(entry_hash(self.entry_id))

    def _in_file(self, seen: Inspection, tree: Tree | None, node: int | None) -> None:
        *earlier, last = seen.found
        if len(self.entry_id) > MAX_ID_CHARS:
            self.finding.add("not_citable", f"Its id is longer than {MAX_ID_CHARS} characters, so it cannot be cited.")
        elif not last.text and any(one.text for one in earlier):
            first = next(one for one in earlier if one.text)
            self.finding.add(
                "superseded",
                f"Line {first.line} has it with text, but line {last.line} holds {last.what} of the same id, and the last counts.",
            )
        elif not last.text:
            self.finding.add(
                "not_text", f"It is {last.what} (line {last.line}): only the text of user and assistant messages is found."
            )
        elif self.session is None or tree is None or node is None or tree.kinds[node] not in TEXT_ROLES:
            if not any(reason["code"] == "not_indexed" for reason in self.finding.reasons):
                self.finding.add("not_indexed", f"It is in the file (line {last.line}) and not indexed yet.", self.refresh)
        else:
            self._indexed(tree, node, last.line)

    def _indexed(self, tree: Tree, node: int, line: int) -> None:
        assert self.session is not None and self.case.connection is not None
        # An append leaves what was indexed as it is: what remains is whether these very bytes are still there.
        evidence = Evidence(self.case.connection, self.case.catalog)
        located = evidence.locate(row_id(self.session.key, node, TEXT_ROLES[tree.kinds[node]]))
        if located is None or evidence.hydrate([located])[0] is None:
            self.finding.add(
                "changed", f"Line {line} no longer says what was indexed, so it is not shown.", self.refresh
            )
            return
        self.finding.reasons[:] = [one for one in self.finding.reasons if one["code"] not in ("stale", "not_indexed")]
        if not tree.visible[node]:
            self.finding.add(
                "other_branch", f"It is on an abandoned branch (line {line}), which is searched only with --branch any."
            )
            self.finding.options += ["--branch", "any"]

    def _not_in_file(self, seen: Inspection, indexed: bool) -> None:
        if seen.damaged:
            lines = ", ".join(map(str, seen.damaged))
            self.finding.add("damaged", f"Line {lines} names it and is damaged, so it cannot be read.", self._line(seen.damaged[0]))
            return
        if seen.now is not None:
            self.finding.add("changed", f"The line that it cited has changed; the entry there is now {seen.now}.")
            return
        for path in (one["path"] for one in self.files if one["state"] == "duplicate"):
            found = _text_line(path, self.entry_id)
            if found is not None:
                self.finding.add(
                    "duplicate_file",
                    f"It is in {path} (line {found}), but another file with later activity stands for this session.",
                )
        if indexed:
            self.finding.add("changed", "The index has it, the file no longer does.", self.refresh)
        elif seen.children:
            self.finding.add(
                "damaged",
                f"Line {seen.children[0]} names it as its parent, but the file holds no entry of this id that can be read.",
                self._line(seen.children[0]),
            )
        for other in self._elsewhere():
            self.finding.add(
                "elsewhere", f"An entry of this id is in session {other}.", self.case.command("open", other, self.entry_id)
            )
        if not any(one["code"] in _OF_AN_ENTRY for one in self.finding.reasons):
            self.finding.add("unknown_entry", "No entry of this id is known.")

    def _line(self, number: int) -> str | None:
        path = self._path()
        return None if path is None else f"sed -n '{number}p' {for_shell(path)}"

    def _elsewhere(self) -> list[str]:
        """Other sessions in which the id occurs: a citation may name the wrong one."""
        if self.case.connection is None:
            return []
        wanted = entry_hash(self.entry_id).to_bytes(8, "little", signed=True)
        keys = {
            int(key)
            for key, ids in self.case.connection.execute("SELECT session, ids FROM trees")
            if wanted in ids and find_id(ids, wanted) is not None
        }
        sessions = (self.case.catalog.sessions[key].session_id for key in sorted(keys) if key in self.case.catalog.sessions)
        return [one for one in sessions if one != self.session_id][:ELSEWHERE]


_OF_AN_ENTRY = {"damaged", "duplicate_file", "elsewhere", "changed", "unknown_entry"}


def _text_line(path: str, entry_id: str) -> int | None:
    try:
        found = inspect(path, entry_id).found
    except Unreadable:
        return None
    return found[-1].line if found else None
