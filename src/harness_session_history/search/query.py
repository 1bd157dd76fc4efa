"""The query language (contract: query language) and its translation to FTS5.

A query is terms separated by white space, all required: plain words, ``"phrases"`` and ``prefixes*``. Whatever a term
holds besides letters and digits only separates words. The expressions are put together from quoted strings of folded
words, ``OR``, ``AND``, ``*`` and one column filter, so nothing typed ever reaches FTS5 as syntax.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

from ..errors import InvalidRequest
from ..text.analysis import is_unspaced
from ..text.tokens import Reading, beginnings, read, relatives
from .expression import Expression, Phrase, all_of, any_of

MAX_CHARS = 512
MAX_BYTES = 512
MAX_TERMS = 32
MIN_PREFIX = 2

# So common that a search for a whole identifier of that name would only cost time.
_COMMON = (
    "the and for that this with you are not was but have has had from can all will one let use new now get its our out "
    "should would could there then than when what which into your they them their here just some more about been"
)


class Word(NamedTuple):
    """One word of a term.

    ``parts`` are its folded tokens (more than one for an identifier), ``whole`` all in one, ``relatives`` other forms
    of it that the stemmer does not bring together with it.
    """

    parts: tuple[str, ...]
    whole: str
    relatives: tuple[str, ...]


class Term(NamedTuple):
    """One term of a query.

    ``text`` is what was typed, quotes and ``*`` included; ``expression`` finds it in the search table; ``tokens`` are
    its stems. ``literal`` says that the expression finds more than the term means, as the table holds stems: a hit
    counts only if ``match.Matcher.holds`` its text. ``quoted``: just these words, not inflected.
    """

    text: str
    kind: Literal["word", "phrase", "prefix"]
    expression: Expression
    tokens: tuple[str, ...]
    literal: bool
    words: tuple[Word, ...]
    quoted: bool

    @property
    def parts(self) -> list[str]:
        """The folded tokens of its words."""
        return [part for word in self.words for part in word.parts]


class Query(NamedTuple):
    """A parsed query: ``text`` as typed and its ``terms``, at least one, no two alike."""

    text: str
    terms: tuple[Term, ...]

    @property
    def expression(self) -> Expression:
        """What requires every term."""
        return conjunction(self.terms)

    @property
    def literal(self) -> bool:
        """Whether hits must be verified on their text."""
        return any(term.literal for term in self.terms)


def conjunction(terms: Iterable[Term]) -> Expression:
    """What requires every one of some terms."""
    return all_of([term.expression for term in terms])


def parse(query: str, *, most_bytes: int = MAX_BYTES) -> Query:
    """The query as typed by a caller, of at most so many bytes as UTF-8; raises :class:`InvalidRequest` that says what to
    write instead."""
    _check(query, most_bytes)
    return _parsed(query)


@lru_cache(64)  # a call's query is parsed to refuse it at once, and again to answer it
def _parsed(query: str) -> Query:
    terms: dict[tuple[Expression, bool], Term] = {}
    for number, (text, content, quoted, starred) in enumerate(_typed(query), 1):
        if number > MAX_TERMS:
            raise _invalid(f"has more than {MAX_TERMS} terms", "Keep the few most telling words.")
        term = _term(text, content, quoted, starred)
        if term is not None:
            terms.setdefault((term.expression, term.quoted), term)
    if not terms:
        raise _invalid("has nothing to search for", "Name at least one word, number or identifier.")
    return Query(query, tuple(terms.values()))


def _invalid(message: str, hint: str) -> InvalidRequest:
    return InvalidRequest(f"query {message}", hint=hint)


def _check(query: str, most_bytes: int) -> None:
    if not isinstance(query, str):
        raise _invalid(f"must be a string, not {type(query).__name__}", 'Write query="words to find".')
    if not 1 <= len(query) <= MAX_CHARS:
        raise _invalid(f"must have 1 to {MAX_CHARS} characters", "Keep the few most telling words.")
    try:
        size = len(query.encode())
    except UnicodeEncodeError:
        raise _invalid("holds half of a surrogate pair", "Write whole characters.") from None
    if size > most_bytes:
        raise _invalid(f"must have at most {most_bytes} bytes as UTF-8", "Keep the few most telling words.")
    if not query.isprintable() and any(unicodedata.category(c) == "Cc" for c in query):
        raise _invalid("holds a control character", "Separate terms by spaces; leave out tabs and line ends.")


def _typed(query: str) -> Iterator[tuple[str, str, bool, bool]]:
    """The terms as (typed text, content, quoted, starred)."""
    position, size = 0, len(query)
    while position < size:
        start = position
        if query[start].isspace():
            position += 1
            continue
        quoted = query[start] == '"'
        if quoted:
            content, position = _phrase(query, start + 1)
        else:
            while position < size and query[position] != '"' and not query[position].isspace():
                position += 1
            content = query[start:position].removesuffix("*")
            if "*" in content:
                raise _misplaced_star()
        starred = query[position - 1] == "*"
        if quoted and (starred := query[position : position + 1] == "*"):
            position += 1
            if not query[position : position + 1].strip() == "":
                raise _misplaced_star()
        yield query[start:position], content, quoted, starred


def _misplaced_star() -> InvalidRequest:
    return _invalid(
        'has a "*" elsewhere than at the end of a term',
        'Write "*" only behind the beginning of a word (migrat*), or inside quotes for the sign itself.',
    )


def _phrase(query: str, position: int) -> tuple[str, int]:
    """The content of the phrase that begins at ``position`` and where the query goes on behind its closing quote."""
    content: list[str] = []
    while position < len(query):
        character = query[position]
        position += 1
        if character == '"':
            return "".join(content), position
        if character == "\\" and query[position : position + 1] in ('"', "\\"):
            character = query[position]
            position += 1
        content.append(character)
    raise _invalid('has an unclosed quote (")', 'Close the phrase with ", or write \\" for a quote inside a phrase.')


def _term(text: str, content: str, quoted: bool, starred: bool) -> Term | None:
    reading = read(content)
    words = _words(reading, inflected=not quoted and not starred)
    if starred:
        letters = sum([len(part) for word in words for part in word.parts])
        if letters < MIN_PREFIX and not (letters and is_unspaced(words[-1].whole)):
            raise _invalid(
                f'has a prefix shorter than {MIN_PREFIX} letters or digits before "*"',
                'Write at least two letters or digits before "*", or leave the "*" out.',
            )
    elif not words:
        if quoted:
            raise _invalid("has an empty phrase", 'Put at least one word between the quotes, or leave "" out.')
        return None
    tokens = tuple([token.stem for token in reading.tokens])
    if starred:
        expression, exact = _prefix_expression(words)
        return Term(text, "prefix", expression, tokens, not exact, words, True)
    kind: Literal["word", "phrase"] = "phrase" if quoted or len(tokens) > 1 else "word"
    expression, exact = _expression(words)
    return Term(text, kind, expression, tokens, quoted or not exact, words, quoted)


def _words(reading: Reading, inflected: bool) -> tuple[Word, ...]:
    compounds = {c.first: c for c in sorted(reading.compounds, key=lambda c: c.after)}
    words: list[Word] = []
    position = 0
    while position < len(reading.tokens):
        token, compound = reading.tokens[position], compounds.get(position)
        if compound is not None:
            parts = tuple([token.word for token in reading.tokens[position : compound.after]])
            words.append(Word(parts, compound.word, ()))
            position = compound.after
        else:
            words.append(Word((token.word,), token.word, relatives(token) if inflected else ()))
            position += 1
    return tuple(words)


def _expression(words: tuple[Word, ...]) -> tuple[Expression, bool]:
    """Finds at least ``words`` one behind the other, each in its parts or as a whole; and whether it finds nothing else."""
    wholes = [word.whole for word in words]
    phrases: list[Expression] = [Phrase(tuple([part for word in words for part in word.parts])), Phrase(tuple(wholes))]
    for place, word in enumerate(words):
        phrases += [Phrase((*wholes[:place], relative, *wholes[place + 1 :])) for relative in word.relatives]
    scattered = _scattered(words, [_alone(word) for word in words], [Phrase((w,), column="whole") for w in wholes])
    return any_of([*phrases, *scattered]), not scattered


def _alone(word: Word) -> Expression:
    return any_of(map(Phrase, (word.parts, (word.whole,), *[(relative,) for relative in word.relatives])))


def _scattered(words: tuple[Word, ...], alone: list[Expression], wholes: Sequence[Expression]) -> list[Expression]:
    """Finds ``words`` where some of them are identifiers in the entry though typed without capitals.

    ``"github action"`` must find GitHub action: there ``body`` holds git, hub, action, and ``github`` is in ``whole``.
    Being in two columns they form no phrase for FTS5, so it is told of the words only.
    """
    if len(words) < 2:
        return []
    named = [
        whole
        for word, whole in zip(words, wholes, strict=True)
        if len(word.whole) > 2 and word.whole not in _COMMON.split() and not word.whole.isnumeric()
    ]
    return [all_of([*alone, any_of(named)])] if named else []


def _prefix_expression(words: tuple[Word, ...]) -> tuple[Expression, bool]:
    """Finds at least what begins with ``words``, and whether it finds nothing else."""
    *before, last = words
    split = [part for word in before for part in word.parts] + list(last.parts[:-1])
    starts, exact = beginnings(last.parts[-1])
    found: list[Expression] = [Phrase((*split, word), prefix) for word, prefix in starts]
    alone: list[Expression] = [Phrase((*last.parts[:-1], word), prefix) for word, prefix in starts]
    wholes, _ = beginnings(last.whole)
    if len(last.parts) > 1:
        alone += [Phrase((word,), prefix) for word, prefix in wholes]
        found += [Phrase((*[word.whole for word in before], word), prefix) for word, prefix in wholes]
    if before:
        named = any_of([Phrase((word,), prefix, "whole") for word, prefix in wholes])
        found += _scattered(
            words,
            [*[_alone(word) for word in before], any_of(alone)],
            [*[Phrase((word.whole,), column="whole") for word in before], named],
        )
    return any_of(found), exact and len(words) == 1 and len(last.parts) == 1
