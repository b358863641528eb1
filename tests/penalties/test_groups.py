"""Groups of features: whole groups everywhere, their limits, and what is refused."""

from __future__ import annotations

import pickle

import joblib
import numpy as np
import pytest
import scipy.sparse

import tasksieve as ts
from tasksieve.design import ColumnBlock, DenseStorage, Design, as_storage
from tasksieve.path import Problem, solve_path
from tasksieve.penalties import L21, Groups, SparseGroup
from tasksieve.penalties.groups import read_feature_groups
from tasksieve.solvers import Needs
from tasksieve.solvers.coordinate import block_descent


@pytest.fixture
def data(rng):
    x, task = rng.standard_normal((90, 60)), np.repeat(np.arange(3), 30)
    labels = np.arange(60) // 5
    w = np.zeros((60, 3))
    w[:5], w[20:25] = rng.standard_normal((2, 5, 3))
    y = np.einsum("ij,ji->i", x, w[:, task]) + 0.3 * rng.standard_normal(90)
    return x, y, task, labels


# --- whole groups ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("inside", [None, "rows", "entries"])
def test_a_part_of_a_group_is_refused(inside):
    """Its gauge would be too small, and with it a certificate."""
    penalty = Groups(["a", "b", "a", "c", "b"], inside).on(np.ones(5), 2)
    for part in ([0], [0, 1, 2], [1], [2, 3]):
        with pytest.raises(ValueError, match=r"1 of the 2 features of group '[ab]'"):
            penalty.restrict(np.array(part))
    assert penalty.whole(np.array([0])).tolist() == [0, 2]
    assert penalty.whole(np.array([3, 4])).tolist() == [1, 3, 4]
    assert penalty.whole(np.empty(0, dtype=np.int64)).tolist() == []
    smaller = penalty.restrict(np.array([1, 3, 4]))
    assert smaller.whole(np.array([0])).tolist() == [0, 2]
    with pytest.raises(ValueError, match="1 of the 2 features"):
        smaller.restrict(np.array([0, 1]))
    assert smaller.restrict(np.array([1])).whole(np.array([0])).tolist() == [0]


@pytest.mark.parametrize("labels", [[0, 0, 1, 2, 2, 2, 3, 4, 4], [0, 1, 0, 2, 1, 2, 3, 2, 2]], ids=["sorted", "mixed"])
@pytest.mark.parametrize("size", [1, 2, 4, 100])
def test_pieces_hold_whole_groups(labels, size):
    penalty = Groups(labels).on(np.ones(9), 2)
    everything = np.arange(9)
    pieces = [everything[piece] for piece in penalty.pieces(size)]
    assert sorted(np.concatenate(pieces).tolist()) == list(range(9))
    for piece in pieces:
        penalty.restrict(piece)  # refuses parts
        assert len(piece) <= max(size, 4)


def test_every_question_of_the_engine_is_about_whole_groups(data, monkeypatch):
    """Along paths of all kinds: `restrict` is asked for whole groups, and gauges of a group are one number."""
    x, y, _, labels = data
    mixed = np.random.default_rng(3).permutation(labels)
    asked = []
    original = Groups.restrict

    def restrict(self, features):
        asked.append(len(features))
        return original(self, features)

    monkeypatch.setattr(Groups, "restrict", restrict)
    wide = np.hstack([x, np.random.default_rng(4).standard_normal((90, 940))])  # so many that working sets are used
    many = np.concatenate([mixed, 12 + np.random.default_rng(5).permutation(940) // 4])
    for matrix, groups in ((x, mixed), (wide, many)):
        for inside in (None, "rows"):
            design = Design(as_storage(matrix), np.array([0, 30, 60, 90]), n_threads=1)
            problem = Problem(design, y, penalty=Groups(groups, inside), fixed_ridge=0.3)
            lams = problem.lambda_max() * np.geomspace(1.0, 0.2, 5)
            for options in ({}, {"solver": "apgd"}, {"lazy": False}, {"screening": None}):
                assert all(point.converged for point in solve_path(problem, lams, tol=1e-5, **options).points)
    assert len(asked) > 100


def test_groups_in_several_storages(data):
    """The answers of one storage, wherever the features are cut; a part of a group is no penalty."""
    x, y, _, labels = data
    x = np.asfortranarray(x)
    values = []
    for cuts in ([0, 60], [0, 25, 60], [0, 23, 60]):
        parts = [DenseStorage(x[:, a:b]) for a, b in zip(cuts[:-1], cuts[1:], strict=True)]
        problem = Problem(Design(parts, np.array([0, 30, 60, 90])), y, penalty=Groups(labels))
        values.append(solve_path(problem, [0.3 * problem.lambda_max()], tol=1e-8).points[0])
    for other in values[1:]:
        assert values[0].objective == pytest.approx(other.objective, rel=1e-12)
        np.testing.assert_array_equal(values[0].features, other.features)
    with pytest.raises(ValueError, match=r"3 of the 5 features of group .*keep each group in one"):
        problem.penalty.restrict(np.arange(23))


# --- limits ----------------------------------------------------------------------------------------------------------


@pytest.mark.sampled(3)
@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize(
    ("inside", "other"), [(None, L21()), ("rows", L21()), ("entries", SparseGroup(0.4, 0.6))], ids=str
)
def test_groups_of_one_feature(rng, data, inside, other, positive):
    x, y, task, _ = data
    penalty = Groups(rng.permutation(60), inside, mix=0.4)
    one = ts.MultiTaskRegressor(penalty=penalty, alpha=0.5, tol=1e-9, positive=positive).fit(x, y, task=task)
    two = ts.MultiTaskRegressor(penalty=other, alpha=0.5, tol=1e-9, positive=positive).fit(x, y, task=task)
    np.testing.assert_allclose(one.coef_, two.coef_, atol=1e-4)
    assert one.objective_ == pytest.approx(two.objective_, rel=1e-7)


def test_one_task_is_the_group_lasso(rng):
    """Against proximal gradient in plain NumPy."""
    x = rng.standard_normal((40, 12))
    x -= x.mean(axis=0)
    y = x[:, 0] - x[:, 1] + 0.3 * rng.standard_normal(40)
    y -= y.mean()
    labels = np.repeat([0, 1, 2], [3, 4, 5])
    w, lip, lam = np.zeros(12), np.linalg.norm(x, 2) ** 2, 8.0
    for _ in range(2000):
        w = w + x.T @ (y - x @ w) / lip
        for label in range(3):
            own, level = labels == label, lam * np.sqrt(np.sum(labels == label)) / lip
            w[own] *= max(0.0, 1.0 - level / np.linalg.norm(w[own]))
    model = ts.MultiTaskRegressor(penalty=Groups(labels), alpha=lam / 40, tol=1e-12).fit(x, y)
    np.testing.assert_allclose(model.coef_[0], w, atol=1e-7)
    assert 0 < model.get_support().sum() < 12


def test_one_group_of_all_features_is_never_sparse(data):
    x, y, task, _ = data
    model = ts.MultiTaskRegressor(penalty=Groups(np.zeros(60)), alpha=0.05).fit(x, y, task=task)
    assert model.get_support().all()


# --- fitted models ---------------------------------------------------------------------------------------------------


def test_selected_groups_and_features(data):
    x, y, task, labels = data
    names = np.array([f"gene {k:02}" for k in labels])
    model = ts.MultiTaskRegressor(penalty=Groups(names), alpha=0.2).fit(x, y, task=task)
    assert model.selected_groups_.tolist() == ["gene 00", "gene 04"]
    assert model.get_support(indices=True).tolist() == [*range(5), *range(20, 25)]
    inside = ts.MultiTaskRegressor(penalty=Groups(names, "rows"), alpha=0.3).fit(x, y, task=task)
    path = ts.MultiTaskRegressor(penalty=Groups(names, "rows")).path(x, y, task=task, n_alphas=5, eps=0.3)
    assert path.n_selected[-1] == np.count_nonzero(path.coef(4).toarray().any(axis=0))
    assert set(inside.selected_groups_) >= {"gene 00"}
    plain = ts.MultiTaskRegressor(alpha=0.2).fit(x, y, task=task)
    assert not hasattr(plain, "selected_groups_")


@pytest.mark.parametrize("inside", [None, "entries"])
def test_every_home_of_x(data, tmp_path, inside):
    x, y, task, labels = data
    x = np.where(np.abs(x) > 1.0, x, 0.0).astype(np.float32)
    model = ts.MultiTaskRegressor(penalty=Groups(labels, inside), tol=1e-8)
    options = {"n_alphas": 5, "eps": 0.2}
    wanted = model.path(x.astype(np.float64), y, task=task, **options)
    np.save(tmp_path / "x.npy", x)
    blocks = [x[task == t] for t in range(3)]
    for matrix, target, own in (
        (x, y, {"task": task}),
        (scipy.sparse.csr_array(x), y, {"task": task}),
        (np.load(tmp_path / "x.npy", mmap_mode="r"), y, {"task": task}),
        (blocks, [y[task == t] for t in range(3)], {}),
    ):
        found = model.path(matrix, target, **own, **options)
        np.testing.assert_allclose(found.objectives, wanted.objectives, rtol=1e-7)
        assert found.converged.all()
    together = np.stack([y, -y, y[::-1]], axis=1)
    shared = model.path(x, together, **options)
    stacked = model.path(np.vstack([x] * 3), together.T.ravel(), task=np.repeat([0, 1, 2], 90), **options)
    np.testing.assert_allclose(shared.objectives, stacked.objectives, rtol=1e-7)
    sparse = model.path(scipy.sparse.csc_array(x), together, **options)
    np.testing.assert_allclose(shared.objectives, sparse.objectives, rtol=1e-7)


def test_a_penalty_that_was_used_is_the_same(data):
    """Checkpoints know a fold again by its parameters."""
    x, y, task, labels = data
    penalty = Groups(labels)
    before = joblib.hash(penalty)
    model = ts.MultiTaskRegressor(penalty=penalty, alpha=0.2).fit(x, y, task=task)
    assert joblib.hash(penalty) == before
    again = pickle.loads(pickle.dumps(model))
    assert again.selected_groups_.tolist() == model.selected_groups_.tolist()


def test_group_weights_and_free_groups(data):
    x, y, task, labels = data
    sizes = ts.MultiTaskRegressor(penalty=Groups(labels), alpha=0.2, tol=1e-9).fit(x, y, task=task)
    by_hand = Groups(labels, weights=np.full(12, np.sqrt(5.0)))
    same = ts.MultiTaskRegressor(penalty=by_hand, alpha=0.2, tol=1e-9).fit(x, y, task=task)
    np.testing.assert_allclose(sizes.coef_, same.coef_, atol=1e-7)
    features = np.ones(60)
    features[55:] = 0.0
    free = ts.MultiTaskRegressor(penalty=Groups(labels), alpha=0.5, feature_weights=features).fit(x, y, task=task)
    assert free.get_support()[55:].all()
    assert free.selected_groups_[-1] == 11
    features[57] = 1.0
    with pytest.raises(ValueError, match=r"feature_weights differ within group 11 \(feature 55: 0, feature 57: 1\)"):
        ts.MultiTaskRegressor(penalty=Groups(labels), feature_weights=features).fit(x, y, task=task)


# --- refused ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("groups", "options", "words"),
    [
        ([0, 1], {}, "groups are of 2 features, but X has 60"),
        ([[0, 1], [2]], {}, "one label per feature, or a mapping"),
        (np.zeros((60, 2)), {}, r"array of shape \(60, 2\)"),
        ([*range(59), None], {}, "Feature 59 has no group"),
        ([*np.arange(59.0), np.nan], {}, "Feature 59 has no group"),
        ({"a": [0, 1], "b": [1, 2]}, {}, "Feature 1 is in group 'a' and in group 'b': groups must not overlap"),
        ({"a": [0, 1], "b": []}, {}, "group 'b' is empty"),
        ({"a": [0], "b": [2]}, {}, "Feature 1 is in no group"),
        ({"a": [0.5]}, {}, "group 'a' must be a list of features by number"),
        (np.zeros(60), {"inside": "tasks"}, "'inside' must be None, 'rows' or 'entries'"),
        (np.zeros(60), {"inside": "rows", "mix": 1.0}, "'mix' must lie strictly between 0 and 1"),
        (np.arange(60) // 30, {"weights": [1.0]}, "have shape .* there are 2 groups"),
        (np.arange(60) // 30, {"weights": [1.0, 0.0]}, "weight of group 1 is 0.0"),
        (np.arange(60) // 30, {"weights": {0: 1.0}}, "no number for group 1"),
        (np.arange(60) // 30, {"weights": {0: 1.0, 1: 1.0, 2: 1.0}}, "name 2, which is no group"),
        (np.arange(60) // 30, {"weights": "root"}, "must be 'sqrt', None or numbers"),
    ],
)
def test_bad_groups_get_clear_errors(data, groups, options, words):
    x, y, task, _ = data
    with pytest.raises(ValueError, match=words):
        ts.MultiTaskRegressor(penalty=Groups(groups, **options)).fit(x, y, task=task)


def test_reading_groups():
    names, code = read_feature_groups({"b": [2, 0], "a": [1]})
    assert names.tolist() == ["b", "a"]
    assert code.tolist() == [0, 1, 0]
    names, code = read_feature_groups(["y", "x", "y"])
    assert names.tolist() == ["x", "y"]
    assert code.tolist() == [1, 0, 1]


def test_newton_in_row_norms_is_refused():
    assert "group penalty" in Needs(plain=True).unmet(None, Groups([0, 0, 1]).on(np.ones(3), 4))


# --- the solver ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("by_gram", [False, True])
@pytest.mark.parametrize(("inside", "positive"), [(None, False), (None, True), ("rows", False), ("entries", True)])
def test_blocks_are_solved_to_their_optimum(rng, inside, positive, by_gram, shared):
    """Equal columns and empty ones included; the residual's correlations are dual to what was found."""
    x = rng.standard_normal((30, 8))
    x[:, 1], x[:, 5] = x[:, 0], 0.0
    offsets = np.array([0, 30, 60, 90]) if shared else np.array([0, 8, 18, 30])
    y = rng.standard_normal(offsets[-1])
    segments = [slice(0, 30)] * 3 if shared else [slice(a, b) for a, b in zip(offsets[:-1], offsets[1:], strict=True)]
    squares = np.stack([np.square(x[own]).sum(axis=0) for own in segments], axis=1)
    penalty = Groups([0, 0, 0, 1, 2, 2, 1, 3], inside).on(np.full(8, 0.7), 3, positive=positive, fixed_ridge=0.2)
    rows, residual = np.zeros((8, 3)), y.copy()
    columns = ColumnBlock(np.asfortranarray(x), offsets, shared, 1)
    _, gap = block_descent(columns, np.arange(8), squares, penalty, rows, residual, 20_000, 1e-12, by_gram)
    assert gap <= 1e-12
    parts = [y[a:b] - x[own] @ rows[:, t] for t, (a, b, own) in enumerate(zip(offsets[:-1], offsets[1:], segments))]  # noqa: B905
    dual = np.stack([x[own].T @ part for own, part in zip(segments, parts, strict=True)], axis=1) - penalty.ridge * rows
    assert penalty.polar(penalty.row_gauges(dual)) <= 1.0 + 1e-5
    assert np.vdot(dual, rows) == pytest.approx(penalty.value(rows), rel=1e-6)
    assert rows.any()
