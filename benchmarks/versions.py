"""Two versions of tasksieve against each other: the same work, in turn, each in a process of its own.

    python benchmarks/versions.py --old /path/to/old/.venv/bin/python [--new ...] [--only NAME] [--quick]

--old and --new are interpreters that have a version installed, or folders that hold one (the src of a checkout whose
kernels are built, run by this interpreter). Prints, for each case, the least seconds of both, the median ratio of all
rounds (above 1: the new version is faster) and that of the least seconds, the passes over the data, and the worst
relative gap. A round is old, new, new, old. Where a process's arrays lie in memory makes it up to a third slower for
all of its life, so there are several pairs of processes. The last line is the least ratio.
"""

from __future__ import annotations

import argparse
import json
import os
import site
import statistics
import subprocess
import sys
import time
import warnings
from pathlib import Path


def fit(model, x, y, **keywords):
    """Fits: the relative gap, and the passes of what counts them."""
    model.fit(x, y, **keywords)
    gap = getattr(model, "dual_gap_", 0.0) / max(getattr(model, "null_objective_", 1.0), 1e-300)
    return {"gap": float(gap), "passes": float(getattr(model, "passes_", 0.0))}


def path(model, x, y, **keywords):
    """Follows the path."""
    found = model.path(x, y, **keywords)
    return {"gap": float(max(found.relative_gaps)), "passes": float(found.passes)}


def process(words):
    """Starts Python with these arguments, and waits for its end."""
    python = [sys.executable, *(["-S"] if sys.flags.no_site else [])]
    subprocess.run([*python, *words], check=True, stdout=subprocess.DEVNULL)
    return {"gap": 0.0, "passes": 0.0}


def cases(quick):
    """name: (function, model, what makes X, y and task, keywords, repetitions)"""
    import numpy as np

    import tasksieve as ts

    rng = np.random.default_rng(1)
    few = {"n_alphas": 50, "eps": 0.05}
    fewer = {"n_alphas": 30, "eps": 0.1}

    def own(tasks, rows, d, active=50, classes=False):
        """A matrix for each task."""

        def make():
            features, used = (min(d, 80), min(active, 10)) if quick else (d, active)
            task = np.repeat(np.arange(tasks), rows)
            x = np.asfortranarray(rng.standard_normal((tasks * rows, features)))
            w = np.zeros((features, tasks))
            w[rng.choice(features, used, replace=False)] = rng.standard_normal((used, tasks))
            y = np.einsum("ij,ji->i", x, w[:, task]) + 0.5 * rng.standard_normal(tasks * rows)
            return {"x": x, "y": y > 0 if classes else y, "task": task}

        return make

    def shared(n, tasks, d, active=30, of_y=lambda y: y):
        """One matrix for all tasks."""

        def make():
            rows, features, used = (min(n, 300), min(d, 80), min(active, 10)) if quick else (n, d, active)
            x = np.asfortranarray(rng.standard_normal((rows, features)))
            w = np.zeros((features, tasks))
            w[rng.choice(features, used, replace=False)] = rng.standard_normal((used, tasks))
            return {"x": x, "y": of_y(x @ w + 0.5 * rng.standard_normal((rows, tasks)))}

        return make

    lasso, logistic = ts.MultiTaskLasso, ts.MultiTaskLogisticRegression
    calibrated, sparse_group = ts.CalibratedMultiTaskLasso, ts.MultiTaskSparseGroupLasso
    one_task, classes = (
        shared(300, 1, 20000, of_y=np.ravel),
        shared(200, 4, 2000, of_y=lambda y: y.argmax(axis=1)),
    )
    small, middling, labels = own(3, 40, 60, 5), own(5, 60, 500, 20), own(5, 80, 500, 20, classes=True)
    return {
        "per-task": (path, lasso(), own(50, 50, 5000), {}, 1),
        "per-task, few tasks": (path, lasso(), own(5, 100, 20000), {}, 1),
        "shared": (path, lasso(), shared(200, 30, 10000), {}, 1),
        "Lasso": (path, lasso(), one_task, {}, 1),
        "elastic net": (path, ts.MultiTaskElasticNet(l1_ratio=0.7), own(10, 60, 5000), {}, 1),
        "sparse group": (path, sparse_group(l1=0.3), own(10, 60, 3000), {"eps": 0.05}, 1),
        "logistic": (path, logistic(), own(10, 80, 5000, classes=True), few, 1),
        "calibrated": (path, calibrated(), own(10, 50, 3000), few, 1),
        "calibrated, ridge": (path, calibrated(l2=0.01), own(10, 50, 3000), few, 1),
        "OWL": (path, ts.MultiTaskOWL(), own(5, 60, 4000, 20), few, 1),
        "OWL, shared": (path, ts.MultiTaskOWL(), shared(150, 5, 4000), few, 1),
        "multinomial OWL": (path, ts.MultinomialOWL(), classes, fewer, 1),
        "small path": (path, lasso(), shared(300, 3, 100, 10), {}, 5),
        "CV, per-task": (fit, ts.MultiTaskLassoCV(cv=5), own(10, 60, 1000), {}, 1),
        "CV, shared": (fit, ts.MultiTaskLassoCV(cv=5), shared(200, 10, 2000), {}, 1),
        "CV, tall": (fit, ts.MultiTaskLassoCV(cv=5), shared(20000, 3, 100, 10), {}, 1),
        "CV, small": (fit, ts.MultiTaskLassoCV(cv=5), small, {}, 5),
        "CV, sparse group": (fit, ts.MultiTaskSparseGroupLassoCV(cv=3, **few), middling, {}, 1),
        "CV, logistic": (fit, ts.MultiTaskLogisticRegressionCV(cv=3, **fewer), labels, {}, 1),
        "CV, calibrated": (fit, ts.CalibratedMultiTaskLassoCV(cv=3, **fewer), middling, {}, 1),
        "CV, OWL": (fit, ts.MultiTaskOWLCV(cv=3, **fewer), middling, {}, 1),
        "fit, small": (fit, lasso(alpha=0.1), small, {}, 200),
        "fit, per-task": (fit, lasso(alpha=0.1), own(20, 50, 5000), {}, 3),
        "fit, shared": (fit, lasso(alpha=0.5), shared(200, 30, 5000), {}, 3),
        "fit, elastic net": (fit, ts.MultiTaskElasticNet(alpha=0.1), middling, {}, 20),
        "fit, sparse group": (fit, sparse_group(alpha=0.1, l1=0.3), middling, {}, 20),
        "fit, logistic": (fit, logistic(alpha=0.02), labels, {}, 20),
        "fit, calibrated": (fit, calibrated(alpha=0.1), middling, {}, 10),
        "fit, OWL": (fit, ts.MultiTaskOWL(alpha=0.1), middling, {}, 10),
        "fit, graph SVC": (fit, ts.GraphSVC(random_state=0), labels, {}, 5),
        "fit, online": (fit, ts.OnlineMultiTaskRegressor(alpha=0.1, random_state=0), middling, {}, 5),
        "start, import": (process, ["-c", "import tasksieve"], dict, {}, 3),
        "start, first fit": (process, ["-c", FIRST_FIT], dict, {}, 3),
        "start, --version": (process, ["-m", "tasksieve", "--version"], dict, {}, 3),
        "start, fit of a table": (process, ["-c", FIT_TABLE], dict, {}, 1),
    }


FIRST_FIT = """
import numpy as np
from tasksieve import MultiTaskLasso
X = np.random.default_rng(0).standard_normal((100, 50))
MultiTaskLasso(alpha=0.1).fit(X, X[:, :2] @ np.ones((2, 5)))
"""
FIT_TABLE = """
import sys, tempfile
import numpy as np
from tasksieve.cli import main
with tempfile.TemporaryDirectory() as folder:
    table = np.random.default_rng(0).standard_normal((120, 20))
    table[:, 0] = np.arange(120) % 3
    names = ",".join(f"x{j}" for j in range(20))
    np.savetxt(folder + "/table.csv", table, delimiter=",", header=names, comments="")
    sys.argv = ["tasksieve", "fit", folder + "/table.csv", "-t", "x0", "-y", "x1", "--cv", "3", "-o", folder + "/run"]
    main()
"""


def work(name, quick):
    """Runs a case whenever a line comes in on stdin, and prints its seconds."""
    warnings.simplefilter("ignore")
    function, model, make, keywords, times = cases(quick)[name]
    keywords = make() | keywords
    times = 1 if quick else times
    function(model, **keywords)
    print("ready", flush=True)
    for _ in sys.stdin:
        began = time.perf_counter()
        for _ in range(times):
            found = function(model, **keywords)
        print(json.dumps({"seconds": (time.perf_counter() - began) / times} | found), flush=True)


def start(version, *words):
    """This script, run by an interpreter or on the package in a folder.

    A package that is installed from its checkout comes before every folder. Without the module site it does not; then
    its neighbours are found by their folders.
    """
    if not Path(version).is_dir():
        return _popen([version, __file__, *words], os.environ)
    paths = [str(Path(version).resolve()), *site.getsitepackages()]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
    return _popen([sys.executable, "-S", __file__, *words, "--folder", paths[0]], environment)


def _popen(command, environment):
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    )


def demand(folder):
    """Refuses a package from elsewhere: a version would be compared with itself."""
    import tasksieve

    if not Path(tasksieve.__file__).resolve().is_relative_to(folder):
        raise SystemExit(f"{tasksieve.__file__} is not in {folder}.")


def pair(name, old, new, rounds, quick):
    """Seconds of both in so many rounds, the ratios, and the last answers, in two new processes."""
    workers = {}
    for label, version in (("old", old), ("new", new)):
        workers[label] = start(version, "--work", name, *(["--quick"] if quick else []))
        if workers[label].stdout.readline().strip() != "ready":
            raise SystemExit(f"{label} failed on {name}")

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
    return seconds, ratios, last


def compare(name, old, new, options):
    """Prints a row; the median ratio."""
    pairs = [pair(name, old, new, options.rounds, options.quick) for _ in range(options.pairs)]
    least = {label: min(min(seconds[label]) for seconds, _, _ in pairs) for label in ("old", "new")}
    middle = statistics.median(ratio for _, ratios, _ in pairs for ratio in ratios)
    last = pairs[-1][2]
    print(
        f"| {name} | {least['old']:.4g} | {least['new']:.4g} | {middle:.2f} | {least['old'] / least['new']:.2f} "
        f"| {last['old']['passes']:.1f} | {last['new']['passes']:.1f} | {last['new']['gap']:.1e} |",
        flush=True,
    )
    return middle


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--old")
    parser.add_argument("--new", default=sys.executable)
    parser.add_argument(
        "--only", action="append", help="a case, or the beginning of several (CV, fit, start)"
    )
    parser.add_argument("--pairs", type=int, default=4, help="of processes, one after the other")
    parser.add_argument("--rounds", type=int, default=3, help="in each pair")
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to see that it works")
    parser.add_argument("--work", help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.folder:
        demand(options.folder)
    if options.work:
        work(options.work, options.quick)
        sys.exit()
    if not options.old:
        parser.error("--old is missing: what is compared with")
    names = list(cases(True))
    if options.only:
        names = [name for name in names if name.startswith(tuple(options.only))]
    print(
        "| case | old, s | new, s | old/new | of the least | passes old | passes new | worst gap |\n"
        "|---|---|---|---|---|---|---|---|"
    )
    ratios = [compare(name, options.old, options.new, options) for name in names]
    if ratios:
        print(f"\nThe least of {len(ratios)} ratios: {min(ratios):.2f}.")
