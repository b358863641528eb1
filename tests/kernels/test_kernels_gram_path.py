"""The path on Gram matrices against its NumPy twin, and its certificate against sums in forty digits."""

from __future__ import annotations

import numpy as np
import pytest
from exact_numbers import wide

from tasksieve._kernels import kernels, reference
from tasksieve._kernels.reference.gram_path import square

SHAPES = {"one task": (1, 1), "shared": (1, 4), "own": (4, 4), "shared seven": (1, 7), "own two": (2, 2)}


def statistics(rng, matrices, tasks, features=14, rows=12):
    """Columns and labels, and the arguments of a path that depend on them."""
    x = np.asfortranarray(rng.standard_normal((rows * matrices, features)))
    x[:, 4] = x[:, 3]  # a duplicate
    x[:, 5] = 0.0
    offsets = rows * np.arange(matrices + 1)
    y = rng.standard_normal((rows * matrices, tasks if matrices == 1 else 1)) + x[:, :1] - 2.0 * x[:, 1:2]
    gram = np.zeros((matrices, kernels.panel_cells(features)))
    kernels.add_grams(x, offsets, 1, gram)
    parts = [slice(a, b) for a, b in zip(offsets[:-1], offsets[1:], strict=True)]
    own = [(x, y[:, t]) for t in range(tasks)] if matrices == 1 else [(x[p], y[p, 0]) for p in parts]
    cross, labels = np.stack([b @ a for a, b in own]), np.array([b @ b for _, b in own])
    sizes = np.stack([np.linalg.norm(x[p], axis=0) for p in parts])
    return x, y, parts, (gram, np.ascontiguousarray(cross), labels, sizes, np.sqrt(labels))


def penalty(rng, features, kind):
    group, l1 = rng.uniform(0.5, 2.0, features), np.zeros(features)
    if kind == "entries":
        l1 = rng.uniform(0.1, 1.0, features)
    if kind == "l1":
        group, l1 = np.zeros(features), group
    return group, l1


def walk(module, given, group, l1, positive, rows, lams, ridge, goal, threads=1, room=10_000, budget=1e13):
    path = module.GramPath(*given, group, l1, positive, 4.0 * 2.0**-53 * (rows + 16), 1e-12, room, 0.0, threads)
    return advance(path, lams, np.full(len(lams), ridge), np.full(len(lams), goal), 20_000, budget)


def advance(path, *arguments):
    """Why it stopped; by value objective, rounding, gap, seconds, epochs, rejected rows and rows; features, rows."""
    stop, facts, features, rows = path.advance(*arguments)
    return stop, [(*own[:4], *map(int, own[4:])) for own in facts.T.tolist()], features, rows


@pytest.mark.parametrize("features", [1, 7, 64, 65, 200])
@pytest.mark.parametrize("matrices", [1, 3])
def test_outer_products_are_subtracted_in_place(rng, features, matrices):
    x = np.asfortranarray(rng.standard_normal((5 * matrices, features)))
    first, second = rng.standard_normal((2, matrices, 2, features))
    results = []
    for module, threads in ((kernels, 1), (kernels, 3), (reference, 1)):
        gram = np.zeros((matrices, kernels.panel_cells(features)))
        kernels.add_grams(x, 5 * np.arange(matrices + 1), 1, gram)
        before = gram.copy()
        module.subtract_outer(first, second, threads, gram)
        results.append(gram)
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_allclose(results[0], results[2], atol=1e-13)
    for m in range(matrices):
        change = square(before[m] - results[0][m], features)
        np.testing.assert_allclose(change, first[m].T @ second[m], atol=1e-12)
    with pytest.raises(ValueError):
        kernels.subtract_outer(first, second[:, :1].copy(), 1, results[0])


@pytest.mark.parametrize("features", [1, 63, 64, 65, 130, 300])
@pytest.mark.parametrize("matrices", [1, 3])
def test_gram_matrices_lie_in_panels(rng, features, matrices):
    x = np.asfortranarray(rng.standard_normal((11 * matrices, features)))
    offsets = 11 * np.arange(matrices + 1)
    results = []
    for module, threads in ((kernels, 1), (kernels, 3), (reference, 1)):
        assert module.panel_cells(features) == kernels.panel_cells(features)
        gram = np.zeros((matrices, kernels.panel_cells(features)))
        for _ in range(2):
            module.add_grams(x, offsets, threads, gram)
        results.append(gram)
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_allclose(results[0], results[2], atol=1e-12)
    for m in range(matrices):
        part = x[offsets[m] : offsets[m + 1]]
        found = square(results[0][m], features)
        np.testing.assert_allclose(found, 2.0 * part.T @ part, atol=1e-12)
        np.testing.assert_array_equal(found, found.T)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("kind", ["rows", "entries", "l1"])
@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("ridge", [0.0, 3.0])
@pytest.mark.parametrize(("matrices", "tasks"), SHAPES.values(), ids=SHAPES)
def test_against_the_twin_and_the_truth(rng, matrices, tasks, ridge, positive, kind):
    x, y, parts, given = statistics(rng, matrices, tasks)
    group, l1 = penalty(rng, x.shape[1], kind)
    null = 0.5 * float(given[2].sum())
    lams = 10.0 * 0.5 ** np.arange(4)
    stops, found = [], []
    for module in (kernels, reference):
        stop, values, features, rows = walk(module, given, group, l1, positive, 12, lams, ridge, 1e-7 * null)
        stops.append(stop)
        ends = np.cumsum([value[6] for value in values])
        dense = []
        for value, end in zip(values, ends, strict=True):
            w = np.zeros((x.shape[1], tasks))
            w[features[end - value[6] : end]] = rows.reshape(-1, tasks)[end - value[6] : end]
            dense.append(w)
        found.append((values, dense))
    assert stops == [0, 0]
    for lam, (ours, w), (twin, v) in zip(lams, zip(*found[0], strict=True), zip(*found[1], strict=True), strict=True):
        assert ours[2] <= 1e-7 * null
        assert twin[2] <= 1e-7 * null
        np.testing.assert_allclose(ours[0], twin[0], atol=2e-7 * null)
        assert not w[5].any()
        truths = [objective(x, y, parts, rows, lam * group, lam * l1, ridge) for rows in (w, v)]
        for value, rows, truth in ((ours, w, truths[0]), (twin, v, truths[1])):
            assert abs(truth - value[0]) <= value[1]
            assert truth - min(truths) <= value[2]
            assert not positive or np.all(rows >= 0.0)


def objective(x, y, parts, w, group, l1, ridge):
    x, w = wide(x), wide(w)
    if len(parts) == 1:
        loss = np.square(y - x @ w).sum()
    else:
        loss = sum(np.square(y[p, 0] - x[p] @ w[:, t]).sum() for t, p in enumerate(parts))
    norms = np.sqrt(np.square(w).sum(axis=1))
    return loss / 2 + group @ norms + l1 @ np.abs(w).sum(axis=1) + ridge * np.square(w).sum() / 2


@pytest.mark.parametrize("matrices", [1, 3])
def test_many_features_are_packed_as_they_come(rng, matrices):
    """More than fit in one block, in several calls: the same bytes whatever the threads, and the twin's answer."""
    x, _, _, given = statistics(rng, matrices, 3, features=280, rows=60)
    group, l1 = np.ones(280), np.zeros(280)
    null = 0.5 * float(given[2].sum())
    lams = 60.0 * 0.6 ** np.arange(4)
    results = [walk(kernels, given, group, l1, False, 60, lams, 0.0, 1e-5 * null, threads) for threads in (1, 2)]
    stop, values, features, rows = results[0]
    assert stop == 0
    assert values[-1][6] > 10
    np.testing.assert_array_equal(features, results[1][2])
    np.testing.assert_array_equal(rows, results[1][3])
    twin = walk(reference, given, group, l1, False, 60, lams, 0.0, 1e-5 * null)
    for ours, other in zip(values, twin[1], strict=True):
        np.testing.assert_allclose(ours[0], other[0], atol=2e-5 * null)
    assert x.shape[1] > values[-1][6]


@pytest.mark.parametrize("ridge", [0.0, 0.2])
@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("matrices", [1, 3])
def test_coefficients_on_their_own_are_solved_exactly(rng, matrices, positive, ridge):
    """A Lasso of each task, with more features than rows and so near the smallest strengths that many coefficients come
    and leave: few rounds where a descent takes dozens of epochs, and optimal to nearly all digits."""
    x, y, parts, given = statistics(rng, matrices, matrices, features=300, rows=40)
    l1 = rng.uniform(0.5, 2.0, 300)
    null = 0.5 * float(given[2].sum())
    lams = 40.0 * np.geomspace(1.0, 0.01, 60)
    results = []
    for threads in (1, 2):
        path = kernels.GramPath(*given, 0.0 * l1, l1, positive, 1e-13, 1e-12, 10_000, 0.0, threads)
        results.append(advance(path, lams, ridge * lams, np.full(60, 1e-10 * null), 20_000, 1e13))
    stop, values, features, rows = results[0]
    assert stop == 0
    np.testing.assert_array_equal(features, results[1][2])
    np.testing.assert_array_equal(rows, results[1][3])
    assert max(value[4] for value in values[-20:]) <= 12
    assert values[-1][6] > 25
    ends = np.cumsum([value[6] for value in values])
    left = 0
    before = np.zeros((300, matrices), dtype=bool)
    for lam, value, end in zip(lams, values, ends, strict=True):
        w = np.zeros((300, matrices))
        w[features[end - value[6] : end]] = rows.reshape(-1, matrices)[end - value[6] : end]
        left += np.count_nonzero(before & (w == 0.0))
        before = w != 0.0
        assert value[2] <= 1e-10 * null
        assert not positive or np.all(w >= 0.0)
        for t, part in enumerate(parts):
            products = x[part].T @ (y[part, 0] - x[part] @ w[:, t]) - ridge * lam * w[:, t]
            live = w[:, t] != 0.0
            np.testing.assert_allclose(products[live], lam * (l1 * np.sign(w[:, t]))[live], rtol=2e-4)
            sizes = products if positive else np.abs(products)
            assert np.all(sizes <= lam * l1 * (1.0 + 2e-4))
    assert left > 0


def test_why_a_path_stops(rng):
    _, _, _, given = statistics(rng, 1, 3, features=400, rows=60)
    group, l1 = np.ones(400), np.zeros(400)
    null = 0.5 * float(given[2].sum())
    lams = 60.0 * 0.8 ** np.arange(12)
    stop, values, *_ = walk(kernels, given, group, l1, False, 60, lams, 0.0, 1e-7 * null, room=30)
    assert stop == 2
    assert 0 < len(values) < 12
    assert max(value[6] for value in values) <= 30
    stop, values, *_ = walk(kernels, given, group, l1, False, 60, lams, 0.0, 1e-16 * null)
    assert stop == 3
    assert not values
    path = kernels.GramPath(*given, group, l1, False, 1e-14, 1e-12, 10_000, 0.0, 1)
    arguments = np.zeros(12), np.full(12, 1e-7 * null), 20_000
    stop, values, features, rows = advance(path, lams, *arguments, 0.0)
    assert stop == 1
    assert len(values) == 1
    rest = advance(path, lams[1:], np.zeros(11), np.full(11, 1e-7 * null), 20_000, 1e13)
    whole = walk(kernels, given, group, l1, False, 60, lams, 0.0, 1e-7 * null)
    np.testing.assert_allclose(np.concatenate([rows, rest[3]]), whole[3], rtol=1e-12)
    np.testing.assert_array_equal(np.concatenate([features, rest[2]]), whole[2])
    stop, values, *_ = advance(
        kernels.GramPath(*given, group, l1, False, 1e-14, 1e-12, 10_000, 0.0, 1),
        lams, np.zeros(12), np.full(12, 1e-9 * null), 1, 1e13
    )
    assert stop == 4
    assert values[-1][2] > 1e-9 * null


def test_wrong_shapes_are_refused(rng):
    _, _, _, given = statistics(rng, 1, 3)
    gram, cross, labels, sizes, label_sizes = given
    ones, zeros = np.ones(14), np.zeros(14)
    tail = (ones, zeros, False, 1e-14, 1e-12, 100, 0.0, 1)
    for wrong in (
        (gram[:, :-1].copy(), cross, labels, sizes, label_sizes),
        (np.vstack([gram, gram]), cross, labels, sizes, label_sizes),
        (gram, cross, labels[:-1].copy(), sizes, label_sizes),
        (gram, cross, labels, sizes[:, :-1].copy(), label_sizes),
    ):
        with pytest.raises((ValueError, TypeError)):
            kernels.GramPath(*wrong, *tail)
    with pytest.raises((ValueError, TypeError)):
        kernels.GramPath(*given, *tail).advance(ones, zeros[:-1].copy(), ones, 10, 1.0)
