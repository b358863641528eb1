"""What a problem is in the words of the certificate's format (`docs/certificate-format.md`)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..verify import _key


def form_of(member: Any) -> Any:
    """The `certificate_form` of a loss or a penalty, if its own class defines it: a class derived from one that the
    format knows may be anything."""
    if "certificate_form" not in vars(type(member)):
        raise ValueError(
            f"{type(member).__name__} has no name in the certificate's format, so that no verifier could recompute it. "
            "Certificates are for the losses and penalties of tasksieve itself; the model's dual_gap_ is proved all "
            "the same."
        )
    return member.certificate_form()


#: alpha of a model -> alpha and ridge of the format
Strengths = Callable[[float], tuple[float, float]]


def stated_problem(model: Any, rows: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any], float, Strengths]:
    """The problem of a fitted model on data (X, y, ...): header and arrays of a certificate, the model's alpha, and the
    strengths of the format at any alpha."""
    found: tuple[dict[str, Any], dict[str, Any], float, Strengths] = model._in_words_of_the_format(**rows)
    return found


def label_words(labels: Any) -> Any:
    """Labels, or lists of them, as verifiers compare them."""
    return [label_words(label) for label in labels] if isinstance(labels, list) else _key(labels)


def plain_label(label: Any) -> Any:
    """A label of a task or class as JSON holds it; verifiers compare labels as words."""
    label = label.item() if isinstance(label, np.generic) else label
    if isinstance(label, bool | str | int) or (isinstance(label, float) and math.isfinite(label)):
        return label
    return str(label)


def plain_labels(labels: Any) -> list[Any]:
    return [plain_label(label) for label in np.asarray(labels).tolist()]
