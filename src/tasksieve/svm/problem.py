r"""The problem of graph-regularised tasks, and what a solver finds.

.. math::

    P(W) = \tfrac12 \sum_{st} (I + L)_{st}\, w_s \cdot w_t + \sum_i c_i\, \ell(x_i \cdot w_{t(i)}; y_i), \qquad
    D(\beta) = -\sum_i c_i\, \ell^*(-\beta_i / c_i) - \tfrac12 \sum_{st} m_{st}\, v_s \cdot v_t

with :math:`M = (I + L)^{-1}` and :math:`v_t = \sum_{i \in t} \beta_i x_i`. The gap P(W) - D(beta) is the sum in
`certificate`, of terms that are all >= 0: no digits are lost in a difference, and W and beta need not belong together.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse

from .._kernels import kernels
from ..losses.epsilon_insensitive import EpsilonInsensitive, SquaredEpsilonInsensitive
from ..losses.hinge import Hinge, SquaredHinge
from ..losses.logistic import Logistic
from ..losses.rowwise import RowLoss
from ..path.status import Status
from .certificate import COLUMNS, dual_sizes, rebuilt_distance

# The number by which the kernels know a loss, and the loss; as in LIBLINEAR, squares have no factor 1/2.
LOSSES: dict[str, tuple[int, Callable[[float], RowLoss]]] = {
    "hinge": (0, lambda epsilon: Hinge()),
    "squared_hinge": (1, lambda epsilon: SquaredHinge(factor=1.0)),
    "logistic": (2, lambda epsilon: Logistic()),
    "epsilon_insensitive": (3, EpsilonInsensitive),
    "squared_epsilon_insensitive": (4, lambda epsilon: SquaredEpsilonInsensitive(epsilon, factor=1.0)),
    "squared": (4, lambda epsilon: SquaredEpsilonInsensitive(0.0, factor=1.0)),
}


@dataclass
class StringSource:
    """Strings of one length and what turns them into hashed features: arguments of ``string_rows``."""

    text: np.ndarray
    letters: np.ndarray
    bits: int
    direct: int
    offset: np.ndarray
    weight: np.ndarray
    n_features: int

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.text), self.n_features

    @property
    def n_entries(self) -> int:
        return len(self.weight) * self.text.shape[1]

    def total(self, power: int) -> float:
        """The most that the features of one string, to a power, can add up to: with the power 2, the squared length of
        a row where no two features collide in the table."""
        positions = np.maximum(self.text.shape[1] - np.arange(len(self.weight)), 0)
        return float(self.weight.astype(np.float64) ** power @ positions)

    def rows(self) -> Any:
        return kernels.string_rows(*vars(self).values())


@dataclass(frozen=True)
class Shape:
    """What makes rows a problem, besides C and the strength of the graph: half the width of the tube of regression is
    `epsilon`, the size of the constant feature (0: none) is `bias`."""

    loss: str
    epsilon: float = 0.0
    bias: float = 0.0
    threads: int = 1


class KernelRows:
    """The rows of an array, a CSR matrix or a `StringSource`, as kernels read them: for all problems on them. They are
    read as they lie in memory; dense ones that are mostly zeros are packed."""

    def __init__(self, source: Any, shape: Shape) -> None:
        self.source, self.shape = source, shape
        self.strings, self.dense = isinstance(source, StringSource), isinstance(source, np.ndarray)
        if self.strings:
            self.handle = source.rows()
        elif scipy.sparse.issparse(source):
            self.handle = kernels.sparse_rows(source.data, source.indices, source.indptr, source.shape[1])
        else:
            self.handle = kernels.dense_rows(source, shape.threads)

    @cached_property
    def squares(self) -> np.ndarray:
        """Squared norms of the rows, constant feature included."""
        squares = np.empty(self.source.shape[0])
        kernels.row_squares(self.handle, self.shape.threads, squares)
        return squares + self.shape.bias**2


@dataclass
class GraphProblem:
    """Rows, targets and weights in the flat sample space, and the coupling of the tasks.

    - `offsets` (int64 ndarray of shape (T + 1,)): Task t is the slice ``offsets[t]:offsets[t + 1]`` of the samples.
    - `row_of` (int64 ndarray or None): Row of the source that each sample is; None: the sample's own number.
    - `y`, `c`: Targets (-1 / +1 for classes) and weights, C included; 0 leaves a sample out.
    - `coupling`, `similarity` (ndarrays of shape (T, T)): I + L and its inverse M.
    """

    rows: KernelRows
    offsets: np.ndarray
    row_of: np.ndarray | None
    y: np.ndarray
    c: np.ndarray
    coupling: np.ndarray
    similarity: np.ndarray

    def __post_init__(self) -> None:
        shape, self.source = self.rows.shape, self.rows.source
        self.loss, self.bias, self.threads = shape.loss, shape.bias, shape.threads
        self.epsilon = 0.0 if self.loss == "squared" else shape.epsilon
        self.code, loss = LOSSES[self.loss]
        self.row_loss = loss(self.epsilon)
        data = self.offsets, self.row_of, self.y, self.c, self.similarity
        self.handle = kernels.graph_problem(self.rows.handle, self.code, self.epsilon, self.bias, *data)
        self.dtype = np.float32 if self.rows.strings else np.float64
        self.width = self.source.shape[1] + (self.bias > 0)
        self.n_tasks, self.n_samples = len(self.offsets) - 1, len(self.y)

    @property
    def n_entries(self) -> int:
        """The most entries that a row can have."""
        return self.source.n_entries if self.rows.strings else self.width

    @property
    def kinked(self) -> bool:
        """Whether Newton's method sees the loss rounded."""
        return not np.isfinite(self.row_loss.smoothness)

    @cached_property
    def null(self) -> float:
        """The objective at W = 0."""
        with np.errstate(over="ignore"):
            return float(np.dot(self.c, self.row_loss.value(self.y, np.zeros_like(self.y))))

    def sample_squares(self) -> np.ndarray:
        """Squared norms of the samples; of strings, where features collide in the table, an upper bound."""
        if self.rows.strings:
            return np.full(self.n_samples, self.source.total(1) ** 2 + self.bias**2)
        squares = self.rows.squares
        return squares[: self.n_samples] if self.row_of is None else squares[self.row_of]

    def scores(self, w: np.ndarray) -> np.ndarray:
        out = np.empty(self.n_samples)
        self._pass(w, None, out, None)
        return out

    def combine(self, beta: np.ndarray) -> np.ndarray:
        """V: v_t = the sum of beta_i x_i over task t."""
        v = np.empty((self.n_tasks, self.width))
        self._pass(None, beta, None, v)
        return v

    def _pass(self, w: Any, beta: Any, scores: Any, v: Any) -> None:
        run = kernels.graph_pass_single if self.rows.strings else kernels.graph_pass
        run(self.handle, w, beta, self.threads, scores, v)

    def rebuild(self, beta: np.ndarray, w: np.ndarray) -> float:
        """W = M V(beta), in place; of strings the norm of V."""
        v_square, _ = kernels.rebuild_table(self.handle, beta, self.threads, w)
        return float(np.sqrt(v_square))

    def certify_rebuilt(self, w: np.ndarray, beta: np.ndarray) -> tuple[float, float, np.ndarray, float]:
        """Objective, gap, scores and norm of V at W = M V(beta), which is written to w. Nothing of the size of W is
        needed besides; sums of double precision are taken for exact."""
        length = self.rebuild(beta, w)
        scores = self.scores(w)
        loss, terms = kernels.fenchel_sums(self.handle, scores, beta)
        if not self.rows.strings:  # at W = M V: (I + L) W = V, and <W, V> is the sum of beta_i z_i
            return 0.5 * float(np.dot(beta, scores)) + loss, terms, scores, 0.0
        penalty = self.penalty(w)
        apart = rebuilt_distance(self, dual_sizes(self, beta), length, penalty)
        return penalty + loss, terms + 0.5 * apart * apart, scores, length

    def penalty(self, w: np.ndarray) -> float:
        """½ <W, (I + L) W>, in blocks of columns that stay in the processor's cache."""
        total = 0.0
        for start in range(0, self.width, COLUMNS):
            block = w[:, start : start + COLUMNS].astype(np.float64)
            total += 0.5 * float(np.sum(block * (self.coupling @ block)))
        return total


@dataclass
class Solution:
    """W with its certificate; ``visits`` counts rows read by the descent.

    - `length`: The norm of V(beta) where W is a table of single precision.
    - `seen`: The lowest objective on the way and its W: dual methods do not go downhill in it.
    - `intercept` (ndarray of shape (n_tasks,)): As it is stored.
    - `limited_by_rounding`: The solver has met its goal, but not with the rounding of the stored numbers.
    """

    w: np.ndarray
    beta: np.ndarray
    objective: float
    gap: float
    null: float
    n_iter: int
    converged: bool
    solver: str
    visits: int = 0
    length: float = 0.0
    seen: tuple[float, np.ndarray] | None = None
    intercept: np.ndarray = field(default_factory=lambda: np.zeros(0))
    limited_by_rounding: bool = False

    @property
    def status(self) -> Status:
        """How it ended; Newton's method ends where it finds no better step, the descent by its epochs."""
        if self.converged:
            return Status.CONVERGED
        if self.limited_by_rounding:
            return Status.ROUNDING
        return Status.STALLED if self.solver == "newton" else Status.ITERATIONS


Progress = Callable[[str, int, float], None]  # the name of a method, its step and the relative gap
