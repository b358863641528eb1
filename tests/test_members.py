"""Losses and penalties by name: a new one is one file and one line, and everything that lists names has it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tasksieve as ts
from tasksieve.members import LOSSES, PENALTIES, Registry, formula, options
from tasksieve.report.methods import model_words, objective_words

ROOT = Path(__file__).parent.parent

# A package as another person would write it: a smooth absolute error, and a norm with other defaults.
FILE = '''
import numpy as np
import tasksieve as ts


class LogCosh(ts.losses.RowLoss):
    """log cosh(y - z); conjugate of a slope p in [-1, 1]."""

    label = "log-cosh error"
    formula = "1/n̄ Σ_t Σ_i log cosh(y_i − x_i·w_t − b_t)"
    translates = True

    def value(self, y, z):
        return np.logaddexp(y - z, z - y) - np.log(2.0)

    def slope(self, y, z):
        return np.tanh(y - z)

    def conjugate(self, y, p):
        p = np.asarray(p, dtype=float)
        with np.errstate(divide="ignore", invalid="ignore"):
            entropy = sum(np.where(1 + s * p > 0, (1 + s * p) * np.log1p(s * p), 0.0) for s in (-1, 1)) / 2
        return np.where(np.abs(p) <= 1, entropy - p * y, np.inf)

    def domain(self, y):
        return -1.0, 1.0


class HalfRows(ts.penalties.SparseGroup):
    """Half the norms of rows, half those of entries."""

    label = "half rows"
    formula = "α/2 Σ_j (‖W_j‖₁ + ‖W_j‖₂)"

    def __init__(self):
        super().__init__(0.5, 0.5)
'''
LINES = "[tasksieve.losses]\nlogcosh = theirs:LogCosh\n[tasksieve.penalties]\nhalf_rows = theirs:HalfRows\n"


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An installed package: a file, and a line of its metadata for each member."""
    folder = tmp_path_factory.mktemp("site")
    (folder / "theirs.py").write_text(FILE, encoding="utf-8")
    about = folder / "theirs-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(LINES)
    return folder


def python(package: Path, *words: Any) -> str:
    paths = [str(package), *os.environ.get("PYTHONPATH", str(ROOT / "src")).split(os.pathsep)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "COLUMNS": "200", "TERM": "dumb"}
    run = subprocess.run([sys.executable, *map(str, words)], capture_output=True, text=True, env=environment)
    assert run.returncode == 0, run.stderr
    return run.stdout


# Several commands in one process, which imports the library and the package once: a code and all that is said for each.
COMMANDS = """
import contextlib, io, json, sys
from typer.main import get_command
from tasksieve.cli.app import app

answers = []
for words in json.loads(sys.argv[1]):
    with io.StringIO() as said, contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        try:
            get_command(app)(words, prog_name="tasksieve")
        except SystemExit as end:
            answers.append((int(end.code or 0), said.getvalue()))
print(json.dumps(answers))
"""


def table(file: Path) -> Path:
    rng = np.random.default_rng(0)
    x, task = rng.standard_normal((60, 4)), np.repeat(["a", "b"], 30)
    y = x[:, 0] + 0.3 * rng.standard_normal(60)
    rows = [f"{t},{label},{','.join(map(str, row))}" for t, label, row in zip(task, y, x, strict=True)]
    file.write_text("\n".join(["task,y,x0,x1,x2,x3", *rows]) + "\n")
    return file


def test_a_package_brings_its_members_to_the_estimators(package: Path) -> None:
    python(
        package,
        "-c",
        """
import numpy as np, pytest, tasksieve as ts
from tasksieve.checks import check_loss, check_penalty, registry
from tasksieve.report import content_from_model
rng = np.random.default_rng(0)
X, Y = rng.standard_normal((40, 5)), rng.standard_normal((40, 2))
model = ts.MultiTaskRegressor("logcosh", "half_rows", alpha=0.05).fit(X, Y)
import theirs
same = ts.MultiTaskRegressor(theirs.LogCosh(), theirs.HalfRows(), alpha=0.05).fit(X, Y)
assert np.array_equal(model.coef_, same.coef_) and model.coef_.any()
said = content_from_model(model, X, Y, n_alphas=3).methods
assert "log cosh(y_i" in said and "α/2 Σ_j" in said, said
check_loss("logcosh", on_data=False)
check_penalty("half_rows")
assert isinstance(registry.LOSSES["logcosh"], theirs.LogCosh)
assert isinstance(registry.PENALTIES["half_rows"], theirs.HalfRows)
for wrong in ({"loss": "nothing"}, {"penalty": "nothing"}):
    with pytest.raises(ValueError, match="'logcosh'" if "loss" in wrong else "'half_rows'"):
        ts.MultiTaskRegressor(**wrong).fit(X, Y)
with pytest.raises(ValueError, match="must be one of 'logistic'"):
    ts.MultiTaskClassifier("logcosh").fit(X, Y[:, 0] > 0)
""",
    )


def test_a_package_brings_its_members_to_the_command_line(package: Path, tmp_path: Path) -> None:
    pytest.importorskip("typer", reason="the command line")
    data, out, coefficients = table(tmp_path / "t.csv"), tmp_path / "run", tmp_path / "c.csv"
    coefficients.write_text("task,feature,coefficient\na,x0,1\nb,x0,1\n")
    words = ("-y", "y", "-t", "task", "--loss", "logcosh", "--penalty", "half_rows")
    commands = [
        ("fit", "--help"),
        ("grade", "--help"),
        ("fit", data, *words, "--alpha", 0.1, "--no-report", "-o", out),
        ("fit", data, "-y", "y", "--penalty", "x", "-o", tmp_path / "no"),
        ("grade", coefficients, data, *words, "--alpha", 0.1),
    ]
    orders = [[str(word) for word in command] for command in commands]
    answers = json.loads(python(package, "-c", COMMANDS, json.dumps(orders)))
    assert [code for code, _ in answers] == [0, 0, 0, 2, 1]
    said = [re.sub(r"[\s│]+", " ", text) for _, text in answers]
    for text in said[:2]:
        assert "smoothed_hinge, logcosh" in text
        assert "owl, half_rows" in text
    assert json.loads((out / "model.json").read_text())["params"]["loss"] == "logcosh"
    assert "log cosh(y_i" in (out / "methods.txt").read_text(encoding="utf-8")
    assert "--penalty: one of l21, l11" in said[3]
    assert "half_rows; got 'x'" in said[3]
    assert "no name in the certificate's format" in said[4]  # known, but there is no certificate of it


@pytest.fixture
def named() -> Iterator[str]:
    """A loss with a name of this process."""

    @ts.losses.register("upper_decile")
    class UpperDecile(ts.losses.Quantile):
        def __init__(self) -> None:
            super().__init__(q=0.9)

    yield "upper_decile"
    del ts.losses.BY_NAME["upper_decile"]


def test_a_line_of_python_gives_a_name(named: str, rng: np.random.Generator) -> None:
    X, y = rng.standard_normal((50, 3)), rng.standard_normal(50)
    model = ts.MultiTaskRegressor(named, alpha=0.01).fit(X, y)
    same = ts.MultiTaskRegressor(ts.losses.Quantile(q=0.9), alpha=0.01).fit(X, y)
    np.testing.assert_array_equal(model.coef_, same.coef_)
    said = objective_words("MultiTaskRegressor", {"loss": named})
    assert "f the loss upper decile" in said  # the formula of the class it is derived from is another's
    assert "upper decile loss" in model_words("MultiTaskRegressor", {"loss": named})


def test_names_that_are_taken_and_what_has_no_name(named: str) -> None:
    with pytest.raises(ValueError, match="There is a loss 'huber' already"):
        ts.losses.register("huber")(ts.losses.Quantile)
    with pytest.raises(ValueError, match="There is a loss 'upper_decile' already"):
        ts.losses.register(named)(ts.losses.Quantile)
    with pytest.raises(TypeError, match="derived from RowPenalty"):
        ts.penalties.register("wrong")(ts.losses.Huber)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="needs a default for 'labels'"):
        ts.penalties.register("sets")(ts.penalties.Groups)
    with pytest.raises(ValueError, match="part of tasksieve"):
        del ts.losses.BY_NAME["huber"]
    assert "wrong" not in PENALTIES
    assert "sets" not in PENALTIES
    with pytest.raises(ValueError, match=r"penalty must be one of \['dirty'"):
        ts.penalties.as_penalty("nothing")


def test_a_class_that_is_defined_again_keeps_its_name(named: str) -> None:
    """As when a cell of a notebook is run twice."""
    first = ts.losses.BY_NAME[named]
    again = type(first.__name__, (first,), {"__module__": first.__module__, "__qualname__": first.__qualname__})
    ts.losses.register(named)(again)
    assert ts.losses.BY_NAME[named] is again


@pytest.mark.parametrize("registry", [LOSSES, PENALTIES], ids=lambda registry: registry.word)
def test_every_member_that_is_offered_has_its_words(registry: Registry[Any]) -> None:
    for name in registry.offered():
        kind = registry[name]
        assert formula(kind), name
        assert "label" in vars(kind), name
        assert isinstance(registry.make(name), kind)
    assert set(registry.offered()) < set(registry)


def rows_of(heading: str) -> list[list[str]]:
    """The table of docs/models/pairs.md that has this first column."""
    lines = (ROOT / "docs" / "models" / "pairs.md").read_text(encoding="utf-8").splitlines()
    start = next(k for k, line in enumerate(lines) if line.startswith(f"| {heading} |"))
    found = []
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        found.append([cell.strip() for cell in line.strip("|").split("|")])
    return found


LABELS = {
    "values": ("numbers",),
    "counts": ("counts, rates", "amounts from 0"),
    "positive": ("positive numbers",),
    "signs": ("two classes", "classes"),
}


def test_the_documentation_lists_the_members() -> None:
    losses, penalties = rows_of("loss"), rows_of("penalty")
    for registry, rows in ((LOSSES, losses), (PENALTIES, penalties)):
        assert {name for row in rows for name in re.findall(r'"([\w-]+)"', row[1])} == set(registry.offered())
        kinds = {registry[name].__name__: registry[name] for name in registry}
        for row in rows:
            for called, given in re.findall(r"`(\w+)\(([\w, ]*)\)`", row[1]):
                assert set(given.split(", ")) <= {option.name for option in options(kinds[called])}, called
    for row in losses:
        for name in re.findall(r'"([\w-]+)"', row[1]):
            assert row[2] in LABELS[LOSSES[name].labels], name


@pytest.mark.parametrize("kind", [ts.MultiTaskRegressor, ts.MultiTaskClassifier, ts.grade])
def test_docstrings_list_the_members(kind: Any) -> None:
    listed = set(re.findall(r'"([\w-]+)"', kind.__doc__))
    if kind is not ts.MultiTaskClassifier:  # whose losses are those of two classes
        assert {name for name in LOSSES.offered() if not LOSSES[name].of_classes()} <= listed
    assert set(PENALTIES.offered()) <= listed
