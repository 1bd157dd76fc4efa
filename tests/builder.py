"""Writes made-up session transcripts for the tests: one small builder, used everywhere.

archive = ArchiveBuilder(tmp_path)
s = archive.session("a", cwd="/w/demo")
first = s.user("hello"); s.assistant("hi there")
path = s.save()
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

Content = str | list[Any] | None


def uid(seed: str) -> str:
    """A session id that looks like Pi's (UUID form), from a seed."""
    h = hashlib.sha256(seed.encode()).hexdigest()
    return f"{h[:8]}-{h[8:12]}-7{h[13:16]}-8{h[17:20]}-{h[20:32]}"


def stamp(second: int, day: str = "2026-03-02") -> str:
    """ISO time, `second` seconds after ten o'clock."""
    return f"{day}T{10 + second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}.000Z"


def line(value: Any) -> str:
    """One JSON value as Pi writes it: compact, not ASCII-escaped."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


class ArchiveBuilder:
    """A folder laid out like Pi's agent folder; `root` is its sessions folder."""

    def __init__(self, folder: Path) -> None:
        self.agent = folder / "agent"
        self.root = self.agent / "sessions"
        self.root.mkdir(parents=True, exist_ok=True)

    def session(self, name: str, **header: Any) -> SessionBuilder:
        return SessionBuilder(self, name, **header)


class SessionBuilder:
    """One transcript: every entry is chained to the one before unless `parent` is given."""

    def __init__(
        self,
        archive: ArchiveBuilder,
        name: str,
        *,
        cwd: str = "/w/demo",
        header: bool = True,
        version: int | None = 3,
        start: str | None = None,
        **extra: Any,
    ) -> None:
        self.archive, self.count = archive, 0
        self.id: str = extra.pop("id", uid(name))
        self.lines: list[bytes] = []
        if header:
            head: dict[str, Any] = {
                "type": "session",
                "id": self.id,
                "timestamp": start or stamp(0),
                "cwd": cwd,
                **extra,
            }
            if version is not None:
                head["version"] = version
            self.raw(line(head))
        self.last: str | None = None

    def raw(self, text: str | bytes) -> None:
        """A line exactly as given."""
        self.lines.append(text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"))

    def entry(
        self, type: str, *, key: str | None = None, parent: Any = ..., at: str | None = None, **fields: Any
    ) -> dict[str, Any]:
        """One entry as a dict, not yet written, chained to the last one."""
        self.count += 1
        entry_id = key or uid(f"{self.id}{self.count}")[:8]
        made = {
            "type": type,
            "id": entry_id,
            "parentId": self.last if parent is ... else parent,
            "timestamp": at or stamp(self.count),
            **fields,
        }
        self.last = entry_id
        return made

    def add(self, type: str, **kw: Any) -> str:
        made = self.entry(type, **kw)
        self.raw(line(made))
        return str(made["id"])

    def message(self, role: str, content: Content, **kw: Any) -> dict[str, Any]:
        body: dict[str, Any] = {
            "role": role,
            "content": [{"type": "text", "text": content}] if isinstance(content, str) else content,
        }
        body.update(kw.pop("extra", {}))
        if role == "assistant":
            body.update(
                api="made-up", provider="made-up", model="m", usage={"input": 1, "output": 1}, stopReason="stop"
            )
        return self.entry("message", message=body, **kw)

    def say(self, role: str, content: Content, **kw: Any) -> str:
        made = self.message(role, content, **kw)
        self.raw(line(made))
        return str(made["id"])

    def user(self, content: Content, **kw: Any) -> str:
        return self.say("user", content, **kw)

    def assistant(self, content: Content, **kw: Any) -> str:
        return self.say("assistant", content, **kw)

    def tool(
        self, result: Content, *, name: str = "bash", call: str = "call_1", error: bool = False
    ) -> tuple[str, str]:
        """An assistant entry that calls a tool, and the tool's result; returns both entry ids."""
        asked = self.assistant([{"type": "toolCall", "id": call, "name": name, "arguments": {"command": "true"}}])
        told = self.say("toolResult", result, extra={"toolCallId": call, "toolName": name, "isError": error})
        return asked, told

    def path(self, folder: str = "--w-demo--", name: str | None = None) -> Path:
        return self.archive.root / folder / (name or f"2026-03-02T10-00-00-000Z_{self.id}.jsonl")

    def save(
        self,
        folder: str = "--w-demo--",
        name: str | None = None,
        *,
        end: bytes = b"\n",
        eol: bytes = b"\n",
        prefix: bytes = b"",
    ) -> Path:
        path = self.path(folder, name)
        os.makedirs(path.parent, exist_ok=True)
        path.write_bytes(prefix + eol.join(self.lines) + end)
        return path
