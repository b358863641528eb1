"""
Which of the selected features would be found again?
====================================================

**Question.** Cross-validation selects features that predict well, and it is generous: which of them are there
by chance?

Simulated, so that the truth is known: six tasks of 40 rows, 300 correlated features, eight of which matter.
"""

# %%
# Three answers to three questions
# --------------------------------
# Does anything matter (a permutation test)? What predicts (cross-validation)? What would be selected again
# (stability selection, with a bound on the expected number of false selections)?

import matplotlib.pyplot as plt
import numpy as np

import tasksieve as ts

rng = np.random.default_rng(3)
n_tasks, n_rows, n_features = 6, 40, 300
X = rng.standard_normal((n_tasks * n_rows, n_features))
for j in range(1, n_features):
    X[:, j] = 0.6 * X[:, j - 1] + 0.8 * X[:, j]
task = np.repeat(np.arange(n_tasks), n_rows)
truth = np.arange(10, 250, 30)
W = np.zeros((n_features, n_tasks))
W[truth] = rng.normal(0, 0.9, size=(len(truth), n_tasks))
y = np.einsum("ij,ji->i", X, W[:, task]) + 1.5 * rng.standard_normal(len(task))

test = ts.permutation_test(ts.MultiTaskLasso(), X, y, task=task, n_permutations=199, random_state=0)
predictive = ts.MultiTaskLassoCV(n_alphas=40, random_state=0).fit(X, y, task=task)
stable = ts.StabilitySelection(ts.MultiTaskLasso(), pfer=1.0, random_state=0).fit(X, y, task=task)
print(test.summary())

# %%
# Counted against the truth, which a simulation has and a study has not:

for name, support in [("cross-validation", predictive.get_support()), ("stability selection", stable.get_support())]:
    chosen = np.flatnonzero(support)
    print(f"{name:20s} {len(chosen):3d} selected, {np.isin(chosen, truth).sum()} of {len(truth)} true ones among them")
print(f"bound on the expected number of false ones: {stable.pfer_bound_:.2f}")

# %%
# The picture
# -----------
# Each feature's share of the random halves in which it was used. The line is the threshold that keeps the
# promise.

share = stable.selection_probabilities_
figure, axes = plt.subplots(figsize=(8.5, 3.6), layout="constrained")
colours = np.where(np.isin(np.arange(n_features), truth), "tab:red", "0.6")
axes.vlines(np.arange(n_features), 0, share, colors=colours, linewidth=1.5)
axes.plot(np.flatnonzero(predictive.get_support()), np.full(predictive.get_support().sum(), -0.04), "k|", markersize=8)
axes.axhline(stable.threshold_, color="black", linestyle="--")
axes.set(xlabel="feature (red: matters; marks below: selected by cross-validation)", ylabel="share of the halves")

# %%
# Conclusion
# ----------
# Something matters, beyond doubt. Cross-validation finds the true features and takes many others with them: for
# prediction they do little harm, as a list of findings they would be wrong. Stability selection keeps a short
# list and says how many false ones to expect at most. It pays with the weaker true features, which are not in
# the list: *not stable* does not mean *does not matter*.
