"""An installed tasksieve, tried from end to end: ``python wheel_trial.py [compiled | reference]``.

Needs nothing but the package with its command line (``[cli,report]``): run it where neither a compiler nor a checkout
is in reach.
"""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

import numpy as np

import tasksieve as ts
from tasksieve import _kernels
from tasksieve.verify import verify


def command(*words: str) -> str:
    program = Path(sysconfig.get_path("scripts")) / "tasksieve"
    done = subprocess.run([str(program), *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def main(kernels: str) -> None:
    assert _kernels.compiled == (kernels == "compiled"), f"kernels: {_kernels.kernels.__name__}"

    rng = np.random.default_rng(0)
    X, task = rng.standard_normal((120, 60)), np.repeat(["a", "b", "c"], 40)
    y = X[:, 0] - 2.0 * X[:, 1] + 0.1 * rng.standard_normal(120)
    model = ts.MultiTaskLasso(alpha=0.05, tol=1e-6).fit(X, y, task=task)
    assert {0, 1} <= set(np.flatnonzero(model.get_support()).tolist())

    with tempfile.TemporaryDirectory() as folder:
        certificate = Path(folder) / "certificate.npz"
        model.certificate(X, y, task=task).save(certificate)
        verdict = verify(certificate, X, y, task=task)
        assert verdict.proved, verdict.words

        table, run = Path(folder) / "table.csv", Path(folder) / "run"
        rows = (f"{t},{float(x[0])},{float(x[1])},{float(v)}\n" for t, x, v in zip(task, X, y, strict=True))
        table.write_text("task,first,second,y\n" + "".join(rows), encoding="utf-8")
        command("fit", str(table), "--target", "y", "--task", "task", "--alpha", "0.1", "--out", str(run))
        assert "first" in (run / "coefficients.csv").read_text(encoding="utf-8")
        assert (run / "report.html").stat().st_size > 10_000

    version = command("--version")
    assert ts.__version__ in version, version
    print(f"Python {sys.version.split()[0]}, NumPy {np.__version__}, {kernels} kernels: {verdict.words}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "compiled")
