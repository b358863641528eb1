"""river's protocol: the online models count as river's regressors and classifiers.

They have ``learn_one``, ``predict_one`` and ``predict_proba_one`` with river's signatures; river's metrics and
evaluation also check the type: it is registered, not inherited, so that river stays optional.
"""

from __future__ import annotations

import sys

from sklearn.base import RegressorMixin

_known: set[type] = set()


def register(model: type) -> None:
    """Where river is loaded, make ``isinstance(model(), river.base.Regressor)`` (or ``Classifier``) true."""
    if "river" not in sys.modules or model in _known:
        return
    from river import base

    (base.Regressor if issubclass(model, RegressorMixin) else base.Classifier).register(model)
    _known.add(model)
