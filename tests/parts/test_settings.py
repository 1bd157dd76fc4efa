"""Where transcripts and the index are, and who is asking."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from harness_session_history.errors import InvalidRequest
from harness_session_history.model.sources import Root
from harness_session_history.settings import Settings


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of its own, which is also the working folder."""
    made = tmp_path / "home"
    made.mkdir()
    monkeypatch.chdir(made)
    monkeypatch.setenv("HOME", str(made))
    monkeypatch.setenv("XDG_CACHE_HOME", str(made / "cache"))
    return made


def resolve(environ: dict[str, str] | None = None, **arguments: Any) -> Settings:
    return Settings.resolve(environ={"HOME": os.environ["HOME"], **(environ or {})}, **arguments)


def paths(settings: Settings) -> list[str]:
    return [root.path for root in settings.roots]


def pi_settings(folder: Path, content: object) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "settings.json").write_text(content if isinstance(content, str) else json.dumps(content))


def test_without_any_setting_pi_s_default_place_is_the_only_root_and_may_be_missing(home: Path) -> None:
    assert resolve().roots == (Root(f"{home}/.pi/agent/sessions", explicit=False, required=False),)


def test_all_of_pi_s_places_are_roots_in_order(home: Path) -> None:
    pi_settings(home / ".pi", {"sessionDir": "in-project"})
    pi_settings(home / "pi-agent", {"sessionDir": "~/of-the-user"})
    environ = {"PI_CODING_AGENT_DIR": "~/pi-agent", "PI_CODING_AGENT_SESSION_DIR": "flat"}
    found = resolve({**environ, "SESSION_HISTORY_PROJECT_SETTINGS": "on"})
    in_project = Root(f"{home}/in-project", explicit=False, required=False, label="project")
    assert [root for root in found.roots if root != in_project] == list(resolve(environ).roots)
    assert found.roots == (
        Root(f"{home}/flat", explicit=True, required=True),
        in_project,
        Root(f"{home}/of-the-user", explicit=False, required=False),
        Root(f"{home}/pi-agent/sessions", explicit=True, required=False),
    )


def test_a_relative_place_of_the_user_s_own_settings_is_the_project_s(home: Path) -> None:
    """It lies in whatever folder one works in, which may be somebody else's repository."""
    pi_settings(home / ".pi" / "agent", {"sessionDir": "sessions"})
    assert resolve().roots[0] == Root(f"{home}/sessions", explicit=False, required=False, label="project")


def test_a_place_of_a_project_that_is_the_user_s_own_as_well_has_no_label(home: Path) -> None:
    pi_settings(home / ".pi", {"sessionDir": "~/.pi/agent/sessions"})
    assert [root.label for root in resolve({"SESSION_HISTORY_PROJECT_SETTINGS": "on"}).roots] == [None]


def test_whether_a_project_s_settings_are_read_is_on_or_off() -> None:
    with pytest.raises(InvalidRequest, match="SESSION_HISTORY_PROJECT_SETTINGS must be on or off"):
        resolve({"SESSION_HISTORY_PROJECT_SETTINGS": "yes"})


def test_a_place_named_twice_is_one_root_with_the_stronger_claim(home: Path) -> None:
    pi_settings(home / ".pi" / "agent", {"sessionDir": "~/.pi/agent/sessions/"})
    found = resolve({"PI_CODING_AGENT_SESSION_DIR": "~/.pi/agent/sessions"})
    assert found.roots == (Root(f"{home}/.pi/agent/sessions", explicit=True, required=True),)


@pytest.mark.parametrize(
    "content", ["{", "[]", '{"sessionDir": 5}', '{"sessionDir": " "}', "{}", '{"sessionDir": "a\\u0000b"}']
)
def test_a_broken_pi_settings_file_is_passed_over(home: Path, content: str) -> None:
    pi_settings(home / ".pi" / "agent", content)
    assert paths(resolve()) == [f"{home}/.pi/agent/sessions"]


def test_a_broken_pi_settings_file_is_logged(home: Path, caplog: pytest.LogCaptureFixture) -> None:
    pi_settings(home / ".pi" / "agent", "{")
    resolve()
    assert "settings.json" in caplog.text


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_in_the_place_of_a_pi_settings_file_is_not_waited_for(home: Path) -> None:
    (home / ".pi").mkdir()
    os.mkfifo(home / ".pi" / "settings.json")
    assert paths(resolve()) == [f"{home}/.pi/agent/sessions"]


@pytest.fixture
def homeless(monkeypatch: pytest.MonkeyPatch) -> None:
    """A user without a home folder, as in a container that runs under any number."""

    def unknown(_: int) -> None:
        raise KeyError

    monkeypatch.setattr("pwd.getpwuid", unknown)
    monkeypatch.delenv("HOME")
    monkeypatch.delenv("XDG_CACHE_HOME")


@pytest.mark.skipif(os.name != "posix", reason="homes are found in another way")
@pytest.mark.parametrize("arguments", [{}, {"index": "/i"}, {"roots": "/r"}, {"roots": "~/r", "index": "/i"}])
def test_without_a_home_folder_what_is_not_named_is_refused(homeless: None, arguments: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest, match="home") as refused:
        Settings.resolve(environ={}, **arguments)
    assert "HOME" in refused.value.hint and "SESSION_HISTORY_INDEX" in refused.value.hint


@pytest.mark.skipif(os.name != "posix", reason="homes are found in another way")
def test_without_a_home_folder_named_places_are_enough(homeless: None) -> None:
    found = Settings.resolve(environ={"PI_CODING_AGENT_DIR": "/pi", "SESSION_HISTORY_INDEX": "/i"})
    assert (paths(found), found.index) == (["/pi/sessions"], "/i")


def test_all_places_are_absolute_where_the_home_and_the_cache_are_not(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "here")
    monkeypatch.setenv("XDG_CACHE_HOME", "cache")
    found = resolve()
    assert paths(found) == [f"{home}/here/.pi/agent/sessions"] and os.path.isabs(found.index)


def test_a_pi_settings_file_may_begin_with_a_byte_order_mark(home: Path) -> None:
    pi_settings(home / ".pi" / "agent", '\ufeff{"sessionDir": "/s"}')
    assert paths(resolve())[0] == "/s"


def test_the_environment_s_roots_replace_pi_s_places(home: Path) -> None:
    found = resolve(
        {"SESSION_HISTORY_ROOTS": os.pathsep.join(["/a", "", "~/b", "/a/"]), "PI_CODING_AGENT_SESSION_DIR": "/c"}
    )
    assert found.roots == (Root("/a", True, True), Root(f"{home}/b", True, True))


def test_a_blank_list_of_roots_counts_as_none_given(home: Path) -> None:
    assert paths(resolve({"SESSION_HISTORY_ROOTS": f" {os.pathsep}"})) == [f"{home}/.pi/agent/sessions"]


@pytest.mark.parametrize("roots", ["/x", Path("/x"), ["/x"], (Path("/x"), "/x/")])
def test_argument_roots_replace_the_environment_s(roots: Any) -> None:
    assert resolve({"SESSION_HISTORY_ROOTS": "/a"}, roots=roots).roots == (Root("/x", True, True),)


@pytest.mark.parametrize("roots", [[], (), "", " ", 5, True, b"/x", [None], [5], {"/x"}, ["/x", ""], "/x\0y"])
def test_roots_of_a_wrong_type_or_form_are_refused(roots: Any) -> None:
    with pytest.raises(InvalidRequest, match="roots"):
        resolve(roots=roots)


@pytest.mark.parametrize("argument", ["index", "registry"])
@pytest.mark.parametrize("value", [5, "", b"/x", ["/x"], False])
def test_paths_of_a_wrong_type_or_form_are_refused(argument: str, value: Any) -> None:
    with pytest.raises(InvalidRequest, match=argument):
        resolve(**{argument: value})


def test_no_refusal_repeats_the_value() -> None:
    with pytest.raises(InvalidRequest) as refused:
        resolve(roots="/secret\0folder")
    assert "secret" not in str(refused.value)


def test_a_relative_root_is_refused_where_the_working_folder_is_gone(home: Path) -> None:
    gone = home / "gone"
    gone.mkdir()
    os.chdir(gone)
    gone.rmdir()
    assert paths(resolve(roots="/x")) == ["/x"]
    with pytest.raises(InvalidRequest, match="roots"):
        resolve(roots="x")


def test_index_and_registry_come_from_the_argument_then_the_environment(home: Path) -> None:
    environ = {"SESSION_HISTORY_INDEX": "~/i", "SESSION_HISTORY_REGISTRY": "r.jsonl"}
    assert (resolve(environ).index, resolve(environ).registry) == (f"{home}/i", f"{home}/r.jsonl")
    found = resolve(environ, index=Path("/j"), registry="/k")
    assert (found.index, found.registry) == ("/j", "/k")


def test_without_a_setting_there_is_no_registry() -> None:
    assert resolve().registry is None and resolve({"SESSION_HISTORY_REGISTRY": ""}).registry is None


def test_the_default_index_lies_in_the_user_s_cache_folder(home: Path) -> None:
    index = Path(resolve(roots="/a").index)
    assert index.name == "history.sqlite3" and index.parent.parent == home / "cache" / "harness-session-history"
    assert len(index.parent.name) == 16 and int(index.parent.name, 16) >= 0


def test_each_set_of_roots_has_its_own_default_index_in_any_order() -> None:
    first, turned, other = (resolve(roots=roots).index for roots in (["/a", "/b"], ["/b", "/a"], ["/a"]))
    assert first == turned != other


def test_a_root_that_is_not_valid_unicode_has_a_default_index_too() -> None:
    assert resolve(roots="/a\udcff").index.endswith("history.sqlite3")


@pytest.mark.parametrize(
    ("environ", "argument", "expected"),
    [
        ({}, None, None),
        ({"PI_SESSION_ID": "p"}, None, "p"),
        ({"PI_SESSION_ID": "p", "SESSION_HISTORY_CURRENT": "c"}, None, "c"),
        ({"PI_SESSION_ID": "p", "SESSION_HISTORY_CURRENT": " "}, None, "p"),
        ({"PI_SESSION_ID": "p", "SESSION_HISTORY_CURRENT": "c"}, "a", "a"),
        ({"PI_SESSION_ID": "p"}, "", None),
        ({"PI_SESSION_ID": " "}, None, None),
    ],
)
def test_the_current_session_is_told_or_unknown(
    environ: dict[str, str], argument: str | None, expected: str | None
) -> None:
    assert resolve(environ, current_session_id=argument).current_session == expected


@pytest.mark.parametrize("value", [5, b"a", True, "x" * 129])
def test_a_current_session_of_a_wrong_type_or_length_is_refused(value: Any) -> None:
    with pytest.raises(InvalidRequest, match="current_session_id"):
        resolve(current_session_id=value)


@pytest.mark.parametrize(
    ("said", "argument", "expected"),
    [
        ("", True, True),
        ("on", True, True),
        ("off", True, False),
        ("OFF", True, False),
        ("on", False, False),
        ("off", False, False),
    ],
)
def test_maintenance_is_on_unless_either_switches_it_off(said: str, argument: bool, expected: bool) -> None:
    assert resolve({"SESSION_HISTORY_MAINTENANCE": said}, maintenance=argument).maintenance is expected


def test_another_word_for_maintenance_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="SESSION_HISTORY_MAINTENANCE"):
        resolve({"SESSION_HISTORY_MAINTENANCE": "yes"})


@pytest.mark.parametrize("value", [1, None, "on"])
def test_maintenance_must_be_a_real_boolean(value: Any) -> None:
    with pytest.raises(InvalidRequest, match="maintenance"):
        resolve(maintenance=value)


def test_the_environment_is_read_at_each_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SESSION_HISTORY_ROOTS", "/a")
    assert paths(Settings.resolve()) == ["/a"]
    monkeypatch.setenv("SESSION_HISTORY_ROOTS", "/b")
    assert paths(Settings.resolve()) == ["/b"]


def test_a_named_index_does_not_cost_the_import_of_platformdirs() -> None:
    code = (
        "import sys; from harness_session_history.settings import Settings; Settings.resolve(index='/i');"
        "assert 'platformdirs' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    "environ, argument, expected",
    [("", None, None), ("0.5", None, 0.5), ("0.5", 0, 0.0), ("0", None, 0.0), ("", 25, 25.0)],
)
def test_catching_up_is_a_number_of_seconds(environ: str, argument: Any, expected: float | None) -> None:
    assert resolve({"SESSION_HISTORY_CATCH_UP": environ}, catch_up=argument).catch_up == expected


@pytest.mark.parametrize("wrong", [-1, 26, True, "soon", float("nan"), []])
def test_another_value_for_catching_up_is_refused(wrong: Any) -> None:
    with pytest.raises(InvalidRequest, match="catch_up must be a number of seconds from 0 to 25"):
        resolve(catch_up=wrong)


@pytest.mark.parametrize(("said", "expected"), [("", 64 << 20), ("1", 1 << 20), (" 512 ", 512 << 20)])
def test_the_longest_line_is_said_in_megabytes(said: str, expected: int) -> None:
    assert resolve({"SESSION_HISTORY_MAX_LINE": said}).max_line == expected


@pytest.mark.parametrize("said", ["0", "513", "-1", "1.5", "64MB", "9" * 5000, "\u0661", "inf"])
def test_another_longest_line_is_refused(said: str) -> None:
    with pytest.raises(InvalidRequest, match="SESSION_HISTORY_MAX_LINE must be a whole number of MB from 1 to 512"):
        resolve({"SESSION_HISTORY_MAX_LINE": said})


@pytest.mark.parametrize("path", ["~\ud83d", "~\ud83d/x", "/x/\ud83d", "\udc00\ud800"])
def test_a_path_that_no_system_has_is_refused(path: str) -> None:
    for environ in (
        {"SESSION_HISTORY_INDEX": path},
        {"SESSION_HISTORY_ROOTS": path},
        {"SESSION_HISTORY_REGISTRY": path},
    ):
        with pytest.raises(InvalidRequest, match="lone surrogate"):
            resolve(environ)
