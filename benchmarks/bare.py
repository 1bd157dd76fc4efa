"""The raw limits the figures are held against: reading, splitting and hashing the same bytes; one bare FTS5 statement.

`BareIndex` is the least that can answer a query: a contentless FTS5 table over the user and assistant texts, no spans, no
branches, no filters, no verification. It also picks the queries, by how often their words really occur.
"""

from __future__ import annotations

import hashlib
import random
import re
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import msgspec

from .vocabulary import STOP_WORDS

TOKENIZER = "porter unicode61 remove_diacritics 2"
WORD = re.compile(r"[a-z]{4,}")


def transcripts(root: Path) -> list[Path]:
    return sorted(p for p in root.rglob("*.jsonl") if p.is_file())


def read_split_hash(root: Path) -> tuple[float, int]:
    """Seconds and bytes: every file read once, cut at line feeds, each line hashed with SHA-256."""
    begun, size, digest = time.perf_counter(), 0, hashlib.sha256
    for path in transcripts(root):
        data = path.read_bytes()
        size += len(data)
        for line in data.split(b"\n"):
            digest(line).digest()
    return time.perf_counter() - begun, size


class _Message(msgspec.Struct):
    role: str = ""
    content: Any = None


class _Line(msgspec.Struct):
    type: str = ""
    message: _Message | None = None


def texts(path: Path) -> Iterator[str]:
    """The user and assistant texts of one generated transcript."""
    decode = msgspec.json.Decoder(_Line).decode
    with path.open("rb") as file:
        for line in file:
            message = decode(line).message
            if message is not None and message.role in ("user", "assistant"):
                text = "\n\n".join(block["text"] for block in message.content if block["type"] == "text")
                if text:
                    yield text


class BareIndex:
    """A plain FTS5 table of an archive, in `file`."""

    def __init__(self, root: Path, file: Path) -> None:
        self.db = apsw.Connection(str(file))
        self.db.execute("PRAGMA journal_mode=off; PRAGMA synchronous=off; PRAGMA page_size=8192")
        self.db.execute(f"CREATE VIRTUAL TABLE t USING fts5(x, content='', tokenize='{TOKENIZER}')")
        rng, self.sample, self.entries = random.Random(7), [], 0
        self.sessions: list[tuple[str, str, Path]] = []  # id, cwd, file
        begun = time.perf_counter()
        with self.db:
            for path in transcripts(root):
                with path.open("rb") as file_:
                    head = msgspec.json.decode(file_.readline())
                self.sessions.append((head["id"], head["cwd"], path))
                batch = tuple(texts(path))
                self.entries += len(batch)
                if batch:
                    self.db.execute("INSERT INTO t(x) SELECT value FROM carray(?)", (apsw.carray(batch),))
                    self.sample.extend(rng.sample(batch, max(1, len(batch) // 20)))
        self.seconds = time.perf_counter() - begun
        rng.shuffle(self.sample)
        self.counts: dict[str, int] = {}

    def count(self, word: str) -> int:
        """In how many entries a word occurs."""
        if word not in self.counts:
            self.counts[word] = self.db.execute("SELECT count(*) FROM t WHERE t MATCH ?", (f'"{word}"',)).fetchone()[0]  # type: ignore[index]
        return self.counts[word]

    def ranked(self, query: str) -> float:
        """Milliseconds of the ten best by BM25: `ORDER BY rank LIMIT 10`, nothing else."""
        match = " AND ".join(f'"{t[:-1]}"*' if t.endswith("*") else f'"{t}"' for t in query.split())
        begun = time.perf_counter()
        self.db.execute("SELECT rowid FROM t WHERE t MATCH ? ORDER BY rank LIMIT 10", (match,)).fetchall()
        return (time.perf_counter() - begun) * 1000

    def queries(self, each: int) -> dict[str, list[str]]:
        """Query kind to its queries; words are chosen by their frequency in this archive."""
        seen: Counter[str] = Counter()
        for text in self.sample[:4000]:
            seen.update(set(WORD.findall(text)) - set(STOP_WORDS))
        once = [w for w, n in sorted(seen.items()) if n == 1]
        random.Random(3).shuffle(once)
        rare = [w for w in once[: each * 20] if 2 <= self.count(w) <= 50][:each]
        low, high = max(3, self.entries // 400), max(20, self.entries // 20)
        ordinary: list[str] = []
        for text in self.sample[:4000]:
            words = [w for w in dict.fromkeys(WORD.findall(text)) if w not in STOP_WORDS and seen[w] > 2]
            fit = [w for w in words[:12] if low <= self.count(w) <= high][:3]
            if len(fit) == 3:
                ordinary.append(" ".join(fit))
            if len(ordinary) == each:
                break
        return {
            "rare word": rare or once[:each],
            "three ordinary words": ordinary or [" ".join(w for w, _ in seen.most_common(3))],
            "stop word": ["the"],
            "32 common words": [" ".join(STOP_WORDS[:32])],
            "prefix dep*": ["dep*"],
            "two-letter prefix": ["co*", "de*"],
            "no result (hints)": [f"{q} zzyzxqua" for q in (ordinary or rare or once)[: max(1, each // 3)]],
        }


def indexing(root: Path) -> tuple[float, float, float]:
    """MB of Latin text a second of CPU time: a plain `unicode61` table; ours without, and with, the analysis before it."""
    from harness_session_history.text.analysis import document

    some = [text for path in transcripts(root)[:200] for text in texts(path) if text.isascii()][:60_000]
    size = sum(map(len, some)) / 1e6
    begun = time.process_time()
    analysed = [document(text) for text in some]
    spent = time.process_time() - begun
    plain = _written(
        "x, content='', contentless_delete=1, tokenize='unicode61 remove_diacritics 2'", "x", [(t,) for t in some]
    )
    ours = _written(f"body, whole, content='', contentless_delete=1, tokenize='{TOKENIZER}'", "body, whole", analysed)
    return size / plain, size / ours, size / (ours + spent)


def _written(columns: str, names: str, rows: list[Any]) -> float:
    """Seconds of CPU time for writing rows into an FTS5 table in memory, the best of three."""
    marks = ", ".join("?" * len(rows[0]))
    taken = []
    for _ in range(3):
        db = apsw.Connection(":memory:")
        db.execute(f"CREATE VIRTUAL TABLE t USING fts5({columns})")
        begun = time.process_time()
        for at in range(0, len(rows), 10_000):
            with db:
                db.executemany(f"INSERT INTO t({names}) VALUES({marks})", rows[at : at + 10_000])
        taken.append(time.process_time() - begun)
    return min(taken)
