"""One term of a query, looked for among the tokens of a text: what `query` asks the index, asked of a `Reading`.

Text and index agree: a term is found in a text if its expression finds the text's row; for a ``literal`` term the text
decides among these rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from ..text.tokens import Compound, Reading, stems
from .query import Term, Word

Compounds: TypeAlias = Mapping[int, Sequence[Compound]]


class _Form(NamedTuple):
    """How one word of a term may stand in a text: as ``parts`` one behind the other, as the token ``whole``, or as one of
    ``compounds`` that the analysis cut."""

    parts: tuple[frozenset[str], ...]
    whole: str
    compounds: frozenset[str]


class Pattern:
    """One term, ready to be looked for, inflected or (``exact``) just as it was typed.

    ``compounds``: the whole words that may be one of its words (if it is a ``prefix``, or begin
    so). ``heads``: the tokens and compounds with which the term begins wherever it stands; if ``begins``, those that begin with
    one of them. ``needles``: one of them stands in the folded text wherever the term does.
    """

    def __init__(self, term: Term, exact: bool) -> None:
        self.exact, self.prefix = exact, term.kind == "prefix"
        self.length, self.size = len(term.text), len(term.parts)
        self._forms = [self._form(word, len(term.words) == 1) for word in term.words]
        self.compounds = frozenset[str]().union(*[form.compounds for form in self._forms])
        first = self._forms[0]
        self.heads = first.parts[0] | first.compounds | {first.whole}
        self.begins = self.prefix and len(self._forms) == 1
        self.needles = max(map(self._needles, self._forms), key=lambda some: min(map(len, some)))

    def _form(self, word: Word, alone: bool) -> _Form:
        given = [forms[:1] if self.exact else forms for forms in word.parts]
        *parts, names = [frozenset(forms if self.exact else stems(forms)) for forms in (*given, (word.whole,))]
        (whole,) = names
        if alone:
            return _Form(tuple(parts), whole, names if len(parts) > 1 else parts[0] | names)
        return _Form(tuple(parts), whole, names if word.named else frozenset())

    def _needles(self, form: _Form) -> list[str]:
        best = max(form.parts, key=lambda forms: min(map(len, forms)))
        *needles, whole = [token if self.exact else _unchanged(token) for token in (*best, form.whole)]
        return needles if any(needle in whole for needle in needles) else [*needles, whole]

    def found(self, reading: Reading, compounds: Compounds, starts: Iterable[int]) -> list[tuple[int, int]]:
        """The tokens, (first, after), of each place of the term that begins at one of ``starts``."""
        tokens = reading.words if self.exact else reading.stems
        firsts = dict.fromkeys(starts)
        alone, heads = self.size == 1 and not self.begins, self.heads
        places = [
            (first, first + 1 if alone and tokens[first] in heads else self._end(tokens, compounds, first, 0))
            for first in firsts
        ]
        return [place for place in places if place[1]]

    def _end(self, tokens: list[str], compounds: Compounds, at: int, place: int) -> int:
        """The token behind the term's words from ``place`` on, if they begin at token ``at``; else 0."""
        if place == len(self._forms):
            return at
        form, begins = self._forms[place], self.prefix and place == len(self._forms) - 1
        afters = [
            compound.after
            for compound in compounds.get(at, ())
            if _is(compound.word if self.exact else compound.stem, form.compounds, begins)
        ]
        if at < len(tokens) and _is(tokens[at], (form.whole,), begins):
            afters.append(at + 1)
        standing, last = tokens[at : at + len(form.parts)], len(form.parts) - 1
        if len(standing) > last and all(
            _is(token, names, begins and part == last)
            for part, (token, names) in enumerate(zip(standing, form.parts, strict=True))
        ):
            afters.append(at + len(form.parts))
        for after in dict.fromkeys(afters):  # (two ways to one place, tried both at every word, would take for ever)
            end = self._end(tokens, compounds, after, place + 1)
            if end:
                return end
        return 0


def _is(token: str, names: Iterable[str], begins: bool) -> bool:
    return token.startswith(tuple(names)) if begins else token in names


def _unchanged(stem: str) -> str:
    """What every word of this stem begins with: its last letter may be one that the stemmer put in place of another."""
    return stem[:-1] if len(stem) > 1 and stem[-1] in "eil" else stem
