"""PySpark's problems: its tightest answers are optimal in our words."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from foreign_cases import Rows, ask_peer, same

import tasksieve as ts

ROWS = Rows()

CASES = [
    {
        "estimator": name,
        "regParam": 0.1,
        "elasticNetParam": ratio,
        "fitIntercept": intercept,
        "standardization": scaled,
    }
    for name, ratio, intercept, scaled in (
        ("LinearRegression", 1.0, True, True),
        ("LinearRegression", 0.4, True, True),
        ("LinearRegression", 0.4, True, False),
        ("LogisticRegression", 0.4, True, True),
        ("LogisticRegression", 0.4, False, True),
        ("LogisticRegression", 1.0, True, False),
    )
] + [{"estimator": "LogisticRegression", "regParam": 0.02, "elasticNetParam": 0.4, "family": "multinomial"}]

SCRIPT = f"""
import pandas as pd
from pyspark.sql import SparkSession
from pyspark.ml.linalg import Vectors
from pyspark.ml import regression, classification
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
spark.sparkContext.setLogLevel("OFF")
for k, case in enumerate({CASES!r}):
    case = dict(case); name = case.pop("estimator")
    y = given["y"] if name == "LinearRegression" else given["three"] if "family" in case else given["two"]
    rows = [(float(label), Vectors.dense(x.tolist())) for label, x in zip(y, given["X"])]
    frame = spark.createDataFrame(rows, ["label", "features"]).coalesce(1)
    kind = getattr(regression if name == "LinearRegression" else classification, name)
    model = kind(tol=1e-15, maxIter=2000, **case).fit(frame)
    if "family" in case:
        found[f"coef{{k}}"] = model.coefficientMatrix.toArray()
        found[f"intercept{{k}}"] = model.interceptVector.toArray()
    else:
        found[f"coef{{k}}"] = model.coefficients.toArray()
        found[f"intercept{{k}}"] = model.intercept
spark.stop()
"""


@pytest.mark.slow
def test_the_tightest_answers_are_optimal(tmp_path: Path) -> None:
    found = ask_peer("pyspark", SCRIPT, tmp_path, X=ROWS.X, y=ROWS.y, two=ROWS.two, three=ROWS.three)
    for k, case in enumerate(CASES):
        y = ROWS.y if case["estimator"] == "LinearRegression" else ROWS.three if "family" in case else ROWS.two
        given = {"problem": "pyspark", "parameters": case}
        same(ts.grade(found[f"coef{k}"], np.squeeze(found[f"intercept{k}"]), ROWS.X, y, **given))


def test_a_solver_that_was_not_checked_is_refused() -> None:
    """The deviations by which columns are divided depend on it."""
    X = np.random.default_rng(0).standard_normal((40, 5))
    asked = {"estimator": "LinearRegression", "regParam": 0.1, "elasticNetParam": 1.0}
    for solver in ("auto", "normal"):
        ts.grade(np.zeros(5), 0.0, X, X[:, 0], problem="pyspark", parameters={**asked, "solver": solver})
    with pytest.raises(ValueError, match="has not been checked"):
        ts.grade(np.zeros(5), 0.0, X, X[:, 0], problem="pyspark", parameters={**asked, "solver": "l-bfgs"})
