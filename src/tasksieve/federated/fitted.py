"""What a federated fit has found: a path whose rows of coefficients are known by their lengths, and its file."""

from __future__ import annotations

import json
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from ..atomic import write_atomically
from ..fitted.solved_values import SolvedValues
from ..optional import data_frame
from ..path.status import Status
from .asking import Traffic
from .errors import FederatedError
from .packing import Array
from .part import Archive
from .question import KINDS, Question
from .review import EXCHANGES
from .together import HeldOut

if TYPE_CHECKING:
    from pandas import DataFrame

FORMAT = "tasksieve-federated-result"
VERSION = 1
_OPTIONAL = ("selection_probabilities", "column_scale", "exchanges")


class FederatedFit(SolvedValues):
    r"""A path of the model of all sites' rows, from sums.

    .. math:: \text{objective}_k - \text{optimum}_k \le \text{dual gap}_k \qquad k = 0, \ldots, K - 1

    Coefficients are known to the sites alone (`Site.model`); here are the lengths of their rows.

    Attributes
    ----------
    alphas : ndarray of shape (K,)
        Penalty strengths, decreasing: those of the estimators, with :math:`\bar n` over all sites.
    objectives, dual_gaps, relative_gaps : ndarray of shape (K,)
        As of a `RegularizationPath`.
    converged : bool ndarray of shape (K,)
    n_selected : int ndarray of shape (K,)
        Features with a row of coefficients that is not zero.
    null_objective : float
        The objective of the model without features.
    columns : list of str
        Names of features and covariates; the last `n_covariates` are those of covariates, which are not penalised.
    n_covariates : int
    held_out : HeldOut or None
        Losses of the rows that folds have held out, of a cross-validation.
    selection_probabilities : ndarray of shape (d,) or None
        The part of the halves of the rows in which a feature is among the first q that are used.
    column_scale : ndarray of shape (d,) or None
        With pooled standardisation: the standard deviations of columns over the rows of all sites, 1 for covariates and
        for columns that do not vary.
    statement : Archive or None
        The gap of the chosen value with all rounding, from sums that the sites have signed: ``statement.save(path)``
        writes a file for ``verify.py statement``. Not part of the file of `save`.
    halves : dict of str to Archive
        With open answers each site's part of it.
    exchanges : int ndarray of shape (rounds, 4) or None
        Of each exchange what it asked for (a place in ``("sizes", "moments", "norms", "point", "part")``), how many
        questions, and bytes to each site and from the site that has sent most.
    rounds, questions, bytes_up, bytes_down : int
        Exchanges with all sites, questions in them, and bytes from and to each site (up: of the site with most).
    """

    _columns: ClassVar[dict[str, str]] = {
        "alpha": "alphas", "objective": "objectives", "dual_gap": "dual_gaps", "n_selected": "n_selected",
        "converged": "converged",
    }  # fmt: skip
    interrupted = False

    def __init__(
        self,
        *,
        plan_digest: bytes,
        title: str,
        columns: list[str],
        sites: list[str],
        n_tasks: int,
        n_covariates: int = 0,
        tol: float,
        unit: float,
        null_objective: float,
        alphas: Array,
        objectives: Array,
        dual_gaps: Array,
        questions_asked: list[Question],
        norms: list[Array],
        held_out: HeldOut | None = None,
        selection_probabilities: Array | None = None,
        column_scale: Array | None = None,
        exchanges: Array | None = None,
        rounds: int = 0,
        questions: int = 0,
        bytes_up: int = 0,
        bytes_down: int = 0,
    ) -> None:
        self.plan_digest, self.title, self.columns, self.sites = plan_digest, title, columns, sites
        self.tol, self.unit, self.null_objective = tol, unit, null_objective
        self.tasks, self.n_features, self.n_covariates = np.arange(n_tasks), len(columns), n_covariates
        self.alphas, self.objectives, self.dual_gaps = alphas, objectives, dual_gaps
        self.converged = dual_gaps <= tol * null_objective
        # a value ends where double precision, or the units of the words, resolve no smaller gap
        self.statuses = [Status.CONVERGED if done else Status.ROUNDING for done in self.converged]
        self.status = np.array([str(one) for one in self.statuses], dtype=str)
        self._questions, self._norms = questions_asked, norms
        self.n_selected = np.array([len(own) for own in norms], dtype=np.int64)
        self.held_out, self.selection_probabilities = held_out, selection_probabilities
        self.column_scale, self.exchanges = column_scale, exchanges
        self.rounds, self.questions, self.bytes_up, self.bytes_down = rounds, questions, bytes_up, bytes_down
        self.statement: Archive | None = None
        self.halves: dict[str, Archive] = {}

    def count(self, traffic: Traffic) -> None:
        """Take what was exchanged.

        Parameters
        ----------
        traffic : Traffic
        """
        self.rounds, self.questions = traffic.rounds, traffic.questions
        self.bytes_up, self.bytes_down = traffic.up, traffic.down
        self.exchanges = np.array(traffic.exchanges, dtype=np.int64)

    @property
    def relative_gaps(self) -> Array:
        return self.dual_gaps / (self.null_objective or 1.0)

    @property
    def chosen(self) -> int:
        """The value with the smallest loss of held-out rows; without folds the last."""
        return len(self) - 1 if self.held_out is None else self.held_out.best()

    @property
    def explained(self) -> Array:
        """1 - loss of held-out rows/that of the model without features, (K,); `AttributeError` without folds."""
        if self.held_out is None:
            raise AttributeError("explained is known where the plan has folds (cv).")
        return np.asarray(1.0 - self.held_out.scores.mean(axis=1) / self.held_out.null_scores.mean())

    @property
    def exchange_words(self) -> list[str]:
        """What each exchange asked for."""
        return [] if self.exchanges is None else [EXCHANGES[KINDS[kind]] for kind in self.exchanges[:, 0].tolist()]

    def features(self, k: int) -> Array:
        """Places of the features selected at value k.

        Parameters
        ----------
        k : int

        Returns
        -------
        int ndarray
        """
        return self._questions[k].features

    def row_norms(self, k: int) -> Array:
        """Lengths of the rows of coefficients of these features, over all tasks of all sites.

        Parameters
        ----------
        k : int

        Returns
        -------
        ndarray
            Of columns in the units of the penalty: per standard deviation where the plan standardises.
        """
        return self._norms[k]

    def question(self, k: int) -> Question:
        """The point of value k as the question that sites were asked: from it each knows its coefficients.

        Parameters
        ----------
        k : int

        Returns
        -------
        Question
        """
        return self._questions[k]

    def to_frame(self, kind: str = "values") -> DataFrame:
        """The path as a pandas data frame.

        Parameters
        ----------
        kind : {"values", "features"}
            One row for each value, or one for each selected feature of each value: alpha, feature, row_norm.

        Returns
        -------
        pandas.DataFrame
        """
        if kind == "values":
            return self._frame()
        if kind != "features":
            raise ValueError(f"kind must be 'values' or 'features', got {kind!r}.")
        names = np.array(self.columns, dtype=object)
        counts = self.n_selected
        places = np.concatenate([np.empty(0, np.int64), *(one.features for one in self._questions)])
        columns = {"alpha": np.repeat(self.alphas, counts), "feature": names[places]}
        return data_frame(self, {**columns, "row_norm": np.concatenate([np.empty(0), *self._norms])}, ("feature",))

    # --- its file -----------------------------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write a file (.npz) that sites need for their models; it holds nothing that they do not all know.

        Parameters
        ----------
        path : str or Path
        """
        known = ("title", "columns", "n_covariates", "sites", "tol", "unit", "null_objective")
        traffic = ("rounds", "questions", "bytes_up", "bytes_down")
        header = {name: getattr(self, name) for name in (*known, *traffic)}
        header |= {"format": FORMAT, "version": VERSION, "plan": self.plan_digest.hex(), "n_tasks": len(self.tasks)}
        arrays: dict[str, Any] = {
            "header": np.frombuffer(json.dumps(header).encode(), np.uint8),
            **{name: getattr(self, name) for name in ("alphas", "objectives", "dual_gaps")},
            "ends": np.cumsum(self.n_selected),
            "features": np.concatenate([np.empty(0, np.int64), *(one.features for one in self._questions)]),
            "s": np.concatenate([np.empty(0), *(one.s for one in self._questions)]),
            "l1": np.array([one.l1 for one in self._questions]),
            "norms": np.concatenate([np.empty(0), *self._norms]),
        }
        if self.held_out is not None:
            arrays |= {f"held_out_{name}": values for name, values in asdict(self.held_out).items()}
        for name in _OPTIONAL:
            if getattr(self, name) is not None:
                arrays[name] = getattr(self, name)
        write_atomically(Path(path), lambda file: np.savez(file, **arrays))

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a file of `save`; nothing in it is executed.

        Parameters
        ----------
        path : str or Path

        Returns
        -------
        FederatedFit
        """
        try:
            with np.load(path, allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
            header = json.loads(arrays.pop("header").tobytes())
            right = header.pop("format") == FORMAT and header.pop("version") == VERSION
        except (ValueError, KeyError, TypeError, AttributeError, EOFError):
            right = False
        except OSError as error:
            if error.errno is not None:
                raise
            right = False
        if not right:
            raise FederatedError("format", f"{path} is no result of a federated fit")
        cuts = arrays["ends"][:-1]
        parts = {name: np.split(arrays[name], cuts) for name in ("features", "s", "norms")}
        points = zip(parts["features"], parts["s"], arrays["l1"].tolist(), strict=True)
        optional: dict[str, Any] = {name: arrays.get(name) for name in _OPTIONAL}
        held = {one.name: arrays.get(f"held_out_{one.name}") for one in fields(HeldOut)}
        return cls(
            plan_digest=bytes.fromhex(header.pop("plan")),
            **header,
            **{name: arrays[name] for name in ("alphas", "objectives", "dual_gaps")},
            questions_asked=[Question("all", places, s, l1=l1, hessian=False) for places, s, l1 in points],
            norms=parts["norms"],
            held_out=None if held["scores"] is None else HeldOut(**held),  # type: ignore[arg-type]
            **optional,
        )
