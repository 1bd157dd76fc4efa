"""The doctor's report as cards: what is wrong first, then what was looked at."""

from __future__ import annotations

from . import words
from .cards import Card, Piece, Row, Style, row, said
from .words import Answer

PATH = 4096
_COUNTS = {
    "selected": "in all",
    "indexed": "indexed as on disk",
    "changed": "changed or gone since",
    "missing": "not indexed yet",
    "unavailable": "unavailable",
    "duplicate": "copies of other files of a session",
    "damaged": "with damaged lines",
}
_TONE: dict[str, Style] = {"error": "warn", "warning": "warn", "note": "dim"}
_MOST = 100


def report_cards(report: Answer, *, local: bool = False) -> list[Card]:
    """A verdict, the answer to what was asked, one card per problem, and the facts."""
    problems = list(report["problems"])[:_MOST]
    shown = [_verdict(report, problems)]
    if session := report.get("session"):
        shown.append(_session(session))
    return [*shown, *map(_problem, problems), _roots(report), _index(report, local)]


def _verdict(report: Answer, problems: list[Answer]) -> Card:
    grave = sum(1 for item in problems if item["severity"] == "error")
    if grave:
        title = [Piece("Broken: ", "warn"), Piece(words.count(grave, "problem"), "bold")]
    elif report["ok"]:
        title = [Piece("Healthy: ", "good"), Piece("everything is indexed as on disk", "bold")]
    else:
        nothing = report["index"]["snapshotAt"] is None
        what = "nothing is indexed yet" if nothing else "searches work, but something is left out"
        title = [Piece("Incomplete: ", "warn"), Piece(what, "bold")]
    return Card("said", title, [])


def _problem(item: Answer) -> Card:
    title = [Piece(f"{item['severity']}: ", _TONE[item["severity"]]), Piece(words.one_line(item["text"], PATH))]
    return Card("said", title, _run("run", item))


def _run(label: str, item: Answer) -> list[Row]:
    command = words.one_line(item["command"], PATH)
    return [row(label, command, "command")] if command else []


def _session(item: Answer) -> Card:
    asked = f"session {words.one_line(item['sessionId'], words.ID_CHARS)}"
    if item["entryId"]:
        asked = f"entry {words.one_line(item['entryId'], words.ID_CHARS)} of {asked}"
    verdict = Piece("is found: ", "good") if item["found"] else Piece("is not found: ", "warn")
    rows: list[Row] = []
    for reason in item["reasons"]:
        rows += [said(words.one_line(reason["text"], PATH), "plain"), *_run("run", reason)]
    for file in item["files"][: words.ROWS]:
        rows.append(row("file", f"{words.one_line(file['path'], PATH)} ({words.one_line(file['state'])})"))
    return Card("said", [verdict, Piece(asked, "bold")], [*rows, *_run("open" if item["entryId"] else "list", item)])


def _roots(report: Answer) -> Card:
    rows: list[Row] = []
    for root in report["roots"][:_MOST]:
        other = f", {root['otherFormat']:,} of another format" if root["otherFormat"] else ""
        state = words.count(root["files"], "file") + other if root["reachable"] else f"not read: {root['reason']}"
        rows.append(row("root", f"{words.one_line(root['path'], PATH)} ({words.one_line(state)})"))
    sources = report["sources"]
    counts = [f"{sources[name]:,} {text}" for name, text in _COUNTS.items() if sources.get(name)]
    return Card("said", [Piece("Sessions", "bold")], [*rows, row("files", ", ".join(counts) or "none")])


def _index(report: Answer, local: bool) -> Card:
    index, search, maintenance = report["index"], report["index"]["search"], report["maintenance"]
    reason = words.one_line(index["reason"], 400)
    holds = (
        f"{words.count(index['sessions'], 'session')}, {words.count(index['entries'], 'entry', 'entries')}, "
        f"{_size(index['size'])}, schema {index['schemaVersion'] or '-'}, folder {index['folderMode'] or 'absent'}, "
        + ("writable" if index["writable"] else "not writable")
    )
    made, age = index["snapshotAt"], index["snapshotAgeSeconds"]
    ran = f"{'ok' if search['ok'] else 'failed'} ({words.one_line(search['reason'])})"
    checks = {
        name: index[f"{key}Check"] for name, key in (("file", "quick"), ("full text", "fullText"), ("rows", "rows"))
    }
    results = [f"{name} {'not run' if found is None else words.one_line(found)}" for name, found in checks.items()]
    results.append(f"search {ran if search['ran'] else 'not run: ' + words.one_line(search['reason'])}")
    running = {True: "running", False: "not running", None: "cannot be told"}[maintenance["workerRunning"]]
    off = "" if maintenance["enabled"] else ", background maintenance is off"
    rows = [
        row("file", words.one_line(index["path"], PATH)),
        row("state", index["state"] + (f": {reason}" if reason else "")),
        row("holds", holds),
        row("made", "never" if made is None else words.when(made, local=local) + _age(age)),
        row("checks", ", ".join(results)),
        row("worker", f"{running}{off}, {words.count(maintenance['pending'], 'file')} to do"),
    ]
    return Card("said", [Piece("Index", "bold")], rows)


def _size(value: int | None) -> str:
    size = float(value or 0)
    for unit in ("bytes", "KB", "MB"):
        if size < 1024:
            return f"{size:.0f} {unit}"
        size /= 1024
    return f"{size:.1f} GB"


def _age(seconds: int) -> str:
    for length, unit in ((86_400, "day"), (3_600, "hour"), (60, "minute")):
        if seconds >= length:
            return f" ({words.count(seconds // length, unit)} ago)"
    return " (just now)"
