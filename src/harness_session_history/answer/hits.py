"""The search operation: ranked rows of the index become verified hits.

Every hit is read again from its cited bytes before it is shown; copies of one entry are one hit; one session does not
crowd out the others; what can no longer be verified is left out and its session named.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import NamedTuple

import apsw

from ..archive.hydration import Hydrated
from ..index.packing import Located
from ..index.schema import IntegrityFault, SessionRow
from ..request import ROLES
from ..response import Hit as ShownHit
from ..response import iso
from ..search.match import Matcher
from ..search.rank import Beyond
from ..search.scope import Scope
from .citations import Evidence
from .sessions import SessionViews

#: Results of one session while others still have matches.
PER_SESSION = 3
#: Sessions named in ``alsoIn`` and ``unavailableSessionIds``.
NAMED = 20
#: How long candidates are read and refused (they only look like matches of a phrase, or their file has changed) before
#: an answer by relevance is given without the rest of them, and says so.
VERIFY_SECONDS = 2.0


@dataclass
class Hit:
    """One verified hit: the cited entry, its text, its other copies, its place in the ranking; `rows` of all copies."""

    place: int
    located: Located
    session: SessionRow
    entry: Hydrated
    visible: bool
    also_in: list[str]
    rows: list[int]


class Group(NamedTuple):
    """An entry and its verbatim copies, the one to cite first, at a place in the ranking."""

    place: int
    copies: list[Located]


class Finder:
    """Pacer rows into hits for one request."""

    def __init__(
        self,
        connection: apsw.Connection,
        views: SessionViews,
        scope: Scope,
        matcher: Matcher,
        check: Callable[[], None],
    ) -> None:
        self.connection, self.views, self.scope, self.matcher = connection, views, scope, matcher
        self.evidence = Evidence(connection, views.catalog)
        self.check = check
        self.unavailable: list[str] = []
        self.gave_up = False
        self._seen: set[int] = set()
        self._read: dict[int, Hydrated | None] = {}
        self._places = count()

    def take(
        self,
        rows: Iterable[int],
        limit: int,
        *,
        diverse: bool,
        verify: bool,
        beyond: Beyond | None = None,
        seconds: float = VERIFY_SECONDS,
    ) -> tuple[list[Hit], bool]:
        """The first `limit` hits in the order of `rows`, and whether there are more.

        With `diverse`, a session gives at most PER_SESSION of them as long as others have any. Where `rows` do not
        give enough, `beyond` is asked for further ones. Gives up (`gave_up`) at the first candidate that is refused
        after `seconds`.
        """
        hits: list[Hit] = []
        counted: Counter[int] = Counter()
        put_off: list[Group] = []
        deadline = time.monotonic() + seconds

        leading = self.views.catalog.leading

        def full(session: int) -> bool:
            return diverse and counted[leading(session).key] >= PER_SESSION

        def stages() -> Iterator[tuple[Iterable[Group], bool]]:
            yield self._groups(rows), diverse
            if beyond is not None:
                yield self._groups(beyond(full)), diverse
            yield put_off, False
            if beyond is not None and diverse:
                yield self._groups(beyond(lambda session: False)), False

        for groups, sharing in stages():
            for group in groups:
                if sharing and full(group.copies[0].session):
                    put_off.append(group)
                    continue
                hit = self._verified(group, verify)
                if hit is not None:
                    hits.append(hit)
                    counted[leading(hit.session.key).key] += 1
                    if len(hits) > limit:
                        return sorted(hits[:limit], key=lambda one: one.place), True
                elif time.monotonic() > deadline:
                    self.gave_up = True
                    return sorted(hits, key=lambda one: one.place), False
        return sorted(hits, key=lambda one: one.place), False

    def typed(self, rows: Sequence[int]) -> list[set[int]]:
        """For each row the numbers of the terms that stand in its entry in the form that was typed."""
        located = self.evidence.locate_many(rows)
        of_session: dict[int, list[Located]] = {}
        for one in located:
            of_session.setdefault(one.session, []).append(one)
        for some in of_session.values():  # (a file is opened once for all that is read of it)
            self.check()
            entries = zip(some, self.evidence.hydrate(some), strict=True)
            self._read.update((one.row, entry) for one, entry in entries)
        texts = {one.row: entry.text for one in located if (entry := self._read[one.row]) is not None}
        return [self.matcher.typed(texts[row]) if row in texts else set() for row in rows]

    def _entry(self, located: Located) -> Hydrated | None:
        if located.row not in self._read:
            self._read[located.row] = self.evidence.hydrate([located])[0]
        return self._read[located.row]

    def _groups(self, rows: Iterable[int]) -> Iterator[Group]:
        """Copies of one entry together, at the place of the first: where it was written first comes first."""
        for place, row in zip(self._places, rows, strict=False):
            if row in self._seen:
                continue
            self.check()
            located = self.evidence.locate(row)
            if located is None:
                raise IntegrityFault("an entry is missing")
            copies = [located, *(one for one in self.evidence.copies(located) if self._in_scope(one))]
            self._seen.update(copy.row for copy in copies)
            if len(copies) > 1:
                copies = self._first_written_first(copies)
            yield Group(place, copies)

    def _in_scope(self, one: Located) -> bool:
        return self.scope.within(one.session) and (self.scope.off_branch or not self.evidence.hidden(one.row))

    def _first_written_first(self, copies: list[Located]) -> list[Located]:
        """Ancestors before their forks, then by the time at which the sessions began; of the files of one session that on
        whose visible branch it is, then the leading one."""
        catalog = self.views.catalog
        holders = {catalog.leading(copy.session).key for copy in copies}

        def written(copy: Located) -> tuple[int, int, str, bool, int]:
            session = catalog.leading(copy.session)
            above = sum(ancestor.key in holders for ancestor in self.views.lineage(session)[1:])
            began = session.started if session.started is not None else session.first_time
            place = catalog.files_of(session.session_id).index(copy.session)
            hidden = self.evidence.hidden(copy.row)
            return above, 1 << 62 if began is None else began, session.session_id, hidden, place

        return sorted(copies, key=written)

    def _verified(self, group: Group, verify: bool) -> Hit | None:
        """The first copy whose bytes still say what was indexed, if it really matches."""
        place, copies = group
        for at, located in enumerate(copies):
            entry = self._entry(located)
            session = self.views.catalog.sessions[located.session]
            if entry is None:
                if session.session_id not in self.unavailable:
                    self.unavailable.append(session.session_id)
                continue
            if verify and not self.matcher.holds(entry.text, entry.apart):
                return None
            visible = not self.evidence.hidden(located.row)
            named = dict.fromkeys(self.views.catalog.sessions[copy.session].session_id for copy in copies[at + 1 :])
            named.pop(session.session_id, None)
            return Hit(place, located, session, entry, visible, list(named)[:NAMED], [copy.row for copy in copies])
        return None


def render(hit: Hit, views: SessionViews, matcher: Matcher, snippet_chars: int) -> ShownHit:
    """A hit as it stands in an answer."""
    text, apart = hit.entry.text, hit.entry.apart
    snippet, cut = matcher.snippet(text, snippet_chars, apart, views.masked(text))
    session_id, entry_id = hit.session.session_id, hit.entry.entry_id
    shown: ShownHit = {
        "citation": {"sessionId": session_id, "entryId": entry_id},
        "role": ROLES[hit.entry.role],
        "createdAt": iso(hit.located.time),
        "snippet": snippet,
        "snippetTruncated": cut,
        "visible": hit.visible,
        "session": views.view(hit.session),
        "locator": f"session:{session_id}/entry:{entry_id}",
    }
    if hit.also_in:
        shown["alsoIn"] = hit.also_in
    return shown
