"""Notebooks: the certificate below scikit-learn's diagram, and the link to the page of the class."""

from __future__ import annotations

import inspect
import re
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest
import sklearn
from sklearn.utils import estimator_html_repr

import tasksieve as ts
from tasksieve.fitted import shown
from tasksieve.fitted.model import FittedModel

KINDS = [kind for name in ts.__all__ if inspect.isclass(kind := getattr(ts, name)) and issubclass(kind, FittedModel)]


def data() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 5))
    return X, X[:, 0] + 0.1 * rng.standard_normal(40), np.repeat(["<b>", "c"], 20)


class Cells(HTMLParser):
    """The cells of the certificate, by the words before them."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, text: str) -> None:
        self.words.append(text)


def table(html: str) -> str:
    found = re.search(r'<table class="tasksieve-certificate".*?</table>', html)
    return "" if found is None else found[0]


def test_the_certificate_of_a_fitted_model_is_shown() -> None:
    X, y, task = data()
    model = ts.MultiTaskLasso(0.1).fit(X, y, task=task)
    cells = Cells(table(model._repr_html_()))
    words = cells.words
    assert words[0] == "Certificate of MultiTaskLasso"
    assert words[words.index("duality gap: at most so far from the optimum") + 1] == f"{model.dual_gap_:.3g}"
    goal = f"{1e-6 * model.null_objective_:.3g}, reached"
    assert words[words.index("goal: tol = 1e-06 of the objective at W = 0") + 1] == goal
    assert words[words.index("features selected") + 1] == f"{model.get_support().sum()} of 5"
    assert words[words.index("tasks") + 1] == "2"
    heads = [attributes for tag, attributes in cells.tags if tag == "th"]
    assert heads
    assert all(attributes["scope"] == "row" for attributes in heads)  # a screen reader says which number it is
    assert "<b>" not in table(model._repr_html_())
    assert table(model._repr_mimebundle_()["text/html"]) == table(model._repr_html_())


def test_a_goal_that_was_not_reached_is_shown_so() -> None:
    X, y, task = data()
    with pytest.warns(sklearn.exceptions.ConvergenceWarning):
        model = ts.MultiTaskLasso(0.1, tol=1e-18).fit(X, y, task=task)
    assert "not reached" in table(model._repr_html_())


OTHERS = [ts.MultiTaskLassoCV(cv=2, n_alphas=5), ts.GraphSVR(tol=1e-3), ts.MultinomialOWL(0.1)]


@pytest.mark.parametrize("model", OTHERS, ids=lambda model: type(model).__name__)
def test_others_show_theirs(model: Any) -> None:
    X, y, task = data()
    model.fit(X, np.arange(40) % 3) if isinstance(model, ts.MultinomialOWL) else model.fit(X, y, task=task)
    html = table(model._repr_html_())
    assert "duality gap" in html
    assert ("alpha chosen" in html) == isinstance(model, ts.MultiTaskLassoCV)


def test_without_a_certificate_there_is_none() -> None:
    X, y, task = data()
    assert table(ts.MultiTaskLasso()._repr_html_()) == ""
    assert table(ts.OnlineMultiTaskRegressor().partial_fit(X, y, task=task)._repr_html_()) == ""
    with sklearn.config_context(display="text"):
        assert not hasattr(ts.MultiTaskLasso(), "_repr_html_")
        assert "text/html" not in ts.MultiTaskLasso()._repr_mimebundle_()


@pytest.mark.parametrize("kind", [*KINDS, ts.WeightedDegreeHasher], ids=lambda kind: kind.__name__)
def test_every_estimator_links_its_page(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    needed = [name for name in ("estimator", "model") if name in inspect.signature(kind).parameters]
    model = kind(**{name: ts.MultiTaskLasso() for name in needed})
    address = f"https://tasksieve.readthedocs.io/api/generated/tasksieve.{kind.__name__}.html"
    assert model._get_doc_link() == address
    assert f'href="{address}"' in estimator_html_repr(model)
    monkeypatch.setattr(shown, "DOCUMENTATION", "")
    assert model._get_doc_link() == ""


def test_classes_of_others_are_not_linked() -> None:
    class Own(ts.MultiTaskLasso):
        pass

    assert Own()._get_doc_link() == ""
