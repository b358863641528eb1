"""Where the variants of a run lie: read back from what a fit of genotypes has left."""

from __future__ import annotations

import csv
from typing import Any

import numpy as np

from ..fitted.restore import get_state
from ..genotypes.files import variant_table
from ..genotypes.table import Table
from ..report.genome import Genome
from ..report.rows import coefficient_rows
from ..tables import TableError, read_table
from .folder import DATA, VARIANTS, RunError, RunFolder
from .model_file import SavedModel


def read_genome(folder: RunFolder, data: dict[str, Any]) -> Genome:
    """Places of the variants in ``variants.csv``, and the chromosomes that ``data.json`` lists."""
    try:
        names, chromosomes, positions = _columns(folder, "feature", "chr", "pos")
    except (TableError, KeyError) as error:
        raise RunError(f"{folder / VARIANTS} is not readable: {error}") from None
    listed = data.get("genome")
    try:
        known = [(str(name), int(first), int(last)) for name, first, last in listed or []]
        indices = {
            str(name): (str(int(own) if isinstance(own, float) else own), int(position))
            for name, own, position in zip(names, chromosomes, positions, strict=True)
        }
    except (TypeError, ValueError) as error:
        raise RunError(f"{folder / DATA} does not list the chromosomes: {error}") from None
    return Genome(known, indices)


def _columns(folder: RunFolder, *names: str) -> list[list[Any]]:
    """Of ``variants.csv``, which has a header and no row where no variant was selected."""
    with open(folder / VARIANTS, "rb") as file:
        if len(file.readline()) == (folder / VARIANTS).stat().st_size:
            return [[] for _ in names]
    columns = read_table(folder / VARIANTS).columns
    return [list(columns[name].values) for name in names]


def variants_in_use(folder: RunFolder, saved: SavedModel) -> tuple[np.ndarray, Table]:
    """The features of a model that are variants and have a coefficient, and what these are."""
    listed, variants = _listed(folder)
    names, n_covariates = saved.feature_names, int(saved.said["covariates"])
    support = np.flatnonzero(coefficient_rows(saved.estimator)[0].any(axis=0))
    support = support[support >= n_covariates]
    places: dict[Any, int] = {name: i for i, name in enumerate(listed)}
    wanted: list[Any] = [names[j] for j in support.tolist()]
    if len(places) < len(listed):  # the same name twice: known by their order, which is that of the features
        fills = get_state(saved.estimator).get("fills")
        known = np.empty(0, dtype=np.int64) if fills is None else fills.features
        places = {j: i for i, j in enumerate(known[known >= n_covariates].tolist())}
        if [names[j] for j in places] != listed:
            raise RunError(f"{folder / VARIANTS}: variants have the same name, and it is not clear which is which")
        wanted = support.tolist()
    if lost := [name for name in wanted if name not in places]:
        raise RunError(f"{folder / VARIANTS} does not list {lost[0]}, which the model uses")
    return support, variants.take(np.array([places[name] for name in wanted], dtype=np.int64))


def _listed(folder: RunFolder) -> tuple[list[str], Table]:
    """Names of features, and the variants that they are."""
    try:
        with open(folder / VARIANTS, encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        names = ("feature", "chr", "id", "effect_allele", "other_allele")
        feature, chromosome, *others = ([row[name] for row in rows] for name in names)
        positions = np.array([int(row["pos"]) for row in rows], dtype=np.int64)
    except FileNotFoundError:
        raise RunError(f"{folder.path} was not fitted to genotypes: name the TABLE of the rows") from None
    except (KeyError, TypeError, ValueError, csv.Error) as error:
        raise RunError(f"{folder / VARIANTS} is not readable: {error!r}") from None
    return feature, variant_table(chromosome, positions, *others)
