"""The options of the shell, generated from the table of arguments."""

from __future__ import annotations

import argparse
import os
import re
from typing import Any, NoReturn

from .arguments import Argument, resolved
from .errors import InvalidRequest
from .request import ARGUMENTS

PROGRAM = "session-history"
FORMATS = ("cards", "text", "json")
_POSITIONAL = {"search": ("query",), "list": (), "open": ("session_id", "entry_id")}
_COMMAND = "COMMAND"
#: A citation as it is printed, which `open` takes as one word.
_CITATION = re.compile("session:(.+)/entry:(.+)")
#: The commands, with the words that each takes beside its options.
_WORDS = {
    "search": "QUERY",
    "list": "no word",
    "open": "SESSION and ENTRY",
    "refresh": "no word",
    "maintain": "no word",
    "doctor": "no word",
    "tools": "NAME and JSON",
    "mcp": "no word",
}
_OPTION = re.compile("--?[a-zA-Z][a-zA-Z_-]{0,30}(=|$)")
_QUOTED = re.compile("['\"]")


class _Parser(argparse.ArgumentParser):
    """Refuses as everything else here does: with `InvalidRequest`, which repeats no word of the caller's but the name of an
    option: it may be a path, or what somebody said."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        try:
            return super().parse_known_args(args, namespace)
        except argparse.ArgumentError as problem:
            if problem.argument_name == _COMMAND:
                self.error(f"there is no such command; {_COMMAND} is one of {', '.join(_WORDS)}")
            about = f"{problem.argument_name}: " if problem.argument_name else ""
            # The one message that quotes is of a value for an option that takes none.
            self.error(about + ("it takes no value" if _QUOTED.search(problem.message) else problem.message))

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        options, left = self.parse_known_args(args, namespace)
        unknown = [word.partition("=")[0] for word in left if _OPTION.match(word)]
        command = options.command
        if unknown:
            self._refuse(f"{self.prog} {command}", f"{command} has no option {unknown[0]}")
        if left:
            many = "1 word" if len(left) == 1 else f"{len(left)} words"
            self._refuse(
                f"{self.prog} {command}", f"{many} too many: {command} takes {_WORDS[command]} beside its options"
            )
        return options

    def error(self, message: str) -> NoReturn:
        self._refuse(self.prog, message)

    @staticmethod
    def _refuse(command: str, message: str) -> NoReturn:
        raise InvalidRequest(message, hint=f"See `{command} --help`; what begins with a hyphen goes after `--`.")


class _Version(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *rest: object) -> NoReturn:
        from importlib.metadata import version

        print(version("harness-session-history"))
        raise SystemExit(0)


def make_parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog=PROGRAM,
        description="Search and re-read past sessions.",
        allow_abbrev=False,
        exit_on_error=False,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="show the version and exit")
    _add_settings(parser, first=True)
    commands = parser.add_subparsers(dest="command", required=True, metavar=_COMMAND)

    def command(name: str, words: str) -> argparse.ArgumentParser:
        made = commands.add_parser(name, help=words, description=words, allow_abbrev=False, exit_on_error=False)
        _add_settings(made, first=False)
        return made

    _add_operation(command("search", "Find entries that hold every word of QUERY."), "search")
    _add_operation(command("list", "List sessions, latest activity first."), "list")
    _add_operation(command("open", "Show one entry of a session with its neighbours."), "open")
    refresh = command("refresh", "Bring the index up to date with the transcripts.")
    refresh.add_argument("--session-id", metavar="ID", help="only this session")
    maintain = command("maintain", "Do the background maintenance here and now.")
    maintain.add_argument("--watch", action="store_true", help="go on as transcripts change")
    doctor = command("doctor", "Say what state roots and index are in, and what to do.")
    doctor.add_argument("--session", metavar="ID", help="why is this session not found?")
    doctor.add_argument("--entry", metavar="ID", help="why is this entry of it not found?")
    tools = command("tools", "Print the tools for recalling one's own conversation, as JSON, or call one of them.")
    tools.add_argument("tool", nargs="?", metavar="NAME", help="the tool to call, for the conversation of --current")
    tools.add_argument(
        "arguments", nargs="?", default="{}", metavar="JSON", help="its arguments as one JSON object, or - for stdin"
    )
    mcp = command("mcp", "Serve the tools to a Model Context Protocol client over standard input and output.")
    mcp.add_argument("--print-config", metavar="CLIENT", help="print what to paste into this client, and end")
    return parser


def _add_settings(parser: argparse.ArgumentParser, *, first: bool) -> None:
    """The options that go before or after the command. Only before it do they have a default, lest the second parser
    undo what the first one read; roots before and after the command add up."""
    kept: Any = None if first else argparse.SUPPRESS
    off: Any = False if first else argparse.SUPPRESS
    group = parser.add_argument_group("settings")
    group.add_argument(
        "--root",
        dest="first_roots" if first else "root",
        action="append",
        default=[],
        metavar="DIR",
        help="a folder of sessions (repeatable)",
    )
    group.add_argument("--index", default=kept, metavar="FILE", help="the index file")
    group.add_argument("--current", default=kept, metavar="ID", help="the calling session, which is left out")
    group.add_argument("--registry", default=kept, metavar="FILE", help="JSON Lines that know more of sessions")
    group.add_argument("--no-maintenance", default=off, action="store_true", help="start nothing in the background")
    group.add_argument(
        "--format",
        choices=FORMATS,
        default=kept,
        help="cards for a person, text for a model, or one JSON document (default: cards on a terminal, else text)",
    )
    group.add_argument("--json", dest="format", action="store_const", const="json", default=kept, help="--format json")


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
    given = [("root", root) for root in [*options.first_roots, *options.root]]
    given += [(name, getattr(options, name)) for name in ("index", "current", "registry")]
    words = [
        word
        for name, value in given
        if value is not None
        for word in (
            f"--{name}",
            os.path.abspath(os.path.expanduser(value)) if absolute and name != "current" else value,
        )
    ]
    return words + (["--no-maintenance"] if options.no_maintenance else [])


def _add_operation(parser: argparse.ArgumentParser, operation: str) -> None:
    for argument in ARGUMENTS.values():
        if operation not in argument.operations or argument.name == "operation":
            continue
        if argument.name in _POSITIONAL[operation]:
            many: Any = {"query": {"nargs": "+"}, "entry_id": {"nargs": "?", "default": argparse.SUPPRESS}}.get(
                argument.name, {}
            )
            metavar = argument.name.removesuffix("_id").upper()
            parser.add_argument(argument.name, metavar=metavar, help=argument.bound, **many)
        elif argument.type == "boolean":
            parser.add_argument(argument.option, action="store_true", default=argparse.SUPPRESS, help=argument.meaning)
        else:
            parser.add_argument(
                argument.option,
                default=argparse.SUPPRESS,
                metavar=_metavar(argument),
                help=_help(argument),
                **_reader(argument),
            )


def _metavar(argument: Argument) -> str:
    if argument.type == "choice":
        return "{" + ",".join(argument.choices) + "}"
    if argument.type == "roles":
        return ",".join(argument.choices)
    return {"integer": "N", "time": "TIME"}.get(argument.type or "", "ID" if argument.name.endswith("_id") else "DIR")


def _help(argument: Argument) -> str:
    default = ",".join(argument.default) if isinstance(argument.default, tuple) else argument.default
    known = "" if argument.type in ("choice", "roles", "string") else f"; {argument.bound}"
    return argument.meaning + known + ("" if default is None else f" (default: {default})")


def _reader(argument: Argument) -> dict[str, Any]:
    if argument.type == "roles":
        return {"type": lambda words: words.split(","), "action": "extend"}
    return {"type": _integer} if argument.type == "integer" else {}


def _integer(word: str) -> int | str:
    """The number, or the word itself, which the request then refuses in its own words."""
    digits = word.removeprefix("-")
    return int(word) if digits.isascii() and digits.isdigit() and len(digits) < 20 else word


def arguments_of(options: argparse.Namespace) -> dict[str, Any] | None:
    """What was given for search, list or open; None for another command."""
    if options.command not in _POSITIONAL:
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
