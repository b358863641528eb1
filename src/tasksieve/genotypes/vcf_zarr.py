"""VCF-Zarr, the layout of sgkit and bio2zarr, through zarr."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ..optional import require
from .files import people_table, variant_table
from .held import BLOCK_CALLS, CallSource
from .table import Table

Array = np.ndarray[Any, Any]

NEEDED = ("call_genotype", "variant_contig", "variant_position", "variant_allele", "sample_id")
DOSAGES = "call_DS"
ABSENT = -2  # in the place of an allele: the call is of fewer copies


class VcfZarr(CallSource):
    """Calls of a store; variants with more than two alleles are left out and counted.

    - `prefix`: Path of the store.
    """

    suffix = ""
    words = "a VCF-Zarr store"
    unusable = "variants with calls that are not diploid"

    def __init__(self, prefix: str) -> None:
        self.prefix = str(prefix)
        if not Path(self.prefix).exists():
            raise ValueError(f"there is no store {self.prefix}: give the path of {self.words}.")
        store = self._open()
        absent = [name for name in NEEDED if name not in store]
        if absent:
            raise ValueError(
                f"{self.prefix} is no VCF-Zarr store: it has no array {', '.join(absent)}. Make one with bio2zarr "
                "(vcf2zarr convert)."
            )
        calls = store["call_genotype"]
        iid = _text(store["sample_id"])
        n_variants, n_people = int(store["variant_position"].shape[0]), len(iid)
        if calls.ndim != 3 or calls.shape[:2] != (n_variants, n_people):
            raise ValueError(
                f"{self.prefix}: call_genotype has shape {calls.shape}, but there are {n_variants:,} variants "
                f"(variant_position) and {n_people:,} people (sample_id)."
            )
        if calls.shape[2] != 2:
            raise ValueError(f"{self.prefix}: call_genotype has ploidy {calls.shape[2]}: only diploid calls are read.")
        if not n_variants or not n_people:
            raise ValueError(f"{self.prefix} is empty: it has {n_variants:,} variants and {n_people:,} people.")
        self.people = people_table(f"{self.prefix}, sample_id", 1, ["0"] * n_people, iid)
        self.two_alleles(*self._variants(store, n_variants))

    def _open(self) -> Any:
        zarr = require("zarr", "VCF-Zarr stores need", "'tasksieve[genotypes]'")
        try:
            return zarr.open_group(self.prefix, mode="r")
        except (FileNotFoundError, ValueError, KeyError, TypeError, OSError) as error:
            raise ValueError(f"{self.prefix} is no Zarr group: {error}") from None

    def _variants(self, store: Any, n_variants: int) -> tuple[Table, Array]:
        named = _text(store["contig_id"]) if "contig_id" in store else list(store.attrs.get("contigs", ()))
        if not named:
            raise ValueError(f"{self.prefix} has no array contig_id: the names of chromosomes are not known.")
        contig = np.asarray(store["variant_contig"][:], dtype=np.int64)
        alleles = np.asarray(store["variant_allele"][:], dtype=object)
        if len(contig) != n_variants or alleles.ndim != 2 or len(alleles) != n_variants:
            raise ValueError(f"{self.prefix}: variant_contig or variant_allele is not as long as variant_position.")
        if contig.min() < 0 or contig.max() >= len(named):
            raise ValueError(f"{self.prefix}: variant_contig names chromosome {contig.max()} of {len(named)}.")
        words = np.array([[_word(cell) for cell in row] for row in alleles.tolist()], dtype=object)
        there = words != ""
        ref = words[:, 0]
        alt = np.where(there[:, 1], words[:, 1], ".") if words.shape[1] > 1 else np.full(n_variants, ".", dtype=object)
        chromosome = np.array(named, dtype=object)[contig]
        pos = np.asarray(store["variant_position"][:], dtype=np.int64)
        given = _text(store["variant_id"]) if "variant_id" in store else ["."] * n_variants
        rows = zip(given, chromosome.tolist(), pos.tolist(), ref.tolist(), alt.tolist(), strict=True)
        ids = [one if one not in ("", ".") else f"{c}:{p}:{r}:{a}" for one, c, p, r, a in rows]
        return variant_table(chromosome, pos, ids, alt.astype(object), ref), np.count_nonzero(there, axis=1)

    def read(self, indices: Array) -> Iterator[tuple[Array, Array]]:
        calls, lines = self._open()["call_genotype"], self._lines[indices]
        chunk = int(calls.chunks[0])
        step = chunk * max(1, BLOCK_CALLS // (2 * self.n_people * chunk))
        for low in np.unique(lines // step) * step:
            own = np.flatnonzero((lines >= low) & (lines < low + step))
            block = np.asarray(calls[low : low + step])[lines[own] - low]
            if block.max() > 1 or block.min() < ABSENT:
                worst = own[int(np.argmax((block > 1).any(axis=(1, 2)) | (block < ABSENT).any(axis=(1, 2))))]
                raise ValueError(
                    f"{self.prefix}: call_genotype of variant {self.variants['id'][indices[worst]]} has alleles that "
                    "variant_allele does not list."
                )
            diploid = ~(block == ABSENT).any(axis=(1, 2))
            missing = (block < 0).any(axis=2)
            yield own[diploid], np.where(missing, -1, block.sum(axis=2))[diploid].astype(np.int8)


    def read_dosages(self, indices: Array) -> Iterator[tuple[Array, Array]]:
        store, lines = self._open(), self._lines[indices]
        if DOSAGES not in store:
            raise ValueError(f"{self.prefix} has no array {DOSAGES} (the field DS of a VCF): it has no dosages.")
        array = store[DOSAGES]
        if tuple(array.shape) not in ((shape := store["call_genotype"].shape[:2]), (*shape, 1)):
            raise ValueError(f"{self.prefix}: {DOSAGES} has shape {array.shape}, but call_genotype {shape}.")
        chunk = int(array.chunks[0])
        step = chunk * max(1, BLOCK_CALLS // (8 * self.n_people * chunk))
        for low in np.unique(lines // step) * step:
            own = np.flatnonzero((lines >= low) & (lines < low + step))
            block = np.asarray(array[low : low + step], dtype=np.float64)[lines[own] - low]
            yield own, block.reshape(len(own), self.n_people)


def _text(array: Any) -> list[str]:
    return [_word(cell) for cell in np.asarray(array[:], dtype=object).tolist()]


def _word(cell: Any) -> str:
    return cell.decode() if isinstance(cell, bytes) else str(cell)
