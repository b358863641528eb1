"""Exported files predict what the model predicts, for every estimator that there is."""

from __future__ import annotations

import inspect
import json
import math
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from export_scorers import by_duckdb, by_json, by_onnx, by_python, by_sqlite
from sklearn.base import BaseEstimator, clone
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

import tasksieve as ts
from tasksieve.checks import registry
from tasksieve.checks.estimator_data import rows_for
from tasksieve.exports import python_file
from tasksieve.exports.write import FORMATS

# what is not installed is left out
FOR_SQL = [score for score, package in ((by_sqlite, "sqlite3"), (by_duckdb, "duckdb")) if find_spec(package)]
EXACT = [(".json", by_json), (".py", by_python), *((".sql", score) for score in FOR_SQL)]
WITH_ONNX = find_spec("onnx") and find_spec("onnxruntime")


def as_rows(X: np.ndarray, names: list[str] | None = None, **more: Any) -> list[dict[str, Any]]:
    """Rows as dictionaries: those of the library for lack of other names."""
    names = [f"x{j}" for j in range(X.shape[1])] if names is None else names
    rows = [dict(zip(names, row, strict=True)) for row in X.tolist()]
    for name, values in more.items():
        for row, value in zip(rows, np.asarray(values).tolist(), strict=True):
            row[name] = value
    return rows


def expected(model: Any, X: np.ndarray, task: Any, **more: Any) -> tuple[list[Any], list[Any]]:
    """Predictions, and probabilities by class (None for tasks without)."""
    given = {**({} if task is None else {"task": task}), **more}
    predictions = np.asarray(model.predict(X, **given)).tolist()
    if not hasattr(model, "predict_proba"):
        return predictions, [None] * len(X)
    found, classes = model.predict_proba(X, **given), model.classes_
    if not isinstance(found, list):
        own = classes if isinstance(classes, list) else [classes]
        codes = np.zeros(len(X), dtype=int) if len(own) == 1 else np.searchsorted(model.tasks_, task)
        return predictions, [dict(zip(own[c].tolist(), p, strict=True)) for c, p in zip(codes, found, strict=True)]
    chances: list[Any] = [None] * len(X)
    codes = np.zeros(len(X), dtype=int) if task is None else np.searchsorted(model.tasks_, task)
    for t, part in enumerate(found):
        for i, p in zip(np.flatnonzero(codes == t), [] if part is None else part, strict=False):
            chances[i] = dict(zip(classes[t].tolist(), p, strict=True))
    return predictions, chances


def agree(answer: Any, right: Any, tolerance: float = 1e-12) -> None:
    """Numbers to the tolerance, classes exactly."""
    for ours, theirs in zip(answer[0], right[0], strict=True):
        assert ours == theirs or abs(ours - theirs) <= tolerance * max(1.0, abs(theirs)), (ours, theirs)
    for p, q in zip(answer[1], right[1], strict=True):
        assert (p is None) == (q is None)
        if q is not None:
            assert list(map(str, p)) == list(map(str, q))
            assert all(abs(a - b) <= tolerance for a, b in zip(p.values(), q.values(), strict=True)), (p, q)


def roughly_agree(answer: Any, right: Any, near: list[bool] | None = None) -> None:
    """Numbers in single precision; classes, but for rows that are near to two of them."""
    for i, (ours, theirs) in enumerate(zip(answer[0], right[0], strict=True)):
        if near is None or not near[i]:
            close = isinstance(theirs, float) and abs(ours - theirs) <= 1e-5 * max(1.0, abs(theirs))
            assert close or ours == theirs, (ours, theirs)
    for p, q in zip(answer[1], right[1], strict=True):
        assert (p is None) == (q is None)
        if q is not None:
            assert list(map(str, p)) == list(map(str, q))
            assert all(abs(a - b) <= 1e-5 for a, b in zip(p.values(), q.values(), strict=True)), (p, q)


def near_two_classes(file: Path, rows: list[dict[str, Any]], tasks: list[Any]) -> list[bool]:
    scorer: dict[str, Any] = {}
    exec(file.read_text(), scorer)
    scores = [scorer["score"](row, task) for row, task in zip(rows, tasks, strict=True)]
    ranked = [sorted([0.0, own] if isinstance(own, float) else own) for own in scores]
    return [own[-1] - own[-2] < 1e-4 for own in ranked]


def check(model: Any, X: np.ndarray, task: Any, folder: Path, **more: Any) -> None:
    """All exact formats give what the model gives."""
    rows, right = as_rows(X, **more), expected(model, X, task, **more)
    classes = getattr(model, "classes_", None) is not None
    tasks = [None] * len(X) if task is None else np.asarray(task).tolist()
    assert any(value != right[0][0] for value in right[0]) or len(X) == 1  # a constant would prove little
    for ending, score in EXACT:
        agree(score(ts.export(model, folder / f"model{ending}"), rows, tasks), right)
    if task is not None and len(model.tasks_) > 1:
        rows = as_rows(X, **more, **{"task of a row": task})
        for ending, score in EXACT[1:]:
            file = ts.export(model, folder / f"own{ending}", task="task of a row")
            agree(score(file, rows, [None] * len(X) if ending == ".py" else tasks), right)
    if WITH_ONNX:
        near = near_two_classes(folder / "model.py", rows, tasks) if classes else None
        for given in [{}] if task is None or len(model.tasks_) == 1 else [{}, {"task": "task of a row"}]:
            roughly_agree(by_onnx(ts.export(model, folder / "model.onnx", **given), rows, tasks), right, near)


def tried() -> list[Any]:
    """Estimators with one task and with several. One cross-validation is enough for the quick run: what is fitted is
    the same."""
    cases = []
    for name, estimator in registry.ESTIMATORS.items():
        graph, losses = (getattr(estimator, own, None) for own in ("graph", "losses"))
        several_only = graph is not None or isinstance(losses, list)
        two_classes = isinstance(estimator, ts.OnlineMultiTaskClassifier)
        one_only = "tasks" in getattr(estimator, "_skip_checks", {})
        slow = "cross-validated" in name and name != "lasso, cross-validated"
        for tasks in [] if one_only else [True]:
            cases.append(pytest.param(name, tasks, marks=pytest.mark.slow if slow else ()))
        for tasks in [] if several_only or two_classes else [False]:
            quick = not slow and (one_only or len(cases) % 5 == 0)
            cases.append(pytest.param(name, tasks, marks=() if quick else pytest.mark.slow))
    return cases


@pytest.mark.parametrize(("name", "tasks"), tried())
def test_every_estimator(name: str, tasks: bool, tmp_path: Path) -> None:
    rows = rows_for(registry.ESTIMATORS[name], tasks)
    model = clone(registry.ESTIMATORS[name]).fit(rows.X, rows.y, **rows.arguments)
    check(model, rows.X, rows.task, tmp_path)


REFUSED = {"StabilitySelection", "KnockoffSelection"}


def test_all_public_estimators_are_tried_or_refused() -> None:
    public = (getattr(ts, name) for name in ts.__all__ if not name.startswith("_"))
    kinds = {kind for kind in public if inspect.isclass(kind) and issubclass(kind, BaseEstimator)}
    tried = {type(estimator) for estimator in registry.ESTIMATORS.values()}
    others = {kind.__name__ for kind in kinds - tried if hasattr(kind, "fit")}
    beside = {"FillMissing", "WeightedDegreeHasher", "MultipleImputation", "Pretraining"}  # see below
    assert others - beside <= {*REFUSED, *(f"{kind.__name__}CV" for kind in tried)}


# --- outcomes -----------------------------------------------------------------------------------------------------


def linear_rows(n: int = 120, n_tasks: int = 3, seed: int = 1) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X, task = rng.standard_normal((n, 5)), np.array(["a", "b's", 'c"\\'])[rng.integers(0, n_tasks, n)]
    return X, task, X[:, 0] - 0.5 * X[:, 3] + 0.3 * rng.standard_normal(n)


def test_pretraining(tmp_path: Path) -> None:
    X, task, y = linear_rows()
    check(ts.Pretraining(ts.MultiTaskLassoCV(n_alphas=10, cv=3)).fit(X, y, task=task), X, task, tmp_path)


def test_outcomes_of_all_kinds(tmp_path: Path) -> None:
    X, task, z = linear_rows(n=240)
    rng = np.random.default_rng(0)
    names = ["counts", "grades", "hinge", "numbers", "survival", "yes or no"]
    task = np.array(names)[rng.integers(0, len(names), len(X))]
    labels = {
        "counts": lambda z: rng.poisson(np.exp(0.5 * z)),
        "grades": lambda z: np.array(["low", "mid", "top"])[np.digitize(z, [-0.5, 0.5])],
        "hinge": lambda z: np.where(z > 0.1, "b", "a"),
        "numbers": lambda z: 100.0 * z + 7.0,
        "survival": lambda z: ts.survival(np.exp(-z), rng.random(len(z)) < 0.8),
        "yes or no": lambda z: z > 0.2,
    }
    losses = dict(zip(names, ["poisson", "ordinal", "squared_hinge", "squared", "cox", "logistic"], strict=True))
    model = ts.MultiTaskMixed(losses, alpha=0.02, categories={"grades": ["low", "mid", "top"]})
    model.fit({name: X[task == name] for name in names}, {name: labels[name](z[task == name]) for name in names})
    check(model, X, task, tmp_path)
    scorer: dict[str, Any] = {}
    exec((tmp_path / "model.py").read_text(), scorer)
    row = as_rows(X)[0]
    assert scorer["hazard_ratio"](row, "survival") == pytest.approx(math.exp(scorer["predict"](row, "survival")))
    with pytest.raises(ValueError, match="no hazard"):
        scorer["hazard_ratio"](row, "numbers")


def test_classes_of_their_own(tmp_path: Path) -> None:
    X, task, z = linear_rows()
    y = np.array(["u", "v", "w", "x"])[np.digitize(z, [-0.7, 0.0, 0.6])]
    y[(task == "a") & (y == "x")] = "w"  # three classes in a task, four in the others
    check(ts.MultiTaskLogisticRegression(alpha=0.02).fit(X, y, task=task), X, task, tmp_path)
    pairs = np.where(z > 0.0, np.char.add(task, "+"), np.char.add(task, "-"))
    check(ts.GraphSVC(loss="logistic").fit(X, pairs, task=task), X, task, tmp_path)
    check(ts.GraphSVC().fit(X, y, task=task), X, task, tmp_path)
    check(ts.GraphSVC(loss="logistic").fit(X, y, task=task), X, task, tmp_path)
    grades = {"a": ["u", "v", "w"], "b's": list("uvwx"), 'c"\\': list("uvwxy")}  # one of which nobody has
    check(ts.MultiTaskOrdinal(alpha=0.02, categories=grades).fit(X, y, task=task), X, task, tmp_path)
    thresholds = [own.get("thresholds") for own in json.loads((tmp_path / "model.json").read_text())["tasks"]]
    assert thresholds[2][-1] == "inf"


def test_columns_of_labels(tmp_path: Path) -> None:
    X, _, z = linear_rows()
    model = ts.MultiTaskLasso(alpha=0.05).fit(X, np.column_stack([z, -2.0 * z]))
    rows, every = as_rows(X), model.predict(X)
    for ending, score in EXACT:
        file = ts.export(model, tmp_path / f"model{ending}")
        for t in range(2):
            agree(score(file, rows, [t] * len(X)), (every[:, t].tolist(), [None] * len(X)))


def test_offsets(tmp_path: Path) -> None:
    X, task, z = linear_rows()
    rng = np.random.default_rng(3)
    exposure = rng.uniform(-1.0, 1.0, len(X))
    counts = rng.poisson(np.exp(0.5 * z + exposure))
    model = ts.MultiTaskPoisson(alpha=0.05).fit(X, counts, task=task, offset=exposure)
    check(model, X, task, tmp_path, offset=exposure)
    plain = ts.MultiTaskPoisson(alpha=0.05).fit(X, counts, task=task)
    right = plain.predict(X, task=task, offset=exposure).tolist(), [None] * len(X)
    file = ts.export(plain, tmp_path / "m.py", offset="log time")
    agree(by_python(file, as_rows(X, **{"log time": exposure}), task.tolist()), right)
    y = np.digitize(z, [-0.5, 0.5])
    several = rng.standard_normal((len(X), 3))
    model = ts.MultinomialOWL(alpha=0.02).fit(X, y, offset=several)
    columns = {f"offset ({k})": several[:, k] for k in range(3)}
    right = expected(model, X, None, offset=several)
    for ending, score in EXACT:
        agree(score(ts.export(model, tmp_path / f"m{ending}"), as_rows(X, **columns), [None] * len(X)), right)
    with pytest.raises(ValueError, match="offset: GraphSVR takes none"):
        ts.export(ts.GraphSVR().fit(X, z), tmp_path / "m.py", offset="o")


# --- columns ------------------------------------------------------------------------------------------------------

STRANGE = ['he said "no"', "it's", "back\\slash\n'''", "naïve ✓", '"; DROP TABLE rows; --']


def test_names_that_break_quotes(tmp_path: Path) -> None:
    X, task, z = linear_rows()
    model = ts.MultiTaskLasso(alpha=0.001).fit(X, z, task=task)
    right = expected(model, X, task)
    for ending, score in EXACT:
        file = ts.export(model, tmp_path / f"model{ending}", feature_names=STRANGE, task="task's")
        rows = as_rows(X, STRANGE, **{"task's": task})
        agree(score(file, rows, task.tolist()), right)
        if ending == ".py":
            agree(score(file, rows, [None] * len(X)), right)


def test_names_of_a_data_frame_and_its_task(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    X, task, z = linear_rows()
    frame = pandas.DataFrame(X, columns=list("pqrst")).assign(site=task)
    model = ts.MultiTaskLasso(alpha=0.05, task="site").fit(frame, z)
    content = json.loads(ts.export(model, tmp_path / "m.json").read_text())
    assert content["task_column"] == "site"
    used = [name for name, any_of in zip("pqrst", model.get_support(), strict=True) if any_of]
    assert [own["name"] for own in content["inputs"]] == used != list("pqrst")
    rows = frame.to_dict("records")
    agree(by_python(ts.export(model, tmp_path / "m.py"), rows, [None] * len(X)),
          (model.predict(frame).tolist(), [None] * len(X)))  # fmt: skip


@pytest.mark.parametrize("how", ["mean", "task-mean", "indicator"])
def test_pipelines(how: str, tmp_path: Path) -> None:
    X, _, z = linear_rows()
    X = np.round(100.0 * X + 1e5)
    X[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan
    X[:, 4] = 1.0 + np.arange(len(X))
    model = make_pipeline(ts.FillMissing(how), StandardScaler(), ts.MultiTaskLasso(alpha=0.05)).fit(X, z)
    check(model, X, None, tmp_path)
    check(make_pipeline(StandardScaler(), ts.MultiTaskLasso(alpha=0.05)).fit(X[:, 4:], z), X[:, 4:], None, tmp_path)
    scorer: dict[str, Any] = {}
    exec(ts.export(model, tmp_path / "m.py").read_text(), scorer)
    row = as_rows(X)[0]
    if how == "indicator" and "x4" in scorer["INPUTS"]:
        with pytest.raises(ValueError, match="'x4' is missing"):
            scorer["predict"]({**row, "x4": None})


def test_task_means_of_a_task_column(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    X, task, z = linear_rows()
    X[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan
    frame = pandas.DataFrame(X, columns=list("pqrst")).assign(site=task)
    steps = ts.FillMissing(task="site"), ts.MultiTaskLasso(alpha=0.05, task="site")
    model = make_pipeline(*steps).fit(frame, z)
    rows, right = frame.to_dict("records"), (model.predict(frame).tolist(), [None] * len(X))
    for ending, score in EXACT:
        agree(score(ts.export(model, tmp_path / f"m{ending}"), rows, task.tolist()), right)


def test_rows_as_dictionaries(tmp_path: Path) -> None:
    model = ts.OnlineMultiTaskRegressor(0.01)
    X, task, z = linear_rows()
    for row, own, value in zip(as_rows(X, STRANGE), task, z, strict=True):
        model.learn_one(row, value, task=own)
    row = as_rows(X, STRANGE)[0]
    row[STRANGE[0]] = None
    known = {name: value for name, value in row.items() if value is not None}
    for ending, score in EXACT:
        found = score(ts.export(model, tmp_path / f"m{ending}"), [row], ["a"])
        agree(found, ([model.predict_one(known, task="a")], [None]))


def test_what_a_row_lacks_is_said(tmp_path: Path) -> None:
    X, task, z = linear_rows()
    scorer: dict[str, Any] = {}
    exec(ts.export(ts.MultiTaskLasso(alpha=0.3).fit(X, z, task=task), tmp_path / "m.py").read_text(), scorer)
    row, predict = as_rows(X)[0], scorer["predict"]
    assert predict({name: str(value) for name, value in row.items()}, "a") == predict(row, "a")
    assert type(predict({name: np.float32(value) for name, value in row.items()}, "a")) is float
    assert predict({**row, "x0": True}, "a") == predict({**row, "x0": 1}, "a")
    lacking = {name: value for name, value in row.items() if name != "x0"}
    for spoilt in (lacking, {**row, "x0": None}, {**row, "x0": math.nan}, {**row, "x0": ""}):
        with pytest.raises(ValueError, match="'x0' is missing"):
            predict(spoilt, "a")
    for value, words in ((math.inf, "finite"), ("inf", "finite"), (10**400, "no number"), ("low", "no number")):
        with pytest.raises(ValueError, match=words):
            predict({**row, "x0": value}, "a")
    for unknown in (None, "z"):
        with pytest.raises(ValueError, match="there is no task"):
            predict(row, unknown)


def test_one_row_takes_microseconds(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((150, 100))
    model = ts.GraphSVC(loss="logistic").fit(X, X @ rng.standard_normal(100) > 0.0)
    assert np.count_nonzero(model.coef_) == 100
    scorer: dict[str, Any] = {}
    exec(ts.export(model, tmp_path / "m.py").read_text(), scorer)
    row, begin = as_rows(X)[0], time.process_time()
    for _ in range(1000):
        scorer["predict"](row)
    assert (time.process_time() - begin) / 1000 < 100e-6


def test_the_exponential() -> None:
    space: dict[str, Any] = {}
    exec(python_file._EXP, space)
    for x in (*np.linspace(-708.0, 709.7, 4001).tolist(), 1e-300, -1e-17, 0.0):
        assert abs(space["_exp"](x) / math.exp(x) - 1.0) < 1e-14
    assert [space["_exp"](x) for x in (-800.0, -math.inf, 709.8, math.inf)] == [0.0, 0.0, math.inf, math.inf]


def test_onnx_of_what_is_missing_or_unknown(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx", reason="ONNX files are written by onnx")
    runtime = pytest.importorskip("onnxruntime", reason="ONNX files are run by onnxruntime")
    X, task, z = linear_rows()
    model = ts.MultiTaskSparseGroupLasso(alpha=0.05, l1=0.05).fit(X, z, task=task)
    file = ts.export(model, tmp_path / "m.onnx", task="t")
    onnx.checker.check_model(onnx.load(file), full_check=True)
    rows = as_rows(X[:3])
    for row in rows[:2]:
        row["x0"] = None
    with pytest.raises(ValueError, match="'z' is not in list"):  # by the names of the metadata
        by_onnx(file, rows, ["a", "a", "z"])
    session = runtime.InferenceSession(str(file))
    numbers = np.ones((2, int(model.get_support().sum())), dtype=np.float32)
    found = session.run(["prediction"], {"numbers": numbers, "task": np.array(["a", "z"], dtype=object)})[0]
    assert np.isnan(found).tolist() == [False, True]
    every = by_onnx(ts.export(model, tmp_path / "m.onnx"), rows, ["a"] * 3)[0]
    assert np.isnan(every).tolist() == [True, True, False]
    # a task that does not use a feature predicts without it
    j = next(j for j in range(5) if model.get_support()[j] and np.any(model.coef_[:, j] == 0.0))
    t = int(np.argmin(model.coef_[:, j] != 0.0))
    lacking = X[:3].copy()
    lacking[:, j] = 0.0
    rows = [{**row, f"x{j}": None} for row in as_rows(X[:3])]
    own = [model.tasks_[t]] * 3
    np.testing.assert_allclose(by_onnx(file, rows, own)[0], model.predict(lacking, task=own), rtol=1e-5, atol=1e-5)


def test_onnx_takes_all_columns_or_those_used(tmp_path: Path) -> None:
    """X as `predict` takes it; any other number of columns is refused."""
    pytest.importorskip("onnx", reason="ONNX files are written by onnx")
    runtime = pytest.importorskip("onnxruntime", reason="ONNX files are run by onnxruntime")
    rng = np.random.default_rng(1)
    X = rng.standard_normal((80, 6)).astype(np.float32)
    y = 2.0 * X[:, 4] - X[:, 1] + 0.1 * rng.standard_normal(80)
    model = ts.MultiTaskLasso(alpha=0.3).fit(X, y)
    used = np.flatnonzero(model.get_support())
    assert used.tolist() == [1, 4]
    for own in (model, make_pipeline(StandardScaler(), clone(model)).fit(X, y)):
        session = runtime.InferenceSession(str(ts.export(own, tmp_path / "m.onnx")))
        facts = json.loads(session.get_modelmeta().custom_metadata_map["tasksieve"])
        assert (facts["numbers"], facts["all_columns"]) == (["x1", "x4"], {"numbers": 6, "words": 0})
        right = own.predict(X)
        for rows in (X, X[:, used]):
            found = session.run(["prediction"], {"numbers": rows})[0]
            np.testing.assert_allclose(found, right, rtol=1e-5, atol=1e-5)
        for count in (1, 3, 5, 7):
            with pytest.raises(Exception, match=r"(?i)gather|ind"):
                session.run(["prediction"], {"numbers": np.ones((2, count), dtype=np.float32)})
    whole = ts.MultiTaskLasso(alpha=1e-6).fit(X, y)  # all are used
    session = runtime.InferenceSession(str(ts.export(whole, tmp_path / "m.onnx")))
    assert session.get_inputs()[0].shape == ["n", 6]


# --- SQL ----------------------------------------------------------------------------------------------------------


def test_sql_of_what_is_missing_or_unknown(tmp_path: Path) -> None:
    X, task, z = linear_rows()
    y = np.where(z > 0.0, "u", "v")
    model = ts.MultiTaskLogisticRegression(alpha=0.02).fit(X, y, task=task)
    file = ts.export(model, tmp_path / "m.sql", task="t")
    rows = [{**row, "t": own} for row, own in zip(as_rows(X[:4]), ["a", "a", "z", None], strict=True)]
    rows[0]["x0"] = math.nan
    for score in FOR_SQL:
        found, chances = score(file, rows, ["a"] * 4)
        assert [label is None for label in found] == [True, False, True, True]
        assert chances[0] == {"u": None, "v": None}
    large = [{**row, "x0": value, "t": "a"} for row, value in zip(as_rows(X[:3]), [2**62, -(2**62), 7], strict=True)]
    right = model.predict(np.array([[row[f"x{j}"] for j in range(5)] for row in large], dtype=float), task=["a"] * 3)
    for score in FOR_SQL:  # whole numbers are multiplied as doubles
        assert score(file, large, ["a"] * 3)[0] == right.tolist()


def test_sql_of_many_columns(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20, 2100))
    some = X[:, :1100]  # SQLite's expressions have a depth of 1000
    model = ts.GraphSVC(loss="logistic").fit(some, np.array(["u", "v"] * 10))
    right = expected(model, some, None)
    for score in FOR_SQL:
        agree(score(ts.export(model, tmp_path / "m.sql"), as_rows(some), [None] * len(X)), right)
    with pytest.raises(ValueError, match="a table of SQL has 2,000 at most"):
        ts.export(ts.GraphSVR().fit(X, X[:, 0]), tmp_path / "m.sql")


def test_sql_names(tmp_path: Path) -> None:
    X, task, z = linear_rows()
    model = ts.MultiTaskLasso(alpha=0.001).fit(X, z, task=task)
    with pytest.raises(ValueError, match="large letters"):
        ts.export(model, tmp_path / "m.sql", feature_names=list("abcdA"))
    with pytest.raises(ValueError, match="zero byte"):
        ts.export(model, tmp_path / "m.sql", feature_names=["a", "b", "c", "d", "e\0"])
    file = ts.export(model, tmp_path / "m.sql", feature_names=["a", "b", "c", "d", "prediction (a)"], table='my "t"')
    text = file.read_text()
    assert 'FROM "my ""t""" AS r' in text
    assert '"prediction (a)*"' in text
    with pytest.raises(ValueError, match="table: only SQL"):
        ts.export(model, tmp_path / "m.py", table="t")


@pytest.mark.parametrize("table", ["linear", "chances", "dated", "Linear", "r"])
def test_sql_of_a_table_called_as_a_step(table: str, tmp_path: Path) -> None:
    """And of columns called so."""
    X, task, z = linear_rows()
    model = ts.MultiTaskLogisticRegression(alpha=1e-4).fit(X, np.where(z > 0.0, "u", "v"), task=task)
    names = ["linear", "chances", "dated", "r", "linear_step"]
    file = ts.export(model, tmp_path / "m.sql", task="t", table=table, feature_names=names)
    rows = [{**row, "t": own} for row, own in zip(as_rows(X[:6], names), task[:6].tolist(), strict=True)]
    for score in FOR_SQL:
        agree(score(file, rows, task[:6].tolist(), table), expected(model, X[:6], task[:6]))


# --- what is refused ----------------------------------------------------------------------------------------------


def test_what_has_no_linear_scores_of_columns(tmp_path: Path) -> None:
    X, task, z = linear_rows()
    path = ts.MultiTaskLasso().path(X, z, task=task, n_alphas=3)
    holes = X.copy()
    holes[:60, 0] = np.nan
    words = ["ACGT", "ACGA", "TCGT", "TCGA"] * 5
    online = ts.OnlineMultiTaskRegressor(0.1, hash_features=16)
    online.learn_one({"a": 1.0}, 2.0)
    refused = {
        "RegularizationPath has many models": path,
        "GraphSVC with a hasher scores strings": ts.GraphSVC(hasher=ts.WeightedDegreeHasher()).fit(words, [0, 1] * 10),
        "OnlineMultiTaskRegressor with hash_features": online,
        "MultiTaskLasso was fitted to patterns": ts.MultiTaskLasso(0.1).fit(ts.by_pattern(holes), z),
        "StabilitySelection selects features": ts.StabilitySelection(ts.MultiTaskLasso()),
        "KnockoffSelection selects features": ts.KnockoffSelection(ts.MultiTaskLasso()),
        "FillMissing is no estimator": ts.FillMissing(),
        "MinMaxScaler in the pipeline": make_pipeline(MinMaxScaler(), ts.MultiTaskLasso(0.1)).fit(X, z),
        "is not fitted": ts.MultiTaskLasso(),
    }
    for words_of_it, model in refused.items():
        with pytest.raises(ValueError, match=words_of_it):
            ts.export(model, tmp_path / "m.json")
    assert not list(tmp_path.iterdir())


def test_a_link_of_ones_own(tmp_path: Path) -> None:
    class Doubled(ts.losses.Squared):
        def link(self, z: Any) -> Any:
            return 2.0 * z

    X, task, z = linear_rows()
    with pytest.raises(ValueError, match="the loss Doubled has a link of its own"):
        ts.export(ts.MultiTaskRegressor(Doubled(), alpha=0.1).fit(X, z, task=task), tmp_path / "m.json")


def test_multiple_imputation_of_complete_rows(tmp_path: Path) -> None:
    X, task, z = linear_rows()
    holes = X.copy()
    holes[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan
    model = ts.MultipleImputation(ts.MultiTaskLasso(alpha=0.05), SimpleImputer(), m=2).fit(holes, z, task=task)
    check(model, X, task, tmp_path)
    counts = np.random.default_rng(0).poisson(np.exp(z))
    plain = ts.MultiTaskPoisson(alpha=0.05)
    model = ts.MultipleImputation(plain, SimpleImputer(), m=2).fit(X, counts, task=task)
    check(model, X, task, tmp_path)
    right = plain.fit(X, counts, task=task).predict(X, task=task)
    np.testing.assert_allclose(model.predict(X, task=task), right, rtol=0.01)


def test_where_and_what_to_write(tmp_path: Path) -> None:
    X, task, z = linear_rows()
    model = ts.MultiTaskLasso(alpha=0.1).fit(X, z, task=task)
    with pytest.raises(ValueError, match=r"one of .*\.json"):
        ts.export(model, tmp_path / "model.pmml")
    with pytest.raises(ValueError, match="there is no folder"):
        ts.export(model, tmp_path / "no" / "model.py")
    with pytest.raises(ValueError, match="feature_names are 2"):
        ts.export(model, tmp_path / "model.py", feature_names=["a", "b"])
    with pytest.raises(ValueError, match="two inputs are called 'a'"):
        ts.export(model, tmp_path / "model.py", feature_names=list("aaaaa"))
    with pytest.raises(ValueError, match="was fitted without tasks"):
        ts.export(ts.MultiTaskLasso(alpha=0.1).fit(X, z), tmp_path / "model.py", task="site")
    assert {ending for ending, _ in EXACT} <= set(FORMATS)


def test_json_is_what_its_schema_says(tmp_path: Path) -> None:
    jsonschema = pytest.importorskip("jsonschema", reason="the schema is checked by jsonschema")
    schema = json.loads((Path(python_file.__file__).parent / "schema.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    X, _, z = linear_rows()
    X[0, 0] = np.nan
    grades = ts.MultiTaskOrdinal(alpha=0.02, categories=list("abcd")).fit(X[1:], np.where(z > 0, "b", "a")[1:])
    filled = make_pipeline(ts.FillMissing("indicator"), StandardScaler(), ts.MultiTaskLasso(alpha=0.05)).fit(X, z)
    for model in (grades, filled):
        content = json.loads(ts.export(model, tmp_path / "m.json").read_text(encoding="utf-8"))
        jsonschema.validate(content, schema)
        content["tasks"][0]["link"] = "probit"
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(content, schema)
