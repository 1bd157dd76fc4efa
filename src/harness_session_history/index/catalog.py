"""The snapshot's files and sessions in memory, kept up to date by revision instead of being read again at each call."""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

import apsw
import msgspec

from ..model.entries import FIRST_MS, LAST_MS
from ..model.names import folder_of, named_id
from ..pacing import let_others_run, paced
from .schema import SESSION_COLUMNS, SLOT_SHIFT, IntegrityFault, SessionRow, SourceRow, slots_for

if TYPE_CHECKING:
    from ..model.sources import FileIdentity


T = TypeVar("T")
#: Rows that are taken in between two pauses for other threads.
_AT_ONCE = 400
_SEPARATOR = os.sep.encode()
_SOURCES = (
    "SELECT id, path, dev, ino, size, mtime_ns, ctime_ns, uid, state, child, parent_path, tombstoned, stamp, session_id, "
    "session, damaged, indexed_at FROM sources WHERE revision > ?"
)
_SESSIONS = f"SELECT {SESSION_COLUMNS} FROM sessions WHERE revision > ?"


class Catalog:
    """What one index says of its files and sessions, as of `revision`. Belongs to one index file.

    `below` is what the paths of the roots that are asked for begin with (empty: everything): an index may know others.
    """

    def __init__(self, below: tuple[bytes, ...] = ()) -> None:
        self.below = below
        #: Keys of the session files that lie under none of the roots.
        self.outside: set[int] = set()
        #: Files whose bytes do not say what was indexed of them, though they seem to have only grown since: with the state
        #: in which they were found so. Whoever can write takes them from here and has them read again.
        self.doubted: dict[bytes, FileIdentity] = {}
        self.revision = -1
        self.snapshot_at: int | None = None
        self.purge = self.merge = False
        self.sources: dict[bytes, SourceRow] = {}
        #: Session files by their key. Those of one id are one session, which is shown as its leading file says.
        self.sessions: dict[int, SessionRow] = {}
        #: The leading file of each session, and all files of those that have several, the leading one first.
        self.key_by_id: dict[str, int] = {}
        self.shared: dict[str, list[int]] = {}
        self.key_by_path: dict[bytes, int] = {}
        self._ordered: list[int] = []
        self._asked_last = (0, 0)
        #: What others have worked out from this revision, by a key of theirs; emptied whenever the catalog changes.
        self.derived: dict[object, Any] = {}
        self._tombstoned: set[int] = set()
        self._latest: list[int] = []
        self._paths: dict[str, list[bytes]] = {}
        self._gone: dict[bytes, int] | None = None
        self._gone_above: dict[bytes, bytes | None] = {}

    def update(self, connection: apsw.Connection) -> bool:
        """Brings the catalog to the snapshot that `connection` sees; True if anything changed.

        Called inside a read transaction, it agrees with whatever is read in it. Raises IntegrityFault.
        """
        values = dict(
            connection.execute(
                "SELECT name, value FROM meta WHERE name IN ('revision', 'snapshot_at', 'purge', 'merge')"
            )
        )
        if len(values) < 4 or not isinstance(values["revision"], int) or not is_moment(values["snapshot_at"]):
            raise IntegrityFault("the notes of the last commit are gone")
        revision = values["revision"]
        if revision == self.revision:
            return False
        seen = self.revision
        files = ((*row[:2], row[2:8], *row[8:]) for row in connection.execute(_SOURCES, (seen,)))
        for source in _taken(files, list[SourceRow]):
            known = self.sources.get(source.path)
            self.sources[source.path] = source
            if known is not None and known.session != source.session:
                self._drop(known.session)
        for session in _taken(connection.execute(_SESSIONS, (seen,)), list[SessionRow]):
            file = None if session.path is None else self.sources.get(session.path)
            if session.source is not None and (file is None or file.id != session.source):
                raise IntegrityFault("a session's file is missing")
            self._drop(session.key)
            if session.session_id in self.key_by_id:  # a tombstone is all that is left of a session, or it has gone
                for key in list(self.files_of(session.session_id)):
                    if session.source is None or self.sessions[key].source is None:
                        self._drop(key)
            self.sessions[session.key] = session
            if session.deleted:
                self._tombstoned.add(session.key)
            if session.path is not None and self.below and not session.path.startswith(self.below):
                self.outside.add(session.key)
            if session.path is not None and session.source is not None:
                self.key_by_path[session.path] = session.key
            if self.key_by_id.setdefault(session.session_id, session.key) != session.key:
                self._order(session.session_id, [*self.files_of(session.session_id), session.key])
        self._ordered, self._latest, self._paths, self._asked_last = [], [], {}, (0, 0)
        self._gone, self._gone_above = None, {}
        self.derived.clear()
        self.revision = revision
        self.snapshot_at = values["snapshot_at"]
        self.purge, self.merge = bool(values["purge"]), bool(values["merge"])
        return True

    def _drop(self, key: int | None) -> None:
        session = None if key is None else self.sessions.pop(key, None)
        if key is None or session is None:
            return
        if session.path is not None and self.key_by_path.get(session.path) == key:
            del self.key_by_path[session.path]
        self._tombstoned.discard(key)
        self.outside.discard(key)
        self._order(session.session_id, [one for one in self.files_of(session.session_id) if one != key])

    def _order(self, session_id: str, keys: list[int]) -> None:
        """Notes the files of a session, those below the roots first and the leading one before all."""
        if len(keys) > 1:
            keys.sort(key=lambda key: (key in self.outside, self.sessions[key].standing))
            self.shared[session_id] = keys
        else:
            self.shared.pop(session_id, None)
        if keys:
            self.key_by_id[session_id] = keys[0]
        else:
            self.key_by_id.pop(session_id, None)

    def files_of(self, session_id: str | None) -> list[int]:
        """Keys of a session's files, the leading one first; none if the session is not known."""
        if session_id in self.key_by_id:
            return self.shared.get(session_id) or [self.key_by_id[session_id]]
        return []

    def leading(self, key: int) -> SessionRow:
        """The leading file of the session that a file belongs to."""
        return self.sessions[self.key_by_id[self.sessions[key].session_id]]

    @property
    def is_split(self) -> bool:
        """Whether a session has files below these roots and others: what is shadowed may be so by one that does not count."""
        return any(0 < len(self.outside.intersection(keys)) < len(keys) for keys in self.shared.values())

    def session_of(self, row: int) -> int:
        """The key of the session that has a row. Raises IntegrityFault if none has."""
        slot = row >> SLOT_SHIFT
        key, end = self._asked_last
        if not key <= slot < end:  # (rows come in order, so that many are of the session of the one before)
            keys = self.ordered_keys()
            at = bisect_right(keys, slot) - 1
            key = keys[at] if at >= 0 else 0
            end = key + self.sessions[key].slots if at >= 0 else 0
            if slot >= end:
                raise IntegrityFault("a session is missing")
            self._asked_last = key, end
        return key

    def slots_of(self, keys: Iterable[int]) -> list[int]:
        """The slots in which sessions have rows."""
        sessions = self.sessions
        return [slot for key in keys for slot in range(key, key + slots_for(sessions[key].nodes))]

    def ordered_keys(self) -> list[int]:
        """All session keys, ascending."""
        if len(self._ordered) != len(self.sessions):
            self._ordered = sorted(self.sessions)
        return self._ordered

    def latest_keys(self) -> list[int]:
        """All session keys, the one with the latest activity first, then by id; those without a time last."""
        if len(self._latest) != len(self.sessions):
            order = [
                (1 << 62 if (activity := session.activity) is None else -activity, session.order, key)
                for key, session in paced(self.sessions.items(), 4 * _AT_ONCE)
            ]
            order.sort()
            self._latest = [key for _activity, _order, key in order]
        return self._latest

    def paths_of(self, session_id: str) -> list[bytes]:
        """Paths of the known files that carry a session's id, or that are named after it and carry none."""
        if not self._paths:
            for path, row in paced(self.sources.items(), _AT_ONCE):
                said = row.session_id if row.session_id is not None else named_id(path.rpartition(_SEPARATOR)[2])
                if said is not None:
                    self._paths.setdefault(said, []).append(path)
        return self._paths.get(session_id, [])

    def gone(self) -> dict[bytes, int]:
        """Keys of the sessions whose files are gone, by the paths at which these were; the newest where it was several."""
        if self._gone is None:
            sessions = [self.sessions[key] for key in sorted(self._tombstoned)]
            self._gone = {one.path: one.key for one in sessions if one.source is None and one.path is not None}
            self._gone_above = {folder_of(path): path for path in self._gone}
        return self._gone

    def gone_above(self, folder: bytes) -> bytes | None:
        """Where the file was after which a folder, or one above it, is named, if it is a session's and gone."""
        self.gone()
        known = self._gone_above
        if folder not in known:
            above = os.path.dirname(folder)
            known[folder] = None if above == folder else self.gone_above(above)
        return known[folder]

    def tombstoned_keys(self) -> set[int]:
        """Keys of the sessions that are deleted as far as their files say."""
        return self._tombstoned


def _taken(rows: Iterator[tuple[Any, ...]], kind: type[list[T]]) -> Iterator[T]:
    """Rows as what they should be, some at once, with pauses for other threads between. Raises IntegrityFault for any other."""
    while some := list(islice(rows, _AT_ONCE)):
        try:
            yield from msgspec.convert(some, kind, strict=False)
        except msgspec.ValidationError as error:
            raise IntegrityFault(f"a row is not what it should be: {error}") from error
        if len(some) == _AT_ONCE:
            let_others_run()


def is_moment(value: object) -> bool:
    """Whether a value is a time, or none."""
    return value is None or (isinstance(value, int) and FIRST_MS <= value <= LAST_MS)
