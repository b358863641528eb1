"""Chromosomes, alleles and strands: which variants of two files are the same, and which way round."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from .table import Table

Array = np.ndarray[Any, Any]

_NUMBERED = {"23": "X", "24": "Y", "25": "XY", "26": "MT", "M": "MT"}
#: in the place of an identifier: there is none
NO_NAMES = frozenset({"", "."})
_OTHER_STRAND = str.maketrans("ACGT", "TGCA")


def canonical_chromosome(name: str) -> str:
    """``chr7`` is 7, 23 is X."""
    bare = name[3:] if name[:3].lower() == "chr" else name
    return _NUMBERED.get(bare.upper(), bare.upper() if len(bare) <= 2 else bare)


def other_strand(allele: str) -> str:
    return allele.translate(_OTHER_STRAND)[::-1]


def ambiguous(first: str, second: str) -> bool:
    """A/T and C/G read the same on both strands."""
    return other_strand(first) == second


@dataclass
class Matched:
    """Where each variant of a reference is in a file: arrays of one entry for each.

    - `index`: Its line in the file, -1: nowhere.
    - `swapped`: Whether the file counts the other allele.
    - `flipped`: Whether the alleles are those of the other strand.
    - `ambiguous`: Whether they are A/T or C/G, which read the same on both: taken to be on the same strand.
    - `by_id`: Whether it was found by its identifier, for want of a position.
    - `clashing`, `repeated`, `unusable`: Whether it is nowhere because it has other alleles there, is there more than
      once, or has calls that are of no use.
    """

    index: Array
    swapped: Array
    flipped: Array
    ambiguous: Array
    by_id: Array
    clashing: Array
    repeated: Array
    unusable: Array

    @classmethod
    def none_of(cls, count: int, ambiguous: Array) -> Matched:
        flags = (np.zeros(count, dtype=bool) for _ in range(6))
        swapped, flipped, *others = flags
        return cls(np.full(count, -1, dtype=np.int64), swapped, flipped, ambiguous, *others)

    @property
    def missing(self) -> Array:
        return self.index < 0

    def without(self, gone: Array, reason: str) -> None:
        """Some are not to be used: flags, and the name of the array that says so."""
        getattr(self, reason)[gone & ~self.missing] = True
        self.index[gone] = -1

    def flags(self) -> dict[str, Array]:
        """By what they are called in a count; those after "missing" say why."""
        here = ~self.missing
        kinds = {name: getattr(self, name) & here for name in ("swapped", "flipped", "ambiguous", "by_id")}
        reasons = {"other_alleles": self.clashing, "repeated": self.repeated, "unusable": self.unusable}
        return {"matched": here, **kinds, "missing": ~here, **reasons}

    def counts(self) -> dict[str, int]:
        """How many variants are matched, how, and how many are not."""
        return {name: int(np.count_nonzero(own)) for name, own in self.flags().items()}


def match_variants(reference: Table, other: Table) -> Matched:
    """Variants on the same chromosome and position with the same alleles, either way round, on either strand. Where one
    of the two has no position (0), the identifier stands for it."""
    wanted, names, pairs = _loci(reference), reference["id"].tolist(), _alleles(reference)
    loci, found, called = _loci(other), _alleles(other), other["id"].tolist()
    places, words = {key for key in wanted if key[1] > 0}, set(names) - NO_NAMES
    nowhere = any(pos <= 0 for _, pos in wanted)
    at: dict[tuple[str, int], list[int]] = {}
    by_name: dict[str, list[int]] = {}
    for j, (key, name) in enumerate(zip(loci, called, strict=True)):
        if key in places:
            at.setdefault(key, []).append(j)
        if (nowhere or key[1] <= 0) and name in words:
            by_name.setdefault(name, []).append(j)
    matched = Matched.none_of(len(wanted), ambiguous_variants(reference))
    flips: dict[Any, tuple[bool, bool]]
    for k, (key, name, (first, second)) in enumerate(zip(wanted, names, pairs, strict=True)):
        flips = {(first, second): (False, False), (second, first): (True, False)}
        if not matched.ambiguous[k]:
            flips |= {tuple(map(other_strand, pair)): (swap, True) for pair, (swap, _) in flips.items()}
        named = [j for j in by_name.get(name, ()) if key[1] <= 0 or loci[j][1] <= 0]
        there = [*at.get(key, ()), *named]
        fitting = [j for j in there if found[j] in flips]
        if len(fitting) == 1:
            matched.index[k], matched.by_id[k] = fitting[0], fitting[0] in named
            matched.swapped[k], matched.flipped[k] = flips[found[fitting[0]]]
        elif fitting:
            matched.repeated[k] = True
        elif there:
            matched.clashing[k] = True
    return matched


def repeated_variants(variants: Table) -> Array:
    """Flags of variants whose place and alleles, either way round, come more than once; without a position (0) the
    identifier is the place."""
    rows = zip(_loci(variants), variants["id"].tolist(), _alleles(variants), strict=True)
    keys = [(place if place[1] > 0 else name, *sorted(pair)) for place, name, pair in rows]
    seen = Counter(keys)
    return np.array([seen[key] > 1 for key in keys], dtype=bool)


def ambiguous_variants(variants: Table) -> Array:
    return np.array([ambiguous(first, second) for first, second in _alleles(variants)], dtype=bool)


def _alleles(variants: Table) -> list[tuple[str, str]]:
    return [(first.upper(), second.upper()) for first, second in variants.pairs("effect_allele", "other_allele")]


def _loci(variants: Table) -> list[tuple[str, int]]:
    chromosomes = variants["chr"].tolist()
    canonical = {name: canonical_chromosome(name) for name in set(chromosomes)}
    return [(canonical[name], pos) for name, pos in zip(chromosomes, variants["pos"].tolist(), strict=True)]
