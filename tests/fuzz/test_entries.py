"""L1,1 paths on degenerate problems: no value lies, every certificate is proved; and the judge finds planted lies."""

from __future__ import annotations

from typing import Any

import pytest

import tasksieve as ts
from fuzz.entries import TROUBLES, Tally, examine, make_problem, run


@pytest.fixture(autouse=True)
def _one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TASKSIEVE_NUM_THREADS", "1")


def judged(seed: int, numbers: range) -> None:
    tally = run(seed, numbers)
    assert tally.paths == len(numbers)
    assert not tally.wrong, "\n".join([str(tally), *tally.wrong])
    assert tally.on_gram > 0.5 * tally.values  # the engine is fuzzed elsewhere
    assert tally.short < 0.05 * tally.values  # tolerances of 1e-8 and 1e-10, with columns that depend on each other


def test_some_paths() -> None:
    judged(0, range(14))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 11))
def test_three_thousand_paths(seed: int) -> None:
    judged(seed, range(300))


def test_every_trouble_is_met() -> None:
    assert {trouble for number in range(60) for trouble in make_problem(0, number).troubles} == set(TROUBLES)


class Lying:
    """A path with something else in the place of what it says."""

    def __init__(self, path: Any, **lies: Any) -> None:
        self._path, self._lies = path, lies

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._path, name)
        return self._lies[name](found) if name in self._lies else found


def larger(coef: Any) -> Any:
    return lambda k: 1.01 * coef(k)


@pytest.mark.parametrize(
    ("lies", "words"),
    [
        ({}, ""),
        ({"dual_gaps": lambda gaps: 0.1 * gaps}, "gap"),
        ({"objectives": lambda values: values * (1 + 1e-9)}, "objective"),
        ({"coef": larger}, "objective"),
        ({"dual_gaps": lambda gaps: gaps + 1.0}, "converged"),
    ],
)
def test_lies_are_found(lies: dict[str, Any], words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = next(one for one in (make_problem(0, k) for k in range(100)) if not one.troubles and len(one.alphas) == 6)
    problem.params["tol"] = 1e-4
    honest = ts.MultiTaskRegressor.path
    monkeypatch.setattr(ts.MultiTaskRegressor, "path", lambda self, *a, **b: Lying(honest(self, *a, **b), **lies))
    tally = Tally()
    examine(problem, tally)
    assert bool(tally.wrong) == bool(lies), tally.wrong
    assert not lies or any(words in found for found in tally.wrong)
