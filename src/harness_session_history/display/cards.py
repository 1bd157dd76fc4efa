"""An answer as cards for a terminal: lines of styled pieces, before anything is wrapped, framed or coloured."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from . import words
from .commands import Commands
from .words import Answer

Style = Literal["plain", "bold", "dim", "mark", "user", "assistant", "good", "warn"]
Kind = Literal["said", "quoted", "command"]
GUTTER = "| "


class Piece(NamedTuple):
    text: str
    style: Style = "plain"


Line = list[Piece]
Body = list[tuple[Line, Kind]]


class Card(NamedTuple):
    """One block. ``title`` and ``body`` hold no line ends; a ``quoted`` line is foreign text and must be shown behind
    a gutter, so that no transcript can imitate what stands around it; a ``command`` is there to be copied, so it is
    never folded or framed."""

    title: Line
    body: Body
    framed: bool = True
    target: bool = False


def cards(result: Answer, commands: Commands) -> list[Card]:
    """Head, one card per hit, message or session, hints, and the foot."""
    operation = result.get("operation")
    if operation == "search":
        shown = _search(commands, result)
    else:
        shown = _open(result) if operation == "open" else _list(result)
    foot = Card([], [_say(words.one_line(result.get("warning"), 400), "dim")], framed=False)
    return [*shown, foot]


def _search(commands: Commands, result: Answer) -> list[Card]:
    items = words.rows(result.get("results"))
    query = words.one_line(result.get("query"), words.QUERY_CHARS)
    under = [_say(words.found(result), "dim"), *(_say(note, "dim") for note in words.notes(result))]
    head = _head(result, [Piece("Search: ", "dim"), Piece(query, "bold")], under)
    if not items:
        return [head, *_hints(commands, words.part(result.get("hints")))]
    return [head, *(_hit(commands, item, f"{i + 1}. ", words.marks_of(result, i)) for i, item in enumerate(items))]


def _hit(commands: Commands, item: Answer, number: str, spans: Iterable[Sequence[int]]) -> Card:
    view = words.part(item.get("session"))
    spoken = words.role(item)
    title = [
        Piece(number, "dim"),
        Piece(words.one_line(view.get("name")), "bold"),
        Piece(" · ", "dim"),
        Piece(spoken, spoken),
        Piece(f" · {words.when(item.get('createdAt'))} · {words.project(view)}", "dim"),
        *_badges(view, item.get("visible")),
    ]
    body = _quote(
        [Piece(text, "mark" if marked else "plain") for text, marked in words.segments(item.get("snippet"), spans)]
    )
    if missing := words.strings(item.get("missingTerms"), words.TERMS):
        body.append(_say(f"without: {', '.join(missing)}", "dim"))
    body.append(_label("cite", words.locator(item)))
    if command := commands.opening(item):
        body.append(_label("open", command, "command"))
    if others := words.strings(item.get("alsoIn")):
        body.append(_label("also", " ".join(others)))
    return Card(title, body)


def _hints(commands: Commands, hints: Answer) -> list[Card]:
    body: Body = []
    if suggestion := words.one_line(hints.get("suggestion"), words.QUERY_CHARS):
        body.append(([Piece("try     ", "dim"), Piece(suggestion, "bold")], "said"))
    terms = [
        f"{words.one_line(term.get('term'), words.ID_CHARS)} ({words.count(term.get('entries'), 'entry', 'entries')})"
        for term in words.rows(hints.get("terms"), words.TERMS)
    ]
    if terms:
        body.append(_label("terms", ", ".join(terms)))
    if off := words.number(hints.get("offBranchMatches")):
        verb = "matches" if off == 1 else "match"
        body.append(
            _label(
                "branch", f"{words.count(off, 'entry', 'entries')} off the visible branch {verb}: {commands.any_branch}"
            )
        )
    sessions = words.rows(hints.get("sessions"), words.SMALL_ROWS)
    if sessions:
        body.append(_say("every term occurs in these sessions, though never in one entry:", "dim"))
    for view in sessions:
        session = words.one_line(view.get("sessionId"), words.ID_CHARS)
        name = Piece(f"  {words.one_line(view.get('name'))}", "bold")
        body.append(([name, Piece(f" · {words.project(view)} · {session}", "dim"), *_badges(view)], "said"))
    near = words.rows(hints.get("nearest"), words.SMALL_ROWS)
    if near:
        body.append(_say("nearest, holding most of the terms:", "dim"))
    first = [Card([Piece("Hints", "bold")], body, framed=False)] if body else []
    return [*first, *(_hit(commands, item, f"{index + 1}. ", []) for index, item in enumerate(near))]


def _open(result: Answer) -> list[Card]:
    view = words.part(result.get("session"))
    title = [Piece(words.one_line(view.get("name")), "bold"), Piece(f" · {words.project(view)}", "dim"), *_badges(view)]
    shown = [_head(result, title, [_label("cite", words.locator(result))])]
    shown += _gap(result.get("moreBefore"), "earlier")
    left = words.TEXT_CHARS
    for message in words.rows(result.get("messages"), words.MESSAGES):
        text = words.block(message.get("text"), max(left, 1))
        left -= len(text)
        shown.append(_message(message, text, target=message.get("entryId") == result.get("entryId")))
    return shown + _gap(result.get("moreAfter"), "later")


def _message(message: Answer, text: str, *, target: bool) -> Card:
    spoken = words.role(message)
    entry = words.one_line(message.get("entryId"), words.ID_CHARS)
    title = [Piece(spoken, spoken), Piece(f" · {words.when(message.get('createdAt'))} · {entry}", "dim")]
    if target:
        title.append(Piece(" <- cited entry", "warn"))
    body = _quote([Piece(text)])
    if message.get("textTruncated"):
        body.append(_say("The entry is longer than what is shown.", "dim"))
    if called := words.tools(message):
        body.append(_label("tools", ", ".join(called)))
    return Card(title, body, target=target)


def _gap(more: object, side: str) -> list[Card]:
    if not words.number(more):
        return []
    text = f"({words.count(more, f'{side} entry', f'{side} entries')} not shown)"
    return [Card([], [_say(text, "dim")], framed=False)]


def _list(result: Answer) -> list[Card]:
    head = _head(result, [Piece("Past sessions: ", "dim"), Piece(words.found(result), "bold")], [])
    return [head, *(_session(view, index) for index, view in enumerate(words.rows(result.get("results")), 1))]


def _session(view: Answer, index: int) -> Card:
    name, lineage = words.one_line(view.get("name")), words.one_line(view.get("lineage"), 2 * words.NAME_CHARS)
    title = [Piece(f"{index}. ", "dim"), Piece(name, "bold"), *_badges(view)]
    facts = (
        f"{words.project(view)} · last active {words.when(view.get('updatedAt'))} · "
        f"{words.count(view.get('messageCount'), 'message')}"
    )
    body = [_say(facts, "dim"), _label("id", words.one_line(view.get("sessionId"), words.ID_CHARS))]
    if words.number(view.get("depth")) and lineage != name:
        body.append(_label("below", lineage))
    return Card(title, body, framed=False)


def _head(result: Answer, title: Line, under: Body) -> Card:
    state = words.freshness(result)
    tone: Style = "dim" if state.tone == "plain" else state.tone
    fresh = [Piece(f"{state.label}: ", tone), Piece(state.text, tone)]
    return Card(title, [*under, (fresh, "said")], framed=False)


def _badges(view: Answer, visible: object = True) -> Line:
    return [Piece(f" [{word}]", "warn") for word in words.badges(view, visible=visible)]


def _say(text: str, style: Style = "plain") -> tuple[Line, Kind]:
    return [Piece(text, style)], "said"


def _label(label: str, text: str, kind: Kind = "said") -> tuple[Line, Kind]:
    return [Piece(f"{label:<8}", "dim"), Piece(text)], kind


def _quote(pieces: Line) -> Body:
    """Foreign text split at its line ends, each line quoted; tabs become spaces so that widths can be told."""
    lines: list[Line] = [[]]
    for text, style in pieces:
        first, *rest = text.replace("\t", "    ").split("\n")
        lines[-1].append(Piece(first, style))
        lines += [[Piece(part, style)] for part in rest]
    return [(line, "quoted") for line in lines]
