"""Brings an index up to date, heals it and cleans up, over one connection; retries where somebody else came between."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import apsw

from ..archive.scanner import ArchiveScanner
from ..errors import log_warning
from ..index.connection import ATTEMPTS, Damaged, IndexHandle, damaged_again, unavailable
from ..index.file import DAMAGE, WAL_BYTES, IndexFile
from ..index.integrity import blaming
from ..index.upkeep import tidy, truncate_wal
from ..index.writer import Overtaken, Writer
from ..model.sources import MAX_LINE, Walk
from ..pacing import Cancelled
from .plan import Budget, Lost, Outcome, Progress, Stopped
from .run import Refresh

#: Seconds for which maintenance waits for the writer's lock to clean up.
TIDY_SECONDS = 25.0


class Updater:
    """Works on one index."""

    def __init__(self, index: IndexFile, scanner: ArchiveScanner, max_line: int = MAX_LINE) -> None:
        self.index, self.scanner, self.max_line = index, scanner, max_line

    def refresh(
        self,
        handle: IndexHandle,
        budget: Budget,
        progress: Progress | None = None,
        session_id: str | None = None,
        *,
        look: Callable[[], Walk] | None = None,
        elsewhere: Callable[[], Outcome] | None = None,
    ) -> Outcome:
        """Brings everything, or the files of one session, up to date within a budget.

        `look` stands in for a scan of everything; `elsewhere` does large work in another process (it raises Lost where it
        cannot). Raises Cancelled if the caller has gone, and IndexUnavailable.
        """
        for _ in range(ATTEMPTS):
            connection = handle.connection()
            is_current = partial(self.index.is_still, handle.identity)
            walk = look or partial(self.scanner.walk, budget.over)
            run = Refresh(
                self.index, connection, handle.catalog, walk, budget, progress, elsewhere, is_current, self.max_line
            )
            try:
                with self._guarded(handle):
                    run.run(session_id)
            except Stopped as stopped:
                raise Cancelled from stopped
            except Lost:
                log_warning("a refresh in a process of its own was lost; going on in this one")
                elsewhere = None
            except Overtaken:
                handle.close()  # another writer, or another file: look again
            except Damaged:
                pass
            else:
                if run.wrote and self.index.wal_bytes() > WAL_BYTES:
                    truncate_wal(connection)
                if run.wrote or run.seen is None:
                    self.scanner.forget()
                elif look is None:
                    self.scanner.keep(handle.snapshot, run.seen)
                return run.outcome
        raise damaged_again()

    def tidy(self, handle: IndexHandle, stopped: Callable[[], bool]) -> None:
        """Cleans up: purges what is deleted, joins segments, empties the log. Raises Cancelled and IndexUnavailable."""
        self._write(handle, TIDY_SECONDS, stopped, lambda writer: tidy(writer, stopped))

    def read_anew(self, paths: list[bytes], handle: IndexHandle) -> bool:
        """Has the next refresh, whoever's it is, read these files from their start. False if somebody else writes just now
        (and may be reading them). Raises IndexUnavailable."""

        def mark(writer: Writer) -> None:
            writer.begin()
            for path in paths:
                source = writer.source_at(path)
                if source is not None:
                    writer.mark_changed(source[0])
            writer.commit()

        return self._write(handle, 0.0, lambda: False, mark)

    def heal(self, damage: Damaged, handle: IndexHandle) -> None:
        """Puts an empty index in the place of one that turned out to be damaged. Raises IndexUnavailable."""
        handle.close()
        self.index.replace(damage.identity)

    def _write(
        self, handle: IndexHandle, seconds: float, stopped: Callable[[], bool], work: Callable[[Writer], None]
    ) -> bool:
        """Does `work` under the writer's lock, waiting `seconds` for it; whether it was done to its end."""
        connection = handle.connection()
        try:
            with self._guarded(handle), self.index.lock().held(seconds, stopped) as held:
                if held:
                    work(Writer(connection, partial(self.index.is_still, handle.identity)))
            return held
        except (Overtaken, Damaged):
            return False  # whoever has written meanwhile leaves the rest to the next round

    @contextmanager
    def _guarded(self, handle: IndexHandle) -> Iterator[None]:
        """Replaces an index that turns out to be damaged by an empty one, and raises Damaged; or IndexUnavailable."""
        try:
            with blaming(handle.connection()):
                yield
        except DAMAGE as error:
            log_warning("the index is damaged: %s", error)
            damage = Damaged(handle.identity)
            self.heal(damage, handle)
            raise damage from error
        except (apsw.Error, OSError) as error:
            handle.close()
            raise unavailable("written", error) from error
