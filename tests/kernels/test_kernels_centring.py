"""Columns without their offsets, and sums in twice the precision, against the NumPy twins and exact fractions."""

from fractions import Fraction

import numpy as np
import pytest

from tasksieve._kernels import kernels, reference

LAYOUTS = {"one": ((9,), False), "stacked": ((4, 1, 7), False), "shared": ((5, 5, 5), True)}


def arguments(rng, lengths, shared, n_basis, count=6):
    rows = lengths[0] if shared else sum(lengths)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    x = np.asfortranarray(rng.standard_normal((rows, count)) + 10.0 ** rng.integers(-3, 9, count))
    x[:, 1] = 1 / 3  # constant
    basis = np.zeros((n_basis, offsets[-1]))
    for a, b in zip(offsets[:-1], offsets[1:], strict=True):
        rank = min(n_basis, b - a)
        basis[:rank, a:b] = np.linalg.qr(rng.standard_normal((b - a, rank)))[0].T
    w = rng.random(offsets[-1]) * (rng.random(offsets[-1]) < 0.8)
    return x, offsets, w, basis


@pytest.mark.parametrize("shifted", [False, True])
@pytest.mark.parametrize("n_basis", [0, 1, 3])
@pytest.mark.parametrize(("lengths", "shared"), LAYOUTS.values(), ids=LAYOUTS)
def test_centre(rng, lengths, shared, n_basis, shifted):
    x, offsets, w, basis = arguments(rng, lengths, shared, n_basis)
    results = []
    for module in (kernels, reference):
        out = np.full((offsets[-1], x.shape[1]), np.nan, order="F")
        squares, shifts = np.full((2, x.shape[1], len(lengths)), np.nan)
        loadings = np.full((n_basis * x.shape[1], len(lengths)), np.nan)
        module.centre(x, offsets, shared, w, basis, shifted, 1, out, squares, shifts, loadings)
        results.append((out, squares, shifts, loadings))
    size = np.abs(x).max(axis=0)
    for ours, twin in zip(results[0][1:3], results[1][1:3], strict=True):
        np.testing.assert_allclose(ours, twin, rtol=1e-9, atol=1e-9 * size.max() ** (1 if shifted else 2))
    out, _, shifts, loadings = results[0]
    assert np.all(np.abs(basis @ out) <= 1e-13 * size)
    for t, (a, b) in enumerate(zip(offsets[:-1], offsets[1:], strict=True)):
        block = x if shared else x[a:b]
        back = out[a:b] + basis[:, a:b].T @ loadings.reshape(n_basis, x.shape[1], len(lengths))[:, :, t]
        expected = w[a:b, None] * (block - shifts[:, t])
        np.testing.assert_allclose(back, expected, atol=1e-14 * (10 if shifted else size.max()))
        if shifted:
            live = block[w[a:b] > 0]
            assert not expected[:, 1].any()  # a constant is gone to the last bit
            assert np.all((shifts[:, t] >= live.min(axis=0, initial=np.inf)) | (len(live) == 0))


def test_sums_in_twice_the_precision(rng):
    for _ in range(50):
        a = rng.standard_normal(40) * 10.0 ** rng.integers(-8, 9, 40)
        b = rng.standard_normal(40) * 10.0 ** rng.integers(-8, 9, 40)
        a[20:], b[20:] = a[:20], -b[:20] * (1 + 1e-15 * rng.standard_normal(20))  # nearly all of it cancels
        offsets = np.array([0, 13, 40])
        for module in (kernels, reference):
            out, rest = np.empty(2), np.empty(2)
            module.exact_products(a, b, offsets, out, rest)
            for t, rows in enumerate((slice(0, 13), slice(13, 40))):
                truth = sum(Fraction(x) * Fraction(y) for x, y in zip(a[rows], b[rows], strict=True))
                size = float(np.abs(a[rows] * b[rows]).sum())
                assert abs(float(Fraction(out[t]) + Fraction(rest[t]) - truth)) <= (80 * 2.0**-53) ** 2 * size
                assert abs(float(Fraction(out[t]) - truth)) <= 2.0**-52 * abs(float(truth)) + 1e-28 * size


def test_facts_of_a_vector(rng):
    z, r, offsets = rng.standard_normal((3, 12)), rng.standard_normal(12), np.array([0, 5, 12])
    for module in (kernels, reference):
        products, norms = np.empty((3, 2)), np.empty(2)
        inverse = np.array([[1.0, 2.0], [0.0, 1.0], [3.0, 0.5]])
        slack = np.array([[1e-3, 0.0], [0.0, 2e-3], [0.0, 0.0]])
        module.measure_against(z, r, offsets, inverse, slack, products, norms)
        for t, rows in enumerate((slice(0, 5), slice(5, 12))):
            expected = np.abs(z[:, rows] @ r[rows]) * inverse[:, t] + slack[:, t] * np.linalg.norm(r[rows])
            np.testing.assert_allclose(products[:, t], expected, rtol=1e-13)
            assert norms[t] == pytest.approx(np.linalg.norm(r[rows]), rel=1e-15)


def test_wrong_shapes_raise(rng):
    x, offsets, w, basis = arguments(rng, (4, 6), False, 1)
    out, squares, shifts, loadings = np.empty(x.shape, order="F"), *np.empty((2, 6, 2)), np.empty((6, 2))
    k = kernels
    calls = {
        "w": lambda: k.centre(x, offsets, False, w[:9].copy(), basis, True, 1, out, squares, shifts, loadings),
        "basis": lambda: k.centre(x, offsets, False, w, basis[:, :9].copy(), True, 1, out, squares, shifts, loadings),
        "loadings": lambda: k.centre(x, offsets, False, w, basis, True, 1, out, squares, shifts, loadings[:5].copy()),
        "shared": lambda: k.centre(x, offsets, True, w, basis, True, 1, out, squares, shifts, loadings),
        "sums": lambda: k.exact_products(w, w[:9].copy(), offsets, np.empty(2), np.empty(2)),
        "norms": lambda: k.measure_against(basis, w, offsets, *np.ones((2, 1, 2)), np.empty((1, 2)), np.empty(3)),
        "slack": lambda: k.measure_against(
            basis, w, offsets, np.ones((1, 2)), np.ones((2, 2)), np.empty((1, 2)), np.empty(2)
        ),
        "stored": lambda: k.stored_rows(
            *np.ones((4, 5, 2)), np.ones((1, 4, 2)), np.ones((2, 1, 1)), *np.ones((2, 1, 2)), True, np.ones(2),
            np.empty((1, 2)), np.empty((1, 2)), np.empty((4, 2)),
        ),
    }
    for name, call in calls.items():
        with pytest.raises(ValueError):
            call()
            pytest.fail(name)


def test_columns_summed_in_twice_the_precision(rng):
    for count in (0, 1, 12):
        a = rng.standard_normal((count, 3)) * 10.0 ** rng.integers(-8, 9, (count, 3))
        b = rng.standard_normal((count, 3)) * 10.0 ** rng.integers(-8, 9, (count, 3))
        terms = np.array([-np.sum(a * b, axis=0), rng.standard_normal(3)])  # most of it cancels
        for module in (kernels, reference):
            out, rest, sizes = np.full((3, 3), np.nan)
            module.exact_columns(terms, a, b, out, rest, sizes)
            for t in range(3):
                exact = sum((Fraction(v) for v in terms[:, t]), Fraction(0))
                exact += sum(Fraction(v) * Fraction(w) for v, w in zip(a[:, t], b[:, t], strict=True))
                assert abs(Fraction(out[t]) + Fraction(rest[t]) - exact) <= Fraction(sizes[t]) * Fraction(2) ** -98
            np.testing.assert_allclose(sizes, np.abs(terms).sum(axis=0) + np.abs(a * b).sum(axis=0), rtol=1e-14)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("n_basis", [0, 1, 3])
@pytest.mark.parametrize("count", [0, 1, 8])
def test_stored_rows(rng, count, n_basis, intercept):
    n_nuisance, tasks = n_basis + (n_basis == 0 and intercept), 3
    rows, raw, shifts, sizes = rng.standard_normal((4, count, tasks)) * 10.0 ** rng.integers(-3, 6, (4, count, tasks))
    loadings = rng.standard_normal((n_basis, count, tasks))
    from_basis = rng.standard_normal((tasks, n_nuisance, n_basis))
    nuisance, own_shifts = rng.standard_normal((2, n_nuisance, tasks))
    label_shift = np.sum(shifts * raw, axis=0)  # most of it cancels
    found = []
    for module in (kernels, reference):
        pulled, left = np.full((n_basis, tasks), np.nan), np.full((n_nuisance, tasks), np.nan)
        facts = np.full((4, tasks), np.nan)
        module.stored_rows(
            rows, raw, shifts, np.abs(sizes), loadings, from_basis, nuisance, own_shifts, intercept, label_shift,
            pulled, left, facts,
        )  # fmt: skip
        for t in range(tasks if intercept else 0):
            exact = Fraction(left[0, t]) + Fraction(label_shift[t])
            pairs = [*zip(shifts[:, t], raw[:, t], strict=True), *zip(own_shifts[1:, t], left[1:, t], strict=True)]
            exact -= sum((Fraction(a) * Fraction(b) for a, b in pairs), Fraction(0))
            off = abs(Fraction(facts[0, t]) + Fraction(facts[1, t]) - exact)
            assert off <= Fraction(facts[2, t]) * Fraction(2) ** -98
        found.append((pulled, left, facts[2:]))
    for ours, twin in zip(*found, strict=True):
        np.testing.assert_allclose(ours, twin, rtol=1e-9, atol=1e-9 * (1.0 + np.abs(twin).max(initial=0.0)))
    assert np.all(found[0][2][0] == 0.0) or intercept


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("n_nuisance", [1, 3])
@pytest.mark.parametrize("matrices", [1, 3])
def test_stored_values(rng, matrices, n_nuisance, intercept):
    tasks, features, counts = 3, 9, np.array([0, 2, 5, 0, 9])
    positions = np.concatenate([np.sort(rng.choice(features, count, replace=False)) for count in counts])
    shape = (2, len(positions), tasks)
    rows, raw = rng.standard_normal(shape) * 10.0 ** rng.integers(-3, 6, shape)
    sizes, shifts = rng.uniform(0.5, 2.0, (2, matrices, features)) * 1e3
    coefficients, fit = rng.standard_normal((matrices, n_nuisance, features)), rng.standard_normal((tasks, n_nuisance))
    nuisance_shifts, label_shifts = rng.standard_normal((n_nuisance, tasks)), rng.standard_normal(tasks)
    given = (counts, positions, rows, raw, sizes, shifts, coefficients, fit, nuisance_shifts, label_shifts, intercept)
    found = []
    for module in (kernels, reference):
        left, facts = np.full((len(counts), n_nuisance, tasks), np.nan), np.full((4, len(counts), tasks), np.nan)
        module.stored_values(*given, left, facts)
        for v, t in np.ndindex(len(counts), tasks if intercept else 0):
            own = slice(counts[:v].sum(), counts[: v + 1].sum())
            column = shifts[0 if matrices == 1 else t, positions[own]]
            pairs = [*zip(column, raw[own, t], strict=True), *zip(nuisance_shifts[1:, t], left[v, 1:, t], strict=True)]
            exact = Fraction(left[v, 0, t]) + Fraction(label_shifts[t])
            exact -= sum((Fraction(a) * Fraction(b) for a, b in pairs), Fraction(0))
            off = abs(Fraction(facts[0, v, t]) + Fraction(facts[1, v, t]) - exact)
            assert off <= Fraction(facts[2, v, t]) * Fraction(2) ** -98
        found.append((left, facts[2:]))
    for ours, twin in zip(*found, strict=True):
        np.testing.assert_allclose(ours, twin, rtol=1e-9, atol=1e-9 * (1.0 + np.abs(twin).max(initial=0.0)))
    assert intercept or not found[0][1][0].any()
    with pytest.raises(ValueError):
        kernels.stored_values(counts[:-1].copy(), *given[1:], left[:-1].copy(), facts[:, :-1].copy())
    with pytest.raises(ValueError):
        kernels.stored_values(counts, positions + 1, *given[2:], left, facts)


def test_shifts_are_within_the_range(rng):
    """Of what is constant the shift is its value; of what hardly varies, nothing outside."""
    columns = {
        "constant": np.full(1001, 0.1),
        "two neighbours": np.where(rng.uniform(size=1001) < 0.3, 0.1, np.nextafter(0.1, 1.0)),
        "one is far": np.r_[np.full(1000, 1e9 / 3.0), 1e9],
        "large and constant": np.full(1001, 1e300 / 7.0),
        "ordinary": rng.standard_normal(1001) + 5.0,
    }
    x = np.asfortranarray(np.stack(list(columns.values()), axis=1))
    weights = rng.uniform(0.0, 2.0, 1001)
    weights[::7] = 0.0
    x[::7] += 1.0  # does not count
    for root in (np.ones(1001), weights):
        given = x if root is weights else np.asfortranarray(np.stack(list(columns.values()), axis=1))
        out, squares, shifts = np.empty_like(given), np.empty((5, 1)), np.empty((5, 1))
        none, offsets = np.empty((0, 1001)), np.array([0, 1001])
        kernels.centre(given, offsets, False, root, none, True, 1, out, squares, shifts, np.empty((0, 1)))
        live = given[root > 0.0]
        assert np.all((shifts[:, 0] >= live.min(axis=0)) & (shifts[:, 0] <= live.max(axis=0)))
        assert not out[:, [0, 3]].any()
        np.testing.assert_allclose(shifts[:, 0], np.average(given, axis=0, weights=root**2), rtol=1e-14)
