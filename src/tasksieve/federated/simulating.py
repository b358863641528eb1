"""A federated fit of arrays in one process, to see what it would give and take."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from .errors import FederatedError
from .fitted import FederatedFit
from .fitting import FitUnderWay, RoundProgress
from .in_memory import SitesInMemory
from .plan import Plan
from .site_rows import SiteRows


def simulate(
    plan: Plan,
    rows: Mapping[str, Sequence[Any]],
    *,
    progress: Callable[[RoundProgress], Any] | None = None,
) -> FederatedFit:
    r"""Fit a plan to arrays of this process, by the questions and answers that would go between sites.

    .. math::

        \min_{W, b}\ \frac{1}{\bar n} \sum_t \sum_i s_i f(y_i, x_i \cdot w_t + b_t)
        + \alpha \sum_j u_j \bigl(\lVert W_j \rVert_2 + \rho \lVert W_j \rVert_1\bigr)
        + \frac{\text{ridge}}{2} \lVert W \rVert_F^2

    Nothing is masked or signed, and no rule of a site refuses anything: it is for trying a plan, with its rounds and
    bytes, before sites are asked. Sums, gaps and selected features are the same as with masks.

    Parameters
    ----------
    plan : Plan
        Its keys may be "...".
    rows : dict of str to (X, y), (X, y, task) or (X, y, task, sample_weight, offset)
        Of each site: arguments of an estimator's ``fit``; columns of X are ``plan.columns``.
    progress : callable, optional
        Called with a `RoundProgress` after every round.

    Returns
    -------
    FederatedFit
        Without a statement, since nobody has signed one. ``bytes_up`` and ``bytes_down`` are those of numbers alone:
        signatures and headers come on top.

    See Also
    --------
    fit : between sites.

    Examples
    --------
    >>> import numpy as np
    >>> import tasksieve as ts
    >>> rng, rows = np.random.default_rng(0), {}
    >>> for name in ("north", "south", "west"):
    ...     X = rng.standard_normal((40, 6))
    ...     rows[name] = X, X[:, 0] - X[:, 1] + 0.1 * rng.standard_normal(40)
    >>> plan = ts.federated.Plan("Try it", dict.fromkeys(rows, "..."), list("abcdef"), n_alphas=5, eps=0.1)
    >>> found = ts.federated.simulate(plan, rows)
    >>> [found.columns[j] for j in found.features(4)], bool(found.converged.all())
    (['a', 'b'], True)
    """
    if set(rows) != set(plan.sites):
        raise FederatedError("plan", f"the plan has the sites {plan.names}, and there are rows of {sorted(rows)}")
    sites = []
    for name in plan.names:
        X, y, task, *more = [*rows[name], None][: max(len(rows[name]), 3)]
        own = SiteRows(plan.at(name), X, y, np.full(len(y), name) if task is None else np.asarray(task), *more)
        agreed = {"columns": plan.n_features, "tasks": plan.n_tasks.get(name, 1)}
        here = {"columns": X.shape[1], "tasks": len(np.unique(own.task))}
        for noun, number in agreed.items():
            if here[noun] != number:
                raise FederatedError("plan", f"the plan has {number} {noun} at {name}, and its rows {here[noun]}")
        sites.append(own.local())
    return FitUnderWay(plan, SitesInMemory(sites), progress).run()
