"""Forged certificates of outcomes of every kind: whatever vector, label or parameter is changed, nothing false is
proved.

What is false is said by a conic solver, which finds coefficients that are better than a claim allows."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from certificate_oracle import Content
from flawed_verifier import flawed
from outcome_cases import COX, RESIDUAL, Outcome, Outcomes
from outcome_vectors import KINDS, bound_of, problem, size_of, wild_vectors

from tasksieve.verify import Unreadable, read_certificate, verify

Array = np.ndarray[Any, Any]


# --- vectors ------------------------------------------------------------------------------------------------


def judge_vectors(number: int, count: int, exact_every: int, seed: int = 0) -> int:
    case, rng = problem(number, seed), np.random.default_rng(1000 * seed + number)
    best, coef, intercept, places = case.solution
    good = 0
    for k, dual in enumerate(wild_vectors(case, rng, count)):
        content = case.content(coef, intercept, places, dual, 0.0)
        bound = bound_of(content)
        assert bound <= best + 1e-7 * size_of(case), f"vector {k}: {bound} above {best}"
        if k % exact_every == 0:
            exactly = bound_of(content, exact=True)
            assert exactly <= best + 1e-7 * size_of(case)
            assert bound <= exactly + 1e-9 * size_of(case)  # floats never prove more
        good += bound > best - 0.5 * size_of(case)
    return good


@pytest.mark.parametrize("number", range(len(KINDS)))
def test_no_vector_proves_more_than_the_optimum(number: int) -> None:
    assert judge_vectors(number, 8, 8) > 1  # some of these vectors prove something


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 11))
@pytest.mark.parametrize("number", range(len(KINDS)))
def test_no_vector_of_many_proves_more_than_the_optimum(number: int, seed: int) -> None:
    judge_vectors(number, 80, 8, seed)


# --- problems that are changed under a certificate -----------------------------------------------------------


def change_times(part: Outcome, rng: Any) -> str:
    i, way = int(rng.integers(len(part.y))), int(rng.integers(4))
    if way == 0:
        part.y[i, 0] = np.floor(part.y[i, 0] * rng.uniform(1.0, 3.0)) + 1.0  # later; perhaps tied
    elif way == 1:
        part.y[i, 1] = 1.0 - part.y[i, 1]
    elif way == 2:
        part.y[i, 2] = part.y[i, 0] - 1.0 if part.y[i, 2] == -np.inf else -np.inf
    else:
        part.y[i, 3] = 1.0 - part.y[i, 3]
        if part.y[0, 3] == 1.0:  # numbered in the order in which they come
            part.y[:, 3] = 1.0 - part.y[:, 3]
    return ("time", "event", "entry", "stratum")[way]


def change_labels(part: Outcome, rng: Any) -> str:
    if part.kind in COX:
        return change_times(part, rng)
    i = int(rng.integers(len(part.y)))
    if part.classes is not None:
        part.y[i] = float(rng.integers(len(part.classes)))
    else:
        part.y[i] = part.y[i] * 2.0 + (0.5 if part.kind != "gamma" else 0.0)
    return "label"


def change_parameters(part: Outcome, rng: Any) -> str:
    key = next((key for key in ("size", "power", "level", "ties") if key in part.words), None)
    if key is None:
        return change_labels(part, rng)
    if key == "ties":
        part.words["ties"] = "breslow" if part.words["ties"] == "efron" else "efron"
    else:
        part.words[key] = {"size": 0.6, "power": 1.7, "level": 0.35}[key]
    return key


def change_rows(part: Outcome, rng: Any) -> str:
    i = int(rng.integers(len(part.weight)))
    if rng.random() < 0.5:
        part.weight[i] *= rng.choice([0.25, 3.0])
        return "weight"
    part.offset[i] += rng.choice([-1.0, 1.0])
    return "offset"


def change_units(part: Outcome, rng: Any) -> str:
    if part.kind in RESIDUAL and rng.random() < 0.5:
        part.scale *= float(rng.choice([0.7, 1.5]))
        return "scale"
    part.factor *= float(rng.choice([0.5, 2.0]))
    return "factor"


def judge_changes(number: int, count: int, seed: int = 0) -> Counter[str]:
    """Claims that are true of one problem, under another one: refused where the solver finds something better."""
    case, rng = problem(number, seed), np.random.default_rng(7000 + 1000 * seed + number)
    _, coef, intercept, places = case.solution
    dual = case.duals(coef, intercept, places)
    honest = case.content(coef, intercept, places, dual, 1e-5 * size_of(case))
    assert verify(honest.pack(), **honest.data()).proved
    found: Counter[str] = Counter()
    for _ in range(count):
        other = Outcomes(**{name: copy.deepcopy(getattr(case, name)) for name in case.__dataclass_fields__})
        part = other.parts[int(rng.integers(len(other.parts)))]
        ways = [change_labels, change_labels, change_parameters, change_rows] + [change_units] * other.mixed
        told = ways[int(rng.integers(len(ways)))](part, rng)
        try:
            truth = other.solution[0]
        except (AssertionError, ValueError):  # no solution: separated, or no event at all
            continue
        forged = other.content(coef, intercept, places, dual, 1e-5 * size_of(case))
        forged.arrays |= {name: honest.arrays[name] for name in ("objective", "dual_value", "gap")}
        objective = float(other.objective(coef, intercept, places))
        margin = 1e-6 * size_of(other)
        lowest = max(forged.arrays["dual_value"][0], (objective - forged.arrays["gap"])[0])
        off = abs(objective - forged.arrays["objective"][0])
        false = lowest > truth + margin or off > forged.arrays["gap"][0] + margin
        verdict = verify(forged.pack(), **forged.data())
        assert not (false and verdict.proved), f"{other.parts[0].kind}: {told}"
        found[f"{told}, {'false' if false else 'true'}"] += 1
    return found


def test_changed_problems_are_refused() -> None:
    total: Counter[str] = Counter()
    for number in range(len(KINDS)):
        total += judge_changes(number, 2)
    assert sum(count for told, count in total.items() if told.endswith("false")) > 10, total


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 9))
def test_many_changed_problems_are_refused(seed: int) -> None:
    total: Counter[str] = Counter()
    for number in range(len(KINDS)):
        total += judge_changes(number, 25, seed)
    kinds = {told.split(",")[0] for told in total if told.endswith("false")}
    assert {"time", "event", "stratum", "label", "weight", "offset", "factor"} <= kinds


# --- flaws put in on purpose ---------------------------------------------------------------------------------

PROBLEMS: dict[str, tuple[int, str, str, Callable[[Outcome], None]]] = {
    "entry times that are forgotten": (
        2,
        'np.searchsorted(times, entry[here], side="right")',
        "0 * np.searchsorted(times, entry[here])",
        lambda part: part.y.__setitem__((slice(None), 2), -np.inf),
    ),
    "strata that are one": (
        1,
        "        time, event, entry, stratum = rows.y.T\n",
        "        time, event, entry, stratum = *rows.y.T[:3], 0.0 * rows.y[:, 3]\n",
        lambda part: part.y.__setitem__((slice(None), 3), 0.0),
    ),
    "ties that are all Breslow's": (
        0,
        'if self.words["ties"] == "breslow" else count',
        "if True else count",
        lambda part: part.words.__setitem__("ties", "breslow"),
    ),
    "a weight of a task's loss that is forgotten": (
        13,
        '            s = s * self.arith.one(self.cert["loss"]["weights"][t])\n',
        "            s = s\n",
        lambda part: setattr(part, "factor", 1.0),
    ),
    "a size that is another": (
        8,
        'size = self.numbers(words["size"])',
        "size = self.numbers(0.5)",
        lambda part: part.words.__setitem__("size", 0.5),
    ),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_changed_problems_would_find_a_flaw(name: str) -> None:
    """The solution of another problem, under the data and words of this one: the flawed verifier proves it."""
    number, old, new, change = PROBLEMS[name]
    module = flawed((old, new))
    for seed in range(6):
        case = problem(number, seed)
        other = Outcomes(**{name: copy.deepcopy(getattr(case, name)) for name in case.__dataclass_fields__})
        for part in other.parts:
            change(part)
        _, coef, intercept, places = other.solution
        forged = other.content(coef, intercept, places, other.duals(coef, intercept, places), 1e-5 * size_of(case))
        forged.header["loss"] = case.content(coef, intercept, places, forged.arrays["dual"][0], 0.0).header["loss"]
        forged.y = [part.y for part in case.parts]
        forged.sign()
        if module.verify(forged.pack(), **forged.data()).proved:
            assert not verify(forged.pack(), **forged.data()).proved
            assert not verify(forged.pack(), **forged.data(), exact=True).proved
            return
    raise AssertionError(f"nothing has found: {name}")


# --- headers, arrays and labels that make no sense -----------------------------------------------------------


def refused(content: Content, words: str) -> None:
    with pytest.raises(Unreadable, match=words):
        read_certificate(content.pack())


def honest(number: int) -> Content:
    case = problem(number)
    _, coef, intercept, places = case.solution
    return case.content(coef, intercept, places, case.duals(coef, intercept, places), 1e-5)


@pytest.mark.parametrize(
    ("number", "changes", "words"),
    [
        (0, {"ties": "exact"}, "ties must be"),
        (0, {"ties": None}, "ties must be"),
        (0, {"name": "Cox"}, "unknown loss"),
        (0, {"strata": 1}, "not known"),
        (7, {"power": 1.0}, "between 1 and 2"),
        (7, {"power": 2.0}, "between 1 and 2"),
        (7, {"power": True}, "must be a number"),
        (8, {"size": 0.0}, "between 0 and inf"),
        (8, {"size": -1.7}, "between 0 and inf"),
        (10, {"level": 1.0}, "between 0 and 1"),
        (10, {"level": "0.5"}, "must be a number"),
        (11, {"weights": [1.0, 0.0, 1.0]}, "must be positive"),
        (11, {"weights": [1.0, -1.0, 1.0]}, "weights must be a number >= 0"),
        (11, {"weights": [1.0, 1.0]}, "one for each task"),
        (11, {"weights": [1.0, None, 1.0]}, "must be a number"),
        (11, {"scales": [1.0, 2.0, 1.0]}, "have no scale"),
        (11, {"scales": [0.0, 1.0, 1.0]}, "must be positive"),
        (11, {"losses": [{"name": "square-root"}, {"name": "gamma"}, {"name": "gamma"}]}, "cannot be that of one task"),
        (11, {"losses": [{"name": "mixed"}, {"name": "poisson"}, {"name": "gamma"}]}, "unknown loss"),
    ],
)
def test_losses_that_make_no_sense(number: int, changes: dict[str, Any], words: str) -> None:
    content = honest(number)
    read_certificate(content.pack())
    content.header["loss"] |= changes
    refused(content, words)


def test_not_a_number_in_the_header() -> None:
    content = honest(11)
    content.header["loss"]["weights"][0] = float("nan")
    refused(content, "NaN is not allowed")


def test_thresholds_that_make_no_sense() -> None:
    content = honest(4)
    places = content.arrays.pop("thresholds")
    refused(content, "'thresholds' is missing")
    classes = [len(own) - 1 for own in content.header["classes"]]
    widest = int(np.argmax(classes))
    assert classes[widest] > 1
    start = sum(classes[:widest])
    for other in (places[0, start + 1], places[0, start + 1] + 1.0):
        wrong = places.copy()
        wrong[0, start] = other
        content.arrays["thresholds"] = wrong
        refused(content, "must rise within each task")
    content.arrays["thresholds"] = places[:, 1:]
    refused(content, "of shape")
    content = honest(0)
    content.arrays["thresholds"] = places
    refused(content, "belongs to the ordinal loss")


def test_labels_that_make_no_sense() -> None:
    content = honest(0)
    x, y = content.x[0], content.y[0]
    rest: dict[str, Any] = {"sample_weight": content.weight[0], "offset": content.offset[0] if content.offset else None}
    record = content.labels()[0]
    assert verify(content.pack(), x, record, **rest).proved
    assert verify(content.pack(), x, y[:, :2], **rest).proved
    assert verify(content.pack(), x, (y[:, 0], y[:, 1] == 1.0), **rest).proved
    assert "neither 0 nor 1" in verify(content.pack(), x, (y[:, 0], y[:, 1] + 1.0), **rest).words
    assert "must hold times and events" in verify(content.pack(), x, y[:, 0], **rest).words
    late = record.copy()
    late["entry"] = late["time"]
    assert "an entry is not before its time" in verify(content.pack(), x, late, **rest).words
    late["entry"] = np.where(np.arange(len(late)) == 0, late["time"] - 1.0, -np.inf)
    assert "digest differs" in verify(content.pack(), x, late, **rest).words
    for number, value, words in ((6, 0.0, "y > 0"), (7, -1.0, "y >= 0"), (8, -1.0, "y >= 0")):
        content = honest(number)
        content.y[0][0] = value
        content.sign()
        assert words in verify(content.pack(), **content.data()).words


def test_a_last_bit_of_a_time_makes_or_breaks_a_tie() -> None:
    """Ties are equal numbers: one that is off by a bit is another problem, and another digest."""
    case = next(one for one in (problem(0, seed) for seed in range(20)) if _tied(one.parts[0].y))
    _, coef, intercept, places = case.solution
    content = case.content(coef, intercept, places, case.duals(coef, intercept, places), 1e-5 * size_of(case))
    assert verify(content.pack(), **content.data()).proved
    time = content.y[0][:, 0]
    event = content.y[0][:, 1] == 1.0
    first = next(i for i in np.flatnonzero(event) if np.sum(event & (time == time[i])) > 1)
    time[first] = np.nextafter(time[first], np.inf)
    assert "digest differs" in verify(content.pack(), **content.data()).words
    content.sign()
    assert not verify(content.pack(), **content.data()).proved


def _tied(y: Array) -> bool:
    times = y[y[:, 1] == 1.0, 0]
    return len(np.unique(times)) < len(times)
