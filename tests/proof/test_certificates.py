"""Certificates: every estimator writes one, and the verifier, which shares no code with it, proves it."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import tasksieve as ts
from tasksieve import losses, penalties, verify
from tasksieve.checks.estimator_data import Rows, rows_for
from tasksieve.checks.registry import ESTIMATORS, Columns
from tasksieve.proof.certificate import Certificate
from tasksieve.proof.forms import form_of

BATCH = {name: model for name, model in ESTIMATORS.items() if not name.startswith("online")}


def rows_of(name: str) -> Rows:
    return rows_for(BATCH[name], "multinomial" not in name)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", BATCH)
def test_every_estimator_writes_a_certificate_that_is_proved(name: str, tmp_path: Path) -> None:
    rows = rows_of(name)
    model = clone(BATCH[name]).fit(rows.X, rows.y, **rows.arguments)
    certificate = model.certificate(rows.X, rows.y, **rows.arguments)
    certificate.save(tmp_path / "certificate.npz")
    verdict = verify.verify(tmp_path / "certificate.npz", rows.X, rows.y, **rows.arguments)
    assert verdict, verdict.words
    assert certificate.objectives[0] == pytest.approx(model.objective_, rel=1e-9, abs=1e-9)
    # what the fit has claimed, and no more than rounding beside it; the calibrated solvers have duals of their own
    most = max(model.dual_gap_, 1e-6 * abs(model.null_objective_) if "calibrated" in name else 0.0)
    assert certificate.gaps[0] <= 1.01 * most + 1e-9 * abs(model.null_objective_)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["lasso", "calibrated lasso", "any classifier, sparse group and ridge", "graph SVM"])
def test_small_ones_are_proved_exactly(name: str) -> None:
    rows = rows_of(name)
    model = clone(BATCH[name]).fit(rows.X, rows.y, **rows.arguments)
    verdict = model.certificate(rows.X, rows.y, **rows.arguments).verify(rows.X, rows.y, **rows.arguments, exact=True)
    assert verdict, verdict.words


@pytest.fixture(scope="module")
def data() -> Rows:
    return rows_for(ts.MultiTaskLasso(), True)


def forms(data: Rows) -> dict[str, tuple[Any, Any, dict[str, Any]]]:
    X, y, task = data.X, data.y, data.task
    weight = np.random.default_rng(1).uniform(0.0, 2.0, len(y))
    weight[::7] = 0.0
    missing = np.where(np.arange(len(y)) % 5 == 0, np.nan, y)
    wide = data.as_columns()
    offset = np.linspace(-1.0, 1.0, len(y))
    return {
        "a list": (*data.as_list(), {}),
        "int8": (X.astype(np.int8), y, {"task": task}),
        "float32 in Fortran order": (np.asfortranarray(X, dtype=np.float32), y, {"task": task}),
        "sparse": (sp.csr_array(X), y, {"task": task}),
        "a frame": (pd.DataFrame(X, columns=list("abcdefg")), pd.Series(y), {"task": pd.Series(task)}),
        "missing labels": (X, missing, {"task": task}),
        "weights": (X, y, {"task": task, "sample_weight": weight}),
        "one weight": (X, y, {"task": task, "sample_weight": 3.0}),
        "offset": (X, y, {"task": task, "offset": offset}),
        "a shared matrix with missing labels": (X, wide, {}),
        "a shared matrix, weights": (X, wide, {"sample_weight": weight}),
        "a shared sparse matrix": (sp.csc_array(X), np.stack([y, y[::-1]], axis=1), {}),
        "words for tasks": (X, y, {"task": np.array(["å", "b c", '"'])[task]}),
        "one task": (X, y, {}),
        "weights far away": (X, y, {"task": task, "sample_weight": weight * 1e40}),
    }


FORMS = list(forms(rows_for(ts.MultiTaskLasso(), True)))


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_data(data: Rows, form: str) -> None:
    X, y, given = forms(data)[form]
    model = ts.MultiTaskLasso(0.1, standardize="weight" in form or "missing" in form).fit(X, y, **given)
    certificate = model.certificate(X, y, **given)
    verdict = certificate.verify(X, y, **given)
    assert verdict, verdict.words
    assert certificate.gaps[0] <= 1.01 * model.dual_gap_ + 1e-9
    assert certificate.objectives[0] == pytest.approx(model.objective_, rel=1e-9)


@pytest.mark.parametrize("loss", ["squared", "square-root"])
def test_weights_in_extreme_units(data: Rows, loss: str) -> None:
    weight = np.full(len(data.y), 1e-150)
    model = ts.MultiTaskRegressor(loss, alpha=0.1).fit(data.X, data.y, task=data.task, sample_weight=weight)
    certificate = model.certificate(data.X, data.y, task=data.task, sample_weight=weight)
    assert certificate.verify(data.X, data.y, task=data.task, sample_weight=weight)
    assert certificate.gaps[0] <= 1.01 * model.dual_gap_ + 1e-9


def test_a_storage_of_ones_own_has_the_same_digest_and_certificate(data: Rows) -> None:
    model = ts.MultiTaskLasso(0.1).fit(data.X, data.y, task=data.task)
    plain = model.certificate(data.X, data.y, task=data.task)
    own = model.certificate(Columns(data.X), data.y, task=data.task)
    assert own.header["digests"] == plain.header["digests"]
    assert own.verify(data.X, data.y, task=data.task)


SPECIAL = {
    "positive": {"positive": True},
    "free features": {"feature_weights": [1.0, 0.0, 1.0, 0.0, 2.0, 0.5, 1.0]},
    "balanced tasks": {"task_weights": "balanced"},
    "task weights": {"task_weights": [1.0, 2.0, 0.5]},
    "task graph": {"task_graph": "chain", "graph_strength": 0.3},
    "no intercept": {"fit_intercept": False},
}


@pytest.mark.parametrize("loss", ["squared", "square-root", "huber", losses.Quantile(0.3, 0.4)], ids=str)
@pytest.mark.parametrize("special", SPECIAL)
def test_options(data: Rows, special: str, loss: Any) -> None:
    model = ts.MultiTaskRegressor(loss, alpha=0.1, **SPECIAL[special]).fit(data.X, data.y, task=data.task)
    certificate = model.certificate(data.X, data.y, task=data.task)
    verdict = certificate.verify(data.X, data.y, task=data.task)
    assert verdict, verdict.words
    assert certificate.gaps[0] <= 1.01 * model.dual_gap_ + 1e-6 * model.null_objective_


@pytest.mark.parametrize(
    "options",
    [
        {"loss": "squared_hinge"},
        {"loss": "smoothed_hinge", "class_weight": "balanced"},
        {"loss": "logistic", "class_weight": {"no": 3.0}},
        {"loss": "logistic", "task_weights": "balanced", "standardize": True},
    ],
    ids=str,
)
def test_classes(options: dict[str, Any]) -> None:
    rows = rows_for(ts.MultiTaskClassifier(), True)
    y = np.where(rows.y > 0, "yes", "no")
    model = ts.MultiTaskClassifier(alpha=0.02, **options).fit(rows.X, y, task=rows.task)
    verdict = model.certificate(rows.X, y, task=rows.task).verify(rows.X, y, task=rows.task)
    assert verdict, verdict.words


@pytest.mark.parametrize("penalty", ["l21", "l11", "linf"])
def test_many_classes_of_several_tasks(penalty: str) -> None:
    rows = rows_for(ts.MultiTaskClassifier(), True)
    y = np.where(rows.y > 0, 1 + (np.arange(len(rows.y)) % 2), 0)
    model = ts.MultiTaskClassifier(penalty=penalty, alpha=0.05).fit(rows.X, y, task=rows.task)
    certificate = model.certificate(rows.X, y, task=rows.task)
    verdict = certificate.verify(rows.X, y, task=rows.task)
    assert verdict, verdict.words
    assert certificate.gaps[0] <= 1.01 * model.dual_gap_ + 1e-9
    different = np.where(rows.task == 1, y + 5, y)  # other classes in another task
    model = ts.MultiTaskClassifier(alpha=0.05).fit(rows.X, different, task=rows.task)
    assert model.certificate(rows.X, different, task=rows.task).verify(rows.X, different, task=rows.task)


def test_groups_with_a_free_one(data: Rows) -> None:
    penalty = penalties.Groups([0, 0, 1, 1, 2, 2, 2], "rows")
    model = ts.MultiTaskRegressor(penalty=penalty, alpha=0.1, feature_weights=[0, 0, 1, 1, 2, 2, 2])
    model.fit(data.X, data.y, task=data.task)
    certificate = model.certificate(data.X, data.y, task=data.task)
    verdict = certificate.verify(data.X, data.y, task=data.task)
    assert verdict, verdict.words
    assert certificate.gaps[0] <= 1.01 * model.dual_gap_ + 1e-9


@pytest.mark.parametrize("model", [ts.MultiTaskLasso(), ts.MultiTaskElasticNet(), ts.CalibratedMultiTaskLasso()])
def test_a_path(data: Rows, model: Any) -> None:
    path = model.path(data.X, data.y, task=data.task, n_alphas=7)
    certificate = path.certificate(data.X, data.y, task=data.task)
    assert certificate.n_values == 7
    verdict = certificate.verify(data.X, data.y, task=data.task)
    assert verdict, verdict.words
    np.testing.assert_allclose(certificate.objectives, path.objectives, rtol=1e-9)
    assert certificate.verify(data.X, data.y, task=data.task, value=3)
    assert not certificate.proven_zero(0)[path.features(6)].all() or not len(path.features(0))
    for k in range(7):
        assert not certificate.proven_zero(k)[path.features(k)].any()
        assert not certificate.proven_nonzero(k)[np.setdiff1d(np.arange(7), path.features(k))].any()


def test_the_whole_path_of_a_cross_validation(data: Rows) -> None:
    model = ts.MultiTaskLassoCV(n_alphas=5, cv=3).fit(data.X, data.y, task=data.task)
    certificate = model.path_.certificate(data.X, data.y, task=data.task)
    assert certificate.verify(data.X, data.y, task=data.task)


def test_what_is_proved_of_features(data: Rows) -> None:
    model = ts.MultiTaskLasso(0.3, tol=1e-10).fit(data.X, data.y, task=data.task)
    with pytest.raises(AttributeError, match=r"certificate\(X, y"):
        _ = model.proven_zero_
    model.certificate(data.X, data.y, task=data.task)
    support = model.get_support()
    assert (model.proven_zero_ == ~support).all()
    assert (model.proven_nonzero_ == support).all()
    assert 0 < support.sum() < len(support)
    model.fit(data.X, data.y, task=data.task)
    assert not hasattr(model, "proven_nonzero_")  # of the fit before


def test_a_model_that_stopped_early_is_proved_to_its_true_gap(data: Rows) -> None:
    with pytest.warns(ConvergenceWarning):
        model = ts.MultiTaskLasso(0.01, tol=1e-2, max_iter=3).fit(data.X, data.y, task=data.task)
    certificate = model.certificate(data.X, data.y, task=data.task)
    assert certificate.verify(data.X, data.y, task=data.task)
    best = ts.MultiTaskLasso(0.01, tol=1e-12).fit(data.X, data.y, task=data.task)
    assert model.objective_ - best.objective_ <= certificate.gaps[0] <= 1.01 * model.dual_gap_


def test_an_online_model_points_to_its_batch_problem(data: Rows) -> None:
    model = ts.OnlineMultiTaskRegressor(0.05, gamma=20.0).fit(data.X, data.y, task=data.task)
    with pytest.raises(ValueError, match=r"batch_model\(\)\.certificate"):
        model.certificate(data.X, data.y, task=data.task)
    certificate = model.batch_model().certificate(data.X, data.y, task=data.task)
    assert certificate.verify(data.X, data.y, task=data.task)
    told = model.certify(data.X, data.y, task=data.task, needed=False)
    assert certificate.objectives[0] == pytest.approx(told.objective, rel=1e-9)
    assert certificate.gaps[0] == pytest.approx(told.dual_gap, rel=1e-3)


# --- what is refused ------------------------------------------------------------------------------------------------


class Mine(losses.Huber):
    """A class outside of the library: what it inherits is not what it is."""


class MyNorm(penalties.L21):
    """The same for a penalty."""


def test_members_of_ones_own_have_no_name_in_the_format(data: Rows) -> None:
    for options in ({"loss": Mine()}, {"penalty": MyNorm()}):
        model = ts.MultiTaskRegressor(alpha=0.1, **options).fit(data.X, data.y, task=data.task)
        with pytest.raises(ValueError, match=r"(Mine|MyNorm) has no name in the certificate's format"):
            model.certificate(data.X, data.y, task=data.task)


def test_all_members_of_the_library_have_one() -> None:
    from tasksieve.checks.registry import LOSSES, PENALTIES

    for loss in LOSSES.values():
        assert form_of(loss)["name"] in verify.LOSSES
    for penalty in PENALTIES.values():
        d = penalty.size() or 6
        assert form_of(penalty.on(np.ones(d), 3))[0]["name"] in verify._PENALTIES


def test_data_of_another_shape_are_refused(data: Rows) -> None:
    model = ts.MultiTaskLasso(0.1).fit(data.X, data.y, task=data.task)
    with pytest.raises(ValueError, match="features, tasks and classes"):
        model.certificate(data.X, data.y)
    machine = ts.GraphSVR(C=0.1).fit(data.X, data.y, task=data.task)
    with pytest.raises(ValueError, match="data of the fit"):
        machine.certificate(data.X[1:], data.y[1:], task=data.task[1:])


def test_machines_of_many_classes_and_of_strings_say_what_to_do() -> None:
    rows = rows_for(ts.GraphSVC(), False)
    model = ts.GraphSVC().fit(rows.X, rows.y)
    with pytest.raises(ValueError, match="one machine"):
        model.certificate(rows.X, rows.y)
    label = model.classes_[0]
    one = ts.GraphSVC().fit(rows.X, rows.y == label)
    np.testing.assert_allclose(one.coef_, model.coef_[0], atol=1e-2)
    assert one.certificate(rows.X, rows.y == label).verify(rows.X, rows.y == label)
    strings, y = ["ACGTAC", "ACGTTT", "TTGTAC", "CCGTAA", "ACCCAC", "GCGTAC"], [1, 1, 0, 0, 1, 0]
    hasher = ts.WeightedDegreeHasher(degree=3, n_features=2**8)
    with pytest.raises(ValueError, match="fit to the hashed rows"):
        ts.GraphSVC(hasher=hasher).fit(strings, y).certificate(strings, y)
    hashed = hasher.fit_transform(strings)
    assert ts.GraphSVC().fit(hashed, y).certificate(hashed, y).verify(hashed, y)


def test_a_path_of_machines_has_a_certificate_for_each_value(data: Rows) -> None:
    graph = [[0, 1, 0], [1, 0, 1], [0, 1, 0]]
    path = ts.GraphSVR(graph).path(data.X, data.y, task=data.task, Cs=[0.1, 1.0], graph_strengths=[0.5, 2.0])
    for k in range(len(path)):
        certificate = path.certificate(data.X, data.y, k, task=data.task)
        assert certificate.verify(data.X, data.y, task=data.task)
        assert certificate.gaps[0] <= 1.1 * path.dual_gaps[k] + 1e-9 * path.objectives[k]


# --- the file -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def certificate(data: Rows) -> Certificate:
    model = ts.MultiTaskLasso(0.1).fit(data.X, data.y, task=data.task)
    return model.certificate(data.X, data.y, task=data.task)


def test_the_file_is_plain(certificate: Certificate, data: Rows) -> None:
    raw = certificate.to_bytes()
    assert raw == certificate.to_bytes()
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        assert {member.compress_type for member in archive.infolist()} == {zipfile.ZIP_STORED}
        header = json.loads(archive.read("header.json"))
        assert np.load(io.BytesIO(archive.read("dual.npy"))).shape == (1, len(data.y))
    assert header["tasks"] == [0, 1, 2]
    assert header["loss"] == {"name": "clipped", "mu": 1.0, "low": None, "high": None, "labels": "numbers"}


def test_other_data_are_refused(certificate: Certificate, data: Rows) -> None:
    X, y, task = data.X, data.y, data.task
    swapped = X[:, [1, 0, *range(2, 7)]]
    other = y.copy()
    other[3] = np.nextafter(other[3], 9.0)
    rng = np.random.default_rng(0)
    order = rng.permutation(len(y))
    for found in (
        certificate.verify(swapped, y, task=task),
        certificate.verify(X, other, task=task),
        certificate.verify(X[order], y[order], task=task[order]),
        certificate.verify(X[:-1], y[:-1], task=task[:-1]),
        certificate.verify(X, y, task=task, sample_weight=2.0),
    ):
        assert not found.proved
        assert "not proved" in found.words


@pytest.mark.parametrize("name", ["objective", "dual_value", "gap", "coef", "intercept", "dual", "open", "sure"])
def test_a_tampered_claim_is_refused(certificate: Certificate, data: Rows, name: str) -> None:
    arrays = dict(certificate.arrays)
    if name in ("open", "sure"):  # one feature fewer, or more
        change = -1 if name == "open" else 1
        taken = arrays[name][1:] if change < 0 else np.arange(len(arrays[name]) + 1)
        arrays[name], arrays[f"{name}_start"] = taken, np.array([0, len(taken)])
    elif name == "dual":  # of other rows; a multiple would still be one
        arrays[name] = arrays[name][:, ::-1]
    else:
        moved = {"gap": 0.5, "dual_value": 1.001, "objective": 1.001}.get(name, 1.01)
        arrays[name] = arrays[name] * moved
    found = Certificate(certificate.header, arrays).verify(data.X, data.y, task=data.task)
    assert not found.proved


@pytest.mark.parametrize("seed", [4, 6, 8, 38])
@pytest.mark.filterwarnings("ignore")
def test_a_ridge_and_columns_far_from_zero(seed: int) -> None:
    """Rounding keeps the scale of the dual point below 1, and with a ridge less scale proved more: who rounds less, as
    fractions do, was promised what he could not find."""
    rng = np.random.default_rng(seed)
    X, task = 1e4 + 0.1 * rng.standard_normal((34, 4)), np.repeat([0, 1], 17)
    y = (rng.random(34) < 0.5) * 6.0 - 3.0 + rng.standard_normal(34)
    model = ts.MultiTaskRegressor(
        alpha=0.0086, penalty=penalties.SparseGroup(l1=0.5, group=1.0), ridge=0.1, fit_intercept=False, tol=1e-5,
        task_weights=[0.9, 1.7],
    )  # fmt: skip
    certificate = model.fit(X, y, task=task).certificate(X, y, task=task)
    assert certificate.verify(X, y, task=task).proved
    assert certificate.verify(X, y, task=task, exact=True).proved
