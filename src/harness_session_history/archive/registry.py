"""The registry: a JSON Lines file in which a host says what it knows of sessions (contract: branches, identity, scope).

``{"sessionId", "kind"?, "name"?, "parentSessionId"?, "deletedAt"?, "file"?}``; per session, what a later line gives
replaces what an earlier one gave, field by field; null takes a field back. A line that cannot be understood is logged
and passed over, and so is a single field of a wrong type: it must not undo a tombstone in the same line.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any, Literal

import msgspec

from ..errors import log_warning
from ..model.names import MAX_ID_CHARS, plain_id
from ..text.clean import NAME_CHARS, one_line
from .files import open_regular


class RegistryEntry(msgspec.Struct, frozen=True):
    """What the registry says of one session; None where it says nothing."""

    session_id: str
    kind: Literal["root", "child"] | None = None
    name: str | None = None
    """One line, cleaned and bounded like a name in a transcript."""
    parent_session_id: str | None = None
    deleted_at: str | None = None
    """As the host wrote it, normally an ISO-8601 time; None = not deleted."""
    file: str | None = None
    """Path of the transcript, as the host wrote it."""


class Registry:
    """A registry file whose entries are kept as long as the file does not change."""

    def __init__(self, path: str | None) -> None:
        self._path = path
        self._state: tuple[int, int, int, int] | None = None
        self._entries: dict[str, RegistryEntry] = {}

    def entries(self) -> Mapping[str, RegistryEntry]:
        """By session id; empty without a registry. If the file cannot be read now, what was last read holds on."""
        if self._path is None:
            return self._entries
        try:
            if _state(os.stat(self._path)) != self._state:
                with open_regular(self._path) as file:
                    state = _state(os.fstat(file.fileno()))
                    self._entries, self._state = _merge(file), state
        except FileNotFoundError:
            self._entries, self._state = {}, None
        except OSError as problem:
            log_warning("the registry cannot be read: %s", problem)
        return self._entries


def _merge(lines: Iterable[bytes]) -> dict[str, RegistryEntry]:
    merged: dict[str, RegistryEntry] = {}
    for number, line in enumerate(lines, 1):
        if number == 1:
            line = line.removeprefix(b"\xef\xbb\xbf")
        if not line.strip():
            continue
        try:
            said = msgspec.json.decode(line)
            session_id = said["sessionId"]
            if not isinstance(session_id, str) or not 0 < len(session_id) <= MAX_ID_CHARS:
                raise ValueError("no usable sessionId")
        except (ValueError, TypeError, KeyError, IndexError, RecursionError) as problem:
            log_warning("registry line %d is passed over: %s", number, problem)
            continue
        session_id = plain_id(session_id)
        before = merged.get(session_id) or RegistryEntry(session_id)
        merged[session_id] = msgspec.structs.replace(before, **_fields(said, number))
    return merged


def _fields(said: dict[str, Any], number: int) -> dict[str, str | None]:
    """The fields that a line gives, under their Python names."""
    given: dict[str, str | None] = {}
    for key, field in _FIELDS.items():
        value = said.get(key, msgspec.UNSET)
        if field == "deleted_at":
            value = _tombstone(value)
        if value is msgspec.UNSET:
            continue
        if not (value is None or isinstance(value, str)) or (field == "kind" and value not in (None, "root", "child")):
            log_warning("registry line %d: %s is passed over", number, key)
            continue
        if value is not None:
            shown = one_line(value, _LONGEST.get(field, NAME_CHARS))
            hidden = "deleted" if field == "deleted_at" and value else ""  # (whatever it says, it is a tombstone)
            value = plain_id(value) if field == "parent_session_id" else shown or hidden
        given[field] = value or None
    return given


_LONGEST = {"file": 4096, "deleted_at": 64}
_FIELDS = {
    "kind": "kind",
    "name": "name",
    "parentSessionId": "parent_session_id",
    "deletedAt": "deleted_at",
    "file": "file",
}


def _tombstone(value: Any) -> Any:
    """``deletedAt`` as a string, whatever its form: better one session too many is hidden than a deleted one shown."""
    if value is False:
        return None
    if value is None or value is msgspec.UNSET:
        return value
    return str(value).strip()


def _state(status: os.stat_result) -> tuple[int, int, int, int]:
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino
