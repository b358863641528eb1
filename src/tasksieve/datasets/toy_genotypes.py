"""Toy genotypes as the files that geneticists have: PLINK's .bed, .bim and .fam, a phenotype and a covariate file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from .synthetic import make_genotypes

_ALLELES = (("A", "G"), ("C", "T"), ("G", "A"), ("T", "C"), ("A", "C"), ("G", "T"))


def write_toy_genotypes(folder: Any, *, n_tasks: int = 3, n_rows: int = 100, n_variants: int = 1000) -> str:
    """Write ``toy.bed``, ``toy.bim``, ``toy.fam``, ``toy.pheno`` and ``toy.covar``; the same ones every time.

    People of several cohorts in no order, 22 chromosomes, one call in fifty missing, five causal variants
    (``toy.causal`` has their identifiers). The trait also depends on age, sex and cohort.

    Parameters
    ----------
    folder : path
    n_tasks, n_rows, n_variants : int
        Cohorts, people of each, variants.

    Returns
    -------
    str
        The prefix, for `tasksieve.read_plink`.
    """
    folder = Path(folder)
    data = make_genotypes(n_tasks, n_rows, n_variants, n_true=5, heritability=0.7, random_state=20)
    rng = np.random.default_rng(21)
    n_people = n_tasks * n_rows
    order = rng.permutation(n_people)
    counts, trait, cohort = data.X[order], np.asarray(data.y)[order], np.asarray(data.task)[order]
    codes = np.zeros((n_variants, 4 * ((n_people + 3) // 4)), dtype=np.uint8)
    codes[:, :n_people] = np.array([3, 2, 0], dtype=np.uint8)[counts.T]
    codes[:, :n_people][rng.random((n_variants, n_people)) < 0.02] = 1
    quarters = codes.reshape(n_variants, -1, 4) << np.array([0, 2, 4, 6], dtype=np.uint8)
    (folder / "toy.bed").write_bytes(b"\x6c\x1b\x01" + np.bitwise_or.reduce(quarters, axis=2).tobytes())
    chromosome = 1 + 22 * np.arange(n_variants) // n_variants
    position = 100_000 + 250_000 * (np.arange(n_variants) - np.searchsorted(chromosome, chromosome))
    alleles = [_ALLELES[k] for k in rng.integers(len(_ALLELES), size=n_variants)]
    variants = enumerate(zip(chromosome, position, alleles, strict=True))
    _write(folder / "toy.bim", [f"{c}\trs{j + 1}\t0\t{p}\t{a}\t{b}" for j, (c, p, (a, b)) in variants])
    people = [f"F{i:03d}\tI{i:03d}" for i in range(n_people)]
    age, sex = rng.integers(30, 80, n_people), rng.integers(1, 3, n_people)
    trait = trait + 0.03 * age + 0.5 * sex + 0.2 * cohort
    _write(folder / "toy.fam", [f"{who}\t0\t0\t{s}\t-9" for who, s in zip(people, sex, strict=True)])
    names = ("north", "east", "south", "west")
    label = [names[c] if c < len(names) else f"cohort{c}" for c in cohort]
    rows = zip(people, label, trait, strict=True)
    _write(folder / "toy.pheno", ["FID\tIID\tcohort\ttrait", *(f"{who}\t{c}\t{y:.4f}" for who, c, y in rows)])
    rows = zip(people, age, sex, strict=True)
    _write(folder / "toy.covar", ["FID\tIID\tage\tsex", *(f"{who}\t{a}\t{s}" for who, a, s in rows)])
    _write(folder / "toy.causal", [f"rs{j + 1}" for j in data.support])
    return str(folder / "toy")


def _write(path: Path, lines: list[str]) -> None:
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
