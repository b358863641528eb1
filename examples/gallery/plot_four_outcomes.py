"""
One heart attack, four kinds of outcome
=======================================

**Question.** 500 people came to hospital with a heart attack (Worcester Heart Attack Study, Hosmer, Lemeshow and May
2008). What is known at admission: age, sex, body mass index, pulse, rhythm, earlier disease. What came of it: how low
the blood pressure was (a number), whether the heart failed (yes or no), days in hospital (a positive amount) and the
time to death (mostly censored). Which findings matter for the course as a whole?

Four outcomes of four kinds, each with the loss that fits it, and features that are selected for all of them together.
The data come with scikit-survival.
"""

# %%
# The analysis
# ------------
# All outcomes have the same rows, so X is one matrix, and y has an entry for each outcome. A penalty compares
# coefficients across outcomes, and their units must not decide: responses are divided by their standard deviation and
# each loss is weighted by the size of its residuals (:doc:`/models/mixed`).

import matplotlib.pyplot as plt
import numpy as np

import tasksieve as ts

try:
    from sksurv.datasets import load_whas500
except ImportError:  # the page says so, and has no figures
    load_whas500 = None
    print("scikit-survival, which has the data, is not installed here: pip install scikit-survival")

LOSSES = {"blood pressure": "squared", "heart failure": "logistic", "days in hospital": "gamma", "death": "cox"}
NAMES = {
    "age": "age", "gender": "female", "bmi": "body mass index", "hr": "pulse", "afb": "atrial fibrillation",
    "av3": "complete heart block", "cvd": "cardiovascular history", "miord": "earlier attack",
    "mitype": "Q-wave attack", "sho": "cardiogenic shock",
}  # fmt: skip

if load_whas500 is not None:
    table, death = load_whas500()
    features = table[list(NAMES)].astype(float).rename(columns=NAMES)
    y = {
        "blood pressure": table["sysbp"].to_numpy(float),
        "heart failure": np.where(table["chf"].astype(float) > 0.0, "yes", "no"),
        "days in hospital": np.maximum(table["los"].to_numpy(float), 0.5),  # discharged on the same day: half a day
        "death": ts.survival(death["lenfol"] / 365.25, death["fstat"]),
    }
    model = ts.MultiTaskMixedCV(LOSSES, standardize=True, n_alphas=20, eps=0.03, cv=5, selection_rule="1se")
    model.fit(features, y)
    print("selected:", ", ".join(features.columns[model.get_support()]))
    print(f"duality gap: {model.dual_gap_ / model.null_objective_:.1e} of the objective of the empty model")

# %%
# How well each outcome is predicted
# ----------------------------------
# Deviances of unlike outcomes have no unit in common; the part of them that is explained has (D², R² for the blood
# pressure). Beside it every outcome has measures of its own. All numbers are out of fold.

if load_whas500 is not None:
    frame = model.cv_quality_.to_frame()
    known = frame[np.isfinite(frame["value"]) & (frame["task"] != "all tasks")]
    print(known[["task", "measure", "value", "error", "null_value"]].round(3).to_string(index=False))

# %%
# One set of features, four effects
# ---------------------------------
# Effects per standard deviation of a feature, in units that belong to the outcome: millimetres of mercury, the
# logarithm of the odds, of the mean stay, of the hazard. Columns are coloured by what the penalty compares.

if load_whas500 is not None:
    shown = np.flatnonzero(model.get_support())
    effect = model.coef_[:, shown] * features.std(ddof=0).to_numpy()[shown]
    compared = effect / model.target_scales_[:, None]
    order = np.argsort(np.linalg.norm(compared, axis=0))
    figure, axes = plt.subplots(figsize=(8, 4.2), layout="constrained")
    most = np.abs(compared).max()
    axes.imshow(compared[:, order].T, cmap="RdBu_r", vmin=-most, vmax=most, aspect="auto", origin="lower")
    for row, j in enumerate(order):
        for column in range(len(model.tasks_)):
            tint = "white" if abs(compared[column, j]) > 0.6 * most else "black"
            axes.text(column, row, f"{effect[column, j]:+.2f}", ha="center", va="center", color=tint)
    units = {"squared": "mmHg", "logistic": "log odds", "gamma": "log mean", "cox": "log hazard"}
    labels = [f"{name}\n({units[LOSSES[name]]})" for name in model.tasks_]
    axes.set_xticks(range(len(labels)), labels)
    axes.set_yticks(range(len(order)), features.columns[shown[order]])
    axes.tick_params(length=0)

# %%
# What the outcomes weigh
# -----------------------

if load_whas500 is not None:
    for name, weight, scale in zip(model.tasks_, model.loss_weights_, model.target_scales_, strict=True):
        print(f"{name:18s} weight {weight:.2f}, labels divided by {scale:.2f}")
    certificate = model.certificate(features, y)
    print("proved:", certificate.verify(features, y).proved)

# %%
# Conclusion
# ----------
# Age, pulse and cardiogenic shock matter for the whole course, with the signs one expects: shock goes with a low
# pressure, a failing heart and early death. D² says what the joint list is worth for each outcome: most for heart
# failure and for death, whose order it gets right in three of four pairs; little for the days in hospital; the blood
# pressure is hardly predicted at all, though its unit, millimetres of mercury, has the largest coefficients. The
# report of this model, ``ts.write_report(model, "course.html", X=features, y=y)``, has all of it on one page.
