"""Writes `terminal.svg`: a search of the example sessions as it looks on a terminal.

python docs/make_picture.py

The cards are those of the program; only the time of the look at the files is a fixed one. The picture takes nothing from
anywhere: the reader's own monospaced font stands in for a terminal's.
"""

from __future__ import annotations

import html
import io
import tempfile
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

from harness_session_history import SessionHistory
from harness_session_history.display.commands import in_shell
from harness_session_history.display.terminal import render_text

PICTURE = Path(__file__).with_name("terminal.svg")
SESSIONS = Path(__file__).parents[1] / "examples" / "sessions"
QUERY, LIMIT, WIDTH = "guest carts", 2, 100
COMMAND = f'session-history search "{QUERY}" --limit {LIMIT}'
CHECKED_AT = "2026-05-12T08:00:00.000Z"

#: Background, text, and black, red, green, yellow, blue, magenta, cyan, white: readable on a light page and on a dark one.
THEME = TerminalTheme(
    (24, 26, 31),
    (220, 223, 228),
    [(24, 26, 31), (224, 108, 117), (152, 195, 121), (229, 192, 123)]
    + [(97, 175, 239), (198, 120, 221), (86, 182, 194), (220, 223, 228)],
)
FRAME = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">
<title>TITLE</title>
<style>
text {{ font: 20px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; white-space: pre; }}
{styles}
</style>
<defs>{lines}</defs>
<rect width="{width}" height="{height}" rx="8" fill="#181a1f"/>
<g transform="translate({terminal_x}, {terminal_y})">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


def picture() -> str:
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True, color_system="standard")
    console.print(Text.assemble(("$ ", "bold green"), COMMAND), end="\n\n")
    console.print(Text.from_ansi(_cards()), end="")
    frame = FRAME.replace("TITLE", html.escape(COMMAND))
    return console.export_svg(theme=THEME, code_format=frame, unique_id="terminal")


def _cards() -> str:
    with tempfile.TemporaryDirectory() as folder:
        index = Path(folder, "history.sqlite3")
        history = SessionHistory(roots=SESSIONS, index=index, current_session_id="this-session", maintenance=False)
        answer = history.ask(query=QUERY, limit=LIMIT)
    answer["freshness"]["checkedAt"] = CHECKED_AT
    return render_text(answer, color=True, width=WIDTH, commands=in_shell(asked={"query": QUERY, "limit": LIMIT}))


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
