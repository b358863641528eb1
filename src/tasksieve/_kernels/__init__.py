"""The compiled kernels, or their NumPy twins where no compiled ones exist.

``kernels`` is the module in use. The environment variable ``TASKSIEVE_KERNELS`` chooses it: ``reference`` takes the
NumPy twins, a folder takes the ``_core`` extension found there (a sanitizer build, say).
"""

from __future__ import annotations

import importlib.util
import os
import warnings
from pathlib import Path
from types import ModuleType

from . import reference


def _load_compiled(folder: str | None) -> ModuleType:
    if folder is None:
        from . import _core  # type: ignore[attr-defined]

        module: ModuleType = _core
    else:
        found = sorted(Path(folder).glob("_core*.so")) + sorted(Path(folder).glob("_core*.pyd"))
        if not found:
            raise ImportError(f"TASKSIEVE_KERNELS={folder}: no compiled kernels (_core*.so) in that folder")
        spec = importlib.util.spec_from_file_location("tasksieve._kernels._core", found[0])
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    from scipy.linalg import cython_blas, cython_lapack

    module.use_blas(cython_blas.__pyx_capi__, cython_lapack.__pyx_capi__)
    return module


def _choose() -> ModuleType:
    wanted = os.environ.get("TASKSIEVE_KERNELS")
    if wanted == "reference":
        return reference
    if wanted:
        return _load_compiled(wanted)
    try:
        return _load_compiled(None)
    except ImportError as error:
        warnings.warn(
            "tasksieve was installed without its compiled kernels and runs on NumPy ones, many times slower: "
            "install a wheel, or a C++17 compiler and then tasksieve again, with pip's --force-reinstall "
            f"--no-cache-dir ({error})",
            RuntimeWarning,
            stacklevel=2,
        )
        return reference


kernels = _choose()
compiled = kernels is not reference

__all__ = ["compiled", "kernels", "reference"]
