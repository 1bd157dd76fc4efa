"""Entries in file order -> columns of a chunk, and what they say about the session."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from msgspec import UNSET

from ..model.entries import (
    ASSISTANT,
    KIND_ASSISTANT_BARE,
    KIND_ASSISTANT_TEXT,
    KIND_USER_BARE,
    KIND_USER_TEXT,
    USER,
    Chunk,
    Facts,
    Mark,
    TextEntry,
    entry_hash,
    entry_key,
    find_id,
    id_column,
    linear_id,
    milliseconds,
)
from ..model.names import MAX_ID_CHARS
from ..text.clean import one_line
from .branch import superseded_nodes
from .projection import Block, project_all
from .records import AssistantMessage, Entry, UserMessage, details

_ROLES: Final[dict[type, int]] = {UserMessage: USER, AssistantMessage: ASSISTANT}
_RESETS: Final = frozenset({"reset", "pi.reset"})
_TELLING: Final = _RESETS | {"session_info", "compaction", "leaf", "custom"}


class Collector:
    """Gathers the nodes of one transcript; ``facts`` grows with every entry."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.text_chars = 0
        # Reading on after an append, only the hash of the entry before is known: its id is the empty string, like no other.
        self._previous: str | None = "" if facts.nodes else None
        self._resumed_at, self._last_id = facts.nodes, facts.last_id
        self._columns: list[bytes] = []
        #: The entries that have a time: how many nodes of this reading come before each, and the time.
        self._timed, self._times = array("q"), array("q")
        self._parsed_ids: list[str | None] = [None] * facts.parsed_lines if facts.linear else []
        self._start_chunk()

    def _start_chunk(self) -> None:
        self.text_chars = 0
        self._first_node = self.facts.nodes
        self._ids: list[str] = []
        self._kinds = bytearray()
        self._links: dict[int, int | None] = {}
        self._marks: list[Mark] = []
        self._entries: list[TextEntry] = []

    @property
    def pending(self) -> int:
        """Nodes gathered since the last chunk."""
        return len(self._ids)

    def take(self) -> Chunk:
        """The nodes gathered so far, which are then forgotten."""
        column = id_column(self._ids)
        self._columns.append(column)
        if column:
            self.facts.last_id = int.from_bytes(column[-8:], "little", signed=True)
        chunk = Chunk(self._first_node, column, bytes(self._kinds), self._links, self._marks, self._entries)
        self._start_chunk()
        return chunk

    def skip_value(self) -> None:
        """Counts a parsed line that is no entry."""
        self.facts.parsed_lines += 1
        if self.facts.linear:
            self._parsed_ids.append(None)

    def add(
        self, entries: Sequence[Entry], starts: Sequence[int], ends: Sequence[int], data: memoryview, base: int
    ) -> None:
        """Takes parsed entries; each record is ``data[start:end]``, and ``data`` begins at byte ``base`` of the file."""
        if not self.facts.linear:
            self.facts.parsed_lines += len(entries)
            self._add(entries, starts, ends, data, base)
            return
        for entry, start, end in zip(entries, starts, ends):
            self._name(entry, data[start:end])
            self._add((entry,), (start,), (end,), data, base)

    def _name(self, entry: Entry, record: memoryview) -> None:
        """Gives an entry of a version 1 transcript its id and the entry before it as its parent."""
        n = self.facts.parsed_lines
        self.facts.parsed_lines += 1
        if entry.type == "session":
            self._parsed_ids.append(None)
            return
        if not entry.id:
            entry.id = linear_id(n, record)
            entry.parentId = self._previous
        elif entry.parentId is UNSET:
            entry.parentId = self._previous
        self._parsed_ids.append(entry.id)

    def _add(
        self, entries: Sequence[Entry], starts: Sequence[int], ends: Sequence[int], data: memoryview, base: int
    ) -> None:
        # This runs for every line of every transcript: whole columns at once, and a loop over what has been said.
        ids = [entry.id for entry in entries]
        types = [entry.type for entry in entries]
        if not all(ids) or "session" in types:
            kept = [at for at, entry_id in enumerate(ids) if entry_id and types[at] != "session"]
            entries, starts, ends = [entries[at] for at in kept], [starts[at] for at in kept], [ends[at] for at in kept]
            ids, types = [ids[at] for at in kept], [types[at] for at in kept]
        if not entries:
            return
        first_node = self.facts.nodes
        parents = [entry.parentId or None for entry in entries]
        before = [self._previous, *ids[:-1]]
        if parents != before:
            for at, parent in enumerate(parents):
                if parent != before[at]:
                    self._link(first_node + at, parent)
        spoken: list[int] = []
        roles: list[int] = []
        contents: list[str | list[Block]] = []
        times: list[int | None] = []
        for at, entry in enumerate(entries):
            message = entry.message
            role = _ROLES.get(type(message))
            if role is None:
                continue
            entry_id = ids[at]
            if TYPE_CHECKING:
                assert entry_id is not None and isinstance(message, UserMessage | AssistantMessage)
            if types[at] != "message" or len(entry_id) > MAX_ID_CHARS:
                continue
            time = milliseconds(entry.timestamp)
            if time is None:
                time = milliseconds(message.timestamp)
            times.append(time)
            spoken.append(at)
            roles.append(role)
            contents.append(message.content)
        kinds = bytearray(len(entries))
        projected = project_all(roles, contents)
        for at, role, time, (text, search_text) in zip(spoken, roles, times, projected, strict=True):
            start = starts[at]
            if text:
                kinds[at] = KIND_ASSISTANT_TEXT if role else KIND_USER_TEXT
                self.text_chars += len(text) + len(search_text)
            else:
                kinds[at] = KIND_ASSISTANT_BARE if role else KIND_USER_BARE
            key = entry_key(ids[at], role, time, text)  # type: ignore[arg-type]  # none of them is None any more
            self._entries.append(
                TextEntry(first_node + at, role, time, base + start, ends[at] - start, key, text, search_text)
            )
        if types.count("message") != len(types):
            for at, entry_type in enumerate(types):
                if entry_type in _TELLING:
                    self._note(first_node + at, entries[at], bytes(data[starts[at] : ends[at]]))
        self._ids += ids  # type: ignore[arg-type]  # none of them is None any more
        self._kinds += kinds
        self._previous = ids[-1]
        self.facts.nodes += len(entries)
        self._note_times(first_node, spoken, times)

    def _note_times(self, first_node: int, spoken: Sequence[int], times: Sequence[int | None]) -> None:
        begin = first_node - self._resumed_at
        if None in times:
            self.facts.untimed = True
            spoken = [at for at, time in zip(spoken, times) if time is not None]
        self._timed.extend([begin + at for at in spoken])
        self._times.extend([time for time in times if time is not None])

    def settle(self) -> None:
        """After the last chunk: works out the session's times. An entry that another of the same id has replaced does not
        count, but for one that was read earlier: that is known to whoever has read it."""
        if not self._times:
            return
        first, last = min(self._times), max(self._times)
        if self._replaced(self._times.index(first), self._times.index(last)):
            superseded = superseded_nodes(b"".join(self._columns))
            times = [time for node, time in zip(self._timed, self._times) if node not in superseded]
            if not times:
                return
            first, last = min(times), max(times)
        facts = self.facts
        facts.first_time = first if facts.first_time is None else min(facts.first_time, first)
        facts.last_time = last if facts.last_time is None else max(facts.last_time, last)

    def _replaced(self, *places: int) -> bool:
        """Whether one of these timed entries has an id that occurs again."""
        ids = b"".join(self._columns)
        nodes = [self._timed[place] for place in places]
        return any(find_id(ids, ids[8 * node : 8 * node + 8]) != node for node in nodes)

    def _link(self, node: int, parent: str | None) -> None:
        target = entry_hash(parent) if parent else None
        if node and node == self._resumed_at and target is not None and target == self._last_id:
            return
        self._links[node] = target

    def _note(self, node: int, entry: Entry, record: bytes) -> None:
        """Entries that move the leaf, bound the context or name the session."""
        if entry.type == "custom":
            if entry.customType in _RESETS:
                self._marks.append((node, "reset", None))
        elif entry.type in _RESETS:
            self._marks.append((node, "reset", None))
        elif entry.type == "session_info":
            self._rename(details(record).name)
        elif entry.type == "compaction":
            self._marks.append((node, "compaction", self._first_kept(record)))
        else:
            target = details(record).targetId
            if target is None or isinstance(target, str):
                self._marks.append((node, "leaf", entry_hash(target) if target else None))

    def _rename(self, name: object) -> None:
        # The last name that is not blank counts (contract); Pi itself takes an empty one for "no name any more".
        self.facts.name = one_line(name) or self.facts.name

    def _first_kept(self, record: bytes) -> int | None:
        found = details(record)
        if isinstance(found.firstKeptEntryId, str) and found.firstKeptEntryId:
            return entry_hash(found.firstKeptEntryId)
        index = found.firstKeptEntryIndex
        # The last parsed id is this compaction's own; an index further on names nothing yet.
        if isinstance(index, int) and 0 <= index < len(self._parsed_ids):
            kept = self._parsed_ids[index]
            return entry_hash(kept) if kept else None
        return None
