"""What users of scikit-learn expect: its folds, outcomes by name, messages about their own call."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.linear_model import ElasticNetCV, LassoCV, MultiTaskLassoCV
from sklearn.metrics import mean_squared_error

import tasksieve as ts

RNG = np.random.default_rng(3)
X = RNG.standard_normal((63, 6))
Y = X[:, :2] @ RNG.standard_normal((2, 3)) + RNG.standard_normal((63, 3))
NAMES = ["chol", "bp", "age"]  # in no order
FRAMES = {"pandas": pd.DataFrame, "polars": pl.DataFrame}


def _frame(library: str, values: np.ndarray, names: list[str]) -> Any:
    return FRAMES[library](dict(zip(names, values.T, strict=True)))


# --- folds -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["1-D", "column", "one task"])
def test_folds_of_one_outcome_are_scikit_learns(form: str) -> None:
    """Unshuffled for y and y[:, None] alike; with a task they are shuffled, as everywhere."""
    y = Y[:, 0]
    other = LassoCV(cv=5, tol=1e-10, alphas=np.geomspace(0.5, 0.01, 8)).fit(X, y)
    ours = ts.MultiTaskLassoCV(cv=5, tol=1e-10, fold_tol=1e-10, alphas=other.alphas_)
    given = {"1-D": {"y": y}, "column": {"y": y[:, None]}, "one task": {"y": y, "task": np.zeros(len(y))}}[form]
    ours.fit(X, **given)
    same = form != "one task"
    assert np.allclose(ours.cv_scores_, other.mse_path_, rtol=1e-5) == same
    assert ("consecutive" in ours.cv_folds_, "shuffled" in ours.cv_folds_) == (same, not same)
    if same:
        assert ours.alpha_ == other.alpha_


def test_folds_of_several_outcomes_and_of_the_elastic_net() -> None:
    alphas = np.geomspace(0.5, 0.02, 6)
    many = MultiTaskLassoCV(cv=4, tol=1e-10, alphas=alphas).fit(X, Y)
    ours = ts.MultiTaskLassoCV(cv=4, tol=1e-10, fold_tol=1e-10, alphas=alphas).fit(X, Y)
    assert np.allclose(ours.cv_scores_, many.mse_path_, rtol=1e-5)
    net = ElasticNetCV(cv=4, tol=1e-10, l1_ratio=0.7, alphas=alphas).fit(X, Y[:, 1])
    own = ts.MultiTaskElasticNetCV(cv=4, tol=1e-10, fold_tol=1e-10, l1_ratio=0.7, alphas=alphas).fit(X, Y[:, 1])
    assert np.allclose(own.cv_scores_, net.mse_path_, rtol=1e-5)


def test_folds_of_all_others_are_shuffled() -> None:
    y = Y[:, 0]
    for model, given in (
        (ts.MultiTaskLassoCV(n_alphas=3, cv=3), {"groups": np.arange(len(y)) // 2}),
        (ts.MultiTaskHuberCV(n_alphas=3, cv=3), {}),
        (ts.MultiTaskOWLCV(n_alphas=3, cv=3), {}),
        (ts.MultiTaskRegressorCV(n_alphas=3, cv=3), {}),
    ):
        assert "shuffled" in model.fit(X, y, **given).cv_folds_


# --- names of outcomes -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("library", FRAMES)
def test_columns_of_a_frame_are_tasks(library: str) -> None:
    frame, model = _frame(library, Y, NAMES), ts.MultiTaskLasso(alpha=0.1)
    plain = ts.MultiTaskLasso(alpha=0.1).fit(X, Y)
    model.fit(X, frame)
    assert model.tasks_.tolist() == NAMES
    assert plain.tasks_.tolist() == [0, 1, 2]
    assert np.array_equal(model.coef_, plain.coef_)
    by_name = model.predict(X, task=np.repeat("age", len(X)))
    assert np.allclose(by_name, plain.predict(X)[:, 2], rtol=0, atol=1e-13)
    path = model.path(X, frame, n_alphas=4)
    assert path.tasks.tolist() == NAMES
    assert path.model(1).tasks_.tolist() == NAMES
    assert ts.MultiTaskLassoCV(n_alphas=4, cv=3).fit(X, frame).tasks_.tolist() == NAMES
    weighted = ts.MultiTaskLasso(alpha=0.1, task_weights={"bp": 2.0, "chol": 1.0, "age": 1.0}).fit(X, frame)
    assert np.array_equal(weighted.coef_, ts.MultiTaskLasso(alpha=0.1, task_weights=[1.0, 2.0, 1.0]).fit(X, Y).coef_)


@pytest.mark.parametrize("library", FRAMES)
def test_a_fitted_model_finds_its_outcomes_by_name(library: str) -> None:
    """Columns in another order are the same columns; other columns are refused."""
    frame, turned = _frame(library, Y, NAMES), _frame(library, Y[:, [2, 0, 1]], ["age", "chol", "bp"])
    model = ts.MultiTaskLasso(alpha=0.1).fit(X, frame)
    assert model.score(X, turned) == model.score(X, frame)
    assert model.score(X, Y) == model.score(X, frame)
    score = ts.task_scorer(mean_squared_error, greater_is_better=False)
    assert score(model, X, turned) == score(model, X, frame)
    found = model.certificate(X, turned)
    assert found.header["tasks"] == NAMES
    assert found.verify(X, frame).proved
    other = _frame(library, Y, ["chol", "bp", "weight"])
    for ask in (model.score, model.certificate, model.path(X, frame, n_alphas=2).certificate):
        with pytest.raises(ValueError, match=r"columns 'chol', 'bp', 'weight', but the tasks of the model are 'chol'"):
            ask(X, other)
    assert ts.MultiTaskLasso(alpha=0.1).fit(X, Y).score(X, turned) != model.score(X, frame)  # fitted without names


def test_one_column_and_a_series_are_one_task() -> None:
    frame = pd.DataFrame(Y, columns=NAMES)
    assert ts.MultiTaskLasso(alpha=0.1).fit(X, frame["bp"]).tasks_.tolist() == [0]
    one = ts.MultiTaskLasso(alpha=0.1).fit(X, frame[["bp"]])
    assert one.tasks_.tolist() == ["bp"]
    assert one.predict(X).shape == (len(X), 1)
    stacked = ts.MultiTaskLasso(alpha=0.1).fit(X, frame[["bp"]], task=np.arange(len(X)) % 2)
    assert stacked.tasks_.tolist() == [0, 1]


def test_names_that_are_numbers_or_stand_twice() -> None:
    years = pd.DataFrame(Y, columns=[2021, 2020, 2019])
    assert ts.MultiTaskLasso(alpha=0.1).fit(X, years).tasks_.tolist() == [2021, 2020, 2019]
    with pytest.raises(ValueError, match=r"y has two columns called 'bp': each task needs a name of its own"):
        ts.MultiTaskLasso(alpha=0.1).fit(X, pd.DataFrame(Y, columns=["bp", "age", "bp"]))


def test_a_label_that_is_wrong_is_named_by_its_column() -> None:
    frame = pd.DataFrame(Y, columns=NAMES)
    frame.loc[4, "age"] = np.inf
    with pytest.raises(ValueError, match=r"row 5 .*, task 'age'"):
        ts.MultiTaskLasso(alpha=0.1).fit(X, frame)


def test_classes_graphs_and_findings_have_the_names() -> None:
    signs = pd.DataFrame(Y > 0, columns=NAMES)
    assert ts.MultiTaskLogisticRegression(alpha=0.01).fit(X, signs).tasks_.tolist() == NAMES
    graph, values = ts.graph.complete_graph(3), pd.DataFrame(Y, columns=NAMES)
    assert ts.GraphSVC(graph).fit(X, signs).tasks_.tolist() == NAMES
    assert ts.MultiTaskRegressor(alpha=0.1, task_graph=graph).fit(X, values).tasks_.tolist() == NAMES
    assert ts.OnlineMultiTaskRegressor().partial_fit(X, values).tasks_.tolist() == NAMES
    found = ts.refit(ts.MultiTaskLasso(alpha=0.1).fit(X, values), X, values)
    assert found.tasks_.tolist() == NAMES
    table = ts.compare(ts.MultiTaskLassoCV(n_alphas=4, cv=3), X, values, cv=3, pooled=False)
    assert set(table.to_frame().task) >= set(NAMES)


# --- messages ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [ts.MultiTaskLasso(), ts.MultiTaskCox(), ts.MultiTaskOWLCV(), ts.GraphSVR()])
def test_messages_name_the_class_that_was_called(model: Any) -> None:
    name = type(model).__name__
    for method in ("fit", "path", "predict", "score", "alpha_max", "certificate", "predict_interval"):
        if not hasattr(model, method):
            continue
        with pytest.raises(TypeError, match=rf"^{name}\.{method}\(\) got an unexpected keyword argument 'weigth'$"):
            getattr(model, method)(X, weigth=1)
        with pytest.raises(TypeError, match=rf"^{name}\.{method} takes .* positional arguments"):
            getattr(model, method)(*[X] * 12)


def test_other_errors_of_types_stay_as_they_are() -> None:
    with pytest.raises(TypeError, match=r"^MultiTaskHuber\.fit\(\) missing 1 required positional argument: 'X'$"):
        ts.MultiTaskHuber().fit()
    with pytest.raises(TypeError, match=r"^GraphSVR has no offset"):
        ts.GraphSVR().fit(X, Y[:, 0])._scores(X, None, offset=1.0)


def test_messages_keep_the_case_of_names() -> None:
    for name, words in (("groups", "Groups says which rows of X"), ("task", "Task says which task each row of X")):
        with pytest.raises(ValueError, match=words):
            ts.MultiTaskLassoCV().fit(X, Y[:, 0], **{name: np.zeros(3)})
