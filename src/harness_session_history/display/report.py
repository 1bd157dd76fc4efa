"""The doctor's report as cards: what is wrong first, then what was looked at."""

from __future__ import annotations

from typing import Any

from . import words
from .cards import Body, Card, Kind, Line, Piece, Style
from .words import Answer

PATH = 4096
_COUNTS = {
    "selected": "in all",
    "indexed": "indexed as on disk",
    "changed": "changed or gone since",
    "missing": "not indexed yet",
    "unavailable": "unavailable",
    "duplicate": "further files of a session",
    "damaged": "with damaged lines",
}
_TONE: dict[str, Style] = {"error": "warn", "warning": "warn", "note": "dim"}


def report_cards(report: Answer) -> list[Card]:
    """A verdict, the answer to what was asked, one card per problem, and the facts."""
    shown = [_verdict(report)]
    if session := words.part(report.get("session")):
        shown.append(_session(session))
    shown += [_problem(item) for item in words.rows(report.get("problems"), 100)]
    return [*shown, _roots(report), _index(report)]


def _verdict(report: Answer) -> Card:
    found = words.rows(report.get("problems"), 100)
    grave = sum(1 for item in found if item.get("severity") == "error")
    if grave:
        title = [Piece("Broken: ", "warn"), Piece(words.count(grave, "problem"), "bold")]
    elif report.get("ok") is True:
        title = [Piece("Healthy: ", "good"), Piece("everything is indexed as on disk", "bold")]
    else:
        nothing = words.part(report.get("index")).get("snapshotAt") is None
        what = "nothing is indexed yet" if nothing else "searches work, but something is left out"
        title = [Piece("Incomplete: ", "warn"), Piece(what, "bold")]
    return Card(title, [], framed=False)


def _problem(item: Answer) -> Card:
    severity = words.one_line(item.get("severity"), 20)
    title: Line = [Piece(f"{severity}: ", _TONE.get(severity, "plain")), Piece(words.one_line(item.get("text"), PATH))]
    return Card(title, [_label("run", words.one_line(item.get("command"), PATH))], framed=False)


def _session(item: Answer) -> Card:
    asked = f"session {words.one_line(item.get('sessionId'), words.ID_CHARS)}"
    if item.get("entryId"):
        asked = f"entry {words.one_line(item.get('entryId'), words.ID_CHARS)} of {asked}"
    reasons = words.rows(item.get("reasons"))
    verdict = Piece("is found: ", "good") if item.get("found") else Piece("is not found: ", "warn")
    body: Body = []
    for reason in reasons:
        body.append(([Piece(words.one_line(reason.get("text"), PATH))], "said"))
        if reason.get("command"):
            body.append(_label("run", words.one_line(reason.get("command"), PATH)))
    for file in words.rows(item.get("files")):
        body.append(
            _label("file", f"{words.one_line(file.get('path'), PATH)} ({words.one_line(file.get('state'), 200)})")
        )
    if item.get("command"):
        body.append(_label("open" if item.get("entryId") else "list", words.one_line(item.get("command"), PATH)))
    return Card([verdict, Piece(asked, "bold")], body)


def _roots(report: Answer) -> Card:
    body: Body = []
    for root in words.rows(report.get("roots"), 100):
        state = words.count(root.get("files"), "file") if root.get("reachable") else f"not read: {root.get('reason')}"
        body.append(_label("root", f"{words.one_line(root.get('path'), PATH)} ({words.one_line(state)})"))
    sources = words.part(report.get("sources"))
    counts = [
        f"{words.number(sources.get(name)):,} {said}"
        for name, said in _COUNTS.items()
        if words.number(sources.get(name))
    ]
    body.append(_label("files", ", ".join(counts) or "none"))
    return Card([Piece("Sessions", "bold")], body, framed=False)


def _index(report: Answer) -> Card:
    index, maintenance = words.part(report.get("index")), words.part(report.get("maintenance"))
    search = words.part(index.get("search"))
    state = words.one_line(index.get("state"), 40)
    reason = words.one_line(index.get("reason"), 400)
    body: Body = [
        _label("file", words.one_line(index.get("path"), PATH)),
        _label("state", state + (f": {reason}" if reason else "")),
        _label(
            "holds",
            f"{words.count(index.get('sessions'), 'session')}, {words.count(index.get('entries'), 'entry', 'entries')}, "
            f"{_size(index.get('size'))}, schema {index.get('schemaVersion') or '-'}, "
            f"folder {words.one_line(index.get('folderMode') or 'absent', 10)}, "
            + ("writable" if index.get("writable") else "not writable"),
        ),
        _label("made", _made(index)),
        _label(
            "checks",
            f"file {_check(index.get('quickCheck'))}, full text {_check(index.get('fullTextCheck'))}, rows {_check(index.get('rowsCheck'))}, search {_search(search)}",
        ),
        _label("worker", _worker(maintenance)),
    ]
    return Card([Piece("Index", "bold")], body, framed=False)


def _search(search: Answer) -> str:
    reason = words.one_line(search.get("reason"), 200)
    if not search.get("ran"):
        return f"not run: {reason}"
    return f"{'ok' if search.get('ok') else 'failed'} ({reason})"


def _check(value: object) -> str:
    return "not run" if value is None else words.one_line(value, 200)


def _worker(maintenance: Answer) -> str:
    running = maintenance.get("workerRunning")
    state = "running" if running else "cannot be told" if running is None else "not running"
    off = "" if maintenance.get("enabled") else ", background maintenance is off"
    return f"{state}{off}, {words.count(maintenance.get('pending'), 'file')} to do"


def _size(value: object) -> str:
    size = float(words.number(value))
    for unit in ("bytes", "KB", "MB"):
        if size < 1024:
            return f"{size:.0f} {unit}"
        size /= 1024
    return f"{size:.1f} GB"


def _made(index: Answer) -> str:
    return (
        "never"
        if index.get("snapshotAt") is None
        else words.when(index.get("snapshotAt")) + _age(index.get("snapshotAgeSeconds"))
    )


def _age(value: Any) -> str:
    if not isinstance(value, int):
        return ""
    for seconds, unit in ((86_400, "day"), (3_600, "hour"), (60, "minute")):
        if value >= seconds:
            return f" ({words.count(value // seconds, unit)} ago)"
    return " (just now)"


def _label(label: str, text: str) -> tuple[Line, Kind]:
    return [Piece(f"{label:<8}", "dim"), Piece(text)], "said"
