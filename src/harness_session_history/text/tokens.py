"""A text as the index sees it: its tokens, with their places in the text, and the words that were cut for them.

English word forms, where the stemmer alone does not say which stems a typed word or beginning stands for."""

from __future__ import annotations

import re
import threading
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable
from functools import cached_property, lru_cache
from itertools import accumulate, pairwise
from typing import NamedTuple, cast

import apsw

from .analysis import TOKENIZER, changing_characters, cut, cut_words, foreign_characters, unify, whole_words


class _Tokenizers(threading.local):
    """SQLite's tokenizers, one pair per thread as a connection belongs to one thread at a time."""

    def __init__(self) -> None:
        connection = apsw.Connection(":memory:")
        stemming, *folding = TOKENIZER.split()
        self._fold = connection.fts5_tokenizer(folding[0], folding[1:])
        self._stem = connection.fts5_tokenizer(stemming, folding)

    def words(self, raw: bytes) -> list[str]:
        """The folded words of analysed text."""
        found = self._fold(raw, apsw.FTS5_TOKENIZE_DOCUMENT, None, include_offsets=False, include_colocated=False)
        return cast("list[str]", found)

    def stems(self, raw: bytes) -> list[tuple[int, int, str]]:
        """The stems of analysed text, one for each of its words, with their places in bytes."""
        found = self._stem(raw, apsw.FTS5_TOKENIZE_DOCUMENT, None, include_colocated=False)
        return cast("list[tuple[int, int, str]]", found)


_made: _Tokenizers | None = None


def _tokenizers() -> _Tokenizers:
    global _made
    if _made is None:
        _made = _Tokenizers()
    return _made


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "replace")


def stems(words: Iterable[str]) -> list[str]:
    """The stem of each of ``words`` (folded words of a :class:`Reading`, one token each)."""
    return [stem for _, _, stem in _tokenizers().stems(_encoded(" ".join(words)))]


class Compound(NamedTuple):
    """A word that the analysis cut: its tokens are ``first`` to before ``after``; ``word``, ``stem`` of the whole."""

    first: int
    after: int
    word: str
    stem: str


class Reading:
    """``text`` as the index holds it: the ``stems`` of its tokens in order and, on demand, their folded ``words``, its
    ``compounds`` and the place of a run of tokens in ``text``."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._unified, self._joined = unify(text)
        self._cuts = cut_words(self._unified)
        self._body = cut(self._unified, self._cuts)
        self._raw = _encoded(self._body)
        self._tokens = _tokenizers().stems(self._raw)
        self.stems = [stem for _, _, stem in self._tokens]

    @cached_property
    def words(self) -> list[str]:
        """The tokens folded, but not stemmed."""
        return _tokenizers().words(self._raw)

    def compounds(self, is_wanted: Callable[[str, str], bool] | None = None) -> dict[int, list[Compound]]:
        """The words that the index holds as a whole beside their tokens, by their first token: all of them, or those that
        are wanted by their folded form and their stem."""
        wholes = whole_words(self._unified, self._cuts, self._joined)
        if not wholes:
            return {}
        raw = [_encoded(word) for _, _, word in wholes]
        joined = b" ".join(raw)
        tokens = zip(_tokenizers().stems(joined), _tokenizers().words(joined), strict=True)
        wanted = [(at, word, stem) for (at, _, stem), word in tokens if is_wanted is None or is_wanted(word, stem)]
        ends = list(accumulate([len(word) + 1 for word in raw])) if wanted else []
        found: dict[int, list[Compound]] = {}
        for at, word, stem in wanted:
            start, end, _ = wholes[bisect_right(ends, at)]
            first, after = (bisect_left(self._tokens, (self._byte(place),)) for place in (start, end))
            found.setdefault(first, []).append(Compound(first, after, word, stem))
        return found

    def place(self, first: int, after: int) -> tuple[int, int]:
        """Where the tokens from ``first`` to before ``after`` stand: (start, end) in code points of ``text``."""
        start, end = self._tokens[first][0], self._tokens[after - 1][1]
        if self._is_plain:
            return start, end
        start, end = self._character(start), self._character(end)
        return (start, end) if self._moved is None else (self._moved.source(start)[0], self._moved.source(end - 1)[1])

    @cached_property
    def _is_plain(self) -> bool:
        return not self._cuts and self.text.isascii()

    @cached_property
    def _spaces(self) -> list[int]:
        """Where in the body the spaces stand that cut words."""
        spaces: list[int] = []
        for start, _, word in self._cuts:
            shift = start + len(spaces)
            spaces += [shift + at for at, character in enumerate(word) if character == " "]
        return spaces

    @cached_property
    def _cut_at(self) -> list[int]:
        """Before which characters of the unified text these spaces stand."""
        return [space - at for at, space in enumerate(self._spaces)]

    @cached_property
    def _inner_bytes(self) -> list[int]:
        """Where the bytes stand that do not begin a character."""
        return [] if len(self._raw) == len(self._body) else [m.start() for m in re.finditer(b"[\x80-\xbf]", self._raw)]

    def _character(self, byte: int) -> int:
        """The place in the unified text of a byte of the body."""
        place = byte - bisect_left(self._inner_bytes, byte)
        return place - bisect_left(self._spaces, place)

    def _byte(self, place: int) -> int:
        """The reverse of `_character`."""
        place += bisect_left(self._cut_at, place)
        return place if len(self._raw) == len(self._body) else len(_encoded(self._body[:place]))

    @cached_property
    def _moved(self) -> _Moved | None:
        """What of the unified text does not stand where its source stood."""
        text = self.text
        return None if text.isascii() or not changing_characters(foreign_characters(text)) else _Moved(text)


_FOREIGN = re.compile(r"[\x00-\x7f]?[^\x00-\x7f]+")


class _Moved:
    """The stretches of ``text`` of which the unified text holds something longer or shorter."""

    def __init__(self, text: str) -> None:
        self._begins: list[int] = []
        self._stretches: list[
            tuple[int, int, int]
        ] = []  # of each: its end in the unified text; start and end in `text`
        shift = 0
        for some in _FOREIGN.finditer(text):
            starts = [at for at in range(*some.span()) if at == some.start() or not _continues(text[at])]
            for start, end in pairwise([*starts, some.end()]):
                size = len(_unified(text[start:end]))
                if not size == 1 == end - start:
                    self._begins.append(start + shift)
                    self._stretches.append((start + shift + size, start, end))
                    shift += size - (end - start)

    def source(self, place: int) -> tuple[int, int]:
        """The (start, end) in the text of what a character of the unified text comes from."""
        at = bisect_right(self._begins, place) - 1
        if at < 0:
            return place, place + 1
        stop, start, end = self._stretches[at]
        return (start, end) if place < stop else (place - stop + end, place - stop + end + 1)


def _continues(character: str) -> bool:
    """Whether ``character`` may become one with the character before it."""
    return character >= "\u0300" and (
        unicodedata.category(character)[0] == "M" or "\u1160" <= character <= "\u11ff" or character in "\uff9e\uff9f"
    )


@lru_cache(8192)
def _unified(unit: str) -> str:
    return unify(unit)[0]


# What English puts behind a word and the stemmer takes away again.
_ENDINGS = (
    "s es ed eed ing ings e er ers y ies ied ying ly al ally als ality alities alism alize alized alizes alizing alization "
    "ance ances ence ences ancy ency ancies encies ant ants antly ent ents ently ment ments mental ement ements ic ics "
    "ical ically icity icate icated icates icating ication ications ation ations ational ationally ate ates ated ating "
    "ator ators ative atively ion ions ional ionally able ables ably ability abilities ible ibly ibility ibilities iti ity "
    "ities ous ously ousness ive ives ively iveness ivity ize izes ized izing izer izers ization izations ise ism isms "
    "ful fully fulness ness nesses less logy logies"
)
_ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789"


def relatives(word: str, stem: str) -> tuple[str, ...]:
    """Other forms of a folded word that have another stem than its own: deploy and deployment, verify and verification,
    analyse, analyze and analysis."""
    if len(stem) < 4 or not stem.isascii():
        return ()
    if stem.endswith(("ai", "ei", "oi", "ui")) and word.startswith(stem[:-1] + "y"):
        ends = [stem[:-1] + "y" + ending for ending in ("ment", "er", "able")]
        return tuple([end for end, own in zip(ends, stems(ends), strict=True) if own == stem[:-1] + "y"][:1])
    if stem.endswith("y"):
        return (stem,)
    if stem.endswith("ifi"):
        return (stem[:-1] + "ication",)
    if stem.endswith("if") and word.startswith(stem + "ic"):
        return (stem + "y",)
    if stem.endswith(("lys", "lyz")):
        return (stem[:-1] + "sis", stem[:-1] + ("ze" if stem[-1] == "s" else "se"))
    if stem.endswith(("phas", "thes")) and word.startswith(stem + "i"):
        return (stem + "is",)
    if word.endswith(("sis", "ses")):
        other = word[:-2] + ("es" if word.endswith("sis") else "is")
        return (other, word[:-3] + "ze") if word.endswith("lysis") else (other,)
    return ()


def beginnings(start: str) -> tuple[list[tuple[str, bool]], bool]:
    """(word, whether as a prefix) whose stems, or beginnings of stems, cover every word that begins with ``start``.

    The table holds stems, and FTS5 stems a prefix too: ``migrati`` begins migration, whose stem is migrat. Second:
    whether they cover nothing else.
    """
    stable = _stable(start)
    exact = stable == [start] and start[-1] not in "eil"  # the letters which the stemmer puts in place of others
    found = [(word, True) for word in stable]
    seen = set()
    inflected = _inflected(start)
    for word, stem in zip(inflected, stems(inflected), strict=True):
        if stem not in seen and not any(stem.startswith(known) for known in stable):
            seen.add(stem)
            found.append((word, False))
    return found, exact and not seen


def _stable(start: str) -> list[str]:
    """Beginnings that the stemmer leaves alone and that cover ``start``."""
    shorter = [start[:size] for size in range(len(start), 0, -1)]
    for word, stem in zip(shorter, stems(shorter), strict=True):
        if stem == word:
            if word == start or len(word) > 3:
                return [word]
            break
    # A short one like "they" would become "the" and find nearly everything: go one or two letters on instead.
    longer = [start + letter for letter in _ALPHABET]
    stable = [word for word, stem in zip(longer, stems(longer), strict=True) if word == stem]
    further = [word + letter for word in longer if word not in stable for letter in _ALPHABET]
    return stable + [word for word, stem in zip(further, stems(further), strict=True) if word == stem]


def _inflected(start: str) -> list[str]:
    """Words that begin with ``start`` and end in what the stemmer takes away, perhaps with an end of ``start``."""
    words = {start: None}
    for ending in _ENDINGS.split():
        for size in range(len(ending)):
            if start.endswith(ending[:size]) and len(start) - size > 1:
                words[start[: len(start) - size] + ending] = None
    return list(words)
