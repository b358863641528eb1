"""An environment for each program: a virtual environment of its own, or R."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

HOME = Path(os.environ.get("TASKSIEVE_AUDIT_ENVIRONMENTS", Path(__file__).resolve().parent / "environments"))

#: what is installed for each; the newest versions when the audit was run
REQUIREMENTS: dict[str, tuple[str, ...]] = {}


class NotInstalled(Exception):
    """Why a program does not run here."""


def python_of(name: str) -> Path:
    """Python of that environment, which is made on first use."""
    home = HOME / name
    python = home / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    if (home / "ready").exists():
        return python
    print(f"making an environment for {name}: {' '.join(REQUIREMENTS[name])}", file=sys.stderr, flush=True)
    venv.EnvBuilder(with_pip=True, clear=True).create(home)
    words = [str(python), "-m", "pip", "install", "--quiet", *REQUIREMENTS[name]]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NotInstalled(done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "pip failed")
    (home / "ready").touch()
    return python


def rscript(package: str) -> str:
    """Rscript, if that package is there."""
    found = shutil.which("Rscript")
    if found is None:
        raise NotInstalled(
            "Rscript was not found (Debian: apt install r-base-core r-cran-glmnet r-cran-survival)"
        )
    words = [found, "-e", f'quit(status = !requireNamespace("{package}", quietly = TRUE))']
    if subprocess.run(words, capture_output=True, check=False).returncode:
        raise NotInstalled(f"R has no package {package} (Debian: apt install r-cran-{package.lower()})")
    return found
