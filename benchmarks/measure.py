"""Measuring: percentiles, a table, and a child process whose peak memory is watched together with its children's."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
POLL_SECONDS = 0.05


@dataclass(frozen=True)
class Row:
    """One line of the table; the figures are in `unit`. `ratio` is ours to the baseline unless `inverse` (throughput)."""

    what: str
    unit: str
    ours: float
    baseline: float | None = None
    baseline_is: str = ""
    peak_mb: float | None = None
    target: str = ""
    inverse: bool = False

    @property
    def ratio(self) -> float | None:
        if not self.baseline or not self.ours:
            return None
        return self.baseline / self.ours if self.inverse else self.ours / self.baseline


def percentile(samples: Sequence[float], share: float) -> float:
    """The sample below which `share` of them lie (nearest rank)."""
    ordered = sorted(samples)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:,.1f}" if abs(value) >= 10 else f"{value:,.2f}"


HEADS = ("what", "ours", "baseline", "ratio", "peak MB", "target", "the baseline is")


def table(rows: Sequence[Row]) -> str:
    """The rows as a Markdown table with aligned columns."""
    cells = [HEADS]
    for r in rows:
        baseline = f"{number(r.baseline)} {r.unit}" if r.baseline is not None else "-"
        ours = f"{number(r.ours)} {r.unit}"
        cells.append(
            (r.what, ours, baseline, number(r.ratio), number(r.peak_mb), r.target or "-", r.baseline_is or "-")
        )
    widths = [max(len(row[n]) for row in cells) for n in range(len(HEADS))]
    lines = [
        "| " + " | ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)) + " |" for row in cells
    ]
    return "\n".join([lines[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|", *lines[1:]])


def _family(pid: int) -> list[int]:
    """The process and all below it, as far as they can be read."""
    found = [pid]
    for one in found:
        try:
            for task in os.listdir(f"/proc/{one}/task"):
                found.extend(map(int, Path(f"/proc/{one}/task/{task}/children").read_text().split()))
        except OSError:  # it ended meanwhile
            continue
    return found


def _resident(pid: int) -> int:
    """Bytes of memory, with all that is shared with other processes."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError):
        return 0


def _share(pid: int) -> int:
    """Bytes of memory; a page that several processes share counts for each of them in part, so that sums are right."""
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    except (OSError, IndexError):
        pass
    return _resident(pid)


class Peak(threading.Thread):
    """Polls the resident memory of a process and its children; `bytes` is the largest sum seen.

    Without /proc it stays 0.
    """

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self.pid, self.bytes, self.ended = pid, 0, threading.Event()

    def run(self) -> None:
        highest = 0
        while not self.ended.wait(POLL_SECONDS):
            family = _family(self.pid)
            resident = sum(map(_resident, family))
            if resident > highest:  # to ask for the shares takes the processes' time, so it is done at new peaks only
                highest = resident + (resident >> 7)
                self.bytes = max(self.bytes, sum(map(_share, family)))


@dataclass(frozen=True)
class Run:
    """How a watched command ended. Times in seconds, memory in MB."""

    seconds: float
    peak_mb: float
    status: int
    output: str
    errors: str


def watched(
    command: Sequence[str], *, env: dict[str, str] | None = None, timeout: float = 900, cwd: Path = ROOT
) -> Run:
    """Runs a command to its end (or kills it after `timeout`), with the clock running and its memory watched."""
    begun = time.perf_counter()
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, env=env, cwd=cwd
    )
    peak = Peak(process.pid)
    peak.start()
    try:
        output, errors = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        process.kill()
        output, errors = process.communicate()
    seconds = time.perf_counter() - begun
    peak.ended.set()
    peak.join()
    return Run(
        seconds, peak.bytes / 1e6, process.returncode, output.decode(errors="replace"), errors.decode(errors="replace")
    )


def task(name: str, **arguments: Any) -> tuple[dict[str, Any], float]:
    """Runs a task of `benchmarks.tasks` in a fresh interpreter; returns its answer and the peak memory in MB."""
    run = watched([sys.executable, "-m", "benchmarks.tasks", name, json.dumps(arguments)])
    if run.status:
        raise RuntimeError(f"task {name} ended with status {run.status}\n{run.errors}")
    answer: dict[str, Any] = json.loads(run.output.splitlines()[-1])
    return answer, max(run.peak_mb, float(answer.pop("ownPeakMB", 0.0)))
