"""The programs whose problems are known, by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from . import (
    adelie,
    celer,
    glmnet,
    lifelines,
    pyspark,
    scikit_learn,
    scikit_survival,
    skein_glm,
    skglm,
    statsmodels,
)
from .stated import GivenData, StatedProblem
from .words import Words

MODULES: dict[str, Any] = {
    "glmnet": glmnet,
    "glmstar": glmnet,
    "sklearn": scikit_learn,
    "scikit-survival": scikit_survival,
    "skglm": skglm,
    "celer": celer,
    "skein-glm": skein_glm,
    "adelie": adelie,
    "lifelines": lifelines,
    "statsmodels": statsmodels,
    "pyspark": pyspark,
}
#: other names of the same
ALSO = {"scikit-learn": "sklearn", "sksurv": "scikit-survival", "skein_glm": "skein-glm"}

PROGRAMS = tuple(MODULES)


def stated_by(program: str, parameters: Mapping[str, Any] | None, data: GivenData) -> StatedProblem:
    """The problem that a program has been given with some parameters."""
    name = ALSO.get(program, program)
    if name not in MODULES:
        raise ValueError(f"problem must be one of {', '.join(map(repr, PROGRAMS))}; got {program!r}.")
    module = MODULES[name]
    found: StatedProblem = module.stated(Words(name, parameters, module.SOLVER), data)
    return found
