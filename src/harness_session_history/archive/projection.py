"""Entry -> visible text: which parts of a message are text, and how text becomes harmless (contract section 5).

``clean`` is applied to everything that leaves a transcript. ``project`` gives the text by which an entry is found
and cited; ``view`` and ``parts`` are the richer renderings of the same entry for people and for recall.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice
from typing import Any, Final, Literal, NamedTuple

import msgspec

from ..model.entries import USER
from ..text.clean import TOOL_CHARS, clean, is_clean, one_line, searchable

IMAGE: Final = "[image]"
THINKING: Final = "[thinking]"


class Block(msgspec.Struct, gc=False):
    """What indexing needs of a content block; the rest (image data, arguments) is never built."""

    type: str = ""
    text: str | None = None


class DetailBlock(msgspec.Struct, gc=False):
    """What showing an entry needs of a content block; fields of a wrong type count as absent."""

    type: str = ""
    text: str | None = None
    id: Any = None
    name: Any = None
    fileName: Any = None
    filename: Any = None
    title: Any = None


class Part(NamedTuple):
    """One piece of a message in its order: text, or a placeholder for what is never shown."""

    kind: Literal["text", "thinking", "image", "attachment"]
    text: str


class ToolCall(NamedTuple):
    """A call an assistant made; ``call_id`` is as stored and only serves to find its result."""

    call_id: str
    name: str


_SKILL: Final = re.compile(r"""<skill((?:\s++[\w:.-]++\s*+=\s*+(?:"[^"]*+"|'[^']*+'))*+)\s*+>|</skill\s*+>""")
_SKILL_NAME: Final = re.compile(r"""\sname\s*=\s*(?:"([^"]*)"|'([^']*)')""")
_SKILL_NAME_ELEMENT: Final = re.compile(r"\s*+<name>([^<]{0,256}+)</name>")
_SKILL_NESTING: Final = 64
_MARKER: Final = re.compile(r"\s*<!--\s*persistent-harness-input:(?:(?!-->).)*-->\s*\Z", re.DOTALL)
_MARKER_START: Final = "persistent-harness-input:"


def project(role: int, content: str | Sequence[Block] | Sequence[DetailBlock]) -> tuple[str, str]:
    """(text, search text) of a message: the text blocks joined by a blank line, cleaned; both "" without text.

    The search text is "" unless the index should read the entry differently (see ``searchable``).
    """
    if isinstance(content, str):
        raw = [content]
    else:
        raw = [b.text for b in content if b.text and b.type == "text"]
        if not raw:
            return "", ""
    if len(raw) == 1 and is_clean(raw[0]):
        return _block_text(role, raw[0]), ""
    text = _join([_block_text(role, clean(r)) for r in raw])
    if not text or all(map(is_clean, raw)):
        return text, ""
    apart = _join([_block_text(role, searchable(r) or clean(r)) for r in raw])
    return text, "" if apart == text else apart


def project_all(roles: Sequence[int], contents: Sequence[str | Sequence[Block]]) -> list[tuple[str, str]]:
    """`project` of many messages; those of one text block, which are nearly all, are looked through as one text."""
    singles = [_single(content) for content in contents]
    clean_all = is_clean("\n".join([single for single in singles if single]))
    found = []
    for role, content, single in zip(roles, contents, singles, strict=True):
        if single == "":
            found.append(("", ""))
        elif single is not None and clean_all:
            found.append((_block_text(role, single), ""))
        else:
            found.append(project(role, content))
    return found


def _single(content: str | Sequence[Block]) -> str | None:
    """The one text block of a message, "" if it has none, None if it has several."""
    if isinstance(content, str):
        return content
    texts = [block.text for block in content if block.text and block.type == "text"]
    return None if len(texts) > 1 else texts[0] if texts else ""


def _join(texts: Sequence[str]) -> str:
    return "\n\n".join([text for text in texts if text])


def _block_text(role: int, text: str) -> str:
    """One cleaned text block without what a client put into it; "" if only white space is left."""
    if role == USER and "<" in text:
        if _MARKER_START in text:
            text = _drop_markers(text)
        if "<skill" in text:
            text = _fold_skills(text)
    return "" if not text or text.isspace() else text


def _drop_markers(text: str) -> str:
    end = len(text)
    start = text.rfind("<!--")
    while start >= 0 and _MARKER.match(text, start, end):
        end = start
        while end and text[end - 1].isspace():
            end -= 1
        start = text.rfind("<!--", 0, end)
    return text[:end]


def _fold_skills(text: str) -> str:
    """Each ``<skill …>body</skill>`` becomes ``[skill: name]``; a body that never ends is left as it is."""
    further = _SKILL.finditer(text)
    tags = list(islice(further, _SKILL_NESTING))
    pieces: list[str] = []
    done = 0
    while tags:
        opening = tags[0]
        closing = None if opening[0].startswith("</") else _closing(tags)
        passed = tags[: 1 if closing is None else closing + 1]
        tags = [*tags[len(passed) :], *islice(further, len(passed))]
        if closing is None:
            continue
        name = _SKILL_NAME.search(opening[1]) or _SKILL_NAME_ELEMENT.match(text, opening.end())
        label = one_line(name[name.lastindex or 0] if name else "", 64)
        pieces += [text[done : opening.start()], f"[skill: {label or 'unnamed'}]"]
        done = passed[-1].end()
    return "".join([*pieces, text[done:]])


def _closing(tags: Sequence[re.Match[str]]) -> int | None:
    """The tag that ends the skill that the first one begins: the one that balances it, else (a body that only mentions the
    tag) the first end."""
    depth, first = 0, None
    for index, tag in enumerate(tags):
        if tag[0].startswith("</"):
            depth -= 1
            first = index if first is None else first
            if depth == 0:
                return index
        else:
            depth += 1
    return first


def parts(role: int, content: str | Sequence[DetailBlock]) -> list[Part]:
    """The pieces of a message in order, cleaned; tool calls and unknown blocks are left out."""
    if isinstance(content, str):
        text = _block_text(role, clean(content))
        return [Part("text", text)] if text else []
    found: list[Part] = []
    for block in content:
        if block.type == "text":
            text = _block_text(role, clean(block.text or ""))
            if text:
                found.append(Part("text", text))
        elif block.type == "image":
            found.append(Part("image", IMAGE))
        elif block.type in ("thinking", "redacted_thinking"):
            found.append(Part("thinking", THINKING))
        elif block.type in ("attachment", "file", "document"):
            found.append(Part("attachment", f"[attachment: {_attachment_name(block)}]"))
    return found


def _attachment_name(block: DetailBlock) -> str:
    names = (one_line(n) for n in (block.name, block.fileName, block.filename, block.title))
    return next((n.replace("]", ")") for n in names if n), "unnamed")


def text_of(pieces: Sequence[Part]) -> str:
    """The text that is indexed and hashed: the same as ``project`` gives."""
    return "\n\n".join([p.text for p in pieces if p.kind == "text"])


def view_of(pieces: Sequence[Part]) -> str:
    """The text that ``open`` shows: with ``[image]`` where an image stands."""
    return "\n\n".join([p.text for p in pieces if p.kind in ("text", "image")])


def tool_calls(content: str | Sequence[DetailBlock]) -> list[ToolCall]:
    """The tools an assistant called, in order: names cleaned and bounded, arguments never."""
    if isinstance(content, str):
        return []
    return [
        ToolCall(b.id if isinstance(b.id, str) else "", one_line(b.name, TOOL_CHARS) or "unnamed")
        for b in content
        if b.type == "toolCall"
    ]
