"""Pooled standardisation: standard deviations of columns over the rows of all sites, from sums.

One question brings the weight of all rows, and sums and sums of squares of all columns in a unit that is common to
them. Where that leaves a variance with too few digits (a column that is small beside others, or whose mean is large
beside its deviation) the column is asked about once more: about its mean, and in a unit of its own.
"""

from __future__ import annotations

import numpy as np

from .answer import Answer
from .errors import FederatedError
from .packing import Array
from .question import Question
from .sums import Summing
from .units import exponent

_ACCURATE = 2.0**-34  # relative error of a variance
_ADDED = 2.0**-46  # what rounding may do to a sum of squares at a site
_CONSTANT = 2.0**-46  # a deviation of less than this part of the mean is rounding
_ROOT_WEIGHT = 12  # exponent of the root of the weight of rows, before it is known
_MOST_TRIES = 8


class _Moments:
    """Means and variances of some columns, and by how much variances may be wrong."""

    def __init__(self, features: Array) -> None:
        self.features = features
        self.mean, self.variance = np.zeros(len(features)), np.zeros(len(features))
        self.error = np.full(len(features), np.inf)
        self.weight = 0.0

    def take(self, places: Array, about: Array, answer: Answer, roots: Array) -> None:
        """Take the answer about the columns at some places, in units of 2 to the power of `roots`."""
        assert answer.first is not None and answer.second is not None
        if not answer.weight > 0.0:
            raise FederatedError("answer", "the rows of all sites together have no weight")
        weight = self.weight = answer.weight
        powers = roots.astype(np.int64)
        first, second = answer.first / weight, np.maximum(answer.second, 0.0) / weight
        off_first = np.ldexp(answer.sum_slack, powers) / weight
        off_second = np.ldexp(answer.slack, 2 * powers) / weight
        error = off_second + off_first * (2.0 * np.abs(first) + off_first) + _ADDED * second
        same = answer.second == 0.0  # of squares that are rounded up: all rows have this number
        self.mean[places] = np.where(same, about, about + first)
        self.variance[places] = np.where(same, 0.0, np.maximum(second - first * first, 0.0))
        self.error[places] = np.where(same, 0.0, error)

    @property
    def constant(self) -> Array:
        """Columns that do not vary: what is left of them is rounding."""
        return self.variance + self.error <= np.square(_CONSTANT * self.mean)

    def unsure(self) -> Array:
        """Places of the columns whose variance is not known well enough."""
        return np.flatnonzero((self.error > _ACCURATE * self.variance) & ~self.constant)


def find_scales(sites: Summing, features: Array, *, centred: bool) -> Array:
    """Ask all sites, and name what they divide their columns by from now on (`Summing.scales`).

    - `features`: Those that are penalised; others are divided by 1, and so are columns that do not vary.
    - `centred`: Whether models have intercepts: the length of a column is then that about its mean.
    """
    sizes = sites.first()
    found = _Moments(features)
    rest, roots = np.arange(len(features)), np.full(len(features), sizes.norm)
    root_weight = _ROOT_WEIGHT
    for _ in range(_MOST_TRIES):
        about = found.mean[rest]
        question = Question(features=features[rest], s=about, hessian=False, kind="moments")
        (answer,) = sites.ask([question], [sizes.of_moments(roots, root_weight)])
        found.take(rest, about, answer, roots)
        rest = found.unsure()
        if not len(rest):
            break
        # no site's squares about the mean are more than those of all sites
        roots = exponent(np.sqrt(found.weight * (found.variance[rest] + found.error[rest])))
        root_weight = int(exponent(np.sqrt(found.weight)))
    deviation = np.sqrt(np.where(found.constant, 0.0, found.variance))
    scales = np.ones(sites.n_features)
    scales[features] = own = np.where(deviation > 0.0, deviation, 1.0)
    about_zero = 0.0 if centred else np.square(found.mean)
    longest = np.sqrt(found.weight * float(np.max((found.variance + found.error + about_zero) / np.square(own))))
    sites.finish_scales(scales, int(exponent(longest * (1.0 + 1e-9))))
    return scales
