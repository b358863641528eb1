"""The kinds of input that a run can have; the first that recognises a configuration reads it."""

from __future__ import annotations

from typing import Any

from .genotype_source import GenotypeSource
from .source import Source
from .table_source import TableSource
from .zarr_source import ZarrSource

SOURCES: tuple[type[Source], ...] = (GenotypeSource, ZarrSource, TableSource)


def source_kind(config: dict[str, Any]) -> type[Source]:
    """The kind of input that a configuration names."""
    return next(kind for kind in SOURCES if kind.recognises(config))
