"""The shell: what it asks for, what it prints where, and how it exits."""

from __future__ import annotations

import importlib.util
import io
import json
import os
import re
import shlex
import subprocess
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, Self

import pytest

from builder import ArchiveBuilder
from harness_session_history import cli, options
from harness_session_history.errors import (
    CitationUnavailable,
    EntryNotVisible,
    IndexUnavailable,
    RefreshIncomplete,
    SessionHistoryError,
    SessionNotFound,
)
from harness_session_history.request import ARGUMENTS
from harness_session_history.result import HistoryResult

SOURCES = {"selected": 1, "indexed": 1, "changed": 0, "missing": 0, "unavailable": 0, "duplicate": 0, "damaged": 0}


class FakeHistory:
    """Stands for SessionHistory: notes what it is asked, answers what it is told."""

    made: ClassVar[dict[str, Any]]
    asked: ClassVar[list[dict[str, Any]]]
    answer: ClassVar[Any] = {"operation": "search", "results": []}
    error: BaseException | None = None
    ids: ClassVar[list[str]] = []
    sources: ClassVar[dict[str, int]] = SOURCES

    def __init__(self, **settings: Any) -> None:
        type(self).made = settings

    def stand_alone(self) -> None:
        return None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *what: object) -> None:
        return None

    def close_now(self) -> None:
        return None

    def show_progress(self, progress: Callable[..., None]) -> None:
        return None

    def session_ids(self, said: str, **scope: bool) -> list[str]:
        return self.ids or [said]

    def ask(self, **arguments: Any) -> Any:
        self.asked.append(arguments)
        if self.error:
            raise self.error
        return self.answer

    def refresh_now(self, session_id: str | None = None, progress: Callable[..., None] | None = None) -> dict[str, Any]:
        self.asked.append({"session_id": session_id})
        assert progress is not None
        progress(1, 2, 1 << 20, 2 << 20)
        return {"sources": self.sources}

    async def maintain(self, *, watch: bool = False, progress: Callable[..., None] | None = None) -> None:
        self.asked.append({"watch": watch})

    async def __call__(self, **arguments: Any) -> Any:
        self.asked.append(arguments)
        return {"complete": not self.sources["missing"], "freshness": {"sources": self.sources}}


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> type[FakeHistory]:
    class Fresh(FakeHistory):
        asked: ClassVar[list[dict[str, Any]]] = []

    module = types.ModuleType("harness_session_history.history")
    module.SessionHistory = Fresh
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return Fresh


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def error_of(out: str) -> dict[str, Any]:
    made = json.loads(out)
    assert list(made) == ["error"]
    return dict(made["error"])


# --- what is asked


def test_a_search_passes_only_what_was_given(fake: type[FakeHistory]) -> None:
    assert cli.main(["search", "rollback decision"]) == 0
    assert fake.asked == [{"operation": "search", "query": "rollback decision"}]


def test_the_words_of_a_query_may_be_separate(fake: type[FakeHistory]) -> None:
    cli.main(["search", "rollback", "decision"])
    assert fake.asked[0]["query"] == "rollback decision"


def test_a_folder_is_resolved_from_where_the_shell_is(
    fake: type[FakeHistory], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("USERPROFILE", str(tmp_path / "home"))
    here = os.getcwd()
    wanted = {
        ".": here,
        "x/": os.path.join(here, "x"),
        "../x": os.path.join(os.path.dirname(here), "x"),
        "~/x": str(tmp_path / "home" / "x"),
        "/w/x": "/w/x",
        "/w/y/../x": "/w/x",
        "D:\\x": "D:\\x",
    }
    for written, resolved in wanted.items():
        assert cli.main(["list", "--cwd", written]) == 0
        assert fake.asked[-1]["cwd"] == resolved


@pytest.mark.skipif(os.name == "nt", reason="links")
def test_a_folder_that_was_entered_by_a_link_is_asked_for_by_that(
    fake: type[FakeHistory], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    monkeypatch.chdir(tmp_path / "link")
    monkeypatch.setenv("PWD", str(tmp_path / "link"))
    assert cli.main(["list", "--cwd", "."]) == 0
    assert fake.asked[-1]["cwd"] == str(tmp_path / "link")


def test_every_argument_is_an_option(fake: type[FakeHistory]) -> None:
    options = (
        "--session-id s --kind child --include-deleted --include-current --cwd /w --since 2026-03-02 --until 2026-03-03 "
        "--roles user --limit 3 --sort newest --snippet-chars 200 --branch any --refresh"
    )
    assert cli.main(["search", *options.split(), "word"]) == 0
    assert fake.asked[0] == {
        "operation": "search",
        "query": "word",
        "session_id": "s",
        "kind": "child",
        "include_deleted": True,
        "include_current": True,
        "cwd": "/w",
        "since": "2026-03-02",
        "until": "2026-03-03",
        "roles": ["user"],
        "limit": 3,
        "sort": "newest",
        "snippet_chars": 200,
        "branch": "any",
        "refresh": True,
    }


@pytest.mark.parametrize("operation", ["search", "list", "open"])
def test_each_operation_offers_exactly_its_arguments(operation: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([operation, "--help"]) == 0
    shown = capsys.readouterr().out.split()
    for argument in ARGUMENTS.values():
        positional = argument.name in ("operation", "query", "entry_id") or (
            operation == "open" and argument.name == "session_id"
        )
        assert (argument.option in shown) == (operation in argument.operations and not positional), argument.name


@pytest.mark.parametrize("options", [["--roles", "user,assistant"], ["--roles", "user", "--roles", "assistant"]])
def test_roles_are_joined_by_commas_or_repeated(fake: type[FakeHistory], options: list[str]) -> None:
    cli.main(["search", *options, "word"])
    assert fake.asked[0]["roles"] == ["user", "assistant"]


def test_an_open_names_session_and_entry(fake: type[FakeHistory]) -> None:
    assert cli.main(["open", "s1", "e1", "--before", "0", "--max-chars", "500"]) == 0
    assert fake.asked == [{"operation": "open", "session_id": "s1", "entry_id": "e1", "before": 0, "max_chars": 500}]


def test_an_open_takes_a_citation_as_it_is_printed(fake: type[FakeHistory]) -> None:
    assert cli.main(["open", "session:s1/entry:e1", "--json"]) == 0
    assert fake.asked == [{"operation": "open", "session_id": "s1", "entry_id": "e1"}]


@pytest.mark.parametrize(
    ("words", "begin"),
    [(["--json"], "{"), (["--format", "json"], "{"), ([], "Search: "), (["--format=cards"], "Search: ")],
)
def test_a_format_may_be_chosen_and_is_text_elsewhere_than_on_a_terminal(
    fake: type[FakeHistory], capsys: pytest.CaptureFixture[str], words: list[str], begin: str
) -> None:
    fake.answer = HistoryResult({"operation": "search", "query": "rollback", "results": [HIT]})
    assert cli.main(["search", "rollback", *words]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith(begin) or "cards" in words[0]
    assert ("\n> the rollback decision\n" in shown) == (not words)
    assert ("| the rollback decision" in shown) == (words == ["--format=cards"]) and "\x1b" not in shown


@pytest.mark.parametrize("words", [["search", "--", "-foo bar"], ["search", "--limit", "2", "--", "-foo", "bar"]])
def test_a_query_that_begins_with_a_hyphen_goes_after_two(fake: type[FakeHistory], words: list[str]) -> None:
    assert cli.main(words) == 0
    assert fake.asked[0]["query"] == "-foo bar"


def test_settings_go_before_or_after_the_command(fake: type[FakeHistory]) -> None:
    before = "--root a --index i --current c --registry r --no-maintenance"
    cli.main([*before.split(), "list", "--root", "b"])
    assert fake.made == {
        "roots": ["a", "b"],
        "index": "i",
        "current_session_id": "c",
        "registry": "r",
        "maintenance": False,
    }
    cli.main(["list", *before.split()])
    assert fake.made["roots"] == ["a"] and fake.made["index"] == "i" and fake.made["maintenance"] is False


def test_settings_that_are_not_given_are_left_to_the_environment(fake: type[FakeHistory]) -> None:
    cli.main(["list"])
    assert fake.made == {"roots": None, "index": None, "current_session_id": None, "registry": None}


def test_maintain_is_asked_to_watch(fake: type[FakeHistory]) -> None:
    assert cli.main(["maintain", "--watch"]) == 0
    assert fake.asked[0] == {"watch": True}


# --- what is printed


def test_an_answer_is_one_json_document(fake: type[FakeHistory], capsys: pytest.CaptureFixture[str]) -> None:
    fake.answer = {"operation": "search", "results": [{"snippet": "评审 🙏"}]}
    assert cli.main(["search", "word", "--json"]) == 0
    shown = capsys.readouterr()
    assert json.loads(shown.out) == fake.answer and shown.out.count("\n") == 1 and shown.err == ""


def test_a_refresh_prints_its_counts(fake: type[FakeHistory], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["refresh", "--session-id", "s1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"sources": SOURCES}
    assert fake.asked == [{"session_id": "s1"}]


@pytest.mark.parametrize("missing", [0, 3])
def test_maintenance_that_came_to_its_end_prints_the_freshness(
    fake: type[FakeHistory], capsys: pytest.CaptureFixture[str], missing: int
) -> None:
    fake.sources = {**SOURCES, "missing": missing}
    for words in (["maintain", "--format", "json"], ["maintain", "--json"]):
        assert cli.main(words) == 0
        assert json.loads(capsys.readouterr().out) == {"sources": fake.sources}


def test_maintenance_on_a_terminal_ends_with_a_line(fake: type[FakeHistory], monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    assert cli.main(["maintain"]) == 0
    assert terminal.getvalue().startswith("Complete: the one session is indexed as on disk")
    assert terminal.getvalue().count("\n") == 1


def test_progress_goes_to_standard_error(fake: type[FakeHistory], capsys: pytest.CaptureFixture[str]) -> None:
    cli.main(["refresh"])
    shown = capsys.readouterr()
    assert "2 files" in shown.err and "files" not in shown.out


HIT = {
    "citation": {"sessionId": "s1", "entryId": "e1"},
    "role": "assistant",
    "createdAt": "2026-03-02T10:00:00.000Z",
    "snippet": "the rollback decision",
    "session": {"sessionId": "s1", "name": "demo"},
    "locator": "session:s1/entry:e1",
}


@pytest.mark.parametrize(("settings", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)])
def test_a_terminal_gets_cards_in_colour_unless_it_does_not_want_any(
    fake: type[FakeHistory], monkeypatch: pytest.MonkeyPatch, settings: dict[str, str], coloured: bool
) -> None:
    fake.answer = HistoryResult({"operation": "search", "query": "rollback", "results": [HIT]})
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    assert cli.main(["search", "rollback"]) == 0
    shown = terminal.getvalue()
    assert "rollback" in shown and not shown.startswith("{") and ("\x1b[" in shown) == coloured


def test_the_command_on_a_card_repeats_the_settings_that_were_given(
    fake: type[FakeHistory], monkeypatch: pytest.MonkeyPatch
) -> None:
    fake.answer = HistoryResult({"operation": "search", "query": "rollback", "results": [HIT]})
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setenv("NO_COLOR", "1")
    given = ["--root", "a b", "--root", "c", "--index", "i", "--current", "s", "--registry", "r", "--no-maintenance"]
    assert cli.main([*given, "search", "rollback"]) == 0
    command = next(line for line in terminal.getvalue().splitlines() if line.strip().startswith("open "))
    assert shlex.split(command) == ["open", "session-history", *given, "open", "s1", "e1"]


def test_a_terminal_gets_json_when_it_asks_for_it(fake: type[FakeHistory], monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    assert cli.main(["search", "rollback", "--json"]) == 0
    assert json.loads(terminal.getvalue()) == fake.answer


# --- how it exits


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (SessionNotFound("no such session"), 3),
        (EntryNotVisible("no such entry"), 3),
        (CitationUnavailable("gone"), 3),
        (RefreshIncomplete("not done", details={"missing": 2}), 4),
        (IndexUnavailable("no index"), 5),
        (SessionHistoryError("other"), 1),
    ],
)
def test_every_error_has_its_exit_status_and_its_json(
    fake: type[FakeHistory], capsys: pytest.CaptureFixture[str], error: SessionHistoryError, status: int
) -> None:
    fake.error = error
    assert cli.main(["--json", "search", "word"]) == status
    shown = capsys.readouterr()
    told = error_of(shown.out)
    assert (told["code"], told["message"], told["retryable"]) == (error.code, str(error), error.retryable)
    assert "hint" in told and shown.err == ""


def test_without_json_an_error_goes_to_standard_error(
    fake: type[FakeHistory], capsys: pytest.CaptureFixture[str]
) -> None:
    fake.error = SessionNotFound("no such session", hint="List them.")
    assert cli.main(["open", "s", "e"]) == 3
    shown = capsys.readouterr()
    assert shown.out == "" and "no such session" in shown.err and "List them." in shown.err


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["search"],
        ["find", "x"],
        ["search", "x", "--limit"],
        ["search", "x", "--limit", "0"],
        ["search", "x", "--limit", "ten"],
        ["search", "x", "--lim", "3"],
        ["search", "-foo"],
        ["search", ""],
        ["search", "x", "--roles", "user,user"],
        ["search", "x", "--since", "some day"],
        ["list", "--sort", "newest"],
        ["open"],
        ["search", "\udcff"],
    ],
)
def test_an_invalid_request_exits_with_2_in_the_form_asked_for(
    fake: type[FakeHistory], capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    assert cli.main(words) == 2
    shown = capsys.readouterr()
    assert shown.out == "" and shown.err
    assert cli.main(["--json", *words]) == 2
    assert error_of(capsys.readouterr().out)["code"] == "invalid_request"
    assert fake.asked == []


SECRET = "/home/me/secret"


@pytest.mark.parametrize(
    "words",
    [
        ["list", SECRET],
        ["list", SECRET, SECRET, "--limit", "3"],
        [SECRET],
        ["--root", SECRET, SECRET],
        ["open", "s", "e", SECRET],
        ["doctor", SECRET],
        ["tools", "history_read", "{}", SECRET],
        ["list", f"--jsno={SECRET}"],
        ["list", "--jsno", SECRET],
        ["list", f"--json={SECRET}"],
        ["list", f"--refresh={SECRET}"],
        ["list", f"-{SECRET}"],
        ["list", "--", SECRET],
        ["tools", SECRET],
        ["tools", "history_read", SECRET],
        ["--current", "s" * 200 + SECRET, "list"],
    ],
)
def test_no_word_of_the_caller_stands_in_a_refusal(capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    assert cli.main(["--no-maintenance", "--json", *words]) == 2
    told = error_of(capsys.readouterr().out)
    assert told["code"] == "invalid_request" and "secret" not in json.dumps(told)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["list", "a"], "1 word too many: list takes no word beside its options"),
        (
            ["open", "a", "b", "c", "d"],
            "2 words too many: open takes SESSION and ENTRY or a citation beside its options",
        ),
        (["list", "--jsno=1"], "list has no option --jsno"),
        (["list", "--json=1"], "--json: it takes no value"),
        (
            ["find"],
            "there is no such command; COMMAND is one of search, list, open, refresh, maintain, doctor, tools, mcp",
        ),
    ],
)
def test_a_refusal_says_how_many_words_and_what_is_allowed(
    capsys: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
    assert cli.main(["--json", *words]) == 2
    assert error_of(capsys.readouterr().out)["message"] == message


def test_what_a_command_takes_is_said_of_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--help"]) == 0
    shown = capsys.readouterr().out
    assert all(f"\n    {command} " in shown for command in options.COMMANDS)
    assert len(re.findall(r"\n    [a-z]+ ", shown)) == len(options.COMMANDS)


def test_an_invalid_request_is_refused_before_a_history_is_made(fake: type[FakeHistory]) -> None:
    cli.main(["search", "x", "--limit", "99"])
    assert not hasattr(fake, "made")


def test_a_refresh_that_left_something_exits_with_4_and_says_its_counts(
    fake: type[FakeHistory], capsys: pytest.CaptureFixture[str]
) -> None:
    fake.sources = {**SOURCES, "missing": 3}
    assert cli.main(["refresh"]) == 4
    shown = capsys.readouterr()
    assert shown.out == "" and "3 missing" in shown.err


def test_a_refresh_that_left_something_is_one_document_with_json(
    fake: type[FakeHistory], capsys: pytest.CaptureFixture[str]
) -> None:
    fake.sources = {**SOURCES, "missing": 3}
    assert cli.main(["refresh", "--json"]) == 4
    assert error_of(capsys.readouterr().out)["details"]["missing"] == 3


def test_an_interrupt_exits_with_130(fake: type[FakeHistory], capsys: pytest.CaptureFixture[str]) -> None:
    fake.error = KeyboardInterrupt()
    assert cli.main(["search", "x"]) == 130
    assert capsys.readouterr().out == ""


def test_the_version_is_that_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out[0].isdigit()


# --- as a process

SCRIPT = """
import sys, types
module = types.ModuleType("harness_session_history.history")
class SessionHistory:
    def stand_alone(self): pass
    def show_progress(self, progress): pass
    def __init__(self, **settings): pass
    def close_now(self): pass
    def ask(self, **arguments): return {"text": ANSWER}
module.SessionHistory = SessionHistory
sys.modules[module.__name__] = module
from harness_session_history.cli import main
sys.exit(main(["search", "x", "--json"]))
"""


def run_answering(
    answer: str, *, env: dict[str, str] | None = None, **options: Any
) -> subprocess.CompletedProcess[bytes]:
    code = SCRIPT.replace("ANSWER", answer)
    return subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **(env or {})}, stderr=subprocess.PIPE, check=False, **options
    )


def test_output_is_utf8_whatever_the_locale_says() -> None:
    done = run_answering(r"'评审 \ud800'", env={"PYTHONIOENCODING": "ascii", "LC_ALL": "C"}, stdout=subprocess.PIPE)
    assert done.returncode == 0 and done.stderr == b""
    assert "评审".encode() in done.stdout and json.loads(done.stdout)["text"] == "评审 \ud800"


def test_a_reader_that_had_enough_is_no_failure() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = run_answering("'x' * 1_000_000", stdout=writer)
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_is_said() -> None:
    with open("/dev/full", "wb") as full:
        done = run_answering("'x'", stdout=full)
    assert done.returncode == 1 and b"cannot be written" in done.stderr and b"Traceback" not in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.parametrize("redirected", ["| true", ">/dev/full", ">&-", "2>/dev/full", "2>&-", ">/dev/full 2>/dev/full"])
@pytest.mark.parametrize("form", ["", "--json "])
def test_a_failed_call_keeps_its_status_where_nobody_can_be_told(redirected: str, form: str) -> None:
    call = f"{sys.executable} -m harness_session_history {form}search x --limit 99 {redirected}"
    done = subprocess.run(["bash", "-c", f"{call}; exit ${{PIPESTATUS[0]}}"], capture_output=True, check=False)
    assert done.returncode == 2 and b"Traceback" not in done.stderr


def test_a_refresh_with_closed_standard_error_is_no_crash(
    fake: type[FakeHistory], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    assert cli.main(["refresh", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"sources": SOURCES}


def test_closed_standard_output_is_no_crash() -> None:
    code = "import sys; sys.stdout = None\n" + SCRIPT.replace("ANSWER", "'x'")
    done = subprocess.run([sys.executable, "-c", code], stderr=subprocess.PIPE, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


# --- end to end


@pytest.fixture
def archive(tmp_path: Path) -> tuple[Path, str, str]:
    """A root with one session; its id and the id of the entry that decides."""
    builder = ArchiveBuilder(tmp_path)
    session = builder.session("a")
    session.user("how do we undo a release?")
    entry = session.assistant("Decision: the rollback restores the previous release.")
    session.save()
    return builder.root, session.id, entry


def shell(root: Path, *words: str) -> tuple[int, Any, str]:
    command = [
        sys.executable,
        "-m",
        "harness_session_history",
        "--root",
        str(root),
        "--index",
        str(root.parent.parent / "index" / "h.sqlite3"),
    ]
    done = subprocess.run(
        [*command, "--no-maintenance", "--json", *words], capture_output=True, check=False, encoding="utf-8", timeout=60
    )
    return done.returncode, json.loads(done.stdout), done.stderr


whole = pytest.mark.skipif(
    importlib.util.find_spec("harness_session_history.history") is None, reason="needs the whole package"
)


@whole
def test_a_hit_found_in_the_shell_can_be_opened_there(archive: tuple[Path, str, str]) -> None:
    root, session_id, entry_id = archive
    status, found, _ = shell(root, "search", "rollback decision")
    assert status == 0 and found["results"][0]["citation"] == {"sessionId": session_id, "entryId": entry_id}
    status, opened, _ = shell(root, "open", session_id, entry_id)
    assert status == 0 and [m["role"] for m in opened["messages"]] == ["user", "assistant"]


@whole
def test_no_hit_is_an_answer(archive: tuple[Path, str, str]) -> None:
    status, found, _ = shell(archive[0], "search", "zeppelin")
    assert status == 0 and found["results"] == []


@whole
def test_the_shell_lists_and_refreshes(archive: tuple[Path, str, str]) -> None:
    status, freshness, _ = shell(archive[0], "refresh")
    assert status == 0 and freshness["sources"]["indexed"] == 1
    status, listed, _ = shell(archive[0], "list")
    assert status == 0 and [view["sessionId"] for view in listed["results"]] == [archive[1]]


@whole
@pytest.mark.parametrize(
    ("session_id", "status", "code"), [("nobody", 3, "session_not_found"), ("n" * 129, 2, "invalid_request")]
)
def test_a_refresh_of_a_session_that_there_is_not_says_so(
    archive: tuple[Path, str, str], session_id: str, status: int, code: str
) -> None:
    exited, told, _ = shell(archive[0], "refresh", "--session-id", session_id)
    assert (exited, told["error"]["code"]) == (status, code)
    exited, freshness, _ = shell(archive[0], "refresh", "--session-id", archive[1])
    assert exited == 0 and freshness["sources"]["indexed"] == 1


@whole
def test_the_shell_maintains(archive: tuple[Path, str, str]) -> None:
    status, freshness, _ = shell(archive[0], "maintain")
    assert status == 0 and freshness["sources"]["indexed"] == 1 and freshness["snapshotAt"]


@whole
def test_the_shell_says_what_is_not_found(archive: tuple[Path, str, str]) -> None:
    status, told, _ = shell(archive[0], "open", "nobody", "nothing")
    assert status == 3 and told["error"]["code"] == "session_not_found"
    status, told, _ = shell(archive[0], "open", archive[1], "nothing")
    assert status == 3 and told["error"]["code"] == "entry_not_visible"


@whole
def test_a_query_that_does_not_parse_exits_with_2(archive: tuple[Path, str, str]) -> None:
    status, told, _ = shell(archive[0], "search", '"unclosed')
    assert status == 2 and told["error"]["code"] == "invalid_request"
