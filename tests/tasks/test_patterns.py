"""Rows that lack columns: patterns of present columns are tasks, and what is absent is exactly 0."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import tasksieve as ts
from tasksieve.tasks import read_tasks
from tasksieve.tasks.patterns import merge_small

D = 12


def data(seed: int = 0, n: int = 120) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Three blocks of columns; each row lacks at most one."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, D)) * rng.uniform(0.5, 2.0, D) + rng.standard_normal(D)
    y = X[:, 0] - X[:, 5] + X[:, 9] + 0.3 * rng.standard_normal(n)
    lacks = rng.integers(0, 4, n)
    for b in range(3):
        X[np.ix_(lacks == b, np.arange(4 * b, 4 * b + 4))] = np.nan
    return X, y, rng.choice(["A", "B"], n)


def filled(rows: Any) -> np.ndarray:
    return np.nan_to_num(rows.to_array())


def test_patterns_are_tasks_and_their_labels_say_of_which() -> None:
    X, _, task = data()
    rows = ts.by_pattern(X, task=task)
    assert rows.patterns.names.tolist() == [f"{name}/{k}" for name in "AB" for k in (1, 2, 3, 4)]
    assert rows.patterns.of.tolist() == ["A"] * 4 + ["B"] * 4
    assert rows.present[0].all()  # most columns first
    for row, label in enumerate(rows.task):
        k = rows.patterns.names.tolist().index(label)
        assert label[0] == task[row]
        assert np.array_equal(rows.present[k], ~np.isnan(X[row]))
    np.testing.assert_array_equal(rows.to_array(), X)
    frame = rows.to_frame()
    assert frame["rows"].sum() == len(X)
    assert frame["columns"].tolist() == [12, 8, 8, 8] * 2
    assert repr(rows) == "120 rows of 12 columns in 8 patterns"
    pd, names = pytest.importorskip("pandas"), [f"v{j}" for j in range(12)]
    named = ts.by_pattern(pd.DataFrame(X, columns=names).assign(site=task), task="site")  # the tasks are a column
    assert named.feature_names.tolist() == names
    np.testing.assert_array_equal(named.task, rows.task)
    with pytest.raises(ValueError, match="task='hospital' is no column of X"):
        ts.by_pattern(pd.DataFrame(X, columns=names), task="hospital")


@pytest.mark.parametrize("standardize", [False, True])
def test_the_explicit_problem_agrees(standardize: bool) -> None:
    """Clarabel on the problem in which a task has no coefficient for what it lacks."""
    import cvxpy as cp

    X, y, task = data()
    rows = ts.by_pattern(X, task=task)
    alpha = 0.15
    model = ts.MultiTaskLasso(alpha=alpha, tol=1e-12, standardize=standardize).fit(rows, y)
    labels = model.tasks_.tolist()
    n_bar = len(y) / len(labels)
    loss, norms, objective = [], {j: [] for j in range(D)}, {}
    for label in labels:
        here = rows.task == label
        own = np.flatnonzero(~np.isnan(X[here][0]))
        columns = X[here][:, own]
        if standardize:
            columns = columns / columns.std(axis=0)
        w, b = cp.Variable(len(own)), cp.Variable()
        loss.append(cp.sum_squares(y[here] - columns @ w - b))
        for k, j in enumerate(own):
            norms[j].append(w[k])
        objective[label] = (w, own, X[here][:, own].std(axis=0))
    penalty = sum(cp.norm(cp.hstack(row), 2) for row in norms.values())
    problem = cp.Problem(cp.Minimize(sum(loss) / (2 * n_bar) + alpha * penalty))
    problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-9, tol_gap_rel=1e-9, tol_feas=1e-9)
    assert model.objective_ == pytest.approx(problem.value, abs=1e-8)
    for t, label in enumerate(labels):
        w, own, deviations = objective[label]
        explicit = np.zeros(D)
        explicit[own] = w.value / deviations if standardize else w.value
        np.testing.assert_allclose(model.coef_[t], explicit, atol=1e-5)
    assert not np.any(model.coef_[~model.present_])
    assert model.get_support().any()


PENALTIES = ["l11", "linf", "dirty", "sparse_group", "owl", ts.penalties.Groups(np.arange(D) // 3, inside="entries")]


@pytest.mark.parametrize(
    ("model", "kind"),
    [
        *((ts.MultiTaskRegressor(penalty=penalty, alpha=0.05), "numbers") for penalty in PENALTIES),
        (ts.MultiTaskElasticNet(alpha=0.1, l1_ratio=0.5), "numbers"),
        (ts.MultiTaskLasso(alpha=0.05, feature_weights=np.r_[0.0, np.ones(D - 2), 0.0]), "numbers"),
        (ts.MultiTaskHuber(alpha=0.1), "numbers"),
        (ts.CalibratedMultiTaskLasso(alpha=0.1), "numbers"),
        (ts.MultiTaskLogisticRegression(alpha=0.02), "two"),
        (ts.MultiTaskClassifier(alpha=0.02), "three"),
        (ts.MultiTaskOrdinal(alpha=0.02), "three"),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str) else value,
)
def test_absent_coefficients_are_exactly_zero_and_the_fit_is_that_of_zero_columns(model: Any, kind: str) -> None:
    X, y, _ = data(n=160)
    y = {"numbers": y, "two": y > 0, "three": np.digitize(y, np.quantile(y, [0.3, 0.7]))}[kind]
    rows = ts.by_pattern(X)
    model.fit(rows, y)
    whole = model._learned().rows
    absent = ~np.repeat(model.present_, model._learned().class_counts, axis=0)
    assert absent.any()
    assert not whole[absent].any()
    assert whole.any()
    other = type(model)(**model.get_params()).fit(filled(rows), y, task=rows.task)
    np.testing.assert_allclose(whole, other._learned().rows, atol=1e-3)
    assert model.objective_ == pytest.approx(other.objective_, abs=model.dual_gap_ + other.dual_gap_)


def test_a_graph_of_tasks_is_refused() -> None:
    X, y, _ = data()
    with pytest.raises(ValueError, match="task_graph: neighbours pull"):
        ts.MultiTaskRegressor(task_graph="chain").fit(ts.by_pattern(X), y)
    with pytest.raises(ValueError, match="row by row"):
        ts.OnlineMultiTaskRegressor().fit(ts.by_pattern(X), y)
    with pytest.raises(ValueError, match="graph of tasks"):
        ts.GraphSVR(graph=np.ones((4, 4))).fit(ts.by_pattern(X), y)


def test_only_what_is_present_is_stored_and_multiplied() -> None:
    X, y, task = data()
    rows = ts.by_pattern(X, task=task)
    order = np.argsort(rows.codes, kind="stable")
    offsets = np.concatenate([[0], np.cumsum(np.bincount(rows.codes))])
    storage = rows.in_task_order(order, offsets)
    present = int((~np.isnan(X)).sum())
    assert storage.entries == present < X.size
    vector = np.random.default_rng(1).standard_normal(len(y))
    for squares in (False, True):
        for columns in (None, np.array([7, 0, 7, 11])):
            storage.multiplied = 0
            found = storage.products(vector, offsets, False, columns, squares, 1)
            chosen = np.arange(D) if columns is None else columns
            expected = np.array([
                (filled(rows)[order][low:high][:, chosen] ** (2 if squares else 1)).T @ vector[low:high]
                for low, high in zip(offsets[:-1], offsets[1:], strict=True)
            ]).T  # fmt: skip
            np.testing.assert_allclose(found, expected, atol=1e-12)
            assert storage.multiplied == int((~np.isnan(X[:, chosen])).sum())
    np.testing.assert_array_equal(storage.take(np.array([3, 9])), filled(rows)[order][:, [3, 9]])
    cut = np.array([0, 7, 50, len(y)])  # any other cut of the rows
    found = storage.products(vector, cut, False, None, False, 1)
    expected = np.array([filled(rows)[order][a:b].T @ vector[a:b] for a, b in zip(cut[:-1], cut[1:], strict=True)]).T
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_float32_stays_what_it_is() -> None:
    X, y, _ = data()
    rows = ts.by_pattern(X.astype(np.float32))
    assert rows.in_task_order(None, np.array([0, len(y)])).dtype == np.float32
    assert ts.MultiTaskLasso(alpha=0.2).fit(rows, y).get_support().any()


def test_rows_to_predict_find_their_patterns_by_their_columns() -> None:
    X, y, task = data()
    model = ts.MultiTaskLasso(alpha=0.1).fit(ts.by_pattern(X, task=task), y)
    some = np.flatnonzero((task == "B") & np.isnan(X[:, 0]))  # one pattern only: alone it has another label
    alone = ts.by_pattern(X[some], task=task[some])
    assert alone.task.tolist() == ["B"] * len(some)
    np.testing.assert_array_equal(model.predict(alone), model.predict(ts.by_pattern(X, task=task))[some])
    assert model.score(ts.by_pattern(X, task=task), y) > 0.8
    complete = ~np.isnan(X).any(axis=1)
    whole = ts.MultiTaskLasso(alpha=0.1).fit(X[complete], y[complete])
    np.testing.assert_array_equal(whole.predict(ts.by_pattern(X[complete])), whole.predict(X[complete]))


def test_unseen_patterns_are_refused_or_predicted_by_the_nearest_part() -> None:
    X, y, task = data()
    model = ts.MultiTaskLasso(alpha=0.1).fit(ts.by_pattern(X, task=task), y)
    complete = np.flatnonzero(~np.isnan(X).any(axis=1))[:3]
    new = X[complete].copy()
    new[1:, 11] = np.nan  # nearest: the pattern without the last block
    with pytest.raises(ValueError, match=r"rows 2, 3.* 11 of 12 columns.*unseen=\"nearest\"") as refused:
        model.predict(ts.by_pattern(new, task=["A"] * 3))
    assert "row 1 is the first" in str(refused.value)
    predicted = model.predict(ts.by_pattern(new, task=["A"] * 3, unseen="nearest"))
    part = new.copy()
    part[1:, 8:] = np.nan
    np.testing.assert_array_equal(predicted, model.predict(ts.by_pattern(part, task=["A"] * 3)))
    nothing = np.full((1, D), np.nan)
    nothing[0, 0] = 1.0
    with pytest.raises(ValueError, match="no pattern that was fitted needs only these"):
        model.predict(ts.by_pattern(nothing, task=["A"], unseen="nearest"))
    with pytest.raises(ValueError, match="task 'C' in row 1"):
        model.predict(ts.by_pattern(new, task=["C"] * 3))
    with pytest.raises(ValueError, match="no task"):
        model.predict(ts.by_pattern(new))


def test_cross_validation_uses_every_row_once() -> None:
    X, y, task = data()
    rows = ts.by_pattern(X, task=task)
    model = ts.MultiTaskLassoCV(n_alphas=15, cv=3).fit(rows, y)
    other = ts.MultiTaskLassoCV(n_alphas=15, cv=3).fit(filled(rows), y, task=rows.task)
    assert model.cv_predictions_.shape == y.shape
    assert np.isfinite(model.cv_predictions_).all()
    np.testing.assert_allclose(model.cv_predictions_, other.cv_predictions_, atol=1e-2)
    assert not model.coef_[~model.present_].any()
    assert model.path_.coef(5).toarray()[~model.present_].any() == np.False_
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(ts.by_pattern(X, task=task)), model.predict(rows))


@pytest.mark.parametrize("given", [True, False], ids=["tasks", "one task"])
def test_quality_of_the_tasks_that_patterns_are_parts_of(given: bool) -> None:
    """From predictions out of fold, rows of all patterns of a task together."""
    X, y, task = data(n=160)
    rows = ts.by_pattern(X, task=task if given else None)
    families = {"A": task == "A", "B": task == "B"} if given else {"all rows": np.ones(160, dtype=bool)}

    model = ts.MultiTaskLassoCV(n_alphas=8, cv=3).fit(rows, y)
    whole = model.cv_quality_by_task_
    assert whole.tasks.tolist() == list(families)
    assert whole.n_rows.tolist() == [own.sum() for own in families.values()]
    for t, own in enumerate(families.values()):
        error = (y - model.cv_predictions_)[own]
        squared = np.mean(error**2)
        np.testing.assert_allclose(whole.values[t], [1 - squared / np.var(y[own]), squared], rtol=1e-10)
    each = model.cv_quality_
    assert each.tasks.tolist() == model.tasks_.tolist()
    np.testing.assert_allclose(whole.n_rows @ whole.values[:, 1], each.n_rows @ each.values[:, 1])

    sick = np.where(y > 0, "sick", "well")
    classifier = ts.MultiTaskLogisticRegressionCV(n_alphas=4, cv=3).fit(rows, sick)
    chance, fold = classifier.cv_predictions_[:, 1], classifier.cv_fold_
    for t, own in enumerate(families.values()):
        high, low = own & (sick == "well"), own & (sick == "sick")
        pairs = [(chance[high & (fold == f)][:, None], chance[low & (fold == f)]) for f in (1, 2, 3)]
        right = sum(float(np.sum(a > b) + 0.5 * np.sum(a == b)) for a, b in pairs)
        met = np.where(chance > 0.5, "well", "sick")[own] == sick[own]
        found = classifier.cv_quality_by_task_.values[t]
        np.testing.assert_allclose(found[:2], [met.mean(), right / sum(a.size * b.size for a, b in pairs)])

    model.fit(np.nan_to_num(X), y, task=task)
    assert not hasattr(model, "cv_quality_by_task_")


def test_quality_of_survival_compares_rows_of_a_pattern() -> None:
    """Hazards of different patterns have no scale in common: pairs are of one pattern, sums of all of a task. Where
    folds leave fewer than 1,000 pairs of a task, they are over all folds."""
    X, y, task = data(n=160)
    label = ts.survival(np.exp(-y), event=np.arange(160) % 4 > 0)
    rows = ts.by_pattern(X, task=task)
    model = ts.MultiTaskCoxCV(n_alphas=4, cv=3).fit(rows, label)
    risk, fold, whole = model.cv_predictions_, model.cv_fold_, model.cv_quality_by_task_
    time, event = label["time"], label["event"]
    for t, name in enumerate("AB"):
        right = total = within = 0.0
        for i in np.flatnonzero((task == name) & event):
            later = (rows.task == rows.task[i]) & (time > time[i])
            within += (later & (fold == fold[i])).sum()
            total += later.sum()
            right += np.sum(risk[later] < risk[i]) + 0.5 * np.sum(risk[later] == risk[i])
        assert within < 1000
        np.testing.assert_allclose(whole.values[t, 0], right / total)
        own = model.patterns_.of == name
        # of the deviance for each event the mean, weighted by events
        events = np.array([event[rows.task == label].sum() for label in model.tasks_[own]])
        np.testing.assert_allclose(whole.values[t, 2], events @ model.cv_quality_.values[own, 2] / events.sum())
    from tasksieve.fitted.new_rows import quality_on

    new = quality_on(model, rows, label, task=rows.task, given_tasks=True)
    assert new.tasks.tolist() == ["A", "B"]


def test_scikit_learn_takes_rows() -> None:
    from sklearn.model_selection import cross_val_score

    X, y, _ = data()
    scores = cross_val_score(ts.MultiTaskLasso(alpha=0.1), ts.by_pattern(X, min_rows=1), y, cv=3)
    assert (scores > 0.3).all()
    part = ts.by_pattern(X)[10:40]
    np.testing.assert_array_equal(part.to_array(), X[10:40])


def test_data_frames_of_other_columns_are_united() -> None:
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(3)
    A = pandas.DataFrame(rng.standard_normal((40, 3)), columns=["a", "b", "c"])
    B = pandas.DataFrame(rng.standard_normal((30, 2)), columns=["d", "b"])
    y = {"A": A["a"] + A["b"], "B": B["d"] - B["b"]}
    with pytest.raises(ValueError, match="lacks the column 'd': columns='union'"):
        ts.by_pattern({"A": A, "B": B})
    with pytest.raises(ValueError, match="by_pattern"):
        ts.MultiTaskLasso().fit({"A": A, "B": B}, y)
    rows = ts.by_pattern({"A": A, "B": B}, columns="union")
    model = ts.MultiTaskLasso(alpha=0.01).fit(rows, y)
    assert model.feature_names_in_.tolist() == ["a", "b", "c", "d"]
    assert model.tasks_.tolist() == ["A", "B"]
    assert model.present_.tolist() == [[True, True, True, False], [False, True, False, True]]
    assert not model.coef_[~model.present_].any()
    assert model.get_support().tolist() == [True, True, False, True]
    new = ts.by_pattern({"B": B[["b", "d"]][:4]})  # other order, and not all columns of the model
    np.testing.assert_allclose(model.predict(new), model.predict(rows)[40:44])
    B.loc[3, "d"] = None
    assert ts.by_pattern({"A": A, "B": B}, columns="union").patterns.names.tolist() == ["A", "B/1", "B/2"]
    with pytest.raises(ValueError, match="column 'z'"):
        model.predict(ts.by_pattern(A[:2].rename(columns={"a": "z"}), task=["A", "A"]))


def test_small_patterns_are_told_of_or_merged() -> None:
    X, y, _ = data()
    complete = np.flatnonzero(~np.isnan(X).any(axis=1))
    X[complete[0], 11] = np.nan  # one row of its own
    with pytest.warns(UserWarning, match=r"1 of 5 patterns .* fewer than 5 rows .*min_rows=10 merges"):
        ts.MultiTaskLasso(alpha=0.1).fit(ts.by_pattern(X), y)
    rows = ts.by_pattern(X, min_rows=10)
    assert len(rows.patterns) == 4
    assert rows.n_dropped == 3
    assert np.isnan(rows.to_array()[complete[0], 8:]).all()
    X[complete[0], 1:] = np.nan
    with pytest.raises(ValueError, match=rf"min_rows=10: a pattern of 1 of 12 columns .*rows {complete[0] + 1};"):
        ts.by_pattern(X, min_rows=10)


def test_merging_leaves_no_small_pattern() -> None:
    rng = np.random.default_rng(5)
    for _ in range(20):
        present = np.unique(rng.random((12, 6)) < 0.6, axis=0)
        present[0] = False
        present[0, 0] = True
        present[:, 0] = True
        present = np.unique(present, axis=0)
        codes = rng.integers(0, len(present), 60)
        codes = np.append(codes, np.full(8, np.argmin(present.sum(axis=1))))
        stands = merge_small(np.zeros(len(present), dtype=np.int64), present, codes, 8, np.arange(len(codes)))
        counts = np.bincount(stands[codes], minlength=len(present))
        assert (counts[counts > 0] >= 8).all()
        assert not (present[stands] & ~present).any()  # columns are dropped, none is invented
        kept = np.unique(stands[codes])
        for k in np.unique(codes):
            inside = [q for q in kept if not (present[q] & ~present[k]).any()]
            assert present[stands[k]].sum() == max(present[q].sum() for q in inside)


def test_bad_input_is_refused_by_name() -> None:
    X, y, task = data()
    with pytest.raises(ValueError, match="task was given with rows of by_pattern"):
        ts.MultiTaskLasso().fit(ts.by_pattern(X, task=task), y, task=task)
    bad = X.copy()
    bad[4, 2] = np.inf
    with pytest.raises(ValueError, match="row 5 "):
        ts.by_pattern(bad)
    bad[4] = np.nan
    with pytest.raises(ValueError, match="rows 5 have no value at all"):
        ts.by_pattern(bad)
    for options in ({"columns": "all"}, {"unseen": "zero"}, {"min_rows": 0}, {"columns": "union"}):
        with pytest.raises(ts.ParameterError, match=next(iter(options))):
            ts.by_pattern(X, **options)
    with pytest.raises(ValueError, match="y of 2 columns"):
        ts.MultiTaskLasso().fit(ts.by_pattern(X, task=task), np.stack([y, y], axis=1))


def test_labels_do_not_collide() -> None:
    X, _, _ = data()
    task = np.where(np.arange(len(X)) < 60, "A", "A/1")
    names = ts.by_pattern(X, task=task).patterns.names.tolist()
    assert len(set(names)) == len(names) == 8
    assert ts.by_pattern(np.ones((4, 2)), task=[3, 3, 1, 1]).patterns.names.tolist() == [1, 3]
    assert ts.by_pattern(X, task=np.arange(len(X)) % 2).patterns.names[:2].tolist() == ["0/1", "0/2"]


def test_a_model_of_one_task_is_refused() -> None:
    X, y, _ = data()
    with pytest.raises(ValueError, match="one matrix for all classes"):
        ts.MultinomialOWL().fit(ts.by_pattern(X), np.digitize(y, [-1.0, 1.0]))
    with pytest.raises(ValueError, match="4 patterns of present columns, each of them a task"):
        read_tasks(ts.by_pattern(X), y)
