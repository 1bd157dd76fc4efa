"""Brings an index up to date, heals it and cleans up: what the jobs of the writing lane do."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import apsw

from ..archive.scanner import Lookout
from ..errors import log_warning
from ..index.connection import ATTEMPTS, Cancelled, Damaged, Desk, damaged_again, unavailable
from ..index.file import DAMAGE, LOG_BYTES, IndexFile
from ..index.upkeep import tidy, truncate_log
from ..index.writer import Overtaken, Writer
from ..model.sources import Walk
from ..settings import Settings
from .plan import Budget, Lost, Outcome, Progress, Stopped
from .run import Refresh

if TYPE_CHECKING:
    from .processes import Child


#: How long maintenance waits for the writer's lock to clean up.
TIDY_SECONDS = 25.0
#: And so long to have files read anew.
MARK_SECONDS = 5.0


class Updater:
    """Works on one index. `alone`: in a process that has no caller's loop to keep free; `readers`: reading processes that
    were started in advance, which are used up as they are needed."""

    def __init__(
        self,
        settings: Settings,
        index: IndexFile,
        lookout: Lookout,
        *,
        alone: bool,
        readers: list[Child] | None = None,
    ) -> None:
        self.settings, self.index, self.lookout, self.alone = settings, index, lookout, alone
        self.readers = [] if readers is None else readers

    def refresh(
        self,
        desk: Desk,
        budget: Budget,
        progress: Progress | None = None,
        session_id: str | None = None,
        look: Callable[[], Walk] | None = None,
    ) -> Outcome:
        """Brings everything, or the files of one session, up to date within a budget.

        `look` stands in for a look at everything. Raises Cancelled if the caller has gone, and IndexUnavailable.
        """
        elsewhere = None if self.alone else partial(self._elsewhere, session_id, budget, progress)
        for _ in range(ATTEMPTS):
            connection = desk.connection()
            is_current = partial(self.index.is_still, desk.identity)
            walk = look or partial(self.lookout.walk, budget.over)
            run = Refresh(
                self.index, connection, desk.catalog, walk, budget, progress, elsewhere, is_current, self.readers
            )
            try:
                run.run(session_id)
            except Stopped as stopped:
                raise Cancelled from stopped
            except Lost:
                log_warning("a refresh in a process of its own was lost; going on in this one")
                elsewhere = None
            except Overtaken:
                desk.close()  # another writer, or another file: look again
            except DAMAGE as error:
                self._forsake(desk, error)
            except (apsw.Error, OSError) as error:
                desk.close()
                raise unavailable("written", error) from error
            else:
                if run.wrote and self.index.log_bytes() > LOG_BYTES:
                    truncate_log(connection)
                if run.wrote or run.seen is None:
                    self.lookout.forget()
                elif look is None:
                    self.lookout.keep(desk, run.seen, run.difference)
                return run.outcome
        raise damaged_again()

    def refresh_fully(
        self,
        desk: Desk,
        budget: Budget,
        progress: Progress | None = None,
        session_id: str | None = None,
        look: Callable[[], Walk] | None = None,
    ) -> None:
        """As `refresh`; raises RefreshIncomplete if anything is left to do."""
        outcome = self.refresh(desk, budget, progress, session_id, look)
        if not outcome.settled:
            self.lookout.forget()
            raise outcome.incomplete()

    def maintain(
        self, stopped: Callable[[], bool], progress: Progress | None, desk: Desk, _cancelled: Callable[[], bool]
    ) -> None:
        """One round of maintenance: refresh, purge, empty the log. Raises Cancelled and IndexUnavailable."""
        self.refresh(desk, Budget(None, stopped), progress)
        connection = desk.connection()
        try:
            with self.index.lock().held(TIDY_SECONDS, stopped) as held:
                if held:
                    tidy(Writer(connection, partial(self.index.is_still, desk.identity)), stopped)
        except Overtaken:
            return  # whoever has written meanwhile leaves the rest to the next round
        except DAMAGE as error:
            self._forsake(desk, error)
        except (apsw.Error, OSError) as error:
            desk.close()
            raise unavailable("written", error) from error

    def read_anew(self, paths: list[bytes], desk: Desk, cancelled: Callable[[], bool]) -> bool:
        """Has the next refresh, whoever's it is, read these files from their start. False if somebody else writes just now
        (and may be reading them). Raises IndexUnavailable."""
        connection = desk.connection()
        try:
            with self.index.lock().held(MARK_SECONDS, cancelled) as held:
                if not held:
                    return False
                writer = Writer(connection, partial(self.index.is_still, desk.identity))
                writer.begin()
                for path in paths:
                    source = writer.source_at(path)
                    if source is not None:
                        writer.mark_changed(source[0])
                writer.commit()
            return True
        except Overtaken:
            return False
        except DAMAGE as error:
            self._forsake(desk, error)
            return False
        except (apsw.Error, OSError) as error:
            desk.close()
            raise unavailable("written", error) from error

    def heal(self, damage: Damaged, desk: Desk, _cancelled: Callable[[], bool]) -> None:
        """Puts an empty index in the place of one that turned out to be damaged. Raises IndexUnavailable."""
        desk.close()
        self.index.replace(damage.identity)

    def _forsake(self, desk: Desk, error: Exception) -> None:
        log_warning("the index is damaged: %s", error)
        damaged = desk.identity
        desk.close()
        self.index.replace(damaged)

    def _elsewhere(self, session_id: str | None, budget: Budget, progress: Progress | None, readers: int) -> Outcome:
        from ..engine.remote import refresh

        return refresh(self.settings, session_id, budget, progress, readers)
