"""The properties of a penalty without which a certificate proves nothing.

C stands for correlations, W for coefficients, both (features, tasks); `polar` is the smallest v with C/v in the dual
ball. Each function checks one property on one random case.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..docstrings import described_by
from ..members import note_passed
from ..penalties import RowPenalty, as_penalty
from .claims import FAILURE, SEED, at_most, claim, close, unchanged
from .penalty_capabilities import p7_euclid, p7_features, p7_row_form, p7_split, p7_steepest
from .penalty_cases import Case, bind, cases, ranges
from .small_fit import fit_penalty

Array = np.ndarray[Any, Any]


@described_by(SEED, raises=FAILURE)
def check_penalty(
    penalty: RowPenalty | type[RowPenalty] | str, *, n_features: int | None = None, draws: int = 30, seed: int = 0
) -> None:
    """Check that a penalty is what its certificates need it to be.

    Random rows are tried with one to five tasks, with and without positivity and a ridge. What is checked:

    - P0: shapes and types; arguments are left alone; rows without weight are not penalised;
    - P1: value and polar are norms: they scale with their argument, keep its sign out, obey the triangle inequality;
    - P2: gauges do not fall when entries grow;
    - P3: ``<C, W> <= value(W) polar(C)``;
    - P4: some W attains that;
    - P5: prox is optimal;
    - P6: no point of a ball has a larger gauge than `reach` says, and no row called inactive is active;
    - P7: what the penalty claims beside its four methods (`euclid`, `outer`, `thresholds`, `steepest`,
      `zero_entries`, `leading`, `open`, `row_form`, `split`) is true;
    - P8: rows that are dropped do not raise the value; `restrict`, `at` and `times` mean what they say;
    - P9: a small fit with the squared loss has the answer of plain proximal gradient, and its gap is a bound.

    Parameters
    ----------
    penalty : RowPenalty
        An instance, without data, a class whose constructor needs no arguments, or a name.
    n_features : int, optional
        For a penalty that fits one number of features only and does not say it (`RowPenalty.size`).
    draws : int, default=30
        Random cases.

    Examples
    --------
    >>> import tasksieve as ts
    >>> ts.checks.check_penalty(ts.penalties.L21)
    >>> class Half(ts.penalties.L21):
    ...     def prox(self, rows, step):
    ...         return super().prox(rows, step / 2)
    >>> ts.checks.check_penalty(Half)
    Traceback (most recent call last):
        ...
    AssertionError: P4: ...
    """
    made = as_penalty(penalty)
    size = made.size() if n_features is None else n_features
    for case in cases(made, draws, size, seed):
        for check in CHECKS:
            check(case)
    fit_penalty(made, size, seed)
    note_passed(made)


def p0_shapes(case: Case) -> None:
    """Shapes, types, arguments left alone; empty and zero rows."""
    penalty, (d, tasks) = case.penalty, case.rows.shape
    rows, products = case.rows.copy(), case.products.copy()
    centre, norms = np.abs(products), np.ones((d, tasks))
    with unchanged("P0", "value", rows=rows):
        value = penalty.value(rows)
    claim(np.ndim(value) == 0 and np.isfinite(value), "P0: `value` must return one finite number.", value=value)
    with unchanged("P0", "gauges", products=products):
        gauges = penalty.gauges(products)
    with unchanged("P0", "prox", rows=products):
        near = penalty.prox(products, 0.5)
    with unchanged("P0", "reach", centre=centre, norms=norms):
        upper = penalty.reach(centre, norms, 0.5)
    for name, found, shape in (("gauges", gauges, (d,)), ("reach", upper, (d,)), ("prox", near, (d, tasks))):
        words = f"P0: `{name}` must return a float64 array of shape {shape} for {d} rows and {tasks} tasks."
        made = isinstance(found, np.ndarray) and found.shape == shape and found.dtype == np.float64
        claim(made, words, found=found)
        case.claim(np.isfinite(found).all(), f"P0: `{name}` must be finite for finite rows.", found=found)
    case.claim(np.all(gauges >= 0.0), "P0: gauges must not be negative.", gauges=gauges)
    other = np.asfortranarray(products)
    words = "P0: the order of an array in memory (C or Fortran) must not matter to `gauges` and `prox`."
    claim(close(penalty.gauges(other), gauges) and close(penalty.prox(other, 0.5), near), words)
    zero = np.zeros((d, tasks))
    claim(penalty.value(zero) == 0.0, "P0: the value of zero must be 0.", value=penalty.value(zero))
    claim(not penalty.gauges(zero).any(), "P0: the gauges of zero must be 0.", gauges=penalty.gauges(zero))
    claim(not penalty.prox(zero, 1.0).any(), "P0: the prox of zero must be 0.", prox=penalty.prox(zero, 1.0))
    nothing = penalty.restrict(np.empty(0, dtype=np.int64))
    empty = np.empty((0, tasks))
    words = "P0: a penalty restricted to no features must have value 0, no gauges, and polar 0."
    free = nothing.value(empty) == 0.0 and nothing.polar(np.empty(0)) == 0.0
    claim(free and nothing.row_gauges(empty).shape == (0,), words)


def p0_unpenalised(case: Case) -> None:
    """A feature of weight 0 is free."""
    if not case.penalty.separable:
        return
    weights = case.weights.copy()
    weights[case.penalty.whole(np.array([len(weights) - 1]))] = 0.0
    penalty = case.free.on(weights, case.rows.shape[1], positive=case.penalty.positive)
    alone = np.zeros_like(case.rows)
    alone[-1] = 1.0
    words = "P0: a feature of weight 0 is not penalised: "
    value = penalty.value(alone)
    claim(not penalty.penalised[-1] and value == 0.0, words + "a row of W there must have value 0.", value=value)
    gauges = penalty.row_gauges(case.products)
    upper = penalty.row_reach(case.products, 0.1, np.ones_like(case.products), 0.5)
    words += "`row_gauges` and `row_reach` must be 0 there and finite elsewhere."
    for found in (gauges, upper):
        claim(found[-1] == 0.0 and np.isfinite(found).all(), words, gauges=gauges, reach=upper)


def p1_norms(case: Case) -> None:
    """Homogeneous, blind to signs, subadditive."""
    penalty, rng = case.penalty, case.rng
    k = float(rng.uniform(0.1, 5.0))
    value, polar = penalty.value(case.rows), case.polar(case.products)
    longer = penalty.value((k if penalty.signed else -k) * case.rows)
    words = "P1: value(-k W) must be k value(W): a norm scales with its argument and does not see signs."
    case.claim(close(longer, k * value), words, k=k, value=value, scaled=longer)
    # with W >= 0 gauges are evaluated at positive parts only
    products = np.maximum(case.products, 0.0) if penalty.positive else case.products
    gauges, scaled = penalty.gauges(products), penalty.gauges((k if penalty.positive else -k) * products)
    words = "P1: gauges(-k C) must be k gauges(C), and the polar alike."
    alike = close(scaled, k * gauges) and close(case.polar(k * case.products), k * polar)
    case.claim(alike, words, k=k, gauges=gauges, scaled=scaled)
    other, move = rng.standard_normal((2, *case.rows.shape))
    together, apart = penalty.value(case.rows + other), value + penalty.value(other)
    words = "P1: value(V + W) must be at most value(V) + value(W)."
    case.claim(at_most(together, apart), words, sum_of_values=apart, value_of_sum=together)
    together, apart = case.polar(case.products + move), polar + case.polar(move)
    words = "P1: polar(C + D) must be at most polar(C) + polar(D)."
    case.claim(at_most(together, apart), words, sum_of_polars=apart, polar_of_sum=together)


def p2_monotone(case: Case) -> None:
    """Smaller entries, smaller gauges."""
    shrunk = case.products * case.rng.uniform(0.0, 1.0, case.products.shape)
    before, after = case.penalty.row_gauges(case.products), case.penalty.row_gauges(shrunk)
    words = "P2: gauges must not grow when entries of C shrink: bounds rely on it."
    case.claim(at_most(after, before), words, gauges=before, of_shrunk=after)
    polar, smaller = case.polar(case.products), case.polar(shrunk)
    case.claim(at_most(smaller, polar), words, polar=polar, of_shrunk=smaller)
    shrunk = case.rows * case.rng.uniform(0.0, 1.0, case.rows.shape)
    value, smaller = case.penalty.value(case.rows), case.penalty.value(shrunk)
    words = "P2: the value must not grow when entries of W shrink."
    case.claim(at_most(smaller, value), words, value=value, of_shrunk=smaller)


def p3_fenchel(case: Case) -> None:
    """``<C, W> <= value(W) polar(C)``, together and (where rows are apart) row by row."""
    penalty, products = case.penalty, case.products
    for rows in (case.rows, np.abs(case.rows) * np.where(products >= 0.0, 1.0, -1.0), np.sign(products), products):
        rows = np.maximum(rows, 0.0) if penalty.positive else rows
        inner, bound = float(np.vdot(products, rows)), penalty.value(rows) * case.polar(products)
        words = (
            "P3: <C, W> must be at most value(W) polar(C): the gauges are too small (or the value is), and dual points "
            "would be taken for feasible that are not."
        )
        case.claim(at_most(inner, bound, 1e-9), words, inner_product=inner, bound=bound)
        if penalty.separable:
            values = np.array([penalty.restrict(own).value(rows[own]) for own in case.blocks])
            inners = np.array([np.vdot(products[own], rows[own]) for own in case.blocks])
            bounds = penalty.row_gauges(products)[[own[0] for own in case.blocks]] * values
            words = (
                "P3: <C_j, W_j> must be at most value(W_j) gauge(C_j) in every row (or block of rows): the gauges are "
                "too small (or the value is)."
            )
            case.claim(at_most(inners, bounds, 1e-9), words, inner_products=inners, bounds=bounds)


def p4_attained(case: Case) -> None:
    """The polar is no larger than it must be: the prox leaves zero right there."""
    penalty, products = case.penalty.without_ridge(), case.products
    polar = case.polar(products)
    if polar == 0.0:
        return
    near = penalty.proximal(products / (0.999 * polar), 1.0)
    words = (
        "P4: prox must leave zero where the polar exceeds the step: prox(C/(0.999 polar), 1) is 0. The gauges are too "
        "large, or the prox shrinks too much."
    )
    case.claim(near.any(), words, polar=polar)
    reached = float(np.vdot(products, near)) / penalty.value(near)
    words = (
        "P4: some W must attain <C, W> = value(W) polar(C), and the first that prox lets in nearly does: it does not. "
        "Gauges, value and prox do not belong together."
    )
    case.claim(abs(reached / polar - 1.0) <= 2e-3, words, polar=polar, attained=reached)
    still = penalty.proximal(products / (polar * (1.0 + 1e-8)), 1.0)
    words = (
        "P4: prox must be zero where the polar is below the step: prox(C/((1 + 1e-8) polar), 1) is not 0. The gauges "
        "are too small, or the prox shrinks too little."
    )
    case.claim(not still.any(), words, polar=polar, prox=still)
    if penalty.separable:
        gauges = penalty.row_gauges(products)
        steps = np.where(gauges > 0.0, gauges, 1.0)[:, None]
        near = penalty.proximal(products / (0.999 * steps), 1.0)
        live = np.array([near[own].any() for own in case.blocks])
        gauges = gauges[[own[0] for own in case.blocks]]
        words = "P4: in every row prox must leave zero where the gauge exceeds the step."
        case.claim(np.array_equal(live, gauges > 0.0), words, gauges=gauges, rows_not_zero=live)


def p5_prox(case: Case) -> None:
    """Optimality of the prox, with positivity and ridge."""
    penalty, products = case.penalty, case.products
    for step in (0.05, float(case.rng.uniform(0.2, 2.0))):
        near = penalty.proximal(products, step)
        dual = (products - near) / step - penalty.ridge * near
        polar = case.polar(dual)
        words = "P5: with W >= 0 the prox must not be negative."
        case.claim(not penalty.positive or np.all(near >= 0.0), words, prox=near)
        words = "P5: what prox takes away must lie in the dual ball: polar((V - prox(V, s))/s) must be at most 1."
        case.claim(polar <= 1.0 + 1e-9, words, polar=polar, step=step)
        inner, value = float(np.vdot(dual, near)), penalty.value(near)
        words = "P5: prox is not optimal: <(V - p)/s, p> must equal value(p) for p = prox(V, s)."
        same = abs(inner - value) <= 1e-9 * (1.0 + value)
        case.claim(same, words, inner_product=inner, value=value, step=step)


def p6_reach(case: Case) -> None:
    """No point of a ball, errors included, has a larger gauge than said, least of all near the threshold."""
    penalty, rng = case.penalty, case.rng
    for where in ranges(case):
        worst, points = where.worst(penalty, rng, case.first)
        upper = penalty.row_reach(where.centre, where.errors, where.norms, where.radius)
        # below 1 a bound says no more than that it is below 1, where rows are apart
        meant = np.maximum(upper, 1.0) if penalty.separable else upper
        words = (
            "P6: a point of the ball {centre + norms v, ||v|| <= radius} (errors included) has a larger gauge than "
            "`reach` allows: features would be rejected that matter."
        )
        case.claim(at_most(worst, meant, 1e-9), words, gauges_found=worst, reach=upper, **vars(where))
        if not np.all(worst > 0.0):
            continue
        # strengths at which the worst point found lies just outside: such a row must not be called inside
        just = 1.0 - 1e-6
        if penalty.separable:
            tight = bind(case.free, case.weights * worst * just, case.rows.shape[1], positive=penalty.positive)
        else:
            tight = penalty.at(float(worst.max()) * just)
        upper = tight.row_reach(where.centre, where.errors, where.norms, where.radius)
        over = tight.row_gauges(points) > 1.0
        words += " The strengths are such that its gauge is just above 1, and `reach` is below 1."
        case.claim(not np.any(over & (upper < 1.0)), words, reach=upper, **vars(where))


def p6_inactive(case: Case) -> None:
    """An optimal pair: rows and entries that safe tests call zero are zero, by any test."""
    penalty, rng = case.penalty, case.rng
    shape = case.products.shape
    for step in (0.1, 1.0):
        point = case.products + 0.3 * rng.standard_normal(shape)
        near = penalty.proximal(point, step)
        dual = (point - near) / step - penalty.ridge * near
        for radius in (1e-6, 0.03, 0.3):
            norms = np.asarray(rng.uniform(0.0, 1.0, shape))
            away: Array = np.asarray(rng.standard_normal(shape))[case.first]
            away *= radius / np.linalg.norm(away, axis=1, keepdims=True)
            shift = rng.standard_normal(shape)
            error = 0.1 * radius
            shift *= error / np.linalg.norm(shift, axis=1, keepdims=True)
            centre = dual + norms * away + shift
            words = (
                "P6: a row is called zero (`row_reach`, `inactive`) that is not zero in a W whose dual point lies in "
                "the ball."
            )
            for tested in [penalty.with_test(name) for name in penalty.tests] or [penalty]:
                zero = tested.inactive(tested.row_reach(centre, np.abs(shift), norms, radius))
                test = getattr(tested, "test", "the only one")
                case.claim(not near[zero].any(), words, test=test, called_zero=zero, rows=near, radius=radius)
            entries = penalty.zero_entries(centre, np.full(shape[0], error), norms, radius)
            words = "P7: `zero_entries` names coefficients that are not zero in a W whose dual point lies in the ball."
            right = entries is None or not near[entries].any()
            case.claim(right, words, called_zero=entries, rows=near, radius=radius)


def p8_parts(case: Case) -> None:
    """Rows dropped, rows taken out, strengths."""
    penalty, rows, products, rng = case.penalty, case.rows, case.products, case.rng
    dropped = rows.copy()
    dropped[-1] = 0.0
    before, after = penalty.value(rows), penalty.value(dropped)
    words = "P8: the value must not grow when a row becomes zero."
    case.claim(at_most(after, before), words, value=before, without_last=after)
    blocks = case.blocks
    some = np.concatenate([blocks[k] for k in rng.permutation(len(blocks))[: max(1, len(blocks) - 1)]])
    part = penalty.restrict(some)
    kept, point, norms = np.zeros_like(rows), np.zeros_like(products), np.ones_like(products)
    kept[some], point[some] = rows[some], products[some]
    value, expected = part.value(rows[some]), penalty.value(kept)
    words = "P8: `restrict` must be the same penalty with all other rows zero: value, gauges, prox, reach of some rows."
    reach, own_reach = penalty.row_reach(point, 0.1, norms, 0.2), part.row_reach(point[some], 0.1, norms[some], 0.2)
    same = (
        close(value, expected)
        and close(part.row_gauges(point[some]), penalty.row_gauges(point)[some])
        and close(part.proximal(point[some], 0.4), penalty.proximal(point, 0.4)[some])
        and close(own_reach, reach[some])
    )
    case.claim(same, words, features=some, value=value, expected=expected)
    k = float(rng.uniform(0.2, 4.0))
    unridged = penalty.without_ridge()
    for name, scaled in (("at", penalty.at(k)), ("times", penalty.times(k))):
        plain, value, expected = scaled.without_ridge(), scaled.value(rows), k * penalty.value(rows)
        words = f"P8: `{name}(k)` must multiply the value by k, divide the gauges by k, lengthen the prox's step by k."
        same = (
            close(value, expected)
            and close(k * scaled.row_gauges(products), penalty.row_gauges(products))
            and close(plain.proximal(products, 0.4), unridged.proximal(products, 0.4 * k))
        )
        case.claim(same, words, k=k, value=value, expected=expected)
    at, times = penalty.at(k).ridge, penalty.times(k).ridge
    words = "P8: `at(k)` must scale the part of the ridge that belongs to the strength, `times(k)` leave it alone."
    same = close(at, k * penalty._ridge_ratio + penalty._fixed_ridge) and close(times, penalty.ridge)
    case.claim(same, words, ridge_at_k=at, ridge_times_k=times)


CHECKS: tuple[Callable[[Case], None], ...] = (
    p0_shapes, p0_unpenalised, p1_norms, p2_monotone, p3_fenchel, p4_attained, p5_prox, p6_reach,
    p6_inactive, p7_euclid, p7_steepest, p7_row_form, p7_split, p7_features, p8_parts,
)  # fmt: skip
