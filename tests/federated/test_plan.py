"""The plan that everybody agrees to, and the rules by which a site refuses one."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tasksieve.federated.errors import FederatedError
from tasksieve.federated.plan import LOSSES, Plan, PlanError
from tasksieve.federated.policy import Rules
from tasksieve.federated.question import Question

SITES = {"north": "a", "south": "b", "west": "c"}
#: another value for every field of `example`
OTHER: dict[str, Any] = {
    "title": "other", "sites": {**SITES, "east": "d"}, "features": ("bmi", "hb", "crp"), "coordinator": "other",
    "n_tasks": {"south": 2}, "answers": "open", "loss": "logistic", "loss_options": {"delta": 2.0}, "l1_ratio": 0.5,
    "site_losses": {"west": "squared"}, "ridge": 1.0, "fit_intercept": False, "standardize": "no", "n_alphas": 7,
    "eps": 0.1, "tol": 1e-5, "cv": 5,
    "n_pairs": 20, "q": 9, "random_state": 1, "covariates": ("sex",), "feature_weights": {"bmi": 2.0}, "units": "mol/L",
}  # fmt: skip


def example(**changed: Any) -> Plan:
    given = {"title": "t", "sites": SITES, "features": ["hb", "bmi", "crp"], "covariates": ["age"], "units": "g/L"}
    return Plan(**{**given, **changed})


def test_a_plan_survives_its_file(tmp_path: Path) -> None:
    plan = example(
        title='three "sites"', feature_weights={"bmi": 2}, loss="huber", loss_options={"delta": 1.5}, cv=5,
        n_tasks={"west": 3}, ridge=1,
    )  # fmt: skip
    (tmp_path / "plan.toml").write_text(plan.to_toml(), encoding="utf-8")
    read = Plan.read(tmp_path / "plan.toml")
    assert read == plan
    assert read.digest == plan.digest
    assert read.total_tasks == 5
    assert read.columns == ["hb", "bmi", "crp", "age"]
    np.testing.assert_array_equal(read.weights, [1.0, 2.0, 1.0, 0.0])
    assert read.problems() == ["all", *(f"fold {k}" for k in range(5))]


def test_features_may_lie_in_a_file(tmp_path: Path) -> None:
    inline = example(covariates=[])
    text = inline.to_toml().replace('["hb", "bmi", "crp"]', '"features.txt"')
    (tmp_path / "plan.toml").write_text(text)
    with pytest.raises(PlanError, match=r"plan.toml: features in \[data\]: cannot read .*features.txt"):
        Plan.read(tmp_path / "plan.toml")
    (tmp_path / "features.txt").write_text("hb\nbmi\n\ncrp\n")
    assert Plan.read(tmp_path / "plan.toml").digest == inline.digest


@pytest.mark.parametrize("name", [field.name for field in fields(Plan)])
def test_every_field_is_part_of_the_digest(name: str) -> None:
    base = example(loss="huber", loss_options={"delta": 1.0})
    more = {"loss_options": {}} if name == "loss" else {}
    assert replace(base, **{name: OTHER[name], **more}).digest != base.digest


def test_numbers_may_be_written_in_two_ways() -> None:
    assert example(ridge=1).digest == example(ridge=1.0).digest
    assert example(features=["a"]).digest == example(features=("a",)).digest


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"sites": {"north": "a", "south": "b"}}, "at least 3 under masks"),
        ({"sites": {**SITES, "East": "d"}}, "lower-case"),
        ({"sites": {**SITES, "all": "d"}}, "lower-case"),
        ({"sites": {**SITES, "east": "a"}}, "two have the same"),
        ({"features": []}, "at least one name"),
        ({"features": "hb"}, "list of names"),
        ({"features": ["hb", "hb"]}, "different names.*'hb'"),
        ({"features": ["age"]}, "different names.*'age'"),
        ({"loss": "logistics"}, "logistic is perhaps meant"),
        ({"loss": "square-root"}, "must be one of"),
        ({"loss": "huber", "loss_options": {"q": 1}}, "huber does not take"),
        ({"loss": "huber", "loss_options": {"delta": -1}}, "loss_options"),
        ({"feature_weights": {"age": 1.0}}, "features of this plan"),
        ({"feature_weights": {"hb": 0.0}}, "never penalised is a covariate"),
        ({"feature_weights": {"hb": 2.0}, "l1_ratio": 1.0}, "l1_ratio"),
        ({"n_tasks": {"east": 2}}, "sites of this plan"),
        ({"n_tasks": {"north": 0}}, "whole number"),
        ({"cv": 1}, "0 or at least 2"),
        ({"cv": True}, "whole number"),
        ({"cv": 10**6}, "at most 1000"),
        ({"n_pairs": 10**9}, "at most 10000"),
        ({"eps": 0.0}, "above 0 and at most 1"),
        ({"tol": "small"}, "a number above 0"),
        ({"ridge": float("nan")}, "a number of at least 0"),
        ({"answers": "plain"}, "one of masked, open"),
        ({"fit_intercept": 1}, "true or false"),
    ],
)  # fmt: skip
def test_bad_plans_are_refused(changed: dict[str, Any], words: str) -> None:
    with pytest.raises(PlanError, match=words):
        example(**changed)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("n_alphas = 50", "n_alpha = 50", r"\[path\] has no 'n_alpha'; n_alphas in \[path\] is perhaps meant"),
        ("[model]\n", "[model]\ntol = 1\n", r"\[model\] has no 'tol'; tol in \[path\] is perhaps meant"),
        ('title = "t"', 'loss = "huber"\ntitle = "t"', r"nothing is called 'loss' here; loss in \[model\]"),
        ("format = 1", "format = 2", "format = 1 must stand at the top, not 2"),
        ("format = 1\n", "", "format = 1 must stand at the top"),
        ('title = "t"', "", "title is missing"),
        ('title = "t"', "title = t", "is no TOML file"),
    ],
)
def test_bad_files_are_refused(tmp_path: Path, old: str, new: str, words: str) -> None:
    text = example().to_toml()
    assert old in text
    (tmp_path / "plan.toml").write_text(text.replace(old, new))
    with pytest.raises(PlanError, match=words):
        Plan.read(tmp_path / "plan.toml")


@pytest.mark.parametrize("loss", LOSSES)
def test_losses_of_a_plan_exist(loss: str) -> None:
    assert example(loss=loss).make_loss() is not None


ROWS = {"all": (40, 30), "fold 0": (20, 15), "fold 1": (20, 15)}


def refused(rules: Rules, plan: Plan, *questions: Question, answered: int = 0, rows: Any = ROWS) -> str:
    """The name of the rule that refuses; "" where none does."""
    try:
        rules.check_plan(plan, rows)
        rules.check_questions(plan, questions, answered, rows)
    except FederatedError as error:
        return error.rule
    return ""


def asked(n: int, **more: Any) -> Question:
    return Question(features=np.arange(n), s=np.ones(n), **more)


def test_rules_refuse_by_name() -> None:
    plan, opened, folds = example(), example(answers="open"), example(cv=2)
    assert refused(Rules(), plan, asked(3)) == ""
    assert refused(Rules(min_sites=4), plan) == "min-sites"
    assert refused(Rules(min_rows=31), plan) == "min-rows"
    assert refused(Rules(min_rows=16), plan) == ""
    assert refused(Rules(min_rows=16), folds) == "min-rows"  # of a fold
    assert refused(Rules(), opened) == "open"
    assert refused(Rules(open=True), opened, asked(9)) == ""  # a third of 30 rows
    assert refused(Rules(open=True), opened, asked(10)) == "open-share"
    assert refused(Rules(open=True), opened, asked(10, hessian=False)) == ""
    assert refused(Rules(masked_share=0.1), plan, asked(4)) == "masked-share"
    assert refused(Rules(max_questions=3), plan, *[asked(1)] * 2, answered=1) == ""
    assert refused(Rules(max_questions=3), plan, *[asked(1)] * 2, answered=2) == "max-questions"
    assert refused(Rules(min_held_out=15), folds) == ""
    assert refused(Rules(min_held_out=16), folds) == "min-held-out"
    assert refused(Rules(min_held_out=16), plan) == ""
    assert refused(Rules(), plan, asked(1, problem="fold 0")) == "plan"
    assert refused(Rules(), folds, asked(1, problem="fold 1", held_out=True)) == ""


def test_rules_are_read_by_their_names() -> None:
    rules = Rules.of({"min-rows": 25, "open": True})
    assert rules == Rules(min_rows=25, open=True)
    assert Rules.of(rules.listed()) == rules
    with pytest.raises(ValueError, match=r"\[rules\] has no 'min_row'; rules are min-sites"):
        Rules.of({"min_row": 3})
    for wrong in ({"min_rows": 1}, {"open": 1}, {"open_share": -1.0}, {"max_questions": 0}, {"min_held_out": 0},
                  {"min_sites": 2.5}):  # fmt: skip
        with pytest.raises(ValueError, match="must be"):
            Rules(**wrong)
