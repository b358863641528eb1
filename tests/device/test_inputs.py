"""What may be X, y, task, weights: tensors in every form; what is refused, by name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from device_helpers import CONVERTED, DEVICES, KEPT, forms, tensor, untouched

import tasksieve as ts
from tasksieve.tasks import kind_of, like, to_numpy

Data = tuple[Any, Any, Any]


@pytest.fixture
def data(rng: np.random.Generator) -> Data:
    """Ragged tasks in no order, one of them of a single row."""
    task = rng.permutation(np.repeat([3, 1, 2, 0], [15, 22, 1, 18]))
    X = rng.integers(0, 4, (len(task), 30)).astype(np.float64)
    y = X[:, 0] * np.array([1.0, -1.0, 2.0, 1.5])[task] + 0.2 * rng.standard_normal(len(task)) + 1.0
    return X, y, task


def same(found: Any, expected: Any) -> None:
    """Two certified fits of one problem: the same set, objectives within the gaps."""
    assert np.array_equal(found.get_support(), expected.get_support())
    assert abs(found.objective_ - expected.objective_) <= found.dual_gap_ + expected.dual_gap_ + 1e-12
    assert np.allclose(found.coef_, expected.coef_, atol=1e-4)
    for name, value in vars(found).items():
        if name.endswith("_"):
            assert kind_of(value).location != "device", name


@pytest.mark.sampled(4)
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [*KEPT, *CONVERTED])
def test_every_type_and_layout(data: Data, dtype: str, device: str) -> None:
    X, y, task = data
    X = X.astype(dtype)
    expected = ts.MultiTaskLasso(0.1).fit(X, y, task=task)
    for name, given in forms(X, dtype, device).items():
        with untouched(given):
            same(ts.MultiTaskLasso(0.1).fit(given, y, task=task), expected)
            assert name


@pytest.mark.parametrize("device", DEVICES)
def test_every_form_of_tasks(data: Data, device: str, rng: np.random.Generator) -> None:
    X, y, task = data
    given = tensor(X, "int8", device)
    expected = ts.MultiTaskLasso(0.1).fit(X, y, task=task)
    same(ts.MultiTaskLasso(0.1).fit(given, tensor(y, device=device), task=tensor(task, "int64", device)), expected)
    listed = [given[tensor(task == t, "bool", device)] for t in range(4)]
    labels = [tensor(y[task == t], device=device) for t in range(4)]
    with untouched(*listed):
        same(ts.MultiTaskLasso(0.1).fit(listed, labels), expected)
    Y = np.stack([y, -y, y**2], axis=1)
    Y[rng.random(Y.shape) < 0.2] = np.nan
    same(ts.MultiTaskLasso(0.1).fit(given, tensor(Y, device=device)), ts.MultiTaskLasso(0.1).fit(X, Y))
    same(ts.MultiTaskLasso(0.1).fit(given, tensor(y, device=device)), ts.MultiTaskLasso(0.1).fit(X, y))


@pytest.mark.parametrize("device", DEVICES)
def test_weights_offsets_and_groups_may_be_tensors(data: Data, device: str, rng: np.random.Generator) -> None:
    X, y, task = data
    s, o = rng.uniform(0.2, 2.0, len(y)), rng.standard_normal(len(y))
    u = rng.uniform(0.5, 2.0, X.shape[1])
    there = [tensor(v, device=device) for v in (X, y, s, o, u)]
    same(
        ts.MultiTaskLasso(0.1, feature_weights=there[4]).fit(
            there[0], there[1], task=task, sample_weight=there[2], offset=there[3]
        ),
        ts.MultiTaskLasso(0.1, feature_weights=u).fit(X, y, task=task, sample_weight=s, offset=o),
    )
    groups = rng.integers(0, 12, len(y))
    options: dict[str, Any] = {"n_alphas": 4, "eps": 0.1, "cv": 3}
    a = ts.MultiTaskLassoCV(**options).fit(there[0], y, groups=tensor(groups, "int64", device))
    b = ts.MultiTaskLassoCV(**options).fit(X, y, groups=groups)
    assert np.allclose(a.cv_scores_, b.cv_scores_, rtol=1e-3)


@pytest.mark.parametrize("device", DEVICES)
def test_predictions_are_of_the_kind_of_x(data: Data, device: str) -> None:
    import torch

    X, y, task = data
    given = tensor(X, "float32", device)
    model = ts.MultiTaskLasso(0.1).fit(X, y, task=task)
    with untouched(given):
        for options in ({}, {"task": task}, {"task": tensor(task, "int64", device)}):
            found = model.predict(given, **options)
            assert isinstance(found, torch.Tensor)
            assert found.device == given.device
            assert found.dtype == torch.float64
            here = {name: to_numpy(value) for name, value in options.items()}
            assert np.allclose(found.cpu().numpy(), model.predict(X, **here), atol=1e-12)
    listed = model.predict([given[:3], given[:0], given[3:5], given[:1]])
    assert [tuple(part.shape) for part in listed] == [(3,), (0,), (2,), (1,)]
    assert all(isinstance(part, torch.Tensor) for part in listed)
    path = model.path(given, y, task=task, n_alphas=3)
    assert isinstance(path.predict(given, 2), torch.Tensor)
    assert model.score(given, tensor(y, device=device), task=task) == pytest.approx(model.score(X, y, task=task))
    chosen = model.transform(given)
    assert (chosen.dtype, chosen.device) == (given.dtype, given.device)
    assert np.array_equal(chosen.cpu().numpy(), model.transform(X))
    assert np.array_equal(model.inverse_transform(chosen).cpu().numpy(), model.inverse_transform(model.transform(X)))
    assert isinstance(model.predict(X), np.ndarray)
    with pytest.raises(ValueError, match="X has 29 features, but MultiTaskLasso is expecting 30"):
        model.transform(given[:, 1:])
    with pytest.raises(ValueError, match="X has 29 features"):
        model.predict(given[:, 1:])


@pytest.mark.parametrize("device", DEVICES)
def test_classes_and_probabilities(data: Data, device: str) -> None:
    import torch

    X, y, _ = data
    given = tensor(X, device=device)
    for labels in ((y > np.median(y)).astype(int), np.digitize(y, np.quantile(y, [0.3, 0.6]))):
        model = ts.MultiTaskClassifier(alpha=0.02).fit(given, labels)
        expected = ts.MultiTaskClassifier(alpha=0.02).fit(X, labels)
        same(model, expected)
        found, p, z = model.predict(given), model.predict_proba(given), model.decision_function(given)
        assert found.dtype == torch.int64
        assert np.array_equal(found.cpu().numpy(), model.predict(X))
        assert np.allclose(p.cpu().numpy(), model.predict_proba(X))
        assert np.allclose(z.cpu().numpy(), model.decision_function(X))
        words = np.array(["low", "middle", "high"])[labels]
        by_name = ts.MultiTaskClassifier(alpha=0.02).fit(given, words)
        assert isinstance(by_name.predict(given), np.ndarray)
        assert isinstance(by_name.predict_proba(given), torch.Tensor)
        assert by_name.score(given, words) == by_name.score(X, words)


@pytest.mark.parametrize("device", DEVICES)
def test_nan_and_infinity_are_named(data: Data, device: str) -> None:
    X, y, task = data
    X = X.copy()
    X[7, 4] = np.nan
    with pytest.raises(ValueError, match=r"Input X contains NaN: row 8 .*\[:, 4\]"):
        ts.MultiTaskLasso().fit(tensor(X, device=device), y, task=task)
    X[7, 4] = np.inf
    with pytest.raises(ValueError, match=r"Input X contains infinity \(inf\): row 8 .*\[:, 4\]"):
        ts.MultiTaskLasso().fit(tensor(X, "float32", device), y, task=task)
    model = ts.MultiTaskLasso().fit(data[0], y, task=task)
    with pytest.raises(ValueError, match=r"row 8 .*\[:, 4\]"):
        model.predict(tensor(X, device=device), task=task)


@pytest.mark.filterwarnings("ignore::UserWarning")  # torch's own, of quantized and sparse tensors
def test_tensors_that_are_refused(data: Data) -> None:
    import torch

    X, y, task = data
    given = tensor(X)
    quantized = torch.quantize_per_tensor(given.float(), 0.1, 0, torch.qint8)
    cases = [
        (given.clone().requires_grad_(), r"X is a tensor that requires grad.*X.detach\(\)"),
        (given.to_sparse(), r"X is a sparse tensor \(sparse_coo\): pass X.to_dense\(\)"),
        (given.to_sparse_csr(), r"sparse_csr"),
        (given.to(torch.complex64), "Complex data not supported: X has dtype torch.complex64"),
        (quantized, r"X is a quantized tensor: pass X.dequantize\(\)"),
        (given.to("meta"), "X: tensors on 'meta' have no numbers"),
        (given[0], "Expected 2D array, got 1D tensor instead for X"),
        (given[None], r"got 3D tensor instead for X. If its first axis is tasks .*, pass list\(X\)"),
        ([given[0], given[1]], r"X is a list of tensors of 1 dimension\(s\).*torch.stack\(X\)"),
        (given[:, :0], "0 feature"),
    ]
    for bad, words in cases:
        with pytest.raises(ValueError, match=words):
            ts.MultiTaskLasso().fit(bad, y, task=task)
    for listed, words in [
        ([given[:9], X[:9]], r"X\[1\] is no tensor, X\[0\] is one"),
        ([X[:9], given[:9]], r"X\[1\] is a tensor, X\[0\] is no tensor"),
        ([given[:9], given[:9, 1:]], r"X\[1\] has 29 features, X\[0\] has 30"),
        ([given[:9], given[:9].clone().requires_grad_()], r"X\[1\] is a tensor that requires grad"),
    ]:
        with pytest.raises(ValueError, match=words):
            ts.MultiTaskLasso().fit(listed, [y[:9], y[:9]])


def test_a_list_on_two_devices(data: Data) -> None:
    """Told by what tensors say of themselves: there need not be a second device."""
    from tasksieve.design.device.matrix import DeviceMatrix
    from tasksieve.tasks.tensors import refuse_mixed

    one, other = DeviceMatrix(tensor(data[0])), DeviceMatrix(tensor(data[0]))
    other.device = "cuda:1"
    with pytest.raises(ValueError, match=r"X\[1\] is on cuda:1, X\[0\] on cpu: all tensors.*one device"):
        refuse_mixed([one, other])


class OnTheirGpu:
    """An array of another library that says it is on a GPU; its memory is really here."""

    def __init__(self, x: Any) -> None:
        self._x, self.shape, self.dtype = x, x.shape, x.dtype

    def __dlpack_device__(self) -> tuple[int, int]:
        return (2, 0)

    def __dlpack__(self, **options: Any) -> Any:
        return self._x.__dlpack__(**options)


def test_arrays_of_other_libraries_on_a_gpu(data: Data, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    X, y, task = data
    real = torch.from_dlpack
    monkeypatch.setattr(torch, "from_dlpack", lambda x: real(x._x) if isinstance(x, OnTheirGpu) else real(x))
    theirs = OnTheirGpu(X)
    assert kind_of(theirs).location == "device"
    assert kind_of(X).location != "device"
    model = ts.MultiTaskLasso(0.1).fit(theirs, OnTheirGpu(y), task=OnTheirGpu(task))
    same(model, ts.MultiTaskLasso(0.1).fit(X, y, task=task))
    assert isinstance(model.predict(theirs), torch.Tensor)


def test_answers_go_back_by_the_protocol_of_arrays() -> None:
    class Space:
        @staticmethod
        def from_dlpack(found: Any) -> Any:
            return ("theirs", tuple(found.shape))

    class Theirs(OnTheirGpu):
        def __array_namespace__(self) -> Any:
            return Space

    from tasksieve.tasks import tensors

    given = Theirs(np.zeros((2, 3)))
    original = tensors.as_tensor
    try:
        tensors.as_tensor = lambda value: tensor(value._x)
        assert like(given, np.zeros(2)) == ("theirs", (2,))
        assert np.array_equal(like(given, np.array(["a", "b"])), ["a", "b"])
    finally:
        tensors.as_tensor = original


def test_other_estimators_bring_tensors_here(data: Data) -> None:
    """Those that read row by row work on the processor."""
    X, y, task = data
    given = tensor(X)
    graph = np.ones((4, 4)) - np.eye(4)
    for model in (ts.GraphSVR(graph, C=0.1), ts.OnlineMultiTaskRegressor(0.05, shuffle=False)):
        a = type(model)(**model.get_params()).fit(given, tensor(y), task=task)
        b = type(model)(**model.get_params()).fit(X, y, task=task)
        assert np.array_equal(a.coef_, b.coef_)
        assert np.allclose(a.predict(given, task=task).numpy(), b.predict(X, task=task))
    a, b = ts.TaskMoments().add(given, tensor(y), task=task), ts.TaskMoments().add(X, y, task=task)
    assert np.array_equal(
        ts.MultiTaskLasso(0.1).fit_moments(a).coef_, ts.MultiTaskLasso(0.1).fit_moments(b).coef_
    )
