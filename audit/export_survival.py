"""A data set of scikit-survival as arrays, words as indicators; runs in the environment of scikit-survival."""

import sys

import numpy as np
import pandas as pd
from sksurv import datasets

name, file = sys.argv[1:]
table, outcome = getattr(datasets, f"load_{name}")()
event, time = outcome.dtype.names
X = pd.get_dummies(table.drop(columns=[c for c in ("chapter",) if c in table]), drop_first=True).astype(float)
y = np.column_stack([outcome[time].astype(float), outcome[event].astype(float)])
positive = y[:, 0] > 0  # some programs refuse a time of zero
np.savez(file, X=X.to_numpy()[positive], y=y[positive])
