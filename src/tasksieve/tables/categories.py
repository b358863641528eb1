"""Columns of words: which of their categories become an indicator, a feature of zeros and ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .table import NAMED_CELLS, TableError, few

NO_REFERENCE = "none"  # of --reference: every category has an indicator, those of two as well


@dataclass(frozen=True)
class Categories:
    """The categories of a column, fixed when a model is fitted, in the order of their indicators. All have one but the
    `reference`, if there is one: its rows are zero in those of the others."""

    words: tuple[str, ...]
    reference: str | None = None

    @classmethod
    def of(cls, counts: Mapping[str, int], reference: str | None = None) -> Categories:
        """The coding of a column, given in how many rows each category is.

        Two indicators of two categories would say the same twice, and a penalty would share the effect among them: the
        rarer has one, and the other is the reference (of two that are as frequent, the first in alphabetical order).
        Of more categories all have one, unless a reference is named: penalised effects depend on the choice of a
        reference, and without one no category is special.
        """
        words = sorted(counts)
        if reference is None and len(words) == 2:
            reference = max(words, key=lambda word: counts[word])
        return cls(tuple(words), reference)

    @property
    def indicators(self) -> list[str]:
        """Categories that have a feature."""
        return [word for word in self.words if word != self.reference]

    def features(self, name: str) -> list[str]:
        """What the indicators are called."""
        return [f"{name}={word}" for word in self.indicators]

    def to_json(self) -> Any:
        """Words alone where each has an indicator, as versions before 0.3 wrote all columns."""
        return list(self.words) if self.reference is None else {"words": list(self.words), "reference": self.reference}

    @classmethod
    def from_json(cls, content: Any) -> Categories:
        words, reference = (content["words"], content["reference"]) if isinstance(content, dict) else (content, None)
        if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
            raise ValueError("categories of the encoding")
        if reference is not None and reference not in words:
            raise ValueError("the reference of the encoding is none of the categories")
        return cls(tuple(words), reference)


def named_references(given: Sequence[str], names: Sequence[str]) -> dict[str, str] | None:
    """Of ``COLUMN=CATEGORY``, for each column the category that is to be its reference; None of the word for none."""
    if list(given) == [NO_REFERENCE]:
        return None
    found: dict[str, str] = {}
    for one in given:
        own = [name for name in names if one.startswith(f"{name}=")]
        if not own:
            raise TableError(f"--reference: COLUMN=CATEGORY, of a feature column; got {one!r}")
        name = max(own, key=len)  # the name of a column may have a sign of equality in it
        if name in found:
            raise TableError(f"--reference: column {name!r} can have one reference, and got two")
        found[name] = one[len(name) + 1 :]
    return found


def told_codings(codings: Mapping[str, Categories], named: Mapping[str, str] | None) -> list[str]:
    """How columns of words became features, in words."""
    two, every, chosen = [], [], []
    for name, coding in codings.items():
        if name in (named or {}):
            chosen.append(repr(f"{name}={coding.reference}"))
        elif coding.reference is not None:
            two.append(f"{f'{name}={coding.indicators[0]}'!r} (0: {coding.reference!r})")
        elif len(coding.words) > 1:
            every.append(f"{name} ({len(coding.words)})")
    notes = []
    if two:
        notes.append(f"columns of two categories become one indicator, of the rarer: {few(two, 2 * NAMED_CELLS)}")
    if every:
        notes.append(
            f"columns of {'categories' if named is None else 'more categories'} become one indicator for each, no "
            f"reference: {few(every, 2 * NAMED_CELLS)}. --reference COLUMN=CATEGORY leaves one out"
        )
    if chosen:
        notes.append(f"reference categories, which have no indicator: {few(chosen, 2 * NAMED_CELLS)}")
    return notes
