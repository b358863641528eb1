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
        "solver": solver,
    }
    for name, ratio, intercept, scaled, solver in (
        ("LinearRegression", 1.0, True, True, "auto"),
        ("LinearRegression", 0.4, True, True, "normal"),
        ("LinearRegression", 0.4, True, False, "normal"),
        ("LinearRegression", 0.4, False, True, "normal"),
        ("LinearRegression", 1.0, True, True, "l-bfgs"),
        ("LinearRegression", 0.4, True, True, "l-bfgs"),
        ("LinearRegression", 0.4, True, False, "l-bfgs"),
        ("LinearRegression", 0.4, False, True, "l-bfgs"),
        ("LogisticRegression", 0.4, True, True, None),
        ("LogisticRegression", 0.4, False, True, None),
        ("LogisticRegression", 1.0, True, False, None),
    )
] + [{"estimator": "LogisticRegression", "regParam": 0.02, "elasticNetParam": 0.4, "family": "multinomial"}]

SCRIPT = f"""
from pyspark.sql import SparkSession
from pyspark.ml.linalg import Vectors
from pyspark.ml import regression, classification
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
spark.sparkContext.setLogLevel("OFF")
for k, case in enumerate({CASES!r}):
    case = {{key: value for key, value in case.items() if value is not None}}; name = case.pop("estimator")
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


def test_solvers_divide_by_deviations_of_their_own() -> None:
    """"auto" is "normal" up to 4,096 columns."""
    rng = np.random.default_rng(0)
    asked = {"estimator": "LinearRegression", "regParam": 0.1, "elasticNetParam": 1.0}
    for width, like in ((5, "normal"), (4097, "l-bfgs")):
        X, coef = rng.standard_normal((40, width)), np.ones(width)
        objectives = {
            solver: ts.grade(
                coef, 0.0, X, X[:, 0], problem="pyspark", parameters={**asked, "solver": solver}, solve=False
            ).objective
            for solver in ("auto", "normal", "l-bfgs")
        }
        assert objectives["auto"] == objectives[like]
        assert objectives["normal"] < objectives["l-bfgs"]
