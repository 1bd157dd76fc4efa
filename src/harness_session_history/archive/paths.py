"""Working folders, compared as the contract says: by path components, whatever system they come from.

A trailing or doubled separator does not count, ``\\`` and ``/`` are alike, a ``\\\\?\\`` prefix is dropped, and so is
the case of a drive letter. Nothing is looked up on this machine: the folder may be gone, or be another machine's.
"""

from __future__ import annotations

from typing import Final

_LONG: Final = "//?/"
_LONG_SHARE: Final = "//?/unc/"


def cwd_key(path: str) -> str:
    """The normal form of a folder. A folder ``a`` holds ``b`` if ``key(b)`` is ``key(a)`` or begins with ``key(a) + "/"``.

    The key of the root ``/`` is empty, so that it holds every absolute path without a drive; a relative path that
    names nothing is ``.``, which holds only itself.
    """
    path = path.replace("\\", "/")
    if path[: len(_LONG_SHARE)].lower() == _LONG_SHARE:
        path = "/" + path[len(_LONG_SHARE) :]
    elif path.startswith(_LONG):
        path = path[len(_LONG) :]
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if path.startswith("/"):
        return "".join("/" + part for part in parts)
    if parts and parts[0][1:2] == ":":
        parts[0] = parts[0][0].lower() + parts[0][1:]
    return "/".join(parts) or "."


def cwd_within(cwd: str | None, folder: str) -> bool:
    """Whether a session's working folder is `folder` or lies below it; an unknown one (None) lies nowhere."""
    if cwd is None:
        return False
    inner, outer = cwd_key(cwd), cwd_key(folder)
    return inner == outer or (inner.startswith(outer + "/") and outer != ".")
