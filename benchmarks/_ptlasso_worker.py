"""Runs ptlasso in adelie's environment: `python _ptlasso_worker.py FOLDER ALPHA|cv THREADS`.

FOLDER holds data-0.npz, data-1.npz, ...; of each answer-K.npz is written there.
"""

import sys
import time
from pathlib import Path

import numpy as np
import ptlasso

folder, alpha, threads = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
for k in range(len(list(folder.glob("data-*.npz")))):
    given = np.load(folder / f"data-{k}.npz")
    options = {"verbose": False, "n_threads": threads, "family": str(given["family"])}
    model = (
        ptlasso.PretrainedLassoCV(**options)
        if alpha == "cv"
        else ptlasso.PretrainedLasso(float(alpha), **options)
    )
    start, processor = time.perf_counter(), time.process_time()
    model.fit(given["X"], given["y"], given["groups"])
    seconds, processor = time.perf_counter() - start, time.process_time() - processor
    found = {
        name: np.asarray(model.predict(given["new"], given["new_groups"], model=name)).ravel()
        for name in ("pretrain", "individual", "overall")
    }
    fitted = model.best_estimator_ if alpha == "cv" else model
    features = len(ptlasso.get_pretrain_support(fitted))
    np.savez(folder / f"answer-{k}.npz", seconds=seconds, processor=processor, features=features, alpha=fitted.alpha,
             **found)  # fmt: skip
