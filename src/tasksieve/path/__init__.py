"""From a problem to a certified path: screen, solve on a working set, certify, go on."""

from .engine import Value
from .problem import Problem
from .solve import PathSolution, solve_path

__all__ = ["PathSolution", "Problem", "Value", "solve_path"]
