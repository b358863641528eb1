"""The tutorial runs as it is printed: three sites, each a process, files between them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "three_sites.py"


@pytest.mark.slow
def test_three_sites_in_one_command(tmp_path: Path) -> None:
    told = subprocess.run([sys.executable, EXAMPLE], capture_output=True, text=True, cwd=tmp_path, timeout=900)
    assert told.returncode == 0, told.stderr
    assert "30 of 30 values select the same features" in told.stdout
    assert "signed by all sites" in told.stdout
