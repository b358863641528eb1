"""What the tests of compiled kernels share: input, ordinary and degenerate, and both results."""

from __future__ import annotations

import numpy as np
import pytest

from tasksieve._kernels import compiled, kernels, reference

needs_kernels = pytest.mark.skipif(
    not compiled, reason="no compiled kernels here to compare with their NumPy twins"
)


def draw(rng, shape, dtype=np.float64, order="F"):
    """Random numbers over the whole range of a small integer type, with a zero column."""
    if np.issubdtype(dtype, np.integer):
        info = np.iinfo(dtype)
        x = rng.integers(info.min, info.max, size=shape, endpoint=True, dtype=dtype)
    else:
        x = rng.standard_normal(shape).astype(dtype)
    if shape[1] > 2:
        x[:, 1] = 0
    return np.require(x, requirements=order)


def layout(lengths):
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def both(name, out_shape, *args, order="C", dtype=np.float64, fill=np.nan):
    """The result array of a kernel and of its twin; `args` is a function of the array to write into."""
    results = []
    for module in (kernels, reference):
        out = np.full(out_shape, fill, dtype=dtype, order=order)
        getattr(module, name)(*args, out)
        results.append(out)
    return results


def anchored_input(rng, features, tasks, anchors, one_norm, scale=1.0):
    return {
        "anchors": [
            (scale * rng.standard_normal((features, tasks))).astype(np.float32) for _ in range(anchors)
        ],
        "coef": rng.standard_normal((anchors, tasks)) / max(anchors, 1),
        "norms": np.abs(scale * rng.standard_normal((features, 1 if one_norm else tasks))).astype(np.float32),
        "remainder": 0.1 * rng.random(tasks),
        "shared_remainder": 0.1 * rng.random(),
    }


def row_problem(rng, lengths, shared, count, extra=3):
    """Packed columns with a zero and a duplicate column, and targets."""
    offsets = layout(lengths)
    if shared:
        rows = lengths[0]
        offsets = rows * np.arange(len(lengths) + 1)
    else:
        rows = offsets[-1]
    x = np.asfortranarray(rng.standard_normal((rows, count + extra)))
    columns = rng.permutation(count + extra)[:count]
    if count > 3:
        x[:, columns[0]] = 0.0
        x[:, columns[2]] = x[:, columns[1]]
    tasks = len(lengths)
    h = np.empty((count, tasks))
    for t in range(tasks):
        block = x[:, columns] if shared else x[offsets[t] : offsets[t + 1], columns]
        h[:, t] = np.sum(block * block, axis=0)
    return x, offsets.astype(np.int64), columns, h, rng.standard_normal(offsets[-1])
