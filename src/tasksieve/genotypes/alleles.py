"""Chromosomes, alleles and strands: which variants of two files are the same, and which way round."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from .table import Table

Array = np.ndarray[Any, Any]

_NUMBERED = {"23": "X", "24": "Y", "25": "XY", "26": "MT", "M": "MT"}
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
    """Where each variant of a reference is in a file (-1: nowhere), whether that counts the other allele, and how many
    are there with other alleles (`clashing`), or more than once (`repeated`)."""

    index: Array
    flip: Array
    clashing: int = 0
    repeated: int = 0


def match_variants(reference: Table, other: Table) -> Matched:
    """Variants on the same chromosome and position with the same alleles, either way round, on either strand."""
    at: dict[tuple[str, int], list[int]] = {}
    for j, key in enumerate(_loci(other)):
        at.setdefault(key, []).append(j)
    wanted = _loci(reference)
    found = _alleles(other)
    matched = Matched(np.full(len(wanted), -1, dtype=np.int64), np.zeros(len(wanted), dtype=bool))
    flips: dict[Any, bool]
    for k, (key, (first, second)) in enumerate(zip(wanted, _alleles(reference), strict=True)):
        flips = {(first, second): False, (second, first): True}
        if not ambiguous(first, second):
            flips |= {tuple(map(other_strand, pair)): flip for pair, flip in flips.items()}
        fitting = [(j, flips[found[j]]) for j in at.get(key, ()) if found[j] in flips]
        if len(fitting) == 1:
            matched.index[k], matched.flip[k] = fitting[0]
        elif fitting:
            matched.repeated += 1
        elif key in at:
            matched.clashing += 1
    return matched


def repeated_variants(variants: Table) -> Array:
    """Flags of variants whose place and alleles, either way round, come more than once."""
    keys = [(place, *sorted(pair)) for place, pair in zip(_loci(variants), _alleles(variants), strict=True)]
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
