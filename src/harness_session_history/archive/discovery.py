"""Session files under the roots: one walk over the folders, one stat per file.

Rules (contract: branches, identity, scope; settings): folders are walked at any depth, flat and nested alike; a
folder link directly inside a root is followed once, a deeper one leads only where the walk comes anyway; a file link counts once, together with its target; a file that has several names
counts once; only files of the effective user count, or, under a root that was named explicitly, of that root's owner.
What the walk reports is metadata, and no file is opened (but for a few, see `levels`): whether a file really holds a
session is for its reader to say.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Final

import msgspec

from ..model import names
from ..model.sources import RootState, SourceFile, Walk, WalkCancelled, state_of
from ..pacing import let_others_run
from .files import reason
from .parentage import CHILD_FOLDERS, Level, begins_as_session, top_level

if TYPE_CHECKING:
    from ..model.sources import Root


MAX_DEPTH: Final = 64
"""Folders nested deeper than this below a root are reported, not walked."""

_BATCH: Final = 256  # directory entries between two questions whether the walk is cancelled, and two turns of others
_WINDOWS: Final = os.name == "nt"


Owners = frozenset[int] | None
"""The users whose files count; None where the system knows no such owners."""

_Key = tuple[int, int] | bytes


class _Folder(msgspec.Struct, frozen=True):
    path: bytes
    level: Level
    owners: Owners
    depth: int
    #: A link deeper than directly inside a root: another name of a folder that is met elsewhere, or nothing.
    alias: bool
    ours: bool  # whether the folder above belongs to one of the owners, so that a failure here concerns the caller


class _FileLink(msgspec.Struct, frozen=True):
    path: bytes
    status: os.stat_result
    folder: _Folder


def walk(roots: Sequence[Root], *, euid: int | None = None, cancelled: Callable[[], bool] | None = None) -> Walk:
    """The session files under `roots` that belong to `euid` (default: the effective user) or to an explicit root's owner.

    Raises `WalkCancelled` soon after `cancelled()` is true. Nothing else is raised: what cannot be read is reported.
    """
    return _Walker(roots, euid, cancelled or (lambda: False)).walk()


class _Walker:
    def __init__(self, roots: Sequence[Root], euid: int | None, cancelled: Callable[[], bool]) -> None:
        if euid is None and hasattr(os, "geteuid"):
            euid = os.geteuid()
        self.cancelled, self.roots = cancelled, roots
        self.user: Owners = None if euid is None else frozenset({euid})
        self.result = Walk({}, [], set(), [], {}, time.monotonic())
        self.root_keys: list[_Key | None] = []  # None where a root is out of reach
        self.root_owners: dict[_Key, frozenset[int]] = {}
        self.seen: dict[_Key, bool] = {}  # folders met; whether they were read to their end
        self.folder_links: list[_Folder] = []
        self.file_links: list[_FileLink] = []
        self.many_names: list[bytes] = []  # files that have more than one name

    def walk(self) -> Walk:
        starts = self._starts()
        # Outer roots before inner ones, folders before links to folders: so a file's path and place do not depend on the
        # order in which roots were named or entries are listed.
        for folder in sorted(starts, key=lambda start: os.path.realpath(start.path).count(os.fsencode(os.sep))):
            self._tree(folder)
        while self.folder_links:
            links, self.folder_links = sorted(self.folder_links, key=lambda link: link.path), []
            for folder in links:
                self._tree(folder)
        self._settle_names()
        self._settle_roots()
        return self.result

    def _starts(self) -> Iterable[_Folder]:
        starts = []
        for number, root in enumerate(self.roots):
            path = os.fsencode(root.path)
            try:
                status = os.stat(path)
                if not stat.S_ISDIR(status.st_mode):
                    raise NotADirectoryError(errno.ENOTDIR, "not a folder")
            except (OSError, ValueError) as problem:
                missing = isinstance(problem, FileNotFoundError)
                self.root_keys.append(None)
                self.result.roots.append(
                    RootState(root.path, False, reported=root.required or not missing, reason=reason(problem))
                )
                continue
            key = _key(path, status.st_dev, status.st_ino)
            self.root_keys.append(key)
            if root.explicit:
                self.root_owners[key] = frozenset({status.st_uid})
            self.result.roots.append(RootState(root.path, True))
            starts.append(_Folder(path, top_level(number), self.user, 0, False, True))
        return starts

    def _tree(self, top: _Folder) -> None:
        waiting = [top]
        while waiting:
            waiting += self._visit(waiting.pop())

    def _visit(self, folder: _Folder) -> Iterable[_Folder]:
        """Reads one folder, once; gives the folders in it that are still to be visited."""
        if self.cancelled():
            raise WalkCancelled
        key: _Key | None = None
        try:
            status = os.stat(folder.path)
            key = _key(folder.path, status.st_dev, status.st_ino)
            if key in self.seen:
                if self.seen[key]:
                    self.result.folders.add(folder.path)
                return ()
            if folder.alias:
                return ()
            self.seen[key] = False
            folder = self._owned(folder, key, status)
            if folder.depth > MAX_DEPTH:
                self._fail(folder, folder.path, "nested too deeply")
                return ()
            inner = self._read(folder)
        except (FileNotFoundError, NotADirectoryError):
            return ()  # it vanished while we walked: as if it had never been there
        except OSError as problem:
            if key is None or key not in self.root_keys:  # what ails a root is said of the root
                self._fail(folder, folder.path, reason(problem))
            return ()
        self.seen[key] = True
        self.result.folders.add(folder.path)
        return inner

    def _owned(self, folder: _Folder, key: _Key, status: os.stat_result) -> _Folder:
        """The folder with the users whose files count in it: below an explicit root also that root's owner."""
        owners = folder.owners
        if owners is not None:
            owners |= self.root_owners.get(key, frozenset())
        return _Folder(folder.path, folder.level, owners, folder.depth, False, _counts(status, owners))

    def _read(self, folder: _Folder) -> list[_Folder]:
        files, owners, place = self.result.files, folder.owners, folder.level.known
        inside: list[bytes] = []
        inside_links: list[tuple[bytes, os.stat_result]] = []
        stems: dict[bytes, list[bytes]] = {}  # of session files that are not in `files` under <stem>.jsonl
        with os.scandir(folder.path) as entries:
            while batch := list(islice(entries, _BATCH)):
                if self.cancelled():
                    raise WalkCancelled
                for entry in batch:
                    name = entry.name
                    plain = name[-6:] == b".jsonl"
                    named = plain or (b".jsonl." in name and names.is_session_name(name))
                    try:
                        if named and entry.is_file(follow_symlinks=False):
                            path = entry.path
                            # Windows leaves device and inode out of what it lists.
                            status = os.stat(path) if _WINDOWS else entry.stat(follow_symlinks=False)
                            if owners is None or status.st_uid in owners:
                                if place is None:
                                    place = folder.level.place(self._is_session)
                                files[path] = SourceFile(path, state_of(status), place)
                                if status.st_nlink > 1:
                                    self.many_names.append(path)
                                if plain:
                                    continue
                            stems.setdefault(names.stem(name), []).append(path)
                        elif entry.is_symlink():
                            if self._is_folder_link(entry, folder, named):
                                inside_links.append((name, entry.stat(follow_symlinks=False)))
                            elif named:
                                stems.setdefault(names.stem(name), []).append(entry.path)
                        elif entry.is_dir(follow_symlinks=False):
                            inside.append(name)
                    except FileNotFoundError:
                        continue  # it vanished while we walked
                    except OSError as problem:
                        if named:
                            self._fail(folder, entry.path, reason(problem))
                if len(batch) == _BATCH:
                    let_others_run()
        for name, link in inside_links:
            below = self._below(folder, name, stems, alias=folder.depth > 0)
            if below.owners is not None and self.user is not None and link.st_uid not in self.user:
                # Who may only write below a root must not widen it: behind a link of theirs only their own files count.
                below = msgspec.structs.replace(below, owners=below.owners & {link.st_uid})
            self.folder_links.append(below)
        return [self._below(folder, name, stems) for name in inside]

    def _below(self, folder: _Folder, name: bytes, stems: dict[bytes, list[bytes]], *, alias: bool = False) -> _Folder:
        path, level = os.path.join(folder.path, name), folder.level
        siblings = sorted(stems.get(name, ()), key=_standing)
        if (beside := path + b".jsonl") in self.result.files:
            siblings.insert(0, beside)
        if siblings or name in CHILD_FOLDERS:
            level = Level(level, siblings, name in CHILD_FOLDERS)
        return _Folder(path, level, folder.owners, folder.depth + 1, alias, folder.ours)

    def _is_session(self, path: bytes) -> bool:
        """Whether a file after which a folder is named is a session, as far as its name, else its beginning says.

        Links and what belongs to others are taken for what they are called.
        """
        judged = self.result.judged
        if path not in self.result.files or names.named_id(os.path.basename(path)) is not None:
            return True
        if path not in judged:
            judged[path] = begins_as_session(path, self.result.files[path].identity)
        return judged[path]

    def _is_folder_link(self, entry: os.DirEntry[bytes], folder: _Folder, named: bool) -> bool:
        """Whether a link leads to a folder; a file link is kept for the end of the walk, a broken one is reported."""
        ours = named and _counts(entry.stat(follow_symlinks=False), folder.owners)
        try:
            status = os.stat(entry.path)
        except OSError as problem:
            if ours:
                self.result.unavailable.append((entry.path, "a link that cannot be followed: " + reason(problem)))
            return False
        if ours and stat.S_ISREG(status.st_mode):
            self.file_links.append(_FileLink(entry.path, status, folder))
        # (One to a folder above a root is no project folder that somebody keeps elsewhere.)
        return stat.S_ISDIR(status.st_mode) and _key(entry.path, status.st_dev, status.st_ino) not in self._above_roots

    @cached_property
    def _above_roots(self) -> set[_Key]:
        """The folders above the roots."""
        found: set[_Key] = set()
        for root in self.roots:
            path = os.path.realpath(os.fsencode(root.path))
            while (above := os.path.dirname(path)) != path:
                path = above
                with suppress(OSError):
                    status = os.stat(path)
                    found.add(_key(path, status.st_dev, status.st_ino))
        return found

    def _settle_names(self) -> None:
        """Leaves one path per file: not a link, not deleted by its name, the first in byte order."""
        files, aliases = self.result.files, self.result.aliases
        if not self.many_names and not self.file_links:
            return
        known: dict[_Key, bytes] = {}
        for path in sorted(self.many_names, key=_standing):
            first = known.setdefault(_key(path, *files[path].state[:2]), path)
            if first != path:
                del files[path]
                aliases[path] = first
        if self.file_links:
            known.update((_key(path, *source.state[:2]), path) for path, source in files.items())
        for link in sorted(self.file_links, key=lambda link: link.path):
            key = _key(link.path, *state_of(link.status)[:2])
            if key in known:
                aliases[link.path] = known[key]
            elif not self._inside(link.path):
                self.result.unavailable.append((link.path, "a link that leaves the roots"))
            elif _counts(link.status, link.folder.owners):
                known[key] = link.path
                files[link.path] = SourceFile(
                    link.path, state_of(link.status), link.folder.level.place(self._is_session)
                )

    def _inside(self, path: bytes) -> bool:
        """Whether a file link's target lies in a folder that the walk met."""
        folder = os.path.dirname(os.path.realpath(path))
        try:
            status = os.stat(folder)
            return _key(folder, status.st_dev, status.st_ino) in self.seen
        except OSError:
            return False

    def _settle_roots(self) -> None:
        for number, key in enumerate(self.root_keys):
            if key is None:
                continue
            path = self.roots[number].path
            if self.seen.get(key):
                self.result.folders.add(os.fsencode(path))
            else:
                self.result.roots[number] = RootState(path, False, reported=True, reason="cannot be read")

    def _fail(self, folder: _Folder, path: bytes, why: str) -> None:
        """Reports what should have counted; another user's is passed over in silence."""
        if folder.ours:
            self.result.unavailable.append((path, why))


def _standing(path: bytes) -> tuple[bool, bytes]:
    """Sorts the names of one thing: what is not deleted by its name before what is."""
    return names.is_tombstoned(os.path.basename(path)), path


def _counts(status: os.stat_result, owners: Owners) -> bool:
    return owners is None or status.st_uid in owners


def _key(path: bytes, dev: int, ino: int) -> _Key:
    """What is equal for two paths of one file or folder, also on a file system without inode numbers."""
    return (dev, ino) if ino else os.path.realpath(path)
