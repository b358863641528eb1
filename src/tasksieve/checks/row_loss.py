"""The properties of a loss of one row: f(y, z), its slope p = -f'(z), its conjugate f*(-p)."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..losses import RowLoss
from .claims import claim, unchanged
from .loss_cases import Labels, labels_of

Array = np.ndarray[Any, Any]

ROWS = 60


def check_rows(loss: RowLoss, labels: Labels, draws: int, seed: int) -> None:
    """Value, slope, conjugate, domain, smoothness and curvature of one row belong together."""
    rng = np.random.default_rng(seed)
    _convex(loss, labels_of(labels, rng, ROWS))
    for draw in range(draws):
        y = labels_of(labels, rng, ROWS)
        z = rng.standard_normal(ROWS) * (0.0, 0.1, 2.0, 8.0)[draw % 4]
        other = z + rng.standard_normal(ROWS) * (0.01, 1.0, 10.0)[draw % 3]
        if labels == "values" and draw % 2:  # near the label, where a loss of residuals changes its form
            z = y + rng.standard_normal(ROWS)
        _shapes(loss, y, z)
        _slope(loss, y, z)
        _fenchel(loss, y, z, other, rng)
        _not_negative(loss, y, z)
        if loss.translates:
            _translates(loss, y, z)
        if np.isfinite(loss.smoothness):
            _smoothness(loss, y, z, other)
            _curvature(loss, y, z)


def _claim_rows(found: Array, most: Any, words: str, **rows: Any) -> None:
    """A number of every row is at most so large; the row where it is furthest above that is shown."""
    i = int(np.argmax(found - most))
    claim(np.all(found <= most), words, **{name: values[i] for name, values in rows.items()})


def _convex(loss: RowLoss, y: Array) -> None:
    """No gap is a bound without it: it is looked at first, over a wide grid and near the labels."""
    for centre, step in ((0.0, 0.05), (0.0, 1.0), (1.0, 0.02), (1.0, 0.5)):
        found, where = 0.0, (0, 0.0)
        for move in np.arange(-120, 121) * step:
            z = centre * np.asarray(y, dtype=np.float64) + move if centre else np.full(len(y), move)
            with np.errstate(all="ignore"):
                left, middle, right = (np.asarray(loss.value(y, z + h)) for h in (-step, 0.0, step))
                sag = middle - 0.5 * (left + right)
                excess = sag - 1e-10 * (1.0 + np.abs(left) + np.abs(middle) + np.abs(right))
            if np.shape(excess) != z.shape:  # shapes are judged next
                return
            i = int(np.argmax(np.where(np.isfinite(excess), excess, -np.inf)))
            if excess[i] > found:
                found, where = float(excess[i]), (i, float(z[i]))
        words = (
            f"L1: value is not convex at z = {where[1]:.6g}: it lies above the chord between z - {step:g} and "
            f"z + {step:g}. Then there is no duality gap, and nothing that is said of one holds."
        )
        claim(found == 0.0, words, y=np.asarray(y)[where[0]], above_the_chord=found)


def _shapes(loss: RowLoss, y: Array, z: Array) -> None:
    for name in ("value", "slope", "curvature", "deviance", "link"):
        with unchanged("L0", name, y=y, z=z):
            found = loss.link(z) if name == "link" else getattr(loss, name)(y, z)
        words = f"L0: `{name}` must return an array of the shape of z."
        claim(np.shape(found) == z.shape, words, shape=np.shape(found), expected=z.shape)
        finite = name != "curvature" or np.isfinite(loss.smoothness)
        claim(not finite or np.isfinite(found).all(), f"L0: `{name}` must be finite for finite z.", found=found)
    low, high = loss.domain(y)
    inside = np.all(np.asarray(low) <= 0.0) and np.all(np.asarray(high) >= 0.0)
    claim(inside, "L0: zero must lie in the domain of the conjugate.", low=low, high=high)
    steps = np.diff(loss.link(np.linspace(-5.0, 5.0, 101)))
    claim(np.all(steps >= 0.0), "L0: `link` must not fall.", steepest_fall=float(steps.min()))


def _not_negative(loss: RowLoss, y: Array, z: Array) -> None:
    values = loss.value(y, z)
    words = (
        "L0: `value` must not be negative: tolerances are relative to it. Add what is missing, and give it in "
        "`constant`."
    )
    claim(np.all(values >= -1e-12 * (1.0 + np.abs(z))), words, smallest=float(np.min(values)))


def _translates(loss: RowLoss, y: Array, z: Array) -> None:
    """L0: where a loss says that only ``y - z`` counts, the same added to both changes nothing."""
    words = "L0: `translates` says that only the difference of label and prediction counts: `value` says otherwise."
    for step in (-3.0, 1.0, 1000.0):
        before, after = loss.value(y, z), loss.value(y + step, z + step)
        same = np.allclose(before, after, rtol=1e-9, atol=1e-9 * abs(step))
        claim(same, words, step=step, before=before, after=after)


def _slope(loss: RowLoss, y: Array, z: Array) -> None:
    """L1: -p lies between the slopes of the chords to the left and to the right, which holds at kinks as well."""
    value, p = loss.value(y, z), loss.slope(y, z)
    words = (
        "L1: `slope` must be minus the derivative of `value` (and `value` convex): between its values at z and z +- h."
    )
    for h in (1e-5, 1e-3):
        right = (loss.value(y, z + h) - value) / h
        left = (value - loss.value(y, z - h)) / h
        slack = 1e-8 * (1.0 + np.abs(p)) + 1e-15 * (1.0 + np.abs(value)) / h
        differences = np.stack([-right, -left], axis=1)
        outside = np.maximum(-p - right, left + p)
        _claim_rows(outside, slack, words, y=y, z=z, slope=p, minus_differences=differences)


def conjugate(loss: RowLoss, y: Array, p: Array) -> Array:
    """``f*(-p)``, infinite outside the domain."""
    low, high = loss.domain(y)
    inside = (p >= low) & (p <= high)
    return np.where(inside, loss.conjugate(y, np.clip(p, low, high)), np.inf)


def _fenchel(loss: RowLoss, y: Array, z: Array, other: Array, rng: np.random.Generator) -> None:
    value, p = loss.value(y, z), loss.slope(y, z)
    low, high = loss.domain(y)
    words = "L2: every slope must lie in the domain of the conjugate."
    _claim_rows(np.maximum(p - high, low - p), 1e-12 * (1.0 + np.abs(p)), words, y=y, z=z, slope=p)
    own = loss.conjugate(y, np.clip(p, low, high))
    excess = value + own + p * z
    scale = 1.0 + np.abs(value) + np.abs(p * z)
    words = "L2: value(z) + conjugate(p) + p z must be 0 at p = slope(z): the conjugate is that of another loss."
    _claim_rows(np.abs(excess) / scale, 1e-9, words, y=y, z=z, p=p, value=value, conjugate=own, sum=excess)
    # slopes of other points, stretched: also outside the domain, where the conjugate is infinite
    foreign = loss.slope(y, other) * rng.uniform(0.0, 3.0, len(y))
    words = (
        "L3: value(z) + conjugate(p) + p z must not be negative for any z and any p in the domain: the conjugate is "
        "too small, or infinite outside a domain that `domain` does not state."
    )
    for point in (z, other, 30.0 * z, -30.0 * z, y, np.zeros_like(z)):
        with np.errstate(over="ignore"):
            at = loss.value(y, point)
        if not np.isfinite(at).all():
            continue
        for p2 in (foreign, p, -foreign, np.zeros_like(p)):
            excess = at + conjugate(loss, y, p2) + p2 * point
            scale = 1.0 + np.abs(at) + np.abs(p2 * point)
            _claim_rows(-excess / scale, 1e-9, words, y=y, z=point, p=p2, value=at, sum=excess)


def _smoothness(loss: RowLoss, y: Array, z: Array, other: Array) -> None:
    """L5: ``f(z) - f(z3) + p3 (z - z3) >= (p - p3)^2/(2 L)``."""
    value, value3 = loss.value(y, z), loss.value(y, other)
    p, p3 = loss.slope(y, z), loss.slope(y, other)
    gain = value - value3 + p3 * (z - other)
    needed = (p - p3) ** 2 / (2.0 * loss.smoothness)
    words = (
        f"L5: the loss is not as smooth as `smoothness` = {loss.smoothness:g} says: slopes move faster, and balls "
        "around dual points would be too small."
    )
    slack = 1e-9 * needed + 1e-13 * (1.0 + np.abs(value) + np.abs(value3))
    points, slopes = np.stack([z, other], axis=1), np.stack([p, p3], axis=1)
    _claim_rows(needed - gain, slack, words, y=y, z=points, slopes=slopes, seen=np.abs((p - p3) / (z - other)))


def _curvature(loss: RowLoss, y: Array, z: Array) -> None:
    """Between the second derivative and the smoothness."""
    h = 1e-4
    found = loss.curvature(y, z)
    words = "L5: `curvature` must lie between 0 and `smoothness`."
    inside = np.all(found >= 0.0) and np.all(found <= loss.smoothness * (1.0 + 1e-9))
    claim(inside, words, curvature=found, smoothness=loss.smoothness)
    second = (loss.slope(y, z - h) - loss.slope(y, z + h)) / (2.0 * h)
    largest = np.maximum(np.maximum(loss.curvature(y, z - h), loss.curvature(y, z + h)), found)
    words = "L5: `curvature` must not be below the second derivative."
    slack = 1e-6 * (1.0 + loss.smoothness)
    _claim_rows(second - largest, slack, words, y=y, z=z, curvature=largest, second_derivative=second)
