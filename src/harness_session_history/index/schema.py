"""The index file's tables and its version.

The file is derived and disposable. It holds tokens, spans, hashes, times, ids, names that people gave, folders and
paths; it never holds readable transcript text.
"""

from __future__ import annotations

#: "PiSH": marks the file as ours in SQLite's header.
APPLICATION_ID = 0x50695348
#: Raised by every change of the tables, of the analysis or of the rendering of text.
VERSION = 4

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

-- One row per file that was looked at. `session` is set where the file is the one that counts for its session.
CREATE TABLE sources(
  id INTEGER PRIMARY KEY, path BLOB NOT NULL UNIQUE,
  dev INTEGER NOT NULL, ino INTEGER NOT NULL, size INTEGER NOT NULL, mtime_ns INTEGER NOT NULL, ctime_ns INTEGER NOT NULL,
  state INTEGER NOT NULL, child INTEGER NOT NULL, parent_path BLOB, tombstoned INTEGER NOT NULL, stamp INTEGER NOT NULL,
  session_id TEXT, session INTEGER, last_time INTEGER, damaged INTEGER NOT NULL, indexed_at INTEGER NOT NULL,
  facts BLOB, revision INTEGER NOT NULL);
CREATE INDEX sources_by_session ON sources(session_id) WHERE session_id IS NOT NULL;
CREATE INDEX sources_by_revision ON sources(revision);

-- One row per session ever seen; `source` is NULL when its file is gone (a tombstone: no entry is left of it, and `path`
-- is where it was).
CREATE TABLE sessions(
  key INTEGER PRIMARY KEY, slots INTEGER NOT NULL, session_id TEXT NOT NULL UNIQUE, source INTEGER,
  cwd TEXT, name TEXT, parent TEXT, child INTEGER NOT NULL, parent_path BLOB, path BLOB, tombstoned INTEGER NOT NULL,
  started INTEGER, first_time INTEGER, last_time INTEGER, messages INTEGER NOT NULL,
  nodes INTEGER NOT NULL, leaf INTEGER, ordered INTEGER NOT NULL, untimed INTEGER NOT NULL, revision INTEGER NOT NULL);
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

CREATE VIRTUAL TABLE search USING fts5(body, whole, content='', contentless_delete=1,
  tokenize="porter unicode61 remove_diacritics 2");
-- Segments are merged by whoever has the time for it (see upkeep.py), not in the midst of writing.
INSERT INTO search(search, rank) VALUES('automerge', 0), ('crisismerge', 256), ('hashsize', 8388608);
"""

TABLE_NAMES = {"meta", "sources", "sessions", "spans", "trees", "hidden", "search"} | {
    f"search_{shadow}" for shadow in ("data", "idx", "docsize", "config")
}
