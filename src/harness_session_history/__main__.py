"""``python -m harness_session_history`` is ``session-history``."""

from .cli import main

if __name__ == "__main__":
    raise SystemExit(main())
