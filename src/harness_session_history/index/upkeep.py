"""Keeps the index file small and clean: purges what deleted sessions said, merges segments, empties the log."""

from __future__ import annotations

from collections.abc import Callable

import apsw

from .writer import Writer

#: Pages that one step of a merge may write; a step is one short transaction.
STEP_PAGES = 250
#: A log longer than this (bytes) is emptied when nobody reads.
LOG_BYTES = 1 << 20


def purge(writer: Writer, over: Callable[[], bool]) -> bool:
    """Rewrites the full-text segments until none holds a token of a removed entry; True when that is done.

    A removed row only leaves a tombstone in FTS5: its tokens stay in the file until their segment is merged. Runs in
    short transactions and can be stopped between them; the next run begins the merge anew.
    """
    if not writer.wants_purge():
        return True
    writer.begin()
    writer.merge_all(STEP_PAGES)
    writer.commit()
    while not over():
        writer.begin()
        done = writer.merge_step(STEP_PAGES)
        if done:
            writer.purged()
        writer.commit()
        if done:
            return True
    return False


def truncate_log(connection: apsw.Connection) -> None:
    """Moves the log into the database and empties it, if no reader needs it; else leaves it for another time."""
    connection.set_busy_timeout(0)
    try:
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    except (apsw.BusyError, apsw.LockedError):
        return
    finally:
        connection.set_busy_timeout(10_000)
