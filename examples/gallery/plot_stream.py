"""
Rows that come one at a time
============================

**Question.** Sensors of five sites send rows all day, some sites a hundred times as often as others. Which of
100 channels matter, and when does a model that sees each row once know it?

Simulated: 30,000 rows; the rarest site has 1 % of them.
"""

# %%
# The analysis
# ------------
# The online model learns from chunks and forgets the rows. It predicts each row *before* learning it, so its
# progressive score is an honest one.

import matplotlib.pyplot as plt
import numpy as np

import tasksieve as ts

rng = np.random.default_rng(0)
sites, shares = np.array(["A", "B", "C", "D", "E"]), [0.6, 0.25, 0.1, 0.04, 0.01]
n_rows, n_channels, n_true = 30_000, 100, 6
task = rng.choice(5, size=n_rows, p=shares)
X = rng.standard_normal((n_rows, n_channels))
W = np.zeros((5, n_channels))
W[:, :n_true] = rng.uniform(0.5, 1.5, size=(5, n_true)) * rng.choice([-1, 1], size=(1, n_true))
y = np.sum(X * W[task], axis=1) + rng.standard_normal(n_rows)

model = ts.OnlineMultiTaskRegressor(alpha=0.8)
seen, in_use, false, errors = [], [], [], []
for rows in np.split(np.arange(n_rows), 300):
    model.partial_fit(X[rows], y[rows], task=sites[task[rows]])
    support = model.get_support()
    seen.append(rows[-1] + 1)
    in_use.append(support[:n_true].sum())
    false.append(support[n_true:].sum())
    present = [np.flatnonzero(sites == label)[0] for label in model.tasks_]
    errors.append(np.linalg.norm(model.coef_ - W[present], axis=1).mean())

# %%
# The picture
# -----------

figure, axes = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
axes[0].step(seen, in_use, label="channels that matter, of 6")
axes[0].step(seen, false, label="channels that do not")
axes[0].set(xscale="log", xlabel="rows seen", ylabel="channels in use")
axes[0].legend()
scores = model.progress().score
order = np.argsort(model.tasks_)
axes[1].bar(np.asarray(model.tasks_)[order], np.asarray(scores)[order])
axes[1].set(xlabel="site (share of rows: " + ", ".join(f"{share:.0%}" for share in shares) + ")")
axes[1].set(ylabel="progressive R²", ylim=(0, 1))

# %%
# What can be proved
# ------------------
# A support that has settled is not a proof. On stored rows the online model can be held against the batch
# problem that it approaches, and the batch model that starts from it has a certificate of its own.

X_kept, y_kept, task_kept = X[-5000:], y[-5000:], sites[task[-5000:]]
proof = model.certify(X_kept, y_kept, task=task_kept)
print(f"online: objective {proof.objective:.3f}, at most {proof.dual_gap:.3f} above the optimum")
print(f"        needed {proof.needed.sum()}, zero {proof.zero.sum()}, undecided {proof.undecided.sum()}")

batch = model.batch_model().fit(X_kept, y_kept, task=task_kept)
batch.certificate(X_kept, y_kept, task=task_kept)
print(f"batch:  objective {batch.objective_:.3f}, at most {batch.dual_gap_:.1e} above the optimum")
print(f"        needed {batch.proven_nonzero_.sum()}, zero {batch.proven_zero_.sum()}")

# %%
# Conclusion
# ----------
# Within some hundred rows the model has the six channels, and afterwards it drops what came in by chance. The
# rare site has the lowest progressive score: its first rows, which no model can predict, are a large part of
# all that it has sent. The online iterate alone proves little about the channels that do not matter; the batch
# model, started from it on the stored rows, settles every one of the hundred.
