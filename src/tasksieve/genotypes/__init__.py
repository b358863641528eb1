"""PLINK genotypes as X: files, people and variants; `read_plink` gives what every estimator takes."""

from .alleles import canonical_chromosome
from .filters import filter_variants
from .matrix import Genotypes
from .people import align_people, are_numbers, as_numbers
from .read import open_genotypes, read_plink, without_holes
from .score_file import score_lines
from .write import write_plink

__all__ = [
    "Genotypes",
    "align_people",
    "are_numbers",
    "as_numbers",
    "canonical_chromosome",
    "filter_variants",
    "open_genotypes",
    "read_plink",
    "score_lines",
    "without_holes",
    "write_plink",
]
