"""Moved once, fitted often; larger than the device; devices that are not there."""

from __future__ import annotations

import builtins
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from device_helpers import DEVICES, KEPT, tensor, untouched
from helpers import memory_map
from scipy import sparse

import tasksieve as ts
from tasksieve.design.device import machine
from tasksieve.design.device.matrix import DeviceMatrix
from tasksieve.tasks import to_numpy

Data = tuple[Any, Any, Any]


@pytest.fixture
def data(rng: np.random.Generator) -> Data:
    task = rng.permutation(np.repeat(["a", "b", "c"], [20, 31, 25]))
    X = rng.integers(0, 3, (len(task), 60)).astype(np.float64)
    return X, X[:, 0] - 2 * X[:, 7] + 0.3 * rng.standard_normal(len(task)), task


@pytest.mark.sampled(4)
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", KEPT)
def test_moved_once_and_fitted_often(data: Data, dtype: str, device: str) -> None:
    X, y, task = data
    own = X.astype(dtype)
    before = own.tobytes()
    there = ts.on_device(own, device)
    assert (there.shape, there.dtype, there.device.type) == (X.shape, np.dtype(dtype), device)
    assert ts.on_device(there, device) is there
    position, bits = there.tensor.data_ptr(), there.tensor.cpu().numpy().tobytes()
    for model in (ts.MultiTaskLasso(0.1), ts.MultiTaskElasticNet(0.1), ts.MultiTaskHuber(0.1, device=device)):
        found, expected = model.fit(there, y, task=task).coef_, type(model)(0.1).fit(own, y, task=task).coef_
        assert np.allclose(found, expected, atol=1e-4)
        assert np.allclose(to_numpy(model.predict(there, task=task)), model.predict(X, task=task))
    assert (there.tensor.data_ptr(), there.tensor.cpu().numpy().tobytes()) == (position, bits)
    assert own.tobytes() == before
    assert "on" in repr(there)


@pytest.mark.parametrize("device", DEVICES)
def test_what_can_be_moved(data: Data, device: str, tmp_path: Path) -> None:
    import pandas

    X, y, task = data
    expected = ts.MultiTaskLasso(0.1).fit(X, y, task=task).coef_
    frozen = X.copy()
    frozen.flags.writeable = False
    frame = pandas.DataFrame(X, columns=[f"gene{j}" for j in range(60)])
    forms: dict[str, Any] = {
        "an array": X,
        "Fortran order": np.asfortranarray(X),
        "read-only": frozen,
        "a map": memory_map(tmp_path, X, "x", "C"),
        "a frame": frame,
        "a tensor": tensor(X),
        "int16": X.astype(np.int16),
        "strided": np.repeat(X, 2, axis=1)[:, ::2],
    }
    for name, form in forms.items():
        there = ts.on_device(form, device)
        assert isinstance(there, DeviceMatrix), name
        assert np.allclose(ts.MultiTaskLasso(0.1).fit(there, y, task=task).coef_, expected, atol=1e-4), name
    listed = ts.on_device([X[task == t] for t in "abc"], device)
    assert np.allclose(ts.MultiTaskLasso(0.1).fit(listed, [y[task == t] for t in "abc"]).coef_, expected, atol=1e-4)
    model = ts.MultiTaskLasso(0.1, device=device).fit(frame, y, task=task)  # its names are kept
    assert model.feature_names_in_[7] == "gene7"
    assert isinstance(model.predict(frame), np.ndarray)


@pytest.mark.parametrize("device", DEVICES)
def test_the_estimators_own_device(data: Data, device: str) -> None:
    X, y, task = data
    model = ts.MultiTaskLasso(0.1, device=device).fit(X, y, task=task)
    plain = ts.MultiTaskLasso(0.1).fit(X, y, task=task)
    assert np.allclose(model.coef_, plain.coef_, atol=1e-4)
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.predict(X), model.predict(X))
    assert model.alpha_max(X, y, task=task) == pytest.approx(plain.alpha_max(X, y, task=task))
    path = model.path(X, y, task=task, n_alphas=5)
    assert np.array_equal(path.n_selected, plain.path(X, y, task=task, n_alphas=5).n_selected)
    assert model.certificate(X, y, task=task).verify(X, y, task=task).proved


def test_x_is_moved_once_a_fit(data: Data, monkeypatch: pytest.MonkeyPatch) -> None:
    import tasksieve.tasks.moving as moving

    X, y, task = data
    moves = []
    original = moving._moved
    monkeypatch.setattr(moving, "_moved", lambda *given: moves.append(1) or original(*given))
    ts.MultiTaskLassoCV(n_alphas=4, eps=0.5, cv=3, device="cpu").fit(X, y, task=task)
    ts.StabilitySelection(ts.MultiTaskLasso(device="cpu"), n_pairs=3).fit(X, y, task=task)
    ts.permutation_test(ts.MultiTaskLasso(device="cpu"), X, y, task=task, n_permutations=9)
    ts.split_inference(ts.MultiTaskLasso(0.5, device="cpu"), X, y, task=task)
    ts.compare(ts.MultiTaskLassoCV(n_alphas=2, eps=0.5, cv=3, device="cpu"), X, y, task=task, cv=3)
    assert len(moves) == 5


# --- larger than the device -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", KEPT)
def test_data_that_does_not_fit_streams(data: Data, dtype: str, device: str, tmp_path: Path) -> None:
    import torch

    X, y, task = data
    own = memory_map(tmp_path, X.astype(dtype), "x", "F")
    there = ts.on_device(own, device, max_bytes=0.5 * own.nbytes * 4)
    assert isinstance(there, DeviceMatrix) or dtype == "float64"
    there = ts.on_device(own, device, max_bytes=own.nbytes - 1)
    assert type(there).__name__ == "StreamedMatrix"
    assert ts.on_device(there, device) is there
    told: list[Any] = []
    with ts.watch(told.append):
        model = ts.MultiTaskLasso(0.1).fit(there, y, task=task)
    expected = ts.MultiTaskLasso(0.1).fit(X, y, task=task)
    assert np.array_equal(model.get_support(), expected.get_support())
    assert np.allclose(model.coef_, expected.coef_, atol=1e-4)
    assert isinstance(model.predict(there, task=task), torch.Tensor)
    assert np.allclose(to_numpy(model.predict(there, task=task)), model.predict(X, task=task))
    said = [str(progress) for progress in told if progress.unit == "pass"]
    assert len(said) == 1  # once
    assert "MultiTaskLasso: pass 1 of 1, X (" in said[0]
    assert "is larger than the memory allowed on" in said[0]
    assert "s a pass" in said[0]


def test_lists_and_folds_stream(data: Data) -> None:
    X, y, task = data
    listed = [X[task == t] for t in "abc"]
    there = ts.on_device(listed, "cpu", max_bytes=5000)
    assert {type(part).__name__ for part in there} == {"StreamedMatrix"}
    a = ts.MultiTaskLasso(0.1).fit(there, [y[task == t] for t in "abc"])
    b = ts.MultiTaskLasso(0.1).fit(X, y, task=task)
    assert np.allclose(a.coef_, b.coef_, atol=1e-4)
    whole = ts.on_device(X, "cpu", max_bytes=9000)
    options: dict[str, Any] = {"n_alphas": 5, "eps": 0.1, "cv": 3}
    c, d = ts.MultiTaskLassoCV(**options).fit(whole, y, task=task), ts.MultiTaskLassoCV(**options).fit(X, y, task=task)
    assert np.allclose(c.cv_scores_, d.cv_scores_, rtol=1e-3)


def test_nan_in_streamed_rows(data: Data) -> None:
    X, y, task = data
    X = X.copy()
    X[7, 4] = np.nan
    with pytest.raises(ValueError, match=r"Input X contains NaN: row 8 .*\[:, 4\]"):
        ts.MultiTaskLasso().fit(ts.on_device(X, "cpu", max_bytes=9000), y, task=task)


def test_free_memory_decides_without_max_bytes(data: Data, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y, task = data
    monkeypatch.setattr(machine, "free_memory", lambda: 20_000.0)
    assert type(ts.on_device(X, "cpu")).__name__ == "StreamedMatrix"
    ts.MultiTaskLasso(device="cpu").fit(X, y, task=task)
    monkeypatch.setattr(machine, "free_memory", lambda: 1e9)
    assert isinstance(ts.on_device(X, "cpu"), DeviceMatrix)


# --- errors ---------------------------------------------------------------------------------------------------------


def test_devices_that_are_not_there(data: Data, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    X, y, task = data
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    for call in (lambda: ts.on_device(X), lambda: ts.MultiTaskLasso(device="cuda").fit(X, y, task=task)):
        with pytest.raises(ValueError, match=r"device='cuda': torch sees no CUDA device .* leave device out"):
            call()
    with pytest.raises(ValueError, match=r"'device' parameter must name a device that torch knows.*'gpu'"):
        ts.MultiTaskLasso(device="gpu").fit(X, y, task=task)
    with pytest.raises(ValueError, match="must be None or name a device"):
        ts.MultiTaskLassoCV(device=object()).fit(X, y, task=task)
    with pytest.raises(ValueError, match="'mps' has no double precision"):
        ts.on_device(X, "mps")
    with pytest.raises(ValueError, match="tensors on 'meta' have no numbers"):
        ts.on_device(X, "meta")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    with pytest.raises(ValueError, match=r"torch sees 2 CUDA device\(s\), the last is 'cuda:1'"):
        ts.on_device(X, "cuda:5")


def test_what_cannot_be_moved(data: Data) -> None:
    X, y, task = data

    class Own(ts.Storage):
        n_rows, n_features = X.shape

    with pytest.raises(ValueError, match=r"X is sparse, and a device holds dense columns: pass X.toarray\(\)"):
        ts.MultiTaskLasso(device="cpu").fit(sparse.csr_array(X), y, task=task)
    with pytest.raises(ValueError, match="X is a storage of your own"):
        ts.on_device(Own(), "cpu")
    with pytest.raises(ValueError, match="max_bytes must be a positive number"):
        ts.on_device(X, "cpu", max_bytes=0)
    with pytest.raises(ValueError, match=r"X\[1\] has 59 features"):
        ts.on_device([X, X[:, 1:]], "cpu")
    moments = ts.TaskMoments().add(X, y, task=task)
    with pytest.raises(ValueError, match=r"device='cpu': sums of rows are worked on by the processor"):
        ts.MultiTaskLasso(device="cpu").fit_moments(moments)


def test_too_little_memory_for_a_tensor(data: Data, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    import tasksieve.tasks.moving as moving

    monkeypatch.setattr(moving, "read_device", lambda device: torch.device("cuda", 0))
    monkeypatch.setattr(moving, "room_on", lambda device: 10_000.0)
    with pytest.raises(MemoryError, match=r"X needs 36.5 kB on cuda:0, where there is room for 10.0 kB.*stream"):
        ts.on_device(tensor(data[0]), "cuda")


def test_too_little_memory_says_how_much(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    monkeypatch.setattr(machine, "free_memory", lambda: 3e9)
    with pytest.raises(MemoryError, match=r"^X needs 40.0 GB on cpu, where 3.0 GB are free. Sort them.$"):
        machine.refuse_too_large(40e9, torch.device("cpu"), "X", "Sort them.")
    machine.refuse_too_large(1e9, torch.device("cpu"), "X", "Sort them.")
    assert [machine.in_words(n) for n in (12, 3.2e3, 5e6, 1e12)] == ["12 bytes", "3.2 kB", "5.0 MB", "1.0 TB"]


def test_memory_that_runs_out_in_a_fit(data: Data, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    from tasksieve.path.walks import PathWalk

    def runs_out(*_: Any, **__: Any) -> Any:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB. See documentation for more.")

    monkeypatch.setattr(PathWalk, "values", runs_out)
    X, y, task = data
    with pytest.raises(MemoryError, match=r"free there \(CUDA out of memory. Tried to allocate 20.*GiB"):
        ts.MultiTaskLasso(0.1).fit(tensor(X), y, task=task)


def test_problems_are_saved_without_a_device(data: Data, tmp_path: Path) -> None:
    X, y, task = data
    ts.save_problem(tmp_path / "p.npz", ts.MultiTaskLasso(0.1, device="cpu"), tensor(X, "int8"), tensor(y), task=task)
    found = ts.load_problem(tmp_path / "p.npz")
    assert found.model.device is None
    assert found.X.dtype == np.int8
    assert np.array_equal(found.X, X)


def test_command_line(cli: Any, data: Data, tmp_path: Path, reports: list[Any]) -> None:
    import pandas

    X, y, task = data
    table = tmp_path / "t.csv"
    frame = pandas.DataFrame(X[:, :20], columns=[f"g{j}" for j in range(20)]).assign(y=y, site=task)
    frame.to_csv(table, index=False)
    common = ["fit", str(table), "--target", "y", "--task", "site", "--alpha", "0.1"]
    for out, options in (("a", ["--device", "cpu"]), ("b", [])):
        cli(*common, *options, "--out", str(tmp_path / out))
    a, b = (pandas.read_csv(tmp_path / out / "coefficients.csv") for out in "ab")
    assert a["feature"].tolist() == b["feature"].tolist()
    result = cli(*common, "--device", "gpu", "--out", str(tmp_path / "c"), code=1)
    assert "must name a device that torch knows" in result.err


def test_without_torch(data: Data, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y, task = data
    real = builtins.__import__

    def no_torch(name: str, *args: Any, **options: Any) -> Any:
        if name.partition(".")[0] == "torch":
            raise ImportError("No module named 'torch'")
        return real(name, *args, **options)

    monkeypatch.setattr(builtins, "__import__", no_torch)
    with pytest.raises(ImportError, match=r"device='cuda' needs torch.*pip install 'tasksieve\[gpu\]'"):
        ts.MultiTaskLasso(device="cuda").fit(X, y, task=task)


def test_nothing_of_a_tensor_is_changed_by_findings(data: Data) -> None:
    X, y, task = data
    given = tensor(X).T.contiguous().T
    with untouched(given):
        ts.MultiTaskLasso(0.1, standardize=True).fit(given, y, task=task)
        ts.MultiTaskLassoCV(n_alphas=4, cv=3).fit(given, y, task=task)
        ts.StabilitySelection(ts.MultiTaskLasso(), n_pairs=3).fit(given, y, task=task)
