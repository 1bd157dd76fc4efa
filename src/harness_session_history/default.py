"""`session_history`: the same call over one default history, made from the environment when it is first asked."""

from __future__ import annotations

import os
import threading
import weakref
from typing import TYPE_CHECKING

from .history import SessionHistory
from .request import unset
from .response import HistoryResult
from .settings import VARIABLES

if TYPE_CHECKING:
    from collections.abc import Callable

    from .arguments import Branch, Kind, Operation, Role, Sort

#: The one history, by the environment that it was made from.
_default: dict[tuple[str | None, ...], SessionHistory] = {}


def default_history() -> SessionHistory:
    """The one history that is made from the environment; made anew if a setting in it has changed since. The former one is
    closed when nobody uses it any more.

    Raises InvalidRequest for a wrong setting.
    """
    now = tuple(map(os.environ.get, VARIABLES))
    history = _default.get(now)
    if history is None:
        made = SessionHistory()
        history = _default.setdefault(now, made)  # another thread may have been as quick
        if history is made:
            weakref.finalize(made, _close_apart, made.closing()).atexit = False
    for other in [key for key in _default.copy() if key != now]:
        _default.pop(other, None)
    return history


def _close_apart(close: Callable[[], None]) -> None:
    # Not here: whoever was the last to use it may be somebody's loop.
    threading.Thread(target=close, name="session-history-close", daemon=True).start()


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
    answer = await default_history()(**arguments)
    answer.function = "session_history"
    return answer
