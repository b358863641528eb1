"""Pretraining beside the package ptlasso, a joint model, a model of each task, and one for all rows. Simulated data.

    python benchmarks/pretraining.py [--draws 20] [--quick]

The cases are those that ptlasso generates: columns are independent and normal, some features matter in every group and
some in one group only. Its two examples at their defaults (2 groups of 50 rows, or of 100 for two classes; 5 common
features and 5 of each group, so 15 columns), the same with 5 groups, and the example that its authors publish for the
package in R: 5 groups of 200 rows, 120 columns, common effects of 3, 6, ..., 15 in the groups, effects of their own of
3, noise of standard deviation 20. Both programs have their defaults, 10 folds, and one thread. The error is that of
2,000 new rows of each group: the mean squared error less the noise's variance, or the log loss. Seconds are processor
time of the fit alone; ptlasso's has its models of each group and of all rows in it. Ctrl-C ends it with the draws that
are finished.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from _common import Report, arguments, library
from _parts import add_arguments, draws
from _peers import adelie_ready, ptlasso_fits

NEW_ROWS = 2_000  # of each group
NAMES = ("joint", "pretraining", "each alone", "pooled")
THEIRS = {"pretrain": "ptlasso", "individual": "ptlasso, each alone", "overall": "ptlasso, pooled"}

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Case:
    """What is simulated: effects of common features by group, and of those of one group."""

    name: str
    rows: int
    common: tuple[float, ...]
    own: float
    features: int = 5  # that are common, and of each group
    noisy: int = 0  # columns that matter nowhere
    noise: float = 1.0
    classes: bool = False

    @property
    def groups(self) -> int:
        return len(self.common)

    def coefficients(self) -> Array:
        s, T = self.features, self.groups
        found = np.zeros((T, s * (T + 1) + self.noisy))
        for t, effect in enumerate(self.common):
            found[t, :s], found[t, s * (t + 1) : s * (t + 2)] = effect, self.own
        return found

    def draw(self, rows: int, random: np.random.Generator) -> tuple[Array, Array, Array]:
        coef, group = self.coefficients(), np.repeat(np.arange(self.groups), rows)
        X = random.standard_normal((len(group), coef.shape[1]))
        z = np.einsum("ij,ij->i", X, coef[group])
        if self.classes:
            return X, (random.random(len(z)) < 1.0 / (1.0 + np.exp(-z))).astype(float), group
        return X, z + self.noise * random.standard_normal(len(z)), group

    def error(self, y: Array, found: Array) -> float:
        """Groups have equally many new rows: the mean over rows is that over groups."""
        if self.classes:
            p = np.clip(found, 1e-12, 1.0 - 1e-12)
            return float(-np.mean(np.where(y > 0.5, np.log(p), np.log1p(-p))))
        return float(np.mean((y - found) ** 2)) - self.noise**2


CASES = (
    Case("numbers, 2 groups", 50, (1.0,) * 2, 0.5),
    Case("numbers, 5 groups", 50, (1.0,) * 5, 0.5),
    Case("two classes, 2 groups", 100, (0.5,) * 2, 0.3, classes=True),
    Case("two classes, 5 groups", 100, (0.5,) * 5, 0.3, classes=True),
    Case("published example", 200, (3.0, 6.0, 9.0, 12.0, 15.0), 3.0, features=10, noisy=60, noise=20.0),
)


def ours(
    case: Case, X: Array, y: Array, group: Array, new: Array, new_group: Array
) -> dict[str, tuple[Array, float]]:
    """Predictions and processor seconds of our models."""
    ts = library()
    assert ts is not None
    kind = ts.MultiTaskLogisticRegressionCV if case.classes else ts.MultiTaskLassoCV

    def predicted(model: Any, new: Array, task: Array | None = None) -> Array:
        return np.asarray(model.predict_proba(new, task=task)[:, 1] if case.classes else model.predict(new, task=task))

    found, start = {}, time.process_time()

    def keep(name: str, values: Array) -> None:
        nonlocal start
        found[name] = (values, time.process_time() - start)
        start = time.process_time()

    plain = {"cv": 10, "n_jobs": 1}
    keep("joint", predicted(kind(**plain).fit(X, y, task=group), new, new_group))
    keep("pretraining", predicted(ts.Pretraining(kind(**plain)).fit(X, y, task=group), new, new_group))
    alone = np.empty(len(new))
    for t in range(case.groups):
        alone[new_group == t] = predicted(
            kind(**plain).fit(X[group == t], y[group == t]), new[new_group == t]
        )
    keep("each alone", alone)
    keep("pooled", predicted(kind(**plain).fit(X, y), new))
    return found


def one_draw(cases: Sequence[Case], seed: int, i: int) -> dict[str, list[dict[str, float]]]:
    """Of each case the errors and the processor seconds of all models."""
    found, data = {}, []
    for case in cases:
        random = np.random.default_rng([seed, CASES.index(case), i])
        (X, y, group), (new, truth, new_group) = case.draw(case.rows, random), case.draw(NEW_ROWS, random)
        answers = ours(case, X, y, group, new, new_group)
        found[case.name] = [
            {name: case.error(truth, values) for name, (values, _) in answers.items()},
            {name: spent for name, (_, spent) in answers.items()},
        ]  # fmt: skip
        data.append({"X": X, "y": y, "groups": group, "new": new, "new_groups": new_group, "truth": truth,
                     "family": "binomial" if case.classes else "gaussian"})  # fmt: skip
    for case, one, given, (errors, seconds) in zip(
        cases, ptlasso_fits(data, None, 1), data, found.values(), strict=True
    ):
        errors |= {name: case.error(given["truth"], one[key]) for key, name in THEIRS.items()}
        seconds["ptlasso"] = float(one["processor"])
    return found


def main() -> None:
    parser = arguments(__doc__)
    add_arguments(parser, 20, "data sets of each case")
    parser.add_argument(
        "--only", nargs="*", choices=[case.name for case in CASES], help="some cases (default: all)"
    )
    args = parser.parse_args()
    report = Report("pretraining", args)
    if not args.stored and (library() is None or (args.quick and not adelie_ready())):
        report.finish()
        return
    warnings.simplefilter("ignore")
    chosen = [case for case in CASES if not args.only or case.name in args.only]
    cases, rows = chosen[:1] if args.quick else chosen, []
    found = draws(report, args, lambda i: one_draw(cases, args.seed, i))
    if found is None:  # lines are stored
        return
    for case in cases:
        own = [one[case.name] for one in found if case.name in one]
        if len(own) < 2:  # nothing to say of their spread
            continue
        errors, seconds = (
            {name: [one[part][name] for one in own] for name in own[0][part]} for part in (0, 1)
        )
        means = {name: float(np.mean(values)) for name, values in errors.items()}
        best = min(means, key=means.__getitem__)
        differences = np.subtract(errors["pretraining"], errors["ptlasso"])
        error = float(np.std(differences, ddof=1) / np.sqrt(len(own)))
        mean = float(np.mean(differences))
        rows.append([
            case.name, len(own),
            *(f"**{value:.3g}**" if name == best else f"{value:.3g}" for name, value in means.items()),
            f"{mean:+.2g} ± {error:.1g}",
            *(f"{np.median(seconds[name]):.2f}" for name in ("joint", "pretraining", "ptlasso")),
        ])  # fmt: skip
        report.headline(f"{case.name}: error of pretraining at most ptlasso's, within 2 standard errors",
                        f"0 + {2 * error:.1g}", f"{mean:+.2g}", mean <= 2.0 * error)  # fmt: skip
        joint = np.subtract(errors["joint"], errors["ptlasso"])
        error = float(np.std(joint, ddof=1) / np.sqrt(len(own)))
        report.headline(f"{case.name}: error of the joint model at most ptlasso's, within 2 standard errors",
                        f"0 + {2 * error:.1g}", f"{np.mean(joint):+.2g}",
                        bool(np.mean(joint) <= 2.0 * error))  # fmt: skip
    report.table(
        "Errors on new rows, means over data sets",
        ["case", "data sets", *NAMES, *THEIRS.values(), "pretraining less ptlasso",
         "joint s", "pretraining s", "ptlasso s"],
        rows,
        "Mean squared error less that of the noise; log loss of two classes. Bold: the smallest. Differences are "
        "paired, ± one standard error. Seconds are medians of processor time, one thread.",
    )  # fmt: skip
    report.finish()


if __name__ == "__main__":
    main()
