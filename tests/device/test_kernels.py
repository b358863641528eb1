"""Kernels of a GPU beside their twins in torch."""

from __future__ import annotations

import numpy as np
import pytest
from device_helpers import KEPT


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", KEPT)
@pytest.mark.parametrize("rows", [1, 5, 16, 37, 300, 1000])
@pytest.mark.parametrize("squares", [False, True])
def test_products_of_segments(dtype: str, rows: int, squares: bool) -> None:
    import torch

    from tasksieve.design.device import passes, triton_kernels

    rng = np.random.default_rng(rows)
    low, high = (-128, 128) if dtype == "int8" else (0, 256)
    x = rng.integers(low, high, (131, rows)) if dtype in ("int8", "uint8") else rng.standard_normal((131, rows))
    pitch = -(-rows // 16) * 16
    whole = torch.zeros((131, pitch), dtype=getattr(torch, dtype), device="cuda")
    whole[:, :rows] = torch.tensor(x, device="cuda").to(whole.dtype)
    before = whole.cpu().numpy().tobytes()
    if not triton_kernels.usable(whole):
        pytest.skip("Triton is not installed")
    vectors = torch.tensor(rng.standard_normal((3, rows)), device="cuda")
    cuts = [np.array([0, rows]), np.unique(np.r_[0, rng.integers(0, rows + 1, 4), rows])]
    for offsets in cuts:
        cut = torch.tensor(offsets, device="cuda")
        for columns in (None, torch.tensor(rng.permutation(131)[:17], device="cuda")):
            found = triton_kernels.segment_products(whole, vectors, offsets, cut, columns, squares)
            twin = passes.plain_segment_products(whole, rows, vectors, offsets, columns, squares)
            magnitudes = whole.to(torch.float64).abs()
            sizes = passes.plain_segment_products(magnitudes, rows, vectors.abs(), offsets, columns, squares)
            assert found.shape == twin.shape
            assert bool(torch.all((found - twin).abs() <= 2.0 * (rows + 2) * 2.0**-53 * sizes + 1e-300))
    assert whole.cpu().numpy().tobytes() == before
