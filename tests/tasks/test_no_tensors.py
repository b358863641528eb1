"""Without torch, or without tensors, nothing of it is imported, and a device is refused with what to install."""

from __future__ import annotations

import subprocess
import sys


def run(code: str) -> list[str]:
    hidden = (  # as if it were not installed
        "import sys\n"
        "class Hidden:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name.partition('.')[0] == 'torch':\n"
        "            raise ImportError(name)\n"
        "sys.meta_path.insert(0, Hidden())\n"
    )
    done = subprocess.run([sys.executable, "-c", hidden + code], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def test_fits_import_no_torch() -> None:
    code = (
        "import sys, numpy as np, tasksieve as ts\n"
        "X = np.random.default_rng(0).standard_normal((30, 8))\n"
        "ts.MultiTaskLassoCV(n_alphas=5, cv=3).fit(X, X[:, 0]).predict(X)\n"
        "print('torch' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False"]


def test_devices_and_arrays_on_a_gpu_need_torch() -> None:
    words = run(
        "import numpy as np, tasksieve as ts\n"
        "class Theirs:\n"
        "    shape = (4, 4)\n"
        "    def __dlpack__(self, **options): raise AssertionError\n"
        "    def __dlpack_device__(self): return (2, 0)\n"
        "X = np.eye(4)\n"
        "for call in (\n"
        "    lambda: ts.on_device(X),\n"
        "    lambda: ts.MultiTaskLasso(device='cuda').fit(X, X[:, 0]),\n"
        "    lambda: ts.MultiTaskLasso().fit(Theirs(), np.zeros(4)),\n"
        "):\n"
        "    try:\n"
        "        call()\n"
        "    except ImportError as error:\n"
        "        print(error)\n"
        "print(ts.MultiTaskLasso(0.1).fit(X, X[:, 0]).predict(X).shape)\n"
    )
    assert words == [
        "device='cuda' needs torch, which is not installed: pip install 'tasksieve[gpu]'",
        "device='cuda' needs torch, which is not installed: pip install 'tasksieve[gpu]'",
        "X of type Theirs, which lies on a GPU, needs torch, which is not installed: pip install 'tasksieve[gpu]'",
        "(4,)",
    ]
