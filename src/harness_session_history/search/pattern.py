"""One term of a query, ready to be looked for in texts that were read."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ..text.analysis import is_unspaced
from ..text.tokens import Reading, stems
from .query import Term, Word

_ENDING = 20  # letters that a form of a word has behind its stem, at most


class _Form(NamedTuple):
    """How one word of a term may stand in a text: as these tokens, or as one of ``wholes``."""

    parts: tuple[str, ...]
    wholes: frozenset[str]


class Pattern:
    """One term, ready to be looked for.

    In a folded text it is looked for by ``expression``, where each of its parts must stand as it is; by ``pair``, two
    neighbours of its parts in any form; or by ``needles``, for a single word: one of them stands wherever the term does.
    A pair stands about ``before`` behind the term's beginning.
    """

    def __init__(self, term: Term) -> None:
        self.exact = term.quoted
        self.prefix = term.kind == "prefix"
        self.forms = [self._form(word) for word in term.words]
        self.length = len(term.text)
        parts = term.parts
        self.single = len(parts) == 1
        self.unspaced = all(is_unspaced(part) for part in parts)
        literal = not self.single and (self.exact or self.unspaced)
        self.expression = self._expression(parts) if literal else None
        self.needles = self._needles(term.words[0]) if self.single else []
        self.pair: re.Pattern[str] | None = None
        self.before = 0
        if not self.single and not literal:
            self.pair, self.before = self._pair(term.words)
        self._words = term.words
        self._known: dict[str, bool] = {}

    def _form(self, word: Word) -> _Form:
        if self.exact:
            return _Form(word.parts, frozenset([word.whole]))
        all_stems = stems([*word.parts, word.whole, *word.relatives])
        return _Form(tuple(all_stems[: len(word.parts)]), frozenset(all_stems[len(word.parts) :]))

    @staticmethod
    def _expression(parts: list[str]) -> re.Pattern[str]:
        _, between = _classes(parts)
        return re.compile(f"{between}*+".join([re.escape(part) for part in parts]))

    def _needles(self, word: Word) -> list[str]:
        return self._beginnings([max(word.parts, key=len), word.whole, *word.relatives])

    def _beginnings(self, words: Sequence[str]) -> list[str]:
        """What the words begin with in all their forms."""
        if not self.exact:  # a stem differs from its word in the last letter at most
            words = [stem[:-1] if len(stem) > 2 else stem for stem in stems(words)]
        return [w for w in dict.fromkeys(words) if not any(w != o and w.startswith(o) for o in words)]

    def _pair(self, words: Sequence[Word]) -> tuple[re.Pattern[str], int]:
        """Finds two neighbours of the parts, written together or apart and in any form; how far they are from the beginning."""
        parts: list[tuple[str, ...]] = []
        for word in words:
            parts += [(part,) for part in word.parts] if len(word.parts) > 1 else [(*word.parts, *word.relatives)]
        begin = max(range(len(parts) - 1), key=lambda at: len(parts[at][0]) + len(parts[at + 1][0]))
        first, second = ("|".join(map(re.escape, self._beginnings(forms))) for forms in parts[begin : begin + 2])
        letter, between = _classes([form for forms in parts for form in forms])
        pair = re.compile(f"(?:{first}){letter}{{0,{_ENDING}}}{between}*+(?:{second})")
        return pair, sum([len(forms[0]) + 1 for forms in parts[:begin]])

    @property
    def hints(self) -> list[str]:
        """What one of its words begins with or holds, wherever the term stands."""
        return [needle.lower() for word in self._words for needle in self._needles(word)]

    def is_word(self, word: str) -> bool:
        """Whether one folded ``word`` is this term of a single word."""
        known = self._known.get(word)
        if known is None:
            stem = word if self.exact else stems([word])[0]
            known = self._known[word] = self._is(stem, self.forms[0], self.prefix)
        return known

    def _is(self, token: str, form: _Form, begins: bool) -> bool:
        return any(token.startswith(whole) for whole in form.wholes) if begins else token in form.wholes

    def found(self, reading: Reading) -> Iterator[tuple[int, int]]:
        """The (start, end) of each place of the term in what was read."""
        compounds: dict[int, list[tuple[int, str]]] = {}
        for compound in reading.compounds:
            text = compound.word if self.exact else compound.stem
            compounds.setdefault(compound.first, []).append((compound.after, text))
        tokens = [token.word if self.exact else token.stem for token in reading.tokens]
        form = self.forms[0]
        beginnings = (*form.wholes, form.parts[0])
        anything = self.prefix and len(self.forms) == 1
        for first, token in enumerate(tokens):
            if token in beginnings or first in compounds or (anything and token.startswith(beginnings)):
                after = self._ends(tokens, compounds, first, 0)
                if after:
                    yield reading.tokens[first].start, reading.tokens[after - 1].end

    def _ends(self, tokens: list[str], compounds: dict[int, list[tuple[int, str]]], at: int, place: int) -> int:
        """The token behind the term's words from ``place`` on, if they begin at token ``at``; else 0."""
        if place == len(self.forms):
            return at
        form, begins = self.forms[place], self.prefix and place == len(self.forms) - 1
        afters = [after for after, token in compounds.get(at, ()) if self._is(token, form, begins)]
        if at < len(tokens) and self._is(tokens[at], form, begins):
            afters.append(at + 1)
        size = len(form.parts)
        standing = tuple(tokens[at : at + size])
        if standing == form.parts or (
            begins
            and len(standing) == size
            and standing[:-1] == form.parts[:-1]
            and standing[-1].startswith(form.parts[-1])
        ):
            afters.append(at + size)
        for after in dict.fromkeys(afters):  # (two ways to one place, tried both at every word, would take for ever)
            end = self._ends(tokens, compounds, after, place + 1)
            if end:
                return end
        return 0


def _classes(words: list[str]) -> tuple[str, str]:
    """Expressions for a letter of some words and for what may stand between two of them."""
    # Letters newer than this Python are no letters to it, but they are words of the term all the same.
    unknown = re.escape("".join([c for word in words for c in word if not c.isalnum()]))
    return rf"(?:[^\W_]{f'|[{unknown}]' if unknown else ''})", rf"(?:[^\w{unknown}]|_)"
