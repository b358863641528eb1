"""The multinomial loss: one column of W per class, the classes of a task all on the same rows."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.special import logsumexp, xlogy

from ..design import Design, Samples
from ..messages import Message, either, value_error
from .base import UNIT, DataLoss, Evaluation, Loss, gamma
from .multinomial_tasks import CONFIDENT, MultinomialTasks

Array = np.ndarray[Any, Any]

_LEAST_PROBABILITY = 1e-5  # of a class in a quadratic model


class Multinomial(Loss):
    """``sum_i s_i (log sum_k exp z_ik - <Y_i, z_i>)`` with one-hot rows Y_i; smoothness 1/2.

    Each block of the design's tasks (`Design.blocks`) is a classification of its own: its tasks are the classes.

    Conjugate at ``-u``: ``sum s <p, log p>`` with ``p = Y - u / s`` in the simplex. For ``u`` = c times the residual,
    ``p = (1 - c) Y + c softmax(z)``, and what the loss adds to the gap is ``sum s KL(p, softmax(z))``.

    Intercepts are minimised out by Newton's method; they are determined up to a common constant and sum to zero.
    """

    label = "multinomial logistic loss"
    formula = "1/n Σ_i (log Σ_k exp(x_i·w_k + b_k) − (x_i·w_y + b_y))"
    labels = "one-hot"
    probabilities = True
    alone = Message(
        "The multinomial loss has a row of coefficients for each class, other losses have one for each task: beside "
        "others a task of classes has two ('logistic'). More than two: {model}, for all tasks.",
        model=either("MultiTaskClassifier", "--model logistic"),
    )

    def with_classes(self) -> Loss:
        return self

    def certificate_form(self) -> dict[str, Any]:
        return {"name": "multinomial"}

    def deviance(self, y: Array, z: Array) -> Array:
        """``-log p(class)``, given the codes of the classes and, on the last axis, a score for each."""
        codes = np.broadcast_to(np.asarray(y, dtype=np.intp), z.shape[:-1])
        picked = np.take_along_axis(z, codes[..., None], axis=-1)[..., 0]
        return np.asarray(logsumexp(z, axis=-1) - picked)

    def on(self, design: Design, y: Array, offset: Array | None = None) -> DataLoss:
        return _MultinomialOnData(design, y, offset)


@dataclass
class ClassModel:
    """The second derivative of each row, ``diag(p) - p p'/sum(p)``: flat vectors, and a matrix for each task.

    It is ``Q (I - q q') Q`` with ``Q = diag(sqrt(p))`` and q the unit vector along ``sqrt(p)``: a quadratic model has
    the columns ``sqrt(p) x``, and residuals that stay orthogonal to q. Probabilities have a floor: without it a row
    that is all wrong would have no curvature.

    Attributes
    ----------
    classes : int array
        Where the classes of each task start among the design's tasks.
    root, shares : arrays
        ``sqrt(p)``, and q.
    levels : array
        The columns of the intercepts in the model, class by class.
    inverse : array
        Inverses of the second derivatives in the intercepts of each task, one after another.
    excess : array
        Between the diagonal and a diagonal that is above the second derivative, as a factor: 1 or ``2 (1 - p)``.
    """

    classes: Array
    root: Array
    shares: Array
    levels: Array
    inverse: Array
    excess: Array


class _MultinomialOnData(DataLoss):
    smoothness = 0.5
    of_classes = True

    @property
    def curved(self) -> bool:
        return True

    def class_model(self, at: Evaluation) -> ClassModel:
        root, shares, levels, excess = (np.empty(self.design.n_samples) for _ in range(4))
        inverse = []
        for block in self._blocks:
            own = block.samples
            *vectors, matrix = block.second(at.residual[own])
            for flat, vector in zip((root, shares, levels, excess), vectors, strict=True):
                flat[own] = vector.ravel()
            inverse.append(matrix.ravel())
        classes = np.ascontiguousarray(self.design.blocks, dtype=np.int64)
        return ClassModel(classes, root, shares, levels, np.concatenate(inverse), excess)

    def __init__(self, design: Design, y: Array, offset: Array | None = None) -> None:
        super().__init__(design)
        if design.n_nuisance > int(design.fit_intercept):
            raise value_error(
                "features that are never penalised{how} are not supported with the multinomial loss: give them a small "
                "weight",
                how=either(" (feature_weights of 0)"),
            )
        several = len(design.blocks) > 2
        weights = np.ones(design.n_samples) if design.weights is None else design.weights
        self.name = "multinomial, several tasks" if several else "multinomial"
        self._blocks = list[_Block]()
        for low, high in pairwise(design.blocks.tolist()):
            first = self._blocks[-1].rows.stop if self._blocks else 0
            self._blocks.append(_Block(design, slice(low, high), first, y, weights, offset))
        self._sizes = np.zeros(design.n_tasks)
        if offset is not None:
            self._sizes = design.task_norms(design.samples.weighted(offset))
        self._all: MultinomialTasks | None = None
        if several:
            together = MultinomialTasks(design, y, weights, offset)
            self._all = together if together.serves else None
        self.null = self.settled(self.evaluate(np.zeros(design.n_samples)))

    def label_sizes(self) -> Array:
        return self._sizes

    def sketch(self, z: Array, start: Array | None = None) -> Evaluation:
        """`evaluate` with intercepts good enough for a step of a solver, not for a certificate."""
        return self.evaluate(z, start, accuracy=1e-6)

    def evaluate(self, z: Array, start: Array | None = None, accuracy: float = 0.0) -> Evaluation:
        if start is not None and start.shape != (1, self.design.n_tasks):
            start = None
        found = None if self._all is None else self._all.evaluate(z, start, accuracy)
        if found is not None:
            return found
        if self._all is not None:
            start = None  # which led nowhere
        parts = [
            block.evaluate(z[block.samples], None if start is None else start[0, block.tasks], accuracy)
            for block in self._blocks
        ]
        return _joined(parts)

    def terms(self, at: Evaluation, scale: float) -> float:
        assert at.margin is not None
        return sum(block.terms(at.margin[block.rows], scale) for block in self._blocks)

    def at_scores(self, raw: Array) -> Evaluation:
        return _joined([block.at_scores(raw[block.samples]) for block in self._blocks])

    def settled(self, at: Evaluation) -> Evaluation:
        lengths = self.design.task_norms(at.residual)
        none = np.zeros(self.design.n_tasks)
        if not self.design.fit_intercept:
            return replace(at, leak=none, tilt=none, lengths=lengths)
        residual, leak, tilt = at.residual, none.copy(), none.copy()
        for block in self._blocks:
            found = block.tilt(at.residual[block.samples])
            if found is None:  # zero is a dual point, and the right one where intercepts explain everything
                residual = residual.copy() if residual is at.residual else residual
                residual[block.samples], lengths[block.tasks] = 0.0, 0.0
            else:
                tilt[block.tasks], leak[block.tasks] = found
        return replace(at, residual=residual, leak=leak, tilt=tilt, lengths=lengths)

    def young(self, primal: Evaluation, error: Array, dual: Evaluation, scale: float) -> float:
        assert primal.margin is not None and dual.tilt is not None
        total, away = 0.0, []
        for block in self._blocks:
            own, tilt = block.samples, float(dual.tilt[block.tasks.start])
            excess, distance = block.young(primal.margin[own], dual.residual[own], tilt, scale)
            total += excess
            away.append(distance)
        moved = float(np.linalg.norm(error))
        total += math.hypot(*away) * moved + 0.5 * self.smoothness * moved**2
        return total * (1.0 + gamma(self.design.n_samples + 32))


def _joined(parts: list[Evaluation]) -> Evaluation:
    """Blocks one after another."""
    if len(parts) == 1:
        return parts[0]
    margins = [part.margin for part in parts if part.margin is not None]
    return Evaluation(
        sum(part.value for part in parts),
        np.concatenate([part.residual for part in parts]),
        np.concatenate([part.nuisance for part in parts], axis=-1),
        margin=np.concatenate(margins),
    )


class _Block:
    """The classes of one task: Y is classes x rows, as flat vectors lie."""

    def __init__(
        self, design: Design, tasks: slice, first: int, y: Array, weights: Array, offset: Array | None
    ) -> None:
        self._classes, n = tasks.stop - tasks.start, int(design.samples.lengths[tasks.start])
        shape = (self._classes, n)
        #: its classes among the design's tasks, its part of flat vectors, and of vectors of one entry a row
        self.tasks, self.samples = tasks, slice(*design.offsets[[tasks.start, tasks.stop]].tolist())
        self.rows = slice(first, first + n)
        own = weights[self.samples]
        if np.any(design.samples.lengths[tasks] != n) or np.any(own.reshape(shape) != own[:n]):
            raise ValueError("the multinomial loss needs one matrix and one weight a row for all classes")
        self._y, self._weights = y[self.samples].reshape(shape), own[:n]
        self._root = design.samples.root[self.samples][:n]
        self._offset = None if offset is None else offset[self.samples].reshape(shape)
        self._weighted, self._fit_intercept = design.root_weights is not None, design.fit_intercept
        self._inverse_root = np.divide(1.0, self._root, out=np.zeros(n), where=self._root > 0)
        self._total = float(self._weights.sum())
        self._counts = self._y @ self._weights
        self._codes = np.argmax(self._y, axis=0)
        self._index = np.arange(n)
        self._offsets = n * np.arange(self._classes + 1, dtype=np.int64)
        self._absent = (self._counts == 0.0) if self._fit_intercept else np.zeros(self._classes, dtype=bool)
        self._live = np.flatnonzero(~self._absent)
        count = len(self._live)
        # All intercepts may move together without effect: in a Newton step that direction is made harmless.
        self._together = np.full((count, count), 1.0 / max(count, 1)) + 1e-13 * np.eye(count)
        self._buffers: tuple[Array, Array] | None = None

    def evaluate(self, z: Array, start: Array | None, accuracy: float) -> Evaluation:
        raw = z.reshape(self._classes, -1)
        if self._weighted:
            raw = raw * self._inverse_root
        if self._offset is not None:
            raw = raw + self._offset
        nuisance = np.empty((0, self._classes))
        if self._fit_intercept:
            b, e, totals, top = self._best_intercepts(raw, start, accuracy)
            nuisance = b[None, :]
            p = e / -totals
            if len(self._live) < self._classes:  # a class without rows has probability 0
                live, p = p, np.zeros_like(raw)
                p[~self._absent] = live
            own = self._picked(raw) + b[self._codes] - top
        else:
            shifted = raw - raw.max(axis=0)
            own = self._picked(shifted)
            p = np.exp(shifted, out=shifted)
            totals = p.sum(axis=0)
            p /= -totals
        own -= np.log(totals)
        value = -float(self._weights @ own)
        p[self._codes, self._index] += 1.0  # y - p
        if self._weighted:
            p *= self._root
        return Evaluation(value, p.ravel(), nuisance, margin=own)

    def _picked(self, values: Array) -> Array:
        """The entry of each row's class; 0 where the row has weight 0."""
        picked = values[self._codes, self._index]
        return np.where(self._weights > 0.0, picked, 0.0) if len(self._live) < self._classes else np.asarray(picked)

    def terms(self, own: Array, scale: float) -> float:
        """``sum s KL((1 - c) Y + c q, q)`` with q = softmax(z), given log q_own, which does not underflow: for each row
        ``c (1 - q_own) log c`` of the other classes, which keep their proportions, and ``m log(m / q_own)`` with
        ``m = 1 - c + c q_own`` of its own."""
        if scale == 1.0:
            return 0.0
        if scale <= 0.0:
            return -float(self._weights @ own)
        own_p = np.exp(own)
        mixed = (1.0 - scale) + scale * own_p
        rise = np.logaddexp(np.log(scale), np.log1p(-scale) - own)  # log(m / q_own)
        terms = mixed * rise + scale * np.log(scale) * (1.0 - own_p)
        return float(self._weights @ np.maximum(terms, 0.0))

    def at_scores(self, raw: Array) -> Evaluation:
        if self._offset is not None:
            raw = raw + self._offset.ravel()
        z = raw.reshape(self._classes, -1)
        levels = _log_sums(z)
        values = levels - self._picked(z)
        total = float(Samples.exact_cut(self._weights, values, np.array([0, len(values)]))[0])
        away = self._root * (self._y - np.exp(z - levels))
        return Evaluation(total, away.ravel(), np.empty(0), margin=raw)

    def _probabilities(self, residual: Array) -> Array:
        """Of the classes, from a residual ``q (Y - P)``: classes x rows."""
        return np.clip(self._y - residual.reshape(self._classes, -1) * self._inverse_root, 0.0, 1.0)

    def second(self, residual: Array) -> tuple[Array, Array, Array, Array, Array]:
        """`ClassModel` of this task, given the residual there: root, shares, levels, excess, inverse."""
        p = np.maximum(self._probabilities(residual), _LEAST_PROBABILITY)
        p[self._absent] = 0.0  # such a class moves nothing, and nothing moves it
        totals = p.sum(axis=0)
        root = np.sqrt(p)
        shares = root / np.sqrt(totals)
        matrix = np.zeros((self._classes, self._classes))
        if self._fit_intercept:
            weighted = p * self._weights
            hessian = np.diag(weighted.sum(axis=1) + self._absent) - (weighted / totals) @ p.T
            # what moves all intercepts together has no effect, and residuals have no part of it
            matrix = np.linalg.pinv(hessian + np.trace(hessian) / self._classes, rcond=1e-12, hermitian=True)
        # diag(p) and diag(2 p (1 - p)) are both above it: the smaller sum counts
        steep = 2.0 * (1.0 - p / totals)
        steep[:, np.einsum("ki,ki->i", p, steep) >= totals] = 1.0
        return np.maximum(root, np.sqrt(_LEAST_PROBABILITY)), shares, root * self._root, steep, matrix

    def tilt(self, residual: Array) -> tuple[float, Array] | None:
        """How far the exact dual point is from a residual, and by class what a column of length 1 sees of that.

        The exact dual point has probabilities ``P_k (1 - c_k + sum_l P_l c_l)``, each row still of sum 1.
        c solves ``H c = off``, with H the second derivative of the loss in the intercepts of all classes that have rows
        but one, and `off` how far the masses of the classes are from their counts. Columns of length 1 then see a
        change of at most ``max |P'/P - 1| sqrt(sum s P_k^2)``. None where there is no such point.
        """
        p, s = self._probabilities(residual), self._weights
        sizes = np.sqrt((p * p) @ s)
        live = np.flatnonzero(~self._absent & (p @ s > 0.0))[:-1]
        off = np.abs(Samples.exact_cut(np.tile(self._root, self._classes), residual, self._offsets))
        # Rows have the sum 1 up to a rounding for each class.
        off = off + gamma(self._classes + 16) * (p @ s + self._counts)
        tilt = 0.0
        if len(live):
            part = p[live]
            hessian = np.diag(part @ s) - (part * s) @ part.T
            sides = np.sqrt(np.maximum(np.diag(hessian), 0.0))
            tilt = np.inf
            if np.all(sides > 0.0):
                slack = gamma(8 * (p.shape[1] + 8) * len(live))
                least = float(np.linalg.eigvalsh(hessian / np.outer(sides, sides))[0]) - slack
                if least > 0.0:
                    tilt = 2.0 * float(np.linalg.norm(off[live] / sides)) / (least * float(np.min(sides)))
        if not tilt <= 0.25:
            return None
        tilt += gamma(self._classes + 16)
        return tilt, tilt * sizes

    def young(self, raw: Array, residual: Array, tilt: float, scale: float) -> tuple[float, float]:
        """``sum s KL(m, softmax(z))`` with ``m = (1 - c) Y + c P``, at most, and the norm of its derivative; see `tilt`
        for what is not known of P."""
        z, p = raw.reshape(self._classes, -1), self._probabilities(residual)
        mixed = (1.0 - scale) * self._y + scale * p
        logs = z - _log_sums(z)
        with np.errstate(divide="ignore", invalid="ignore"):
            entropy, cross = xlogy(mixed, mixed), np.where(mixed > 0.0, mixed * logs, 0.0)
            slopes = np.where((p > 0.0) & (mixed > 0.0), np.abs(np.log(mixed) - logs), 0.0)
        rounding = 16.0 * UNIT * (np.abs(entropy) + np.abs(cross) + mixed * np.max(np.abs(z), axis=0))
        rounding += 8.0 * UNIT * slopes * (p > 0.0) + 64.0 * UNIT
        rows = np.maximum((entropy - cross).sum(axis=0), 0.0) + rounding.sum(axis=0)
        rows += scale * tilt * ((p * slopes).sum(axis=0) + 2.0 * tilt)
        rows[self._weights == 0.0] = 0.0
        away = self._root * (np.abs(np.exp(logs) - mixed) + tilt * p + 16.0 * UNIT)
        return float(self._weights @ rows), float(np.linalg.norm(away))

    def _best_intercepts(
        self, raw: Array, start: Array | None, accuracy: float
    ) -> tuple[Array, Array, Array, Array]:
        """The best intercepts, and at them, for classes with rows: ``exp(z + b - top)``, its sums over them, top."""
        live, count = self._live, len(self._live)
        z = raw if count == self._classes else raw[live]
        counts, s = self._counts[live], self._weights
        b = np.log(counts) if start is None else start[live]
        b -= np.add.reduce(b) / count
        # sum_i s_i <Y_i, z_i> does not depend on b
        fixed = float(s @ self._picked(raw))

        # Fresh arrays of this size cost as much as filling them: two are kept.
        if self._buffers is None or self._buffers[0].shape != z.shape:
            self._buffers = (np.empty_like(z), np.empty_like(z))
        e, scaled = self._buffers

        np.add(z, b[:, None], out=e)
        top = e.max(axis=0)
        np.subtract(e, top, out=e)
        np.exp(e, out=e)

        def value_at(b: Array) -> tuple[float, Array]:
            """The loss at b, and the sums of ``e = exp(z + b - top)``, given that e."""
            totals = e.sum(axis=0)
            return float(s @ (np.log(totals) + top)) - fixed - float(counts @ b), totals

        value, totals = value_at(b)
        at = b
        error, near = np.inf, False
        for _ in range(100):
            share = s / totals
            masses = e @ share
            gradient = masses - counts
            before, error = error, float(np.maximum.reduce(np.abs(gradient)))
            if error <= max(1e-15 * len(s) ** 0.5, accuracy) * self._total or (near and error >= before):
                break  # done, or as near as rounding lets it come; far from the optimum gradients may grow
            np.multiply(e, share / totals, out=scaled)
            hessian = scaled @ e.T
            np.negative(hessian, out=hessian)
            diagonal = hessian.ravel()[:: count + 1]
            diagonal += masses
            size = float(np.add.reduce(diagonal)) / count
            if not size > 1e-300:
                break  # every row is classified beyond doubt: there is no curvature to go by
            hessian += size * self._together
            try:
                move = np.linalg.solve(hessian, gradient)
            except np.linalg.LinAlgError:
                break
            longest = float(np.maximum.reduce(np.abs(move)))
            negligible = float(gradient @ move) <= 1e-11 * abs(value)
            scale = min(1.0, 10.0 / longest) if longest > 0.0 else 1.0
            for _ in range(60):
                candidate = b - scale * move
                candidate -= np.add.reduce(candidate) / count
                np.multiply(e, np.exp(candidate - at)[:, None], out=e)  # no new exponentials
                at = candidate
                new_value, totals = value_at(candidate)
                # near the optimum the value is only rounding: the gradient decides
                if negligible or new_value <= value:
                    break
                scale *= 0.5
            b, value, near = candidate, new_value, negligible
        out = np.empty(self._classes)
        out[live] = b
        if count < self._classes:
            out[self._absent] = float(np.min(b)) - CONFIDENT - float(np.max(np.abs(raw), initial=0.0))
        return out, e, totals, top


def _log_sums(z: Array) -> Array:
    """``log sum_k exp(z_k)`` over the classes."""
    top = z.max(axis=0)
    return np.asarray(np.log(np.exp(z - top).sum(axis=0)) + top)
