"""Certificates of X in a cluster: the same as those of the array, and checked as those are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cluster.examples import stacked

import tasksieve as ts
from tasksieve import verify

da = pytest.importorskip("dask.array")


def test_the_certificate_of_a_dask_array(client: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    X, y, task = stacked(21, n_tasks=2, n=20, d=300)
    lazy = da.from_array(X, chunks=(-1, 100))
    monkeypatch.setattr("tasksieve.tasks.readable._ENTRIES", 3000)  # several blocks of rows
    model = ts.MultiTaskLasso(alpha=0.3).fit(lazy, y, task=task)
    there, here = model.certificate(lazy, y, task=task), model.certificate(X, y, task=task)
    assert there.header == here.header
    there.save(tmp_path / "proof.npz")
    assert verify.verify(tmp_path / "proof.npz", X, y, task=task).proved
    assert not verify.verify(tmp_path / "proof.npz", X + 1e-9, y, task=task).proved
    assert model.proven_zero_.any()
    np.testing.assert_array_equal(model.proven_zero_ & model.get_support(), False)
