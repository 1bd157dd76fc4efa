"""An answer as cards: the one place that knows what each answer shows and in which order. The renderers (`terminal`,
`notebook`, `text`) lay the cards out; all foreign text in them is cleaned and bounded here, but not escaped."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from . import words
from .commands import FILTERS, SESSION_FILTERS, Commands
from .words import Answer

#: A ``name`` (bold) and what is ``foreign`` (dim) come from a transcript or a caller; all else on a line is ours.
Style = Literal["plain", "bold", "dim", "name", "foreign", "mark", "user", "assistant", "good", "warn", "badge"]


class Piece(NamedTuple):
    text: str
    style: Style = "plain"


Line = list[Piece]


class Row(NamedTuple):
    """One line of a card. ``label`` names what ``line`` is; ``copy`` and ``command`` are there to be copied, so that a
    command is never folded or framed; ``fresh`` is the state of the index."""

    label: str
    line: Line
    kind: Literal["said", "copy", "command", "fresh"] = "said"


class Card(NamedTuple):
    """One block. No text holds a line end but that of ``quote``, which is foreign text: it must be shown behind a gutter, so
    that no transcript can imitate what stands around it.

    Of an entry, ``about`` is its session, the name first (None where all are of the same), ``title`` who said it and when, and
    ``entry`` its id where the session is told by the page. ``cite`` is the citation as one word, ``command`` what opens it, and ``needs`` the
    arguments that this takes besides the ids.
    """

    kind: Literal["head", "entry", "session", "said", "foot"]
    title: Line
    rows: list[Row]
    number: int = 0
    about: Line | None = None
    session: str = ""
    quote: Line | None = None
    entry: str = ""
    cite: str = ""
    command: str | None = None
    needs: Sequence[str] = ()
    target: bool = False


def cards(result: Answer, commands: Commands, *, local: bool = False) -> list[Card]:
    """Head, one card per hit, message or session, hints, and the foot; times in the reader's zone with ``local``."""
    answer = _Cards(result, commands, local)
    make = {"search": answer.search, "open": answer.opened}.get(str(result.get("operation")), answer.listed)
    return [*make(), Card("foot", [Piece(words.one_line(result.get("warning"), 400), "dim")], [])]


def said(text: str, style: Style = "dim") -> Row:
    return Row("", [Piece(text, style)])


def row(label: str, text: str, kind: Literal["said", "copy", "command"] = "said") -> Row:
    return Row(label, [Piece(text)], kind)


class _Cards:
    def __init__(self, result: Answer, commands: Commands, local: bool) -> None:
        self.result, self.commands, self.local = result, commands, local
        self.items: list[Answer] = list(result.get("results") or ())[: words.ROWS]

    def search(self) -> list[Card]:
        query = words.one_line(self.result.get("query"), words.QUERY_CHARS)
        under = [said(words.found(self.result)), *map(said, words.notes(self.result))]
        head = self._head([Piece("Search: ", "dim"), Piece(query, "name")], [*under, *self._more("createdAt")])
        hits = [self._hit(item, i) for i, item in enumerate(self.items)]
        return [head, *hits, *self._hints(self.result.get("hints") or {})]

    def _hit(self, item: Answer, index: int, *, of_hints: bool = False) -> Card:
        view = item.get("session") or {}
        spans = [] if of_hints else words.marks_of(self.result, index)
        pieces = [
            Piece(text, "mark" if marked else "plain") for text, marked in words.segments(item.get("snippet"), spans)
        ]
        rows = []
        for label, key in (("without", "missingTerms"), ("in an entry nearby", "nearby")):
            if terms := words.ids(item.get(key), words.TERMS):
                rows.append(
                    Row("", [Piece(f"{label}: ", "dim"), *_listing([[Piece(term, "foreign")] for term in terms])])
                )
        if others := words.ids(item.get("alsoIn")):
            rows.append(Row("also", _listing([[Piece(other, "foreign")] for other in others], " ")))
        return Card(
            "entry",
            self._spoken(item),
            rows,
            number=index + 1,
            about=_session(view, visible=item.get("visible")),
            session=words.one_line(view.get("sessionId"), words.ID_CHARS),
            quote=pieces,
            cite=words.locator(item["citation"].get("sessionId"), item["citation"].get("entryId")),
            command=self.commands.opening(view, item["citation"], visible=item.get("visible")),
            needs=self.commands.needs(view, visible=item.get("visible")),
        )

    def _hints(self, hints: Answer) -> list[Card]:
        rows: list[Row] = []
        if suggestion := words.one_line(hints.get("suggestion"), words.QUERY_CHARS):
            rows.append(Row("try", [Piece(suggestion, "name")], "copy"))
        terms = [
            [
                Piece(words.one_line(term.get("term"), words.ID_CHARS), "foreign"),
                Piece(f" ({words.count(term.get('entries'), 'entry', 'entries')})"),
            ]
            for term in list(hints.get("terms") or ())[: words.TERMS]
        ]
        if terms:
            rows.append(Row("terms", _listing(terms)))
        if outside := hints.get("outsideFilters"):
            without = self.commands.filters(FILTERS) or ["the filters"]
            rows.append(row("filters", f"{_match(outside)} without {', '.join(without)}"))
        if off := hints.get("offBranchMatches"):
            branch = self.commands.argument("branch", "any")
            rows.append(row("branch", f"{_match(off, ' off the visible branch')}: add {branch}"))
        sessions = list(hints.get("sessions") or ())[: words.SMALL_ROWS]
        if sessions:
            rows.append(said("sessions that are named so, or in which every term occurs:"))
        for view in sessions:
            chosen = self.commands.argument("session_id", words.one_line(view.get("sessionId"), words.ID_CHARS))
            rows.append(Row("", [*_session(view), Piece(f" · {chosen}", "dim")]))
        near = list(hints.get("nearest") or ())[: words.SMALL_ROWS]
        if near:
            rows.append(said("nearest, holding most of the terms:"))
        shown = [self._hit(item, len(self.items) + at, of_hints=True) for at, item in enumerate(near)]
        return [*([Card("said", [Piece("Hints", "bold")], rows)] if rows else []), *shown]

    def opened(self) -> list[Card]:
        view = self.result.get("session") or {}
        cite = words.locator(self.result.get("sessionId"), self.result.get("entryId"))
        shown = [self._head(_session(view), [])._replace(cite=cite)]
        shown += self._gap("moreBefore", "earlier")
        left = words.TEXT_CHARS
        for message in list(self.result.get("messages") or ())[: words.MESSAGES]:
            text = words.block(message.get("text"), max(left, 1))
            left -= len(text)
            shown.append(self._message(message, text))
        return shown + self._gap("moreAfter", "later")

    def _message(self, message: Answer, text: str) -> Card:
        rows = [said("The entry is longer than what is shown.")] if message.get("textTruncated") else []
        if called := words.tools(message):
            named = [[Piece(name, "foreign"), Piece(f" ({status})" if status else "")] for name, status in called]
            rows.append(Row("tools", _listing(named)))
        entry = message.get("entryId")
        return Card(
            "entry",
            self._spoken(message),
            rows,
            quote=[Piece(text)],
            entry=words.one_line(entry, words.ID_CHARS),
            cite=words.locator(self.result.get("sessionId"), entry),
            target=entry == self.result.get("entryId"),
        )

    def _gap(self, key: str, side: str) -> list[Card]:
        if not self.result.get(key):
            return []
        text = f"({words.count(self.result[key], f'{side} entry', f'{side} entries')} not shown)"
        return [Card("said", [Piece(text, "dim")], [])]

    def listed(self) -> list[Card]:
        title = [Piece("Past sessions: ", "dim"), Piece(words.found(self.result), "bold")]
        nothing_selected = not ((self.result.get("freshness") or {}).get("sources") or {}).get("selected")
        filters = [] if self.items or nothing_selected else self.commands.filters(FILTERS)
        none = [said(f"none is left by {' and '.join(filters)}")] if filters else []
        head = self._head(title, [*none, *self._more("updatedAt")])
        return [head, *(self._past(view, number) for number, view in enumerate(self.items, 1))]

    def _past(self, view: Answer, number: int) -> Card:
        session, last = words.one_line(view.get("sessionId"), words.ID_CHARS), view.get("lastEntryId")
        active = words.when(view.get("updatedAt"), local=self.local)
        facts = f" · last active {active} · {words.count(view.get('messageCount'), 'message')}"
        name, lineage = words.one_line(view.get("name")), words.one_line(view.get("lineage"), 2 * words.NAME_CHARS)
        citation = {"sessionId": view.get("sessionId"), "entryId": last}
        return Card(
            "session",
            [piece for piece in _session(view) if piece.style in ("name", "badge")],
            [
                Row("", [Piece(words.project(view), "foreign"), Piece(facts, "dim")]),
                *([Row("below", [Piece(lineage, "foreign")])] if view.get("depth") and lineage != name else []),
            ],
            number=number,
            session=session,
            cite=words.locator(session, last) if last else "",
            command=self.commands.opening(view, citation) if last else None,
            needs=self.commands.needs(view),
        )

    def _head(self, title: Line, under: list[Row]) -> Card:
        state = words.freshness(self.result, local=self.local, filters=self.commands.filters(SESSION_FILTERS))
        fresh = [Piece(f"{state.label}: ", state.tone), Piece(state.text, state.tone)]
        rows = [*under, Row("", fresh, "fresh")]
        if masks := self.result.get("redacted"):
            rows.insert(
                0, said(f"{words.count(masks, 'place')} masked with asterisks: what stood there may be a secret.")
            )
        cure = {"refresh": self.commands.refresh, "doctor": self.commands.report}.get(state.cure)
        if cure:
            rows.append(row({"refresh": "update", "doctor": "why"}[state.cure], cure, "command"))
        return Card("head", title, rows)

    def _more(self, time: str) -> list[Row]:
        """Where more match than are shown in the order of time: what shows those that come next."""
        asked = self.commands.asked
        sort = "newest" if self.result.get("operation") == "list" else asked.get("sort")
        times = [item.get(time) for item in self.items]
        if not self.result.get("truncated") or not times or not times[-1] or sort not in ("newest", "oldest"):
            return []
        changed: dict[str, Any] = {"until" if sort == "newest" else "since": times[-1]}
        if len(times) > 1 and times[0] == times[-1]:
            # All of one moment: a time cannot part them.
            changed = {"limit": words.ROWS} if len(times) < words.ROWS else changed
        elif len(times) > 1 and times[-2] == times[-1] and sort == "newest":
            changed["until"] = words.just_after(times[-1])  # more of the last moment may be left: it is told again
        following = self.commands.again(**changed)
        return [row("more", following, "command")] if following else []

    def _spoken(self, item: Answer) -> Line:
        spoken = words.role(item)
        return [Piece(spoken, spoken), Piece(f" · {words.when(item.get('createdAt'), local=self.local)}", "dim")]


def _session(view: Answer, visible: object = True) -> Line:
    """Name, project and badges of a session, or of a hit in it."""
    name, project = words.one_line(view.get("name")), words.project(view)
    flags = (Piece(word, "badge") for word in words.badges(view, visible=visible))
    return [Piece(name, "name"), Piece(" · ", "dim"), Piece(project, "foreign"), *flags]


def _listing(items: list[Line], between: str = ", ") -> Line:
    return [piece for at, item in enumerate(items) for piece in ([Piece(between)] if at else []) + item]


def _match(n: int, where: str = "") -> str:
    return f"{words.count(n, 'entry', 'entries')}{where} {'matches' if n == 1 else 'match'}"
