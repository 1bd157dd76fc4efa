"""The index file's tables and its version.

The file is derived and disposable. It holds spans, hashes, times, and in clear ids, names that people gave, folders and
paths. It holds no text of its own, but its tokens are the stems of all words with their positions: read in order, they
say much of what was said.

What the index is given and what it knows, as plain values. No SQL, no files.

Whether an index still holds what was committed to it.

SQLite notices a damaged page when it reads it, but not rows that are simply gone: a full-text search over an index that
has lost rows finds nothing and says so with confidence. So every commit notes how many rows there are, and the notes are
compared with the tables when a file is opened, when it was changed by anyone but a writer of ours, and before an answer
says that there is nothing."""

from __future__ import annotations

import zlib
from array import array
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, NamedTuple

from msgspec import Meta, MsgspecError, Struct

from ..model.entries import FIRST_MS, LAST_MS
from ..model.sources import State

if TYPE_CHECKING:
    import apsw


#: "PiSH": marks the file as ours in SQLite's header.
APPLICATION_ID = 0x50695348
#: Raised by every change of the tables, of the analysis or of the rendering of text.
VERSION = 7

#: A row is (session key << SLOT_SHIFT) + (node << 1 | role). Rows come in slots; a session has some slots in a row, the
#: first of which is its key. As few as it needs: the closer the rows, the smaller is the full-text index.
SLOT_SHIFT = 10
#: Entries that one transcript can have in the index.
NODE_LIMIT = 1 << 22
#: The first session key; older sessions that are found later take keys below it, so that keys follow time.
FIRST_KEY = 1 << 17

#: States of a source.
SESSION, FOREIGN, UNREADABLE, GONE = 0, 1, 2, 3

TABLES = """
CREATE TABLE meta(name TEXT PRIMARY KEY, value) WITHOUT ROWID;

-- One row per file that was looked at. `session` is its row in `sessions`, if it holds a session; `facts` is what its
-- reader knows at its end (of a file that cannot be read: why).
CREATE TABLE sources(
  id INTEGER PRIMARY KEY, path BLOB NOT NULL UNIQUE,
  dev INTEGER NOT NULL, ino INTEGER NOT NULL, size INTEGER NOT NULL, mtime_ns INTEGER NOT NULL, ctime_ns INTEGER NOT NULL,
  uid INTEGER NOT NULL, state INTEGER NOT NULL, child INTEGER NOT NULL, parent_path BLOB, tombstoned INTEGER NOT NULL, stamp INTEGER NOT NULL,
  session_id TEXT, session INTEGER, damaged INTEGER NOT NULL, indexed_at INTEGER NOT NULL,
  facts BLOB, revision INTEGER NOT NULL);
CREATE INDEX sources_by_revision ON sources(revision);

-- One row per session file: files that share a session id are one session, each with rows of its own. `source` is NULL
-- when the last file of a session is gone (a tombstone: no entry is left of it, and `path` is where it was). `duplicate`:
-- every entry of it stands in another file of the session.
CREATE TABLE sessions(
  key INTEGER PRIMARY KEY, slots INTEGER NOT NULL, session_id TEXT NOT NULL, source INTEGER,
  cwd TEXT, name TEXT, parent TEXT, child INTEGER NOT NULL, parent_path BLOB, path BLOB, tombstoned INTEGER NOT NULL,
  started INTEGER, first_time INTEGER, last_time INTEGER, messages INTEGER NOT NULL,
  nodes INTEGER NOT NULL, leaf INTEGER, ordered INTEGER NOT NULL, untimed INTEGER NOT NULL,
  size INTEGER NOT NULL, duplicate INTEGER NOT NULL DEFAULT 0, revision INTEGER NOT NULL);
CREATE INDEX sessions_by_id ON sessions(session_id);
CREATE INDEX sessions_by_revision ON sessions(revision);

-- Up to 64 user or assistant entries of one session: where they stand in its file, when they were written, the hashes
-- that their renderings must have (see runs.py). The id is the row of the first, `low` and `high` bound their times.
CREATE TABLE spans(id INTEGER PRIMARY KEY, low INTEGER NOT NULL, high INTEGER NOT NULL, packed BLOB NOT NULL, keys BLOB NOT NULL);
CREATE INDEX spans_by_time ON spans(low, high);

-- The tree of a session in columns, some nodes each: entry ids (hashed), kinds, links, marks (see trees.py). The id is
-- the row of the first node (as of a user entry); `texts` counts the entries with text.
CREATE TABLE trees(id INTEGER PRIMARY KEY, nodes INTEGER NOT NULL, texts INTEGER NOT NULL,
  ids BLOB NOT NULL, kinds BLOB NOT NULL, links BLOB NOT NULL);

-- Rows of `search` that are off the visible branch.
CREATE TABLE hidden(id INTEGER PRIMARY KEY);

-- Rows of `search` whose entry is found in another file of its session wherever it would be found here.
CREATE TABLE shadowed(id INTEGER PRIMARY KEY);

CREATE VIRTUAL TABLE search USING fts5(body, whole, content='', contentless_delete=1,
  tokenize="porter unicode61 remove_diacritics 2");
-- Segments are merged by whoever has the time for it (see upkeep.py), not in the midst of writing.
INSERT INTO search(search, rank) VALUES('automerge', 0), ('crisismerge', 256), ('hashsize', 8388608);
"""

TABLE_NAMES = {"meta", "sources", "sessions", "spans", "trees", "hidden", "shadowed", "search"} | {
    f"search_{shadow}" for shadow in ("data", "idx", "docsize", "config")
}

#: Length of the hash of an entry.
KEY_BYTES = 8


class Extent(NamedTuple):
    """The rows of one session file: `slots` slots from its key on."""

    key: int
    slots: int

    @property
    def low(self) -> int:
        """The first row."""
        return self.key << SLOT_SHIFT

    @property
    def high(self) -> int:
        """The last row."""
        return (self.key + self.slots << SLOT_SHIFT) - 1

    @property
    def room(self) -> int:
        """How many nodes it has room for."""
        return self.slots << SLOT_SHIFT - 1

    def row(self, node: int, role: int) -> int:
        return self.low + (node << 1 | role)

    def node(self, row: int) -> int:
        return row - self.low >> 1


def slots_for(nodes: int) -> int:
    """How many slots `nodes` nodes take."""
    return max(1, -(-nodes >> SLOT_SHIFT - 1))


class Run(NamedTuple):
    """Consecutive user or assistant entries of one session as they are stored (see runs.py), but for the session:
    ``first`` is the place of the first (``node << 1 | role``), ``low`` and ``high`` bound the times, ``keys`` are the
    hashes of the entries with text."""

    first: int
    low: int
    high: int
    packed: bytes
    keys: bytes


class Entries(NamedTuple):
    """User and assistant entries ready to be written, ascending by place; and the analysed text of those that have any."""

    runs: list[Run]
    text_places: list[int]
    bodies: list[str]
    wholes: list[str]


class TreePart(NamedTuple):
    """Consecutive nodes of one transcript in columns, see the tables."""

    first_node: int
    ids: bytes
    kinds: bytes
    links: bytes  # msgpack of [links, marks]


Natural = Annotated[int, Meta(ge=0)]
Moment = Annotated[int, Meta(ge=FIRST_MS, le=LAST_MS)]
"""Milliseconds since the epoch that are a time."""


class SourceRow(Struct, frozen=True, gc=False, array_like=True):
    """What the snapshot says of one file."""

    id: int
    path: bytes
    identity: State
    state: int
    child: bool
    parent_path: bytes | None
    tombstoned: bool
    stamp: int
    session_id: str | None
    session: int | None
    damaged: Natural
    indexed_at: Moment


class SessionRow(Struct, frozen=True, gc=False, array_like=True):
    """What the snapshot says of a session by one of its files. Times are milliseconds since the epoch, UTC."""

    key: Natural
    slots: Annotated[int, Meta(ge=1, le=1 << 22 - SLOT_SHIFT + 2)]
    session_id: str
    source: int | None
    cwd: str | None
    name: str | None
    parent: str | None
    child: bool
    parent_path: bytes | None
    path: bytes | None
    tombstoned: bool
    started: Moment | None
    first_time: Moment | None
    last_time: Moment | None
    messages: Natural
    nodes: Annotated[int, Meta(ge=0, le=NODE_LIMIT)]
    leaf: int | None
    ordered: bool
    untimed: bool
    size: int
    duplicate: bool

    @property
    def extent(self) -> Extent:
        return Extent(self.key, self.slots)

    @property
    def deleted(self) -> bool:
        return bool(self.tombstoned) or self.source is None

    @property
    def activity(self) -> int | None:
        """Latest message, else the header's time."""
        return self.last_time if self.last_time is not None else self.started

    @property
    def order(self) -> tuple[str, bytes]:
        """Orders session files that are equal otherwise: by what the index's history has no part in."""
        return self.session_id, self.path or b""

    @property
    def standing(self) -> tuple[bool, bool, int, int, bytes]:
        """Sorts the files of a session, the leading one first: live before deleted, root before child, then the latest
        activity, the larger, the path."""
        moment = self.activity
        child = bool(self.child) or self.parent_path is not None
        return self.deleted, child, 1 << 62 if moment is None else -moment, -self.size, self.path or b""


#: The columns of `sessions` in the order of a `SessionRow`.
SESSION_COLUMNS = ", ".join(SessionRow.__struct_fields__)


def integers(values: Sequence[int]) -> array[int]:
    """Values as the buffer that ``apsw.carray`` binds. It takes no empty one: -1, which no row has, stands for none."""
    return array("q", values or (-1,))


#: Entries with text up to which everything is counted whenever a file is opened; above, only what is counted in no time.
FEW_ENTRIES = 50_000

#: What is counted by every commit and every check: a row per page of the full-text index, per session,
#: per run of entries, ...
_QUICK = {
    "pages": "SELECT count(*) FROM search_idx",
    "sessions": "SELECT count(*) FROM sessions",
    "spans": "SELECT count(*) FROM spans",
    "hidden": "SELECT count(*) FROM hidden",
    "shadowed": "SELECT count(*) FROM shadowed",
}
#: What takes milliseconds per million rows. A writer keeps this number up to date without counting.
_THOROUGH = {
    "documents": "SELECT count(*) FROM search_docsize",
}
NOTES = (*_QUICK, *_THOROUGH)


#: What a row that is not as it should be can make of the code that reads it.
ODD = (
    ArithmeticError, AssertionError, AttributeError, LookupError, MemoryError, RecursionError, TypeError, ValueError,
    MsgspecError, zlib.error,
)  # fmt: skip


class IntegrityFault(Exception):
    """The index contradicts itself: rows are missing that were committed. It has to be made anew."""


def quick_counts(connection: apsw.Connection) -> dict[str, int]:
    """The numbers that a commit counts."""
    return _counted(connection, _QUICK)


def check(connection: apsw.Connection, *, thorough: bool) -> None:
    """Compares the tables with what the last commit noted. Raises IntegrityFault."""
    noted = dict(connection.execute("SELECT name, value FROM meta"))
    if not all(isinstance(noted.get(name), int) for name in (*NOTES, "revision")):
        raise IntegrityFault("the notes of the last commit are gone")
    found = _counted(connection, _QUICK)
    if thorough or noted["documents"] <= FEW_ENTRIES:
        found |= _counted(connection, _THOROUGH)
    wrong = [name for name, count in found.items() if count != noted[name]]
    if wrong:
        raise IntegrityFault("rows are missing: " + ", ".join(wrong))


def _counted(connection: apsw.Connection, questions: dict[str, str]) -> dict[str, int]:
    counts = {}
    for name, question in questions.items():
        row = connection.execute(question).fetchone()
        counts[name] = int(row[0]) if row else 0
    return counts
