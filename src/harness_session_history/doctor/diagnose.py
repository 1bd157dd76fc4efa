"""`doctor`: what state roots, files and index are in, what is wrong, and one command for each of it.

For the owner of the sessions: it shows paths. It only looks, works where the index cannot be opened, and starts no
maintenance.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from typing import Any, Protocol

import apsw
import msgspec

from ..archive.files import open_regular
from ..arguments import check
from ..errors import InvalidRequest
from ..index.file import IndexFile, worker_lock
from ..index.schema import FOREIGN, ODD, SESSION, UNREADABLE, IntegrityFault
from ..model.entries import Facts
from ..model.sources import WalkCancelled
from ..pacing import Cancelled
from ..request import ARGUMENTS
from ..response import iso
from ..settings import Settings
from .case import Case, opened_case, shown, why_unreadable
from .index_health import examine, is_held
from .inspection import named_files


class Asked(Protocol):
    """The history that the report is about."""

    @property
    def settings(self) -> Settings: ...


#: Entries that are tried until some can be searched for.
PROBES = 20
#: Self-test: up to WORDS words of each of SEARCHED entries are searched for; the index is called damaged only if none is
#: found (a word alone may give other tokens than in its entry).
SEARCHED, WORDS = 3, 5
#: The beginning of an entry in which words are looked for; one that begins after `_SURELY_WHOLE` may be cut at the end.
_READ, _SURELY_WHOLE = 4_000, 3_800
_LONGEST_WORD = 100


async def diagnose(history: Asked, session_id: str | None = None, entry_id: str | None = None) -> dict[str, Any]:
    """The report; with `session_id` (and `entry_id`) also why that is or is not found. Never heals, never refreshes.

    Keys: ``ok, checkedAt, complete, roots, sources, damaged, unavailable, index, maintenance, registry, problems`` and,
    if asked for, ``session``. Raises InvalidRequest for an unusable id.
    """
    for name, value in (("session_id", session_id), ("entry_id", entry_id)):
        if value is not None:
            check(ARGUMENTS[name], value)
    if entry_id is not None and session_id is None:
        raise InvalidRequest("an entry is looked for in its session", hint="Give --session too.")
    import asyncio

    cancelled = threading.Event()
    work = partial(_diagnosed, history, session_id, entry_id, cancelled.is_set)
    try:
        return await asyncio.get_running_loop().run_in_executor(None, work)
    except asyncio.CancelledError:
        cancelled.set()
        raise


def _diagnosed(
    history: Asked, session_id: str | None, entry_id: str | None, cancelled: Callable[[], bool]
) -> dict[str, Any]:
    try:
        health = examine(history.settings.index, cancelled)
        try:
            with opened_case(history.settings, health, cancelled) as case:
                return _report(case, session_id, entry_id)
        except apsw.InterruptError:
            raise
        except (*ODD, IntegrityFault, apsw.Error) as error:
            # Damage that only shows when a page is read: say so, and say what the files alone tell.
            health.state, health.reason = "damaged", str(error)
            return _report(Case(history.settings, health, None, cancelled), session_id, entry_id)
    except (apsw.InterruptError, WalkCancelled) as error:
        raise Cancelled from error


def _report(case: Case, session_id: str | None, entry_id: str | None) -> dict[str, Any]:
    report: dict[str, Any] = {
        "ok": True,
        "checkedAt": iso(int(time.time() * 1000)),
        "complete": case.difference.complete,
        "roots": _roots(case),
        "sources": case.difference.counts(),
        "damaged": _damaged(case),
        "unavailable": _unavailable(case),
        "index": _index(case),
        "maintenance": _maintenance(case),
        "registry": _registry(case),
    }
    from .problems import problems

    report["problems"] = problems(case, report)
    report["ok"] = not any(problem["severity"] != "note" for problem in report["problems"])
    if session_id is not None:
        from .session import explain

        report["session"] = explain(case, session_id, entry_id)
    return dict(_told(report))


def _told(said: Any) -> Any:
    """What was said with its paths as text: until here they are bytes, so that commands can name any file."""
    if isinstance(said, dict):
        return {name: _told(value) for name, value in said.items()}
    if isinstance(said, list):
        return [_told(value) for value in said]
    return shown(said) if isinstance(said, bytes) else said


def _roots(case: Case) -> list[dict[str, Any]]:
    counts, others = [0] * len(case.settings.roots), [0] * len(case.settings.roots)
    for path, file in case.walk.files.items():
        row = case.catalog.sources.get(path)
        is_other = row is not None and row.state == FOREIGN and row.identity == file.state
        (others if is_other else counts)[file.root] += 1
    found = []
    for root, state, files, other in zip(case.settings.roots, case.walk.roots, counts, others, strict=True):
        said: dict[str, Any] = {
            "path": os.fsencode(root.path),
            "named": root.explicit,
            "reachable": state.reachable,
            "reason": state.reason,
            "required": state.reported,
            "files": files,
            "otherFormat": other,
        }
        if state.reachable and not files:
            # Files that do not count: another root's, another user's, other names of files that are counted elsewhere.
            said["otherFiles"] = len(named_files(root.path, ""))
        found.append(said)
    return found


def _damaged(case: Case) -> list[dict[str, Any]]:
    """Indexed files with lines that could not be read, as of the time they were indexed."""
    if case.connection is None:
        return []
    changed = {row.path for _, row in case.difference.changed}
    found = []
    for path, session_id, facts in case.connection.execute(
        "SELECT path, session_id, facts FROM sources WHERE damaged > 0 AND state = ? ORDER BY path", (SESSION,)
    ):
        if path not in case.walk.files:
            continue
        known = Facts() if facts is None else msgspec.msgpack.decode(facts, type=Facts)
        found.append(
            {
                "path": path,
                "sessionId": session_id,
                "count": known.unreadable_lines,
                "lines": damaged_lines(known),
                "changedSince": path in changed,
            }
        )
    return found


def damaged_lines(facts: Facts) -> list[int]:
    """Line numbers (1-based; the first twenty) of what could not be read, with that of a torn last line."""
    torn = [facts.lines + 1] if facts.torn_tail and facts.is_spoilt else []
    return [*facts.damaged_lines, *torn]


def _unavailable(case: Case) -> list[dict[str, Any]]:
    """Files and folders that should count and do not, each with its reason."""
    found: list[dict[str, Any]] = [
        {"path": path, "code": "unreadable", "reason": why} for path, why in case.walk.unavailable
    ]
    for item in found:
        if item["reason"] == "a link that leaves the roots":
            item["code"] = "leaves_roots"
    for path, file in case.walk.files.items():
        row = case.catalog.sources.get(path)
        if row is None or row.identity != file.state:
            continue
        if row.state == UNREADABLE:
            found.append({"path": path, "code": "unreadable", "reason": why_unreadable(case, path)})
    return found


def _index(case: Case) -> dict[str, Any]:
    said: dict[str, Any] = msgspec.to_builtins(case.health)
    snapshot = case.health.snapshot_at
    said["path"] = os.fsencode(case.health.path)
    said["snapshotAt"] = iso(snapshot)
    said["snapshotAgeSeconds"] = None if snapshot is None else max(0, int(time.time() - snapshot / 1000))
    said["search"] = _searched(case)
    if said["search"]["ran"] and not said["search"]["ok"] and case.health.state == "sound":
        case.health.state, case.health.reason = "damaged", said["search"]["reason"]
        said["state"], said["reason"] = case.health.state, case.health.reason
    return said


def _searched(case: Case) -> dict[str, Any]:
    """Really runs a search: for words of the newest entries, each of which must be among what its word finds."""
    from ..answer.citations import Evidence

    def said(ran: bool, ok: bool, reason: str) -> dict[str, Any]:
        return {"ran": ran, "ok": ok, "reason": reason}

    if case.connection is None:
        return said(False, False, "the index cannot be read")
    evidence = Evidence(case.connection, case.catalog)
    newest = evidence.spans.between(0, (1 << 63) - 1, descending=True)
    outside = case.catalog.outside  # sessions of other roots, which no search over these finds
    found = (one.row for one in newest if one.text and one.session not in outside and not evidence.hidden(one.row))
    located = evidence.locate_many(islice(found, PROBES))
    searched = read = 0
    try:
        for one in located:
            entry = evidence.hydrate([one])[0]
            if entry is None:
                continue
            words = list(islice(_words(entry.text), WORDS))
            read, searched = read + 1, searched + bool(words)
            for word in words:
                began = time.perf_counter()
                if _finds(case, word, case.catalog.sessions[one.session].session_id, entry.entry_id):
                    return said(True, True, f"in {(time.perf_counter() - began) * 1000:.0f} ms")
            if searched == SEARCHED:
                break
    except apsw.InterruptError:
        raise
    except apsw.Error as error:
        return said(True, False, str(error))
    if searched:
        return said(True, False, "words of indexed entries do not find them")
    if read:
        return said(False, False, "the newest entries hold no word to search for")
    if located:
        return said(False, False, "the newest entries are no longer in their files as they were indexed")
    return said(False, False, "nothing with text is indexed of these roots")


def _words(text: str) -> Iterator[str]:
    """Words of a text as the index cuts them, the longest first: only such as are the same word when they stand alone."""
    from ..text.tokens import Reading

    reading = Reading(text[:_READ])
    places = [(*reading.place(at, at + 1), stem) for at, stem in enumerate(reading.stems)]
    known = {
        text[start:end]: stem for start, end, stem in places if start < _SURELY_WHOLE and end - start <= _LONGEST_WORD
    }
    for word in sorted(known, key=len, reverse=True):
        if Reading(word).stems == [known[word]]:
            yield word


def _finds(case: Case, word: str, session_id: str, entry_id: str) -> bool:
    """Whether the search of every day, over one session, gives this entry for this word, newest first."""
    from ..answer.search import search
    from ..answer.sessions import SessionViews
    from ..request import SearchRequest, build_request
    from ..search.bm25 import Scorer
    from ..search.query import parse
    from ..search.rank import Searcher

    assert case.connection is not None
    request = build_request(
        operation="search", query=word, session_id=session_id, include_deleted=True, include_current=True,
        sort="newest", limit=20,
    )  # fmt: skip
    assert isinstance(request, SearchRequest)
    views = SessionViews(case.catalog, case.registry, case.settings.current_session)
    searcher = Searcher(case.connection, Scorer(case.connection), views.scope(request), case.catalog)
    answer, _ = search(case.connection, searcher, views, request, parse(word), lambda: None)
    hits = answer["results"]
    return answer["truncated"] or any(hit["citation"]["entryId"] == entry_id for hit in hits)


def _maintenance(case: Case) -> dict[str, Any]:
    return {
        "enabled": case.settings.maintenance,
        "workerRunning": is_held(worker_lock(case.settings.index)),
        "writing": is_held(IndexFile(case.settings.index).lock()),
        "pending": case.difference.pending,
        "purgePending": case.health.purge_pending,
    }


def _registry(case: Case) -> dict[str, Any] | None:
    path = case.settings.registry
    if path is None:
        return None
    reason = ""
    try:
        open_regular(path).close()
    except OSError as error:
        reason = error.strerror or "it cannot be read"
    return {"path": os.fsencode(path), "readable": not reason, "reason": reason, "sessions": len(case.registry)}
