"""What X is, told once: a `Source` for each kind of matrix."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

import tasksieve as ts
from tasksieve.design import Storage
from tasksieve.tasks import kind_of, read_tasks, source
from tasksieve.tasks.cluster import ClusterSource
from tasksieve.tasks.matrix import ArraySource, SparseSource, StorageSource, read_source
from tasksieve.tasks.tensors import DeviceSource


class Own(Storage):
    """Columns of an array."""

    def __init__(self, x: np.ndarray) -> None:
        self.x, (self.n_rows, self.n_features) = x, x.shape

    def take(self, features: np.ndarray) -> np.ndarray:
        return self.x[:, features]


def mapped(x: np.ndarray, folder: Path) -> np.ndarray:
    np.save(folder / "x.npy", x)
    return np.load(folder / "x.npy", mmap_mode="r")


def test_kinds_and_places(tmp_path: Path) -> None:
    x = np.eye(4)
    frame = pd.DataFrame(x)
    for X, kind, position in (
        (x, ArraySource, "memory"),
        (x.tolist(), ArraySource, "memory"),
        (frame, ArraySource, "memory"),
        (mapped(x, tmp_path), ArraySource, "file"),
        (scipy.sparse.coo_array(x), SparseSource, "memory"),
        (frame.astype(pd.SparseDtype(float, 0.0)), SparseSource, "memory"),
        (Own(x), StorageSource, "memory"),
    ):
        assert kind_of(X) is kind
        found = read_source(X)
        assert type(found) is kind
        assert (found.location, found.shape, found.dense) == (position, (4, 4), kind is ArraySource)
        assert kind_of(found.matrix) is kind  # what was read is of the same kind


def test_tensors_and_dask_arrays() -> None:
    torch = pytest.importorskip("torch")
    dask = pytest.importorskip("dask.array")
    for X, kind, position in (
        (torch.eye(4), DeviceSource, "device"),
        (ts.on_device(np.eye(4), "cpu"), DeviceSource, "device"),
        (dask.eye(4, chunks=2), ClusterSource, "cluster"),
    ):
        assert kind_of(X) is kind
        found = read_source(X)
        assert (found.location, found.shape, kind_of(found.matrix)) == (position, (4, 4), kind)


def test_nan_is_found_in_every_kind() -> None:
    x = np.ones((5, 3))
    x[3, 1] = np.nan
    for X in (x, np.asfortranarray(x), scipy.sparse.csr_array(x), scipy.sparse.csc_array(x), Own(x)):
        row, feature, value = kind_of(X)(X).first_not_finite() or (-1, -1, 0.0)
        assert (row, feature) == (3, 1)
        assert np.isnan(value)
        with pytest.raises(ValueError, match=r"Input X contains NaN.* row 4 .*X\[:, 1\]"):
            kind_of(X)(X).refuse_not_finite("X")
    assert ArraySource(np.eye(3)).first_not_finite() is None


def test_no_attribute_of_the_data_copies_x(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []
    whole = source.as_storage
    monkeypatch.setattr(source, "as_storage", lambda *given, **more: made.append(given) or whole(*given, **more))
    X, task = np.random.default_rng(0).standard_normal((6, 3)), np.array([1, 0, 1, 0, 1, 0])
    data = read_tasks(X, X[:, 0], task)
    for name in dir(data):
        getattr(data, name)
    assert data.source is not None
    for name in dir(data.source):
        getattr(data.source, name)
    assert data.source.matrices[0] is X
    assert not made
    assert data.with_weights(data.weights).make_storage() is data.make_storage()
    assert len(made) == 1


def test_a_new_kind_is_a_class_and_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    class Constant:
        """A matrix all of whose entries are the same."""

        shape = (4, 2)

    monkeypatch.setattr(source, "_KINDS", list(source._KINDS))

    @source.register
    class ConstantSource(source.Source):
        @classmethod
        def accepts(cls, X: Any) -> bool:
            return isinstance(X, Constant)

        @classmethod
        def read(cls, X: Any, name: str) -> source.Source:
            return ArraySource(np.ones(X.shape))

    assert kind_of(Constant()) is ConstantSource
    assert kind_of(np.eye(2)) is ArraySource
    assert ts.MultiTaskLasso(0.1).fit(Constant(), np.arange(4.0)).n_features_in_ == 2
