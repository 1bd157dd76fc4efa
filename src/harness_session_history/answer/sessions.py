"""Who may be seen and how a session is shown: scope, filters over sessions, session views. Metadata only."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Literal

from ..archive.hydration import Hydrated
from ..archive.registry import RegistryEntry
from ..errors import SessionNotFound
from ..index.catalog import Catalog
from ..index.freshness import prefixes
from ..index.schema import SessionRow
from ..model.names import cwd_within, folder_of, named_id
from ..model.sources import Root
from ..pacing import paced
from ..request import ListRequest, OpenRequest, Request, SearchRequest
from ..response import SessionView, iso, short_id
from ..search.scope import Scope
from ..text.clean import NAME_CHARS, one_line
from .redact import masked, masked_entry

_DEPTH = 64
#: Sessions that are looked at between two pauses for other threads.
_AT_ONCE = 2000
#: Answers to the same filters that are kept until the snapshot changes.
SELECTIONS = 32


class SessionViews:
    """The sessions of one snapshot as one caller sees them."""

    def __init__(
        self,
        catalog: Catalog,
        registry: Mapping[str, RegistryEntry],
        current: str | None,
        roots: Sequence[Root] = (),
        redact: bool = False,
    ) -> None:
        self.catalog, self.registry, self.current, self.redact = catalog, registry, current, redact
        #: What paths below the roots begin with, and the roots' labels, inner roots first; empty where none has a label.
        self._labels = [(prefixes([root.path])[0], root.label) for root in roots] if any(r.label for r in roots) else []
        self._labels.sort(key=lambda one: -len(one[0]))

    # -- scope --------------------------------------------------------------------------------------------------------

    def files(self, request: OpenRequest) -> list[SessionRow]:
        """The files of a request's session that are in scope, the leading one first; else SessionNotFound (the same
        whatever the reason)."""
        excluded = frozenset(self._excluded(request))
        files = [self.catalog.sessions[key] for key in self.catalog.files_of(request.session_id) if key not in excluded]
        if not files or (request.kind != "any" and self.kind(files[0]) != request.kind):
            raise SessionNotFound(
                "no session of this id is in scope",
                hint="list or search for it; include_deleted and include_current widen the scope",
            )
        return files

    def selected_keys(self, request: ListRequest | SearchRequest) -> frozenset[int]:
        """Keys of all session files that a request's scope and session filters let through (not its dates)."""
        if request.session_id is not None:
            return self._filtered(request, self.catalog.files_of(request.session_id)[:1])
        if self.registry:
            return self._filtered(request, self.catalog.key_by_id.values())
        asked = (request.kind, request.cwd, request.include_deleted, request.include_current, self.current)
        selections: dict[tuple[object, ...], frozenset[int]] = self.catalog.derived.setdefault("selections", {})
        if asked not in selections:
            if len(selections) >= SELECTIONS:
                selections.clear()
            selections[asked] = self._filtered(request, self.catalog.key_by_id.values())
        return selections[asked]

    def sources_of(self, request: Request) -> frozenset[int] | None:
        """Keys of the session files that `session_id`, `kind` and `cwd` let through, whoever may see them; None for all."""
        cwd = request.cwd if isinstance(request, (ListRequest, SearchRequest)) else None
        if request.session_id is None and request.kind == "any" and cwd is None:
            return None
        catalog = self.catalog
        leading = catalog.key_by_id.values() if request.session_id is None else catalog.files_of(request.session_id)[:1]
        return self._filtered(request, leading, frozenset(catalog.outside))

    def _filtered(
        self, request: Request, leading: Iterable[int], excluded: frozenset[int] | None = None
    ) -> frozenset[int]:
        """A session's leading file decides for all of its files in scope, or for all but those `excluded`."""
        sessions = self.catalog.sessions
        cwd = request.cwd if isinstance(request, (ListRequest, SearchRequest)) else None
        excluded = frozenset(self._excluded(request)) if excluded is None else excluded
        found = [key for key in leading if key not in excluded]
        if request.kind != "any":
            found = [key for key in paced(found, _AT_ONCE) if self.kind(sessions[key]) == request.kind]
        if cwd is not None:
            # A folder that is there may be known by another name, of which links are part.
            folders = {cwd, os.path.realpath(cwd)} if os.path.isabs(cwd) else {cwd}
            cwds = {key: self.said(sessions[key], "cwd") for key in found}
            known = set(cwds.values())
            below = {one for one in known if any(cwd_within(one, folder) for folder in folders)}
            found = [key for key, one in cwds.items() if one in below]
        selected = set(found)
        for files in self.catalog.shared.values():
            if files[0] in selected:
                selected.update(key for key in files if key not in excluded)
        return frozenset(selected)

    def named(self, said: str, request: ListRequest) -> list[str]:
        """The id that `said` is, in scope or not; else the ids in scope whose short id it is, or that begin with it, or
        whose short ids do (of both, at least 4 characters)."""
        if self.catalog.files_of(said):
            return [said]
        ids = sorted({self.catalog.sessions[key].session_id for key in self.selected_keys(request)})
        short = [one for one in paced(ids, _AT_ONCE) if short_id(one) == said.lower()]
        if short or len(said) < 4:
            return short
        return [one for one in paced(ids, _AT_ONCE) if one.startswith(said) or short_id(one).startswith(said.lower())]

    def scope(self, request: SearchRequest) -> Scope:
        """The request's filters as the index understands them."""
        allowed: frozenset[int] | None = None
        partly: frozenset[int] = frozenset()
        dated = request.since is not None or request.until is not None
        if request.session_id is not None or request.kind != "any" or request.cwd is not None or dated:
            allowed = self.selected_keys(request)
        if allowed is not None and dated:
            sessions, since, until = self.catalog.sessions, request.since, request.until
            allowed = frozenset([key for key in paced(allowed, _AT_ONCE) if _overlaps(sessions[key], since, until)])
            partly = frozenset(
                [key for key in paced(allowed, _AT_ONCE) if not _lies_within(sessions[key], since, until)]
            )
        return Scope(
            sessions=allowed,
            excluded=frozenset() if allowed is not None else frozenset(self._excluded(request)),
            role=None if len(request.roles) == 2 else ("user", "assistant").index(request.roles[0]),
            since=request.since,
            until=request.until,
            partly=partly,
            off_branch=request.branch == "any",
            once=bool(self.catalog.shared) and not self.catalog.is_split,
        )

    def _excluded(self, request: Request) -> Iterator[int]:
        yield from self.catalog.outside
        if not request.include_current:
            yield from self.catalog.files_of(self.current)
        if not request.include_deleted:
            yield from self.catalog.tombstoned_keys()
            for session_id, said in self.registry.items():
                if said.deleted_at:
                    yield from self.catalog.files_of(session_id)

    def current_said(self, request: Request) -> Literal["excluded", "included", "unknown"]:
        """The answer's ``currentSession``."""
        if self.current is None:
            return "unknown"
        return "included" if request.include_current else "excluded"

    # -- views --------------------------------------------------------------------------------------------------------

    def said(self, session: SessionRow, field: Literal["cwd", "name", "parent"]) -> str | None:
        """What a session's file says; where it says nothing (it may have no header), the first other file that does."""
        said: str | None = getattr(session, field)
        if said is None and session.session_id in self.catalog.shared:
            others = (self.catalog.sessions[key] for key in self.catalog.files_of(session.session_id))
            said = next((value for one in others if (value := getattr(one, field)) is not None), None)
        return said

    def is_current(self, session: SessionRow) -> bool:
        return self.current is not None and session.session_id == self.current

    def is_deleted(self, session: SessionRow) -> bool:
        said = self.registry.get(session.session_id)
        return session.deleted or bool(said and said.deleted_at)

    def kind(self, session: SessionRow) -> Literal["root", "child"]:
        said = self.registry.get(session.session_id)
        if said and said.kind:
            return said.kind
        return "child" if session.child or self._parent_path(session) is not None else "root"

    def parent_id(self, session: SessionRow) -> str | None:
        """Id of the session it was started or forked from: the registry, the header (path or id), then the folder; never
        its own, which a child may have been given."""
        found = self._parent_id(session)
        return None if found == session.session_id else found

    def _parent_id(self, session: SessionRow) -> str | None:
        said = self.registry.get(session.session_id)
        if said and said.parent_session_id:
            return said.parent_session_id
        named = self.said(session, "parent")
        if named:
            if "/" not in named and "\\" not in named and not named.endswith(".jsonl"):
                return named
            path = os.fsencode(named)
            session_id = self._id_at(path)
            if session_id is not None:
                return session_id
            found = named_id(path.replace(b"\\", b"/").rsplit(b"/", 1)[-1])
            if found is not None:
                return found
        parent_path = self._parent_path(session)
        return None if parent_path is None else self._id_at(parent_path)

    def _parent_path(self, session: SessionRow) -> bytes | None:
        """The file after which a folder above the session is named; one that was there and is gone if that is nearer."""
        there, gone = session.parent_path, None
        if session.path is not None and self.catalog.gone():
            gone = self.catalog.gone_above(os.path.dirname(session.path))
        if gone is None or (there is not None and len(folder_of(there)) >= len(folder_of(gone))):
            return there
        return gone

    def _id_at(self, path: bytes) -> str | None:
        """Id of the session in the file at `path`, also where another file counts for it or none is there any more, and
        where `path` does not name the root as it was named here (through a link)."""
        found = self._id_of(path)
        if found is None:
            for named, real in self._linked_roots:
                if path.startswith(real):
                    return self._id_of(named + path[len(real) :])
        return found

    def _id_of(self, path: bytes) -> str | None:
        catalog = self.catalog
        key = catalog.key_by_path.get(path)
        if key is None:
            source = catalog.sources.get(path)
            if source is not None and source.session_id is not None:
                return source.session_id
            key = catalog.gone().get(path)
        return None if key is None else catalog.sessions[key].session_id

    @cached_property
    def _linked_roots(self) -> list[tuple[bytes, bytes]]:
        """How roots were named that are links, and what paths below them really begin with."""
        roots = [(named, os.path.join(os.path.realpath(named), b"")) for named in self.catalog.below]
        return [(named, real) for named, real in roots if named != real]

    def name(self, session: SessionRow) -> str:
        said = self.registry.get(session.session_id)
        if said and said.name:
            return said.name
        if name := self.said(session, "name"):
            return name
        folder = one_line((self.said(session, "cwd") or "").replace("\\", "/").rstrip("/").rsplit("/", 1)[-1])
        return f"{folder or 'session'}-{short_id(session.session_id)}"

    def shown_name(self, session: SessionRow) -> str:
        return masked(self.name(session), NAME_CHARS) if self.redact else self.name(session)

    def masked(self, text: str) -> str:
        """A text of a transcript as it may be shown."""
        return masked(text) if self.redact else text

    def shown(self, entry: Hydrated) -> Hydrated:
        """An entry as it may be shown."""
        return masked_entry(entry) if self.redact else entry

    def lineage(self, session: SessionRow) -> list[SessionRow]:
        """The session, its parent, its parent's parent and so on, as far as they are known."""
        lineage = [session]
        seen = {session.session_id}
        above = self.parent_id(session)
        while above is not None and above not in seen and len(lineage) < _DEPTH:
            key = self.catalog.key_by_id.get(above)
            if key is None:
                break
            seen.add(above)
            lineage.append(self.catalog.sessions[key])
            above = self.parent_id(lineage[-1])
        return lineage

    def view(self, file: SessionRow) -> SessionView:
        """The session view of an answer, by the leading file."""
        session = self.catalog.leading(file.key)
        lineage = self.lineage(session)
        view: SessionView = {
            "sessionId": session.session_id,
            "shortId": short_id(session.session_id),
            "name": self.shown_name(session),
            "kind": self.kind(session),
            "depth": max(len(lineage) - 1, int(self.kind(session) == "child")),
            "lineage": "/".join(self.shown_name(one) for one in reversed(lineage)),
            "deleted": self.is_deleted(session),
            "current": self.is_current(session),
            "cwd": None if (cwd := self.said(session, "cwd")) is None else self.masked(cwd),
            "createdAt": iso(session.first_time if session.first_time is not None else session.started),
            "updatedAt": iso(session.activity),
            "messageCount": session.messages,
            "parentSessionId": self.parent_id(session),
        }
        if label := self._label(session):
            view["root"] = label
        return view

    def _label(self, session: SessionRow) -> str | None:
        """The label of the root below which the session's file lies."""
        path = session.path or b""
        return next((label for prefix, label in self._labels if path.startswith(prefix)), None)


def _overlaps(session: SessionRow, since: int | None, until: int | None) -> bool:
    """Whether the session can hold an entry of these times."""
    if since is not None and session.last_time is not None and session.last_time < since:
        return False
    return not (until is not None and session.first_time is not None and session.first_time >= until)


def _lies_within(session: SessionRow, since: int | None, until: int | None) -> bool:
    """Whether every entry of the session is of these times."""
    if session.untimed or session.first_time is None or session.last_time is None:
        return False
    return (since is None or session.first_time >= since) and (until is None or session.last_time < until)
