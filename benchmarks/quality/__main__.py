"""Prints the search evaluation: `recall@k` and MRR over `results`, and what the caller is left with when there are none.

`helped@5` counts an acceptable entry among the first five results or, without results, among `hints.nearest`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
from dataclasses import asdict
from pathlib import Path

from harness_session_history import SessionHistory

from .archive import Archive, build
from .evaluate import Outcome, by_kind, evaluate, read_questions, table


async def run(folder: Path, seed: int) -> tuple[Archive, list[Outcome]]:
    archive = build(folder / "sessions", seed)
    index = folder / "index"
    index.mkdir(mode=0o700)
    async with SessionHistory(
        roots=[folder / "sessions"], index=index / "history.sqlite3", maintenance=False
    ) as history:
        await history(operation="list", limit=1, refresh=True)
        return archive, await evaluate(history, read_questions(), archive)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.quality", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--json", action="store_true", help="figures and every question's outcome as one JSON document")
    parser.add_argument(
        "--misses", action="store_true", help="also list the questions whose answer was not among the first five"
    )
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="quality-") as folder:
        archive, outcomes = asyncio.run(run(Path(folder), args.seed))
    rows = by_kind(outcomes)
    if args.json:
        details = [asdict(o) | {"helped": o.helped, "deadEnd": o.dead_end} for o in outcomes]
        print(
            json.dumps(
                {
                    "sessions": len(archive.messages),
                    "messages": sum(archive.messages.values()),
                    "kinds": rows,
                    "outcomes": details,
                },
                ensure_ascii=False,
            )
        )
        return
    print(f"{len(archive.messages)} sessions, {sum(archive.messages.values())} messages\n\n{table(rows)}")
    if args.misses:
        print()
        for o in outcomes:
            if o.helped is None or o.helped > 5:
                print(
                    f"{o.question.id} {o.question.kind}: {o.question.query!r} wants {', '.join(o.question.want)}; {o.found} results"
                )


if __name__ == "__main__":
    main()
