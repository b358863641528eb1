"""Cox's model in scikit-survival, lifelines, statsmodels and skglm: their tightest answers are optimal in our words."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from foreign_cases import Rows, same

import tasksieve as ts

ROWS = Rows()
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"normalize": True},
        {"l1_ratio": 1.0},
        {"penalty_factor": ROWS.factors},
        {"penalty_factor": ROWS.factors, "normalize": True},
        {"penalty_factor": np.r_[0.0, ROWS.factors[1:]], "l1_ratio": 1.0},
    ],
    ids=lambda options: "-".join(options),
)
def test_scikit_survival(options: dict[str, Any]) -> None:
    linear = pytest.importorskip("sksurv.linear_model")
    y = ts.survival(ROWS.time, ROWS.event)
    model = linear.CoxnetSurvivalAnalysis(alphas=[0.1, 0.03], tol=1e-15, max_iter=10**6, **options).fit(ROWS.X, y)
    same(ts.grade(model, ROWS.X, y))


@pytest.mark.slow
@pytest.mark.parametrize("penalizer", [0.1, ROWS.factors / 10.0], ids=["one", "each"])
@pytest.mark.parametrize("l1_ratio", [1.0, 0.5])
def test_lifelines(penalizer: Any, l1_ratio: float) -> None:
    lifelines = pytest.importorskip("lifelines")
    import pandas as pd

    frame = pd.DataFrame(ROWS.X).assign(time=ROWS.time, event=ROWS.event)
    close = {"precision": 1e-12, "r_precision": 1e-16}
    model = lifelines.CoxPHFitter(penalizer=penalizer, l1_ratio=l1_ratio).fit(frame, "time", "event", fit_options=close)
    parameters = {"penalizer": penalizer, "l1_ratio": l1_ratio}
    given = {"problem": "lifelines", "parameters": parameters}
    found = ts.grade(model.params_.to_numpy(), None, ROWS.X, ROWS.survival, **given)
    assert found.relative_gap < 1e-8  # although none of its zeros is one
    assert "smooths |x|" in found.summary()


@pytest.mark.slow
@pytest.mark.parametrize(("alpha", "L1_wt"), [(0.1, 1.0), (0.1, 0.5), (ROWS.factors / 10.0, 0.5)])
def test_statsmodels(alpha: Any, L1_wt: float) -> None:
    api = pytest.importorskip("statsmodels.api")
    # zero_tol=0: by default a coefficient that is zero once is never looked at again
    close = {"alpha": alpha, "L1_wt": L1_wt, "maxiter": 10_000, "cnvrg_tol": 1e-15, "zero_tol": 0.0}
    model = api.PHReg(ROWS.time, ROWS.X, status=ROWS.event.astype(int)).fit_regularized(**close)
    parameters = {"model": "PHReg", "alpha": alpha, "L1_wt": L1_wt}
    same(ts.grade(model.params, None, ROWS.X, ROWS.survival, problem="statsmodels", parameters=parameters))


@pytest.mark.slow
def test_skglm() -> None:
    skglm = pytest.importorskip("skglm")
    y = np.column_stack([ROWS.time, ROWS.event]).astype(float)
    same(ts.grade(skglm.CoxEstimator(alpha=0.05, tol=1e-13).fit(ROWS.X, y), ROWS.X, ROWS.survival))
    # of skglm 0.5 method="breslow" answers Efron's problem; without ties both are one
    apart = ROWS.time + np.linspace(0.0, 0.5, ROWS.n)
    model = skglm.CoxEstimator(alpha=0.05, method="breslow", tol=1e-13).fit(ROWS.X, np.column_stack([apart, y[:, 1]]))
    same(ts.grade(model, ROWS.X, ts.survival(apart, ROWS.event)))
