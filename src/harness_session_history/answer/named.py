"""Which sessions are named with the terms of a query."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ..search.match import Matcher
from ..search.query import Query, Term
from ..search.scope import Scope
from ..text.tokens import Reading
from .sessions import SessionViews

#: What may be (the beginning of) the short id with which a session is named to which nobody gave a name.
_SHORT_ID = re.compile("[0-9a-f]{4,8}").fullmatch
#: A name is looked at as a whole where it holds so many of the first letters of each term.
_LETTERS = 3


def named_sessions(views: SessionViews, scope: Scope, terms: Sequence[Term]) -> Iterator[int]:
    """Keys of the sessions in scope whose names hold every term, those that were active last first."""
    matcher = Matcher(Query("", tuple(terms)))
    beginnings = [term.parts[0][:_LETTERS] for term in terms]
    in_full = any(_SHORT_ID(part) for term in terms for part in term.parts)
    sessions, registry = views.catalog.sessions, views.registry
    for folded, key in _folded(views):
        if in_full or (registry and sessions[key].session_id in registry):
            folded = _fold(views.name(sessions[key]))
        if (
            all(beginning in folded for beginning in beginnings)
            and scope.within(key)
            and len(matcher.held(views.name(sessions[key]))) == len(terms)
        ):
            yield key


def _folded(views: SessionViews) -> list[tuple[str, int]]:
    """What sessions are named with, or else their folders, folded, each with the session's key."""
    catalog = views.catalog
    if "names" not in catalog.derived:
        every = map(catalog.sessions.__getitem__, catalog.latest_keys())
        leading = (one for one in every if catalog.leading(one.key).key == one.key)
        catalog.derived["names"] = [(_fold(one.name or one.cwd or ""), one.key) for one in leading]
    names: list[tuple[str, int]] = catalog.derived["names"]
    return names


def _fold(name: str) -> str:
    return name.lower() if name.isascii() else " ".join(Reading(name).words)
