"""A plan tried with arrays of one process: what it gives and takes between sites."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from federated.site_tables import FEATURES, NAMES, Tables, make, transport
from sklearn.exceptions import ConvergenceWarning

import tasksieve as ts
from tasksieve.federated.errors import FederatedError
from tasksieve.federated.fitting import fit, unsolved


def test_the_same_numbers_as_between_sites(tmp_path: Path) -> None:
    tables = Tables(several=True)
    plan, keys, sites = make(tmp_path, tables, several=True, n_alphas=3, cv=2, standardize="pooled")
    between = fit(plan, transport(sites), keys)
    here = ts.federated.simulate(plan, {name: (tables.X[name], tables.y[name], tables.task[name]) for name in NAMES})
    for name in ("alphas", "objectives", "dual_gaps", "column_scale"):
        np.testing.assert_array_equal(getattr(here, name), getattr(between, name))
    np.testing.assert_array_equal(here.held_out.scores, between.held_out.scores)
    assert [here.question(k).digest() for k in range(3)] == [between.question(k).digest() for k in range(3)]
    # the last exchange, of the proof, is missing; messages have headers and signatures beside their numbers
    assert here.statement is None
    assert here.rounds == between.rounds - 1
    np.testing.assert_array_equal(here.exchanges[:, :2], between.exchanges[:-1, :2])
    assert np.all(here.exchanges[:, 2:] <= between.exchanges[:-1, 2:])
    assert here.bytes_up == here.exchanges[:, 3].sum() > 0.7 * between.exchanges[:-1, 3].sum()


def test_rows_that_are_not_those_of_the_plan() -> None:
    tables = Tables()
    rows = {name: (tables.X[name], tables.y[name]) for name in NAMES}
    plan = ts.federated.Plan("Try it", dict.fromkeys(NAMES, "..."), FEATURES, n_alphas=2)
    with pytest.raises(FederatedError, match=r"there are rows of \['north', 'south'\]"):
        ts.federated.simulate(plan, {name: rows[name] for name in ("north", "south")})
    with pytest.raises(FederatedError, match="the plan has 12 columns at west, and its rows 11"):
        ts.federated.simulate(plan, {**rows, "west": (tables.X["west"][:, 1:], tables.y["west"])})
    with pytest.raises(FederatedError, match="the plan has 1 tasks at west, and its rows 2"):
        ts.federated.simulate(plan, {**rows, "west": (*rows["west"], np.arange(30) % 2)})


def test_what_did_not_converge_is_warned_about() -> None:
    tables = Tables()
    rows = {name: (tables.X[name], tables.y[name]) for name in NAMES}
    plan = ts.federated.Plan("Try it", dict.fromkeys(NAMES, "..."), FEATURES, n_alphas=3, tol=1e-15)
    with pytest.warns(ConvergenceWarning, match=r"[12] of 3 values did not reach tol=1e-15.*: ask for a larger tol"):
        found = ts.federated.simulate(plan, rows)
    assert not found.converged.all()
    assert np.all(found.dual_gaps < 1e-8 * found.null_objective)
    for given in ({"loss": "quantile"}, {"site_losses": {"west": "quantile:q=0.9"}}):
        assert "straight lines" in unsolved(replace(plan, **given))
