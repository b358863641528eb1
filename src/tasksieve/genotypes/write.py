"""Files for PLINK: genotypes of people and variants chosen, and coefficients that plink2 --score takes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from .files import MAGIC
from .matrix import Genotypes, task_order

Array = np.ndarray[Any, Any]


def write_plink(X: Genotypes, prefix: Any, *, task: Any = None) -> str:
    """Write a .bed, a .bim and a .fam file.

    Rows that are in task order already are read where they lie, without a copy in memory: worth it where the same
    genotypes are fitted again and again, or where they fill most of the memory.

    Parameters
    ----------
    X : Genotypes
        Without covariates, which such files do not hold.
    prefix : path
    task : array of labels, one per person, optional
        Sort people by it; by default they stay in their order.

    Returns
    -------
    str
        The prefix, for `read_plink`. People of several cohorts must have different identifiers.
    """
    if X.n_covariates:
        raise ValueError("X has covariates, which PLINK files do not hold: write the genotypes without them.")
    order, _ = task_order(X.n_rows, task)
    people, variants = X.sample_table.take(order), X.variant_table
    names = people.pairs("fid", "iid")
    if len(set(names)) < len(names):
        raise ValueError("X: two people have the same FID and IID. Give cohorts different FIDs.")
    with open(f"{prefix}.bed", "wb") as file:
        file.write(MAGIC + b"\x01")
        for _, packed in X.packed_blocks(order):
            file.write(packed.tobytes())
    columns = [people[name].tolist() for name in ("fid", "iid", "father", "mother", "sex", "phenotype")]
    Path(f"{prefix}.fam").write_text("".join(" ".join(row) + "\n" for row in zip(*columns, strict=True)))
    columns = [variants[name].tolist() for name in ("chr", "id", "pos", "effect_allele", "other_allele")]
    rows = zip(*columns, strict=True)
    Path(f"{prefix}.bim").write_text("".join(f"{c}\t{name}\t0\t{pos}\t{a}\t{b}\n" for c, name, pos, a, b in rows))
    return str(prefix)


def score_lines(X: Genotypes, coef: Array, tasks: Array) -> Iterator[str]:
    """A header and a line for each variant with a coefficient: identifier, effect allele, and one score a task.

    plink2 --score FILE 1 2 header-read cols=+scoresums --score-col-nums 3-N adds up copies times coefficients;
    intercepts and covariates are not in it, and missing calls are means of the people scored.

    Parameters
    ----------
    X : Genotypes
        The data of the fit.
    coef : array of shape (T, d)
    tasks : array of shape (T,)
    """
    variants = X.variant_table
    own = coef[:, X.n_covariates :]
    yield "\t".join(["ID", "A1", *(str(task) for task in tasks)]) + "\n"
    for j in np.flatnonzero(own.any(axis=0)):
        numbers = [repr(float(value)) for value in own[:, j]]
        yield "\t".join([variants["id"][j], variants["effect_allele"][j], *numbers]) + "\n"
