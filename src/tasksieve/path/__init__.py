"""From a problem to a certified path: screen, solve on a working set, certify, go on."""

from .engine import Point
from .problem import Problem
from .solve import PathSolution, solve_path

__all__ = ["PathSolution", "Point", "Problem", "solve_path"]
