"""river's protocol: the online models count as river's regressors and classifiers.

They have ``learn_one``, ``predict_one`` and ``predict_proba_one`` with river's signatures; river's metrics and
evaluation also ask for the type. It is answered without inheriting, so that river stays optional.
"""

from __future__ import annotations

_done = False


def register() -> None:
    """Make ``isinstance(model, river.base.Regressor)`` (or ``Classifier``) true; done by itself if river is loaded."""
    global _done
    if _done:
        return
    from river import base

    from .estimators import OnlineMultiTaskClassifier, OnlineMultiTaskRegressor

    base.Regressor.register(OnlineMultiTaskRegressor)
    base.Classifier.register(OnlineMultiTaskClassifier)
    _done = True
