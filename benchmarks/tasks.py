"""What is measured of this package, each task in an interpreter of its own: `python -m benchmarks.tasks NAME JSON`.

A task prints one JSON object. Times are milliseconds unless the name says seconds. Every task keeps a heartbeat in its
event loop and reports its longest gap (`stall`).
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import Any, Self

from harness_session_history import RefreshIncomplete, SessionHistory

from .bare import transcripts
from .measure import percentile

BEAT = 0.001
Answer = dict[str, Any]


class Heartbeat:
    """A task that only wants to run every millisecond; `stall` is by how much it came late at worst, in ms."""

    def __init__(self) -> None:
        self.stall = 0.0

    async def beat(self) -> None:
        last = time.perf_counter()
        while True:
            await asyncio.sleep(BEAT)
            now = time.perf_counter()
            self.stall = max(self.stall, (now - last - BEAT) * 1000)
            last = now

    async def __aenter__(self) -> Self:
        self.task = asyncio.create_task(self.beat())
        return self

    async def __aexit__(self, *error: object) -> None:
        self.task.cancel()


def history(root: str, index: str) -> SessionHistory:
    return SessionHistory(roots=[Path(root)], index=Path(index), maintenance=False)


async def clocked(call: Callable[[], Coroutine[Any, Any, Any]]) -> tuple[float, Any]:
    begun = time.perf_counter()
    answer = await call()
    return (time.perf_counter() - begun) * 1000, answer


def add_line(path: Path, line: bytes) -> None:
    with path.open("ab") as out:
        out.write(line + b"\n")


def last_id(path: Path) -> str:
    """The id of a transcript's last entry."""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - 1_000_000))
        return str(json.loads(file.read().rstrip(b"\n").rpartition(b"\n")[2])["id"])


def spread(samples: list[float]) -> Answer:
    return {"p50": percentile(samples, 0.5), "p99": percentile(samples, 0.99), "max": max(samples), "n": len(samples)}


async def cold(root: str, index: str) -> Answer:
    """Everything indexed from nothing, by as many `refresh` calls as it takes."""
    begun, calls = time.perf_counter(), 0
    async with Heartbeat() as heart, history(root, index) as ours:
        while True:
            calls += 1
            try:
                answer = await ours(operation="list", limit=1, refresh=True)
                break
            except RefreshIncomplete:
                if calls == 60:
                    raise
        seconds = time.perf_counter() - begun
    size = sum(f.stat().st_size for f in Path(index).parent.iterdir() if f.is_file())
    return {
        "seconds": seconds,
        "calls": calls,
        "stall": heart.stall,
        "indexBytes": size,
        "complete": answer["complete"],
    }


async def unchanged(root: str, index: str, rounds: int) -> Answer:
    """A refresh that finds nothing new and one `os.stat` of each file, in turn; then lists that have to look anew."""
    paths, refreshed, stats = [str(p) for p in transcripts(Path(root))], [], []
    async with Heartbeat() as heart, history(root, index) as ours:
        for _ in range(rounds + 1):
            taken, _answer = await clocked(partial(ours, operation="list", limit=1, refresh=True))
            refreshed.append(taken)
            begun = time.perf_counter()
            for path in paths:
                os.stat(path)
            stats.append((time.perf_counter() - begun) * 1000)
        looked = []
        for _ in range(2):
            await asyncio.sleep(2.1)  # what was seen before is no longer believed
            taken, _answer = await clocked(partial(ours, operation="list", limit=1))
            looked.append(taken)
    return {
        "refresh": spread(refreshed[1:]),
        "stat": spread(stats[1:]),
        "list": spread(looked),
        "stall": heart.stall,
        "files": len(paths),
    }


async def append(root: str, index: str, file: str, query: str, rounds: int) -> Answer:
    """Search with `refresh=True` with nothing new, and after one entry of 1 KB was appended. The file is cut back after."""
    path, still, after = Path(file), [], []
    size = path.stat().st_size
    last = last_id(path)
    body = {"role": "user", "content": [{"type": "text", "text": f"{query} " * (1000 // (len(query) + 1))}]}
    try:
        async with Heartbeat() as heart, history(root, index) as ours:
            for n in range(rounds + 1):
                taken, _answer = await clocked(partial(ours, operation="search", query=query, refresh=True))
                still.append(taken)
                parent, last = last, f"fffff{n:03x}"
                entry = {
                    "type": "message",
                    "id": last,
                    "parentId": parent,
                    "timestamp": "2026-01-01T00:00:00.000Z",
                    "message": body,
                }
                add_line(path, json.dumps(entry).encode())
                taken, _answer = await clocked(partial(ours, operation="search", query=query, refresh=True))
                after.append(taken)
    finally:
        os.truncate(path, size)
    async with history(root, index) as ours:
        await ours(operation="list", limit=1, refresh=True)  # so that the index is that of the file again
    return {"unchanged": spread(still[1:]), "appended": spread(after[1:]), "stall": heart.stall}


async def calls(root: str, index: str, cases: list[dict[str, Any]], rounds: int) -> Answer:
    """Each case is a name and a list of argument sets; every set runs once to warm up and then `rounds` times."""
    told: Answer = {}
    async with Heartbeat() as heart, history(root, index) as ours:
        for case in cases:
            samples, hits, all_ranked = [], 0, True
            for arguments in case["calls"]:
                try:
                    for n in range(rounds + 1):
                        taken, answer = await clocked(partial(ours, **arguments))
                        if n:
                            samples.append(taken)
                except Exception as error:
                    error.add_note(f"{case['name']}: {arguments}")
                    raise
                hits += len(answer.get("results", answer.get("messages", ())))
                all_ranked = all_ranked and answer.get("rankedAll", True)
            told[case["name"]] = spread(samples) | {"hits": hits, "rankedAll": all_ranked}
    return {"cases": told, "stall": heart.stall}


async def citations(root: str, index: str, queries: list[str]) -> Answer:
    """Citations to open: those of the best results of some queries."""
    async with history(root, index) as ours:
        answers = [await ours(operation="search", query=query) for query in queries]
    return {"citations": [hit["citation"] for answer in answers for hit in answer["results"]]}


async def idle() -> Answer:
    """The heartbeat with nothing to do: what the machine itself adds to `stall`."""
    async with Heartbeat() as heart:
        await asyncio.sleep(1)
    return {"stall": heart.stall}


TASKS: dict[str, Callable[..., Coroutine[Any, Any, Answer]]] = {
    t.__name__: t for t in (cold, unchanged, append, calls, citations, idle)
}


def own_peak_mb() -> float:
    """The kernel's own high-water mark. (`ru_maxrss` starts at what the parent process held, so it is second choice.)"""
    try:
        status = Path("/proc/self/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) / 1e3
    except (OSError, IndexError):
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3)


def main() -> None:
    answer = asyncio.run(TASKS[sys.argv[1]](**json.loads(sys.argv[2])))
    print(json.dumps(answer | {"ownPeakMB": own_peak_mb()}))


if __name__ == "__main__":
    main()
