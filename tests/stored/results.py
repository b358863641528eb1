"""Stored results that Python makes: certificates of every member and option, models, problem files; sites; runs that
were stopped."""

from __future__ import annotations

import hashlib
import json
import lzma
import os
import pickle
import shutil
import threading
from collections.abc import Callable
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from hand_cases import CLASSES, NUMBERS, PENALTIES, penalty_of
from sklearn.base import clone
from stored_archives import write_data
from tables import study

import tasksieve as ts
from tasksieve.checks.estimator_data import rows_for
from tasksieve.checks.registry import ESTIMATORS
from tasksieve.federated.folders import SiteFolder
from tasksieve.federated.site import Site

Files = dict[str, bytes]
Array = np.ndarray[Any, Any]


def saved(result: Any) -> bytes:
    """What `save` writes."""
    name = Path("saved-result.npz")
    result.save(name)
    try:
        return name.read_bytes()
    finally:
        name.unlink()


class Certificates:
    """Certificates with their data, each data set once."""

    def __init__(self) -> None:
        self.files: Files = {}
        self.cases: list[dict[str, Any]] = []

    def add(self, name: str, certificate: Any, data: dict[str, Any]) -> None:
        content, cert = write_data(data), saved(certificate)
        place = f"data/{hashlib.sha256(content).hexdigest()[:16]}.npz"
        self.files[place], self.files[f"certificates/{len(self.cases)}.npz"] = content, cert
        verdict = ts.verify.verify(cert, **data)
        if not verdict.proved:
            print(f"  NOT PROVED: {name}: {verdict.words}")
        told = [{key: getattr(one, key) for key in ("alpha", "objective", "gap")} for one in verdict.values]
        needs = [[one.value, [int(j) for j in one.features], one.delta] for one in verdict.needs]
        self.cases.append(
            {"name": name, "certificate": f"certificates/{len(self.cases)}.npz", "data": place,
             "proved": verdict.proved, "values": told, "needs": needs}
        )  # fmt: skip

    def packed(self) -> Files:
        return {**self.files, "expected.json": (json.dumps({"cases": self.cases}, indent=1) + "\n").encode()}


def certificates_of_estimators() -> Files:
    """Every model of the registry, with what it needs where it says it; of models with a path, the path's, too."""
    found = Certificates()
    for name, model in ESTIMATORS.items():
        rows = rows_for(model, "multinomial" not in name)
        data = {"X": rows.X, "y": rows.y, **rows.arguments}
        fitted = clone(model).fit(rows.X, rows.y, **rows.arguments)
        if name.startswith("online"):
            fitted = fitted.batch_model().fit(rows.X, rows.y, **rows.arguments)
        asks = "need" in signature(fitted.certificate).parameters
        found.add(name, fitted.certificate(rows.X, rows.y, **rows.arguments, **({"need": True} if asks else {})), data)
        if hasattr(model, "path") and "cross-validated" not in name and not name.startswith("online"):
            if isinstance(fitted, ts.GraphSVC | ts.GraphSVR):
                path = fitted.path(rows.X, rows.y, **rows.arguments, Cs=[0.1, 1.0])
                found.add(f"{name}: a value of its path", path.certificate(rows.X, rows.y, 1, **rows.arguments), data)
                continue
            path = fitted.path(rows.X, rows.y, **rows.arguments, n_alphas=4, eps=0.1)
            more = {"need": 2} if asks else {}
            found.add(f"{name}: its path", path.certificate(rows.X, rows.y, **rows.arguments, **more), data)
    return found.packed()


OPTIONS: tuple[dict[str, Any], ...] = (
    {"weights": True, "task_weights": True, "ridge": True, "graph": True},
    {"standardize": True, "offset": True, "free": True, "class_weights": True},
    {"positive": True, "intercept": False, "feature_weights": True, "shared": True},
)


def certificates_of_members() -> Files:
    """Every loss with every option, and penalties in turn: all of them with all options over the losses."""
    found = Certificates()
    for i, loss in enumerate((*NUMBERS, *CLASSES)):
        for k, options in enumerate(OPTIONS):
            penalty = PENALTIES[(2 * i + 3 * k) % len(PENALTIES)]
            name = f"{loss}, {penalty}, {', '.join(options)}"
            found.add(name, *member_certificate(loss, penalty, 10 * i + k, options))
    return found.packed()


def member_certificate(loss: str, penalty: str, seed: int, options: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """The library's certificate of a small problem, and the data."""
    rng, d, tasks = np.random.default_rng(seed), 6, 2
    shared, multinomial = "shared" in options, loss == "multinomial"
    counts = [12, 12] if shared else [12, 10]
    X = [rng.standard_normal((n, d)) for n in counts]
    X = [X[0]] * tasks if shared else X
    z = [x[:, 0] - 0.8 * x[:, 1] * (1 - 2 * t) for t, x in enumerate(X)]
    if loss in NUMBERS:
        if loss in ("poisson", "negative_binomial"):
            y = [rng.poisson(np.exp(0.5 * v)).astype(float) for v in z]
        elif loss in ("gamma", "tweedie"):
            y = [np.exp(0.5 * v) * rng.gamma(2.0, 0.5, len(v)) for v in z]
        else:
            y = [v + 0.5 * rng.standard_normal(len(v)) for v in z]
    else:
        cuts = (0.33, 0.67) if multinomial else (0.5,)
        y = [np.array(["a", "b", "c"])[np.digitize(v, np.quantile(v, cuts))] for v in z]
    norm, _, arrays = penalty_of(penalty, d, rng)
    kind: Any = ts.MultiTaskRegressor if loss in NUMBERS else ts.MultiTaskClassifier
    more: dict[str, Any] = {}
    if "free" in options and penalty != "owl" and not multinomial:
        free = arrays["group_of"] == arrays["group_of"][-1] if "group_of" in arrays else np.arange(d) == d - 1
        more["feature_weights"] = np.where(free, 0.0, 1.0)
    if "feature_weights" in options and penalty in ("l21", "l11", "sparse_group", "linf", "dirty"):
        more["feature_weights"] = rng.uniform(0.5, 1.5, d)
    if "task_weights" in options:
        more["task_weights"] = [0.7, 1.6]
    if "class_weights" in options and loss in CLASSES:
        more["class_weight"] = {"a": 1.5, "b": 0.8, **({"c": 1.0} if multinomial else {})}
    if "graph" in options and not multinomial:
        more["task_graph"] = np.array([[0.0, 0.2], [0.2, 0.0]])
    member = NUMBERS[loss][0] if loss in NUMBERS else CLASSES[loss][0]
    model = kind(member, norm, ridge=0.1 if "ridge" in options else 0.0, fit_intercept="intercept" not in options,
                 standardize="standardize" in options, positive="positive" in options, **more)  # fmt: skip
    known: dict[str, Any] = {}
    if "weights" in options:
        known["sample_weight"] = [rng.uniform(0.5, 2.0, n) for n in counts]
    if "offset" in options and not multinomial:
        known["offset"] = [0.3 * rng.standard_normal(n) for n in counts]
    if shared:
        data = {"X": X[0], "y": np.stack(y, axis=1), **{key: np.stack(own, axis=1) for key, own in known.items()}}
    else:
        data = {"X": np.vstack(X), "y": np.concatenate(y), "task": np.repeat(["one", "two"], counts),
                **{key: np.concatenate(own) for key, own in known.items()}}  # fmt: skip
    given = {key: own for key, own in data.items() if key not in ("X", "y")}
    model.alpha = 0.3 * model.alpha_max(data["X"], data["y"], **given) or 0.1
    model.fit(data["X"], data["y"], **given)
    return model.certificate(data["X"], data["y"], **given, need=True), data


def of_rows(rng: Any, n: int = 22, d: int = 5) -> tuple[Array, Array, Array]:
    X = rng.standard_normal((n, d))
    task = np.resize(["one", "two"], n)
    return X, task, X[:, 0] - 0.7 * X[:, 1] + 0.4 * rng.standard_normal(n)


def times(rng: Any, z: Array, **more: Any) -> Array:
    time = np.ceil(6.0 * rng.exponential(np.exp(-z)))
    return ts.survival(time, rng.random(len(z)) < 0.7, **more)


def certificates_of_kinds() -> Files:
    """Other data, other doors."""
    found, rng = Certificates(), np.random.default_rng(7)
    X, task, y = of_rows(rng)
    n, d = X.shape
    weight, offset = rng.uniform(0.5, 2.0, n), 0.3 * rng.standard_normal(n)
    data: dict[str, Any] = {"X": X, "y": y, "task": task}
    rows = {"task": task, "sample_weight": weight, "offset": offset}

    # survival, ordered classes and mixtures with weights, offsets, entries, strata
    entry = {"entry": np.where(rng.random(n) < 0.4, 0.5, 0.0), "strata": rng.choice(["b", "a"], n)}
    for ties in ("efron", "breslow"):
        for name, more in (("plain", {}), ("entry and strata", entry)):
            label = times(rng, y, **more)
            model = ts.MultiTaskCox(0.05, ties=ties, feature_weights=np.where(np.arange(d) == 4, 0.0, 1.0))
            model.fit(X, label, **rows)
            found.add(f"Cox, {ties}, {name}", model.certificate(X, label, **rows, need=True),
                      {"X": X, "y": label, **rows})  # fmt: skip
    path = ts.MultiTaskCox(standardize=True).path(X, label, task=task, n_alphas=4, eps=0.1)
    found.add("Cox, a path", path.certificate(X, label, task=task), {"X": X, "y": label, "task": task})
    pain = np.array(["none", "mild", "severe"], dtype=object)[np.digitize(y, [-0.5, 0.5])]
    model = ts.MultiTaskOrdinal(0.03, categories=["none", "mild", "severe"]).fit(X, pain, **rows)
    found.add("ordered, weights and offsets", model.certificate(X, pain, **rows, need=True),
              {"X": X, "y": pain, **rows})  # fmt: skip
    blocks = {name: rng.standard_normal((14 + k, d)) for k, name in enumerate(("y", "state", "visits", "pain", "cost",
              "death"))}  # fmt: skip
    z = {name: x[:, 0] - 0.7 * x[:, 1] for name, x in blocks.items()}
    labels = {
        "y": 120.0 + 15.0 * z["y"], "state": np.where(z["state"] > 0.0, "yes", "no"),
        "visits": rng.poisson(np.exp(0.5 * z["visits"])), "pain": np.digitize(z["pain"], [-0.5, 0.5]),
        "cost": np.exp(0.5 * z["cost"]) * rng.gamma(2.0, 0.5, len(z["cost"])), "death": times(rng, z["death"]),
    }  # fmt: skip
    losses = {"y": "squared", "state": "logistic", "visits": "poisson", "pain": "ordinal", "cost": "gamma",
              "death": "cox"}  # fmt: skip
    weights = {name: rng.uniform(0.5, 2.0, len(own)) for name, own in z.items()}
    model = ts.MultiTaskMixed(losses=losses, alpha=0.05, ridge=0.05).fit(blocks, labels, sample_weight=weights)
    found.add("mixed, six outcomes", model.certificate(blocks, labels, sample_weight=weights, need=True),
              {"X": blocks, "y": labels, "sample_weight": weights})  # fmt: skip
    wide = {"y": y, "state": np.where(y > 0.0, "yes", "no"), "pain": np.digitize(y, [-0.5, 0.5]),
            "death": times(rng, y)}  # fmt: skip
    model = ts.MultiTaskMixed({name: losses[name] for name in wide}, alpha=0.1).fit(X, wide)
    found.add("mixed, one matrix", model.certificate(X, wide, need=True), {"X": X, "y": wide})
    path = model.path(X, wide, n_alphas=4, eps=0.1)
    found.add("mixed, a path", path.certificate(X, wide), {"X": X, "y": wide})

    # forms of the data
    Y = np.column_stack([y, -y + rng.standard_normal(n), X[:, 2]])
    lasso = ts.MultiTaskLasso(0.1).fit(X, Y)
    found.add("one matrix", lasso.certificate(X, Y, need=True), {"X": X, "y": Y})
    holes = np.where(rng.random(Y.shape) < 0.15, np.nan, Y)
    lasso = ts.MultiTaskLasso(0.1).fit(X, holes)
    found.add("one matrix, labels missing", lasso.certificate(X, holes), {"X": X, "y": holes})
    lists = [X[:9], X[9:]], [y[:9], y[9:]]
    lasso = ts.MultiTaskLasso(0.1).fit(*lists)
    found.add("lists", lasso.certificate(*lists), {"X": lists[0], "y": lists[1]})
    sparse = scipy.sparse.csc_array(np.where(np.abs(X) < 0.7, 0.0, X))
    lasso = ts.MultiTaskLasso(0.05).fit(sparse, y, task=task)
    found.add("sparse", lasso.certificate(sparse, y, task=task), {**data, "X": sparse.toarray()})
    single = X.astype(np.float32)
    lasso = ts.MultiTaskLasso(0.05).fit(single, y, task=task)
    found.add("float32", lasso.certificate(single, y, task=task), {**data, "X": single})
    holed = X.copy()
    holed[5:12, 3:] = np.nan
    present = ts.by_pattern(holed, task)
    lasso = ts.MultiTaskLasso(0.05).fit(present, y)
    found.add("patterns of present columns", lasso.certificate(present, y), {**data, "X": holed})
    filled = ts.FillMissing().fit(holed, task=task).transform(holed, task=task)
    lasso = ts.MultiTaskLasso(0.05).fit(filled, y, task=task)
    found.add("filled", lasso.certificate(filled, y, task=task), {**data, "X": filled})

    # other doors
    lasso = ts.MultiTaskLasso(0.1, tol=1e-3).fit(X, y, **rows)
    found.add("a loose tolerance", lasso.certificate(X, y, **rows), {"X": X, "y": y, **rows})
    moments = ts.TaskMoments()
    moments.add(X, y, task=task)
    lasso = ts.MultiTaskLasso(0.1).fit_moments(moments)
    try:
        found.add("moments", lasso.certificate(X, y, task=task), data)
    except ValueError as error:
        print(f"  moments: {error}")
    graded = ts.grade(0.9 * lasso.coef_, lasso.intercept_, X, y, task=task, alpha=0.1)
    found.add("a grade", graded.certificate, data)
    found.add("a grade, polished", graded.polish().certificate, data)
    small = ts.datasets.make_small_tasks(effects=[1.0] * 4, n_rows=20, n_features=6)
    old, new = small[2] != small[2][-1], np.flatnonzero(small[2] == small[2][-1])[:12]
    model = ts.MultiTaskLassoCV(n_alphas=6, eps=0.05, cv=3).fit(small[0][old], small[1][old], task=small[2][old])
    fresh = model.fit_new_task(small[0][new], small[1][new], name="new")
    given = fresh.offset(small[0][new])
    known = {} if given is None else {"offset": given}
    found.add("a new task", fresh.certificate(small[0][new], small[1][new]),
              {"X": small[0][new], "y": small[1][new], **known})  # fmt: skip

    # machines on a graph
    graph = np.array([[0.0, 1.0], [1.0, 0.0]])
    signs = np.where(y > 0.0, "up", "down")
    for loss in ("hinge", "squared_hinge", "logistic"):
        for more in ({}, {"fit_intercept": False}, {"intercept_scaling": 2.0, "class_weight": "balanced"}):
            model = ts.GraphSVC(graph, C=0.5, loss=loss, graph_strength=0.7, tol=1e-8, **more)
            model.fit(X, signs, task=task, sample_weight=weight)
            found.add(f"machine, {loss}, {', '.join(more)}", model.certificate(X, signs, task=task,
                      sample_weight=weight), {"X": X, "y": signs, "task": task, "sample_weight": weight})  # fmt: skip
    for loss in ("epsilon_insensitive", "squared_epsilon_insensitive", "squared"):
        model = ts.GraphSVR(graph, C=0.5, loss=loss, graph_strength=0.7, tol=1e-8).fit(X, y, task=task)
        found.add(f"machine, {loss}", model.certificate(X, y, task=task), data)
    return found.packed()


def online_models() -> Files:
    """Saved online models, what they predict, and what `certify` proves of them."""
    files: Files = {}
    cases: list[dict[str, Any]] = []
    rng = np.random.default_rng(3)
    X, task, y = of_rows(rng, 60)
    signs = np.where(y > 0.0, "up", "down")
    for penalty, scheme in (("l21", "per-task"), ("l11", "importance"), ("l1+l21", "rounds")):
        for kind, loss in (("Regressor", "squared"), ("Classifier", "logistic"), ("Classifier", "hinge")):
            more = {"missing": scheme} if scheme in ("importance", "rounds") else {}
            model = getattr(ts, f"OnlineMultiTask{kind}")(
                alpha=0.05, penalty=penalty, loss=loss, gamma=20.0, l2=0.01, **more
            )
            labels = y if kind == "Regressor" else signs
            model.partial_fit(X, labels, task=task)
            certificate = model.certify(X, labels, task=task, needed=False)
            name = f"{kind}-{loss}-{penalty.replace('+', '-')}"
            files[f"{name}.npz"] = saved(model)
            files[f"{name}-data.npz"] = write_data({"X": X, "y": labels, "task": task, "predict": model.predict(X,
                                                    task=task), "coef": model.coef_})  # fmt: skip
            cases.append({"name": name, "kind": kind, "objective": certificate.objective,
                          "dual_gap": certificate.dual_gap})  # fmt: skip
    model = ts.OnlineMultiTaskRegressor(alpha=0.05, gamma=20.0)
    for i in range(len(y)):
        model.learn_one({f"x{j}": X[i, j] for j in range(5)}, y[i], task=str(task[i]))
    files["one-by-one.npz"] = saved(model)
    files["one-by-one-data.npz"] = write_data({"X": X, "y": y, "task": task, "predict": model.predict(X, task=task),
                                               "coef": model.coef_})  # fmt: skip
    cases.append({"name": "one-by-one", "kind": "Regressor"})
    return {**files, "expected.json": (json.dumps({"cases": cases}, indent=1) + "\n").encode()}


def pickled_models() -> Files:
    """Every estimator of the registry as a pickle, and what it predicts."""
    models: dict[str, bytes] = {}
    files: Files = {}
    for name, model in ESTIMATORS.items():
        rows = rows_for(model, "multinomial" not in name)
        fitted = clone(model).fit(rows.X, rows.y, **rows.arguments)
        models[name] = pickle.dumps(fitted)
        given = {key: own for key, own in rows.arguments.items() if key == "task"}
        files[f"{len(models) - 1}.npz"] = write_data({"X": rows.X, **given, "predict": fitted.predict(rows.X, **given)})
    files["models.xz"] = lzma.compress(pickle.dumps(models), preset=9)
    names = json.dumps({"names": list(models)}, indent=1) + "\n"
    return {**files, "expected.json": names.encode()}


def problem_files() -> Files:
    """Models with their data, and the coefficients that a fit of them has."""
    files: Files = {}
    cases: list[str] = []
    rng = np.random.default_rng(5)
    X, task, y = of_rows(rng)
    weight, signs = rng.uniform(0.5, 2.0, len(y)), np.where(y > 0.0, "up", "down")
    holed = X.copy()
    holed[5:12, 3:] = np.nan
    kinds: dict[str, tuple[Any, Any, Any, dict[str, Any]]] = {
        "lasso": (ts.MultiTaskLasso(0.1), X, y, {"task": task, "sample_weight": weight, "offset": weight}),
        "sparse": (ts.MultiTaskElasticNet(0.1), scipy.sparse.csc_array(X), y, {"task": task}),
        "lists": (ts.MultiTaskHuber(0.05), [X[:9], X[9:]], [y[:9], y[9:]], {}),
        "members": (
            ts.MultiTaskRegressor(ts.losses.Quantile(0.7, 0.5),
                                  ts.penalties.Groups([0, 0, 1, 1, 2], "entries", mix=0.3), alpha=0.05,
                                  task_weights={"one": 2.0}, feature_weights=np.array([1, 1, 1, 1, 0.5])),
            X, y, {"task": task},
        ),
        "classes": (ts.MultiTaskClassifier(penalty="l11", alpha=0.02, class_weight="balanced"), X, signs,
                    {"task": task}),
        "folds": (ts.MultiTaskLassoCV(n_alphas=4, eps=0.1, cv=3), X, y, {"task": task}),
        "survival": (ts.MultiTaskCox(0.05), X, times(rng, y), {"task": task}),
        "patterns": (ts.MultiTaskLasso(0.05), ts.by_pattern(holed, task), y, {}),
        "machine": (ts.GraphSVC(np.array([[0.0, 1.0], [1.0, 0.0]]), C=0.5), X, signs, {"task": task}),
        "online": (ts.OnlineMultiTaskRegressor(0.05, gamma=20.0, shuffle=False), X, y, {"task": task}),
    }  # fmt: skip
    for name, (model, matrix, labels, given) in kinds.items():
        try:
            ts.save_problem("problem.npz", model, matrix, labels, **given)
        except ValueError as error:
            print(f"  {name}: {error}")
            continue
        files[f"{name}.npz"] = Path("problem.npz").read_bytes()
        os.unlink("problem.npz")
        files[f"{name}-coef.npz"] = write_data({"coef": np.asarray(clone(model).fit(matrix, labels, **given).coef_)})
        cases.append(name)
    return {**files, "expected.json": (json.dumps({"cases": cases}, indent=1) + "\n").encode()}


FILES: dict[str, Callable[[], Files]] = {
    "certificates-estimators": certificates_of_estimators,
    "certificates-members": certificates_of_members,
    "certificates-kinds": certificates_of_kinds,
    "online-models": online_models,
    "pickled-models": pickled_models,
    "problem-files": problem_files,
}

# -- folders ---------------------------------------------------------------------------------------------------------


def sites(done: Callable[..., str]) -> None:
    """A federated fit of three sites: its result, what the sites have signed, one site's part of the proof and its
    run. Keys are not kept."""
    rng = np.random.default_rng(0)
    names = ("north", "south", "west")
    for name in names:
        X = rng.standard_normal((25, 6))
        y = 2.0 * X[:, 0] - X[:, 1] + 0.3 * rng.standard_normal(25)
        lines = [",".join(f"{value:.4f}" for value in row) for row in np.column_stack([X, y])]
        Path(f"{name}.csv").write_text("\n".join(["a,b,c,d,e,age,y", *lines]) + "\n")
    top = done("federate", "--new-keys", "--keys", "coordinator.json")
    lines = [done("site", "init", f"sites/{name}", "--name", name, "--table", f"{name}.csv", "-y", "y")
             for name in names]  # fmt: skip
    Path("plan.toml").write_text(
        f'format = 1\ntitle = "Three sites"\n{top}\n[path]\nn_alphas = 4\neps = 0.1\n[checks]\ncv = 2\n'
        f'[data]\nfeatures = ["a", "b", "c", "d", "e"]\ncovariates = ["age"]\n[sites]\n{"".join(lines)}'
    )
    for name in names:
        done("site", "agree", f"sites/{name}", "plan.toml")
    for name in names:
        (Path("exchange") / name).mkdir(parents=True)
    stop = threading.Event()
    watchers = [
        threading.Thread(
            target=SiteFolder(Path("exchange") / name).serve, args=(Site(Path("sites") / name).node().reply,),
            kwargs={"stop": stop, "pause": 0.01},
        )
        for name in names
    ]  # fmt: skip
    for watcher in watchers:
        watcher.start()
    try:
        done("federate", "plan.toml", "--keys", "coordinator.json", "--out", "out", "--folders", "exchange",
             "--no-report", "--patience", "30", "-q")  # fmt: skip
    finally:
        stop.set()
        for watcher in watchers:
            watcher.join()
    done("site", "part", "sites/north", "--out", "part.npz", "--rows", "north.npz")
    done("site", "model", "sites/north", "out/result.npz", "--out", "run", "--no-report")
    os.mkdir("expected")
    done("predict", "run", "north.csv", "-o", "expected/predict-0.csv")
    for name in ("sites", "exchange"):
        shutil.rmtree(name)
    for name in ("coordinator.json", "south.csv", "west.csv"):
        os.unlink(name)
    for path in Path("out").iterdir():
        if path.name not in ("result.npz", "statement.npz", "path.csv", "coefficients.csv"):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    expect({"plan": "plan.toml"})


FIT = ("fit", "table.csv", "-y", "y", "-t", "region", "-x", "[a-e]", "--cv", "3", "--alphas", "6", "--full-path",
       "--no-report")  # fmt: skip
STREAM = ("stream", "table.csv", "-y", "y", "-t", "region", "-x", "[a-e]", "--alpha", "0.05", "--gamma", "20",
          "--no-report")  # fmt: skip


def fit_of_one_fold(done: Callable[..., str]) -> None:
    """A fit that was interrupted in its second fold, and the one that was not."""
    study().to_csv("table.csv", index=False)
    done(*FIT, "-o", "finished")
    seen: list[Any] = []

    def stop(progress: Any) -> None:
        seen.append(progress)
        if len(list(Path("run/pieces").glob("*.piece"))) == 1:
            raise KeyboardInterrupt

    with ts.watch(stop):
        done(*FIT, "-o", "run", code=130)
    assert list(Path("run/pieces").iterdir())
    expect({"command": list(FIT)})


def stream_of_some_rows(done: Callable[..., str]) -> None:
    """A stream that was stopped after 30 rows, and the one that was not."""
    study().to_csv("table.csv", index=False)
    done(*STREAM, "-o", "finished")
    done(*STREAM, "--max-rows", "30", "-o", "run")
    expect({"command": list(STREAM)})


def graded(done: Callable[..., str]) -> None:
    """Coefficients of another program, and the proof of how good they are."""
    frame = study()
    frame.to_csv("table.csv", index=False)
    model = ts.MultiTaskLasso(0.1, tol=1e-2).fit(frame[list("abcde")], frame.y, task=frame.region)
    lines = [f"{name}," + ",".join(f"{value:.3f}" for value in row)
             for name, row in zip("abcde", model.coef_.T, strict=True)]  # fmt: skip
    lines.append("(Intercept)," + ",".join(f"{value:.3f}" for value in model.intercept_))
    Path("coefficients.csv").write_text("\n".join(["feature," + ",".join(model.tasks_), *lines]) + "\n")
    words = ["coefficients.csv", "table.csv", "-y", "y", "-x", "[a-e]", "-t", "region", "--alpha", "0.1"]
    told = json.loads(done("grade", *words, "--json", "--certificate", "proof.npz"))
    done("fit", "table.csv", "-y", "y", "-t", "region", "-x", "[a-e]", "--alpha", "0.1", "--no-report", "-o", "run",
         "--save-problem", "problem.npz")  # fmt: skip
    expect({"command": words, "told": {key: own for key, own in told.items() if isinstance(own, float)}})


def expect(told: dict[str, Any]) -> None:
    Path("expected.json").write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")


FOLDERS: dict[str, Callable[[Callable[..., str]], None]] = {
    "sites": sites,
    "interrupted-fit": fit_of_one_fold,
    "interrupted-stream": stream_of_some_rows,
    "graded": graded,
}
