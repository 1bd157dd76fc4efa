"""Compares what lies on disk now with what the snapshot knows, by metadata only."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Collection, Iterable

from msgspec import Struct

from ..model.sources import FileIdentity, Place, SourceFile, Walk
from ..pacing import paced
from .catalog import Catalog
from .schema import GONE, SESSION, UNREADABLE, SourceRow


class Difference(Struct):
    """How the selected files differ from the snapshot.

    `unreachable` roots held nothing that is known. `gone` files were known and have left a folder that is there; the folder
    of `lost` ones has gone as well, and `away` are those below a root that cannot be reached. The latter two are unavailable.
    """

    indexed: int = 0
    duplicate: int = 0
    damaged: int = 0
    unavailable: int = 0
    unreachable: int = 0
    new: list[SourceFile] = []
    changed: list[tuple[SourceFile, SourceRow]] = []
    gone: list[SourceRow] = []
    lost: list[SourceRow] = []
    away: list[SourceRow] = []
    unreadable: list[tuple[SourceFile, SourceRow]] = []
    oldest_indexed_at: int | None = None
    newest_indexed_at: int | None = None

    @property
    def pending(self) -> int:
        """Sources that maintenance has something to do for."""
        return len(self.new) + len(self.changed) + len(self.gone)

    @property
    def complete(self) -> bool:
        return not self.pending and not self.unavailable

    def narrowed(self, keys: Collection[int], catalog: Catalog, files: Collection[bytes]) -> Difference:
        """The part of a difference of all `files` that is about these session files, and about those of which nobody knows
        yet what they are."""

        def ours(row: SourceRow) -> bool:
            return row.session is None or row.session in keys

        part = Difference(
            unreachable=self.unreachable,
            new=self.new,
            changed=[(file, row) for file, row in self.changed if ours(row)],
            unreadable=[(file, row) for file, row in self.unreadable if ours(row)],
            gone=list(filter(ours, self.gone)),
            lost=list(filter(ours, self.lost)),
            away=list(filter(ours, self.away)),
        )
        others = len(self.unreadable) + len(self.lost) + len(self.away)
        part.unavailable = self.unavailable - others + len(part.unreadable) + len(part.lost) + len(part.away)
        differing = {row.path for _, row in (*part.changed, *part.unreadable)}
        for key in paced(keys, _AT_ONCE):
            path = catalog.sessions[key].path
            if path is not None and path in files and path not in differing:
                part.count(catalog.sources[path], catalog)
        return part

    def count(self, row: SourceRow, catalog: Catalog) -> None:
        """Counts a file that is as it was indexed."""
        if _is_duplicate(row, catalog):
            self.duplicate += 1
        else:
            self.indexed += 1
        self.damaged += bool(row.damaged)
        moment = row.indexed_at
        self.oldest_indexed_at = moment if self.oldest_indexed_at is None else min(self.oldest_indexed_at, moment)
        self.newest_indexed_at = moment if self.newest_indexed_at is None else max(self.newest_indexed_at, moment)

    def counts(self) -> dict[str, int]:
        """The ``freshness.sources`` of an answer."""
        changed = len(self.changed) + len(self.gone)
        selected = self.indexed + self.duplicate + changed + len(self.new) + self.unavailable
        return {
            "selected": selected,
            "indexed": self.indexed,
            "changed": changed,
            "missing": len(self.new),
            "unavailable": self.unavailable,
            "duplicate": self.duplicate,
            "damaged": self.damaged,
            "pendingMaintenance": self.pending,
        }


#: Number of files up to which all are simply looked at.
FEW = 64
#: Files that are compared between two pauses for other threads.
_AT_ONCE = 1000


def compare(walk: Walk, catalog: Catalog, session_id: str | None = None) -> Difference:
    """The difference between a walk and the snapshot, for all files or for those of one session.

    The walk must have begun after the catalog was read: what was seen before must not vouch for a later snapshot. What
    comes back is not to be changed: for all files it is kept until the files or the snapshot change.
    """
    if session_id is not None:
        return _compared(walk, catalog, session_id)
    kept: tuple[dict[bytes, SourceFile], Difference] | None = catalog.derived.get(compare)
    if kept is None or kept[0] is not walk.files:
        kept = catalog.derived[compare] = walk.files, _compared(walk, catalog, None)
    return kept[1]


def _compared(walk: Walk, catalog: Catalog, session_id: str | None) -> Difference:
    difference = Difference()
    sources = catalog.sources
    files = walk.files if session_id is None else _own_files(walk, catalog, session_id)
    for path, file in paced(files.items(), _AT_ONCE):
        row = sources.get(path)
        if session_id is not None and not _belongs(session_id, file, row):
            continue
        if row is None or row.state == GONE:
            difference.new.append(file)
            continue
        if row.identity != file.state or row.child != file.child or row.parent_path != file.parent_path:
            if row.state == SESSION:
                difference.changed.append((file, row))
            else:
                difference.new.append(file)
            continue
        if row.state == SESSION:
            difference.count(row, catalog)
        elif row.state == UNREADABLE:
            difference.unavailable += 1
            difference.unreadable.append((file, row))
    _add_absent(difference, walk, catalog, session_id)
    return difference


def _own_files(walk: Walk, catalog: Catalog, session_id: str) -> dict[bytes, SourceFile]:
    """The files that may belong to a session: not all of them need be looked at for it."""
    if len(walk.files) <= FEW:
        return walk.files
    known = {path: walk.files[path] for path in catalog.paths_of(session_id) if path in walk.files}
    return known | {file.path: file for file in compare(walk, catalog).new if file.named_id == session_id}


def _belongs(session_id: str, file: SourceFile, row: SourceRow | None) -> bool:
    if row is not None and row.session_id is not None:
        return row.session_id == session_id
    return file.named_id == session_id


def _is_duplicate(row: SourceRow, catalog: Catalog) -> bool:
    """Whether every entry of a file stands in another one of its session."""
    session = None if row.session is None else catalog.sessions.get(row.session)
    return session is not None and bool(session.duplicate)


def prefixes(roots: Iterable[str]) -> tuple[bytes, ...]:
    """What the path of every file below one of the roots begins with."""
    return tuple(os.fsencode(root.rstrip(os.sep) + os.sep) for root in roots)


def _carries(row: SourceRow) -> bool:
    """Whether a session would lose a file with it."""
    return row.state == SESSION or (row.state == UNREADABLE and row.session is not None)


def _add_absent(difference: Difference, walk: Walk, catalog: Catalog, session_id: str | None) -> None:
    sources = catalog.sources
    known = sources.keys() if session_id is None else catalog.paths_of(session_id)
    away = {os.fsencode(root.path) for root in walk.roots if not root.reachable}
    away_known: set[bytes] = set()
    below = prefixes([root.path for root in walk.roots])
    unreadable_now = {path for path, _ in walk.unavailable}
    for path in paced(known, 4 * _AT_ONCE):
        if path in walk.files or path in unreadable_now:
            continue
        row = sources[path]
        if not _carries(row) or (session_id is not None and row.session_id != session_id):
            continue
        if walk.roots and not path.startswith(below):
            continue  # an index may know files of roots that are not asked for now
        root = next((root for root in away if path.startswith(root + os.sep.encode())), None)
        if root is not None:
            away_known.add(root)
            difference.away.append(row)
        elif os.path.dirname(path) in walk.folders or _is_duplicate(row, catalog):
            difference.gone.append(row)  # (no session loses anything with a duplicate)
        else:
            difference.lost.append(row)
    difference.unavailable += len(difference.away) + len(difference.lost)
    if session_id is None:
        unreachable = [root.path for root in walk.roots if not root.reachable and root.reported]
        difference.unreachable = sum(os.fsencode(path) not in away_known for path in unreachable)
        difference.unavailable += len(walk.unavailable) + difference.unreachable


def own_files(catalog: Catalog, session_id: str) -> Walk | None:
    """What a walk would find of one session's files, by looking at these alone.

    None where only a walk can tell: the session is new, or one of its files is gone or has been replaced.
    """
    key = catalog.key_by_id.get(session_id)
    if key is None or catalog.sessions[key].source is None:
        return None
    seen = Walk({}, [], set(), [], {}, time.monotonic())
    for path, row in catalog.sources.items():
        if row.state != SESSION or row.session_id != session_id:
            continue
        try:
            status = os.stat(path)
        except OSError:
            return None
        now = FileIdentity.of(status)
        if not stat.S_ISREG(status.st_mode) or not now.is_file(FileIdentity(*row.identity)):
            return None
        seen.files[path] = SourceFile(path, now, Place(0, row.child, row.parent_path))
    return seen if seen.files else None
