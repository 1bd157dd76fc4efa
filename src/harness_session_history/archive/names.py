"""What the name of a session file says: ``<time>_<id>.jsonl``, also archived (``.reset.``) or deleted (``.deleted.``).

Names are bytes, as the file system gives them: they need not be valid UTF-8.
"""

from __future__ import annotations

import datetime
import os
import re

MAX_SESSION_ID = 128
"""The longest session id, in characters, that a caller can ask for (contract: arguments)."""

# The patterns stay sources: `re` compiles and keeps them at their first use, so that importing costs nothing.
_NAME = rb"(?s)(?P<stem>.*)\.jsonl(?P<marks>(?:\.(?:reset|deleted)\.[0-9][0-9TZtz:._+-]*)*)"
_STEM = (
    rb"(?s)(?P<year>\d{4})-(?P<month>\d\d)-(?P<day>\d\d)"
    rb"[T_-](?P<hour>\d\d)[-:](?P<minute>\d\d)[-:](?P<second>\d\d)(?:[-.](?P<milli>\d{3})\d*)?Z?_(?P<id>.+)"
)


def is_session_name(name: bytes) -> bool:
    """Whether a file of this name may hold a session: ``*.jsonl``, ``*.jsonl.reset.<time>``, ``*.jsonl.deleted.<time>``."""
    return name.endswith(b".jsonl") or re.fullmatch(_NAME, name) is not None


def stem(name: bytes) -> bytes:
    """The name before ``.jsonl``: what the folder of a session's children is called. Empty where there is none."""
    found = re.fullmatch(_NAME, name)
    return found["stem"] if found else b""


def folder_of(path: bytes) -> bytes:
    """The path of the folder that is named after the session file at `path`, where its children are."""
    above, name = os.path.split(path)
    return os.path.join(above, stem(name))


def is_tombstoned(name: bytes) -> bool:
    """Whether the name says that the session was deleted."""
    found = re.fullmatch(_NAME, name)
    return found is not None and b".deleted." in found["marks"]


def named_id(name: bytes) -> str | None:
    """The session id that a name ``<time>_<id>.jsonl`` carries, else None (also where it could not be asked for)."""
    found = re.fullmatch(_STEM, stem(name))
    if found is None:
        return None
    try:
        said = found["id"].decode()
    except UnicodeDecodeError:
        return None
    return said if len(said) <= MAX_SESSION_ID and said.isprintable() else None


def named_time(name: bytes) -> int | None:
    """The time that a name ``<time>_<id>.jsonl`` carries, in ms since the epoch (UTC), else None."""
    found = re.fullmatch(_STEM, stem(name))
    if found is None:
        return None
    hour, minute, second = (int(found[part]) for part in ("hour", "minute", "second"))
    try:
        days = (
            datetime.date(int(found["year"]), int(found["month"]), int(found["day"])).toordinal()
            - datetime.date(1970, 1, 1).toordinal()
        )
    except ValueError:
        return None
    return ((days * 24 + hour) * 60 + minute) * 60_000 + second * 1000 + int(found["milli"] or 0)
