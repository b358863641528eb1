"""Work is counted, not timed: readings of X, kernels called, bytes and iterations of small problems rise only with a
line in the changelog (`tests/counted_work.py`)."""

from __future__ import annotations

import importlib.util

import pytest
from counted_work import CHANGELOG, ON_DEVICE, PROBLEMS, count, risen, written

from tasksieve._kernels import compiled

pytestmark = pytest.mark.skipif(not compiled, reason="the twins of the kernels call each other")

HAVE_TORCH = importlib.util.find_spec("torch") is not None
WHAT_TO_DO = (
    "If this is the price of something better, say so in a line of CHANGELOG.md and write the counts down: "
    "python tests/counted_work.py --write --because 'words of that line'"
)


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_problem_takes_no_more_work_than_it_did(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if name in ON_DEVICE and not HAVE_TORCH:
        pytest.skip("torch is not installed: make test-torch")
    monkeypatch.setenv("TASKSIEVE_NUM_THREADS", "1")
    now = count(name)
    assert now["calls"] > 5  # or nothing is counted
    more = risen(now, written()["counts"][name])
    assert not more, "\n".join([f"{name} takes more work than before:", *more, WHAT_TO_DO])


def test_what_rose_is_explained() -> None:
    assert written()["counts"].keys() == PROBLEMS.keys()
    text = CHANGELOG.read_text(encoding="utf-8")
    assert not [words for words in written()["rose because"] if words not in text]


def test_more_work_is_seen() -> None:
    before = written()["counts"]["lasso"]
    assert not risen(before, before)
    for what in ("passes", "iterations", "calls", "kilobytes"):
        assert risen(before | {what: 1.06 * before[what] + 1}, before)
    name = max(before["by name"], key=before["by name"].__getitem__)
    assert risen(before | {"by name": before["by name"] | {name: 2 * before["by name"][name]}}, before)


def test_the_counts_repeat() -> None:
    assert count("lasso") == count("lasso")
