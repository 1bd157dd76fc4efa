"""The rows that sessions have in the index: close together, never shared, moved when a session needs more of them."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_session_history.index import writer as writers
from harness_session_history.index.schema import FIRST_KEY, SLOT_SHIFT, TABLES, Extent
from harness_session_history.index.writer import Writer
from harness_session_history.model.limits import LIMITS
from index_contents import contents, differences
from world import World, append

ROOM = 1 << SLOT_SHIFT - 1


def extents(index: Path) -> dict[str, Extent]:
    connection = apsw.Connection(str(index))
    found = {row[0]: Extent(*row[1:]) for row in connection.execute("SELECT session_id, key, slots FROM sessions")}
    connection.close()
    return found


def is_as_built_anew(world: World) -> bool:
    world.refresh()
    world.close()
    grown, world.index = world.index, world.folder / "anew" / "history.sqlite3"
    world.refresh()
    world.close()
    anew, world.index = world.index, grown
    return not differences(contents(grown), contents(anew))


def said_at(world: World, second: int) -> str:
    """The id of a session that began then and is indexed now."""
    session = world.session(f"at{second}")
    session.user(f"word{second}")
    session.save(name=f"2026-03-02T10-00-{second}-000Z_{session.id}.jsonl")
    world.refresh()
    return session.id


Step = list[tuple[int, int]]
_steps = st.lists(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 5000)), max_size=6), max_size=6)


@given(_steps)
def test_extents_have_room_and_share_no_row(steps: list[Step]) -> None:
    connection = apsw.Connection(":memory:")
    connection.execute(TABLES)
    connection.execute("INSERT INTO meta VALUES('revision', 0), ('documents', 0)")
    writer, taken = Writer(connection), list[Extent]()
    for step in steps:
        step.sort()
        made = writer.allocate([stamp for stamp, _ in step], [nodes for _, nodes in step])
        assert made == sorted(made), "a later session stands above an earlier one"
        for (stamp, nodes), extent in zip(step, made, strict=True):
            assert extent.room > nodes and extent.low >= 0
            assert all(extent.high < other.low or extent.low > other.high for other in taken)
            taken.append(extent)
            said = {"child": 0, "tombstoned": 0, "messages": 0, "nodes": 0, "ordered": 1, "untimed": 0, "size": 0}
            writer.put_session(extent, str(len(taken)), **said)
            connection.execute(
                "INSERT INTO sources(path, dev, ino, size, mtime_ns, ctime_ns, uid, state, child, tombstoned, stamp, session, "
                "damaged, indexed_at, revision) VALUES(?,0,0,0,0,0,0,0,0,0,?,?,0,0,0)",
                (str(len(taken)).encode(), stamp, extent.key),
            )
    connection.close()


def test_older_sessions_stand_below_and_newer_ones_above(world: World) -> None:
    middle, early, late = (said_at(world, second) for second in (50, 10, 59))
    found = extents(world.index)
    assert found[early].key < found[middle].key == FIRST_KEY < found[late].key


def test_where_there_is_no_room_below_older_sessions_stand_above(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writers, "FIRST_KEY", 1)
    late, middle, early = (said_at(world, second) for second in (50, 30, 10))
    found = extents(world.index)
    assert found[late].key < found[middle].key < found[early].key
    assert sorted(world.texts("word*")) == ["word10", "word30", "word50"]


def test_a_session_that_outgrows_its_rows_is_moved(world: World) -> None:
    session, other = world.session("grows"), world.session("stays")
    first = session.user("opening words")
    other.user("other words")
    session.save()
    other.save()
    world.refresh()
    before = extents(world.index)[session.id]
    for batch in range(3):
        session.lines.clear()
        for n in range(ROOM // 2):
            session.user(f"turn{batch}x{n}")
        append(session.path(), session.lines)
        assert world.texts(f"turn{batch}x{ROOM // 2 - 1}") == [f"turn{batch}x{ROOM // 2 - 1}"]
    after = extents(world.index)[session.id]
    assert after.key > before.key and after.room >= 3 * ROOM // 2
    assert world.opened(session, first)[0] == "opening words"
    assert world.texts("other") == ["other words"]
    assert is_as_built_anew(world)


def test_a_session_that_is_rewritten_larger_is_moved(world: World) -> None:
    session = world.session("grows")
    session.user("few words")
    session.save()
    world.refresh()
    session.lines.clear()
    for n in range(2 * ROOM):
        session.user(f"turn{n}")
    session.save()
    assert world.texts(f"turn{ROOM + 5}") == [f"turn{ROOM + 5}"] and world.texts("few") == []
    assert is_as_built_anew(world)


@pytest.mark.parametrize("appended", [False, True], ids=["new", "appended"])
def test_a_large_file_with_very_many_entries_gets_more_room(
    world: World, monkeypatch: pytest.MonkeyPatch, appended: bool
) -> None:
    monkeypatch.setattr(LIMITS, "session_entries", 10)
    monkeypatch.setattr(LIMITS, "bytes_per_node", 1 << 30)
    session = world.session("many")
    session.user("opening words")
    if appended:
        session.save()
        world.refresh()
        session.lines.clear()
    for n in range(2 * ROOM):
        session.user(f"turn{n}")
    if appended:
        append(session.path(), session.lines)
    else:
        session.save()
    assert world.texts(f"turn{2 * ROOM - 1}") == [f"turn{2 * ROOM - 1}"]
    assert world.texts("opening") == ["opening words"]
    assert is_as_built_anew(world)
