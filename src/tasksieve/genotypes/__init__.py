"""Genotype files as X: people and variants; `read_plink` and its like give what every estimator takes.

``files.py`` (.bed, mapped), ``pgen.py``, ``vcf_zarr.py`` and ``bgen.py`` (read once: ``held.py``) read calls or
dosages; ``cohort.py``, ``people.py``, ``alleles.py`` and ``filters.py`` match people and variants; ``matrix.py`` is the
storage, ``dosages.py`` that of dosages, ``rows.py`` what certificates are about; ``opening.py`` goes from names to X.
"""

from .alleles import canonical_chromosome
from .dosages import Dosages
from .filters import filter_variants
from .matrix import Genotypes
from .opening import open_genotypes, without_holes
from .people import align_people, are_numbers, as_numbers
from .read import read_bgen, read_pgen, read_plink, read_vcf_zarr
from .write import score_lines, write_plink

__all__ = [
    "Dosages",
    "Genotypes",
    "align_people",
    "are_numbers",
    "as_numbers",
    "canonical_chromosome",
    "filter_variants",
    "open_genotypes",
    "read_bgen",
    "read_pgen",
    "read_plink",
    "read_vcf_zarr",
    "score_lines",
    "without_holes",
    "write_plink",
]
__dir__ = __all__.copy  # TAB shows these alone
