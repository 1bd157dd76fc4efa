"""``session-history``, also as ``python -m harness_session_history``: interrupted while it still loads, it ends as quietly
as later."""

import gc
import os
import sys


def main() -> None:
    """Runs the command line and ends the process with its exit status."""
    gc.disable()  # nothing that a process leaves behind which answers once needs to be collected
    try:
        from .cli import main as run

        status = run()
    except KeyboardInterrupt:
        status = 130
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (AttributeError, OSError, ValueError):  # no stream, or nobody reads it any more
            status = status or 1
    os._exit(status)  # everything is closed and written: taking the interpreter down would only take time


if __name__ == "__main__":
    main()
