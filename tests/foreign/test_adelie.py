"""adelie's problems: its tightest answers are optimal in our words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from foreign_cases import Rows, ask_peer, same

import tasksieve as ts

ROWS = Rows()
GROUPS = [0, 3, 5, 9]

#: what grpnet is given beside the lambdas
CASES: list[dict[str, Any]] = [
    {"glm": "gaussian"},
    {"glm": "gaussian", "alpha": 0.4, "intercept": False},
    {"glm": "gaussian", "groups": GROUPS},
    {"glm": "gaussian", "groups": GROUPS, "alpha": 0.4, "penalty": [1.0, 2.0, 0.5, 1.5]},
    {"glm": "binomial", "groups": GROUPS},
    {"glm": "poisson", "alpha": 0.4},
    {"glm": "multigaussian", "alpha": 0.4},
    {"glm": "multinomial"},
    {"glm": "cox", "alpha": 0.4},
    {"glm": "cox", "tie_method": "breslow"},
]
SCRIPT = f"""
import adelie as ad
X = np.asfortranarray(given["X"])
for k, case in enumerate({CASES!r}):
    case = dict(case); name = case.pop("glm"); ties = case.pop("tie_method", "efron")
    y = {{"gaussian": given["y"], "binomial": given["two"], "poisson": given["three"], "multigaussian": given["Y"],
         "multinomial": np.eye(3)[given["three"]]}}.get(name)
    if name == "cox":
        glm = ad.glm.cox(start=np.full(len(X), -1.0), stop=given["time"], status=given["event"], tie_method=ties)
    else:
        glm = getattr(ad.glm, name)(np.asfortranarray(y, dtype=float) if np.ndim(y) == 1 else
                                    np.ascontiguousarray(y, dtype=float))
    for part in ("groups", "penalty"):
        if part in case:
            case[part] = np.array(case[part])
    state = ad.grpnet(X, glm, lmda_path=np.array([0.1, 0.03]), tol=1e-15, irls_tol=1e-15, max_iters=10**7,
                      early_exit=False, progress_bar=False, **case)
    found[f"coef{{k}}"] = state.betas.toarray(); found[f"intercept{{k}}"] = np.asarray(state.intercepts)
"""


@pytest.mark.slow
def test_the_tightest_answers_are_optimal(tmp_path: Path) -> None:
    r = ROWS
    given = {
        "X": r.X,
        "y": r.y,
        "two": r.two,
        "three": r.three,
        "Y": r.Y,
        "time": r.time,
        "event": r.event.astype(float),
    }
    found = ask_peer("adelie", SCRIPT, tmp_path, **given)
    labels = {
        "gaussian": r.y, "binomial": r.two, "poisson": r.three, "multigaussian": r.Y, "multinomial": r.three,
        "cox": r.survival,
    }  # fmt: skip
    for k, case in enumerate(CASES):
        coef, intercept = found[f"coef{k}"], found[f"intercept{k}"]
        if case["glm"].startswith("multi"):  # column j q + t is feature j of output t
            coef = coef.reshape(2, r.d, -1).transpose(0, 2, 1)
        parameters = {"lmda_path": [0.1, 0.03], **case}
        intercept = None if case["glm"] == "cox" or case.get("intercept") is False else intercept
        same(ts.grade(coef, intercept, r.X, labels[case["glm"]], problem="adelie", parameters=parameters))
