"""Certificates of patterns of present columns: what is absent is in them, and forged claims about it are refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tasksieve as ts
from tasksieve import verify
from tasksieve.proof.certificate import Certificate

D = 9


def data(n: int = 90) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(7)
    X = rng.standard_normal((n, D)) + 1.0
    y = X[:, 0] - X[:, 4] + X[:, 8] + 0.3 * rng.standard_normal(n)
    lacks = rng.integers(0, 4, n)
    for b in range(3):
        X[np.ix_(lacks == b, np.arange(3 * b, 3 * b + 3))] = np.nan
    return X, y, rng.choice(["A", "B"], n)


def changed(certificate: Certificate, header: dict[str, Any] | None = None, **arrays: Any) -> bytes:
    """A certificate with something changed."""
    kept = {name: values for name, values in {**certificate.arrays, **arrays}.items() if values is not None}
    return Certificate({**certificate.header, **(header or {})}, kept).to_bytes()


@pytest.fixture(scope="module")
def proved() -> tuple[np.ndarray, np.ndarray, np.ndarray, Any, Certificate]:
    X, y, task = data()
    model = ts.MultiTaskLasso(alpha=0.5, standardize=True).fit(ts.by_pattern(X, task=task), y)
    return X, y, task, model, model.certificate(ts.by_pattern(X, task=task), y)


@pytest.mark.parametrize("exact", [False, True])
def test_the_rows_as_they_were_given_prove_it(proved: Any, exact: bool) -> None:
    """The verifier finds the patterns by itself, from the tasks and the holes."""
    X, y, task, model, certificate = proved
    verdict = verify.verify(certificate.to_bytes(), X, y, task=task, exact=exact)
    assert verdict.proved, verdict.words
    assert "tasks are patterns of present columns" in verdict.words
    assert f"{int((~model.present_).sum())} columns of tasks are absent" in verdict.words
    if not exact:
        assert certificate.gaps[0] <= 2.0 * model.dual_gap_ + 1e-9
        assert certificate.header["patterns"]["of"] == ["A"] * 4 + ["B"] * 4
        assert model.proven_nonzero_.sum() >= 2  # also in tasks that lack features of the support
        assert verify.verify(certificate.to_bytes(), X, y, task=model.patterns_.names[
            ts.by_pattern(X, task=task).codes]).proved  # fmt: skip
        assert certificate.verify(ts.by_pattern(X, task=task), y).proved


def test_other_data_are_refused(proved: Any) -> None:
    X, y, task, _, certificate = proved
    file = certificate.to_bytes()
    row, column = np.argwhere(np.isnan(X))[0]
    other = X.copy()
    other[row, column] = 0.0  # the hole is none
    assert "no task with the columns" in verify.verify(file, other, y, task=task).words
    assert "absent in the certificate, and the data have values" in verify.verify(
        file, np.nan_to_num(X), y, task=ts.by_pattern(X, task=task).task
    ).words
    other = X.copy()
    row = np.flatnonzero(~np.isnan(X).any(axis=1))[0]
    other[row, 0] = np.nan  # one hole more
    assert "no task with the columns" in verify.verify(file, other, y, task=task).words
    swapped = np.where(task == "A", "B", "A")
    assert not verify.verify(file, X, y, task=swapped).proved
    assert not verify.verify(file, X, y).proved


def test_forged_claims_about_absent_features_are_refused(proved: Any) -> None:
    X, y, task, model, certificate = proved
    arrays = certificate.arrays
    t, j = np.argwhere(~model.present_)[0]
    forged = changed(
        certificate,
        coef=np.append(arrays["coef"], 0.5),
        feature=np.append(arrays["feature"], j),
        output=np.append(arrays["output"], t),
        start=np.array([0, len(arrays["coef"]) + 1]),
    )
    with pytest.raises(verify.Unreadable, match=f"does not have feature {j}, which has a coefficient there"):
        verify.verify(forged, X, y, task=task)
    # a column that has data is said to be absent in the complete pattern of A
    free = int(np.flatnonzero(~model.get_support())[0])
    listed = [np.flatnonzero(~own) for own in model.present_]
    listed[0] = np.array([free])
    starts = np.cumsum([0, *map(len, listed)])
    forged = changed(certificate, absent=np.concatenate(listed), absent_start=starts)
    assert not verify.verify(forged, X, y, task=task).proved
    names = ts.by_pattern(X, task=task).task
    assert "the data have values of it" in verify.verify(forged, X, y, task=names).words
    leaving_out = changed(
        certificate, {"patterns": {**certificate.header["patterns"], "dropped": 1}}, absent=np.concatenate(listed),
        absent_start=starts,
    )  # fmt: skip
    assert "digest differs" in verify.verify(leaving_out, X, y, task=names).words
    # what is absent is said to be there
    listed[0] = listed[0][:0]
    listed[1] = listed[1][:-1]
    forged = changed(certificate, absent=np.concatenate(listed), absent_start=np.cumsum([0, *map(len, listed)]))
    assert not verify.verify(forged, X, y, task=task).proved
    assert "NaN" in verify.verify(forged, X, y, task=names).words or "digest" in verify.verify(
        forged, X, y, task=names
    ).words


@pytest.mark.parametrize(
    ("header", "arrays", "words"),
    [
        ({"patterns": None}, {}, "needs 'patterns'"),
        ({"patterns": {"of": None}}, {}, "'of' and 'dropped'"),
        ({"patterns": {"of": ["A"], "dropped": 0}}, {}, "for each pattern"),
        ({"patterns": {"of": None, "dropped": -1}}, {}, "number of values"),
        ({}, {"absent": None}, "'absent' is missing"),
        ({}, {"absent": "reversed"}, "must rise within each task"),
        ({}, {"absent": "large"}, "too large"),
        ({}, {"absent_start": np.array([0, 1])}, "absent_start"),
        ({}, {"edges": np.zeros((8, 8))}, "cannot be combined with edges"),
    ],
)
def test_senseless_files_are_unreadable(proved: Any, header: Any, arrays: Any, words: str) -> None:
    X, y, task, _, certificate = proved
    own = certificate.arrays["absent"]
    kinds = {"reversed": own[::-1].copy(), "large": np.where(own == own.max(), D, own)}
    arrays = {name: kinds.get(values, values) if isinstance(values, str) else values for name, values in arrays.items()}
    with pytest.raises(verify.Unreadable, match=words):
        verify.verify(changed(certificate, header, **arrays), X, y, task=task)


def test_what_was_merged_is_found_again_and_told() -> None:
    X, y, _ = data()
    complete = np.flatnonzero(~np.isnan(X).any(axis=1))
    X[complete[0], 8] = np.nan
    rows = ts.by_pattern(X, min_rows=5)
    assert rows.n_dropped == 2
    model = ts.MultiTaskLasso(alpha=0.15).fit(rows, y)
    certificate = model.certificate(rows, y)
    verdict = verify.verify(certificate.to_bytes(), X, y)
    assert verdict.proved, verdict.words
    assert "2 values that are there are left out" in verdict.words
    honest = {"patterns": {**certificate.header["patterns"], "dropped": 0}}
    assert not verify.verify(changed(certificate, honest), X, y).proved


def test_paths_grades_and_files() -> None:
    X, y, task = data()
    rows = ts.by_pattern(X, task=task)
    path = ts.MultiTaskLasso().path(rows, y, n_alphas=4, eps=0.1)
    assert path.certificate(rows, y).verify(rows, y).proved
    part = np.flatnonzero(task == "A")
    alone = ts.by_pattern(X[part], task=task[part])
    np.testing.assert_allclose(path.predict(alone, 3), path.predict(rows, 3)[part])
    model = path.model(3)
    np.testing.assert_allclose(model.predict(alone), path.predict(alone, 3))
    graded = ts.grade(model.coef_, model.intercept_, rows, y, alpha=model.alpha)
    assert graded.relative_gap < 1e-5
    wrong = model.coef_.copy()
    t, j = np.argwhere(~model.present_)[0]
    wrong[t, j] = 1.0
    with pytest.raises(ValueError, match=f"does not have feature {j}"):
        ts.grade(wrong, model.intercept_, rows, y, alpha=model.alpha)


def test_a_problem_file_keeps_the_holes(tmp_path: Any) -> None:
    X, y, task = data()
    rows = ts.by_pattern(X, task=task)
    model = ts.MultiTaskLasso(alpha=0.2)
    ts.save_problem(tmp_path / "problem.npz", model, rows, y)
    found = ts.load_problem(tmp_path / "problem.npz")
    np.testing.assert_array_equal(found.X.to_array(), X)
    np.testing.assert_array_equal(found.fit().coef_, model.fit(rows, y).coef_)
