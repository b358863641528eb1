"""Certificates of every estimator on nasty problems, judged without the library: none may lie."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from fuzz.judge import run
from fuzz.plan import ALL, PARTS, SEED, SHORT, SHORT_PARTS


@pytest.fixture
def judged(
    record_property: Callable[[str, Any], None], monkeypatch: pytest.MonkeyPatch
) -> Callable[[range], None]:
    """Run some cases; the counts go to the summary at the end."""
    monkeypatch.setenv("TASKSIEVE_NUM_THREADS", "1")

    def judge(numbers: range) -> None:
        tally = run(SEED, numbers)
        record_property("fuzz", (tally.fits, tally.certificates, tally.refused, len(tally.violations)))
        assert tally.fits == len(numbers)
        assert not tally.violations, "\n".join([str(tally), *map(str, tally.violations)])

    return judge


@pytest.mark.parametrize("part", range(SHORT_PARTS))
def test_some_certificates(part: int, judged: Callable[[range], None]) -> None:
    judged(SHORT[part::SHORT_PARTS])


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_two_thousand_certificates(part: int, judged: Callable[[range], None]) -> None:
    judged(ALL[part::PARTS])
