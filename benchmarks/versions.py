"""Two versions of tasksieve against each other: the same paths, in turn, each in a process of its own.

    python benchmarks/versions.py --old /path/to/old/.venv/bin/python [--new ...] [--only NAME] [--rounds 5]

Prints, for each case, the median seconds of both and their ratio (above 1: the new version is faster), the passes over
the data, and the worst relative gap. A round is old, new, new, old; ratios are taken within rounds.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
import warnings


def cases(name):
    """(model, arguments, keywords of `path`, repetitions)"""
    import numpy as np

    import tasksieve as ts

    rng = np.random.default_rng(1)

    def stacked(tasks, rows, d, active=50, noise=0.5):
        task = np.repeat(np.arange(tasks), rows)
        x = np.asfortranarray(rng.standard_normal((tasks * rows, d)))
        w = np.zeros((d, tasks))
        w[rng.choice(d, active, replace=False)] = rng.standard_normal((active, tasks))
        y = np.einsum("ij,ji->i", x, w[:, task]) + noise * rng.standard_normal(tasks * rows)
        return x, y, task

    def shared(n, tasks, d, active=30):
        x = np.asfortranarray(rng.standard_normal((n, d)))
        w = np.zeros((d, tasks))
        w[rng.choice(d, active, replace=False)] = rng.standard_normal((active, tasks))
        return x, x @ w + 0.5 * rng.standard_normal((n, tasks))

    if name == "per-task":
        x, y, task = stacked(50, 50, 5000)
        return ts.MultiTaskLasso(), (x, y), {"task": task}, 1
    if name == "per-task, few tasks":
        x, y, task = stacked(5, 100, 20000)
        return ts.MultiTaskLasso(), (x, y), {"task": task}, 1
    if name == "shared":
        x, y = shared(200, 30, 10000)
        return ts.MultiTaskLasso(), (x, y), {}, 1
    if name == "Lasso":
        x, y = shared(300, 1, 20000)
        return ts.MultiTaskLasso(), (x, y[:, 0]), {}, 1
    if name == "elastic net":
        x, y, task = stacked(10, 60, 5000)
        return ts.MultiTaskElasticNet(l1_ratio=0.7), (x, y), {"task": task}, 1
    if name == "sparse group":
        x, y, task = stacked(10, 60, 3000)
        return ts.MultiTaskSparseGroupLasso(l1=0.3), (x, y), {"task": task, "eps": 0.05}, 1
    if name == "logistic":
        x, y, task = stacked(10, 80, 5000)
        return ts.MultiTaskLogisticRegression(), (x, y > 0), {"task": task, "n_alphas": 50, "eps": 0.05}, 1
    if name == "calibrated":
        x, y, task = stacked(10, 50, 3000)
        return ts.CalibratedMultiTaskLasso(), (x, y), {"task": task, "n_alphas": 50, "eps": 0.05}, 1
    if name == "calibrated, ridge":
        x, y, task = stacked(10, 50, 3000)
        return ts.CalibratedMultiTaskLasso(l2=0.01), (x, y), {"task": task, "n_alphas": 50, "eps": 0.05}, 1
    if name == "OWL":
        x, y, task = stacked(5, 60, 4000, active=20)
        return ts.MultiTaskOWL(), (x, y), {"task": task, "n_alphas": 50, "eps": 0.05}, 1
    if name == "OWL, shared":
        x, y = shared(150, 5, 4000)
        return ts.MultiTaskOWL(), (x, y), {"n_alphas": 50, "eps": 0.05}, 1
    if name == "multinomial OWL":
        x, y = shared(200, 4, 2000)
        return ts.MultinomialOWL(), (x, np.argmax(y, axis=1)), {"n_alphas": 30, "eps": 0.1}, 1
    if name == "small path":
        x, y = shared(300, 3, 100, active=10)
        return ts.MultiTaskLasso(), (x, y), {}, 5
    if name == "small fit":
        x, y, task = stacked(3, 40, 60, active=5)
        return ts.MultiTaskLasso(alpha=0.1), (x, y), {"task": task}, 200
    raise SystemExit(f"no case {name!r}")


NAMES = (
    "per-task",
    "per-task, few tasks",
    "shared",
    "Lasso",
    "elastic net",
    "sparse group",
    "logistic",
    "calibrated",
    "calibrated, ridge",
    "OWL",
    "OWL, shared",
    "multinomial OWL",
    "small path",
    "small fit",
)


def work(name):
    """Runs a case whenever a line comes in on stdin, and prints its seconds."""
    warnings.simplefilter("ignore")
    model, arguments, keywords, times = cases(name)

    def run():
        if name == "small fit":
            model.fit(*arguments, **keywords)
            return {"gap": float(model.dual_gap_), "passes": 0.0}
        path = model.path(*arguments, **keywords)
        return {"gap": float(max(path.relative_gaps)), "passes": float(path.passes)}

    run()
    print("ready", flush=True)
    for _ in sys.stdin:
        began = time.perf_counter()
        for _ in range(times):
            found = run()
        print(json.dumps({"seconds": (time.perf_counter() - began) / times} | found), flush=True)


def compare(name, old, new, rounds):
    workers = {}
    for label, python in (("old", old), ("new", new)):
        command = [python, __file__, "--work", name]
        workers[label] = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert workers[label].stdout.readline().strip() == "ready", f"{label} failed on {name}"

    def ask(label):
        workers[label].stdin.write("\n")
        workers[label].stdin.flush()
        return json.loads(workers[label].stdout.readline())

    seconds, ratios, last = {"old": [], "new": []}, [], {}
    for _ in range(rounds):
        here = {"old": 0.0, "new": 0.0}
        for label in ("old", "new", "new", "old"):
            last[label] = ask(label)
            here[label] += last[label]["seconds"] / 2
            seconds[label].append(last[label]["seconds"])
        ratios.append(here["old"] / here["new"])
    for worker in workers.values():
        worker.stdin.close()
        worker.wait()
    median = {label: statistics.median(values) for label, values in seconds.items()}
    print(
        f"| {name} | {median['old']:.4g} | {median['new']:.4g} | {statistics.median(ratios):.2f} "
        f"| {last['old']['passes']:.1f} | {last['new']['passes']:.1f} | {last['new']['gap']:.1e} |",
        flush=True,
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--old")
    parser.add_argument("--new", default=sys.executable)
    parser.add_argument("--only", action="append")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--work")
    options = parser.parse_args()
    if options.work:
        work(options.work)
        sys.exit()
    print("| case | old, s | new, s | old/new | passes old | passes new | worst gap |\n|---|---|---|---|---|---|---|")
    for one in options.only or NAMES:
        compare(one, options.old, options.new, options.rounds)
