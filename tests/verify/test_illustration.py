"""The verifier in R of docs/howto/check-it-yourself.md, line by line in Python: R cannot be run here."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hand_cases import make_case

from tasksieve.verify import verify

Array = np.ndarray[Any, Any]
PAGE = Path(__file__).parents[2] / "docs" / "howto" / "check-it-yourself.md"


def gap_of(X: list[Array], y: list[Array], W: Array, b: Array, p: list[Array], alpha: float, N: float) -> float:
    def g(n: int) -> float:
        return n * 2**-53 / (1 - n * 2**-53)

    d, loss, gain, size, rows = len(W), 0.0, 0.0, 0.0, np.zeros(len(W))
    for t in range(len(X)):
        x, w = X[t], W[:, t]
        n = len(x)
        r = y[t] - x @ w - b[t]
        e = g(d + 4) * (np.abs(x) @ np.abs(w) + abs(b[t]) + np.abs(y[t]))
        loss = loss + np.sum((np.abs(r) + e) ** 2) / 2
        q = p[t] - np.mean(p[t])
        far = (abs(np.sum(q)) + g(n) * np.sum(np.abs(q))) / np.sqrt(n)
        xc, yc = x - x.mean(axis=0), y[t] - np.mean(y[t])
        norms = np.sqrt(np.sum(xc**2, axis=0))
        m = np.abs(xc.T @ q) + norms * (g(n + 8) * np.sqrt(np.sum(q**2)) + far)
        rows = rows + m**2
        gain = gain + np.sum(q * yc) - g(n + 8) * np.sum(np.abs(q * yc)) - far * np.sqrt(np.sum(yc**2))
        size = size + np.sum(q**2)
    s = min(1.0, N * alpha / np.max(np.sqrt(rows))) * (1 - 1e-12)
    wide = 1 + g(2 * d + 1000)
    primal = (loss / N + alpha * np.sum(np.sqrt(np.sum(W**2, axis=1)))) * wide
    dual = (s * gain - s**2 * size / 2 * wide) / N
    return float(primal - dual + abs(dual) * 1e-14)


@pytest.mark.parametrize("seed", range(5))
def test_it_bounds_the_gap_and_hardly_more(seed: int) -> None:
    case = make_case("squared", "l21", seed, rows=12, d=8, n_tasks=3, tol=10.0 ** -(seed + 2))
    duals = case.duals()
    found = gap_of(case.x, case.y, case.coef, case.intercept, [p[:, 0] for p in duals], case.alpha, case.unit)
    exact = verify(case.save(margin=1e-6, duals=duals), **case.data(), exact=True)
    assert exact.values[0].gap <= found <= exact.values[0].gap + 1e-11


def test_the_page_shows_the_same_lines() -> None:
    """Every assignment of the R code has its like here, in the same order."""
    text = PAGE.read_text(encoding="utf-8")
    code = re.search(r"```r\n(.*?)```", text, re.DOTALL)
    assert code is not None
    lines = [line for line in code.group(1).splitlines() if line.strip()]
    assert len(lines) <= 30
    names = re.findall(r"(\w+(?:\[\[t\]\])?) <- ", code.group(1))
    assert names == (
        ["gap_of", "g", "d", "loss", "gain", "size", "rows", "x", "n", "w", "r", "e", "loss", "q", "far", "xc", "yc"]
        + ["norms", "m", "rows", "gain", "size", "s", "wide", "primal", "dual"]
    )
