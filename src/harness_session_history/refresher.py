"""The process in which a large refresh is done: ``python -m harness_session_history.refresher READERS``.

READERS processes are started first of all, before this one loads what it needs itself: so they load at the same time.
"""

from __future__ import annotations

import contextlib
import sys

from .children import start


def main() -> None:
    """The child: see `remote`."""
    readers = []
    with contextlib.suppress(OSError):  # then reading goes on without, or tries again and says so
        for _ in range(int(sys.argv[1])):
            readers.append(start("pipeline", answers=True))
    from .remote import serve

    serve(readers)


if __name__ == "__main__":
    main()
