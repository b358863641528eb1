"""Every loss with every penalty and option, and machines on a graph: true claims are proved, tighter ones are not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hand_cases import LOSSES, MACHINES, PENALTIES, make_case, make_machine
from hand_certificates import Case, pack

from tasksieve.verify import verify

OPTIONS: tuple[dict[str, Any], ...] = (
    {"weights": True, "task_weights": True, "ridge": True, "graph": True},
    {"standardize": True, "offset": True, "free": True, "class_weights": True},
    {"positive": True, "intercept": False, "feature_weights": True, "shared": True},
)
SMALL = {"rows": 9, "d": 6}


def judged(case: Case) -> None:
    """The claim of plain formulas, with a small margin, is proved; less than what those formulas say is not."""
    raw = case.save(margin=1e-9)
    verdict = verify(raw, **case.data())
    assert verdict.proved, verdict.words
    value = verdict.values[0]
    primal, dual, scale = case.pair(case.duals())
    size = max(abs(primal), abs(dual), 1.0)
    assert primal - 1e-11 * size <= value.objective <= primal + 1e-11 * size
    assert dual - 1e-9 * size <= value.dual_value <= dual + 1e-11 * size
    assert scale * (1 - 1e-9) <= value.scale <= scale * (1 + 1e-12)
    header, arrays = case.content()
    if case.ridge > 0.0:  # more may be proved by a U other than W: what can be is told to a claim that cannot
        most = verify(pack(header, {**arrays, "gap": np.array([0.0])}), **case.data()).values[0].dual_value
        assert dual - 1e-9 * size <= most <= primal + 1e-11 * size
        dual = max(dual, most)
    for name, wrong in (
        ("gap", max(0.0, primal - dual - 1e-9 * size)),
        ("dual_value", dual + 1e-9 * size),
        ("objective", primal - 2 * arrays["gap"][0] - 1e-9 * size),
        ("objective", dual + 2 * arrays["gap"][0] + 1e-9 * size),
    ):
        if name == "gap" and primal - dual <= 1e-9 * size:
            continue
        refused = verify(pack(header, {**arrays, name: np.array([wrong])}), **case.data())
        assert not refused.proved
        assert refused.failures[0].startswith("value 0 (alpha = ")


PAIRS = [(loss, penalty) for loss in LOSSES for penalty in PENALTIES]
QUICK = PAIRS[::7]  # every member comes up, with different partners


@pytest.mark.parametrize(("loss", "penalty"), QUICK)
def test_losses_with_penalties(loss: str, penalty: str) -> None:
    number = PAIRS.index((loss, penalty))
    judged(make_case(loss, penalty, number, **SMALL, **OPTIONS[number % 3]))


def test_every_member_comes_up() -> None:
    assert {loss for loss, _ in QUICK} == set(LOSSES)
    assert {penalty for _, penalty in QUICK} == set(PENALTIES)


@pytest.mark.slow
@pytest.mark.parametrize("options", range(3))
@pytest.mark.parametrize(("loss", "penalty"), PAIRS)
def test_every_option(loss: str, penalty: str, options: int) -> None:
    judged(make_case(loss, penalty, 7 * options, **OPTIONS[options]))


@pytest.mark.parametrize("loss", MACHINES)
def test_machines_on_a_graph(loss: str) -> None:
    judged(make_machine(loss, 3, intercept=loss != "logistic"))


def test_words_name_the_feature_and_the_task() -> None:
    case = make_case("squared", "l21", 2, n_tasks=3, **SMALL)
    header, arrays = case.content()
    header["features"] = [f"gene {j}" for j in range(6)]
    header["tasks"] = ["x", "y", "z"]
    dual = arrays["dual"].copy()
    dual[0, : len(case.y[0])] *= 2.0
    verdict = verify(pack(header, {**arrays, "dual": dual}), **case.data())
    assert not verdict
    assert "is outside the dual ball: the dual point is scaled by 0." in verdict.words
    assert "('gene " in verdict.words
    dual[0, : len(case.y[0])] = 0.0
    verdict = verify(pack(header, {**arrays, "dual": dual}), **case.data())
    assert "task 'x' has the largest part of the loss's, 0." in verdict.words
    words = verify(pack(header, arrays), **case.data()).words
    assert words.startswith("proved: no model of this kind is better by more than ")


def test_a_path_is_proved_value_by_value() -> None:
    cases = [make_case("logistic", "l21", 4, strength=strength, **SMALL) for strength in (0.9, 0.5, 0.2)]
    header, _ = cases[0].content()
    parts = [case.content()[1] for case in cases]
    arrays = {name: np.concatenate([part[name] for part in parts]) for name in parts[0] if name != "start"}
    arrays["start"] = np.concatenate([[0], np.cumsum([part["start"][1] for part in parts])])
    verdict = verify(pack(header, arrays), **cases[0].data())
    assert verdict.proved, verdict.words
    assert verdict.words.startswith("proved: none of 3 models can be better by more than ")
    arrays["gap"][1] = 0.0
    verdict = verify(pack(header, arrays), **cases[0].data())
    assert [bool(value.failures) for value in verdict.values] == [False, True, False]
    assert "value 1 (alpha" in verdict.words
    assert verify(pack(header, arrays), **cases[0].data(), value=2).proved
    assert not verify(pack(header, arrays), **cases[0].data(), value=-2).proved
