"""The checker of the page and the verifier, which share no code, agree on certificates true and false."""

from __future__ import annotations

import io
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from certificate_oracle import Content
from outcome_cases import make_outcomes
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
    d, kind = header["n_features"], int(rng.integers(10))
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
    elif kind == 7 and "need" in arrays:
        arrays["need_delta"] *= 1.0 + float(rng.choice([-1.0, 1.0])) * 10.0 ** rng.integers(-9, 1)
        arrays["need_delta"] = np.abs(arrays["need_delta"]) + 1e-300
    elif kind == 8 and "need" in arrays:
        arrays["need_dual"] *= 1.0 + float(rng.choice([-1.0, 1.0])) * 10.0 ** rng.integers(-9, 1)
    else:
        header["unit"] *= 1.0 + 10.0 ** rng.integers(-9, 0)
    return Certificate(header, arrays)


def proved(content: bytes, data: Data, exact: bool = False) -> bool:
    try:
        return verify.verify(content, exact=exact, **data).proved
    except verify.Unreadable:
        return False


@pytest.mark.filterwarnings("ignore::tasksieve.ScaleWarning")
@pytest.mark.parametrize("count", [20, pytest.param(600, marks=pytest.mark.slow)])
def test_both_checkers_agree(count: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(count)
    cases, given, claims = [], [], 0
    while len(cases) < 2 * count:
        model, data = random_problem(rng)
        certificate = model.certificate(**data, need=True)
        claims += len(certificate.needs())
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
    assert claims >= count // 2


@pytest.mark.filterwarnings("ignore:Unpenalised feature")
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


ROW_LOSSES: list[tuple[list[str], dict[str, Any]]] = [
    (["poisson", "poisson"], {"weights": True}),
    (["gamma", "gamma"], {"free": True}),
    (["tweedie", "tweedie"], {"weights": True}),
    (["negative_binomial", "negative_binomial"], {"weights": True, "ridge": True}),
    (["log_cosh", "log_cosh"], {"free": True}),
    (["expectile", "expectile"], {"no_intercept": True}),
    (["tweedie"], {"no_intercept": True}),
    (["squared", "logistic", "poisson", "gamma", "log_cosh"], {"mixed": True, "weights": True}),
    (["expectile", "tweedie", "negative_binomial"], {"mixed": True, "free": True}),
]


def outcome_claims(number: int) -> list[tuple[Content, bool]]:
    """Certificates of a problem, and whether they are true: what the verifier proves, and a little more; with other
    vectors, parameters, weights and labels."""
    kinds, options = ROW_LOSSES[number]
    case = make_outcomes(kinds, number, n=10, d=3, **options)
    _, coef, intercept, places = case.solution
    good = case.duals(coef, intercept, places)
    loose = case.content(coef, intercept, places, good, 1e9)
    gap = verify.verify(loose.pack(), **loose.data()).values[0].gap
    size = max(1.0, abs(case.solution[0]))
    found = [(case.content(coef, intercept, places, good, 1.01 * gap + 1e-12 * size), True)]
    if gap > 1e-9 * size:  # and not what rounding decides
        found.append((case.content(coef, intercept, places, good, 0.5 * gap), False))
    rng = np.random.default_rng(number)
    for dual in (good * (1.0 + 0.2 * rng.standard_normal(len(good))), -good, good + 3.0, 0.0 * good):
        found.append((case.content(coef, intercept, places, dual, 1e-5 * size), False))
    for change in ("weight", "label", "words"):
        forged = case.content(coef, intercept, places, good, gap * 1.01 + 1e-12 * size).copy()
        loss = forged.header["loss"]
        if change == "weight":
            forged.weight[0] = forged.weight[0] * 1.5
        elif change == "label":
            forged.y[-1] = forged.y[-1] * 2.0 + 0.1 if kinds[-1] != "logistic" else 1.0 - forged.y[-1]
        elif loss["name"] == "mixed":
            loss["weights"][-1] *= 1.2
        else:
            loss |= {key: value for key, value in (("power", 1.6), ("size", 0.4), ("level", 0.3)) if key in loss}
            forged.header["unit"] *= 1.1
        forged.sign()
        found.append((forged, False))
    return found


def test_both_checkers_agree_on_outcomes(tmp_path: Path) -> None:
    """Losses that are sums over rows, alone and side by side."""
    claims = [one for number in range(len(ROW_LOSSES)) for one in outcome_claims(number)]
    answers = page_verdicts([(content.pack(), content.file()) for content, _ in claims], tmp_path)
    for (content, true), (kind, words) in zip(claims, answers, strict=True):
        name = content.header["loss"]["name"]
        ours = proved(content.pack(), content.data())
        assert kind in ("verified", "unproved", "differs"), f"{name}: {kind}, {words}"
        assert ours == true or content.arrays["ridge"].any(), name  # with a ridge more may be proved than was asked
        assert (kind == "verified") == ours, f"{name}: {kind}, {words}"


MEANS = ["poisson", "gamma", "tweedie:power=1.4", "negative_binomial:size=1.7"]


def test_both_checkers_agree_on_zeros_of_means(tmp_path: Path) -> None:
    """What is proved zero of counts and positive numbers, and one feature more."""
    cases, given = [], []
    for seed, loss in enumerate(MEANS * 3):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((40, 5))
        y = np.exp(0.7 * X[:, 0]) * rng.gamma(2.0, 0.5, 40)
        y = y if loss == "gamma" else rng.poisson(y) * (1.0 if loss.startswith("neg") else rng.choice([1.0, 0.5], 40))
        data = {"X": X, "y": y, "task": np.repeat([0, 1], 20), "sample_weight": rng.uniform(0.2, 2.0, 40)}
        model = ts.MultiTaskRegressor(loss, alpha=0.3, standardize=bool(seed % 2), tol=10.0 ** rng.uniform(-6.0, -1.0))
        model.fit(**data)
        one = model.certificate(**data)
        stream = io.BytesIO()
        np.savez(stream, **data)
        listed = np.flatnonzero(~one.proven_zero())
        for left_out in [None, *listed.tolist()]:
            kept = listed[listed != left_out]
            arrays = {**one.arrays, "open": kept, "open_start": np.array([0, len(kept)])}
            cases.append((Certificate(one.header, arrays).to_bytes(), stream.getvalue()))
            given.append((data, left_out is None, len(listed)))
    answers = page_verdicts(cases, tmp_path)
    for (content, _), (data, true, _), (kind, words) in zip(cases, given, answers, strict=True):
        assert (kind == "verified") == proved(content, data) == true, words
    assert len({count for _, true, count in given if true}) > 2


@pytest.mark.parametrize("kinds", [["cox efron"], ["ordinal"], ["squared", "cox breslow"]])
def test_losses_that_the_page_does_not_know(kinds: list[str], tmp_path: Path) -> None:
    case = make_outcomes(kinds, 0, n=8, d=2, mixed=len(kinds) > 1)
    _, coef, intercept, places = case.solution
    content = case.content(coef, intercept, places, case.duals(coef, intercept, places), 1.0)
    content.y = [y[:, 0] if y.ndim == 2 else y for y in content.y]
    ((kind, words),) = page_verdicts([(content.pack(), b"a,b\n")], tmp_path)
    assert kind == "unsupported"
    assert kinds[-1].split()[0] in words


def test_patterns_of_present_columns_are_for_the_command(tmp_path: Path) -> None:
    X = np.random.default_rng(0).standard_normal((20, 3))
    y = X[:, 0].copy()
    X[:8, 2] = np.nan
    rows = ts.by_pattern(X)
    proof = ts.MultiTaskLasso(alpha=0.1).fit(rows, y).certificate(rows, y).to_bytes()
    ((kind, words),) = page_verdicts([(proof, b"a,b\n")], tmp_path)
    assert kind == "unsupported"
    assert "patterns of present columns" in words
