"""What a report says of the features that the duality gap decides, and of certificates that it does not carry."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from report_examples import example_content

import tasksieve as ts
from tasksieve.report import ReportContent, content_from_model, render
from tasksieve.report import proof as carried
from tasksieve.report.proof import carry


def page_data(page: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    return json.loads(found[1])


def marked(n_selected: int = 4) -> ReportContent:
    """Of the features shown the first is sure, the second provably superfluous, the others are open."""
    content = example_content(n_selected=n_selected, n_tasks=2)
    strength = np.asarray(np.abs(content.coef).sum(axis=0)).ravel()
    order = np.argsort(-strength, kind="stable")
    content.proven_nonzero, content.proven_zero = strength > strength[order[1]], strength == 0.0
    content.proven_zero[order[1]] = True
    return content


def problem(n: int = 60) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    X, task = rng.standard_normal((n, 8)), np.repeat(["a", "b"], n // 2)
    y = X[:, 0] * np.where(task == "a", 2.0, -1.0) + 0.5 * X[:, 1] + 0.1 * rng.standard_normal(n)
    return {"X": X, "y": y, "task": task}


def test_every_feature_shown_has_its_mark() -> None:
    page = render(marked())
    assert page_data(page)["proven"][:4] == [1, -1, 0, 0]
    counts = [page.count(f">{word}</td>") for word in ("yes", "no", "undecided")]
    assert counts == [1, 1, 2]
    assert "Of all 11 features 1 is needed, 8 are not, 2 are undecided" in page
    assert ">Needed by this optimum</th>" in page
    assert "not that the feature matters" in page
    assert "The coefficients of 1 feature shown are there only because" in page


def test_pages_that_know_nothing_have_no_marks() -> None:
    page = render(example_content())
    assert page_data(page)["proven"] is None
    assert "needed-note" not in page


def test_marks_that_make_no_sense_are_refused() -> None:
    content = marked()
    content.proven_zero = content.proven_nonzero
    with pytest.raises(ValueError, match="proven_zero and proven_nonzero both hold feature"):
        render(content)
    content.proven_zero = np.zeros(3, dtype=bool)
    with pytest.raises(ValueError, match="proven_zero has 3 entries"):
        render(content)


def test_a_model_with_its_data_gives_certificate_and_marks() -> None:
    data = problem()
    model = ts.MultiTaskLasso(alpha=0.1).fit(**data)
    content = content_from_model(model, n_alphas=0, **data)
    certificate = model.certificate(**data)
    assert content.proof is not None
    assert content.no_proof == ""
    np.testing.assert_array_equal(content.proven_zero, certificate.proven_zero())
    np.testing.assert_array_equal(content.proven_nonzero, certificate.proven_nonzero())
    page = render(content)
    assert 'id="verify-file"' in page
    assert "<td>yes (+" in page
    assert "a file of arrays (npz)" in page
    assert "a table (CSV)" not in page  # the certificate does not say how one would be read


def test_a_model_of_cross_validation_too() -> None:
    data = problem()
    content = content_from_model(ts.MultiTaskLassoCV(n_alphas=4, cv=3).fit(**data), **data)
    assert content.proof is not None


@pytest.mark.sampled(2)
@pytest.mark.parametrize("why", ["data", "path", "online", "member"])
def test_a_page_without_certificate_says_why(why: str) -> None:
    data = problem()
    if why == "path":
        content, words = content_from_model(ts.MultiTaskLasso().path(**data, n_alphas=3)), "a path keeps no data"
    elif why == "data":
        content, words = content_from_model(ts.MultiTaskLasso(0.1).fit(**data)), "the data were not given"
    elif why == "online":
        model = ts.OnlineMultiTaskRegressor(alpha=0.1).fit(**data)
        content, words = content_from_model(model, **data), "batch_model()"
    else:

        class Own(ts.penalties.L21):
            pass

        model = ts.MultiTaskRegressor(penalty=Own(), alpha=0.1).fit(**data)
        content, words = content_from_model(model, n_alphas=0, **data), "Own has no name in the certificate"
    assert content.proof is None
    assert words in content.no_proof
    page = render(content)
    assert ("There is no certificate:" if content.unproved else "This page carries no certificate") in page
    assert "verify-file" not in page


def test_a_certificate_too_large_is_named_with_its_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    data = problem()
    model = ts.MultiTaskLasso(alpha=0.1).fit(**data)
    model.certificate(**data).save(tmp_path / "certificate.npz")
    content = content_from_model(model, n_alphas=0)
    monkeypatch.setattr(carried, "MOST_BYTES", 500)
    carry(content, tmp_path / "certificate.npz", 0, "tasksieve verify my-run")
    page = render(content)
    assert content.proof is None
    assert "too large" in page
    assert "tasksieve verify my-run" in page
    assert "<td>yes</td>" in page  # what it proves is told all the same
    assert "verify-file" not in page
