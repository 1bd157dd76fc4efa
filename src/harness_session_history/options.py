"""The grammar of the shell: a command, and words and options in any order. Its options are generated from the table of
arguments."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, NoReturn

from msgspec.structs import replace

from .arguments import Argument, Table, resolved
from .errors import InvalidRequest
from .request import ARGUMENTS, request_of

PROGRAM = "session-history"
FORMATS = ("cards", "text", "json")
Added = tuple[tuple[str, ...], dict[str, Any]]
"""Names and keywords of an option or a word, as argparse takes them."""


class Command(NamedTuple):
    """What a command is for, the words that it takes, and its options beside the settings."""

    meaning: str
    takes: str = "no word"
    words: tuple[Added, ...] = ()
    options: tuple[Added, ...] = ()


def _option(*names: str, metavar: str, help: str, **more: Any) -> Added:
    return names, {"metavar": metavar, "help": help, **more}


def _word(name: str, metavar: str, help: str, nargs: str | None = None, **more: Any) -> Added:
    return (name,), {"metavar": metavar, "help": help, "nargs": nargs, **more}


_FORMAT = "cards for a person, text for a model, or one JSON document (default: cards on a terminal, else text)"
_SESSION = ("--session-id", "--session")
# fmt: off
COMMANDS = {
    "search": Command(
        "Find entries that hold every word of QUERY.", "QUERY",
        (_word("query", "QUERY", ARGUMENTS["query"].bound, "+"),),
    ),
    "list": Command("List sessions, latest activity first."),
    "open": Command(
        "Show one entry of a session with its neighbours.", "SESSION and ENTRY or a citation",
        (_word("session_id", "SESSION", "its id, the beginning of that, its short id, or a citation as it is printed"),
         _word("entry_id", "ENTRY", "the entry to show (default: the session's last)", "?", default=argparse.SUPPRESS)),
    ),
    "refresh": Command(
        "Bring the index up to date with the transcripts.",
        options=(_option(*_SESSION, metavar="ID", help="only this session"),),
    ),
    "maintain": Command(
        "Do the background maintenance here and now.",
        options=((("--watch",), {"action": "store_true", "help": "go on as transcripts change"}),),
    ),
    "doctor": Command(
        "Say what state roots and index are in, and what to do.",
        options=(_option(*_SESSION, metavar="ID", help="why is this session not found?"),
                 _option("--entry-id", "--entry", metavar="ID", help="why is this entry of it not found?")),
    ),
    "tools": Command(
        "Print the tools for recalling one's own conversation, as JSON, or call one of them.", "NAME and JSON",
        (_word("tool", "NAME", "the tool to call, for the conversation of --current", "?"),
         _word("arguments", "JSON", "its arguments as one JSON object, or - for stdin", "?", default="{}")),
    ),
    "mcp": Command(
        "Serve the tools to a Model Context Protocol client over standard input and output.",
        options=(_option("--print-config", metavar="CLIENT", help="print what to paste into this client, and end"),),
    ),
}
SETTINGS: tuple[Added, ...] = (
    _option("--root", metavar="DIR", help="a folder of sessions (repeatable)", action="append", default=[]),
    _option("--index", metavar="FILE", help="the index file"),
    _option("--current", metavar="ID", help="the calling session, which is left out"),
    _option("--registry", metavar="FILE", help="JSON Lines that know more of sessions"),
    (("--no-maintenance",), {"action": "store_true", "help": "start nothing in the background"}),
    (("--format",), {"choices": FORMATS, "help": _FORMAT}),
    (("--json",), {"dest": "format", "action": "store_const", "const": "json", "help": "--format json"}),
)
# fmt: on
#: What stands alone: nothing else is done then.
_ALONE = ("--help", "-h", "--version")
_OPTION = re.compile("--?[a-zA-Z][a-zA-Z_-]{0,30}(=|$)")
_QUOTED = re.compile("['\"]")
#: A citation as it is printed, which `open` takes as one word.
_CITATION = re.compile("session:(.+)/entry:(.+)")
_AGO = re.compile("([0-9]{1,5})([mhdw])(?: ago)?")
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_TIMES = "7d, 12h, today, yesterday"
_DAYS = {"today": 0, "yesterday": 1}


class _Parser(argparse.ArgumentParser):
    """Refuses as everything else here does: with `InvalidRequest`, which repeats no word of the caller's but the name of an
    option: it may be a path, or what somebody said."""

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        try:
            options, left = self.parse_known_args(args, namespace)
        except argparse.ArgumentError as problem:
            about = f"{problem.argument_name}: " if problem.argument_name else ""
            # The one message that quotes is of a value for an option that takes none.
            self.error(about + ("it takes no value" if _QUOTED.search(problem.message) else problem.message))
        command = self.prog.rpartition(" ")[2]
        unknown = [word.partition("=")[0] for word in left if _OPTION.match(word)]
        if unknown:
            self.error(f"{command} has no option {unknown[0]}", _nearest(unknown[0], self._option_string_actions))
        if left := [word for word in left if word != "--"]:
            many = "1 word" if len(left) == 1 else f"{len(left)} words"
            self.error(f"{many} too many: {command} takes {COMMANDS[command].takes} beside its options")
        return options

    def error(self, message: str, nearest: str = "") -> NoReturn:
        hint = f"See `{self.prog} --help`; what begins with a hyphen goes after `--`."
        raise InvalidRequest(message, hint=(f"Did you mean {nearest}? " if nearest else "") + hint)


def _nearest(word: str, known: Iterable[str]) -> str:
    from difflib import get_close_matches

    return next(iter(get_close_matches(word, known, 1)), "")


def parse(words: Sequence[str]) -> argparse.Namespace:
    """What the words ask for. Raises InvalidRequest, and SystemExit once help or the version is printed."""
    command, options, plain = _sorted(words)
    if "--version" in options:
        from importlib.metadata import version

        print(version("harness-session-history"))
        raise SystemExit(0)
    if command is None:
        _overview().parse_args([word for word in options if word in _ALONE])
        _overview().error("a command is missing: " + ", ".join(COMMANDS))
    if command not in COMMANDS:
        known = ", ".join(COMMANDS)
        _overview().error(f"there is no such command; COMMAND is one of {known}", _nearest(command, COMMANDS))
    parser = _Parser(
        prog=f"{PROGRAM} {command}",
        description=COMMANDS[command].meaning,
        allow_abbrev=False,
        exit_on_error=False,
    )
    for names, keywords in COMMANDS[command].words:
        parser.add_argument(*names, **keywords)
    for names, keywords in _own_options(command):
        parser.add_argument(*names, **keywords)
    group = parser.add_argument_group("settings")
    for names, keywords in SETTINGS:
        group.add_argument(*names, **keywords)
    parsed: argparse.Namespace = parser.parse_args([*options, *(["--", *plain] if plain else [])])
    parsed.command = command
    return parsed


def _sorted(words: Sequence[str]) -> tuple[str | None, list[str], list[str]]:
    """The command, the options, each one word with its value, and all other words."""
    flags = {name: _is_flag(added) for added in _all_options() for name in added[0]} | dict.fromkeys(_ALONE, True)
    command: str | None = None
    options, plain = [], []
    left = list(words)
    while left:
        word = left.pop(0)
        if word == "--":
            plain += left
            break
        if _OPTION.match(word):
            if flags.get(word) is False and left and left[0].partition("=")[0] not in flags:
                word += "=" + left.pop(0)
            options.append(word)
        elif command is None:
            command = word
        else:
            plain.append(word)
    return command, options, plain


def _is_flag(added: Added) -> bool:
    return str(added[1].get("action")).startswith("store_")


def _all_options() -> list[Added]:
    return [*SETTINGS, *(option for command in COMMANDS for option in _own_options(command))]


def _overview() -> _Parser:
    parser = _Parser(
        prog=PROGRAM,
        usage=f"{PROGRAM} COMMAND [words and options in any order]",
        description="Search and re-read past sessions.",
        epilog=f"See `{PROGRAM} COMMAND --help` for the options of a command.",
        allow_abbrev=False,
        exit_on_error=False,
    )
    parser.add_argument("--version", action="store_true", help="show the version and exit")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for name, command in COMMANDS.items():
        commands.add_parser(name, help=command.meaning)
    return parser


def _own_options(command: str) -> list[Added]:
    return [*COMMANDS[command].options, *map(_added, shell_arguments(command).values())]


def shell_arguments(command: str) -> Table:
    """The arguments that are options of search, list or open, named as they are typed; none for another command."""
    words = {names[0] for names, _ in COMMANDS[command].words}
    taken = (one for one in ARGUMENTS.values() if command in one.operations and one.name not in (*words, "operation"))
    return {argument.name: replace(argument, name=argument.option) for argument in taken}


def check_arguments(given: dict[str, Any]) -> None:
    """Raises InvalidRequest for what `arguments_of` gave, in the words of the shell."""
    command = given["operation"]
    words = {
        names[0]: replace(ARGUMENTS[names[0]], name=keywords["metavar"]) for names, keywords in COMMANDS[command].words
    }
    last = {"entry_id": "its last"} if command == "open" else {}
    try:
        request_of({**ARGUMENTS, **words, **shell_arguments(command)}, {**last, **given})
    except InvalidRequest as error:
        raise InvalidRequest(
            str(error), hint=re.sub("(Write --(?:since|until) like )", rf"\g<1>{_TIMES}, ", error.hint)
        ) from None


def _added(argument: Argument) -> Added:
    usual: dict[str, Any] = {"default": argparse.SUPPRESS}
    if argument.type == "boolean":
        return (argument.name,), {**usual, "action": "store_true", "help": argument.meaning}
    metavar = {"integer": "N", "time": "TIME"}.get(
        argument.type or "", "ID" if argument.name.endswith("-id") else "DIR"
    )
    if argument.choices:
        words = ",".join(argument.choices)
        metavar = words if argument.type == "roles" else "{" + words + "}"
    if argument.type == "roles":
        usual |= {"type": lambda words: words.split(","), "action": "extend"}
    elif argument.type in ("integer", "time"):
        usual["type"] = _integer if argument.type == "integer" else _moment
    return (argument.name,), {**usual, "metavar": metavar, "help": _help(argument)}


def _help(argument: Argument) -> str:
    default = ",".join(argument.default) if isinstance(argument.default, tuple) else argument.default
    known = "" if argument.type in ("choice", "roles", "string") else f"; {argument.bound}"
    known += f", or as {_TIMES}" if argument.type == "time" else ""
    return argument.meaning + known + ("" if default is None else f" (default: {default})")


def _integer(word: str) -> int | str:
    """The number, or the word itself, which the request then refuses in its own words."""
    digits = word.removeprefix("-")
    return int(word) if digits.isascii() and digits.isdigit() and len(digits) < 20 else word


def _moment(word: str) -> str:
    """A time before now (``90m``, ``12h``, ``7d``, ``2w``) or the beginning of a day here (``today``, ``yesterday``) as
    ISO-8601; any other word as it is."""
    from datetime import UTC, datetime, timedelta

    said = word.strip().lower()
    ago = _AGO.fullmatch(said)
    try:
        if ago:
            moment = datetime.now(UTC) - timedelta(**{_UNITS[ago[2]]: int(ago[1])})
        elif said in _DAYS:
            day = datetime.now() - timedelta(days=_DAYS[said])
            moment = day.replace(hour=0, minute=0, second=0, microsecond=0).astimezone(UTC)
        else:
            return word
    except (OverflowError, ValueError, OSError):
        return word
    return moment.replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"


def program() -> str:
    """How the shell was called, for the commands that it names: ``session-history``, or what `dev.py run` says of itself."""
    return os.environ.get("SESSION_HISTORY_PROGRAM") or PROGRAM


def in_words_of_the_shell(text: str) -> str:
    """A sentence that names arguments as in Python, or this program, in the words of who typed a command."""

    def option(found: re.Match[str]) -> str:
        argument, value = ARGUMENTS[found[1]], (found[2] or "").strip("\"'")
        return argument.option + (f" {value}" if value and value != "True" else "")

    names = "|".join(name for name, argument in ARGUMENTS.items() if name not in ("operation", "query"))
    written = re.sub(rf"\b({names})=(True|\w+|\"\w+\")", option, text)
    written = re.sub(rf"(?<![-\w])({'|'.join(n for n in names.split('|') if '_' in n)})(?![\w=])()", option, written)
    return written.replace(f"{PROGRAM} ", f"{program()} ")


def settings_of(options: argparse.Namespace, *, absolute: bool = False) -> list[str]:
    """The settings that were given, as options before a command; `absolute`: for a program with another working folder."""
    given = [("root", root) for root in options.root]
    given += [(name, getattr(options, name)) for name in ("index", "current", "registry")]
    if absolute:
        given = [(name, value if name == "current" else value and resolved(value)) for name, value in given]
    words = [word for name, value in given if value is not None for word in (f"--{name}", value)]
    return words + (["--no-maintenance"] if options.no_maintenance else [])


def arguments_of(options: argparse.Namespace) -> dict[str, Any] | None:
    """What was given for search, list or open; None for another command. `open` without an entry has no ``entry_id``."""
    if options.command not in ARGUMENTS["operation"].choices:
        return None
    given = {name: value for name, value in vars(options).items() if name in ARGUMENTS}
    if "query" in given:
        given["query"] = " ".join(options.query)
    if given.get("cwd"):
        given["cwd"] = resolved(given["cwd"])
    cited = _CITATION.fullmatch(given.get("session_id") or "")
    if options.command == "open" and cited and "entry_id" not in given:
        given["session_id"], given["entry_id"] = cited.groups()
    return {"operation": options.command, **given}
