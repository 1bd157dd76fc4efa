"""Entries in file order -> columns of a chunk, and what they say about the session."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import UNSET

from .entries import (
    ASSISTANT,
    KIND_ASSISTANT_BARE,
    KIND_ASSISTANT_TEXT,
    KIND_OTHER,
    KIND_USER_BARE,
    KIND_USER_TEXT,
    MAX_ID_CHARS,
    USER,
    Chunk,
    Facts,
    Mark,
    TextEntry,
    entry_hash,
    entry_key,
    id_column,
    linear_id,
    milliseconds,
)
from .lines import AssistantMessage, Entry, UserMessage, details
from .projection import one_line, project

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
        # The one loop that runs for every line of every transcript.
        facts = self.facts
        ids, kinds, previous, node = self._ids, self._kinds, self._previous, facts.nodes
        first, last = facts.first_time, facts.last_time
        for entry, start, end in zip(entries, starts, ends, strict=True):
            entry_id, entry_type = entry.id, entry.type
            if not entry_id or entry_type == "session":
                continue
            parent = entry.parentId or None
            if parent != previous:
                self._link(node, parent)
            previous = entry_id
            ids.append(entry_id)
            kind = KIND_OTHER
            if entry_type == "message":
                message = entry.message
                if isinstance(message, (UserMessage, AssistantMessage)) and len(entry_id) <= MAX_ID_CHARS:
                    role = ASSISTANT if type(message) is AssistantMessage else USER
                    time = milliseconds(entry.timestamp)
                    if time is None:
                        time = milliseconds(message.timestamp)
                    if time is not None:
                        if first is None or time < first:
                            first = time
                        if last is None or time > last:
                            last = time
                    else:
                        facts.untimed = True
                    text, search_text = project(role, message.content)
                    key = entry_key(entry_id, role, time, text)
                    self._entries.append(TextEntry(node, role, time, base + start, end - start, key, text, search_text))
                    if text:
                        kind = KIND_ASSISTANT_TEXT if role else KIND_USER_TEXT
                        self.text_chars += len(text) + len(search_text)
                    else:
                        kind = KIND_ASSISTANT_BARE if role else KIND_USER_BARE
            elif entry_type in _TELLING:
                self._note(node, entry, bytes(data[start:end]))
            kinds.append(kind)
            node += 1
        self._previous, facts.nodes = previous, node
        facts.first_time, facts.last_time = first, last

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
