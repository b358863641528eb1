"""
Tasks of different noise: one loud task among quiet ones
========================================================

**Question.** One laboratory of eight measures badly. What does that do to the other seven, and does the
calibrated loss protect them?

Simulated: eight laboratories, 60 rows each, 150 features of which six matter everywhere. In the second run the
noise of laboratory 0 is ten times as large.
"""

# %%
# The analysis
# ------------
# The same rows twice, once with equal noise and once with one loud task; two models, each with ``alpha`` by
# cross-validation; the error of the coefficients of the seven *quiet* laboratories.

import matplotlib.pyplot as plt
import numpy as np

import tasksieve as ts

rng = np.random.default_rng(0)
n_tasks, n_rows, n_features, n_true = 8, 60, 150, 6
task = np.repeat(np.arange(n_tasks), n_rows)
X = rng.standard_normal((len(task), n_features))
W = np.zeros((n_tasks, n_features))
W[:, :n_true] = rng.normal(0, 1, size=(n_tasks, n_true))
signal = np.sum(X * W[task], axis=1)
noise = 0.5 * rng.standard_normal(len(task))

models = {
    "squared loss": ts.MultiTaskLassoCV(n_alphas=40, random_state=0),
    "calibrated loss": ts.CalibratedMultiTaskLassoCV(n_alphas=40, eps=0.02, random_state=0),
}
error = {}
for name, model in models.items():
    for loudness in (1.0, 10.0):
        y = signal + np.where(task == 0, loudness, 1.0) * noise
        fitted = model.fit(X, y, task=task)
        error[name, loudness] = np.linalg.norm(fitted.coef_ - W, axis=1)
        quiet = error[name, loudness][1:].mean()
        print(f"{name:16s} noise of laboratory 0 x {loudness:4.0f}: alpha {fitted.alpha_:.3f}, "
              f"{fitted.get_support().sum():3d} features, error of the quiet ones {quiet:.3f}")  # fmt: skip

# %%
# The picture
# -----------
# Error of the coefficients, laboratory by laboratory, before and after laboratory 0 became loud.

figure, axes = plt.subplots(1, 2, figsize=(9, 3.4), sharey=True, layout="constrained")
for panel, name in zip(axes, models, strict=True):
    panel.bar(np.arange(n_tasks) - 0.2, error[name, 1.0], width=0.4, label="all equally noisy")
    panel.bar(np.arange(n_tasks) + 0.2, error[name, 10.0], width=0.4, label="laboratory 0 ten times louder")
    panel.set(title=name, xlabel="laboratory", xticks=range(n_tasks))
axes[0].set_ylabel("distance from the true coefficients")
axes[0].legend(fontsize="small")

# %%
# How noisy is each laboratory? The calibrated model says so, as a by-product:

print(fitted.noise_.round(2))
print("true:", [5.0, *[0.5] * 7])

# %%
# Conclusion
# ----------
# With the squared loss the loud laboratory raises the ``alpha`` that all share, and the quiet ones are shrunk
# for nothing. With the calibrated loss the size of a task's noise cancels, and the quiet laboratories hardly
# notice. The loud one gains nothing in either model: no loss makes its data better. Where noise is equal, the
# two models are about as good as each other, so the price of the protection is small.
