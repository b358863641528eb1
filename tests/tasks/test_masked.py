"""Masked arrays: a masked label is one that is not observed, in every form and method; masks elsewhere are refused."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import named_rows
from sklearn.base import clone
from sklearn.metrics import mean_squared_error

import tasksieve as ts
from tasksieve.online.rows import read_rows

N, D, T = 48, 5, 3
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, D))
TASK = np.arange(N) % T
Y = X[:, 0] * (1.0 + TASK) + 0.3 * RNG.standard_normal(N)
HIDDEN = RNG.random(N) < 0.2
Y[HIDDEN] = 1e6 * (1.0 + np.arange(HIDDEN.sum()))  # learned, they would show
CLASSES = np.where(HIDDEN, 0, (Y > 0).astype(np.int64))


def masked(values, hidden=HIDDEN):
    return np.ma.array(values, mask=hidden)


def holes(values, hidden=HIDDEN):
    return np.where(hidden, np.nan, values)


def forms(fill):
    """The labels as stacked rows, one task, a column, a list, columns of Y, a list of rows of Y."""
    hidden = np.stack([HIDDEN, np.roll(HIDDEN, 1), np.roll(HIDDEN, 2)], axis=1)
    wide = np.where(hidden, 1e6, X[:, :1] * [1.0, -2.0, 0.5] + 0.3 * np.cos(np.arange(3 * N)).reshape(N, 3))
    parts = [fill(Y[t == TASK], HIDDEN[t == TASK]) for t in range(T)]
    rows = [fill(row, mask) for row, mask in zip(wide, hidden, strict=True)]
    matrices = [X[t == TASK] for t in range(T)]
    return {
        "stacked": ((X, fill(Y, HIDDEN)), {"task": TASK}),
        "stacked column": ((X, fill(Y[:, None], HIDDEN[:, None])), {"task": TASK}),
        "single": ((X, fill(Y, HIDDEN)), {}),
        "list": ((matrices, parts), {}),
        "shared": ((X, fill(wide, hidden)), {}),
        "shared, list of rows": ((X, rows), {}),
        "list of columns": ((matrices, [part[:, None] for part in parts]), {}),
    }


@pytest.mark.sampled(4)
@pytest.mark.parametrize("form", forms(masked))
def test_masked_labels_are_not_observed(form):
    (given, more), (expected, _) = forms(masked)[form], forms(holes)[form]
    model = ts.MultiTaskLasso(alpha=0.05)
    fitted, other = model.fit(*given, **more), ts.MultiTaskLasso(alpha=0.05).fit(*expected, **more)
    np.testing.assert_array_equal(fitted.coef_, other.coef_)
    assert np.abs(fitted.coef_).max() < 1e3
    assert fitted.score(*given, **more) == other.score(*expected, **more)
    assert fitted.alpha_max(*given, **more) == other.alpha_max(*expected, **more)
    one, two = (
        model.path(*arguments, **more, n_alphas=4, eps=0.1).coef(-1).toarray() for arguments in (given, expected)
    )
    np.testing.assert_array_equal(one, two)
    scorer = ts.task_scorer(mean_squared_error, greater_is_better=False)
    assert scorer(fitted, *given, **more) == scorer(fitted, *expected, **more)
    cv = [ts.MultiTaskLassoCV(n_alphas=4, eps=0.1, cv=3).fit(*a, **more).cv_scores_ for a in (given, expected)]
    np.testing.assert_array_equal(*cv)
    online = [ts.OnlineMultiTaskRegressor(0.01, gamma=20.0).partial_fit(*a, **more).coef_ for a in (given, expected)]
    np.testing.assert_array_equal(*online)


@pytest.mark.parametrize(
    ("model", "more"),
    [
        (ts.MultiTaskLogisticRegression(0.05), {"task": TASK}),
        (ts.MultiTaskSparseGroupLasso(0.05, loss="logistic"), {"task": TASK}),
        (ts.MultinomialOWL(0.05), {}),
        (ts.GraphSVC(C=1.0), {"task": TASK}),
        (ts.OnlineMultiTaskClassifier(0.01, gamma=20.0), {"task": TASK}),
    ],
)
def test_masked_classes_are_not_learned_and_keep_their_type(model, more):
    strange = np.where(HIDDEN, 7, CLASSES)  # a third class, were it not hidden
    learn = "partial_fit" if hasattr(model, "partial_fit") else "fit"  # epochs would shuffle other rows
    getattr(model, learn)(X, masked(strange), **more)
    assert model.classes_.tolist() == [0, 1]
    assert model.classes_.dtype.kind == "i"
    own = {key: value[~HIDDEN] for key, value in more.items()}
    other = getattr(clone(model), learn)(X[~HIDDEN], CLASSES[~HIDDEN], **own)
    np.testing.assert_allclose(model.coef_, other.coef_, atol=1e-4)
    score = model.score(X, masked(strange), **more)
    assert score == pytest.approx(model.score(X[~HIDDEN], CLASSES[~HIDDEN], **own))
    if isinstance(model, ts.MultinomialOWL):
        with pytest.warns(Warning, match="column-vector"):
            assert model.fit(X, masked(strange)[:, None]).classes_.tolist() == [0, 1]


def test_masked_labels_in_the_quick_way_of_streams():
    batch = read_rows(X, masked(Y), TASK, None, "values")
    np.testing.assert_array_equal(batch.weights, ~HIDDEN)


def test_what_lies_under_a_mask_does_not_matter():
    spoilt = np.where(HIDDEN, np.inf, Y)
    fitted = ts.MultiTaskLasso(0.05).fit(X, masked(spoilt), task=TASK)
    np.testing.assert_array_equal(fitted.coef_, ts.MultiTaskLasso(0.05).fit(X, holes(Y), task=TASK).coef_)
    words = np.ma.array(np.where(CLASSES == 1, "b", "a"), mask=HIDDEN)
    assert ts.MultiTaskLogisticRegression(0.05).fit(X, words, task=TASK).classes_.tolist() == ["a", "b"]
    both = masked(np.where(np.arange(N) == int(np.argmin(HIDDEN)), np.nan, Y))
    assert ts.MultiTaskLasso(0.05).fit(X, both, task=TASK).coef_.shape == (T, D)
    none = np.ma.array(np.where(HIDDEN, 0.0, Y), mask=np.zeros(N, dtype=bool))
    ts.MultiTaskLasso(0.05).fit(np.ma.array(X), none, task=np.ma.array(TASK), sample_weight=np.ma.ones(N))
    with pytest.raises(ValueError, match="task 0 has no rows"):
        ts.MultiTaskLasso(0.05).fit(X, masked(Y, TASK == 0), task=TASK)


def hide(values, *position):
    found = np.ma.array(values)
    found[position] = np.ma.masked
    return found


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"X": hide(X, 4, 2)}, r"X is masked in row 5 .*, column X\[:, 2\]"),
        ({"X": [*X[:4], hide(X[4], 2), *X[5:]]}, r"X is masked in row 5 .*, column X\[:, 2\]"),
        ({"task": hide(TASK, 5)}, "task is masked in row 6"),
        ({"task": hide(TASK.astype(str), 5)}, "task is masked in row 6"),
        ({"task": np.array([np.ma.masked, *TASK[1:]], dtype=object)}, "task has no label in row 1 "),
        ({"sample_weight": hide(np.ones(N), 6)}, "sample_weight is masked in row 7"),
    ],
)
@pytest.mark.parametrize(
    "model",
    [ts.MultiTaskLasso(), ts.CalibratedMultiTaskLasso(), ts.GraphSVR(), ts.OnlineMultiTaskRegressor(0.1, gamma=20.0)],
)
def test_masks_elsewhere_are_refused(model, changed, words):
    y = np.where(HIDDEN, 0.0, Y)
    with pytest.raises(ValueError, match=words):
        model.fit(**{"X": X, "y": y, "task": TASK, **changed})


def test_masks_elsewhere_are_refused_in_other_forms_and_parameters():
    y = np.where(HIDDEN, 0.0, Y)
    parts = [X[t == TASK] for t in range(T)], [y[t == TASK] for t in range(T)]
    weights = [np.ones(len(part)) for part in parts[1]]
    for arguments, words in (
        (([parts[0][0], hide(parts[0][1], 3, 0), parts[0][2]], parts[1]), r"X\[1\] is masked in row 4 .*\[:, 0\]"),
        ((*parts, None, [weights[0], hide(weights[1], 2), weights[2]]), r"sample_weight\[1\] is masked in row 3"),
        ((X, np.stack([y, y], axis=1), None, hide(np.ones((N, 2)), 2, 1)), "sample_weight is masked in row 3 .*task 1"),
    ):
        with pytest.raises(ValueError, match=words):
            ts.MultiTaskLasso().fit(**named_rows(*arguments))
    for model, words in (
        (ts.MultiTaskLasso(feature_weights=hide(np.ones(D), 1)), r"feature_weights is masked in feature_weights\[1\]"),
        (ts.MultiTaskLasso(task_weights=hide(np.ones(T), 2)), "task_weights is masked in task 2"),
        (ts.MultiTaskSparseGroupLasso(l1=hide(np.ones(D), 1)), r"l1 is masked in l1\[1\]"),
        (ts.MultiTaskOWL(weights=hide(np.ones(D), 1)), r"weights is masked in weights\[1\]"),
        (ts.MultiTaskLassoCV(alphas=hide(np.ones(3), 1)), r"alphas is masked in alphas\[1\]"),
        (ts.GraphSVR(graph=hide(np.ones((T, T)), 0, 1)), r"graph is masked in row 1 .*, column .*\[:, 1\]"),
    ):
        with pytest.raises(ValueError, match=words):
            model.fit(X, y, task=TASK)
    fitted = ts.MultiTaskLasso(0.1).fit(X, y, task=TASK)
    for arguments, words in (
        ({"X": hide(X, 4, 2), "task": TASK}, r"X is masked in row 5 .*, column X\[:, 2\]"),
        ({"X": X, "task": hide(TASK, 5)}, "task is masked in row 6"),
    ):
        with pytest.raises(ValueError, match=words):
            fitted.predict(**arguments)
    with pytest.raises(ValueError, match="X is masked in row 2"):
        ts.WeightedDegreeHasher(2).fit_transform(hide(np.array(["ACGT", "CCGT"]), 1))
