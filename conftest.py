"""Modules that import torch are looked at for examples only where it is installed."""

from __future__ import annotations

import importlib.util

NEED_TORCH = [
    "design/device/*.py",
    "path/device_batch.py",
    "solvers/batch_newton.py",
    "solvers/device_newton.py",
    "solvers/device_row_newton.py",
    "solvers/recorded.py",
]
collect_ignore_glob = [] if importlib.util.find_spec("torch") else [f"src/tasksieve/{name}" for name in NEED_TORCH]
