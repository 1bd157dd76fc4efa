"""Other tools over the same files: each installed from PyPI into its own environment and used as its documentation says.

    python -m benchmarks.peers [--bytes 100MB] [--sessions 60] [--only NAME ...] [--python PATH ...] [--json]

Each tool gets a temporary home whose `.pi/agent/sessions` is one generated archive, indexes it from nothing, and answers a
few searches from its command line. All figures are whole processes, start of the interpreter included. A tool that cannot
be run here is listed with the reason.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from .bare import BareIndex
from .generate import generate, parse_size
from .measure import percentile, watched

CACHE = Path(tempfile.gettempdir()) / "session-history-peers"
INSTALL_SECONDS = 300
TOOL_SECONDS = 600
ROUNDS = 5
LONG_SECONDS = 10


@dataclass(frozen=True)
class Tool:
    """One tool. In the commands `{bin}` is its environment's folder of programs and `{q}` the query."""

    name: str
    requirement: str
    python: tuple[int, int]
    index: Sequence[str]
    search: Sequence[str]
    indexes: str
    stored: Sequence[str]  # what it keeps below the home
    api: str = ""  # a script for its documented Python interface: reads queries from argv, prints milliseconds
    pre: bool = False


AISE_API = """
import sys, time
import ai_session_search as aise
search = aise.SessionSearch()
for query in sys.argv[1:]:
    begun = time.perf_counter()
    search.search_messages(query, aise.MessageSearchRequest(limit=10))
    print((time.perf_counter() - begun) * 1000)
"""
PEERS = (
    Tool(
        "fast-resume (fr, Rust)",
        "fast-resume",
        (3, 9),
        ("{bin}/fr", "--rebuild", "--json", "--limit", "1", "{q}"),
        ("{bin}/fr", "--json", "--limit", "10", "--no-refresh", "{q}"),
        "user and assistant text; finds sessions, not entries",
        (".cache/fast-resume",),
    ),
    Tool(
        "mnemo-search (mnemo, Python)",
        "mnemo-search",
        (3, 7),
        ("{bin}/mnemo", "index"),
        ("{bin}/mnemo", "search", "{q}", "--json", "--limit", "10", "--no-sync"),
        "all text, tool calls and results; also copies every file",
        (".mnemo",),
    ),
    Tool(
        "ai-session-search (aise, Rust)",
        "ai-session-search",
        (3, 12),
        ("{bin}/aise", "--skip-release-notification", "reindex"),
        (
            "{bin}/aise",
            "--skip-release-notification",
            "--index-refresh",
            "existing-only",
            "search",
            "{q}",
            "--limit",
            "10",
            "--format",
            "json",
        ),
        "all text, tool calls and results; three words are one literal string to its Python interface",
        (".local/share/ai-session-search", ".cache/ai-session-search"),
        api=AISE_API,
        pre=True,  # only release candidates are published
    ),
    Tool(
        "agentgrep (Python)",
        "agentgrep",
        (3, 14),
        (),
        ("{bin}/agentgrep", "search", "{q}", "--exhaustive", "--scope", "all", "--json"),
        "no index: reads the files at each search",
        (),
        pre=True,
    ),
)


@dataclass
class Figures:
    """What one tool did. Times of whole processes; `api_ms` inside a Python process that is already running."""

    name: str
    version: str = ""
    index_seconds: float | None = None
    index_mb: float | None = None
    peak_mb: float | None = None
    search_ms: float | None = None
    api_ms: dict[str, float] = field(default_factory=dict)
    indexes: str = ""
    trouble: str = ""


class CannotRun(Exception):
    """Why a tool gave no figures."""


def interpreters(extra: Sequence[Path]) -> dict[tuple[int, int], Path]:
    """The Python interpreters that can be found, by version: this one, on PATH, under pyenv, and those named."""
    candidates = [Path(sys.executable), *extra, *sorted(Path.home().glob(".pyenv/versions/3.*/bin/python"))]
    candidates += [Path(found) for minor in range(9, 20) if (found := shutil.which(f"python3.{minor}"))]
    known: dict[tuple[int, int], Path] = {}
    for candidate in candidates:
        run = subprocess.run(
            [candidate, "-c", "import sys; print(*sys.version_info[:2])"],
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
        if run.returncode == 0:
            major, minor = run.stdout.split()
            known.setdefault((int(major), int(minor)), candidate)
    return known


def environment(tool: Tool, known: dict[tuple[int, int], Path], cache: Path) -> tuple[Path, str]:
    """The folder of programs of the tool's own environment (made with the newest fitting Python if missing), and the tool's version."""
    fit = sorted(version for version in known if version >= tool.python)
    if not fit:
        raise CannotRun(f"needs Python {tool.python[0]}.{tool.python[1]} or newer, which is not on this machine")
    folder = cache / tool.requirement
    programs = folder / ("Scripts" if os.name == "nt" else "bin")
    if not (folder / "installed").exists():
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run([known[fit[-1]], "-m", "venv", folder], check=True, timeout=120)
        pip = [
            str(programs / "python"),
            "-m",
            "pip",
            "install",
            "-q",
            *(["--pre"] if tool.pre else []),
            tool.requirement,
        ]
        run = subprocess.run(pip, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False)
        if run.returncode:
            raise CannotRun(f"pip install failed: {run.stderr.strip().splitlines()[-1]}")
        (folder / "installed").touch()
    ask = f"import importlib.metadata as m; print(m.version({tool.requirement!r}))"
    return programs, subprocess.run(
        [programs / "python", "-c", ask], capture_output=True, text=True, timeout=30, check=False
    ).stdout.strip()


def new_home(work: Path, name: str, archive: Path) -> Path:
    """A home that holds only the archive, as links to its folders' files so that nothing is copied."""
    home = work / name
    shutil.copytree(archive, home / ".pi" / "agent" / "sessions", copy_function=os.link)
    return home


def clean_environment(home: Path, **more: str) -> dict[str, str]:
    """Nothing of the caller's settings but the search path."""
    return {"PATH": os.environ.get("PATH", ""), "HOME": str(home), "LANG": "C.UTF-8", "TERM": "dumb", **more}


def stored_mb(home: Path, places: Sequence[str]) -> float:
    files = (f for place in places for f in (home / place).rglob("*") if f.is_file())
    return sum(f.stat().st_size for f in files) / 1e6


def command(parts: Sequence[str], programs: Path, query: str) -> list[str]:
    return [part.format(bin=programs, q=query) for part in parts]


def timed(parts: Sequence[str], env: dict[str, str], home: Path) -> tuple[float, float]:
    """Milliseconds and peak MB of one command, which must succeed."""
    run = watched(parts, env=env, timeout=TOOL_SECONDS, cwd=home)
    if run.status:
        tail = (run.errors or run.output).strip().splitlines()[-1:] or ["no message"]
        raise CannotRun(
            f"`{' '.join(map(str, parts[1:3]))}` ended with status {run.status} after {run.seconds:.1f} s: {tail[0][:200]}"
        )
    return run.seconds * 1000, run.peak_mb


def cold(parts: Sequence[str], env: dict[str, str], home: Path, places: Sequence[str]) -> tuple[float, float]:
    """Seconds (median) and peak MB of indexing from nothing: up to three times, fewer when once takes long."""
    taken: list[float] = []
    peak = 0.0
    while len(taken) < 3 and sum(taken) < LONG_SECONDS:
        for place in places:
            shutil.rmtree(home / place, ignore_errors=True)
        milliseconds, held = timed(parts, env, home)
        taken.append(milliseconds / 1000)
        peak = max(peak, held)
    return percentile(taken, 0.5), peak


def measure(
    tool: Tool, known: dict[tuple[int, int], Path], cache: Path, work: Path, archive: Path, queries: dict[str, str]
) -> Figures:
    told = Figures(tool.name, indexes=tool.indexes)
    try:
        programs, told.version = environment(tool, known, cache)
        home = new_home(work, tool.requirement, archive)
        env = clean_environment(home)
        if tool.index:
            parts = command(tool.index, programs, next(iter(queries.values())))
            told.index_seconds, told.peak_mb = cold(parts, env, home, tool.stored)
            told.index_mb = stored_mb(home, tool.stored)
        samples = [
            timed(command(tool.search, programs, q), env, home)[0] for q in queries.values() for _ in range(ROUNDS)
        ]
        told.search_ms = percentile(samples, 0.5)
        if tool.api:
            script = [str(programs / "python"), "-c", tool.api, *queries.values(), *queries.values()]
            run = watched(script, env=env, timeout=TOOL_SECONDS, cwd=home)
            if run.status:
                raise CannotRun(f"its Python interface failed: {run.errors.strip().splitlines()[-1][:200]}")
            second = run.output.split()[len(queries) :]
            told.api_ms = {kind: float(ms) for kind, ms in zip(queries, second, strict=True)}
    except (CannotRun, subprocess.SubprocessError, OSError) as error:
        told.trouble = f"not run: {error}" if told.index_seconds is None else f"in part: {error}"
    return told


def ourselves(work: Path, archive: Path, queries: dict[str, str]) -> Figures:
    """This package, from its command line in the same kind of home, and inside a running process."""
    from importlib.metadata import version

    from .measure import task

    told = Figures(
        "harness-session-history (Python)",
        version("harness-session-history"),
        indexes="user and assistant text, with branches and verified spans",
    )
    home = new_home(work, "ourselves", archive)
    index = home / "index"
    env = clean_environment(
        home, SESSION_HISTORY_INDEX=str(index / "history.sqlite3"), SESSION_HISTORY_MAINTENANCE="off"
    )
    shell = [sys.executable, "-m", "harness_session_history"]
    try:
        told.index_seconds, told.peak_mb = cold([*shell, "refresh"], env, home, ("index",))
        told.index_mb = stored_mb(home, ("index",))
        told.search_ms = percentile(
            [timed([*shell, "search", q, "--json"], env, home)[0] for q in queries.values() for _ in range(ROUNDS)], 0.5
        )
        cases = [{"name": kind, "calls": [{"operation": "search", "query": q}]} for kind, q in queries.items()]
        apart = home / "apart"
        apart.mkdir(mode=0o700)
        root = str(home / ".pi" / "agent" / "sessions")
        task("cold", root=root, index=str(apart / "history.sqlite3"))
        answer, _peak = task("calls", root=root, index=str(apart / "history.sqlite3"), cases=cases, rounds=ROUNDS)
        told.api_ms = {kind: answer["cases"][kind]["p50"] for kind in queries}
    except (CannotRun, RuntimeError) as error:
        told.trouble = str(error)
    return told


def report(all_told: Sequence[Figures]) -> str:
    def cell(value: float | None, places: int = 0) -> str:
        return "-" if value is None else f"{value:,.{places}f}"

    ours = all_told[0]
    lines = [
        "| tool | version | cold index s | ours is | index MB | peak MB | shell search ms | in process ms | indexes |",
        "|---" * 9 + "|",
    ]
    for t in all_told:
        faster = "-"
        if t is not ours and t.index_seconds and ours.index_seconds:
            faster = f"{t.index_seconds / ours.index_seconds:.1f} x as fast"
        api = ", ".join(f"{kind} {ms:.1f}" for kind, ms in t.api_ms.items()) or "-"
        figures = (
            cell(t.index_seconds, 2),
            faster,
            cell(t.index_mb),
            cell(t.peak_mb),
            cell(t.search_ms),
            api,
            t.indexes,
        )
        lines.append(f"| {t.name} | {t.version or '-'} | {' | '.join(figures)} |")
    lines += [f"\n{t.name}: {t.trouble}" for t in all_told if t.trouble]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--bytes", type=parse_size, default=100_000_000)
    parser.add_argument("--sessions", type=int, default=60)
    parser.add_argument(
        "--only", nargs="+", choices=[t.requirement for t in PEERS], default=[t.requirement for t in PEERS]
    )
    parser.add_argument(
        "--python", type=Path, nargs="*", default=[], help="further interpreters for tools that need another version"
    )
    parser.add_argument("--cache", type=Path, default=CACHE, help="where the tools' environments are kept")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    args.cache.mkdir(parents=True, exist_ok=True)
    known = interpreters(args.python)
    with tempfile.TemporaryDirectory(prefix="run-", dir=args.cache) as folder:
        work = Path(folder)
        made = generate(work / "archive", size=args.bytes, sessions=args.sessions)
        picked = BareIndex(work / "archive", work / "bare.sqlite3").queries(3)
        queries = {"rare": picked["rare word"][0], "three words": picked["three ordinary words"][0], "common": "the"}
        all_told = [ourselves(work, work / "archive", queries)]
        for tool in PEERS:
            if tool.requirement in args.only:
                print(f"{tool.name} ...", file=sys.stderr, flush=True)
                all_told.append(measure(tool, known, args.cache, work, work / "archive", queries))
    if args.json:
        print(json.dumps({"archive": asdict(made), "queries": queries, "tools": [asdict(t) for t in all_told]}))
        return
    print(
        f"{made.bytes / 1e6:,.0f} MB in {made.sessions} sessions; queries: {', '.join(f'{k}: {q}' for k, q in queries.items())}\n"
    )
    print(report(all_told))


if __name__ == "__main__":
    main()
