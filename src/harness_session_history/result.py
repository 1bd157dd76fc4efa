"""The dict that carries an answer, of a class for each operation: what a type checker knows of its keys, and how it shows
itself. Its shape is declared in `response`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, overload

from .response import Citation, Hit, ListedSession, Message, SessionView

if TYPE_CHECKING:
    from .response import Freshness, Hints, Spans

Current = Literal["excluded", "included", "unknown"]


class HistoryResult(dict[str, Any]):
    """An answer: a real dict of the shapes above, which also shows itself in a notebook.

    ``marks`` holds, for each of ``results``, the ``(start, end)`` spans of matched words in its snippet, ``function``
    what was called (``history`` stands for an object that the caller holds) and ``asked`` the arguments that were given,
    so that a display can offer the call by which one reads on. Displays use them; they are no part of the data and of no
    JSON.
    """

    function = "history"
    asked: Mapping[str, Any] = MappingProxyType({})

    def __init__(
        self, *values: Any, marks: list[Spans] | None = None, marker: Callable[[str], Spans] | None = None
    ) -> None:
        super().__init__(*values)
        self._marks, self._marker = marks, marker

    def __reduce__(self) -> tuple[Any, ...]:
        # What works out the marks belongs to this process; what is copied or pickled carries the marks themselves.
        return type(self), (dict(self),), {"_marks": self.marks, "function": self.function, "asked": dict(self.asked)}

    @property
    def marks(self) -> list[Spans]:
        """Worked out by `marker` from the snippets when a display first asks."""
        if self._marks is None:
            self._marks = [self._marker(hit["snippet"]) for hit in self["results"]] if self._marker else []
        return self._marks

    @marks.setter
    def marks(self, marks: list[Spans]) -> None:
        self._marks = marks

    def to_records(self) -> list[dict[str, Any]]:
        """One flat dict per session (list), hit (search) or message (open), all with the keys `columns`: a data frame's
        rows."""
        if self["operation"] == "open":
            return [_message_record(message, self["entryId"]) for message in self["messages"]]
        if self["operation"] == "search":
            return [_hit_record(hit) for hit in self["results"]]
        return [dict(view) for view in self["results"]]

    @property
    def columns(self) -> list[str]:
        """The keys of `to_records`, also where the answer is empty: ``DataFrame(answer.to_records(), columns=answer.columns)``."""
        view = [name for name in ListedSession.__annotations__ if name != "root"]  # (which few sessions have)
        citation = list(Citation.__annotations__)
        if self["operation"] == "open":
            own = [name for name in Message.__annotations__ if name not in ("citation", "tools")]
            return list(dict.fromkeys([*citation, *own, "tools", "target"]))
        if self["operation"] == "search":
            own = [name for name in Hit.__annotations__ if name not in ("citation", "session", "alsoIn")]
            return [
                *citation,
                *own,
                "alsoIn",
                *(f"session.{name}" for name in view if name in SessionView.__annotations__ and name != "sessionId"),
            ]
        return view

    def to_frame(self) -> Any:
        """The records as a pandas DataFrame with all columns, also where there is no record. Needs pandas."""
        from importlib import import_module

        return import_module("pandas").DataFrame(self.to_records(), columns=self.columns)

    def text_for_model(self) -> str:
        """The answer as compact text for a model's context (see docs/text.md), which names calls of the tool."""
        from .display.text import render_text_for_model

        return render_text_for_model(self)

    def _repr_html_(self) -> str:
        from .display.notebook import render_html

        return render_html(self)

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        return {"text/html": self._repr_html_(), "text/plain": self._cards()}

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        # IPython has a printer for every dict, which it prefers to what the bundle above says of plain text.
        printer.text(self._cards().rstrip("\n"))

    def _cards(self) -> str:
        import shutil
        import sys

        from .display.commands import in_python
        from .display.terminal import render_text

        # A notebook's output is no terminal: there the width must not depend on where its server was started.
        terminal = sys.stdout is not None and sys.stdout.isatty()
        width = shutil.get_terminal_size().columns if terminal else 100
        commands = in_python(self.function, self.asked)
        return render_text(self, color=False, width=width, commands=commands, local=terminal)


class ListResult(HistoryResult):
    """What `list` answers: a dict of the shape `ListAnswer`."""

    if TYPE_CHECKING:  # a key of any other name is an error

        @overload  # type: ignore[override]
        def __getitem__(self, key: Literal["results"], /) -> list[ListedSession]: ...
        @overload
        def __getitem__(self, key: Literal["complete", "truncated"], /) -> bool: ...
        @overload
        def __getitem__(self, key: Literal["redacted"], /) -> int: ...
        @overload
        def __getitem__(self, key: Literal["freshness"], /) -> Freshness: ...
        @overload
        def __getitem__(self, key: Literal["operation"], /) -> Literal["list", "search", "open"]: ...
        @overload
        def __getitem__(self, key: Literal["dataOnly"], /) -> Literal[True]: ...
        @overload
        def __getitem__(self, key: Literal["warning"], /) -> str: ...
        @overload
        def __getitem__(self, key: Literal["currentSession"], /) -> Current: ...
        def __getitem__(self, key: str, /) -> Any: ...


class SearchResult(HistoryResult):
    """What `search` answers: a dict of the shape `SearchAnswer`."""

    if TYPE_CHECKING:

        @overload  # type: ignore[override]
        def __getitem__(self, key: Literal["results"], /) -> list[Hit]: ...
        @overload
        def __getitem__(self, key: Literal["hints"], /) -> Hints: ...
        @overload
        def __getitem__(self, key: Literal["unavailableSessionIds"], /) -> list[str]: ...
        @overload
        def __getitem__(
            self, key: Literal["complete", "truncated", "rankedAll", "unavailableTruncated"], /
        ) -> bool: ...
        @overload
        def __getitem__(self, key: Literal["redacted"], /) -> int: ...
        @overload
        def __getitem__(self, key: Literal["freshness"], /) -> Freshness: ...
        @overload
        def __getitem__(self, key: Literal["operation"], /) -> Literal["list", "search", "open"]: ...
        @overload
        def __getitem__(self, key: Literal["dataOnly"], /) -> Literal[True]: ...
        @overload
        def __getitem__(self, key: Literal["query", "warning"], /) -> str: ...
        @overload
        def __getitem__(self, key: Literal["currentSession"], /) -> Current: ...
        def __getitem__(self, key: str, /) -> Any: ...


class OpenResult(HistoryResult):
    """What `open` answers: a dict of the shape `OpenAnswer`."""

    if TYPE_CHECKING:

        @overload  # type: ignore[override]
        def __getitem__(self, key: Literal["messages"], /) -> list[Message]: ...
        @overload
        def __getitem__(self, key: Literal["session"], /) -> SessionView: ...
        @overload
        def __getitem__(self, key: Literal["citation"], /) -> Citation: ...
        @overload
        def __getitem__(self, key: Literal["moreBefore", "moreAfter", "redacted"], /) -> int: ...
        @overload
        def __getitem__(
            self, key: Literal["complete", "truncated", "truncatedBefore", "truncatedAfter"], /
        ) -> bool: ...
        @overload
        def __getitem__(self, key: Literal["freshness"], /) -> Freshness: ...
        @overload
        def __getitem__(self, key: Literal["operation"], /) -> Literal["list", "search", "open"]: ...
        @overload
        def __getitem__(self, key: Literal["dataOnly"], /) -> Literal[True]: ...
        @overload
        def __getitem__(self, key: Literal["sessionId", "entryId", "warning"], /) -> str: ...
        @overload
        def __getitem__(self, key: Literal["currentSession"], /) -> Current: ...
        def __getitem__(self, key: str, /) -> Any: ...


RESULTS: dict[str, type[HistoryResult]] = {"list": ListResult, "search": SearchResult, "open": OpenResult}


def _hit_record(hit: Hit) -> dict[str, Any]:
    about = {f"session.{name}": value for name, value in hit["session"].items() if name != "sessionId"}
    own = {name: value for name, value in hit.items() if name not in ("citation", "session", "alsoIn")}
    return {**hit["citation"], **own, "alsoIn": tuple(hit.get("alsoIn", ())), **about}


def _message_record(message: Message, target: str) -> dict[str, Any]:
    own = {name: value for name, value in message.items() if name not in ("citation", "tools")}
    tools = tuple(f"{tool['name']}: {tool['status']}" for tool in message.get("tools", ()))
    return {**message["citation"], **own, "tools": tools, "target": message["entryId"] == target}
