"""Tables of three sites, and the sites that have agreed to a plan."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from tasksieve.federated.keys import PrivateKeys
from tasksieve.federated.plan import Plan
from tasksieve.federated.policy import Rules
from tasksieve.federated.site import Site
from tasksieve.federated.transport import InProcess

NAMES = ("north", "south", "west")
FEATURES = [f"x{j}" for j in range(12)]


class Tables:
    """Rows of three sites, of which "west" has two tasks where that is asked for; `spread`: columns of unlike sizes,
    and of means that differ between sites."""

    def __init__(self, loss: str = "squared", several: bool = False, n: int = 30, spread: bool = False) -> None:
        rng = np.random.default_rng(7)
        self.X, self.y, self.task, self.age = {}, {}, {}, {}
        for name in NAMES:
            rows = 2 * n if several and name == "west" else n
            X, age = rng.standard_normal((rows, len(FEATURES))), rng.normal(50.0, 10.0, rows)
            z = X[:, :3] @ rng.normal(1.0, 0.3, 3) + 0.02 * age + 0.5 * rng.standard_normal(rows)
            labels = {"logistic": (z > 1.0).astype(float), "poisson": rng.poisson(np.exp(0.3 * z)).astype(float)}
            if spread:
                X = (X + rng.normal(size=len(FEATURES))) * np.geomspace(1e-3, 1e3, len(FEATURES))
            self.X[name], self.age[name], self.y[name] = X, age, labels.get(loss, z)
            own = np.repeat([f"{name}-{k}" for k in range(rows // n)], n) if rows > n else np.full(rows, name)
            self.task[name] = own

    def write(self, folder: Path) -> dict[str, Path]:
        found = {}
        for name in NAMES:
            columns = {f: self.X[name][:, j] for j, f in enumerate(FEATURES)}
            columns |= {"age": self.age[name], "y": self.y[name], "task": self.task[name]}
            order = sorted(columns, reverse=name == "south")  # each site has its own order of columns
            rows = zip(*(columns[c] for c in order), strict=True)
            lines = [",".join(order), *(",".join(map(str, row)) for row in rows)]
            found[name] = folder / f"{name}.csv"
            found[name].write_text("\n".join(lines) + "\n")
        return found

    def pooled(self, covariates: bool) -> tuple[Any, Any, Any]:
        X = np.vstack([np.column_stack([self.X[n], self.age[n]]) if covariates else self.X[n] for n in NAMES])
        return X, np.concatenate([self.y[n] for n in NAMES]), np.concatenate([self.task[n] for n in NAMES])


def make(folder: Path, tables: Tables, several: bool = False, rules: Rules | None = None, **given: Any) -> Any:
    """(plan, keys of the coordinator, sites that have agreed)."""
    sites = {}
    for name, path in tables.write(folder).items():
        settings = {"table": str(path), "target": "y", **({"task": "task"} if several else {})}
        sites[name] = Site.create(folder / name, name, settings, rules)
    keys = PrivateKeys.create()
    plan = Plan(
        "test", {name: site.public_line() for name, site in sites.items()}, FEATURES, keys.public().line(),
        n_tasks={"west": 2} if several else {}, **{"n_alphas": 8, "eps": 0.1, **given},
    )  # fmt: skip
    for site in sites.values():
        site.agree(plan)
    return plan, keys, sites


def transport(sites: dict[str, Site]) -> InProcess:
    return InProcess({name: site.node().reply for name, site in sites.items()})
