"""Paths of the machines over C and the strength of the graph."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone

import tasksieve as ts
from tasksieve.graph import complete_graph

CLASSES = ("hinge", "squared_hinge", "logistic")
NUMBERS = ("epsilon_insensitive", "squared_epsilon_insensitive", "squared")
CS, STRENGTHS = [0.01, 0.05, 0.3, 1.0], [0.1, 2.0]


def draw(rng, n_tasks=3, n=150, d=5, numbers=False):
    X, task = rng.standard_normal((n, d)), rng.integers(n_tasks, size=n)
    W = rng.standard_normal(d) + 0.5 * rng.standard_normal((n_tasks, d))
    z = np.einsum("ij,ij->i", X, W[task]) + 0.5 * rng.standard_normal(n)
    return X, z if numbers else np.where(z > 0, 1, -1), task


@pytest.mark.sampled(4)
@pytest.mark.parametrize("loss", [*CLASSES, *NUMBERS])
def test_every_value_is_certified_and_as_good_as_a_cold_fit(loss, rng):
    X, y, task = draw(rng, numbers=loss in NUMBERS)
    Model = ts.GraphSVR if loss in NUMBERS else ts.GraphSVC
    model = Model(complete_graph(3), loss=loss, tol=1e-7)
    path = model.path(X, y, task=task, Cs=CS[::-1], graph_strengths=STRENGTHS)
    assert path.Cs.tolist() == CS * 2
    assert path.graph_strengths.tolist() == [0.1] * 4 + [2.0] * 4
    assert np.all(path.relative_gaps <= 1e-7)
    assert np.all(path.converged)
    for k in range(len(path)):
        cold = clone(model).set_params(C=path.Cs[k], graph_strength=path.graph_strengths[k]).fit(X, y, task=task)
        assert abs(path.objectives[k] - cold.objective_) <= max(path.dual_gaps[k], cold.dual_gap_)
        # the objective is 1-strongly convex: what two gaps leave open
        apart = np.sqrt(2 * path.dual_gaps[k]) + np.sqrt(2 * cold.dual_gap_)
        assert np.linalg.norm(path.coef(k) - cold.coef_) <= apart
        assert path.intercept(k) == pytest.approx(cold.intercept_, abs=apart)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("loss", "tol", "share"),
    [
        ("squared_hinge", 1e-6, 0.5),
        ("logistic", 1e-6, 0.7),
        ("squared_epsilon_insensitive", 1e-6, 0.7),
        # with a kink it is the last digits that take the work, from wherever the descent starts
        ("hinge", 1e-3, 0.9),
        ("epsilon_insensitive", 1e-3, 0.9),
    ],
)
def test_warm_starts_save_work(loss, tol, share, rng):
    X, y, task = draw(rng, n=400, d=20, numbers=loss in NUMBERS)
    Model = ts.GraphSVR if loss in NUMBERS else ts.GraphSVC
    model = Model(complete_graph(3), loss=loss, solver="dual", tol=tol)
    path = model.path(X, y, task=task, Cs=np.geomspace(0.01, 1.0, 12), graph_strengths=[0.5, 1.0])
    cold = [
        clone(model).set_params(C=C, graph_strength=strength).fit(X, y, task=task)
        for C, strength in zip(path.Cs, path.graph_strengths, strict=True)
    ]
    assert path.n_visits[0] == cold[0].n_visits_  # the first one has nothing to start from
    assert path.n_visits.sum() < share * sum(model.n_visits_ for model in cold)
    assert path.n_iter.sum() < share * sum(model.n_iter_ for model in cold)


def test_models_of_a_path(rng):
    X, y, task = draw(rng)
    model = ts.GraphSVC(complete_graph(3), tol=1e-8, C=7.0)
    path = model.path(X, y, task=task, Cs=CS)
    assert not hasattr(model, "coef_")
    assert not hasattr(model, "classes_")
    one = path.model(2)
    assert (one.C, one.graph_strength) == (0.3, 1.0)
    fitted = clone(model).set_params(C=0.3).fit(X, y, task=task)
    np.testing.assert_allclose(one.decision_function(X, task=task), fitted.decision_function(X, task=task), atol=1e-3)
    np.testing.assert_array_equal(path.predict(X, 2, task=task), one.predict(X, task=task))
    np.testing.assert_allclose(one.dual_coef_, fitted.dual_coef_, atol=1e-2)
    assert one.dual_gap_ == path.dual_gaps[2]
    assert set(vars(one)) - {"_warm"} == set(vars(fitted)) - {"_warm"}
    again = pickle.loads(pickle.dumps(path))
    np.testing.assert_array_equal(again.coef(-1), path.coef(-1))
    assert repr(again) == "GraphPath of 4 values, 3 tasks, 5 features"


def test_frame(rng):
    pytest.importorskip("pandas")
    X, y, task = draw(rng)
    frame = ts.GraphSVC(complete_graph(3)).path(X, y, task=task, Cs=CS, graph_strengths=STRENGTHS).to_frame()
    assert frame.C.tolist() == CS * 2
    assert frame.shape == (8, 11)
    assert (frame.dual_gap >= 0).all()


def test_several_classes_and_strings(rng):
    X, _, task = draw(rng)
    y = np.array(["a", "b", "c"])[np.argmax(X[:, :3], axis=1)]
    path = ts.GraphSVC(complete_graph(3), loss="squared_hinge").path(X, y, task=task, Cs=CS[:2])
    assert path.coef(0).shape == (3, 3, 5)
    assert path.intercept(1).shape == (3, 3)
    assert path.model(1).score(X, y, task=task) > 0.7
    strings = rng.choice(list("ACGT"), size=(60, 12))
    strings[::2, 4] = "G"
    words = np.array(["".join(row) for row in strings])
    site, where = np.arange(60) % 2 == 0, rng.integers(3, size=60)
    hasher = ts.WeightedDegreeHasher(degree=3, n_features=2**10)
    model = ts.GraphSVC(complete_graph(3), hasher=hasher, tol=1e-4)
    path = model.path(words, site, task=where, Cs=3)
    assert np.all(path.relative_gaps <= 1e-4)
    assert path.model(-1).score(words, site, task=where) > 0.8
    assert path.Cs[0] == pytest.approx(3 / (60 * 2.0), rel=1e-6)  # hashed rows and the constant: each of length 1


def test_forms_and_unsorted_graphs(rng):
    X, y, task = draw(rng, numbers=True)
    names = np.array(["z", "m", "a"])
    model = ts.GraphSVR(complete_graph(3), graph_tasks=names, loss="squared", tol=1e-10)
    path = model.path(scipy.sparse.csr_array(X), y, task=names[task], Cs=CS)
    assert path.tasks.tolist() == names.tolist()
    order = [2, 1, 0]  # of the sorted labels
    listed = ts.GraphSVR(complete_graph(3), loss="squared", tol=1e-10).path(
        [X[task == t] for t in order], [y[task == t] for t in order], Cs=CS
    )
    for k in range(4):
        np.testing.assert_allclose(path.coef(k), listed.coef(k)[order], atol=1e-4)


def test_default_values_of_c_follow_the_units(rng):
    X, y, task = draw(rng, numbers=True)
    rows = {"task": task, "Cs": 4}
    model = ts.GraphSVR(complete_graph(3), fit_intercept=False, tol=1e-3)
    plain = model.path(X, y, **rows).Cs
    assert plain[0] == pytest.approx(3 * np.abs(y).mean() / np.sum(X**2), rel=1e-12)
    assert plain[-1] == pytest.approx(plain[0] * 100 * len(y) / 3, rel=1e-12)
    np.testing.assert_allclose(model.path(8 * X, y, **rows).Cs, plain / 64, rtol=1e-12)
    np.testing.assert_allclose(model.path(X, 4 * y, **rows).Cs, plain * 4, rtol=1e-12)
    np.testing.assert_allclose(model.path(X, y, sample_weight=2.0, **rows).Cs, plain / 2, rtol=1e-12)
    unseen = np.where(np.arange(len(y)) < 120, y, np.nan)
    fewer = model.path(X[:120], y[:120], task=task[:120], Cs=4).Cs
    np.testing.assert_allclose(model.path(X, unseen, **rows).Cs, fewer, rtol=1e-12)


def test_progress_and_interruption(rng):
    X, y, task = draw(rng)
    heard = []

    def stop(progress):
        heard.append((progress.label, progress.unit, progress.done, progress.total))
        if progress.done == 3:
            raise KeyboardInterrupt

    model = ts.GraphSVC(complete_graph(3))
    with ts.watch(stop), pytest.warns(UserWarning, match="interrupted: 3 of 8 values"):
        path = model.path(X, y, task=task, Cs=CS, graph_strengths=STRENGTHS)
    assert path.interrupted
    assert len(path) == 3
    assert heard == [("GraphSVC", "value", k, 8) for k in (1, 2, 3)]
    np.testing.assert_allclose(path.dual_gaps, model.path(X, y, task=task, Cs=CS[:3], graph_strengths=[0.1]).dual_gaps)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"Cs": [0.0, 1.0]}, "'Cs' parameter must be one or more numbers > 0"),
        ({"Cs": 0}, "'Cs'"),
        ({"Cs": "many"}, "'Cs'"),
        ({"Cs": []}, "'Cs'"),
        ({"graph_strengths": [-1.0]}, "'graph_strengths' parameter must be one or more numbers >= 0"),
        ({"graph_strengths": [np.nan]}, "'graph_strengths'"),
    ],
)
def test_bad_values(values, message, rng):
    X, y, task = draw(rng)
    with pytest.raises(ValueError, match=message):
        ts.GraphSVC(complete_graph(3)).path(X, y, task=task, **values)


def test_strengths_need_a_graph(rng):
    X, y, task = draw(rng)
    with pytest.raises(ValueError, match="graph is None"):
        ts.GraphSVC().path(X, y, task=task, graph_strengths=[1.0])
    assert ts.GraphSVC().path(X, y, task=task, Cs=2).graph_strengths.tolist() == [1.0, 1.0]
