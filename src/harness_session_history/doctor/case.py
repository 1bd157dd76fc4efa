"""What the doctor looks at: files, index, registry and settings at one moment, and how to say a command.

One of the places where archive and index meet. Everything is only looked at.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager

import apsw

from ..archive.discovery import walk
from ..archive.files import Unreadable, opened
from ..archive.registry import Registry, RegistryEntry
from ..errors import InvalidRequest
from ..index.catalog import Catalog
from ..index.freshness import Difference, compare, prefixes
from ..model.sources import Walk
from ..options import program
from ..settings import Settings
from .index_health import Health, reading

_PLAIN = frozenset(b"%+,-./0123456789:=@ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz")


class Case:
    """One moment of one history. Without a `connection` the index could not be read; then its catalog is empty."""

    def __init__(
        self, settings: Settings, health: Health, connection: apsw.Connection | None, cancelled: Callable[[], bool]
    ) -> None:
        self.settings, self.health, self.connection = settings, health, connection
        self.catalog = Catalog(prefixes(root.path for root in settings.roots))
        if connection is not None:
            self.catalog.update(connection)
        # After the catalog: what was seen before must not vouch for a later snapshot.
        self.walk: Walk = walk(settings.roots, cancelled=cancelled)
        self.difference: Difference = compare(self.walk, self.catalog)
        self.registry: Mapping[str, RegistryEntry] = Registry(settings.registry).entries()

    def command(self, *words: str, index: str | None = None) -> str:
        """A line for a shell that asks this very history: with the settings that the environment does not give.

        `index` stands in for its index.
        """
        own, usual = self.settings, usual_settings()
        given: list[str] = []
        roots = [root.path for root in own.roots]
        if usual is None or roots != [root.path for root in usual.roots]:
            for root in roots:
                given += ["--root", root]
        index = index or own.index
        there = usual_settings(roots=roots)
        if there is None or index != there.index:
            given += ["--index", index]
        if own.current_session and (usual is None or own.current_session != usual.current_session):
            given += ["--current", own.current_session]
        if own.registry and (usual is None or own.registry != usual.registry):
            given += ["--registry", own.registry]
        return " ".join([program(), *map(for_shell, [*given, *words])])

    def usual_index(self) -> str | None:
        """Where the index of these roots is if nobody names another place; None if there is no such place."""
        usual = usual_settings("SESSION_HISTORY_INDEX", roots=[root.path for root in self.settings.roots])
        return None if usual is None else usual.index


def usual_settings(*without: str, roots: Iterable[str] | None = None) -> Settings | None:
    """The settings that the environment gives (`without` some of its variables), None if it does not give all: a user may
    have no home folder."""
    environ = {name: value for name, value in os.environ.items() if name not in without}
    try:
        return Settings.resolve(roots=None if roots is None else tuple(roots), environ=environ)
    except InvalidRequest:
        return None


@contextmanager
def opened_case(settings: Settings, health: Health, cancelled: Callable[[], bool]) -> Iterator[Case]:
    """The case with its index opened read-only where that is possible. Raises apsw.Error for damage met later."""
    if health.state not in ("sound", "damaged"):
        yield Case(settings, health, None, cancelled)
        return
    with reading(settings.index, cancelled) as connection:
        yield Case(settings, health, connection, cancelled)


def shown(path: bytes | str) -> str:
    """A path that can be written in UTF-8: bytes that are none become U+FFFD."""
    return os.fsencode(path).decode("utf-8", "replace")


def for_shell(word: bytes | str) -> str:
    """A word of a command that means just these bytes, also when it is copied from one line on a screen."""
    raw = os.fsencode(word)
    text = shown(raw)
    if text.encode() == raw and text.isprintable() and " ".join(text.split()) == text:
        return shlex.quote(text)
    return "$'" + "".join(chr(byte) if byte in _PLAIN else f"\\x{byte:02x}" for byte in raw) + "'"


def why_unreadable(case: Case, path: bytes) -> str:
    """Why a file cannot be read now, or could not when it was last tried."""
    try:
        with opened(path, case.walk.files[path].identity):
            pass
    except Unreadable as problem:
        return str(problem)
    assert case.connection is not None
    said = case.connection.execute("SELECT facts FROM sources WHERE path=?", (path,)).get
    return f"when it was last tried: {said.decode('utf-8', 'replace') if said else 'unknown'}; it can be opened now"
