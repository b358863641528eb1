"""What is known here of a value that was solved on a device: all that a certificate needs, of no more than a few
features and the samples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


@dataclass
class Listed:
    """Features whose gauges reach a level, ascending, these gauges with their rounding, and how long the raw columns
    are, in units of their weights."""

    features: Array
    gauges: Array
    reach: Array


@dataclass
class SolvedThere:
    """A value of a problem.

    - `features`, `rows`: What is not zero.
    - `residual`: Of these rows, as the device has it: the dual point whose gauges are `listed`.
    - `level`: What gauges of features that are not listed do not reach, for raw columns at most `longest` long.
    """

    lam: float
    features: Array
    rows: Array
    residual: Array
    listed: Listed
    level: float
    longest: float
    gap: float
    n_steps: int
    rounds: int
    n_working: int
    n_readings: float
