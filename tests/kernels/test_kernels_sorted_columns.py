"""Columns of a table, sorted by task and shifted: against the NumPy twin, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from tasksieve._kernels import kernels, reference

TYPES = ("f8", "f4", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8")


def case(rng, rows=37):
    columns = [(100.0 * rng.uniform(size=rows)).astype(kind) for kind in TYPES]
    order = rng.permutation(rows)[:30]
    return columns, order, np.array([0, 4, 4, 29, 30]), rng.standard_normal((4, len(TYPES)))


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("shifted", [True, False])
def test_against_the_twin(rng, ordered, shifted):
    columns, order, offsets, shifts = case(rng)
    if not ordered:
        columns, order = [column[:30].copy() for column in columns], None
    columns[0].flags.writeable = False  # as Arrow's are
    found = []
    for module, threads in ((kernels, 1), (kernels, 3), (reference, 1)):
        out = np.full((len(TYPES), 30), np.nan)
        module.sorted_columns(columns, order, offsets, shifts if shifted else None, threads, out)
        found.append(out)
    np.testing.assert_array_equal(found[0], found[2])
    np.testing.assert_array_equal(found[0], found[1])


@pytest.mark.skipif(kernels is reference, reason="the twins trust their arguments")
@pytest.mark.parametrize("wrong", ["order", "negative", "short", "offsets", "shifts", "type", "out"])
def test_what_lies_outside_is_refused(rng, wrong):
    columns, order, offsets, shifts = case(rng)
    out = np.zeros((len(TYPES), 30))
    if wrong == "order":
        order[3] = 37
    elif wrong == "negative":
        order[3] = -1
    elif wrong == "short":
        columns[4] = columns[4][:-1].copy()
    elif wrong == "offsets":
        offsets = np.array([0, 4, 31])
    elif wrong == "shifts":
        shifts = shifts[:3].copy()
    elif wrong == "type":
        columns[2] = columns[2].astype(bool)
    else:
        out = np.zeros((3, 30))
    with pytest.raises((ValueError, TypeError)):
        kernels.sorted_columns(columns, order, offsets, shifts, 1, out)
