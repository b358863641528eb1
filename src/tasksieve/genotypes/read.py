"""`read_plink`, `read_pgen`, `read_vcf_zarr`: genotype files to one X, by names and filters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypedDict, Unpack

import numpy as np

from ..docstrings import described_by, takes_options_of
from .filters import filter_variants
from .matrix import Genotypes
from .opening import open_genotypes, without_holes

#: what the readers share
SHARED = """
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
dosages : {8, 16, True}, optional
    Expected copies in place of hard calls (.pgen, VCF-Zarr with DS, BGEN), rounded to whole steps of 8 bits (1/64 of a
    copy) or 16 (1/16384, as .pgen files have them; also True). All answers and certificates are of the rounded numbers.
like : Genotypes or data frame of variants, optional
    The variants of other data, usually those that a model was fitted to: the same columns, counted the same way. A
    variant that the files do not have is missing for all people. Nothing else is dropped.
"""


class GenotypeOptions(TypedDict, total=False):
    """Which people and variants, and by which tasks variants are judged."""

    keep: Any
    remove: Any
    extract: Any
    exclude: Any
    mind: float | None
    geno: float | None
    maf: float | None
    task: Any
    task_geno: float | None
    task_maf: float | None
    dosages: int | None
    like: Any


@dataclass(kw_only=True)
class Selection:
    """The same with their defaults."""

    keep: Any = None
    remove: Any = None
    extract: Any = None
    exclude: Any = None
    mind: float | None = None
    geno: float | None = None
    maf: float | None = None
    task: Any = None
    task_geno: float | None = None
    task_maf: float | None = None
    dosages: int | None = None
    like: Any = None

    def read(self, prefix: Any, kind: str) -> Genotypes:
        """People and variants by name, then `mind`, then the filters of variants."""
        if self.like is not None:
            for name in ("extract", "exclude", "geno", "maf"):
                if getattr(self, name) is not None:
                    raise ValueError(f"{name} and like cannot go together: like says which variants there are.")
        names = {name: getattr(self, name) for name in ("keep", "remove", "extract", "exclude", "like", "dosages")}
        X, task = open_genotypes(prefix, kind=kind, **names), self.task
        if self.mind is not None:
            X, few = without_holes(X, self.mind)
            task = None if task is None else np.asarray(task)[few]
        if self.like is not None:
            return X
        if task is None and X.n_cohorts > 1:
            task = X.sample_table["cohort"].astype(str)
        rare = {name: getattr(self, name) for name in ("geno", "maf", "task_geno", "task_maf")}
        return filter_variants(X, task=task, **rare)


@described_by(SHARED)
@takes_options_of(Selection)
def read_plink(prefix: Any, **options: Unpack[GenotypeOptions]) -> Genotypes:
    """PLINK 1 files (.bed, .bim, .fam) as X, at 2 bits a call.

    A feature counts the copies (0, 1, 2) of a variant's effect allele, the first one of the .bim file:

        x_ij = copies in person i;  missing: the mean over the called people of the task of i.

    Those means are taken over all people of a task in the data that a model is fitted to, regardless of
    weights and folds; the model keeps them, and they stand for missing calls in `predict`, too.

    Parameters
    ----------
    prefix : str, list of str, or dict of name -> str
        Of the three files. ``@`` stands for the chromosome: ``"chr@"`` reads chr1, chr2, ..., whose people must be
        the same. A list or a dict: several cohorts, people one after the other. Their variants are matched by
        chromosome, position and alleles, either way round and on either strand, and are counted as the first cohort
        counts them; A/T and C/G variants, whose strand is ambiguous, are dropped.

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
    return Selection(**options).read(prefix, "bed")


@described_by(SHARED)
@takes_options_of(Selection)
def read_pgen(prefix: Any, **options: Unpack[GenotypeOptions]) -> Genotypes:
    """PLINK 2 files (.pgen, .pvar, .psam) as X, at 2 bits a call.

    A feature counts the copies (0, 1, 2) of the ALT allele of the .pvar file, as pgenlib does:

        x_ij = copies in person i;  missing: the mean over the called people of the task of i.

    Hard calls, or with `dosages` the expected copies; phase is not read. The calls in use (after `keep`, `remove`,
    `extract`, `exclude`, `like`) are read once and kept in memory at 2 bits each; what comes then is as with
    `read_plink`.

    Parameters
    ----------
    prefix : str, list of str, or dict of name -> str
        Of the three files; ``@`` stands for the chromosome; a list or a dict: several cohorts, as in `read_plink`.

    Returns
    -------
    Genotypes
        Variants with more than two alleles are left out and counted in ``dropped``. Without FIDs in the .psam file the
        FID of all people is 0, as in plink2.

    Raises
    ------
    ImportError
        Without pgenlib: ``pip install 'tasksieve[genotypes]'``.
    ValueError
        For files that are cut short or do not belong together, for a compressed .pvar.zst, and as in `read_plink`.

    Examples
    --------
    >>> import tasksieve as ts
    >>> X = ts.read_pgen("chr@", maf=0.01)  # doctest: +SKIP
    """
    return Selection(**options).read(prefix, "pgen")


@described_by(SHARED)
@takes_options_of(Selection)
def read_vcf_zarr(path: Any, **options: Unpack[GenotypeOptions]) -> Genotypes:
    """A VCF-Zarr store (the layout of sgkit and bio2zarr) as X, at 2 bits a call.

    A feature counts the copies (0, 1, 2) of the ALT allele, the second one of ``variant_allele``:

        x_ij = copies in person i;  missing: the mean over the called people of the task of i.

    A call of which one allele is missing is missing. The calls in use (after `keep`, `remove`, `extract`,
    `exclude`, `like`) are read once, block by block, and kept in memory at 2 bits each; what comes then is as with
    `read_plink`.

    Parameters
    ----------
    path : str, list of str, or dict of name -> str
        Of the store; ``@`` in its name stands for the chromosome; a list or a dict: several cohorts, as in
        `read_plink`.

    Returns
    -------
    Genotypes
        Variants with more than two alleles, or with calls of fewer than two copies (chromosome X of men), are left out
        and counted in ``dropped``; with `like` the latter are missing. All FIDs are 0. A variant without an
        identifier is called chr:pos:ref:alt.

    Raises
    ------
    ImportError
        Without zarr: ``pip install 'tasksieve[genotypes]'``.
    ValueError
        For stores that lack an array of the layout, or of another ploidy than 2, and as in `read_plink`.

    Examples
    --------
    >>> import tasksieve as ts
    >>> X = ts.read_vcf_zarr("cohort.vcz", maf=0.01)  # doctest: +SKIP
    """
    return Selection(**options).read(path, "vcf-zarr")


@described_by(SHARED)
@takes_options_of(Selection)
def read_bgen(prefix: Any, **options: Unpack[GenotypeOptions]) -> Genotypes:
    """BGEN files (layout 2, 8 or 16 bits, zlib or none) as X, in whole steps of 16 bits or 8 a dosage.

    A feature is the expected number of copies of the second allele, from the probabilities of each person:

        x_ij = 2 - 2 P(first, first) - P(first, second), rounded to steps;  missing: the mean of the task, rounded.

    The dosages in use (after `keep`, `remove`, `extract`, `exclude`, `like`) are read once and kept in memory.

    Parameters
    ----------
    prefix : str, list of str, or dict of name -> str
        Of the file, with or without .bgen; ``@`` stands for the chromosome; a list or a dict: several cohorts, as in
        `read_plink`.

    Returns
    -------
    Genotypes
        Variants with more than two alleles are left out and counted in ``dropped``. People are those of the .sample
        file beside it, else those that the file names (FID 0).

    Raises
    ------
    ValueError
        For other layouts, compression by zstd, phased or haploid probabilities and those of other bits, with the
        command of plink2 that makes a .pgen of them; for files that are cut short; and as in `read_plink`.

    Examples
    --------
    >>> import tasksieve as ts
    >>> X = ts.read_bgen("ukb_chr@.bgen", maf=0.01, dosages=8)  # doctest: +SKIP
    """
    return Selection(**options).read(prefix, "bgen")
