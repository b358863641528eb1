"""Genotypes as .bed files: made, written, and passes over them beside int8."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from _common import timed

from tasksieve.design import DenseStorage, PlinkStorage
from tasksieve.design.storage import ProductRequest

CODES = np.array([3, 2, 0, 1], dtype=np.uint8)  # of 0, 1, 2 copies, and of a missing call (3)
BLOCK = 2_000  # variants made at a time


def packed(counts: np.ndarray) -> np.ndarray:
    """Bytes of a variants x people array of 0, 1, 2 and 3 (missing), a variant in each row."""
    variants, people = counts.shape
    codes = np.zeros((variants, 4 * ((people + 3) // 4)), dtype=np.uint8)
    codes[:, :people] = CODES[counts]
    quarters = codes.reshape(variants, -1, 4)
    return quarters[:, :, 0] | quarters[:, :, 1] << 2 | quarters[:, :, 2] << 4 | quarters[:, :, 3] << 6


def write_tables(prefix: Path, variants: int, people: int) -> None:
    with open(f"{prefix}.bim", "w") as file:
        for j in range(variants):
            file.write(f"{1 + 22 * j // variants}\trs{j}\t0\t{1000 + 10 * j}\tA\tG\n")
    Path(f"{prefix}.fam").write_text("".join(f"f{i} i{i} 0 0 0 -9\n" for i in range(people)))


def write_bed(prefix: Path, counts: np.ndarray, order: np.ndarray | None = None) -> None:
    """People x variants of int8 as files, people in some order."""
    with open(f"{prefix}.bed", "wb") as file:
        file.write(b"\x6c\x1b\x01")
        for low in range(0, counts.shape[1], BLOCK):
            part = counts[:, low : low + BLOCK].T
            file.write(packed(part if order is None else part[:, order]).tobytes())
    write_tables(prefix, counts.shape[1], counts.shape[0])


def simulate_bed(prefix: Path, variants: int, people: int, n_true: int, seed: int) -> np.ndarray:
    """Independent people, neighbours correlated, one call in a thousand missing; the copies of `n_true` variants.

    Frequencies have the density 1/f between 0.05 and 0.5. Runs of 20 variants share the uniform numbers that their
    haplotypes are made of, each variant with a fifth of them drawn anew.
    """
    rng = np.random.default_rng(seed)
    chosen = np.sort(rng.choice(variants, n_true, replace=False))
    causal = np.empty((n_true, people))
    found = 0
    with open(f"{prefix}.bed", "wb") as file:
        file.write(b"\x6c\x1b\x01")
        for low in range(0, variants, 20):
            width = min(20, variants - low)
            frequency = 0.05 * 10.0 ** rng.random(width)
            base = rng.integers(0, 256, (1, 2 * people), dtype=np.uint8)
            drawn = rng.integers(0, 256, (width, 2 * people), dtype=np.uint8)
            mixed = np.where(rng.integers(0, 5, (width, 2 * people), dtype=np.uint8) == 0, drawn, base)
            carried = mixed < (256 * frequency)[:, None]
            counts = carried[:, :people].astype(np.uint8) + carried[:, people:]
            own = chosen[(chosen >= low) & (chosen < low + width)] - low
            causal[found : found + len(own)] = counts[own]
            found += len(own)
            holes = rng.integers(0, counts.size, counts.size // 1000)
            counts.ravel()[holes] = 3
            file.write(packed(counts).tobytes())
    write_tables(prefix, variants, people)
    return causal


def passes(people: int, tasks: int, variants: int, missing: float, seed: int, threads: int) -> dict[str, Any]:
    """Seconds of a full pass, of four vectors at once, and of bringing rows into another order: int8 and 2 bits."""
    from tasksieve._kernels import kernels

    rng = np.random.default_rng(seed)
    counts = rng.binomial(2, 0.3, (variants, people)).astype(np.uint8)
    x = DenseStorage(np.asfortranarray(counts.T.astype(np.int8)))
    counts[rng.random(counts.shape) < missing] = 3
    offsets = people // tasks * np.arange(tasks + 1)
    offsets[-1] = people
    bytes_ = packed(counts)
    bed = PlinkStorage(bytes_, people, offsets)
    vectors = [rng.standard_normal(people) for _ in range(4)]
    one, four = [ProductRequest(vectors[0], offsets)], [ProductRequest(vector, offsets) for vector in vectors]
    order, every, out = rng.permutation(people), np.arange(variants), np.zeros_like(bytes_)
    sides = {
        "int8": lambda: x.read(one, threads),
        "bits": lambda: bed.read(one, threads),
        "int8_four": lambda: x.read(four, threads),
        "bits_four": lambda: bed.read(four, threads),
        "reorder": lambda: kernels.copy_genotypes(bytes_, people, every, None, every, order, 0, threads, out),
    }
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    for side in sides.values():
        side()
    for _ in range(7):  # one after the other, so that a busy moment meets all of them
        for name, side in sides.items():
            seconds[name].append(timed(side)[0])
    found: dict[str, Any] = {name: float(np.median(values)) for name, values in seconds.items()}
    size = {"people": people, "tasks": tasks, "missing": missing}
    return {**found, **size, "bytes": bed.nbytes, "int8_bytes": counts.size}
