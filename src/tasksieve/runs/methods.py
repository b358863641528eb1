"""A paragraph on the methods of a run, to paste into an article, with its numbers filled in; and what to cite."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..atomic import write_bytes
from ..findings.debiased import DebiasedInference
from ..fitted.choosing import two_rules
from ..report.content import count_selected
from ..report.methods import STATED, fit_words, gap_words, model_sentence, paper, software
from ..report.words import count
from ..tables import read_arrays
from ..tables.row_columns import groups_column
from .findings import read_findings
from .folder import CERTIFICATE, CONFIG, DATA, METHODS, TRANSFER, VERSIONS, RunFolder
from .model_file import read_parameters
from .quality_file import quality_from
from .registry import MODELS
from .results import CV_SCORES, read_columns, read_path

STABILITY_PAPERS = (
    "N. Meinshausen, P. Bühlmann (2010). Stability selection. Journal of the Royal Statistical Society B 72, 417-473.",
    "R. D. Shah, R. J. Samworth (2013). Variable selection with error control: another look at stability selection. "
    "Journal of the Royal Statistical Society B 75, 55-80.",
)
PERMUTATION_PAPER = (
    "B. Phipson, G. K. Smyth (2010). Permutation P-values should never be zero: calculating exact P-values when "
    "permutations are randomly drawn. Statistical Applications in Genetics and Molecular Biology 9, 39."
)
INTERVAL_PAPERS = (
    "D. R. Cox (1975). A note on data-splitting for the evaluation of significance levels. Biometrika 62, 441-444.",
    "R. M. Bell, D. F. McCaffrey (2002). Bias reduction in standard errors for linear regression with multi-stage "
    "samples. Survey Methodology 28, 169-181.",
)
DEBIASED_PAPERS = (
    "C.-H. Zhang, S. S. Zhang (2014). Confidence intervals for low dimensional parameters in high dimensional linear "
    "models. Journal of the Royal Statistical Society B 76, 217-242.",
    "S. van de Geer, P. Buehlmann, Y. Ritov, R. Dezeure (2014). On asymptotically optimal confidence regions and tests "
    "for high-dimensional models. Annals of Statistics 42, 1166-1202.",
)
TRANSFER_PAPERS = (
    "E. Craig, M. Pilanci, T. Le Menestrel, B. Narasimhan, M. A. Rivas, S.-E. Gullaksen, R. Dehghannasiri, J. Salzman, "
    "J. Taylor, R. Tibshirani (2025). Pretraining and the lasso. Journal of the Royal Statistical Society B.",
    "S. Li, T. T. Cai, H. Li (2022). Transfer learning for high-dimensional linear regression: prediction, estimation "
    "and minimax optimality. Journal of the Royal Statistical Society B 84, 149-173.",
)
COMPARISON_PAPERS = (
    "C. Nadeau, Y. Bengio (2003). Inference for the generalization error. Machine Learning 52, 239-281.",
    "S. Holm (1979). A simple sequentially rejective multiple test procedure. Scandinavian Journal of Statistics 6, "
    "65-70.",
)
PATTERNS = (
    "No missing value was filled in: rows of a task in which the same columns were present formed a task of their own "
    "(a pattern), and a feature that was not measured in a pattern has no coefficient there."
)
ASSUMED = {"none": "without assumptions", "unimodal": "assuming unimodality", "r-concave": "assuming r-concavity"}


def write_methods(folder: RunFolder) -> None:
    """``methods.txt``: the paragraph, and what to cite."""
    paragraph, citations = methods(folder)
    listed = "\n".join(f"- {line}" for line in citations)
    write_bytes(folder / METHODS, f"{paragraph}\n\nReferences\n{listed}\n".encode())


def methods(folder: RunFolder) -> tuple[str, list[str]]:
    """The paragraph of a run whose results are written, and what to cite, from its files."""
    config, data, version = folder.read_json(CONFIG), folder.read_json(DATA), tasksieve_version(folder)
    model = folder.read_json("model.json") if (folder / "model.json").is_file() else None
    name = MODELS[_kind(config)].estimators[0] if model is None else str(model.get("class"))
    said = [_model(name, model, config, data, version)]
    citations = [software(version), paper(name)]
    if config.get("command") == "transfer":
        said.append(f"What came from other tasks, by nested cross-validation: {folder.read_json(TRANSFER)['reason']}.")
        citations += TRANSFER_PAPERS
    said += _completed(model, data)
    if config.get("missing") == "patterns":
        said.append(PATTERNS)
    if model is not None:
        said += _fit(model, folder.read_json(CERTIFICATE), config, data, used_by_rules(folder, model, data))
    trust, _ = read_findings(folder)
    tested, sharing = trust.permutation, trust.sharing
    if tested is not None:
        said.append(
            f"Whether any feature matters was tested with {len(tested.null):,} permutations of {tested.moved} "
            f"(statistic: the smallest penalty strength that selects nothing): p = {tested.pvalue:.2g}"
            f"{' (approximate)' if tested.approximate else ''}."
        )
        citations.append(PERMUTATION_PAPER)
    if trust.stability is not None:
        said.append(_stability(trust.stability))
        citations += STABILITY_PAPERS
    if trust.intervals is not None:
        said.append(_intervals(trust.intervals, config))
        citations += DEBIASED_PAPERS if isinstance(trust.intervals, DebiasedInference) else INTERVAL_PAPERS
    if sharing is not None:
        said.append(
            f"The shared model was compared with one model per task by nested cross-validation ({sharing.folds}): "
            f"difference in mean {sharing.loss} over {count(len(sharing.tasks), 'task')} {sharing.difference_words()}; "
            "p-values of tasks were adjusted by Holm's method."
        )
        citations += COMPARISON_PAPERS
    return " ".join(said), citations


def tasksieve_version(folder: RunFolder) -> str:
    return str(folder.read_json(VERSIONS).get("tasksieve", ""))


def _kind(config: dict[str, Any]) -> str:
    return str(config.get("model", "lasso"))


def _model(
    name: str, model: dict[str, Any] | None, config: dict[str, Any], data: dict[str, Any], version: str
) -> str:
    """What was used, on what; without a model what was asked."""
    params = _numbers(config) if model is None else read_parameters(model)
    targets = config.get("target") if model is None else model.get("targets")
    shared = len(targets or ()) > 1 and (model is not None or config.get("task") is None)  # several targets of the rows
    n_covariates = 0 if model is None else int((model.get("facts") or {}).get("covariates", 0))
    tasks, rows = int(data["tasks"]), int(data["rows"])
    if shared:
        where = f"{count(rows, 'row')}, which {count(tasks, 'task')} (targets) share,"
    else:
        where = f"{count(tasks, 'task')} with {count(rows, 'row')} in all" if tasks > 1 else count(rows, "row")
    size = tasks, int(data["features"]), n_covariates
    standardised, new_task = bool(config.get("standardize")), config.get("command") == "transfer"
    return model_sentence(name, params, version, where, size, standardised, new_task)


def used_by_rules(folder: RunFolder, model: dict[str, Any], data: dict[str, Any]) -> tuple[int, int] | None:
    """Count the features used at the best score and at one standard error; None where nothing was compared."""
    if not (folder / CV_SCORES).is_file() or not (folder / "path.npz").is_file():
        return None
    scores = np.column_stack(list(read_columns(folder, CV_SCORES).values()))
    path, covariates = read_path(folder), np.empty(0, dtype=np.int64)
    if (model.get("facts") or {}).get("covariates"):
        covariates = np.flatnonzero(read_arrays(folder / "model.npz", stored=True)["param_feature_weights"] == 0.0)
    best, careful = two_rules(scores, str(data.get("cv_measure", "")))
    return count_selected(path.coefs[best], covariates), count_selected(path.coefs[careful], covariates)


def _numbers(config: dict[str, Any]) -> dict[str, Any]:
    """A configuration in which parameters that are typed as text, since they may be several numbers, are numbers."""
    typed = {key: value for key, value in config.items() if key in STATED and isinstance(value, str)}
    return {**config, **{key: float(value) for key, value in typed.items() if "," not in value}}


def _completed(model: dict[str, Any] | None, data: dict[str, Any]) -> list[str]:
    """What was left out, how words were coded, and what was filled in."""
    said, gone = [], int(data["table_rows"]) - int(data["rows"])
    if gone:
        said.append(f"Of {count(int(data['table_rows']), 'row')} of the table {gone:,} were not used.")
    codings = [] if model is None else ((model.get("encoding") or {}).get("columns") or [])
    words = [coding for _, coding in codings if isinstance(coding, list) or (coding and "words" in coding)]
    if words:
        apart = sum(isinstance(coding, dict) for coding in words)
        reference = f"; {apart:,} of them had a reference category without one" if apart else ""
        said.append(f"{count(len(words), 'column')} of categories became indicators, one for each category{reference}.")
    lost = data.get("missing")
    if lost:
        said.append(
            f"{count(int(lost['values']), 'value')} of {count(int(lost['columns']), 'feature column')} were missing "
            f"(at most {lost['most']}): {lost['treatment']}."
        )
        if str(lost["treatment"]).startswith("filled"):
            said.append("The certificate is about the completed data.")
    return said


def _fit(
    model: dict[str, Any],
    certificate: dict[str, Any],
    config: dict[str, Any],
    data: dict[str, Any],
    used: tuple[int, int] | None,
) -> list[str]:
    strength = MODELS[_kind(config)].strength
    value, gap = float(model["params"][strength]), float(certificate["relative_gap"])
    if config.get("command") == "path":
        last = f"the last is alpha = {value:.4g}"
        return [f"The model was solved for a sequence of penalty strengths; {last}. {gap_words(gap)}"]
    chosen = None
    if config.get("cv"):
        folds = str(data.get("cv_folds") or f"{config['cv']} folds")
        chosen = folds, str(config.get("selection_rule", "min"))
    said = [fit_words(strength, value, gap, chosen, data.get("cv_compared"), used)]
    if "cv_quality" in model:
        quality = quality_from(model["cv_quality"])
        if np.isfinite(quality.overall[0]):
            value, error = float(quality.overall[0]), float(quality.overall_errors[0])
            details = ["mean over tasks"] if len(quality.tasks) > 1 else []
            details += [f"standard error {error:.2g}"] if np.isfinite(error) else []
            details += [quality.caveat] if quality.optimistic else []
            more = f" ({'; '.join(details)})" if details else ""
            null = ""
            if quality.null_overall is not None and np.isfinite(quality.null_overall[0]):
                null = f", that of the {quality.null_words} {quality.null_overall[0]:.3g}"
            said.append(f"Out of fold, {quality.measures[0]} was {value:.3g}{more}{null}.")
    return said


def _stability(found: Any) -> str:
    n = found.n_stable
    others = [
        f"{bound:.2g} {ASSUMED[name]}"
        for name, bound in found.bounds.items()
        if name != found.assumption and np.isfinite(bound)
    ]
    more = f" ({'; '.join(others)})" if others else ""
    return (
        f"Stability of the selection was assessed by complementary pairs stability selection (Meinshausen and Bühlmann "
        f"2010; Shah and Samworth 2013) with {found.halves}: on each half the first q = {found.q:,} of p = "
        f"{found.n_candidates:,} {found.noun}s to enter the regularisation path were selected, and {found.noun}s "
        f"selected on at least {found.threshold:.0%} of the {2 * found.n_pairs} halves were called stable "
        f"({count(n, 'feature')}). The expected number of stable {found.noun}s whose selection probability on a half "
        f"is at most q/p is bounded by {found.bound:.2g} {ASSUMED[found.assumption]}{more}."
    )


def _intervals(found: Any, config: dict[str, Any]) -> str:
    where = ", where cross-validation chose the penalty strength anew" if config.get("cv") else ""
    errors = "CR2, by groups of rows" if groups_column(config.get("row_groups")) else "HC2"
    features = count(len(set(found.feature.tolist())), "feature")
    if isinstance(found, DebiasedInference):
        return (
            f"Effects of {features} were estimated task by task by the desparsified Lasso (Zhang and Zhang 2014; van "
            "de Geer et al. 2014) on all rows, with nodewise Lassos whose strengths follow the rule of Zhang and "
            f"Zhang; standard errors are {found.errors}. Intervals have a level of {found.level:.0%} and are not "
            "corrected for the selection; p-values of features over all tasks were adjusted for "
            f"{count(found.n_tests, 'feature')} by the methods of Holm and of Benjamini and Yekutieli."
        )
    return (
        f"Effects were estimated by data splitting (Cox 1975): the model selected {features} on one half of the rows"
        f"{where}, and on the other half their coefficients were estimated task by task without a penalty ("
        f"{found.halves}), with robust standard errors ({errors}) and degrees of freedom after Bell and McCaffrey "
        f"(2002). Intervals have a level of {found.level:.0%}; p-values are not corrected for the number of "
        "coefficients."
    )
