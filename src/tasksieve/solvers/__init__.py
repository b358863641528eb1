"""Solvers of the problem restricted to a few columns: one file per algorithm, named as in its paper.

A solver says what it needs (`Needs`) and has one verb, ``solve(working, start, tol, max_iter)``.
"""

from .accelerated import Accelerated
from .clipped_point import ClippedPoint
from .coordinate import CoordinateDescent
from .dual_newton import DualNewton
from .manifold_newton import ManifoldNewton
from .newton import VariationalNewton
from .prox_newton import ProximalNewton
from .proximal_point import ProximalPoint
from .sorted_fista import SortedFista
from .stochastic import StochasticGradient
from .working import Needs, Solution, WorkingProblem, duality_gap

__all__ = [
    "Accelerated",
    "ClippedPoint",
    "CoordinateDescent",
    "DualNewton",
    "ManifoldNewton",
    "Needs",
    "ProximalNewton",
    "ProximalPoint",
    "Solution",
    "SortedFista",
    "StochasticGradient",
    "VariationalNewton",
    "WorkingProblem",
    "duality_gap",
]
