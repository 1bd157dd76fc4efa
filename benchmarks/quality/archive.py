"""Builds the evaluation's archives from `archives/*.txt`: hand-written conversations among seeded routine turns.

Routine turns (tests, commits, status, long reports) share the conversations' words without answering anything; tool output
repeats sentences of other conversations, which must never count as an answer; and many sessions hold nothing but routine.
"""

from __future__ import annotations

import hashlib
import json
import random
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

ARCHIVES = Path(__file__).with_name("archives")
# Archive to its sessions of nothing but routine, and the turns in each.
ROUTINE = {
    "shop": (70, 10),
    "infra": (45, 10),
    "data": (30, 12),
    "embedded": (30, 10),
    "languages": (30, 10),
    "agent": (4, 60),
    "research": (4, 8),
}

Key = tuple[str, str]


def cited(want: str) -> set[Key]:
    """`session id/entry id` as a key."""
    session, _, entry = want.rpartition("/")
    return {(session, entry)}


def digest(*parts: object) -> str:
    return hashlib.sha256("/".join(map(str, parts)).encode()).hexdigest()


@dataclass
class Story:
    label: str
    project: str
    start: datetime
    voice: str = ""
    fork_of: str = ""
    child_of: str = ""
    steps: list[tuple[str, str, str]] = field(default_factory=list)  # letter, label, text

    def words(self) -> list[str]:
        """Words of what was said, sorted, for routine turns to drop."""
        said = " ".join(text for letter, _, text in self.steps if letter in "ua")
        return sorted(set(re.findall(r"[A-Za-zÀ-ÿЀ-ӿ]{4,}|[一-鿿]{2}|[ァ-ヶー]{2,}", said)))


def read_archive(text: str) -> tuple[dict[str, list[str]], list[Story]]:
    """The sections of routine lines by name, and the conversations."""
    sections: dict[str, list[str]] = {}
    stories: list[Story] = []
    label = ""
    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        if line.startswith("=="):
            label, project, when, *more = (part.strip() for part in line[2:].split("|"))
            start = datetime.fromisoformat(when).replace(tzinfo=UTC)
            if "goes on" in more:
                stories[-1].steps.append(("@", "", start.isoformat()))
                continue
            stories.append(Story(label, project, start))
            for part in more:
                kind, _, value = part.partition(" ")
                setattr(stories[-1], {"voice": "voice", "fork": "fork_of", "child": "child_of"}[kind], value)
        elif stories:
            head, _, said = line.partition(" ")
            stories[-1].steps.append((head[0], f"{label}/{head[2:]}" if head[2:] else "", said))
        elif line.startswith("["):
            lines = sections[line.strip("[]")] = []
        else:
            lines.append(line)
    return sections, stories


@dataclass(frozen=True)
class Archive:
    """What is built. `keys` maps a label to (session id, entry id), `session/` to (session id, ""); `shown_by` an answer's key
    to that of the question whose opening shows it; `said` the visible hand-written entries to their texts."""

    root: Path
    sections: dict[str, list[str]]
    keys: dict[str, Key] = field(default_factory=dict)
    shown_by: dict[Key, Key] = field(default_factory=dict)
    said: dict[Key, str] = field(default_factory=dict)
    messages: dict[str, int] = field(default_factory=dict)  # by session label

    def acceptable(self, label: str) -> set[Key]:
        """The entry, and the question it answers where opening that shows the answer; of `session id/entry id` just that."""
        key = self.keys.get(label)
        return {key, self.shown_by.get(key, key)} if key else cited(label)

    def section(self, name: str, voice: str) -> list[str]:
        return self.sections.get(f"{name} {voice}") or self.sections[name]


class Writer:
    """One transcript of the archive."""

    def __init__(self, archive: Archive, story: Story, rng: random.Random, told: list[Story]) -> None:
        self.archive, self.story, self.rng = archive, story, rng
        self.others = [s for s in told if s.voice == story.voice and s is not story]
        self.about = story if story.steps else rng.choice(self.others)
        salt = digest(story.label)
        self.id = f"{salt[:8]}-{salt[8:12]}-7{salt[13:16]}-8{salt[17:20]}-{salt[20:32]}"
        self.now, self.thinking = story.start, ""
        self.leaf: str | None = None
        self.entries: list[dict[str, Any]] = []
        self.asked: tuple[str, int] = ("", 0)  # the last question of a conversation, and the texts since
        self.parent_file = ""

    @property
    def path(self) -> Path:
        name = f"{self.story.start:%Y-%m-%dT%H-%M-%S-000Z}_{self.id}.jsonl"
        return self.archive.root / f"--home-dev-{self.story.project}--" / name

    def add(self, type: str, **fields: Any) -> str:
        self.now += timedelta(seconds=self.rng.randrange(20, 90))
        stamp = self.now.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        made = digest(self.story.label, len(self.entries))[:8]
        self.entries.append({"type": type, "id": made, "parentId": self.leaf, "timestamp": stamp} | fields)
        self.leaf = made
        return made

    def say(self, role: str, content: list[dict[str, Any]], **fields: Any) -> str:
        if role == "assistant":
            fields |= {"api": "made-up", "provider": "made-up", "model": "example-1", "stopReason": "stop"}
            fields["usage"] = {"input": 1, "output": 1}
        return self.add("message", message={"role": role, "content": content, **fields})

    def text(self, role: str, text: str) -> str:
        blocks: list[dict[str, Any]] = [{"type": "thinking", "thinking": self.thinking}] if self.thinking else []
        self.thinking = ""
        self.asked = (self.asked[0], self.asked[1] + 1)
        return self.say(role, [*blocks, {"type": "text", "text": text}])

    def tool(self, command: str, output: str) -> None:
        call = f"call_{digest(self.story.label, len(self.entries))[:12]}"
        self.say("assistant", [{"type": "toolCall", "id": call, "name": "bash", "arguments": {"command": command}}])
        self.say("toolResult", [{"type": "text", "text": output}], toolCallId=call, toolName="bash", isError=False)

    def line(self, section: str) -> str:
        """A routine line with things, words of one conversation (often that of this session), numbers and names filled in."""
        rng, voice = self.rng, self.story.voice
        a, b, c = rng.sample(self.archive.section("things", voice), 3)
        about = self.about if rng.random() < 0.6 else rng.choice(self.others)
        told = rng.sample(vocabulary := about.words(), min(12, len(vocabulary)))
        words = dict(zip("wxyz", told, strict=False)) | {"list": ("、" if voice in ("zh", "ja") else ", ").join(told)}
        words["asked"] = rng.choice([text for letter, _, text in about.steps if letter == "u"])
        words |= {"a": a, "b": b, "c": c, "n": str(rng.randrange(3, 400)), "hash": f"{rng.getrandbits(28):07x}"}
        words["file"] = f"src/{a.split()[0].lower()}/{b.split()[0].lower()}.ts"
        return rng.choice(self.archive.section(section, voice)).format(**words)

    def work(self, steps: int) -> None:
        """Tool calls with a word between some of them."""
        for _ in range(steps):
            if self.rng.random() < 0.5 and not self.story.voice:
                self.text("assistant", self.line("narration"))
            told = [
                text
                for s in self.rng.sample(self.others, min(4, len(self.others)))
                for k, _, text in s.steps
                if k in "ua"
            ]
            lines = (f"docs/notes.md:{n}: {said}" for n, said in enumerate(self.rng.sample(told, min(4, len(told)))))
            self.tool(f"rg -n {self.line('things')} src", "\n".join(lines))

    def routine(self) -> None:
        """One question and its answer about something else, sometimes with tool work between, sometimes a long report."""
        self.text("user", self.line("asked"))
        if self.rng.random() < 0.4:
            self.work(self.rng.randrange(1, 4))
        self.text("assistant", self.report() if self.rng.random() < 0.15 else self.line("answered"))

    def routines(self, least: int, below: int) -> None:
        for _ in range(self.rng.randrange(least, below)):
            self.routine()

    def report(self) -> str:
        return " ".join(self.line("reports") for _ in range(self.rng.randrange(4, 10)))

    def fork(self, source: Writer, at: str) -> None:
        """Begins with a copy of the source's path to the entry `at`: same ids, times and words."""
        self.entries, self.leaf, self.parent_file = source.branch(at), at, str(source.path)

    def branch(self, leaf: str | None) -> list[dict[str, Any]]:
        known, path = {e["id"]: e for e in self.entries}, []
        while leaf:
            path.append(known[leaf])
            leaf = known[leaf]["parentId"]
        return path[::-1]

    def tell(self) -> None:
        """The story's steps, with routine turns before a question and at the end."""
        keys, command, told = self.archive.keys, "", {}
        for letter, label, said in self.story.steps:
            if letter == "u" and self.asked[0]:
                self.routines(0, 3)
            made = ""
            if letter in "ua":
                long = letter == "a" and self.rng.random() < 0.4
                text = "\n\n".join(self.rng.sample([said, self.report()], 2)) if long else said
                made = self.text("user" if letter == "u" else "assistant", text)
                told[made] = said
            if letter == "u":
                self.asked = (made, 0)
            elif letter == "a" and self.asked[0] and self.asked[1] <= 2:
                self.archive.shown_by[self.id, made] = (self.id, self.asked[0])
            elif letter == "k":
                self.thinking = said
            elif letter == "t":
                command = said
            elif letter == "o":
                self.tool(command, said)
            elif letter == "w":
                self.work(int(said))
            elif letter == "b":
                self.leaf = keys[label][1]
                continue
            elif letter == "c":
                self.add("compaction", summary=said, firstKeptEntryId=self.asked[0], tokensBefore=90_000)
            elif letter == "n":
                self.add("session_info", name=said)
                keys[f"{self.story.label}/"] = (self.id, "")
            elif letter == "@":
                self.routines(8, 24)
                self.now = max(self.now, datetime.fromisoformat(said))
            if label:
                keys[label] = (self.id, made)
        self.routines(4, 24)
        visible = (e["id"] for e in self.branch(self.leaf))
        self.archive.said.update({(self.id, v): told[v] for v in visible if v in told})

    def save(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        stamp = self.story.start.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        head = {"type": "session", "version": 3, "id": self.id, "timestamp": stamp}
        head["cwd"] = f"/home/dev/{self.story.project}"
        if self.parent_file:
            head["parentSession"] = self.parent_file
        lines = [json.dumps(e, ensure_ascii=False, separators=(",", ":")) for e in (head, *self.entries)]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\n")


def build(root: Path, name: str, seed: int = 1, share: float = 1.0) -> Archive:
    """Writes the archive `name` into the sessions folder `root`, with a share (0 to 1) of its routine sessions."""
    common, _ = read_archive((ARCHIVES / "common.txt").read_text(encoding="utf-8"))
    own, told = read_archive((ARCHIVES / f"{name}.txt").read_text(encoding="utf-8"))
    rng = random.Random(f"{name} {seed}")
    sessions, turns = ROUTINE[name]
    stories = list(told)
    for n in range(round(sessions * share)):
        start = datetime(2026, 1, 3, 9, tzinfo=UTC) + timedelta(days=n * 140 // sessions, minutes=rng.randrange(600))
        like = rng.choice(told)
        stories.append(Story(f"{name}-routine-{n}", like.project, start, like.voice))
    archive = Archive(root, common | own)
    writers: dict[str, Writer] = {}
    for story in stories:
        writer = writers[story.label] = Writer(archive, story, random.Random(f"{seed} {story.label}"), told)
        path = writer.path
        if story.fork_of:
            label, _, entry = story.fork_of.removeprefix("of ").partition("@")
            writer.fork(writers[label], archive.keys[f"{label}/{entry}"][1])
        if story.child_of:
            path = writers[story.child_of.removeprefix("of ")].path.with_suffix("") / "run-1" / path.name
        writer.tell()
        if not story.steps:
            writer.routines(turns, turns + 1)
        writer.save(path)
        archive.messages[story.label] = sum(e["type"] == "message" for e in writer.entries)
    return archive
