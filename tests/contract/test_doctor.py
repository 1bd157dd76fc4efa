"""The doctor: the truth about each broken state, one command for each problem, and why something is not found."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from builder import ArchiveBuilder, SessionBuilder, line, uid
from harness_session_history import InvalidRequest, SessionHistory, cli
from harness_session_history.display.terminal import render_report
from harness_session_history.doctor import index_health as health
from harness_session_history.doctor.diagnose import _words as words_of
from harness_session_history.doctor.diagnose import diagnose
from harness_session_history.index.file import worker_lock
from harness_session_history.index.schema import VERSION
from harness_session_history.model.names import MAX_ID_CHARS

NOBODY = 65534
posix_root = pytest.mark.skipif(getattr(os, "geteuid", lambda: 1)() != 0, reason="needs to act as another user")


class World:
    """One made-up archive, its index, and the doctor's questions about it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.archive = ArchiveBuilder(folder)
        self.index = folder / "index" / "history.sqlite3"
        self.settings: dict[str, Any] = {"roots": [self.archive.root], "index": self.index, "maintenance": False}

    def report(self, session: str | None = None, entry: str | None = None, **settings: Any) -> dict[str, Any]:
        async def ask() -> dict[str, Any]:
            async with SessionHistory(**{**self.settings, **settings}) as history:
                return await diagnose(history, session, entry)

        return asyncio.run(ask())

    def codes(self, **settings: Any) -> set[str]:
        return {problem["code"] for problem in self.report(**settings)["problems"]}

    def why(self, session: str, entry: str | None = None, **settings: Any) -> dict[str, Any]:
        return dict(self.report(session, entry, **settings)["session"])

    def reasons(self, session: str, entry: str | None = None, **settings: Any) -> list[str]:
        return [reason["code"] for reason in self.why(session, entry, **settings)["reasons"]]

    def call(self, **arguments: Any) -> Any:
        async def ask() -> Any:
            async with SessionHistory(**self.settings) as history:
                return await history(**arguments)

        return asyncio.run(ask())

    def make_index(self) -> None:
        """As a call does that does not heal: list first, which builds what is missing."""

        async def build() -> None:
            async with SessionHistory(**self.settings) as history:
                await history(operation="list")
                with contextlib.suppress(Exception):
                    await history.refresh()

        asyncio.run(build())

    def session(self, name: str = "a", **header: Any) -> SessionBuilder:
        made = self.archive.session(name, **header)
        made.user("what about the rollback decision")
        made.assistant("we keep the old column for one release")
        return made


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def names(problems: list[dict[str, str]], code: str) -> dict[str, str]:
    return next(problem for problem in problems if problem["code"] == code)


# --- a sound history


def test_a_sound_index_over_all_files_has_no_problem(world: World) -> None:
    world.session().save()
    world.make_index()
    report = world.report()
    assert report["ok"] and report["complete"] and report["problems"] == []
    index = report["index"]
    assert [index[f"{name}Check"] for name in ("quick", "fullText", "rows")] == ["ok"] * 3
    assert index["search"] == {"ran": True, "ok": True, "reason": index["search"]["reason"]}
    assert index["schemaVersion"] == VERSION and index["writable"] and index["folderMode"] == "0700"
    assert index["sessions"] == 1 and index["entries"] == 2 and index["size"] > 0
    assert report["roots"][0]["files"] == 1


def test_the_doctor_changes_nothing(world: World) -> None:
    path = world.session().save()
    world.make_index()
    path.write_text("broken\n")
    before = (
        world.index.read_bytes(),
        path.stat(),
        sorted(p.name for p in world.index.parent.iterdir() if p.suffix == ".sqlite3"),
    )
    world.report(uid("a"), "x")
    after = (
        world.index.read_bytes(),
        path.stat(),
        sorted(p.name for p in world.index.parent.iterdir() if p.suffix == ".sqlite3"),
    )
    assert before == after


def test_the_report_is_json(world: World) -> None:
    world.session().save()
    assert json.loads(json.dumps(world.report(uid("a"))))


def test_every_problem_has_one_command(world: World) -> None:
    world.session().save()
    (world.archive.root / "--w-demo--" / f"2026-03-02T10-00-00-000Z_{uid('bad')}.jsonl").write_text('{"x":1}\n')
    problems = world.report()["problems"]
    assert len(problems) >= 1
    assert all(problem["command"] and problem["text"] for problem in problems)


def lose_rows(world: World) -> None:
    with apsw.Connection(str(world.index)) as connection:
        connection.execute("DELETE FROM spans")
    connection.close()


def spoil_tokens(world: World) -> None:
    with apsw.Connection(str(world.index)) as connection:
        connection.execute("UPDATE search_data SET block = zeroblob(length(block)) WHERE id > 10")
    connection.close()


@pytest.mark.skipif(os.name == "nt", reason="a POSIX shell")
@pytest.mark.parametrize(
    ("spoil", "code"),
    [
        (lambda world: shutil.rmtree(world.index.parent), "no_index"),
        (lambda world: world.session("b").save(), "index_partial"),
        (lambda world: (world.archive.root / "--w-demo--").rename(world.archive.root / "moved"), "index_partial"),
        (lambda world: world.index.write_bytes(b"no database" * 999), "index_foreign"),
        (lambda world: world.index.parent.chmod(0o755), "index_refused"),
        (lose_rows, "index_damaged"),
        (spoil_tokens, "index_damaged"),
    ],
)
def test_the_command_for_a_problem_solves_it(world: World, spoil: Any, code: str) -> None:
    world.session("a").save()
    world.make_index()
    spoil(world)
    command = names(world.report()["problems"], code)["command"]
    done = subprocess.run(
        command.replace("session-history", f"{sys.executable} -m harness_session_history"),
        shell=True, capture_output=True, check=False, cwd=world.folder,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert world.report()["problems"] == []


# --- what the index is like


def test_without_an_index_it_says_so_and_how_to_make_one(world: World) -> None:
    world.session().save()
    report = world.report()
    assert report["index"]["state"] == "absent" and not report["complete"]
    assert report["sources"]["missing"] == 1
    assert names(report["problems"], "no_index")["command"].endswith(" refresh")
    assert not world.index.exists()


def test_a_partial_index_is_called_partial(world: World) -> None:
    world.session("a").save()
    world.make_index()
    world.session("b").save()
    assert names(world.report()["problems"], "index_partial")["text"].startswith(
        "The index is partial: of 2 files 1 not"
    )


def test_a_stale_index_is_called_stale(world: World) -> None:
    path = world.session("a").save()
    gone = world.session("b").save()
    world.make_index()
    path.write_bytes(path.read_bytes() + b"\n")
    gone.unlink()
    text = names(world.report()["problems"], "index_stale")["text"]
    assert "1 changed since" in text and "1 gone from disk" in text


def test_a_file_that_is_no_database_is_of_no_use(world: World) -> None:
    world.session().save()
    world.index.parent.mkdir(mode=0o700)
    world.index.write_bytes(b"not a database, but long enough to look like a file of some kind" * 99)
    report = world.report()
    assert report["index"]["state"] == "foreign" and "index_foreign" in world.codes()
    assert report["sources"]["missing"] == 1


def test_another_programs_database_is_of_no_use(world: World) -> None:
    world.index.parent.mkdir(mode=0o700)
    connection = apsw.Connection(str(world.index))
    connection.execute("CREATE TABLE theirs(x)")
    connection.close()
    assert world.report()["index"]["state"] == "foreign"


def test_an_index_of_another_version_is_outdated(world: World) -> None:
    world.session().save()
    world.make_index()
    connection = apsw.Connection(str(world.index))
    connection.pragma("user_version", VERSION + 1)
    connection.close()
    report = world.report()
    assert report["index"]["state"] == "outdated" and report["index"]["schemaVersion"] == VERSION + 1


def test_a_missing_table_is_damage(world: World) -> None:
    world.session().save()
    world.make_index()
    connection = apsw.Connection(str(world.index))
    connection.execute("DROP TABLE hidden")
    connection.close()
    assert world.report()["index"]["state"] == "damaged"


def test_damage_in_the_full_text_is_found_though_the_file_is_sound(world: World) -> None:
    world.session().save()
    world.make_index()
    spoil_tokens(world)
    report = world.report()
    assert report["index"]["state"] == "damaged" and report["index"]["fullTextCheck"] != "ok"
    command = names(report["problems"], "index_damaged")["command"]
    assert command.startswith("rm -f ") and command.endswith(" refresh")
    assert report["roots"][0]["files"] == 1


ODD_WORDS = [
    "sha256",
    "python3 works",
    "set utf8mb4",
    "019d8c67-20e6-7b63-898d-6ab9fa6c3a45",
    "aGVsbG8gd29ybGQ5dGVzdGluZw9",
    "HTTPServer2Error",
    "maxRetryCount max_retry_count",
    "e\u0301te\u0301s cafe\u0301terie",
    "क्षत्रिय",
    "שָׁלוֹם",
    "مُحَمَّدٌ",
    "สวัสดีครับผมชื่อ",
    "데이터베이스를",
    "评审" * 40,
    "ﬁnally ｄｅｐｌｏｙ",
    "Donaudampfschifffahrtsgesellschaftskapitän",
    "a" * 400,
    "ok " + "ab " * 1330 + "wordwhichiscut and so on",
    "ab-" * 1320 + "B" * 200 + "eginnings",
    "soft\u00adhyphen",
    "!!! ???",
    "🙂",
]


@pytest.mark.parametrize("text", ODD_WORDS)
def test_no_wording_of_the_newest_entry_makes_a_sound_index_damaged(world: World, text: str) -> None:
    made = world.archive.session("a")
    made.user(text)
    made.save()
    world.make_index()
    report = world.report()
    assert report["index"]["state"] == "sound" and report["problems"] == []
    assert report["index"]["search"]["ok"] or not report["index"]["search"]["ran"]


@pytest.mark.parametrize("text", ODD_WORDS)
def test_every_word_that_is_tried_finds_its_entry(world: World, text: str) -> None:
    made = world.archive.session("a")
    entry = made.user(text)
    made.save()
    world.make_index()
    for word in words_of(text):
        assert [hit["citation"]["entryId"] for hit in world.call(query=word)["results"]] == [entry]


def test_a_word_that_a_removed_escape_sequence_glued_together_makes_no_sound_index_damaged(world: World) -> None:
    made = world.archive.session("a")
    made.user("red\x1b[31mdBar\x1b[0m")  # shown as reddBar, while the index holds red, d, bar and reddbar
    made.save()
    world.make_index()
    assert world.report()["problems"] == []


@pytest.mark.parametrize("other", ["away", "empty"])
def test_an_index_of_other_roots_is_not_damaged(world: World, other: str) -> None:
    world.session().save()
    world.make_index()
    (world.folder / "empty").mkdir()
    index = world.report(roots=[world.folder / other])["index"]
    assert index["state"] == "sound" and not index["search"]["ran"]


def test_where_no_entry_holds_a_word_the_search_was_not_run(world: World) -> None:
    made = world.archive.session("a")
    made.user("!!! ???")
    made.save()
    world.make_index()
    search = world.report()["index"]["search"]
    assert not search["ran"] and search["reason"] == "the newest entries hold no word to search for"


def test_an_entry_without_a_word_is_passed_over(world: World) -> None:
    made = world.session()
    made.user("!!! ???")
    made.save()
    world.make_index()
    assert world.report()["index"]["search"]["ok"]


def test_tokens_of_other_words_in_a_sound_file_are_damage(world: World) -> None:
    world.session("a").save()
    world.session("b").save()
    world.make_index()
    connection = apsw.Connection(str(world.index))
    rows = [row for (row,) in connection.execute("SELECT id FROM search_docsize")]
    connection.executemany(
        "INSERT OR REPLACE INTO search(rowid, body, whole) VALUES(?, 'zzz', '')", [(r,) for r in rows]
    )
    connection.execute("UPDATE meta SET value=(SELECT count(*) FROM search_idx) WHERE name='pages'")
    connection.close()
    index = world.report()["index"]
    assert [index[f"{name}Check"] for name in ("quick", "fullText", "rows")] == ["ok"] * 3
    assert index["state"] == "damaged" and index["search"]["ran"] and not index["search"]["ok"]


def test_rows_that_are_simply_gone_are_damage(world: World) -> None:
    world.session().save()
    world.make_index()
    lose_rows(world)
    report = world.report()
    assert report["index"]["state"] == "damaged" and report["index"]["rowsCheck"] == "rows are missing: spans"


@pytest.mark.parametrize("table", ["hidden", "shadowed", "spans", "trees"])
def test_a_table_that_is_gone_is_damage(world: World, table: str) -> None:
    world.session().save()
    world.make_index()
    with apsw.Connection(str(world.index)) as connection:
        connection.execute(f"DROP TABLE {table}")
    connection.close()
    assert world.report()["index"]["state"] == "damaged"


def test_overwritten_pages_are_damage(world: World) -> None:
    for name in range(30):
        world.session(f"s{name}").save()
    world.make_index()
    connection = apsw.Connection(str(world.index))
    connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    connection.close()
    data = bytearray(world.index.read_bytes())
    data[8192:] = b"\xa5" * (len(data) - 8192)
    world.index.write_bytes(data)
    report = world.report(uid("s1"))
    assert report["index"]["state"] == "damaged"
    assert report["sources"]["missing"] == 30
    assert report["session"]["reasons"][0]["code"] == "index_unavailable"


def test_a_transcript_as_index_is_refused(world: World) -> None:
    path = world.session().save()
    path.parent.chmod(0o700)
    report = world.report(index=path)
    assert report["index"]["state"] == "refused" and "transcript" in report["index"]["reason"]


@pytest.mark.skipif(os.name == "nt", reason="modes")
def test_a_folder_that_others_can_enter_is_refused_with_the_chmod_that_helps(world: World) -> None:
    world.session().save()
    world.make_index()
    world.index.parent.chmod(0o755)
    report = world.report()
    assert report["index"]["state"] == "refused"
    assert names(report["problems"], "index_refused")["command"] == f"chmod 700 {world.index.parent}"


@pytest.mark.skipif(os.name == "nt", reason="modes")
@pytest.mark.parametrize("why", ["other things", "sticky", "home", "not owned"])
def test_a_folder_that_is_not_the_indexs_own_is_never_closed_to_others(
    world: World, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.session().save()
    folder = world.folder / "shared"
    folder.mkdir(0o755)
    if why == "other things":
        (folder / "letter.txt").write_text("theirs")
    elif why == "sticky":
        folder.chmod(0o1777)
    elif why == "home":
        monkeypatch.setenv("HOME", str(folder))
    else:
        monkeypatch.setattr(os, "geteuid", lambda: folder.stat().st_uid + 1)
    monkeypatch.setenv("XDG_CACHE_HOME", str(world.folder / "cache"))
    problem = names(world.report(index=folder / "h.sqlite3")["problems"], "index_refused")
    assert "chmod" not in problem["command"] and "--index" in problem["text"]
    words = shlex.split(problem["command"])
    chosen = Path(words[words.index("--index") + 1]) if "--index" in words else None
    assert words[-1] == "refresh" and (chosen is None or folder not in chosen.parents)


@pytest.mark.skipif(os.name == "nt", reason="modes")
def test_the_command_for_a_refused_shared_folder_puts_the_index_elsewhere(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.session().save()
    shared = world.folder / "shared"
    shared.mkdir(0o755)
    (shared / "letter.txt").write_text("theirs")
    monkeypatch.setenv("SESSION_HISTORY_INDEX", str(shared / "h.sqlite3"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(world.folder / "cache"))
    command = names(world.report(index=None)["problems"], "index_refused")["command"]
    done = subprocess.run(
        command.replace("session-history ", f"{sys.executable} -m harness_session_history ", 1),
        shell=True, capture_output=True, check=False, cwd=world.folder,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert shared.stat().st_mode & 0o777 == 0o755 and [path.name for path in shared.iterdir()] == ["letter.txt"]


@pytest.mark.parametrize("spoil", ["garbage", "overwritten"])
def test_an_index_that_is_no_good_is_not_called_read_only(world: World, spoil: str) -> None:
    for name in range(30):
        world.session(f"s{name}").save()
    world.make_index()
    connection = apsw.Connection(str(world.index))
    connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    connection.close()
    data = bytearray(world.index.read_bytes())
    if spoil == "garbage":
        data[:] = b"foreign" * 1000
    else:
        data[16384:65536] = b"\xa5" * 49152
    world.index.write_bytes(data)
    report = world.report()
    assert report["index"]["state"] == ("foreign" if spoil == "garbage" else "damaged")
    assert "index_read_only" not in {problem["code"] for problem in report["problems"]}


def test_a_check_that_took_too_long_is_no_reason_to_delete_the_index(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.session().save()
    world.make_index()
    monkeypatch.setattr(health, "_check", lambda *what: health.UNFINISHED)
    problem = names(world.report()["problems"], "check_unfinished")
    assert problem["command"].endswith(" doctor")


@contextlib.contextmanager
def as_nobody() -> Iterator[None]:
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@posix_root
def test_an_index_that_cannot_be_written_is_read_and_called_read_only(tmp_path_factory: pytest.TempPathFactory) -> None:
    # Below a folder that the other user can enter, unlike pytest's own.
    folder = Path(subprocess.check_output(["mktemp", "-d"], text=True).strip())
    try:
        folder.chmod(0o755)
        world = World(folder)
        world.report()  # imports what it needs while it can
        world.session("a").save()

        def give_away() -> None:
            for path in (*folder.rglob("*"), folder):
                os.chown(path, NOBODY, NOBODY)

        give_away()
        with as_nobody():
            world.make_index()
        world.session("b").save()
        give_away()
        world.index.parent.chmod(0o500)
        with as_nobody():
            report = world.report()
        assert report["index"]["state"] == "sound" and report["index"]["search"]["ok"]
        assert not report["index"]["writable"] and report["index"]["notWritableBecause"]
        problem = names(report["problems"], "index_read_only")
        assert problem["severity"] == "error"  # there is something to be written
    finally:
        shutil.rmtree(folder)


def test_a_running_worker_is_seen_and_a_finished_one_is_not(world: World) -> None:
    world.session().save()
    world.make_index()
    lock = worker_lock(str(world.index))
    assert lock.acquire()
    try:
        assert world.report()["maintenance"]["workerRunning"] is True
    finally:
        lock.release()
    assert world.report()["maintenance"]["workerRunning"] is False


def test_an_index_that_is_being_written_is_still_writable(world: World) -> None:
    world.session().save()
    world.make_index()
    writer = apsw.Connection(str(world.index))
    writer.execute("BEGIN IMMEDIATE")
    try:
        assert world.report()["index"]["writable"]
    finally:
        writer.close()


# --- roots and files


def test_roots_that_hold_nothing_are_named(world: World) -> None:
    report = world.report()
    assert {"root_empty", "no_sessions"} <= {problem["code"] for problem in report["problems"]}
    assert not report["ok"]


def test_a_root_that_is_not_there_is_named(world: World) -> None:
    world.session().save()
    world.make_index()
    report = world.report(roots=[world.archive.root, world.folder / "away"])
    assert [root["reachable"] for root in report["roots"]] == [True, False]
    assert names(report["problems"], "root_unreachable")["severity"] == "warning"


def test_damaged_lines_are_named_by_file_and_number(world: World) -> None:
    made = world.session()
    made.raw('{"type":"message","id":"cut","parentId":')
    made.user("goes on")
    path = made.save(end=b'\n{"type":"mess')
    world.make_index()
    report = world.report()
    assert report["damaged"] == [
        {"path": str(path), "sessionId": made.id, "count": 1, "lines": [4], "changedSince": False}
    ]
    assert names(report["problems"], "damaged_lines")["command"] == f"sed -n '4p' {path}"
    assert report["ok"]  # everything that can be read is indexed


def test_a_file_of_a_version_that_cannot_be_read_is_reported(world: World) -> None:
    world.session().save()
    path = world.archive.root / "--w-demo--" / f"2026-03-02T10-00-00-000Z_{uid('bad')}.jsonl"
    path.write_text('{"kind":"header","v":4}\n')
    world.make_index()
    (said,) = world.report()["unavailable"]
    assert (said["path"], said["code"]) == (str(path), "unreadable")
    assert "it is of a version that cannot be read" in said["reason"]


@pytest.mark.skipif(os.name == "nt", reason="links")
def test_a_link_that_leaves_the_roots_is_reported(world: World) -> None:
    outside = world.session().save()
    target = world.folder / outside.name
    outside.rename(target)
    outside.symlink_to(target)
    report = world.report()
    assert [item["code"] for item in report["unavailable"]] == ["leaves_roots"]
    assert names(report["problems"], "leaves_roots")["command"] == f"readlink -f {outside}"


@posix_root
def test_an_unreadable_file_is_reported_with_its_reason() -> None:
    folder = Path(subprocess.check_output(["mktemp", "-d"], text=True).strip())
    try:
        folder.chmod(0o755)
        world = World(folder)
        path = world.session().save()
        world.report()
        for each in (*folder.rglob("*"), folder):
            os.chown(each, NOBODY, NOBODY)
        path.chmod(0)
        with as_nobody():
            world.make_index()
            report = world.report()
        assert report["unavailable"] == [{"path": str(path), "code": "unreadable", "reason": "Permission denied"}]
    finally:
        shutil.rmtree(folder)


def test_a_registry_that_cannot_be_read_is_reported(world: World) -> None:
    world.session().save()
    assert "registry_unreadable" in world.codes(registry=world.folder / "none.jsonl")


# --- why is it not found


def test_what_is_found_is_called_found_with_the_command_that_opens_it(world: World) -> None:
    made = world.session()
    entry = made.user("and this")
    made.save()
    world.make_index()
    assert world.why(made.id)["found"]
    why = world.why(made.id, entry)
    assert why["found"] and why["reasons"] == []
    assert why["command"].endswith(f" open {made.id} {entry}")


def test_an_unknown_session_is_unknown(world: World) -> None:
    world.session().save()
    world.make_index()
    assert world.reasons(uid("other")) == ["unknown"]


def test_a_session_whose_file_is_new_is_not_indexed_yet(world: World) -> None:
    world.session("a").save()
    world.make_index()
    made = world.session("b")
    entry = made.user("new")
    made.save()
    assert world.reasons(made.id) == ["not_indexed"]
    assert world.reasons(made.id, entry) == ["not_indexed"]


def test_an_entry_that_was_appended_is_not_indexed_yet(world: World) -> None:
    made = world.session()
    made.save()
    world.make_index()
    entry = made.user("appended")
    made.save()
    why = world.why(made.id, entry)
    assert [reason["code"] for reason in why["reasons"]] == ["stale", "not_indexed"] and not why["found"]


def test_an_older_entry_of_a_file_that_grew_is_found(world: World) -> None:
    made = world.session()
    entry = made.user("old")
    made.save()
    world.make_index()
    made.user("appended")
    made.save()
    assert world.why(made.id, entry)["found"]


def test_an_entry_on_a_damaged_line_is_named_with_its_line(world: World) -> None:
    made = world.session()
    made.raw('{"type":"message","id":"cut","parentId":null,"message":{"role":"user","content":"lo')
    made.save()
    world.make_index()
    why = world.why(made.id, "cut")
    assert [reason["code"] for reason in why["reasons"]] == ["damaged"]
    assert "Line 4" in why["reasons"][0]["text"]


def test_an_entry_that_only_its_child_names_is_lost(world: World) -> None:
    made = world.session()
    made.user("child", parent="lost")
    made.save()
    world.make_index()
    assert world.reasons(made.id, "lost") == ["damaged"]


def test_an_entry_of_an_abandoned_branch_is_opened_with_branch_any(world: World) -> None:
    made = world.archive.session("a")
    first = made.user("first")
    old = made.assistant("abandoned", parent=first)
    made.assistant("new way", parent=first)
    made.save()
    world.make_index()
    why = world.why(made.id, old)
    assert [reason["code"] for reason in why["reasons"]] == ["other_branch"]
    assert why["command"].endswith("--branch any") and not why["found"]


def test_the_current_session_is_left_out(world: World) -> None:
    made = world.session()
    made.save()
    world.make_index()
    why = world.why(made.id, current_session_id=made.id)
    assert [reason["code"] for reason in why["reasons"]] == ["current"] and not why["found"]
    assert "--include-current" in why["command"]


@pytest.mark.parametrize("how", ["gone", "gone and refreshed", "named", "registry"])
def test_a_deleted_session_is_called_deleted(world: World, how: str) -> None:
    made = world.session()
    path = made.save()
    settings: dict[str, Any] = {}
    world.make_index()
    if how.startswith("gone"):
        path.unlink()
        if how != "gone":
            world.make_index()
    elif how == "named":
        path.rename(path.with_name(path.name + ".deleted.2026-03-03T10-00-00.000Z"))
        world.make_index()
    else:
        settings["registry"] = world.folder / "registry.jsonl"
        settings["registry"].write_text(line({"sessionId": made.id, "deletedAt": "2026-03-03T10:00:00Z"}) + "\n")
    assert world.reasons(made.id, **settings) == ["deleted"]


def test_an_entry_of_a_session_whose_file_is_gone_is_deleted_and_cannot_be_opened(world: World) -> None:
    made = world.session()
    entry = made.user("gone")
    path = made.save()
    world.make_index()
    path.unlink()
    world.make_index()
    why = world.why(made.id, entry)
    assert [reason["code"] for reason in why["reasons"]] == ["deleted"] and why["command"] is None
    assert world.why(made.id)["command"].endswith("--include-deleted")


def test_an_entry_of_a_session_that_the_registry_deleted_can_be_opened_still(world: World) -> None:
    made = world.session()
    entry = made.user("archived")
    made.save()
    world.make_index()
    registry = world.folder / "registry.jsonl"
    registry.write_text(line({"sessionId": made.id, "deletedAt": "2026-03-03T10:00:00Z"}) + "\n")
    why = world.why(made.id, entry, registry=registry)
    assert [reason["code"] for reason in why["reasons"]] == ["deleted"]
    assert f" open {made.id} {entry} --include-deleted" in why["command"]


@posix_root
def test_a_session_of_another_user_is_called_that(world: World) -> None:
    made = world.session()
    path = made.save()
    os.chown(path, NOBODY, NOBODY)
    world.make_index()
    assert world.reasons(made.id) == ["other_user"]


@pytest.mark.parametrize(
    ("write", "what"),
    [
        (lambda s: s.tool("output")[1], "a tool result"),
        (lambda s: s.tool("output")[0], "only tool calls"),
        (lambda s: s.assistant([{"type": "thinking", "thinking": "hm"}]), "only thinking"),
        (lambda s: s.user([{"type": "image", "data": "", "mimeType": "image/png"}]), "only images"),
        (lambda s: s.add("custom", customType="x", data={}), "a custom entry"),
        (lambda s: s.add("compaction", summary="all", firstKeptEntryId="x"), "a compaction summary"),
        (lambda s: s.add("model_change", modelId="m"), "a change of model"),
        (lambda s: s.add("novelty"), "an entry of type novelty"),
    ],
)
def test_what_is_no_text_is_called_what_it_is(world: World, write: Any, what: str) -> None:
    made = world.session()
    entry = write(made)
    made.user("goes on")
    made.save()
    world.make_index()
    why = world.why(made.id, entry)
    assert [reason["code"] for reason in why["reasons"]] == ["not_text"]
    assert what in why["reasons"][0]["text"]


def test_a_superseded_entry_is_called_superseded(world: World) -> None:
    made = world.session()
    made.user("first of its id", key="twice")
    made.add("custom", key="twice", customType="x")
    made.save()
    world.make_index()
    assert world.reasons(made.id, "twice") == ["superseded"]


def test_files_that_share_an_id_are_named(world: World) -> None:
    made = world.session("a")
    made.user("one")
    paths = [made.save(), made.save("--w-copy--")]
    world.make_index()
    said = names(world.report()["problems"], "shared_id")
    assert said["severity"] == "note" and all(str(path) in said["text"] for path in paths) and made.id in said["text"]


def test_an_entry_of_another_file_of_the_session_is_found_there(world: World) -> None:
    late = world.session("a")
    late.user("later", at="2026-03-05T10:00:00.000Z")
    late.save()
    early = world.archive.session("a")
    entry = early.user("only here", key="early")
    early.save("--w-copy--")
    world.make_index()
    assert world.reasons(late.id, entry) == [] and world.why(late.id, entry)["found"]


def test_an_entry_of_another_session_is_found_there(world: World) -> None:
    made = world.session("a")
    other = world.session("b")
    entry = other.user("here", key="elsewhere")
    made.save()
    other.save()
    world.make_index()
    why = world.why(made.id, entry)
    assert [reason["code"] for reason in why["reasons"]] == ["elsewhere"] and other.id in why["reasons"][0]["text"]


def test_an_unknown_entry_is_unknown(world: World) -> None:
    made = world.session()
    made.save()
    world.make_index()
    assert world.reasons(made.id, "never") == ["unknown_entry"]


def test_an_entry_whose_bytes_changed_is_called_changed(world: World) -> None:
    made = world.session()
    entry = made.user("the word blue", key="mark")
    path = made.save()
    world.make_index()
    path.write_bytes(path.read_bytes().replace(b"blue", b"grey"))
    assert "changed" in world.reasons(made.id, entry)


def test_an_entry_of_an_old_transcript_whose_line_changed_is_called_changed(world: World) -> None:
    made = world.archive.session("old", version=None)
    made.raw(
        line(
            {"type": "message", "timestamp": "2026-03-02T10:00:01.000Z", "message": {"role": "user", "content": "one"}}
        )
    )
    made.save()
    world.make_index()
    entry = world.call(query="one")["results"][0]["citation"]["entryId"]
    assert world.why(made.id, entry)["found"]
    assert world.reasons(made.id, entry[:-1] + ("0" if entry[-1] != "0" else "1")) == ["changed"]


def test_a_file_named_after_the_session_with_another_header_says_whose_it_is(world: World) -> None:
    made = world.session("a")
    made.save(name=f"2026-03-02T10-00-00-000Z_{uid('b')}.jsonl")
    world.make_index()
    why = world.why(uid("b"))
    assert [reason["code"] for reason in why["reasons"]] == ["other_id"] and made.id in why["reasons"][0]["text"]


def test_a_file_named_after_the_session_that_is_none_says_so(world: World) -> None:
    world.session("a").save()
    (world.archive.root / f"2026-03-02T10-00-00-000Z_{uid('b')}.jsonl").write_text('{"x":1}\n')
    world.make_index()
    assert world.reasons(uid("b")) == ["not_a_session"]


def test_under_an_unreachable_root_it_may_lie_there(world: World) -> None:
    world.session("a").save()
    world.make_index()
    assert "unavailable" in world.reasons(uid("b"), roots=[world.archive.root, world.folder / "away"])


def test_without_an_index_the_files_alone_are_asked(world: World) -> None:
    made = world.session()
    _, result = made.tool("output")
    made.save()
    assert world.reasons(made.id, result) == ["index_unavailable", "not_indexed", "not_text"]


@pytest.mark.parametrize(("session", "entry"), [(None, "x"), ("", None), ("s", "e" * (MAX_ID_CHARS + 1))])
def test_unusable_ids_are_refused(world: World, session: str | None, entry: str | None) -> None:
    with pytest.raises(InvalidRequest):
        world.report(session, entry)


# --- names that are hard to write


ODD_NAMES = [
    b"not\xffutf8",
    b"two  spaces",
    b"red\x1b[31m",
    b"line\nend",
    b"it's $(x)",
    b"-rf \xe2\x80\xaeback",
    " é".encode(),
]
odd_names = pytest.mark.skipif(sys.platform != "linux", reason="file names are any bytes")


@odd_names
@pytest.mark.parametrize("name", ODD_NAMES)
def test_a_command_names_exactly_the_file_that_is_meant_also_where_it_is_copied_from_a_screen(
    world: World, name: bytes
) -> None:
    made = world.session()
    made.raw("{damaged")
    made.save(folder=os.fsdecode(name))
    world.make_index()
    report = world.report()
    command = names(report["problems"], "damaged_lines")["command"]
    assert command in render_report(report, color=False)
    done = subprocess.run(["bash", "-c", command], capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (0, b"{damaged\n")
    assert json.dumps(report).encode()


@odd_names
@pytest.mark.parametrize("name", ODD_NAMES)
def test_a_command_names_exactly_the_root_and_the_index_that_are_meant(world: World, name: bytes) -> None:
    made = world.archive.session("a")
    made.save(folder=os.fsdecode(name))
    root = world.archive.root / os.fsdecode(name)
    folder = "index" if b"\xff" in name else os.fsdecode(name)  # SQLite names files in UTF-8 only
    report = world.report(roots=[root], index=world.folder / folder / "h.sqlite3")
    command = names(report["problems"], "no_index")["command"]
    program = f"{shlex.quote(sys.executable)} -m harness_session_history "
    done = subprocess.run(
        ["bash", "-c", command.replace("session-history ", program, 1) + " --json"], capture_output=True, check=False
    )
    assert done.returncode == 0 and json.loads(done.stdout)["sources"]["indexed"] == 1, done.stderr


@odd_names
def test_why_is_answered_for_a_file_whose_name_is_not_utf8(world: World) -> None:
    made = world.session("a")
    entry = made.user("found")
    path = made.save(folder=os.fsdecode(b"not\xffutf8"))
    path.rename(path.with_name(f"2026-03-02T10-00-00-000Z_{uid('b')}.jsonl"))
    world.make_index()
    assert world.reasons(uid("b")) == ["other_id"]
    assert world.why(made.id, entry)["found"]
    assert "\ufffd" in world.why(made.id)["files"][0]["path"]


@pytest.mark.parametrize("asked", [("\ud800", None), ("a", "\udcff")])
def test_an_id_that_is_not_whole_characters_is_refused(world: World, asked: tuple[str, str | None]) -> None:
    with pytest.raises(InvalidRequest):
        world.report(*asked)


# --- for a person


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_it_is_words_on_a_terminal_and_in_a_pipe_and_json_where_that_is_asked_for(
    world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    world.session().save()
    words = ["--root", str(world.archive.root), "--index", str(world.index), "--no-maintenance", "doctor"]
    assert cli.main([*words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["index"]["state"] == "absent"
    assert cli.main(words) == 0
    assert capsys.readouterr().out.startswith("Incomplete: nothing is indexed yet")
    out = Terminal()
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setenv("NO_COLOR", "1")
    assert cli.main([*words, "--session", uid("a"), "--entry", "x"]) == 0
    said = out.getvalue()
    assert said.startswith("Incomplete: nothing is indexed yet") and "\x1b" not in said
    assert "is not found: entry x of session" in said


def test_it_exits_with_1_if_something_is_broken(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    world.session().save()
    world.make_index()
    words = ["--root", str(world.archive.root), "--index", str(world.index), "--no-maintenance", "doctor"]
    assert cli.main(words) == 0
    lose_rows(world)
    assert cli.main(words) == cli.main([*words, "--json"]) == 1
    assert "Broken: 1 problem" in capsys.readouterr().out


def test_no_command_is_folded(world: World) -> None:
    world.session().save()
    report = world.report()
    said = render_report(report, color=False)
    assert all(problem["command"] in said for problem in report["problems"])


def test_what_a_file_is_called_cannot_steer_a_terminal(world: World) -> None:
    world.session().save()
    (world.archive.root / f"2026-03-02T10-00-00-000Z_{uid('b')}\x1b[31m.jsonl").write_text('{"x":1}\n')
    (world.archive.root / f"2026-03-02T10-00-00-000Z_{uid('c')}.jsonl").symlink_to("/nowhere/\x1b[31m")
    world.make_index()
    assert "\x1b" not in render_report(world.report(), color=False)


@pytest.mark.skipif(os.name != "posix", reason="homes are found in another way")
def test_a_user_without_a_home_folder_is_helped_with_the_places_that_he_names(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unknown(_: int) -> None:
        raise KeyError

    monkeypatch.setattr("pwd.getpwuid", unknown)
    for name in ("HOME", "XDG_CACHE_HOME", "PI_CODING_AGENT_DIR"):
        monkeypatch.delenv(name, raising=False)
    world.session().save()
    problem = names(world.report()["problems"], "no_index")
    assert shlex.split(problem["command"])[1:] == [
        "--root", str(world.archive.root), "--index", str(world.index), "refresh",
    ]  # fmt: skip
    world.make_index()
    assert world.reasons("nothing") == ["unknown"]
    world.index.parent.chmod(0o755)
    (world.index.parent / "other").touch()
    assert "--index FILE" in names(world.report()["problems"], "index_refused")["command"]
