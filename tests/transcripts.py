"""Makes and reads transcripts for the tests: everything that a reading yields is one comparable value."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from builder import ArchiveBuilder, line, stamp, uid
from harness_session_history.archive.branch import Tree
from harness_session_history.archive.hydration import Wanted
from harness_session_history.archive.transcript import TranscriptReader
from harness_session_history.model.entries import Chunk, Facts, Mark, TextEntry, entry_hash

HEADER = line({"type": "session", "version": 3, "id": "s1", "timestamp": stamp(0), "cwd": "/w/demo"}).encode()
NAMED = "2026-03-02T10-00-00-000Z_named-1.jsonl"
brief = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def message(entry_id: str, text: object, parent: str | None = None, role: str = "user", second: int = 1) -> bytes:
    """The line of a message entry; a string becomes one text block."""
    content = [{"type": "text", "text": text}] if isinstance(text, str) else text
    made = {"type": "message", "id": entry_id, "parentId": parent, "timestamp": stamp(second)}
    return line({**made, "message": {"role": role, "content": content, "timestamp": 1}}).encode()


def lines(*parts: bytes, end: bytes = b"\n") -> bytes:
    """A transcript of these lines behind a header."""
    return b"\n".join([HEADER, *parts]) + end


Made = list[tuple[str, str, int]]
"""Entries to write: kind, text, and how many entries back the parent is (0: a root)."""
_texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
made_entries: st.SearchStrategy[Made] = st.lists(
    st.tuples(st.sampled_from(["user", "assistant", "toolResult", "label"]), _texts, st.integers(0, 9)), max_size=12
)


@dataclass
class Written:
    """A transcript as it was written: its lines, the ids of its entries and the parent of each."""

    path: Path
    lines: list[bytes]
    ids: list[str]
    parents: list[str | None]


def write(folder: Path, made: Made) -> Written:
    """Writes entries with the builder."""
    session = ArchiveBuilder(folder).session("s")
    ids: list[str] = []
    parents: list[str | None] = []
    for n, (kind, text, back) in enumerate(made):
        parents.append(ids[-min(back, n)] if back and n else None)
        ids.append(uid(f"s{n}")[:8])
        if kind == "label":
            session.add("label", key=ids[-1], parent=parents[-1], label=text)
        else:
            session.say(kind, text, key=ids[-1], parent=parents[-1])
    return Written(session.save(), session.lines, ids, parents)


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
        return [Wanted(e.node, e.offset, e.length, e.key, e.role, e.time) for e in self.entries]


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
