"""A cohort of genotypes as files of each kind that is read, and the same cohort as others would write it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from plink_files import MAGIC, pack

OTHER_STRAND = str.maketrans("ACGT", "TGCA")


def write_cohort(kind, path, counts, variants, people):
    """Counts of the first allele (people x variants, NaN: missing); variants have chr, pos, id, effect_allele,
    other_allele, people fid and iid. Returns the option and its word."""
    copies = np.nan_to_num(counts, nan=-9).astype(np.int8).T
    if kind == "bed":
        Path(f"{path}.bed").write_bytes(MAGIC + pack(counts).tobytes())
        frame = variants.assign(cm=0)[["chr", "id", "cm", "pos", "effect_allele", "other_allele"]]
        frame.to_csv(f"{path}.bim", sep="\t", index=False, header=False)
        rest = people[["fid", "iid"]].assign(a=0, b=0, c=0, d=-9)
        rest.to_csv(f"{path}.fam", sep="\t", index=False, header=False)
        return ["--bfile", path]
    if kind == "pgen":
        pgenlib = pytest.importorskip("pgenlib", reason="pgenlib (the test extra) writes and reads .pgen files")
        writer = pgenlib.PgenWriter(f"{path}.pgen".encode(), len(people), variant_ct=len(variants), nonref_flags=False)
        writer.append_biallelic_batch(np.ascontiguousarray(copies))
        writer.close()
        frame = variants[["chr", "pos", "id", "other_allele", "effect_allele"]]
        frame.set_axis(["#CHROM", "POS", "ID", "REF", "ALT"], axis=1).to_csv(f"{path}.pvar", sep="\t", index=False)
        people.rename(columns={"fid": "#FID", "iid": "IID"})[["#FID", "IID"]].to_csv(
            f"{path}.psam", sep="\t", index=False
        )
        return ["--pfile", path]
    zarr = pytest.importorskip("zarr", reason="zarr (the test extra) writes and reads VCF-Zarr stores")
    store = zarr.open_group(f"{path}.vcz", mode="w", zarr_format=2)
    calls = np.stack([copies >= 2, copies >= 1], axis=2).astype(np.int8)
    calls[copies < 0] = -1
    names, contig = np.unique(variants["chr"].to_numpy(str), return_inverse=True)
    arrays = {
        "call_genotype": calls, "variant_contig": contig, "variant_position": variants["pos"].to_numpy(),
        "contig_id": names, "variant_id": variants["id"].to_numpy(str), "sample_id": people["iid"].to_numpy(str),
        "variant_allele": variants[["other_allele", "effect_allele"]].to_numpy(str),
    }  # fmt: skip
    for name, values in arrays.items():
        store.create_array(name, data=values)
    return ["--vcf-zarr", f"{path}.vcz"]


def rewritten(rng, counts, variants, people):
    """The same calls with a third of the variants counted by the other allele, a third on the other strand, in another
    order, people too; and which variants are swapped and flipped."""
    swapped, flipped = rng.random(len(variants)) < 0.33, rng.random(len(variants)) < 0.33
    pairs = variants[["effect_allele", "other_allele"]].to_numpy(object)
    pairs[swapped] = pairs[swapped][:, ::-1]
    pairs[flipped] = [[allele.translate(OTHER_STRAND) for allele in pair] for pair in pairs[flipped]]
    order, rows = rng.permutation(len(variants)), rng.permutation(len(people))
    turned = np.where(swapped, 2.0 - counts, counts)[np.ix_(rows, order)]
    names = [f"x{j}" for j in range(len(pairs))]
    written = variants.assign(effect_allele=pairs[:, 0], other_allele=pairs[:, 1], id=names).iloc[order]
    flags = (pd.Series(own, variants["id"]) for own in (swapped, flipped))
    return turned, written, people.iloc[rows], *flags
