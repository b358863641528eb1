"""Does `fit_new_task` use old tasks where they help, and leave them where they do harm? Simulated data.

    python benchmarks/transfer.py --draws 100

Six old tasks of 80 rows, a new one of 40 rows, 100 features of which 8 matter in each task, noise of variance 1; the
model of the old tasks is a `MultiTaskLassoCV`. Designs were fixed before the first run. Helpful: the new task has
about the mean coefficients of the old ones; the same features with coefficients of its own; nearly those of one old
task; or the mean with two features more; the opposite coefficients, of which the features are worth something.
Harmful: features of its own; the same with old coefficients three times as large; old tasks that are noise. The true
risk of every way is known; the oracle takes the smallest. Counted: draws in which the task was fitted alone where old
tasks are harmful, and draws in which old tasks were used where the oracle's gain is above 10 %. Ctrl-C ends it with the
draws that are finished, as many of each design; `_parts.py` says how several processes share the draws.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from _common import Report, arguments
from _parts import add_arguments, draws

import tasksieve as ts

OLD, OLD_ROWS, NEW_ROWS, FEATURES, USED = 6, 80, 40, 100, 8
HELPFUL = ("mean coefficients", "same features", "one old task", "mean and two more", "opposite")
HARMFUL = ("features of its own", "its own, large old effects", "old tasks are noise")
PATH: dict[str, Any] = {"n_alphas": 30, "eps": 0.02, "cv": 5}

Array = np.ndarray[Any, Any]


def coefficients(design: str, random: np.random.Generator) -> tuple[Array, Array]:
    """Of the old tasks and of the new one."""
    order = random.permutation(FEATURES)
    used, others = order[:USED], order[USED : 2 * USED]
    common = np.zeros(FEATURES)
    common[used] = random.choice([-1.0, 1.0], USED) * random.uniform(0.4, 1.0, USED)
    old = np.tile(common, (OLD, 1))
    old[:, used] += 0.15 * random.standard_normal((OLD, USED))
    new = common.copy()
    new[used] += 0.15 * random.standard_normal(USED)
    if design == "same features":
        old[:, used] = random.choice([-1.0, 1.0], (OLD, USED)) * random.uniform(0.4, 1.0, (OLD, USED))
        new[used] = random.choice([-1.0, 1.0], USED) * random.uniform(0.4, 1.0, USED)
    elif design == "one old task":
        old[1:] = 0.0
        for t in range(1, OLD):
            own = random.permutation(FEATURES)[:USED]
            old[t, own] = random.choice([-1.0, 1.0], USED) * random.uniform(0.4, 1.0, USED)
        new = old[0].copy()
        new[used] += 0.1 * random.standard_normal(USED)
    elif design == "mean and two more":
        new[others[:2]] = 1.0
    elif design == "opposite":
        new = -new
    elif design in ("features of its own", "its own, large old effects"):
        old *= 3.0 if design == "its own, large old effects" else 1.0
        new = np.zeros(FEATURES)
        new[others] = random.choice([-1.0, 1.0], USED) * random.uniform(0.4, 1.0, USED)
    elif design == "old tasks are noise":
        old = np.zeros((OLD, FEATURES))
    return old, new


def draw(design: str, seed: int) -> dict[str, Any]:
    """What `fit_new_task` did, and the true risks."""
    random = np.random.default_rng([2024, (*HELPFUL, *HARMFUL).index(design), seed])
    old, new = coefficients(design, random)
    task = np.repeat(np.arange(OLD), OLD_ROWS)
    X = random.standard_normal((len(task), FEATURES))
    y = np.einsum("ij,ij->i", X, old[task]) + random.standard_normal(len(task))
    rows = random.standard_normal((NEW_ROWS, FEATURES))
    labels = rows @ new + random.standard_normal(NEW_ROWS)
    model = ts.MultiTaskLassoCV(**PATH).fit(X, y, task=task)
    found = model.fit_new_task(rows, labels, name="new")
    risks = [1.0 + float(np.sum((one["coef"] - new) ** 2)) + one["intercept"] ** 2 for one in found.tried]
    own = 1.0 + float(np.sum((found.coef_[0] - new) ** 2)) + float(found.intercept_[0]) ** 2
    return {"how": found.how, "alone": risks[0], "oracle": min(risks), "own": own, "said": found.gain,
            "gap": float(found.model.dual_gap_ / found.model.null_objective_)}  # fmt: skip


def main() -> None:
    parser = arguments(__doc__)
    add_arguments(parser, 100, "data sets of each design")
    parser.add_argument("--only", choices=(*HELPFUL, *HARMFUL), help="one design (default: all)")
    args = parser.parse_args()
    report = Report("transfer", args)
    warnings.simplefilter("ignore")
    rows: list[list[Any]] = []
    designs = [design for design in (*HELPFUL, *HARMFUL) if args.only in (None, design)]
    found_all = draws(report, args, lambda k: {design: draw(design, k) for design in designs})
    if found_all is None:  # lines are stored
        return
    pooled: dict[bool, list[bool]] = {False: [], True: []}
    for design in designs:
        found = [one[design] for one in found_all if design in one]
        if not found:
            continue
        alone = np.array([one["how"] == "alone" for one in found])
        gains = np.array([1.0 - one["oracle"] / one["alone"] for one in found])
        clear, harmful = gains > 0.1, design in HARMFUL
        counted = alone if harmful else ~alone[clear]
        bar = 0.95 if harmful else 0.9
        pooled[harmful] += counted.tolist()
        share = float(np.mean(counted)) if len(counted) else float("nan")
        hows = {
            how: sum(one["how"] == how for one in found) for how in ("alone", "weights", "offset", "distance")
        }
        rows.append([
            design, "harmful" if harmful else "helpful", f"{int(clear.sum())} of {len(found)}",
            f"{int(np.sum(counted))} of {len(counted)} {'alone' if harmful else 'with old tasks'}",
            ", ".join(f"{how} {count}" for how, count in hows.items() if count),
            *(f"{np.mean([one[name] for one in found]):.2f}" for name in ("alone", "own", "oracle")),
            f"{max(one['gap'] for one in found):.0e}",
        ])  # fmt: skip
        report.headline(f"{design}: {'alone' if harmful else 'old tasks used'}", f">= {bar:.0%}", f"{share:.0%}",
                        bool(share >= bar) if len(counted) else None)  # fmt: skip
    for harmful, words in (
        (False, "old tasks used where the oracle gains 10 %"),
        (True, "alone where they do harm"),
    ):
        if pooled[harmful]:
            share, bar = float(np.mean(pooled[harmful])), 0.95 if harmful else 0.9
            report.headline(f"all designs: {words}", f">= {bar:.0%}", f"{share:.1%} of {len(pooled[harmful])}",
                            share >= bar)  # fmt: skip
    report.table(
        f"A new task of {NEW_ROWS} rows, {len(found_all)} draws",
        ["design", "old tasks are", "oracle's gain above 10 %", "counted", "chosen", "risk alone", "risk", "oracle's",
         "largest relative gap"],
        rows,
        "Risk: the mean squared error of new rows, 1 being the noise. Counted: draws fitted alone where old tasks are "
        "harmful; where they are helpful, draws with a gain of the oracle above 10 % in which they were used.",
    )  # fmt: skip
    report.finish()


if __name__ == "__main__":
    main()
