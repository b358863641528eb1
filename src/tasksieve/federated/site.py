"""A site as a folder: its keys, where its rows are, its rules, the plan it has agreed to, and the log of its answers.

    site.toml       name, [data]: the table and its columns, [rules]
    private.json    keys and salt; readable by their owner alone, and never sent
    plan.toml       the plan, once it was agreed to
    log/            every message that was answered, and lines that show when they were cut or edited
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self

import numpy as np

from ..atomic import write_bytes
from ..fitted.restore import set_state
from ..tables import TableError
from .answer_log import AnswerLog
from .errors import FederatedError
from .fitted import FederatedFit
from .keys import PrivateKeys, roster
from .local import LocalProblem
from .messages import unseal_round
from .node import SiteNode
from .plan import Plan, toml_value
from .policy import Rules
from .question import Question
from .review import round_in_words
from .site_rows import SiteRows, check_settings, make_estimator, read_rows, rows_of_tasks

SITE = "site.toml"
KEYS = "private.json"
PLAN = "plan.toml"
LOG = "log"
_CHUNK = 1 << 24


class Site:
    """A site of a federated fit, in a folder.

    Parameters
    ----------
    folder : str or Path
        That ``tasksieve site init`` or `create` has made.

    Attributes
    ----------
    name : str
    rules : Rules
    settings : dict
        What is said of the table: the table [data] of site.toml.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        path = self.folder / SITE
        try:
            given = tomllib.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise TableError(f"{self.folder} is no folder of a site: it has no {SITE}") from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise TableError(f"{path}: is no TOML file: {error}") from error
        unknown = set(given) - {"format", "name", "data", "rules"}
        if unknown or given.get("format") != 1 or not isinstance(given.get("name"), str):
            raise TableError(f"{path}: is not of the form format = 1, name, [data], [rules]")
        self.name: str = given["name"]
        self.settings: dict[str, Any] = dict(given.get("data", {}))
        try:
            check_settings(self.settings)
            self.rules = Rules.of(given.get("rules", {}))
        except ValueError as error:
            raise TableError(f"{path}: {error}") from error

    @classmethod
    def create(
        cls, folder: str | Path, name: str, settings: Mapping[str, Any], rules: Rules | None = None
    ) -> Self:
        """Make the folder of a new site, with new keys.

        Parameters
        ----------
        folder : str or Path
        name : str
            Of the site in the plan.
        settings : dict
            ``table``, the file with the rows; ``target``, or ``time`` and ``event``; ``task``, ``weights``, ``offset``,
            ... Relative paths start from the folder.
        rules : Rules, optional

        Returns
        -------
        Site
        """
        folder = Path(folder)
        if (folder / SITE).exists():
            raise TableError(f"{folder} is the folder of a site already")
        check_settings(settings)
        folder.mkdir(parents=True, exist_ok=True)
        own = (rules or Rules()).listed()
        lines = ["format = 1", f"name = {toml_value(name)}", "", "[data]"]
        lines += [f"{key} = {toml_value(value)}" for key, value in settings.items()]
        lines += ["", "[rules]", *(f"{rule} = {toml_value(value)}" for rule, value in own.items())]
        PrivateKeys.create().write(folder / KEYS)
        write_bytes(folder / SITE, ("\n".join(lines) + "\n").encode())
        return cls(folder)

    # --- keys and plan ------------------------------------------------------------------------------------------------

    @cached_property
    def keys(self) -> PrivateKeys:
        """The keys, which stay here."""
        return PrivateKeys.read(self.folder / KEYS)

    @cached_property
    def data_digest(self) -> bytes:
        """Salted digest of the table and of how it is read."""
        return self.keys.data_digest(self._pieces())

    def _pieces(self) -> Iterator[bytes]:
        told = {key: value for key, value in sorted(self.settings.items()) if key != "table"}
        yield toml_value(told).encode()
        path = self.folder / self.settings["table"]
        if not path.is_file():
            raise TableError(f"there is no file {path}")
        with open(path, "rb") as file:
            while piece := file.read(_CHUNK):
                yield piece

    def public_line(self) -> str:
        """The line for the plan: public keys, and a salted digest of the table.

        Returns
        -------
        str
        """
        return self.keys.public(self.data_digest).line()

    @cached_property
    def plan(self) -> Plan | None:
        """The plan that this site has agreed to; None: none yet."""
        return Plan.read(self.folder / PLAN) if (self.folder / PLAN).exists() else None

    def agreed(self) -> Plan:
        """The plan.

        Returns
        -------
        Plan
            `FederatedError` where this site has agreed to none.
        """
        if self.plan is None:
            raise FederatedError("plan", "this site has not agreed to a plan")
        return self.plan

    def check(self, plan: Plan) -> SiteRows:
        """Whether this site can take part in a plan: its name, keys, rows and rules.

        Parameters
        ----------
        plan : Plan

        Returns
        -------
        SiteRows
            The rows as the plan wants them. `FederatedError` where something stands against it.
        """
        if self.name not in plan.sites:
            raise FederatedError("plan", f"the plan has no site {self.name}; it has {', '.join(plan.names)}")
        if roster(plan)[self.name] != self.keys.public(self.data_digest):
            own = "other keys, or this site has changed its table or [data] since it sent its line"
            raise FederatedError("keys", f"the line of {self.name} in the plan is not that of this site: {own}")
        rows = read_rows(plan.at(self.name), self.name, self.settings, self.folder)
        data = rows.data()
        self.rules.check_plan(plan, rows_of_tasks(data, rows.problems(data)))
        return rows

    def agree(self, plan: Plan) -> None:
        """Check a plan and keep it: from now on its questions are answered. A second plan is refused.

        Parameters
        ----------
        plan : Plan
        """
        if self.plan is not None and self.plan.digest != plan.digest:
            raise FederatedError("plan", "this site has agreed to another plan: a new plan needs a new site folder")
        self.check(plan)
        AnswerLog(self.folder / LOG, self.keys, begin=self.plan is None).rounds(plan.digest)
        write_bytes(self.folder / PLAN, plan.to_toml().encode())
        self.__dict__.pop("plan", None)

    # --- answers and models -------------------------------------------------------------------------------------------

    @cached_property
    def rows(self) -> SiteRows:
        """The rows as the plan wants them."""
        return self.check(self.agreed())

    @cached_property
    def local(self) -> LocalProblem:
        """What answers questions from the rows."""
        return self.rows.local()

    def local_with(self, scales: np.ndarray | None) -> LocalProblem:
        """What answers with columns divided by given numbers, those of a plan with pooled standardisation.

        Parameters
        ----------
        scales : ndarray of shape (d,) or None

        Returns
        -------
        LocalProblem
        """
        return self.local if scales is None else self.local.scaled(scales)

    @cached_property
    def _counts(self) -> dict[str, list[int]]:
        data = self.local.data
        return rows_of_tasks(data, self.rows.problems(data))

    def _allow(self, questions: Sequence[Question], answered: int) -> None:
        self.rules.check_questions(self.agreed(), questions, answered, self._counts)

    def node(self) -> SiteNode:
        """What answers messages: ``site.node().reply``.

        Returns
        -------
        SiteNode
        """
        self.answered()  # a log that is missing or damaged is said before the rows are read
        given = (self.name, self.keys, self.agreed(), self.local, self.data_digest, self.folder / LOG)
        return SiteNode(*given, allow=self._allow)

    def review(self, message: bytes) -> list[str]:
        """What a message asks, in words; nothing is answered.

        Parameters
        ----------
        message : bytes

        Returns
        -------
        list of str
            A line for each question. `FederatedError` where the message is not from the coordinator, or a rule refuses
            it: its attribute ``lines`` has the words, where the message could be read.
        """
        plan = self.agreed()
        asked = unseal_round(message, plan)
        lines = round_in_words(asked, plan)
        before = self.answered() - set(asked.parts())
        try:
            self._allow(asked.questions, len(before))
        except FederatedError as error:
            error.lines = lines  # type: ignore[attr-defined]
            raise
        return lines

    def answered(self) -> set[str]:
        """Digests of the questions of this plan that were answered, or that this site tried to answer.

        Returns
        -------
        set of str
        """
        entries = AnswerLog(self.folder / LOG, self.keys, begin=False).rounds(self.agreed().digest).values()
        return {part for entry in entries for part in entry["questions"]}

    def model(self, result: FederatedFit | str | Path, k: int | None = None) -> Any:
        """The fitted model of the tasks of this site.

        Parameters
        ----------
        result : FederatedFit, or path of the file that its `save` has written
        k : int, optional
            Position in ``result.alphas``; by default the value chosen by cross-validation, or without one the last.

        Returns
        -------
        estimator
            `MultiTaskRegressor`, `MultiTaskClassifier`, `MultiTaskCox` or `MultiTaskOrdinal`. Coefficients are those of
            the tasks here; ``alpha``, ``objective_`` and ``dual_gap_`` are of the problem of all sites.
        """
        fit = result if isinstance(result, FederatedFit) else FederatedFit.load(result)
        plan = self.agreed()
        if fit.plan_digest != plan.digest:
            raise FederatedError("plan", "this result belongs to another plan than the one that was agreed to")
        k = fit.chosen if k is None else range(len(fit))[k]
        local = self.local_with(fit.column_scale)
        solved, data = local.coefficients(fit.question(k)), local.data
        model = make_estimator(plan.at(self.name), float(fit.alphas[k]), self.rows.categories, fit.column_scale)
        own = model._unit(data)  # what the model divides by; these two are divided already
        point = SimpleNamespace(
            **{name: getattr(solved, name) for name in ("features", "rows", "intercept", "thresholds")},
            objective=own * fit.objectives[k],
            dual_gap=own * fit.dual_gaps[k],
            n_iter=fit.rounds,
            status=fit.statuses[k],
        )
        model._set_solution(data, point)
        model._set_scale(local.problem("all").design.scale, 0)
        names = np.array(plan.columns, dtype=object)
        return set_state(
            model,
            n_features=plan.n_features,
            feature_names=names,
            fitted_to_arrays=True,
            null_objective=fit.null_objective,
        )
