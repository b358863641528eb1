"""PLINK files written here, so that reading them is compared with something that no reader has touched."""

from __future__ import annotations

from pathlib import Path

import numpy as np

MAGIC = bytes([0x6C, 0x1B, 0x01])


def pack(counts):
    """Counts of the first allele (rows x variants, NaN: missing) as bytes, a variant in each row."""
    rows, variants = counts.shape
    codes = np.zeros((variants, 4 * ((rows + 3) // 4)), dtype=np.uint8)
    for value, code in ((2.0, 0), (1.0, 2), (0.0, 3)):
        codes[:, :rows][value == counts.T] = code
    codes[:, :rows][np.isnan(counts.T)] = 1
    parts = codes.reshape(variants, codes.shape[1] // 4, 4)
    return np.bitwise_or.reduce(parts << np.array([0, 2, 4, 6], dtype=np.uint8), axis=2)


def draw_counts(rng, rows, variants, missing=0.1):
    counts = rng.binomial(2, rng.uniform(0.1, 0.5, variants), (rows, variants)).astype(float)
    counts[rng.random(counts.shape) < missing] = np.nan
    return counts


def write_plink(prefix, counts, *, chromosome="1", start=1000, alleles=None, ids=None, people=None, header=MAGIC):
    """A .bed, .bim and .fam file; returns the prefix as text."""
    rows, variants = counts.shape
    alleles = [("A", "G")] * variants if alleles is None else alleles
    ids = [f"rs{chromosome}_{j}" for j in range(variants)] if ids is None else ids
    people = [(f"f{i}", f"i{i}") for i in range(rows)] if people is None else people
    Path(f"{prefix}.bed").write_bytes(header + pack(counts).tobytes())
    lines = [f"{chromosome}\t{ids[j]}\t0\t{start + 10 * j}\t{a}\t{b}" for j, (a, b) in enumerate(alleles)]
    Path(f"{prefix}.bim").write_text("".join(line + "\n" for line in lines))
    Path(f"{prefix}.fam").write_text("".join(f"{f} {i} 0 0 0 -9\n" for f, i in people))
    return str(prefix)


def filled(counts, task):
    """The counts with the mean of each task's called rows where a call is missing: what a model sees."""
    out = counts.copy()
    for label in np.unique(task):
        own = task == label
        for j in range(counts.shape[1]):
            column = counts[own, j]
            called = column[~np.isnan(column)]
            everywhere = counts[~np.isnan(counts[:, j]), j]
            mean = called.mean() if len(called) else everywhere.mean() if len(everywhere) else 0.0
            out[own, j] = np.where(np.isnan(column), mean, column)
    return out
