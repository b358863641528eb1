"""Names of version 0.2 that are others now: pickles that hold them load, and imports of them work, with a warning.

A pickle names the module of every object in it. The modules of `MODULES` are looked up here when nothing else has
found them.
"""

from __future__ import annotations

import sys
import warnings
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

# Old module -> new one, below the package.
MODULES = {
    "fitted.answers": "fitted.predictions",
    "fitted.deal": "fitted.fold_assignment",
    "linear.elastic_net": "linear.lasso",
    "linear.huber": "linear.regressions",
    "linear.logistic": "linear.classifier",
    "linear.offsets": "fitted.predicting",
    "linear.poisson": "linear.regressions",
    "linear.quantile": "linear.regressions",
    "linear.tall": "linear.sums",
    "path.lean": "path.device_path",
    "path.tall": "path.sums",
    "places": "row_names",
    "tasks.fold_dealer": "tasks.fold_assigner",
    **{
        f"graph.{name}": f"svm.{name}"
        for name in (
            "certificate", "certified", "classifier", "cross_validation", "finish", "grids", "hashing", "model", "path",
            "ranges", "reading", "regressor", "row_terms", "solver", "string_scores", "walk",
        )
    },
}  # fmt: skip
# Old name of a class -> new one.
CLASSES = {"FoldDealer": "FoldAssigner"}


class RenamedModules:
    """Finds modules by the names that they had; no class of importlib.abc, whose import takes half of the package's."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        package, _, name = fullname.partition(".")
        known = package == __package__ and name in MODULES
        return ModuleSpec(fullname, self) if known else None  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        new = import_module(f"{__package__}.{MODULES[spec.name.partition('.')[2]]}")
        old = ModuleType(spec.name, new.__doc__)
        old.__getattr__ = lambda name: getattr(new, CLASSES.get(name, name))  # type: ignore[method-assign]
        return old

    def exec_module(self, module: ModuleType) -> None:
        """Nothing: its attributes are those of the new module."""


def moved(name: str, old: str, new: str) -> Any:
    """What a public module had under a name, from where it is now, with a warning; an AttributeError otherwise."""
    module = import_module(new)
    if name.startswith("_") or name not in module.__all__:
        raise AttributeError(f"module {old!r} has no attribute {name!r}")
    warnings.warn(f"{old}.{name} has moved to {new}.{name}.", DeprecationWarning, stacklevel=3)
    return getattr(module, name)


def accept_old_methods(kind: type, names: dict[str, str]) -> None:
    """Methods that a class of the user's defines under an old name count under the new one, with a warning."""
    for old, new in names.items():
        if old in vars(kind) and new not in vars(kind):
            words = f"{kind.__name__}.{old}: this method is called {new} now."
            warnings.warn(words, DeprecationWarning, stacklevel=4)
            setattr(kind, new, vars(kind)[old])


def install() -> None:
    """Look for modules by their old names after all others have failed."""
    if not any(isinstance(finder, RenamedModules) for finder in sys.meta_path):
        sys.meta_path.append(RenamedModules())
