"""Modules that import torch are looked at for examples only where it is installed."""

from __future__ import annotations

import importlib.util

collect_ignore_glob = (
    []
    if importlib.util.find_spec("torch")
    else ["src/tasksieve/design/device/*.py", "src/tasksieve/solvers/device_newton.py", "src/tasksieve/solvers/batch_newton.py"]
)
