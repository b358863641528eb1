"""Gamma, Tweedie, negative binomial, log-cosh and expectile regression: against other programs, scores, refusals."""

from __future__ import annotations

import shutil
import subprocess
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import GammaRegressor, TweedieRegressor
from sklearn.metrics import d2_tweedie_score, mean_gamma_deviance, mean_tweedie_deviance

import tasksieve as ts
from tasksieve.losses import Expectile, Gamma, LogCosh, NegativeBinomial, Tweedie

Array = np.ndarray[Any, Any]
TASK = np.repeat(["a", "b", "c"], [50, 40, 45])
LOSSES: dict[str, Any] = {
    "gamma": Gamma(),
    "tweedie": Tweedie(1.6),
    "negative_binomial": NegativeBinomial(1.3),
    "expectile": Expectile(0.8),
    "log_cosh": LogCosh(),
}
LINKED = ("gamma", "tweedie", "negative_binomial")


def labels_of(name: str, z: Array, rng: np.random.Generator) -> Array:
    if name == "gamma":
        return rng.gamma(2.0, np.exp(z) / 2.0)
    if name == "tweedie":
        return rng.gamma(2.0, 1.0, len(z)) * rng.poisson(np.exp(z))
    if name == "negative_binomial":
        return rng.negative_binomial(1.3, 1.3 / (1.3 + np.exp(z))).astype(float)
    return z + 0.5 * rng.standard_t(3, len(z))


def data(name: str, seed: int = 0) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((len(TASK), 8))
    return x, labels_of(name, 0.7 * x[:, 0] - 0.5 * x[:, 1] + 0.3, rng)


def model_of(name: str, **options: Any) -> Any:
    return ts.MultiTaskRegressor(LOSSES[name], **options)


class TestOtherPrograms:
    @pytest.mark.parametrize("name", LINKED)
    @pytest.mark.parametrize("plain", [True, False])
    def test_glm_without_a_penalty(self, name: str, plain: bool) -> None:
        """statsmodels' GLM of each task, with weights and exposure; our features are never penalised but for one of
        noise, which a strong penalty leaves out."""
        sm = pytest.importorskip("statsmodels.api", reason="statsmodels")
        families = {
            "gamma": sm.families.Gamma(sm.families.links.Log()),
            "tweedie": sm.families.Tweedie(sm.families.links.Log(), var_power=1.6),
            "negative_binomial": sm.families.NegativeBinomial(sm.families.links.Log(), alpha=1.0 / 1.3),
        }
        x, y = data(name)
        rng = np.random.default_rng(1)
        s, exposure = rng.uniform(0.5, 2.0, len(y)), rng.uniform(0.5, 2.0, len(y))
        rows = {} if plain else {"sample_weight": s, "offset": np.log(exposure)}
        model = model_of(name, alpha=1e3, feature_weights=np.append(np.zeros(7), 1.0), tol=1e-12)
        model.fit(x, y, task=TASK, **rows)
        assert not model.coef_[:, 7].any()
        for t, label in enumerate("abc"):
            own = label == TASK
            more = {} if plain else {"freq_weights": s[own], "offset": np.log(exposure[own])}
            glm = sm.GLM(y[own], sm.add_constant(x[own, :7]), families[name], **more).fit(tol=1e-14, maxiter=200)
            np.testing.assert_allclose(np.append(model.intercept_[t], model.coef_[t, :7]), glm.params, atol=1e-8)

    @pytest.mark.parametrize(
        ("family", "name", "loss"),
        [
            ('Gamma("log")', "gamma", "gamma"),
            ("MASS::negative.binomial(1.3)", "negative_binomial", "negative_binomial:size=1.3"),
            ("statmod::tweedie(var.power = 1.6, link.power = 0)", "tweedie", "tweedie:power=1.6"),
        ],
    )
    def test_glm_of_r(self, family: str, name: str, loss: str, tmp_path: Path) -> None:
        x, y = data(name)
        package, _, _ = family.partition("::")
        lines = [
            f'if (!requireNamespace("{package if "::" in family else "stats"}", quietly = TRUE)) quit(status = 3)',
            f'd <- read.csv("{tmp_path / "d.csv"}")',
            f"m <- glm(y ~ x1 + x2 + x3, family = {family}, data = d,",
            "         control = glm.control(epsilon = 1e-15, maxit = 200))",
            "cat(format(coef(m), digits = 17))",
        ]
        rscript = shutil.which("Rscript")
        if rscript is None:
            pytest.skip("R is not installed")
        np.savetxt(tmp_path / "d.csv", np.column_stack([y, x[:, :3]]), "%.17g", ",", header="y,x1,x2,x3", comments="")
        command = [rscript, "-e", "\n".join(lines)]
        found = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
        if found.returncode == 3:
            pytest.skip(f"R's package {package} is not installed")
        model = ts.MultiTaskRegressor(loss, alpha=1e3, feature_weights=[0.0, 0.0, 0.0, 1.0], tol=1e-12).fit(x[:, :4], y)
        theirs = np.array(found.stdout.split(), dtype=float)
        np.testing.assert_allclose(np.append(model.intercept_, model.coef_[0, :3]), theirs, atol=1e-8)

    @pytest.mark.parametrize("power", [1.6, 2.0])
    def test_ridge_of_scikit_learn(self, power: float) -> None:
        x, y = data("tweedie" if power < 2.0 else "gamma")
        own, s = TASK == "a", np.random.default_rng(2).uniform(0.5, 2.0, 50)
        options = {"alpha": 0.3, "solver": "newton-cholesky", "tol": 1e-12, "max_iter": 1000}
        theirs = GammaRegressor(**options) if power == 2.0 else TweedieRegressor(power=power, link="log", **options)
        theirs.fit(x[own], y[own], sample_weight=s)
        name = "gamma" if power == 2.0 else "tweedie"
        ours = model_of(name, alpha=1e-13, ridge=0.3, tol=1e-13)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # so small a gap is beyond double precision
            ours.fit(x[own], y[own], sample_weight=s)
        np.testing.assert_allclose(ours.coef_[0], theirs.coef_, atol=1e-8)
        np.testing.assert_allclose(ours.intercept_[0], theirs.intercept_, atol=1e-8)

    def test_half_an_expectile_is_the_lasso(self) -> None:
        x, y = data("expectile")
        half = ts.MultiTaskRegressor("expectile", alpha=0.05, tol=1e-11).fit(x, y, task=TASK)
        lasso = ts.MultiTaskLasso(0.1, tol=1e-11).fit(x, y, task=TASK)
        np.testing.assert_allclose(half.coef_, lasso.coef_, atol=1e-5)
        assert 2.0 * half.objective_ == pytest.approx(lasso.objective_, rel=1e-10)

    def test_expectiles_and_their_derivative(self) -> None:
        """Without features the intercept is the expectile: mean excess above, times the odds of the level, below."""
        x, y = data("expectile")
        for level in (0.05, 0.5, 0.97):
            model = ts.MultiTaskRegressor(Expectile(level), alpha=1e3).fit(x, y, task=TASK)
            for b, label in zip(model.intercept_, "abc", strict=True):
                r = y[label == TASK] - b
                above, below = level * np.maximum(r, 0.0).sum(), (1.0 - level) * np.maximum(-r, 0.0).sum()
                assert above == pytest.approx(below, rel=1e-12)

    def test_log_cosh_far_out_is_the_absolute_error_and_near_the_square(self) -> None:
        x, y = data("log_cosh")
        near = ts.MultiTaskRegressor("log_cosh", alpha=1e-7, tol=1e-9).fit(x, 1e-6 * y, task=TASK)
        lasso = ts.MultiTaskLasso(1e-7, tol=1e-9).fit(x, 1e-6 * y, task=TASK)
        np.testing.assert_allclose(near.coef_, lasso.coef_, atol=1e-9)
        assert near.dual_gap_ <= 1e-9 * near.null_objective_  # small units cost no digits
        far = ts.MultiTaskRegressor("log_cosh", alpha=10.0).fit(x, 1e4 * y, task=TASK)
        medians = [np.median(y[label == TASK]) for label in "abc"]
        absolute = sum(np.abs(y[t == TASK] - m).sum() for t, m in zip("abc", medians, strict=True)) * 1e4 / 45.0
        assert far.null_objective_ == pytest.approx(absolute, rel=1e-3)


class TestScores:
    def test_explained_deviance(self) -> None:
        for name, power in (("gamma", 2.0), ("tweedie", 1.6)):
            x, y = data(name)
            model = model_of(name, alpha=0.05).fit(x, y, task=TASK)
            means = model.predict(x, task=TASK)
            assert np.all(means > 0.0)
            expected = [d2_tweedie_score(y[t == TASK], means[t == TASK], power=power) for t in "abc"]
            assert model.score(x, y, task=TASK) == pytest.approx(np.mean(expected), rel=1e-12)

    def test_explained_squares_of_an_expectile(self) -> None:
        x, y = data("expectile")
        model = model_of("expectile", alpha=0.05).fit(x, y, task=TASK)
        found = y - model.predict(x, task=TASK)
        null = y - np.repeat(model_of("expectile", alpha=1e3).fit(x, y, task=TASK).intercept_, [50, 40, 45])

        def loss(r: Array) -> float:
            return float(np.sum(np.where(r > 0.0, 0.8, 0.2) * r * r))

        expected = [1.0 - loss(found[t == TASK]) / loss(null[t == TASK]) for t in "abc"]
        assert model.score(x, y, task=TASK) == pytest.approx(np.mean(expected), rel=1e-10)
        empty = model_of("expectile", alpha=1e3).fit(x, y, task=TASK)
        assert empty.score(x, y, task=TASK) == pytest.approx(0.0, abs=1e-12)

    def test_held_out_deviances(self) -> None:
        train = np.arange(len(TASK)) % 3 > 0
        folds = [(np.flatnonzero(train), np.flatnonzero(~train))]
        for name, score, words in (
            ("gamma", mean_gamma_deviance, "gamma deviance"),
            ("tweedie", lambda a, b: mean_tweedie_deviance(a, b, power=1.6), "Tweedie deviance"),
        ):
            x, y = data(name)
            chosen = ts.MultiTaskRegressorCV(LOSSES[name], alphas=[0.2, 0.05], cv=folds, fold_tol=1e-8)
            chosen.fit(x, y, task=TASK)
            for k, alpha in enumerate(chosen.alphas_):
                single = model_of(name, alpha=alpha, tol=1e-8).fit(x[train], y[train], task=TASK[train])
                found = single.predict(x, task=TASK)
                expected = np.mean([score(y[(t == TASK) & ~train], found[(t == TASK) & ~train]) for t in "abc"])
                assert chosen.cv_scores_[k, 0] == pytest.approx(expected, rel=1e-3)
            assert chosen.cv_measure == f"held-out {words}"


class TestLabels:
    def test_zeros_are_refused_by_row_and_task(self) -> None:
        x, y = data("gamma")
        y[60] = 0.0
        words = r"labels of the gamma loss must be positive; row 61 .*of task 'b' is 0\..*'tweedie', which allows 0"
        for model in (ts.MultiTaskRegressor("gamma"), ts.MultiTaskRegressorCV("gamma", n_alphas=3)):
            with pytest.raises(ValueError, match=words):
                model.fit(x, y, task=TASK)
        model = ts.MultiTaskRegressor("tweedie", alpha=0.1).fit(x, y, task=TASK)
        y[60] = np.nan
        fitted = ts.MultiTaskRegressor("gamma", alpha=0.1).fit(x, y, task=TASK)
        assert np.isfinite(fitted.score(x, y, task=TASK))
        y[60] = -1.0
        for given in (model, fitted):
            with pytest.raises(ValueError, match=r"row 61 .*of task 'b' is -1"):
                given.score(x, y, task=TASK)
        for name in ("tweedie", "negative_binomial"):
            with pytest.raises(ValueError, match=r"counts must not be negative; row 61 .*of task 'b' is -1"):
                ts.MultiTaskRegressor(name).fit(x, y, task=TASK)

    @pytest.mark.parametrize("loss", [Tweedie(1.2), Tweedie(1.9), NegativeBinomial(0.5)], ids=str)
    def test_a_task_of_zeros(self, loss: Any) -> None:
        """It is named; its mean is practically 0, and the others are what they are without it."""
        x, y = data("tweedie")
        y = np.where(TASK == "b", 0.0, np.round(y))
        with pytest.warns(UserWarning, match=r"1 task\(s\) count nothing \('b'\)"):
            model = ts.MultiTaskRegressor(loss, alpha=0.05, tol=1e-9).fit(x, y, task=TASK)
        assert model.dual_gap_ <= 1e-9 * model.null_objective_
        assert model.predict(x[TASK == "b"], task=TASK[TASK == "b"]).max() < 1e-11
        assert not model.coef_[1].any()
        others = TASK != "b"
        alone = ts.MultiTaskRegressor(loss, alpha=0.05 * 45.0 / 47.5, tol=1e-9)
        alone.fit(x[others], y[others], task=TASK[others])
        np.testing.assert_allclose(model.coef_[[0, 2]], alone.coef_, atol=2e-4)

    @pytest.mark.parametrize("name", LOSSES)
    def test_constant_labels(self, name: str) -> None:
        x, _ = data(name)
        for level in (1e-7, 3.0, 1e5):
            y = np.full(len(TASK), level)
            model = model_of(name, alpha=0.1).fit(x, y, task=TASK)
            assert not model.coef_.any()
            np.testing.assert_allclose(model.predict(x, task=TASK), level, rtol=1e-9)
            assert model_of(name).alpha_max(x, y, task=TASK) <= 1e-12 * level
            assert model_of(name).path(x, y, task=TASK, n_alphas=3).converged.all()

    def test_units_of_gamma_labels_change_the_intercept_alone(self) -> None:
        x, y = data("gamma")
        one = model_of("gamma", alpha=0.05, tol=1e-10).fit(x, y, task=TASK)
        for unit in (1e-12, 1e9):
            other = model_of("gamma", alpha=0.05, tol=1e-10).fit(x, unit * y, task=TASK)
            np.testing.assert_allclose(other.coef_, one.coef_, atol=1e-6)
            np.testing.assert_allclose(other.intercept_, one.intercept_ + np.log(unit), atol=1e-6)
            assert other.dual_gap_ <= 1e-10 * other.null_objective_

    def test_squares_of_expectiles_have_any_units(self) -> None:
        x, y = data("expectile")
        one = model_of("expectile", alpha=0.05, tol=1e-9).fit(x, y, task=TASK)
        for unit in (2.0**-400, 2.0**400):
            other = model_of("expectile", alpha=0.05 * unit, tol=1e-9).fit(x, unit * y, task=TASK)
            np.testing.assert_allclose(other.coef_ / unit, one.coef_, rtol=1e-9)

    @pytest.mark.parametrize("name", LINKED)
    def test_an_exposure_is_part_of_the_mean(self, name: str) -> None:
        """A constant factor of all exposures moves the intercept and nothing else."""
        x, y = data(name)
        exposure = np.random.default_rng(5).uniform(0.2, 5.0, len(y))
        models = [
            model_of(name, alpha=0.05, tol=1e-10).fit(x, y, task=TASK, offset=np.log(unit * exposure))
            for unit in (1.0, 365.0)
        ]
        np.testing.assert_allclose(models[0].coef_, models[1].coef_, atol=1e-6)
        np.testing.assert_allclose(models[0].intercept_, models[1].intercept_ + np.log(365.0), atol=1e-6)
        with_offset, without = (models[0].predict(x, task=TASK, offset=o) for o in (np.log(exposure), np.zeros(len(y))))
        np.testing.assert_allclose(with_offset, exposure * without, rtol=1e-12)


class TestFindings:
    @pytest.mark.parametrize("name", LOSSES)
    def test_refit_and_split_inference(self, name: str) -> None:
        x, y = data(name)
        model = model_of(name).fit(x, y, task=TASK)
        model.set_params(alpha=0.3 * model.alpha_max(x, y, task=TASK)).fit(x, y, task=TASK)
        again = ts.refit(model, x, y, task=TASK)
        loss = LOSSES[name]
        for t, label in enumerate("abc"):
            own, used = label == TASK, np.flatnonzero(model.coef_[t])
            slope = loss.slope(y[own], x[own] @ again.coef_[t] + again.intercept_[t])
            pulls = np.column_stack([np.ones(own.sum()), x[np.ix_(own, used)]]).T @ slope
            assert np.max(np.abs(pulls)) <= 1e-8 * np.abs(slope).sum()
        found = ts.split_inference(model, x, y, task=TASK)
        assert np.all(found.lower < found.upper)
        first = found.feature == 0
        assert np.mean((found.lower[first] < 0.7) & (found.upper[first] > 0.7)) >= 1 / 3

    def test_robust_errors_are_those_of_statsmodels(self) -> None:
        """HC0 by hand from the information of each distribution: what statsmodels' GLM gives."""
        sm = pytest.importorskip("statsmodels.api", reason="statsmodels")
        from tasksieve.findings.split import _sandwich
        from tasksieve.findings.unpenalised import fit_task

        for name, family in (
            ("gamma", sm.families.Gamma(sm.families.links.Log())),
            ("negative_binomial", sm.families.NegativeBinomial(sm.families.links.Log(), alpha=1.0 / 1.3)),
            ("tweedie", sm.families.Tweedie(sm.families.links.Log(), var_power=1.6)),
        ):
            x, y = data(name, seed=4)
            fit = fit_task(LOSSES[name], x[:, :3], y, np.ones(len(y)), None, fit_intercept=True)
            influence, _, settled = _sandwich(LOSSES[name], fit, y, np.ones(len(y)), np.arange(len(y)), True)
            glm = sm.GLM(y, sm.add_constant(x[:, :3]), family).fit(tol=1e-14, maxiter=200)
            z = sm.add_constant(x[:, :3])
            information = LOSSES[name].information(y, z @ glm.params)
            root = np.sqrt(information)[:, None] * z
            leverage = np.sum(root * np.linalg.solve(root.T @ root, root.T).T, axis=1)
            scores = z * (LOSSES[name].slope(y, z @ glm.params) / np.sqrt(1.0 - leverage))[:, None]
            inverse = np.linalg.inv(root.T @ root)
            errors = np.sqrt(np.diag(inverse @ scores.T @ scores @ inverse))[1:]
            assert settled.all()
            np.testing.assert_allclose(np.sqrt(np.sum(influence**2, axis=1)), errors, rtol=1e-6)
            plain = np.sqrt(np.diag(inverse))[1:] * np.sqrt(glm.scale)
            np.testing.assert_allclose(plain, glm.bse[1:], rtol=1e-6)  # the information is the family's own

    @pytest.mark.sampled(3)
    @pytest.mark.parametrize("name", LOSSES)
    def test_stability_and_permutation(self, name: str) -> None:
        x, y = data(name)
        model = model_of(name)
        found = ts.StabilitySelection(model, n_pairs=4, q=2, threshold=0.75).fit(x, y, task=TASK)
        assert found.selection_probabilities_[0] > 0.5
        assert ts.permutation_test(model, x, y, task=TASK, n_permutations=19).pvalue == pytest.approx(0.05)

    def test_comparisons(self) -> None:
        """Rows that are not there (a missing label is 0 inside) do not disturb the deviance."""
        x, y = data("gamma")
        y[[3, 70]] = np.nan
        model = ts.MultiTaskRegressorCV("gamma", n_alphas=6, eps=0.1, cv=3)
        found = ts.compare(model, x, y, task=TASK, cv=3)
        assert found.loss == "gamma deviance"
        losses = found.to_frame()
        assert np.isfinite(losses.select_dtypes("number").to_numpy()).any(axis=0).all()
        assert np.isfinite(model.fit(x, y, task=TASK).cv_quality_.values).all()
