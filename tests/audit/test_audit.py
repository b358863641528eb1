"""The audit: its command on tiny cells, and that its pages say what its results say."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
AUDIT = ROOT / "audit"
CONTENT = json.loads((AUDIT / "results.json").read_text())


@pytest.fixture(scope="module")
def page():
    spec = importlib.util.spec_from_file_location("audit_page", AUDIT / "page.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def tiny(tmp_path):
    """Two prepared data sets of 40 rows, and the environment in which the command finds them."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 6))
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    score = X[:, 0] - X[:, 1] + 0.5 * rng.standard_normal(40)
    (tmp_path / "data").mkdir()
    for name, y in (("diabetes.squared", score), ("breast-cancer.logistic", (score > 0).astype(int))):
        np.savez(tmp_path / "data" / f"{name}.npz", X=X, y=y, notes=np.array([], dtype=str))
    folders = {"TASKSIEVE_AUDIT_DATA": tmp_path / "data", "TASKSIEVE_AUDIT_CELLS": tmp_path / "cells"}
    return os.environ | {key: str(value) for key, value in folders.items()}


def run(environment, *words):
    cells = ["scikit-learn/diabetes/squared", "LIBLINEAR/breast-cancer/logistic"]
    command = [sys.executable, str(AUDIT / "run.py"), "--here", *(f"--only={cell}" for cell in cells), *words]
    return subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)


@pytest.mark.slow
def test_a_run_that_was_killed_goes_on_and_every_cell_is_whole(tiny, tmp_path):
    first, second = (
        tmp_path / "cells" / name
        for name in ("scikit-learn.diabetes.squared.json", "LIBLINEAR.breast-cancer.logistic.json")
    )
    process = run(tiny)
    while not first.exists():
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.01)
    process.kill()
    process.communicate()
    before = first.stat().st_mtime_ns
    process = run(tiny)
    told = process.communicate()[1]
    assert process.returncode == 0, told
    assert re.search("2 cells, [12] of them there already", told)
    assert first.stat().st_mtime_ns == before
    for file in (first, second):
        content = json.loads(file.read_text())
        assert content["status"] == "same problem"
        for own in content["strengths"]:
            assert 0.0 <= own["default"]["excess_lower"] <= own["default"]["excess_upper"] < 1e-3
            assert own["closest"] <= 1e-8
            assert re.fullmatch("[0-9a-f]{64}", own["certificate"])
    assert not list((tmp_path / "cells").glob("*.part"))


def test_pages_say_what_the_results_say(page):
    for file in page.FILES:
        text = file.read_text()
        assert page.MARKED.search(text), file
        assert page.filled(text, CONTENT) == text, f"{file}: run python audit/page.py"


def test_a_changed_result_changes_the_page(page):
    changed = json.loads(json.dumps(CONTENT))
    for one in changed["cells"]:
        for own in one.get("strengths", []):
            own["default"]["excess_lower"] = 0.5
    text = page.FILES[0].read_text()
    assert page.filled(text, changed) != text


def test_every_cell_has_certificates_that_were_proved(page):
    cells = page.graded(CONTENT)
    assert len({one["program"] for one in cells}) >= 8
    assert len({one["dataset"] for one in cells}) >= 15
    assert len(cells) >= 150
    assert len({(one["program"], one["dataset"], one["loss"]) for one in cells}) == len(cells)
    for one in cells:
        for own in one["strengths"]:
            assert re.fullmatch("[0-9a-f]{64}", own["certificate"]), one
            assert own["floating"] is True, one
            assert own["exact"] is not False, one
    exact = [one for one in cells if all(own["exact"] for own in one["strengths"])]
    assert 2 * len(exact) >= len(cells)


def test_no_default_is_judged_before_its_program_has_solved_the_same_problem(page):
    limit = CONTENT["rules"]["same"]
    solved = {
        (one["program"], one["loss"])
        for one in page.graded(CONTENT)
        if any(own["closest"] <= limit for own in one["strengths"])
    }
    for one in page.judged(CONTENT):
        assert (one["program"], one["loss"]) in solved
    for one in CONTENT["cells"]:
        if one["status"] == "same problem":
            assert max(own["closest"] for own in one["strengths"]) <= limit


CONVERSIONS = json.loads((AUDIT / "conversions.json").read_text())


def test_every_program_and_loss_has_a_tightest_answer(monkeypatch):
    """Whether the programs are installed here or not."""
    monkeypatch.syspath_prepend(AUDIT)
    from programs import PROGRAMS

    pairs = [(name, loss) for name, program in PROGRAMS.items() for loss in program.losses]
    assert sorted((one["program"], one["loss"]) for one in CONVERSIONS) == sorted(pairs)


@pytest.mark.parametrize("one", CONVERSIONS, ids=lambda one: f"{one['program']}-{one['loss']}")
def test_tightest_answers_are_optimal_in_our_words(one, monkeypatch):
    monkeypatch.syspath_prepend(AUDIT)
    import cells
    import conversions

    X, y = conversions.small(one["loss"])
    cell = cells.Cell(one["program"], "", one["loss"])
    assert conversions.excess(cell, X, y, one) <= cells.SAME
    # in a problem a hundredth away they are not
    assert conversions.excess(cell, X, y, one | {"alpha": 1.01 * one["alpha"]}) > 10 * cells.SAME


def test_bounds_are_in_order_and_a_second_solver_lies_between_them(page):
    for own in page.strengths(page.graded(CONTENT)):
        default = own["default"]
        assert 0.0 <= default["excess_lower"] <= default["excess_upper"] * (1 + 1e-5)
        assert default["excess_upper"] <= default["own_gap"] * (1 + 1e-5) + 1e-12
        assert default["wrong_zero"] <= default["proven_nonzero"]
        assert default["wrong_nonzero"] <= default["selected"]
    assert len(CONTENT["clarabel"]) >= 10
    assert all(one["within"] for one in CONTENT["clarabel"])


def test_features_of_programs_without_exact_zeros_are_counted_nowhere(page):
    smooth = {name for name, one in CONTENT["programs"].items() if not one["exact_zeros"]}
    changed = json.loads(json.dumps(CONTENT))
    for own in page.strengths(one for one in page.graded(changed) if one["program"] in smooth):
        for one in (own["default"], *own["ladder"]):
            one["wrong_nonzero"] += 1
    assert changed != CONTENT
    for file in page.FILES:
        text = file.read_text()
        assert page.filled(text, changed) == text
