"""What the name of a session file says: ``<time>_<id>.jsonl`` or ``<uuid>.jsonl``, also archived (``.reset.``) or deleted (``.deleted.``).

Names are bytes, as the file system gives them: they need not be valid UTF-8.

Working folders, compared as the contract says: by path components, whatever system they come from.

A trailing or doubled separator does not count, ``\\`` and ``/`` are alike, a ``\\\\?\\`` prefix is dropped, and so are
all case under a drive letter and the Unicode form. Nothing is looked up on this machine: the folder may be gone, or be
another machine's."""

from __future__ import annotations

import datetime
import os
import re
import unicodedata
from typing import Final

#: Characters of the longest id: a longer one cannot be asked for, so what has one is in no answer.
MAX_ID_CHARS = 128
"""The longest session id, in characters, that a caller can ask for (contract: arguments)."""

#: Characters (a class of a pattern) that show nothing and can carry something: formats, fillers, variations, tags.
UNSEEN: Final = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff"
    "\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)

INDEX_NAME = "history.sqlite3"
"""What an index file is called where nobody names it."""

SERVER_NAME = "session-history"
"""What the MCP server calls itself."""

_OWN_TOOL = (
    r"(?:mcp__.+__|(?:.*[^A-Za-z0-9])?session_history[^A-Za-z0-9]+)?(history_(?:search|read|handoff)|session_history)"
)


def own_tool(name: str) -> str:
    """The name of one of this package's tools, which an MCP client may have prefixed (``mcp__<server>__history_read``,
    ``session-history_history_read``); "" for any other tool."""
    found = re.fullmatch(_OWN_TOOL, name.replace("-", "_"))
    return found[1] if found else ""


def plain_id(said: str) -> str:
    """An id as everybody knows it: as it is, or, if it holds what cannot be seen or is too long to be asked for, without
    that and with a hash of all of it. So it can be shown and given back, and either form finds the same.

    (Control characters of ASCII stay: JSON escapes them.)
    """
    if len(said) <= MAX_ID_CHARS:
        if said.isascii() and "\x7f" not in said:
            return said
        if re.sub("[\x00-\x1f]", "", said).isprintable() and not re.search(f"[{UNSEEN}]", said):
            return said
    from hashlib import sha256

    seen = "".join(filter(str.isprintable, re.sub(f"[{UNSEEN}]", "", said[: 2 * MAX_ID_CHARS])))
    return f"{seen[: MAX_ID_CHARS - 9]}~{sha256(said.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"


# The patterns stay sources: `re` compiles and keeps them at their first use, so that importing costs nothing.
_NAME = rb"(?s)(?P<stem>.*)\.jsonl(?P<marks>(?:\.(?:reset|deleted)\.[0-9][0-9TZtz:._+-]*)*)"
_STEM = (
    rb"(?s)(?P<year>\d{4})-(?P<month>\d\d)-(?P<day>\d\d)"
    rb"[T_-](?P<hour>\d\d)[-:](?P<minute>\d\d)[-:](?P<second>\d\d)(?:[-.](?P<milli>\d{3})\d*)?Z?_(?P<id>.+)"
)
_UUID = rb"(?P<id>[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12})"


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
    """The session id that a name ``<time>_<id>.jsonl`` or ``<uuid>.jsonl`` carries, else None (also where it could not be
    asked for)."""
    found = re.fullmatch(_STEM, stem(name)) or re.fullmatch(_UUID, stem(name))
    if found is None:
        return None
    try:
        said = found["id"].decode()
    except UnicodeDecodeError:
        return None
    return said if said.isprintable() and plain_id(said) == said else None


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


_LONG: Final = "//?/"
_LONG_SHARE: Final = "//?/unc/"


def cwd_key(path: str) -> str:
    """The normal form of a folder, in Unicode's form C. A folder ``a`` holds ``b`` if ``key(b)`` is ``key(a)`` or begins with ``key(a) + "/"``.

    The key of the root ``/`` is empty, so that it holds every absolute path without a drive; a relative path that
    names nothing is ``.``, which holds only itself.
    """
    path = unicodedata.normalize("NFC", re.sub(f"[{UNSEEN}]", "", path).replace("\\", "/"))
    if path[: len(_LONG_SHARE)].lower() == _LONG_SHARE:
        path = "/" + path[len(_LONG_SHARE) :]
    elif path.startswith(_LONG):
        path = path[len(_LONG) :]
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if path.startswith("/"):
        return "".join("/" + part for part in parts)
    if parts and parts[0][1:2] == ":":  # (there, systems do not tell cases apart)
        parts = [part.lower() for part in parts]
    return "/".join(parts) or "."


def is_absolute(path: str) -> bool:
    """Whether a folder is named from a root, whatever system it is of: ``/x``, ``\\\\server\\x``, ``D:\\x``."""
    return path.startswith(("/", "\\")) or re.match(r"[A-Za-z]:(?:[/\\]|$)", path) is not None


def cwd_within(cwd: str | None, folder: str) -> bool:
    """Whether a session's working folder is `folder` or lies below it; an unknown one (None) lies nowhere."""
    if cwd is None:
        return False
    inner, outer = cwd_key(cwd), cwd_key(folder)
    return inner == outer or (inner.startswith(outer + "/") and outer != ".")
