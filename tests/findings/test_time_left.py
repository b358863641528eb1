"""Estimates of the time that a comparison will still take, from seconds that are given."""

from __future__ import annotations

import pytest

import tasksieve as ts
from tasksieve.findings.time_left import TimeLeft

KINDS = ["shared", "own", "mean"] * 3


def test_nothing_is_known_before_the_first_piece() -> None:
    assert TimeLeft(KINDS).estimate() is None
    assert TimeLeft([]).estimate() == 0.0


def test_pieces_of_a_kind_take_as_long_as_each_other() -> None:
    left = TimeLeft(KINDS)
    left.finish("shared", 4.0)
    assert left.estimate() == pytest.approx(2 * 4.0 + 6 * 4.0)  # of the others nothing is known
    left.finish("own", 20.0)
    left.finish("mean", 0.0)
    assert left.estimate() == pytest.approx(2 * 24.0)
    left.finish("shared", 6.0)
    assert left.estimate() == pytest.approx(1 * 5.0 + 2 * 20.0)
    for kind in ("own", "mean", "shared", "own", "mean"):
        left.finish(kind, 1.0)
    assert left.estimate() == 0.0


def test_a_piece_under_way() -> None:
    left = TimeLeft(["own", "own"], at_once=1)
    left.go_on("own", 0.25, 10.0)
    assert left.estimate() == pytest.approx(30.0 + 40.0)
    left.go_on("own", 0.5, 18.0)
    assert left.estimate() == pytest.approx(18.0 + 36.0)
    left.finish("own", 30.0)
    assert left.estimate() == pytest.approx(30.0)


def test_pieces_that_were_kept_say_nothing() -> None:
    left = TimeLeft(["own"] * 4, at_once=2)
    left.finish("own", None)
    assert left.estimate() is None
    left.finish("own", 10.0)
    assert left.estimate() == pytest.approx(2 * 10.0 / 2)


@pytest.mark.parametrize(
    ("left", "words"),
    [(None, ""), (0.0, ""), (0.2, "about 1 s left"), (89.0, "about 89 s left"), (200.0, "about 3 min left"),
     (7300.0, "about 2 h left")],
)  # fmt: skip
def test_in_words(left: float | None, words: str) -> None:
    progress = ts.Progress("compare", "fit", 3, 20, "fold 1 of 5, own", 12.5, left)
    assert progress.left_in_words == words
    assert str(progress) == "compare: fit 3 of 20, fold 1 of 5, own, 12.5 s" + (f", {words}" if words else "")
