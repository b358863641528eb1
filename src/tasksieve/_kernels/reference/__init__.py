"""NumPy twins of the compiled kernels: same names, same arguments, same results up to rounding.

They are the kernels' documentation and test oracle, and what runs where no compiled kernels exist. Every function
writes into the arrays it is given (``out``, ``w``, ``state``, ...), as the compiled one does. The twins of `topic.cpp`
are in `topic.py`.
"""

from .algebra import (
    combine,
    factor,
    factor_shifted,
    normal_matrix,
    normal_product,
    reweight,
    whiten,
    whiten_each,
)
from .anchors import (
    anchored_ratios,
    ball_maximum,
    express,
    joint_bounds,
    largest_magnitude,
    moment_bounds,
    row_inner_products,
    store_single,
)
from .centring import centre, exact_columns, exact_products, measure_against, stored_rows, stored_values
from .coordinate import coordinate_descent, pick_rows, row_gauge, row_gauges, row_norms, solve_row, solve_rows
from .cox import divergence_sums, risk_columns, risk_factor
from .dual_averaging import DualAveraging
from .dual_coordinate import (
    dual_descent,
    fenchel_sums,
    graph_pass,
    graph_pass_single,
    graph_problem,
    measure_rows,
    rebuild_table,
    smoothed_loss,
    smoothed_slope,
)
from .genotypes import (
    copy_genotypes,
    genotype_columns,
    genotype_counts,
    genotype_products,
    genotype_row_holes,
    genotype_shared_products,
)
from .gram import extend_grams, gram_factor, gram_normal
from .gram_path import GramPath, add_grams, panel_cells, subtract_outer
from .graph_rows import count_hashed, dense_rows, hash_rows, row_squares, sparse_rows, string_rows
from .moments import add_products, storing_loss, take_out_constant
from .nodewise import nodewise
from .passes import many_products, row_products, segment_products, shared_products, sparse_products
from .smooth_path import SmoothPath
from .sorted_columns import sorted_columns
from .sorted_norm import SortedFista, SortedNorm, SortedSvrg
