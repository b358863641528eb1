"""Do debiased intervals hold their level? Simulated data, where the truth is known; and how long do they take?

    python benchmarks/intervals.py
    python benchmarks/intervals.py --only coverage --draws 50 --hours 1
    python benchmarks/intervals.py --only speed
    python benchmarks/intervals.py --part 3/12 --store part3.jsonl    # every twelfth data set, from the third on
    python benchmarks/intervals.py --from part*.jsonl                 # the table of what was stored

Coverage: how often 95 % intervals of `ts.debiased_inference` hold the true coefficient, of features that matter and of
those that do not, apart; of features that the model selected; their length beside that of `ts.split_inference`. Models
choose alpha by cross-validation. Of numbers stands beside it what the same data do to intervals that know the noise:
the noise of the same debiased estimate, plus and minus 1.96 of its true standard errors, holds 0 in exactly 95 % of all
data sets. How far a run is from that is luck of its draws (which all designs share: those of one number come from the
same random numbers), and is taken from the coverage by regression, as a control variate: what is left is as unbiased,
and knows the coverage more precisely.

The designs were fixed before the first run. The theory (van de Geer et al. 2014) asks for clearly fewer true features
than sqrt(n) / log d, and for a sparse inverse covariance: the designs of the first kind have two true features and
independent or neighbouring features, the harder ones break one of that each.

Speed: all features of 20 tasks x 50 rows x 5,000 features.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from _common import Report, arguments, say, versions
from scipy.special import expit
from scipy.stats import norm

import tasksieve as ts
from tasksieve.findings.nodewise import NodewiseTask

LEVEL = 0.95
OTHERS = (
    28  # features of a data set that do not matter and get intervals: more sets say more than more features
)
PATH = {"n_alphas": 20, "eps": 0.05, "cv": 5, "n_jobs": 1}


@dataclass(frozen=True)
class Setting:
    """Rows of tasks whose features are related as neighbours of a series are; `n_true` of them matter in all tasks, by
    +-`strength`."""

    name: str
    theory: bool
    n_tasks: int = 5
    n_rows: int = 200
    n_features: int = 100
    n_true: int = 2
    strength: float = 0.5
    related: float = 0.0
    unequal: bool = False  # noise that is larger where the first feature is
    classes: bool = False


SETTINGS = (
    Setting("independent features", True),
    Setting("neighbours correlated by 1/2", True, related=0.5),
    Setting("errors of unequal variance", True, unequal=True),
    Setting("more features than rows", True, n_features=400),
    Setting("two classes", True, n_rows=400, n_features=50, strength=0.7, classes=True),
    Setting("neighbours correlated by 0.9", False, related=0.9),
    Setting("20 true features", False, n_true=20),
    Setting(
        "50 rows, 500 features, 5 true", False, n_tasks=10, n_rows=50, n_features=500, n_true=5, strength=1.0
    ),
    Setting("two classes, 100 rows", False, n_rows=100, n_features=100, strength=1.0, classes=True),
)


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--only", choices=["coverage", "speed"])
    parser.add_argument("--draws", type=int, default=None, help="data sets of each design (200 by default)")
    parser.add_argument(
        "--hours", type=float, default=4.0, help="for the coverage: fewer data sets if it takes longer"
    )
    parser.add_argument(
        "--part", type=part, default=(1, 1), help="k/n: every n-th data set, from the k-th on"
    )
    parser.add_argument(
        "--store", type=Path, help="results as lines of JSON, and no table; goes on where it ended"
    )
    parser.add_argument(
        "--from", dest="stored", nargs="+", type=Path, help="no run, the table of stored results"
    )
    args = parser.parse_args()
    if args.store:
        store(args.store, chosen_draws(args), args.hours, args.seed)
        return
    report = Report("intervals", args)
    if args.stored:
        table(report, stored(report, args.stored))
    elif args.only != "speed":
        found = []
        for result in results(chosen_draws(args), args.hours, args.seed, set()):
            found.append(result)
            report.raw(**result)
        table(report, found)
    if args.only != "coverage" and not args.stored:
        speed(report, 200 if args.quick else 5000, args.seed)
    report.finish()


def part(text: str) -> tuple[int, int]:
    k, n = (int(each) for each in text.split("/"))
    if not 1 <= k <= n:
        raise argparse.ArgumentTypeError(f"{text}: k/n with k from 1 to n")
    return k, n


def chosen_draws(args: argparse.Namespace) -> range:
    k, n = args.part
    return range(k - 1, args.draws or (2 if args.quick else 200), n)


def draw(setting: Setting, seed: list[int]) -> tuple[Any, Any, Any, Any]:
    """X, y, task and the coefficients (tasks, features)."""
    rng = np.random.default_rng(seed)
    n, d = setting.n_tasks * setting.n_rows, setting.n_features
    X = rng.standard_normal((n, d))
    for j in range(1, d):
        X[:, j] = setting.related * X[:, j - 1] + np.sqrt(1.0 - setting.related**2) * X[:, j]
    task = np.repeat(np.arange(setting.n_tasks), setting.n_rows)
    coef = np.zeros((setting.n_tasks, d))
    true = rng.permutation(d)[: setting.n_true]
    coef[:, true] = setting.strength * rng.choice([-1.0, 1.0], (setting.n_tasks, setting.n_true))
    z = np.einsum("ij,ij->i", X, coef[task])
    if setting.classes:
        return X, (rng.random(n) < expit(z)).astype(int), task, coef
    return X, z + deviations(setting, X) * rng.standard_normal(n), task, coef


def deviations(setting: Setting, X: Any) -> Any:
    """Standard deviations of the noise."""
    return 0.5 + 0.7 * np.abs(X[:, 0]) if setting.unequal else np.ones(len(X))


def known_noise(setting: Setting, X: Any, y: Any, task: Any, coef: Any, features: Any) -> Any:
    """Whether intervals that know the noise hold the truth (features, tasks): normal, of known variance, and exact."""
    inside = np.empty((len(features), setting.n_tasks), dtype=bool)
    noise, sizes = y - np.einsum("ij,ij->i", X, coef[task]), deviations(setting, X)
    for t in range(setting.n_tasks):
        own, ones = task == t, np.ones(setting.n_rows)
        a = NodewiseTask(X[own], ones, ones, fit_intercept=True).rows(features, None)[0]
        inside[:, t] = np.abs(a @ noise[own]) <= norm.isf(0.5 - 0.5 * LEVEL) * np.linalg.norm(a * sizes[own], axis=1)
    return inside.ravel()


def results(draws: range, hours: float, seed: int, done: set[tuple[str, int]]) -> Iterator[dict[str, Any]]:
    """What each data set says, and what it has cost."""
    began = time.perf_counter()
    for count, k in enumerate(draws):
        if count and (time.perf_counter() - began) * (count + 1) / count > 3600.0 * hours:
            break
        for setting in SETTINGS:  # one of each: a run that ends early has judged all alike
            if (setting.name, k) not in done:
                work = time.process_time()
                values = one(setting, k, seed)
                seconds = round(time.process_time() - work, 2)
                yield {"setting": setting.name, "draw": k, "processor_seconds": seconds, **values}
        say(count + 1, "data sets of each design,", round(time.process_time()), "processor seconds")


def store(file: Path, draws: range, hours: float, seed: int) -> None:
    """Results line by line: the first says what they are results of, and only such are added."""
    head = {"versions": versions(), "seed": seed}
    done = set()
    if file.exists():
        first, *lines = read_lines(file)
        if first != head:
            raise SystemExit(f"{file}: results of {first}, not of {head}")
        done = {(each["setting"], each["draw"]) for each in lines}
    with file.open("a") as lines_out:
        if not done:
            lines_out.write(json.dumps(head) + "\n")
        for result in results(draws, hours, seed, done):
            lines_out.write(json.dumps(result) + "\n")
            lines_out.flush()


def stored(report: Report, files: list[Path]) -> list[dict[str, Any]]:
    """Results of the same versions and the same seed, every data set once; parts may have been joined to one file."""
    lines = [line for file in files for line in read_lines(file)]
    heads = [line for line in lines if "versions" in line]
    if any(head != heads[0] for head in heads):
        raise SystemExit(f"results of different versions or seeds: {heads}")
    found = {(each["setting"], each["draw"]): each for each in lines if "versions" not in each}
    report.content |= {"versions": heads[0]["versions"], "raw": list(found.values())}
    return list(found.values())


def read_lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def table(report: Report, found: list[dict[str, Any]]) -> None:
    rows = []
    for setting in SETTINGS:
        own = [each for each in found if each["setting"] == setting.name]
        shares = {
            name: held([each[name] for each in own]) for name in ("false", "true", "selected", "by chance")
        }
        known = {name: held([each[f"{name}, known noise"] for each in own]) for name in ("false", "true")}
        fair = {
            name: held([each[name] for each in own], [each[f"{name}, known noise"] for each in own])
            for name in ("false", "true")
        }
        verdicts = [f"{each['false'].level}, {each['true'].level}" for each in (shares, fair)]
        lengths, tolerated = ([each[name] for each in own] for name in ("length", "tolerated"))
        wide = mean_known(lengths) / mean_known([each["split"] for each in own])
        rows.append(
            [
                setting.name,
                "yes" if setting.theory else "no",
                f"{setting.n_tasks} x {setting.n_rows} x {setting.n_features}",
                setting.n_true,
                *(each.words for each in shares.values()),
                verdicts[0],
                *(each.words for each in known.values()),
                *(each.words for each in fair.values()),
                verdicts[1],
                held([each["holm"] for each in own]).words,
                f"{np.mean([each['without'] for each in own]):.0%}",
                f"{mean_known(lengths):.2f}",
                f"{wide:.2f}",
                f"{mean_known(tolerated):.2f}",
            ]
        )
    counts = sorted({sum(each["setting"] == setting.name for each in found) for setting in SETTINGS})
    counted = " to ".join(str(count) for count in counts[:: max(len(counts) - 1, 1)])
    seconds = sum(each["processor_seconds"] for each in found)
    report.table(
        f"{LEVEL:.0%} debiased intervals: share that hold the truth",
        ["design", "theory applies", "tasks x rows x features", "true", "features that do not matter",
         "features that do", "selected features", "selected, do not matter",
         f"the first two within two errors of {LEVEL}",
         "known noise, do not matter", "known noise, do", "without that luck, do not matter",
         "without that luck, do", f"these two within two errors of {LEVEL}",
         "data sets with a false feature (Holm, 0.05)", "no interval", "length",
         "length / that of splitting", "tolerated L1 error"],
        rows,
        f"{counted} data sets of each design, {seconds:,.0f} processor seconds; alpha by cross-validation; intervals "
        f"of all features that matter and of {OTHERS} drawn from the others; ± one standard error between data sets. "
        "Lengths are of features that matter, tolerated errors medians.",
    )  # fmt: skip


def one(setting: Setting, k: int, seed: int) -> dict[str, float]:
    """What the k-th data set says: shares of intervals that hold the truth, lengths; NaN where there are none."""
    kind: Any = ts.MultiTaskLogisticRegressionCV if setting.classes else ts.MultiTaskLassoCV
    X, y, task, coef = draw(setting, [seed, k])
    model = kind(**PATH).fit(X, y, task=task)
    others = np.random.default_rng([seed, k, 1]).permutation(np.flatnonzero(~coef.any(axis=0)))[:OTHERS]
    features = np.sort(np.concatenate([np.flatnonzero(coef.any(axis=0)), others]))
    found = ts.debiased_inference(model, X, y, task=task, features=features, level=LEVEL)
    truth = coef[found.task, found.feature]
    hit, matters = (found.lower <= truth) & (truth <= found.upper), truth != 0.0
    selected = np.isin(found.feature, model.get_support(indices=True))
    known = np.isfinite(found.std_error)  # a task whose rows are used up by the model has none
    shares = {"false": ~matters, "true": matters, "selected": selected, "by chance": selected & ~matters}
    luck = np.full(len(hit), np.nan) if setting.classes else known_noise(setting, X, y, task, coef, features)
    half = ts.split_inference(kind(**PATH), X, y, task=task, level=LEVEL, random_state=k, small_tasks="drop")
    own = coef[half.task, half.feature] != 0.0 if len(half) else np.zeros(0, dtype=bool)
    lengths = (half.upper - half.lower)[own]
    return {
        **{
            name: float(np.mean(hit[which & known])) if np.any(which & known) else np.nan
            for name, which in shares.items()
        },
        **{f"{name}, known noise": float(np.mean(luck[shares[name]])) for name in ("false", "true")},
        "without": float(np.mean(~known)),
        "holm": float(np.any(found.row_holm[~matters] <= 0.05)),
        "length": mean_known((found.upper - found.lower)[matters]),
        "split": mean_known(lengths),
        "tolerated": float(np.median(found.tolerated_error[known])) if known.any() else np.nan,
    }


def mean_known(values: Any) -> float:
    return float(np.nanmean(values)) if np.any(np.isfinite(values)) else np.nan


class Held(NamedTuple):
    """A mean over data sets."""

    words: str
    level: str


def held(found: list[float], control: list[float] | None = None) -> Held:
    """Of shares of data sets; with a control, shares whose expectation is the level, their luck is taken away."""
    known = np.array([each for each in found if np.isfinite(each)])
    if control is not None:
        both = np.array([pair for pair in zip(found, control, strict=True) if np.all(np.isfinite(pair))])
        slope = np.cov(both.T)[0, 1] / np.var(both[:, 1], ddof=1) if len(both) > 2 and np.ptp(both[:, 1]) else 0.0
        known = both[:, 0] - slope * (both[:, 1] - LEVEL) if len(both) else both
    if not len(known):
        return Held("-", "-")
    error = np.std(known, ddof=1) / np.sqrt(len(known)) if len(known) > 1 else np.nan
    mean = float(np.mean(known))
    inside = abs(mean - LEVEL) <= 2.0 * error
    return Held(f"{mean:.3f} ± {error:.3f}", "yes" if inside else "above" if mean > LEVEL else "below")


def speed(report: Report, n_features: int, seed: int) -> None:
    setting = Setting("speed", False, 20, 50, n_features, 10, 0.5)
    X, y, task, _ = draw(setting, [seed])
    alpha = 0.7 * ts.MultiTaskLasso().alpha_max(X, y, task=task)  # few features: each task has residuals left
    model = ts.MultiTaskLasso(alpha).fit(X, y, task=task)
    say("all of", n_features, "features in 20 tasks")
    began, work = time.perf_counter(), time.process_time()
    found = ts.debiased_inference(model, X, y, task=task, features="all")
    seconds, work = time.perf_counter() - began, time.process_time() - work
    rows = [[f"20 x 50 x {n_features:,}", len(found), f"{seconds:.1f}", f"{work:.1f}"]]
    report.table(
        "All features of all tasks",
        ["tasks x rows x features", "coefficients", "seconds", "processor seconds"],
        rows,
    )
    report.headline(
        "20 x 50 x 5,000, all features", "60 s on two cores", f"{seconds:.0f} s",
        seconds <= 60.0 if n_features == 5000 else None,
    )  # fmt: skip


if __name__ == "__main__":
    main()
