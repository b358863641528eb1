"""Tests of devices are skipped where there is no torch, those marked gpu where there is no GPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from device_helpers import HAVE_TORCH

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[Any]) -> None:
    own = [item for item in items if HERE in Path(item.path).parents]
    if not own:
        return
    if not HAVE_TORCH:
        for item in own:
            item.add_marker(pytest.mark.skip(reason="torch is not installed: make test-torch"))
        return
    import torch

    torch.set_num_threads(1)  # the data are tiny
    if not torch.cuda.is_available():
        for item in own:
            if item.get_closest_marker("gpu"):
                item.add_marker(pytest.mark.skip(reason="no CUDA device: make test-gpu"))
