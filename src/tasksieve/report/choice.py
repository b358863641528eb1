"""Which features the best score keeps, which one standard error, and what stability selection says beside them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..fitted.choosing import two_rules
from .content import ReportContent, stability_of, without_columns
from .packing import comparable, row_norms
from .words import are, capital, count, few

NAMED = 10  # features of a set that are named
BEST, CAREFUL = "at the best score", "at one standard error"
PREDICTS = "predictions use these"


@dataclass(frozen=True)
class RuleCounts:
    """The values of a path that two rules choose from the same scores; one of them is the model's.

    - `best`, `careful`: Index of the best score, and of the strongest penalty within one standard error of it.
    - `used_best`, `used_careful`: Features in use there, strongest first.
    - `careful_predicts`: Whether the model is that of one standard error.
    """

    best: int
    careful: int
    used_best: list[int]
    used_careful: list[int]
    careful_predicts: bool

    @property
    def differ(self) -> bool:
        return self.best != self.careful


def choice_of(content: ReportContent) -> RuleCounts | None:
    """Find what two rules choose; None where the model was not chosen by scores, or selects nothing."""
    if content.cv_scores is None or content.alphas is None or not content.selects or not content.fitted:
        return None
    scores = np.asarray(content.cv_scores, dtype=np.float64)
    if scores.shape[0] != len(content.alphas):
        return None
    best, careful = two_rules(scores, content.cv_measure)
    chosen = content.chosen % len(content.alphas)
    if chosen not in (best, careful):
        return None
    return RuleCounts(best, careful, _used(content, best), _used(content, careful), chosen == careful)


def _used(content: ReportContent, k: int) -> list[int]:
    """Penalised features that value k of the path uses, strongest first."""
    coef = without_columns(content.path_coefs[k], content.covariates)
    used = np.unique(coef.indices[coef.data != 0])
    return [int(j) for j in used[np.argsort(-row_norms(comparable(content, coef))[used], kind="stable")]]


def leading_words(content: ReportContent, used: str) -> str:
    """Which features one standard error leaves, how many the best score keeps, and which of both predictions use:
    sentences for the top of an answer, around the one (`used`) on the model's own features."""
    found = choice_of(content)
    if found is None:
        return used
    names, used = few((content.features[j] for j in found.used_careful), NAMED), used[:1].lower() + used[1:]
    listed = f" They are {names}." if names else ""
    if not found.differ:
        return f"At the best score, which is the choice of one standard error as well, {used}{listed}"
    if found.careful_predicts:
        return f"{capital(CAREFUL)}, which predictions use, {used}{listed} {capital(BEST)}: {len(found.used_best):,}."
    n, of = len(found.used_careful), count(content.coef.shape[1] - len(content.covariates), "feature")
    careful = f"{n:,} of {of} {are(n)} used: {names}" if n else f"none of {of} is used"
    return f"{capital(CAREFUL)} {careful}. {capital(BEST)}, which predictions use, {used}"


def used_by_rules(content: ReportContent) -> tuple[int, int] | None:
    """Count the features in use at the best score and at one standard error; None without scores."""
    found = choice_of(content)
    return None if found is None else (len(found.used_best), len(found.used_careful))


def set_tiles(content: ReportContent) -> list[tuple[str, str, str]]:
    """(number, name, remark) of the sets of features that two rules and the halves of the rows leave, the most reliable
    first; without scores of the features in use alone."""
    if not content.fitted or not content.selects:
        return []
    n_covariates = len(content.covariates)
    beside = f"; {count(n_covariates, 'covariate')} beside" if n_covariates else ""
    of = f"of {content.coef.shape[1] - n_covariates:,}{beside}"
    found = choice_of(content)
    if found is None:
        n = content.n_selected_features
        return [(f"{n:,}", f"{'feature' if n == 1 else 'features'} selected", of)]
    stable = stable_tile(content)
    if not found.differ:
        sets = [_set(found.used_best, f"{BEST} and {CAREFUL}", f"{of}; {PREDICTS}")]
    elif found.careful_predicts:
        sets = [_set(found.used_careful, CAREFUL, f"{of}; {PREDICTS}"), _set(found.used_best, BEST, "")]
    else:
        how = f"{of}; a click, or {content.rule_command}"
        sets = [_set(found.used_careful, CAREFUL, how), _set(found.used_best, BEST, f"{of}; {PREDICTS}")]
    return [*stable, *sets] if stability_of(content) is not None else [*sets, *stable]


def stable_tile(content: ReportContent) -> list[tuple[str, str, str]]:
    """Tile of what stability selection keeps, or of what asks it; nothing where it cannot be asked."""
    stability = stability_of(content)
    if stability is not None:
        remark = f"at most {stability.bound:.2g} by chance, on average" if np.isfinite(stability.bound) else ""
        return [(f"{stability.n_stable:,}", "stable features", remark)]
    if not content.fitted or not content.selects or not content.stability_command:
        return []
    return [("not asked", "stable features", f"which come back in halves of the rows: {content.stability_command}")]


def looks(content: ReportContent) -> list[tuple[int, str]]:
    """Values of the path that a click shows, other than the model's, with words for them."""
    found = choice_of(content)
    if found is None or not found.differ:
        return []
    if found.careful_predicts:
        return [(found.best, f"{capital(BEST)} ({len(found.used_best):,})")]
    return [(found.careful, f"{capital(CAREFUL)} ({len(found.used_careful):,})")]


def noise_words(content: ReportContent) -> list[str]:
    """That the best score keeps noise, where the model is that of the best score."""
    if not content.fitted or not content.selects or not content.n_selected_features:
        return []
    found, stability = choice_of(content), stability_of(content)
    if found is None and content.cv_scores is None and content.stability_command and stability is None:
        return [
            "The penalty strength was given, not chosen by cross-validation: there are no scores that say whether "
            "fewer features would do as well, and features in use may be noise. Which would be found again, stability "
            f"selection says ({content.stability_command})."
        ]
    if found is None or (found.differ and found.careful_predicts):
        return []
    said = (
        "The best score keeps noise, as a rule: the penalty that predicts best is weak enough to let in features that "
        f"do not matter. At the best score {len(found.used_best):,} {are(len(found.used_best))} used"
    )
    if found.differ:
        said += f", at one standard error {len(found.used_careful):,} ({content.rule_command})"
    if stability is not None:
        said += f", and {stability.n_stable:,} {are(stability.n_stable)} stable"
    elif content.stability_command:
        said += f"; which would be found again, stability selection says ({content.stability_command})"
    return [f"{said}."]


def _set(used: list[int], where: str, remark: str) -> tuple[str, str, str]:
    return f"{len(used):,}", f"{'feature' if len(used) == 1 else 'features'} {where}", remark
