"""Finding complete records in a line that does not parse, and reading JSON that nests too deep.

One pass over JSON tokens with an explicit stack: no recursion, and linear in the length of the line whatever it holds.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_TOKEN: Final = re.compile(
    rb"[ \t\r\n]*+(?:"
    rb"([{}\[\],:])"
    rb'|("(?:[^"\\\x00-\x1f]++|\\(?:["\\/bfnrt]|u[0-9A-Fa-f]{4}))*+")'
    rb"|(-?+(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?+(?:[eE][+-]?+[0-9]++)?+|true|false|null)"
    rb")"
)
# No program writes an entry that begins with another key; what else is nested in a broken record is passed over.
_CANDIDATE: Final = re.compile(rb'\{[ \t\r\n]*+"(?:type|id|parentId|timestamp|customType|message|version)"[ \t\r\n]*+:')
#: Keys below which only Pi itself writes objects; under others (arguments, details, data) may stand what anybody said.
_FIXED: Final = frozenset(
    [b""] + [b'"%s"' % key for key in b"type id parentId timestamp version cwd message role content text name".split()]
)
_PADDING: Final = re.compile(rb"[ \t\r\n\x00]*+")

_VALUE, _VALUE_OR_END, _KEY_OR_END, _KEY, _COLON, _AFTER = range(6)
_SHALLOW: Final = 12
_DEEPEST: Final = 1_000_000  # what nests deeper was written by no program; the rest of its line is not looked at
_ATTEMPTS: Final = 50_000


class _Scan(NamedTuple):
    """``end`` is where the object is complete, -1 if it never is; then ``error`` is the first byte that does not fit,
    ``inner`` the span of the last object that was completed inside, and ``free`` says whether anything may stand there
    (below a key of tool arguments, for example)."""

    end: int
    error: int
    inner: tuple[int, int]
    free: bool = False


def scan(data: bytes, start: int) -> _Scan:
    """Reads the one JSON object or array that begins at ``start``, by its grammar only."""
    stack: list[int] = []
    keys: list[bytes] = []  # of each object or array on the stack, the key that was read last
    inner = (-1, -1)

    def broken(error: int) -> _Scan:
        return _Scan(-1, error, inner, not _FIXED.issuperset(keys))

    state, position, match = _VALUE, start, _TOKEN.match
    while True:
        token = match(data, position)
        if token is None:
            blank = _PADDING.match(data, position)
            return broken(blank.end() if blank else position)
        kind = token.lastindex
        at = token.start(kind or 0)
        position = token.end()
        if kind == 1:
            char = data[at]
            if char in b"{[" and state in (_VALUE, _VALUE_OR_END):
                if len(stack) == _DEEPEST:
                    return _Scan(-1, len(data), (-1, -1))
                stack.append(at)
                keys.append(b"")
                state = _KEY_OR_END if char == 0x7B else _VALUE_OR_END
            elif char == 0x7D and state in (_KEY_OR_END, _AFTER) and data[stack[-1]] == 0x7B:
                inner = (stack.pop(), position)
                keys.pop()
                state = _AFTER
            elif char == 0x5D and state in (_VALUE_OR_END, _AFTER) and data[stack[-1]] == 0x5B:
                stack.pop()
                keys.pop()
                state = _AFTER
            elif char == 0x2C and state == _AFTER:
                state = _KEY if data[stack[-1]] == 0x7B else _VALUE
            elif char == 0x3A and state == _COLON:
                state = _VALUE
            else:
                return broken(at)
            if not stack:
                return _Scan(position, -1, inner)
        elif kind == 2 and state in (_KEY, _KEY_OR_END):
            state, keys[-1] = _COLON, token[2]
        elif state in (_VALUE, _VALUE_OR_END) and stack:
            state = _AFTER
        else:
            return broken(at)


class Candidate(NamedTuple):
    """A complete object in a damaged line; ``nested`` if only its content can tell that it is a record of its own."""

    start: int
    end: int
    nested: bool


def complete_objects(line: bytes) -> list[Candidate]:
    """The complete objects of a damaged line that may be records, in order.

    Objects that stand at the beginning of the line, directly behind such a one, or where the broken record before them
    could not go on with an object, are records for sure. Elsewhere behind a broken part, an object counts only if the
    line ends or another object begins where it ends (what is merely nested in a broken record is followed by the rest of
    that record), and if it does not stand where a record holds what others said. The effort for one line is bounded.
    """
    found: list[Candidate] = []
    top = _skip_padding(line, 0)
    position, cut_in = _next_candidate(line, 0), False
    attempts = 0
    while position >= 0 and attempts < _ATTEMPTS:
        attempts += 1
        result = scan(line, position)
        span = (position, result.end) if result.end >= 0 else result.inner
        after = _skip_padding(line, span[1]) if span[1] >= 0 else -1
        if result.end >= 0:
            sure = position == top or (cut_in and (after == len(line) or line[after] not in b",]}"))
            if sure or after == len(line) or line[after] == 0x7B:
                found.append(Candidate(*span, nested=not sure))
                top = after
            position, cut_in = _next_candidate(line, result.end), False
            continue
        error = result.error
        if span[1] >= 0 and after == error and (after == len(line) or line[after] == 0x7B):
            if result.free:
                position, cut_in = _next_candidate(line, error), False
                continue
            found.append(Candidate(*span, nested=True))
            top = after
            position, cut_in = _next_candidate(line, span[1]), False
            continue
        # Cut inside a string, a record that follows closes that string with its own first quote: it began at the last
        # brace before the error. Otherwise nothing before the error can be a record.
        glued = line.rfind(b"{", position + 1, error + 1)
        if glued >= 0 and _CANDIDATE.match(line, glued):
            position, cut_in = glued, line[glued + 1 : error].strip(b" \t\r\n") in (b"", b'"')
        else:
            position, cut_in = _next_candidate(line, max(error, position + 1)), False
    return found


def has_waste(line: bytes, spans: list[tuple[int, int]]) -> bool:
    """Whether anything but white space lies outside the spans (ascending) of the records that were read."""
    position = 0
    for start, end in spans:
        if line[position:start].strip(b" \t\r"):
            return True
        position = end
    return bool(line[position:].strip(b" \t\r"))


def shallow(data: bytes) -> bytes | None:
    """The same JSON with everything below a fixed depth replaced by null; None if it is not JSON."""
    start = _skip_padding(data, 0)
    result = scan(data, start)
    if result.end < 0 or data[result.end :].strip(b" \t\r\n"):
        return None
    pieces: list[bytes] = []
    depth, copied = 0, start
    for token in _TOKEN.finditer(data, start, result.end):
        if token.lastindex != 1:
            continue
        at = token.start(1)
        if data[at] in b"{[":
            depth += 1
            if depth == _SHALLOW:
                pieces += [data[copied:at], b"null"]
        elif data[at] in b"}]":
            if depth == _SHALLOW:
                copied = at + 1
            depth -= 1
    pieces.append(data[copied : result.end])
    return b"".join(pieces)


def _skip_padding(data: bytes, position: int) -> int:
    match = _PADDING.match(data, position)
    return match.end() if match else position


def _next_candidate(data: bytes, position: int) -> int:
    match = _CANDIDATE.search(data, position)
    return match.start() if match else -1
