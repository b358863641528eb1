"""pyspark: LinearRegression and LogisticRegression with elasticNetParam=1, one core."""

import os
import sys

import numpy as np
from common import Answer, Job, serve

os.environ["PYSPARK_PYTHON"] = sys.executable
from pyspark.ml.classification import LogisticRegression
from pyspark.ml.linalg import DenseVector
from pyspark.ml.regression import LinearRegression
from pyspark.sql import SparkSession

session = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
session.sparkContext.setLogLevel("ERROR")


def fit(job: Job) -> list[Answer]:
    # of LinearRegression steps are on 19 x 19 numbers, say, of the others each is a pass over the table
    job.patience = 2_000_000 if job.loss == "squared" else 10_000
    rows = [(float(y), DenseVector(x)) for x, y in zip(job.X, job.y, strict=True)]
    table = session.createDataFrame(rows, ["label", "features"]).coalesce(1).cache()
    kind = LinearRegression if job.loss == "squared" else LogisticRegression
    answers = []
    for alpha in job.alphas:
        model = kind(regParam=alpha, elasticNetParam=1.0, **job.options(limits=("maxIter",))).fit(table)
        if job.loss == "multinomial":
            coef, intercept = model.coefficientMatrix.toArray(), model.interceptVector.toArray()
        else:
            coef, intercept = model.coefficients.toArray(), model.intercept
        answers.append(Answer(np.asarray(coef), intercept, alpha))
    return answers


serve(fit, "pyspark", "numpy")
