"""Words of a report: what a model minimises, designs that are shared, machines that do not select."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from helpers import named_rows
from sklearn.base import BaseEstimator, MetaEstimatorMixin

import tasksieve as ts
from tasksieve.members import LOSSES, PENALTIES, formula
from tasksieve.report import content_from_model, render
from tasksieve.report.methods import WORDS, model_words, objective_words, paper

RNG = np.random.default_rng(0)
X = RNG.standard_normal((60, 6))
Y = np.c_[X[:, 0], X[:, 0] - X[:, 1], X[:, 1]] + 0.1 * RNG.standard_normal((60, 3))


def test_every_estimator_has_its_words() -> None:
    classes = {name: getattr(ts, name) for name in ts.__all__ if inspect.isclass(getattr(ts, name))}
    fitted = [name for name, kind in classes.items() if issubclass(kind, BaseEstimator) and hasattr(kind, "predict")]
    linear = [
        name for name in fitted if not name.endswith("CV") and not issubclass(classes[name], MetaEstimatorMixin)
    ]
    assert len(linear) > 10
    assert set(linear) <= set(WORDS), set(linear) - set(WORDS)
    for name in linear:
        params = getattr(ts, name)().get_params(deep=False)
        assert "{" not in model_words(name, params)
        assert objective_words(name, params) == objective_words(f"{name}CV", params)
        assert paper(name)


@pytest.mark.parametrize("loss", LOSSES.offered())
@pytest.mark.parametrize("penalty", PENALTIES.offered())
def test_members_by_name(loss: str, penalty: str) -> None:
    said = objective_words("MultiTaskRegressor", {"loss": loss, "penalty": penalty, "ridge": 0.5})
    assert said.startswith(formula(LOSSES[loss]))
    assert formula(PENALTIES[penalty]).rstrip(",") in said
    assert said.endswith("ridge/2 ‖W‖² (ridge = 0.5)")


def test_members_of_ones_own_are_named() -> None:
    class Mine(ts.losses.Huber):
        pass

    class Ours(ts.penalties.LInf):
        pass

    said = objective_words("MultiTaskRegressor", {"loss": Mine(), "penalty": Ours()})
    assert "f the loss Mine" in said
    assert "Ω the penalty Ours" in said


@pytest.mark.parametrize("loss", ["tweedie:power=1.3", ts.losses.Tweedie(1.3)], ids=str)
def test_options_of_a_loss_are_stated(loss: object) -> None:
    """Given with its name or as an object: the formula of the class, and the values."""
    params = {"loss": loss, "penalty": "l21"}
    assert "tweedie loss" in model_words("MultiTaskRegressor", params).lower()
    said = objective_words("MultiTaskRegressor", params)
    assert "exp((2 − power)" in said
    assert "(power = 1.3)" in said


def test_the_paragraph_says_model_objective_choice_gap_version_and_whom_to_cite() -> None:
    model = ts.MultiTaskLassoCV(n_alphas=8, cv=3).fit(X, Y)
    content = content_from_model(model, X, Y)
    told = ("multi-task lasso", "Σ_j ‖W_j‖₂", "60 rows shared by 3 tasks", "cross-validation", "duality gap")
    for words in (*told, ts.__version__):
        assert words in content.methods, words
    assert f"alpha = {model.alpha_:.4g}" in content.methods
    assert any("Wang" in line for line in content.citations)


def test_designs_that_are_shared() -> None:
    content = content_from_model(ts.MultiTaskLasso(alpha=0.1).fit(X, Y), X, Y, n_alphas=3)
    assert content.shared
    assert content.asked.startswith("3 targets of the same rows")
    page = render(content)
    assert "of the same 60 rows" in page
    assert "60 rows each" not in page
    stacked = named_rows(np.vstack([X, X]), Y[:, :2].ravel(order="F"), np.repeat([0, 1], 60))
    own = content_from_model(ts.MultiTaskLasso(alpha=0.1).fit(**stacked), **stacked, n_alphas=3)
    assert not own.shared
    assert "60 rows each" in render(own)


def test_an_empty_model_reads_sanely() -> None:
    content = content_from_model(ts.MultiTaskLasso(alpha=1e3).fit(X, Y), X, Y, n_alphas=3)
    assert content.answered.startswith("None of 6 features is used")
    page = render(content)
    assert "<b>0</b><span>R² on the training rows" in page


def test_machines_on_a_graph_select_nothing() -> None:
    task, y = np.repeat([0, 1, 2], 20), np.where(X[:, 0] > 0, "yes", "no")
    model = ts.GraphSVC(np.ones((3, 3)) - np.eye(3)).fit(X, y, task=task)
    content = content_from_model(model, X, y, task=task)
    assert not content.selects
    page = render(content)
    for words in ("features selected", "Selected features<", "is selected"):
        assert words not in page.split("<script")[0], words
    assert "does not select" in page
    assert "½ Σ_t ‖w_t‖²" in content.methods
    assert "Widmer" in content.citations[1]
