"""A conversation recalls itself: search, read, hand off, over a copy of one of the example transcripts.

    python examples/recall_demo.py

The transcript (duplicate payment webhooks) was compacted, so its first half has left the agent's context. This script
plays the agent's host: it calls the tools as a model would, goes on with the conversation, and applies a handoff. What
is printed is what the model would be given. Nothing outside a temporary folder is written.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

from harness_session_history import SessionHistory, history_tools

SESSIONS = Path(__file__).parent / "sessions"
CONVERSATION = "019df26e-2d00-7b22-87e9-b87124ac6b22"


class Host:
    """The little of an agent's host that matters here: it appends entries to the transcript."""

    def __init__(self, transcript: Path) -> None:
        self.transcript = transcript
        self.leaf = json.loads(transcript.read_text(encoding="utf-8").splitlines()[-1])["id"]
        self.count = 0

    def add(self, type: str, **fields: Any) -> str:
        self.count += 1
        entry = {"type": type, "id": f"demo{self.count:04}", "parentId": self.leaf}
        entry["timestamp"] = f"2026-05-04T12:{self.count:02}:00.000Z"
        with self.transcript.open("a", encoding="utf-8", newline="\n") as file:
            file.write(json.dumps({**entry, **fields}) + "\n")
        self.leaf = str(entry["id"])
        return self.leaf

    def say(self, role: str, text: str) -> str:
        return self.add("message", message={"role": role, "content": [{"type": "text", "text": text}]})


async def demo(folder: Path) -> None:
    sessions = shutil.copytree(SESSIONS, folder / "sessions")
    host = Host(next(sessions.rglob(f"*_{CONVERSATION}.jsonl")))
    index = folder / "index" / "history.sqlite3"
    async with SessionHistory(
        roots=sessions, index=index, current_session_id=CONVERSATION, maintenance=False
    ) as history:
        tools = history_tools(history=history)

        print("# The agent needs a detail that the summary left out, and searches what came before it.\n")
        found = await tools.search(query="event id")
        print(found.text)

        print("\n# It reads the entry it found, with one neighbour on each side.\n")
        entry = found["hits"][0]["entry"]
        print((await tools.read(mode="items", entries=[entry], around=1)).text)

        print("\n# The conversation goes on and is handed off; the host applies it by a reset and the text.\n")
        host.say("user", "Then write the release note, please.")
        host.say("assistant", "Done: webhooks are now handled once.")
        handoff = await tools.handoff(text=f"Webhooks are deduplicated (see entry {entry}). Next: deploy to staging.")
        print(json.dumps(handoff))
        host.add("reset")
        host.say("user", handoff["control"]["handoff"])

        print("\n# In the new context, the tail is what was said last before the handoff.\n")
        print((await tools.read(mode="tail", count=3)).text)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        asyncio.run(demo(Path(temporary)))
