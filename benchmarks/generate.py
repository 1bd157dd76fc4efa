"""Writes a made-up archive of Pi transcripts of a given size, quickly and always the same for one seed.

    python -m benchmarks.generate --out DIR --bytes 1GB [--sessions N] [--seed N]
    python -m benchmarks.generate --out DIR --entries 1000000          entries that have text
    python -m benchmarks.generate --out DIR --shape one-large|images|many [--bytes ...] [--sessions N]

DIR becomes a sessions folder (a folder per working directory, transcripts in it). By bytes, tool results are about
53 %, assistant messages 42 % (mostly tool arguments), user messages 4 % (mostly images); text entries have a median of
about 100 bytes and a 99th percentile of 2.5 KB. There are abandoned branches, compactions, forks with copied entries,
child sessions, names, custom entries; times spread over two years.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from .vocabulary import Pools

EPOCH = 1_700_000_000_000
TWO_YEARS = 2 * 365 * 86_400_000
DAY = 86_400_000
FLUSH = 4 << 20
FORK_BYTES = 200_000
COMPACT_BYTES = 600_000
USAGE = b'"api":"made-up","provider":"made-up","model":"example-1","usage":{"input":%d,"output":%d,"cacheRead":0,"cacheWrite":0,"totalTokens":%d},"stopReason":"%s"'


@dataclass
class Made:
    """What was written. `text_bytes` counts user and assistant text only."""

    seed: int
    shape: str
    bytes: int = 0
    sessions: int = 0
    entries: int = 0
    text_entries: int = 0
    text_bytes: int = 0
    seconds: float = 0.0


@dataclass(frozen=True)
class Mix:
    """How a session is put together: tool calls after one question, and how large what they return is."""

    steps: float = 6.0
    payload: float = 1.0
    image: float = 0.011
    image_bytes: int = 65_536


TYPICAL = Mix()
LEAN = Mix(steps=1.2, payload=0.12, image=0.0)
PICTURES = Mix(steps=1.0, payload=0.2, image=0.9, image_bytes=1_500_000)
_days: dict[int, bytes] = {}


def iso(moment: int) -> bytes:
    day, rest = divmod(moment, DAY)
    head = _days.get(day)
    if head is None:
        head = _days[day] = datetime.fromtimestamp(day * 86_400, UTC).strftime("%Y-%m-%dT").encode()
    seconds, milli = divmod(rest, 1000)
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    return b"%b%02d:%02d:%02d.%03dZ" % (head, hour, minute, second, milli)


class Session:
    """One transcript being written."""

    def __init__(
        self,
        path: Path,
        pools: Pools,
        rng: random.Random,
        start: int,
        cwd: str,
        made: Made,
        mix: Mix,
        parent: Path | None = None,
    ) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path, self.pools, self.rng, self.made, self.mix, self.cwd = path, pools, rng, made, mix, cwd
        self.file = path.open("wb")
        self.lines: list[bytes] = []
        self.held = self.size = self.since_compaction = 0
        self.now, self.last = start, b"null"
        self.salt, self.count = rng.getrandbits(32), 0
        self.trunk: list[tuple[bytes, bytes]] | None = []  # lines and ids a fork may copy; None once the tree branches
        self.trunk_bytes = 0
        self.chinese = rng.random() < 0.04
        self.topic = [w.encode() for w in rng.sample(pools.topics, 12)]
        self.earlier: list[bytes] = []
        link = b',"parentSession":%b' % json.dumps(str(parent)).encode() if parent else b""
        identity = path.stem.partition("_")[2].encode()
        self.write(
            b'{"type":"session","version":3,"id":"%b","timestamp":"%b","cwd":"%b"%b}\n'
            % (identity, iso(start), cwd.encode(), link)
        )
        made.sessions += 1

    def write(self, line: bytes) -> None:
        self.lines.append(line)
        self.held += len(line)
        if self.held > FLUSH:
            self.flush()

    def flush(self) -> None:
        self.file.write(b"".join(self.lines))
        self.size += self.held
        self.lines, self.held = [], 0

    def entry(self, kind: bytes, body: bytes) -> bytes:
        """One entry after the last; returns its id as a JSON string. Ids are unique in the file: a counter, scrambled."""
        self.count += 1
        self.now += int(self.rng.random() * 30_000) + 500
        made = b'"%08x"' % ((self.count * 2_654_435_761 + self.salt) & 0xFFFFFFFF)
        line = b'{"type":"%b","id":%b,"parentId":%b,"timestamp":"%b",%b}\n' % (
            kind,
            made,
            self.last,
            iso(self.now),
            body,
        )
        self.last = made
        self.write(line)
        self.since_compaction += len(line)
        self.made.entries += 1
        if self.trunk is not None and self.trunk_bytes < FORK_BYTES:
            self.trunk.append((line, made))
            self.trunk_bytes += len(line)
        return made

    def prose(self) -> bytes:
        draw, pools = self.rng.random, self.pools
        size = pools.prose_sizes[int(draw() * 4096)]
        if self.chinese and draw() < 0.7:
            text = pools.han.cut(draw(), size * 2) + self.topic[int(draw() * 12)]
        else:
            text = pools.prose.cut(draw(), size)
            if draw() < 0.4:
                text = b"%b %b" % (text, self.topic[int(draw() * 12)])
            if draw() < 0.3:  # something seen once: a commit, a ticket, a generated name
                text = b"%b %07x" % (text, int(draw() * 0xFFFFFFF))
        self.made.text_entries += 1
        self.made.text_bytes += len(text)
        return text

    def user(self) -> None:
        image, draw = b"", self.rng.random
        if draw() < self.mix.image:
            size = int(self.mix.image_bytes * (0.4 + 1.2 * draw())) & ~3
            where = int(draw() * (len(self.pools.pixels) - size)) & ~3
            image = b',{"type":"image","data":"%b","mimeType":"image/png"}' % self.pools.pixels[where : where + size]
        self.entry(
            b"message",
            b'"message":{"role":"user","content":[{"type":"text","text":"%b"}%b],"timestamp":%d}'
            % (self.prose(), image, self.now),
        )

    def arguments(self) -> tuple[bytes, bytes]:
        """A tool's name and its arguments."""
        draw, pools = self.rng.random, self.pools
        size = int(pools.argument_sizes[int(draw() * 4096)] * self.mix.payload) + 1
        text, choice = pools.output.cut(draw(), size), draw()
        if choice < 0.35:
            return b"bash", b'"command":"%b"' % text
        if choice < 0.75:
            return b"edit", b'"path":"src/%b.ts","oldText":"%b","newText":"%b"' % (
                self.topic[0],
                pools.output.cut(draw(), size // 2),
                text,
            )
        return b"write", b'"path":"src/%b.ts","content":"%b"' % (self.topic[1], text)

    def assistant(self, call: bytes | None) -> bytes:
        """An assistant entry, with a tool call (`call` is its id) or without; returns the tool's name."""
        draw, pools, blocks, name = self.rng.random, self.pools, [], b""
        if draw() < 0.25:
            blocks.append(
                b'{"type":"thinking","thinking":"%b","thinkingSignature":"%016x"}'
                % (pools.prose.cut(draw(), 20), self.rng.getrandbits(64))
            )
        if call is None or draw() < 0.45:
            blocks.append(b'{"type":"text","text":"%b"}' % self.prose())
        if call is not None:
            name, arguments = self.arguments()
            blocks.append(b'{"type":"toolCall","id":"%b","name":"%b","arguments":{%b}}' % (call, name, arguments))
        usage = USAGE % (self.count * 90, 300, self.count * 90 + 300, b"stop" if call is None else b"toolUse")
        self.entry(
            b"message",
            b'"message":{"role":"assistant","content":[%b],%b,"timestamp":%d}' % (b",".join(blocks), usage, self.now),
        )
        return name

    def result(self, call: bytes, name: bytes) -> None:
        draw, pools = self.rng.random, self.pools
        text = pools.output.cut(draw(), int(pools.output_sizes[int(draw() * 4096)] * self.mix.payload) + 1)
        error = b"true" if draw() < 0.06 else b"false"
        body = b'"message":{"role":"toolResult","toolCallId":"%b","toolName":"%b","content":[{"type":"text","text":"%b"}],"isError":%b,"timestamp":%d}'
        self.entry(b"message", body % (call, name, text, error, self.now))

    def turn(self) -> None:
        """A question, tool calls with their results, an answer; now and then a branch, a compaction, a side entry."""
        draw = self.rng.random
        self.earlier = [*self.earlier[-7:], self.last]
        if draw() < 0.03 and len(self.earlier) > 3:
            self.last, self.trunk = self.earlier[-3], None
        if self.since_compaction > COMPACT_BYTES:
            kept, self.since_compaction = self.earlier[-2], 0
            summary = self.pools.prose.cut(draw(), 350)
            self.entry(b"compaction", b'"summary":"%b","firstKeptEntryId":%b,"tokensBefore":150000' % (summary, kept))
        self.user()
        for _ in range(int(self.rng.expovariate(1 / self.mix.steps) + 0.5)):
            call = b"call_%012x" % self.rng.getrandbits(48)
            name = self.assistant(call)
            self.result(call, name)
        self.assistant(None)
        if draw() < 0.04:
            self.entry(b"session_info", b'"name":"%b %b"' % (self.topic[2], self.topic[3]))
        elif draw() < 0.04:
            self.entry(b"custom", b'"customType":"made-up.state","data":{"open":["%b"]}' % self.topic[4])

    def copy(self, source: Session) -> None:
        """The beginning of another session, entry by entry as a fork writes it."""
        for line, made in source.trunk or []:
            self.write(line)
            self.last = made
            self.made.entries += 1

    def close(self) -> None:
        self.flush()
        self.file.close()
        self.made.bytes += self.size


class Archive:
    """Opens sessions one after the other in one folder."""

    def __init__(self, root: Path, pools: Pools, rng: random.Random, made: Made, mix: Mix) -> None:
        self.root, self.pools, self.rng, self.made, self.mix = root, pools, rng, made, mix
        words = [w for w in pools.words[100:600] if w.isalpha()]
        self.projects = [f"/home/dev/{'-'.join(rng.sample(words, 2))}" for _ in range(24)]
        self.shares = [1 / (rank + 2) for rank in range(24)]
        self.before: Session | None = None

    def session(self) -> Session:
        rng, before = self.rng, self.before
        start = EPOCH + int(rng.random() * TWO_YEARS)
        cwd = rng.choices(self.projects, self.shares)[0]
        kind = rng.random()
        folder, parent = self.root / f"--{cwd[1:].replace('/', '-')}--", None
        if before is not None and kind < 0.09:
            start, cwd = before.now, before.cwd
            if kind < 0.05:
                folder = before.path.with_suffix("") / f"run-{rng.randrange(1000)}"
            else:
                folder, parent = before.path.parent, before.path
        stamp, salt = f"{start:012x}", rng.getrandbits(72)
        identity = f"{stamp[:8]}-{stamp[8:]}-7{salt >> 60:03x}-8{salt >> 48 & 0xFFF:03x}-{salt & 0xFFFFFFFFFFFF:012x}"
        name = f"{iso(start).decode().replace(':', '-').replace('.', '-')}_{identity}.jsonl"
        session = Session(folder / name, self.pools, rng, start, cwd, self.made, self.mix, parent)
        if parent is not None and before is not None:
            session.copy(before)
        if kind >= 0.05:
            self.before = session
        return session

    def fill(self, enough: Callable[[Session], bool]) -> None:
        session = self.session()
        while not enough(session):
            session.turn()
        session.close()


def generate(
    out: Path,
    *,
    size: int | None = None,
    entries: int | None = None,
    sessions: int | None = None,
    seed: int = 1,
    shape: str = "typical",
) -> Made:
    """Writes an archive into `out` (made if missing): about `size` bytes, or `entries` entries that have text.

    Shapes: `typical`; `one-large`, one session (600 MB unless `size` says otherwise); `images`, one session of mostly
    images (147 MB); `many`, `sessions` tiny files.
    """
    begun = time.perf_counter()
    made, rng = Made(seed, shape), random.Random(f"archive {seed} {shape}")
    if shape == "many":
        _many(out, Pools(seed, 10_000_000), rng, made, sessions or 10_000)
    else:
        if entries is None:
            size = size or {"one-large": 600_000_000, "images": 147_000_000}.get(shape, 100_000_000)
        mix = LEAN if entries else PICTURES if shape == "images" else TYPICAL
        archive = Archive(out, Pools(seed, size or (entries or 0) * 900), rng, made, mix)
        if shape in ("one-large", "images"):
            archive.fill(lambda session: session.size + session.held >= (size or 0))
        else:
            _typical(archive, size, entries, sessions)
    made.seconds = round(time.perf_counter() - begun, 2)
    return made


def _typical(archive: Archive, size: int | None, entries: int | None, sessions: int | None) -> None:
    """Sessions of log-normal length that together reach the size or the number of text entries."""
    made = archive.made
    sessions = sessions or max(1, round(size / 1_670_000) if size else (entries or 0) // 100)
    weights = [archive.rng.lognormvariate(0, 1.1) for _ in range(sessions)]
    total, done = sum(weights), 0.0
    for weight in weights:
        done += weight / total
        if size:
            goal = size * done
            archive.fill(lambda s, goal=goal: s.count > 1 and made.bytes + s.size + s.held >= goal)  # type: ignore[misc]
        else:
            wanted = (entries or 0) * done
            archive.fill(lambda s, wanted=wanted: s.count > 1 and made.text_entries >= wanted)  # type: ignore[misc]


def _many(out: Path, pools: Pools, rng: random.Random, made: Made, sessions: int) -> None:
    archive = Archive(out, pools, rng, made, Mix(steps=0.4, payload=0.05, image=0))
    for _ in range(sessions):
        archive.fill(lambda s: s.count > 1)


def parse_size(text: str) -> int:
    """`100MB`, `1GB`, `2500000`: decimal units."""
    for unit, factor in (("GB", 1_000_000_000), ("MB", 1_000_000), ("KB", 1_000)):
        if text.upper().endswith(unit):
            return int(float(text[:-2]) * factor)
    return int(text)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--bytes", type=parse_size, help="size of the archive, such as 100MB or 10GB")
    parser.add_argument("--entries", type=int, help="number of entries that have text, instead of a size")
    parser.add_argument("--sessions", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--shape", choices=("typical", "one-large", "images", "many"), default="typical")
    args = parser.parse_args()
    if args.out.exists() and any(args.out.iterdir()):
        parser.error(f"{args.out} is not empty")
    made = generate(
        args.out, size=args.bytes, entries=args.entries, sessions=args.sessions, seed=args.seed, shape=args.shape
    )
    print(json.dumps(asdict(made) | {"MB/s": round(made.bytes / 1e6 / max(made.seconds, 0.01), 1)}))


if __name__ == "__main__":
    main()
