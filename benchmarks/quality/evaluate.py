"""Asks every question of a history and reckons the figures.

The caller sees the results and, with fewer than five, `hints.nearest` up to five. A question is answered at place *n* when
the *n*-th of these cites an acceptable entry, in the session that wrote it first. Acceptable are the entries the question
wants and the questions whose opening shows these. Where it wants a session, any entry of it will do, and `hints.sessions`.
"""

from __future__ import annotations

import random
import re
import statistics
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .archive import Archive, Key

QUESTIONS = Path(__file__).with_name("questions")
HALVES = ("tuning", "held-out")
Ask = Callable[..., Awaitable[dict[str, Any]]]


@dataclass(frozen=True)
class Question:
    half: str
    kind: str
    archive: str
    query: str
    want: tuple[str, ...]


@dataclass(frozen=True)
class Outcome:
    """`place`: of the first acceptable entry in what the caller sees (1 = best), or None. `dead_end`: no result, nothing
    acceptable among the nearest, nor among the first five results of the suggestion. `ms`: how long the answer took."""

    question: Question
    place: int | None
    found: int
    dead_end: bool
    ms: float


def read_questions() -> list[Question]:
    rows = []
    for half in HALVES:
        for line in (QUESTIONS / f"{half}.tsv").read_text(encoding="utf-8").splitlines():
            kind, archive, query, want = line.split("\t")
            rows.append(Question(half, kind, archive, query, tuple(want.split())))
    return rows


def draw(archives: dict[str, Archive], count: int, seed: int) -> list[Question]:
    """Two or three words of one sentence of a hand-written entry each, in their order; `want` is that entry."""
    rng = random.Random(f"drawn {seed}")
    sentences = []
    for name, archive in archives.items():
        for (session, entry), said in archive.said.items():
            for sentence in re.split(r"[.;:?!]\s", said):
                words = list(dict.fromkeys(re.findall(r"[A-Za-zÀ-ÿЀ-ӿ]{4,}", sentence)))
                if len(words) >= 3:
                    sentences.append((name, f"{session}/{entry}", words))
    drawn = []
    for name, want, words in rng.choices(sentences, k=count):
        picked = sorted(rng.sample(range(len(words)), rng.choice((2, 3))))
        drawn.append(Question("drawn", f"{len(picked)} words", name, " ".join(words[n] for n in picked), (want,)))
    return drawn


def place(answer: dict[str, Any], wanted: set[Key]) -> int | None:
    hints = answer.get("hints") or {}
    results, nearest = answer["results"], hints.get("nearest") or []
    seen = [r["citation"] for r in results + nearest[: max(0, 5 - len(results))]]
    sessions = [s["sessionId"] for s in hints.get("sessions") or []]
    places = [n for n, c in enumerate(seen, 1) if {(c["sessionId"], c["entryId"]), (c["sessionId"], "")} & wanted]
    places += [n for n, s in enumerate(sessions, 1) if (s, "") in wanted]
    return min(places, default=None)


async def evaluate(ask: Ask, questions: Sequence[Question], wanted: Callable[[str], set[Key]]) -> list[Outcome]:
    outcomes = []
    for question in questions:
        accepted = set().union(*map(wanted, question.want))
        began = time.perf_counter()
        answer = await ask(operation="search", query=question.query, limit=10)
        ms = (time.perf_counter() - began) * 1000
        at, found = place(answer, accepted), len(answer["results"])
        dead_end = not found and at is None
        if dead_end and (suggestion := (answer.get("hints") or {}).get("suggestion")):
            suggested = await ask(operation="search", query=suggestion, limit=5)
            dead_end = place(suggested, accepted) is None
        outcomes.append(Outcome(question, at, found, dead_end, ms))
    return outcomes


def figures(outcomes: Sequence[Outcome]) -> dict[str, float]:
    """Shares of the questions (0 to 1), their number, and milliseconds."""
    times, count = sorted(o.ms for o in outcomes), len(outcomes)
    return {
        "questions": count,
        "recall@5": sum((o.place or 99) <= 5 for o in outcomes) / count,
        "first": sum(o.place == 1 for o in outcomes) / count,
        "MRR": statistics.fmean(1 / o.place if o.place else 0.0 for o in outcomes),
        "no result": sum(not o.found for o in outcomes) / count,
        "dead ends": sum(o.dead_end for o in outcomes) / count,
        "p50 ms": statistics.median(times),
        "p95 ms": times[int(0.95 * (count - 1))],
    }


def by_kind(outcomes: Sequence[Outcome]) -> dict[str, dict[str, float]]:
    kinds = dict.fromkeys(o.question.kind for o in outcomes)
    return {kind: figures([o for o in outcomes if o.question.kind == kind]) for kind in kinds} | {
        "all": figures(outcomes)
    }


def table(rows: dict[str, dict[str, float]]) -> str:
    """A Markdown table."""
    heads = list(rows["all"])
    lines = [f"| kind | {' | '.join(heads)} |", "|---" * (len(heads) + 1) + "|"]
    for kind, row in rows.items():
        forms = ("d" if h == "questions" else ".1f" if h.endswith("ms") else ".2f" for h in heads)
        lines.append(f"| {kind} | {' | '.join(f'{row[h]:{form}}' for h, form in zip(heads, forms, strict=True))} |")
    return "\n".join(lines)
