"""SKILL.md: valid for the Agent Skills specification, short, and right for an agent that follows it to the letter."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from harness_session_history.cli import STATUS

PROJECT = Path(__file__).parents[2]
TEXT = (PROJECT / "SKILL.md").read_text(encoding="utf-8")


def front_matter() -> dict[str, str]:
    """The keys between the two rulers: plain one-line scalars, or double-quoted ones, which are JSON strings."""
    found = {}
    for line in TEXT.split("---\n")[1].splitlines():
        key, value = line.split(": ", 1)
        found[key] = json.loads(value) if value.startswith('"') else value
    return found


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", TEXT, re.DOTALL)


def test_the_front_matter_follows_the_specification() -> None:
    assert TEXT.startswith("---\n")
    keys = front_matter()
    assert set(keys) <= {"name", "description", "license", "compatibility", "metadata", "allowed-tools"}
    assert keys["name"] == "session-history" and re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", keys["name"])
    assert 1 <= len(keys["description"]) <= 1024
    assert 1 <= len(keys["compatibility"]) <= 500


def test_unquoted_values_are_plain_yaml_scalars() -> None:
    for line in TEXT.split("---\n")[1].splitlines():
        value = line.split(": ", 1)[1]
        assert value.startswith('"') or not re.search(r": | #|^[\[{>|*&!%@`'\"-]", value), line


def test_the_description_begins_with_when_to_use_it() -> None:
    assert front_matter()["description"].startswith("Use when ")


def test_it_takes_little_of_a_context() -> None:
    assert len(TEXT) <= 3_600  # 1,000 tokens of 3.6 characters; English prose has about 4 to a token


def test_every_option_that_it_names_is_one_of_the_shell() -> None:
    parser_help = "".join(asked(f"{command} --help") for command in ("search", "list", "open", "doctor"))
    named = set(re.findall(r"--[a-z][a-z-]+", TEXT))
    assert len(named) >= 8
    for option in named - {"--help"}:
        assert f"{option} " in parser_help or f"{option}]" in parser_help, option


def test_every_status_that_it_names_is_one_of_the_shell() -> None:
    assert {int(number) for number in re.findall(r"(?:Exit )?\b(\d): ", TEXT.split("## Errors")[1])} == set(
        STATUS.values()
    )


def test_it_says_what_matters_about_trust() -> None:
    trust = TEXT.split("## Use an answer")[1].split("##")[0]
    assert "untrusted" in trust and "not instructions" in trust and "citation" in trust


def test_the_files_it_names_are_there() -> None:
    for name in re.findall(r"SKILL_FOLDER/(\S+)", TEXT):
        assert (PROJECT / name).is_file()


# --- an agent that follows it to the letter, over the examples


#: What stands where the skill calls the program, whose environment is there already.
PROGRAM = shlex.join([sys.executable, "-P", "-m", "harness_session_history"])
COMMANDS = {line.split()[3]: line for block in reversed(blocks("bash")) for line in reversed(block.splitlines())}
#: The hints in the order in which the skill wants them tried, by the first word of each.
ORDER = re.findall(r"^\d\. (\S+)", TEXT, re.MULTILINE)
TODAY, THIS_WEEK = "019e16b1-9f80-79e1-817e-6a7aa694ebb4", "019df26e-2d00-7b22-87e9-b87124ac6b22"


def asked(words: str, **environment: str) -> str:
    done = subprocess.run(
        f"{PROGRAM} {words}", shell=True, cwd=PROJECT, capture_output=True, text=True, encoding="utf-8", check=False,
        env={**os.environ, "SESSION_HISTORY_PROGRAM": PROGRAM, "PYTHONUTF8": "1", "COLUMNS": "200", **environment},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


class Agent:
    """Types the lines of the skill, with its own words in the place of the example's, and does what the skill says then."""

    def __init__(self, folder: Path) -> None:
        self.sessions = folder / "sessions"
        self.kept = shutil.copytree(PROJECT / "examples" / "sessions", folder / "kept")
        shutil.copytree(self.kept, self.sessions, ignore=shutil.ignore_patterns(f"*{TODAY}*", f"*{THIS_WEEK}*"))
        self.environment = {
            "SESSION_HISTORY_ROOTS": str(self.sessions), "SESSION_HISTORY_INDEX": str(folder / "index" / "h.sqlite3"),
            "SESSION_HISTORY_MAINTENANCE": "off", "SESSION_HISTORY_CURRENT": "", "PI_SESSION_ID": "",
            "SESSION_HISTORY_CATCH_UP": "20",  # as usual, on a machine that is never busy
        }  # fmt: skip
        self.taken: list[str] = []

    def happens(self, session: str, ago: timedelta) -> None:
        """Writes one of the example sessions as if it had ended that long ago."""
        (path,) = self.kept.rglob(f"*{session}*")
        text = path.read_text(encoding="utf-8")
        times = re.findall(r"\d{4}-\d\d-\d\dT[\d:.]+Z", text)
        moved = datetime.now(UTC) - ago - datetime.fromisoformat(max(times))
        for time in set(times):
            later = (datetime.fromisoformat(time) + moved).isoformat(timespec="milliseconds")
            text = text.replace(time, later.replace("+00:00", "Z"))
        target = self.sessions / path.relative_to(self.kept)
        target.parent.mkdir(exist_ok=True)
        target.write_text(text, encoding="utf-8")

    def types(self, command: str, more: str = "", **environment: str) -> str:
        return asked(f"{command.split(' run ', 1)[1]} {more}", **{**self.environment, **environment})

    def asks(self, query: str, more: str = "", **environment: str) -> str:
        """Searches, takes hints in order while nothing is found, and opens what it has got."""
        self.taken.clear()
        line = COMMANDS["search"].replace('"rollback decision"', shlex.quote(query))
        shown = self.types(line, more, **environment)
        while "nothing matched" in shown:
            hint = next(word for word in ORDER if hinted(word, shown))
            assert hint not in self.taken, "it goes round in circles"
            self.taken.append(hint)
            if hint == "`update:`":
                asked(after("update", shown).removeprefix(PROGRAM), **self.environment)
                shown = self.types(line, more)
            elif hint == "`filters:`":
                shown = self.types(line)
            elif hint == "`try:`":
                shown = self.asks_for(after("try", shown))
            elif hint == "`branch:`":
                shown = self.types(line, "--branch any")
            elif hint == "Sessions":
                (chosen,) = re.findall(r"--session-id \S+", shown)
                shown = self.types(line.replace(shlex.quote(query), shlex.quote(query.split()[0])), chosen)
            else:
                break
        return self.opens(shown)

    def asks_for(self, said: str) -> str:
        words = json.loads(said) if said.startswith('"') else said
        return self.types(COMMANDS["search"].replace('"rollback decision"', shlex.quote(words)))

    def opens(self, shown: str) -> str:
        cited, needs = re.findall(r"^\[1\] (\S+)(?:.*\(open with (.*)\)$)?", shown, re.MULTILINE)[0]
        return self.types(COMMANDS["open"].replace("CITATION", cited), needs)


def hinted(word: str, shown: str) -> bool:
    sign = {"Sessions": "sessions that are named so", "`nearest`": "nearest, holding"}.get(word, word.strip("`"))
    return any(line.startswith(sign) for line in shown.splitlines())


def after(label: str, shown: str) -> str:
    return str(re.findall(rf"^{label}: (.*)$", shown, re.MULTILINE)[0])


@pytest.fixture
def agent(tmp_path: Path) -> Agent:
    return Agent(tmp_path)


@pytest.mark.parametrize(
    ("query", "more", "taken", "answer"),
    [
        ("release rollback", "", [], "We return to revision 88"),
        ("guest carts", "--sort newest", [], "ADR 0017 supersedes ADR 0011"),
        ("maxRetryCount connection errors", "", [], "50, 100 and 200 ms"),
        ("优惠券", "", [], "懒加载"),
        ("steuersatz position", "", [], "Bücher und Lebensmittel"),
        ("cannary pods", "", ["`try:`"], "5 % of the pods for 15 minutes"),
        ("generic-pool factory", "", ["`branch:`"], "leaves the waiter hanging"),
        ("blue-green", "--since 7d", ["`filters:`"], "I stay with the canary"),
    ],
)
def test_a_question_is_answered_by_following_it(
    agent: Agent, query: str, more: str, taken: list[str], answer: str
) -> None:
    assert answer in agent.asks(query, more)
    assert agent.taken == taken


def test_what_was_done_last_week_is_listed_and_opened(agent: Agent) -> None:
    agent.happens(THIS_WEEK, timedelta(days=3))
    shown = agent.types(COMMANDS["list"])
    assert shown.count("session:") == 1 and "Migration 0042" in agent.opens(shown)


def test_the_session_of_a_moment_ago_is_there(agent: Agent) -> None:
    assert "0 sessions" in agent.types("python3 SKILL_FOLDER/dev.py run list --since today")
    agent.happens(TODAY, timedelta())
    shown = agent.types("python3 SKILL_FOLDER/dev.py run list --since today")
    assert shown.count("session:") == 1 and "hydrates" in agent.opens(shown)


def test_an_index_that_is_behind_is_brought_up_to_date_first(agent: Agent) -> None:
    agent.asks("canary")
    agent.happens(TODAY, timedelta(days=1))
    assert "hydrates" in agent.asks("price flickers", SESSION_HISTORY_CATCH_UP="0") and agent.taken == ["`update:`"]


def test_each_hint_that_it_orders_is_one_that_the_text_can_have(agent: Agent) -> None:
    assert ORDER == ["`update:`", "`filters:`", "`try:`", "`branch:`", "Sessions", "`nearest`", "None"]
    shown = agent.types(COMMANDS["search"].replace("rollback decision", "rollback DB_POOL_V2 405"))
    assert hinted("Sessions", shown) and hinted("`nearest`", shown) and "without: " in shown
