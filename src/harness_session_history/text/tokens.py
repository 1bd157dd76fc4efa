"""A text as the index sees it: its tokens, with their places in the text, and the words that were cut for them.

English word forms, where the stemmer alone does not say which stems a typed word or beginning stands for."""

from __future__ import annotations

import threading
import unicodedata
from bisect import bisect_left
from collections.abc import Iterable
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple, cast

import apsw

from . import analysis
from .analysis import (
    JOINERS,
    SUBSTITUTES,
    changing_characters,
    cut_words,
    foreign_characters,
    in_word,
    joined_words,
    unify,
    unjoined,
)


class Token(NamedTuple):
    """One token of a text: ``start`` and ``end`` in code points of that text, ``word`` folded, ``stem`` stemmed."""

    start: int
    end: int
    word: str
    stem: str


class Compound(NamedTuple):
    """A word that the analysis cut: its tokens are ``first`` to before ``after``; ``word``, ``stem`` of the whole."""

    first: int
    after: int
    word: str
    stem: str


class Reading(NamedTuple):
    """A text as the index sees it."""

    tokens: list[Token]
    compounds: list[Compound]


class _Tokenizers(threading.local):
    """SQLite's tokenizers, one pair per thread as a connection belongs to one thread at a time."""

    def __init__(self) -> None:
        connection = apsw.Connection(":memory:")
        stemming, *folding = analysis.TOKENIZER.split()
        self.fold = connection.fts5_tokenizer(folding[0], folding[1:])
        self.stem = connection.fts5_tokenizer(stemming, folding)


_tokenizers: _Tokenizers | None = None


def _tokenize(raw: bytes) -> list[Token]:
    """The tokens of analysed text, with their places in bytes."""
    global _tokenizers
    if _tokenizers is None:
        _tokenizers = _Tokenizers()
    words = cast("list[tuple[int, int, str]]", _tokenizers.fold(raw, apsw.FTS5_TOKENIZE_DOCUMENT, None))
    return [Token(*word, stem) for word, stem in zip(words, _stem(_tokenizers, raw), strict=True)]


def _stem(tokenizers: _Tokenizers, raw: bytes) -> list[str]:
    found = tokenizers.stem(raw, apsw.FTS5_TOKENIZE_DOCUMENT, None, include_offsets=False, include_colocated=False)
    return cast("list[str]", found)


def stems(words: Iterable[str]) -> list[str]:
    """The stem of each of ``words`` (folded words of :func:`read`, one token each)."""
    return [stem for _, _, _, stem in _tokenize(" ".join(words).encode())]


def continues(character: str) -> bool:
    """Whether ``character`` may become one with the character before it."""
    return character >= "\u0300" and (
        unicodedata.category(character)[0] == "M" or "\u1160" <= character <= "\u11ff" or character in "\uff9e\uff9f"
    )


@lru_cache(8192)
def _unified(unit: str) -> str:
    return unify(unit)[0]


def _aligned(text: str) -> tuple[str, list[int] | None, bool]:
    """Unified ``text``, for each of its characters where its source begins (and, last, the end), joiners or not."""
    if text.isascii() or not changing_characters(foreign := foreign_characters(text)):
        unified, joined = unify(text)
        return unified, None, joined
    starts = [i for i, character in enumerate(text) if i == 0 or not continues(character)]
    starts.append(len(text))
    pieces, origin = [], []
    for start, end in pairwise(starts):
        piece = _unified(text[start:end])
        pieces.append(piece)
        origin.extend([start] * len(piece))
    origin.append(len(text))
    return "".join(pieces), origin, not foreign.isdisjoint(JOINERS)


def read(text: str) -> Reading:
    """The tokens of ``text`` as the index holds them, with their places in ``text``."""
    unified, origin, joined = _aligned(text)
    words = cut_words(unified)
    body, cuts = _cut(unified, words)
    placed = _placed(body)
    if origin is None and not words and not joined:
        return Reading(placed, [])
    tokens: list[Token] = []
    cut = 0
    for start, end, word, stem in placed:
        while cut < len(cuts) and cuts[cut] < start:
            cut += 1
        first, after = start - cut, end - cut
        if origin is not None:
            source = origin[after - 1]
            while origin[after] == source:  # one source character may have become several
                after += 1
            first, after = origin[first], origin[after]
        tokens.append(Token(first, after, word, stem))
    spans = [(start, end) for start, end, _ in words]
    if joined:
        spans += joined_words(unified)
    return Reading(tokens, _compounds(unified, origin, spans, tokens) if spans else [])


def _cut(unified: str, words: list[tuple[int, int, str]]) -> tuple[str, list[int]]:
    """``unified`` with its ``words`` cut, and where the spaces that do it stand."""
    if not words:
        return unified, []
    pieces: list[str] = []
    spaces: list[int] = []
    last = 0
    for start, end, cut in words:
        pieces += (unified[last:start], cut)
        shift = start + len(spaces)
        spaces += [shift + i for i, character in enumerate(cut) if character == " "]
        last = end
    return "".join(pieces) + unified[last:], spaces


def _placed(body: str) -> list[Token]:
    """The tokens of ``body`` with their places in code points."""
    raw = body.encode("utf-8", "replace")
    tokens = _tokenize(raw)
    if len(raw) == len(body):
        return tokens
    placed = []
    byte = place = 0
    for start, end, word, stem in tokens:
        place += len(raw[byte:start].decode())
        after = place + len(raw[start:end].decode())
        placed.append(Token(place, after, word, stem))
        byte, place = end, after
    return placed


def _start(token: Token) -> int:
    return token.start


def _compounds(
    unified: str, origin: list[int] | None, spans: list[tuple[int, int]], tokens: list[Token]
) -> list[Compound]:
    found = []
    for start, end in spans:
        whole = _tokenize(unjoined(unified[start:end]).encode("utf-8", "replace"))
        if len(whole) != 1:
            continue
        if origin is not None:
            start, end = origin[start], origin[end]
        first = bisect_left(tokens, start, key=_start)
        after = bisect_left(tokens, end, key=_start)
        found.append(Compound(first, after, whole[0].word, whole[0].stem))
    return found


class _Folds(dict[str, str]):
    """The folded form of single characters, for those whose form is one character; else the character itself."""

    def __missing__(self, character: str) -> str:
        tokens = read(character).tokens
        folded = tokens[0].word if len(tokens) == 1 and len(tokens[0].word) == 1 else character
        if len(self) < 20_000:
            self[character] = folded
        return folded


_FOLDS = _Folds()


def _keeps_place(character: str) -> bool:
    """Whether the folded text holds in the character's place what the analysis makes of it: itself or nothing of a word."""
    if _FOLDS[character] != _FOLDS[character].lower():
        return False  # a capital letter that is newer than SQLite's tables
    made = SUBSTITUTES[ord(character)]
    return made.strip() in (character, _FOLDS[character]) or (made == " " and not in_word(character))


def skeleton(text: str) -> tuple[str, frozenset[str]]:
    """``text`` folded character by character, each in its old place, and those of its characters with which that does not
    tell the words: where the analysis turns several characters into one or one into several (decomposed accents,
    ligatures), the word must be read."""
    if text.isascii():
        return text.lower(), _NOTHING
    foreign = foreign_characters(text)
    odd = frozenset(c for c in foreign if continues(c) or c in JOINERS or not _keeps_place(c))
    folding = {ord(c): _FOLDS[c] for c in foreign if _FOLDS[c] != c}
    if len(folding) > 16:
        return _lower(text.translate(folding)), odd
    for codepoint, folded in folding.items():
        text = text.replace(chr(codepoint), folded)
    return _lower(text), odd


_NOTHING: frozenset[str] = frozenset()


def _lower(text: str) -> str:
    lower = text.lower()
    return lower if len(lower) == len(text) else text


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


def relatives(token: Token) -> tuple[str, ...]:
    """Other forms of a word that have another stem: deploy and deployment, verify and verification, -sis and -ses."""
    word, stem = token.word, token.stem
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
    if word.endswith(("sis", "ses")):
        return (word[:-2] + ("es" if word.endswith("sis") else "is"),)
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
