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
    from .history import SessionHistory, default_history, session_history
    from .recall.tools import history_tools, prompt_section
    from .response import (
        Citation,
        Freshness,
        Hints,
        Hit,
        ListAnswer,
        ListedSession,
        Message,
        NearHit,
        OpenAnswer,
        SearchAnswer,
        SessionView,
        Sources,
        TermCount,
        ToolUse,
    )
    from .result import HistoryResult, ListResult, OpenResult, SearchResult

    __version__: str

__all__ = [
    "Citation", "CitationUnavailable", "EntryNotVisible", "Freshness", "Hints", "HistoryResult", "Hit", "IndexUnavailable",
    "InvalidRequest", "ListAnswer", "ListResult", "ListedSession", "Message", "NearHit", "OpenAnswer", "OpenResult",
    "RefreshIncomplete", "SearchAnswer", "SearchResult", "SessionHistory", "SessionHistoryError", "SessionNotFound",
    "SessionView", "Sources", "TermCount", "ToolUse", "__version__", "default_history", "history_tools", "prompt_section", "session_history",
]  # fmt: skip

_HOMES = {
    "history": ("SessionHistory", "default_history", "session_history"),
    "recall": ("history_tools", "prompt_section"),
    "result": ("HistoryResult", "ListResult", "OpenResult", "SearchResult"),
    "errors": (
        "CitationUnavailable", "EntryNotVisible", "IndexUnavailable", "InvalidRequest", "RefreshIncomplete",
        "SessionHistoryError", "SessionNotFound",
    ),
}  # fmt: skip


if not TYPE_CHECKING:  # a checker would take any name for one that there is

    def __getattr__(name: str) -> object:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value: object
        if name == "__version__":
            from importlib.metadata import version

            value = version("harness-session-history")
        else:
            from importlib import import_module

            module = next((module for module, names in _HOMES.items() if name in names), "response")
            home = import_module(f".{module}", __name__)
            if module == "history":
                home.describe()
            value = getattr(home, name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted(__all__)
