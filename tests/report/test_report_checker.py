"""The checker of the page and the verifier, which share no code, agree on certificates true and false."""

from __future__ import annotations

import io
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from page_checker import page_verdicts

import tasksieve as ts
from tasksieve import verify
from tasksieve.proof.certificate import Certificate

Data = dict[str, Any]
CLAIMS = ("objective", "dual_value", "gap")


def random_problem(rng: np.random.Generator) -> tuple[Any, Data]:
    """A fitted model of the kinds that the page knows, and its data."""
    n, d, n_tasks = int(rng.integers(12, 40)), int(rng.integers(2, 8)), int(rng.integers(1, 4))
    X = rng.standard_normal((n, d)) * 10.0 ** rng.integers(-1, 2, d) + rng.choice([0.0, 3.0, 1e4], d)
    if rng.random() < 0.2:
        X[:, -1] = 2.0  # a constant
    shared = n_tasks > 1 and rng.random() < 0.3
    data: Data = {"X": X}
    task = np.arange(n) % n_tasks
    score = (X[:, 0] - X[:, 0].mean()) / (X[:, 0].std() or 1.0)
    if shared:
        data["y"] = score[:, None] * rng.standard_normal(n_tasks) + 0.3 * rng.standard_normal((n, n_tasks))
    else:
        data["y"] = score * (1.0 + task) + 0.3 * rng.standard_normal(n)
        if n_tasks > 1:
            data["task"] = np.array(list("abc"))[task]
    logistic = rng.random() < 0.4
    if logistic:
        data["y"] = (data["y"] > 0.0).astype(float)
    if shared:
        data["y"][rng.random(data["y"].shape) < 0.1] = np.nan
    elif rng.random() < 0.4:
        data["sample_weight"] = rng.choice([0.0, 0.5, 1.0, 3.0], n, p=[0.1, 0.3, 0.3, 0.3])
    if not shared and rng.random() < 0.3:
        data["offset"] = rng.standard_normal(n)
    options: Data = {
        "alpha": float(10.0 ** rng.uniform(-2.5, -0.5)),
        "tol": float(10.0 ** rng.integers(-9, -2)),
        "fit_intercept": bool(rng.random() < 0.8),
        "standardize": bool(rng.random() < 0.5),
        "ridge": float(rng.choice([0.0, 0.0, 0.1])),
        "penalty": [ts.penalties.L21(), ts.penalties.L11(), ts.penalties.SparseGroup(0.5, 1.0)][rng.integers(3)],
    }
    if rng.random() < 0.2 and not logistic:
        options["positive"] = True
    elif rng.random() < 0.3:
        options["feature_weights"] = rng.choice([0.0, 0.5, 1.0, 2.0], d)
        options["feature_weights"][0] = 1.0
    if n_tasks > 1 and rng.random() < 0.3:
        options["task_weights"] = rng.uniform(0.5, 2.0, n_tasks)
    if logistic and rng.random() < 0.3:
        options["class_weight"] = "balanced"
    model = (ts.MultiTaskClassifier if logistic else ts.MultiTaskRegressor)(**options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(**data), data


def mutated(rng: np.random.Generator, certificate: Certificate) -> Certificate:
    """Another claim, point or problem; perhaps a true one, too."""
    header, arrays = dict(certificate.header), {name: values.copy() for name, values in certificate.arrays.items()}
    d, kind = header["n_features"], int(rng.integers(8))
    if kind == 0:
        arrays[str(rng.choice(CLAIMS))] *= 1.0 + float(rng.choice([-1.0, 1.0])) * 10.0 ** rng.integers(-12, 0)
    elif kind == 1 and arrays["coef"].size:
        arrays["coef"][rng.integers(arrays["coef"].size)] *= 1.0 + 10.0 ** rng.integers(-9, 0)
    elif kind == 2:
        arrays["dual"][0, rng.integers(arrays["dual"].size)] *= 1.0 - 10.0 ** rng.integers(-9, 0)
    elif kind == 3:
        arrays["alpha"] *= 1.0 + float(rng.choice([-1.0, 1.0])) * 10.0 ** rng.integers(-9, 0)
    elif kind == 4:
        kept = np.sort(rng.permutation(d)[: rng.integers(d + 1)])
        arrays |= {"open": kept, "open_start": np.array([0, len(kept)])}
    elif kind == 5:
        listed = np.sort(rng.permutation(d)[: rng.integers(1, d + 1)])
        arrays |= {"sure": listed, "sure_start": np.array([0, len(listed)])}
        arrays.setdefault("open", np.arange(d))
        arrays.setdefault("open_start", np.array([0, d]))
    elif kind == 6:
        name = str(rng.choice(["standardize", "positive", "intercept"]))
        header[name] = not header[name]
    else:
        header["unit"] *= 1.0 + 10.0 ** rng.integers(-9, 0)
    return Certificate(header, arrays)


def proved(content: bytes, data: Data, exact: bool = False) -> bool:
    try:
        return verify.verify(content, exact=exact, **data).proved
    except verify.Unreadable:
        return False


@pytest.mark.filterwarnings("ignore::tasksieve.ScaleWarning")
@pytest.mark.parametrize("count", [40, pytest.param(600, marks=pytest.mark.slow)])
def test_both_checkers_agree(count: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(count)
    cases, given = [], []
    while len(cases) < 2 * count:
        model, data = random_problem(rng)
        certificate = model.certificate(**data)
        stream = io.BytesIO()
        np.savez(stream, **data)
        for one in (certificate, mutated(rng, certificate)):
            cases.append((one.to_bytes(), stream.getvalue()))
            given.append((data, one is certificate))
    answers = page_verdicts(cases, tmp_path)
    refused = 0
    for (content, _), (data, true), (kind, words) in zip(cases, given, answers, strict=True):
        ours, theirs = proved(content, data), kind == "verified"
        assert kind != "unsupported", words
        if true:
            assert ours
            assert theirs, f"{kind}: {words}"
        if theirs != ours:  # so close that rounding decides: fractions do not round
            assert theirs == proved(content, data, exact=True), f"{kind}: {words}"
        refused += not theirs
    assert count // 4 < refused < count  # the mutations that are no longer true


@pytest.mark.parametrize("intercept", [True, False])
def test_free_features_that_are_combinations_of_others(intercept: bool, tmp_path: Path) -> None:
    """All dummies of a category, unpenalised, beside an intercept; two equal columns, a constant one."""
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 3, 40)
    X = np.column_stack([rng.standard_normal((40, 2)), np.eye(3)[kind], kind * 0.1, np.full(40, 7.0)])
    data = {"X": X, "y": X[:, 0] + kind + 0.1 * rng.standard_normal(40)}
    weights = [1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    model = ts.MultiTaskLasso(alpha=0.05, feature_weights=weights, fit_intercept=intercept, tol=1e-9).fit(**data)
    stream = io.BytesIO()
    np.savez(stream, **data)
    content = model.certificate(**data).to_bytes()
    assert proved(content, data)
    ((kind_of, words),) = page_verdicts([(content, stream.getvalue())], tmp_path)
    assert kind_of == "verified", words
