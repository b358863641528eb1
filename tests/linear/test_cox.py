"""Cox models against R's survival and glmnet, scikit-survival, and their own definitions.

The numbers of R (survival 3.5-3, glmnet 4.1-6) were computed once, by ``REFERENCE`` on the data of `cohort`; where R is
installed they are computed again.
"""

from __future__ import annotations

import pickle
import shutil
import subprocess
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold, cross_validate

import tasksieve as ts
from tasksieve.fitted.new_rows import quality_on
from tasksieve.losses.partial_likelihood import PartialLikelihood
from tasksieve.outcomes import encode

REFERENCE = """
library(survival); library(glmnet)
d <- read.csv("cohort.csv")
ctl <- coxph.control(eps = 1e-14, toler.chol = 1e-15, iter.max = 100)
show <- function(name, numbers) cat(name, format(numbers, digits = 17), "\\n")
for (ties in c("efron", "breslow")) {
  f <- coxph(Surv(time, event) ~ x1 + x2 + x3, d, ties = ties, control = ctl)
  show(paste0(ties, "-plain"), c(coef(f), f$loglik[2]))
  f <- coxph(Surv(time, event) ~ x1 + x2 + x3 + strata(stratum) + offset(offset), d, weights = weight, ties = ties,
             control = ctl)
  show(paste0(ties, "-strata"), c(coef(f), f$loglik[2]))
  f <- coxph(Surv(entry, time, event) ~ x1 + x2 + x3 + strata(stratum) + offset(offset), d, weights = weight,
             ties = ties, control = ctl)
  show(paste0(ties, "-entry"), c(coef(f), f$loglik[2]))
}
b <- basehaz(coxph(Surv(time, event) ~ x1 + x2 + x3 + strata(stratum), d, control = ctl), centered = FALSE)
show("basehaz", b$hazard[b$strata == "stratum=0" & b$time %in% c(1, 3, 6)])
s <- survfit(coxph(Surv(time, event) ~ x1 + x2 + x3, d, control = ctl), stype = 2, ctype = 2,
             newdata = data.frame(x1 = 0.5, x2 = -1, x3 = 0.25))
show("survfit", summary(s, times = c(1, 3, 6))$surv)
show("concordance", c(concordance(Surv(time, event) ~ x1, d, reverse = TRUE)$concordance,
  concordance(Surv(time, event) ~ x1 + strata(stratum), d, weights = weight, reverse = TRUE)$concordance,
  concordance(Surv(entry, time, event) ~ x1, d, reverse = TRUE)$concordance))
x <- as.matrix(d[, 1:3]); y <- Surv(d$time, d$event)
top <- glmnet(x, y, family = "cox", standardize = FALSE)$lambda[1]
show("lambda_max", top)
g <- glmnet(x, y, family = "cox", standardize = FALSE, thresh = 1e-15, lambda = top * c(1, 0.5, 0.1))
show("glmnet", c(as.matrix(coef(g))[, 2], as.matrix(coef(g))[, 3]))
cv <- cv.glmnet(x, y, family = "cox", standardize = FALSE, thresh = 1e-15, lambda = g$lambda, foldid = d$fold,
                grouped = TRUE)
show("cvm", cv$cvm)
"""

NUMBERS: dict[str, list[float]] = {
    "efron-plain": [1.01133319182005788, 0.19083159415268186, 0.25276875604083748, -70.537567801975001],
    "efron-strata": [1.22833864923134484, 0.25838099465862086, 0.42006025788153256, -80.506549151970802],
    "efron-entry": [0.95291666176966794, 0.24784504492264495, 0.27888332593969928, -62.978389567381441],
    "breslow-plain": [0.89653359598032112, 0.14801373329260750, 0.24269383063153430, -72.465814035140497],
    "breslow-strata": [1.08103375255042256, 0.21519422133086202, 0.38187418786608140, -84.17810695993245],
    "breslow-entry": [0.81020148256295799, 0.20442405352421716, 0.23711695809926739, -67.820122867474822],
    "basehaz": [0.077702398194537545, 0.314517219806339954, 1.158122892965620654],
    "survfit": [0.80730543266382548, 0.61226591172611944, 0.29340278266778946],
    "concordance": [0.72957198443579763, 0.73691679208772309, 0.65044247787610621],
    "lambda_max": [0.31652128610636676],
    "glmnet": [0.350894371557444, 0.0, 0.0, 0.7502816548844565, 0.0707769555934793, 0.1711594324694053],
    "cvm": [5.0020705014321027, 4.8029967880380413, 4.6214429848133234],
}


def cohort() -> dict[str, np.ndarray]:
    """Forty rows with ties, entry times, two strata, weights and offsets."""
    rng = np.random.RandomState(7)  # its numbers are the same in every version of NumPy
    x = np.round(rng.randn(40, 3), 2)
    time = np.ceil(8 * rng.exponential(np.exp(-0.8 * x[:, 0]))) / 2
    event = (rng.rand(40) < 0.7).astype(int)
    entry = np.floor(time * rng.rand(40) * 0.8 * 4) / 4
    found = {"x": x, "time": time, "event": event, "entry": np.where(entry < time, entry, 0.0)}
    found["stratum"] = rng.randint(0, 2, 40)
    found["weight"] = np.round(rng.uniform(0.5, 2, 40), 1)
    found["offset"] = np.round(0.3 * rng.randn(40), 2)
    return found | {"fold": np.arange(40) % 4}


C = cohort()
X, Y = C["x"], ts.survival(C["time"], C["event"])


def cohorts(seed: int = 0, n: int = 150, d: int = 12) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Three cohorts in which the first two features matter."""
    rng = np.random.default_rng(seed)
    x, task = rng.standard_normal((n, d)), rng.integers(0, 3, n)
    time, end = rng.exponential(np.exp(-x[:, 0] + 0.7 * x[:, 1])), rng.exponential(2.0, n)
    return x, ts.survival(np.minimum(time, end), time <= end), task


# --- against R --------------------------------------------------------------------------------------------------------


def test_r_gives_these_numbers(tmp_path: Path) -> None:
    if shutil.which("Rscript") is None:
        pytest.skip("R is not installed: its numbers are those of another machine")
    names = ["x1", "x2", "x3", "time", "event", "entry", "stratum", "weight", "offset", "fold"]
    columns = [*X.T, *(C[name] for name in names[3:-1]), C["fold"] + 1]
    rows = np.column_stack(columns)
    np.savetxt(tmp_path / "cohort.csv", rows, delimiter=",", header=",".join(names), comments="", fmt="%.17g")
    (tmp_path / "reference.R").write_text(REFERENCE)
    run = subprocess.run(["Rscript", "reference.R"], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    if run.returncode:
        pytest.skip(f"R has no survival or glmnet: {run.stderr[-300:]}")
    lines = [line.split() for line in run.stdout.splitlines() if line.split() and line.split()[0] in NUMBERS]
    assert {line[0] for line in lines} == set(NUMBERS)
    for name, *numbers in lines:
        assert [float(number) for number in numbers] == pytest.approx(NUMBERS[name], rel=1e-9, abs=1e-9)


PBC = """
library(survival); library(glmnet)
d <- pbc[complete.cases(pbc), ]
d$time <- ceiling(d$time / 91)  # quarters: ties
d$event <- as.integer(d$status == 2); d$sex <- as.integer(d$sex == "f")
x <- scale(as.matrix(d[, c("age", "edema", "bili", "albumin", "copper", "protime", "stage")]))
write.csv(cbind(x, d[, c("time", "event", "sex")], entry = floor(d$time / 3)), "pbc.csv", row.names = FALSE)
ctl <- coxph.control(eps = 1e-14, toler.chol = 1e-15, iter.max = 100)
show <- function(name, numbers) cat(name, format(numbers, digits = 17), "\\n")
for (ties in c("efron", "breslow")) {
  show(paste0(ties, "-plain"), coef(coxph(Surv(time, event) ~ x, d, ties = ties, control = ctl)))
  show(paste0(ties, "-strata"), coef(coxph(Surv(time, event) ~ x + strata(sex), d, ties = ties, control = ctl)))
  show(paste0(ties, "-entry"), coef(coxph(Surv(floor(time / 3), time, event) ~ x, d, ties = ties, control = ctl)))
}
show("lambda_max", glmnet(x, Surv(d$time, d$event), family = "cox", standardize = FALSE)$lambda[1])
"""


def test_primary_biliary_cirrhosis_of_r(tmp_path: Path) -> None:
    """Real data, which come with R's survival, to 1e-8."""
    if shutil.which("Rscript") is None:
        pytest.skip("R is not installed, and with it its data are not there")
    (tmp_path / "pbc.R").write_text(PBC)
    run = subprocess.run(["Rscript", "pbc.R"], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    if run.returncode:
        pytest.skip(f"R has no survival or glmnet: {run.stderr[-300:]}")
    rows = np.genfromtxt(tmp_path / "pbc.csv", delimiter=",", skip_header=1)
    x, time, event, sex, entry = rows[:, :7], *rows[:, 7:].T
    labels = {
        "plain": ts.survival(time, event),
        "strata": ts.survival(time, event, strata=sex),
        "entry": ts.survival(time, event, entry=entry),
    }
    numbers = {line.split()[0]: [float(word) for word in line.split()[1:]] for line in run.stdout.splitlines()}
    assert len(numbers) == 7
    for ties in ("efron", "breslow"):
        for kind, y in labels.items():
            found = ts.refit(ts.MultiTaskCox(alpha=1e-4, ties=ties).fit(x, y), x, y)
            assert found.coef_[0] == pytest.approx(numbers[f"{ties}-{kind}"], abs=1e-8)
    top = ts.MultiTaskCox(ties="breslow").alpha_max(x, labels["plain"])
    assert top == pytest.approx(numbers["lambda_max"][0], rel=1e-14)


@pytest.mark.parametrize("ties", ["efron", "breslow"])
@pytest.mark.parametrize("kind", ["plain", "strata", "entry"])
def test_unpenalised_fit_is_that_of_coxph(ties: str, kind: str) -> None:
    more: dict[str, Any] = {}
    y = Y
    if kind != "plain":
        y = ts.survival(C["time"], C["event"], C["entry"] if kind == "entry" else None, C["stratum"])
        more = {"sample_weight": C["weight"], "offset": C["offset"]}
    model = ts.MultiTaskCox(alpha=1e-3, ties=ties).fit(X, y, **more)
    found = ts.refit(model, X, y, **more)
    *coef, likelihood = NUMBERS[f"{ties}-{kind}"]
    assert found.coef_[0] == pytest.approx(coef, abs=1e-8)
    assert not found.intercept_.any()
    labels, weights = encode(y)[0], more.get("sample_weight", np.ones(40))
    own = PartialLikelihood(labels, weights, ties)
    value = own.deviance((X @ found.coef_[0] + more.get("offset", 0.0))[:, None])[0] / 2.0
    constant = ts.losses.Cox(ties).on(*_on_data(labels, weights)).constant
    # survival::coxph has weights in its logarithms as we do
    assert -(value + constant) == pytest.approx(likelihood, rel=1e-9)
    free = ts.MultiTaskCox(alpha=1.0, ties=ties, feature_weights=np.zeros(3), tol=1e-10).fit(X, y, **more)
    assert free.coef_[0] == pytest.approx(coef, abs=1e-7)


def _on_data(labels: np.ndarray, weights: np.ndarray) -> tuple[Any, np.ndarray]:
    from tasksieve.design import DenseStorage, Design

    storage = DenseStorage(np.asfortranarray(X))
    return Design(storage, np.array([0, len(labels)]), weights=weights, fit_intercept=True), labels


def test_baseline_and_survival_are_those_of_r() -> None:
    model = ts.refit(ts.MultiTaskCox(alpha=1e-3).fit(X, Y), X, Y)
    curves = model.predict_survival_function([[0.5, -1.0, 0.25]], times=[1.0, 3.0, 6.0])
    assert curves[0] == pytest.approx(NUMBERS["survfit"], abs=1e-8)
    y = ts.survival(C["time"], C["event"], strata=C["stratum"])
    stratified = ts.refit(ts.MultiTaskCox(alpha=1e-3).fit(X, y), X, y)
    assert stratified.baseline_hazard_(0, 0)([1.0, 3.0, 6.0]) == pytest.approx(NUMBERS["basehaz"], rel=1e-7)


def test_concordance_is_that_of_r() -> None:
    model = ts.MultiTaskCox(alpha=0.2).fit(X, Y)
    model.coef_ = np.array([[1.0, 0.0, 0.0]])
    stratified = ts.survival(C["time"], C["event"], strata=C["stratum"])
    entered = ts.survival(C["time"], C["event"], C["entry"])
    scores = [model.score(X, Y), model.score(X, stratified, sample_weight=C["weight"]), model.score(X, entered)]
    assert scores == pytest.approx(NUMBERS["concordance"], abs=1e-14)


def test_path_and_cross_validation_are_those_of_glmnet() -> None:
    top = NUMBERS["lambda_max"][0]
    assert ts.MultiTaskCox(ties="breslow").alpha_max(X, Y) == pytest.approx(top, rel=1e-14)
    alphas = top * np.array([1.0, 0.5, 0.1])
    path = ts.MultiTaskCox(ties="breslow", tol=1e-12).path(X, Y, alphas=alphas)
    coef = np.concatenate([path.coef(k).toarray()[0] for k in (1, 2)])
    assert coef == pytest.approx(NUMBERS["glmnet"], abs=1e-6)
    folds = [(np.flatnonzero(C["fold"] != f), np.flatnonzero(C["fold"] == f)) for f in range(4)]
    model = ts.MultiTaskCoxCV(alphas, ties="breslow", cv=folds, tol=1e-10, fold_tol=1e-11).fit(X, Y)
    assert model.cv_scores_.mean(axis=1) == pytest.approx(NUMBERS["cvm"], abs=2e-6)
    assert model.cv_quality_.values[0, 2] == pytest.approx(NUMBERS["cvm"][2], abs=1e-6)


# --- against scikit-survival ------------------------------------------------------------------------------------------


def test_scikit_survival_on_its_data() -> None:
    datasets = pytest.importorskip("sksurv.datasets", reason="scikit-survival is not installed")
    linear = pytest.importorskip("sksurv.linear_model")
    frame, y = datasets.load_whas500()
    x = np.ascontiguousarray(frame.to_numpy(dtype=float))
    x = (x - x.mean(axis=0)) / x.std(axis=0)
    model = ts.MultiTaskCox(alpha=1e-3).fit(x, y)
    ours = ts.refit(model, x, y)
    chosen = ours.get_support()
    theirs = linear.CoxPHSurvivalAnalysis(ties="efron", tol=1e-14).fit(x[:, chosen], y)
    assert ours.coef_[0, chosen] == pytest.approx(theirs.coef_, abs=1e-8)
    assert ours.score(x, y) == pytest.approx(theirs.score(x[:, chosen], y), abs=1e-12)
    times = np.quantile(y["lenfol"], [0.2, 0.5, 0.8])
    # with Efron's ties its baseline has Breslow's increments all the same, which R's has not
    theirs = linear.CoxPHSurvivalAnalysis(ties="breslow", tol=1e-14).fit(x[:, chosen], y)
    ours = ts.refit(model.set_params(ties="breslow"), x, y)
    curves = np.array([f(times) for f in theirs.predict_survival_function(x[:3, chosen])])
    assert ours.predict_survival_function(x[:3], times=times) == pytest.approx(curves, abs=1e-8)
    sparse = linear.CoxnetSurvivalAnalysis(l1_ratio=0.7, alphas=[0.05], tol=1e-14, max_iter=1_000_000).fit(x, y)
    net = ts.MultiTaskCox(0.05 * 0.7, ties="breslow", ridge=0.05 * 0.3, tol=1e-11).fit(x, y)
    assert net.coef_[0] == pytest.approx(sparse.coef_[:, 0], abs=1e-5)


# --- forms, curves, refusals ------------------------------------------------------------------------------------------


def test_every_form_of_the_data_gives_the_same_model() -> None:
    x, y, task = cohorts()
    stacked = ts.MultiTaskCox(alpha=0.05, tol=1e-9).fit(x, y, task=task)
    parts = [task == t for t in range(3)]
    listed = ts.MultiTaskCox(alpha=0.05, tol=1e-9).fit([x[own] for own in parts], [y[own] for own in parts])
    named = ts.MultiTaskCox(alpha=0.05, tol=1e-9).fit(
        {f"t{t}": (x[own], (y["time"][own], y["event"][own])) for t, own in enumerate(parts)}
    )
    assert listed.coef_ == pytest.approx(stacked.coef_, abs=1e-8)
    assert named.coef_ == pytest.approx(stacked.coef_, abs=1e-8)
    assert stacked.get_support(indices=True)[:2].tolist() == [0, 1]
    other = ts.survival(y["time"], ~y["event"])
    shared = ts.MultiTaskCox(alpha=0.05, tol=1e-9).fit(x, {"relapse": other, "death": y})
    rows = ts.MultiTaskCox(alpha=0.05, tol=1e-9).fit(
        np.vstack([x, x]), np.concatenate([y, other]), task=np.repeat(["death", "relapse"], len(x))
    )
    assert shared.tasks_.tolist() == ["death", "relapse"]
    assert shared.coef_ == pytest.approx(rows.coef_, abs=1e-7)
    assert shared.predict(x).shape == (len(x), 2)
    assert shared.score(x, {"relapse": other, "death": y}) == pytest.approx(
        rows.score(np.vstack([x, x]), np.concatenate([y, other]), task=np.repeat(["death", "relapse"], len(x)))
    )


def test_curves() -> None:
    x, y, task = cohorts()
    strata = np.where(x[:, 5] > 0, "m", "f")
    y = ts.survival(y["time"], y["event"], strata=strata)
    model = ts.MultiTaskCox(alpha=0.05).fit(x, y, task=task)
    times = np.array([0.0, 0.1, 0.5, 1e6])
    at = model.predict_survival_function(x[:7], task=task[:7], times=times, strata=strata[:7])
    assert at.shape == (7, 4)
    assert np.all(at[:, 0] == 1.0)  # nobody dies at 0
    assert np.isnan(at[:, 3]).all()  # beyond all observations
    assert np.all(np.diff(at[:, :3], axis=1) <= 0.0)
    functions = model.predict_survival_function(x[:7], task=task[:7], strata=strata[:7])
    assert np.array([f(times[:3]) for f in functions]) == pytest.approx(at[:, :3], rel=1e-13)
    hazard = model.predict_cumulative_hazard_function(x[:7], task=task[:7], times=times[:3], strata=strata[:7])
    assert np.exp(-hazard) == pytest.approx(at[:, :3], rel=1e-13)
    everywhere = model.predict_survival_function(x[:7], times=times[:3], strata=strata[:7])
    assert everywhere[np.arange(7), task[:7]] == pytest.approx(at[:, :3])
    rows, of_rows = ({t: own[task == t] for t in range(3)} for own in (x, strata))
    parts = model.predict_survival_function(rows, times=times, strata=of_rows)
    assert parts[int(task[0])][0] == pytest.approx(at[0], nan_ok=True)
    frame = model.baseline_hazard_.to_frame()
    assert len(frame) == np.sum(y["event"])
    with pytest.raises(ValueError, match="fitted with strata"):
        model.predict_survival_function(x, task=task)
    with pytest.raises(ValueError, match=r"stratum 'x' in row 1 .*is unknown"):
        model.predict_survival_function(x[:1], task=task[:1], strata=["x"])
    with pytest.raises(ValueError, match="fitted without strata"):
        ts.MultiTaskCox(alpha=0.1).fit(X, Y).predict_survival_function(X, strata=C["stratum"])
    with pytest.raises(NotFittedError):
        ts.MultiTaskCox().predict_survival_function(X)
    path = ts.MultiTaskCox().path(X, Y, n_alphas=3)
    with pytest.raises(AttributeError, match="no baseline hazard"):
        path.model(1).predict_survival_function(X)


def test_large_offsets_in_features_change_nothing() -> None:
    shifted = X + np.array([1000.0, 0.0, -2000.0])
    plain, far = (ts.MultiTaskCox(alpha=0.05, tol=1e-9).fit(own, Y) for own in (X, shifted))
    assert far.coef_ == pytest.approx(plain.coef_, abs=1e-7)
    curves = [model.predict_survival_function(own, times=[1.0, 3.0]) for model, own in ((plain, X), (far, shifted))]
    assert curves[1] == pytest.approx(curves[0], abs=1e-7)


def test_refused_parameters_and_labels() -> None:
    with pytest.raises(ValueError, match="ties"):
        ts.MultiTaskCox(ties="exact").fit(X, Y)
    with pytest.raises(ValueError, match="use MultiTaskCox"):
        ts.MultiTaskRegressor(loss=ts.losses.Cox()).fit(X, C["time"])
    with pytest.raises(ValueError, match="pass event == 2"):
        ts.MultiTaskCox().fit(X, np.column_stack([C["time"], C["event"] + 1]))
    with pytest.raises(ValueError, match="event"):
        ts.MultiTaskCox().fit(X, (C["time"], np.zeros(40)))
    with pytest.raises(TypeError, match="fit_intercept"):
        ts.MultiTaskCox(fit_intercept=False)  # type: ignore[call-arg]


def test_clone_pickle_and_scikit_learn() -> None:
    x, y, _ = cohorts()
    model = ts.MultiTaskCox(alpha=0.05, ties="breslow", penalty="l11")
    assert clone(model).get_params() == model.get_params()
    fitted = pickle.loads(pickle.dumps(model.fit(x, y)))
    assert np.array_equal(fitted.predict(x), model.predict(x))
    assert fitted.baseline_hazard_(0)(0.3) == model.baseline_hazard_(0)(0.3)
    scores = cross_validate(model, x, y, cv=KFold(3))["test_score"]
    assert np.all(scores > 0.6)
    search = GridSearchCV(ts.MultiTaskCox(), {"alpha": [0.02, 0.1, 0.5]}, cv=3).fit(x, y)
    assert search.best_score_ > 0.7


def test_warm_start_and_weights() -> None:
    x, y, task = cohorts()
    model = ts.MultiTaskCox(alpha=0.05, warm_start=True).fit(x, y, task=task)
    again = model.fit(x, y, task=task)
    assert again.n_iter_ <= 2
    weights = (np.arange(len(y)) % 5 > 0).astype(float)
    kept = weights > 0
    left, cut = (ts.MultiTaskCox(alpha=0.05, tol=1e-9) for _ in range(2))
    left.fit(x, y, task=task, sample_weight=weights)
    cut.fit(x[kept], y[kept], task=task[kept])
    assert left.coef_ == pytest.approx(cut.coef_, abs=1e-8)
    # Breslow: a row of weight two is two rows
    double = ts.MultiTaskCox(alpha=0.05, ties="breslow", tol=1e-9)
    coef = double.fit(x, y, sample_weight=np.full(len(y), 2.0)).coef_
    twice = clone(double).fit(np.vstack([x, x]), np.concatenate([y, y]))
    assert coef == pytest.approx(twice.coef_, abs=1e-7)


def test_objective_is_what_the_docstring_says() -> None:
    x, y, task = cohorts(n=90)
    s, v = np.random.default_rng(5).uniform(0.5, 2.0, 90), np.array([1.0, 2.0, 0.5])
    options: dict[str, Any] = {"alpha": 0.05, "ridge": 0.1, "task_graph": "chain", "graph_strength": 0.3}
    model = ts.MultiTaskCox(**options, task_weights=v).fit(x, y, task=task, sample_weight=s)
    total, W = 0.0, model.coef_
    for t in range(3):
        own, events = task == t, (task == t) & y["event"]
        z = x @ W[t]
        at_risk = own & (y["time"] >= y["time"][events][:, None])
        logs = np.log(np.sum(np.where(at_risk, s * np.exp(z), 0.0), axis=1))
        total += v[t] * (s[events] @ (logs - z[events]) + np.log(v[t]) * s[events].sum())
    total = total / (s.sum() / 3.0) + 0.05 * np.linalg.norm(W, axis=0).sum() + 0.05 * np.sum(W**2)
    total += 0.15 * (np.sum((W[0] - W[1]) ** 2) + np.sum((W[1] - W[2]) ** 2))
    assert model.objective_ == pytest.approx(total, rel=1e-12)
    tight = ts.MultiTaskCox(**options, task_weights=v, tol=1e-10).fit(x, y, task=task, sample_weight=s)
    assert model.objective_ - tight.objective_ <= model.dual_gap_
    found = model.certificate(x, y, task=task, sample_weight=s)
    assert found.objectives[0] == pytest.approx(model.objective_, rel=1e-10)
    graded = ts.grade(W, None, x, y, task=task, sample_weight=s, loss="cox", task_weights=v, **options)
    assert 0.0 <= graded.excess <= graded.dual_gap
    assert graded.dual_gap <= model.dual_gap_ * (1.0 + 1e-6)


# --- held-out rows ----------------------------------------------------------------------------------------------------


def test_cross_validation_by_its_definition() -> None:
    x, y, task = cohorts()
    alphas = [0.2, 0.05]
    model = ts.MultiTaskCoxCV(alphas, cv=3, tol=1e-8, fold_tol=1e-8).fit(x, y, task=task)
    assert model.cv_folds_ == "3 folds, shuffled within tasks, stratified by event, seed 0"
    folds = [np.flatnonzero(held) for held in _folds(model, x, y, task, 3)]
    labels = encode(y)[0]
    total, events = np.zeros((2, 3)), np.zeros(3)
    for held in folds:
        train = np.setdiff1d(np.arange(len(y)), held)
        events += np.bincount(task[held], weights=y["event"][held], minlength=3)
        for k, alpha in enumerate(alphas):
            own = ts.MultiTaskCox(alpha, tol=1e-8).fit(x[train], y[train], task=task[train])
            z = own.predict(x, task=task)
            for t in range(3):
                here, seen = task == t, (task == t) & np.isin(np.arange(len(y)), train)
                whole = PartialLikelihood(labels, here.astype(float)).deviance(z[:, None])[0]
                total[k, t] += whole - PartialLikelihood(labels, seen.astype(float)).deviance(z[:, None])[0]
    assert model.cv_scores_.mean(axis=1) == pytest.approx((total / events).mean(axis=1), rel=1e-5)


def _folds(model: Any, x: np.ndarray, y: np.ndarray, task: np.ndarray, n_folds: int) -> list[np.ndarray]:
    from tasksieve.fitted.folds import make_folds
    from tasksieve.tasks import read_labels

    labels = read_labels(len(x), y, task, targets="survival")
    return [labels.unflatten(test) > 0 for _, test in make_folds(n_folds, y, labels).weights]


def test_folds_are_balanced_by_event() -> None:
    x, y, task = cohorts()
    counts = np.array([np.bincount(task[held] * 2 + y["event"][held]) for held in _folds(None, x, y, task, 5)])
    assert np.all(counts.max(axis=0) - counts.min(axis=0) <= 1)


def test_standard_errors_are_those_of_first_order_changes() -> None:
    """What a row contributes is the derivative of the measure in the logarithm of its weight."""
    x, y, task = cohorts(n=60)
    model = ts.MultiTaskCox(alpha=0.05).fit(x, y, task=task)
    more, labels, tasks = cohorts(seed=1, n=45)
    whole = quality_on(model, more, labels, task=tasks)
    assert whole.measures == ("concordance", "D²", "partial-likelihood deviance")
    squares, step = np.zeros((3, 3)), 1e-5
    for i in range(45):
        values = []
        for change in (step, -step):
            weights = np.ones(45)
            weights[i] = np.exp(change)
            values.append(quality_on(model, more, labels, task=tasks, sample_weight=weights).values)
        squares += np.square((values[0] - values[1]) / (2.0 * step))
    n = np.bincount(tasks)[:, None]
    assert whole.errors == pytest.approx(np.sqrt(squares * n / (n - 1)), rel=1e-6)


def test_quality_out_of_fold() -> None:
    x, y, task = cohorts()
    model = ts.MultiTaskCoxCV(n_alphas=8, eps=0.05, cv=3).fit(x, y, task=task)
    quality = model.cv_quality_
    assert quality.measures == ("concordance", "D²", "partial-likelihood deviance")
    assert np.all(quality.values[:, 0] > 0.65)
    assert quality.null_values is not None
    assert np.all(quality.null_values[:, 0] == 0.5)
    assert np.all(quality.null_values[:, 1] == 0.0)
    assert np.all(quality.errors > 0.0)
    assert "baseline hazards only" in repr(quality)
    predicted = model.cv_predictions_
    assert predicted.shape == y.shape
    assert np.isfinite(predicted).all()
    by_concordance = ts.MultiTaskCoxCV(n_alphas=8, eps=0.05, cv=3, scoring="concordance").fit(x, y, task=task)
    assert np.nanmax(by_concordance.cv_scores_) <= 1.0
    assert by_concordance.cv_scores_.mean(axis=1).max() > 0.65

    def own(estimator: Any, X: Any, y: np.ndarray) -> float:
        return -float(np.mean(estimator.predict(X) * np.log(y["time"])))

    assert np.isfinite(ts.MultiTaskCoxCV([0.1, 0.05], cv=3, scoring=own).fit(x, y, task=task).cv_scores_).all()
    stratified = ts.MultiTaskCoxCV([0.1], cv=StratifiedKFold(3)).fit(x, y)
    assert np.isfinite(stratified.cv_scores_).all()


def test_partial_likelihood_of_held_out_rows_alone_needs_events() -> None:
    x, y, _ = cohorts(n=60)
    grouped = ts.MultiTaskCoxCV([0.1, 0.05], cv=3, scoring="partial_likelihood").fit(x, y)
    assert np.all(grouped.cv_scores_ < 0.0)
    alive = np.flatnonzero(~y["event"])[:5]
    folds = [(np.setdiff1d(np.arange(60), alive), alive)]
    with pytest.raises(ValueError, match="no fold holds out an event"):
        ts.MultiTaskCoxCV([0.1], cv=folds).fit(x, y)
    rest = np.arange(30)[y["event"][:30]]
    folds.append((np.setdiff1d(np.arange(60), rest), rest))
    with pytest.raises(ValueError, match="have no event: use fewer folds"):
        ts.MultiTaskCoxCV([0.1], cv=folds, scoring="partial_likelihood").fit(x, y)
    assert np.isfinite(ts.MultiTaskCoxCV([0.1], cv=folds).fit(x, y).cv_scores_).all()


# --- findings ---------------------------------------------------------------------------------------------------------


def test_findings() -> None:
    x, y, task = cohorts()
    test = ts.permutation_test(ts.MultiTaskCox(), x, y, task=task, n_permutations=99)
    assert test.pvalue == 0.01
    noise = np.random.default_rng(3).permutation(len(y))
    assert ts.permutation_test(ts.MultiTaskCox(), x, y[noise], task=np.zeros(len(y)), n_permutations=99).pvalue > 0.02
    stable = ts.StabilitySelection(ts.MultiTaskCox(), n_pairs=10, q=3, threshold=0.8).fit(x, y, task=task)
    assert set(stable.get_support(indices=True)) >= {0, 1}
    fitted = ts.MultiTaskCox(alpha=0.1).fit(x, y, task=task)
    again = ts.refit(fitted, x, y, task=task)
    assert np.abs(again.coef_[:, 0]).mean() > np.abs(fitted.coef_[:, 0]).mean()
    assert again.predict_survival_function(x, task=task, times=[0.1]).shape == (len(y), 1)
    with pytest.raises(ValueError, match="not of the partial-likelihood deviance"):
        ts.split_inference(ts.MultiTaskCox(alpha=0.1), x, y, task=task)


def test_compare() -> None:
    x, y, task = cohorts(n=105, d=4)
    columns = np.column_stack([y["time"], y["event"]])
    found = ts.compare(ts.MultiTaskCoxCV([0.2, 0.05], cv=2), x, columns, task=task, cv=3)
    assert found.loss == "partial-likelihood deviance"
    assert found.quality["shared"].measures[0] == "concordance"
    assert np.all(found.quality["mean"].values[:, 0] == 0.5)
    assert found.quality["shared"].overall[0] > 0.6
    apart = found.quality["shared"].values[:, 2] - found.quality["own"].values[:, 2]
    assert found.differences["own"].values == pytest.approx(apart)
    assert "baseline hazard" in found.summary()
    few = ts.survival(y["time"], y["event"] & ((task != 1) | (np.cumsum((task == 1) & y["event"]) < 4)))
    with pytest.raises(ValueError, match=r"Task 1 has 3 event"):
        ts.compare(ts.MultiTaskCoxCV(), x, few, task=task, cv=3)


def test_permutations_stay_within_strata() -> None:
    """alpha_max of permuted labels, computed anew."""
    y = ts.survival(C["time"], C["event"], C["entry"], C["stratum"])
    model = ts.MultiTaskCox()
    test = ts.permutation_test(model, X, y, sample_weight=C["weight"], n_permutations=20)
    from tasksieve.findings.permutation import _permutations

    data = model._read_with(X, y, None, C["weight"], None)
    for k, source in enumerate(_permutations(data, None, 0)(20)):
        assert np.array_equal(C["stratum"][source], C["stratum"])
        again = model.alpha_max(X, y[source], sample_weight=C["weight"][source])
        assert test.null[k] == pytest.approx(again, rel=1e-10)
    with pytest.raises(ValueError, match="groups cannot be permuted within strata"):
        ts.permutation_test(model, X, y, groups=np.arange(40) // 2, n_permutations=5)


def test_separated_rows_have_no_unpenalised_fit() -> None:
    time = np.arange(1.0, 9.0)
    x = np.column_stack([-time, np.cos(time)])
    model = ts.MultiTaskCox(alpha=0.05).fit(x, (time, np.ones(8)))
    with pytest.raises(ValueError, match="ever larger coefficients"):
        ts.refit(model, x, (time, np.ones(8)))


def test_a_task_without_events_leaves_the_loss() -> None:
    x, y, task = cohorts(n=90)
    y = ts.survival(y["time"], y["event"] & (task != 1))
    with pytest.warns(UserWarning, match="no events"):
        model = ts.MultiTaskCox(alpha=0.05).fit(x, y, task=task)
    assert not model.coef_[1].any()
    assert model.coef_[0].any()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert np.isfinite(model.score(x, y, task=task))
        curve = model.predict_survival_function(x[task == 1][:1], task=np.array([1]), times=[0.01])
    assert curve[0, 0] == 1.0


# --- kept on disk -----------------------------------------------------------------------------------------------------


def test_saved_models_keep_their_baseline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tasksieve.runs import RunError, RunFolder, SavedModel, load_model, save_model
    from tasksieve.runs.registry import MODELS, ModelKind
    from tasksieve.tables import Encoding, read_arrays, write_arrays

    monkeypatch.setitem(MODELS, "cox", ModelKind("cox", ("MultiTaskCox",), "times to an event"))
    x, y, task = cohorts(n=90, d=3)
    strata = np.where(x[:, 2] > 0, "m", "f")
    y = ts.survival(y["time"], y["event"], strata=strata)
    model = ts.MultiTaskCox(alpha=0.05, ties="breslow").fit(x, y, task=task)
    run = RunFolder(tmp_path)
    save_model(run, SavedModel(model, "cox", Encoding([(word, None) for word in "abc"]), None, ["y"], "site", {}))
    again = load_model(run).estimator
    assert again.ties == "breslow"
    curves = [own.predict_survival_function(x, task=task, times=[0.1, 0.4], strata=strata) for own in (model, again)]
    assert np.array_equal(*curves, equal_nan=True)
    arrays = dict(read_arrays(tmp_path / "model.npz"))
    arrays["baseline_task"] = arrays["baseline_task"] + 7
    write_arrays(tmp_path / "model.npz", arrays)
    with pytest.raises(RunError, match="tasks and strata of the baseline hazard"):
        load_model(run)


def test_checkpoints_and_problem_files(tmp_path: Path) -> None:
    x, y, task = cohorts(n=60, d=4)
    model = ts.MultiTaskCoxCV([0.2, 0.05], cv=3)
    with ts.checkpoint(tmp_path / "folds"):
        first = clone(model).fit(x, y, task=task)
    assert len(list((tmp_path / "folds").iterdir())) == 3
    with ts.checkpoint(tmp_path / "folds"):
        second = clone(model).fit(x, y, task=task)
        other = clone(model).fit(x, ts.survival(y["time"], ~y["event"]), task=task)
    assert np.array_equal(first.cv_scores_, second.cv_scores_)
    assert not np.array_equal(first.cv_scores_, other.cv_scores_)
    ts.save_problem(tmp_path / "problem.npz", ts.MultiTaskCox(alpha=0.1), x, y, task=task)
    found = ts.load_problem(tmp_path / "problem.npz")
    assert np.array_equal(found.fit().coef_, ts.MultiTaskCox(alpha=0.1).fit(x, y, task=task).coef_)
