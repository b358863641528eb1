"""An empty virtual environment whose PATH has neither a compiler nor anything else."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

TRIAL = Path(__file__).parent / "wheel_trial.py"
KEPT = ("PIP_", "SSL_", "HTTP", "HOME", "SYSTEMROOT", "TEMP")  # what pip needs to find packages


class BareEnvironment:
    def __init__(self, folder: Path, python: str = sys.executable) -> None:
        self.programs = folder / ("Scripts" if os.name == "nt" else "bin")
        subprocess.run([python, "-m", "venv", str(folder)], check=True)
        self.variables = {
            **{name: value for name, value in os.environ.items() if name.upper().startswith(KEPT)},
            "PATH": str(self.programs),
            "CC": "false",
            "CXX": "false",
        }

    def run(self, program: str, *words: str, code: int = 0) -> str:
        """What a program of this environment prints; it must end with `code`."""
        ended = subprocess.run(
            [str(self.programs / program), *words],
            env=self.variables,
            cwd=self.programs,
            capture_output=True,
            text=True,
            check=False,
        )
        said = ended.stdout + ended.stderr
        assert ended.returncode == code, f"{program} {' '.join(words)}: {ended.returncode}\n{said}"
        return said

    def install(self, *what: str) -> str:
        return self.run("python", "-m", "pip", "--disable-pip-version-check", "install", "--prefer-binary", *what)

    def trial(self, kernels: str) -> str:
        return self.run("python", str(TRIAL), kernels)
