"""Solvers of the problem restricted to packed columns: one file per algorithm."""

from .accelerated import accelerated_proximal_gradient
from .coordinate import CoordinateDescent
from .newton import VariationalNewton
from .prox_newton import ProximalNewton
from .working import Solution, WorkingProblem

__all__ = [
    "CoordinateDescent",
    "ProximalNewton",
    "Solution",
    "VariationalNewton",
    "WorkingProblem",
    "accelerated_proximal_gradient",
]
