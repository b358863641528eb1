"""A model in the words of an article: what it is, what it minimises, whom to cite."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..members import LOSSES, PENALTIES, Registry, base_name, formula, options
from .words import are, count, few

WANG = "J. Wang, J. Ye (2015). Safe screening for multi-task feature learning with multiple data matrices. ICML."
BAO = "R. Bao, Q. Lu, Y. Zhang (2025). Safe screening rules for group OWL models."
GONG = "P. Gong, J. Zhou, W. Fan, J. Ye (2014). Efficient multi-task feature learning with calibration. KDD."
WIDMER = (
    "C. Widmer, M. Kloft, N. Görnitz, G. Rätsch (2012). Efficient training of graph-regularized multitask SVMs. "
    "ECML PKDD."
)
YANG = "H. Yang, I. King, M. R. Lyu (2010). Online learning for multi-task feature selection. CIKM."
PAPERS = {
    "CalibratedMultiTaskLasso": GONG,
    "MultiTaskOWL": BAO,
    "MultinomialOWL": BAO,
    "GraphSVC": WIDMER,
    "GraphSVR": WIDMER,
    "OnlineMultiTaskRegressor": YANG,
    "OnlineMultiTaskClassifier": YANG,
}
WORDS = {
    "MultiTaskLasso": "the multi-task lasso (squared loss, L2,1 penalty: all tasks share their features)",
    "MultiTaskElasticNet": "the multi-task elastic net (squared loss, L2,1 and ridge penalties)",
    "MultiTaskLogisticRegression": "multi-task logistic regression (L2,1 penalty: all tasks share their features)",
    "MultiTaskHuber": "a robust multi-task lasso (Huber loss, L2,1 penalty)",
    "MultiTaskQuantile": "multi-task quantile regression (smoothed pinball loss, L2,1 penalty)",
    "MultiTaskPoisson": "multi-task Poisson regression (L2,1 penalty: all tasks share their features)",
    "MultiTaskCox": "Cox proportional hazards regression for several tasks ({penalty} penalty)",
    "MultiTaskOrdinal": "proportional odds regression for several tasks ({penalty} penalty)",
    "MultiTaskMixed": "a multi-task model with a loss of its own for each task ({penalty} penalty)",
    "MultiTaskGroupLasso": "the multi-task group lasso (squared loss; groups of features over all tasks)",
    "MultiTaskRegressor": "a multi-task model with {loss} loss and {penalty} penalty",
    "MultiTaskClassifier": "a multi-task classifier with {loss} loss and {penalty} penalty",
    "CalibratedMultiTaskLasso": "the calibrated multi-task lasso (square-root loss, L2,1 penalty; Gong et al. 2014)",
    "MultiTaskOWL": "a multi-task model with squared loss and a sorted penalty (Group OWL; Bao et al. 2025)",
    "MultinomialOWL": "multinomial logistic regression with a sorted penalty (Group OWL; Bao et al. 2025)",
    "MultiTaskSparseGroupLasso": "the multi-task sparse group lasso ({loss} loss)",
    "GraphSVC": "support vector machines for tasks on a graph (Widmer et al. 2012)",
    "GraphSVR": "support vector regression for tasks on a graph (Widmer et al. 2012)",
    "OnlineMultiTaskRegressor": "regularised dual averaging for several tasks (squared loss; Yang et al. 2010)",
    "OnlineMultiTaskClassifier": "regularised dual averaging for several tasks ({loss} loss; Yang et al. 2010)",
}
# the loss of a model, where it has no parameter of that name
LOSS = {
    "MultiTaskLogisticRegression": "logistic",
    "MultiTaskHuber": "huber",
    "MultiTaskQuantile": "quantile",
    "MultiTaskPoisson": "poisson",
    "MultiTaskCox": "cox",
    "MultiTaskOrdinal": "ordinal",
    "MultiTaskMixed": "mixed",
    "CalibratedMultiTaskLasso": "square-root",
    "MultinomialOWL": "multinomial",
    "MultiTaskClassifier": "logistic",
}
PENALTY = {
    "MultiTaskSparseGroupLasso": "sparse_group",
    "MultiTaskGroupLasso": "groups",
    "MultiTaskOWL": "owl",
    "MultinomialOWL": "owl",
}
# parameters that are part of an objective, and are given with their value
STATED = (
    "l1_ratio", "l1", "group", "delta", "q", "smoothing", "level", "size", "power", "ridge", "l2", "graph_strength",
    "epsilon",
)  # fmt: skip


def software(version: str) -> str:
    return f"tasksieve developers. tasksieve, version {version or '?'} (software)."


def paper(name: str) -> str:
    """The paper whose method an estimator is."""
    return PAPERS.get(plain(name), WANG)


def plain(name: str) -> str:
    """The estimator without the cross-validation that chose its strength."""
    return name.removesuffix("CV")


def _name(registry: Registry[Any], member: Any) -> str:
    """A loss or a penalty by name: a word without its options; of an object the name of its class there, or that of the
    class itself."""
    if isinstance(member, str):
        return base_name(member).replace("_", " ")
    return (registry.name_of(type(member)) or type(member).__name__).replace("_", " ")


def _penalty_words(member: Any) -> str:
    """A penalty in words: the label of its class, or the name of a class that is not the package's."""
    kind = _member(PENALTIES, member)[0]
    own = None if formula(kind) is None else vars(kind).get("label")
    return _name(PENALTIES, member) if own is None else str(own)


def _loss_words(member: Any) -> str:
    """A loss by name, with its options: "huber (delta = 1.35)"."""
    given = LOSSES.make(member).parameters() if isinstance(member, str) else member.parameters()
    return f"{_name(LOSSES, member)}{_values(given, list(given))}"


def _member(registry: Registry[Any], given: Any) -> tuple[type | None, dict[str, Any]]:
    """The class of a loss or a penalty, and its options where they are given with it."""
    if not isinstance(given, str):
        return type(given), given.parameters()
    return (registry[given], registry.options_of(given)) if given in registry else (None, {})


def model_words(name: str, params: Mapping[str, Any]) -> str:
    """What an estimator is, with its loss and penalty where it has a choice."""
    loss, penalty = _name(LOSSES, _loss_of(plain(name), params)), _penalty_words(_penalty_of(plain(name), params))
    return WORDS.get(plain(name), plain(name)).format(loss=loss, penalty=penalty)


def objective_words(name: str, params: Mapping[str, Any]) -> str:
    """The objective as one line of text, with the values of its parameters (as far as given) but for the strength."""
    name = plain(name)
    own = {key: value for key, value in params.items() if value is not None}
    if name.startswith("Online"):
        penalty = {"l11": "α Σ_j ‖W_j‖₁", "l1+l21": "α Σ_j (l1 ‖W_j‖₁ + ‖W_j‖₂)"}.get(
            str(own.get("penalty")), "α Σ_j ‖W_j‖₂"
        )
        ridge = " + l2/2 ‖W‖²" if own.get("l2") else ""
        used = ["l1" if own.get("penalty") == "l1+l21" else "", "l2" if ridge else ""]
        return f"⟨Ḡ, W⟩ + {penalty}{ridge} + γ/(2√t) ‖W‖², Ḡ the mean gradient of t steps" + _values(own, used)
    if name.startswith("Graph"):
        loss = str(own.get("loss", "hinge" if name == "GraphSVC" else "epsilon_insensitive")).replace("_", " ")
        used = ["graph_strength", "epsilon" if "insensitive" in loss else ""]
        terms = "½ Σ_t ‖w_t‖² + ½ Σ_st L_st w_s·w_t + C Σ_i loss_i"
        return f"{terms}, with the {loss} loss and L the graph's Laplacian{_values(own, used)}"
    loss, penalty = _name(LOSSES, _loss_of(name, own)), _name(PENALTIES, _penalty_of(name, own))
    found = _member(LOSSES, _loss_of(name, own)), _member(PENALTIES, _penalty_of(name, own))
    members = [kind for kind, _ in found]
    mixed = name == "MultiTaskMixed"
    own = {**own, **({} if mixed else found[0][1]), **found[1][1]}
    first = formula(members[0]) or f"1/n̄ Σ_t Σ_i f(y_i, x_i·w_t + b_t), f the loss {loss},"
    if mixed:
        members, first = members[1:], _mixed_words(own)
    second = formula(members[-1]) or f"α Ω(W), Ω the penalty {penalty},"
    used = [option.name for kind in members if kind is not None for option in options(kind)]
    more = ""
    if name == "MultiTaskElasticNet":
        second, used = "α (l1_ratio Σ_j ‖W_j‖₂ + (1 − l1_ratio)/2 ‖W‖²)", ["l1_ratio"]
    for key in ("ridge", "l2"):
        if isinstance(own.get(key), int | float | np.number) and own[key]:
            more, used = f" + {key}/2 ‖W‖²", [*used, key]
    if own.get("task_graph") is not None:
        more, used = f"{more} + graph_strength/2 Σ_j W_j L W_jᵀ", [*used, "graph_strength"]
    return f"{first} + {second}{more}".removesuffix(",") + _values(own, used)


#: of a new task from a fitted model, after its objective
DIFFERENCE = (
    ", where W is the difference to coefficients c that come from other tasks, x_i·c is added to every prediction, and "
    "the penalty weights features"
)


def _mixed_words(params: Mapping[str, Any]) -> str:
    """The losses of unlike outcomes: which task has which, or where tasks are not named, which there are."""
    losses = params.get("losses", "squared")
    if isinstance(losses, Mapping):
        tasks: dict[str, list[str]] = {}
        for task, loss in losses.items():
            tasks.setdefault(_loss_words(loss), []).append(str(task))
        said = "; ".join(f"{loss} of {few(own, 4)}" for loss, own in tasks.items())
    else:
        each = losses if isinstance(losses, list | tuple) else [losses]
        said = ", ".join(dict.fromkeys(_loss_words(loss) for loss in each))
    return (
        f"1/n̄ Σ_t v_t Σ_i f_t(y_i/σ_t, x_i·w_t + b_t), with losses f_t ({said}), v_t one over the root mean square "
        "of the residuals of the model without features and σ_t the standard deviation of real-valued labels (1 of "
        "others) unless given otherwise,"
    )


WHERE = "W_j are the coefficients of feature j in all {rows}"
ROWS = "n̄", "the mean number of observed labels per task"
# how cross-validation has chosen, by the name of its rule
RULES = {"min": "the smallest held-out loss", "1se": "the one-standard-error rule"}


def model_sentence(
    name: str, params: Mapping[str, Any], version: str, where: str, size: tuple[int, int, int], standardised: bool,
    new_task: bool = False,
) -> str:
    """What was used, on rows in words and a size in numbers (tasks, features, covariates), and what it minimises."""
    n_tasks, n_features, n_covariates = size
    beside = f" beside {count(n_covariates, 'covariate')}, which are not penalised" if n_covariates else ""
    scales = ", standardised within tasks" if standardised else ""
    objective, meant = objective_words(name, params), ""
    if n_tasks == 1 and ROWS[0] in objective:
        meant = f", where {ROWS[0]} is the number of observed labels"
    elif n_tasks > 1 and not name.startswith(("Graph", "Online")):
        meant = f", where {WHERE.format(rows='classes' if plain(name) == 'MultinomialOWL' else 'tasks')}"
        meant += f" and {' '.join(ROWS)}" if ROWS[0] in objective else " and n the number of rows"
    return (
        f"We used {model_words(name, params)}, as implemented in tasksieve {version}, on {where} and "
        f"{count(n_features - n_covariates, 'feature')}{beside}{scales}. It minimises "
        f"{objective}{meant}{DIFFERENCE if new_task else ''}."
    )


def fit_words(
    strength: str,
    value: float,
    gap: float | None,
    chosen: tuple[str, str] | None,
    compared: Mapping[str, Any] | None = None,
    used: tuple[int, int] | None = None,
) -> str:
    """How strongly a model was penalised, by which folds and rule that was chosen, and its relative gap.

    - `compared`: A second parameter that was chosen with it: its ``name``, its ``values``, the ``chosen`` one.
    - `used`: How many features are in use at the best score and at one standard error.
    """
    proved = "" if gap is None else f" {gap_words(gap)}"
    if chosen is None:
        return f"The model was fitted with {strength} = {value:.4g}.{proved}"
    folds, rule = chosen
    how = f"chosen by cross-validation ({folds}; {RULES[rule]})"
    sets = ""
    if used is not None:
        best, careful = used
        sets = (
            f" At the best score {count(best, 'feature')} {are(best)} in use, at one standard error {careful:,}: the "
            "best score is chosen for prediction, and keeps noise as a rule."
        )
    if compared is None:
        return f"The penalty strength ({strength} = {value:.4g}) was {how}.{sets}{proved}"
    among = ", ".join(f"{float(other):.4g}" for other in compared["values"])
    second = f"{compared['name']} = {float(compared['chosen']):.4g} (among {among})"
    return f"The penalty strength ({strength} = {value:.4g}) and {second} were {how} together.{sets}{proved}"


def gap_words(gap: float) -> str:
    if gap == 0.0:
        return "the empty model explains the outcome, so that no coefficients have a lower objective"
    return (
        "The duality gap proves that no other coefficients of this kind have a smaller penalised loss by more than "
        f"{gap:.1e} of that of the empty model."
    )


def _loss_of(name: str, params: Mapping[str, Any]) -> Any:
    return params.get("loss") or LOSS.get(name, "squared")


def _penalty_of(name: str, params: Mapping[str, Any]) -> Any:
    return params.get("penalty") or PENALTY.get(name, "l21")


def _values(params: Mapping[str, Any], used: Sequence[str]) -> str:
    values = [
        f"{key} = {params[key]:.4g}"
        for key in STATED
        if key in used and isinstance(params.get(key), int | float | np.number)
    ]
    return f" ({', '.join(values)})" if values else ""
