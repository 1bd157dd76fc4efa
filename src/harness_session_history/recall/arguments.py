"""The arguments of the tools for one conversation, declared as those of `session_history` are (see `arguments`)."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Required, TypedDict

from ..arguments import Argument, checked, declared
from ..errors import InvalidRequest
from ..model.names import MAX_ID_CHARS


class SearchArguments(TypedDict, total=False):
    """What ``history_search`` takes."""

    query: Required[
        Annotated[
            str,
            Argument(
                'Words that must all stand in one entry; "…" is a phrase, word* a prefix',
                low=1, high=500, required=("history_search",),
            ),
        ]
    ]  # fmt: skip
    before: Annotated[
        str | None,
        Argument(
            "An entry id: search what stands before it, instead of what has left your context", low=1, high=MAX_ID_CHARS
        ),
    ]
    limit: Annotated[int, Argument("Most hits", 10, low=1, high=20)]


ReadArguments = TypedDict(
    "ReadArguments",
    {
        "mode": Annotated[
            Literal["items", "range", "tail"],
            Argument(
                "items: the entries named (needs entries, takes around); range: from one entry on (needs from, takes to "
                "and limit); tail: the last entries before what is in your context (takes count). Each takes cursor",
                required=("history_read",),
            ),
        ],
        "entries": Annotated[
            list[str] | None,
            Argument(
                "Ids of the entries to read", low=1, high=20, operations=("items",), required=("items",), type="ids"
            ),
        ],
        "around": Annotated[
            int, Argument("How many entries before and after each to read too", 0, low=0, high=5, operations=("items",))
        ],
        "from": Annotated[
            str | None, Argument("Id of the first entry", low=1, high=MAX_ID_CHARS, operations=("range",))
        ],
        "to": Annotated[
            str | None,
            Argument(
                "Id of the last entry; without it the newest there is", low=1, high=MAX_ID_CHARS, operations=("range",)
            ),
        ],
        "limit": Annotated[int, Argument("Most entries", 20, low=1, high=50, operations=("range",))],
        "count": Annotated[int, Argument("How many entries", 10, low=1, high=20, operations=("tail",))],
        "cursor": Annotated[
            str | None,
            Argument("To go on: the next of the last answer, with the same arguments as before", low=1, high=256),
        ],
    },
    total=False,
)


class HandoffArguments(TypedDict):
    """What ``history_handoff`` takes."""

    text: Annotated[
        str,
        Argument(
            "All that the work needs to go on in a new context: the task, what was decided and done, what is next, and the "
            "ids of entries worth reading again",
            low=1, high=100_000, required=("history_handoff",),
        ),
    ]  # fmt: skip


SEARCH, READ, HANDOFF = declared(SearchArguments), declared(ReadArguments), declared(HandoffArguments)


def checked_read(given: dict[str, object]) -> dict[str, Any]:
    """The arguments of ``history_read`` for its mode. Raises InvalidRequest."""
    if "mode" not in given:
        raise InvalidRequest(f"history_read needs mode ({READ['mode'].bound})", hint="Give mode.")
    mode = checked({"mode": READ["mode"]}, {"mode": given["mode"]}, "history_read")["mode"]
    values = checked(READ, given, mode, f"mode {mode}")
    if mode == "range" and values["from"] is None and values["cursor"] is None:
        raise InvalidRequest(f"mode range needs from ({READ['from'].bound})", hint="Give from.")
    return values


def checked_handoff(given: dict[str, object]) -> str:
    """The text of ``history_handoff``. Raises InvalidRequest."""
    text: str = checked(HANDOFF, given, "history_handoff")["text"]
    if not text.strip():
        raise InvalidRequest("text is blank", hint="Write down what the work needs to go on.")
    return text
