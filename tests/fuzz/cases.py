"""Nasty problems, from a seed and a number: which estimator, which trouble, which form of the data."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from exact_numbers import Wide, wide

from .descend import alpha_max
from .evaluate import Plain, deviations, oscar, slope

Array = np.ndarray[Any, Any]

REGRESSION = (
    "plain",
    "offset",
    "columns",
    "free",
    "weights",
    "one_row",
    "units",
    "degenerate",
    "starved",
    "all",
)
CLASSES = (
    "plain",
    "columns",
    "free",
    "weights",
    "separated",
    "one_class",
    "units",
    "degenerate",
    "starved",
    "all",
)
NO_FREE = tuple(kind for kind in REGRESSION if kind != "free")
GRAPH = ("plain", "offset", "columns", "weights", "one_row", "degenerate", "starved", "units", "extreme")

#: estimators, and the troubles that each can be given
KINDS: dict[str, tuple[str, ...]] = {
    "lasso": (*REGRESSION, "extreme"),
    "elastic_net": REGRESSION,
    "sparse_group": REGRESSION,
    "l1": REGRESSION,
    "logistic": (*CLASSES, "extreme"),
    "sparse_group_logistic": CLASSES,
    "calibrated": REGRESSION,
    "owl": NO_FREE,
    "multinomial_owl": ("plain", "columns", "weights", "units", "degenerate", "starved", "all"),
    "regressor": REGRESSION,
    "graph_svc": GRAPH,
    "graph_svr": GRAPH,
}
NAMES = tuple(KINDS)
STORAGES = (
    "C", "F", "float32", "int8", "CSR", "CSC", "C map", "F map", "list", "shared", "frame", "own", "unsorted",
)  # fmt: skip
CLASSIFIERS = ("logistic", "sparse_group_logistic", "graph_svc")
RANKED = ("owl", "multinomial_owl")


@dataclass
class Case:
    """One call of `fit` or `path`, in plain numbers.

    Attributes
    ----------
    x, y, s : lists of arrays, one for each task
        As they are given: weights may be 0, labels NaN (not observed). Multinomial: one task.
    params : dict
        Of the estimator, without alpha, tol, max_iter.
    alpha : float
        Machines on a graph: C.
    path : tuple of float
        Strengths, where a whole path is asked for.
    may_refuse : bool
        Numbers that an estimator may refuse, with a ValueError that names an argument.
    """

    seed: int
    number: int
    name: str
    kind: str
    storage: str
    x: list[Array]
    y: list[Array]
    s: list[Array] | None
    params: dict[str, Any]
    alpha: float = 1.0
    tol: float = 1e-6
    max_iter: int = 2_000  # enough for such sizes; who needs more must warn
    path: tuple[float, ...] = ()
    may_refuse: bool = False
    labels: list[Any] = field(default_factory=list)

    @property
    def call(self) -> str:
        return f"python -m tests.fuzz --seed {self.seed} --case {self.number}"

    def __str__(self) -> str:
        shapes = " ".join(f"{len(x)}x{x.shape[1]}" for x in self.x)
        words = [
            f"{self.name} | {self.kind} | {self.storage} | {shapes} | alpha={self.alpha!r} tol={self.tol:g}"
        ]
        words += [f"{key}={_short(value)}" for key, value in self.params.items()]
        return " ".join(words)

    def plain(self, alpha: float) -> Plain:
        """The problem in numbers."""
        return _plain(self, alpha)


def _short(value: Any) -> str:
    return np.array2string(value, precision=3, threshold=6) if isinstance(value, np.ndarray) else repr(value)


def schedule(number: int) -> tuple[str, str, str]:
    """Estimator, trouble, form: estimators take turns; for each so do troubles, and against these the forms."""
    name = NAMES[number % len(NAMES)]
    turn = number // len(NAMES)
    kinds = KINDS[name]
    kind = kinds[turn % len(kinds)]
    storage = STORAGES[(turn + turn // len(kinds)) % len(STORAGES)]
    if name.startswith("graph"):
        storage = storage if storage not in ("own", "F map") else "C"
    if name == "multinomial_owl" and storage in ("list", "shared"):
        storage = "C"
    return name, kind, storage


def make_case(seed: int, number: int) -> Case:
    """The case of a number, the same every time."""
    name, kind, storage = schedule(number)
    rng = np.random.default_rng([seed, number])
    case = _Maker(rng, name, kind, storage).case(seed, number)
    case.alpha = _alpha(rng, case)
    if kind == "extreme" and rng.random() < 0.4:
        case.alpha = float(rng.choice([1e-160, 1e-300, 1e300, case.alpha * 1e-30]))
    if kind != "extreme" and rng.random() < 0.15:
        # towards less of the penalty: of machines on a graph C grows
        factors = (0.3, 0.6, 1.0) if name.startswith("graph") else (1.0, 0.6, 0.3)
        case.path = tuple(case.alpha * f for f in factors)
    return case


def _alpha(rng: np.random.Generator, case: Case) -> float:
    if case.name.startswith("graph"):
        return float(10 ** rng.uniform(-2, 1))
    plain = case.plain(1.0)
    if case.kind in (
        "separated",
        "one_class",
    ):  # nothing is left to explain where unpenalised columns separate
        plain = replace(plain, group=plain.group + (plain.free & (plain.ranks is None)), fit_intercept=False)
    top = alpha_max(plain)
    ratio = 1.0 if rng.random() < 0.15 else 10 ** rng.uniform(-2, -0.02)
    alpha = float(top * Wide(ratio))
    return alpha if 1e-280 < alpha < 1e280 else 1.0


class _Maker:
    def __init__(self, rng: np.random.Generator, name: str, kind: str, storage: str) -> None:
        self.rng, self.name, self.kind, self.storage = rng, name, kind, storage
        self.classes = name in CLASSIFIERS
        # "all": several troubles at once
        several = [
            k for k in ("offset", "columns", "free", "weights", "one_row", "degenerate") if rng.random() < 0.6
        ]
        self.troubles = set(several) if kind == "all" else {kind}
        self.fit_intercept = bool(rng.random() < 0.85)
        if name in RANKED or name.startswith("graph"):
            self.troubles.discard("free")

    def has(self, trouble: str) -> bool:
        return trouble in self.troubles

    def case(self, seed: int, number: int) -> Case:
        rng = self.rng
        tasks = 1 if self.name == "multinomial_owl" else int(rng.integers(1 + self.has("one_class"), 5))
        d = int(rng.integers(3, 13))
        lengths = [int(rng.integers(8, 26)) for _ in range(tasks)]
        if self.has("one_row"):
            lengths = [1 if rng.random() < 0.4 and t else n for t, n in enumerate(lengths)]
        shared = self.storage == "shared"
        if shared:
            lengths = [max(lengths)] * tasks
        params: dict[str, Any] = {}
        free = self._free(d)
        x = self._columns(lengths, d, free, shared)
        y = self._targets(x, d)
        if self.has("separated"):
            y = [np.where(block[:, free[0]] > np.median(block[:, free[0]]), 1.0, -1.0) for block in x]
        if self.has("one_class"):
            y[0] = np.full_like(y[0], float(rng.choice([-1.0, 1.0])))
        y = self._not_observed(y)
        s = self._weights(lengths)
        if self.kind == "units":
            x, y, s = self._other_units(x, y, s)
        if self.kind == "extreme":
            x, y, s = self._extreme(x, y, s)
        x = [self._stored(block) for block in x]
        self._options(params, tasks, d, free)
        labels = list(range(tasks))
        if self.storage not in ("list", "shared") and not self.name.startswith("graph"):
            labels = sorted(rng.choice(["b", "aa", "site 3", "z", "é"], tasks, replace=False).tolist())
        return Case(
            seed, number, self.name, self.kind, self.storage, x, y, s, params,
            tol=float(rng.choice([1e-3, 1e-4, 1e-6, 1e-6, 1e-6, 1e-8, 1e-10])),
            max_iter=int(rng.integers(1, 4)) if self.kind == "starved" else 2_000,
            # machines on a graph do not scale: what cannot be squared they refuse
            may_refuse=self.kind == "extreme" or (self.kind == "units" and self.name.startswith("graph")),
            labels=labels,
        )  # fmt: skip

    # -- numbers ----------------------------------------------------------------------------------------------------

    def _free(self, d: int) -> Array:
        if not (self.has("free") or self.has("separated")):
            return np.empty(0, dtype=int)
        return self.rng.permutation(d)[: int(self.rng.integers(1, 3))]

    def _columns(self, lengths: list[int], d: int, free: Array, shared: bool) -> list[Array]:
        rng = self.rng
        scale = 10.0 ** rng.uniform(-3, 3, d) if rng.random() < 0.4 else np.ones(d)
        if self.storage == "int8":
            scale = np.full(d, 10.0)
        shift = np.zeros(d)
        if self.has("columns"):
            shift = np.where(rng.random(d) < 0.5, 10.0 ** rng.uniform(0, 12, d), 0.0)
        if self.has("free"):
            # without an intercept large means make unpenalised columns collinear: estimators may then fix one
            shift[free] = 10.0 ** rng.uniform(2, 13 if self.fit_intercept else 3, len(free))
        if self.storage == "int8":
            shift = np.sign(shift) * 9.0
        elif self.storage == "float32":
            shift = np.minimum(shift, 1e6)
        blocks = []
        for n in lengths[:1] if shared else lengths:
            block = rng.standard_normal((n, d))
            if self.storage in ("CSR", "CSC"):
                block *= rng.random((n, d)) < 0.5
            blocks.append((block + shift) * scale)
        if self.has("degenerate"):
            for block in blocks:
                block[:, 0] = 0.0 if rng.random() < 0.5 else 3.0 * scale[0]
                block[:, 1] = block[:, 2]
        return blocks * len(lengths) if shared else blocks

    def _targets(self, x: list[Array], d: int) -> list[Array]:
        rng = self.rng
        amplitude = 10.0 ** rng.uniform(-2, 1.7)
        truth = rng.standard_normal((d, len(x))) * (rng.random((d, 1)) < 0.4)
        offset = (
            10.0 ** rng.uniform(0, 13) * rng.choice([-1, 1]) if self.has("offset") else rng.standard_normal()
        )
        found = []
        for t, block in enumerate(x):
            spread = block.std(axis=0)
            clean = (block - block.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
            signal = clean @ truth[:, t] + rng.uniform(0.1, 1.5) * rng.standard_normal(len(block))
            if self.name == "multinomial_owl":
                other = clean @ rng.standard_normal(d) + rng.standard_normal(len(block))
                y = np.argmax(
                    np.stack([signal, other, rng.standard_normal(len(block))], axis=1), axis=1
                ).astype(float)
                y[:3] = [0.0, 1.0, 2.0]
            elif self.classes:
                y = np.where(signal > 0, 1.0, -1.0)
                if len(y) > 1:
                    y[0], y[-1] = 1.0, -1.0
            else:
                y = amplitude * signal + offset
            found.append(y)
        return found

    def _not_observed(self, y: list[Array]) -> list[Array]:
        """Some labels are NaN: always for a shared matrix, now and then elsewhere."""
        rng = self.rng
        if (self.storage != "shared" and rng.random() < 0.8) or self.storage == "int8":
            return y
        out = []
        for part in y:
            gone = rng.random(len(part)) < 0.2
            gone[:3] = gone[-1:] = False
            out.append(np.where(gone, np.nan, part))
        return out

    def _weights(self, lengths: list[int]) -> list[Array] | None:
        rng = self.rng
        if self.has("weights"):
            s = [10.0 ** rng.uniform(-6, 6, n) for n in lengths]
        elif self.has("degenerate") or rng.random() < 0.3:
            s = [rng.uniform(0.1, 10.0, n) for n in lengths]
        else:
            return None
        if self.has("degenerate"):
            for part in s:
                part[3:-1] *= rng.random(max(len(part) - 4, 0)) < 0.7
        return s

    def _other_units(self, x: list[Array], y: list[Array], s: Any) -> tuple[list[Array], list[Array], Any]:
        rng = self.rng
        if self.storage != "int8":
            high = 30.0 if self.storage == "float32" else 60.0
            factor = 10.0 ** rng.uniform(-high, high)
            x = [block * factor for block in x]
        if not self.classes and self.name != "multinomial_owl":
            factor = 10.0 ** rng.uniform(-60, 60)
            y = [part * factor for part in y]
        factor = 10.0 ** rng.uniform(-100, 100)
        return x, y, [np.full(len(part), factor) * rng.uniform(0.5, 2, len(part)) for part in y]

    def _extreme(self, x: list[Array], y: list[Array], s: Any) -> tuple[list[Array], list[Array], Any]:
        which = self.rng.choice(["y", "X", "s", "S"])
        if which == "y" and not self.classes:
            y = [part * float(self.rng.choice([1e155, 1e-160, 1e200])) for part in y]
        elif which == "X" and self.storage not in ("int8", "float32"):
            factors = [float(self.rng.choice([1e-200, 1e155, 1e-300])) for _ in x]
            if self.storage == "shared":  # one matrix for all tasks
                factors = factors[:1] * len(x)
            x = [block * factor for block, factor in zip(x, factors, strict=True)]
        else:
            s = [np.full(len(part), {"s": 1e-300}.get(str(which), 1e300)) for part in y]
        return x, y, s

    def _stored(self, block: Array) -> Array:
        """The numbers that the form of the data can hold."""
        if self.storage == "float32":
            with np.errstate(over="ignore"):
                return np.clip(block, -3e38, 3e38).astype(np.float32).astype(np.float64)
        if self.storage == "int8":
            return np.clip(np.round(block), -128, 127)
        return block

    # -- options ----------------------------------------------------------------------------------------------------

    def _options(self, params: dict[str, Any], tasks: int, d: int, free: Array) -> None:
        rng, name = self.rng, self.name
        params["fit_intercept"] = self.fit_intercept
        if name.startswith("graph"):
            edges = np.triu(rng.uniform(0, 2, (tasks, tasks)) * (rng.random((tasks, tasks)) < 0.7), 1)
            params["graph"] = edges + edges.T
            params["graph_strength"] = float(10 ** rng.uniform(-1, 1))
            params["intercept_scaling"] = float(rng.choice([1.0, 10.0]))
            losses = ("hinge", "squared_hinge", "logistic")
            if name == "graph_svr":
                losses = ("epsilon_insensitive", "squared_epsilon_insensitive", "squared")
                params["epsilon"] = float(rng.choice([0.0, 0.1]))
            params["loss"] = str(rng.choice(losses))
            return
        if name == "regressor":
            losses = ("squared", "square-root")
            if self.kind not in ("units", "extreme"):  # their corners are in the units of y
                losses = ("squared", "square-root", "huber", "quantile")
            params["loss"] = str(rng.choice(losses))
            others = ["l11", "sparse_group"] + ["owl"] * (not len(free))
            params["penalty"] = (
                "l21" if params["loss"] == "square-root" else str(rng.choice(["l21", *others]))
            )
            params["ridge"] = float(rng.choice([0.0, 0.1])) if self.kind != "units" else 0.0
        ranked = name in RANKED or params.get("penalty") == "owl"
        if name in RANKED:
            shape = rng.choice(["oscar", "slope", "array"])
            params["weights"] = np.sort(rng.uniform(0, 1, d))[::-1].copy() if shape == "array" else str(shape)
        if not ranked:
            if len(free):
                u = rng.uniform(0.5, 2, d)
                u[free] = 0.0
                params["feature_weights"] = u
            elif rng.random() < 0.25:
                params["feature_weights"] = rng.uniform(0.2, 3, d)
        if not len(free) and rng.random() < 0.15 and name != "multinomial_owl":
            params["positive"] = True
        calm = self.kind not in ("units", "extreme", "all", "columns")
        if calm and params["fit_intercept"] and not len(free) and rng.random() < 0.15:
            params["standardize"] = True
        if name != "multinomial_owl" and rng.random() < 0.25:
            params["task_weights"] = rng.uniform(0.3, 3, tasks) if rng.random() < 0.6 else "balanced"
        if name == "elastic_net":
            params["l1_ratio"] = float(rng.choice([0.1, 0.5, 0.9]))
        if name.startswith("sparse_group"):
            params["l1"] = rng.uniform(0, 1, d) if rng.random() < 0.4 else float(rng.choice([0.01, 0.5]))
        if name == "l1":
            params["l1"], params["group"] = 1.0, 0.0
        if name == "sparse_group_logistic":
            params["loss"] = "logistic"
        if name == "calibrated" and self.kind != "units":
            params["l2"] = float(rng.choice([0.0, 0.0, 0.1]))


# --- the contract's table: what an estimator minimises --------------------------------------------------------------

LOSS = {
    "logistic": "logistic",
    "sparse_group_logistic": "logistic",
    "calibrated": "square-root",
    "multinomial_owl": "multinomial",
}


def _plain(case: Case, alpha: float) -> Plain:
    params, d = case.params, case.x[0].shape[1]
    kept = [np.isfinite(y) & (True if case.s is None else case.s[t] > 0) for t, y in enumerate(case.y)]
    x = [block[k] for block, k in zip(case.x, kept, strict=True)]
    y = [part[k] for part, k in zip(case.y, kept, strict=True)]
    s = [wide(np.ones(len(k)) if case.s is None else case.s[t])[k] for t, k in enumerate(kept)]
    strength, loss = Wide(alpha), LOSS.get(case.name, params.get("loss", "squared"))
    nothing = wide(np.zeros(d))
    if case.name.startswith("graph"):
        weights = wide(params["graph"])
        laplacian = np.diag(weights.sum(axis=1)) - weights
        coupling = wide(np.eye(len(x))) + Wide(params["graph_strength"]) * laplacian
        if case.name == "graph_svr" and loss == "squared":
            loss = "squared_no_half"
        return Plain(
            x, y, s, loss, strength, nothing, nothing,
            coupling=coupling, fit_intercept=params["fit_intercept"],
            intercept_scaling=params["intercept_scaling"], epsilon=params.get("epsilon", 0.0),
        )  # fmt: skip
    totals = np.array([np.sum(part) for part in s])
    mean_rows = np.sum(totals) / len(x)
    u = wide(params.get("feature_weights", np.ones(d)))
    v = params.get("task_weights", np.ones(len(x)))
    v = mean_rows / totals if isinstance(v, str) else wide(v)
    rooted = loss == "square-root"
    scales = deviations(x, s) if params.get("standardize") else None
    s = [part * (weight**2 if rooted else weight) for part, weight in zip(s, v, strict=True)]
    group, l1, ridge = strength * u, nothing, Wide(params.get("ridge", params.get("l2", 0.0)))
    ranks, penalty = None, params.get("penalty", "l21")
    if case.name == "elastic_net":
        share = Wide(params["l1_ratio"])
        group, ridge = strength * share * u, strength * (1 - share)
    elif case.name.startswith("sparse_group") or case.name == "l1":
        group, l1 = strength * u * Wide(params.get("group", 1.0)), strength * u * wide(params["l1"])
    elif penalty == "sparse_group":
        l1 = Wide(0.01) * strength * u
    elif penalty == "l11":
        group, l1 = nothing, strength * u
    elif case.name in RANKED or penalty == "owl":
        shape = params.get("weights", "oscar")
        if isinstance(shape, str):
            ranks = strength * (oscar(d, 1.0) if shape == "oscar" else slope(d, 0.1))
        else:
            ranks = strength * wide(shape)
        group = nothing
    if loss == "multinomial":
        x, y, s = x * 3, y * 3, s * 3
        scales = None if scales is None else np.repeat(scales, 3, axis=0)
    return Plain(
        x, y, s, loss, 1 / np.sqrt(mean_rows) if rooted else 1 / mean_rows, group, l1,
        ranks=ranks, ridge=ridge, positive=params.get("positive", False), fit_intercept=params["fit_intercept"],
        scales=scales, named_ranks=ranks is not None and isinstance(params.get("weights", "oscar"), str),
    )  # fmt: skip
