"""What a report shows: plain arrays and words, wherever they come from (a fitted model, a run folder)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse

from ..fitted.risk_groups import RiskGroups
from .findings import StabilityFinding
from .genome import Genome
from .stream import StreamHistory
from .trust import Trust

Array = np.ndarray[Any, Any]


@dataclass
class FitQuality:
    """How well each task is fitted.

    Attributes
    ----------
    measure : str
        What `values` are, in words: "R2 on the training rows", "accuracy on held-out rows".
    values : array of shape (T,)
    rows : int array of shape (T,)
        Rows with a label.
    errors : array of shape (T,), optional
        Standard errors.
    overall : (float, float), optional
        Mean over tasks, and its standard error.
    unseen : bool
        Whether the model had not learned from these rows. The first such measure is the headline of a report.
    note : str
        Where the numbers come from, and what they hide.
    caveat : str
        The same in a few words, to stand beside a number: "optimistic: alpha was tuned on these rows".
    loss : bool
        Whether smaller is better.
    null : array of shape (T,), optional
        The same measure of the null model, which has intercepts and covariates only.
    null_overall : float, optional
        Its mean over tasks.
    null_words : str
        What it is made of.
    increment : (float, float), optional
        What the model adds to it, mean over tasks, and its standard error.
    pairs : int array of shape (T,), optional
        Comparable pairs that the concordance of each task is made of.
    """

    measure: str
    values: Array
    rows: Array
    errors: Array | None = None
    overall: tuple[float, float] | None = None
    unseen: bool = False
    note: str = ""
    caveat: str = ""
    loss: bool = False
    null: Array | None = None
    null_overall: float | None = None
    null_words: str = ""
    increment: tuple[float, float] | None = None
    pairs: Array | None = None

    def figures(self) -> str:
        """The mean over tasks with its standard error, how it is to be taken, and the null model beside it."""
        mean = (mean_of(self), np.nan) if self.overall is None else self.overall
        if not np.isfinite(mean[0]):
            return "not defined"
        details = ["mean over tasks"] if len(self.values) > 1 else []
        details += [self.caveat] if self.caveat else []
        return with_error(*mean) + (f" ({'; '.join(details)})" if details else "") + self.beside()

    def beside(self) -> str:
        """The null model, as the end of a sentence; nothing where it is not known."""
        if self.null_overall is None or self.increment is None or not np.isfinite(self.null_overall):
            return ""
        return f"; null model {with_error(self.null_overall)}, beyond it {with_error(*self.increment)}"


def mean_of(quality: FitQuality) -> float:
    """Over the tasks where the measure is defined; NaN where there is none."""
    values = np.asarray(quality.values, dtype=np.float64)
    known = values[np.isfinite(values)]
    return float(known.mean()) if known.size else np.nan


def with_error(value: float, error: float = np.nan) -> str:
    """ "0.604 ± 0.093"; what is only rounding about zero is zero."""
    value = 0.0 if abs(value) < 1e-9 else value
    return f"{value:.3g}" + (f" ± {error:.2g}" if np.isfinite(error) else "")


@dataclass
class ExtraTable:
    """A table of its own section."""

    title: str
    note: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]  # cells as text, the first of each row its name
    inside: Sequence[Sequence[tuple[str, str]]] | None = None  # names and values that each row opens to

    def is_text(self, column: int) -> bool:
        """Whether a column holds words."""
        return not all(row[column][:1] in "0123456789−+-–∞" for row in self.rows)


@dataclass
class CodeSample:
    """Lines to copy."""

    title: str  # what they do
    language: str  # "Python", "R", "shell"
    text: str
    note: str = ""  # what they need, what they leave out


@dataclass
class ReportContent:
    """The content of one report.

    Attributes
    ----------
    title : str
    asked, answered : str
        The question and the answer, each a few plain sentences.
    tasks : array of str, shape (T,)
    features : array of str, shape (d,)
    coef : sparse matrix of shape (T, d)
        The chosen model's coefficients.
    intercept : array of shape (T,)
    certificate : mapping
        ``objective``, ``dual_gap``, ``relative_gap``, ``tol``, ``null_objective`` (floats) and ``converged`` (bool).
    facts : sequence of (name, value)
        Anything else worth a line: rows, features, model, time.
    reproduce : str
        The command or code that gives the same answer.
    versions : mapping of str to str
    alphas : array of shape (K,), optional
        Strengths of the path; with it `path_coefs` (K sparse matrices of shape (T, d)), `n_selected`,
        `relative_gaps`, `seconds`, each of length K; `chosen` is the index of the model shown.
    rejection_ratios : array of shape (K,), optional
        Of a screening rule that was run at every value.
    cv_scores : array of shape (K, folds), optional
        With `cv_measure`, what they are, in words (smaller is better).
    quality : sequence of FitQuality
        For each row of coefficients.
    by_task : sequence of FitQuality
        For each task, where rows of coefficients are classes, or classes of tasks.
    warnings : sequence of str
        What the reader must know: missing values dropped, no convergence.
    row_noun : str
        What the rows of `coef` are: "task", or "class" for a multinomial model.
    tables : sequence of ExtraTable
        After the table of features: parts of the coefficients, groups, rates, classes.
    trust : Trust, optional
        What was found about the findings: permutations, stability, comparisons.
    proof : bytes, optional
        The certificate file of the model shown, which the page then checks against a file of data.
    proof_command : str
        What to run where the browser cannot check it.
    no_proof : str
        Why there is no `proof`, as part of a sentence.
    proven_zero, proven_nonzero : bool arrays of shape (d,), optional
        Features that are zero in every solution, and in none, by the certificate of the model shown.
    needs : sequence of (features, delta)
        Features of which one is needed at least, and by how much models without them are worse (`Certificate.needs`).
    needs_carried : bool
        Whether `proof` has these claims, too.
    fitted : bool
        Whether there is a model; where there are only findings, `coef` is empty and not shown.
    genome : Genome, optional
        Where features lie, if they are variants.
    selects : bool
        Whether the penalty leaves features out. Machines on a graph give a weight to each.
    covariates : int array
        Columns of features that are never penalised: they are not selected, and are listed apart from those that are.
    risk : RiskGroups, optional
        Of a survival model: what became of rows of low, middle and high risk, and what it expected.
    row_scales : array of shape (T,), optional
        What coefficients are divided by before they are compared between rows: strengths, order and colours. Numbers
        are shown as they are.
    column_scales : sparse matrix of shape (T, d), optional
        Standard deviations that the fit has divided columns by, of features in use: strengths, order and colours are of
        coefficients per standard deviation.
    shared : bool
        Whether all tasks share one X: they are targets of the same rows.
    methods : str
        A paragraph for an article.
    citations : sequence of str
        What it refers to.
    code : sequence of CodeSample
        Lines that fit the same model, or predict with it.
    stream : StreamHistory, optional
        How an online model came about.
    present : bool array of shape (T, d), optional
        Features that were measured in each task, where not all were.
    rule_command : str
        What chooses by one standard error in place of the best score.
    stability_command : str
        What asks which features would be found again; empty where that cannot be asked.
    """

    title: str
    asked: str
    answered: str
    tasks: Array
    features: Array
    coef: scipy.sparse.csr_array
    intercept: Array
    certificate: Mapping[str, float]
    facts: Sequence[tuple[str, str]] = ()
    reproduce: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)
    alphas: Array | None = None
    path_coefs: Sequence[scipy.sparse.csr_array] = ()
    n_selected: Array | None = None
    rejection_ratios: Array | None = None
    relative_gaps: Array | None = None
    seconds: Array | None = None
    chosen: int = -1
    cv_scores: Array | None = None
    cv_measure: str = ""
    quality: Sequence[FitQuality] = ()
    by_task: Sequence[FitQuality] = ()
    warnings: Sequence[str] = ()
    row_noun: str = "task"
    tables: Sequence[ExtraTable] = ()
    trust: Trust | None = None
    proof: bytes | None = None
    proof_command: str = "tasksieve verify RUN"
    no_proof: str = ""
    proven_zero: Array | None = None
    proven_nonzero: Array | None = None
    needs: Sequence[tuple[Array, float]] = ()
    needs_carried: bool = True
    fitted: bool = True
    genome: Genome | None = None
    risk: RiskGroups | None = None
    selects: bool = True
    covariates: Array = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    shared: bool = False
    methods: str = ""
    citations: Sequence[str] = ()
    code: Sequence[CodeSample] = ()
    stream: StreamHistory | None = None
    row_scales: Array | None = None
    column_scales: scipy.sparse.csr_array | None = None
    present: Array | None = None
    rule_command: str = 'selection_rule="1se"'
    stability_command: str = ""

    @property
    def unproved(self) -> bool:
        """Return whether there is no certificate at all, here or elsewhere."""
        return bool(self.no_proof) and not self.proof_command

    @property
    def penalised_coef(self) -> scipy.sparse.csr_array:
        """The coefficients of penalised features, those of covariates 0: what was selected."""
        return without_columns(self.coef, self.covariates)

    @property
    def n_selected_features(self) -> int:
        """Penalised features with a coefficient that is not 0."""
        return count_selected(self.coef, self.covariates)

    @property
    def headline(self) -> FitQuality | None:
        """The quality to see first: on rows that the model had not seen, if that is known."""
        every = [*self.by_task, *self.quality]
        return next((part for part in every if part.unseen), every[-1] if every else None)

    @property
    def shown(self) -> int | None:
        """Which part of `quality` the rows of coefficients are ordered by: the first of unseen rows, or the last."""
        unseen = [i for i, part in enumerate(self.quality) if part.unseen]
        return unseen[0] if unseen else len(self.quality) - 1 if self.quality else None


def stability_of(content: ReportContent) -> StabilityFinding | None:
    return None if content.trust is None else content.trust.stability


def without_columns(coef: scipy.sparse.csr_array, columns: Array) -> scipy.sparse.csr_array:
    """The matrix with zeros in some columns."""
    if not len(columns):
        return scipy.sparse.csr_array(coef)
    kept = np.ones(coef.shape[1])
    kept[columns] = 0.0
    found = scipy.sparse.csr_array(coef * kept[None, :])
    found.eliminate_zeros()
    return found


def count_selected(coef: scipy.sparse.csr_array, covariates: Array) -> int:
    """Penalised features with a coefficient that is not 0."""
    coef = without_columns(coef, covariates)
    return len(np.unique(coef.indices[coef.data != 0]))
