r"""A loss of its own for each task, added up with weights.

    F(Z) = sum_t v_t F_t(z_t)

Tasks with the same loss are one *group*, on a view of the design (`design.Part`) in which the weights of their rows are
multiplied by v_t: every loss is proportional to these. With q = sqrt(v) the scores there are ``q z~`` and the residual
of the whole is q times that of the group; values, terms and dual values add up.

All halves of a gap add up too (`DataLoss.metric`): with a gap G of the whole, each group's rows are bounded by G, in
its own metric k, which for the whole is ``q^2 k``. One multiple of the residual is the dual point of all tasks, at
most 1: only a loss that is alone may be scaled further.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..design import Design, Part
from ..members import LOSSES
from ..messages import value_error
from ..screening.state import Ball
from .base import DataLoss, Evaluation, Loss, gamma

Array = np.ndarray[Any, Any]

_SCALED = 8  # roundings that bring a group's numbers into the units of the whole


class Mixed(Loss):
    r"""A loss of its own for each task.

    .. math:: F = \sum_t v_t F_t

    Parameters
    ----------
    losses : sequence of str or Loss
        One for each task, in their order: names, or objects of `tasksieve.losses`. The square-root loss and losses of
        more than two classes are refused.
    weights : sequence of float, optional
        :math:`v_t > 0`; by default 1. A loss must be proportional to the weights of its rows, as those of the
        package are.

    Examples
    --------
    >>> import tasksieve as ts
    >>> loss = ts.losses.Mixed(["squared", "logistic", "squared"], weights=[1.0, 2.0, 1.0])
    >>> loss.of_task(1).label
    'logistic loss'
    """

    label = "weighted loss of each task"
    formula = "1/n̄ Σ_t v_t F_t(X_t w_t + b_t), a loss F_t of its own for each task,"
    labels = "mixed"
    alone = "A mixture of losses has losses of single tasks, not mixtures."

    def __init__(self, losses: Sequence[str | Loss], weights: Sequence[float] | None = None) -> None:
        self.losses = tuple(LOSSES.make(loss) for loss in losses)
        self.weights = tuple(1.0 for _ in losses) if weights is None else tuple(float(v) for v in weights)
        if not self.losses or len(self.weights) != len(self.losses):
            raise ValueError(f"Mixed has {len(self.losses)} losses and {len(self.weights)} weights: one each per task.")
        for t, v in enumerate(self.weights):
            if not (v > 0.0 and math.isfinite(v)):
                raise ValueError(f"weights[{t}] of Mixed is {v}: weights of losses are positive numbers.")
        for loss in self.losses:
            refuse_in_mixture(loss)

    @property
    def by_row(self) -> bool:  # type: ignore[override]
        return all(loss.by_row for loss in self.losses)

    @property
    def smoothness(self) -> float:  # type: ignore[override]
        return max(v * loss.smoothness for v, loss in zip(self.weights, self.losses, strict=True))

    def of_task(self, t: int) -> Loss:
        return self.losses[t]

    def groups(self) -> list[tuple[Loss, list[int]]]:
        """The losses that differ, each with its tasks."""
        found: list[tuple[Loss, list[int]]] = []
        for t, loss in enumerate(self.losses):
            own = next((tasks for other, tasks in found if same_loss(loss, other)), None)
            if own is None:
                found.append((loss, [t]))
            else:
                own.append(t)
        return found

    def certificate_form(self) -> dict[str, Any]:
        for loss in self.losses:
            if "certificate_form" not in vars(type(loss)):
                raise ValueError(
                    f"{type(loss).__name__} has no name in the certificate's format, so that no verifier could "
                    "recompute it; the model's dual_gap_ is proved all the same."
                )
        return {
            "name": "mixed",
            "losses": [loss.certificate_form() for loss in self.losses],
            "weights": list(self.weights),
        }

    def on(self, design: Design, y: Array, offset: Array | None = None) -> DataLoss:
        if len(self.losses) != design.n_tasks:
            raise ValueError(f"Mixed has {len(self.losses)} losses, but there are {design.n_tasks} tasks.")
        groups = self.groups()
        if len(groups) == 1 and all(v == 1.0 for v in self.weights):  # the loss itself, on all of it
            loss = groups[0][0]
            return loss.on(design, labels_of(loss, y), offset)
        return MixedOnData(self, groups, design, y, offset)


def refuse_in_mixture(loss: Loss) -> None:
    """Refuse a loss that cannot stand beside others."""
    if loss.alone:
        raise ValueError(loss.alone)


def stands_beside_others(name: str) -> bool:
    """Whether a loss of this name can be that of one task among others."""
    kind = LOSSES[name]
    own_model = kind.labels in ("ordered", "survival")  # which is why they are not offered
    return not kind.alone and (own_model or LOSSES.offers(name))


def same_loss(first: Loss, second: Loss) -> bool:
    """Whether two objects are the same loss, so that their tasks can be evaluated together."""
    if first is second:
        return True
    if type(first) is not type(second):
        return False
    try:
        return bool(vars(first) == vars(second))
    except ValueError:  # arrays among the parameters
        return False


def labels_of(loss: Loss, y: Array) -> Array:
    """Labels of a mixture as a loss takes them: those of survival are records, whose `time` is the label of others."""
    return y if y.dtype.names is None or loss.labels == "survival" else np.ascontiguousarray(y["time"])


@dataclass
class MixedEvaluation(Evaluation):
    """The sum at a point, and what it was made of."""

    #: of the groups, in their units
    parts: tuple[Evaluation, ...] = ()
    #: the residual that theirs make up; another one in `residual` has taken its place
    own: Array | None = None


class _Group:
    """Tasks with the same loss: where they are, and their loss."""

    def __init__(
        self, loss: Loss, tasks: list[int], weights: Array, design: Design, y: Array, offset: Array | None
    ) -> None:
        self.tasks = np.array(tasks)
        rows = design.samples.rows_of(self.tasks)
        together = len(rows) == rows[-1] + 1 - rows[0]
        self.rows: Any = slice(int(rows[0]), int(rows[-1]) + 1) if together else rows
        own = weights[self.tasks]
        plain = bool(np.all(own == 1.0))
        part = Part(design, self.tasks, None if plain else own)
        known = None if offset is None else np.ascontiguousarray(offset[self.rows])
        self.loss = loss.on(part, np.ascontiguousarray(labels_of(loss, y[self.rows])), known)
        if not self.loss.has_slope:
            raise value_error(
                "The {label} has a kink, where it has no slope: no mixture of losses with it is solved. A smoothed one "
                "comes as near as you like.",
                label=loss.label,
            )
        #: q by task and by row; None: 1
        self.root = None if plain else np.sqrt(own)
        self.row_root = None if self.root is None else part.per_sample(self.root)
        self.steepest = float(np.max(own)) * self.loss.smoothness
        self.constant = self.loss.constant
        if loss.labels == "survival" and not plain:
            # Weights of rows stand inside logarithms, too: v F is not the F of v s, but for a constant.
            weights = np.ones(design.n_samples) if design.weights is None else design.weights
            events = part.task_sums(weights[self.rows] * y["event"][self.rows])
            self.constant -= float(np.sum(own * np.log(own) * events))
        #: rows of its nuisance, and of its thresholds, where it has any
        self.n_nuisance = len(self.loss.null.nuisance)
        thresholds = self.loss.thresholds(self.loss.null.nuisance)
        self.n_thresholds = 0 if thresholds is None else len(thresholds)

    def inward(self, flat: Array) -> Array:
        """Scores of the whole as the group has them."""
        return np.asarray(flat[self.rows] if self.row_root is None else flat[self.rows] * self.row_root)

    def inward_residual(self, flat: Array) -> Array:
        return np.asarray(flat[self.rows] if self.row_root is None else flat[self.rows] / self.row_root)

    def inward_errors(self, error: Array) -> Array:
        """Norms of what weighted scores may be off."""
        own = error[self.tasks]
        return own if self.root is None else own * self.root * (1.0 + gamma(_SCALED))


class MixedOnData(DataLoss):
    """`Mixed` on data."""

    name = "mixed"

    def __init__(
        self,
        mixed: Mixed,
        groups: list[tuple[Loss, list[int]]],
        design: Design,
        y: Array,
        offset: Array | None = None,
    ) -> None:
        super().__init__(design)
        weights = np.array(mixed.weights)
        self.of = mixed
        self._groups = [_Group(loss, tasks, weights, design, y, offset) for loss, tasks in groups]
        self.smoothness = max(group.steepest for group in self._groups)
        self.differentiable = True
        self.constant = sum(group.constant for group in self._groups)
        self.shift = self._by_task([group.loss.shift for group in self._groups])
        self.null = self._joined([group.loss.null for group in self._groups])
        known = [group.loss.has_intercept for group in self._groups]
        if any(own is not None for own in known):
            pairs = zip(self._groups, known, strict=True)
            self.has_intercept = self._by_task(
                [np.ones(len(group.tasks), dtype=bool) if own is None else own for group, own in pairs]
            )

    # -- between the whole and its groups -------------------------------------------------------------------------

    def _by_task(self, values: Sequence[Array]) -> Array:
        """One number a task, from those of the groups."""
        out = np.empty(self.design.n_tasks, dtype=np.result_type(*values))
        for group, own in zip(self._groups, values, strict=True):
            out[group.tasks] = own
        return out

    def _roots(self, values: Sequence[Array]) -> Array:
        """The same times q."""
        pairs = zip(self._groups, values, strict=True)
        return self._by_task([own if group.root is None else group.root * own for group, own in pairs])

    def _by_row(self, values: Sequence[Array | float], power: int = 0) -> Array:
        """A flat vector, from those of the groups times q to a power."""
        out = np.empty(self.design.n_samples)
        for group, own in zip(self._groups, values, strict=True):
            factor = group.row_root
            out[group.rows] = own
            if factor is not None and power:
                out[group.rows] *= factor if power == 1 else factor * factor
        return out

    def _joined(self, parts: Sequence[Evaluation]) -> MixedEvaluation:
        """The sum of what the groups have found."""
        nuisance = np.full((max(group.n_nuisance for group in self._groups), self.design.n_tasks), np.nan)
        for group, part in zip(self._groups, parts, strict=True):
            if part.nuisance.ndim == 2:
                nuisance[: group.n_nuisance, group.tasks] = part.nuisance
        bends = [1.0 if part.curvature is None else part.curvature for part in parts]
        second = None
        if any(part.second is not None for part in parts):
            pairs = zip(parts, bends, strict=True)
            second = self._by_row([bend if part.second is None else part.second for part, bend in pairs], 2)
        residual = self._by_row([part.residual for part in parts], 1)
        found = MixedEvaluation(
            sum(part.value for part in parts),
            residual,
            nuisance,
            self._by_row(bends, 2),
            slope=self._by_row([part.slope for part in parts], 1),
            second=second,
            parts=tuple(parts),
            own=residual,
        )
        lengths, leak = [part.lengths for part in parts], [part.leak for part in parts]
        if all(own is not None for own in lengths):
            found.lengths = self._roots(lengths)  # type: ignore[arg-type]
        if all(own is not None for own in leak):
            assert found.lengths is not None
            rounded = 0.0 if all(group.root is None for group in self._groups) else gamma(_SCALED)
            found.leak = self._roots(leak) + rounded * found.lengths  # type: ignore[arg-type]
            tilt = [
                np.zeros(len(g.tasks)) if p.tilt is None else p.tilt for g, p in zip(self._groups, parts, strict=True)
            ]
            found.tilt = self._by_task(tilt)
        return found

    def _split(self, at: Evaluation) -> tuple[Evaluation, ...]:
        """What the groups know of a point, with its residual as it is now."""
        assert isinstance(at, MixedEvaluation)
        if at.residual is at.own:
            return at.parts
        found = []
        for group, part in zip(self._groups, at.parts, strict=True):
            own = replace(part, residual=np.ascontiguousarray(group.inward_residual(at.residual)))
            for name in ("leak", "tilt", "lengths"):
                value = getattr(at, name)
                if value is not None:
                    value = value[group.tasks]
                    scaled = group.root is not None and name != "tilt"
                    setattr(own, name, value / group.root * (1.0 + gamma(_SCALED)) if scaled else value)
            found.append(own)
        return tuple(found)

    # -- the loss ---------------------------------------------------------------------------------------------------

    def _at(self, z: Array, start: Array | None, method: str) -> Evaluation:
        parts = []
        for group in self._groups:
            guess = None
            if start is not None and start.ndim == 2:
                guess = np.ascontiguousarray(start[: group.n_nuisance, group.tasks])
            parts.append(getattr(group.loss, method)(group.inward(z), guess))
        return self._joined(parts)

    def evaluate(self, z: Array, start: Array | None = None) -> Evaluation:
        return self._at(z, start, "evaluate")

    def sketch(self, z: Array, start: Array | None = None) -> Evaluation:
        return self._at(z, start, "sketch")

    def at_scores(self, raw: Array) -> Evaluation:
        return self._joined([group.loss.at_scores(np.ascontiguousarray(raw[group.rows])) for group in self._groups])

    def at_thresholds(self, raw: Array, thresholds: Array) -> Evaluation:
        parts = []
        for group in self._groups:
            own = np.ascontiguousarray(raw[group.rows])
            if group.n_thresholds:
                known = np.ascontiguousarray(thresholds[: group.n_thresholds, group.tasks])
                parts.append(group.loss.at_thresholds(own, known))
            else:
                parts.append(group.loss.at_scores(own))
        return self._joined(parts)

    def thresholds(self, nuisance: Array) -> Array | None:
        most = max(group.n_thresholds for group in self._groups)
        if not most:
            return None
        found = np.full((most, self.design.n_tasks), np.nan)
        for group in self._groups:
            if group.n_thresholds:
                own = np.ascontiguousarray(nuisance[: group.n_nuisance, group.tasks])
                found[: group.n_thresholds, group.tasks] = group.loss.thresholds(own)
        return found

    def settled(self, at: Evaluation) -> Evaluation:
        before = self._split(at)
        after = [group.loss.settled(part) for group, part in zip(self._groups, before, strict=True)]
        found = self._joined(after)
        if all(new.residual is old.residual for new, old in zip(after, before, strict=True)):
            found.residual = found.own = at.residual  # nothing has moved: products with it stay known
        return found

    def young(self, primal: Evaluation, error: Array, dual: Evaluation, scale: float) -> float:
        pairs = zip(self._groups, self._split(primal), self._split(dual), strict=True)
        total = sum(group.loss.young(p, group.inward_errors(error), d, scale) for group, p, d in pairs)
        return total * (1.0 + gamma(len(self._groups) + 8))

    def terms(self, at: Evaluation, scale: float) -> float:
        pairs = zip(self._groups, self._split(at), strict=True)
        return sum(group.loss.terms(part, scale) for group, part in pairs)

    def best_scale(self, at: Evaluation, product: float, limit: float) -> float:
        if len(self._groups) == 1:
            return self._groups[0].loss.best_scale(self._split(at)[0], product, limit)
        return super().best_scale(at, product, limit)

    def metric(self, at: Evaluation, scale: float, gap: float) -> Array | None:
        """That of each group, or its smoothness; None where one has neither."""
        found: list[Array | float] = []
        for group, part in zip(self._groups, self._split(at), strict=True):
            own = group.loss.metric(part, scale, gap)
            if own is None and not math.isfinite(group.loss.smoothness):
                return None
            found.append(group.loss.smoothness if own is None else own)
        return self._by_row(found, 2) * (1.0 + gamma(_SCALED))

    def ball(self, at: Evaluation, scale: float, gap: float) -> Ball | None:
        found = super().ball(at, scale, gap)
        constant = all(type(group.loss).metric is DataLoss.metric for group in self._groups)
        # the same for all rows of a task: column norms as they are say all
        return replace(found, metric=None) if constant and found is not None else found

    def sphere(self, at: Evaluation, scale: float, gap: float) -> Ball | None:
        if math.isfinite(self.smoothness):
            return super().sphere(at, scale, gap)
        known = self.metric(at, scale, self.floored_gap(gap)) is not None
        return self.ball(at, scale, gap) if known else None

    def floored_gap(self, gap: float) -> float:
        return gap + sum(group.loss.floored_gap(0.0) for group in self._groups)

    def objective_error(self, at: Evaluation, error: Array) -> float:
        pairs = zip(self._groups, self._split(at), strict=True)
        return sum(group.loss.objective_error(part, group.inward_errors(error)) for group, part in pairs)

    def second_order_error(self, at: Evaluation, error: Array) -> float:
        pairs = zip(self._groups, self._split(at), strict=True)
        return sum(group.loss.second_order_error(part, group.inward_errors(error)) for group, part in pairs)

    def label_sizes(self) -> Array:
        sizes = [group.loss.label_sizes() for group in self._groups]
        pairs = zip(self._groups, sizes, strict=True)
        slack = 1.0 + gamma(_SCALED)
        return self._by_task([own if group.root is None else own / group.root * slack for group, own in pairs])

    @property
    def size(self) -> float:
        return math.hypot(*(group.loss.size for group in self._groups))

    def least_goal(self) -> float:
        return sum(group.loss.least_goal() for group in self._groups)

    def explained(self, at: Evaluation) -> Array:
        pairs = zip(self._groups, self._split(at), strict=True)
        return self._by_task([group.loss.explained(part) for group, part in pairs])
