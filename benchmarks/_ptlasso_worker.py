"""Runs ptlasso in adelie's environment: `python _ptlasso_worker.py FOLDER ALPHA|cv THREADS`.

FOLDER holds data.npz; answer.npz is written there.
"""

import sys
import time
from pathlib import Path

import numpy as np
import ptlasso

folder, alpha, threads = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
given = np.load(folder / "data.npz")
options = {"verbose": False, "n_threads": threads}
model = ptlasso.PretrainedLassoCV(**options) if alpha == "cv" else ptlasso.PretrainedLasso(float(alpha), **options)
start = time.perf_counter()
model.fit(given["X"], given["y"], given["groups"])
seconds = time.perf_counter() - start
predictions = np.asarray(model.predict(given["new"], given["new_groups"])).ravel()
fitted = model.best_estimator_ if alpha == "cv" else model
support = ptlasso.get_pretrain_support(fitted)
np.savez(folder / "answer.npz", seconds=seconds, predictions=predictions, features=len(support))
