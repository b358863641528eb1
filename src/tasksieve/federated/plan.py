"""The plan of a federated fit: the one file that everybody reads and agrees to before a number leaves a site.

It names the sites with their public keys, the features in their order, the loss, the penalty, the values, the folds and
halves, and whether answers are masked. Its digest is part of every message, so that nobody can answer another plan.
"""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np

from ..losses import BY_NAME, Loss, Mixed
from ..members import base_name
from ..messages import ParameterError
from .plan_words import plan_in_words

FORMAT = "tasksieve-plan"
#: values of a half of the rows, and the last of them as a part of the first: stability is about what is used early
HALF_VALUES, HALF_EPS = 15, 0.3
VERSION = 1

#: tables of a plan file, and the fields that stand in each; a field outside stands at the top
TABLES: Mapping[str, tuple[str, ...]] = {
    "model": ("loss", "loss_options", "site_losses", "l1_ratio", "ridge", "fit_intercept", "standardize"),
    "path": ("n_alphas", "eps", "tol"),
    "checks": ("cv", "n_pairs", "q", "random_state"),
    "data": ("features", "covariates", "feature_weights", "units", "n_tasks"),
}
#: losses with a second derivative, by which the local problem of a site can be solved
LOSSES = (
    "squared", "huber", "quantile", "expectile", "log_cosh", "logistic", "poisson", "negative_binomial", "gamma",
    "tweedie", "cox", "ordinal",
)  # fmt: skip
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")
#: names in messages that are no names of sites
_RESERVED = ("all", "coordinator")


class PlanError(ValueError):
    """A plan that cannot be carried out; the message names the place in the file."""


@dataclass(frozen=True)
class Plan:
    r"""What the sites and the coordinator have agreed on.

    .. math::

        \min_{W, b}\ \frac{1}{\bar n} \sum_t \sum_i s_i f(y_i, x_i \cdot w_t + b_t)
        + \alpha \sum_j u_j \bigl(\lVert W_j \rVert_2 + \rho \lVert W_j \rVert_1\bigr)
        + \frac{\text{ridge}}{2} \lVert W \rVert_F^2

    with the tasks t of all sites; :math:`\rho` is ``l1_ratio``, and u are the ``feature_weights``.

    Parameters
    ----------
    title : str
    sites : dict of str to str
        Name of each site and its public keys, as ``tasksieve site init`` prints them. Lower-case letters, digits, "-".
    features : sequence of str
        Names of the penalised features, in the order that all sites use.
    coordinator : str, default=""
        Public keys of the coordinator.
    n_tasks : dict of str to int, optional
        Tasks of each site; 1 where nothing is said.
    answers : {"masked", "open"}, default="masked"
        "masked": the coordinator learns sums over sites only. "open": it sees each site's numbers; sites must allow it.
    loss : str, default="squared"
        Name of a loss (`tasksieve.losses`).
    loss_options : dict, optional
        Its options: ``{"delta": 1.35}``.
    site_losses : dict of str to str, optional
        Sites whose tasks have another loss, with its options behind its name: ``{"west": "logistic", "east":
        "huber:delta=1.5"}``. The problem is that of `MultiTaskMixed` with weights and scales of 1: bring labels of
        unlike units to comparable ones in the tables.
    l1_ratio : float, default=0.0
        Strength on single coefficients as a part of that on rows of them (sparse group); then all weights are 1.
    ridge : float, default=0.0
        Strength of a ridge beside the penalty.
    fit_intercept : bool, default=True
        An intercept for each task; it stays at the site.
    standardize : {"no", "task", "pooled"}, default="task"
        Whether the penalty is of coefficients per standard deviation of the column in its task, or over the rows of all
        sites ("pooled"). For that the sites' sums of columns and of their squares are added up: the coordinator learns
        means and variances over all sites, all sites learn the variances, and folds and halves use those of all rows.
    n_alphas : int, default=50
        Values of the penalty strength, geometrically from the smallest that selects nothing.
    eps : float, default=0.05
        The last of them as a part of the first.
    tol : float, default=1e-6
        A value is solved when its duality gap is at most this part of the loss of the empty model.
    cv : int, default=0
        Folds by which the strength is chosen; 0: none.
    n_pairs : int, default=0
        Pairs of halves of the rows for stability selection; 0: none.
    q : int, default=20
        Of each half the first so many features count that its path uses; `tasksieve.pfer_bound` says what follows.
    random_state : int, default=0
        Seed of folds and halves, which each site draws from its own rows.
    covariates : sequence of str, optional
        Columns that are never penalised: their coefficients differ between tasks and stay at the site.
    feature_weights : dict of str to float, optional
        Weights u of some features; 1 for all others.
    units : str, default=""
        In which the label is measured, in words. Sums cannot show that a site has another: all must have read this.

    Examples
    --------
    >>> import tasksieve as ts
    >>> plan = ts.federated.Plan(
    ...     "Three hospitals", {"north": "...", "south": "...", "west": "..."}, ["age", "bmi"], coordinator="..."
    ... )
    >>> plan.n_features, plan.answers
    (2, 'masked')
    >>> plan.problems()
    ['all']
    """

    title: str
    sites: Mapping[str, str]
    features: Sequence[str]
    coordinator: str = ""
    n_tasks: Mapping[str, int] = field(default_factory=dict)
    answers: Literal["masked", "open"] = "masked"
    loss: str = "squared"
    loss_options: Mapping[str, Any] = field(default_factory=dict)
    site_losses: Mapping[str, str] = field(default_factory=dict)
    l1_ratio: float = 0.0
    ridge: float = 0.0
    fit_intercept: bool = True
    standardize: Literal["no", "task", "pooled"] = "task"
    n_alphas: int = 50
    eps: float = 0.05
    tol: float = 1e-6
    cv: int = 0
    n_pairs: int = 0
    q: int = 20
    random_state: int = 0
    covariates: Sequence[str] = ()
    feature_weights: Mapping[str, float] = field(default_factory=dict)
    units: str = ""

    def __post_init__(self) -> None:
        _check(self)
        # the same plan has the same digest, whether a number was written as 1 or 1.0
        for name in _RANGES:
            object.__setattr__(self, name, float(getattr(self, name)))
        weights = {name: float(weight) for name, weight in self.feature_weights.items()}
        object.__setattr__(self, "feature_weights", weights)
        for name in ("features", "covariates"):
            object.__setattr__(self, name, tuple(getattr(self, name)))

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """Read a plan.toml; ``features`` may be the name of a file beside it, one feature a line.

        Parameters
        ----------
        path : str or Path

        Returns
        -------
        Plan
        """
        path = Path(path)
        try:
            given = tomllib.loads(path.read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise PlanError(f"{path}: is no TOML file: {error}") from error
        try:
            return cls(**_flat(given, path.parent))
        except PlanError as error:
            raise PlanError(f"{path}: {error}") from error

    def to_toml(self) -> str:
        """The plan as the text of a plan.toml.

        Returns
        -------
        str
        """
        inside = {name for names in TABLES.values() for name in names}
        top = [one.name for one in fields(self) if one.name not in inside and one.name != "sites"]
        lines = [f"format = {VERSION}", *(f"{name} = {toml_value(getattr(self, name))}" for name in top)]
        for table, names in TABLES.items():
            lines += ["", f"[{table}]", *(f"{name} = {toml_value(getattr(self, name))}" for name in names)]
        lines += ["", "[sites]", *(f"{name} = {toml_value(keys)}" for name, keys in self.sites.items())]
        return "\n".join(lines) + "\n"

    @cached_property
    def digest(self) -> bytes:
        """SHA-256 of everything in the plan, the names of all features among it, in their order."""
        content = {one.name: getattr(self, one.name) for one in fields(self)}
        content |= {"format": FORMAT, "version": VERSION, "sites": dict(sorted(self.sites.items()))}
        plain = json.dumps(content, sort_keys=True, ensure_ascii=True, default=_plain)
        return hashlib.sha256(plain.encode()).digest()

    @property
    def n_features(self) -> int:
        """Columns of X at every site: features and covariates."""
        return len(self.features) + len(self.covariates)

    @property
    def n_sites(self) -> int:
        return len(self.sites)

    @property
    def names(self) -> list[str]:
        """The sites in the order of their names."""
        return sorted(self.sites)

    @property
    def total_tasks(self) -> int:
        """Tasks of all sites."""
        return sum(self.n_tasks.get(name, 1) for name in self.sites)

    @property
    def masked(self) -> bool:
        return self.answers == "masked"

    @property
    def centred(self) -> bool:
        """Whether columns are centred at all sites: tasks have intercepts, or what takes their place."""
        losses = {self.loss, *(base_name(own) for own in self.site_losses.values())}
        return self.fit_intercept or losses <= {"cox", "ordinal"}

    @property
    def mixed(self) -> bool:
        """Whether sites have losses of their own."""
        return bool(self.site_losses)

    def at(self, site: str) -> Plan:
        """The plan as a site has it: with its own loss.

        Parameters
        ----------
        site : str

        Returns
        -------
        Plan
        """
        own = self.site_losses.get(site)
        if own is None:
            return self
        return replace(self, loss=base_name(own), loss_options=BY_NAME.options_of(own))

    @property
    def columns(self) -> list[str]:
        """Features, then covariates: the columns of X at every site."""
        return [*self.features, *self.covariates]

    @property
    def weights(self) -> np.ndarray:
        """Weight of each column in the penalty: 0 for covariates."""
        found = np.concatenate([np.ones(len(self.features)), np.zeros(len(self.covariates))])
        if self.feature_weights:
            place = {name: j for j, name in enumerate(self.features)}
            for name, weight in self.feature_weights.items():
                found[place[name]] = weight
        return found

    def make_loss(self) -> Loss:
        """The loss with its options; that of sites without one of their own.

        Returns
        -------
        Loss
        """
        return BY_NAME[self.loss](**self.loss_options)

    def loss_of_all(self) -> Loss:
        """The loss of all sites together.

        Returns
        -------
        Loss
            `tasksieve.losses.Mixed`, with that of each site, where they differ.
        """
        return Mixed([self.at(site).make_loss() for site in self.names]) if self.mixed else self.make_loss()

    def in_words(self) -> list[str]:
        """What the plan asks of a site, for people.

        Returns
        -------
        list of str
            A line for each thing.
        """
        return plan_in_words(self)

    def problems(self) -> list[str]:
        """Names of the problems that may be asked about: all rows, those outside each fold, each half.

        Returns
        -------
        list of str
        """
        folds, halves = range(self.cv), range(2 * self.n_pairs)
        return ["all", *(f"fold {k}" for k in folds), *(f"half {k}" for k in halves)]


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Sequence):
        return list(value)
    raise TypeError(f"{value!r} is nothing that a plan holds")


def toml_value(value: Any) -> str:
    """A value in TOML, whose words, numbers and lists are written as those of JSON."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{json.dumps(str(key))} = {toml_value(one)}" for key, one in value.items()) + "}"
    if isinstance(value, float):
        return repr(value)
    return json.dumps(value if isinstance(value, str) else _listed(value), ensure_ascii=False)


def _listed(value: Any) -> Any:
    return list(value) if isinstance(value, Sequence) and not isinstance(value, str) else value


def _flat(given: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The fields of a plan from the tables of its file; whatever is not known is refused."""
    version = given.pop("format", None)
    if version != VERSION:
        raise PlanError(f"format = {VERSION} must stand at the top" + ("" if version is None else f", not {version!r}"))
    home = {name: table for table, names in TABLES.items() for name in names}
    every = [one.name for one in fields(Plan)]
    found: dict[str, Any] = {}
    for name, value in given.items():
        if name in TABLES:
            if not isinstance(value, dict):
                raise PlanError(f"{name} is a table: [{name}]")
            for inner, one in value.items():
                if inner not in TABLES[name]:
                    raise PlanError(f"[{name}] has no {inner!r}{_meant(inner, every, home)}")
                found[inner] = one
        elif name in home or name not in every:
            raise PlanError(f"nothing is called {name!r} here{_meant(name, every, home)}")
        else:
            found[name] = value
    for name in ("title", "sites", "features"):
        if name not in found:
            raise PlanError(f"{_place(name, home)} is missing")
    if isinstance(found["features"], str):
        found["features"] = _lines(folder / found["features"])
    return found


def _place(name: str, home: Mapping[str, str]) -> str:
    return f"{name} in [{home[name]}]" if name in home else name


def _meant(name: str, every: Sequence[str], home: Mapping[str, str]) -> str:
    near = get_close_matches(name, every, n=1, cutoff=0.6)
    return f"; {_place(near[0], home)} is perhaps meant" if near else ""


def _lines(path: Path) -> list[str]:
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise PlanError(f"features in [data]: cannot read {path}: {error.strerror}") from error
    return [line.strip() for line in text.splitlines() if line.strip()]


# --- what a plan must be ------------------------------------------------------------------------------------------

#: field -> (lowest, whether that itself is allowed, highest, whether that is allowed)
_RANGES: Mapping[str, tuple[float, bool, float, bool]] = {
    "l1_ratio": (0.0, True, np.inf, False),
    "ridge": (0.0, True, np.inf, False),
    "eps": (0.0, False, 1.0, True),
    "tol": (0.0, False, 1.0, False),
}
#: field -> (lowest, highest)
_COUNTS = {
    "n_alphas": (1, 10_000), "cv": (0, 1_000), "n_pairs": (0, 10_000), "q": (1, 2**31 - 1),
    "random_state": (0, 2**31 - 1),
}  # fmt: skip
_CHOICES = {"answers": ("masked", "open"), "standardize": ("no", "task", "pooled")}


def _check(plan: Plan) -> None:
    for name in ("title", "coordinator", "loss", "units"):
        _must(isinstance(getattr(plan, name), str), name, "words", getattr(plan, name))
    for name, known in _CHOICES.items():
        _must(getattr(plan, name) in known, name, f"one of {', '.join(known)}", getattr(plan, name))
    _must(isinstance(plan.fit_intercept, bool), "fit_intercept", "true or false", plan.fit_intercept)
    for name, (lowest, highest) in _COUNTS.items():
        value = getattr(plan, name)
        whole = isinstance(value, int) and not isinstance(value, bool) and lowest <= value <= highest
        _must(whole, name, f"a whole number, at least {lowest} and at most {highest}", value)
    _must(plan.cv != 1, "cv", "0 or at least 2", plan.cv)
    for name, (low, closed, high, closed_above) in _RANGES.items():
        value = getattr(plan, name)
        number = isinstance(value, int | float) and not isinstance(value, bool)
        inside = number and (low < value < high or (closed and value == low) or (closed_above and value == high))
        upto = "" if high == np.inf else f" and {'at most' if closed_above else 'below'} {high:g}"
        _must(inside, name, f"a number {'of at least' if closed else 'above'} {low:g}{upto}", value)
    _check_sites(plan)
    _check_columns(plan)
    _check_loss(plan)


def _check_sites(plan: Plan) -> None:
    _must(isinstance(plan.sites, Mapping), "sites", "a table of names and public keys", plan.sites)
    for name, keys in plan.sites.items():
        good = isinstance(name, str) and _NAME.fullmatch(name) is not None and name not in _RESERVED
        _must(good, "sites", "names of at most 40 lower-case letters, digits and '-' (not all, coordinator)", name)
        _must(isinstance(keys, str), f"sites.{name}", "the line of public keys that the site has sent", keys)
    _must(isinstance(plan.n_tasks, Mapping), "n_tasks", "a table of names of sites and numbers", plan.n_tasks)
    for name, count in plan.n_tasks.items():
        whole = isinstance(count, int) and not isinstance(count, bool) and count >= 1
        _must(name in plan.sites and whole, "n_tasks", "a whole number above 0 for sites of this plan", {name: count})
    known = [keys for keys in plan.sites.values() if keys.strip(".")]
    _must(len(set(known)) == len(known), "sites", "each site with keys of its own; two have the same")
    least = 3 if plan.masked else 1
    why = " under masks: of two each would see the other's numbers by subtraction" if plan.masked else ""
    _must(len(plan.sites) >= least, "sites", f"at least {least}{why}", len(plan.sites))


def _check_columns(plan: Plan) -> None:
    for name in ("features", "covariates"):
        words = getattr(plan, name)
        listed = isinstance(words, Sequence) and not isinstance(words, str) and all(isinstance(w, str) for w in words)
        _must(listed, name, "a list of names of columns", words)
    _must(len(plan.features) > 0, "features", "at least one name")
    every = [*plan.features, *plan.covariates]
    if len(set(every)) < len(every):
        seen: set[str] = set()
        twice = next(name for name in every if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        _must(False, "features", "different names, and none that is a covariate, too", twice)
    _must(isinstance(plan.feature_weights, Mapping), "feature_weights", "a table of names and numbers")
    _must(not (plan.feature_weights and plan.l1_ratio), "feature_weights", "left out where l1_ratio is above 0")
    known = set(plan.features)
    for name, weight in plan.feature_weights.items():
        _must(name in known, "feature_weights", "of features of this plan", name)
        number = isinstance(weight, int | float) and not isinstance(weight, bool) and 0.0 < weight < np.inf
        _must(number, f"feature_weights.{name}", "a number above 0; what is never penalised is a covariate", weight)


def _check_loss(plan: Plan) -> None:
    if plan.loss not in LOSSES:
        near = get_close_matches(plan.loss, LOSSES, n=1)
        meant = f"; {near[0]} is perhaps meant" if near else ""
        raise PlanError(f"loss: must be one of {', '.join(LOSSES)}{meant}; got {plan.loss!r}")
    try:
        plan.make_loss()
    except (TypeError, ValueError) as error:
        words = error.words if isinstance(error, ParameterError) else str(error)
        raise PlanError(f"loss_options: {plan.loss} does not take {dict(plan.loss_options)}: {words}") from error
    _must(isinstance(plan.site_losses, Mapping), "site_losses", "a table of names of sites and losses")
    for site, name in plan.site_losses.items():
        _must(site in plan.sites, "site_losses", "of sites of this plan", site)
        known = isinstance(name, str) and base_name(name) in LOSSES
        _must(known, f"site_losses.{site}", f"one of {', '.join(LOSSES)}, with options behind ':'", name)
        try:
            BY_NAME.make(name)
        except (TypeError, ValueError) as error:
            words = error.words if isinstance(error, ParameterError) else str(error)
            raise PlanError(f"site_losses.{site}: {words}") from error


_NOTHING: Any = object()


def _must(right: Any, name: str, words: str, got: Any = _NOTHING) -> None:
    if not right:
        raise PlanError(f"{name}: must be {words}" + ("" if got is _NOTHING else f"; got {got!r}"))
