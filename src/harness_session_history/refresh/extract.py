"""Transcripts into index records: reads files through the archive and analyses their text for the index.

One of the places where archive and index meet. It runs in the calling process for little work and in a process of
its own for much, with the same frames either way.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import msgspec

from ..archive.appends import can_resume
from ..archive.files import NotASession, Replaced, Unreadable, contained
from ..archive.transcript import TranscriptReader
from ..index import packing as runs
from ..index import trees
from ..index.schema import NODE_LIMIT, Entries, TreePart
from ..model.entries import Chunk, Facts
from ..model.sources import MAX_LINE, FileIdentity
from ..text.analysis import documents


class Task(msgspec.Struct, array_like=True):
    """One file to read, as the walk has `seen` it: from where `resume` ended if it has only grown since `known`, else from
    its start."""

    path: bytes
    seen: FileIdentity
    max_line: int = MAX_LINE
    resume: Facts | None = None
    known: FileIdentity | None = None


class Begin(msgspec.Struct, array_like=True, tag=1):
    """First frame of a file: whether it is read on (`resumed`) or from its start."""

    resumed: bool


class Part(msgspec.Struct, array_like=True, tag=2):
    """Some entries and nodes of the file, in order; how many characters of text, how many entries."""

    entries: Entries
    tree: list[TreePart]
    characters: int
    count: int


class End(msgspec.Struct, array_like=True, tag=3):
    """Last frame of a file that was read to its end."""

    facts: Facts
    identity: FileIdentity


class Failed(msgspec.Struct, array_like=True, tag=4):
    """Last frame of a file that gave nothing: it is no session, or it cannot be read for a `reason`; `identity` is None if
    the file that the walk saw is no longer there."""

    foreign: bool
    identity: FileIdentity | None
    reason: str = ""


Frame = Begin | Part | End | Failed


def read(task: Task) -> Iterator[Frame]:
    """The frames of one file. Never raises for what is in the file or for the file being away."""
    try:
        with contained():
            path, resume = os.fsdecode(task.path), task.resume
            if resume is not None and (task.known is None or not can_resume(path, resume, task.known, task.seen)):
                resume = None
            yield Begin(resume is not None)
            reader = TranscriptReader(path, task.seen, resume=resume, max_line=task.max_line)
            for chunk in reader:
                if chunk.first_node + len(chunk.kinds) > NODE_LIMIT:
                    raise Unreadable(f"it has more than {NODE_LIMIT} entries")
                yield _part(chunk)
            yield End(reader.facts, reader.identity)
    except NotASession:
        yield Failed(True, task.seen)
    except Replaced:
        yield Failed(False, None)
    except Unreadable as problem:
        yield Failed(False, task.seen, str(problem))


def _part(chunk: Chunk) -> Part:
    entries = chunk.entries
    packed = runs.pack(
        runs.Columns(
            [entry.node << 1 | entry.role for entry in entries],
            [entry.time for entry in entries],
            [entry.offset for entry in entries],
            [entry.length for entry in entries],
            [entry.key if entry.text else b"" for entry in entries],
        )
    )
    texts = [entry for entry in entries if entry.text]
    bodies, wholes = documents([entry.text for entry in texts], [entry.search_text for entry in texts])
    columns = Entries(
        packed,
        [entry.node << 1 | entry.role for entry in texts],
        bodies,
        wholes,
    )
    tree = list(trees.split(chunk.first_node, chunk.ids, chunk.kinds, chunk.links, chunk.marks))
    return Part(columns, tree, sum([len(entry.text) for entry in texts]), len(entries))
