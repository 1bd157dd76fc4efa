"""What becomes of an answer when the index is damaged, foreign, full, read-only or gone: it is right, or says what to do."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from harness_session_history import IndexUnavailable, SessionHistory, SessionNotFound
from harness_session_history.index import schema
from harness_session_history.index import schema as integrity
from index_contents import contents
from world import World, append, history_alone

WAL = "-wal"
BASE = apsw.vfs_names()[0]


@pytest.fixture
def filled(world: World) -> World:
    """Thirty sessions, indexed, with a word each and one that is in all."""
    for n in range(30):
        world.say(f"s{n}", f"common word{n} " + "filling " * 20, f"more of word{n}")
    world.refresh()
    return world


def tamper(world: World, *statements: str) -> None:
    """Changes the index behind the back of everybody who has it open, in another process."""
    program = (
        "import apsw, sys; c = apsw.Connection(sys.argv[1]); c.set_busy_timeout(5000)\n"
        "for statement in sys.argv[2:]: c.execute(statement)"
    )
    subprocess.run([sys.executable, "-c", program, str(world.index), *statements], check=True)


def all_is_well(world: World) -> None:
    """Everything is found again, and nothing is left half done."""
    world.refresh()
    assert len(world.texts("word7", refresh=False)) == 2
    assert len(world.texts("common", refresh=False, limit=20)) == 20
    world.history()
    world.refresh()
    world.close()
    assert len(contents(world.index)["sessions"]) == 30


# -- rows that are gone ------------------------------------------------------------------------------------------------

LOSSES = {
    "tokens": "DELETE FROM search_data WHERE id > 10",
    "every token": "DELETE FROM search_data",
    "the index of tokens": "DELETE FROM search_idx",
    "some of the index of tokens": "DELETE FROM search_idx WHERE rowid IN (SELECT rowid FROM search_idx LIMIT 1)",
    "sizes": "DELETE FROM search_docsize",
    "one size": "DELETE FROM search_docsize WHERE id = (SELECT max(id) FROM search_docsize)",
    "spans": "DELETE FROM spans",
    "one run of spans": "DELETE FROM spans WHERE id = (SELECT max(id) FROM spans)",
    "sessions": "DELETE FROM sessions",
    "one session": "DELETE FROM sessions WHERE key = (SELECT max(key) FROM sessions)",
    "files": "DELETE FROM sources",
    "notes": "DELETE FROM meta",
    "a note": "DELETE FROM meta WHERE name = 'documents'",
    "a table of tokens": "DROP TABLE search_idx",
    "a table": "DROP TABLE spans",
    "all tables": "PRAGMA writable_schema=1; DELETE FROM sqlite_schema; PRAGMA writable_schema=0",
}
LOSSES["some of the index of tokens"] = "DELETE FROM search_idx WHERE term = (SELECT max(term) FROM search_idx)"


@pytest.mark.parametrize("open_meanwhile", [True, False], ids=["open", "closed"])
@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES.keys())
def test_a_search_never_says_with_confidence_that_there_is_nothing(
    filled: World, loss: str, open_meanwhile: bool
) -> None:
    if not open_meanwhile:
        filled.close()
    tamper(filled, loss)
    for word in ("word7", "word29", "word0"):
        answer = filled.search(word, refresh=False)
        assert len(answer["results"]) == 2 or not answer["complete"]
    assert filled.listed(refresh=False, session_id=filled.session("s29").id) == [filled.session("s29").id]
    all_is_well(filled)


def test_a_loss_is_noticed_before_an_entry_is_called_invisible(filled: World) -> None:
    session = filled.session("s7")
    entry = session.user("")
    assert filled.opened(session, entry, refresh=False)
    tamper(filled, "DELETE FROM trees")
    assert filled.opened(session, entry, refresh=False)


def test_a_lost_tree_is_noticed_by_whoever_needs_it(filled: World) -> None:
    session = filled.session("s7")
    session.user("")
    session.user("")
    tamper(filled, f"DELETE FROM trees WHERE id >> 10 = (SELECT key FROM sessions WHERE session_id = '{session.id}')")
    session.lines.clear()
    session.assistant("late word7", key="late0001")
    append(session.path(), session.lines)
    assert len(filled.texts("word7")) == 3
    assert len(filled.opened(session, "late0001", refresh=False)) == 3


def test_a_large_index_is_counted_before_an_answer_is_empty(filled: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(integrity, "FEW_ENTRIES", 0)
    filled.close()
    tamper(filled, "DELETE FROM search_docsize", "DELETE FROM spans")
    assert len(filled.texts("word7", refresh=False)) == 2


def test_a_search_for_what_nobody_said_still_finds_nothing(filled: World) -> None:
    answer = filled.search("unheard", refresh=False)
    assert answer["results"] == [] and answer["complete"]


# -- damaged files -----------------------------------------------------------------------------------------------------


def scribble(path: Path, at: int, length: int = 8192) -> None:
    with open(path, "r+b") as file:
        file.seek(at)
        file.write(bytes(range(256)) * (length // 256))


def test_a_damaged_page_is_never_answered_from(filled: World) -> None:
    filled.close()
    pristine = filled.index.read_bytes()
    for page in range(0, len(pristine), 8192):
        filled.index.write_bytes(pristine)
        scribble(filled.index, page)
        answer = filled.search("word7", refresh=False)
        assert len(answer["results"]) == 2, page // 8192
        assert len(filled.listed(refresh=False, limit=20)) == 20
        filled.close()


@pytest.mark.parametrize("length", [0, 1, 100, 8192, 3 * 8192 + 5])
def test_a_shortened_index_is_made_anew(filled: World, length: int) -> None:
    filled.close()
    os.truncate(filled.index, length)
    assert len(filled.texts("word7", refresh=False)) == 2
    all_is_well(filled)


def test_an_index_that_is_damaged_while_it_is_open_is_made_anew(filled: World) -> None:
    filled.texts("word7", refresh=False)
    subprocess.run([sys.executable, "-c", f"open({str(filled.index)!r}, 'r+b').write(b'x' * 40_000)"], check=True)
    assert len(filled.texts("word8", refresh=False)) == 2
    all_is_well(filled)


def test_damage_that_comes_back_is_reported(filled: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise apsw.CorruptError("made up")

    monkeypatch.setattr("harness_session_history.answer.search.search", broken)
    problem = filled.refused(IndexUnavailable, operation="search", query="word7")
    assert "doctor" in problem.hint
    monkeypatch.undo()
    all_is_well(filled)


def test_an_index_replaced_by_another_process_is_opened_anew(filled: World) -> None:
    """A reader keeps to its old file until it looks again; what it has open never mixes with the new file's log."""
    other = SessionHistory(roots=[filled.root], index=filled.index, maintenance=False)
    assert len(asyncio.run(other(query="word7"))["results"]) == 2
    tamper(filled, "DELETE FROM meta")
    assert len(filled.texts("word7", refresh=False)) == 2  # heals: another file by now
    filled.say("late", "late word")
    filled.refresh()
    assert len(asyncio.run(other(query="late"))["results"]) == 1
    asyncio.run(other.close())
    all_is_well_with_one_more(filled)


def all_is_well_with_one_more(world: World) -> None:
    world.close()
    assert len(contents(world.index)["sessions"]) == 31


# -- other files in its place ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [schema.VERSION - 1, schema.VERSION + 1])
def test_an_index_of_another_version_is_replaced(filled: World, version: int) -> None:
    filled.close()
    tamper(filled, f"PRAGMA user_version={version}")
    assert len(filled.texts("word7", refresh=False)) == 2
    all_is_well(filled)


@pytest.mark.parametrize("content", [b"", b"not a database" * 1000, b"\0" * 8192], ids=["empty", "text", "zeros"])
def test_a_foreign_file_is_replaced(filled: World, content: bytes) -> None:
    filled.close()
    filled.index.write_bytes(content)
    assert len(filled.texts("word7", refresh=False)) == 2
    all_is_well(filled)


def test_a_foreign_database_is_replaced(filled: World) -> None:
    filled.close()
    filled.index.unlink()
    tamper(filled, "CREATE TABLE meta(a)", "CREATE TABLE search(b)")
    assert len(filled.texts("word7", refresh=False)) == 2
    all_is_well(filled)


def test_a_transcript_is_never_replaced(world: World) -> None:
    path = world.say("a", "word").path()
    before = path.read_bytes()
    os.chmod(path.parent, 0o700)
    history = world.history(index=path)
    assert "transcript" in str(world.refused(IndexUnavailable, operation="list"))
    assert path.read_bytes() == before and history.settings.index == str(path)


def test_a_symbolic_link_is_refused(filled: World) -> None:
    filled.close()
    filled.index.rename(filled.folder / "elsewhere")
    filled.index.symlink_to(filled.folder / "elsewhere")
    assert "regular file" in str(filled.refused(IndexUnavailable, operation="list"))
    assert (filled.folder / "elsewhere").exists()


def test_a_folder_that_others_can_enter_is_refused(filled: World) -> None:
    filled.close()
    filled.index.parent.chmod(0o750)
    hint = filled.refused(IndexUnavailable, operation="list").hint
    assert "SESSION_HISTORY_INDEX" in hint and "chmod" not in hint  # the folder may be one that others need


def test_a_file_in_the_place_of_the_folder_is_reported(world: World) -> None:
    world.index.parent.write_text("in the way")
    assert world.refused(IndexUnavailable, operation="list").hint


# -- logs of other databases ---------------------------------------------------------------------------------------------


def log_of(world: World, index: Path) -> bytes:
    """The log that a killed writer leaves: its pages are valid, and older than what is made next."""
    program = (
        "import apsw, os, sys; c = apsw.Connection(sys.argv[1]); c.pragma('wal_autocheckpoint', 0)\n"
        "c.execute('UPDATE sessions SET messages = 77; UPDATE meta SET value = 1 WHERE name = ?', ('revision',))\n"
        "os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", program, str(index)], check=False)
    return Path(str(index) + WAL).read_bytes()


def test_a_log_left_behind_is_not_replayed_over_a_new_index(filled: World) -> None:
    filled.close()
    log = log_of(filled, filled.index)
    filled.index.unlink()
    assert len(filled.texts("word7", refresh=False)) == 2
    all_is_well(filled)
    Path(str(filled.index) + WAL).write_bytes(log)
    filled.index.write_bytes(b"not a database" * 1000)
    all_is_well(filled)
    assert filled.view(filled.session("s7"))["messageCount"] == 2


def test_the_log_of_another_index_does_not_speak_for_this_one(filled: World) -> None:
    filled.close()
    other = World(filled.folder / "other")
    other.say("x", "foreign word")
    other.refresh()
    other.close()
    log = log_of(other, other.index)
    Path(str(filled.index) + WAL).write_bytes(log)
    answer = filled.search("word7", refresh=False)
    assert len(answer["results"]) == 2 or not answer["complete"]
    filled.refresh()
    assert len(filled.texts("word7")) == 2 and not filled.texts("foreign")


# -- a folder that vanishes ------------------------------------------------------------------------------------------------


def test_an_index_folder_that_vanishes_is_made_again(filled: World) -> None:
    shutil.rmtree(filled.index.parent)
    assert len(filled.texts("word7", refresh=False)) == 2
    assert filled.index.parent.stat().st_mode & 0o777 == 0o700
    all_is_well(filled)


@pytest.mark.parametrize("suffix", ["", WAL, "-shm", ".lock"])
def test_a_single_file_that_vanishes_costs_nothing(filled: World, suffix: str) -> None:
    filled.texts("word7", refresh=False)
    Path(str(filled.index) + suffix).unlink()
    assert len(filled.texts("word7", refresh=False)) == 2
    filled.close()
    all_is_well(filled)


def test_an_index_folder_that_vanishes_during_a_refresh_is_noticed(
    filled: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    from harness_session_history.refresh import extract as reading

    session = filled.session("s7")
    session.user("common word7")
    session.user("late word7")
    session.save()
    plain = reading.read

    def vanish(task: Any) -> Iterator[Any]:
        shutil.rmtree(filled.index.parent, ignore_errors=True)
        monkeypatch.setattr(reading, "read", plain)
        yield from plain(task)

    monkeypatch.setattr(reading, "read", vanish)
    assert len(filled.texts("word7")) == 2
    assert len(filled.listed(limit=20)) == 20
    filled.close()
    assert len(contents(filled.index)["sessions"]) == 30


# -- a full disk -------------------------------------------------------------------------------------------------------------


class Faulty(apsw.VFS):
    """A file system that fails once told to: writes, or making files, or everything."""

    fails: Callable[[str, str], type[apsw.Error] | None] = staticmethod(lambda what, name: None)

    def __init__(self) -> None:
        super().__init__("faulty", BASE, makedefault=True)

    def xOpen(self, name: Any, flags: list[int]) -> FaultyFile:
        path = name.filename() if isinstance(name, apsw.URIFilename) else name or ""
        error = Faulty.fails(
            "create" if path.endswith((WAL, "-journal")) and not os.path.exists(path) else "open", path
        )
        if error is not None:
            raise error("made up")
        return FaultyFile(name, flags)


class FaultyFile(apsw.VFSFile):
    def __init__(self, name: Any, flags: list[int]) -> None:
        self.name = name.filename() if isinstance(name, apsw.URIFilename) else name or ""
        super().__init__(BASE, name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:
        error = Faulty.fails("write", self.name)
        if error is not None:
            raise error("made up")
        super().xWrite(data, offset)

    def xRead(self, amount: int, offset: int) -> bytes:
        error = Faulty.fails("read", self.name)
        if error is not None:
            raise error("made up")
        return super().xRead(amount, offset)

    def xSync(self, flags: int) -> None:
        error = Faulty.fails("sync", self.name)
        if error is not None:
            raise error("made up")
        super().xSync(flags)


@pytest.fixture
def disk() -> Iterator[type[Faulty]]:
    shim = Faulty()
    yield Faulty
    Faulty.fails = staticmethod(lambda what, name: None)
    shim.unregister()
    assert apsw.vfs_names()[0] == BASE


def failing(error: type[apsw.Error], *operations: str, after: int = 0) -> Callable[[str, str], type[apsw.Error] | None]:
    left = [after]

    def fails(what: str, name: str) -> type[apsw.Error] | None:
        if what in operations and "history.sqlite3" in name:
            left[0] -= 1
            return error if left[0] < 0 else None
        return None

    return fails


@pytest.mark.parametrize("error", [apsw.FullError, apsw.IOError])
def test_a_disk_that_fills_up_at_any_write_leaves_the_last_snapshot(
    world: World, disk: type[Faulty], error: type[apsw.Error]
) -> None:
    for n in range(10):
        world.say(f"s{n}", "common first")
    world.history()
    world.refresh()
    for n in range(10):
        session = world.say(f"s{n}", "common first", f"late word{n}")
    for after in [*range(20), 40, 80]:
        disk.fails = staticmethod(failing(error, "write", after=after))
        try:
            problem = asyncio.run(world_history(world)(operation="list", refresh=True))
        except IndexUnavailable as refused:
            problem = None
            assert "space" in refused.hint
        if problem is None:
            answer = world.search("common", refresh=False)
            assert len(answer["results"]) == 10 and answer["freshness"]["sources"]["changed"] > 0
        disk.fails = staticmethod(lambda what, name: None)
    assert len(world.texts("late")) == 10 and session.id in world.listed()
    world.close()
    contents(world.index)


def world_history(world: World) -> SessionHistory:
    return world._history or world.history()


def test_a_first_call_on_a_full_disk_says_what_to_do(world: World, disk: type[Faulty]) -> None:
    world.say("a", "word")
    for after in (0, 1, 5, 10):
        disk.fails = staticmethod(failing(apsw.FullError, "write", after=after))
        assert "space" in world.refused(IndexUnavailable, operation="search", query="word").hint
    disk.fails = staticmethod(lambda what, name: None)
    assert world.texts("word", refresh=False) == ["word"]


def test_a_failing_read_is_reported_and_overcome(filled: World, disk: type[Faulty]) -> None:
    filled.close()
    pristine = len(filled.texts("word7", refresh=False))
    for after in (0, 1, 3, 6, 10):
        filled.close()
        filled.history()
        disk.fails = staticmethod(failing(apsw.IOError, "read", after=after))
        try:
            answer = asyncio.run(world_history(filled)(query="word7"))
        except IndexUnavailable as refused:
            assert refused.hint and str(filled.folder) not in str(refused)
        else:
            assert len(answer["results"]) == pristine
        disk.fails = staticmethod(lambda what, name: None)
        assert len(filled.texts("word7", refresh=False)) == pristine


# -- a folder that cannot be written -------------------------------------------------------------------------------------------

_ASK = """
import asyncio, concurrent.futures.thread, contextlib, importlib, json, os, pkgutil, sys, urllib.parse
import harness_session_history
from harness_session_history import SessionHistory, SessionHistoryError
for module in pkgutil.walk_packages(harness_session_history.__path__, "harness_session_history."):
    if ".recall" in module.name or ".display" in module.name:
        continue
    with contextlib.suppress(ImportError):  # an extra is not installed
        importlib.import_module(module.name)
"".encode("utf-16-le")  # (a codec is a module, too)
os.setuid(int(sys.argv[4]))  # after the imports: nobody else may be able to read this Python
async def main():
    async with SessionHistory(roots=[sys.argv[1]], index=sys.argv[2], maintenance=True) as history:
        for arguments in json.loads(sys.argv[3]):
            try:
                print(json.dumps(await history(**arguments)))
            except SessionHistoryError as error:
                print(json.dumps(error.as_dict()))
asyncio.run(main())
"""


@pytest.fixture
def read_only(tmp_path: Path) -> Iterator[Callable[..., list[dict[str, Any]]]]:
    """Asks as a user who can read the archive and the index, but write nothing; root may write anything, so not as root."""
    import json

    folder = Path(tempfile.mkdtemp(prefix="read-only-"))
    nobody = 65534 if os.geteuid() == 0 else os.geteuid()
    made: list[World] = []

    def ask(prepare: Callable[[World], None], *calls: dict[str, Any]) -> list[dict[str, Any]]:
        if not made:
            made.append(World(folder))
        world = made[0]
        prepare(world)
        world.close()
        folder.chmod(0o755)
        for path in [world.index.parent, *world.index.parent.glob("*")]:
            os.chown(path, nobody, -1)  # (the transcripts are another user's, the owner of their root)
            path.chmod(0o400)
        world.index.parent.chmod(0o500)
        command = [sys.executable, "-c", _ASK, str(world.root), str(world.index), json.dumps(calls), str(nobody)]
        done = subprocess.run(command, capture_output=True, text=True, cwd="/", check=False)
        assert done.returncode == 0, done.stderr
        return [json.loads(said) for said in done.stdout.splitlines()]

    yield ask
    if made and made[0].index.parent.exists():
        made[0].index.parent.chmod(0o700)
    shutil.rmtree(folder)


def test_a_read_only_index_answers_and_tells_its_age(read_only: Callable[..., list[dict[str, Any]]]) -> None:
    def prepare(world: World) -> None:
        world.say("a", "word")
        world.refresh()
        world.say("b", "late word")

    found, refused, one = read_only(
        prepare,
        {"query": "word"},
        {"operation": "list", "refresh": True},
        {"operation": "list", "session_id": World_session_id("a"), "refresh": True},
    )
    assert [hit["snippet"] for hit in found["results"]] == ["word"]
    assert not found["complete"] and found["freshness"]["snapshotAt"] and found["freshness"]["sources"]["missing"] == 1
    assert refused["code"] == "index_unavailable" and "folder" in refused["hint"]
    assert one["complete"]  # nothing had to be written for it


def test_a_read_only_index_with_a_log_answers_from_the_log_too(read_only: Callable[..., list[dict[str, Any]]]) -> None:
    def prepare(world: World) -> None:
        world.say("a", "word")
        world.refresh()
        world.close()
        world.say("b", "late word")
        program = (
            "import asyncio, os, sys\n"
            "from harness_session_history import SessionHistory\n"
            "h = SessionHistory(roots=[sys.argv[1]], index=sys.argv[2], maintenance=False)\n"
            "asyncio.run(h(operation='list', refresh=True)); os.kill(os.getpid(), 9)"
        )
        subprocess.run([sys.executable, "-c", program, str(world.root), str(world.index)], check=False)
        assert Path(str(world.index) + WAL).stat().st_size

    (found,) = read_only(prepare, {"query": "word"})
    assert sorted(hit["snippet"] for hit in found["results"]) == ["late word", "word"] and found["complete"]


def test_a_folder_in_which_no_index_can_be_made_says_what_to_do(read_only: Callable[..., list[dict[str, Any]]]) -> None:
    def prepare(world: World) -> None:
        world.say("a", "word")
        world.index.parent.mkdir(mode=0o700)

    (refused,) = read_only(prepare, {"query": "word"})
    assert refused["code"] == "index_unavailable" and refused["hint"]


def World_session_id(name: str) -> str:
    from builder import uid

    return uid(name)


def test_a_conversation_recalls_itself_from_an_index_that_cannot_be_written(world: World) -> None:
    session = world.say("a", "word")
    world.refresh()
    session.lines.clear()
    session.user("late word")
    append(session.path(), session.lines)
    lock = Path(str(world.index) + ".lock")
    lock.unlink()
    lock.mkdir()  # where the lock should be
    conversation = world_history(world).conversation(session.id)
    answer = asyncio.run(conversation.search("word"))
    assert [hit["snippet"] for hit in answer["hits"]] == ["word"] and "indexedUpTo" in answer
    with pytest.raises(SessionNotFound):  # (no file is its own, so there would be nothing to write)
        asyncio.run(world_history(world).conversation("unknown").search("word"))
    new = world.say("new", "word")
    with pytest.raises(IndexUnavailable):
        asyncio.run(world_history(world).conversation(new.id).search("word"))


# -- the folder's files --------------------------------------------------------------------------------------------------------


def test_index_files_are_private_whatever_the_umask(world: World) -> None:
    before = os.umask(0)
    try:
        world.say("a", "word")
        world.refresh()
        files = sorted(world.index.parent.iterdir())
        assert {path.stat().st_mode & 0o777 for path in files} == {0o600} and len(files) > 2
        assert world.index.parent.stat().st_mode & 0o777 == 0o700
    finally:
        os.umask(before)


def test_opening_an_index_never_drops_the_locks_of_an_open_one(filled: World) -> None:
    """Closing any descriptor of a file drops this process's locks on it, so nothing may open it beside SQLite."""
    filled.texts("word7", refresh=False)
    opened: list[str] = []
    sys.addaudithook(lambda event, arguments: opened.append(str(arguments[0])) if event == "open" else None)
    other = history_alone(filled.root, filled.index)
    other.refresh_now()
    other.close_now()
    append(filled.session("s7").path(), [b'{"type":"x"}'])
    filled.refresh()
    assert str(filled.index) not in opened
