"""
Labels that are wrong
=====================

**Question.** One label in twelve was entered wrongly. What becomes of the selected features with the squared
loss, and with Huber's?

Diabetes data of scikit-learn in three age bands, with 30 columns of noise beside the nine measurements, so that
there is something to select wrongly. The labels are spoilt by us, on purpose.
"""

# %%
# The analysis
# ------------
# Both models choose ``alpha`` by their own held-out loss, on the spoilt labels. They are judged on the *true*
# labels of people held out: something that only an experiment like this one can do.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split

import tasksieve as ts

data = load_diabetes(as_frame=True)
rng = np.random.default_rng(0)
band = np.searchsorted(data.data["age"].quantile([1 / 3, 2 / 3]), data.data["age"])
measured = data.data.drop(columns="age")
names = [*measured.columns, *[f"noise {j}" for j in range(30)]]
X = np.hstack([measured / measured.std(), rng.standard_normal((len(measured), 30))])
y = ((data.target - data.target.mean()) / data.target.std()).to_numpy()

train, test = train_test_split(np.arange(len(y)), test_size=0.3, stratify=band, random_state=0)
wrong = rng.random(len(train)) < 1 / 12
shares = [0.0, 5.0, 10.0, 20.0]

models = {
    "squared loss": ts.MultiTaskLassoCV(n_alphas=30, random_state=0),
    "Huber loss": ts.MultiTaskHuberCV(n_alphas=30, delta=1.0, random_state=0),
}
error, false = {}, {}
for name, model in models.items():
    for size in shares:
        spoilt = y[train] + np.where(wrong, size * rng.choice([-1, 1], len(train)), 0.0)
        fitted = model.fit(X[train], spoilt, task=band[train])
        error[name, size] = np.mean((fitted.predict(X[test], task=band[test]) - y[test]) ** 2)
        false[name, size] = fitted.get_support()[9:].sum()
        found = fitted.get_support()[:9].sum()
        print(f"{name:13s} wrong by {size:4.0f} standard deviations: error {error[name, size]:.3f}, "
              f"{found} of 9 measurements, {false[name, size]:2d} of 30 columns of noise")  # fmt: skip

# %%
# The picture
# -----------

figure, axes = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
for name, marker in zip(models, "os", strict=True):
    axes[0].plot(shares, [error[name, size] for size in shares], marker=marker, label=name)
    axes[1].plot(shares, [false[name, size] for size in shares], marker=marker, label=name)
axes[0].axhline(y[test].var(), color="0.5", linestyle=":")
axes[0].annotate("predicting the mean", (0, y[test].var()), color="0.4", va="bottom")
axes[0].set(xlabel="size of the errors in labels", ylabel="squared error, true labels")
axes[1].set(xlabel="size of the errors in labels", ylabel="columns of noise selected")
axes[0].legend()

# %%
# Conclusion
# ----------
# With clean labels the two losses are alike. With wrong ones the squared loss gets worse the more they are
# wrong, up to predictions worse than the mean; Huber's loss loses a little and stays there. ``delta`` is in
# units of the label: here one standard deviation, fixed beforehand. And Huber's loss helps against wrong
# *labels* only: a wrong row of X would still pull.
