"""
A new hospital
==============

A model of four hospitals is there, their rows are not any more, and a fifth hospital has thirty patients. What is known
of the others may help, or mislead: ``fit_new_task`` measures which, and says so.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np

import tasksieve as ts

rng = np.random.default_rng(0)
effects = np.zeros(40)
effects[:6] = [1.0, -1.0, 0.8, -0.8, 0.6, 0.6]
X = rng.standard_normal((320, 40))
hospital = np.repeat(["A", "B", "C", "D"], 80)
y = X @ effects + rng.standard_normal(320)
model = ts.MultiTaskLassoCV(n_alphas=20, eps=0.05, cv=4).fit(X, y, task=hospital)

# %%
# **A hospital like the others.** Thirty rows, the same effects. The ways to use the old coefficients are compared by
# cross-validation of the thirty rows, and the winner is compared with the task alone on rows that it was not chosen by.

few = rng.standard_normal((30, 40))
like = model.fit_new_task(few, few @ effects + rng.standard_normal(30), name="E")
print(like)

# %%
# **One that is different.** Other features matter there. Nothing of the old tasks is used, and ``reason`` says why.

other = effects[::-1].copy()
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # it says in words that the task was fitted alone
    unlike = model.fit_new_task(few, few @ other + rng.standard_normal(30), name="F")
print(unlike)

# %%
# The errors on many new rows, of every way that was tried: 1 is the noise. Filled circles are what was used.

names = [f"{one['how']} {'' if one['strength'] is None else one['strength']}" for one in like.tried]
fig, axes = plt.subplots(1, 2, figsize=(8, 3.2), sharey=True, layout="constrained")
shown = (like, effects, "like the others"), (unlike, other, "different")
for ax, (found, truth, title) in zip(axes, shown, strict=True):
    errors = [1 + np.sum((one["coef"] - truth) ** 2) + one["intercept"] ** 2 for one in found.tried]
    used = [(one["how"], one["strength"]) == (found.how, found.strength) for one in found.tried]
    ax.scatter(errors, names, facecolors=["C0" if here else "none" for here in used], edgecolors="C0")
    ax.axvline(1.0, color="0.7", lw=1)
    ax.set(title=title, xlabel="squared error of new rows")
axes[0].invert_yaxis()
plt.show()
