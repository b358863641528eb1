"""Online models shared between threads: readers see whole chunks, whatever a learner is doing meanwhile."""

from __future__ import annotations

import copy
import pickle
import threading
import time

import numpy as np
import pytest
from helpers import named_rows
from sklearn.base import clone

import tasksieve as ts

CHUNK = 40
HALF = 512  # every column stands twice: at the end of a row its two coefficients are the same


def twice(rng, chunks):
    """Chunks of rows in which feature j and feature j + HALF are the same column; a task joins with every fifth."""
    parts = []
    for k in range(chunks):
        X = rng.standard_normal((CHUNK, HALF))
        task = np.arange(CHUNK) % (2 + k // 5)
        y = 3.0 * X[:, 0] + rng.standard_normal(CHUNK)
        parts.append((np.ascontiguousarray(np.hstack([X, X])), y, task))
    return parts


def run_threads(*works):
    """Run functions side by side until all have ended; the first exception is raised here."""
    errors = []

    def guarded(work):
        try:
            work()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def check_whole(model, probe):
    """What any reader may ask; each answer must be of one state at the end of a chunk."""
    coef = model.coef_
    np.testing.assert_allclose(coef[:, :HALF], coef[:, HALF:], atol=1e-12)
    np.testing.assert_allclose(model.predict(probe), 0.0, atol=1e-9)
    assert model.n_rows_seen_ % CHUNK == 0
    scores = model.predict(probe, task=np.zeros(len(probe), dtype=np.int64))
    np.testing.assert_allclose(scores, 0.0, atol=1e-9)
    support = model.get_support()
    assert np.array_equal(support[:HALF], support[HALF:])


@pytest.mark.parametrize("kind", ["regressor", "classifier"])
def test_readers_see_whole_chunks(kind, rng):
    chunks = twice(rng, 40)
    if kind == "regressor":
        model = ts.OnlineMultiTaskRegressor(alpha=0.02, gamma=4000.0, fit_intercept=False)
    else:
        model = ts.OnlineMultiTaskClassifier(alpha=0.002, gamma=100.0, fit_intercept=False)
        chunks = [(X, np.where(y > 0, "yes", "no"), task) for X, y, task in chunks]
    model.partial_fit(**named_rows(*chunks[0]))
    # one feature less its twin: the score is 0 whenever the model is whole
    probe = np.hstack([np.eye(HALF)[:20], -np.eye(HALF)[:20]])

    def learn():
        for chunk in chunks[1:]:
            model.partial_fit(**named_rows(*chunk))

    def read():
        for _ in range(60):
            if kind == "regressor":
                check_whole(model, probe)
            else:
                coef = model.coef_
                np.testing.assert_allclose(coef[:, :HALF], coef[:, HALF:], atol=1e-12)
                np.testing.assert_allclose(model.decision_function(probe), 0.0, atol=1e-9)
                assert model.n_rows_seen_ % CHUNK == 0
                assert len(model.predict(probe)) == len(probe)

    def keep():
        for _ in range(20):
            for other in (pickle.loads(pickle.dumps(model)), copy.copy(model), copy.deepcopy(model)):
                assert other.n_rows_seen_ % CHUNK == 0
                assert other.coef_.shape == (len(other.tasks_), 2 * HALF)
                np.testing.assert_allclose(other.coef_[:, :HALF], other.coef_[:, HALF:], atol=1e-12)

    def judge():
        X, y, task = chunks[0]
        for _ in range(20):
            assert np.isfinite(model.score(X, y, task=task))

    run_threads(learn, read, read, keep, judge)
    alone = clone(model)
    for chunk in chunks:
        alone.partial_fit(**named_rows(*chunk))
    np.testing.assert_array_equal(model.coef_, alone.coef_)


def test_several_learners_lose_no_row(rng):
    chunks = twice(rng, 24)
    model = ts.OnlineMultiTaskRegressor(alpha=0.02, gamma=4000.0)

    def learn(part):
        def work():
            for chunk in part:
                model.partial_fit(**named_rows(*chunk))

        return work

    run_threads(*[learn(chunks[k::3]) for k in range(3)])
    assert model.n_rows_seen_ == CHUNK * len(chunks)
    assert sorted(model.tasks_.tolist()) == list(range(6))
    assert len(model.coef_) == 6


def test_single_rows_with_growing_names_and_classes(rng):
    model = ts.OnlineMultiTaskClassifier(alpha=1e-4, gamma=5.0)
    values = rng.standard_normal((600, 4))
    model.learn_one({"a": 1.0}, "no", task="first")

    def learn():
        for i, row in enumerate(values):
            names = {f"x{(3 * i + j) % (10 + i)}": float(v) for j, v in enumerate(row)}
            model.learn_one(names, "yes" if row[0] > 0 else "no", task=f"t{i % (2 + i // 50)}")

    def read():
        for i in range(600):
            names = {f"x{(3 * i + j) % 600}": 1.0 for j in range(4)}
            assert model.predict_one(names, task=f"t{i % 9}") in ("yes", "no")
            assert np.isclose(sum(model.predict_proba_one(names, task="t0").values()), 1.0)
            positions = model.feature_index_
            assert sorted(positions.values()) == list(range(len(positions)))
            assert set(model.classes_.tolist()) <= {"yes", "no"}
            assert model.coef_.ndim == 2

    def keep():
        for _ in range(60):
            other = copy.copy(model)
            assert other.coef_.shape == (len(other.tasks_), len(other.feature_index_))
            assert other.n_features_in_ == len(other.feature_index_)

    run_threads(learn, read, read, keep)
    assert model.n_rows_seen_ == 601


def test_a_file_saved_while_a_stream_is_read_can_be_resumed(rng, tmp_path):
    """Rows learned and rows of the stream counted go together, whenever the file is saved."""
    chunks = twice(rng, 30)
    params = {"alpha": 0.02, "gamma": 4000.0}
    alone = ts.OnlineMultiTaskRegressor(**params).fit_stream(chunks)
    model = ts.OnlineMultiTaskRegressor(**params)
    model.fit_stream(chunks, max_rows=CHUNK, checkpoint=tmp_path / "own.npz")

    def learn():
        model.fit_stream(chunks, checkpoint=tmp_path / "own.npz")

    def save():
        for k in range(15):
            model.save(tmp_path / f"{k}.npz")

    run_threads(learn, save, lambda: [model.coef_ for _ in range(30)])
    np.testing.assert_array_equal(model.coef_, alone.coef_)
    for k in range(15):
        saved = ts.OnlineMultiTaskRegressor.load(tmp_path / f"{k}.npz")
        assert saved._stream_rows == saved.n_rows_seen_
    resumed = ts.OnlineMultiTaskRegressor(**params).fit_stream(chunks, checkpoint=tmp_path / "7.npz")
    np.testing.assert_array_equal(resumed.coef_, alone.coef_)


class Busy:
    """A learner's kernel that stays at work until a reader has come, or has long been given the turn."""

    def __init__(self, kernel):
        self.kernel, self.learning, self.overlaps, self.waiting = kernel, False, [], threading.Event()

    def __getattr__(self, name):
        method = getattr(self.kernel, name)
        if not callable(method):
            self._seen(name)
            return method

        def call(*args):
            self._seen(name)
            if name.startswith("learn"):
                self.learning = True
                self.waiting.set()
                for _ in range(2000):
                    if self.overlaps:
                        break
                    time.sleep(0)  # yield to the other threads
                try:
                    return method(*args)
                finally:
                    self.learning = False
            return method(*args)

        return call

    def _seen(self, name):
        if self.learning and threading.current_thread() is not self.learner:
            self.overlaps.append(name)


READERS = {
    "coef_": lambda model, X: model.coef_,
    "intercept_": lambda model, X: model.intercept_,
    "averaged_coef_": lambda model, X: model.averaged_coef_,
    "n_rows_seen_": lambda model, X: model.n_rows_seen_,
    "t_": lambda model, X: model.t_,
    "predict": lambda model, X: model.predict(X),
    "predict_one": lambda model, X: model.predict_one(X[0], task=0),
    "score": lambda model, X: model.score(X, X[:, 0], task=np.zeros(len(X), dtype=int)),
    "copy": lambda model, X: copy.copy(model),
    "pickle": lambda model, X: pickle.dumps(model),
    "set_params": lambda model, X: model.set_params(alpha=0.2),
    "get_support": lambda model, X: model.get_support(),
    "partial_fit": lambda model, X: model.partial_fit(X, X[:, 0], task=np.zeros(len(X), dtype=int)),
    "learn_one": lambda model, X: model.learn_one(X[0], 1.0, task=0),
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", READERS)
def test_no_thread_touches_the_memory_while_a_chunk_is_learned(name, rng):
    X, task = rng.standard_normal((30, 5)), np.arange(30) % 2
    y = X[:, 0] + 0.1 * rng.standard_normal(30)
    model = ts.OnlineMultiTaskRegressor(alpha=0.1, gamma=20.0, average=True).partial_fit(X, y, task=task)
    busy = model._learner = Busy(model._learner)

    def learn():
        busy.learner = threading.current_thread()
        model.partial_fit(X, y, task=task)

    def read():
        busy.waiting.wait()
        READERS[name](model, X)

    run_threads(learn, read)
    assert busy.overlaps == []
