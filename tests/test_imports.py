"""Imports run one way and stay light; what is built on the library uses its public names."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import tasksieve

PACKAGE = Path(tasksieve.__file__).parent

# The parts of the library from the ground up. A part imports from its own level or from those below it.
LEVELS = (
    ("_kernels", "atomic", "complex_numbers", "datasets", "described", "docstrings", "members", "renamed", "row_names"),
    ("messages", "optional", "outcomes", "parameters", "plotting", "user_warnings", "verify"),
    ("versions",),
    ("design",),
    ("screening", "storages"),
    ("losses", "penalties"),
    ("solvers",),
    ("path",),
    ("proof",),
    ("tasks",),
    ("fitted",),
    ("foreign", "genotypes", "tables"),
    ("linear",),
    ("online",),
    ("graph",),
    ("svm",),
    ("exports", "federated", "findings", "problem_file"),
    ("checks",),
    ("report",),
    ("",),  # tasksieve/__init__.py itself, which gathers the public names
    ("runs",),
    ("cli",),
    ("__main__",),
)
MOST_LAYERS = 12
LEVEL = {part: level for level, parts in enumerate(LEVELS) for part in parts}


def modules() -> dict[str, Path]:
    """Dotted name within the package ("" for the package itself) -> file."""
    found = {}
    for file in sorted(PACKAGE.rglob("*.py")):
        parts = list(file.relative_to(PACKAGE).with_suffix("").parts)
        if parts[-1] == "__init__":
            parts.pop()
        found[".".join(parts)] = file
    return found


MODULES = modules()


@cache
def imported(name: str) -> frozenset[str]:
    """The modules of this package that a module imports, at its top or inside its functions."""
    file = MODULES[name]
    here = ("tasksieve." + name).rstrip(".").split(".")
    package = here if file.name == "__init__.py" else here[:-1]
    targets: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            targets.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            source = ".".join(base + (node.module.split(".") if node.module else []))
            targets.update(f"{source}.{alias.name}" for alias in node.names)
    found = set()
    for target in targets:
        if target != "tasksieve" and not target.startswith("tasksieve."):
            continue
        inner = target.removeprefix("tasksieve").removeprefix(".")
        while inner and inner not in MODULES:  # `from module import name`: the module, not the name
            inner = inner.rpartition(".")[0]
        if inner != name:
            found.add(inner)
    return frozenset(found)


def below(graph: dict[str, set[str]], name: str) -> set[str]:
    """All that a node imports, directly or not; the node itself if that leads in a circle."""
    found: set[str] = set()
    ahead = list(graph[name])
    while ahead:
        other = ahead.pop()
        if other not in found:
            found.add(other)
            ahead.extend(graph[other])
    return found


def circles(graph: dict[str, set[str]]) -> set[str]:
    """The nodes that import themselves in the end."""
    return {name for name in graph if name in below(graph, name)}


def longest_chain(graph: dict[str, set[str]]) -> list[str]:
    """The longest chain of imports, from the top down; nodes of a circle count as one layer each."""
    chains: dict[str, list[str]] = {}

    def chain(name: str, above: frozenset[str]) -> list[str]:
        if name not in chains:
            under = [chain(other, above | {name}) for other in sorted(graph[name] - above)]
            chains[name] = [name, *max(under, key=len, default=[])]
        return chains[name]

    return max((chain(name, frozenset({name})) for name in sorted(graph)), key=len)


def part_of(name: str) -> str:
    return name.split(".")[0]


@cache
def parts() -> dict[str, set[str]]:
    """Part -> parts it imports."""
    found: dict[str, set[str]] = {part_of(name): set() for name in MODULES}
    for name in MODULES:
        found[part_of(name)].update({part_of(other) for other in imported(name)} - {part_of(name)})
    return found


def test_imports_run_downwards() -> None:
    unknown = {part_of(name) for name in MODULES} - set(LEVEL)
    assert not unknown, f"new parts {sorted(unknown)}: give them a level in {Path(__file__).name}"
    upwards = [
        f"tasksieve.{name} imports upwards, from tasksieve.{other}"
        for name in MODULES
        for other in imported(name)
        if LEVEL[part_of(other)] > LEVEL[part_of(name)]
    ]
    assert not upwards


def test_parts_have_no_import_cycles() -> None:
    """Within a level too: the parts themselves, each taken as one piece, can be put in an order."""
    assert not circles(parts()), f"these parts import each other in a circle: {sorted(circles(parts()))}"


def test_modules_have_no_import_cycles() -> None:
    """The modules themselves, imports inside functions counted, can be put in an order."""
    assert not circles({name: set(imported(name)) for name in MODULES})


def test_chains_and_circles_are_found() -> None:
    graph = {"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"c", "e"}, "e": set()}
    assert circles(graph) == {"a", "b", "c"}
    assert below(graph, "d") == {"a", "b", "c", "e"}
    assert longest_chain({"a": {"b", "c"}, "b": {"c"}, "c": set(), "d": {"c"}}) == ["a", "b", "c"]


def test_imports_are_not_deep() -> None:
    """At most 12 layers of parts, each importing from those below it."""
    chain = longest_chain(parts())
    assert len(chain) <= MOST_LAYERS, f"{len(chain)} layers: {' > '.join(name or 'tasksieve' for name in chain)}"


def private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("__")


def private_uses(file: Path) -> list[str]:
    """Where a module reaches into what is not its own: private attributes of other objects, private names imported.

    `self._x` and the module's names are its own. A string that names an attribute for `getattr` counts, too.
    """
    found = []
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Attribute) and private(node.attr):
            if not (isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")):
                found.append(f"line {node.lineno}: {ast.unparse(node)}")
        elif isinstance(node, ast.ImportFrom):
            source = (node.module or "").split(".")
            found += [
                f"line {node.lineno}: {ast.unparse(node)}"
                for alias in node.names
                if any(private(part) for part in (*source, alias.name))
            ]
        elif isinstance(node, ast.Import):
            words = [part for alias in node.names for part in alias.name.split(".")]
            found += [f"line {node.lineno}: {ast.unparse(node)}"] if any(map(private, words)) else []
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            names = [word.value for word in node.args if isinstance(word, ast.Constant)]
            if node.func.id in ("getattr", "setattr", "hasattr", "delattr"):
                found += [f"line {node.lineno}: {name}" for name in names if isinstance(name, str) and private(name)]
    return found


def test_what_is_built_on_the_library_uses_its_public_names() -> None:
    built = [name for name in MODULES if part_of(name) in ("cli", "runs", "report", "tables")]
    found = {name: uses for name in built if (uses := private_uses(MODULES[name]))}
    assert not found


def test_private_uses_are_found(tmp_path: Path) -> None:
    file = tmp_path / "module.py"
    file.write_text(
        "from .._kernels import compiled\nfrom .a import _b\nimport x._y\nfrom __future__ import annotations\n"
        "model._store = 1\nself._own\nself.other._x\nmodel.__class__\nhasattr(model, '_learner')\n_own()\n"
    )
    assert [words.split(":")[0] for words in sorted(private_uses(file))] == [
        f"line {n}" for n in (1, 2, 3, 5, 7, 9)
    ]


@pytest.fixture(scope="module")
def loaded() -> dict[str, set[str]]:
    """The modules of a new process after each step of loading the library."""
    code = (
        "import json, sys\n"
        "import tasksieve\n"
        "steps = {'package': [*sys.modules]}\n"
        "import sklearn.linear_model\n"
        "steps['sklearn'] = [*sys.modules]\n"
        "from tasksieve import MultiTaskLasso\n"
        "steps['lasso'] = [*sys.modules]\n"
        "from tasksieve import *\n"
        "steps['everything'] = [*sys.modules]\n"
        "print(json.dumps(steps))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return {step: set(names) for step, names in json.loads(run.stdout).items()}


def test_import_is_light(loaded: dict[str, set[str]]) -> None:
    """Nothing optional, nothing that compiles, nothing that opens a window is loaded by the import."""
    heavy = {"matplotlib", "pandas", "numba", "torch", "dask", "cvxpy", "river", "pyarrow", "IPython", "tkinter"}
    heavy |= {"networkx", "typer", "rich", "jinja2"}
    assert not heavy & loaded["package"]


def test_import_loads_little(loaded: dict[str, set[str]]) -> None:
    """All public names loaded: few modules beyond scikit-learn's (how long they take: benchmarks/small_fit.py)."""
    own = {name for name in loaded["everything"] if name.partition(".")[0] == "tasksieve"}
    foreign = sorted(loaded["everything"] - loaded["sklearn"] - own)
    known = {"joblib", "numpy", "scipy", "sklearn", "threadpoolctl", *sys.stdlib_module_names}
    assert {name.partition(".")[0] for name in foreign} <= known
    assert len(own) <= len(MODULES) + 1  # the compiled kernels are a module, too
    assert len(foreign) <= 60, foreign  # sklearn.feature_selection brings 43
    unused = ("cli", "datasets", "runs", "tables")
    assert not [name for name in own if name.split(".")[1:2] and name.split(".")[1] in unused]


def test_one_model_loads_no_other(loaded: dict[str, set[str]]) -> None:
    """The Lasso alone: no other model, and nothing of what is built on models."""
    found = loaded["lasso"]
    assert "tasksieve.linear.lasso" in found
    other = ("calibrated", "classifier", "cox", "generic", "group_lasso", "mixed", "ordinal", "owl", "regressions")
    above = ("checks", "cli", "exports", "findings", "graph", "online", "problem_file", "report", "runs", "svm")
    unwanted = {f"tasksieve.linear.{name}" for name in (*other, "sparse_group")}
    unwanted |= {f"tasksieve.{name}" for name in (*above, "tables", "genotypes", "datasets", "storages")}
    assert unwanted <= {f"tasksieve.{name}" for name in MODULES}, "a module has another name now"
    assert not unwanted & found
