"""`session_history`: the same call over one default history, made from the environment when it is first asked."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

from .history import SessionHistory
from .request import unset
from .response import HistoryResult
from .settings import VARIABLES

if TYPE_CHECKING:
    from .arguments import Branch, Kind, Operation, Role, Sort

_default: list[SessionHistory] = []
#: The environment that the default history was made from.
_made_from: dict[str, str | None] = {}


def default_history() -> SessionHistory:
    """The one history that is made from the environment; made anew if a setting in it has changed since.

    Raises InvalidRequest for a wrong setting.
    """
    now = {name: os.environ.get(name) for name in VARIABLES}
    if not _default or _made_from != now:
        made = SessionHistory()
        former = _default[:]
        _default[:] = [made]
        _made_from.update(now)
        for one in former:
            # A call that runs is finished first, and the caller may be its loop.
            threading.Thread(target=one.close_now, name="session-history-close", daemon=True).start()
    return _default[0]


async def session_history(
    *,
    operation: Operation = unset("search"),
    query: str | None = None,
    session_id: str | None = None,
    entry_id: str | None = None,
    kind: Kind = unset("any"),
    include_deleted: bool = unset(False),
    include_current: bool = unset(False),
    cwd: str | None = None,
    since: str | None = None,
    until: str | None = None,
    roles: tuple[Role, ...] | list[Role] = unset(("user", "assistant")),
    limit: int = unset(10),
    sort: Sort = unset("relevance"),
    snippet_chars: int = unset(320),
    branch: Branch = unset("visible"),
    before: int = unset(2),
    after: int = unset(2),
    max_chars: int = unset(6000),
    refresh: bool = unset(False),
) -> HistoryResult:
    """What past sessions said: ``operation`` is "list", "search" (the default) or "open".

    The same arguments, answers and errors as a `SessionHistory`, over one that is made from the environment.
    """
    arguments = dict(locals())
    return await default_history()(**arguments)
