"""The engine finds what version 0.1 found: the same objectives within both certificates, the same features."""

from __future__ import annotations

import warnings
from pathlib import Path

import golden_cases
import numpy as np
import pytest

GOLDEN = Path(__file__).parent / "golden-0.1.npz"


@pytest.mark.sampled(2)
@pytest.mark.parametrize("tol", golden_cases.TOLERANCES)
@pytest.mark.parametrize("name", golden_cases.cases())
def test_paths_of_version_0_1(name: str, tol: float) -> None:
    if tol < 1e-8 and golden_cases.loose(name):
        pytest.skip("this model's solver is a first-order method")
    promised = tol > 1e-8 or not golden_cases.first_order(name)  # that the tolerance is met
    with np.load(GOLDEN) as stored:
        old = {key: stored[f"{name}/{tol:g}/{key}"] for key in ("alphas", "objectives", "gaps", "null", "row_norms")}
    with warnings.catch_warnings():
        if golden_cases.loose(name) or not promised:
            warnings.simplefilter("ignore")
        new = golden_cases.solve(name, tol)
    np.testing.assert_allclose(new["alphas"], old["alphas"], rtol=1e-12)
    np.testing.assert_allclose(new["null"], old["null"], rtol=1e-12)
    rounding = 1e-14 * float(old["null"])
    assert np.all(np.abs(new["objectives"] - old["objectives"]) <= old["gaps"] + new["gaps"] + rounding)
    if not golden_cases.loose(name) and promised:
        assert np.all(new["gaps"] <= max(tol, 1e-14) * old["null"] * (1.0 + 1e-9))
    if tol < 1e-8:
        largest = old["row_norms"].max(axis=1, keepdims=True)
        decided = np.maximum(new["row_norms"], old["row_norms"]) > 1e-5 * largest  # below: neither pair can tell
        decided &= (np.maximum(new["gaps"], old["gaps"]) <= 1e-10 * old["null"])[:, None]
        assert decided.any()
        np.testing.assert_array_equal((new["row_norms"] > 0) & decided, (old["row_norms"] > 0) & decided)
