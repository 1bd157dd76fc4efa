"""``session-history``, also as ``python -m harness_session_history``: interrupted while it still loads, it ends as quietly
as later."""


def main() -> int:
    """Runs the command line; returns its exit status."""
    try:
        from .cli import main as run

        return run()
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    raise SystemExit(main())
