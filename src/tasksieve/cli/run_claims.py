"""What the files of a run say about its answer, compared with its certificate: a proof is none of another model."""

from __future__ import annotations

import csv
import json
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from .. import verify as verifier
from ..fitted.covariates import covariates_of
from ..genotypes import score_lines
from ..proof.forms import Strengths, label_words, stated_problem
from ..report.rows import coefficient_rows, row_labels
from ..report.standardised import by_row
from ..runs import RunError, RunFolder, load_model
from ..runs.folder import (
    CERTIFICATE,
    CONFIG,
    FOLDS,
    LOCK,
    MANIFEST,
    OWN,
    PIECES,
    PROOF,
    SCORE,
    STREAM,
    VARIANTS,
)
from ..runs.model_file import SavedModel, packed_model
from ..runs.results import SavedPath, read_path
from ..tables import read_arrays
from ..tables.basis import UNSAID, PredictionBasis
from ..tables.frames import need
from ..tables.recipe import column_recipes
from ..tables.table import column_names
from .run_basis import Expected, alike, coefficients, differences, expected_basis, thresholds_of
from .source import Source

# How much more than the fit's own gap a certificate may leave open, and still be about the same answer: the two count
# rounding in different ways, and a certificate that of sums over all rows of a task.
TWICE, ROUNDING, ROUNDING_OF_ROWS = 2.0, 1e-11, 32.0 * 2.0**-53
# Of labels that a model explains entirely, rounding is all that is left: in each residual this part of the largest one.
ROUNDING_OF_LABELS, LOST_SQUARE = 2.0**-48, 1e-150
PARTS = ("shared", "intercept", "standardize", "positive", "loss", "penalty", "task_weights", "class_weights")
LABELS = ("tasks", "classes")
FEATURES = "features.csv"
#: of certificate.json
CLAIMED = ("objective", "dual_gap", "relative_gap", "tol", "null_objective", "converged")
#: files that are compared, wholly or in what predictions and proofs are made of, and those that say nothing
COMPARED = {
    "model.json", "model.npz", "coefficients.csv", "coefficients.parquet", "intercepts.csv", FEATURES, "path.npz",
    "path.csv", VARIANTS, SCORE, CERTIFICATE, PROOF, CONFIG, FOLDS, MANIFEST, LOCK, PIECES,
}  # fmt: skip
_NOT_COMPARED = ("n_iter", "status", "cv_quality", "the null model", "how the solver worked (max_iter, screening, ...)")
ARRAYS = ("feature_weights", "l1", "group_of", "group_weights", "sorted_weights", "edges", "absent", "absent_start")


def compare_run(
    folder: RunFolder, cert: verifier.Certificate, source: Source, asked: dict[str, Any], value: int | None
) -> list[str]:
    """Refuse a run whose files say something else than its certificate and its data; gives in words what they say
    beyond that, and is not proved.

    - `source`: The data, as the options of the run read them.
    - `asked`: These options.
    - `value`: The value of the path that is the run's model, where the certificate says so.
    """
    try:
        return _compare_run(folder, cert, source, asked, value)
    except (RunError, verifier.Mismatch, verifier.Unreadable, OSError, MemoryError):
        raise
    except Exception as error:  # files that were changed by hand may hold anything
        raise RunError(f"{folder.path}: its files make no sense together: {type(error).__name__}: {error}") from None


def _compare_run(
    folder: RunFolder, cert: verifier.Certificate, source: Source, asked: dict[str, Any], value: int | None
) -> list[str]:
    for name in ("model.json", CONFIG, CERTIFICATE):
        refuse_repeated_keys(folder / name)
    saved = load_model(folder)
    coef, intercept = (np.asarray(part) for part in coefficient_rows(saved.estimator))
    claims = _Claims(folder, cert, saved, source, asked, coef, intercept, _rounding_of_labels(cert, source.problem.y))
    claims.compare_fields()
    claims.compare_names()
    own_alpha, strengths = claims.compare_problem()
    value = claims.value_at(strengths(own_alpha)[0]) if value is None else value
    claims.compare_point(value, coef, intercept, *strengths(own_alpha))
    claims.compare_thresholds(value, getattr(saved.estimator, "thresholds_", None))
    expected = claims.compare_basis(value)
    claims.compare_numbers(value)
    claims.compare_tables(expected.scale)
    if source.genotypes:
        claims.compare_variants()
    beyond = []
    if (folder / "path.npz").is_file():
        path = read_path(folder)
        claims.compare_path_table(path)
        claims.compare_chosen(path, own_alpha)
        if cert.n_values > 1:
            claims.compare_path(path, strengths)
        elif len(path.alphas) > 1:
            others = len(path.alphas) - 1
            beyond.append(f"of path.npz the chosen value alone is proved, {others} others are not")
    return [*beyond, *claims.words()]


def compare_recipes(stated: dict[str, Any], found: dict[str, Any]) -> None:
    """Refuse a certificate about other people, variants, phenotypes or covariates than those of the run's options."""
    for name in found:
        mine, theirs = (part.get(name) for part in (found, stated))
        if name == "variants":  # chromosomes may be spelt in another way
            mine, theirs = ([one.split(" ")[1:] for one in part or ()] for part in (mine, theirs))
        if mine != theirs:
            raise RunError(f"{name} of {PROOF} are not those that the options of the run name")


@dataclass
class _Claims:
    """A certificate and the model of a run, whose files must say the same."""

    folder: RunFolder
    cert: verifier.Certificate
    saved: SavedModel
    source: Source
    asked: dict[str, Any]
    coef: np.ndarray  # of the model, a row for each task or class
    intercept: np.ndarray
    left: float  # what the rounding of labels may leave of an objective

    def require(self, good: bool, otherwise: str) -> None:
        if not good:
            raise RunError(f"{self.folder.path}: {otherwise}")

    def compare_fields(self) -> None:
        """Require that model.json and model.npz hold what is read of them alone, and that the verifier knows it."""
        unknown = sorted({one.name for one in fields(PredictionBasis)} - set(verifier.PREDICTION))
        self.require(not unknown, f"predictions depend on {unknown[:1]}, of which verify.py knows nothing")
        unknown = sorted(set(self.saved.facts) - {*UNSAID, "chosen"})
        self.require(not unknown, f"model.json has the fact {unknown[:1]}, of which nothing is known")
        alone = (self.folder / "path.npz").is_file() or self.saved.facts.get("chosen", -1) == -1
        self.require(alone, "model.json names a chosen value, and there is no path")
        written, stored = packed_model(self.saved)
        arrays = read_arrays(self.folder / "model.npz", stored=True)
        beside = unlike_fields(self.folder.read_json("model.json"), json.loads(json.dumps(written)))
        self.require(not beside, f"model.json: {', '.join(beside[:3])} is not as a fit writes it")
        beside = [name for name, own in arrays.items() if not _same_array(own, stored.get(name))]
        self.require(not beside, f"model.npz: {', '.join(beside[:3])} is not as a fit writes it")
        stream = (self.folder / STREAM).is_file()
        self.require(not stream, f"it holds {STREAM} beside {PROOF}, and predictions would be those of the stream")

    def compare_names(self) -> None:
        """Names of the features, in the model, the certificate and the data, and the columns that they are."""
        own = self.saved.feature_names
        self.require(self.cert.header.get("features") == own, f"the features of model.npz are not those of {PROOF}")
        known = self.source.problem.encoding.feature_names == own
        table = self.cert.header.get("table")
        if table is not None:
            for name, column, said in zip(own, column_recipes(self.saved.encoding), table["columns"], strict=True):
                said = {**said, "source": column_names([said["source"], ""])[0]}
                same = all(said.get(key) == word for key, word in column.items())
                self.require(same, f"feature {name!r} of model.json is column {said['source']!r} in {PROOF}")
        self.require(known, "the names of the features are not those of the columns of the data")
        for name, count in Counter(own).most_common(1):
            self.require(count == 1, f"{name!r} is the name of several features")

    def compare_problem(self) -> tuple[float, Strengths]:
        """Loss, penalty, weights, ... of the saved model on the data; gives its alpha, and the format's strengths."""
        cert, model, problem = self.cert, self.saved.estimator, self.source.problem
        rows = {"X": self.source.matrix, "y": problem.y, **problem.row_arguments(groups=False)}
        try:
            header, arrays, alpha, strengths = stated_problem(model, rows)
        except ValueError as error:
            raise RunError(f"{self.folder.path}: the saved model does not go with the data: {error}") from None
        for name in PARTS:
            self.require(
                _same(header[name], cert[name]), f"{name} of the model is {header[name]}, in {PROOF} {cert[name]}"
            )
        for name in LABELS:
            same = label_words(header[name]) == label_words(cert[name])
            self.require(same, f"the {name} of the data are {header[name]}, in {PROOF} {cert[name]}")
        same = math.isclose(header["unit"], cert["unit"], rel_tol=1e-12)
        self.require(same, f"the unit of the objective is {header['unit']}, in {PROOF} {cert['unit']}")
        for name in ARRAYS:
            mine, theirs = (part.get(name, np.empty(0)) for part in (arrays, cert.arrays))
            self.require(np.array_equal(mine, theirs), f"{name} of the model are not those of {PROOF}")
        return alpha, strengths

    def value_at(self, alpha: float) -> int:
        """The value with the strength of the model."""
        here = np.flatnonzero(np.isclose(self.cert.arrays["alpha"], alpha, rtol=1e-9, atol=0.0))
        if self.cert["penalty"]["name"] == "none":
            here = np.arange(self.cert.n_values)
        self.require(len(here) == 1, f"{PROOF} has {len(here)} values with the model's strength {alpha:g}")
        return int(here[0])

    def compare_point(self, k: int, coef: np.ndarray, intercept: np.ndarray, alpha: float, ridge: float) -> None:
        """Coefficients and strengths of one value."""
        arrays, order = self.cert.arrays, _task_after_task(self.saved.estimator, len(coef))
        found = coefficients(self.cert, k)
        for name, mine in (("alpha", alpha), ("ridge", ridge)):
            same = math.isclose(mine, arrays[name][k], rel_tol=1e-12)
            self.require(same, f"{name} of the model is {mine}, in {PROOF} {arrays[name][k]}")
        self.require(len(found) == len(coef), f"the coefficients are not those of {PROOF}")
        same = np.array_equal(coef[order], found) and np.array_equal(intercept[order], arrays["intercept"][k])
        self.require(same, f"the coefficients are not those of {PROOF}")

    def compare_thresholds(self, k: int, by_task: Any) -> None:
        """Between ordered classes. Around a class that a task does not have two of the model are equal, or infinite."""
        wanted = thresholds_of(self.cert, k, getattr(self.saved.estimator, "classes_", None))
        mine = [None] * len(wanted) if by_task is None else list(by_task)
        same = len(mine) == len(wanted) and all(map(alike, mine, wanted))
        self.require(same, f"the thresholds are not those of {PROOF}")

    def compare_basis(self, k: int) -> Expected:
        """All that predictions depend on."""
        expected = expected_basis(self.saved, self.cert, k, self.source, self.asked)
        for name, mine, theirs in differences(self.saved.basis, expected):
            told = f"the {name.replace('_', ' ')} of the model"
            shown = _shown(name, mine), _shown(name, theirs)
            if shown[0] != shown[1]:
                told += f" is {shown[0]}; by {verifier.PREDICTION[name]} it is {shown[1]}"
            else:
                told += f" is not what {verifier.PREDICTION[name]} say"
            raise RunError(f"{self.folder.path}: {told}")
        return expected

    def compare_numbers(self, k: int) -> None:
        """Objective and gap of the chosen value, in all files that state them."""
        stated, of_model = self.folder.read_json(CERTIFICATE), self.folder.read_json("model.json")
        self.compare_gap(CERTIFICATE, k, stated.get("objective"), stated.get("dual_gap"))
        unknown = sorted(set(stated) - {*CLAIMED})
        self.require(not unknown, f"{CERTIFICATE} has the field {unknown[:1]}, of which nothing is known")
        tol, own = stated.get("tol"), float(self.saved.estimator.tol)
        same = tol is None or (_is_number(tol) and tol == own)
        self.require(same, f"tol is {tol} in {CERTIFICATE}, {own} in model.json")
        for name in ("objective", "dual_gap", "null_objective"):
            mine, other = stated.get(name), of_model.get(name, stated.get(name))
            self.require(other == mine, f"{name} is {mine} in {CERTIFICATE}, {other} in model.json")
        gap, relative, null = (stated.get(name) for name in ("dual_gap", "relative_gap", "null_objective"))
        if relative is None and null is None:
            return
        sound = all(map(_is_number, (gap, relative, null)))
        wanted = float(gap or 0) if null else 0.0  # y that the empty model explains: 0 by convention
        sound = sound and math.isclose(float(relative or 0) * float(null or 1), wanted, rel_tol=1e-9)
        self.require(sound, f"{CERTIFICATE} has a relative gap of {relative}, {gap} of {null} is something else")

    def compare_gap(self, name: str, k: int, objective: Any, gap: Any) -> None:
        proved, open_ = float(self.cert.arrays["objective"][k]), float(self.cert.arrays["gap"][k])
        rounding = (ROUNDING + ROUNDING_OF_ROWS * max(self.cert["rows"])) * abs(proved) + self.left
        close = _is_number(objective) and abs(objective - proved) <= open_ + rounding
        self.require(close, f"{name} has objective {objective}, {PROOF} has {proved}")
        close = _is_number(gap) and open_ <= TWICE * gap + rounding
        self.require(close, f"{name} has the duality gap {gap}, {PROOF} proves {open_} only")

    def compare_tables(self, scale: np.ndarray | None) -> None:
        """coefficients.csv, coefficients.parquet, intercepts.csv and features.csv, which people read, and the
        deviations of the columns in each task, by which the last of them is sorted."""
        labels, names = row_labels(self.saved.estimator, self.saved.targets), self.saved.feature_names
        rows, positions = (index.tolist() for index in np.nonzero(self.coef))
        wanted = {(labels[t], names[j]): self.coef[t, j] for t, j in zip(rows, positions, strict=True)}
        constants = {(label,): value for label, value in zip(labels, self.intercept.tolist(), strict=True)}
        for name, number, expected in (
            ("coefficients.csv", "coefficient", wanted),
            ("coefficients.parquet", "coefficient", wanted),
            ("intercepts.csv", "intercept", constants),
        ):
            lines = self.numbers_of(name, [number], ["task", "feature"][: 1 + (expected is wanted)])
            if lines is not None:
                same = len(dict(lines)) == len(lines) and {key: own for key, (own,) in lines} == expected
                self.require(same, f"{name} does not hold the coefficients of the model")

        if self.saved.scales is not None:
            features, values = self.saved.scales
            same = scale is not None and np.allclose(values, scale[:, features], rtol=1e-9, atol=0.0)
            self.require(bool(same), "the standard deviations of model.npz are not those of the columns")
        self.compare_features(scale)

    def compare_features(self, scale: np.ndarray | None) -> None:
        """features.csv: the features in use, strongest first."""
        if not (self.folder / FEATURES).is_file():
            return
        try:
            lines = [list(line.values())[:3] for line in _lines(self.folder, FEATURES)]
            listed = [(name, float(strength), int(count)) for name, strength, count in lines]
        except (TypeError, ValueError, csv.Error) as error:
            raise RunError(f"{self.folder.path}: {FEATURES} cannot be read: {error}") from None
        model, names = self.saved.estimator, self.saved.feature_names
        sized = self.coef if scale is None else self.coef * by_row(model, scale)
        used = np.setdiff1d(np.flatnonzero(self.coef.any(axis=0)), covariates_of(model, len(names)))
        place = {names[j]: j for j in used.tolist()}
        same = sorted(name for name, *_ in listed) == sorted(place)
        self.require(same, f"{FEATURES} does not list the features in use")
        here = np.array([place[name] for name, *_ in listed], dtype=np.int64)
        strengths = np.array([strength for _, strength, _ in listed])
        same = np.allclose(strengths, np.linalg.norm(sized[:, here], axis=0), rtol=1e-9, atol=0.0)
        same = same and np.array_equal([count for *_, count in listed], np.count_nonzero(self.coef[:, here], axis=0))
        self.require(same and bool(np.all(np.diff(strengths) <= 0.0)), f"{FEATURES} has other numbers than the model")

    def compare_variants(self) -> None:
        """variants.csv, by which the variants of other files are found, and score.tsv, which plink2 reads."""
        X, names = self.source.problem.X, self.saved.feature_names
        table, place = X.variant_table, X.n_covariates
        used = iter(np.flatnonzero(self.coef.any(axis=0)).tolist())
        needed = [j for j in used if j >= X.n_covariates]
        keys = ("chr", "pos", "id", "effect_allele", "other_allele")
        found = []
        for line in _lines(self.folder, VARIANTS):
            while place < len(names) and names[place] != line.get("feature"):
                place += 1
            known = place < len(names)
            own = [str(table[key][place - X.n_covariates]) for key in keys] if known else []
            self.require(known and [line.get(key) for key in keys] == own, f"{VARIANTS} lists other variants")
            found.append(place)
            place += 1
        self.require(set(needed) <= set(found), f"{VARIANTS} does not list all variants in use")
        if (self.folder / SCORE).is_file():
            labels = np.array(row_labels(self.saved.estimator, self.saved.targets), dtype=object)
            same = "".join(score_lines(X, self.coef, labels)).encode() == (self.folder / SCORE).read_bytes()
            self.require(same, f"{SCORE} does not hold the coefficients of the model")

    def words(self) -> list[str]:
        """List what of the run is said, and neither compared nor recomputed."""
        there = [name for name in sorted(OWN - COMPARED) if (self.folder / name).is_file()]
        said = [f"of model.json {', '.join(_NOT_COMPARED)}", "of config.json what no prediction depends on", *there]
        found = ["compared with certificate and data: all that predict reads of model.json and model.npz"]
        if (self.folder / FOLDS).is_file():
            found.append(f"not proved: {FOLDS}, from which predict --interval makes its intervals")
        return [*found, f"words about the run, not proved: {', '.join(said)}"]

    def numbers_of(
        self, name: str, numbers: Sequence[str], key: Sequence[str] = ()
    ) -> list[tuple[tuple[Any, ...], tuple[float, ...]]] | None:
        """Columns of a table of the run, row by row: those of the key, and those that are numbers."""
        if not (self.folder / name).is_file():
            return None
        try:
            return [
                (tuple(line[part] for part in key), tuple(float(line[part]) for part in numbers))
                for line in _lines(self.folder, name)
            ]
        except (KeyError, TypeError, ValueError, csv.Error) as error:
            raise RunError(f"{self.folder.path}: {name} cannot be read: {error}") from None

    def compare_path_table(self, path: SavedPath) -> None:
        """path.csv, which people read, says what path.npz does; and both of gaps and their sizes the same."""
        relative = path.relative_gaps * (path.null_objective or 1.0)
        same = np.allclose(relative, path.dual_gaps, rtol=1e-9, atol=0.0)
        self.require(same, "the relative gaps of path.npz are not its gaps over the objective of the empty model")
        names = ("alphas", "objectives", "dual_gaps", "relative_gaps", "n_selected")
        lines = self.numbers_of("path.csv", names)
        if lines is None:
            return
        for column, name in zip(np.array([own for _, own in lines]).T, names, strict=True):
            same = np.array_equal(column, np.asarray(getattr(path, name), dtype=np.float64))
            self.require(same, f"{name} of path.csv are not those of path.npz")

    def compare_chosen(self, path: SavedPath, alpha: float) -> None:
        """The value of path.npz that is the model's."""
        here = np.flatnonzero(np.isclose(path.alphas, alpha, rtol=1e-12, atol=0.0))
        self.require(len(here) == 1, f"path.npz has {len(here)} values with the model's alpha {alpha:g}")
        coef, intercept = path.coefs[here[0]].toarray(), path.intercepts[here[0]]
        same = np.array_equal(coef, self.coef) and np.array_equal(intercept, self.intercept)
        self.require(same, "path.npz has other coefficients than the model at its alpha")
        classes = getattr(self.saved.estimator, "classes_", None)
        same = alike(getattr(self.saved.estimator, "thresholds_", None), path.thresholds(here[0], classes))
        self.require(same, "path.npz has other thresholds than the model at its alpha")
        chosen = self.saved.facts.get("chosen", -1)
        same = type(chosen) is int and chosen in (here[0], here[0] - len(path.alphas))
        self.require(same, f"the chosen value of model.json is {chosen}, its alpha is that of value {here[0]}")

    def compare_path(self, path: SavedPath, strengths: Strengths) -> None:
        """All values of path.npz."""
        n = self.cert.n_values
        self.require(len(path.alphas) == n, f"path.npz has {len(path.alphas)} values, {PROOF} has {n}")
        for k, alpha in enumerate(path.alphas.tolist()):
            self.compare_point(k, path.coefs[k].toarray(), path.intercepts[k], *strengths(alpha))
            self.compare_thresholds(k, path.thresholds(k, getattr(self.saved.estimator, "classes_", None)))
            self.compare_gap("path.npz", k, float(path.objectives[k]), float(path.dual_gaps[k]))


def refuse_repeated_keys(path: Path) -> None:
    """Refuse a JSON file that says something twice, or has numbers that JSON has not: readers differ in what they
    take."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            twice = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
            raise RunError(f"{path} says {twice!r} twice")
        return found

    def never(word: str) -> None:
        raise RunError(f"{path} holds {word}, which is no number")

    try:
        json.loads(path.read_bytes(), object_pairs_hook=once, parse_constant=never)
    except RunError:
        raise
    except (ValueError, RecursionError, OSError) as error:
        raise RunError(f"{path} is not readable: {type(error).__name__}: {str(error)[:200]}") from None


def unlike_fields(read: Any, written: Any, name: str = "") -> list[str]:
    """Where a file holds something that is not written when its content is, or is written otherwise."""
    if isinstance(read, dict) and isinstance(written, dict):
        return [
            place
            for key, own in read.items()
            for place in (unlike_fields(own, written[key], f"{name}.{key}".strip(".")) if key in written
                          else [f"{name}.{key}".strip(".")])
        ]  # fmt: skip
    if isinstance(read, list) and isinstance(written, list) and len(read) == len(written):
        each = zip(read, written, strict=True)
        return [place for k, pair in enumerate(each) for place in unlike_fields(*pair, f"{name}[{k}]")]
    return [] if type(read) is type(written) and read == written else [name or "the content"]


def _same_array(read: np.ndarray, written: np.ndarray | None) -> bool:
    if written is None or read.dtype != written.dtype or read.shape != written.shape:
        return False
    return np.array_equal(read, written, equal_nan=read.dtype.kind == "f")


def _shown(name: str, value: Any) -> str:
    """A value in words, as far as these are few."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, list):
        value = [own.tolist() if isinstance(own, np.ndarray) else own for own in value]
    text = repr(value)
    return text if len(text) <= 120 else f"{text[:120]} ..."


def _same(mine: Any, theirs: Any) -> bool:
    """Equal, where a parameter that is not given has its default; numbers up to the rounding of their text."""
    if isinstance(mine, dict) and isinstance(theirs, dict):
        defaults = {"epsilon": 0.0, "group": 1.0, "l1": 0.0}
        keys = {key for key in {*mine, *theirs} if mine.get(key) is not None or theirs.get(key) is not None}
        return all(_same(mine.get(key, defaults.get(key)), theirs.get(key, defaults.get(key))) for key in keys)
    if isinstance(mine, list) and isinstance(theirs, list):
        return len(mine) == len(theirs) and all(map(_same, mine, theirs))
    if isinstance(mine, bool) or isinstance(theirs, bool):  # True is a free intercept, 1.0 a penalised one
        return mine is theirs
    numbers = all(isinstance(one, int | float) for one in (mine, theirs))
    return math.isclose(mine, theirs, rel_tol=1e-12) if numbers else bool(mine == theirs)


def _rounding_of_labels(cert: verifier.Certificate, y: Any) -> float:
    """What the rounding of labels may leave of an objective: its square where small residuals are squared."""
    parts = [np.asarray(part) for part in (y if isinstance(y, list) else [y])]
    sizes = [float(np.nanmax(np.abs(part), initial=0.0)) for part in parts if part.dtype.kind in "biuf"]
    left = ROUNDING_OF_LABELS * max(sizes, default=1.0)
    return max(left * left if cert["loss"].get("mu") == 1.0 else left, LOST_SQUARE)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _lines(folder: RunFolder, name: str) -> list[dict[str, Any]]:
    """The rows of a table of a run."""
    if name.endswith(".parquet"):
        parquet, errors = need("pyarrow.parquet"), need("pyarrow").ArrowException
        try:
            return list(parquet.read_table(folder / name).to_pylist())
        except (errors, OSError) as error:
            raise ValueError(error) from None
    with open(folder / name, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _task_after_task(model: Any, n_rows: int) -> np.ndarray:
    """Places of the certificate's outputs among the rows of coefficients, which are class after class."""
    if isinstance(model.coef_, list) or np.ndim(model.coef_) == 2:
        return np.arange(n_rows)
    return np.arange(n_rows).reshape(model.coef_.shape[0], -1).T.ravel()
