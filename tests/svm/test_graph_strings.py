"""Hashed strings: the kernel they stand for, training without stored features, FASTA."""

from __future__ import annotations

import gzip
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import tasksieve as ts
from tasksieve.graph import complete_graph
from tasksieve.svm import read_fasta


def windows(rng, n, length=20, letters="ACGT"):
    return ["".join(row) for row in rng.choice(list(letters), size=(n, length))]


def kernel(s, t, degree):
    """The weighted-degree kernel by its definition."""
    total = 0.0
    for k in range(1, degree + 1):
        weight = 2 * (degree - k + 1) / (degree * (degree + 1))
        total += weight * sum(s[p : p + k] == t[p : p + k] for p in range(len(s) - k + 1))
    return total


@pytest.mark.parametrize("degree", [1, 3, 8])
def test_inner_products_are_the_kernel(degree, rng):
    strings = windows(rng, 12, letters="AC")
    X = ts.WeightedDegreeHasher(degree).fit_transform(strings)
    expected = np.array([[kernel(s, t, degree) for t in strings] for s in strings])
    expected /= expected[0, 0]
    np.testing.assert_allclose((X @ X.T).toarray(), expected, atol=2e-3)  # hashed k-mers may meet
    assert X.shape == (12, 2**22)


def test_direct_columns_are_exact(rng):
    strings = windows(rng, 12)
    hasher = ts.WeightedDegreeHasher(4, n_features=2**15).fit(strings)
    assert hasher.n_direct_ == 4
    X = hasher.transform(strings)
    expected = np.array([[kernel(s, t, 4) for t in strings] for s in strings]) / kernel(
        strings[0], strings[0], 4
    )
    np.testing.assert_allclose((X @ X.T).toarray(), expected, atol=1e-6)


def test_forms_and_streaming(rng):
    strings = windows(rng, 50)
    hasher = ts.WeightedDegreeHasher(5, n_features=2**12).fit(strings)
    expected = hasher.transform(strings)
    as_bytes = np.array([s.encode() for s in strings])
    codes = as_bytes.view(np.uint8).reshape(50, -1)
    for form in (
        as_bytes,
        codes,
        np.array(strings),
        np.array(strings, dtype=object),
        iter(strings),
        [s.lower() for s in strings],
    ):
        assert (hasher.transform(form) != expected).nnz == 0
    assert (clone(hasher).fit(codes).transform(codes) != expected).nnz == 0


def test_letters_outside_the_alphabet():
    hasher = ts.WeightedDegreeHasher(3).fit(["ACGTA"])
    X = hasher.transform(["ACNTA", "NNNNN"])
    assert X[1].nnz == 0
    assert X[0].nnz == 4 + 2  # A, C, T, A; AC, TA; no 3-mer is whole
    protein = ts.WeightedDegreeHasher(3, alphabet="ACDEFGHIKLMNPQRSTVWY").fit_transform(["MKV", "MKL"])
    assert (protein @ protein.T).toarray()[0, 1] == pytest.approx(
        kernel("MKV", "MKL", 3) / kernel("MKV", "MKV", 3), abs=1e-6
    )


def test_errors():
    for X, message in (
        (["ACG", "AC"], "row 2 has 2"),
        ([], "non-empty"),
        ([[1.0]], "Expected strings"),
        ([""], "empty"),
    ):
        with pytest.raises(ValueError, match=message):
            ts.WeightedDegreeHasher().fit(X).transform(X)
    with pytest.raises(ValueError, match="fitted to 3"):
        ts.WeightedDegreeHasher().fit(["ACG"]).transform(["ACGT"])
    with pytest.raises(ValueError, match="one string"):
        ts.WeightedDegreeHasher().fit(["ACG"]).transform("ACG")
    for bad, message in (
        ({"degree": 0}, "degree"),
        ({"degree": 33}, "degree"),
        ({"n_features": 0}, "n_features"),
        ({"alphabet": "A"}, "alphabet"),
    ):
        with pytest.raises(ValueError, match=message):
            ts.WeightedDegreeHasher(**bad).fit(["ACG"])


@pytest.fixture
def data(rng):
    n = 300
    strings = np.array(windows(rng, n, 30))
    task = rng.integers(3, size=n)
    y = np.array([s[10:12] == "GT" or s[20] == "A" for s in strings])
    return strings, np.where(y ^ (rng.random(n) < 0.05), "site", "none"), task


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
def test_training_on_the_fly_is_training_on_features(loss, data):
    strings, y, task = data
    hasher = ts.WeightedDegreeHasher(6, n_features=2**14)
    graph = complete_graph(3)
    features = hasher.fit_transform(strings)
    stored = ts.GraphSVC(graph, loss=loss, tol=1e-4).fit(features, y, task=task)
    direct = ts.GraphSVC(graph, loss=loss, tol=1e-4, hasher=hasher).fit(strings, y, task=task)
    assert (
        abs(stored.objective_ - direct.objective_)
        <= stored.dual_gap_ + direct.dual_gap_ + 1e-5 * stored.objective_
    )
    assert direct.dual_gap_ <= 1e-4 * len(y) * (1 if loss != "logistic" else np.log(2))
    scores = direct.decision_function(strings, task=task)
    by_hand = (
        np.asarray(features @ direct.coef_.T.astype(float))[np.arange(len(y)), task] + direct.intercept_[task]
    )
    np.testing.assert_allclose(scores, by_hand, atol=1e-4)
    every = direct.decision_function(strings)
    np.testing.assert_allclose(every[np.arange(len(y)), task], scores, atol=1e-6)
    assert direct.score(strings, y, task=task) > 0.7
    assert direct.coef_.shape == (3, 2**14)


@pytest.mark.parametrize("max_iter", [1, 4, 50])
def test_gap_is_true(max_iter, data):
    """Objective and gap by hand, in double precision, from the features and the two points that are returned."""
    strings, y, task = data
    hasher, graph = ts.WeightedDegreeHasher(6, n_features=2**14), complete_graph(3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = ts.GraphSVC(graph, hasher=hasher, tol=1e-6, max_iter=max_iter).fit(strings, y, task=task)
    signs = np.where(y == "site", 1.0, -1.0)
    features = hasher.fit_transform(strings).toarray()
    rows = np.hstack([features, np.ones((len(y), 1))])
    W = np.hstack([model.coef_.astype(float), model.intercept_[:, None]])
    coupling = np.eye(3) + np.diag(graph.sum(axis=1)) - graph
    V = np.stack([model.dual_coef_[task == t] @ rows[task == t] for t in range(3)])
    scores = np.einsum("ij,ij->i", rows, W[task])
    primal = 0.5 * np.sum(W * (coupling @ W)) + np.sum(np.maximum(0, 1 - signs * scores))
    dual = np.sum(signs * model.dual_coef_) - 0.5 * np.sum(V * (np.linalg.inv(coupling) @ V))
    assert model.objective_ == pytest.approx(primal, rel=1e-6)
    assert primal - dual <= model.dual_gap_ * (1 + 1e-6) + 1e-6 * primal
    assert primal - dual >= 0.9 * model.dual_gap_ - 1e-6 * primal


def test_regression_and_independent_tasks(data, rng):
    strings, _, task = data
    z = np.array([s.count("A") for s in strings]) / 5.0
    hasher = ts.WeightedDegreeHasher(2, n_features=2**12)
    model = ts.GraphSVR(hasher=hasher, C=1.0, tol=1e-3).fit(strings, z - z.mean(), task=task)
    assert model.score(strings, z - z.mean(), task=task) > 0.5
    with pytest.raises(ValueError, match="letters"):
        model.predict([s[:-1] for s in strings], task=task)


def test_in_a_pipeline(data):
    strings, y, _ = data
    pipe = make_pipeline(ts.WeightedDegreeHasher(4, n_features=2**14), LogisticRegression(C=10.0)).fit(
        strings, y
    )
    assert pipe.score(strings, y) > 0.8


def test_fasta(tmp_path):
    text = ">one first\nACGT\nAC\n>two\nTTTT\nGG\n"
    plain, zipped = tmp_path / "a.fasta", tmp_path / "b.fa"
    plain.write_text(text)
    zipped.write_bytes(gzip.compress(text.encode()))
    for file in (plain, zipped, str(plain)):
        names, sequences = read_fasta(file)
        assert names == ["one first", "two"]
        assert sequences.tolist() == [b"ACGTAC", b"TTTTGG"]
    assert ts.WeightedDegreeHasher(2).fit_transform(sequences).shape[0] == 2
    for content, message in (
        (">a\nAC\n>b\nA\n", "'b' has 1 letters"),
        ("ACGT\n", "line 1"),
        ("", "no sequences"),
    ):
        plain.write_text(content)
        with pytest.raises(ValueError, match=message):
            read_fasta(plain)
