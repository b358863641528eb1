"""No false certificate is proved: mutants of every kind, judged by an oracle that does not know the verifier.

The oracle (`certificate_oracle`) says which mutants are false; all three checkers must refuse every one of them. That
the mutants would find a flaw is shown by verifiers into which flaws are put on purpose."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from certificate_mutants import TRIPLES, by_hand, by_library, false_mutants, machine
from certificate_oracle import Content, Truth
from flawed_verifier import flawed
from hand_cases import CLASSES, NUMBERS
from page_checker import page_verdicts

from tasksieve import verify as verifier

Mutant = tuple[Content, Truth, list[str]]
QUICK, MANY = 150, 10_000
ROWS = ("l21", "l11", "sparse_group")  # penalties that the page's checker knows
fitted_once = cache(by_library)  # mutants are made of copies


def proved(content: Content, module: Any = verifier, exact: bool = False) -> bool:
    try:
        return bool(module.verify(content.pack(), **content.data(), exact=exact).proved)
    except module.Unreadable:
        return False


def told(mutant: Mutant) -> str:
    content, _, why = mutant
    return f"{content.header['loss']}, {content.header['penalty']}, {content.story}: {', '.join(why)}"


def some_mutants() -> list[Mutant]:
    """Of triples in which every loss, penalty and quadratic part comes up."""
    losses = ("squared", "logistic")
    positions = [k for k, (loss, penalty, _) in enumerate(TRIPLES) if loss in losses and penalty in ROWS]
    honest = [fitted_once(k) for k in [*range(0, len(TRIPLES), 10), *positions[::3]]]
    honest += [by_hand(k) for k in [*range(4, len(TRIPLES), 13), *positions[1::3]]]
    return list(false_mutants([*honest, *(machine(k) for k in range(4))], QUICK, 8))


def on_the_page(content: Content) -> bool:
    """Whether the browser's checker knows this kind."""
    loss = content.header["loss"]
    squared = loss.get("labels") == "numbers" and loss["low"] is None and loss["high"] is None
    known = content.header["penalty"]["name"] == "rows" and (loss["name"] == "logistic" or squared)
    return known and "edges" not in content.arrays


def judge(mutants: list[Mutant], every: int, folder: Path) -> int:
    """Floating point on all, fractions on some, the page's checker on all that it knows: how many these are."""
    for k, mutant in enumerate(mutants):
        assert not proved(mutant[0]), told(mutant)
        if k % every == 0:
            assert not proved(mutant[0], exact=True), told(mutant)
    known = [mutant for mutant in mutants if on_the_page(mutant[0])]
    answers = page_verdicts([(content.pack(), content.file()) for content, _, _ in known], folder)
    for mutant, (kind, words) in zip(known, answers, strict=True):
        assert kind in ("unproved", "differs"), f"{kind}, {words}: {told(mutant)}"
    return len(known)


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("part", range(27))
def test_ten_thousand_false_mutants_are_refused(part: int, tmp_path: Path) -> None:
    """All 243 triples, by the library and by hand, and machines on a graph."""
    honest = [make(k) for k in range(part, len(TRIPLES), 27) for make in (by_library, by_hand)]
    judge(list(false_mutants([*honest, machine(part)], -(-MANY // 27), 1 + part)), 4, tmp_path)


@pytest.mark.parametrize("number", [*range(0, len(TRIPLES), 10)])
def test_honest_certificates_are_proved(number: int) -> None:
    content = fitted_once(number)
    assert proved(content)
    assert Truth(content).unsupported() == []


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(TRIPLES)))
def test_every_honest_certificate_is_proved(number: int) -> None:
    content = by_library(number)
    assert proved(content)
    assert proved(content, exact=True)
    assert Truth(content).unsupported() == []


# --- flaws put in on purpose ---------------------------------------------------------------------------------


def of(*words: str) -> Callable[[Mutant], bool]:
    return lambda mutant: any(word in mutant[0].story for word in words)


def because(*words: str) -> Callable[[Mutant], bool]:
    return lambda mutant: all(any(one.endswith(word) for word in words) for one in mutant[2])


FLAWS: dict[str, tuple[str, str, Callable[[Mutant], bool]]] = {
    "a strength that underflows is used as a divisor": (
        "return strength.lo if strength.lo > 0 else np.float64(np.nan)",
        "return strength.lo",
        of("scale_strength", "scale_alpha", "scale_unit"),
    ),
    "rows whose weight underflows do not count": (
        "counts = weights.hi > 0.0",
        "counts = weights.lo > 0.0",
        of("hidden rows"),
    ),
    "the dual vector is taken to be in the ball": (
        "c, limit = self.penalty.scale(size, self._rows(reading), reading)",
        "c, limit = arith.one(1.0).lo, None",
        of("style"),
    ),
    "ridge and graph are forgotten in the dual value": (
        "dual = parts.total() - scale * scale * quadratic",
        "dual = parts.total()",
        of("style 2"),
    ),
    "digests are not compared": ("wrong = check_digests(cert, tasks)", "wrong = []", of("not signed")),
    "negative coefficients pass for positive ones": (
        'if problem.cert["positive"] and (rows < 0.0).any():',
        "if False:",
        because("positive"),
    ),
    "weights of tasks are forgotten": (
        's = s * (factor * factor if self.loss == "square-root" else factor)',
        "s = s",
        of("task_weights"),
    ),
    "zeros need no room around the dual point": (
        "return None if modulus is None else arith.sqrt((gap + gap) / modulus).hi",
        "return None if modulus is None else arith.one(0.0).hi",
        because("is zero"),
    ),
    "non-zeros need no distance from 0": (
        "proved[places] = np.asarray(level.lo > twice.hi, dtype=bool)",
        "proved[places] = np.asarray(level.lo > 0, dtype=bool)",
        because("is not zero"),
    ),
}


def test_false_mutants_are_refused_and_would_find_a_flaw(tmp_path: Path) -> None:
    """One population: of every kind, refused by every checker, and accepted in part by each flawed one."""
    mutants = some_mutants()
    kinds = {word for _, _, why in mutants for word in why}
    assert {"gap", "dual_value", "objective", "positive", "digests", "zeros that nothing proves"} <= kinds
    assert any(word.endswith("is zero") for word in kinds)
    assert any(word.endswith("is not zero") for word in kinds)
    assert {content.header["loss"]["name"] for content, _, _ in mutants} == {
        words["name"] for _, words in (*NUMBERS.values(), *CLASSES.values())
    }
    assert {content.header["penalty"]["name"] for content, _, _ in mutants} == set(verifier._PENALTIES)
    assert sum(truth.disproved() for _, truth, _ in mutants[:100]) > 20  # coefficients that are better are known
    judged = mutants[::3]  # the slow run judges ten thousand
    assert judge(judged, 10, tmp_path) > len(judged) // 20
    for name, (old, new, near) in FLAWS.items():
        module = flawed((old, new))
        accepted = (mutant for mutant in mutants if near(mutant) and proved(mutant[0], module))
        assert next(accepted, None) is not None, name
