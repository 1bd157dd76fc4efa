"""One analysis for what is indexed, what is asked and what is shown (contract: query language).

SQLite's own tokenizer (``porter`` over ``unicode61``) cuts the words, folds case and diacritics and stems; it works
in C. What it cannot do is done here before it: identifiers are cut where their case changes, every character of a
script written without spaces becomes a word of its own, and the several spellings of one character (ligatures, full
width, decomposed accents) become one. The search table has two columns for it: ``body`` holds the cut text, ``whole``
the words as they were before they were cut, so that ``maxretrycount`` finds maxRetryCount.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

TOKENIZER = "porter unicode61 remove_diacritics 2"
"""The tokenizer of the search table."""

_ASCII = bytes(range(128))
_LOWER, _UPPER = "a-zß-öø-ÿ", "A-ZÀ-ÖØ-Þ"
# A digit counts as small: sha256Sum is cut like maxRetry. What only looks like a cut is sorted out by _CASE_CHANGE.
_CLASSES = bytes(
    ord("A") if re.match(f"[{_UPPER}]", chr(i)) else ord("a") if re.match(f"[{_LOWER}0-9]", chr(i)) else ord(" ")
    for i in range(256)
)
# IDs and URLs stay whole: an acronym ends only before a capital with two small letters behind it.
_CASE_CHANGE = re.compile(
    f"(?<=[{_LOWER}])(?=[{_UPPER}])|(?<=[{_UPPER}])(?=[{_UPPER}][{_LOWER}]{{2}})|(?<=[0-9])(?=[{_UPPER}][{_LOWER}])"
)
# The same in classes, up to the end of the word and with too many finds: this form of expression is the fastest by far.
_PERHAPS = re.compile(rb"A(?:(?<=aA)|(?<=AA)(?=aa))[aA]*")
_PERHAPS_A_CHANGE, _PERHAPS_CHANGES = _PERHAPS.search, _PERHAPS.finditer
# A longer run of letters is encoded data, not a name; a shorter one is a unit (kB, pH).
_LONGEST_IDENTIFIER, _SHORTEST_IDENTIFIER = 128, 3

# Zero-width characters that may stand inside one word: it is found by its parts and as a whole.
JOINERS = frozenset("\u00ad\u200c\u200d\u2060\ufeff")
_EDGES = "".join(JOINERS)
_HALF_WIDTH_VOICED = re.compile("[\uff66-\uff9d][\uff9e\uff9f]")

# What the tokenizer leaves alone and readers take for one letter (with two marks, with a hamza, of another keyboard).
_LETTERS = {"ß": "ss", "ẞ": "SS", "ø": "o", "Ø": "O", "ł": "l", "Ł": "L", "đ": "d", "Đ": "D", "ħ": "h", "Ħ": "H",
            "ı": "i", "æ": "ae", "Æ": "AE", "œ": "oe", "Œ": "OE", "ё": "е", "Ё": "Е", "ѐ": "е", "Ѐ": "Е", "ѝ": "и",
            "Ѝ": "И", "ǡ": "a", "Ǡ": "A", "ǿ": "o", "Ǿ": "O", "ǽ": "ae", "Ǽ": "AE", "ǣ": "ae", "Ǣ": "AE", "ŀ": "l",
            "Ŀ": "L", "ǯ": "ʒ", "Ǯ": "Ʒ", "\u0640": "", "ٱ": "ا", "ى": "ي", "ی": "ي", "ک": "ك", "ة": "ه"}  # fmt: skip
# Scripts written without spaces between words (Hangul is here because its particles are glued to the words).
_UNSPACED = (
    (0x0E00, 0x0FFF), (0x1000, 0x109F), (0x1100, 0x11FF), (0x1780, 0x17FF), (0x1950, 0x19DF), (0x1A20, 0x1AAF),
    (0x1B00, 0x1B7F), (0x2E80, 0x2FDF), (0x3005, 0x3007), (0x3021, 0x303C), (0x3040, 0x30FF), (0x3100, 0x318F),
    (0x31A0, 0x31BF), (0x31F0, 0x31FF), (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xA000, 0xA4CF), (0xA960, 0xA97F),
    (0xA980, 0xA9FF), (0xAA60, 0xAADF), (0xAC00, 0xD7FF), (0xF900, 0xFAFF), (0xFF66, 0xFFDC), (0x16FE0, 0x18DFF),
    (0x1AFF0, 0x1B2FF), (0x20000, 0x3FFFF),
)  # fmt: skip
# Marks that only decorate a letter; in other scripts marks are vowels and must be kept.
_DECORATION = (
    (0x0300, 0x036F), (0x0591, 0x05C7), (0x0610, 0x061A), (0x064B, 0x065F), (0x0670, 0x0670), (0x06D6, 0x06ED),
    (0x08CA, 0x08FF), (0x1AB0, 0x1AFF), (0x1DC0, 0x1DFF), (0x20D0, 0x20FF), (0xFE20, 0xFE2F),
)  # fmt: skip
_MARKS, _PRIVATE = (0x0700, 0x1FFF), 0xE000
_PICTURES = (0x1F000, 0x1FBFF)  # emoji and other pictures; what is not assigned yet will be one
_KNOWN_SIGNS = (0x2701, 0x27BF)


def _within(codepoint: int, ranges: tuple[tuple[int, int], ...]) -> bool:
    return any(low <= codepoint <= high for low, high in ranges)


def is_unspaced(word: str) -> bool:
    """Whether a word of the analysed text is one character of a script without spaces between words."""
    if word < "\u0e00" or len(word) != 1:
        return False
    codepoint = ord(word)
    if _PRIVATE <= codepoint <= _PRIVATE + _MARKS[1] - _MARKS[0]:  # see _mark
        codepoint += _MARKS[0] - _PRIVATE
    return _within(codepoint, _UNSPACED)


def _mark(character: str) -> str:
    codepoint = ord(character)
    if _within(codepoint, _DECORATION):
        return ""
    if _MARKS[0] <= codepoint <= _MARKS[1]:
        # The tokenizer takes vowel signs for separators but private characters for letters (and the latter never
        # come out of a text, see _substitute), so a word of Devanagari or Thai keeps its vowels.
        return chr(_PRIVATE + codepoint - _MARKS[0])
    return character


def _letter(character: str) -> str:
    if "\u0370" <= character <= "\u03ff" or "\u0600" <= character <= "\u06ff" or "\u1f00" <= character <= "\u1fff":
        character = unicodedata.normalize("NFD", character)[0]  # the tokenizer folds accents of Latin letters only
    return _LETTERS.get(character, character)


def _is_newer_sign(codepoint: int, character: str, category: str) -> bool:
    """Whether a symbol or sign may be newer than SQLite's tokenizer, which would take it for a letter of the word beside.

    It knows Unicode 6.1; the oldest tables of Python are those of 3.2, so the signs most used of those between are named.
    """
    if category == "Cn":
        return _PICTURES[0] <= codepoint <= _PICTURES[1]
    return (
        unicodedata.ucd_3_2_0.category(character) == "Cn"
        and not _KNOWN_SIGNS[0] <= codepoint <= _KNOWN_SIGNS[1]
        and character not in JOINERS
    )


def _substitute(character: str) -> str:
    """What the analysis puts in the place of one character: for most the character itself."""
    codepoint = ord(character)
    if codepoint < 0x80:
        return " " if character == "\0" else character
    composed = unicodedata.normalize("NFC", character)
    if (
        composed != character
    ):  # one that is never composed: as in a text that is normalized for another character's sake
        return "".join([_substitute(c) for c in composed])
    category = unicodedata.category(character)
    if category in ("Co", "Cs"):  # private use (icons of terminal fonts) and halves of characters are no letters
        return " "
    if category[0] == "M":
        text = _mark(character)
    elif category[0] in "LN" or 0x2E80 <= codepoint <= 0x2FDF:
        compatible = unicodedata.normalize("NFKC", character)
        text = "".join(map(_letter, compatible if compatible.isalnum() else character))
    else:
        text = character
        if _is_newer_sign(codepoint, character, category):
            return " "
        if category != "Cn":  # what is not yet assigned in such a script may be a letter for SQLite
            return character
    return f" {text} " if _within(codepoint, _UNSPACED) else text


class _Substitutes(dict[int, str]):
    """:func:`_substitute` by code point, remembered for the characters seen first."""

    def __missing__(self, codepoint: int) -> str:
        text = _substitute(chr(codepoint))
        if len(self) < 20_000:
            self[codepoint] = text
        return text


SUBSTITUTES = _Substitutes()


def foreign_characters(text: str) -> set[str]:
    """The characters of ``text`` that are not ASCII."""
    raw = text.encode("utf-8", "surrogatepass")
    return set(raw.translate(None, _ASCII).decode("utf-8", "surrogatepass"))


_plain: set[str] = set()  # characters known to stay as they are, joiners apart


def changing_characters(characters: set[str]) -> list[str]:
    """Those of ``characters`` that the analysis replaces."""
    unknown = characters - _plain
    if not unknown:
        return []
    changing = [c for c in unknown if SUBSTITUTES[ord(c)] != c]
    if len(_plain) < 20_000:
        _plain.update(unknown.difference(changing, JOINERS))
    return changing


def unify(text: str) -> tuple[str, bool]:
    """``text`` with one spelling for each character, unspaced scripts cut, and whether a joiner may be in it."""
    if "\0" in text:
        text = text.replace("\0", " ")
    if text.isascii():
        return text, False
    foreign = foreign_characters(text)
    if foreign <= _plain:
        return text, False
    joined = not foreign.isdisjoint(JOINERS)
    changing = changing_characters(foreign)
    if not changing:
        return text, joined
    composed = unicodedata.normalize("NFC", text)
    if "\uff9e" in foreign or "\uff9f" in foreign:
        composed = _HALF_WIDTH_VOICED.sub(lambda pair: unicodedata.normalize("NFKC", pair[0]), composed)
    if composed is not text:
        changing = changing_characters(foreign_characters(composed))
    if len(changing) > 8:
        return composed.translate(SUBSTITUTES), joined
    for character in changing:  # a few replacements are several times faster than one translation
        composed = composed.replace(character, SUBSTITUTES[ord(character)])
    return composed, joined


def in_word(character: str) -> bool:
    return character.isalnum() or "\ue000" <= character <= "\uf8ff"


class _Cuts(dict[str, str]):
    """Words that seem to change case, each with spaces where it does, remembered for the words seen last."""

    def __missing__(self, word: str) -> str:
        if len(self) >= 8192:
            self.clear()
        is_name = _SHORTEST_IDENTIFIER <= len(word) <= _LONGEST_IDENTIFIER
        cut = self[word] = _CASE_CHANGE.sub(" ", word) if is_name else word
        return cut


_CUTS = _Cuts()


def cut_words(text: str) -> list[tuple[int, int, str]]:
    """The words of unified ``text`` that are cut at changes of case: (start, end, the word with spaces in it)."""
    classes = text.encode("latin-1", "replace").translate(_CLASSES)
    if _PERHAPS_A_CHANGE(classes) is None:
        return []
    words = []
    last, ascii_only = 0, text.isascii()
    for change in _PERHAPS_CHANGES(classes):
        start, end = classes.rfind(b" ", 0, change.start()) + 1, change.end()
        if not ascii_only:  # letters outside Latin-1 have no class
            while start and in_word(text[start - 1]):
                start -= 1
            while end < len(text) and in_word(text[end]):
                end += 1
        word = _CUTS[text[start:end]]
        if len(word) > end - start and start >= last:
            words.append((start, end, word))
            last = end
    return words


def joined_words(text: str) -> list[tuple[int, int]]:
    """The (start, end) of each word of unified ``text`` with a joiner between two of its letters."""
    found = set()
    for joiner in JOINERS:
        position = text.find(joiner)
        while position >= 0:
            start, end = position, position + 1
            while start and (in_word(text[start - 1]) or text[start - 1] in JOINERS):
                start -= 1
            while end < len(text) and (in_word(text[end]) or text[end] in JOINERS):
                end += 1
            word = text[start:end]
            first, after = start + len(word) - len(word.lstrip(_EDGES)), start + len(word.rstrip(_EDGES))
            if not JOINERS.isdisjoint(text[first:after]):
                found.add((first, after))
            position = text.find(joiner, end)
    return sorted(found)


def unjoined(word: str) -> str:
    return word if word.isascii() else "".join([c for c in word if c not in JOINERS])


def document(text: str, search_text: str = "") -> tuple[str, str]:
    """The two columns of the search table for one entry's cleaned ``text``: (body, whole).

    ``search_text``, where given, is the same text with a space in place of each removed escape sequence: ``body`` is
    made from it, and the words that were glued by the removal are in ``whole`` too. Neither column holds a NUL or
    half a surrogate pair. Text without anything to cut comes back as it is.
    """
    unified, joined = unify(search_text or text)
    words = cut_words(unified)
    if not words and not joined and not search_text:
        return unified, ""
    whole = [word for _, _, word in whole_words(unified, words, joined)]
    if search_text:
        known = set(search_text.split())
        whole.append(unify(" ".join([word for word in text.split() if word not in known]))[0])
    return cut(unified, words), " ".join(whole)


def cut(unified: str, words: list[tuple[int, int, str]]) -> str:
    """``unified`` text with its ``words`` (see :func:`cut_words`) cut."""
    if not words:
        return unified
    pieces: list[str] = []
    last = 0
    for start, end, word in words:
        pieces += (unified[last:start], word)
        last = end
    return "".join(pieces) + unified[last:]


def whole_words(unified: str, words: list[tuple[int, int, str]], joined: bool) -> list[tuple[int, int, str]]:
    """The words of the column ``whole`` in order: (start, end, the word), cut ones and, if ``joined``, joined ones."""
    whole = [(start, end, unified[start:end]) for start, end, _ in words]
    if joined:
        whole += [(start, end, unified[start:end]) for start, end in joined_words(unified)]
        whole = [(start, end, unjoined(word)) for start, end, word in whole]
    return whole


def documents(texts: Sequence[str], search_texts: Sequence[str]) -> tuple[list[str], list[str]]:
    """The columns ``body`` and ``whole`` for many entries, as :func:`document` gives them for one."""
    bodies, wholes = list(texts), [""] * len(texts)
    plain = []
    for at, text in enumerate(texts):
        if search_texts[at] or not text.isascii() or "\0" in text:
            bodies[at], wholes[at] = document(text, search_texts[at])
        else:
            plain.append(at)
    # Most texts are plain ASCII: those are looked through as one, with a character between them that is in none.
    joined = "\0".join([texts[at] for at in plain])
    words = cut_words(joined)
    if not words:
        return bodies, wholes
    ends = list(accumulate([len(texts[at]) + 1 for at in plain]))
    number, own = 0, list[str]()
    for start, end, _ in words:
        if start >= ends[number]:
            wholes[plain[number]] = " ".join(own)
            number, own = bisect_right(ends, start), []
        own.append(joined[start:end])
    wholes[plain[number]] = " ".join(own)
    for at, body in zip(plain, cut(joined, words).split("\0"), strict=True):
        bodies[at] = body
    return bodies, wholes
