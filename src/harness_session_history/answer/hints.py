"""What an answer with few results or none says besides: which words occur, which entries come nearest, what to ask instead."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import islice, pairwise

import apsw
from msgspec.structs import replace as with_changes

from ..request import ROLES, SearchRequest
from ..response import Hints, NearHit, SessionView
from ..search.expression import Expression, Phrase
from ..search.match import Matcher
from ..search.query import Query, Term, parse
from ..search.rank import Searcher
from ..search.scan import SMALL
from ..search.suggestions import corrections, sessions_with_all
from ..text.analysis import is_unspaced
from ..text.tokens import Reading
from .citations import Evidence
from .hits import Hit, render
from .named import named_sessions
from .nearest import Near, Nearest, Wanted
from .sessions import SessionViews

#: Results and nearest entries that are shown together, and sessions.
SHOWN = 5
#: How long is looked for hints of all kinds; something is done of each, however long it takes. Longer over a small archive,
#: where an answer must not depend on the moment.
SECONDS, SECONDS_IF_SMALL = 0.05, 0.5
#: How long all terms of a query are counted exactly.
COUNT_SECONDS = 0.008
#: Parts of a term that are looked for on their own where the whole stands nowhere.
MOST_PARTS = 12
#: Where a term can only be verified on the text, VERIFIED of its candidates are read, and more as long as there is time.
VERIFIED = 200
#: Candidates that are fetched at a time.
BLOCK = 500
#: Where several words have one stem, FEW entries are read to see which of them was written.
FEW = 5
#: What is looked for in place of a term counts a little less than a term; what sentences are made of counts next to nothing.
IN_PLACE, LITTLE = 0.9, 0.05
#: A query is suggested if it holds at least this share of what was asked for and stands somewhere.
KEPT = 1 / 3
#: Words that English questions are made of and that tell nothing; so are they read where several stand in a query: alone
#: each of them may be a word of another language, or a name.
SENTENCE_WORDS = (
    "a about after again all also and any are at be because been before but by can could did do does doing for from get got "
    "had has have he her how i if in into is it its just make made me my no not of on or our out please shall she should so "
    "some that the their them then there these they this those to up us was we were what when where which while who why will "
    "with would you your"
)
SENTENCE = 3


def hints(
    connection: apsw.Connection,
    searcher: Searcher,
    views: SessionViews,
    request: SearchRequest,
    query: Query,
    hits: Sequence[Hit],
    check: Callable[[], None],
    *,
    sure: bool = True,
) -> Hints:
    """The ``hints`` of a search answer with fewer than five results, which are `hits`; `sure` if every candidate was looked
    at."""
    helper = _Helper(connection, searcher, views, request, query, check)
    if sure and not hits and len(query.terms) == 1 and query.literal:
        helper.counts = [0]
    else:
        helper.counts = [helper.count(term) for term in query.terms]
    wanted = helper.wanted(correct=not hits)
    near = helper.nearest.find(wanted, {row for hit in hits for row in hit.rows}) if wanted else []
    found: Hints = {
        "terms": [
            {"term": term.text, "entries": count} for term, count in zip(query.terms, helper.counts, strict=True)
        ],
        "nearest": helper.shown(near[: min(SHOWN, request.limit) - len(hits)], wanted),
        "sessions": helper.sessions(every_term=not hits),
    }
    if not hits:
        found["suggestion"] = helper.suggestion(near, wanted)
        found["offBranchMatches"] = helper.off_branch()
        found["outsideFilters"] = helper.outside_filters()
    return found


class _Helper:
    def __init__(
        self,
        connection: apsw.Connection,
        searcher: Searcher,
        views: SessionViews,
        request: SearchRequest,
        query: Query,
        check: Callable[[], None],
    ) -> None:
        self.connection, self.searcher, self.views = connection, searcher, views
        self.request, self.query, self.check = request, query, check
        self.evidence = Evidence(connection, views.catalog)
        now = time.monotonic()
        self.until = now + (SECONDS_IF_SMALL if searcher.documents <= SMALL else SECONDS)
        self.counting_until = now + COUNT_SECONDS
        self.nearest = Nearest(connection, searcher, views, check, self.until)
        #: In how many entries each term stands, and in which rows one that only the text can tell.
        self.counts: list[int] = []
        self.rows: dict[Term, list[int]] = {}
        self.stands_nowhere = False
        known = SENTENCE_WORDS.split()
        of_sentence = [term.text.casefold().strip("?!.,;:") in known for term in query.terms]
        said = sum(of_sentence)
        #: Whether a term is one that only makes a sentence of the others.
        self.little = [SENTENCE <= said < len(of_sentence) and one for one in of_sentence]

    # -- counts -------------------------------------------------------------------------------------------------------

    def count(self, term: Term) -> int:
        """In how many entries in scope a term occurs; an estimate where there are many that must be verified, or where
        counting all terms would take too long."""
        count = self.searcher.count(term.expression, self.counting_until - time.monotonic())
        if term.literal and count:
            rows, count = self._verified([term], term.expression, self.searcher, count)
            self.rows[term] = rows
        return count

    def _verified(
        self, terms: Sequence[Term], expression: Expression, searcher: Searcher, count: int
    ) -> tuple[list[int], int]:
        """Of the rows that match an expression those that really hold these terms, and how many of all `count` do: exact if
        there was time to look at all."""
        matcher = Matcher(Query("", tuple(terms)))
        held: list[int] = []
        looked_at = 0
        for _, rows in searcher.by_session(searcher.spelled_out(expression), BLOCK):
            for row, _ in rows:
                if looked_at >= VERIFIED and time.monotonic() > self.until:
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
            if entry is not None and matcher.holds(entry.text, entry.apart):
                held.append(located.row)
        return held

    def off_branch(self) -> int:
        """How many entries match outside the visible branch; an estimate where many of them must be verified."""
        if self.request.branch == "any" or self.stands_nowhere:
            return 0
        scope = replace(self.searcher.scope, only_off_branch=True)
        return self._matching(Searcher(self.connection, self.searcher.scorer, scope, self.views.catalog))

    def outside_filters(self) -> int:
        """How many entries match once the filters are left away; an estimate where many of them must be verified."""
        wide = with_changes(self.request, session_id=None, kind="any", cwd=None, since=None, until=None, roles=ROLES)
        if wide == self.request or self.stands_nowhere:
            return 0
        scope = self.views.scope(wide)
        return self._matching(Searcher(self.connection, self.searcher.scorer, scope, self.views.catalog))

    def _matching(self, searcher: Searcher) -> int:
        count = searcher.count(self.query.expression, COUNT_SECONDS)
        if self.query.literal and count:
            _, count = self._verified(self.query.terms, self.query.expression, searcher, count)
        return count

    # -- what is looked for -------------------------------------------------------------------------------------------

    def wanted(self, *, correct: bool) -> list[Wanted]:
        """The terms that stand somewhere, and what is looked for in place of the others: a word one slip away, else their
        parts."""
        chosen: list[tuple[Term, int, bool]] = []
        for at, (term, count) in enumerate(zip(self.query.terms, self.counts, strict=True)):
            self.check()
            chosen.append((term, at, True))
            if not count and correct:
                chosen += [(one, at, False) for one in self._in_place_of(term)]
        rarities = self.searcher.rarities([term for term, _, _ in chosen])
        weights = [
            rarity * (LITTLE if self.little[at] else 1.0 if itself else IN_PLACE)
            for (_, at, itself), rarity in zip(chosen, rarities, strict=True)
        ]
        return [
            Wanted(term, at, weight, itself, self.rows.get(term))
            for (term, at, itself), weight in zip(chosen, weights, strict=True)
        ]

    def _in_place_of(self, term: Term) -> tuple[Term, ...]:
        """What to look for in place of a term that stands nowhere: its correction, else its parts."""
        if not self.searcher.exists(term.expression):  # nowhere, not only nowhere in scope
            self.stands_nowhere = True
            better = self._respelt(term)
            if better != term.text:
                return parse(better).terms
        parts = term.parts
        if len(parts) < 2 and not term.quoted:
            return ()
        if all(is_unspaced(part) for part in parts):
            parts = ["".join(pair) for pair in pairwise(parts)] or parts
        return parse(" ".join(parts[:MOST_PARTS])).terms

    def _respelt(self, term: Term) -> str:
        """A term with the words corrected that stand nowhere; as it was written if that cannot be done."""
        parts = term.parts
        if term.quoted:
            return term.text
        if len(parts) == 1:
            return self._written(corrections(self.searcher, parts[0], self.until)) or term.text
        text, reading, moved = term.text, Reading(term.text), 0
        for at, word in enumerate(reading.words):
            if not self.searcher.exists(Phrase((word,))):
                start, end = (place + moved for place in reading.place(at, at + 1))
                better = self._written(corrections(self.searcher, word, self.until)) or text[start:end]
                cased = better.capitalize() if text[start].isupper() else better
                text, moved = text[:start] + cased + text[end:], moved + len(cased) - (end - start)
        return text if parse(text) != parse(term.text) else term.text

    def _written(self, candidates: Sequence[str]) -> str:
        """The first of some words of one stem that stands like that in an entry, else the first; "" if there is none."""
        for candidate in candidates if len(candidates) > 1 else ():
            query = parse(f'"{candidate}"')
            if self._holding(Matcher(query), self.searcher.matches(query.expression, FEW)):
                return candidate
        return candidates[0] if candidates else ""

    # -- nearest entries and what to ask ------------------------------------------------------------------------------

    def shown(self, near: Sequence[Near], wanted: Sequence[Wanted]) -> list[NearHit]:
        """The nearest entries as they stand in the answer."""
        matcher = Matcher(Query(self.query.text, tuple([one.term for one in wanted])))
        shown: list[NearHit] = []
        for one in near:
            self.check()
            held = {wanted[at].place for at in one.held if wanted[at].itself}
            beside = {wanted[at].place for at in self.nearest.confirmed(one, wanted) if wanted[at].itself} - held
            texts = [term.text for term in self.query.terms]
            shown.append(
                {
                    **render(one.hit, self.views, matcher, self.request.snippet_chars),
                    "missingTerms": [text for at, text in enumerate(texts) if at not in held],
                    "nearby": [text for at, text in enumerate(texts) if at in beside],
                }
            )
        return shown

    def suggestion(self, near: Sequence[Near], wanted: Sequence[Wanted]) -> str | None:
        """The query that holds most of what was asked for and stands in an entry: misspelt words corrected, those dropped
        that only make a sentence, then those without which most is kept."""
        best, most = "", 0.0
        asked = sum([one.weight for one in wanted if one.itself and self.counts[one.place]])
        for one in near:
            words, worth = self._standing_in(one, wanted)
            if worth > most + 1e-9 and words != [term.text for term in self.query.terms]:
                best, most = " ".join(words), worth
        return best if best and most >= KEPT * asked and self.views.masked(best) == best else None

    def _standing_in(self, near: Near, wanted: Sequence[Wanted]) -> tuple[list[str], float]:
        """The query's terms, or what stands for them, as far as they stand in an entry, and how much they tell."""
        words: list[tuple[int, str]] = []
        worth = 0.0
        for place, term in enumerate(self.query.terms):
            itself = [at for at, one in enumerate(wanted) if one.place == place and one.itself]
            others = [at for at, one in enumerate(wanted) if one.place == place and not one.itself]
            if near.held.issuperset(itself):
                words.append((place, term.text))
                worth += sum([wanted[at].weight for at in itself])
            elif others and near.held.issuperset(others):
                words.append((place, " ".join([wanted[at].term.text for at in others])))
                worth += sum([wanted[at].weight for at in others]) / len(others)
        telling = [word for place, word in words if not self.little[place]]
        return telling or [word for _, word in words], worth

    # -- sessions -----------------------------------------------------------------------------------------------------

    def sessions(self, *, every_term: bool) -> list[SessionView]:
        """Sessions whose names hold the terms; and those in which every term stands, where that is asked for."""
        catalog = self.views.catalog
        telling = [term for term, little in zip(self.query.terms, self.little, strict=True) if not little]
        keys = dict.fromkeys(islice(named_sessions(self.views, self.searcher.scope, telling), SHOWN))
        if every_term and len(self.query.terms) > 1 and all(self.counts):
            terms = self.query.terms
            found = sessions_with_all(self.searcher, terms, self.counts, self.check, self.until)
            literal = [term for term in terms if term.literal]
            really = (key for key in found if all(self._stands_in(term, key) for term in literal))
            keys |= dict.fromkeys(islice((catalog.leading(key).key for key in really), SHOWN - len(keys)))
        leading = map(self.views.catalog.leading, keys)
        return [self.views.view(one) for one in {one.key: one for one in leading}.values()]

    def _stands_in(self, term: Term, session: int) -> bool:
        rows = [row for row, _ in self.searcher.of_session(term.expression, session, VERIFIED)]
        return bool(self._holding(Matcher(Query("", (term,))), rows))
