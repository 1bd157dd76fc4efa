"""Transcripts into index records: reads files through the archive and analyses their text for the index.

One of the places where archive and index meet. It runs in the calling process for little work and in a process of
its own for much, with the same frames either way.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import msgspec

from ..archive.files import Unreadable
from ..archive.transcript import NotASession, TranscriptReader, can_resume
from ..errors import log_warning
from ..index import packing as runs
from ..index import trees
from ..index.schema import NODE_LIMIT, Entries, TreePart
from ..model.entries import Chunk, Facts
from ..model.sources import FileIdentity
from ..text.analysis import documents


class Task(msgspec.Struct, array_like=True):
    """One file to read: from where `resume` ended if the file has only grown since `known`, else from its start."""

    path: bytes
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
    """Last frame of a file that gave nothing: no session, or it cannot be read."""

    foreign: bool
    identity: FileIdentity | None


Frame = Begin | Part | End | Failed


def read(task: Task) -> Iterator[Frame]:
    """The frames of one file. Never raises for what is in the file or for the file being away."""
    path = os.fsdecode(task.path)
    try:
        identity = FileIdentity.of(os.stat(path))
    except OSError:
        yield Failed(False, None)
        return
    resume = task.resume
    if resume is not None and (task.known is None or not can_resume(path, resume, task.known, identity)):
        resume = None
    yield Begin(resume is not None)
    try:
        reader = TranscriptReader(path, resume=resume)
        for chunk in reader:
            if chunk.first_node + len(chunk.kinds) > NODE_LIMIT:
                log_warning("a transcript with more than %d entries is not indexed", NODE_LIMIT)
                yield Failed(False, identity)
                return
            yield _part(chunk)
        yield End(reader.facts, reader.identity)
    except NotASession:
        yield Failed(True, identity)
    except Unreadable:
        yield Failed(False, identity)


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
