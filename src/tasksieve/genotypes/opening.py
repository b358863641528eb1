"""Files and cohorts to one X: the people and variants that are named."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..fitted.arguments import check_number
from ..messages import value_error
from .alleles import Matched, ambiguous_variants, match_variants, repeated_variants
from .bgen import BgenFile
from .cohort import Cohort, open_cohort
from .dosages import Dosages
from .files import BedFile
from .held import STEPS, CallSource
from .matrix import Genotypes
from .people import flag_people, read_ids, read_words
from .pgen import PgenFile
from .table import Table
from .vcf_zarr import VcfZarr

Array = np.ndarray[Any, Any]

KINDS: dict[str, Any] = {"bed": BedFile, "pgen": PgenFile, "vcf-zarr": VcfZarr, "bgen": BgenFile}


def open_genotypes(
    prefix: Any,
    *,
    kind: str = "bed",
    keep: Any = None,
    remove: Any = None,
    extract: Any = None,
    exclude: Any = None,
    like: Any = None,
    dosages: int | None = None,
) -> Genotypes:
    """The people and variants that are named; nothing is counted yet. Arguments as in `read_plink`; of other kinds than
    "bed" the calls, or dosages, in use are read to memory here."""
    bits = _bits(dosages, kind)
    cohorts = _open(prefix, KINDS[kind])
    dropped: dict[str, int] = {}
    sources = [file for cohort in cohorts for file in cohort.files if isinstance(file, CallSource)]
    for file in sources:
        for reason, count in file.dropped.items():
            dropped[reason] = dropped.get(reason, 0) + count
    matched: dict[str, Matched] = {}
    if like is not None:
        cohorts, variants, matched = _like(cohorts, like)
    elif len(cohorts) > 1:
        cohorts, variants = _match(cohorts, dropped)
    else:
        variants = cohorts[0].variants
    sizes = [cohort.n_rows for cohort in cohorts]
    X = (Genotypes if bits is None else Dosages)(
        cohorts, variants, np.repeat(np.arange(len(cohorts)), sizes), np.concatenate([np.arange(n) for n in sizes])
    )
    X = _with_people(X, keep, remove, dropped)
    X = _with_identifiers(X, extract, exclude, dropped)
    if sources:
        X, useless = X.held(bits)
        if sources[0].unusable:
            dropped[sources[0].unusable] = int(np.count_nonzero(useless))
        if like is None and useless.all():
            raise ValueError(f"no variant is left: all are {sources[0].unusable}.")
        if like is None and useless.any():
            X = X.with_variants(np.flatnonzero(~useless))
        for cohort, one in zip(X._cohorts, matched.values(), strict=False):
            one.without(cohort.home < 0, "unusable")
    X.dropped, X.matched = dropped, matched
    return X


def _bits(dosages: Any, kind: str) -> int | None:
    """8 or 16; None for hard calls. BGEN files hold nothing but dosages."""
    if dosages is None or dosages is False:
        return 16 if kind == "bgen" else None
    if kind == "bed":
        raise value_error("{dosages}: .bed files hold hard calls. Dosages are in .pgen and .bgen files and VCF-Zarr.")
    if dosages is True:
        return 16
    if not isinstance(dosages, int) or dosages not in STEPS:
        raise value_error("{dosages=} must be 8 or 16, the bits of a number, or None: hard calls.", dosages=dosages)
    return int(dosages)


def without_holes(X: Genotypes, mind: float) -> tuple[Genotypes, Array]:
    """Without people who have a larger part of missing calls; and flags of those who stay."""
    check_number(mind, "mind", low=0, closed=True, high=1)
    few = X.holes_by_person() <= mind * X.n_variants
    if not few.any():
        raise value_error("{mind=}: all people have a larger part of missing calls.", mind=mind)
    left = X.with_people(np.flatnonzero(few))
    left.dropped["people with missing calls (mind)"] = int(np.count_nonzero(~few))
    return left, few


def _open(prefix: Any, kind: Any) -> list[Cohort]:
    if isinstance(prefix, str | Path):
        named = {Path(str(prefix)).name: str(prefix)}
    elif isinstance(prefix, Mapping):
        named = {str(name): str(one) for name, one in prefix.items()}
    else:
        given = [str(one) for one in prefix]
        short = [Path(one).name for one in given]
        names = short if len(set(short)) == len(short) else given
        named = dict(zip(names, given, strict=True))
        if len(named) < len(given):
            raise ValueError("prefix: the same files are there twice.")
    if not named:
        raise ValueError(f"prefix is empty: give the prefix of {kind.words}.")
    return [open_cohort(one, name, kind) for name, one in named.items()]


def _match(cohorts: list[Cohort], dropped: dict[str, int]) -> tuple[list[Cohort], Table]:
    """Variants that all cohorts have, as the first counts them."""
    reference = cohorts[0].variants
    unsure, twice = ambiguous_variants(reference), repeated_variants(reference)
    chosen = np.flatnonzero(~unsure & ~twice)
    dropped["variants A/T or C/G (cohorts)"] = int(unsure.sum())
    dropped["variants there twice (cohorts)"] = int((twice & ~unsure).sum())
    found = [match_variants(reference.take(chosen), other.variants) for other in cohorts[1:]]
    everywhere = np.all([one.index >= 0 for one in found], axis=0)
    clashing, repeated = (np.any([getattr(one, name) for one in found], axis=0) for name in ("clashing", "repeated"))
    dropped["variants with other alleles (cohorts)"] = int(clashing.sum())
    dropped["variants there twice (cohorts)"] += int((repeated & ~clashing).sum())
    dropped["variants not in every cohort"] = int((~everywhere & ~clashing & ~repeated).sum())
    if not everywhere.any():
        raise ValueError("prefix: the cohorts have no variant in common (chromosome, position and alleles).")
    kept = [cohorts[0].with_variants(chosen[everywhere])]
    for cohort, one in zip(cohorts[1:], found, strict=True):
        kept.append(_turned(cohort, one.index[everywhere], one.swapped[everywhere]))
    return kept, reference.take(chosen[everywhere])


def _turned(cohort: Cohort, index: Array, flip: Array) -> Cohort:
    """Variants of a cohort by their lines in all its .bim files together, -1: none; flipped where flagged."""
    chosen = cohort.with_variants(np.maximum(index, 0))
    absent = index < 0
    home, own = np.where(absent, -1, chosen.home), np.where(absent, -1, chosen.index)
    return Cohort(cohort.name, cohort.files, cohort.rows, home, own, (flip & ~absent).astype(np.uint8))


def _like(cohorts: list[Cohort], like: Any) -> tuple[list[Cohort], Table, dict[str, Matched]]:
    if isinstance(like, Genotypes):
        wanted = like.variant_table
    else:
        names = ("chr", "pos", "id", "effect_allele", "other_allele")
        wanted = Table({name: np.asarray(like[name]) for name in names})
    found = {cohort.name: match_variants(wanted, cohort.variants) for cohort in cohorts}
    if len(wanted) and all(one.missing.all() for one in found.values()):
        raise ValueError("like: the files have none of these variants (chromosome, position and alleles).")
    turned = [_turned(cohort, one.index, one.swapped) for cohort, one in zip(cohorts, found.values(), strict=True)]
    return turned, wanted, found


def _stay(
    count: int, noun: str, lists: dict[str, Any], flag: Callable[[Any, str], Array], dropped: dict[str, int]
) -> Array:
    """Flags of what is in the first of two lists, or all, without what is in the second."""
    (first, inside), (second, outside) = lists.items()
    stay = np.ones(count, dtype=bool)
    if inside is not None:
        stay = flag(inside, first)
        dropped[f"{noun} not in {first}"] = int(np.count_nonzero(~stay))
    if outside is not None:
        gone = flag(outside, second) & stay
        dropped[f"{noun} in {second}"] = int(np.count_nonzero(gone))
        stay &= ~gone
    return stay


def _with_people(X: Genotypes, keep: Any, remove: Any, dropped: dict[str, int]) -> Genotypes:
    def flag(people: Any, name: str) -> Array:
        return flag_people(X.sample_table, read_ids(people, name), name)

    stay = _stay(X.n_rows, "people", {"keep": keep, "remove": remove}, flag, dropped)
    if not stay.any():
        raise ValueError("keep and remove leave no people.")
    return X if stay.all() else X.with_people(np.flatnonzero(stay))


def _with_identifiers(X: Genotypes, extract: Any, exclude: Any, dropped: dict[str, int]) -> Genotypes:
    names = X.variant_table["id"].tolist()

    def flag(identifiers: Any, name: str) -> Array:
        wanted = set(read_words(identifiers, name))
        return np.array([own in wanted for own in names], dtype=bool)

    stay = _stay(len(names), "variants", {"extract": extract, "exclude": exclude}, flag, dropped)
    if len(stay) and not stay.any():
        raise ValueError("extract and exclude leave no variant: they must hold identifiers of the files.")
    return X if stay.all() else X.with_variants(np.flatnonzero(stay))
