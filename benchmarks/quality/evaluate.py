"""Runs every question through a history and reckons the figures.

A question is answered at place *n* when the *n*-th result cites an acceptable entry, in the session that wrote it first.
Acceptable are the entries the question wants and the questions those answer: opening one of these shows the answer.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .archive import Archive, Key

QUESTIONS = Path(__file__).with_name("questions.jsonl")
Ask = Callable[..., Awaitable[dict[str, Any]]]


@dataclass(frozen=True)
class Question:
    id: str
    kind: str
    query: str
    want: tuple[str, ...]
    arguments: dict[str, Any]


@dataclass(frozen=True)
class Outcome:
    """`place`: of the first acceptable result (1 = best), None when it is not among the results. `near`: the same in `hints.nearest`."""

    question: Question
    found: int
    place: int | None
    near: int | None

    @property
    def helped(self) -> int | None:
        """The place in what the caller sees: the results, or else the nearest entries."""
        return self.place if self.found else self.near

    @property
    def dead_end(self) -> bool:
        """Neither a result nor a useful nearest entry."""
        return not self.found and self.near is None


def read_questions() -> list[Question]:
    rows = [json.loads(line) for line in QUESTIONS.read_text(encoding="utf-8").splitlines()]
    return [Question(r["id"], r["kind"], r["query"], tuple(r["want"]), r.get("arguments", {})) for r in rows]


def place(results: Iterable[dict[str, Any]], wanted: set[Key]) -> int | None:
    cited = (r["citation"] for r in results)
    return next((n for n, c in enumerate(cited, 1) if (c["sessionId"], c["entryId"]) in wanted), None)


async def evaluate(ask: Ask, questions: Sequence[Question], archive: Archive) -> list[Outcome]:
    outcomes = []
    for question in questions:
        wanted = set().union(*(archive.acceptable(label) for label in question.want))
        answer = await ask(operation="search", query=question.query, limit=10, **question.arguments)
        nearest = (answer.get("hints") or {}).get("nearest") or []
        outcomes.append(
            Outcome(question, len(answer["results"]), place(answer["results"], wanted), place(nearest, wanted))
        )
    return outcomes


def figures(outcomes: Sequence[Outcome]) -> dict[str, float]:
    """Shares of the questions (0 to 1), and their number."""
    count = len(outcomes)

    def share(holds: Callable[[Outcome], bool]) -> float:
        return round(sum(map(holds, outcomes)) / count, 3)

    return {
        "questions": count,
        "recall@5": share(lambda o: o.place is not None and o.place <= 5),
        "recall@10": share(lambda o: o.place is not None and o.place <= 10),
        "MRR": round(statistics.fmean(1 / o.place if o.place else 0.0 for o in outcomes), 3),
        "no result": share(lambda o: not o.found),
        "helped@5": share(lambda o: o.helped is not None and o.helped <= 5),
        "dead ends": share(lambda o: o.dead_end),
    }


def by_kind(outcomes: Sequence[Outcome]) -> dict[str, dict[str, float]]:
    kinds = dict.fromkeys(o.question.kind for o in outcomes)
    return {kind: figures([o for o in outcomes if o.question.kind == kind]) for kind in kinds} | {
        "all": figures(outcomes)
    }


def table(rows: dict[str, dict[str, float]]) -> str:
    heads = list(next(iter(rows.values())))
    lines = [f"{'kind':12}" + "".join(f"{h:>11}" for h in heads)]
    for kind, row in rows.items():
        cells = (f"{row[h]:>11.0f}" if h == "questions" else f"{row[h]:>11.2f}" for h in heads)
        lines.append(f"{kind:12}" + "".join(cells))
    return "\n".join(lines)
