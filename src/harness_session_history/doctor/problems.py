"""From what the doctor saw to what is wrong: a table of the kinds of problem."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from typing import Any, NamedTuple

from .case import Case, for_shell, shown
from .index_health import OK, UNFINISHED

#: Below this (bytes) the index has no room to grow.
LITTLE_SPACE = 64 << 20
#: Problems of one kind that are listed one by one; the report lists the files all.
EACH = 20
GRAVITY = ("error", "warning", "note")
Report = dict[str, Any]
Words = dict[str, Any]


class Kind(NamedTuple):
    """``of`` gives whether there is the problem, or the words for each of its occurrences, which may have a ``severity`` of
    their own. ``text`` and ``command`` are made of these words and of `_words_of`."""

    severity: str
    code: str
    of: Callable[[Case, Report], bool | list[Words]]
    text: str
    command: str


def problems(case: Case, report: Report) -> list[dict[str, str]]:
    """``{severity, code, text, command}`` each, the worst first: an error makes answers wrong or impossible, a warning
    incomplete."""
    found, known = [], _words_of(case)
    for kind in KINDS:
        there = kind.of(case, report)
        for own in there[:EACH] if isinstance(there, list) else [{}] * there:
            words = {"severity": kind.severity, **known, **own}
            text, command = kind.text.format_map(words), kind.command.format_map(words)
            found.append({"severity": words["severity"], "code": kind.code, "text": text, "command": command})
    return sorted(found, key=lambda one: GRAVITY.index(one["severity"]))


def _words_of(case: Case) -> Words:
    health, refresh = case.health, case.command("refresh")
    files = " ".join(for_shell(health.path + end) for end in ("", "-wal", "-shm"))
    return {
        "reason": health.reason,
        "locked": health.not_writable_because,
        "free": (health.free_bytes or 0) >> 20,
        "folder": for_shell(os.path.dirname(health.path)),
        "refresh": refresh,
        "anew": f"rm -f {files} && {refresh}",
        "elsewhere": case.command("refresh", index=case.usual_index() or "FILE"),
        "doctor": case.command("doctor"),
        "details": case.command("doctor", "--json"),
        "lag": _lag(case),
    }


def _named(path: bytes, **words: Any) -> Words:
    return {"path": shown(path), "word": for_shell(path), **words}


def _unreachable(_: Case, report: Report) -> list[Words]:
    needless = {"severity": "note", "why": "; it is a default place that need not exist."}
    needed = {"why": ": its sessions are unavailable."}
    return [
        _named(root["path"], reason=root["reason"], **(needed if root["required"] else needless))
        for root in report["roots"]
        if not root["reachable"]
    ]


def _empty(_: Case, report: Report) -> list[Words]:
    found = []
    for root in report["roots"]:
        if root["reachable"] and not root["files"]:
            others = root["otherFiles"]
            also = f" {others} named like one belong to another user or are counted elsewhere." if others else ""
            found.append(_named(root["path"], other=_of_another_format([root]), also=also))
    return found


def _without_sessions(_: Case, report: Report) -> list[Words]:
    roots = report["roots"]
    if any(root["files"] for root in roots):
        return []
    nearest = shown(roots[0]["path"]) if roots else os.getcwd()
    while not os.path.isdir(nearest) and os.path.dirname(nearest) != nearest:
        nearest = os.path.dirname(nearest)
    places = ", ".join(shown(root["path"]) for root in roots) or "any root"
    return [{"places": places, "other": _of_another_format(roots), "word": for_shell(nearest)}]


def _of_another_format(roots: list[Any]) -> str:
    other = sum(root["otherFormat"] for root in roots)
    return f"; {other} {'file' if other == 1 else 'files'} of another format" if other else ""


def _is(*states: str) -> Callable[[Case, Report], bool]:
    return lambda case, _: case.health.state in states and not _is_refused(case)


def _is_refused(case: Case) -> bool:
    """Whether the index's place is refused, and not only what lies there."""
    return case.health.state == "refused" or (case.health.state == "foreign" and bool(case.health.not_writable_because))


def _closing_helps(case: Case) -> bool:
    """Whether others can enter the index's folder and nobody would miss that: it is one's own and holds nothing else."""
    folder, name = os.path.split(case.health.path)
    if case.health.state != "refused" or not int(case.health.folder_mode or "0", 8) & 0o077:
        return False
    try:
        status, names = os.stat(folder), os.listdir(folder)
        home = os.path.samefile(folder, os.path.expanduser("~"))
    except OSError:
        return False
    own = not hasattr(os, "geteuid") or status.st_uid == os.geteuid()
    shared = status.st_mode & stat.S_ISVTX or home or not all(one.startswith(name) for one in names)
    return own and not shared and bool(status.st_mode & (stat.S_IRWXG | stat.S_IRWXO))


def _refused(state: str) -> Callable[[Case, Report], bool]:
    return lambda case, _: case.health.state == state and _is_refused(case) and not _closing_helps(case)


def _failed_checks(case: Case, _: Report) -> list[Words]:
    checks = (case.health.quick_check, case.health.full_text_check)
    sound = case.health.state != "damaged"
    return [{"said": said} for said in checks if sound and said is not None and said not in (OK, UNFINISHED)]


def _unfinished(case: Case, _: Report) -> list[Words]:
    checks = (("file", case.health.quick_check), ("full text", case.health.full_text_check))
    return [{"name": name} for name, said in checks if said == UNFINISHED]


def _read_only(case: Case, _: Report) -> list[Words]:
    if case.health.writable or case.health.state == "refused":
        return []
    return [{"severity": "error" if case.difference.pending else "warning"}]


def _lag(case: Case) -> str:
    """How the index lags behind the files; empty if it does not."""
    seen = case.difference
    if case.health.state not in ("sound", "damaged") or not seen.pending:
        return ""
    counts = ((seen.changed, "changed since"), (seen.new, "not indexed yet"), (seen.gone, "gone from disk"))
    said = ", ".join(f"{len(files)} {words}" for files, words in counts if files)
    what = "partial" if seen.new and not seen.changed and not seen.gone else "stale"
    later = "" if case.settings.maintenance else " Background maintenance is off."
    return f"{what}: of {seen.counts()['selected']} files {said}.{later}"


def _lags(what: str) -> Callable[[Case, Report], bool]:
    return lambda case, _: _lag(case).startswith(what)


def _unavailable(leaves: bool) -> Callable[[Case, Report], list[Words]]:
    return lambda _, report: [
        _named(item["path"], reason=item["reason"])
        for item in report["unavailable"]
        if (item["code"] == "leaves_roots") == leaves
    ]


def _shared(case: Case, _: Report) -> list[Words]:
    found = []
    for session_id, keys in sorted(case.catalog.shared.items()):
        paths = [path for key in keys if (path := case.catalog.sessions[key].path) is not None]
        listed = {"paths": ", ".join(map(shown, paths)), "words": " ".join(map(for_shell, paths))}
        found.append({"count": len(paths), "id": session_id, **listed})
    return found


def _damaged(_: Case, report: Report) -> list[Words]:
    found = []
    for item in report["damaged"]:
        lines = [str(line) for line in item["lines"]]
        more = f" and {item['count'] - len(lines)} more" if item["count"] > len(lines) else ""
        place = f"{'line' if len(lines) == 1 else 'lines'} {', '.join(lines)}{more}"
        since = " (and changed since)" if item["changedSince"] else ""
        found.append(_named(item["path"], place=place, since=since, first=(lines or ["1"])[0]))
    return found


def _unlisted(_: Case, report: Report) -> list[Words]:
    left = sum(max(0, len(report[name]) - EACH) for name in ("unavailable", "damaged"))
    return [{"left": left}] if left else []


def _registry(_: Case, report: Report) -> list[Words]:
    said = report["registry"]
    return [] if said is None or said["readable"] else [_named(said["path"], reason=said["reason"])]


# fmt: off
KINDS = (
    Kind("warning", "root_unreachable", _unreachable, "The root {path} cannot be read ({reason}){why}", "ls -ld {word}"),
    Kind("note", "root_empty", _empty, "The root {path} holds no Pi session that counts{other}.{also}", "ls -la {word}"),
    Kind("warning", "no_sessions", _without_sessions, "There is no Pi session under {places}{other}: every search is empty. "
         "SESSION_HISTORY_ROOTS or --root names another folder.", "ls -la {word}"),
    Kind("warning", "no_index", _is("absent"), "There is no index yet ({reason}).", "{refresh}"),
    Kind("error", "index_refused", lambda case, _: _closing_helps(case), "The index is refused: {reason}.", "chmod 700 {folder}"),
    *(Kind("error", f"index_{state}", _refused(state), "The index is refused: {reason}. Set SESSION_HISTORY_INDEX or --index to "
           "a file in a folder of its own.", "{elsewhere}") for state in ("refused", "foreign")),
    Kind("warning", "index_foreign", _is("foreign"),
         "The index file is of no use: {reason}. The next call gives it another name and makes an empty one.", "{refresh}"),
    Kind("warning", "index_outdated", _is("outdated"),
         "The index file is of no use: {reason}. The next call removes it and makes an empty one.", "{refresh}"),
    Kind("error", "index_damaged", _is("damaged"), "The index is damaged: {reason}. It can be made anew.", "{anew}"),
    Kind("error", "index_damaged", _failed_checks, "The index is damaged: {said}", "{anew}"),
    Kind("error", "index_unreadable", _is("unreadable"), "The index cannot be opened: {reason}.", "ls -la {folder}"),
    Kind("note", "check_unfinished", _unfinished, "The check of the {name} took too long and was given up.", "{doctor}"),
    Kind("warning", "index_read_only", _read_only,
         "The index cannot be written ({locked}): it stays as it is, whatever changes.", "ls -la {folder}"),
    Kind("warning", "disk_full", lambda case, _: case.health.free_bytes is not None and case.health.free_bytes < LITTLE_SPACE,
         "The disk of the index has only {free} MB left.", "df -h {folder}"),
    *(Kind("warning", f"index_{what}", _lags(what), "The index is {lag}", "{refresh}") for what in ("partial", "stale")),
    Kind("warning", "leaves_roots", _unavailable(True), "A link leaves the roots and is not followed: {path}",
         "readlink -f {word}"),
    Kind("warning", "unreadable", _unavailable(False), "A file or folder cannot be read ({reason}): {path}", "ls -ld {word}"),
    Kind("note", "shared_id", _shared, "{count} files carry the id {id} and count as one session: {paths}", "ls -l {words}"),
    Kind("note", "damaged_lines", _damaged, "Damaged in {place}, otherwise indexed{since}: {path}", "sed -n '{first}p' {word}"),
    Kind("note", "more_files", _unlisted, "{left} more files are unavailable or damaged.", "{details}"),
    Kind("warning", "registry_unreadable", _registry,
         "The registry cannot be read ({reason}): what it says of deleted sessions is not known.", "ls -l {word}"),
)
# fmt: on
