"""Moments add up: over folds, over blocks of rows, about shifts."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from exact_numbers import wide

from tasksieve.design import sums as sums_module
from tasksieve.design.moments import Moments, leave_one_out, panels_to_square, square_to_panels
from tasksieve.design.sums import RowSums, SharedSums

PARTS = ("gram", "cross", "labels", "beside", "nuisance", "explained")


def plain(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> Moments:
    found = Moments.zeros(1, y.shape[1], x.shape[1], len(z))
    found.add_rows(np.asfortranarray(x), y, z, np.array([0, len(x)]), 1)
    return found


def folds_of(seed: int, count: int, rows: int = 13, d: int = 5) -> list[Moments]:
    rng = np.random.default_rng(seed)
    return [
        plain(rng.standard_normal((rows + k, d)), rng.standard_normal((rows + k, 2)), np.ones((1, rows + k)))
        for k in range(count)
    ]


@pytest.mark.parametrize("count", [2, 3, 7])
def test_leave_one_out_is_the_sum_of_the_others(count: int) -> None:
    parts = folds_of(0, count)
    kept = [part.copy() for part in parts]
    left = list(leave_one_out(parts))
    assert len(left) == count
    for k, found in enumerate(left):
        for name in PARTS:
            others = sum(getattr(part, name) for j, part in enumerate(kept) if j != k)
            np.testing.assert_allclose(getattr(found, name), others, rtol=1e-14, atol=1e-13)
    for part, before in zip(parts, kept, strict=True):  # untouched
        assert all(np.array_equal(getattr(part, name), getattr(before, name)) for name in PARTS)


def test_leave_one_out_never_subtracts() -> None:
    """A fold that holds nearly everything leaves the others as they are, to the last digit."""
    parts = folds_of(1, 3)
    for name in PARTS:
        getattr(parts[1], name)[:] *= 1e20
    found = list(leave_one_out(parts))[1]
    expected = parts[0].copy()
    expected.add(parts[2])
    assert np.array_equal(found.gram, expected.gram)


def test_results_of_leave_one_out_may_be_changed() -> None:
    parts = folds_of(2, 4)
    plainly = [found.copy() for found in leave_one_out(parts)]
    for found, expected in zip(leave_one_out(parts), plainly, strict=True):
        assert np.array_equal(found.gram, expected.gram)
        found.gram[:] = np.nan


def test_roundings_are_counted_along_the_longest_way() -> None:
    """One large block and many small ones: the error bound is that of the longest chain, and it is true."""
    rng = np.random.default_rng(3)
    blocks = [rng.standard_normal((rows, 1)) * 10.0 ** rng.integers(-8, 8) for rows in (50, 3, 3, 3)]
    total = Moments.zeros(1, 1, 1, 1)
    for x in blocks:
        total.add_rows(np.asfortranarray(x), x, np.ones((1, len(x))), np.array([0, len(x)]), 1)
    assert total.rows == 53
    exact = sum(Fraction(v) ** 2 for x in blocks for v in x[:, 0].tolist())
    assert abs(Fraction(float(total.labels[0])) - exact) <= Fraction(2.0**-53) * total.rows * exact


def test_panels_and_squares() -> None:
    square = np.random.default_rng(0).standard_normal((3, 70, 70))
    assert np.array_equal(panels_to_square(square_to_panels(square), 70), square)


def stacked(n: int, d: int, tasks: int, seed: int = 0) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) + 10.0 * rng.standard_normal(d)
    return X, rng.standard_normal(n) + 3.0, rng.integers(0, tasks, n), rng.integers(0, 3, n), rng.uniform(0.5, 2.0, n)


def centred(found: Moments) -> tuple[np.ndarray, ...]:
    """Products about the means: whatever the shifts were, they are the same."""
    total = found.nuisance[:, 0, 0]
    gram = panels_to_square(found.gram, found.cross.shape[1])
    gram = gram - np.einsum("mi,mj->mij", found.beside[:, 0], found.beside[:, 0]) / total[:, None, None]
    cross = found.cross - found.explained * found.beside[:, 0] / total[:, None]
    return gram, cross, found.labels - found.explained[:, 0] ** 2 / total


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", [np.float64, np.float32, np.int8])
def test_row_sums_in_blocks(monkeypatch: pytest.MonkeyPatch, order: str, weighted: bool, kind: type) -> None:
    X, y, task, fold, weights = stacked(400, 6, 4)
    X = np.asarray(X, dtype=kind, order=order)
    if weighted:
        weights[::7] = 0.0
    monkeypatch.setattr(sums_module, "BLOCK_BYTES", 8 * 8 * 90)
    sums = RowSums(6, 3)
    sums.add(X, y, task, fold, weights if weighted else None)
    assert sums.largest_block <= 90
    s = weights if weighted else np.ones(400)
    for f in range(3):
        found = sums.gathered(f).moments
        gram, cross, labels = centred(found)
        for t in range(4):
            own = (task == t) & (fold == f)
            x, w = X[own].astype(float), s[own]
            xc, yc = x - w @ x / w.sum(), y[own] - w @ y[own] / w.sum()
            np.testing.assert_allclose(gram[t], xc.T @ (w[:, None] * xc), atol=1e-9)
            np.testing.assert_allclose(cross[t], xc.T @ (w * yc), atol=1e-9)
            np.testing.assert_allclose(labels[t], w @ yc**2, atol=1e-9)
            assert sums.counts[t, f] == np.count_nonzero(own & (s > 0))
        columns, mean_labels = sums.gathered(f).means()
        np.testing.assert_allclose(columns[0], np.average(X[(task == 0) & (fold == f)].astype(float), axis=0,
                                   weights=s[(task == 0) & (fold == f)]))  # fmt: skip
        assert np.all(np.isfinite(mean_labels))


def test_many_small_tasks_are_shifted_alike() -> None:
    X, y, task, _, _ = stacked(200, 3, 150)
    sums = RowSums(3)
    sums.add(X, y, task)
    for t in range(150):
        np.testing.assert_allclose(sums.shifts[t], X[task == t].mean(axis=0) if np.any(task == t) else 0.0)


def test_constant_columns_are_exactly_zero() -> None:
    X, y, task, _, _ = stacked(300, 3, 2)
    X[:, 1] = np.where(task == 0, 0.1, 1e7 + 0.3)
    sums = RowSums(3)
    sums.add(X, y, task)
    assert np.all(panels_to_square(sums.gathered(0).moments.gram, 3)[:, 1] == 0.0)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int8, np.int32])
@pytest.mark.parametrize("order", ["C", "F"])
def test_one_task_is_shifted_while_it_is_copied(order: Any, dtype: Any) -> None:
    """By its first rows, in one block or several, from columns as they lie; what is given stays as it is."""
    rng = np.random.default_rng(3)
    X = np.array(rng.integers(-20, 90, (3000, 5)), order=order, dtype=dtype)
    X[:, 1] = 7
    y = 1e3 + X[:, 0] + rng.standard_normal(3000)
    before, task = X.copy(), np.zeros(3000, dtype=np.int64)
    for weights in (None, rng.integers(0, 3, 3000).astype(float)):
        sums = RowSums(5)
        sums.add(X[:2000], y[:2000], task[:2000], None, None if weights is None else weights[:2000])
        sums.add(X[2000:], y[2000:], task[2000:], None, None if weights is None else weights[2000:])
        s = np.ones(3000) if weights is None else weights
        gram, cross, labels = centred(sums.gathered(0).moments)
        x = X.astype(float)
        xc, yc = x - s @ x / s.sum(), y - s @ y / s.sum()
        np.testing.assert_allclose(gram[0], xc.T @ (s[:, None] * xc), rtol=1e-11, atol=1e-5)
        np.testing.assert_allclose(cross[0], xc.T @ (s * yc), rtol=1e-11, atol=1e-5)
        np.testing.assert_allclose(labels[0], s @ yc**2, rtol=1e-11)
        assert np.all(panels_to_square(sums.gathered(0).moments.gram, 5)[:, 1] == 0.0)
        assert sums.gathered(0).well_centred
        if weights is None:
            np.testing.assert_allclose(sums.shifts[0], x[:1024].mean(axis=0))
    np.testing.assert_array_equal(X, before)


def test_drift_is_seen_and_known_shifts_cure_it(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y, task, _, _ = stacked(400, 3, 2)
    task[:2] = 0, 1
    X[:2, 2] += 1e6  # the first row of each task, and with these blocks all that its shift is made of
    monkeypatch.setattr(sums_module, "BLOCK_BYTES", 8 * 5)
    sums = RowSums(3)
    sums.add(X, y, task)
    assert not sums.gathered(0).well_centred
    again = RowSums(3)
    again.shift_by(*sums.gathered(0).means())
    again.add(X, y, task)
    assert again.gathered(0).well_centred


@pytest.mark.parametrize("weighted", [False, True])
def test_shared_sums(monkeypatch: pytest.MonkeyPatch, weighted: bool) -> None:
    rng = np.random.default_rng(4)
    X, Y, fold = rng.standard_normal((300, 5)) + 4.0, rng.standard_normal((300, 3)) - 2.0, rng.integers(0, 2, 300)
    weights = rng.uniform(0.5, 2.0, 300) if weighted else None
    monkeypatch.setattr(sums_module, "BLOCK_BYTES", 8 * 8 * 70)
    shared, rows = SharedSums(5, 3, 2), RowSums(5, 2)
    shared.add(X, Y, fold, weights)
    for t in range(3):
        rows.add(X, Y[:, t], np.full(300, t), fold, weights)
    for f in range(2):
        one, own = shared.gathered(f).moments, rows.gathered(f).moments
        total = one.nuisance[0, 0, 0]
        gram = panels_to_square(one.gram, 5)[0] - np.outer(one.beside[0, 0], one.beside[0, 0]) / total
        np.testing.assert_allclose(centred(own)[0], np.repeat(gram[None], 3, axis=0), atol=1e-9)
        cross = one.cross - one.explained * one.beside[0, 0] / total
        np.testing.assert_allclose(centred(own)[1], cross, atol=1e-9)
    assert shared.largest_block <= 70


def test_shared_sums_become_sums_of_tasks() -> None:
    rng = np.random.default_rng(5)
    X, Y, fold = rng.standard_normal((90, 4)), rng.standard_normal((90, 2)), rng.integers(0, 2, 90)
    shared = SharedSums(4, 2, 2)
    shared.add(X, Y, fold)
    rows = RowSums(4, 2)
    rows.take_over(2, shared.parts, shared.shifts, shared.label_shifts, shared.counts)
    rows.add(X[:10], Y[:10, 0], np.zeros(10, dtype=int), fold[:10])
    whole = RowSums(4, 2)
    whole.shift_by(np.repeat(shared.shifts, 2, axis=0), shared.label_shifts)
    for t in range(2):
        whole.add(X, Y[:, t], np.full(90, t), fold)
    whole.add(X[:10], Y[:10, 0], np.zeros(10, dtype=int), fold[:10])
    for f in range(2):
        for name in PARTS:
            mine, theirs = (getattr(sums.gathered(f).moments, name) for sums in (rows, whole))
            np.testing.assert_allclose(mine, theirs, atol=1e-10)
    assert np.array_equal(rows.counts, whole.counts)


@pytest.mark.parametrize("shared", [False, True])
def test_residual_squares(shared: bool) -> None:
    """About large offsets too, to the error that they are said to have."""
    rng = np.random.default_rng(6)
    X, Y = rng.standard_normal((200, 4)) + 1e6, rng.standard_normal((200, 2)) - 1e5
    weights = rng.uniform(0.5, 2.0, 200)
    coefs, intercepts = rng.standard_normal((3, 2, 4)), np.empty((3, 2))
    for k in range(3):
        intercepts[k] = Y.mean(axis=0) - X.mean(axis=0) @ coefs[k].T
    if shared:
        sums = SharedSums(4, 2)
        sums.add(X, Y, None, weights)
    else:
        sums = RowSums(4)
        for t in range(2):
            sums.add(X, Y[:, t], np.full(200, t), None, weights)
    found, unsure = sums.gathered(0).residual_squares(coefs, intercepts)
    exact = np.empty((3, 2))
    x, y, w, b, s = (wide(array) for array in (X, Y, coefs, intercepts, weights))
    for k in range(3):
        exact[k] = s @ (y - x @ w[k].T - b[k]) ** 2
    assert np.all(np.abs(found - exact) <= unsure)
    assert np.all(unsure < 1e-9 * exact)


@pytest.mark.parametrize("shift", [True, False])
@pytest.mark.parametrize("ordered", [True, False])
def test_columns_on_their_own_give_the_same_bytes(shift: bool, ordered: bool) -> None:
    """Tasks that come later, folds, weights of 0, blocks; float32 and whole numbers beside others."""
    rng = np.random.default_rng(8)
    X, y = rng.standard_normal((300, 4)).astype(np.float32) + 5.0, rng.standard_normal(300)
    X[:, 2] = rng.integers(0, 9, 300)
    tasks = np.r_[rng.integers(3, size=150), rng.integers(6, size=150)]
    tasks = np.sort(tasks) if ordered else tasks
    folds, weights = rng.integers(3, size=300), np.where(rng.uniform(size=300) < 0.2, 0.0, rng.uniform(1.0, 2.0, 300))
    columns = [*(X[:, j].copy() for j in (0, 1)), X[:, 2].astype(np.int16), X[:, 3].astype(np.float64)]
    one, other = RowSums(4, 3, shift=shift), RowSums(4, 3, shift=shift)
    for part, own in ((slice(0, 150), None), (slice(150, 300), weights[150:])):
        one.add(X[part], y[part], tasks[part], folds[part], own)
        other.add([column[part] for column in columns], y[part], tasks[part], folds[part], own)
    assert np.array_equal(one.counts, other.counts)
    for f in range(3):
        mine, theirs = one.gathered(f), other.gathered(f)
        assert np.array_equal(mine.shifts, theirs.shifts)
        for name in PARTS:
            assert np.array_equal(getattr(mine.moments, name), getattr(theirs.moments, name)), name
