"""
How large, how sure, and are the probabilities right?
=====================================================

**Question.** A model has selected features. How large are their effects in each task, how far off may the next
prediction be, and is a probability of 0.3 one in 0.3 of the cases?

Simulated, so that the truth is known: four sites of 80 rows, 60 features, two of which matter everywhere.
"""

# %%
# How large are the effects?
# --------------------------
# The penalty draws coefficients towards zero. `debiased_inference` takes the shrinkage out again, for features that
# were named *beforehand*, from all rows; `split_inference` selects on one half of the rows and estimates on the other.

import matplotlib.pyplot as plt
import numpy as np

import tasksieve as ts

rng = np.random.default_rng(5)
sites, n_rows, n_features = ["east", "north", "south", "west"], 80, 60
X, task = rng.standard_normal((320, n_features)), np.repeat(sites, n_rows)
effects = {3: np.array([0.9, 0.7, 0.5, 0.8]), 7: np.array([-0.5, -0.6, -0.4, 0.0]), 20: np.zeros(4)}
code = np.repeat(np.arange(4), n_rows)
y = sum(effects[j][code] * X[:, j] for j in effects) + np.where(task == "west", 1.6, 0.8) * rng.standard_normal(320)

model = ts.MultiTaskLassoCV(n_alphas=30, cv=5, keep_folds=True, random_state=0).fit(X, y, task=task)
found = ts.debiased_inference(model, X, y, task=task, features=[3, 7, 20])
half = ts.split_inference(ts.MultiTaskLassoCV(n_alphas=30, cv=5), X, y, task=task, level=0.95, random_state=0)
print(found.summary())

# %%
# A forest plot: points are estimates, lines 95 % intervals, crosses what the model has, diamonds the truth.

figure, axes = plt.subplots(1, 3, figsize=(8.5, 2.8), sharex=True, sharey=True, layout="constrained")
for axis, (j, truth) in zip(axes, effects.items(), strict=True):
    own, there = found.feature == j, half.feature == j
    places = np.arange(4.0)
    axis.errorbar(found.estimate[own], places, xerr=(found.upper - found.lower)[own] / 2, fmt="o", label="debiased")
    if there.any():
        width = (half.upper - half.lower)[there] / 2
        axis.errorbar(half.estimate[there], places + 0.25, xerr=width, fmt="o", color="0.6", label="split")
    axis.plot(model.coef_[:, j], places, "kx", label="model")
    axis.plot(truth, places, "D", color="tab:red", markersize=4, label="truth")
    axis.axvline(0.0, color="black", linewidth=0.5, linestyle="--")
    axis.set(title=f"feature {j}", yticks=places, yticklabels=sites)
axes[0].legend(fontsize=7)

# %%
# How far off may the next prediction be?
# ---------------------------------------
# The models of the folds have predicted rows that they had not seen. Their errors, task by task, give intervals for
# new rows, whatever the noise is: the site in the west is noisier, and says so.

fresh = rng.standard_normal((4000, n_features))
names = np.repeat(sites, 1000)
new = np.repeat(np.arange(4), 1000)
noise = np.where(names == "west", 1.6, 0.8) * rng.standard_normal(4000)
outcome = sum(effects[j][new] * fresh[:, j] for j in effects) + noise
low, high = model.predict_interval(fresh, task=names, coverage=0.9).T
for site in sites:
    rows = names == site
    inside = np.mean((low <= outcome)[rows] & (outcome <= high)[rows])
    print(f"{site:6s} width {np.mean((high - low)[rows]):.2f}, {inside:.0%} of 1,000 new rows inside")

# %%
# Are probabilities shares?
# -------------------------
# Ill people are rare. `class_weight="balanced"` lets both classes count alike, and the probabilities are those of a
# population in which they are equally frequent. `probability_calibration` shows them as they are and corrected back.

ill = (X[:, 3] - X[:, 7] - 2.0 + rng.logistic(size=320) > 0).astype(int)
classifier = ts.MultiTaskLogisticRegressionCV(class_weight="balanced", n_alphas=20, cv=5, random_state=0)
classifier.fit(X, ill)
curves = ts.probability_calibration(classifier, X, ill, n_bins=6)
figure, axes = plt.subplots(figsize=(4.5, 3.6), layout="constrained")
axes.plot([0, 1], [0, 1], color="0.7", linewidth=1)
for weighting in ("as fitted", "corrected back"):
    own = curves.weighting == weighting
    p, share = curves.predicted[own], curves.observed[own]
    axes.errorbar(p, share, yerr=[share - curves.lower[own], curves.upper[own] - share], fmt="o-", label=weighting)
axes.set(xlabel="probability", ylabel="share of rows that are ill")
axes.legend()
print(curves.lines.to_frame().to_string(index=False))

# %%
# Conclusion
# ----------
# The intervals of features that were named beforehand hold the truth about as often as they say, and are shorter than
# those from half of the rows. The model's own coefficients are too small, as those of every penalised model. Prediction
# intervals are as wide as each site's noise asks for; their 90 % are an average over data sets, and with 80 rows to
# calibrate a site a single one is some points above or below. Class weights move the level of the probabilities and not
# their order; corrected back they are shares again.
