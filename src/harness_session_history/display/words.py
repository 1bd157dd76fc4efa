"""What every view says alike: cleaned and bounded text, times, counts, badges, and the line on freshness."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Any, Literal, NamedTuple

from ..model.names import MAX_ID_CHARS

Answer = Mapping[str, Any]
Tone = Literal["plain", "good", "warn"]

NAME_CHARS = 200
ID_CHARS = MAX_ID_CHARS
PATH_CHARS = 300
QUERY_CHARS = 512
SNIPPET_CHARS = 1_000
TEXT_CHARS = 16_000
ROWS = 20
MESSAGES = 17
SMALL_ROWS = 5
TERMS = 32
TOOLS = 20

# Tab and LF stay: a block of text keeps its lines. U+2028/2029 would be read as line ends by some viewers.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]")
# Bidirectional controls, tag characters, byte order mark, interlinear annotation: they change or hide what is read.
_HIDDEN = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_TIME = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d)(?::[\d.]+)?Z\Z", re.ASCII)

_SAID = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d) UTC", re.ASCII)


class Freshness(NamedTuple):
    """One honest line: ``tone`` for colour, ``label`` the same in one or two words, ``text`` the reasons. ``cure`` is what
    can make it complete."""

    tone: Tone
    label: str
    text: str
    cure: Literal["", "refresh", "doctor"] = ""


def block(value: object, limit: int = TEXT_CHARS) -> str:
    """Text of several lines, at most ``limit`` code points, without control characters other than tab and LF."""
    text = value if isinstance(value, str) else "" if value is None else str(value)
    if len(text) > limit:
        text = text[: limit - 1] + "…"
    return _SURROGATE.sub("\ufffd", _HIDDEN.sub("", _CONTROL.sub(" ", text)))


def one_line(value: object, limit: int = NAME_CHARS) -> str:
    """The same on one line, white space collapsed."""
    return " ".join(block(value, limit).split())


def is_shown_exactly(value: str) -> bool:
    """Whether a text is shown as it is, and so can be copied from where it is shown."""
    return value.isprintable() and one_line(value, max(1, len(value))) == value


def count(n: int | None, one: str, many: str | None = None) -> str:
    """``1 hit``, ``1,204 hits``."""
    return f"{n or 0:,} {one if n == 1 else many or one + 's'}"


def ids(values: Iterable[object] | None, limit: int = ROWS) -> list[str]:
    """At most ``limit`` ids or terms, each on one line."""
    return [one_line(value, ID_CHARS) for value in list(values or ())[:limit]]


def when(value: object, *, local: bool = False) -> str:
    """``2026-03-02 10:05 UTC`` for an answer's ISO time, ``time unknown`` for anything else; with ``local`` the time of the
    reader's own zone and how far that is from UTC."""
    found = _TIME.match(value) if isinstance(value, str) else None
    if found is None:
        return "time unknown"
    if local:
        try:
            own = datetime.fromisoformat(f"{found[1]}T{found[2]}+00:00").astimezone()
        except (ValueError, OverflowError, OSError):
            own = None
        if own is not None and own.utcoffset():
            return f"{own:%Y-%m-%d %H:%M %z}"
    return f"{found[1]} {found[2]} UTC"


def when_in_short(text: str) -> str:
    """A text with its times of `when` without the words: ``2026-03-02 10:05Z``."""
    return _SAID.sub(r"\1Z", text)


def just_after(value: str) -> str:
    """A millisecond later than an answer's ISO time."""
    try:
        later = datetime.fromisoformat(value) + timedelta(milliseconds=1)
    except (ValueError, OverflowError):
        return value
    return later.replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"


def day(value: object) -> date | None:
    """The UTC day of an answer's ISO time."""
    found = _TIME.match(value) if isinstance(value, str) else None
    try:
        return date.fromisoformat(found[1]) if found else None
    except ValueError:
        return None


def project(view: Answer) -> str:
    """The last component of the session's folder, written with either separator."""
    names = [name for name in re.split(r"[/\\]", one_line(view.get("cwd"), 4096)) if name]
    return one_line(names[-1], NAME_CHARS) if names else "no project"


def role(item: Answer) -> Literal["user", "assistant"]:
    """``user`` or ``assistant``; other roles do not reach an answer."""
    return "assistant" if item.get("role") == "assistant" else "user"


def badges(view: Answer, *, visible: object = True) -> list[str]:
    """What sets a session, or a hit of it, apart, as words."""
    found = [word for word in ("deleted", "current") if view.get(word) is True]
    if view.get("kind") == "child":
        found.append("child")
    if view.get("root") == "project":
        found.append("of the project's folder")
    return [*found, "off branch"] if visible is False else found


def segments(text: object, spans: Iterable[Sequence[int]], limit: int = SNIPPET_CHARS) -> list[tuple[str, bool]]:
    """``text`` in pieces, each with whether it is marked.

    ``spans`` are code point offsets into the text as given, so the text is split before it is cleaned; what lies
    outside is clipped, what overlaps or touches is one mark.
    """
    raw = text if isinstance(text, str) else ""
    end = min(len(raw), limit)
    pieces: list[tuple[str, bool]] = []
    at = 0
    for start, stop in sorted((max(0, span[0]), min(end, span[1])) for span in spans):
        start = max(start, at)
        if stop > start:
            if pieces and start == at and pieces[-1][1]:
                pieces[-1] = pieces[-1][0] + raw[start:stop], True
            else:
                pieces += [(raw[at:start], False), (raw[start:stop], True)]
            at = stop
    pieces.append((raw[at:end] + ("…" if end < len(raw) else ""), False))
    return [(cleaned, marked) for piece, marked in pieces if (cleaned := block(piece, limit + 1))]


def marks_of(result: object, index: int) -> list[Sequence[int]]:
    """The spans of matched words in the snippet of result ``index``, none where the answer carries none."""
    marks = getattr(result, "marks", [])
    return list(marks[index]) if index < len(marks) else []


def locator(session_id: object, entry_id: object) -> str:
    """``session:<id>/entry:<id>``: the citation as one word to copy."""
    return f"session:{one_line(session_id, ID_CHARS)}/entry:{one_line(entry_id, ID_CHARS)}"


def tools(message: Answer) -> list[tuple[str, str]]:
    """Name and status of the tool calls of a message."""
    called = list(message.get("tools") or ())
    named = [(one_line(tool.get("name"), 80), one_line(tool.get("status"), 40)) for tool in called[:TOOLS]]
    return [*named, (f"{len(called) - TOOLS:,} more", "")] if len(called) > TOOLS else named


def found(result: Answer) -> str:
    """How many answers there are, and whether there are more."""
    items = list(result.get("results") or ())[:ROWS]
    if result.get("operation") != "search":
        sessions = count(len(items), "session")
        return f"the first {sessions}, there are more" if result.get("truncated") else sessions
    if not items:
        return "nothing matched"
    among = {str(item["citation"]["sessionId"]) for item in items}
    text = f"{count(len(items), 'hit')} in {count(len(among), 'session')}"
    return f"the first {text}, more entries match" if result.get("truncated") else text


def notes(result: Answer) -> list[str]:
    """What the reader of a search must know beside its hits, each a sentence."""
    said = []
    if result.get("rankedAll") is False:
        said.append(
            "Too many entries match to rank all: those of the sessions that were active last were ranked; a longer query ranks all."
        )
    if gone := ids(result.get("unavailableSessionIds")):
        more = " and more" if result.get("unavailableTruncated") else ""
        said.append(
            "Left out, because the transcript no longer says what was indexed: hits of "
            f"{count(len(gone), 'session')}{more} ({', '.join(gone)}{more})."
        )
    if result.get("currentSession") == "unknown" and result.get("results"):
        said.append("The calling session is not known, so its own entries may be among these.")
    return said


def freshness(result: Answer, *, local: bool = False, filters: Sequence[str] = ()) -> Freshness:
    """The state of the index behind an answer. ``good`` needs ``complete`` and no count that speaks against it.

    ``filters`` are those of the call that choose sessions, in the words of the reader.
    """
    state = result.get("freshness") or {}
    sources = state.get("sources") or {}
    selected = sources.get("selected") or 0
    lacking = [
        f"{n:,} {reason if n > 1 else single}"
        for key, single, reason in (
            ("changed", "has changed since it was indexed", "have changed since they were indexed"),
            ("missing", "is not indexed yet", "are not indexed yet"),
            ("unavailable", "cannot be read", "cannot be read"),
        )
        if (n := sources.get(key) or 0)
    ]
    aside = []
    if damaged := sources.get("damaged"):
        aside.append(f"{damaged:,} {'holds' if damaged == 1 else 'hold'} damaged lines that could not be read")
    if pending := sources.get("pendingMaintenance"):
        aside.append(f"{pending:,} {'waits' if pending == 1 else 'wait'} for background indexing")
    tail = "".join(f"; {item}" for item in aside) + "."
    if note := one_line(state.get("note"), 4 * PATH_CHARS):
        return Freshness("warn", "No sessions", note + tail, "doctor")
    if result.get("complete") is True and not lacking:
        if not selected:
            return _nothing_selected(tail, filters)
        checked = f", checked {when(state.get('checkedAt'), local=local)}" if state.get("checkedAt") else ""
        whole = "the one session is" if selected == 1 else f"all {selected:,} sessions are"
        return Freshness("good", "Complete", f"{whole} indexed as on disk{checked}{tail}")
    if state.get("snapshotAt") is None:
        lacking.insert(0, "nothing is indexed yet")
    else:
        tail = f"; index of {when(state.get('snapshotAt'), local=local)}{tail}"
    reasons = ", ".join(lacking) or "the index could not be compared with the transcripts"
    cure: Literal["refresh", "doctor"] = "refresh" if sources.get("changed") or sources.get("missing") else "doctor"
    return Freshness("warn", "Incomplete", f"of {count(selected, 'session file')}, {reasons}{tail}", cure)


def _nothing_selected(tail: str, filters: Sequence[str]) -> Freshness:
    if filters:
        said = f"{', '.join(filters)} {'leaves' if len(filters) == 1 else 'leave'} no session to look in"
        return Freshness("warn", "No sessions", said + tail)
    return Freshness("warn", "No sessions", f"no session file is in scope of this call{tail}", "doctor")
