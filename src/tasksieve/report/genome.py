"""Where features lie on a genome: what the picture of their strengths along it is drawn from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Genome:
    """Chromosomes of all variants looked at, and places of the features selected anywhere; covariates have none."""

    chromosomes: Sequence[tuple[str, int, int]]  # name, first position, last position
    indices: Mapping[str, tuple[str, int]]  # feature -> chromosome, position

    def data(self, features: Sequence[Any]) -> dict[str, Any]:
        """For the page: each feature's chromosome, counted from 0 (-1: none), and position."""
        number = {name: k for k, (name, _, _) in enumerate(self.chromosomes)}
        found = [self.indices.get(str(name), ("", 0)) for name in features]
        return {
            "chromosomes": [[str(name), int(first), int(last)] for name, first, last in self.chromosomes],
            "chromosome": [number.get(name, -1) for name, _ in found],
            "position": [int(position) for _, position in found],
        }
