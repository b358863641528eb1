"""Covariates: features that a model never penalises. They are part of its null model, and no finding."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..tasks import read_feature_weights


def covariates_of(model: Any, n_features: int) -> np.ndarray:
    """Features whose weight in ``feature_weights`` is 0, by their numbers."""
    weights = read_feature_weights(getattr(model, "feature_weights", None), n_features)
    return np.empty(0, dtype=np.int64) if weights is None else np.flatnonzero(weights == 0.0)
