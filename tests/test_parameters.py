"""The table of parameters is whole, and what is made from it agrees with it."""

from __future__ import annotations

from inspect import signature

import pytest

from tasksieve.cli.options import OPTIONS
from tasksieve.fitted import allowed
from tasksieve.parameters import CROSS_VALIDATED, PARAMETERS, STABILITY, Parameter
from tasksieve.runs.registry import MODELS


@pytest.mark.parametrize("name", PARAMETERS)
def test_a_check_that_is_named_is_there_and_allows_the_default(name: str) -> None:
    for described in (PARAMETERS[name], CROSS_VALIDATED[name]):
        assert described.name == name
        if described.check is not None:
            check = getattr(allowed, f"check_{described.check}")
            if described.default is not None:  # which `check_common` lets pass without asking
                check(described.default, name)


def test_options_of_estimators_are_described_in_the_table() -> None:
    named = [option.parameter for option in OPTIONS if option.role == "param"]
    assert len(named) > 25
    assert None not in named
    typed = {name for name, described in {**PARAMETERS, **STABILITY}.items() if described.typed is not None}
    assert typed == {option.parameter for option in OPTIONS if option.parameter}


def test_every_parameter_is_one_of_a_model() -> None:
    known = {
        name
        for kind in MODELS.values()
        for classes in {False, len(kind.estimators) > 1}
        for cv in {False, kind.has_path}
        for name in signature(kind.estimator(classes, cv)).parameters
    }
    assert set(PARAMETERS) <= known


@pytest.mark.parametrize("name", ["delta", "q", "smoothing", "l1_ratio", "inside", "epsilon", "C"])
def test_defaults_are_those_of_the_constructors(name: str) -> None:
    kinds = [kind.estimator(classes) for kind in MODELS.values() for classes in {False, len(kind.estimators) > 1}]
    defaults = [signature(kind).parameters[name].default for kind in kinds if name in signature(kind).parameters]
    assert defaults
    assert set(defaults) == {PARAMETERS[name].default}


def test_an_option_is_named_after_its_parameter_or_as_the_table_says() -> None:
    assert Parameter("fold_tol", "float", None, "").flag == "--fold-tol"
    assert PARAMETERS["n_jobs"].flag == "--threads"
