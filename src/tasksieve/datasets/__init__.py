"""Problems to try, test and measure with: generators of the literature's synthetic designs, and loaders.

Those named ``make_...``, ``load_...`` and ``fetch_...`` return a :class:`TaskDataset`, which unpacks as
``X, y, task, support``: rows stacked and sorted by task, the matrix in Fortran order (one feature's rows of all tasks
contiguous: the library's own layout), and the sorted indices of the features that truly matter.

``make_...`` draw synthetic data, ``load_...`` need only the library, ``fetch_...`` read a file from a folder of
yours or download it once.
"""

from .container import TaskDataset
from .real import (
    RealTasks,
    data_folder,
    fetch_landmine,
    fetch_mnist_pairs,
    fetch_parkinsons,
    fetch_sarcos,
    fetch_school,
    fetch_tdt2,
    load_digits_tasks,
    one_vs_rest_tasks,
)
from .synthetic import (
    evolve_consensus,
    make_dna_windows,
    make_gauss2d,
    make_genotypes,
    make_gong_synthetic,
    make_heterogeneous_tasks,
    make_shared_regression,
    make_small_tasks,
    make_task_classification,
    make_wang_synthetic,
)
from .toy_genotypes import write_toy_genotypes

__all__ = [
    "RealTasks",
    "TaskDataset",
    "data_folder",
    "evolve_consensus",
    "fetch_landmine",
    "fetch_mnist_pairs",
    "fetch_parkinsons",
    "fetch_sarcos",
    "fetch_school",
    "fetch_tdt2",
    "load_digits_tasks",
    "make_dna_windows",
    "make_gauss2d",
    "make_genotypes",
    "make_gong_synthetic",
    "make_heterogeneous_tasks",
    "make_shared_regression",
    "make_small_tasks",
    "make_task_classification",
    "make_wang_synthetic",
    "one_vs_rest_tasks",
    "write_toy_genotypes",
]
__dir__ = __all__.copy  # TAB shows these alone
