"""What an empty answer says instead of nothing: which words occur, what to ask instead, which entries come nearest."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import apsw

from ..errors import InvalidRequest
from ..request import SearchRequest
from ..search.expression import Expression, Phrase
from ..search.match import Matcher
from ..search.query import Query, Term, parse
from ..search.rank import Searcher
from ..search.suggestions import CANDIDATES, corrections, nearest, sessions_with_all
from ..text.analysis import is_unspaced
from ..text.tokens import skeleton
from .citations import Evidence
from .hits import Finder, render
from .sessions import Views

#: Near entries and sessions that are shown.
SHOWN = 5
#: How long all terms of a query are counted exactly.
COUNT_SECONDS = 0.008
#: How long queries are tried for one that has results.
SUGGEST_SECONDS = 0.03
#: How long words that stand nowhere are corrected.
CORRECT_SECONDS = 0.05
#: Parts of a term that are looked for on their own where the whole stands nowhere.
MOST_PARTS = 12
#: Where a term can only be verified on the text, so many of its newest candidates are read, and more as long as there is
#: time for it.
VERIFIED, VERIFY_SECONDS = 200, 0.03
#: Candidates are fetched in blocks of so many.
BLOCK = 500
#: So much is done of every kind of hint, however long it takes: an answer over a small archive must not depend on the
#: moment.
TRIED = 3
#: Where several words have one stem, so many entries are read to see which of them was written.
FEW = 5


def hints(
    connection: apsw.Connection,
    searcher: Searcher,
    views: Views,
    request: SearchRequest,
    query: Query,
    check: Callable[[], None],
    *,
    sure: bool = True,
) -> dict[str, Any]:
    """The ``hints`` of a search answer without results; `sure` if every candidate was looked at and refused."""
    helper = _Helper(connection, searcher, views, request, check)
    if sure and len(query.terms) == 1 and query.literal:
        counts = [0]
    else:
        counts = [helper.count(term) for term in query.terms]
    corrected = helper.corrected(query, counts)
    return {
        "terms": [{"term": term.text, "entries": count} for term, count in zip(query.terms, counts, strict=True)],
        "suggestion": helper.suggestion(query, counts, corrected),
        "nearest": helper.nearest(query, counts, corrected),
        "sessions": helper.sessions(query, counts),
        "offBranchMatches": helper.off_branch(query),
    }


def shortness(characters: int) -> float:
    """A weak preference for entries that say little else: 1 for an empty one, 0.8 for a long one."""
    return 1.0 - 0.2 * characters / (characters + 1500)


def _unquoted(term: Term) -> str:
    return " ".join(term.parts)


class _Helper:
    def __init__(
        self,
        connection: apsw.Connection,
        searcher: Searcher,
        views: Views,
        request: SearchRequest,
        check: Callable[[], None],
    ) -> None:
        self.connection, self.searcher, self.views = connection, searcher, views
        self.request, self.check = request, check
        self.evidence = Evidence(connection, views.catalog)
        #: Rows that hold a term which only the text can tell.
        self.holding: list[int] = []
        self.stands_nowhere = False
        self.counting_until = time.monotonic() + COUNT_SECONDS

    def _finder(self, matcher: Matcher) -> Finder:
        return Finder(self.connection, self.views, self.searcher.scope, matcher, self.check)

    def count(self, term: Term) -> int:
        """In how many entries in scope a term occurs; an estimate where there are many that must be verified, or where
        counting all terms would take too long."""
        count = self.searcher.count(term.expression, self.counting_until - time.monotonic())
        if term.literal and count:
            rows, count = self._verified([term], term.expression, self.searcher, count)
            self.holding += rows[:CANDIDATES]
        return count

    def _verified(
        self, terms: Sequence[Term], expression: Expression, searcher: Searcher, count: int
    ) -> tuple[list[int], int]:
        """Of the newest rows that match an expression those that really hold these terms, and how many of all `count` do:
        exact if there was time to look at all."""
        matcher = Matcher(Query("", tuple(terms)))
        until = time.monotonic() + VERIFY_SECONDS
        held: list[int] = []
        looked_at = 0
        for _, rows in searcher.by_session(searcher.spelled_out(expression), BLOCK):
            for row, _ in rows:
                if looked_at >= VERIFIED and time.monotonic() > until:
                    return held, max(len(held), count * len(held) // looked_at)
                held += self._holding(matcher, [row])
                looked_at += 1
        return held, len(held)

    def _holding(self, matcher: Matcher, rows: Sequence[int]) -> list[int]:
        """Those of `rows`, candidates of some terms, whose text really holds them."""
        held = []
        for located in self.evidence.locate_many(rows):
            self.check()
            entry = self.evidence.hydrate([located])[0]
            if entry is not None and matcher.holds(entry.text):
                held.append(located.row)
        return held

    def _has_results(self, text: str) -> bool:
        try:
            query = parse(text)
        except InvalidRequest:
            return False
        rows = self.searcher.matches(query.expression, BLOCK)
        finder = self._finder(Matcher(query))
        hits, _ = finder.take(rows, 1, diverse=False, verify=query.literal, seconds=VERIFY_SECONDS)
        return bool(hits)

    def corrected(self, query: Query, counts: Sequence[int]) -> list[str]:
        """The terms as written; those that stand nowhere, not only nowhere in scope, are replaced by a word that is one
        slip away, if there is one."""
        until = time.monotonic() + CORRECT_SECONDS
        words = []
        for term, count in zip(query.terms, counts, strict=True):
            self.check()
            misspelt = not count and time.monotonic() < until and not self.searcher.exists(term.expression)
            self.stands_nowhere |= misspelt
            words.append(self._respelt(term, until) if misspelt else term.text)
        return words

    def _respelt(self, term: Term, until: float) -> str:
        """A term with the words corrected that stand nowhere; as it was written if that cannot be done."""
        parts = term.parts
        if term.quoted:
            return term.text
        if len(parts) == 1:
            return self._written(corrections(self.searcher, parts[0], until)) or term.text
        text, folded = term.text, skeleton(term.text)[0]
        for part in parts:
            at = folded.find(part)
            if at < 0:
                return term.text
            if not self.searcher.exists(Phrase((part,))):
                better = self._written(corrections(self.searcher, part, until)) or part
                cased = better.capitalize() if text[at].isupper() else better
                text, folded = (
                    f"{whole[:at]}{new}{whole[at + len(part) :]}" for whole, new in ((text, cased), (folded, better))
                )
        return text if parse(text) != parse(term.text) else term.text

    def _written(self, candidates: Sequence[str]) -> str:
        """The first of some words of one stem that stands like that in an entry, else the first; "" if there is none."""
        for candidate in candidates if len(candidates) > 1 else ():
            query = parse(f'"{candidate}"')
            if self._holding(Matcher(query), self.searcher.matches(query.expression, FEW)):
                return candidate
        return candidates[0] if candidates else ""

    def suggestion(self, query: Query, counts: Sequence[int], corrected: list[str]) -> str | None:
        """A query that has results: misspelt words corrected, else the words dropped that occur nowhere, else one word."""
        written = [term.text for term in query.terms]
        until = time.monotonic() + SUGGEST_SECONDS
        for tried, candidate in enumerate(self._candidates(query, written, corrected, counts)):
            if tried >= TRIED and time.monotonic() > until:
                break
            if candidate and candidate != written and self._has_results(" ".join(candidate)):
                return " ".join(candidate)
        return None

    def _candidates(
        self, query: Query, written: list[str], corrected: list[str], counts: Sequence[int]
    ) -> Iterable[list[str]]:
        yield corrected
        yield [
            word if count or not term.quoted else _unquoted(term)
            for word, term, count in zip(corrected, query.terms, counts, strict=True)
        ]
        yield [word for word, old, count in zip(corrected, written, counts, strict=True) if count or word != old]
        yield [word for word, count in zip(written, counts, strict=True) if count]
        present = [(count, at) for at, count in enumerate(counts) if count]
        for _, dropped in sorted(present):
            yield [word for at, word in enumerate(corrected) if at != dropped and (counts[at] or word != written[at])]

    def nearest(self, query: Query, counts: Sequence[int], corrected: list[str]) -> list[dict[str, Any]]:
        """The entries that hold most of the terms, weighted by rarity; their texts decide which they hold. Those that hold
        only parts of terms come after them."""
        found = [at for at, count in enumerate(counts) if count]
        lacking = [at for at, count in enumerate(counts) if not count]
        looser = [one for at in lacking for one in self._looser(query.terms[at], corrected[at])]
        wanted = [*(query.terms[at] for at in found), *looser]
        if not wanted:
            return []
        wide = Matcher(Query(query.text, tuple(wanted)))
        rest = Matcher(Query(query.text, tuple(query.terms[at] for at in lacking)))
        rows = list(dict.fromkeys([*nearest(self.searcher, wanted, self.check), *self.holding]))
        hits, _ = self._finder(wide).take(rows, len(rows), diverse=False, verify=False)
        rarities = self.searcher.rarities(wanted)
        scored = []
        for hit in hits:
            text = hit.entry.text
            near = wide.held(text)
            weight = sum(rarities[at] for at in near)
            if weight:
                held = {found[at] for at in near if at < len(found)}
                held.update(lacking[at] for at in rest.held(text))  # (a count may be an estimate)
                scored.append((bool(held), weight * shortness(len(text)), -hit.place, held, hit))
        shown = []
        for _, _, _, held, hit in sorted(scored, key=lambda one: one[:3], reverse=True)[:SHOWN]:
            self.check()
            rendered = render(hit, self.views, wide, self.request.snippet_chars)
            missing = [term.text for at, term in enumerate(query.terms) if at not in held]
            shown.append({**rendered, "missingTerms": missing})
        return shown

    def _looser(self, term: Term, better: str) -> tuple[Term, ...]:
        """What to look for in place of a term that stands nowhere: its correction, else its parts."""
        if better != term.text:
            return parse(better).terms
        parts = term.parts
        if len(parts) < 2 and not term.quoted:
            return ()
        if all(is_unspaced(part) for part in parts):
            parts = ["".join(pair) for pair in pairwise(parts)]
        return parse(" ".join(parts[:MOST_PARTS])).terms

    def sessions(self, query: Query, counts: Sequence[int]) -> list[dict[str, Any]]:
        if not all(counts) or len(query.terms) < 2:
            return []
        keys = sessions_with_all(self.searcher, query.terms, counts, SHOWN, self.check)
        literal = [term for term in query.terms if term.literal]
        return [
            self.views.view(self.views.catalog.sessions[key])
            for key in keys
            if all(self._holding(Matcher(Query("", (term,))), self._candidates_in(term, key)) for term in literal)
        ]

    def _candidates_in(self, term: Term, session: int) -> list[int]:
        return [row for row, _ in self.searcher.of_session(term.expression, session, VERIFIED)]

    def off_branch(self, query: Query) -> int:
        """How many entries match outside the visible branch; an estimate where many of them must be verified."""
        if self.request.branch == "any" or self.stands_nowhere:
            return 0
        scope = replace(self.searcher.scope, only_off_branch=True)
        hidden = Searcher(self.connection, self.searcher.weigher, scope, self.views.catalog)
        count = hidden.count(query.expression, COUNT_SECONDS)
        if query.literal and count:
            _, count = self._verified(query.terms, query.expression, hidden, count)
        return count
