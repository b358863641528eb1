"""``task="hospital"`` in the constructor: the tasks stand in a column of X, and tools that know of none work."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.inspection import partial_dependence, permutation_importance
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import tasksieve as ts

pandas = pytest.importorskip("pandas")
pytest.importorskip("narwhals")

HOSPITALS = np.array(["Ulm", "Bonn", "Kiel"])


def tables(rows=120, features=6, seed=0):
    """X with a column "hospital" in its middle, y, and the same as X without it and tasks."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, features))
    task = HOSPITALS[rng.integers(0, 3, rows)]
    slope = dict(zip(HOSPITALS, (2.0, 1.0, -1.0), strict=True))
    y = X[:, 0] * [slope[t] for t in task] + X[:, 1] + 0.1 * rng.standard_normal(rows)
    plain = pandas.DataFrame(X, columns=[f"gene{j}" for j in range(features)])
    frame = plain.copy()
    frame.insert(2, "hospital", task)
    return frame, plain, y, task


def as_polars(frame):
    polars = pytest.importorskip("polars")
    return polars.DataFrame({name: frame[name].to_list() for name in frame}).with_columns(
        polars.col("hospital").cast(polars.Categorical)
    )


def as_arrow(frame):
    return pytest.importorskip("pyarrow").Table.from_pandas(frame, preserve_index=False)


@pytest.mark.parametrize("kind", [lambda frame: frame, as_polars, as_arrow], ids=["pandas", "polars", "pyarrow"])
@pytest.mark.parametrize(
    "model", [ts.MultiTaskLasso(alpha=0.05), ts.MultiTaskLassoCV(n_alphas=10, cv=3), ts.GraphSVR()]
)
def test_the_model_is_that_of_tasks_given_apart(kind, model):
    frame, plain, y, task = tables()
    apart = clone(model).fit(plain, y, task=task)
    column = clone(model).set_params(task="hospital").fit(kind(frame), y)
    np.testing.assert_array_equal(column.coef_, apart.coef_)
    np.testing.assert_array_equal(column.tasks_, np.sort(HOSPITALS))
    np.testing.assert_array_equal(column.feature_names_in_, list(plain))
    assert column.n_features_in_ == plain.shape[1]
    new = kind(frame[::-1].reset_index(drop=True))
    np.testing.assert_array_equal(column.predict(new), apart.predict(plain, task=task)[::-1])
    assert column.score(kind(frame), y) == apart.score(plain, y, task=task)


def test_the_number_of_a_column_serves_for_arrays_and_sparse_matrices():
    _, plain, y, task = tables()
    codes = np.searchsorted(np.sort(HOSPITALS), task)
    expected = ts.MultiTaskLasso(alpha=0.05).fit(plain.to_numpy(), y, task=codes)
    X = np.column_stack([plain, codes])
    for given in (X, scipy.sparse.csr_array(X), X.tolist()):
        model = ts.MultiTaskLasso(alpha=0.05, task=-1).fit(given, y)
        np.testing.assert_allclose(model.coef_, expected.coef_, atol=1e-12)
        np.testing.assert_allclose(model.predict(given), expected.predict(plain.to_numpy(), task=codes), atol=1e-12)


def test_tasks_given_twice_are_an_error():
    frame, plain, y, task = tables()
    for X in (frame, plain):
        with pytest.raises(ValueError, match="given apart, but the model reads them from column 'hospital'"):
            ts.MultiTaskLasso(task="hospital").fit(X, y, task=task)
    model = ts.MultiTaskLasso(alpha=0.1, task="hospital").fit(frame, y)
    with pytest.raises(ValueError, match="given apart"):
        model.predict(frame, task=task)


@pytest.mark.parametrize(
    ("X", "words"),
    [
        (lambda frame, plain: plain, "task='hospital' is no column of X, which has 'gene0', 'gene1'"),
        (lambda frame, plain: plain.to_numpy(), "has no names: pass a data frame, or the number"),
        (lambda frame, plain: [plain, plain], "X is a list of tasks"),
        (lambda frame, plain: {"a": plain}, "X is a dict of tasks"),
        (lambda frame, plain: frame.assign(hospital=[None, *frame["hospital"][1:]]), "task has no label in row 1 "),
        (lambda frame, plain: frame.assign(gene3="x"), "column 'gene3' holds text"),
    ],
)
def test_what_is_no_column_of_tasks_is_refused_by_name(X, words):
    frame, plain, y, _ = tables()
    with pytest.raises(ValueError, match=words):
        ts.MultiTaskLasso(task="hospital").fit(X(frame, plain), y)


def test_a_lazy_frame_is_to_be_collected():
    polars = pytest.importorskip("polars")
    frame, _, y, _ = tables()
    for model in (ts.MultiTaskLasso(), ts.MultiTaskLasso(task="hospital")):
        with pytest.raises(ValueError, match=r"pass X\.collect\(\)"):
            model.fit(polars.LazyFrame({"gene0": [0.0, 1.0]}), [0.0, 1.0])
    with pytest.raises(ts.ParameterError, match="must be the name of a column of X"):
        ts.MultiTaskLasso(task=1.5).fit(frame, y)


def test_grid_search_with_a_score_of_scikit_learn():
    frame, plain, y, task = tables()
    search = GridSearchCV(ts.MultiTaskLasso(task="hospital"), {"alpha": [0.01, 0.1, 1.0]}, scoring="r2", cv=KFold(4))
    search.fit(frame, y)
    assert search.best_params_ == {"alpha": 0.01}
    train, test = next(KFold(4).split(frame))
    apart = ts.MultiTaskLasso(alpha=0.01).fit(plain.iloc[train], y[train], task=task[train])
    expected = r2_score(y[test], apart.predict(plain.iloc[test], task=task[test]))
    assert search.cv_results_["split0_test_score"][0] == pytest.approx(expected, abs=1e-12)
    assert search.predict(frame).shape == y.shape


def test_cross_val_predict_gives_one_number_a_row():
    frame, plain, y, task = tables()
    found = cross_val_predict(ts.MultiTaskLasso(alpha=0.01, task="hospital"), frame, y, cv=KFold(3))
    expected = np.empty(len(y))
    for train, test in KFold(3).split(frame):
        apart = ts.MultiTaskLasso(alpha=0.01).fit(plain.iloc[train], y[train], task=task[train])
        expected[test] = apart.predict(plain.iloc[test], task=task[test])
    np.testing.assert_array_equal(found, expected)


def test_folds_within_tasks_and_scores_by_task_read_the_column_too():
    frame, plain, y, task = tables()
    model, folds = ts.MultiTaskLasso(alpha=0.01, task="hospital"), ts.TaskKFold(3, shuffle=False, task="hospital")
    scores = cross_val_score(model, frame, y, cv=folds, scoring=ts.task_scorer("r2"))
    expected = []
    for train, test in ts.TaskKFold(3, shuffle=False).split(plain, groups=task):
        apart = ts.MultiTaskLasso(alpha=0.01).fit(plain.iloc[train], y[train], task=task[train])
        predicted = apart.predict(plain.iloc[test], task=task[test])
        own = [r2_score(y[test][task[test] == t], predicted[task[test] == t]) for t in HOSPITALS]
        expected.append(np.mean(own))
    np.testing.assert_allclose(scores, expected, rtol=1e-12)


def test_a_column_transformer_codes_categories_and_lets_tasks_pass():
    frame, _, y, _ = tables()
    frame["ward"] = np.where(np.arange(len(frame)) % 3 == 0, "east", "west")
    genes = [name for name in frame if name.startswith("gene")]
    before = ColumnTransformer(
        [("genes", StandardScaler(), genes), ("ward", OneHotEncoder(sparse_output=False), ["ward"]),
         ("tasks", "passthrough", ["hospital"])],
        verbose_feature_names_out=False,
    ).set_output(transform="pandas")  # fmt: skip
    pipeline = make_pipeline(before, ts.MultiTaskLasso(alpha=0.01, task="hospital")).fit(frame, y)
    assert list(pipeline[-1].feature_names_in_) == [*genes, "ward_east", "ward_west"]
    assert pipeline.score(frame, y) > 0.9
    assert cross_val_score(pipeline, frame, y, cv=3, scoring=ts.task_scorer("neg_mean_absolute_error")).max() < 0.0


def test_the_inspection_tools_of_scikit_learn():
    frame, _, y, _ = tables()
    model = ts.MultiTaskLasso(alpha=0.1, task="hospital").fit(frame, y)
    importance = permutation_importance(model, frame, y, n_repeats=3, random_state=0).importances_mean
    by_name = dict(zip(frame, importance, strict=True))
    assert min(by_name["gene0"], by_name["gene1"], by_name["hospital"]) > 0.05
    assert max(abs(by_name[f"gene{j}"]) for j in (2, 3, 4, 5)) < 0.02
    curve = partial_dependence(model, frame, ["gene1"], grid_resolution=5)["average"][0]
    assert np.all(np.diff(curve) > 0.0)


def test_optuna_tunes_it():
    optuna = pytest.importorskip("optuna")
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    frame, _, y, _ = tables()

    def objective(trial):
        model = ts.MultiTaskLasso(alpha=trial.suggest_float("alpha", 1e-3, 1.0, log=True), task="hospital")
        return cross_val_score(model, frame, y, cv=KFold(3), scoring="r2").mean()

    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(objective, n_trials=5)
    assert study.best_value == max(objective(optuna.trial.FixedTrial(t.params)) for t in study.trials)


def test_selected_columns_are_those_of_the_frame_without_tasks():
    frame, plain, y, _ = tables()
    model = ts.MultiTaskLasso(alpha=0.1, task="hospital").fit(frame, y)
    chosen = list(model.get_feature_names_out())
    assert chosen[:2] == ["gene0", "gene1"]
    np.testing.assert_array_equal(model.transform(frame), plain[chosen])
    np.testing.assert_array_equal(model.transform(plain), plain[chosen])


def test_findings_certificates_and_reports_take_the_column(tmp_path):
    frame, plain, y, task = tables()
    model = ts.MultiTaskLasso(alpha=0.05, task="hospital").fit(frame, y)
    apart = ts.MultiTaskLasso(alpha=0.05).fit(plain, y, task=task)
    assert model.certificate(frame, y).verify(plain, y, task=task).proved
    np.testing.assert_array_equal(ts.refit(model, frame, y).coef_, ts.refit(apart, plain, y, task=task).coef_)
    pairs = {"n_pairs": 4, "random_state": 0}
    one = ts.StabilitySelection(ts.MultiTaskLasso(task="hospital"), **pairs).fit(frame, y)
    other = ts.StabilitySelection(ts.MultiTaskLasso(), **pairs).fit(plain, y, task=task)
    np.testing.assert_array_equal(one.selection_probabilities_, other.selection_probabilities_)
    for finding in (ts.permutation_test, ts.split_inference, ts.compare):
        few = {"n_permutations": 5} if finding is ts.permutation_test else {"cv": 3} if finding is ts.compare else {}
        chooser = ts.MultiTaskLassoCV(n_alphas=5, cv=3) if finding is ts.compare else ts.MultiTaskLasso(alpha=0.05)
        one = finding(clone(chooser).set_params(task="hospital"), frame, y, **few)
        assert str(one) == str(finding(chooser, plain, y, task=task, **few))
    report = ts.write_report(model, tmp_path / "report.html", X=frame, y=y, held_out=(frame, y)).read_text()
    assert "model.predict(X)" in report
    assert "task=task" not in report
    path = ts.MultiTaskLasso(task="hospital").path(frame, y, n_alphas=3)
    assert path.model(2).score(frame, y) > 0.5
