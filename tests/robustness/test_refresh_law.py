"""The law of incremental indexing: whatever happened to the files, the index is as if it had been built from nothing."""

from __future__ import annotations

import itertools
import os
import random
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from builder import ArchiveBuilder, SessionBuilder, line, stamp, uid
from harness_session_history import SessionHistory, SessionNotFound
from harness_session_history.index.catalog import Catalog
from harness_session_history.model.limits import LIMITS
from index_contents import answers, contents, differences
from world import history_alone

WORDS = ("anchor", "Bergamot", "cobaltBlue", "delta_wing", "评审会议", "échelle", "fox-trot")
QUERIES = ("anchor", "cobalt", "delta_wing bergamot", "评审", "fox-trot echelle anchor", "be*", "anchr wing nowhere")


class Archive:
    """Session files and the things that happen to them. Every choice comes from one source of random numbers."""

    def __init__(self, folder: Path, chance: random.Random) -> None:
        self.folder, self.chance = folder, chance
        self.builder = ArchiveBuilder(folder)
        self.builders: dict[Path, SessionBuilder] = {}
        self.deleted: list[tuple[Path, bytes]] = []
        self.torn: dict[Path, bytes] = {}
        self.count = itertools.count(1)
        self.clock = itertools.count(1)

    def files(self) -> list[Path]:
        return sorted(path for path in self.builder.root.rglob("*") if path.is_file())

    def one(self) -> Path:
        return self.chance.choice(self.files() or [self.new()])

    def text(self) -> str:
        return " ".join(self.chance.choices(WORDS, k=self.chance.randint(1, 4)))

    def settle(self, path: Path) -> None:
        """A change within one tick of the file system's clock cannot be seen by anybody: give it a time of its own."""
        moment = 1_772_000_000_000_000_000 + next(self.clock) * 1_000_000
        os.utime(path, ns=(moment, moment))

    def lines(self, session: SessionBuilder, count: int) -> bytes:
        """Entries as they are appended: talk, switches of branch, names, labels, boundaries, late leaves."""
        session.lines.clear()
        known = [uid(f"{session.id}{n}")[:8] for n in range(1, session.count + 1)]
        for _ in range(count):
            kind = self.chance.randrange(14)
            other = self.chance.choice(known) if known else None
            if kind < 5:
                session.user(self.text(), at=stamp(self.chance.randrange(500)))
            elif kind < 8:
                session.assistant(self.text())
            elif kind == 8:
                session.user(self.text(), parent=other)
            elif kind == 9:
                session.add("leaf", targetId=self.chance.choice([other, None, "nowhere"]))
            elif kind == 10:
                session.add("session_info", name=self.chance.choice(["first name", "second name", ""]))
            elif kind == 11:
                session.add("label", targetId=other, label=self.text())
            elif kind == 12:
                session.user(self.text(), key=other)
            else:
                session.add("compaction", summary="made up", firstKeptEntryId=other, tokensBefore=1)
        made = b"".join(entry + b"\n" for entry in session.lines)
        session.lines.clear()
        return made

    # -- what may happen ----------------------------------------------------------------------------------------------

    def new(self) -> Path:
        number = next(self.count)
        version = self.chance.choice([3, 3, 3, 1])
        session = self.builder.session(f"s{number}", version=version, start=stamp(number), cwd=f"/w/{number % 3}")
        header = session.lines[0] + b"\n"
        path = session.path(self.chance.choice(["--a--", "--b--", "--a--/sub"]))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(header + self.lines(session, self.chance.randint(0, 5)))
        self.builders[path] = session
        self.settle(path)
        return path

    def append(self) -> None:
        path = self.one()
        session = self.builders.get(path) or self.builder.session("guest")
        with open(path, "ab") as file:
            file.write(self.lines(session, self.chance.randint(1, 4)))
        self.settle(path)

    def tear(self) -> None:
        """The first part of a line, of which the rest may come later, or never."""
        path = self.one()
        session = self.builders.get(path) or self.builder.session("guest")
        whole = self.lines(session, 1)
        cut = self.chance.choice([1, len(whole) // 2, len(whole) - 2, len(whole) - 1])
        with open(path, "ab") as file:
            file.write(whole[:cut])
        self.torn[path] = whole[cut:]
        self.settle(path)

    def mend(self) -> None:
        if self.torn:
            path = self.chance.choice(sorted(self.torn))
            rest = self.torn.pop(path)
            if path.exists():
                with open(path, "ab") as file:
                    file.write(rest)
                self.settle(path)

    def rewrite(self) -> None:
        """Other words in place, of the same length or not."""
        path = self.one()
        old, new = self.chance.sample([word.encode() for word in (*WORDS, "anchoR")], 2)
        with open(path, "r+b") as file:
            data = file.read().replace(old, new, 1)
            file.seek(0)
            file.write(data)
            file.truncate()
        self.settle(path)

    def replace(self) -> None:
        """A new file under the old name: grown, shortened or as it was."""
        path = self.one()
        data = path.read_bytes()
        if self.chance.random() < 0.5:
            data += self.lines(self.builders.get(path) or self.builder.session("guest"), 2)
        elif self.chance.random() < 0.5:
            data = data[: data.find(b"\n") + 1]
        beside = path.with_name("replacement.tmp")
        beside.write_bytes(data)
        os.replace(beside, path)
        self.settle(path)

    def truncate(self) -> None:
        path = self.one()
        os.truncate(path, self.chance.randint(0, path.stat().st_size))
        self.settle(path)

    def delete(self) -> None:
        path = self.one()
        self.deleted.append((path, path.read_bytes()))
        path.unlink()

    def restore(self) -> None:
        if self.deleted:
            path, data = self.deleted.pop(self.chance.randrange(len(self.deleted)))
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
            self.settle(path)

    def copy(self) -> None:
        """A second file of the same session, which may then go its own way."""
        path = self.one()
        to = path.with_name(
            self.chance.choice([f"copy{next(self.count)}.jsonl", f"2026-01-01T00-00-00Z_{uid('x')}.jsonl"])
        )
        if to == path:
            return
        shutil.copyfile(path, to)
        if path in self.builders:
            self.builders[to] = self.builders[path]
        self.settle(to)

    def go_on_after_reset(self) -> None:
        """A session is archived, and its next entries come into a file of its id that has no header."""
        path = self.one()
        session = self.builders.get(path)
        to = path.with_name(f"{session.id}.jsonl") if session else path
        if session is not None and not to.exists():
            os.rename(path, path.with_name(path.name + ".reset.2026-03-04T02-13-29Z"))
            to.write_bytes(self.lines(session, 3))
            self.builders[to] = session
            self.settle(to)

    def claim(self) -> None:
        """A file's header gets another id: a new one, or that of another session."""
        path = self.one()
        data = path.read_bytes()
        end = data.find(b"\n")
        other = self.chance.choice([uid(f"s{n}") for n in range(1, 6)])
        if end > 0 and data.startswith(b'{"type":"session"'):
            header = line({"type": "session", "id": other, "timestamp": stamp(9), "cwd": "/w/claimed", "version": 3})
            path.write_bytes(header.encode() + data[end:])
            self.settle(path)

    def move(self) -> None:
        path = self.one()
        folder = self.builder.root / self.chance.choice(["--a--", "--b--", "--c--", "--a--/tasks"])
        name = self.chance.choice(
            [
                path.name,
                "renamed.jsonl",
                path.name + ".deleted.2026-03-02T12-24-51.414Z",
                path.name + ".reset.2026-03-03T02-13-29Z",
            ]
        )
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / name).exists():
            os.rename(path, folder / name)
            if path in self.builders:
                self.builders[folder / name] = self.builders.pop(path)

    def adopt(self) -> None:
        """A session moves below a folder that is named after another one."""
        path, above = self.one(), self.one()
        folder = above.with_suffix("")
        if path != above and above.suffix == ".jsonl" and folder not in path.parents:
            folder.mkdir(exist_ok=True)
            os.rename(path, folder / path.name)

    def relocate(self) -> None:
        """A whole folder gets another name."""
        folders = [path for path in sorted(self.builder.root.iterdir()) if path.is_dir()]
        if folders:
            to = self.builder.root / self.chance.choice(["--0--", "--a--", "--b--", "--z--"])
            if not to.exists():
                os.rename(self.chance.choice(folders), to)

    def spoil(self) -> None:
        """Something else under a session's name."""
        path = self.one()
        path.write_bytes(self.chance.choice([b"", b"no session\n", b'{"agent":"another"}\n', b"\0" * 50]))
        self.settle(path)

    def junk(self) -> None:
        """A damaged line in the middle."""
        path = self.one()
        with open(path, "ab") as file:
            file.write(self.chance.choice([b"\0\0\0\n", b'{"type":"mess\n', b"\n\n", b"\r\n", b'{"a":1}{"b":2}\n']))
        self.settle(path)

    def touch(self) -> None:
        self.settle(self.one())

    def happen(self) -> None:
        often = [self.append, self.append, self.append, self.new]
        events: list[Callable[[], object]] = [
            *often, self.tear, self.mend, self.rewrite, self.replace, self.truncate, self.delete, self.restore, self.copy,
            self.go_on_after_reset, self.claim, self.move, self.adopt, self.spoil, self.junk, self.touch,
        ]  # fmt: skip
        self.chance.choice(events)()


def history_of(archive: Archive, name: str) -> SessionHistory:
    return history_alone(archive.builder.root, archive.folder / name / "history.sqlite3")


def refresh(history: SessionHistory, session_id: str | None = None) -> None:
    try:
        history.refresh_now(session_id)
    except SessionNotFound:
        assert session_id is not None  # no file has it just now


@contextmanager
def in_a_large_index() -> Iterator[None]:
    """Even a few entries are too many to rank and to count all of them; but nothing is left out for want of time."""
    with pytest.MonkeyPatch.context() as patched:
        for name, value in {"SMALL": 0, "COUNTED": 2, "SAMPLE": 2, "LATEST": 3, "STATEMENT_COST": 2}.items():
            patched.setattr(f"harness_session_history.search.scan.{name}", value)
        for name, value in {"RANKED": 3, "PER_SESSION": 1}.items():
            patched.setattr(f"harness_session_history.search.rank.{name}", value)
        yield


@contextmanager
def without_deadlines() -> Iterator[None]:
    """A busy machine must not have hints left out for want of time."""
    with pytest.MonkeyPatch.context() as patched:
        for name in ("COUNT_SECONDS", "SECONDS", "SECONDS_IF_SMALL"):
            patched.setattr(f"harness_session_history.answer.hints.{name}", 1e9)
        yield


@contextmanager
def in_small_pieces(small: bool) -> Iterator[None]:
    """With `small`, every file is a large one, written as it is read."""
    with pytest.MonkeyPatch.context() as patched:
        if small:
            patched.setattr(LIMITS, "session_entries", 2)
            patched.setattr(LIMITS, "batch_entries", 2)
            patched.setattr(LIMITS, "chunk_nodes", 2)
            patched.setattr(LIMITS, "block_bytes", 300)
        yield


def remembers(history: SessionHistory) -> bool:
    """Whether a history knows sessions whose files are gone."""
    handle = history._engine.readers.handle
    handle.catalog.update(handle.connection())
    return bool(handle.catalog.gone())


def check_catalog(history: SessionHistory) -> None:
    """What a history has kept in memory all along is what the index says."""
    handle = history._engine.readers.handle
    anew = Catalog(handle.catalog.below)
    anew.update(handle.connection())
    left_out = ("derived", "_ordered", "_latest", "_paths", "_asked_last", "_gone", "_gone_above")
    kept, wanted = (
        {name: value for name, value in vars(c).items() if name not in left_out} for c in (handle.catalog, anew)
    )
    assert kept == wanted


def check_law(seed: int, events: int, small: bool = False, asked: int = len(QUERIES)) -> None:
    chance = random.Random(seed)
    folder = Path(tempfile.mkdtemp(prefix="law-"))
    archive = Archive(folder, chance)
    incremental, anew = history_of(archive, "incremental"), history_of(archive, "anew")
    try:
        with in_small_pieces(small):
            for _ in range(events):
                archive.happen()
                if chance.random() < 0.3:
                    refresh(incremental, chance.choice([None, None, uid("s1")]))
                    answers(incremental)
                if chance.random() < 0.1:
                    refresh(incremental)  # (of what changes before a folder goes, nobody can know where it went)
                    archive.relocate()
                    refresh(incremental)
            refresh(incremental)
        refresh(anew)
        found, wanted = (contents(folder / name / "history.sqlite3") for name in ("incremental", "anew"))
        assert not differences(found, wanted)
        parents = not remembers(incremental)
        queries = chance.sample(QUERIES, asked)
        for looked_at in (nullcontext, in_a_large_index):
            with looked_at(), without_deadlines():
                found, wanted = (answers(history, *queries, parents=parents) for history in (incremental, anew))
                assert not differences(found, wanted)
        check_catalog(incremental)
    finally:
        incremental.close_now()
        anew.close_now()
        shutil.rmtree(folder)


@settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 2**32), st.integers(3, 25), st.booleans())
def test_an_index_that_followed_its_files_is_the_index_built_from_nothing(seed: int, events: int, small: bool) -> None:
    check_law(seed, events, small, asked=2)


@pytest.mark.slow
@settings(max_examples=3000, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 2**32), st.integers(3, 60), st.booleans())
def test_the_same_for_thousands_of_histories(seed: int, events: int, small: bool) -> None:
    check_law(seed, events, small)
