"""Problems of other programs in our words, so that their answers can be graded: one file for each program.

``words.py`` reads a program's own parameters and refuses what would be ignored, ``stated.py`` is a problem in our
words, ``estimators.py`` reads fitted models that are in memory. Nothing here imports the other programs.
"""

from .estimators import fitted_elsewhere
from .programs import PROGRAMS, stated_by
from .stated import GivenData, StatedProblem

__all__ = ["PROGRAMS", "GivenData", "StatedProblem", "fitted_elsewhere", "stated_by"]
