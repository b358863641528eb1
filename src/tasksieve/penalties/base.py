"""What the engine needs of a penalty, and what a custom penalty has to define.

A penalty is a norm on the rows of W (one row a feature, one column a task) at one strength. Its core (`core.py`) is
what you write; what it may know beside that has defaults, by file in `capabilities/`. The mathematics is in
`docs/develop/mathematics.md`, the checks in `tasksieve.checks.check_penalty`.
"""

from __future__ import annotations

from .capabilities.compiled import BlockForm, CompiledForms, RowForm
from .capabilities.joint import REJECT, JointRows
from .capabilities.manifold import Manifold
from .capabilities.sharper import SharperScreening
from .capabilities.shown import Shown
from .core import Derived, live_rows, row_norms

__all__ = ["REJECT", "BlockForm", "Manifold", "RowForm", "RowPenalty", "live_rows", "row_norms"]


class RowPenalty(Derived, JointRows, CompiledForms, SharperScreening, Shown):
    """``sum_j u_j N(W_j)`` with a norm N that depends on the sizes of a row's entries only.

    A subclass implements `value`, `gauges`, `prox` and `reach` with the help of `weights`; `on` and `restrict` where it
    keeps other numbers of the features than these. It is made without knowing the data; `on`, `at` and `restrict` make
    copies for given features and strengths. All other methods have defaults; those that a penalty may know better are
    listed by file in `penalties/capabilities`.

    Attributes
    ----------
    weights : array, one entry a row
        Strength times feature weight. 0: not penalised.
    positive : bool
        Only W >= 0. The methods of a subclass need not know: they are given positive parts.
    ridge : float
        Strength of ``ridge/2 ||W||_F^2`` beside the norm.
    coupling : Coupling, optional
        A graph of tasks beside it. Together they are the quadratic part ``1/2 <W R, W>``, ``R = ridge I + L``.
    """
