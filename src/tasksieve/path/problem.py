"""A problem: design, loss and penalty, in sum units."""

from __future__ import annotations

from copy import copy
from functools import cached_property
from typing import Any

import numpy as np

from ..design import Design, Ledger, highest
from ..losses import DataLoss, Loss, as_loss
from ..penalties import L21, RowPenalty
from ..penalties.coupling import Coupling
from .anchors import Anchors
from .policy import joint_bounds_pay
from .row_metric import MeasuredMetric
from .solved_there import SolvedThere

Array = np.ndarray[Any, Any]


class Problem:
    """``loss + lam Omega(W) + 1/2 <W R, W>``, ``R = (lam ridge_ratio + unit fixed_ridge) I + unit L``.

    - `design`: Knows the weights, the intercepts and the unpenalised features.
    - `y`: Flat labels: numbers, +-1 for "logistic", one-hot columns for "multinomial", records for "cox".
    - `offset`: Flat too: what is added to every prediction.
    - `loss`: {"squared", "square-root", "logistic", "multinomial"} or Loss
    - `penalty`: Without data and strength; the L2,1 norm by default.
    - `feature_weights`: ``u_j``; features with weight 0 must be the design's unpenalised ones.
    - `positive`: Only W >= 0.
    - `fixed_ridge`: A ridge that does not grow with lam, in public units.
    - `task_graph` (array of shape (T, T)): Weights of the edges between tasks, whose Laplacian is L, in public units.
    - `unit`: Public objectives are sum units divided by this (the mean number of rows a task, or its root).
    - `penalty`: On the features, at unit strength.
    """

    def __init__(
        self,
        design: Design,
        y: Array,
        *,
        offset: Array | None = None,
        loss: str | Loss = "squared",
        penalty: RowPenalty | None = None,
        feature_weights: Array | None = None,
        positive: bool = False,
        ridge_ratio: float = 0.0,
        fixed_ridge: float = 0.0,
        task_graph: Array | None = None,
        unit: float = 1.0,
    ) -> None:
        self.design = design
        known = () if offset is None else (np.ascontiguousarray(offset, dtype=np.float64),)
        stated = loss if isinstance(loss, Loss) else as_loss(loss)
        records = np.asarray(y).dtype.names is not None
        labels = np.ascontiguousarray(y, dtype=None if records else np.float64)
        self.loss: DataLoss = stated.on(design, labels, *known)
        weights = np.ones(design.n_features)
        if feature_weights is not None:
            weights = np.array(feature_weights, dtype=np.float64)
        weights[design.unpenalised] = 0.0
        self.penalty = (L21() if penalty is None else penalty).on(
            weights,
            design.n_tasks,
            positive=positive,
            ridge_ratio=ridge_ratio,
            fixed_ridge=fixed_ridge * unit,
            coupling=None if task_graph is None else Coupling(unit * task_graph),
        )
        free = np.flatnonzero(~self.penalty.penalised)
        if len(free) != len(design.unpenalised):
            free = np.setdiff1d(free, design.unpenalised)
            raise ValueError(f"feature {free[0]} is not penalised: name it in the design's `unpenalised` as well")
        self.unit = unit
        #: powers of two that X and y were divided by, set and used by the caller
        self.units: Any = None
        #: values that a device has solved already, with those of folds
        self.solved_there: list[SolvedThere] = []
        #: past passes over the data, the first for the residual of W = 0
        self.anchors = Anchors(design, joint=self._joint_bounds())
        self._null_levels: Any = None  # where they are
        self._null_array: Array | None = None

    def _joint_bounds(self) -> bool:
        """Whether one combination of the anchors serves all tasks (`design.anchored`)."""
        design, found = self.design, self.penalty.thresholds()
        plain = found is not None and found[1] is None and not self.penalty.positive
        usable = plain and self.loss.squared and not design.uniform and design.shard.joint_bounds
        return usable and joint_bounds_pay(design.n_features, design.n_tasks)

    def reweighted(self, feature_weights: Array) -> Problem:
        """The same problem with other weights of the features; no pass over the data."""
        other = copy(self)
        other.metric = self.metric  # of the design, which they share
        other.penalty = copy(self.penalty)
        factor = np.divide(
            self.penalty.weights, feature_weights, out=np.zeros(len(feature_weights)), where=self.penalty.penalised
        )
        other.penalty.weights = np.where(self.penalty.penalised, feature_weights, 0.0)
        other.penalty = other.penalty.at(1.0)
        other._null_levels = other._null_array = self.null_levels() * factor
        return other

    @cached_property
    def metric(self) -> MeasuredMetric:
        """The row metric under which the columns were measured last; losses of constant curvature never ask for it."""
        return MeasuredMetric(self.design)

    def _levels(self) -> Any:
        """The null levels, where they are: one full pass, which is remembered."""
        if self._null_levels is None:
            self._null_levels = self.anchors.remember(self.loss.null.residual, self.penalty)
        return self._null_levels

    def null_levels(self) -> Array:
        """Gauges of all features at unit strength for the residual of W = 0."""
        if self._null_array is None:
            self._null_array = np.asarray(self._levels())
        return self._null_array

    def highest_levels(self, count: int) -> Array:
        """The highest of them, so many if there are, in no order."""
        levels = self._levels()
        found: Array = levels.highest(count) if hasattr(levels, "highest") else highest(levels, count)
        return found

    def hardest(self) -> int:
        """The feature with the largest of them."""
        return int(self._levels().argmax())

    def lambda_max(self) -> float:
        """The smallest strength whose solution is zero."""
        if self.penalty.by_threshold:
            return float(self._levels().max(initial=0.0))
        return self.penalty.polar(self.null_levels())

    def ledger(self, summaries: bool) -> Any:
        """What is known about all features, for a walk that begins; `summaries`: none is queried by itself."""
        levels, found = self._levels(), None
        if summaries and hasattr(levels, "ledger") and self.penalty.by_threshold:
            found = levels.ledger(self.penalty)
        return Ledger(self.design.shard, self.penalty, self.null_levels()) if found is None else found
