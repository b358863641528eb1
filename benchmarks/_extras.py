"""A benchmark without the packages it needs says which extra of tasksieve brings them, before it measures anything.

Importing this is enough: `_common` does. What is missing is found by reading the script (`missing_of`) when its
arguments have been read, and whatever is met later (`ModuleNotFoundError`) ends in the same words, not in a traceback.
"""

from __future__ import annotations

import ast
import importlib.util
import re
import sys
import tomllib
from pathlib import Path
from types import TracebackType

HERE = Path(__file__).resolve().parent
PACKAGES = {"sksurv": "scikit-survival"}  # that are imported under another name
FIRST = ("bench", "plot", "cluster", "gpu")  # the extras to name where several bring a package


def extra_of(package: str) -> str | None:
    """The extra that brings a package, by the name it is imported under; None: no extra does."""
    with open(HERE.parent / "pyproject.toml", "rb") as file:
        extras = tomllib.load(file)["project"]["optional-dependencies"]
    wanted = package.partition(".")[0].lower().replace("_", "-")
    wanted = PACKAGES.get(wanted, wanted)
    for extra in [*FIRST, *extras]:
        names = [re.split(r"[\[<>=!~; ]", need)[0].lower() for need in extras.get(extra, ())]
        if wanted in names:
            return extra
    return None


def in_words(script: str, packages: list[str]) -> str:
    """What to install."""
    extras = list(dict.fromkeys(extra for package in packages if (extra := extra_of(package)) is not None))
    what = f"'tasksieve[{','.join(extras)}]'" if extras else " ".join(packages)
    needed = "extra" if len(extras) == 1 else "extras"
    of = f" ({needed} {', '.join(extras)} of tasksieve)" if extras else ""
    return f"{script} needs {', '.join(packages)}{of}, not installed here: pip install {what}"


def tried(tree: ast.AST) -> set[str]:
    """Packages without which a script knows how to go on: it catches the failure."""
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.Try)]
    caught = [node for node in nodes if any("ImportError" in ast.unparse(handler) for handler in node.handlers)]
    return {name for node in caught for name in imports_of(node)}


def imports_of(node: ast.AST) -> list[str]:
    """Packages imported in a piece of code."""
    if isinstance(node, ast.Import):
        return [alias.name.partition(".")[0] for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        return [(node.module or "").partition(".")[0]]
    return [name for child in ast.iter_child_nodes(node) for name in imports_of(child)]


def missing_of(script: Path) -> list[str]:
    """Packages of the extra `bench` that a script imports, or the peers that it takes from `_peers` do, and that are
    not here. Those of other extras are for parts of a script that may not be asked for: they are named when met."""
    source = script.read_text(encoding="utf-8")
    tree = ast.parse(source)
    names = [name for name in imports_of(tree) if name not in tried(tree)]
    if "find_spec" not in source:  # which asks by itself which peers there are
        taken = {
            alias.name
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and node.module == "_peers"
            for alias in node.names
        }
        peers = ast.parse((HERE / "_peers.py").read_text(encoding="utf-8"))
        names += [name for node in peers.body if getattr(node, "name", None) in taken for name in imports_of(node)]
    known = [name for name in dict.fromkeys(names) if extra_of(name) == "bench"]
    return [name for name in known if importlib.util.find_spec(name) is None]


def require_extras(script: Path) -> None:
    """End with the command that installs what a script lacks."""
    missing = missing_of(script) if script.is_file() and script.parent == HERE else []
    if missing:
        sys.exit(in_words(script.name, missing))


def _hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if isinstance(error, ModuleNotFoundError) and error.name and extra_of(error.name):
        sys.exit(in_words(Path(sys.argv[0]).name, [error.name.partition(".")[0]]))
    sys.__excepthook__(kind, error, trace)


sys.excepthook = _hook
