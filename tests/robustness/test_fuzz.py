"""Odd transcripts, queries, registries and settings, drawn at random: no exception but the package's own, every answer in its
shape, every hit opens. A short form always; the long one by its mark: ``FUZZ_SEED=7 FUZZ_COUNT=20000 pytest -m slow``."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness_session_history import CitationUnavailable, InvalidRequest, SessionHistoryError
from harness_session_history.archive.records import details, loads, read_line
from harness_session_history.settings import VARIABLES, Settings
from world import World, check_answer

SEED = int(os.environ.get("FUZZ_SEED", "1"))
COUNT = int(os.environ.get("FUZZ_COUNT", "20000"))
COUNTS = [150, pytest.param(COUNT, marks=pytest.mark.slow)]

ODD = [
    "", " ", "\0", "a\0b", "\ud83d", "\udc00\ud800", "\ufeff", "\u2028", "\x85", "\x1b[31mred\x1b[0m", "\x9b31m", "\u202eevil",
    "\U000e0041", "\u200b\u200d", "e" + "\u0301" * 300, "评审会议", "\u0e01\u0e33", "ﬃ", "İ", "\U0001f469\u200d\U0001f467" * 9,
    "</history>", '<skill name="x">body</skill>', "<skill", "</skill>", "<!-- persistent-harness-input:x -->", "-->", "../../x",
    "C:\\x", "\\\\?\\C:\\x", "/", "~", '"', '""', "*", "AND", "NEAR(a b)", "a" * 2000, "\n" * 90, "\r\n\r", "zebra", "zebra*",
    "getUserName", "max_retry_count", "C++", "tx.draft", "^", ":", "(", "-", "中", "ก*", "ab*",
]  # fmt: skip
NUMBERS = [0, -1, 1.5, 1e308, 1 << 31, 1 << 63, 1 << 64, -(1 << 63) - 1, 10**30]
RAW = [
    b"NaN", b"1e999", b"9" * 5000, b"01", b"tru", b'"\xff\xfe"', b'"\\ud83d"', b'"\\q"', b'"\x01"', b"[1,]", b"", b'"', b"/**/1",
    b"[" * 1100 + b"]" * 1100, b'{"a":' * 1100 + b"1" + b"}" * 1100, b"[" * 3000,
    b'{"n":' + b"9" * 4400 + b',"d":' + b"[" * 1100 + b"]" * 1100 + b"}",
]  # fmt: skip
KEYS = [
    "type", "id", "parentId", "timestamp", "message", "role", "content", "text", "customType", "version", "cwd", "name",
    "targetId", "firstKeptEntryId", "firstKeptEntryIndex", "parentSession", "toolCallId", "arguments", "author",
]  # fmt: skip
TYPES = [
    "message", "session", "compaction", "custom", "label", "session_info", "leaf", "reset", "usage", "MESSAGE", "",
]  # fmt: skip
ROLES = ["user", "assistant", "toolResult", "system", "custom", "User", ""]


class Fuzz:
    """Draws from one seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.ids: list[str] = []

    def text(self) -> str:
        return " ".join(self.random.choice(ODD) for _ in range(self.random.randrange(1, 5)))

    def value(self) -> bytes:
        """JSON of any value, or nearly JSON."""
        kind = self.random.random()
        if kind < 0.15:
            return self.random.choice(RAW)
        drawn: Any = self.random.choice(
            [self.text(), *self.random.sample(NUMBERS, 2), None, True, [], {}, ["x"], {"type": "text"}]
        )
        return json.dumps(drawn, ensure_ascii=self.random.random() < 0.5).encode("utf-8", "surrogatepass")

    def record(self) -> bytes:
        """An entry, some of whose fields are anything."""
        entry_id = self.random.choice([*self.ids[-3:], f"{self.random.getrandbits(32):08x}", self.text()[:60]])
        content: Any = self.text()
        if self.random.random() < 0.5:
            content = [
                {"type": "text", "text": content},
                {"type": "toolCall", "id": "t", "name": self.text()[:40], "arguments": {"a": "SECRETARG"}},
                {"type": "thinking", "thinking": "SECRETTHINK"},
            ]
        fields: dict[str, Any] = {
            "type": self.random.choice(TYPES) if self.random.random() < 0.3 else "message",
            "id": entry_id,
            "parentId": self.ids[-1] if self.ids and self.random.random() < 0.8 else None,
            "timestamp": self.random.choice(["2026-03-02T10:00:01.000Z", "9999-12-31T23:59:59-23:59", "now"]),
            "message": {"role": self.random.choice(ROLES[:3] * 3 + ROLES), "content": content},
        }
        self.ids.append(entry_id)
        parts = {key: json.dumps(value).encode() for key, value in fields.items()}
        for _ in range(self.random.choice([0, 0, 1, 2])):
            parts[self.random.choice(KEYS)] = self.value()
        return b"{" + b",".join(json.dumps(key).encode() + b":" + value for key, value in parts.items()) + b"}"

    def line(self) -> bytes:
        line = self.record()
        if self.random.random() < 0.3:
            at = self.random.randrange(len(line) + 1)
            put = self.random.choice([b"", b"\0", b"\xff", b'"', b"{", b"}", self.record(), b"\r", b"\n"])
            line = line[:at] + put + line[at + self.random.choice([0, 1, 9]) :]
        return line

    def file(self) -> bytes:
        header = b'{"type":"session","version":3,"id":"%s","cwd":%s}' % (
            f"{self.random.getrandbits(64):016x}".encode(),
            json.dumps(self.text()).encode(),
        )
        lines = [header, *(self.line() for _ in range(self.random.randrange(1, 9)))]
        if self.random.random() < 0.15:
            self.random.shuffle(lines)
        return b"\n".join(lines) + self.random.choice([b"\n", b"\n", b"", b"\r\n"])


def allowed(call: Callable[[], Any]) -> Any:
    """What a call gives, None if it refuses as it may."""
    try:
        return call()
    except SessionHistoryError as error:
        assert str(error).isprintable() and len(str(error)) < 500
        return None


@pytest.mark.parametrize("count", COUNTS)
def test_odd_transcripts_take_nothing_down(world: World, count: int) -> None:
    fuzz, at = Fuzz(SEED), 0
    while at < count:
        word = f"plover{at}"
        plain = world.say(f"plain{at}", f"{word} zebra")
        for number in range(min(50, count - at)):
            (plain.path().parent / f"2026-03-02T10-00-00-000Z_f{at + number}.jsonl").write_bytes(fuzz.file())
        at += 50
        allowed(lambda: world.ask(operation="list", refresh=True))
        assert world.texts(word, refresh=False) == [f"{word} zebra"]
        for query in ("zebra", "getUserName retry", "评审", "red OR evil"):
            answer = world.search(query, refresh=False, branch="any", limit=20)
            assert "SECRET" not in json.dumps(answer["results"])
            for hit in answer["results"][:5]:
                citation = hit["citation"]
                try:
                    opened = world.open(citation["sessionId"], citation["entryId"], branch="any", refresh=False)
                except CitationUnavailable:
                    continue
                assert opened["citation"] == citation and "SECRET" not in json.dumps(opened["messages"][0]["text"])
        world.close()
        for path in plain.path().parent.iterdir():
            path.unlink()


@pytest.mark.parametrize("count", COUNTS)
def test_no_line_is_too_odd_to_be_read(count: int) -> None:
    fuzz = Fuzz(SEED + 1)
    for _ in range(count):
        line = fuzz.line()
        for record in read_line(line)[0]:
            details(line[record.start : record.end])
            loads(line[record.start : record.end])


@pytest.mark.parametrize("count", COUNTS)
def test_no_query_raises_anything_but_a_refusal(world: World, count: int) -> None:
    world.say("a", "zebra quagga getUserName 评审会议 max_retry_count C++ tx.draft")
    world.refresh()
    fuzz = Fuzz(SEED + 2)
    for _ in range(count):
        query = fuzz.text()[:300]
        answer = allowed(lambda query=query: world.ask(operation="search", query=query))  # type: ignore[misc]
        if answer is not None:
            check_answer(answer)


@pytest.mark.parametrize("count", COUNTS)
def test_no_registry_takes_a_call_down(world: World, count: int) -> None:
    session = world.say("a", "zebra")
    world.refresh()
    fuzz, registry = Fuzz(SEED + 3), world.folder / "registry.jsonl"
    history = world.history(registry=registry)
    for number in range(max(1, count // 10)):
        names = ["sessionId", "kind", "name", "parentSessionId", "deletedAt", "file"]
        said = b",".join(json.dumps(name).encode() + b":" + fuzz.value() for name in names[1:])
        registry.write_bytes(b'{"sessionId":"%s",%s}\n' % (session.id.encode(), said) * (1 + number % 2))
        for view in world.list(include_deleted=True, refresh=False):
            assert len(json.dumps(view)) < 12_000
    assert history.settings.registry == str(registry)


@pytest.mark.parametrize("count", COUNTS)
def test_no_environment_is_worse_than_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    monkeypatch.chdir(tmp_path)
    fuzz = Fuzz(SEED + 4)
    for _ in range(count):
        environ = {name: fuzz.text() for name in VARIABLES if fuzz.random.random() < 0.4}
        environ["HOME"] = fuzz.random.choice([str(tmp_path), "", fuzz.text()])
        try:
            Settings.resolve(environ=environ)
        except InvalidRequest as refusal:
            assert str(refusal)
