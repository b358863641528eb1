"""Solvers of the problem restricted to packed columns: one file per algorithm."""

from .accelerated import accelerated_proximal_gradient
from .coordinate import CoordinateDescent
from .newton import VariationalNewton
from .prox_newton import ProximalNewton
from .sorted_accelerated import sorted_accelerated
from .sorted_stochastic import sorted_stochastic
from .sorted_working import SortedSolution, SortedWorking
from .working import Solution, WorkingProblem

__all__ = [
    "CoordinateDescent",
    "ProximalNewton",
    "Solution",
    "SortedSolution",
    "SortedWorking",
    "VariationalNewton",
    "WorkingProblem",
    "accelerated_proximal_gradient",
    "sorted_accelerated",
    "sorted_stochastic",
]
