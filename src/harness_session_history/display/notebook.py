"""Cards of an answer for a notebook: plain HTML and CSS, no script, nothing remote, every text escaped."""

from __future__ import annotations

from html import escape

from .cards import Card, Line, Row, cards
from .commands import in_python
from .style import style_sheet
from .timeline import timeline
from .words import ROWS, Answer


def render_html(result: Answer) -> str:
    """One self-contained ``<section>`` for an answer of ``search``, ``open`` or ``list`` (contract sections 3 and 10).

    The size is bounded: rows, names and texts are cut at the limits that the answers themselves keep. Where the
    result has the attribute ``marks`` (per result the spans of matched words, in code points of its snippet),
    the words are marked; ``function`` (else ``session_history``) is what the calls to be copied call.
    """
    commands = in_python(getattr(result, "function", "session_history"), getattr(result, "asked", None))
    shown = cards(result, commands)
    chart = timeline(list(result.get("results") or ())[:ROWS]) if result.get("operation") == "list" else ""
    body = _head(shown[0], chart) + "".join(map(_card, shown[1:]))
    return f'<section class="hsh" aria-label="Session history"><style>{style_sheet()}</style>{body}</section>'


def _head(card: Card, chart: str) -> str:
    rows = (_cite("cite", card.cite, card) if card.cite else "") + "".join(map(_row, card.rows))
    return f'<div class="hsh-head"><p class="hsh-title">{_line(card.title)}</p>{chart}{rows}</div>'


def _card(card: Card) -> str:
    rows = "".join(map(_row, card.rows))
    if card.kind == "foot":
        return f'<div class="hsh-foot"><p>{_line(card.title)}</p></div>'
    if card.kind == "said":
        kind = "hsh-hints" if card.rows else "hsh-small"
        return f'<div class="hsh-card {kind}"><p>{_line(card.title)}</p>{rows}</div>'
    if card.kind == "session":
        return f'<div class="hsh-card"><div class="hsh-meta">{_line(card.title)}</div>{rows}{_cite("id", card.session, card)}</div>'
    spoken = card.title[0].text
    about = card.about or []
    title = [*about[:1], *card.title, *about[1:]]
    # Only the title of a hit names its session: where all entries are of one session, its id is what sets an entry apart.
    own = _cite("cite", card.cite, card) if card.about is not None else ""
    name = "" if card.about is not None else f' <code class="hsh-copy">{escape(card.entry)}</code>'
    flag = ' <strong class="hsh-flag">◆ cited entry</strong>' if card.target else ""
    text = "".join(
        f"<mark>{_lines(text)}</mark>" if style == "mark" else _lines(text) for text, style in card.quote or []
    )
    return (
        f'<div class="hsh-card{" hsh-target" if card.target else ""}"><div class="hsh-meta">{_line(title)}{name}{flag}</div>'
        f'<blockquote class="hsh-text hsh-text-{spoken}" dir="auto">{text}</blockquote>{rows}{own}</div>'
    )


def _cite(label: str, text: str, card: Card) -> str:
    call = card.command
    more = f' <details><summary>open</summary> <code class="hsh-copy">{escape(call)}</code></details>' if call else ""
    return f'<div class="hsh-small">{label} <code class="hsh-copy">{escape(text)}</code>{more}</div>'


def _row(row: Row) -> str:
    if row.kind == "fresh":
        tone = row.line[0].style
        sign = {"good": "✓ ", "warn": "⚠ "}.get(tone, "")
        label, *rest = (escape(piece.text) for piece in row.line)
        return f'<p class="hsh-fresh hsh-{tone}"><strong>{sign}{label}</strong>{"".join(rest)}</p>'
    label = f"{row.label}: " if row.label else ""
    if row.kind == "said":
        return f'<p class="hsh-small">{label}{_line(row.line)}</p>'
    text = escape("".join(piece.text for piece in row.line))
    return f'<p class="hsh-small">{label}<code class="hsh-copy">{text}</code></p>'


_TAGS = {
    "bold": '<strong class="hsh-name">{}</strong>',
    "name": '<strong class="hsh-name"><bdi>{}</bdi></strong>',
    "badge": ' <em class="hsh-badge">{}</em>',
    "user": ' · <strong class="hsh-role-user">{}</strong>',
    "assistant": ' · <strong class="hsh-role-assistant">{}</strong>',
}


def _line(line: Line) -> str:
    """Pieces of foreign text, each isolated so that its writing direction cannot reorder what stands around it."""
    shown = "".join(_TAGS.get(style, "<bdi>{}</bdi>").format(escape(text)) for text, style in line)
    return shown.removeprefix(" · ")


def _lines(text: str) -> str:
    """Foreign text of several lines; ``<br>`` keeps them without a style sheet too."""
    return escape(text).replace("\n", "<br>")
