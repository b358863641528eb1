"""The main job on data that comes with the library; `make demo` runs it.

1. Real data: ten digits, each against the rest, on images of its own. Which pixels matter for all ten?
2. Synthetic data, Wang & Ye's first design: 50 tasks of 50 rows, 5,000 features, a path of 100 values.

A summary is printed; each part leaves a report, one HTML file that needs nothing else.

    python examples/demo.py --out demo-report
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable
from pathlib import Path

import numpy as np

import tasksieve as ts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("demo-report"), help="folder of the reports")
    parser.add_argument("--features", type=int, default=5_000, help="features of the synthetic problem")
    arguments = parser.parse_args()

    print(f"tasksieve {ts.__version__}\n")
    arguments.out.mkdir(parents=True, exist_ok=True)
    report = digits(arguments.out / "report.html")
    path_report = synthetic(arguments.out / "path.html", arguments.features)
    print(f"Reports, to open in a browser:\n  {report}\n  {path_report}")


def digits(file: Path) -> Path:
    """Cross-validated logistic regression on the digits, checked on images that were kept apart."""
    X, y, task, _ = ts.datasets.load_digits_tasks(n_each=80)
    apart = np.random.default_rng(0).random(len(y)) < 0.25
    # an image can serve in several tasks; what any of them learns from is no test for the others
    training = {image.tobytes() for image in X[~apart]}
    fresh = apart & np.array([image.tobytes() not in training for image in X])

    model = ts.MultiTaskLogisticRegressionCV(n_alphas=40, eps=0.005, cv=5, selection_rule="1se")
    start = time.perf_counter()
    model.fit(X[~apart], y[~apart], task=task[~apart])
    seconds = time.perf_counter() - start

    n_selected = np.count_nonzero(model.get_support())
    accuracy = model.score(X[fresh], y[fresh], task=task[fresh])
    show_facts(
        "Ten handwritten digits, each against the rest (real images, one matrix per task)",
        [
            ("training / test images", f"{np.sum(~apart)} / {np.sum(fresh)}"),
            ("alpha chosen (one-standard-error rule, 5 folds)", f"{model.alpha_:.4g}"),
            ("pixels selected", f"{n_selected} of {X.shape[1]}"),
            ("accuracy on the test images, mean over tasks", f"{accuracy:.1%}"),
            ("objective", f"{model.objective_:.6f}"),
            ("at most this far above the optimum (duality gap)", f"{model.dual_gap_:.1e}"),
            ("seconds, 6 paths of 40 models", f"{seconds:.2f}"),
        ],
    )
    return ts.write_report(
        model,
        file,
        X=X[~apart],
        y=y[~apart],
        task=task[~apart],
        held_out=(X[fresh], y[fresh], task[fresh]),
        feature_names=[f"pixel ({row}, {column})" for row in range(8) for column in range(8)],
        task_names=[f"digit {digit}" for digit in model.tasks_],
        title="Which pixels tell ten digits apart?",
        asked="Ten tasks: is this image a given digit, or some other? Each task has images of its own. Which of the 64 "
        "pixels are needed, when all tasks must make do with the same ones?",
        answered=f"{n_selected} pixels. With these, {accuracy:.1%} of the images that were not used for learning are "
        "told apart correctly (mean over the ten tasks). What is proved: no other coefficients of this kind "
        f"have a smaller penalised loss by more than {model.dual_gap_:.1e}.",
        facts=[("Time for everything", f"{seconds:.2f} s: 5 folds and all rows, 40 models each")],
        reproduce="make demo\n\n# which runs\npython examples/demo.py --out demo-report",
    )


def synthetic(file: Path, n_features: int) -> Path:
    """The whole certified path on Wang & Ye's Synthetic 1."""
    X, y, task, support = ts.datasets.make_wang_synthetic(1, n_features=n_features, random_state=0)
    n_tasks = len(np.unique(task))
    start = time.perf_counter()
    path = ts.MultiTaskLasso().path(X, y, task=task, n_alphas=100, eps=0.01)
    seconds = time.perf_counter() - start
    worst = path.relative_gaps.max()
    show_facts(
        "Wang & Ye's Synthetic 1: a whole regularisation path with one matrix per task",
        [
            ("tasks x rows x features", f"{n_tasks} x {len(y) // n_tasks} x {n_features:,}"),
            ("values of alpha, from the largest useful one to a hundredth of it", f"{len(path.alphas)}"),
            ("seconds, the whole path", f"{seconds:.2f}"),
            ("largest relative duality gap on the path", f"{worst:.1e}"),
            ("features in use at the end", f"{path.n_selected[-1]} of {n_features:,}"),
            ("full passes over the data", f"{path.passes:.1f}"),
        ],
    )
    return ts.write_report(
        path,
        file,
        title=f"A path of 100 models over {n_features:,} features",
        asked=f"{n_tasks} related regressions with {len(y) // n_tasks} rows each, every one with its own matrix of "
        f"{n_features:,} features. Which features enter as the penalty is lowered, and is each of the hundred answers "
        f"right? ({len(support)} features truly matter, more than so few rows can tell apart: the design, from Wang & "
        "Ye (2015), is made to try solvers.)",
        answered=f"All 100 models took {seconds:.1f} seconds and {path.passes:.1f} reads of the data. The worst of "
        f"them is within {worst:.1e} of its optimum (relative to the empty model); the bound counts all "
        f"{n_features:,} features, not only those in use.",
        reproduce="make demo\n\n# which runs\npython examples/demo.py --out demo-report",
    )


def show_facts(title: str, facts: Iterable[tuple[str, str]]) -> None:
    print(title)
    for name, value in facts:
        print(f"  {name:<68} {value}")
    print()


if __name__ == "__main__":
    main()
