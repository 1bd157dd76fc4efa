"""Cards of an answer for a terminal: through ``rich`` where it is installed, else as stable plain text.

Text arrives here free of control characters (:mod:`.words`); only this module adds escape sequences, and only
with ``color=True``.
"""

from __future__ import annotations

import io
import unicodedata
from collections.abc import Iterable
from typing import Literal, NamedTuple

from .cards import Card, Line, Piece, Row, Style, cards
from .commands import Commands, in_shell
from .report import report_cards
from .words import Answer

GUTTER = "| "

_SGR: dict[Style, str] = {
    "plain": "",
    "bold": "1",
    "name": "1",
    "foreign": "2",
    "dim": "2",
    "mark": "1;4",
    "user": "36",
    "assistant": "35",
    "good": "32",
    "warn": "33",
    "badge": "33",
}
_RICH: dict[Style, str] = {
    "plain": "none",
    "bold": "bold",
    "name": "bold",
    "foreign": "dim",
    "dim": "dim",
    "mark": "bold underline",
    "user": "cyan",
    "assistant": "magenta",
    "good": "green",
    "warn": "yellow",
    "badge": "yellow",
}
_HANG = 3  # cells by which the lines below a title, and what is folded of them, are indented
_TITLE_HANG = 2 * _HANG  # a folded title never begins where a label does
_NARROWEST = 20
_WIDEST = 110


class Block(NamedTuple):
    """A card as lines. A ``quoted`` line is shown behind a gutter, a ``command`` neither folded nor framed."""

    title: Line
    body: list[tuple[Line, Literal["said", "quoted", "command"]]]
    framed: bool = False
    target: bool = False


def render_text(
    result: Answer, *, color: bool, width: int | None, commands: Commands | None = None, local: bool = False
) -> str:
    """The answer for a person at a terminal ``width`` cells wide, ending in a line end.

    ``color=False`` gives no escape sequence at all. Widths below 20 are taken as 20, and only commands, which are there
    to be copied, may be wider; with None nothing is folded or framed, and the same answer is the same text whether
    ``rich`` is there or not. ``commands`` are those of the shell over the default history unless others are given.
    ``local`` tells times in the reader's own zone, else in UTC.
    """
    return _render(cards(result, commands or in_shell(), local=local), color=color, width=width)


def render_report(report: Answer, *, color: bool, local: bool = False) -> str:
    """The doctor's report for a person at a terminal. Nothing is folded: its paths and commands are there to be copied."""
    return _render(report_cards(report, local=local), color=color, width=None)


def _block(card: Card) -> Block:
    title = [
        *([Piece(f"{card.number}. ", "dim")] if card.number else []),
        *([card.about[0], Piece(" · ", "dim")] if card.about else []),
        *card.title,
        *(card.about[1:] if card.about else []),
    ]
    rows = list(card.rows)
    if card.kind == "head" and card.cite:
        rows.insert(0, Row("cite", [Piece(card.cite)], "copy"))
    elif card.kind == "entry" and card.about is not None:
        rows.append(Row("cite", [Piece(card.cite)], "copy"))
    elif card.kind == "entry":
        title.append(Piece(f" · {card.entry}", "dim"))
    if card.kind == "session":
        rows.append(Row("id", [Piece(card.session)], "copy"))
    if card.target:
        title.append(Piece(" <- cited entry", "warn"))
    if card.command:
        rows.append(Row("open", [Piece(card.command)], "command"))
    if card.kind == "foot":
        return Block([], [(title, "said")])
    title = [Piece(f" [{text}]", style) if style == "badge" else Piece(text, style) for text, style in title]
    return Block(title, [*_quoted(card.quote), *map(_line, rows)], card.kind == "entry", card.target)


def _quoted(pieces: Line | None) -> list[tuple[Line, Literal["said", "quoted", "command"]]]:
    """Foreign text split at its line ends, each line quoted; tabs become spaces so that widths can be told."""
    lines: list[Line] = [] if pieces is None else [[]]
    for text, style in pieces or []:
        first, *rest = text.replace("\t", "    ").split("\n")
        lines[-1].append(Piece(first, style))
        lines += [[Piece(part, style)] for part in rest]
    return [(line, "quoted") for line in lines]


def _line(row: Row) -> tuple[Line, Literal["said", "quoted", "command"]]:
    label = [Piece(f"{row.label:<8}" if len(row.label) < 8 else f"{row.label} ", "dim")] if row.label else []
    line = [Piece(f" [{text}]", style) if style == "badge" else Piece(text, style) for text, style in row.line]
    return [*label, *line], "command" if row.kind == "command" else "said"


def _render(shown: list[Card], *, color: bool, width: int | None) -> str:
    blocks = list(map(_block, shown))
    if width is None:
        return _lines_text(blocks, color=color, width=None)
    bounded = min(_WIDEST, max(_NARROWEST, width))
    try:
        import rich  # noqa: F401
    except ImportError:
        return _lines_text(blocks, color=color, width=bounded)
    return _rich_text(blocks, color=color, width=bounded)


def _rich_text(shown: list[Block], *, color: bool, width: int) -> str:
    from rich import box
    from rich.console import Console, Group
    from rich.padding import Padding
    from rich.panel import Panel
    from rich.text import Text

    def text(line: Iterable[Piece]) -> Text:
        # Folded already; where rich takes a character for wider it must not begin a line of its own.
        return Text.assemble(*((piece.text, _RICH[piece.style]) for piece in line), no_wrap=True, overflow="ignore")

    out = io.StringIO()
    # Nothing is left to the environment: the caller has decided on colour and width.
    console = Console(
        file=out,
        width=width,
        color_system="standard" if color else None,
        force_terminal=color,
        force_jupyter=False,
        no_color=not color,
        legacy_windows=False,
        markup=False,
        emoji=False,
        highlight=False,
        _environ={},
    )

    def folded(card: Block, room: int) -> list[Padding]:
        shown = [Padding(text(line), 0) for line in _wrapped(card.title, room, _TITLE_HANG)] if card.title else []
        before = 0 if card.framed or not card.title else _HANG
        for line, kind in card.body:
            if kind == "quoted":
                rows = [[Piece(GUTTER, "dim"), *row] for row in _wrapped(line, room - before - len(GUTTER))]
            else:
                rows = [] if kind == "command" else _wrapped(line, room - before, _HANG)
            shown += [Padding(text(row), (0, 0, 0, before)) for row in rows]
        return shown

    for card in shown:
        if card.framed:
            frame, style = (box.HEAVY, "yellow") if card.target else (box.ROUNDED, "dim")
            console.print(Panel(Group(*folded(card, width - 4)), box=frame, border_style=style))
        else:
            console.print(Padding(Group(*folded(card, width - 2)), (0, 1)))
        for line, kind in card.body:
            if kind == "command":  # below the frame, where a terminal that folds it by itself copies it whole
                console.print(text([Piece("  "), *line]), soft_wrap=True)
    return "".join(f"{line.rstrip()}\n" for line in out.getvalue().split("\n")[:-1])


def _lines_text(shown: list[Block], *, color: bool, width: int | None) -> str:
    blocks = []
    for card in shown:
        rows = [_styled(line, color) for line in _wrapped(card.title, width, _TITLE_HANG)] if card.title else []
        indent = " " * _HANG if card.title else ""
        for line, kind in card.body:
            before = indent + (GUTTER if kind == "quoted" else "")
            room = None if width is None or kind == "command" else width - len(before)
            wrapped = _wrapped(line, room, 0 if kind == "quoted" else _HANG)
            rows += [(before + _styled(row, color)).rstrip() for row in wrapped]
        blocks.append("\n".join(rows))
    return "\n\n".join(blocks) + "\n"


def _styled(line: Line, color: bool) -> str:
    return "".join(
        f"\x1b[{_SGR[style]}m{text}\x1b[0m" if color and _SGR[style] and text else text for text, style in line
    )


def _wrapped(line: Line, width: int | None, hang: int = 0) -> list[Line]:
    """The line in lines of at most ``width`` cells, broken at spaces where there are any; all but the first are
    indented by ``hang``."""
    if width is None:
        return [line]
    chars = [(char, style) for text, style in line for char in text]
    done: list[Line] = []
    start = 0
    while start < len(chars):
        stop, used, space = start, hang if done else 0, 0
        while stop < len(chars) and (used + _cells(chars[stop][0]) <= width or stop == start):
            used += _cells(chars[stop][0])
            stop += 1
            if chars[stop - 1][0] == " ":
                space = stop
        if stop < len(chars) and chars[stop][0] != " " and space > start:
            stop = space
        end = stop
        while end > start + 1 and chars[end - 1][0] == " ":
            end -= 1
        done.append([*([Piece(" " * hang)] if done and hang else []), *_joined(chars[start:end])])
        start = stop
        while start < len(chars) and chars[start][0] == " ":
            start += 1
    return done or [[]]


def _joined(chars: list[tuple[str, Style]]) -> Line:
    pieces: Line = []
    for char, style in chars:
        if pieces and pieces[-1].style == style:
            pieces[-1] = Piece(pieces[-1].text + char, style)
        else:
            pieces.append(Piece(char, style))
    return pieces


def _cells(char: str) -> int:
    if unicodedata.combining(char) or unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1
