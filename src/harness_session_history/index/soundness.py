"""Whether an index still holds what was committed to it.

SQLite notices a damaged page when it reads it, but not rows that are simply gone: a full-text search over an index that
has lost rows finds nothing and says so with confidence. So every commit notes how many rows there are, and the notes are
compared with the tables when a file is opened, when it was changed by anyone but a writer of ours, and before an answer
says that there is nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import apsw

#: Up to so many entries with text everything is counted whenever a file is opened; above, only what is counted in no time.
FEW_ENTRIES = 50_000

#: What is counted by every commit and every check: a row per page of the full-text index, per session,
#: per run of entries, ...
_QUICK = {
    "pages": "SELECT count(*) FROM search_idx",
    "sessions": "SELECT count(*) FROM sessions",
    "spans": "SELECT count(*) FROM spans",
    "hidden": "SELECT count(*) FROM hidden",
}
#: What takes milliseconds per million rows. A writer keeps this number up to date without counting.
_THOROUGH = {
    "documents": "SELECT count(*) FROM search_docsize",
}
NOTES = (*_QUICK, *_THOROUGH)


class Unsound(Exception):
    """The index contradicts itself: rows are missing that were committed. It has to be made anew."""


def quick_counts(connection: apsw.Connection) -> dict[str, int]:
    """The numbers that a commit counts."""
    return _counted(connection, _QUICK)


def check(connection: apsw.Connection, *, thorough: bool) -> None:
    """Compares the tables with what the last commit noted. Raises Unsound."""
    noted = dict(connection.execute("SELECT name, value FROM meta"))
    if not all(isinstance(noted.get(name), int) for name in (*NOTES, "revision")):
        raise Unsound("the notes of the last commit are gone")
    found = _counted(connection, _QUICK)
    if thorough or noted["documents"] <= FEW_ENTRIES:
        found |= _counted(connection, _THOROUGH)
    wrong = [name for name, count in found.items() if count != noted[name]]
    if wrong:
        raise Unsound("rows are missing: " + ", ".join(wrong))


def _counted(connection: apsw.Connection, questions: dict[str, str]) -> dict[str, int]:
    counts = {}
    for name, question in questions.items():
        row = connection.execute(question).fetchone()
        counts[name] = int(row[0]) if row else 0
    return counts
