"""The opaque place at which reading a conversation goes on."""

from __future__ import annotations

import base64
from hashlib import sha256
from typing import Annotated

import msgspec
from msgspec import Meta

from .errors import InvalidRequest

#: Of the SHA-256 of a cursor, so many bytes stand behind it: a slip in copying must not read on somewhere else.
CHECK_BYTES = 6

Count = Annotated[int, Meta(ge=0, le=(1 << 48) - 1)]
EntryHash = Annotated[int, Meta(ge=-(1 << 63), le=(1 << 63) - 1)]


class Cursor(msgspec.Struct, array_like=True, frozen=True):
    """`node` and `chars` are the place; the rest says for which request, on which state of which conversation.

    `state` is the fingerprint of the first `nodes` entries; `first` and `last` stand for the request's arguments.
    """

    mode: str
    conversation: EntryHash
    nodes: Count
    state: bytes
    node: Count
    chars: Count
    first: EntryHash | None
    last: EntryHash | None


def encoded(cursor: Cursor) -> str:
    """The cursor as a caller gets it."""
    packed = msgspec.msgpack.encode(cursor)
    return base64.urlsafe_b64encode(packed + sha256(packed).digest()[:CHECK_BYTES]).decode().rstrip("=")


def read_cursor(text: str) -> Cursor:
    """The cursor that was given. Raises InvalidRequest if it is none, or not every character of it is as it was."""
    try:
        packed = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))[:-CHECK_BYTES]
        cursor = msgspec.msgpack.decode(packed, type=Cursor)
    except ValueError:
        cursor = None
    # One place is written in one way only, so this also holds the check bytes and every bit against the text.
    if cursor is None or encoded(cursor) != text or cursor.node >= cursor.nodes:
        raise InvalidRequest(
            "cursor is not one that was given as next", hint="copy next unchanged, or leave cursor out"
        )
    return cursor
