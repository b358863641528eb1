"""One pass for all values, with wider bounds: the same verdicts as value by value with the narrowest ones.

What the wider bounds do not prove is checked again with the narrow ones; so a refusal is theirs, word for word, and
only what is accepted at once has to be looked at: in fractions."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from certificate_mutants import TRIPLES, by_hand, by_library
from certificate_oracle import Content
from scipy import sparse

import tasksieve as ts
from tasksieve import verify as verifier

Array = np.ndarray[Any, Any]


class Narrow(verifier.Floating):
    """The arithmetic of the second look, from the start."""

    def __init__(self, quick: bool = False) -> None:
        super().__init__()


def narrow_verdict(raw: bytes, data: dict[str, Any]) -> verifier.Verdict:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(verifier, "Floating", Narrow)
        return verifier.verify(raw, **data)


def forgeries(content: Content, exact: verifier.Value, rng: Any) -> Iterator[tuple[str, Content]]:
    """Claims that are a little more than what fractions prove, and points that are a little worse."""
    d, size = content.header["n_features"], abs(exact.objective) + abs(exact.dual_value)
    changes: dict[str, dict[str, Any]] = {
        "gap": {"gap": exact.gap * (1 - 1e-9)},
        "gap by rounding": {"gap": np.nextafter(exact.gap, -1.0)},
        "dual_value": {"dual_value": exact.dual_value + 1e-9 * exact.gap + 1e-18 * size},
        "objective": {"objective": exact.objective - float(content.arrays["gap"][0]) * (1 + 1e-9)},
        "coef": {"coef": content.arrays["coef"] * (1 + 10.0 ** -rng.integers(2, 9))},
        "dual": {"dual": content.arrays["dual"] * (1 + 10.0 ** -rng.integers(2, 14))},
        "alpha": {"alpha": content.arrays["alpha"] * (1 - 1e-6)},
        "zeros": {"open": np.arange(0), "open_start": np.array([0, 0])},
        "sure": {"open": np.arange(d), "sure": np.arange(d)},
    }
    changes["sure"] |= {"open_start": np.array([0, d]), "sure_start": np.array([0, d])}
    for name, change in changes.items():
        other = content.copy()
        other.arrays |= {key: np.reshape(value, np.shape(value) or (1,)) for key, value in change.items()}
        if other.arrays["gap"][0] >= 0.0:
            yield name, other


def compare(content: Content, seed: int) -> int:
    """How many forgeries are accepted: all of them true."""
    rng, accepted = np.random.default_rng(seed), 0
    exact = verifier.verify(content.pack(), **content.data(), exact=True).values[0]
    for name, other in [("honest", content), *forgeries(content, exact, rng)]:
        raw, data = other.pack(), other.data()
        found, narrow = verifier.verify(raw, **data), narrow_verdict(raw, data)
        told = f"{content.header['loss']}, {content.header['penalty']}, {name}: {found.words} / {narrow.words}"
        assert found.proved == narrow.proved, told
        assert found.failures == narrow.failures, told
        if found.proved and name != "honest":
            accepted += 1
            assert verifier.verify(raw, **data, exact=True).proved, told
        assert found.proved or name != "honest", told
        if not content.arrays["ridge"][0] > 0.0:  # else a tighter claim makes a verifier look for a better matrix U
            assert not found.proved or name not in ("gap", "dual_value"), told
    return accepted


@pytest.mark.parametrize("number", range(203, len(TRIPLES), 160))
def test_forgeries_have_the_same_verdict(number: int) -> None:
    compare(by_library(number), number)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(TRIPLES)))
def test_all_forgeries_have_the_same_verdict(number: int) -> None:
    compare(by_library(number), number)
    compare(by_hand(number), number)


# --- paths ---------------------------------------------------------------------------------------------------


def path_of(kind: str) -> tuple[bytes, dict[str, Any]]:
    """A certificate of five values, as a path's own, and its data."""
    rng = np.random.default_rng(len(kind))
    x, task = rng.standard_normal((60, 30)), np.arange(60) % 3
    if kind in ("int8", "sparse"):
        x = rng.integers(0, 3, x.shape).astype(np.float64)
    w = rng.standard_normal((3, 30)) * (np.arange(30) < 4)
    y = np.einsum("ij,ij->i", x, w[task]) + 0.5 * rng.standard_normal(60)
    options: dict[str, Any] = {}
    given: Any = {"int8": x.astype(np.int8), "float32": x.astype(np.float32), "far": x + 1e7}.get(kind, x)
    if kind == "sparse":
        given = sparse.csc_matrix(x)
    if kind in ("logistic", "poisson"):
        y = (y > 0).astype(int) if kind == "logistic" else rng.poisson(np.exp(0.3 * np.clip(y, -3, 3))).astype(float)
    if kind in ("standardize", "positive"):
        options[kind] = True
    model: Any = {
        "logistic": ts.MultiTaskClassifier("logistic"),
        "poisson": ts.MultiTaskRegressor("poisson"),
        "huber": ts.MultiTaskRegressor("huber"),
        "ridge": ts.MultiTaskElasticNet(l1_ratio=0.8),
        "sparse group": ts.MultiTaskRegressor(penalty=ts.penalties.SparseGroup(l1=0.4, group=0.7)),
        "l11": ts.MultiTaskRegressor(penalty=ts.penalties.L11()),
        "linf": ts.MultiTaskRegressor(penalty=ts.penalties.LInf()),
        "dirty": ts.MultiTaskRegressor(penalty=ts.penalties.Dirty(shared=1.3)),
        "sorted": ts.MultiTaskRegressor(penalty=ts.penalties.Sorted(np.linspace(1.0, 0.4, 30))),
        "groups": ts.MultiTaskRegressor(penalty=ts.penalties.Groups(np.arange(30) // 3)),
        "groups-entries": ts.MultiTaskRegressor(
            penalty=ts.penalties.Groups(np.arange(30) // 3, inside="entries", mix=0.3)
        ),
    }.get(kind, ts.MultiTaskLasso(**options))
    data: dict[str, Any] = {"task": task}
    if kind == "weights":
        data["sample_weight"] = rng.uniform(0.5, 2.0, 60)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = model.path(given, y, n_alphas=5, **data)
        raw = path.certificate(given, y, **data).to_bytes()
    return raw, {"X": given, "y": y, **data}


QUICK = ("squared", "ridge", "sparse group", "int8", "far", "logistic")
REST = (
    "sorted", "sparse", "float32", "standardize", "positive", "weights", "poisson", "huber", "l11", "linf", "dirty",
    "groups", "groups-entries",
)  # fmt: skip


@pytest.mark.parametrize("kind", [*QUICK, *(pytest.param(kind, marks=pytest.mark.slow) for kind in REST)])
def test_honest_paths_are_proved_at_once(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No value is looked at again; one that is forged is, and is the only one that fails."""
    raw, data = path_of(kind)
    asked, original = [], verifier._check_values

    def counted(cert: Any, tasks: Any, values: Any, arith: Any, say: Any) -> Any:
        asked.append((list(values), arith.quick))
        return original(cert, tasks, values, arith, say)

    monkeypatch.setattr(verifier, "_check_values", counted)
    assert verifier.verify(raw, **data).proved
    assert asked == [(list(range(5)), True)]
    asked.clear()
    cert = verifier.read_certificate(raw)
    cert.arrays["dual_value"] = cert.arrays["dual_value"] + np.where(np.arange(5) == 3, 1.0, 0.0)
    verdict = verifier.verify(cert, **data)
    assert {one.index for one in verdict.values if one.failures} == {3}
    assert asked == [(list(range(5)), True), ([3], False)]


# --- digests that are kept -----------------------------------------------------------------------------------


def test_digests_of_what_nothing_can_write_to_are_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    raw, data = path_of("squared")
    order = np.argsort(data["task"], kind="stable")
    data = {name: values[order] for name, values in data.items()}
    count, original = [], verifier._digest

    def counted(given: Any) -> str:
        count.append(given.shape)
        return original(given)

    monkeypatch.setattr(verifier, "_digest", counted)
    with pytest.raises(ValueError, match="read-only"):
        verifier.frozen(data["X"])[0, 0] = 1.0
    with pytest.raises(ValueError, match="WRITEABLE"):
        verifier.frozen(data["X"]).setflags(write=True)
    kept = {**data, "X": verifier.frozen(np.asfortranarray(data["X"]))}
    for _ in range(3):
        assert verifier.verify(raw, **kept, value=2).proved
    assert count == [(20, 30)] * 3  # one for each task
    del kept
    gc.collect()
    assert not verifier._digests
    marked = data["X"].copy()
    marked.setflags(write=False)  # may be changed all the same
    assert verifier.verify(raw, **{**data, "X": marked}, value=2).proved
    marked.setflags(write=True)
    marked[0, 0] += 1.0
    marked.setflags(write=False)
    assert not verifier.verify(raw, **{**data, "X": marked}, value=2).proved
