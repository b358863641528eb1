"""PLINK genotypes as X: files, people and variants; `read_plink` gives what every estimator takes."""

from .alleles import canonical_chromosome
from .matrix import Genotypes
from .people import align_people, read_ids
from .read import read_plink
from .score_file import score_lines
from .write import write_plink

__all__ = [
    "Genotypes",
    "align_people",
    "canonical_chromosome",
    "read_ids",
    "read_plink",
    "score_lines",
    "write_plink",
]
