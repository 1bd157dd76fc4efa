"""From what the doctor saw to what is wrong: each problem in one sentence, with one command."""

from __future__ import annotations

import os
import stat
from typing import Any, Literal

from .case import Case, for_shell, shown
from .index_health import OK, UNFINISHED, Health

Severity = Literal["error", "warning", "note"]

#: Below this (bytes) the index has no room to grow.
LITTLE_SPACE = 64 << 20
#: Problems of one kind that are listed one by one; the report lists the files all.
EACH = 20


class Problems:
    """The list as it grows, the worst first."""

    def __init__(self) -> None:
        self.found: list[dict[str, str]] = []

    def add(self, severity: Severity, code: str, text: str, command: str) -> None:
        self.found.append({"severity": severity, "code": code, "text": text, "command": command})

    def sorted(self) -> list[dict[str, str]]:
        return sorted(self.found, key=lambda one: ("error", "warning", "note").index(one["severity"]))


def problems(case: Case, report: dict[str, Any]) -> list[dict[str, str]]:
    """``{severity, code, text, command}`` each: an error makes answers wrong or impossible, a warning incomplete."""
    found = Problems()
    _of_roots(report, found)
    _of_index(case, found)
    _of_freshness(case, found)
    _of_files(case, report, found)
    registry = report["registry"]
    if registry is not None and not registry["readable"]:
        found.add(
            "warning",
            "registry_unreadable",
            f"The registry cannot be read ({registry['reason']}): what it says of deleted sessions is not known.",
            f"ls -l {for_shell(registry['path'])}",
        )
    return found.sorted()


def _of_roots(report: dict[str, Any], found: Problems) -> None:
    for root in report["roots"]:
        name, path = shown(root["path"]), for_shell(root["path"])
        if not root["reachable"]:
            found.add(
                "warning" if root["required"] else "note",
                "root_unreachable",
                f"The root {name} cannot be read ({root['reason']})"
                + (
                    ": its sessions are unavailable."
                    if root["required"]
                    else "; it is a default place that need not exist."
                ),
                f"ls -ld {path}",
            )
        elif not root["files"]:
            others = root["otherFiles"]
            found.add(
                "note",
                "root_empty",
                f"The root {name} holds no session file that counts."
                + (f" {others} named like one belong to another user or are counted elsewhere." if others else ""),
                f"ls -la {path}",
            )
    if not any(root["files"] for root in report["roots"]):
        first = shown(report["roots"][0]["path"]) if report["roots"] else "."
        found.add(
            "warning",
            "no_sessions",
            "There is no session file under any root: every search is empty.",
            f"session-history --root FOLDER list   # instead of {first}",
        )


def _of_index(case: Case, found: Problems) -> None:
    health = case.health
    folder = os.path.dirname(health.path)
    refresh = case.command("refresh")
    anew = f"rm -f {' '.join(for_shell(health.path + end) for end in ('', '-wal', '-shm'))} && {refresh}"
    if health.state == "absent":
        found.add("warning", "no_index", f"There is no index yet ({health.reason}).", refresh)
    elif health.state == "refused" and _is_open(health) and _is_for_the_index_alone(health.path):
        found.add("error", "index_refused", f"The index is refused: {health.reason}.", f"chmod 700 {for_shell(folder)}")
    elif health.state in ("refused", "foreign") and health.not_writable_because:
        found.add(
            "error",
            f"index_{health.state}",
            f"The index is refused: {health.reason}. Set SESSION_HISTORY_INDEX or --index to a file in a folder of its own.",
            case.command("refresh", index=case.usual_index() or "FILE"),
        )
    elif health.state in ("foreign", "outdated"):
        becomes = "gives it another name" if health.state == "foreign" else "removes it"
        found.add(
            "warning",
            f"index_{health.state}",
            f"The index file is of no use: {health.reason}. The next call {becomes} and makes an empty one.",
            refresh,
        )
    elif health.state == "damaged":
        found.add("error", "index_damaged", f"The index is damaged: {health.reason}. It can be made anew.", anew)
    elif health.state == "unreadable":
        found.add(
            "error", "index_unreadable", f"The index cannot be opened: {health.reason}.", f"ls -la {for_shell(folder)}"
        )
    for name, said in (("file", health.quick_check), ("full text", health.full_text_check)):
        if said == UNFINISHED:
            found.add(
                "note",
                "check_unfinished",
                f"The check of the {name} took too long and was given up.",
                case.command("doctor"),
            )
        elif said is not None and said != OK and health.state != "damaged":
            found.add("error", "index_damaged", f"The index is damaged: {said}", anew)
    if not health.writable and health.state != "refused":
        found.add(
            "error" if case.difference.pending else "warning",
            "index_read_only",
            f"The index cannot be written ({health.not_writable_because}): it stays as it is, whatever changes.",
            f"ls -la {for_shell(folder)}",
        )
    if health.free_bytes is not None and health.free_bytes < LITTLE_SPACE:
        found.add(
            "warning",
            "disk_full",
            f"The disk of the index has only {health.free_bytes >> 20} MB left.",
            f"df -h {for_shell(folder)}",
        )


def _is_open(health: Health) -> bool:
    """Whether others can enter the index folder."""
    return bool(int(health.folder_mode or "0", 8) & 0o077)


def _is_for_the_index_alone(index: str) -> bool:
    """Whether others can enter the index's folder and nobody would miss that: it is one's own and holds nothing else."""
    folder, name = os.path.split(index)
    try:
        status, names = os.stat(folder), os.listdir(folder)
        home = os.path.samefile(folder, os.path.expanduser("~"))
    except OSError:
        return False
    own = not hasattr(os, "geteuid") or status.st_uid == os.geteuid()
    shared = status.st_mode & stat.S_ISVTX or home or not all(one.startswith(name) for one in names)
    return own and not shared and bool(status.st_mode & (stat.S_IRWXG | stat.S_IRWXO))


def _of_freshness(case: Case, found: Problems) -> None:
    counts = case.difference.counts()
    if case.health.state not in ("sound", "damaged") or not case.difference.pending:
        return
    changed, missing, gone = len(case.difference.changed), counts["missing"], len(case.difference.gone)
    said = [
        f"{number} {words}"
        for number, words in ((changed, "changed since"), (missing, "not indexed yet"), (gone, "gone from disk"))
        if number
    ]
    what = "partial" if missing and not changed and not gone else "stale"
    later = "" if case.settings.maintenance else " Background maintenance is off."
    found.add(
        "warning", f"index_{what}", f"The index is {what}: of {counts['selected']} files {', '.join(said)}.{later}",
        case.command("refresh"),
    )  # fmt: skip


def _of_files(case: Case, report: dict[str, Any], found: Problems) -> None:
    for item in report["unavailable"][:EACH]:
        path = for_shell(item["path"])
        if item["code"] == "leaves_roots":
            text, command = "A link leaves the roots and is not followed", f"readlink -f {path}"
        else:
            text, command = f"A file or folder cannot be read ({item['reason']})", f"ls -ld {path}"
        found.add("warning", item["code"], f"{text}: {shown(item['path'])}", command)
    for session_id, keys in sorted(case.catalog.shared.items())[:EACH]:
        paths = [one for key in keys if (one := case.catalog.sessions[key].path) is not None]
        said = ", ".join(map(shown, paths))
        text = f"{len(paths)} files carry the id {session_id} and count as one session: {said}"
        found.add("note", "shared_id", text, f"ls -l {' '.join(map(for_shell, paths))}")
    for item in report["damaged"][:EACH]:
        lines = [str(line) for line in item["lines"]]
        more = item["count"] - len(lines)
        place = f"{'line' if len(lines) == 1 else 'lines'} {', '.join(lines)}" + (
            f" and {more} more" if more > 0 else ""
        )
        found.add(
            "note",
            "damaged_lines",
            f"Damaged in {place}, otherwise indexed{' (and changed since)' if item['changedSince'] else ''}: "
            + shown(item["path"]),
            f"sed -n '{lines[0] if lines else 1}p' {for_shell(item['path'])}",
        )
    left = sum(max(0, len(report[name]) - EACH) for name in ("unavailable", "damaged"))
    if left:
        found.add(
            "note", "more_files", f"{left} more files are unavailable or damaged.", case.command("doctor", "--json")
        )
