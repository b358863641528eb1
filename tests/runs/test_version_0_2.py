"""What version 0.2 wrote is read: pickles of every model and result, run folders, an interrupted run.

The folder ``version-0.2`` was written by that version. ``objects.pickle.xz`` holds, for every estimator, a fitted model
as a pickle and what it predicted, and pickles of a path, a certificate and the like. The runs are of
``tasksieve fit trial.csv -y recovery -t site --cv 3 --alphas 8 --threads 1 --no-report``, of ``path`` and ``stability``
on the same table, and of a ``fit --full-path`` that was interrupted after its first fold.
"""

from __future__ import annotations

import lzma
import pickle
import shutil
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from cli_helpers import CommandLine

import tasksieve as ts
from tasksieve.runs import RunFolder, load_model

OLD = Path(__file__).parent / "version-0.2"
with lzma.open(OLD / "objects.pickle.xz") as file:
    OBJECTS = pickle.load(file)  # arrays and bytes: the models themselves are pickles within it


def load(pickled: bytes) -> Any:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Trying to unpickle")  # scikit-learn: its own version is another
        warnings.filterwarnings("error", category=DeprecationWarning, module="tasksieve")
        return pickle.loads(pickled)


def test_every_estimator_is_there() -> None:
    named = {name for name in ts.__all__ if hasattr(getattr(ts, name), "predict")}
    assert set(OBJECTS["models"]) <= named
    assert len(OBJECTS["models"]) == 32


@pytest.mark.parametrize("name", OBJECTS["models"])
def test_a_model_predicts_as_it_did(name: str) -> None:
    pickled, expected = OBJECTS["models"][name]
    model = load(pickled)
    assert type(model) is getattr(ts, name)
    task = {} if name.startswith("Multinomial") else {"task": OBJECTS["task"]}
    found = model.predict(OBJECTS["X"], **task)
    if expected.dtype.kind == "U":
        np.testing.assert_array_equal(found, expected)
    else:
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
    assert set(model.get_params()) <= set(type(model)().get_params())
    if hasattr(model, "path_"):
        assert model.path_.coef(0).shape[-1] == OBJECTS["X"].shape[1]


def test_results_are_read() -> None:
    found = {name: load(pickled) for name, pickled in OBJECTS["others"].items()}
    assert isinstance(found["path"], ts.RegularizationPath)
    assert found["path"].n_selected.shape == (5,)
    assert found["path"].to_frame().shape[0] > 0
    assert "R²" in str(found["quality"])
    assert found["stability"].selection_probabilities_.shape == (6,)
    assert found["knockoffs"].get_support().shape == (6,)
    assert len(found["graph-path"].status) == len(found["graph-path"].dual_gaps)
    assert found["hasher"].degree == 3
    assert found["grade"].dual_gap > 0.0
    assert found["certificate"].n_values == 1
    assert len(found["compare"].to_frame()) > 0
    assert ts.MultiTaskLasso(0.1).fit_moments(found["moments"]).dual_gap_ < 1e-5


def test_names_of_that_version_are_known() -> None:
    import tasksieve.fitted.deal
    import tasksieve.graph.classifier

    from tasksieve.fitted.fold_assignment import read_seed

    assert tasksieve.graph.classifier.GraphSVC is ts.GraphSVC
    assert tasksieve.fitted.deal.read_seed is read_seed
    with pytest.warns(DeprecationWarning, match=r"moved to tasksieve\.svm\.GraphSVC"):
        assert tasksieve.graph.GraphSVC is ts.GraphSVC
    with pytest.raises(AttributeError, match="no attribute 'GraphSVM'"):
        tasksieve.graph.GraphSVM  # noqa: B018
    with pytest.raises(ModuleNotFoundError):
        import tasksieve.graph.nothing


def test_methods_of_that_version_count() -> None:
    with pytest.warns(DeprecationWarning, match="called diverging_intercepts now"):

        class OldLoss(ts.losses.Logistic):
            def runaway(self, y: Any, weights: Any, design: Any) -> Any:
                return "as before"

    assert OldLoss().diverging_intercepts(None, None, None) == "as before"


@pytest.fixture
def old(tmp_path: Path) -> Path:
    shutil.copytree(OLD, tmp_path / "old")
    return tmp_path / "old"


def test_finished_runs_are_used(cli: CommandLine, old: Path) -> None:
    for name in ("finished", "path", "stability"):
        RunFolder(old / name).verify()
        cli("report", old / name)
        cli("inspect", old / name)
    cli("predict", old / "finished", old / "trial.csv", "-o", old / "p.csv")
    found, expected = pd.read_csv(old / "p.csv"), pd.read_csv(old / "finished.csv")
    assert list(found) == list(expected)
    np.testing.assert_allclose(found.prediction, expected.prediction, rtol=1e-12)
    cli("verify", old / "finished", "--data", old / "trial.csv")


def test_an_interrupted_run_is_resumed(cli: CommandLine, old: Path) -> None:
    fit = ("fit", old / "trial.csv", "-y", "recovery", "-t", "site", "--cv", 3, "--alphas", 8, "--threads", 1)
    cli(*fit, "--full-path", "--no-report", "-o", old / "interrupted", "--resume")
    resumed, finished = (load_model(RunFolder(old / name)).estimator for name in ("interrupted", "finished"))
    np.testing.assert_allclose(resumed.coef_, finished.coef_, atol=1e-9)
