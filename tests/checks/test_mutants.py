"""Members that are wrong on purpose: each is caught, and right ones of the same kind pass."""

from __future__ import annotations

import numpy as np
import pytest

import tasksieve as ts
from tasksieve.checks import check_estimator, check_loss, check_penalty, check_storage
from tasksieve.losses import (
    DataLoss,
    Evaluation,
    Logistic,
    Multinomial,
    Poisson,
    RowLoss,
    Squared,
    SquaredHinge,
    SquareRoot,
)
from tasksieve.losses.rowwise import RowLossOnData
from tasksieve.penalties import L21, Dirty, Groups, LInf, RowForm, RowPenalty, Sorted, SparseGroup, row_norms
from tasksieve.screening.state import Ball

# --- penalties ------------------------------------------------------------------------------------------------------


class Largest(RowPenalty):
    """``sum_j u_j max_t |W_jt|``; the prox takes its row minus the projection onto an l1 ball, by one sort."""

    label = "L1,inf"

    def value(self, rows):
        return float(self.weights @ np.abs(rows).max(axis=1, initial=0.0))

    def gauges(self, products):
        return np.abs(products).sum(axis=1) / self.weights

    def reach(self, centre, norms, radius):
        return (centre.sum(axis=1) + radius * row_norms(norms)) / self.weights

    def prox(self, rows, step):
        sizes = np.abs(rows)
        falling = -np.sort(-sizes, axis=1)
        excess = np.cumsum(falling, axis=1) - (step * self.weights)[:, None]
        counts = np.arange(1, rows.shape[1] + 1)
        levels = excess / counts
        # the cap is the largest of these means, and no cap below 0
        cap = np.maximum(levels.max(axis=1, initial=0.0), 0.0)
        return np.sign(rows) * np.minimum(sizes, cap[:, None])

    @property
    def euclid(self):
        return None


class EuclideanGauge(Largest):
    def gauges(self, products):
        return row_norms(products) / self.weights


class ReachOfLargestNorm(Largest):
    def reach(self, centre, norms, radius):
        return (centre.sum(axis=1) + radius * norms.max(axis=1)) / self.weights


class HalfStep(Largest):
    def prox(self, rows, step):
        return super().prox(rows, 0.5 * step)


class EuclidOne(Largest):
    """Claims that gauges are at most Euclidean norms: a factor sqrt(T) is missing."""

    @property
    def euclid(self):
        return 1.0 / self.weights


class GaugeBelow(LInf):
    """Every gauge a tenth too small."""

    def gauges(self, products):
        return 0.9 * super().gauges(products)


class GaugeAbove(LInf):
    def gauges(self, products):
        return 1.1 * super().gauges(products)


class DirtyGaugeBelow(Dirty):
    def gauges(self, products):
        return 0.9 * super().gauges(products)


class DirtyGaugeAbove(Dirty):
    def gauges(self, products):
        return 1.1 * super().gauges(products)


class DirtyGaugeOfTheSmaller(Dirty):
    def gauges(self, products):
        largest = np.abs(products).max(axis=1)
        return np.minimum(row_norms(products) / self._g, largest / self._l) / self.weights


class DirtyReachOfNorms(Dirty):
    """The bound of single entries is missing."""

    def reach(self, centre, norms, radius):
        return (row_norms(centre) + radius * norms.max(axis=1)) / (self._g * self.weights)


class DirtyProxInTurn(Dirty):
    """One threshold after the other, as for a sum of norms."""

    def prox(self, rows, step):
        return SparseGroup(self._l, self._g).on(self.weights, rows.shape[1]).prox(rows, step)


class DirtyEntriesOfSharedRows(Dirty):
    """An entry without a part of its own called zero, though its row may have a shared part."""

    def zero_entries(self, centre, errors, norms, radius):
        return np.abs(centre) + radius * norms + errors[:, None] < self._l * self.weights[:, None]


class WrongRowForm(LInf):
    """Row updates of another norm."""

    def row_form(self):
        return RowForm("sum", self.weights, np.zeros_like(self.weights))


class PartsThatDoNotAddUp(Dirty):
    def split(self, rows):
        return {"shared": rows, "specific": rows}


class GroupGaugeBelow(Groups):
    def gauges(self, products):
        return 0.9 * super().gauges(products)


class GroupGaugeAbove(Groups):
    def gauges(self, products):
        return 1.1 * super().gauges(products)


class GaugesOfRows(Groups):
    """Each row by itself, though its group has one norm."""

    def gauges(self, products):
        return row_norms(products) / self.weights


class GroupReachOfRows(Groups):
    """As far as the longest row moves, not all of them."""

    def reach(self, centre, norms, radius):
        return self.gauges(centre) + radius * norms.max(axis=1) / self.weights


class GroupProxOfGroupsFirst(Groups):
    """Leaves last."""

    def prox(self, rows, step):
        shrunk = Groups(self.labels, weights=self.group_weights)
        outer = shrunk.on(np.ones(len(rows)), rows.shape[1]).prox(rows, 0.5 * step)
        level = 0.5 * step * self.weights[:, None]
        return outer - np.clip(outer, -level, level)


class BlocksOfHalfTheStrength(Groups):
    """Compiled updates of a weaker penalty: each of the other methods is right."""

    def block_form(self):
        form = super().block_form()
        return form._replace(group=0.5 * form.group)


class RowsCalledZero(Groups):
    """Rows inside a group called zero below twice their threshold."""

    def zero_entries(self, centre, errors, norms, radius):
        return super().zero_entries(0.5 * centre, 0.5 * errors, norms, 0.5 * radius)


class WithoutErrors(L21):
    def row_reach(self, centre, errors, norms, radius):
        return super().row_reach(centre, 0.0, norms, radius)


class SmallestNorm(L21):
    def reach(self, centre, norms, radius):
        return (row_norms(centre) + radius * norms.min(axis=1)) / self.weights


class ValueWithoutEntries(SparseGroup):
    def value(self, rows):
        return float(self.group @ row_norms(rows))


class WrongThresholds(SparseGroup):
    def thresholds(self):
        return self.group + self.l1, None


class EveryEntryZero(SparseGroup):
    """Single coefficients called zero for half of their threshold too much."""

    def zero_entries(self, centre, errors, norms, radius):
        return np.abs(centre) + radius * norms < 1.5 * self.l1[:, None]


class NotSorted(Sorted):
    """The prox shrinks every row by its own weight and does not keep the norms in order."""

    def prox(self, rows, step):
        sizes = row_norms(rows)
        rank = np.empty(len(sizes), dtype=int)
        rank[np.argsort(-sizes)] = np.arange(len(sizes))
        shrunk = np.maximum(sizes - step * self.weights[rank], 0.0)
        return rows * np.divide(shrunk, sizes, out=np.zeros_like(sizes), where=sizes > 0)[:, None]


class PolarOfLargest(Sorted):
    """Feasibility judged row by row."""

    def polar(self, gauges):
        return float(np.max(gauges, initial=0.0))


class NotPositive(L21):
    def proximal(self, rows, step):
        return self.without_positivity().prox(rows, step) / (1.0 + step * self.ridge)

    def without_positivity(self):
        plain = self.restrict(np.arange(len(self.weights)))
        plain.positive = False
        return plain


class ForgetsStrength(L21):
    def times(self, factor):
        return self


class WritesInPlace(L21):
    def prox(self, rows, step):
        rows *= 0.5
        return rows


PENALTIES = [
    (EuclideanGauge(), "P3|P4"),
    (ReachOfLargestNorm(), "P6"),
    (HalfStep(), "P4|P5"),
    (EuclidOne(), "P7"),
    (WithoutErrors(), "P6"),
    (SmallestNorm(), "P6"),
    (ValueWithoutEntries(0.3), "P3|P4|P5"),
    (WrongThresholds(0.3), "P7"),
    (EveryEntryZero(0.5), "P7"),
    (NotSorted(), "P4|P5|P6"),
    (PolarOfLargest(), "P3|P4"),
    (NotPositive(), "P4|P5"),
    (ForgetsStrength(), "P8"),
    (WritesInPlace(), "P0"),
    (GaugeBelow(), "P3"),
    (GaugeAbove(), "P4"),
    (DirtyGaugeBelow(), "P3"),
    (DirtyGaugeAbove(), "P4"),
    (DirtyGaugeOfTheSmaller(), "P3|P4"),
    (DirtyReachOfNorms(), "P6"),
    (DirtyProxInTurn(), "P4|P5"),
    (DirtyEntriesOfSharedRows(), "P7"),
    (WrongRowForm(), "P7"),
    (PartsThatDoNotAddUp(), "P7"),
    (GroupGaugeBelow([0, 1, 0, 1, 2]), "P3"),
    (GroupGaugeAbove([0, 1, 0, 1, 2], "rows"), "P4"),
    (GaugesOfRows([0, 1, 0, 1, 2]), "P3|P4"),
    (GroupReachOfRows([0, 0, 0, 1, 1]), "P6"),
    (GroupProxOfGroupsFirst([0, 0, 0, 1, 1], "entries"), "P4|P5|P8"),
    (RowsCalledZero([0, 0, 0, 1, 1], "rows"), "P7"),
    (BlocksOfHalfTheStrength([0, 0, 0, 1, 1, 2]), "P9"),
]


@pytest.mark.parametrize(("penalty", "names"), PENALTIES, ids=lambda value: type(value).__name__)
def test_wrong_penalties_are_caught(penalty, names):
    with pytest.raises(AssertionError, match=rf"^({names}): "):
        check_penalty(penalty)


def test_a_right_penalty_of_ones_own_passes():
    check_penalty(Largest)
    check_penalty(Largest(), seed=1)


def test_a_penalty_that_says_too_little():
    class Silent(RowPenalty):
        def value(self, rows):
            return 0.0

    with pytest.raises(ValueError, match="does not define `gauges`"):
        check_penalty(Silent)


# --- losses ---------------------------------------------------------------------------------------------------------


class Huber(RowLoss):
    """Half the square of the residual up to k, linear beyond."""

    label = "Huber"
    smoothness = 1.0

    def __init__(self, k=1.0):
        self.k = k

    def value(self, y, z):
        r = np.abs(y - z)
        return np.where(r <= self.k, 0.5 * r * r, self.k * r - 0.5 * self.k**2)

    def slope(self, y, z):
        return np.clip(y - z, -self.k, self.k)

    def conjugate(self, y, p):
        return 0.5 * p * p - p * y

    def domain(self, y):
        return -self.k, self.k

    def curvature(self, y, z):
        return (np.abs(y - z) <= self.k).astype(float)


class WithoutDomain(Huber):
    def domain(self, y):
        return -np.inf, np.inf


class OneSidedDomain(Huber):
    def domain(self, y):
        return 0.0, self.k


class WrongConjugate(Huber):
    def conjugate(self, y, p):
        return 0.5 * p * p


class Quantile(RowLoss):
    """The pinball of level q, rounded over mu: p = clip((y - z)/mu, q - 1, q)."""

    label = "quantile"

    def __init__(self, q=0.7, mu=0.5):
        self.q, self.mu = q, mu

    @property
    def smoothness(self):
        return 1.0 / self.mu

    def slope(self, y, z):
        return np.clip((y - z) / self.mu, self.q - 1.0, self.q)

    def value(self, y, z):
        p = self.slope(y, z)
        return p * (y - z) - 0.5 * self.mu * p * p

    def conjugate(self, y, p):
        return 0.5 * self.mu * p * p - p * y

    def domain(self, y):
        return self.q - 1.0, self.q

    def curvature(self, y, z):
        r = (y - z) / self.mu
        return np.where((r > self.q - 1.0) & (r < self.q), 1.0 / self.mu, 0.0)


class WrongWidth(Quantile):
    @property
    def smoothness(self):
        return self.mu


class TooSmooth(Logistic):
    smoothness = 0.2


class WrongSign(SquaredHinge):
    def slope(self, y, z):
        return -super().slope(y, z)


class NoCurvature(Logistic):
    def curvature(self, y, z):
        return 0.5 * super().curvature(y, z)


class MissingTerm(Logistic):
    """The conjugate forgets the other class."""

    def conjugate(self, y, p):
        q = y * p
        return q * np.log(np.where(q > 0, q, 1.0))


class OnDataOf(Logistic):
    """A logistic loss whose form on data is another."""

    kind: type[DataLoss]

    def on(self, design, y):
        return self.kind(self, design, y)


class InterceptAsItIs(OnDataOf):
    class kind(RowLossOnData):
        def _best_nuisance(self, raw, start):
            return np.zeros_like(raw)

        def _repaired(self, p):
            return p


class InterceptOfLeastSquares(OnDataOf):
    class kind(RowLossOnData):
        def _best_nuisance(self, raw, start):
            return self._y - self.design.project(self._y * self._root) * self._inverse_root


class BeyondTheDomain(Huber):
    def on(self, design, y):
        class kind(RowLossOnData):
            def best_scale(self, at, product, limit):
                return min(limit, 5.0)

        return kind(self, design, y)


class BeyondTheLimit(OnDataOf):
    class kind(RowLossOnData):
        def best_scale(self, at, product, limit):
            return 1.0


class SmallTerms(OnDataOf):
    class kind(RowLossOnData):
        def terms(self, at, scale):
            return 0.5 * super().terms(at, scale)


class LargeTerms(Multinomial):
    def on(self, design, y):
        found = super().on(design, y)
        terms = found.terms
        found.terms = lambda at, scale: 2.0 * terms(at, scale)
        return found


class SmallBall(OnDataOf):
    class kind(RowLossOnData):
        def ball(self, at, scale, gap):
            ball = super().ball(at, scale, gap)
            return Ball(0.8 * ball.radius, residual_coef=ball.residual_coef)


class SmallEllipsoid(SquareRoot):
    def on(self, design, y):
        found = super().on(design, y)
        whole = found.ball

        def ball(at, scale, gap):
            true = whole(at, scale, gap)
            if true is None:
                return None
            return Ball(0.5 * true.radius, vector=true.vector, stretch=true.stretch, slack=true.slack)

        found.ball = ball
        return found


class SharpMultinomial(Multinomial):
    def on(self, design, y):
        found = super().on(design, y)
        found.smoothness = 0.25
        return found


class WithoutMean(Poisson):
    """The conjugate without -M."""

    def conjugate(self, y, p):
        mean = np.maximum(y - p, 0.0)
        return super().conjugate(y, p) + mean - y


class Reversed(Poisson):
    """The divergence the other way round."""

    def excess(self, y, z, p):
        mean, rate = np.maximum(y - p, 1e-300), np.exp(z)
        found = rate * np.log(rate / mean) - rate + mean
        return found, np.abs(found)


class SmallRates(Poisson):
    """An ellipsoid whose axes are too short."""

    def on(self, design, y):
        found = super().on(design, y)
        whole = found.ball

        def ball(at, scale, gap):
            true = whole(at, scale, gap)
            return Ball(true.radius, vector=true.vector, stretch=0.8 * true.stretch)

        found.ball = ball
        return found


class ShortMetric(Poisson):
    """A row metric of less than half of what it has to be."""

    def on(self, design, y):
        found = super().on(design, y)
        whole = found.metric
        found.metric = lambda at, scale, gap: 0.4 * whole(at, scale, gap)
        return found


class StillMetric(Poisson):
    """Row by row the fitted means, however large the gap."""

    def on(self, design, y):
        found = super().on(design, y)
        whole = found.metric
        found.metric = lambda at, scale, gap: whole(at, scale, 0.0)
        return found


class BeyondTheBox(ts.losses.Huber):
    """Slopes scaled out of their box."""

    def on(self, design, y):
        found = super().on(design, y)
        found._room = lambda at, p: np.inf
        return found


class CornersForgotten(ts.losses.Quantile):
    """Outliers that cost nothing in the gap."""

    def excess(self, y, z, p):
        _, sizes = super().excess(y, z, p)
        away = self.slope(y, z) - p
        return 0.5 * self.mu * away * away, sizes


class SharpQuantile(ts.losses.Quantile):
    """Smoothness mu in place of 1/mu."""

    smoothness = 0.1


class OneSidedIntercept(ts.losses.SquaredHinge):
    """Intercepts that are not the best ones."""

    def intercepts(self, y, z, weights, design, guess):
        return super().intercepts(y, z, weights, design, guess) + 0.05


class OtherValue(Squared):
    """`value_at` without the factor 1/2."""

    def on(self, design, y):
        found = super().on(design, y)
        value_at = found.value_at
        found.value_at = lambda raw: 2.0 * value_at(raw)
        return found


class NotMinimised(Squared):
    """Labels are not freed of what intercepts explain."""

    def on(self, design, y):
        found = super().on(design, y)
        root = np.ones(design.n_samples) if design.root_weights is None else design.root_weights
        found.target = root * y
        found.null = Evaluation(0.5 * float(found.target @ found.target), found.target, found.null.nuisance)
        return found


class ForgetfulOfOffsets(Logistic):
    def on(self, design, y, offset=None):
        return super().on(design, y)


class OffsetTheOtherWay(Squared):
    def on(self, design, y, offset=None):
        return super().on(design, y, None if offset is None else -offset)


LOSSES = [
    (ForgetfulOfOffsets(), "L4|L9"),
    (OffsetTheOtherWay(), "L9"),
    (WithoutDomain(), "L3"),
    (OneSidedDomain(), "L2"),
    (WrongConjugate(), "L2"),
    (WrongWidth(), "L5"),
    (TooSmooth(), "L5"),
    (WrongSign(), "L1"),
    (NoCurvature(), "L5"),
    (MissingTerm(), "L2"),
    (InterceptAsItIs(), "L6"),
    (InterceptOfLeastSquares(), "L1|L6"),
    (BeyondTheDomain(), "L7"),
    (BeyondTheLimit(), "L7"),
    (SmallTerms(), "L4"),
    (LargeTerms(), "L4"),
    (SmallBall(), "L8"),
    (SmallEllipsoid(), "L8"),
    (SharpMultinomial(), "L5"),
    (WithoutMean(), "L2"),
    (Reversed(), "L4"),
    (SmallRates(), "L8"),
    (ShortMetric(), "L8"),
    (StillMetric(), "L8"),
    (BeyondTheBox(), "L7"),
    (CornersForgotten(), "L4"),
    (SharpQuantile(), "L5"),
    (OneSidedIntercept(), "L1|L4|L6"),
    (OtherValue(), "L6"),
    (NotMinimised(), "L0|L6"),
]


@pytest.mark.parametrize(("loss", "names"), LOSSES, ids=lambda value: type(value).__name__)
def test_wrong_losses_are_caught(loss, names):
    with pytest.raises(AssertionError, match=rf"^({names}): "):
        check_loss(loss)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("loss", [Huber(), Huber(0.2), Quantile(), Quantile(0.5, 0.1)], ids=lambda loss: loss.label)
def test_right_losses_of_ones_own_pass(loss):
    check_loss(loss)


# --- storages -------------------------------------------------------------------------------------------------------


class Own(ts.Storage):
    """Right in every way."""

    def __init__(self, x):
        self.x = x
        self.n_rows, self.n_features = x.shape

    def take(self, features):
        return self.x[:, features]


class OtherColumns(Own):
    """Columns in sorted order, whatever was asked for."""

    def take(self, features):
        return self.x[:, np.sort(features)]


class ForgetsSegments(Own):
    def products(self, vectors, features=None, squares=False):
        found = super().products(vectors, features, squares)
        return np.repeat(found.sum(axis=2, keepdims=True), found.shape[2], axis=2)


class ForgetsSquares(Own):
    def products(self, vectors, features=None, squares=False):
        return super().products(vectors, features, False)


class NoSecondVector(Own):
    def products(self, vectors, features=None, squares=False):
        found = super().products(vectors, features, squares)
        found[1:] = found[:1]
        return found


class SinglePrecision(Own):
    """Adds up in float32."""

    def products(self, vectors, features=None, squares=False):
        return super().products(vectors, features, squares).astype(np.float32)


STORAGES = [
    (OtherColumns, "S1|S3"),
    (ForgetsSegments, "S1"),
    (ForgetsSquares, "S1"),
    (NoSecondVector, "S1|S2"),
    (SinglePrecision, "S1"),
]


@pytest.mark.parametrize(("make", "names"), STORAGES, ids=lambda value: getattr(value, "__name__", ""))
def test_wrong_storages_are_caught(make, names):
    with pytest.raises(AssertionError, match=rf"^({names}): "):
        check_storage(make)


def test_a_right_storage_of_ones_own_passes():
    check_storage(Own)


class Computed(ts.Storage):
    """Products of columns with their neighbours, made when they are asked for."""

    def __init__(self, x):
        self.x = x
        self.n_rows, self.n_features = len(x), x.shape[1] - 1

    def take(self, features):
        return self.x[:, features] * self.x[:, features + 1]


def test_columns_that_are_computed():
    x = np.random.default_rng(0).standard_normal((17, 5))
    check_storage(Computed(x), x[:, :-1] * x[:, 1:])
    check_storage(Computed(x), dense=(x[:, :-1] * x[:, 1:]).tolist())
    with pytest.raises(AssertionError, match=r"^S1: "):
        check_storage(Computed(x), x[:, :-1] * x[:, 1:] + 1e-9)
    with pytest.raises(AssertionError, match=r"^S0: "):
        check_storage(Computed(x), x)
    with pytest.raises(ValueError, match="a storage and its matrix"):
        check_storage(Computed(x))


# --- estimators -----------------------------------------------------------------------------------------------------


class GapOfZero(ts.MultiTaskLasso):
    def fit(self, X, y, *, task=None, sample_weight=None):
        super().fit(X, y, task=task, sample_weight=sample_weight)
        self.dual_gap_ = 0.0
        return self


class SortsItsRows(ts.MultiTaskLasso):
    def fit(self, X, y, *, task=None, sample_weight=None):
        X.sort(axis=0)
        return super().fit(X, y, task=task, sample_weight=sample_weight)


class ReturnsNothing(ts.MultiTaskLasso):
    def fit(self, X, y, *, task=None, sample_weight=None):
        super().fit(X, y, task=task, sample_weight=sample_weight)


class IgnoresWeights(ts.MultiTaskLasso):
    def fit(self, X, y, *, task=None, sample_weight=None):
        return super().fit(X, y, task=task)


class ForgetsOffsets(ts.MultiTaskLasso):
    def fit(self, X, y, *, task=None, sample_weight=None, offset=None):
        return super().fit(X, y, task=task, sample_weight=sample_weight)


class OffsetIsOptional(ts.MultiTaskLasso):
    def predict(self, X, *, task=None, offset=0.0):
        return super().predict(X, task=task, offset=offset)


class FirstTaskForAll(ts.MultiTaskLasso):
    def predict(self, X, *, task=None):
        return super().predict(X, task=None if task is None else np.zeros(len(task), dtype=int))


ESTIMATORS = [
    (GapOfZero(0.1), "gap"),
    (SortsItsRows(0.1), "fit"),
    (ReturnsNothing(0.1), "fit"),
    (IgnoresWeights(0.1), "zero_weights|bad_input"),
    (ForgetsOffsets(0.1), "offset"),
    (OffsetIsOptional(0.1), "offset"),
    (FirstTaskForAll(0.1), "tasks"),
]


@pytest.mark.parametrize(("estimator", "names"), ESTIMATORS, ids=lambda value: type(value).__name__)
def test_wrong_estimators_are_caught(estimator, names):
    with pytest.raises(AssertionError, match=rf"^({names}): "):
        check_estimator(estimator, quick=True)


def test_messages_tell_numbers():
    with pytest.raises(AssertionError) as told:
        check_penalty(HalfStep)
    text = str(told.value)
    assert text.startswith("P4: ")
    assert "polar = " in text
    assert "weights = " in text
