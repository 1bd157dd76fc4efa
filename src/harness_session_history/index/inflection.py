"""English word forms, where the stemmer alone does not say which stems a typed word or beginning stands for."""

from __future__ import annotations

from .tokens import Token, stems

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


def beginnings(start: str) -> tuple[list[tuple[str, str]], bool]:
    """(word, "" or " *") whose stems, or beginnings of stems, cover every word that begins with ``start``.

    The table holds stems, and FTS5 stems a prefix too: ``migrati`` begins migration, whose stem is migrat. Second:
    whether they cover nothing else.
    """
    stable = _stable(start)
    exact = stable == [start] and start[-1] not in "eil"  # the letters which the stemmer puts in place of others
    found = [(word, " *") for word in stable]
    seen = set()
    inflected = _inflected(start)
    for word, stem in zip(inflected, stems(inflected), strict=True):
        if stem not in seen and not any(stem.startswith(known) for known in stable):
            seen.add(stem)
            found.append((word, ""))
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
