"""Prints the performance table: our figure, the baseline's in the same run, the ratio, peak memory.

    python -m benchmarks.run --scale smoke|100mb|1gb|10gb|million [--only NAME ...] [--json]

Archives are generated once and kept in the cache folder; every index is built anew. Figures are medians unless the row
says p99. Baselines: the raw limit (read, split and hash the same bytes), a bare FTS5 statement of the same query, `os.stat`
of the same files, a bare interpreter. Other tools are compared by `python -m benchmarks.peers`.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import statistics
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from .bare import BareIndex, indexing, read_split_hash, transcripts
from .generate import generate
from .measure import Row, number, percentile, table, task, watched

CACHE = Path(tempfile.gettempdir()) / "session-history-benchmarks"


@dataclass(frozen=True)
class Scale:
    """How large the archives are: the main one, the counts of tiny files, the single large sessions, and how often to measure."""

    archive: dict[str, Any]
    files: tuple[int, ...]
    large: int
    images: int
    rounds: int
    queries: int


SCALES = {
    "smoke": Scale({"size": 3_000_000, "sessions": 8}, (40,), 2_000_000, 2_000_000, 2, 3),
    "100mb": Scale({"size": 100_000_000, "sessions": 60}, (1_000,), 600_000_000, 147_000_000, 20, 30),
    "1gb": Scale({"size": 1_000_000_000}, (1_000, 10_000), 600_000_000, 147_000_000, 20, 30),
    "10gb": Scale({"size": 10_000_000_000}, (1_000, 10_000, 100_000), 600_000_000, 147_000_000, 10, 30),
    "million": Scale({"entries": 1_000_000, "sessions": 10_000}, (10_000,), 600_000_000, 147_000_000, 10, 30),
}


class Bench:
    """One run at one scale: archives from the cache, one index of the main archive shared by the experiments."""

    def __init__(self, scale: Scale, cache: Path, work: Path) -> None:
        self.scale, self.cache, self.work = scale, cache, work
        self._bare: BareIndex | None = None
        self._index: tuple[str, dict[str, Any], float] | None = None

    def archive(self, **recipe: Any) -> Path:
        """The sessions folder of a generated archive, made now unless the cache has it."""
        sources = b"".join((Path(__file__).parent / name).read_bytes() for name in ("generate.py", "vocabulary.py"))
        key = hashlib.sha256(sources + json.dumps(recipe, sort_keys=True).encode()).hexdigest()[:12]
        folder = self.cache / f"{recipe.get('shape', 'typical')}-{key}"
        if not (folder / "made.json").exists():
            shutil.rmtree(folder, ignore_errors=True)
            (folder / "made.json").write_text(json.dumps(asdict(generate(folder / "sessions", **recipe))))
        return folder / "sessions"

    @property
    def main(self) -> Path:
        return self.archive(**self.scale.archive)

    @property
    def made(self) -> dict[str, Any]:
        made: dict[str, Any] = json.loads((self.main.parent / "made.json").read_text())
        return made

    @property
    def bare(self) -> BareIndex:
        if self._bare is None:
            self._bare = BareIndex(self.main, self.work / "bare.sqlite3")
        return self._bare

    def new_index(self, name: str) -> str:
        folder = self.work / name
        folder.mkdir(mode=0o700)
        return str(folder / "history.sqlite3")

    def build(self, root: Path, name: str) -> tuple[str, dict[str, Any], float]:
        index = self.new_index(name)
        answer, peak = task("cold", root=str(root), index=index)
        return index, answer, peak

    @property
    def indexed(self) -> tuple[str, dict[str, Any], float]:
        """The main archive's index: its file, how the cold build went, and its peak memory."""
        if self._index is None:
            self._index = self.build(self.main, "main")
        return self._index


def cold(b: Bench) -> Iterable[Row]:
    made = b.made
    seconds, size = min(read_split_hash(b.main) for _ in range(2))
    _index, answer, peak = b.indexed
    what = f"cold index, {size / 1e6:,.0f} MB, {made['sessions']:,} sessions"
    yield Row(
        what,
        "MB/s",
        size / 1e6 / answer["seconds"],
        size / 1e6 / seconds,
        "read + split + SHA-256",
        peak,
        "≥ 400 MB/s, ≤ 300 MB",
        True,
    )
    yield Row(
        f"the same, time ({answer['calls']} refresh)", "s", answer["seconds"], seconds, "read + split + SHA-256", peak
    )
    yield Row("index size / indexed text", "%", 100 * answer["indexBytes"] / made["text_bytes"], target="≤ 80 %")
    yield Row("index size / archive", "%", 100 * answer["indexBytes"] / size, target="≤ 8 %")


def single(b: Bench) -> Iterable[Row]:
    for shape, size in (("one-large", b.scale.large), ("images", b.scale.images)):
        root = b.archive(shape=shape, size=size)
        seconds, size = min(read_split_hash(root) for _ in range(2))
        index, answer, peak = b.build(root, shape)
        yield Row(
            f"one session of {size / 1e6:,.0f} MB ({shape})",
            "s",
            answer["seconds"],
            seconds,
            "read + split + SHA-256",
            peak,
            "peak ≤ 100 MB",
        )
        if shape == "one-large":
            file = next(root.rglob("*.jsonl"))
            yield appended(b, root, index, file, "appended", f" to it ({size / 1e6:,.0f} MB)")


def unchanged(b: Bench) -> Iterable[Row]:
    for count in b.scale.files:
        root = b.archive(shape="many", sessions=count)
        index, built, _peak = b.build(root, f"many-{count}")
        answer, peak = task("unchanged", root=str(root), index=index, rounds=b.scale.rounds)
        yield Row(f"first index of {count:,} tiny files", "s", built["seconds"])
        yield Row(
            f"nothing changed, {count:,} files",
            "ms",
            answer["refresh"]["p50"],
            answer["stat"]["p50"],
            "os.stat of each file",
            peak,
            "≤ 1.3 ×",
        )
        yield Row(f"freshness in an answer (list), {count:,} files", "ms", answer["list"]["p50"], peak_mb=peak)


def append(b: Bench) -> Iterable[Row]:
    index = b.indexed[0]
    _id, _cwd, path = max(b.bare.sessions, key=lambda s: s[2].stat().st_size)
    query = b.bare.queries(b.scale.queries)["rare word"][0]
    yield appended(b, b.main, index, path, query)


def appended(b: Bench, root: Path, index: str, file: Path, query: str, where: str = "") -> Row:
    """A search with `refresh=True` after 1 KB was appended to one file, beside one with nothing new."""
    answer, peak = task("append", root=str(root), index=index, file=str(file), query=query, rounds=b.scale.rounds)
    return Row(
        f"search(refresh) after an append of 1 KB{where}",
        "ms",
        answer["appended"]["p50"],
        answer["unchanged"]["p50"],
        "the same, nothing changed",
        peak,
        "≤ 5 ms above",
    )


def search(b: Bench) -> Iterable[Row]:
    targets = {"rare word": "p50 ≤ 2 ms", "three ordinary words": "p50 ≤ 15 ms", "two-letter prefix": "≤ 250 ms"}
    kinds = b.bare.queries(b.scale.queries)
    cases = [
        {"name": kind, "calls": [{"operation": "search", "query": q} for q in queries]}
        for kind, queries in kinds.items()
    ]
    answer, peak = task("calls", root=str(b.main), index=b.indexed[0], cases=cases, rounds=max(2, b.scale.rounds // 2))
    for kind, queries in kinds.items():
        ours = answer["cases"][kind]
        bare = statistics.median([min(b.bare.ranked(q) for _ in range(2)) for q in queries])
        note = "" if ours["rankedAll"] else " (newest ranked)"
        yield Row(
            f"search, {kind}{note}", "ms", ours["p50"], bare, "bare FTS5, ORDER BY rank", peak, targets.get(kind, "")
        )
        yield Row(f"search, {kind}, p99", "ms", ours["p99"], target="" if kind == "two-letter prefix" else "≤ 60 ms")


def filters(b: Bench) -> Iterable[Row]:
    by_cwd = Counter(cwd for _id, cwd, _path in b.bare.sessions)
    largest = max(b.bare.sessions, key=lambda s: s[2].stat().st_size)
    about_100 = min(by_cwd, key=lambda cwd: abs(by_cwd[cwd] - 100))
    widest = max(by_cwd, key=lambda cwd: by_cwd[cwd])
    scopes: dict[str, dict[str, Any]] = {
        "no filter": {},
        "one session": {"session_id": largest[0]},
        f"{by_cwd[about_100]} sessions (cwd)": {"cwd": about_100},
        "one month": {"since": "2024-09-01", "until": "2024-10-01"},
        "role assistant": {"roles": ["assistant"]},
    }
    if by_cwd[widest] > by_cwd[about_100]:
        scopes[f"{by_cwd[widest]} sessions (widest cwd)"] = {"cwd": widest}
    kinds = b.bare.queries(max(1, b.scale.queries // 3))
    for kind in ("rare word", "three ordinary words", "stop word"):
        cases = [
            {"name": scope, "calls": [{"operation": "search", "query": q, **more} for q in kinds[kind]]}
            for scope, more in scopes.items()
        ]
        answer, peak = task(
            "calls", root=str(b.main), index=b.indexed[0], cases=cases, rounds=max(2, b.scale.rounds // 3)
        )
        plain = answer["cases"]["no filter"]["p50"]
        for scope in list(scopes)[1:]:
            yield Row(
                f"search, {kind}, {scope}",
                "ms",
                answer["cases"][scope]["p50"],
                plain,
                "the same, no filter",
                peak,
                "≤ 2 ×",
            )


def read(b: Bench) -> Iterable[Row]:
    queries = b.bare.queries(b.scale.queries)["rare word"][:10]
    found, _peak = task("citations", root=str(b.main), index=b.indexed[0], queries=queries)
    opens = [
        {"operation": "open", "session_id": c["sessionId"], "entry_id": c["entryId"]} for c in found["citations"][:50]
    ]
    cases = [{"name": "open", "calls": opens}, {"name": "list", "calls": [{"operation": "list"}]}]
    answer, peak = task(
        "calls", root=str(b.main), index=b.indexed[0], cases=[c for c in cases if c["calls"]], rounds=b.scale.rounds
    )
    for name, target in (("open", "p50 ≤ 1 ms"), ("list", "p50 ≤ 5 ms")):
        if name in answer["cases"]:
            yield Row(
                f"{name} (of 10)" if name == "list" else name,
                "ms",
                answer["cases"][name]["p50"],
                peak_mb=peak,
                target=target,
            )
            yield Row(f"{name}, p99", "ms", answer["cases"][name]["p99"])


def start(b: Bench) -> Iterable[Row]:
    query = b.bare.queries(b.scale.queries)["rare word"][0]
    env = os.environ | {
        "SESSION_HISTORY_ROOTS": str(b.main),
        "SESSION_HISTORY_INDEX": b.indexed[0],
        "SESSION_HISTORY_MAINTENANCE": "off",
    }
    commands = {
        "bare": ["-c", "pass"],
        "import": ["-c", "import harness_session_history as h; h.SessionHistory"],
        "shell": ["-m", "harness_session_history", "search", query, "--json"],
    }
    taken: dict[str, list[float]] = {name: [] for name in commands}
    peak = 0.0
    for _ in range(b.scale.rounds + 1):
        for name, arguments in commands.items():
            run = watched([sys.executable, *arguments], env=env, cwd=b.work)
            if run.status:
                raise RuntimeError(f"{name} ended with status {run.status}: {run.errors}")
            taken[name].append(run.seconds * 1000)
            peak = max(peak, run.peak_mb)
    middle = {name: percentile(samples[1:], 0.5) for name, samples in taken.items()}
    yield Row("import", "ms", middle["import"], middle["bare"], "bare interpreter", target="≤ 60 ms above")
    yield Row("shell: search --json", "ms", middle["shell"], middle["bare"], "bare interpreter", peak, "≤ 150 ms above")


def stall(b: Bench) -> Iterable[Row]:
    idle, _peak = task("idle")
    queries = b.bare.queries(b.scale.queries)
    cases = [
        {"name": "all", "calls": [{"operation": "search", "query": q} for some in queries.values() for q in some[:5]]}
    ]
    answer, _peak = task("calls", root=str(b.main), index=b.indexed[0], cases=cases, rounds=2)
    yield Row(
        "event loop, worst gap in a cold index",
        "ms",
        b.indexed[1]["stall"],
        idle["stall"],
        "an idle loop",
        target="≤ 5 ms",
    )
    yield Row(
        "event loop, worst gap in searches", "ms", answer["stall"], idle["stall"], "an idle loop", target="≤ 5 ms"
    )


def analysis(b: Bench) -> Iterable[Row]:
    """What the analysis of text and the stems cost beside SQLite's plain tokenizer, on Latin text."""
    plain, writing, everything = indexing(b.main)
    yield Row(
        "indexing Latin text: analysis and writing, one thread",
        "MB/s",
        everything,
        plain,
        "unicode61",
        target="≤ 1.25 ×",
    )
    yield Row("the same, analysis in the reading process", "MB/s", writing, plain, "unicode61", target="≤ 1.25 ×")


def steps(b: Bench) -> Iterable[Row]:
    """Where the processor's time of a cold index goes."""
    from .steps import of

    for step, seconds in of(b.main, b.new_index("steps")):
        yield Row(f"CPU time for 1 GB: {step}", "s", seconds)


EXPERIMENTS: dict[str, Callable[[Bench], Iterable[Row]]] = {
    f.__name__: f for f in (cold, single, unchanged, append, search, filters, read, start, stall, analysis, steps)
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.run", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--scale", choices=tuple(SCALES), default="100mb")
    parser.add_argument("--only", choices=tuple(EXPERIMENTS), nargs="+", default=list(EXPERIMENTS))
    parser.add_argument("--cache", type=Path, default=CACHE, help="where generated archives are kept")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    rows: list[Row] = []
    args.cache.mkdir(parents=True, exist_ok=True)
    # As of an installed package, what is started is compiled once and not at every start, whatever the environment says.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPYCACHEPREFIX"] = str(args.cache / "bytecode")
    with tempfile.TemporaryDirectory(prefix="run-", dir=args.cache) as work:
        bench = Bench(SCALES[args.scale], args.cache, Path(work))
        for name in args.only:
            print(f"{name} ...", file=sys.stderr, flush=True)
            rows.extend(EXPERIMENTS[name](bench))
        made = bench.made
        files = len(transcripts(bench.main))
    if args.json:
        print(
            json.dumps({"scale": args.scale, "archive": made, "rows": [asdict(r) | {"ratio": r.ratio} for r in rows]})
        )
        return
    mb, text = number(made["bytes"] / 1e6), number(made["text_bytes"] / 1e6)
    print(
        f"{mb} MB in {files:,} files, {made['entries']:,} entries, {made['text_entries']:,} with text ({text} MB); {os.cpu_count()} cores\n"
    )
    print(table(rows))


if __name__ == "__main__":
    main()
