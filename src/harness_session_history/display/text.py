"""An answer as text for a model's context: compact, stable (`docs/text.md`), and safe to stand in a prompt.

Every line that quotes a transcript begins with ``> ``, so that nothing in it can imitate a line of ours. Names, folders and
ids, which stand on lines of ours, are bounded, on one line, and in quotes where they hold anything unusual.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator

from . import words
from .cards import Card, Line, cards
from .commands import FILTERS, Commands, in_tool
from .words import Answer

#: Code points of a snippet in a text, where the caller names no number: enough to judge a hit by, half the cost of a hit.
SNIPPET_CHARS = 180
#: Of these, how many may stand before the first match, and within how many a cut looks for a space.
_BEFORE, _NEAR = 50, 20
QUOTE = "> "
_PLAIN = re.compile(r"[A-Za-z0-9._:/@+=,~-]+")
_BLANK_LINES = re.compile(r"\n\s*\n+")


def render_text_for_model(answer: Answer, commands: Commands | None = None) -> str:
    """The answer of list, search or open as text ending in a line end; what it tells to call is the tool
    ``session_history`` unless ``commands`` says otherwise."""
    commands = commands or in_tool(getattr(answer, "asked", None))
    head, *shown, foot = cards(answer, commands)
    told: set[str] = set()
    parts = ["\n".join([_line(head.title), *_rows(head), foot.title[0].text])]
    whole = "snippet_chars" in commands.asked
    parts += ["\n".join(_card(card, told, whole)) for card in shown]
    following = _next(answer, commands, shown)
    return "\n\n".join([*parts, *([following] if following else [])]) + "\n"


def quoted_word(text: str) -> str:
    """A name or an id as it is; as a JSON string of ASCII if it holds anything unusual."""
    return text if _PLAIN.fullmatch(text) else json.dumps(text, ensure_ascii=False).replace("<", "\\u003c")


def _card(card: Card, told: set[str], whole: bool) -> Iterator[str]:
    rows = list(_rows(card))
    if card.kind == "said":
        yield _line(card.title)
    else:
        number = f"[{card.number}] " if card.number else ""
        title = (
            _line(card.title).replace(" · ", " ") if card.kind == "entry" else f"{_line(card.title)} · {rows.pop(0)}"
        )
        yield f"{number}{quoted_word(card.cite or f'session:{card.session}')} {title}{_about(card, told)}"
    if card.quote is not None:
        text = "".join(piece.text for piece in card.quote)
        if card.number:  # a snippet
            text = _BLANK_LINES.sub("\n", (text if whole else _shortened(card.quote, text)).strip())
        yield from (QUOTE + line for line in text.split("\n"))
    yield from rows


def _shortened(pieces: Line, text: str) -> str:
    """The part of a snippet that holds most of its matches, cut at spaces where some are near."""
    if len(text) <= SNIPPET_CHARS:
        return text
    room, at, spans = SNIPPET_CHARS - 2, 0, []
    for piece in pieces:
        if piece.style == "mark":
            spans.append((at, at + len(piece.text)))
        at += len(piece.text)
    inside = [[span for span in spans[i:] if span[1] <= spans[i][0] + room] for i in range(len(spans))]
    held = max(inside, key=len, default=[]) or spans[:1] or [(0, 0)]
    first, last = held[0][0], held[-1][1]
    begin = min(first, max(0, first - _BEFORE, last - room))
    begin = min(begin, len(text) - room)
    end = begin + room
    if begin:
        space = next((i for i in range(begin, min(begin + _NEAR, first)) if text[i].isspace()), begin)
        begin = space + (space > begin)
        while begin < first and _continues(text[begin]):
            begin += 1
    if end < len(text):
        end = next((i for i in range(end, max(end - _NEAR, last), -1) if text[i].isspace()), end)
        while end > max(last, begin + 1) and _continues(text[end]):
            end -= 1
    return ("…" if begin else "") + text[begin:end].strip() + ("…" if end < len(text) else "")


def _continues(char: str) -> bool:
    """Whether a character belongs to the one before it."""
    return unicodedata.category(char) in ("Mn", "Me", "Mc", "Cf", "Sk")


def _about(card: Card, told: set[str]) -> str:
    """What a hit's session is, the first time that it is met; and what it takes to open the hit."""
    new = card.about is not None and card.session not in told
    told.add(card.session)
    about = f" {_line(card.about or []).replace(' · ', ', ')}" if new else ""
    return about + (" (cited)" if card.target else "") + (f" (open with {' '.join(card.needs)})" if card.needs else "")


def _line(line: Line) -> str:
    """Pieces on a line of ours: what is foreign in quotes unless it is plain, badges in brackets, times in short."""
    shown = []
    for text, style in line:
        if style in ("name", "foreign"):
            shown.append(quoted_word(text))
        else:
            shown.append(f" [{text}]" if style == "badge" else words.when_in_short(text))
    return "".join(shown)


def _rows(card: Card) -> Iterator[str]:
    for row in card.rows:
        yield (f"{row.label}: " if row.label else "") + _line(row.line)


def _next(answer: Answer, commands: Commands, shown: list[Card]) -> str:
    """What to do next, in one line."""
    hints = answer.get("hints") or {}
    if not answer.get("results", True) and (suggestion := hints.get("suggestion")):
        again = commands.again(query=suggestion) if commands.asked else commands.call({"query": suggestion})
        return f"Next: {again}" if again else ""
    if hints.get("outsideFilters") and commands.asked and (again := commands.again(**dict.fromkeys(FILTERS))):
        return f"Next: without filters: {again}"
    if answer.get("operation") == "open" and not (answer.get("moreBefore") or answer.get("moreAfter")):
        return ""
    if commands.cite and any(card.cite for card in shown):
        return f"Next: open a citation: {commands.cite}"
    if answer.get("operation") == "search":
        return "Next: search again with fewer or other words."
    return ""
