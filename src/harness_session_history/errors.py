"""The errors a caller can meet.

Messages hold neither transcript text nor a file path (contract: errors and display); details go to the
``harness_session_history`` logger.

What goes wrong without being an error for anybody. The standard library's logging is loaded when there is something
to say: it would be a tenth of the time that importing this package takes."""

from __future__ import annotations


class SessionHistoryError(Exception):
    """Base of all errors raised on purpose.

    ``code`` is stable and machine readable, ``hint`` says what to do next, ``retryable`` tells whether the same
    call may succeed later without a change by the caller.
    """

    code = "session_history_error"
    retryable = False

    def __init__(self, message: str, *, hint: str = "", details: dict[str, int] | None = None) -> None:
        super().__init__(message)
        self.hint = hint
        self.details: dict[str, int] = details or {}
        if hint:
            self.add_note(hint)

    def _render_traceback_(self) -> list[str]:
        """What IPython shows of it: what is wrong and what to do, and none of this package's own lines."""
        return [f"{type(self).__name__}: {self}", *([f"  {self.hint}"] if self.hint else [])]

    def as_dict(self) -> dict[str, object]:
        """``{"code", "message", "hint", "retryable"}``, with ``details`` (counts) where there are any."""
        answer: dict[str, object] = {
            "code": self.code,
            "message": str(self),
            "hint": self.hint,
            "retryable": self.retryable,
        }
        if self.details:
            answer["details"] = self.details
        return answer


class InvalidRequest(SessionHistoryError, ValueError):
    """An argument has a wrong type or value, or does not belong to its operation."""

    code = "invalid_request"


class SessionNotFound(SessionHistoryError, LookupError):
    """No session of that id is in scope: unknown, deleted, current or another user's (never told apart)."""

    code = "session_not_found"


class EntryNotVisible(SessionHistoryError, LookupError):
    """The session is in scope, but the entry is not one that this call may show."""

    code = "entry_not_visible"


class CitationUnavailable(SessionHistoryError):
    """The cited bytes are gone or no longer say what was indexed; nothing unverified is returned."""

    code = "citation_unavailable"
    retryable = True


class RefreshIncomplete(SessionHistoryError, TimeoutError):
    """``refresh=True`` could not bring the selected sources up to date within its budget; counts in ``details``."""

    code = "refresh_incomplete"
    retryable = True


class IndexUnavailable(SessionHistoryError):
    """The index file cannot be opened, made or healed."""

    code = "index_unavailable"
    retryable = True


def log_warning(message: str, *values: object, exc_info: BaseException | None = None) -> None:
    """A warning of the ``harness_session_history`` logger, heard only by a program that wants to."""
    import logging

    logger = logging.getLogger("harness_session_history")
    if not logger.handlers:
        logger.addHandler(logging.NullHandler())
    logger.warning(message, *values, exc_info=exc_info, stacklevel=2)
