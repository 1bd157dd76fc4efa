"""What the index is asked, as a tree: ``Phrase``, ``AnyOf``, ``AllOf``. ``str`` gives FTS5's form of it.

A query has three forms: the text that was typed (`query.parse`), its terms with one tree each (`query.Query`), and the
string that FTS5 reads. Nothing reads that string again: whoever asks for phrases, prefixes or conditions asks the tree.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property


class Expression(ABC):
    """A condition on rows of the search table. Equal expressions are equal objects and have one hash."""

    @property
    @abstractmethod
    def phrases(self) -> tuple[Phrase, ...]:
        """Its phrases, in the order in which FTS5 numbers them."""

    @property
    def has_prefix(self) -> bool:
        """Whether one of its phrases is a prefix: FTS5 then merges many lists before it gives the first row."""
        return any(phrase.prefix for phrase in self.phrases)

    @property
    def required(self) -> tuple[Expression, ...]:
        """Expressions all of which hold wherever this one does."""
        return (self,)

    @property
    def conjoins(self) -> bool:
        """Whether several conditions are required together, here or somewhere below."""
        return False

    @abstractmethod
    def replaced(self, replace: Callable[[Phrase], Expression]) -> Expression:
        """The same with ``replace(phrase)`` in place of each of its phrases."""


@dataclass(frozen=True)
class Phrase(Expression):
    """Folded words (no quotes in them) one behind the other. ``prefix``: the last is the beginning of one. ``column``:
    the only one that is searched; "" for any. ``instead``: what FTS5 is asked where it would stem the beginning to one of
    too many words: longer ones, which cover nearly all words that begin so."""

    words: tuple[str, ...]
    prefix: bool = False
    column: str = ""
    instead: tuple[Phrase, ...] = ()

    def __str__(self) -> str:
        if self.instead:
            return str(AnyOf(self.instead))
        return f'{self.column and f"{self.column} : "}"{" ".join(self.words)}"{" *" if self.prefix else ""}'

    @property
    def phrases(self) -> tuple[Phrase, ...]:
        return self.instead or (self,)

    @property
    def has_prefix(self) -> bool:
        return self.prefix

    def replaced(self, replace: Callable[[Phrase], Expression]) -> Expression:
        return replace(self)


@dataclass(frozen=True)
class _Several(Expression):
    parts: tuple[Expression, ...]

    @cached_property
    def phrases(self) -> tuple[Phrase, ...]:
        return tuple([phrase for part in self.parts for phrase in part.phrases])

    @cached_property
    def _texts(self) -> list[str]:
        return [str(part) for part in self.parts]

    def _joined(self, operator: str) -> str:
        return f"({operator.join(self._texts)})"

    @property
    def conjoins(self) -> bool:
        return any(part.conjoins for part in self.parts)

    def replaced(self, replace: Callable[[Phrase], Expression]) -> Expression:
        return type(self)(tuple([part.replaced(replace) for part in self.parts]))


class AnyOf(_Several):
    """At least one of its parts."""

    def __str__(self) -> str:
        return self._joined(" OR ")


class AllOf(_Several):
    """Every one of its parts."""

    def __str__(self) -> str:
        return self._joined(" AND ")

    @property
    def required(self) -> tuple[Expression, ...]:
        return tuple([one for part in self.parts for one in part.required])

    @property
    def conjoins(self) -> bool:
        return True


def any_of(parts: Iterable[Expression]) -> Expression:
    """At least one of ``parts``, each taken once; a single part is itself."""
    distinct = tuple(dict.fromkeys(parts))
    return distinct[0] if len(distinct) == 1 else AnyOf(distinct)


def all_of(parts: Iterable[Expression]) -> Expression:
    """Every one of ``parts``, each taken once; a single part is itself."""
    distinct = tuple(dict.fromkeys(parts))
    return distinct[0] if len(distinct) == 1 else AllOf(distinct)
