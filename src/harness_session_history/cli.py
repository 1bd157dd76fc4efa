"""The shell: ``session-history search|list|open|refresh|maintain|doctor|tools|mcp``.

Data goes to standard output, diagnostics and progress to standard error. Exit status: 0 answered, 2 invalid request,
3 not found or citation unavailable, 4 refresh incomplete, 5 index unavailable, 130 interrupted, 1 anything else, also where
the doctor found something broken (contract: shell).
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from .errors import (
    EntryNotVisible,
    IndexUnavailable,
    InvalidRequest,
    RefreshIncomplete,
    SessionHistoryError,
    SessionNotFound,
)
from .options import arguments_of, check_arguments, in_words_of_the_shell, parse, program, settings_of
from .streams import OutputLost, complain, on_terminal, read_stdin, speak_utf8, write

if TYPE_CHECKING:
    from .display.progress import Progress
    from .history import SessionHistory
    from .response import Freshness


STATUS = {
    "invalid_request": 2,
    "session_not_found": 3,
    "entry_not_visible": 3,
    "citation_unavailable": 3,
    "refresh_incomplete": 4,
    "index_unavailable": 5,
}
INTERRUPTED = 130
_WIDTH = 100  # of cards that go elsewhere than to a terminal


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit status; never raises for anything a caller can cause."""
    words = list(sys.argv[1:] if argv is None else argv)
    speak_utf8()
    # Known before parsing, so that a usage error is answered in the form that was asked for.
    as_json = _asks_for_json(words[: words.index("--")] if "--" in words else words)
    try:
        try:
            return _run(words)
        except SessionHistoryError as error:
            with contextlib.suppress(OutputLost):  # that nobody reads it makes it no success
                _report(error, as_json)
            return STATUS.get(error.code, 1)
        except SystemExit:  # --help and --version have printed
            write("", end="")
            return 0
    except OutputLost as lost:
        return lost.status
    except KeyboardInterrupt:
        return INTERRUPTED


def _asks_for_json(words: list[str]) -> bool:
    return bool({"--json", "--format=json"} & set(words)) or "--format json" in " ".join(words)


def _run(words: list[str]) -> int:
    options = parse(words)
    if options.command == "tools" and options.tool is None:
        return _tools()
    if options.command == "mcp" and options.print_config is not None:
        return _print_config(options)
    arguments = arguments_of(options)
    if arguments is not None:
        check_arguments(arguments)  # refused before any file is looked at, the settings included
        return _ask(options, arguments)
    gc.enable()  # (see __main__): what follows may go on for long
    if options.command == "refresh":
        return _refresh(options)
    import asyncio

    return asyncio.run(_perform(options))


def _ask(options: argparse.Namespace, arguments: dict[str, Any]) -> int:
    history = _open_history(options)
    try:
        with _progress(patience=0.5) as progress:
            history.show_progress(progress)
            arguments = _completed(history, arguments)
            answer = history.ask(**arguments)
        _show_answer(answer, options, arguments)
    finally:
        history.close_now()
    return 0


def _completed(history: SessionHistory, arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments with a whole session id where a part of it was given, and with the last entry where `open` has none."""
    if "session_id" not in arguments:
        return arguments
    scope: dict[str, Any] = {
        name: arguments[name] for name in ("include_deleted", "include_current", "refresh") if name in arguments
    }
    session_id = _whole_id(history, arguments["session_id"], **scope)
    if arguments["operation"] != "open" or "entry_id" in arguments:
        return {**arguments, "session_id": session_id}
    scope |= {"kind": arguments["kind"]} if "kind" in arguments else {}
    (session,) = history.ask(operation="list", session_id=session_id, **scope)["results"] or [None]
    if session is None:
        raise SessionNotFound(
            "no session of this id is in scope",
            hint="list or search for it; include_deleted and include_current widen the scope",
        )
    if session["lastEntryId"] is None:
        raise EntryNotVisible("no entry of this session can be shown", hint="`session-history doctor` may say why.")
    return {**arguments, "session_id": session_id, "entry_id": session["lastEntryId"]}


_EVERYTHING = {"include_deleted": True, "include_current": True}


def _whole_id(history: SessionHistory, said: str, *, reading: bool = True, **scope: bool) -> str:
    """The id of the one session in scope that has this id or short id, or whose id begins so; `said` itself if none does.
    What is not indexed is looked for as well if `reading` is allowed."""
    refresh = scope.pop("refresh", False)
    found = history.session_ids(said, **scope)
    if not found and reading:
        history.ask(operation="list", limit=1, refresh=refresh, **scope)
        found = history.session_ids(said, **scope)
    if len(found) > 1:
        raise InvalidRequest(
            f"the ids of {len(found)} sessions begin so",
            hint="Write more of the id; `session-history list` shows all of it.",
        )
    return found[0] if found else said


def _refresh(options: argparse.Namespace) -> int:
    history = _open_history(options)
    try:
        with _progress() as progress:
            session_id = options.session_id and _whole_id(history, options.session_id, **_EVERYTHING)
            freshness = history.refresh_now(session_id=session_id, progress=progress)
        _require_complete(freshness)
        _show_freshness({"complete": True, "freshness": freshness}, options)
    finally:
        history.close_now()
    return 0


async def _perform(options: argparse.Namespace) -> int:
    async with _open_history(options) as history:
        if options.command == "maintain":
            if options.watch and sys.stderr.isatty():
                print("watching; Ctrl-C ends it", file=sys.stderr)
            with _progress() as progress:
                await history.maintain(watch=options.watch, progress=progress)
            _show_freshness(await history(operation="list", limit=1), options)
        elif options.command == "tools":
            await _call(history, options)
        elif options.command == "mcp":
            await _serve(history)
        else:
            from .doctor.diagnose import diagnose

            session_id = options.session_id
            with contextlib.suppress(IndexUnavailable):  # which is what the doctor is asked about
                session_id = session_id and _whole_id(history, session_id, reading=False, **_EVERYTHING)
            report = await diagnose(history, session_id, options.entry_id)
            _show_report(report, options)
            return int(any(problem["severity"] == "error" for problem in report["problems"]))
    return 0


def _open_history(options: argparse.Namespace) -> SessionHistory:
    from .history import SessionHistory

    switched: dict[str, Any] = {"maintenance": False} if options.no_maintenance else {}
    history = SessionHistory(
        roots=options.root or None,
        index=options.index,
        current_session_id=options.current,
        registry=options.registry,
        **switched,
    )
    if options.command != "mcp":
        # A command has no loop to keep free, and ends at once: work that it found goes on without it.
        history.stand_alone()
    return history


def _progress(patience: float = 0.0) -> Progress:
    from .display.progress import Progress

    return Progress(sys.stderr, patience=patience)


def _require_complete(freshness: Freshness) -> None:
    counts = cast(dict[str, int], dict(freshness["sources"]))
    lacking = [f"{counts[name]} {name}" for name in ("changed", "missing", "unavailable") if counts[name]]
    if lacking:
        raise RefreshIncomplete(
            f"not every session could be brought up to date: {', '.join(lacking)}",
            hint="Run it again; `session-history doctor` says what stands in the way.",
            details=counts,
        )


def _tools() -> int:
    from .recall.tools import history_tools

    tools = history_tools()
    _show([{"name": t.name, "description": t.description, "input_schema": t.input_schema} for t in tools])
    return 0


async def _call(history: SessionHistory, options: argparse.Namespace) -> None:
    """Calls one of the tools: its answer and what a model is given of it, or on a terminal the latter alone."""
    from .recall.adapters import decoded, named
    from .recall.tools import history_tools

    tool = named(history_tools(history=history), options.tool)
    result = await tool(**decoded(read_stdin() if options.arguments == "-" else options.arguments))
    # What is called with JSON answers with it, unless a person or the caller wants the text.
    if options.format == "json" or (options.format is None and not on_terminal()):
        _show({"result": result, "text": result.text})
    else:
        write(result.text)


def _print_config(options: argparse.Namespace) -> int:
    from importlib.util import find_spec

    from .recall.mcp_config import CLIENTS, configuration

    if options.print_config not in CLIENTS:
        raise InvalidRequest("there is no such client", hint=f"--print-config takes one of {', '.join(CLIENTS)}.")
    write(configuration(options.print_config, settings_of(options, absolute=True)))
    print(CLIENTS[options.print_config], file=sys.stderr)
    if find_spec("mcp") is None:
        complain("the server needs the Model Context Protocol SDK", _SDK)
    return 0


_SDK = "Install this package with its extra `mcp`: pip install '.[mcp]' in the project's folder."


async def _serve(history: SessionHistory) -> None:
    try:
        from .recall.mcp_server import serve
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("mcp"):
            raise
        raise InvalidRequest(
            "mcp needs the Model Context Protocol SDK",
            hint=_SDK,
        ) from error
    await serve(history)


def _format(options: argparse.Namespace) -> str:
    return options.format or ("cards" if on_terminal() else "text")


def _show_answer(answer: Any, options: argparse.Namespace, arguments: dict[str, Any]) -> None:
    form = _format(options)
    if form == "json":
        return _show(answer)
    from .display.commands import in_shell

    commands = in_shell(settings_of(options), arguments, program())
    if form == "text":
        from .display.text import render_text_for_model

        return write(render_text_for_model(answer, commands), end="")
    from shutil import get_terminal_size

    from .display.terminal import render_text

    width = get_terminal_size().columns if on_terminal() else _WIDTH
    shown = render_text(answer, color=_in_colour(), width=width, commands=commands, local=on_terminal())
    write(shown, end="")


def _show_report(report: dict[str, Any], options: argparse.Namespace) -> None:
    if _format(options) == "json":
        return _show(report)
    from .display.terminal import render_report

    write(render_report(report, color=_in_colour(), local=on_terminal()), end="")


def _in_colour() -> bool:
    return on_terminal() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _show_freshness(answer: dict[str, Any], options: argparse.Namespace) -> None:
    """How the index compares with the files now."""
    if _format(options) == "json":
        return _show(answer["freshness"])
    from .display import words

    state = words.freshness(answer, local=on_terminal())
    write(f"{state.label}: {state.text}")


def _show(data: Any) -> None:
    import json

    write(json.dumps(data, ensure_ascii=False))


def _report(error: SessionHistoryError, as_json: bool) -> None:
    hint = in_words_of_the_shell(error.hint)
    if as_json:
        _show({"error": {**error.as_dict(), "hint": hint}})
    else:
        complain(str(error), hint)
