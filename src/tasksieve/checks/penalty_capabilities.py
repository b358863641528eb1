"""P7: what a penalty claims beside its core is true (`penalties/capabilities`)."""

from __future__ import annotations

import numpy as np

from .._kernels import kernels
from ..penalties import row_norms
from .claims import at_most, close
from .penalty_cases import Case


def p7_euclid(case: Case) -> None:
    """Conversions from and to Euclidean norms."""
    penalty, rng = case.penalty, case.rng
    d, tasks = case.products.shape
    for products in (case.products, np.ones((d, tasks)), np.eye(tasks)[rng.integers(tasks, size=d)]):
        products = np.maximum(products, 0.0) if penalty.positive else products
        gauges, sizes = penalty.gauges(products), row_norms(products)
        if penalty.euclid is not None:
            words = "P7: `euclid` is too small: gauge(c) must be at most euclid ||c||_2."
            bounds = penalty.euclid * sizes
            case.claim(at_most(gauges, bounds), words, gauges=gauges, bounds=bounds)
        if penalty.outer is not None:
            words = "P7: `outer` is too small: a row of gauge 1 must have a norm of at most that."
            bounds = penalty.outer * gauges
            case.claim(at_most(sizes, bounds), words, norms=sizes, bounds=bounds)
        form = penalty.thresholds()
        if form is not None:
            group, l1 = form
            words = (
                "P7: `thresholds` do not give the dual ball: ||soft(m, l1)|| must exceed group exactly where the gauge "
                "exceeds 1."
            )
            for scale in (0.5, 0.999999, 1.000001, 2.0):
                level = np.where(gauges > 0.0, gauges, 1.0)[:, None] / scale
                m = products / level
                soft = m if l1 is None else np.sign(m) * np.maximum(np.abs(m) - l1[:, None], 0.0)
                over = np.where(gauges > 0.0, row_norms(soft) > group, scale > 1.0)
                case.claim(np.all(over == (scale > 1.0)), words, gauge=scale, group=group, l1=l1)


def p7_steepest(case: Case) -> None:
    """The steepest row attains the polar."""
    penalty, products = case.penalty, case.products
    found = penalty.steepest(products)
    polar = case.polar(products)
    if found is None or polar == 0.0:
        return
    features, rows = found
    value = penalty.restrict(features).value(rows)
    inner = float(np.vdot(products[features], rows))
    words = "P7: `steepest` must attain the polar: <C, W> = value(W) polar(C)."
    attained = abs(inner - polar * value) <= 1e-9 * (1.0 + inner)
    case.claim(attained, words, inner_product=inner, value=value, polar=polar)


def p7_row_form(case: Case) -> None:
    """Compiled row updates are those of the penalty: optimal, for any curvatures."""
    penalty, rng = case.penalty, case.rng
    form = penalty.row_form()
    if form is None:
        return
    curvatures = 10.0 ** rng.uniform(-2.0, 2.0, case.products.shape)
    rows = np.empty_like(case.products)
    kernels.solve_rows(
        case.products, curvatures, form.group, form.l1, penalty.ridge, penalty.positive, rows, form.code
    )
    dual = case.products - (curvatures + penalty.ridge) * rows
    polar, inner, value = case.polar(dual), float(np.vdot(dual, rows)), penalty.value(rows)
    words = "P7: `row_form` is that of another penalty: its row updates are not optimal."
    optimal = polar <= 1.0 + 1e-9 and abs(inner - value) <= 1e-9 * (1.0 + value)
    case.claim(optimal, words, kind=form.kind, polar=polar, inner_product=inner, value=value)


def p7_split(case: Case) -> None:
    """Parts add up."""
    parts = case.free.split(case.rows)
    if parts is None:
        return
    together = np.sum(list(parts.values()), axis=0)
    values = sum(case.penalty.value(part) for part in parts.values())
    words = (
        "P7: `split` must give parts whose sum the rows are, and whose values are together no more than that of the "
        "rows."
    )
    same = close(together, case.rows) and close(values, case.penalty.value(case.rows))
    case.claim(same, words, parts=parts)


def p7_features(case: Case) -> None:
    """Which features prevent feasibility."""
    penalty = case.penalty
    polar = case.polar(case.products)
    for factor in (0.5, 2.0) if polar > 0.0 else ():
        gauges = penalty.row_gauges(case.products * (factor / polar))
        leading = penalty.leading(gauges)
        words = "P7: `leading` must name rows exactly where the polar exceeds 1."
        case.claim((len(leading) > 0) == (factor > 1.0), words, polar=factor, leading=leading)
        known = case.rng.random(len(gauges)) < 0.6
        certified = penalty.certified(gauges, known)
        words = "P7: `certified` must not lower a bound."
        case.claim(at_most(gauges, certified), words, bounds=gauges, certified=certified)
        if len(penalty.open(gauges, known)) == 0:
            sure, whole = penalty.polar(np.where(known, gauges, 0.0)), penalty.polar(certified)
            words = "P7: `open` names no feature, though features that are only bounded could make the polar larger."
            case.claim(at_most(whole, max(sure, 1.0), 1e-9), words, polar_of_known=sure, polar=whole)
