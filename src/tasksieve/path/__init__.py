"""From a problem to a certified path: screen, solve on a working set, certify, go on.

One value: ``problem.py``, ``pair.py`` (a primal and a dual point), ``anchors.py``, ``sieve.py`` (screening without a
pass), ``strategies.py``, ``engine.py``, ``certificate.py`` (the numbers as they are stored, with all rounding). Many
values: ``policy.py`` chooses what follows the path, ``walks.py`` makes it, ``follow.py`` is the loop, ``solve.py`` the
call; ``gram.py``, ``gram_folds.py`` and ``sums.py`` work on sums over rows.
"""

from .problem import Problem
from .solve import PathSolution, solve_path
from .values import Value

__all__ = ["PathSolution", "Problem", "Value", "solve_path"]
