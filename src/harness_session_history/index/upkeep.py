"""Keeps the index file small and clean: purges what deleted sessions said, merges segments, empties the log."""

from __future__ import annotations

import time
from collections.abc import Callable

import apsw

from ..errors import log_warning
from ..model.limits import LIMITS
from .writer import Writer

#: FEW_SEGMENTS segments of the full-text index hardly slow a search down; more than MANY_SEGMENTS do.
FEW_SEGMENTS, MANY_SEGMENTS = 8, 16
#: Pages that one step of a merge beside a small refresh may write, and how long such steps may take.
SMALL_STEP_PAGES, SMALL_STEPS_SECONDS = 16, 0.003
#: How long a small refresh may take to rewrite the full-text index.
SHRINK_SECONDS = 0.5
#: Removed entries that are no waste yet.
FEW_ROWS = 200
#: Free pages that are given back in one go, in one transaction.
FREE_PAGES = 2000


def segments(writer: Writer) -> int:
    """How many segments the full-text index has."""
    found = writer.connection.execute(
        "WITH RECURSIVE segments(id) AS (SELECT min(segid) FROM search_idx UNION ALL "
        "SELECT (SELECT min(segid) FROM search_idx WHERE segid > segments.id) FROM segments WHERE id IS NOT NULL) "
        "SELECT count(id) FROM segments"
    ).fetchone()
    return int(found[0]) if found else 0


def is_wasteful(writer: Writer) -> bool:
    """Whether the segments hold, of removed entries, more than half as many as there are, and not just a few."""
    return writer.note("waste") > max(FEW_ROWS, writer.note("documents") // 2)


def note_merge(writer: Writer, wanted: bool) -> None:
    """Notes whether segments are left that should be merged; in a transaction of its own, if that is news."""
    if bool(writer.note("merge")) != wanted:
        writer.begin()
        writer.set_note("merge", wanted)
        writer.commit()


def _begin_merge(writer: Writer, pages: int) -> None:
    """Begins to merge all segments into one, without what is removed."""
    writer.set_note("waste", 0)
    writer.connection.execute("INSERT INTO search(search, rank) VALUES('merge', ?)", (-pages,))


def _merge_step(writer: Writer, pages: int) -> bool:
    """One bounded step of a merge that has begun; True when nothing is left to merge."""
    before = writer.connection.total_changes()
    writer.connection.execute("INSERT INTO search(search, rank) VALUES('merge', ?)", (pages,))
    return writer.connection.total_changes() - before < 2


def tidy(writer: Writer, over: Callable[[], bool]) -> None:
    """Purges if that is due and empties the log. The caller holds the writer's lock; may be stopped at any time.

    A purge is done only when the log is empty as well: until then it holds pages with the old tokens.
    """
    purging = bool(writer.note("purge"))
    if purging and not purge(writer, over):
        return
    if segments(writer) > FEW_SEGMENTS and not merge(writer, over):
        return
    note_merge(writer, False)
    give_back(writer.connection)
    if truncate_wal(writer.connection, LIMITS.patience_ms) and purging:
        writer.begin()
        writer.set_note("purge", 0)
        writer.commit()
        truncate_wal(writer.connection, LIMITS.patience_ms)


def purge(writer: Writer, over: Callable[[], bool]) -> bool:
    """Rewrites the full-text segments until none holds a token of a removed entry; True when that is done.

    A removed row only leaves a tombstone in FTS5: its tokens stay in the file until their segment is merged. Runs in
    short transactions and can be stopped between them; the next run begins the merge anew.
    """
    writer.begin()
    _begin_merge(writer, LIMITS.step_pages)
    writer.commit()
    return merge(writer, over)


def merge(writer: Writer, over: Callable[[], bool]) -> bool:
    """Joins segments in short transactions, as a search looks into each of them; True when there is nothing to join.

    Can be stopped between two transactions.
    """
    while not over():
        writer.begin()
        done = _merge_step(writer, LIMITS.step_pages)
        writer.commit()
        if done:
            return True
    return False


def merge_some(writer: Writer, over: Callable[[], bool]) -> None:
    """What a small refresh can do beside its work: a merge of all segments once removed entries take much of them, if that
    is done in a moment (else it goes on in later ones); some small steps of a merge if there are many segments."""
    if is_wasteful(writer):
        until = time.monotonic() + SHRINK_SECONDS
        done = purge(writer, lambda: over() or time.monotonic() > until)
        note_merge(writer, not done)
        give_back(writer.connection)
    elif segments(writer) > MANY_SEGMENTS or writer.note("merge"):
        until = time.monotonic() + SMALL_STEPS_SECONDS
        writer.begin()
        while not (done := _merge_step(writer, SMALL_STEP_PAGES)) and time.monotonic() < until:
            pass
        writer.commit()
        if done:
            note_merge(writer, False)
            give_back(writer.connection)


def give_back(connection: apsw.Connection) -> bool:
    """Gives some free pages back to the file system; the last pages of the file take their places. True if some are left."""
    connection.execute(f"PRAGMA incremental_vacuum({FREE_PAGES})").fetchall()
    return bool(connection.pragma("freelist_count"))


def truncate_wal(connection: apsw.Connection, patience_ms: int = 0) -> bool:
    """Moves the log into the database and empties it; False if a reader needs it, or the disk is full (then it is left for
    another time: what is committed is in the log)."""
    connection.set_busy_timeout(patience_ms)
    try:
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    except (apsw.BusyError, apsw.LockedError):
        return False
    except apsw.Error as error:
        log_warning("the log of the index cannot be emptied: %s", error)
        return False
    finally:
        connection.set_busy_timeout(LIMITS.busy_ms)
    return True
