"""Three sites and a coordinator on one computer, in one command: python examples/three_sites.py [folder]

Each site has a folder of its own and answers in a process of its own, which watches the folder where questions arrive.
Nothing but these files goes from one to the other. At the end the result is compared with a fit of all rows together,
which the sites would never allow: here it shows that the answer is the same.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import tasksieve as ts

SITES = ("north", "south", "west")
FEATURES = [f"marker{j}" for j in range(200)]


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    X, y, task = make_tables(folder)

    # 1. The coordinator and each site make keys. What they print goes into the plan, the keys themselves stay.
    coordinator = tasksieve("federate", "--new-keys", "--keys", folder / "coordinator.json")
    lines = [
        tasksieve("site", "init", folder / site, "--name", site, "--table", folder / f"{site}.csv", "--target", "y")
        for site in SITES
    ]

    # 2. The plan: what everybody agrees to.
    plan = folder / "plan.toml"
    plan.write_text(
        f'format = 1\ntitle = "Three hospitals"\n{coordinator}\n'
        '[model]\nloss = "squared"\nstandardize = "task"\n\n[path]\nn_alphas = 30\neps = 0.05\n\n[checks]\ncv = 5\n\n'
        '[data]\nfeatures = "features.txt"\ncovariates = ["age"]\nunits = "y in mmol/L"\n\n[sites]\n' + "".join(lines)
    )
    (folder / "features.txt").write_text("\n".join(FEATURES) + "\n")
    for site in SITES:
        print(tasksieve("site", "agree", folder / site, plan))

    # 3. The coordinator asks, the sites answer: each in its own process, with files between them.
    exchange = folder / "exchange"
    for site in SITES:
        (exchange / site).mkdir(parents=True, exist_ok=True)
    watching = [
        subprocess.Popen(command("site", "answer", folder / site, exchange / site, "--watch", "--quiet"))
        for site in SITES
    ]
    try:
        keys, out = ("--keys", folder / "coordinator.json"), ("--out", folder / "out")
        print(tasksieve("federate", plan, *keys, *out, "--folders", exchange))
    finally:
        for process in watching:
            process.terminate()
            process.wait()

    # 4. Each site makes its own model from the result; coefficients never leave.
    for site in SITES:
        result, run = folder / "out" / "result.npz", folder / f"{site}-run"
        print(tasksieve("site", "model", folder / site, result, "--out", run, "--no-report"))

    compare(folder, X, y, task)


def make_tables(folder: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A table for each site: the same five markers matter, with effects of the site's own. All rows, for `compare`."""
    rng = np.random.default_rng(0)
    parts = []
    for site in SITES:
        n_rows = int(rng.integers(60, 90))
        X, age = rng.standard_normal((n_rows, len(FEATURES))), rng.normal(60.0, 10.0, n_rows)
        y = X[:, :5] @ rng.normal(1.0, 0.3, 5) + 0.05 * age + rng.standard_normal(n_rows)
        table = np.column_stack([X, age, y])
        header = ",".join([*FEATURES, "age", "y"])
        np.savetxt(folder / f"{site}.csv", table, fmt="%.17g", delimiter=",", header=header, comments="")
        parts.append((table[:, :-1], y, np.full(n_rows, site)))
    X, y, task = (np.concatenate(part) for part in zip(*parts, strict=True))
    return X, y, task


def compare(folder: Path, X: np.ndarray, y: np.ndarray, task: np.ndarray) -> None:
    """The same model from all rows together."""
    found = ts.federated.FederatedFit.load(folder / "out" / "result.npz")
    weights = np.array([1.0] * len(FEATURES) + [0.0])
    model = ts.MultiTaskRegressor(standardize=True, feature_weights=weights, tol=1e-8)
    path = model.path(X, y, task=task, alphas=found.alphas)
    apart = np.abs(found.objectives - path.objectives)
    allowed = np.maximum(found.dual_gaps, path.dual_gaps) + 1e-12 * found.null_objective
    chosen = [np.setdiff1d(path.features(k), len(FEATURES)) for k in range(len(found))]  # the covariate is in all
    same = sum(np.array_equal(found.features(k), chosen[k]) for k in range(len(found)))
    print(
        f"compared with a fit of all rows together: {same} of {len(found)} values select the same features, objectives "
        f"differ by at most {apart.max():.1e} (their gaps allow {allowed.max():.1e})"
    )
    if np.any(apart > allowed):
        raise SystemExit("the objectives differ by more than their gaps: this must not happen")


def command(*words: object) -> list[str]:
    return [sys.executable, "-m", "tasksieve", *map(str, words)]


def tasksieve(*words: object) -> str:
    """Run a command, show it, and give what it prints."""
    print("$ tasksieve", *words, flush=True)
    done = subprocess.run(command(*words), stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"the command has ended with code {done.returncode}")
    return done.stdout


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as place:
            main(Path(place))
