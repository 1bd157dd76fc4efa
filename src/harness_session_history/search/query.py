"""The query language (contract: query language) and its translation to FTS5.

A query is terms separated by white space, all required: plain words, ``"phrases"`` and ``prefixes*``. Whatever a term
holds besides letters and digits only separates words. The expressions are put together from quoted strings of folded
words, ``OR``, ``AND``, ``*`` and one column filter, so nothing typed ever reaches FTS5 as syntax.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import lru_cache
from itertools import product
from math import prod
from typing import Literal, NamedTuple

from ..errors import InvalidRequest
from ..text.analysis import is_unspaced
from ..text.tokens import Reading, beginnings, relatives
from .expression import Expression, Phrase, all_of, any_of

MAX_CHARS = 512
MAX_BYTES = 512
MAX_TERMS = 32
MIN_PREFIX = 2

# In more ways than this a term is looked for by its words alone, and the text decides whether they stand together.
MOST_WAYS = 12

# So common that a search for a whole identifier of that name would only cost time.
_COMMON = frozenset(
    [
        "the",
        "and",
        "for",
        "that",
        "this",
        "with",
        "you",
        "are",
        "not",
        "was",
        "but",
        "have",
        "has",
        "had",
        "from",
        "can",
        "all",
        "will",
        "one",
        "let",
        "use",
        "new",
        "now",
        "get",
        "its",
        "our",
        "out",
        "should",
        "would",
        "could",
        "there",
        "then",
        "than",
        "when",
        "what",
        "which",
        "into",
        "your",
        "they",
        "them",
        "their",
        "here",
        "just",
        "some",
        "more",
        "about",
        "been",
    ]
)


class Word(NamedTuple):
    """One word of a term: for each of its folded tokens (several for an identifier) the token and other forms of it that
    the stemmer does not bring together with it, and ``whole``, all tokens in one."""

    parts: tuple[tuple[str, ...], ...]
    whole: str

    @property
    def named(self) -> bool:
        """Whether beside other words it may be an identifier that was typed without capitals."""
        return len(self.whole) > 2 and self.whole not in _COMMON and not self.whole.isnumeric()

    @property
    def ways(self) -> int:
        """In how many ways it may stand in a text, at most."""
        return prod(map(len, self.parts)) + (len(self.parts) > 1)

    @property
    def runs(self) -> list[tuple[str, ...]]:
        """The tokens of each of these ways; ask only where they are few."""
        return list(dict.fromkeys([*product(*self.parts), (self.whole,)]))

    @property
    def alone(self) -> Expression:
        """Finds at least the word."""
        if self.ways <= MOST_WAYS:
            return any_of(map(Phrase, self.runs))
        return any_of([all_of([any_of([Phrase((w,)) for w in forms]) for forms in self.parts]), Phrase((self.whole,))])


class Term(NamedTuple):
    """One term of a query.

    ``text`` is what was typed, quotes and ``*`` included; ``expression`` finds it in the search table; ``literal`` says
    that the expression finds more than the term means, as the table holds stems and two columns: a hit counts only if
    ``match.Matcher.holds`` its text. ``quoted``: just these words, not inflected.
    """

    text: str
    kind: Literal["word", "phrase", "prefix"]
    expression: Expression
    literal: bool
    words: tuple[Word, ...]
    quoted: bool

    @property
    def parts(self) -> list[str]:
        """The folded tokens of its words."""
        return [forms[0] for word in self.words for forms in word.parts]


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
    """The query as typed by a caller, of at most `most_bytes` in UTF-8; raises :class:`InvalidRequest` that says what to
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
    words = _words(Reading(content), inflected=not quoted and not starred)
    if starred:
        letters = sum([len(forms[0]) for word in words for forms in word.parts])
        if letters < MIN_PREFIX and not (letters and is_unspaced(words[-1].whole)):
            raise _invalid(
                f'has a prefix shorter than {MIN_PREFIX} letters or digits before "*"',
                'Write at least two letters or digits before "*", or leave the "*" out.',
            )
    elif not words:
        if quoted:
            raise _invalid("has an empty phrase", 'Put at least one word between the quotes, or leave "" out.')
        return None
    expression, exact = _expression(words, quoted and not starred, starred)
    kind: Literal["word", "phrase", "prefix"] = "phrase" if quoted or len(words) + len(words[0].parts) > 2 else "word"
    kind = "prefix" if starred else kind
    return Term(text, kind, expression, not exact, words, quoted or starred)


def _words(reading: Reading, inflected: bool) -> tuple[Word, ...]:
    forms = [
        (word, *(relatives(word, stem) if inflected else ()))
        for word, stem in zip(reading.words, reading.stems, strict=True)
    ]
    compounds = reading.compounds()
    words: list[Word] = []
    at = 0
    while at < len(forms):
        compound = max(compounds.get(at, ()), key=lambda one: one.after, default=None)
        after = at + 1 if compound is None else max(at + 1, compound.after)
        words.append(Word(tuple(forms[at:after]), forms[at][0] if compound is None else compound.word))
        at = after
    return tuple(words)


def _expression(words: tuple[Word, ...], quoted: bool, starred: bool) -> tuple[Expression, bool]:
    """Finds at least ``words`` one behind the other, each in its parts or as a whole; and whether it finds nothing else.

    ``"github action"`` must find GitHub action: there ``body`` holds git, hub, action, and ``github`` is in ``whole``.
    Being in two columns they form no phrase for FTS5, so it is told of the words only. (In ``whole`` words stand side by
    side that do not in the text; to look into ``body`` only takes a little longer, and is done where nobody checks.)
    """
    *before, last = words
    ways = prod([word.ways for word in before])
    if starred:
        split = tuple([forms[0] for forms in last.parts[:-1]])
        starts, exact = _starts(last.whole)
        ends = [*(_starts(last.parts[-1][0], split)[0] if split else []), *starts]
        alone, exact, few = any_of(ends), exact and len(words) + len(split) == 1, ways <= 2
    else:
        alone, exact, few = last.alone, True, ways * last.ways <= MOST_WAYS
        ends = [Phrase(run) for run in last.runs] if few else []
    each = [*[word.alone for word in before], alone]
    if not few:
        return all_of(each), False
    named = [Phrase((word.whole,), column="whole") for word in before if word.named]
    if last.named:
        named += _starts(last.whole, column="whole")[0] if starred else [Phrase((last.whole,), column="whole")]
    exact &= not quoted and not (before and named)
    found: list[Expression] = []
    for runs, end in product(product(*[word.runs for word in before]), ends):
        for one in end.phrases if runs else [end]:
            tokens = (*[token for run in runs for token in run], *one.words)
            found.append(replace(one, words=tokens, column="body" if exact and len(tokens) > 1 else ""))
    if before and named:
        found.append(all_of([*each, any_of(named)]))
    return any_of(found), exact


def _starts(start: str, before: tuple[str, ...] = (), column: str = "") -> tuple[list[Phrase], bool]:
    """Finds at least every word that begins with ``start``, behind the words ``before`` it; and whether nothing else."""
    words, exact = beginnings(start)
    found = [Phrase((*before, word), prefix, column) for word, prefix in words]
    prefixes = tuple([phrase for phrase in found if phrase.prefix])
    if not before and len(prefixes) > 1:
        found = [Phrase((start,), True, column, prefixes), *found[len(prefixes) :]]
    return found, exact
