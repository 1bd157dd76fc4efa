"""Whether it is the index that is to blame: a row that cannot be decoded, or says what no row can say, is damage of the index."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import apsw
import msgspec

from ..errors import SessionHistoryError
from ..model.entries import Facts
from .catalog import Catalog
from .file import DAMAGE, reading
from .schema import ODD, SESSION, IntegrityFault, check
from .spans import Spans
from .trees import tree_columns


@contextmanager
def blaming(connection: apsw.Connection) -> Iterator[None]:
    """What is done within reads the index. An odd error becomes ``IntegrityFault`` if a look at every row finds a fault; else it
    is no fault of the index, and stays as it is."""
    try:
        yield
    except SessionHistoryError:
        raise
    except ODD as error:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        with reading(connection):
            found = fault(connection)
        if found is None:
            raise
        raise IntegrityFault(found) from error


def fault(connection: apsw.Connection) -> str | None:
    """The first fault of an index, with every row decoded; None if it is sound. Raises apsw.InterruptError."""
    try:
        check(connection, thorough=True)
        catalog = Catalog()
        catalog.update(connection)
        end = 0
        for key in catalog.ordered_keys():
            session = catalog.sessions[key]
            if key < end or session.nodes > session.extent.room or not -1 <= (session.leaf or 0) < (session.nodes or 1):
                raise IntegrityFault("a session's numbers contradict each other")
            end = key + session.slots
            tree_columns(connection, session.extent, session.nodes)
        for one in Spans(connection).between(0, (1 << 63) - 1):
            if one.session not in catalog.sessions or min(one.offset, one.length) < 0:
                raise IntegrityFault("a run of entries makes no sense")
        for (facts,) in connection.execute("SELECT facts FROM sources WHERE state=? AND facts NOT NULL", (SESSION,)):
            msgspec.msgpack.decode(facts, type=Facts)
        for pragma in ("quick_check", "integrity_check(search)"):
            said = connection.execute(f"PRAGMA {pragma}").get
            if said != "ok":
                raise IntegrityFault(str(said))
    except (*DAMAGE, *ODD) as error:
        return (
            str(error)
            if isinstance(error, (IntegrityFault, apsw.Error))
            else f"a row cannot be decoded ({type(error).__name__})"
        )
    return None
