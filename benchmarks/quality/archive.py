"""Builds the evaluation archive from `stories.txt`: hand-written conversations, thinned with routine turns.

Between the hand-written entries stand seeded routine turns (tests, commits, status) that share the stories' words without
answering anything; tool output repeats sentences of other stories, which must never count as an answer; and some
sessions hold nothing but routine.
"""

from __future__ import annotations

import hashlib
import json
import random
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

STORIES = Path(__file__).with_name("stories.txt")
ROUTINE = Path(__file__).with_name("routine.txt")
ROUTINE_SESSIONS = 14

Key = tuple[str, str]


def digest(*parts: object) -> str:
    return hashlib.sha256("/".join(map(str, parts)).encode()).hexdigest()


@dataclass
class Story:
    label: str
    project: str
    start: datetime
    fork_of: str = ""
    child_of: str = ""
    steps: list[tuple[str, str, str]] = field(default_factory=list)  # letter, label, text


def read_routine(text: str) -> dict[str, list[str]]:
    """Section name to its lines."""
    sections: dict[str, list[str]] = {}
    for line in text.splitlines():
        if line.startswith("["):
            lines = sections[line.strip("[]")] = []
        elif line and not line.startswith("#"):
            lines.append(line)
    return sections


def read_stories(text: str) -> list[Story]:
    stories: list[Story] = []
    for line in text.splitlines():
        if line.startswith("=="):
            label, project, start, *more = (part.strip() for part in line[2:].split("|"))
            story = Story(label, project, datetime.fromisoformat(start).replace(tzinfo=UTC))
            for part in more:
                kind, _, target = part.partition(" of ")
                if kind == "fork":
                    story.fork_of = target
                else:
                    story.child_of = target
            stories.append(story)
        elif line and not line.startswith("#"):
            head, _, said = line.partition(" ")
            stories[-1].steps.append((head[0], head[2:], said))
    return stories


@dataclass(frozen=True)
class Archive:
    """What is built. `keys` maps `session/label` to (session id, entry id); `asked` the label of an answer to the key of
    the question it answers."""

    root: Path
    routine: dict[str, list[str]]
    keys: dict[str, Key] = field(default_factory=dict)
    asked: dict[str, Key] = field(default_factory=dict)
    messages: dict[str, int] = field(default_factory=dict)  # by session label

    def acceptable(self, label: str) -> set[Key]:
        """The entry, and the question it answers: whoever opens that reads the answer."""
        return {self.keys[label]} | ({self.asked[label]} if label in self.asked else set())


class Writer:
    """One transcript of the archive."""

    def __init__(self, archive: Archive, story: Story, rng: random.Random, noise: list[str]) -> None:
        self.archive, self.root, self.story, self.rng, self.noise = archive, archive.root, story, rng, noise
        salt = digest(story.label)
        self.id = f"{salt[:8]}-{salt[8:12]}-7{salt[13:16]}-8{salt[17:20]}-{salt[20:32]}"
        self.now, self.thinking = story.start, ""
        self.leaf: str | None = None
        self.entries: list[dict[str, Any]] = []
        self.parent_file = ""

    @property
    def path(self) -> Path:
        name = f"{self.story.start:%Y-%m-%dT%H-%M-%S-000Z}_{self.id}.jsonl"
        return self.root / f"--home-dev-{self.story.project}--" / name

    def add(self, type: str, **fields: Any) -> str:
        self.now += timedelta(seconds=self.rng.randrange(20, 90))
        stamp = self.now.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        made = digest(self.story.label, len(self.entries))[:8]
        self.entries.append({"type": type, "id": made, "parentId": self.leaf, "timestamp": stamp} | fields)
        self.leaf = made
        return made

    def say(self, role: str, content: list[dict[str, Any]], **fields: Any) -> str:
        if role == "assistant":
            fields |= {
                "api": "made-up",
                "provider": "made-up",
                "model": "example-1",
                "stopReason": "stop",
                "usage": {"input": 1, "output": 1},
            }
        return self.add("message", message={"role": role, "content": content, **fields})

    def text(self, role: str, text: str) -> str:
        blocks: list[dict[str, Any]] = [{"type": "thinking", "thinking": self.thinking}] if self.thinking else []
        self.thinking = ""
        return self.say(role, [*blocks, {"type": "text", "text": text}])

    def tool(self, command: str, output: str) -> None:
        call = f"call_{digest(self.story.label, len(self.entries))[:12]}"
        self.say("assistant", [{"type": "toolCall", "id": call, "name": "bash", "arguments": {"command": command}}])
        self.say("toolResult", [{"type": "text", "text": output}], toolCallId=call, toolName="bash", isError=False)

    def routine(self) -> None:
        """One question and its answer about something else, sometimes with noisy tool output between."""
        rng, routine = self.rng, self.archive.routine
        a, b, c = rng.sample(routine["things"], 3)
        words = {"a": a, "b": b, "c": c, "n": rng.randrange(3, 400), "hash": f"{rng.getrandbits(28):07x}"}
        words["file"] = f"src/{a.split()[0].lower()}/{b.split()[0].lower()}.ts"
        self.text("user", rng.choice(routine["asked"]).format(**words))
        if rng.random() < 0.5:
            self.tool(f"rg -n {a.split()[-1]} src", "\n".join(rng.sample(self.noise, 4)))
        self.text("assistant", rng.choice(routine["answered"]).format(**words))

    def fork(self, source: Writer, at: str) -> None:
        """Begins with a copy of the source's path to the entry `at`: same ids, times and words."""
        known = {e["id"]: e for e in source.entries}
        step: str | None = at
        while step:
            self.entries.insert(0, known[step])
            step = known[step]["parentId"]
        self.leaf, self.parent_file = at, str(source.path)

    def tell(self) -> None:
        """The story's steps, with routine turns before a question and at the end."""
        keys, asked = self.archive.keys, self.archive.asked
        last_user, command = "", ""
        for letter, label, said in self.story.steps:
            if letter == "u" and last_user and self.rng.random() < 0.7:
                self.routine()
            made = ""
            if letter in "ua":
                made = self.text("user" if letter == "u" else "assistant", said)
                last_user = made if letter == "u" else last_user
            elif letter == "k":
                self.thinking = said
            elif letter == "t":
                command = said
            elif letter == "o":
                self.tool(command, said)
            elif letter == "b":
                self.leaf = keys[f"{self.story.label}/{label}"][1]
                continue
            elif letter == "c":
                self.add("compaction", summary=said, firstKeptEntryId=last_user, tokensBefore=90_000)
            elif letter == "n":
                self.add("session_info", name=said)
            if label:
                keys[f"{self.story.label}/{label}"] = (self.id, made)
                if letter == "a" and last_user:
                    asked[f"{self.story.label}/{label}"] = (self.id, last_user)
        for _ in range(self.rng.randrange(1, 4)):
            self.routine()

    def save(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        stamp = self.story.start.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        head: dict[str, Any] = {
            "type": "session",
            "version": 3,
            "id": self.id,
            "timestamp": stamp,
            "cwd": f"/home/dev/{self.story.project}",
        }
        if self.parent_file:
            head["parentSession"] = self.parent_file
        lines = [json.dumps(e, ensure_ascii=False, separators=(",", ":")) for e in (head, *self.entries)]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\n")


def build(root: Path, seed: int = 1) -> Archive:
    """Writes the archive into the sessions folder `root`."""
    stories = read_stories(STORIES.read_text(encoding="utf-8"))
    noise = [
        f"docs/notes.md:{n}: {said}"
        for n, (letter, _, said) in enumerate(step for s in stories for step in s.steps)
        if letter in "ua"
    ]
    rng = random.Random(f"quality {seed}")
    projects = sorted({s.project for s in stories})
    for n in range(ROUTINE_SESSIONS):
        start = datetime(2026, 1, 3, 9, tzinfo=UTC) + timedelta(days=n * 10, minutes=rng.randrange(600))
        stories.append(Story(f"routine-{n}", rng.choice(projects), start))
    archive = Archive(root, read_routine(ROUTINE.read_text(encoding="utf-8")))
    writers: dict[str, Writer] = {}
    for story in stories:
        writer = writers[story.label] = Writer(archive, story, random.Random(f"{seed} {story.label}"), noise)
        path = writer.path
        if story.fork_of:
            label, _, entry = story.fork_of.partition("@")
            writer.fork(writers[label], archive.keys[f"{label}/{entry}"][1])
        if story.child_of:
            path = writers[story.child_of].path.with_suffix("") / "run-1" / path.name
        writer.tell()
        for _ in range(8 if not story.steps else 0):
            writer.routine()
        writer.save(path)
        archive.messages[story.label] = sum(e["type"] == "message" for e in writer.entries)
    return archive
