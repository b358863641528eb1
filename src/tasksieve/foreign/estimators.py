"""Fitted models of other programs that are in memory, read by their attributes; files of objects are never opened."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

_PROGRAMS = {
    "sklearn": "sklearn", "celer": "celer", "skglm": "skglm", "sksurv": "scikit-survival", "skein_glm": "skein-glm",
}  # fmt: skip
#: chosen by cross-validation, in place of the parameter
_CHOSEN = ("alpha_", "C_", "l1_ratio_")


class FittedElsewhere(NamedTuple):
    """What a fitted model says about itself."""

    problem: str
    parameters: dict[str, Any]
    coef: Any
    intercept: Any


def fitted_elsewhere(model: Any) -> FittedElsewhere | None:
    """Program, parameters and coefficients of a fitted estimator; None if it is none that is known."""
    root = type(model).__module__.partition(".")[0]
    if not hasattr(model, "get_params") or root not in _PROGRAMS:
        return None
    if not (hasattr(model, "coef_") or hasattr(model, "coefs_")):
        raise ValueError(f"{type(model).__name__} is not fitted: it has no coef_.")
    name, parameters = type(model).__name__, dict(model.get_params(deep=False))
    coef, intercept = getattr(model, "coef_", None), getattr(model, "intercept_", None)
    for own in _CHOSEN:
        if hasattr(model, own) and np.size(getattr(model, own)) == 1:
            parameters[own[:-1]] = float(np.ravel(getattr(model, own))[0])
    if root == "sksurv":
        parameters["alphas"], coef = model.alphas_, np.asarray(coef).T
        intercept = None
    elif root == "skein_glm" and hasattr(model, "coefs_"):
        parameters["lambdas"], coef, intercept = (
            model.lambdas_,
            model.coefs_,
            getattr(model, "intercepts_", None),
        )
    return FittedElsewhere(_PROGRAMS[root], {"estimator": name, **parameters}, coef, intercept)
