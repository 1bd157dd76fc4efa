"""Prints the search evaluation as Markdown tables: one for each half of the questions, one for the drawn queries.

What a question of the held-out half missed is never printed: who tunes the ranking is not to see it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
from collections.abc import Callable
from pathlib import Path

from harness_session_history import SessionHistory

from .archive import ROUTINE, Key, build, cited
from .evaluate import HALVES, Outcome, Question, by_kind, draw, evaluate, read_questions, table


async def ask_all(
    root: Path, index: Path, questions: list[Question], wanted: Callable[[str], set[Key]]
) -> list[Outcome]:
    index.mkdir(mode=0o700)
    async with SessionHistory(roots=[root], index=index / "history.sqlite3", maintenance=False) as history:
        await history(operation="list", limit=1, refresh=True)
        return await evaluate(history, questions, wanted)


async def run(folder: Path, args: argparse.Namespace) -> tuple[str, list[Outcome]]:
    """What was built, in words, and every outcome; those of `--extra` last."""
    share = 0.1 if args.smoke else 1.0
    archives = {name: build(folder / name, name, args.seed, share) for name in ROUTINE}
    asked = [q for q in read_questions() if args.half in (q.half, "both")][:: 10 if args.smoke else 1]
    drawn = draw(archives, 20 if args.smoke else args.drawn, args.seed)
    outcomes: list[Outcome] = []
    for name, archive in archives.items():
        index = folder / f"index of {name}"
        mine = [q for q in asked + drawn if q.archive == name]
        outcomes += await ask_all(archive.root, index, mine, archive.acceptable)
    if args.extra:
        extra = json.loads(args.extra.read_text(encoding="utf-8"))
        for name, root in extra["archives"].items():
            rows = (q for q in extra["questions"] if q["archive"] == name and args.half in (q["half"], "both"))
            more = [Question(f"extra, {q['half']}", q["kind"], name, q["query"], tuple(q["want"])) for q in rows]
            outcomes += await ask_all(Path(root), folder / f"index of extra {name}", more, cited)
    built = [n for a in archives.values() for n in a.messages.values()]
    return f"{len(archives)} archives, {len(built)} sessions, {sum(built)} messages", outcomes


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.quality", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument(
        "--half", choices=(*HALVES, "both"), default="both", help="which half of the questions is asked"
    )
    parser.add_argument("--misses", action="store_true", help="also list what the tuning half did not find in five")
    parser.add_argument("--extra", type=Path, metavar="FILE", help="questions of your own over your own transcripts")
    parser.add_argument("--drawn", type=int, default=300, help="how many queries are drawn out of entries (300)")
    parser.add_argument("--seed", type=int, default=1, help="of the archives and of what is drawn (1)")
    parser.add_argument("--smoke", action="store_true", help="small archives and every tenth question")
    parser.add_argument("--json", action="store_true", help="the figures as one JSON document")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="quality-") as folder:
        built, outcomes = asyncio.run(run(Path(folder), args))
    order = (*HALVES, "drawn", *(f"extra, {half}" for half in HALVES))
    outcomes.sort(key=lambda o: order.index(o.question.half))
    halves = dict.fromkeys(o.question.half for o in outcomes)
    figures = {half: by_kind([o for o in outcomes if o.question.half == half]) for half in halves}
    if args.json:
        print(json.dumps({"built": built, "figures": figures}, ensure_ascii=False))
        return
    print(built)
    for half, rows in figures.items():
        print(f"\n{half}\n\n{table(rows)}")
    for o in outcomes if args.misses else ():
        if "held-out" not in o.question.half and (o.place or 99) > 5:
            q = o.question
            print(f"\n{q.half}, {q.kind}, {q.archive}: {q.query!r} wants {' '.join(q.want)}; {o.found} results", end="")


if __name__ == "__main__":
    main()
