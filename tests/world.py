"""A made-up archive with a history over it, asked like a caller asks; every answer is checked against its declared shape."""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from builder import ArchiveBuilder, SessionBuilder
from harness_session_history import SessionHistory, SessionHistoryError
from harness_session_history import response as shapes

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
_TIMES = {"createdAt", "updatedAt", "snapshotAt", "oldestIndexedAt", "newestIndexedAt", "checkedAt"}
_ANSWERS: dict[str, Any] = {"list": shapes.ListAnswer, "search": shapes.SearchAnswer, "open": shapes.OpenAnswer}


class World(ArchiveBuilder):
    """An archive below `folder` and one history over it. Nothing happens in the background."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.folder = folder
        self.index = folder / "index" / "history.sqlite3"
        self._history: SessionHistory | None = None

    def history(self, **settings: Any) -> SessionHistory:
        """A new history with these settings, in the place of the one before."""
        self.close()
        self._history = SessionHistory(**{"roots": [self.root], "index": self.index, "maintenance": False, **settings})
        return self._history

    def close(self) -> None:
        if self._history is not None:
            asyncio.run(self._history.close())
            self._history = None

    def ask(self, **arguments: Any) -> dict[str, Any]:
        """One answer, checked."""
        answer = asyncio.run((self._history or self.history())(**arguments))
        check_answer(answer)
        return answer

    def refresh(self) -> None:
        self.ask(operation="list", refresh=True)

    def search(self, query: str, *, refresh: bool = True, **arguments: Any) -> dict[str, Any]:
        return self.ask(operation="search", query=query, refresh=refresh, **arguments)

    def hits(self, query: str, **arguments: Any) -> list[dict[str, Any]]:
        results: list[dict[str, Any]] = self.search(query, **arguments)["results"]
        return results

    def found(self, query: str, **arguments: Any) -> list[str]:
        """The entry ids found, in order."""
        return [hit["citation"]["entryId"] for hit in self.hits(query, **arguments)]

    def sessions_found(self, query: str, **arguments: Any) -> list[str]:
        return [hit["citation"]["sessionId"] for hit in self.hits(query, **arguments)]

    def texts(self, query: str, **arguments: Any) -> list[str]:
        return [hit["snippet"] for hit in self.hits(query, **arguments)]

    def list(self, *, refresh: bool = True, **arguments: Any) -> list[dict[str, Any]]:
        results: list[dict[str, Any]] = self.ask(operation="list", refresh=refresh, **arguments)["results"]
        return results

    def listed(self, **arguments: Any) -> list[str]:
        return [view["sessionId"] for view in self.list(**arguments)]

    def view(self, session: SessionBuilder, **arguments: Any) -> dict[str, Any]:
        """What is said of a session when everything is up to date."""
        self.refresh()
        (view,) = self.list(session_id=session.id, refresh=False, **arguments)
        return view

    def sources(self, **arguments: Any) -> dict[str, int]:
        """The counts of the freshness, without a refresh unless asked for."""
        counts: dict[str, int] = self.ask(**{"operation": "list", **arguments})["freshness"]["sources"]
        return counts

    def open(
        self, session: SessionBuilder | str, entry_id: str, *, refresh: bool = True, **arguments: Any
    ) -> dict[str, Any]:
        session_id = session if isinstance(session, str) else session.id
        return self.ask(operation="open", session_id=session_id, entry_id=entry_id, refresh=refresh, **arguments)

    def opened(self, session: SessionBuilder | str, entry_id: str, **arguments: Any) -> list[str]:
        """The texts around an entry."""
        return [message["text"] for message in self.open(session, entry_id, **arguments)["messages"]]

    def refused(self, error: type[SessionHistoryError], **arguments: Any) -> SessionHistoryError:
        """The error that a call raises."""
        try:
            answer = asyncio.run((self._history or self.history())(**arguments))
        except error as raised:
            return raised
        raise AssertionError(f"no {error.__name__}, but an answer with {list(answer)}")

    def index_bytes(self) -> bytes:
        """Everything in the index folder."""
        return b"".join(path.read_bytes() for path in sorted(self.index.parent.iterdir()))

    def say(self, name: str, *texts: str, **header: Any) -> SessionBuilder:
        """A saved session of user messages."""
        session = self.session(name, **header)
        for text in texts:
            session.user(text)
        session.save()
        return session


def check_answer(answer: dict[str, Any]) -> None:
    """Valid JSON and UTF-8, the declared fields and no others, times in one form."""
    assert isinstance(answer, dict)
    text = json.dumps(answer, ensure_ascii=False)
    assert json.loads(text.encode("utf-8")) == answer
    _check_shape(answer, _ANSWERS[answer["operation"]])
    _check_times(answer)
    sources = answer["freshness"]["sources"]
    assert answer["dataOnly"] is True and answer["warning"]
    assert answer["complete"] == (sources["changed"] + sources["missing"] + sources["unavailable"] == 0)
    if answer["operation"] == "search":
        few = len(answer["results"]) < 5 and not answer["truncated"]
        assert ("hints" in answer) == (few or not answer["results"])
        for hit in answer["results"]:
            _check_shape(hit, shapes.Hit)
            _check_view(hit["session"])
        for hit in answer.get("hints", {}).get("nearest", []):
            _check_shape(hit, shapes.NearHit)
            _check_view(hit["session"])
    elif answer["operation"] == "list":
        for view in answer["results"]:
            _check_view(view, shapes.ListedSession)
    else:
        _check_view(answer["session"])
        for message in answer["messages"]:
            _check_shape(message, shapes.Message)


def _check_shape(value: dict[str, Any], shape: Any) -> None:
    assert shape.__required_keys__ <= value.keys() <= shape.__required_keys__ | shape.__optional_keys__


def _check_view(view: dict[str, Any], shape: Any = shapes.SessionView) -> None:
    _check_shape(view, shape)
    for name, kind in (("deleted", bool), ("current", bool), ("depth", int), ("messageCount", int), ("name", str)):
        assert type(view[name]) is kind, name
    assert len(view["name"].splitlines()) == 1


def _check_times(value: object) -> None:
    if isinstance(value, dict):
        for name, item in value.items():
            if name in _TIMES and item is not None:
                assert TIME.fullmatch(item), (name, item)
            _check_times(item)
    elif isinstance(value, list):
        for item in value:
            _check_times(item)


def replace(path: Path, old: str | bytes, new: str | bytes) -> None:
    """Rewrites a part of a file in place."""
    data = path.read_bytes()
    one, other = (item.encode() if isinstance(item, str) else item for item in (old, new))
    assert one in data
    with open(path, "r+b") as file:
        file.write(data.replace(one, other))
        file.truncate()


def append(path: Path, lines: Iterable[bytes]) -> None:
    with open(path, "ab") as file:
        file.write(b"".join(line + b"\n" for line in lines))


def without_environment(environment: dict[str, str]) -> dict[str, str]:
    """An environment that says nothing about sessions."""
    return {name: value for name, value in environment.items() if not name.startswith(("SESSION_HISTORY_", "PI_"))}


def touch(path: Path, seconds: float) -> None:
    os.utime(path, (seconds, seconds))


def history_alone(root: Path, index: Path) -> SessionHistory:
    """A history that does all its work in this process."""
    history = SessionHistory(roots=[root], index=index, maintenance=False)
    history.stand_alone()
    return history
