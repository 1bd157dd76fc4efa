"""The opaque place at which reading a conversation goes on."""

from __future__ import annotations

import base64
import binascii

import msgspec

from .errors import InvalidRequest

#: The longest cursor there is.
MAX_CHARS = 256


class Cursor(msgspec.Struct, array_like=True, frozen=True):
    """`node` and `chars` are the place; the rest says for which request, on which state of which conversation.

    `state` is the fingerprint of the first `nodes` entries; `first` and `last` stand for the request's arguments.
    """

    mode: str
    conversation: int
    nodes: int
    state: bytes
    node: int
    chars: int
    first: int | None
    last: int | None


def encoded(cursor: Cursor) -> str:
    """The cursor as a caller gets it."""
    return base64.urlsafe_b64encode(msgspec.msgpack.encode(cursor)).decode().rstrip("=")


def read_cursor(text: str) -> Cursor:
    """The cursor that was given. Raises InvalidRequest if it is none."""
    try:
        cursor = msgspec.msgpack.decode(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)), type=Cursor)
    except (ValueError, binascii.Error, msgspec.DecodeError):
        cursor = None
    if cursor is None or min(cursor.nodes, cursor.node, cursor.chars) < 0:
        raise InvalidRequest(
            "cursor is not one that was given as next", hint="copy next unchanged, or leave cursor out"
        )
    return cursor
