"""Reads transcripts for the tests: everything that a reading yields, in one comparable value."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from harness_session_history.archive.branch import Tree
from harness_session_history.archive.entries import Chunk, Facts, Mark, TextEntry, entry_hash
from harness_session_history.archive.hydration import Wanted
from harness_session_history.archive.transcript import TranscriptReader


@dataclass
class Reading:
    """All chunks of one transcript joined, and its facts."""

    facts: Facts
    ids: bytes = b""
    kinds: bytes = b""
    links: dict[int, int | None] = field(default_factory=dict)
    marks: list[Mark] = field(default_factory=list)
    entries: list[TextEntry] = field(default_factory=list)

    def take(self, chunk: Chunk) -> None:
        assert chunk.first_node == len(self.kinds) and len(chunk.ids) == 8 * len(chunk.kinds)
        self.ids += chunk.ids
        self.kinds += chunk.kinds
        self.links |= chunk.links
        self.marks += chunk.marks
        self.entries += chunk.entries

    @property
    def tree(self) -> Tree:
        return Tree([(self.ids, self.kinds, self.links, self.marks)])

    @property
    def texts(self) -> list[str]:
        """The texts of all entries that have one, in file order."""
        return [entry.text for entry in self.entries if entry.text]

    def has(self, *entry_ids: str) -> bool:
        return all(self.tree.find(entry_hash(entry_id)) is not None for entry_id in entry_ids)

    def visible_ids(self, *names: str) -> list[str]:
        """The visible branch as entry ids, each out of ``names``."""
        known = {entry_hash(name): name for name in names}
        tree = self.tree
        return [known[tree.hash_of(node)] for node in tree.visible_path]

    @property
    def wanted(self) -> list[Wanted]:
        """What would have to be asked of hydration to get every entry back."""
        return [Wanted(e.node, e.offset, e.length, e.key, e.role) for e in self.entries]


def read(path: Path, *, resume: Reading | None = None, stop: int | None = None) -> Reading:
    """Reads a transcript, or reads an earlier reading on."""
    reader = TranscriptReader(path, resume=resume.facts if resume else None, stop=stop)
    chunks = list(reader)
    found = Reading(reader.facts)
    if resume:
        found.take(Chunk(0, resume.ids, resume.kinds, resume.links, resume.marks, resume.entries))
    for chunk in chunks:
        found.take(chunk)
    return found


def read_bytes(folder: Path, data: bytes, name: str = "t.jsonl") -> Reading:
    """Writes the bytes as a file and reads it."""
    path = folder / name
    path.write_bytes(data)
    return read(path)
