"""`read_plink`: files, cohorts and filters to one X."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from .alleles import ambiguous_variants, match_variants, repeated_variants
from .cohort import Cohort, open_cohort
from .filters import check_part, filter_variants
from .matrix import Genotypes
from .people import flag_people, read_ids, read_words
from .table import Table

Array = np.ndarray[Any, Any]


def read_plink(
    prefix: Any,
    *,
    keep: Any = None,
    remove: Any = None,
    extract: Any = None,
    exclude: Any = None,
    mind: float | None = None,
    geno: float | None = None,
    maf: float | None = None,
    task: Any = None,
    task_geno: float | None = None,
    task_maf: float | None = None,
    like: Any = None,
) -> Genotypes:
    """PLINK 1 files (.bed, .bim, .fam) as X, at 2 bits a call.

    A feature counts the copies (0, 1, 2) of a variant's effect allele, the first one of the .bim file:

        x_ij = copies in person i;  missing: the mean over the called people of the task of i.

    Those means are taken over all people of a task in the data that a model is fitted to, whatever weights or folds
    leave of them; the model keeps them, and they stand for missing calls in `predict`, too.

    Parameters
    ----------
    prefix : str, list of str, or dict of name -> str
        Of the three files. ``@`` stands for the chromosome: ``"chr@"`` reads chr1, chr2, ..., whose people must be
        the same. A list or a dict: several cohorts, people one after the other. Their variants are matched by
        chromosome, position and alleles, either way round and on either strand, and are counted as the first cohort
        counts them; A/T and C/G variants, which do not tell their strand, are dropped.
    keep, remove : path or list, optional
        People to stay or to go: FID and IID in each line, or an IID alone.
    extract, exclude : path or list, optional
        Identifiers of variants to stay or to go.
    mind : float, optional
        People with a larger part of missing calls are dropped; then
    geno : float, optional
        variants with a larger part of missing calls, and
    maf : float, optional
        variants whose rarer allele is less frequent than this: over all people.
    task : array of labels, optional
        One for each row that is left by `keep` and `remove`. By default the cohort, where there are several.
    task_geno, task_maf : float, optional
        The same within every task.
    like : Genotypes or data frame of variants, optional
        The variants of other data, usually those that a model was fitted to: the same columns, counted the same way. A
        variant that the files do not have is missing for everybody. Nothing else is dropped.

    Returns
    -------
    Genotypes
        X for every batch estimator, with ``variants``, ``samples`` and ``dropped``. Nothing is read yet but counts.
        Variants without a call, or with one allele only, are left out and counted in ``dropped``.

    Raises
    ------
    ValueError
        For files that are no .bed files, sample-major, cut short, or that do not fit their .bim and .fam; for people
        that are there twice; where no person or no variant is left.

    Examples
    --------
    >>> import numpy as np
    >>> import tasksieve as ts
    >>> from tasksieve.datasets import write_toy_genotypes
    >>> prefix = write_toy_genotypes(getfixture("tmp_path"))
    >>> X = ts.read_plink(prefix, maf=0.01)
    >>> X
    Genotypes of 300 people, 1,000 variants
    """
    if like is not None:
        for name, given in {"extract": extract, "exclude": exclude, "geno": geno, "maf": maf}.items():
            if given is not None:
                raise ValueError(f"{name} and like cannot go together: like says which variants there are.")
    X = open_genotypes(prefix, keep=keep, remove=remove, extract=extract, exclude=exclude, like=like)
    if mind is not None:
        X, few = without_holes(X, mind)
        task = None if task is None else np.asarray(task)[few]
    if like is not None:
        return X
    if task is None and X.n_cohorts > 1:
        task = X.sample_table["cohort"].astype(str)
    return filter_variants(X, geno=geno, maf=maf, task=task, task_geno=task_geno, task_maf=task_maf)


def open_genotypes(
    prefix: Any, *, keep: Any = None, remove: Any = None, extract: Any = None, exclude: Any = None, like: Any = None
) -> Genotypes:
    """The people and variants that are named; nothing is counted yet. Arguments as in `read_plink`."""
    cohorts, tables = _open(prefix)
    dropped: dict[str, int] = {}
    if like is not None:
        cohorts, variants = _like(cohorts, tables, like)
    elif len(cohorts) > 1:
        cohorts, variants = _match(cohorts, tables, dropped)
    else:
        variants = tables[0]
    sizes = [cohort.n_rows for cohort in cohorts]
    X = Genotypes(
        cohorts, variants, np.repeat(np.arange(len(cohorts)), sizes), np.concatenate([np.arange(n) for n in sizes])
    )
    X = _with_people(X, keep, remove, dropped)
    X = _with_identifiers(X, extract, exclude, dropped)
    X.dropped = dropped
    return X


def without_holes(X: Genotypes, mind: float) -> tuple[Genotypes, Array]:
    """Without people who have a larger part of missing calls; and flags of those who stay."""
    few = X.holes_by_person() <= check_part(mind, "mind") * X.n_variants
    if not few.any():
        raise ValueError(f"mind={mind}: everybody has a larger part of missing calls.")
    left = X.with_people(np.flatnonzero(few))
    left.dropped["people with missing calls (mind)"] = int(np.count_nonzero(~few))
    return left, few


def _open(prefix: Any) -> tuple[list[Cohort], list[Table]]:
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
        raise ValueError("prefix is empty: give the prefix of a .bed, a .bim and a .fam file.")
    opened = [open_cohort(one, name) for name, one in named.items()]
    return [cohort for cohort, _ in opened], [variants for _, variants in opened]


def _match(cohorts: list[Cohort], variants: list[Table], dropped: dict[str, int]) -> tuple[list[Cohort], Table]:
    """Variants that all cohorts have, as the first counts them."""
    reference = variants[0]
    unsure, twice = ambiguous_variants(reference), repeated_variants(reference)
    chosen = np.flatnonzero(~unsure & ~twice)
    dropped["variants A/T or C/G (cohorts)"] = int(unsure.sum())
    dropped["variants there twice (cohorts)"] = int((twice & ~unsure).sum())
    found = [match_variants(reference.take(chosen), other) for other in variants[1:]]
    everywhere = np.ones(len(chosen), dtype=bool)
    for one in found:
        everywhere &= one.place >= 0
    dropped["variants with other alleles (cohorts)"] = sum(one.clashing for one in found)
    dropped["variants there twice (cohorts)"] += sum(one.repeated for one in found)
    dropped["variants not in every cohort"] = int(np.count_nonzero(~everywhere)) - sum(
        one.clashing + one.repeated for one in found
    )
    if not everywhere.any():
        raise ValueError("prefix: the cohorts have no variant in common (chromosome, position and alleles).")
    kept = [cohorts[0].with_variants(chosen[everywhere])]
    for cohort, one in zip(cohorts[1:], found, strict=True):
        kept.append(_turned(cohort, one.place[everywhere], one.flip[everywhere]))
    return kept, reference.take(chosen[everywhere])


def _turned(cohort: Cohort, place: Array, flip: Array) -> Cohort:
    """Variants of a cohort by their lines in all its .bim files together, -1: none; flipped where told."""
    chosen = cohort.with_variants(np.maximum(place, 0))
    absent = place < 0
    home, own = np.where(absent, -1, chosen.home), np.where(absent, -1, chosen.place)
    return Cohort(cohort.name, cohort.files, cohort.rows, home, own, (flip & ~absent).astype(np.uint8))


def _like(cohorts: list[Cohort], variants: list[Table], like: Any) -> tuple[list[Cohort], Table]:
    """The variants of other data."""
    if isinstance(like, Genotypes):
        wanted = like.variant_table
    else:
        names = ("chr", "pos", "id", "effect_allele", "other_allele")
        wanted = Table({name: np.asarray(like[name]) for name in names})
    found = [match_variants(wanted, own) for own in variants]
    if not any((one.place >= 0).any() for one in found):
        raise ValueError("like: the files have none of these variants (chromosome, position and alleles).")
    return [_turned(cohort, one.place, one.flip) for cohort, one in zip(cohorts, found, strict=True)], wanted


def _with_people(X: Genotypes, keep: Any, remove: Any, dropped: dict[str, int]) -> Genotypes:
    stay = np.ones(X.n_rows, dtype=bool)
    if keep is not None:
        stay = flag_people(X.sample_table, read_ids(keep, "keep"), "keep")
        dropped["people not in keep"] = int(np.count_nonzero(~stay))
    if remove is not None:
        gone = flag_people(X.sample_table, read_ids(remove, "remove"), "remove") & stay
        dropped["people in remove"] = int(np.count_nonzero(gone))
        stay &= ~gone
    if not stay.any():
        raise ValueError("keep and remove leave nobody.")
    return X if stay.all() else X.with_people(np.flatnonzero(stay))


def _with_identifiers(X: Genotypes, extract: Any, exclude: Any, dropped: dict[str, int]) -> Genotypes:
    names = X.variant_table["id"].tolist()
    stay = np.ones(len(names), dtype=bool)
    if extract is not None:
        wanted = set(read_words(extract, "extract"))
        stay = np.array([name in wanted for name in names], dtype=bool)
        dropped["variants not in extract"] = int(np.count_nonzero(~stay))
    if exclude is not None:
        unwanted = set(read_words(exclude, "exclude"))
        gone = np.array([name in unwanted for name in names], dtype=bool) & stay
        dropped["variants in exclude"] = int(np.count_nonzero(gone))
        stay &= ~gone
    if not stay.any():
        raise ValueError("extract and exclude leave no variant: they must hold identifiers of the .bim file.")
    return X if stay.all() else X.with_variants(np.flatnonzero(stay))
