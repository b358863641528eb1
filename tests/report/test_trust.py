"""What a report says of how far its findings can be trusted."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from report_examples import example_content
from trust_examples import example_sharing, example_stability, example_trust

import tasksieve as ts
from tasksieve.findings.permutation import PermutationTest
from tasksieve.report.findings import StabilityFinding
from tasksieve.report.packing import pack
from tasksieve.report.page import render, tiles
from tasksieve.report.sharing import SharingFinding
from tasksieve.report.trust import Trust


def test_the_permutation_test_in_words() -> None:
    null = np.linspace(1.0, 2.0, 100)
    found = PermutationTest(2.5, null, 1 / 101, False, "the labels within tasks")
    assert found.summary().startswith("Something matters: at least one feature is related to y")
    assert "In none of 100 permutations of the labels within tasks" in found.summary()
    assert "not say which feature" in found.summary()
    nothing = PermutationTest(1.5, null, 51 / 101, True, "rows of Y")
    assert nothing.summary().startswith("Nothing found: chance alone gives relations as strong")
    assert "In 50 of 100 permutations of rows of Y" in nothing.summary()
    assert "approximate" in nothing.summary()


def test_stability_in_words() -> None:
    found = example_stability(10, stable=[2, 5])
    assert found.sentence().startswith("2 of 10 features are stable: among the first 3 features")
    assert "at least 75% of 100 random halves" in found.sentence()
    told = found.guarantee()
    assert "selected on a half no more often than by chance (3 of 10), at most 0.46 are called stable" in told
    assert "if chance selections are unimodal (without any assumption at most 1.8)" in told  # none where there is none
    assert "can be marked in its place" in found.caution()
    none = example_stability(10, stable=[])
    assert none.sentence().startswith("No feature is stable: none of the 10")
    assert "Nothing is guaranteed" in replace(found, bound=math.nan).guarantee()


@pytest.mark.parametrize(
    ("difference", "pvalue", "said"),
    [(-0.5, 0.01, "Sharing helps"), (0.5, 0.01, "Sharing does harm"), (-0.5, 0.3, "cannot be decided")],
)
def test_sharing_in_words(difference: float, pvalue: float, said: str) -> None:
    found = example_sharing(difference, pvalue)
    assert said in found.sentence()
    assert "better in 1 (north) and worse in none" in found.sentence()
    columns, rows = found.table()
    assert columns[2:6] == ["Shared", "One per task", "One for all rows", "Mean only"]
    assert [row[0] for row in rows] == ["north", "south", "all tasks"]  # the largest gain first
    assert all(len(row) == len(columns) for row in rows)


def test_what_explains_nothing_is_said() -> None:
    found = example_sharing(-0.5, 0.01)
    numbers = {**found.numbers, "loss_mean": found.numbers["loss_shared"] - 0.1}
    assert "explain nothing here" in replace(found, numbers=numbers).sentence()


def test_the_page_says_it_first_and_in_order() -> None:
    content = example_content()
    content.trust, content.methods = example_trust(content), "We did this."
    content.citations = ["Author (2020)."]
    page = render(content)
    titles = ["Can this be trusted?", "Does anything matter?"]
    titles += ["Which features would be found again?", "Does sharing help?"]
    positions = [page.index(f">{title}</h") for title in titles]
    assert positions == sorted(positions)
    assert positions[-1] < page.index('id="path"') < page.index('id="methods-text"')
    assert "We did this." in page
    assert "Author (2020)." in page
    assert "Stable in % of halves" in page
    names = [name for _, name, _ in tiles(content, pack(content))]
    assert names[:4] == [
        "features selected",
        "R² on the training rows",
        "stable features",
        "does anything matter?",
    ]


def test_without_findings_there_is_no_such_section() -> None:
    content = example_content()
    page = render(content)
    assert "Can this be trusted?" not in page
    assert 'id="methods-text"' not in page
    assert "Stable in % of halves</th>" not in page
    content.trust, content.methods = Trust(), "We did this."  # a run always has its methods
    page = render(content)
    assert 'id="methods-text"' in page
    assert 'id="trust"' not in page


def test_findings_alone_make_a_page() -> None:
    content = example_content()
    trust = example_trust(content)
    alone = replace(
        content,
        coef=content.coef[:0],
        tasks=content.tasks[:0],
        intercept=content.intercept[:0],
        quality=[],
        alphas=None,
        path_coefs=[],
        cv_scores=None,
        n_selected=None,
        rejection_ratios=None,
        relative_gaps=None,
        seconds=None,
        certificate={},
        trust=trust,
        fitted=False,
    )
    page = render(alone)
    assert 'id="trust"' in page
    for part in ('id="features"', 'id="tasks"', 'id="certificate"', "No feature is selected"):
        assert part not in page, part


def test_names_are_escaped_in_the_new_section() -> None:
    content = example_content(n_selected=3, n_tasks=2)
    content.features = np.array([f"<b>{name}" for name in content.features], dtype=object)
    content.trust, content.methods = example_trust(content), "<script>alert(1)</script>"
    page = render(content)
    assert "<b>gene" not in page
    assert "<script>alert" not in page


def test_lengths_are_checked() -> None:
    content = example_content()
    content.trust = Trust(stability=example_stability(3, stable=[0]))
    with pytest.raises(ValueError, match=r"trust.stability.probabilities has 3 entries"):
        render(content)


def test_findings_of_the_library_in_a_report_of_a_model() -> None:
    rng = np.random.default_rng(0)
    X, task = rng.standard_normal((60, 12)), np.repeat(["a", "b"], 30)
    y = X[:, 2] + 0.5 * rng.standard_normal(60)
    model = ts.MultiTaskLassoCV(n_alphas=5, cv=3).fit(X, y, task=task)
    stable = ts.StabilitySelection(ts.MultiTaskLasso(), n_pairs=5)
    with pytest.raises(ValueError, match="stability is not fitted"):
        ts.report.content_from_model(model, stability=stable)
    stable.fit(X, y, task=task)
    test = ts.permutation_test(ts.MultiTaskLasso(), X, y, task=task, n_permutations=19)
    versus = ts.compare(model, X, y, task=task, cv=3)
    effects = ts.split_inference(ts.MultiTaskLasso(alpha=0.3), X, y, task=task)
    found = {"stability": stable, "permutation": test, "comparison": versus, "intervals": effects}
    content = ts.report.content_from_model(model, X, y, task=task, **found, task_names=["north", "south"])
    assert content.answered.startswith("1 feature is stable (x2): found again in at least")
    assert content.trust is not None
    assert content.trust.stability is not None
    np.testing.assert_array_equal(content.trust.stability.stable, stable.get_support())
    assert content.headline is not None
    assert content.headline.unseen
    assert content.trust.intervals is not None
    assert set(content.trust.intervals.task) == {"north", "south"}
    assert set(content.trust.intervals.feature) == {f"x{j}" for j in effects.feature}
    page = render(content)
    assert page.index("Which features would be found again?") < page.index("How large are the effects?")
    assert page.index("How large are the effects?") < page.index("Does sharing help?")
    page = render(content)
    for title in ("Does anything matter?", "Which features would be found again?", "Does sharing help?"):
        assert title in page


def test_what_must_be_read_first() -> None:
    names = [f"x{j}" for j in range(10)]
    stability = example_stability(10, stable=[2, 5])
    assert Trust(stability=stability).headline(names).startswith("2 features are stable (x2, x5): found again")
    nothing = Trust(PermutationTest(1.0, np.ones(9), 1.0, False, "rows of Y"), example_stability(10, stable=[]))
    assert nothing.headline(names).startswith("Nothing found that chance would not give")
    assert "No feature is stable" in nothing.headline(names)
    assert Trust().headline(names) == ""
    assert isinstance(stability, StabilityFinding)
    finding = example_sharing(-1.0, 0.01)
    assert isinstance(finding, SharingFinding)
    assert "with the task's mean" in finding.sentence()
    times = replace(finding, score="concordance")
    assert "with the task's baseline hazard" in times.sentence()
    assert "Null model" in times.table()[0]
    assert times.explanation().startswith("Concordance of each model")
