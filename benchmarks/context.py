"""What ten hits cost a model: the characters (and, where `tiktoken` is installed, the tokens) of an answer as JSON and as text.

python -m benchmarks.context [--bytes 20MB]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median

from harness_session_history import SessionHistory
from harness_session_history.display.commands import in_shell
from harness_session_history.display.text import render_text_for_model

from . import generate
from .quality import archive

QUERIES = ("the", "error", "deploy", "config the", "tests", "release", "decided")
#: Archives of the search evaluation beside the generated one: their texts are sentences.
STORIES = ("shop", "infra", "data", "research")


def counter() -> Callable[[str], int] | None:
    """Counts the tokens of a text; None without `tiktoken` or its tables."""
    try:
        import tiktoken

        encoding = tiktoken.get_encoding("o200k_base")
    except (ImportError, OSError):  # not installed, or its tables are not there and cannot be fetched
        return None
    return lambda text: len(encoding.encode(text))


async def measured(root: Path, index: Path) -> list[tuple[str, str]]:
    """(JSON, text) of each query's answer that has ten hits."""
    pairs = []
    async with SessionHistory(roots=[root], index=index, maintenance=False) as history:
        await history.refresh()
        for query in QUERIES:
            answer = await history(query=query)
            if len(answer["results"]) == 10:
                pairs.append((json.dumps(answer, ensure_ascii=False), render_text_for_model(answer, in_shell())))
    return pairs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bytes", default="20MB", help="size of the generated archive")
    options = parser.parse_args()
    tokens = counter()
    print(
        "| archive | queries | JSON characters | text characters | share | largest share | JSON tokens | text tokens |"
    )
    print("|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for name in ("generated", *STORIES):
            root = Path(folder) / name
            if name == "generated":
                generate.generate(root, size=generate.parse_size(options.bytes))
            else:
                archive.build(root, name)
            pairs = asyncio.run(measured(root, Path(folder) / f"{name}-index" / "history.sqlite3"))
            if not pairs:
                continue
            as_json, as_text = (median(len(pair[n]) for pair in pairs) for n in (0, 1))
            largest = max(len(text) / len(whole) for whole, text in pairs)
            counted = [f"{median(tokens(pair[n]) for pair in pairs):,.0f}" if tokens else "-" for n in (0, 1)]
            print(
                f"| {name} | {len(pairs)} | {as_json:,.0f} | {as_text:,.0f} | {as_text / as_json:.0%} | {largest:.0%} "
                f"| {' | '.join(counted)} |"
            )


if __name__ == "__main__":
    main()
