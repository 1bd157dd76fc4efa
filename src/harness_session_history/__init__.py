"""Search and re-read what past agent sessions said: canonical transcripts, a disposable snapshot, verified citations.

The public names, nothing else. Each is loaded when it is first used, so that importing the package costs next to nothing.
"""

TYPE_CHECKING = False  # as type checkers know it: `typing` itself is not needed yet
if TYPE_CHECKING:
    from .errors import (
        CitationUnavailable,
        EntryNotVisible,
        IndexUnavailable,
        InvalidRequest,
        RefreshIncomplete,
        SessionHistoryError,
        SessionNotFound,
    )
    from .history import SessionHistory, session_history
    from .recall.tools import history_tools, prompt_section
    from .response import HistoryResult

__all__ = [
    "CitationUnavailable",
    "EntryNotVisible",
    "HistoryResult",
    "IndexUnavailable",
    "InvalidRequest",
    "RefreshIncomplete",
    "SessionHistory",
    "SessionHistoryError",
    "SessionNotFound",
    "history_tools",
    "prompt_section",
    "session_history",
]

_HOMES = {
    "HistoryResult": "response",
    "SessionHistory": "history",
    "history_tools": "recall",
    "prompt_section": "recall",
    "session_history": "history",
}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    home = import_module(f".{_HOMES.get(name, 'errors')}", __name__)
    if name in ("SessionHistory", "session_history"):
        home.describe()
    value: object = getattr(home, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
