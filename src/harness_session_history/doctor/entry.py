"""Where an entry went that somebody looks for: in the index, in its session's file, in another session."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

from ..answer.citations import Evidence
from ..archive.branch import Tree
from ..archive.files import Unreadable
from ..index.schema import SessionRow
from ..index.trees import holders, tree_columns
from ..model.entries import TEXT_ROLES, entry_hash
from ..model.names import MAX_ID_CHARS
from .case import Case, for_shell, shown
from .inspection import Inspection, inspect

#: Other sessions that hold an entry of the id and are named.
ELSEWHERE = 5
#: Reasons that say enough of an entry that is not in its session's file.
_SAID = {"damaged", "elsewhere", "changed"}


@dataclass
class Finding:
    """What is known so far. ``options`` are what a call must be told to find it all the same."""

    reasons: list[dict[str, Any]] = field(default_factory=list)
    options: list[str] = field(default_factory=list)

    def add(self, code: str, text: str, command: str | None = None) -> None:
        self.reasons.append({"code": code, "text": text, "command": command})


class EntryTrace:
    """One entry that is looked for: in the index, in the session's file, then elsewhere."""

    def __init__(
        self,
        case: Case,
        session: SessionRow | None,
        session_id: str,
        entry_id: str,
        files: list[tuple[bytes, str]],
        finding: Finding,
    ) -> None:
        self.case, self.session, self.session_id, self.entry_id = case, session, session_id, entry_id
        self.files, self.finding = files, finding
        self.refresh = case.command("refresh", "--session-id", session_id)

    def look(self) -> bool:
        """Adds what it finds; False where there is no file in which the entry could be read."""
        path = self._path()
        if path is None:
            self._look_elsewhere()
            return False
        try:
            seen = inspect(os.fsdecode(path), self.entry_id)
        except Unreadable as problem:
            if not any(one["code"] == "unreadable" for one in self.finding.reasons):
                self.finding.add("unreadable", f"The file {shown(path)} cannot be read ({problem}).")
            return False
        tree, node = self._node()
        if seen.found:
            self._in_file(seen, tree, node)
        else:
            self._not_in_file(seen, node is not None)
        return True

    def _path(self) -> bytes | None:
        if self.session is not None and self.session.path is not None:
            return self.session.path if self.session.path in self.case.walk.files else None
        return next((path for path, _ in self.files if path in self.case.walk.files), None)

    def _node(self) -> tuple[Tree | None, int | None]:
        if self.case.connection is None or self.session is None or self.session.source is None:
            return None, None
        tree = Tree(tree_columns(self.case.connection, self.session.extent, self.session.nodes))
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
                "not_text",
                f"It is {last.what} (line {last.line}): only the text of user and assistant messages is found.",
            )
        elif self.session is None or tree is None or node is None or tree.kinds[node] not in TEXT_ROLES:
            if not any(reason["code"] == "not_indexed" for reason in self.finding.reasons):
                self.finding.add(
                    "not_indexed", f"It is in the file (line {last.line}) and not indexed yet.", self.refresh
                )
        else:
            self._indexed(tree, node, last.line)

    def _indexed(self, tree: Tree, node: int, line: int) -> None:
        assert self.session is not None and self.case.connection is not None
        # An append leaves what was indexed as it is: what remains is whether these very bytes are still there.
        evidence = Evidence(self.case.connection, self.case.catalog)
        located = evidence.locate(self.session.extent.row(node, TEXT_ROLES[tree.kinds[node]]))
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
            self.finding.add(
                "damaged", f"Line {lines} names it and is damaged, so it cannot be read.", self._line(seen.damaged[0])
            )
            return
        if seen.now is not None:
            self.finding.add("changed", f"The line that it cited has changed; the entry there is now {seen.now}.")
            return
        if indexed:
            self.finding.add("changed", "The index has it, the file no longer does.", self.refresh)
        elif seen.children:
            self.finding.add(
                "damaged",
                f"Line {seen.children[0]} names it as its parent, but the file holds no entry of this id that can be read.",
                self._line(seen.children[0]),
            )
        self._look_elsewhere()
        if not any(one["code"] in _SAID for one in self.finding.reasons):
            self.finding.add("unknown_entry", "No entry of this id is known.")

    def _look_elsewhere(self) -> None:
        for other in self._elsewhere():
            self.finding.add(
                "elsewhere",
                f"An entry of this id is in session {other}.",
                self.case.command("open", other, self.entry_id),
            )

    def _line(self, number: int) -> str | None:
        path = self._path()
        return None if path is None else f"sed -n '{number}p' {for_shell(path)}"

    def _elsewhere(self) -> list[str]:
        """Other sessions in which the id occurs: a citation may name the wrong one."""
        if self.case.connection is None:
            return []
        wanted = entry_hash(self.entry_id).to_bytes(8, "little", signed=True)
        catalog = self.case.catalog
        keys = sorted({catalog.session_of(row) for row in holders(self.case.connection, wanted)})
        sessions = (catalog.sessions[key].session_id for key in keys)
        return [one for one in sessions if one != self.session_id][:ELSEWHERE]


def text_line(path: bytes, entry_id: str) -> int | None:
    """The line of a file on which it holds an entry, None if it does not (or cannot be read)."""
    try:
        found = inspect(os.fsdecode(path), entry_id).found
    except Unreadable:
        return None
    return found[-1].line if found else None
