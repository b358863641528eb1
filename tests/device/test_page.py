"""The page "On a GPU" runs, on the processor where there is nothing else."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from device_helpers import DEVICES

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "gpu.md"


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.slow
def test_examples_run(device: str) -> None:
    blocks = re.findall(r"^```py\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    assert len(blocks) == 4
    namespace: dict[str, object] = {"__name__": "__main__"}
    for code in blocks:
        exec(compile(code.replace('"cuda"', f'"{device}"'), str(PAGE), "exec"), namespace)
