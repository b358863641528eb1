"""Parameters of estimators, each described once: in Python, in the documentation and on the command line.

From these tables come the defaults of constructors and their checks (`fitted.parameters`), the entries of docstrings
(`fitted.documented`), the options of the command line (`cli.options`) and the words of its errors (`cli.messages`).
Nothing heavy is imported here: the command line shows its help without NumPy. So a check is named, not imported.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

from .docstrings import Entry, written


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of an estimator.

    - `kind`: Its type in the words of the documentation.
    - `text`: What it is for.
    - `check`: ``fitted.allowed.check_<check>(value, name)`` raises where the value is not allowed.
    - `typed`: Type of its option on the command line; None where it has none of its own.
    - `option`: That option where it is not ``--name``; a switch has its opposite after a slash.
    - `help`: What the command line says of it, where that is not ``text``.
    """

    name: str
    kind: str
    default: Any
    text: str
    check: str | None = None
    typed: Any = None
    option: str | None = None
    help: str | None = None

    @property
    def flag(self) -> str:
        """What is typed for it."""
        return self.option or "--" + self.name.replace("_", "-")

    def with_sentence(self, text: str) -> Parameter:
        """The same parameter with a further sentence."""
        return replace(self, text=f"{self.text} {text}")

    def entry(self, default: Any) -> Entry:
        """Its entry in a docstring, with the default of a signature."""
        kind = self.kind
        if "default=" not in kind:
            kind += ", optional" if default is None else f", default={_shown(default)}"
        return written(self.name, kind, self.text)


def _shown(value: Any) -> str:
    if isinstance(value, str):
        return f'"{value}"'
    return repr(value).replace("e-0", "e-")


def table(*parameters: Parameter) -> dict[str, Parameter]:
    """Parameters by name, in the order of signatures."""
    return {parameter.name: parameter for parameter in parameters}


_WITHOUT_EFFECT = "For compatibility with scikit-learn; without effect"

# fmt: off
#: of estimators: first the common ones, in the order of signatures
PARAMETERS = table(
    Parameter(
        "alpha", "float", 1.0,
        "Strength of the penalty, > 0. `alpha_max` gives the smallest value at which nothing is selected.",
        typed=str,
        help="Strength of the penalty (calibrated: or 'universal'); without it, it is chosen by "
        "cross-validation.",
    ),
    Parameter(
        "ridge", "float", 0.0, "Strength of the ridge beside the penalty, >= 0.",
        check="not_negative", typed=float, help="Strength of a ridge beside the penalty.",
    ),
    Parameter(
        "task_graph", '"chain", array or sparse matrix of shape (T, T), or networkx graph', None,
        "A: symmetric weights >= 0 of the edges between tasks, whose coefficients become similar. Rows are "
        "in the order of ``tasks_``; the nodes of a networkx graph are the labels of tasks, all of them and "
        'no others. "chain": each task beside the next in ``tasks_``, as for time points.',
        typed=str,
        help="Neighbouring tasks have similar coefficients: 'chain' (tasks in order), 'complete', or a CSV "
        "file as for --graph.",
    ),
    Parameter(
        "graph_strength", "float", 1.0,
        r":math:`\gamma` >= 0. Like the ridge it does not grow with alpha; features that are never "
        "penalised are not coupled.",
        check="not_negative", typed=str,
        help="Graph SVM, --task-graph: how strongly neighbours agree (with --cv several, 0.1,1,10).",
    ),
    Parameter(
        "class_weight", 'dict or "balanced"', None,
        "Factors of the sample weights, by label (1 for those not named), or such that within each task "
        "every class counts alike.",
        check="class_weight", typed=Literal["balanced"], help="Weigh classes by their rarity.",
    ),
    Parameter(
        "alphas", "array or int", None, "Values to compare; an integer is another way to give ``n_alphas``.",
        check="alphas", typed=str,
        help="How many values of alpha, or the values themselves: 1,0.5,0.1. (default: 100)",
    ),
    Parameter(
        "n_alphas", "int", 100, "Number of values, geometrically from ``alpha_max`` to ``eps`` times that.",
        check="count", option="--alphas",
    ),
    Parameter(
        "eps", "float", 1e-2, "The smallest value / ``alpha_max``.",
        check="share", typed=float, help="Smallest alpha / largest alpha. (default: 0.01)",
    ),
    Parameter(
        "cv", "int, splitter or iterable of (train, test) row indices, default=5", None,
        "An integer: that many folds, shuffled within each task (and class); rows of one of the ``groups`` "
        "of `fit` stay together. Splitters that take groups get those, or else the tasks. Rows are counted "
        "in the order given (lists: stacked).",
        typed=int, help="Folds of the cross-validation that chooses alpha. (default: 5)",
    ),
    Parameter(
        "scoring", "str or callable", None,
        "Name of a scikit-learn scorer, or ``scorer(estimator, X, y)``, greater is better. It judges the "
        "held-out rows of each task, and tasks count alike, but for those where it is not defined. By "
        "default the loss.",
        check="scorer",
    ),
    Parameter(
        "selection_rule", '{"min", "1se"}', "min",
        "The smallest mean loss, or the largest alpha within one standard error of it.",
        check="selection_rule", typed=Literal["min", "1se"], option="--rule,--selection-rule",
        help="Smallest loss, or fewest features within one standard error of it. (default: min)",
    ),
    Parameter(
        "fold_tol", "float", None,
        "Relative gap that folds are solved to; by default the larger of ``tol`` and 1e-4. The final path "
        "keeps ``tol``.",
        check="not_negative", typed=float,
        help="Relative duality gap of the folds. (default: --tol, at least 1e-4)",
    ),
    Parameter(
        "early_stopping", "bool", False,
        "All folds stop at the same value, when their mean loss has stayed above its minimum for 15 values "
        "in a row. Values given in ``alphas`` are all solved.",
        check="switch", typed=bool, option="--early-stopping/--full-path",
        help="Leave the path when the mean held-out loss has stayed above its minimum for 15 values in a "
        "row, or solve all values. (default: early-stopping)",
    ),
    Parameter(
        "keep_folds", 'bool or "nested"', False,
        "Keep the models of the folds, which `predict_interval` of numbers and `predict_set` of classes need. "
        '"nested": models whose alpha was chosen by folds of their own training rows, which has not seen what is held '
        "out: so many cross-validations more.",
        check="kept",
    ),
    Parameter(
        "fit_intercept", "bool", True, "One intercept per task (and class), not penalised.",
        check="switch", typed=bool, option="--intercept/--no-intercept",
        help="One intercept per task, or none.",
    ),
    Parameter(
        "positive", "bool", False, "Only coefficients >= 0.",
        check="switch", typed=bool, option="--positive/--any-sign",
    ),
    Parameter(
        "standardize", "bool", False,
        "Penalise the coefficients of columns scaled to unit standard deviation within each task. ``coef_`` "
        "is in the units of X all the same.",
        check="switch", typed=bool, option="--standardize/--as-is, /--no-standardize",
        help="Penalise columns scaled to unit deviation within tasks, or as they are; coefficients are in "
        "the table's units. (default: standardize)",
    ),
    Parameter(
        "feature_weights", "array of shape (d,)", None,
        r":math:`u_j \ge 0`, the weights of the features in the penalty; 0 means never penalised.",
        check="feature_weights",
    ),
    Parameter(
        "task_weights", 'array of shape (T,), dict or "balanced"', None,
        r":math:`v_t > 0`: in the order of ``tasks_``, or by label (1 for those not named), or :math:`\bar "
        "n / n_t`, so that every task counts once.",
        check="task_weights", typed=Literal["balanced"], help="Every task counts once.",
    ),
    Parameter(
        "task", "str or int", None,
        "The column of X that holds the task of each row: its name in a data frame, or its number. It is no "
        "feature. `predict` and `score` find it there, too, so that `sklearn.model_selection.GridSearchCV` and "
        "other tools need not know of tasks. By default tasks are given apart.",
        check="column",
    ),
    Parameter(
        "tol", "float", 1e-6,
        "Stop when the dual gap is at most ``tol`` times the objective at W = 0 with the best intercepts.",
        check="not_negative", typed=float, help="Stop at this relative duality gap. (default: 1e-6)",
    ),
    Parameter(
        "max_iter", "int", 10_000,
        "Iterations after which to give up, with a `sklearn.exceptions.ConvergenceWarning`.",
        check="count", typed=int, help="Iterations after which to give up.",
    ),
    Parameter(
        "screening", '{"auto", "dpc", "midpoint", "gap", None}', "auto",
        "Safe rule that discards features before and while solving; None: no screening.",
        typed=str, help="Rule that discards features: auto, dpc, gap, none, ...",
    ),
    Parameter("warm_start", "bool", False, "Start from the solution of the last `fit`.", check="switch"),
    Parameter(
        "n_jobs", "int", None,
        "Threads of the kernels; by default all processors available (see ``TASKSIEVE_NUM_THREADS``).",
        check="jobs", typed=int, option="--threads",
        help="Threads; the same number gives the same bytes. (default: all processors)",
    ),
    Parameter(
        "device", "str or torch.device", None,
        'Where X is worked on, "cuda" for example: it is moved there once a fit (`on_device` moves it once '
        "for many). By default X stays where it is, a tensor on its device.",
        check="device", typed=str,
        help="Where X is worked on: cuda, cuda:1; it is moved there once. (default: the processor)",
    ),
    Parameter(
        "verbose", "int", 0,
        "Report progress on stderr, about once a second; with 2, a line for each value with its cost.",
        check="verbose",
    ),
    Parameter("copy_X", "bool", True, f"{_WITHOUT_EFFECT}: X is never modified.", check="switch"),
    Parameter(
        "selection", '{"cyclic", "random"}', "cyclic", f"{_WITHOUT_EFFECT}: the solver is deterministic.",
        check="selection",
    ),
    Parameter(
        "random_state", "int, RandomState, Generator or None, default=None", None,
        f"{_WITHOUT_EFFECT}: the solver is deterministic.",
        check="seed", typed=int, option="--seed",
        help="Seed of folds, halves and permutations, which are drawn within tasks. (default: 0)",
    ),
    # of single models
    Parameter(
        "l1_ratio", "float", 0.5,
        "Share of the L2,1 norm, 0 < ``l1_ratio`` <= 1; 1 is `MultiTaskLasso`. 0, a pure ridge, selects "
        "nothing and is refused.",
        check="share", typed=str,
        help="Elastic net: share of the selecting penalty (with --cv several, 0.5,0.9).",
    ),
    Parameter(
        "l1", "float or array of shape (d,)", 0.01, ":math:`r_j`: what a single coefficient costs.",
        check="l1", typed=float, help="Sparse group: cost of a single coefficient.",
    ),
    Parameter(
        "group", "float", 1.0,
        "g: what a feature costs. 0 gives independent Lassos under one strength (iMTFS); ``l1=0`` is "
        "`MultiTaskLasso`.",
        check="not_negative", typed=float, help="Sparse group: cost of a feature.",
    ),
    Parameter(
        "l2", "float", 0.0,
        "Strength of the ridge, >= 0: the variant of [1]_. A coefficient shrinks the more the larger it is, "
        "so unlike ``alpha`` it depends on the units of y.",
        check="not_negative", typed=str, help="Calibrated: ridge penalty (with --cv several, 0,0.1).",
    ),
    Parameter(
        "loss",
        '{"squared", "huber", "quantile", "expectile", "log_cosh", "poisson", "negative_binomial", "gamma", "tweedie", '
        '"square-root"} or Loss',
        "squared",
        'f, also with its options, "tweedie:power=1.3"; or an object of `tasksieve.losses`: a '
        "`tasksieve.losses.RowLoss` of your own.",
        typed=str,
        help="Loss, for models that have several: {names} with --model any, which is the model where --loss "
        "or --penalty is given and no other. Its options stand behind a colon: tweedie:power=1.3.",
    ),
    Parameter(
        "penalty", '{"l21", "l11", "sparse_group", "linf", "dirty", "owl"} or RowPenalty', "l21",
        r":math:`\Omega`, or an object of `tasksieve.penalties`: a `tasksieve.penalties.RowPenalty` of your "
        "own.",
        typed=str, help="Penalty, with --model any: {names}.",
    ),
    Parameter(
        "feature_groups", "array of shape (d,) or mapping", None,
        'The group of each feature, any labels; or ``{"name": [features], ...}``. Each feature is in '
        "exactly one group; by default every feature is a group.",
        typed=str,
        help="Group lasso: a CSV file with columns feature and group; 'column' makes a group of the words "
        "of each column.",
    ),
    Parameter(
        "inside", '{None, "rows", "entries"}, default=None', None,
        "Features of a chosen group are all in; or some of them; or some, each for some tasks.",
        typed=Literal["rows", "entries"], help="Group lasso: what may be zero inside a group.",
    ),
    Parameter(
        "ties", '{"efron", "breslow"}', "efron",
        "How events at the same time are treated: by Efron's approximation, or by Breslow's, which compares each of "
        "them with all rows at risk, the others among them.",
        typed=Literal["efron", "breslow"], help="Cox: how events at the same time are treated. (default: efron)",
    ),
    Parameter(
        "delta", "float", 1.35,
        "Residuals beyond it count by their size, not by their square. In the units of y: there is no "
        "estimate of scale in it, unlike in scikit-learn's `HuberRegressor`. A large delta gives "
        "`MultiTaskLasso`, a small one least absolute deviations.",
        check="positive", typed=float,
        help="Huber: residuals up to this are squared, in units of the target.",
    ),
    Parameter(
        "q", "float", 0.5, "The quantile that is predicted, between 0 and 1.",
        typed=float, option="--quantile", help="Quantile: which one, between 0 and 1.",
    ),
    Parameter(
        "smoothing", "float", 0.1,
        r":math:`\mu > 0`, in the units of y: part of the objective that is certified. Smaller is nearer to "
        "the pinball loss, and slower.",
        check="positive", typed=float, help="Quantile: width over which its kink is rounded.",
    ),
    Parameter(
        "weights", '{"oscar", "slope"} or array of shape (d,)', "oscar",
        r':math:`\omega`, one weight for each rank. "oscar": falling linearly; "slope": the '
        r"Benjamini-Hochberg line :math:`\Phi^{-1}(1 - k q / (2d))`; both divided by their first, so that "
        r":math:`\omega_1 = 1`. An array is taken as it is: non-negative and not increasing.",
        typed=Literal["oscar", "slope"], option="--owl-weights", help="OWL: the sorted weights.",
    ),
    Parameter(
        "oscar_ratio", "float", 1.0,
        r'For "oscar": :math:`\omega_k \propto 1 + \text{ratio}\,(d - k)/d`; 0: equal weights, as in '
        "`MultiTaskLasso`.",
        check="not_negative", typed=float, help="OWL: how fast the OSCAR weights fall.",
    ),
    Parameter(
        "fdr", "float", 0.1, 'For "slope": q, the target rate of false discoveries, in (0, 1].',
        check="share", typed=float, help="OWL: false discovery rate of the SLOPE weights.",
    ),
    Parameter(
        "graph", "array or sparse matrix of shape (T, T), networkx graph", None,
        r"Weights :math:`A_{st} \ge 0`, symmetric. None: independent machines. Helpers: "
        "`tasksieve.graph.complete_graph`, `~tasksieve.graph.tree_graph`, "
        "`~tasksieve.graph.nearest_neighbor_graph`, `~tasksieve.graph.distance_graph`.",
        typed=str,
        help="Graph SVM: 'complete', 'none', or a CSV file (a square matrix headed by task names, or edges: "
        "from,to,weight).",
    ),
    Parameter(
        "C", "float", 1.0, "Weight of the loss, > 0.",
        check="positive", typed=float, help="Graph SVM: weight of the loss.",
    ),
    Parameter(
        "epsilon", "float", 0.1,
        "Half the width of the tube in which residuals cost nothing, >= 0. The squared loss has no tube.",
        check="not_negative", typed=float, help="Graph SVM, numbers: half the width of the tube.",
    ),
    Parameter(
        "intercept_scaling", "float", 1.0, "The larger, the less the intercept is regularised.",
        typed=float, help="Graph SVM: size of the constant feature.",
    ),
)

#: of estimators that choose by cross-validation
CROSS_VALIDATED = PARAMETERS | table(
    PARAMETERS["class_weight"].with_sentence("They count in the held-out loss, too, but not in ``scoring``."),
    replace(
        PARAMETERS["n_jobs"],
        text="Folds solved side by side, in threads that share X; by default one at a time, with all processors.",
    ),
    replace(
        PARAMETERS["random_state"],
        text="Seed of the shuffled folds; None is 0. The fold of a row depends on it, on its task's place in "
        "``tasks_`` and on its place among that task's observed rows.",
    ),
)

#: of `StabilitySelection`
STABILITY = table(
    Parameter(
        "n_pairs", "int", 50, "B, pairs of complementary halves.",
        typed=int, option="--pairs", help="Pairs of complementary halves. (default: 50)",
    ),
    Parameter(
        "threshold", "float", None,
        r":math:`\tau`, the share of the halves that have to select a stable feature; above 1/2.",
        typed=float, help="Share of the halves that must select a stable feature, above 0.5. (default: 0.75)",
    ),
    Parameter(
        "pfer", "float", None, "Bound to keep on the expected number of false selections.",
        typed=float, help="Expected number of false selections, at most. (default: 1)",
    ),
    Parameter(
        "q", "int", None,
        "Features selected on each half. Two of ``threshold``, ``pfer`` and ``q`` give the third, three are "
        "checked. By default, and beside one of the others, the threshold is 0.75; beside a threshold "
        "``pfer`` is 1.",
        typed=int, option="--features-per-half",
        help="Features that count as selected on each half. (default: follows from --pfer and --threshold)",
    ),
    Parameter(
        "assumption", '{"none", "unimodal", "r-concave"}', "unimodal",
        "About how often a feature that does not matter is selected: the more is assumed, the smaller the "
        "bound.",
        typed=Literal["none", "unimodal", "r-concave"],
        help="What is assumed of features that do not matter: the more, the smaller the bound. (default: "
        "unimodal)",
    ),
    Parameter(
        "small_tasks", '{"error", "drop"}', "error",
        "What to do about tasks that cannot be halved, having one row, or rows of one group.",
        typed=Literal["error", "drop"], help="Tasks that cannot be halved. (default: error)",
    ),
)
# fmt: on
