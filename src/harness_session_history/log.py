"""What goes wrong without being an error for anybody. The standard library's logging is loaded when there is something
to say: it would be a tenth of the time that importing this package takes."""

from __future__ import annotations


def warning(message: str, *values: object, exc_info: BaseException | None = None) -> None:
    """A warning of the ``harness_session_history`` logger, heard only by a program that wants to."""
    import logging

    logger = logging.getLogger("harness_session_history")
    if not logger.handlers:
        logger.addHandler(logging.NullHandler())
    logger.warning(message, *values, exc_info=exc_info, stacklevel=2)
