"""Effects with intervals: the numbers of a `split_inference` or `debiased_inference` as the page shows them, and plain
words for them."""

from __future__ import annotations

from typing import Any

import numpy as np

from .words import number, quantity

MOST = 5_000  # coefficients in a page, of the features with the smallest p-values


#: which finding answers which question, the same as in the documentation
QUESTIONS = (
    ("the effect of features that were named before looking", "debiased intervals, from all rows"),
    ("the effects of all features, and which are not zero", "debiased intervals of all, with corrected p-values"),
    ("intervals of features that were selected, honest about the selection", "splitting, from half of the rows"),
    ("features that would be found again", "stability selection; it gives no effects"),
    ("a list with a bounded share of false ones", "knockoffs; they give no effects"),
)


def by_evidence(found: Any) -> np.ndarray:
    """Places of the coefficients: features with the smallest p-value first, the tasks of each in their order."""
    rows = np.where(np.isnan(found.row_pvalue), np.inf, found.row_pvalue)
    places = {name: k for k, name in enumerate(dict.fromkeys(found.feature.tolist()))}
    return np.lexsort((np.array([places[name] for name in found.feature.tolist()], dtype=np.int64), rows))


def interval_data(found: Any) -> dict[str, Any]:
    """For the picture and the table: feature, task, and the numbers of each coefficient."""
    order = by_evidence(found)[:MOST].tolist()
    names = ("estimate", "std_error", "lower", "upper", "pvalue", "row_pvalue")
    rows = [[str(found.feature[k]), str(found.task[k]), *(number(found[name][k]) for name in names)] for k in order]
    return {"level": found.level, "rows": rows}


def interval_words(low: Any, high: Any) -> str:
    """ "0.718 to 1.78"; nothing where it is not known."""
    return "–" if low is None or np.isnan(low) else f"{quantity(low)} to {quantity(high)}"


def explanation(found: Any) -> str:
    """What the numbers are, and what they are not."""
    left = len(found) - MOST
    several = len(set(found.task.tolist())) > 1
    rows = "; the last one is of the feature in all tasks together" if several else ""
    more = f" {left:,} more coefficients are in intervals.csv." if left > 0 else ""
    if hasattr(found, "bias_factor"):
        return (
            "The shrinkage of the penalty was taken out of the model's coefficients, one by one, on the rows that it "
            f"was fitted to; standard errors are {found.errors}. An interval is about its feature beside all others, "
            "needs a model whose error is small, which no data can prove, and it is not corrected for the selection: "
            "of features that were selected because chance helped them, fewer intervals hold the truth. P-values here "
            f"are not corrected for their number{rows}; intervals.csv has corrected ones, and the error of the model "
            f"that each interval tolerates.{more}"
        )
    return (
        f"One half of the rows selected the features ({found.halves}), so that they need not be those of the model "
        "below, which all rows have selected. On the other half each task was fitted to them without a penalty; "
        "standard errors are robust. An interval is about the best combination of these features together. P-values "
        f"are not corrected for their number{rows}.{more}"
    )
