"""When cross-validation has seen enough: all folds stop at the same value, by the mean of their held-out losses."""

from __future__ import annotations

import threading

import numpy as np

#: values in a row above the minimum of the mean curve, after which it is left; fewer were seen to change the choice
PATIENCE = 15


class MeanCurve:
    """Held-out losses of all folds as they come in (NaN where nothing is known), and where to stop, as far as that is
    known. Each fold by its own curve would be unsafe: one that turns early takes the minimum of the mean from all."""

    def __init__(self, n_values: int, n_folds: int, patience: int = PATIENCE) -> None:
        self.scores = np.full((n_values, n_folds), np.nan)
        self.n_scored = n_values
        self._patience = patience
        self._known = np.zeros(n_folds, dtype=np.int64)
        self._lowest, self._at, self._seen = np.inf, 0, 0
        self._lock = threading.Lock()

    def add(self, fold: int, first: int, scores: np.ndarray) -> None:
        """Losses of a fold at successive values, from the first one on."""
        with self._lock:
            self.scores[first : first + len(scores), fold] = scores
            self._known[fold] = first + len(scores)
            self._look()

    def add_remembered(self, fold: int, scores: np.ndarray) -> None:
        """All losses of a fold that was solved before, as far as it went (NaN beyond)."""
        with self._lock:
            self.scores[:, fold] = scores
            self.n_scored = min(self.n_scored, int(np.count_nonzero(~np.isnan(scores))))
            self._known[fold] = len(scores)
            self._look()

    def _look(self) -> None:
        while self._seen < min(int(self._known.min()), self.n_scored):
            mean = float(self.scores[self._seen].mean())
            if mean <= self._lowest:
                self._lowest, self._at = mean, self._seen
            self._seen += 1
            if self._seen - 1 - self._at >= self._patience:
                self.n_scored = self._seen

    def ended(self, k: int) -> bool:
        """Whether value k lies beyond the stop."""
        return k >= self.n_scored

    def near(self, k: int, lookahead: int) -> bool:
        """Whether value k is not so far ahead of the slowest fold, or beyond the stop anyway."""
        return self.ended(k) or k < int(self._known.min()) + lookahead
