"""Models of genotypes as score files: for ``plink2 --score``, with allele frequencies, and in the PGS Catalog's format.

Such files hold weights of variants only. Intercepts, covariates, offsets and links are in a JSON file beside them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..atomic import write_bytes
from ..genotypes import Genotypes
from ..genotypes.alleles import NO_NAMES
from ..genotypes.table import Table
from ..messages import value_error
from .description import Description, Score, Task
from .from_model import describe, features_in_use

PLINK, PGS = ".score", ".pgs.txt"
#: endings of score files
SCORES = (PLINK, PGS)
#: PGS Catalog's words for what weights are, where they are not plain effects
WEIGHT_TYPES = {"logistic": "log(OR)", "log-hazard": "log(HR)"}
VARIANT_COLUMNS = ("chr", "pos", "id", "effect_allele", "other_allele")
NOT_REPORTED = "NR"  # PGS Catalog's word for it
_RS = re.compile(r"rs\d+")
_NOT_PLAIN = re.compile(r"[^A-Za-z0-9._+-]+")


@dataclass(frozen=True)
class Weights:
    """One score: of a task, or of a class of it.

    - `title`: A word that names it in columns and files.
    - `weights`, `frequencies`: Of the effect allele of each variant; the mean of a missing call is twice the latter.
    - `covariates`: What else is added to the sum, by name.
    """

    title: str
    task: Task
    score: Score
    label: Any
    weights: list[float]
    frequencies: list[float]
    covariates: dict[str, float]


def write_score_files(
    found: Description,
    variants: Table,
    file: Path,
    proved: Mapping[str, Any],
    *,
    trait: str | None = None,
    genome_build: str | None = None,
) -> list[Path]:
    """Write the files of the format that the ending says, and a JSON file beside them; all that were written.

    - `variants`: chr, pos, id, effect_allele and other_allele of the last features of the description.
    - `proved`: What is known of the model: gap, digest of a certificate, ...
    - `trait`, `genome_build`: For PGS Catalog's header.
    """
    scores = _scores(found, variants)
    stem = str(file)[: -len(PLINK if file.name.endswith(PLINK) else PGS)]
    beside: dict[str, Any] = {"format": "tasksieve score files", "version": 1, "model": found.model}
    beside |= {"tasksieve": found.version, "trait": trait, "variants": len(variants), "claims": dict(proved)}
    if file.name.endswith(PLINK):
        written, files = _write_plink(scores, variants, file, stem)
    else:
        written, files = {}, []
        for own in scores:
            path = Path(f"{stem}.{own.title}{PGS}") if len(scores) > 1 else file
            lines = _pgs_lines(found, own, variants, proved, trait, genome_build, path.name.removesuffix(PGS))
            write_bytes(path, "".join(f"{line}\n" for line in lines).encode())
            written[own.title], files = {"file": path.name}, [*files, path]
    beside["scores"] = [{**_described(own), **written[own.title]} for own in scores]
    path = Path(f"{file}.json")
    write_bytes(path, (json.dumps(beside, indent=1, ensure_ascii=False) + "\n").encode())
    return [*files, path]


def _scores(found: Description, variants: Table) -> list[Weights]:
    """The scores of all tasks; an error where the description is not one of these variants."""
    n_covariates = len(found.features) - len(variants)
    own = found.features[max(n_covariates, 0) :]
    names = [f"{name}_{allele}" for name, allele in variants.pairs("id", "effect_allele")]
    if [feature.name for feature in own] != names or any(feature.fill is None for feature in own):
        raise value_error(
            "a score file is for a model of genotypes: give {variants}, the genotypes that it was fitted to, or their "
            "table of variants."
        )
    several: list[Weights] = []
    for t, task in enumerate(found.tasks):
        labels = (task.classes or ()) if len(task.scores) > 1 else (None,)
        for label, score in zip(labels, task.scores, strict=True):
            weights = [0.0] * len(found.features)
            for j, value in score.coefficients:
                weights[j] = value
            means = [float(feature.fill_of(t) or 0.0) for feature in own]
            words = [str(word) for word in (task.name, label) if word is not None]
            title = _NOT_PLAIN.sub("_", "_".join(words)) or "score"
            while title in (other.title for other in several):
                title += "_"
            beside = {found.features[j].name: weights[j] for j in range(n_covariates) if weights[j] != 0.0}
            half = [mean / 2.0 for mean in means]
            several.append(Weights(title, task, score, label, weights[n_covariates:], half, beside))
    return several


def _described(own: Weights) -> dict[str, Any]:
    """What a score file cannot hold."""
    found: dict[str, Any] = {"column": own.title, "task": own.task.name, "link": own.task.link}
    if own.label is not None:
        found["class"] = own.label
    elif own.task.classes is not None:
        found["classes"] = list(own.task.classes)
    return found | {"intercept": own.score.intercept, "offset": own.score.offset, "covariates": own.covariates}


# --- plink2 ----------------------------------------------------------------------------------------------------------


def _write_plink(
    scores: list[Weights], variants: Table, file: Path, stem: str
) -> tuple[dict[str, dict[str, Any]], list[Path]]:
    """A column for each score; a file of frequencies for those that have the same ones. For each score the latter, and
    the command that computes it; and all files."""
    ids = variants["id"].tolist()
    bad = next((name for k, name in enumerate(ids) if name in NO_NAMES or name in ids[:k]), None)
    if bad is not None:
        raise value_error(
            "plink2 --score finds variants by their identifiers, and {bad!r} is not one of its own: name them apart "
            "(plink2 --set-all-var-ids '@:#:$r:$a') and fit again, or write a .pgs.txt file.",
            bad=bad,
        )
    columns = [ids, variants["effect_allele"].tolist(), *([repr(w) for w in own.weights] for own in scores)]
    write_bytes(file, _tabbed(["ID", "A1", *(own.title for own in scores)], columns))
    same = all(own.frequencies == scores[0].frequencies for own in scores)
    found, files = {}, [file]
    for k, own in enumerate(scores):
        path = Path(f"{stem}.afreq" if same else f"{stem}.{own.title}.afreq")
        if path not in files:
            names = ["#CHROM", "ID", "REF", "ALT", "ALT_FREQS"]
            frequencies = [repr(value) for value in own.frequencies]
            alleles = [variants[name].tolist() for name in ("other_allele", "effect_allele")]
            write_bytes(path, _tabbed(names, [variants["chr"].tolist(), ids, *alleles, frequencies]))
            files.append(path)
        range_of = str(3 + k) if not same or len(scores) == 1 else f"3-{2 + len(scores)}"
        command = (
            f"plink2 --bfile PREFIX --read-freq {path.name} --score {file.name} 1 2 header-read cols=+scoresums "
            f"--score-col-nums {range_of} --out {Path(stem).name if same else f'{Path(stem).name}.{own.title}'}"
        )
        found[own.title] = {"frequencies": path.name, "plink2": command}
    return found, files


def _tabbed(names: list[str], columns: list[list[Any]]) -> bytes:
    lines = ["\t".join(names), *("\t".join(map(str, row)) for row in zip(*columns, strict=True))]
    return "".join(f"{line}\n" for line in lines).encode()


# --- PGS Catalog -----------------------------------------------------------------------------------------------------


def _pgs_lines(
    found: Description,
    own: Weights,
    variants: Table,
    proved: Mapping[str, Any],
    trait: str | None,
    genome_build: str | None,
    name: str,
) -> Iterator[str]:
    """Version 2.0 of the format; variants without a weight in this score are left out."""
    used = [j for j, weight in enumerate(own.weights) if weight != 0.0]
    yield "###PGS CATALOG SCORING FILE - see https://www.pgscatalog.org/downloads/#dl_ftp_scoring"
    yield "#format_version=2.0"
    yield "##POLYGENIC SCORE (PGS) INFORMATION"
    header = {
        "pgs_id": name,
        "pgs_name": name,
        "trait_reported": trait or NOT_REPORTED,
        "genome_build": genome_build or NOT_REPORTED,
        "variants_number": len(used),
        "weight_type": WEIGHT_TYPES.get(own.task.link, "beta"),
    }
    yield from (f"#{key}={value}" for key, value in header.items())
    yield f"##WHAT WAS PROVED (tasksieve {found.version}, {found.model})"
    yield from (f"#{key}={value}" for key, value in proved.items())
    yield "##NOT IN THE WEIGHTS"
    yield f"#intercept={own.score.intercept!r}"
    yield f"#covariates={json.dumps(own.covariates, ensure_ascii=False)}"
    if own.score.offset is not None:
        yield f"#offset={own.score.offset}"
    yield f"#task={'' if own.task.name is None else own.task.name}"
    if own.label is not None:
        yield f"#class={own.label}"
    yield f"#link={own.task.link}"
    yield "\t".join((
        "rsID", "chr_name", "chr_position", "effect_allele", "other_allele", "effect_weight", "allelefrequency_effect",
    ))  # fmt: skip
    columns = [variants[key].tolist() for key in VARIANT_COLUMNS]
    for j in used:
        chromosome, position, identifier, effect, other = (column[j] for column in columns)
        known = identifier if _RS.fullmatch(identifier) or position <= 0 else ""
        place = str(position) if position > 0 else ""
        yield "\t".join((
            known, str(chromosome), place, effect, other, repr(own.weights[j]), repr(own.frequencies[j]),
        ))  # fmt: skip


# --- models ----------------------------------------------------------------------------------------------------------


def export_scores(model: Any, file: Path, variants: Any, *, genome_build: str | None = None, **beside: Any) -> Path:
    """Of a fitted model and the genotypes that it was fitted to, or their table; `beside`: for `describe`."""
    if variants is None:
        raise value_error("{variants}: a score file needs the genotypes that the model was fitted to, or a table.")
    if isinstance(variants, Genotypes):
        table, names = variants.variant_table, variants.feature_names.tolist()
    else:
        table = Table({name: np.asarray(variants[name]) for name in VARIANT_COLUMNS})
        names = [f"{name}_{allele}" for name, allele in table.pairs("id", "effect_allele")]
        n_covariates = int(model.n_features_in_) - len(names)
        names = [*(f"covariate{k + 1}" for k in range(n_covariates)), *names]
    found = describe(model, feature_names=names, **beside)
    chosen = features_in_use(model) - (len(names) - len(table))
    write_score_files(found, table.take(chosen[chosen >= 0]), file, proved_of(model), genome_build=genome_build)
    return file


def proved_of(model: Any, certificate: str | None = None) -> dict[str, Any]:
    """The gap of a fitted model in words and numbers, and the digest of the file that proves it."""
    gap, objective = getattr(model, "dual_gap_", None), getattr(model, "objective_", None)
    found: dict[str, Any] = {}
    if gap is not None and objective is not None:  # all digits: a bound that was rounded down would prove nothing
        found["proved"] = f"the objective, {float(objective)!r}, is at most {float(gap)!r} above the optimum"
        found |= {"objective": float(objective), "dual_gap": float(gap)}
    if certificate is not None:
        found["certificate"] = f"sha256:{certificate}"
    return found
