"""Which terms the index holds, looked up in its vocabulary without reading where they stand.

For a prefix FTS5 merges the places of all its terms before it gives the first row, anew in every statement. Spelled out
(``("depend" OR "deploy")`` for ``"dep" *``) the same rows are found as those of any words are: only as far as needed.
"""

from __future__ import annotations

from collections.abc import Sequence

import apsw

from ..text.tokens import stems
from .expression import Expression, Phrase, any_of

#: A prefix of more terms than this is left to FTS5: alone, and where other words are required too (all of its terms are
#: then looked for at each of theirs).
ALONE, BESIDE_OTHERS = 4000, 32
#: What a word may end in whose stem is a given one: FTS5 stems what it is asked for, and a stem has a stem of its own.
_ENDINGS = ("", "e", "s", "ed", "ing")
#: The terms of the index as a table of the connection's own, which no file holds.
TABLE = "CREATE VIRTUAL TABLE IF NOT EXISTS temp.vocabulary USING fts5vocab(main, search, instance)"
#: From term to term: the first one not below a text is found at once, what follows would be all of its places.
_BEGINNING = """
WITH RECURSIVE found(term) AS (
  SELECT (SELECT term FROM temp.vocabulary WHERE term >= ?1 LIMIT 1)
  UNION ALL
  SELECT (SELECT term FROM temp.vocabulary WHERE term >= found.term || char(1) LIMIT 1) FROM found WHERE found.term < ?2)
SELECT term FROM found WHERE term < ?2 LIMIT ?3
"""
_STANDING = "SELECT value FROM carray(?) WHERE EXISTS (SELECT 1 FROM temp.vocabulary WHERE term = value)"


class Vocabulary:
    """The terms of one snapshot."""

    def __init__(self, connection: apsw.Connection) -> None:
        self.connection = connection
        self._known: dict[tuple[Phrase, int], Expression] = {}

    def spelled_out(self, expression: Expression, most: int) -> Expression:
        """An expression that finds the same with the words in place of each prefix of at most `most` terms."""
        return expression.replaced(lambda phrase: self._words_of(phrase, most)) if expression.has_prefix else expression

    def _words_of(self, phrase: Phrase, most: int) -> Expression:
        if not phrase.prefix or len(phrase.words) > 1:
            return phrase
        if phrase.instead:  # (to be told its words costs less than all of these)
            most = max(most, ALONE)
        known = self._known.get((phrase, most))
        if known is None:
            (start,) = phrase.words if phrase.instead else stems(phrase.words)
            terms = self.beginning(start, most + 1)
            # (A word that would begin a term if there were one finds nothing, and at once.)
            words = [] if len(terms) > most else _with_stems(terms) if terms else phrase.words
            known = any_of([Phrase((word,), column=phrase.column) for word in words]) if words else phrase
            self._known[phrase, most] = known
        return known

    def standing(self, words: Sequence[str]) -> list[str]:
        """Those of some folded words, one token each, whose stems the index holds, in their order."""
        self.connection.execute(TABLE)
        terms = stems(words)
        found = {term for (term,) in self.connection.execute(_STANDING, (apsw.carray(tuple(terms)),))}
        return [word for word, term in zip(words, terms, strict=True) if term in found]

    def beginning(self, start: str, most: int) -> list[str]:
        """The first `most` terms that begin with `start`."""
        self.connection.execute(TABLE)
        found = self.connection.execute(_BEGINNING, (start, start + chr(0x10FFFF), most))
        return [term for (term,) in found]


def _with_stems(terms: Sequence[str]) -> list[str]:
    """Words that have these stems, one for each; none at all if there is none for one of them."""
    words: dict[str, str] = {}
    missing = list(terms)
    for ending in _ENDINGS:
        if missing:
            candidates = [term + ending for term in missing]
            found = stems(candidates)
            if len(found) == len(candidates):
                words |= {t: word for t, word, stem in zip(missing, candidates, found, strict=True) if t == stem}
                missing = [term for term in missing if term not in words]
    return [] if missing else list(words.values())
