"""Search and re-read what past agent sessions said: canonical transcripts, a disposable snapshot, verified citations.

The public names, nothing else.
"""

from .default import session_history
from .errors import (
    CitationUnavailable,
    EntryNotVisible,
    IndexUnavailable,
    InvalidRequest,
    RefreshIncomplete,
    SessionHistoryError,
    SessionNotFound,
)
from .history import SessionHistory
from .recall import history_tools, prompt_section
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
