"""The limits that tests change: how long work may take, and from which size on it is done in another way.

`LIMITS` is the one object that holds them; other constants stand in the module that they belong to.
"""

from __future__ import annotations

from msgspec import Struct


class Limits(Struct):
    """Seconds, bytes and counts; see the contract for those that callers may rely on."""

    refresh_seconds: float = 25.0
    """What ``refresh=True`` may take, from the call."""
    recall_seconds: float = 5.0
    """How long a known conversation is brought up to date, before it is answered as it is."""
    first_build_seconds: float = 5.0
    """How long the first call builds a snapshot where there is none."""
    fresh_seconds: float = 2.0
    """A scan is cached for min(fresh_seconds, keep_factor × its own duration), unless a watched file changes."""
    keep_factor: float = 10
    cheap_seconds: float = 0.01
    """A scan that took less is never cached."""
    tick_seconds: float = 0.02
    """How far the time stamps of a file system may lie behind the clock."""
    watch_seconds: float = 2.0
    """Between two scans of a watching maintainer where no watcher of the file system is installed."""
    elsewhere_bytes: int = 4 << 20
    """From here on a refresh is done in a process of its own (where there is a caller's loop to keep free)."""
    parallel_bytes: int = 32 << 20
    """From here on files are read in processes of their own."""
    merge_seconds: float = 1.0
    """A refresh merges segments only as long as this much time is left."""
    busy_ms: int = 10_000
    """How long a statement waits for another connection's lock."""
    patience_ms: int = 1000
    """How long emptying the write-ahead log waits for readers."""
    step_pages: int = 250
    """Pages of the full-text index that one step of merging writes."""
    batch_entries: int = 60_000
    """Entries of one transaction."""
    session_entries: int = 10_000
    """Entries of one session beyond which it is written while it is read."""
    bytes_per_node: int = 256
    """Initial extent of a session that is written while it is read: one node for this many bytes of its file."""
    block_bytes: int = 1 << 20
    """Read from a transcript at a time."""
    whole_bytes: int = 4 << 20
    """Up to here all that was read of a transcript is compared before an append is read on; beyond, samples of it."""
    chunk_nodes: int = 32_768
    """Entries of a transcript that are handed on together, at most."""
    long_wal_bytes: int = 20 << 20
    """A write-ahead log beyond this is work for maintenance."""


LIMITS = Limits()
