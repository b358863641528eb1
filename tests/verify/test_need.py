"""Claims that features are needed: what the verifier proves of them, and forgeries that it refuses."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
from hand_cases import make_case
from hand_certificates import Case, pack

import tasksieve as ts
from tasksieve.verify import Unreadable, Verdict, verify

Array = np.ndarray[Any, Any]

PAIRS = [
    ("squared", "l21", {}),
    ("squared", "l21", {"standardize": True, "weights": True}),
    ("squared", "sparse_group", {"positive": True, "feature_weights": True}),
    ("logistic", "l21", {"free": True, "offset": True}),
    ("squared", "linf", {}),
    ("poisson", "dirty", {"task_weights": True}),
    ("huber", "owl", {}),
    ("squared", "groups-rows", {}),
]


def without(case: Case, features: Any) -> Case:
    """The same problem with these columns zero: nothing else can be said of a model without the features."""
    other = copy.copy(case)
    other.x = [np.array(x) for x in case.x]
    for x in other.x:
        x[:, list(features)] = 0.0
    return other


def bounds(case: Case, features: Any) -> tuple[float, float, Array]:
    """The objective of the coefficients; the dual value of the problem without features at the residual of its own
    solution's stand-in, the coefficients without them; that dual point. All in plain NumPy."""
    reduced = without(case, features)
    reduced.coef = case.coef.copy()
    reduced.coef[list(features)] = 0.0
    _, arrays = reduced.content(0.0)
    return float(case.content(0.0)[1]["objective"][0]), float(arrays["dual_value"][0]), arrays["dual"][0]


def claimed(case: Case, features: Any, delta: float, dual: Array, exact: bool = False, **changes: Any) -> Verdict:
    header, arrays = case.content(1e-9)
    features = np.array(sorted(features), dtype=np.int64)
    arrays |= {"need_value": np.array([0]), "need_start": np.array([0, len(features)]), "need": features}
    arrays |= {"need_delta": np.array([delta]), "need_dual": dual[None]} | changes
    return verify(pack(header, arrays), **case.data(), exact=exact)


def unit_of(case: Case, j: int) -> list[int]:
    """A feature, with its group where groups have one norm."""
    group = case.arrays.get("group_of")
    return [j] if group is None else np.flatnonzero(group == group[j]).tolist()


@pytest.mark.parametrize(("loss", "penalty", "options"), PAIRS)
def test_what_is_proved_is_the_dual_value_of_the_problem_with_zero_columns(
    loss: str, penalty: str, options: dict[str, Any]
) -> None:
    case = make_case(loss, penalty, 5, **{"rows": 12, "d": 6, "strength": 0.3, "tol": 1e-9, **options})
    sizes = np.sqrt((case.coef**2).sum(axis=1)) * np.isin(np.arange(6), case.free, invert=True)
    features = unit_of(case, int(np.argmax(sizes)))
    top, bound, dual = bounds(case, features)
    delta = bound - top
    assert delta > 0.0  # else there is nothing to claim
    for exact in (False, True):
        assert claimed(case, features, delta - 1e-7 * abs(top), dual, exact).proved
    others = [j for j in range(6) if j not in features and sizes[j] > 0.0]
    assert not claimed(case, features, delta + 1e-3 * abs(top), dual).proved
    for j in others[:1]:  # the point proves nothing of another feature
        refused = claimed(case, unit_of(case, j), delta - 1e-7 * abs(top), dual)
        assert not refused.proved
        assert "are proved to be worse by" in refused.words


def example(copies: int = 0, **options: Any) -> tuple[Any, dict[str, Array], Any]:
    rng = np.random.default_rng(3)
    X = rng.standard_normal((60, 8))
    for k in range(copies):
        X[:, 5 + k] = X[:, 0] + 1e-3 * rng.standard_normal(60)
    task = np.repeat([0, 1], 30)
    y = X[:, 0] * np.where(task == 0, 2.0, 1.0) + X[:, 1] + 0.3 * rng.standard_normal(60)
    model = ts.MultiTaskLasso(alpha=0.1, **options).fit(X, y, task=task)
    data = {"X": X, "y": y, "task": task}
    return model, data, model.certificate(**data, need=True)


def spoilt(certificate: Any, **arrays: Any) -> bytes:
    return type(certificate)(certificate.header, {**certificate.arrays, **arrays}).to_bytes()


@pytest.mark.parametrize("exact", [False, True])
def test_forged_claims_are_refused(exact: bool) -> None:
    _, data, certificate = example()
    arrays = certificate.arrays
    assert len(arrays["need_delta"]) >= 2
    verdict = certificate.verify(**data, exact=exact)
    assert verdict.proved
    assert len(verdict.needs) == len(arrays["need_delta"])
    assert all(need.delta >= need.claimed > 0.0 for need in verdict.needs)
    assert "models without them are worse" in verdict.words.replace("\n", " ")
    forgeries = {
        "larger": {"need_delta": arrays["need_delta"] * 1.001},
        "of the others": {"need_delta": arrays["need_delta"][::-1].copy()},
        "other vectors": {"need_dual": arrays["need_dual"][::-1].copy()},
        "rows exchanged": {"need_dual": arrays["need_dual"][:, ::-1].copy()},
        "the vector of the model": {"need_dual": np.repeat(arrays["dual"], len(arrays["need_dual"]), axis=0)},
        "vectors turned round": {"need_dual": -arrays["need_dual"]},
        "a feature that is not used": {"need": np.full(len(arrays["need"]), 7)},
    }
    for name, change in forgeries.items():
        refused = verify(spoilt(certificate, **change), **data, exact=exact)
        assert not refused.proved, name
    none = np.full(len(arrays["need_delta"]), 5e-324)
    assert verify(spoilt(certificate, need_delta=none), **data, exact=exact).proved


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"need_delta": "zero"}, "must be positive"),
        ({"need_value": "high"}, "too large"),
        ({"need": "high"}, "too large"),
        ({"need": "falling"}, "must rise within each claim"),
        ({"need_start": "empty"}, "must rise from 0"),
        ({"need_dual": "short"}, "must be float64 of shape"),
    ],
)
def test_claims_that_make_no_sense_are_unreadable(change: dict[str, str], words: str) -> None:
    _, data, certificate = example()
    arrays, how = certificate.arrays, next(iter(change.values()))
    (name,) = change
    made = {
        "zero": 0.0 * arrays["need_delta"],
        "high": arrays[name] + 10**6 if name != "need_dual" else None,
        "falling": np.array([1, 0]),
        "empty": np.zeros(len(arrays["need_start"]), dtype=np.int64),
        "short": arrays["need_dual"][:, 1:],
    }[how]
    more = {} if how != "falling" else {
        "need_start": np.array([0, 2]), "need_value": np.array([0]), "need_delta": arrays["need_delta"][:1],
        "need_dual": arrays["need_dual"][:1],
    }  # fmt: skip
    with pytest.raises(Unreadable, match=words):
        verify(spoilt(certificate, **{name: made, **more}), **data)


def test_claims_without_their_vectors_are_unreadable() -> None:
    _, data, certificate = example()
    arrays = {name: values for name, values in certificate.arrays.items() if name != "need_dual"}
    with pytest.raises(Unreadable, match="need_dual"):
        verify(type(certificate)(certificate.header, arrays).to_bytes(), **data)
