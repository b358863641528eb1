"""Intervals of `ts.compare` hold their level: `benchmarks/compare_coverage.py`, with few data sets."""

from __future__ import annotations

import sys
import warnings
from importlib import import_module
from pathlib import Path

import pytest


@pytest.mark.slow
def test_intervals_hold_their_level(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "benchmarks"))
    try:
        script = import_module("compare_coverage")
        kind = next(kind for kind in script.KINDS if kind.name == "own features")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            rows = script.simulate(kind, 30, 7, nested=False)
    finally:
        for name in ("compare_coverage", "_common"):
            sys.modules.pop(name, None)
    found = {(of, name): float(tasks.rstrip("%")) for _, of, name, tasks, *_ in rows}
    for of in ("shared", "own", "shared - own"):
        # 120 tasks, those of a data set not independent: two standard errors are about 6
        assert found[of, "widened"] >= 84.0
        assert found[of, "widened"] > found[of, "plain"]
    assert min(found[of, "plain"] for of in ("shared", "own", "shared - own")) < 88.0
