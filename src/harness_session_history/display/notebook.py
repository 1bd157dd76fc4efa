"""Cards of an answer for a notebook: plain HTML and CSS, no script, nothing remote, every text escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from . import words
from .commands import Commands, in_python
from .style import style_sheet
from .timeline import timeline
from .words import Answer


def render_html(result: Answer) -> str:
    """One self-contained ``<section>`` for an answer of ``search``, ``open`` or ``list`` (contract sections 3 and 10).

    The size is bounded: rows, names and texts are cut at the limits that the answers themselves keep. Where the
    result has the attribute ``marks`` (per result the spans of matched words, in code points of its snippet),
    the words are marked; ``function`` (else ``session_history``) is what the calls to be copied call.
    """
    operation = result.get("operation")
    if operation == "search":
        body = _search(in_python(getattr(result, "function", "session_history")), result)
    else:
        body = _open(result) if operation == "open" else _list(result)
    warning = words.one_line(result.get("warning"), 400)
    return (
        f'<section class="hsh" aria-label="Session history"><style>{style_sheet()}</style>{body}'
        f'<div class="hsh-foot"><p>{escape(warning)}</p></div></section>'
    )


def _search(commands: Commands, result: Answer) -> str:
    items = words.rows(result.get("results"))
    query = words.one_line(result.get("query"), words.QUERY_CHARS)
    notes = "".join(f'<p class="hsh-small">{escape(note)}</p>' for note in words.notes(result))
    head = _head(result, "Session search", _text(query), words.found(result), notes)
    hits = [_hit(commands, item, words.marks_of(result, index)) for index, item in enumerate(items)]
    return head + (_cards(hits) if hits else _hints(commands, words.part(result.get("hints"))))


def _hit(commands: Commands, item: Answer, spans: Iterable[Sequence[int]]) -> str:
    spoken = words.role(item)
    pieces = words.segments(item.get("snippet"), spans)
    snippet = "".join(f"<mark>{_lines(text)}</mark>" if marked else _lines(text) for text, marked in pieces)
    missing = words.strings(item.get("missingTerms"), words.TERMS)
    lacks = f'<p class="hsh-small">without: {", ".join(_text(term) for term in missing)}</p>' if missing else ""
    return (
        _meta(words.part(item.get("session")), spoken, item.get("createdAt"), item.get("visible"))
        + f'<blockquote class="hsh-text hsh-text-{spoken}" dir="auto">{snippet}</blockquote>{lacks}{_citation(commands, item)}{_copies(item)}'
    )


def _copies(item: Answer) -> str:
    others = words.strings(item.get("alsoIn"))
    if not others:
        return ""
    ids = " ".join(f'<code class="hsh-copy">{escape(other)}</code>' for other in others)
    return f'<div class="hsh-small">also in {words.count(len(others), "other session")}: {ids}</div>'


def _citation(commands: Commands, item: Answer) -> str:
    call = commands.opening(item)
    if call is None:
        return _cite(item)
    return _cite(item, f' <details><summary>read on</summary> <code class="hsh-copy">{escape(call)}</code></details>')


def _cite(item: Answer, more: str = "") -> str:
    return f'<div class="hsh-small">cite <code class="hsh-copy">{escape(words.locator(item))}</code>{more}</div>'


def _meta(view: Answer, spoken: str, created: object, visible: object = True) -> str:
    name = words.one_line(view.get("name"))
    folder = words.one_line(view.get("cwd"), words.PATH_CHARS)
    return (
        f'<div class="hsh-meta"><strong class="hsh-name">{_text(name)}</strong> · {_role(spoken)} · {words.when(created)} · '
        f'<span title="{escape(folder)}">{_text(words.project(view))}</span>{_badges(view, visible)}</div>'
    )


def _hints(commands: Commands, hints: Answer) -> str:
    parts: list[str] = []
    if suggestion := words.one_line(hints.get("suggestion"), words.QUERY_CHARS):
        parts.append(f'<p><strong>Try instead:</strong> <code class="hsh-copy">{escape(suggestion)}</code></p>')
    if terms := words.rows(hints.get("terms"), words.TERMS):
        listed = "".join(_term(term) for term in terms)
        parts.append(f'<p class="hsh-small">How many entries hold each term:</p><ul class="hsh-terms">{listed}</ul>')
    if off := words.number(hints.get("offBranchMatches")):
        verb = "matches" if off == 1 else "match"
        parts.append(
            f"<p>{words.count(off, 'entry', 'entries')} off the visible branch {verb}: "
            f'add <code class="hsh-copy">{escape(commands.any_branch)}</code></p>'
        )
    if sessions := words.rows(hints.get("sessions"), words.SMALL_ROWS):
        listed = "".join(
            f"<li>{_text(words.one_line(view.get('name')))} · {_text(words.project(view))}{_badges(view)} "
            f'<code class="hsh-copy">{escape(words.one_line(view.get("sessionId"), words.ID_CHARS))}</code></li>'
            for view in sessions
        )
        parts.append(f"<p>Every term occurs in these sessions, though never in one entry:</p><ul>{listed}</ul>")
    nearest = words.rows(hints.get("nearest"), words.SMALL_ROWS)
    if nearest:
        parts.append("<p>Nearest, holding most of the terms:</p>")
    if not parts:
        return ""
    return f'<div class="hsh-card hsh-hints">{"".join(parts)}</div>' + _cards(
        [_hit(commands, item, []) for item in nearest]
    )


def _term(term: Answer) -> str:
    n = words.number(term.get("entries"))
    kind = "" if n else ' class="hsh-none"'
    return f"<li{kind}>{_text(words.one_line(term.get('term'), words.ID_CHARS))}: {n:,}{'' if n else ' (nowhere)'}</li>"


def _open(result: Answer) -> str:
    view = words.part(result.get("session"))
    name = words.one_line(view.get("name"))
    under = f'<p class="hsh-small">{_text(words.project(view))}{_badges(view)}</p>{_cite(result)}'
    shown = _head(result, "Session excerpt", _text(name), "", under) + _gap(result.get("moreBefore"), "earlier")
    left = words.TEXT_CHARS
    cards = []
    for message in words.rows(result.get("messages"), words.MESSAGES):
        text = words.block(message.get("text"), max(left, 1))
        left -= len(text)
        cards.append(_message(message, text, target=message.get("entryId") == result.get("entryId")))
    return shown + "".join(cards) + _gap(result.get("moreAfter"), "later")


def _message(message: Answer, text: str, *, target: bool) -> str:
    spoken = words.role(message)
    cut = '<p class="hsh-small">The entry is longer than what is shown.</p>' if message.get("textTruncated") else ""
    called = words.tools(message)
    tools = f'<p class="hsh-small">tools: {", ".join(_text(tool) for tool in called)}</p>' if called else ""
    entry = escape(words.one_line(message.get("entryId"), words.ID_CHARS))
    shown = '<strong class="hsh-flag">◆ cited entry</strong>' if target else f'<code class="hsh-copy">{entry}</code>'
    return (
        f'<div class="hsh-card{" hsh-target" if target else ""}"><div class="hsh-meta">{_role(spoken)} · '
        f"{words.when(message.get('createdAt'))} · {shown}</div>"
        f'<blockquote class="hsh-text hsh-text-{spoken}" dir="auto">{_lines(text)}</blockquote>{cut}{tools}</div>'
    )


def _gap(more: object, side: str) -> str:
    if not words.number(more):
        return ""
    return f'<p class="hsh-gap hsh-small">{words.count(more, f"{side} entry", f"{side} entries")} not shown</p>'


def _list(result: Answer) -> str:
    sessions = words.rows(result.get("results"))
    chart = timeline(sessions)
    head = _head(result, "Past sessions", escape(words.found(result)), "", chart)
    if not sessions:
        return head
    listed = "".join(_row(view) for view in sessions)
    columns = '<th scope="col">session</th><th scope="col">project</th><th scope="col">last active</th>'
    columns += '<th scope="col" class="hsh-num">messages</th><th scope="col">session id</th>'
    return (
        f'{head}<div class="hsh-scroll"><table class="hsh-table"><thead><tr>{columns}</tr></thead>'
        f"<tbody>{listed}</tbody></table></div>"
    )


def _row(view: Answer) -> str:
    name = words.one_line(view.get("name"))
    lineage = words.one_line(view.get("lineage"), 2 * words.NAME_CHARS)
    above = (
        f'<div class="hsh-small">{_text(lineage)}</div>' if words.number(view.get("depth")) and lineage != name else ""
    )
    folder = words.one_line(view.get("cwd"), words.PATH_CHARS)
    return (
        f'<tr><td><span class="hsh-name">{_text(name)}</span>{_badges(view)}{above}</td>'
        f'<td title="{escape(folder)}">{_text(words.project(view))}</td>'
        f'<td class="hsh-fixed">{words.when(view.get("updatedAt"))}</td>'
        f'<td class="hsh-num">{words.number(view.get("messageCount")):,}</td>'
        f'<td class="hsh-fixed"><code class="hsh-copy">{escape(words.one_line(view.get("sessionId"), words.ID_CHARS))}</code></td></tr>'
    )


def _head(result: Answer, kicker: str, title: str, under: str, more: str) -> str:
    """The top of a card; ``title`` and ``more`` are HTML, the rest is text."""
    state = words.freshness(result)
    below = f'<p class="hsh-small">{escape(under)}</p>' if under else ""
    sign = {"good": "✓ ", "warn": "⚠ ", "plain": ""}[state.tone]
    return (
        f'<div class="hsh-head"><p class="hsh-kicker">{escape(kicker)}</p><p class="hsh-title"><strong>{title}</strong></p>{below}{more}'
        f'<p class="hsh-fresh hsh-{state.tone}"><strong>{sign}{state.label}:</strong> {escape(state.text)}</p></div>'
    )


def _cards(hits: list[str]) -> str:
    listed = "".join(f'<li class="hsh-card">{hit}</li>' for hit in hits)
    return f"<ol>{listed}</ol>" if hits else ""


def _badges(view: Answer, visible: object = True) -> str:
    return "".join(f' <em class="hsh-badge">{word}</em>' for word in words.badges(view, visible=visible))


def _role(spoken: str) -> str:
    return f'<strong class="hsh-role-{spoken}">{spoken}</strong>'


def _text(text: str) -> str:
    """One line of foreign text, isolated so that its writing direction cannot reorder what stands around it."""
    return f"<bdi>{escape(text)}</bdi>"


def _lines(text: str) -> str:
    """Foreign text of several lines; ``<br>`` keeps them without a style sheet too."""
    return escape(text).replace("\n", "<br>")
