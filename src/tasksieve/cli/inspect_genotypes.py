"""``tasksieve inspect`` of genotypes: what is in the files, what a fit would do with them, how they match a run."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..genotypes import Dosages, Genotypes, filter_variants
from ..genotypes.alleles import NO_NAMES, ambiguous_variants, repeated_variants
from ..genotypes.filters import frequencies
from ..report.words import few
from ..runs import RunFolder, load_model
from ..runs.genome import variants_in_use
from .genotype_source import FILES, file_option
from .new_people import matching, matching_notes, open_people
from .options import Asked, gibibytes

MANY_HOLES = 0.1  # part of the calls of a person, or of a variant
HOLES = "more than 10 % of calls missing"
RARE = {"rarer allele below 1 %": 0.01, "rarer allele below 5 %": 0.05}


def inspect_genotypes(asked: Asked) -> dict[str, Any]:
    """People, variants and calls; with a run also how many of its variants are there."""
    option = file_option(vars(asked))
    X = open_people(asked, option, None)
    path = ", ".join(getattr(asked, option))
    what = f"genotypes ({', '.join(FILES[option][1]) if option != 'vcf_zarr' else 'VCF-Zarr'})"
    found: dict[str, Any] = {"path": path, "what": what, "genotypes": described(X)}
    if asked.run is not None:
        folder = RunFolder(asked.run)
        folder.verify()
        saved = load_model(folder, max_bytes=gibibytes(asked.max_memory))
        _, variants = variants_in_use(folder, saved)
        own = open_people(asked, option, variants)
        found["model"] = {**matching(own, variants), "notes": matching_notes(own)}
    return found


def described(X: Genotypes) -> dict[str, Any]:
    """All that is counted."""
    variants, people = X.variant_table, X.sample_table
    counts = X.counts()[:, 0].astype(np.float64)  # of dosages no whole numbers
    counts = np.column_stack([counts, X.n_rows - counts[:, 2]])
    common = frequencies(counts)
    rarer = np.fmin(common, 1.0 - common)
    sexes = {name: int(np.sum(people["sex"] == code)) for name, code in (("men", "1"), ("women", "2"))}
    holes = X.holes_by_person()
    left = filter_variants(X)
    return {
        "people": {
            "number": X.n_rows,
            **({"cohorts": X.n_cohorts} if X.n_cohorts > 1 else {}),
            **sexes,
            HOLES: _count(holes > MANY_HOLES * X.n_variants),
        },
        "variants": {
            "number": X.n_variants,
            **{words: _count(rarer < limit) for words, limit in RARE.items()},
            HOLES: _count(counts[:, 2] > MANY_HOLES * X.n_rows),
            "A/T or C/G": _count(ambiguous_variants(variants)),
            "without a position": _count(variants["pos"] <= 0),
            "without an identifier": _count(np.isin(variants["id"], list(NO_NAMES))),
            "there more than once": _count(repeated_variants(variants)),
        },
        "calls": {"number": X.n_rows * X.n_variants, "missing": float(counts[:, 2].sum() / (X.n_rows * X.n_variants))},
        "chromosomes": dict(zip(*_number_of_each(variants["chr"]), strict=True)),
        "fit": {
            "left out": {reason: count for reason, count in left.dropped.items() if count},
            "features": left.n_variants,
            "bytes of calls": left.n_variants * _column_bytes(X),
        },
    }


def _column_bytes(X: Genotypes) -> int:
    return X.n_rows * X.dtype.itemsize if isinstance(X, Dosages) else (X.n_rows + 3) // 4


def _count(flags: Any) -> int:
    return int(np.count_nonzero(flags))


def _number_of_each(names: Any) -> tuple[list[str], list[int]]:
    """Names in the order of the file, and how many there are of each."""
    words = names.tolist()
    unique = list(dict.fromkeys(words))
    found, counts = np.unique(names.astype(str), return_counts=True)
    number = dict(zip(found.tolist(), counts.tolist(), strict=True))
    return unique, [number[str(word)] for word in unique]


def genotype_lines(found: dict[str, Any]) -> list[str]:
    """A few lines for people."""
    own = found["genotypes"]
    lines = [f"{found['path']}: {found['what']}"]
    for title in ("people", "variants"):
        number, *others = own[title].items()
        told = [f"{n:,} {words}" if words in ("men", "women", "cohorts") else f"{words}: {n:,}" for words, n in others]
        lines += ["", f"{title}: {number[1]:,}", *(f"  {line}" for line in told)]
    lines += ["", f"calls: {own['calls']['number']:,}, {own['calls']['missing']:.3%} missing"]
    lines += ["", f"chromosomes: {few((f'{name} ({n:,})' for name, n in own['chromosomes'].items()), 40)}"]
    fit = own["fit"]
    gone = [f"{n:,} {reason}" for reason, n in fit["left out"].items()]
    lines += ["", f"fit would learn from {fit['features']:,} variants, {fit['bytes of calls']:,} bytes of calls"]
    lines += [f"  left out: {words}" for words in gone]
    lines.append("  missing calls: the mean of the variant in the person's task; --maf, --geno, --mind leave out more")
    if "model" in found:
        lines += ["", *found["model"]["notes"]]
    return lines
