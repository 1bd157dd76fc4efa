"""Entries of one conversation read again, as many as an answer has room for: by id, as a range, as the last before the
context boundary.

Entries stand by their position on the visible branch (`branch.Line`). What does not fit is never lost: a cursor
(an entry, an offset and a check) says where the next answer goes on, within an entry if need be."""

from __future__ import annotations

import base64
import struct
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from typing import Annotated, NamedTuple

import msgspec
from msgspec import Meta

from ..archive.hydration import Hydrated
from ..errors import CitationUnavailable, EntryNotVisible, InvalidRequest
from ..index.packing import Located
from ..model.entries import entry_hash
from ..model.names import own_tool
from ..request import ROLES
from ..response import ToolUse
from ..text.clean import cut
from .branch import EarlierEntries, EarlierEntry, Line, Room, Snapshot
from .citations import Evidence

#: Entries read from the file at a time.
BATCH = 16
#: Tool calls of one entry that are named.
TOOLS = 32


class Found(NamedTuple):
    """An entry at its position on the branch."""

    position: int
    located: Located
    entry: Hydrated


class Place(NamedTuple):
    """Where an answer ended: the next entry's position, and how many characters of its text were given already."""

    position: int
    chars: int


def read_items(
    session_id: str, entries: Sequence[str], around: int, cursor: str | None, room: Room, snapshot: Snapshot
) -> EarlierEntries:
    """The work of `Conversation.items`."""
    reader = Reader(snapshot, session_id)
    asked = entry_hash(f"{around}\n" + "\n".join(entries))
    start = reader.resumed(cursor, "items", asked, None)
    wanted: dict[int, Found] = {}
    for number, entry_id in enumerate(entries):
        position = reader.line.position(entry_id)
        if position is None or reader.line.row(position) is None:
            raise EntryNotVisible(
                f"entries[{number}] is no user or assistant entry of this conversation's branch",
                hint="give entry ids as history_search and history_read answer them",
            )
        wanted.update((found.position, found) for found in reader.at([position]))
        if around:
            for side in (reader.walk(position - 1, -1), reader.walk(position + 1, len(reader.line.nodes))):
                wanted.update((found.position, found) for found in _first(side, around))
    left = [wanted[position] for position in sorted(wanted) if start is None or position >= start.position]
    return reader.answer(left, len(left), start, room, "items", asked, None)


def read_range(
    session_id: str, first: str | None, last: str | None, limit: int, cursor: str | None, room: Room, snapshot: Snapshot
) -> EarlierEntries:
    """The work of `Conversation.range`."""
    reader = Reader(snapshot, session_id)
    named = [None if one is None else entry_hash(one) for one in (first, last)]
    start = reader.resumed(cursor, "range", *named)
    if reader.cursor is not None:
        named = [reader.cursor.first, reader.cursor.last]
    begin = reader.bound("from", named[0]) if start is None else start.position
    end = len(reader.line.nodes) - 1 if named[1] is None else reader.bound("to", named[1])
    if end < begin:
        raise InvalidRequest("to lies before from", hint="exchange them")
    found = reader.walk(begin, end + 1)
    return reader.answer(found, limit, start, room, "range", *named)


def read_tail(session_id: str, count: int, cursor: str | None, room: Room, snapshot: Snapshot) -> EarlierEntries:
    """The work of `Conversation.tail`."""
    reader = Reader(snapshot, session_id)
    start = reader.resumed(cursor, "tail", None, None)
    found = reader.walk(reader.line.boundary - 1 if start is None else start.position, -1)
    answer = reader.answer(found, count, start, room, "tail", None, None)
    answer["entries"].reverse()
    return answer


class Reader:
    """Reads entries of one conversation from one snapshot."""

    def __init__(self, snapshot: Snapshot, session_id: str) -> None:
        self.line = Line(snapshot, session_id)
        self.check, self.shown = snapshot.check, snapshot.views.shown
        self.evidence = Evidence(snapshot.connection, snapshot.views.catalog)
        self.conversation = entry_hash(session_id)
        self.cursor: Cursor | None = None

    # -- entries ------------------------------------------------------------------------------------------------------

    def at(self, positions: Sequence[int]) -> list[Found]:
        """The user and assistant entries at these positions. Raises CitationUnavailable."""
        self.check()
        rows = {row: position for position in positions if (row := self.line.row(position)) is not None}
        located = self.evidence.locate_many(rows)
        entries = self.evidence.hydrate(located)
        if len(located) < len(rows) or None in entries:
            raise CitationUnavailable(
                "the transcript no longer says what was indexed", hint="ask again; it is being written right now"
            )
        return [
            Found(rows[one.row], one, self.shown(entry))
            for one, entry in zip(located, entries, strict=True)
            if entry is not None
        ]

    def walk(self, start: int, stop: int) -> Iterator[Found]:
        """The entries that have something to show, from position `start` to before `stop`, in either direction."""
        step = 1 if stop > start else -1
        positions = range(start, stop, step)
        for at in range(0, len(positions), BATCH):
            for found in self.at(positions[at : at + BATCH]):
                if found.entry.parts or _tools(found.entry):
                    yield found

    def bound(self, argument: str, node: int | None) -> int:
        """The position of one end of a range, given by the hash of its id."""
        if node is None:
            raise InvalidRequest(f"range needs {argument} (an entry id)", hint="give the entry to begin with")
        found = self.line.tree.find(node)
        position = None if found is None else self.line.tree.position(found)
        if position is None:
            raise EntryNotVisible(
                f"{argument} is no entry of this conversation's branch", hint="give the id of one of its entries"
            )
        return position

    # -- answers ------------------------------------------------------------------------------------------------------

    def answer(
        self,
        found: Iterable[Found],
        limit: int,
        start: Place | None,
        room: Room,
        mode: str,
        first: int | None,
        last: int | None,
    ) -> EarlierEntries:
        """At most `limit` entries, each whole, as far as the room goes; only the first on a page is ever cut."""
        shown: list[EarlierEntry] = []
        left, skip, cut_any = room.bytes, start.chars if start else 0, False
        following: Place | None = None
        for one in found:
            if len(shown) == limit:
                following = Place(one.position, 0)
                break
            entry, names_cut = self._shown(one, skip)
            cost = left + 1 if len(entry["text"]) > left else room.cost(entry)
            if cost > left:
                cut_any = True
                following = Place(one.position, 0)
                if not shown:
                    taken = _fit(entry, left, room)
                    shown.append(entry)
                    following = Place(one.position, skip + taken - (1 if skip else 0))
                break
            shown.append(entry)
            left, skip, cut_any = left - cost, 0, cut_any or names_cut
        answer: EarlierEntries = {"entries": shown, "truncated": cut_any}
        if following is not None:
            answer["next"] = self._cursor(following, mode, first, last)
        return answer

    def _shown(self, found: Found, skip: int) -> tuple[EarlierEntry, bool]:
        """An entry as it stands in an answer (without its first `skip` characters), and whether tool calls were left out."""
        entry = found.entry
        text = "\n\n".join(part.text for part in entry.parts)
        rest = "…" + text[skip:] if skip else text
        shown: EarlierEntry = {"entry": entry.entry_id, "role": ROLES[entry.role], "text": rest}
        if entry.author:
            shown["author"] = entry.author
        tools = _tools(entry)
        if tools:
            statuses = self.evidence.statuses(found.located, [call for call, _ in tools[:TOOLS]])
            named: list[ToolUse] = [
                {"name": name, "status": statuses.get(call, "unanswered")} for call, name in tools[:TOOLS]
            ]
            shown["tool"] = named[0]
            if len(named) > 1:
                shown["tools"] = named
        return shown, len(tools) > TOOLS

    # -- cursors ------------------------------------------------------------------------------------------------------

    def resumed(self, text: str | None, mode: str, first: int | None, last: int | None) -> Place | None:
        """Where a cursor goes on, None without one.

        Raises InvalidRequest for a cursor of another conversation or request, and after a rewrite of what stands before it;
        EntryNotVisible where the conversation has left the branch that it was reading.
        """
        if text is None:
            return None
        cursor, check = read_cursor(text)
        node = self.line.tree.find(cursor.entry)
        fits = first in (None, cursor.first) and last in (None, cursor.last)
        if node is None or not fits or check != self._check(cursor, mode, node):
            raise InvalidRequest(
                "cursor belongs to another conversation or request, or to a transcript that was rewritten",
                hint="repeat the arguments it was answered to, or begin again without it",
            )
        position = self.line.tree.position(node)
        if position is None:
            raise EntryNotVisible("the conversation has left the branch of this cursor", hint="begin again without it")
        self.cursor = cursor
        return Place(position, cursor.chars)

    def _cursor(self, place: Place, mode: str, first: int | None, last: int | None) -> str:
        node = self.line.nodes[place.position]
        cursor = Cursor(self.line.tree.hash_of(node), place.chars, first, last)
        return encoded(cursor, self._check(cursor, mode, node))

    def _check(self, cursor: Cursor, mode: str, node: int) -> bytes:
        """Fingerprint of a cursor, of what it is for, and of all that is cited up to its entry: the same until that is
        rewritten."""
        digest = sha256(msgspec.msgpack.encode((cursor, mode, self.conversation)))
        digest.update(self.line.tree.ids[: 8 * node + 8])
        low = self.line.extent.low
        for one in self.evidence.spans.between(low, self.line.extent.row(node, 1)):
            digest.update(_SPAN(one.row - low, one.offset, one.length) + one.key)
        return digest.digest()[:CHECK_BYTES]


_SPAN = struct.Struct("<qqq").pack


def _tools(entry: Hydrated) -> list[tuple[str, str]]:
    """(call id, name) of an entry's tool calls without those by which history was recalled."""
    return [(tool.call_id, tool.name) for tool in entry.tools if not own_tool(tool.name)]


def _first(found: Iterator[Found], count: int) -> Iterator[Found]:
    for _, one in zip(range(count), found):
        yield one


def _fit(entry: EarlierEntry, left: int, room: Room) -> int:
    """Cuts an entry's text to what fits; returns how many characters of it stay (its ``…`` not counted)."""
    text = entry["text"]
    low, high = 3, min(len(text), left)
    while low < high:
        middle = (low + high + 1) // 2
        entry["text"] = cut(text, middle)[0]
        if room.cost(entry) <= left:
            low = middle
        else:
            high = middle - 1
    entry["text"] = cut(text, low)[0]
    return len(entry["text"]) - 1


#: Bytes of a cursor's check.
CHECK_BYTES = 8

EntryHash = Annotated[int, Meta(ge=-(1 << 63), le=(1 << 63) - 1)]


class Cursor(msgspec.Struct, array_like=True, frozen=True):
    """The entry at which reading goes on and how many characters of it were given already; `first` and `last` stand for the
    request's arguments."""

    entry: EntryHash
    chars: Annotated[int, Meta(ge=0, le=(1 << 48) - 1)]
    first: EntryHash | None
    last: EntryHash | None


def encoded(cursor: Cursor, check: bytes) -> str:
    """The cursor as a caller gets it."""
    return base64.urlsafe_b64encode(msgspec.msgpack.encode(cursor) + check).decode().rstrip("=")


def read_cursor(text: str) -> tuple[Cursor, bytes]:
    """The cursor that was given and its check. Raises InvalidRequest if it is none."""
    try:
        packed = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
        cursor, check = msgspec.msgpack.decode(packed[:-CHECK_BYTES], type=Cursor), packed[-CHECK_BYTES:]
    except ValueError:
        cursor, check = None, b""
    # One place is written in one way only, so this also holds every bit of the text.
    if cursor is None or encoded(cursor, check) != text:
        raise InvalidRequest(
            "cursor is not one that was given as next", hint="copy next unchanged, or leave cursor out"
        )
    return cursor, check
