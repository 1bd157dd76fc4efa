"""Whatever a row of the index does to its reader is damage of the index: it is healed, and `doctor` says so."""

from __future__ import annotations

import asyncio
from typing import Any

import apsw
import pytest

from harness_session_history import history_tools
from harness_session_history.doctor.diagnose import diagnose
from harness_session_history.index import integrity
from index_contents import contents
from world import World, append

NO_TEXT = "CAST(x'ff41' AS TEXT)"
ODD_ROWS = {
    **{f"undecodable {column}": f"UPDATE sessions SET {column}={NO_TEXT}" for column in ("cwd", "name", "parent")},
    "an undecodable id": f"UPDATE sessions SET session_id={NO_TEXT} WHERE key=(SELECT max(key) FROM sessions)",
    "an undecodable id of a file": f"UPDATE sources SET session_id={NO_TEXT} WHERE id=1",
    "a text for a path": "UPDATE sources SET path='a' WHERE id=1",
    "another path": "UPDATE sources SET path=x'2f612f622f63' WHERE id=1",
    "another path of a session": "UPDATE sessions SET path=x'2f612f622f63' WHERE key=(SELECT max(key) FROM sessions)",
    "another file of a session": "UPDATE sessions SET source=source+1000",
    "a path for a text": "UPDATE sessions SET cwd=x'61'",
    "a time after all times": "UPDATE sessions SET last_time=9000000000000000000, first_time=9000000000000000000",
    "a time before all times": "UPDATE sessions SET started=-9000000000000000000, last_time=NULL",
    "a word for a time": "UPDATE sessions SET last_time='soon'",
    "a time of indexing after all times": "UPDATE sources SET indexed_at=9000000000000000000",
    "no room": "UPDATE sessions SET slots=-1",
    "fewer entries than none": "UPDATE sessions SET nodes=-5",
    "more entries than room": "UPDATE sessions SET nodes=1000000000000",
    "fewer messages than none": "UPDATE sessions SET messages=-1",
    "a leaf outside": "UPDATE sessions SET leaf=1099511627776",
    "a word for a size": "UPDATE sources SET size='large'",
    "facts that are none": "UPDATE sources SET facts=x'c1'",
    "a snapshot of no time": "UPDATE meta SET value='never' WHERE name='snapshot_at'",
    "a snapshot after all times": "UPDATE meta SET value=9000000000000000000 WHERE name='snapshot_at'",
    "a revision of no number": "UPDATE meta SET value='x' WHERE name='revision'",
    "a count of nothing": "UPDATE meta SET value=NULL WHERE name='documents'",
    "spans that are none": "UPDATE spans SET packed=x'c1'",
    "spans of other types": "UPDATE spans SET packed='text'",
    "spans with half a key": "UPDATE spans SET keys=x'01'",
    "ids that cannot be unpacked": "UPDATE trees SET ids=x'00'",
    "kinds that cannot be unpacked": "UPDATE trees SET kinds=x'00'",
    "links that are none": "UPDATE trees SET links=x'c1'",
    "links of other types": "UPDATE trees SET links=x'92a178a179'",
    "a tree without nodes": "UPDATE trees SET nodes=0",
    "a note whose name is none": f"UPDATE meta SET name={NO_TEXT} WHERE name='spans'",
    "pages of tokens without sense": "UPDATE search_data SET block=x'ff' WHERE id>10",
    "a structure without sense": "UPDATE search_data SET block=x'ffffffffff' WHERE id=10",
}


@pytest.fixture
def filled(world: World) -> World:
    for n in range(12):
        session = world.session(f"s{n}", cwd=f"/w/place{n}")
        first = session.user(f"common word{n}")
        session.assistant(f"more of word{n}")
        session.user(f"once more word{n}", parent=first)
        session.save()
    world.refresh()
    return world


def tamper(world: World, statement: str) -> None:
    """Changes the index as a writer that means it well: the revision goes up, so that everybody reads the rows anew."""
    connection = apsw.Connection(str(world.index))
    connection.set_busy_timeout(5000)
    with connection:
        connection.execute(statement)
        for table in ("sources", "sessions"):
            connection.execute(f"UPDATE {table} SET revision=revision+100")
        connection.execute("UPDATE meta SET value=value+100 WHERE name='revision' AND typeof(value)='integer'")
    connection.close()


def report(world: World) -> dict[str, Any]:
    return asyncio.run(diagnose(world._history or world.history()))


def all_is_answered(world: World, **arguments: Any) -> None:
    session = world.session("s7", cwd="/w/place7")
    session.user("")
    abandoned = session.assistant("")
    assert len(world.list(limit=20, **arguments)) == 12
    assert world.texts("word7", branch="any", **arguments) and world.texts("common", sort="newest", **arguments)
    assert len(world.list(cwd="/w/place7", **arguments)) == 1
    assert world.opened(session, abandoned, branch="any", **arguments)


@pytest.mark.parametrize("open_meanwhile", [True, False], ids=["open", "closed"])
@pytest.mark.parametrize("statement", ODD_ROWS.values(), ids=ODD_ROWS.keys())
def test_an_odd_row_is_healed(filled: World, statement: str, open_meanwhile: bool) -> None:
    if not open_meanwhile:
        filled.close()
    tamper(filled, statement)
    all_is_answered(filled)
    for n in range(12):
        append(filled.session(f"s{n}").path(), [b'{"type":"x"}'])
    for _ in range(2):
        filled.refresh()
        all_is_answered(filled, refresh=False)
        filled.history()
    filled.close()
    assert len(contents(filled.index)["sessions"]) == 12


@pytest.mark.parametrize("statement", ODD_ROWS.values(), ids=ODD_ROWS.keys())
def test_an_odd_row_is_called_damage_by_the_doctor(filled: World, statement: str) -> None:
    filled.close()
    tamper(filled, statement)
    said = report(filled)
    assert said["index"]["state"] == "damaged" and said["index"]["reason"] and not said["ok"]


def test_a_tool_for_recall_meets_no_odd_row(filled: World) -> None:
    filled.close()
    tamper(filled, ODD_ROWS["links of other types"])
    session = filled.session("s7")
    tools = {tool.name: tool for tool in history_tools(session_id=session.id, history=filled.history())}
    read = asyncio.run(tools["history_read"](mode="tail"))
    assert "once more word7" in str(read)


def test_a_fault_of_the_program_is_not_blamed_on_the_index(filled: World, monkeypatch: pytest.MonkeyPatch) -> None:
    before = filled.index.stat().st_ino

    def broken(*_: object, **__: object) -> None:
        raise TypeError("made up")

    monkeypatch.setattr("harness_session_history.answer.search.search", broken)
    with pytest.raises(TypeError, match="made up"):
        filled.search("word7", refresh=False)
    assert filled.index.stat().st_ino == before and integrity.fault(apsw.Connection(str(filled.index))) is None
