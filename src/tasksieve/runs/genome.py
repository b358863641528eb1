"""Where the variants of a run lie: read back from what a fit of genotypes has left."""

from __future__ import annotations

from typing import Any

from ..report.genome import Genome
from ..tables import TableError, read_table
from .folder import DATA, VARIANTS, RunError, RunFolder


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
