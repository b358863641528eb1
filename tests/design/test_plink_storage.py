"""Genotypes at 2 bits, verb by verb, against the same numbers as a dense array."""

from __future__ import annotations

import numpy as np
import pytest
from plink_files import draw_counts, filled, pack

from tasksieve.design import BesideStorage, DenseStorage, Design, PlinkStorage, SharedReading
from tasksieve.design.storage import ProductRequest

LENGTHS = {"uneven": (5, 17, 1, 9), "one task": (23,), "whole bytes": (8, 12), "empty task": (6, 0, 7)}


def storages(rng, lengths, missing=0.2, variants=60):
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    rows = int(offsets[-1])
    counts = draw_counts(rng, rows, variants, missing)
    counts[:, 3] = np.nan  # no calls
    counts[:, 4] = 2.0  # monomorphic
    counts[: offsets[1], 5] = np.nan  # no calls in the first task
    x = filled(counts, np.repeat(np.arange(len(lengths)), lengths))
    return PlinkStorage(pack(counts), rows, offsets), DenseStorage(np.asfortranarray(x)), offsets


def same(found, expected):
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-13 * (1 + np.abs(expected).max(initial=0)))


@pytest.mark.parametrize("lengths", LENGTHS.values(), ids=LENGTHS)
def test_products_squares_read_and_take(rng, lengths):
    ours, dense, offsets = storages(rng, lengths)
    rows = ours.n_rows
    cuts = [(offsets, False), (np.array([0, rows]), False), (np.array([0, 3, 10, rows]), False)]
    cuts += [(rows * np.arange(t + 1), True) for t in (1, 3, 7)]
    some = np.array([59, 3, 0, 5, 5])
    asked = []
    for offsets_asked, shared in cuts:
        vector = rng.standard_normal(int(offsets_asked[-1]))
        for columns in (None, some, np.empty(0, dtype=np.int64)):
            for squares in (False, True):
                asked.append(ProductRequest(vector, offsets_asked, shared, columns, squares))
                same(
                    ours.products(vector, offsets_asked, shared, columns, squares, 2),
                    dense.products(vector, offsets_asked, shared, columns, squares, 1),
                )
    found, spent = ours.read(asked, 2)
    expected = dense.read(asked, 1)
    assert spent == expected.spent == 1.0
    for a, b in zip(found, expected.products, strict=True):
        same(a, b)
    np.testing.assert_array_equal(ours.take(some), dense.take(some))
    assert ours.unread(some) == 5


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_a_reader_of_a_shared_reading_keeps_means(rng, missing):
    """Columns that were kept are not rounded to whole copies."""
    ours, dense, offsets = storages(rng, (9, 14), missing)
    reader, vector = SharedReading(ours).reader(), rng.standard_normal(23)
    some = np.array([7, 5, 1])
    for squares in (False, True):
        same(
            reader.products(vector, offsets, False, some, squares, 1),
            dense.products(vector, offsets, False, some, squares, 1),
        )


@pytest.mark.parametrize("standardize", [False, True])
@pytest.mark.parametrize("shared", [False, True])
def test_norms_and_correlations_of_a_design(rng, shared, standardize):
    """With weights, absent rows, intercepts and an unpenalised covariate beside the genotypes."""
    ours, dense, offsets = storages(rng, (40,) if shared else (13, 20, 11))
    rows = ours.n_rows
    covariates = DenseStorage(np.asfortranarray(rng.standard_normal((rows, 2))))
    tasks = 3
    offsets = rows * np.arange(tasks + 1) if shared else offsets
    weights = rng.uniform(0.5, 2.0, int(offsets[-1]))
    weights[rng.random(len(weights)) < 0.2] = 0.0
    options = {"shared": shared, "weights": weights, "standardize": standardize, "unpenalised": np.array([0, 1])}
    r = rng.standard_normal(int(offsets[-1]))
    with np.errstate(all="raise"):
        first = Design(BesideStorage([covariates, ours]), offsets, **options)
        second = Design([covariates, dense], offsets, **options)
        same(first.norms()[2:], second.norms()[2:])
        same(first.correlate(r)[2:], second.correlate(r)[2:])
        some = np.array([61, 7, 2])
        same(first.correlate(r, some), second.correlate(r, some))
        a, b = first.take(some), second.take(some)
        same(a.columns, b.columns)
        same(a.shifts, b.shifts)


def test_norms_are_what_integers_give(rng):
    """Intercept and unit weights: norm^2 = het + 4 hom - (het + 2 hom)^2 / called."""
    ours, _, offsets = storages(rng, (31, 18))
    norms = Design(ours, offsets).norms()
    counts = ours.counts(np.arange(60)).astype(float)
    called = np.diff(offsets) - counts[:, :, 2]
    total = counts[:, :, 1] + 2 * counts[:, :, 0]
    mean_part = np.divide(total**2, called, out=np.zeros_like(total), where=called > 0)
    spread = counts[:, :, 1] + 4 * counts[:, :, 0] - mean_part
    varying = spread > 0
    np.testing.assert_allclose(norms[varying], np.sqrt(spread[varying]), rtol=1e-6)


def test_a_mapped_file_and_chosen_variants(rng, tmp_path):
    """Packed bytes on disk behind a header; features are some of its variants."""
    counts = draw_counts(rng, 21, 30)
    (tmp_path / "x").write_bytes(b"abc" + pack(counts).tobytes())
    mapped = np.memmap(tmp_path / "x", dtype=np.uint8, mode="r", offset=3, shape=(30, 6))
    chosen = np.array([4, 9, 10, 28])
    ours = PlinkStorage(mapped, 21, np.array([0, 8, 21]), chosen)
    x = filled(counts, np.repeat([0, 1], [8, 13]))[:, chosen]
    assert ours.costly_reads
    assert ours.n_features == 4
    np.testing.assert_array_equal(ours.take(np.arange(4)), x)
    vector = rng.standard_normal(21)
    for columns in (None, np.array([2, 0])):
        expected = x if columns is None else x[:, columns]
        same(ours.products(vector, np.array([0, 21]), False, columns, False, 1)[:, 0], expected.T @ vector)
    same(ours.fills(np.array([1])), np.array([[np.nanmean(counts[:8, 9]), np.nanmean(counts[8:, 9])]]))
