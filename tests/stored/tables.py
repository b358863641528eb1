"""The tables of which stored runs are made: small, the same ones every time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

REGIONS, WARDS, PAIN = ["north", "south", "east"], ["surgery", "general", "eye"], ["none", "mild", "severe"]


def study(n: int = 48, seed: int = 0) -> pd.DataFrame:
    """Rows of three regions with outcomes of every kind; columns a and b matter."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 5)).round(4)
    frame = pd.DataFrame(X, columns=list("abcde"))
    frame["region"] = np.resize(REGIONS, n)
    frame["city"] = rng.choice(["Bonn", "Oslo"], n)
    frame["ward"] = rng.choice(WARDS, n)
    day = zip(rng.integers(1, 13, n), rng.integers(1, 28, n), strict=True)
    frame["visited"] = [f"2024-{m:02d}-{d:02d}" for m, d in day]
    z = X[:, 0] - 0.7 * X[:, 1] * (frame.region == "north") + 0.5 * (frame.city == "Oslo")
    noisy = z + 0.4 * rng.standard_normal(n)
    frame["y"] = noisy.round(4)
    frame["y2"] = (noisy + 0.5 * rng.standard_normal(n) + 3.0).round(4)
    frame["state"] = np.where(noisy > 0.2, "sick", "well")
    frame["colour"] = np.array(["red", "green", "blue"])[np.digitize(noisy, np.quantile(noisy, [0.35, 0.7]))]
    frame["pain"] = np.array(PAIN)[np.digitize(noisy, np.quantile(noisy, [0.4, 0.75]))]
    frame["hours"] = rng.uniform(0.5, 2.0, n).round(3)
    frame["log_hours"] = np.log(frame.hours).round(6)
    frame["events"] = rng.poisson(frame.hours * np.exp(0.5 * z))
    frame["cost"] = (np.exp(0.5 * z) * rng.gamma(2.0, 0.5, n)).round(4)
    frame["days"] = (np.ceil(40 * np.exp(-z) * rng.exponential(size=n)) / 2 + 0.5).round(1)
    frame["died"] = rng.choice([1, 1, 0], n)
    frame["since"] = (frame.days * rng.choice([0.0, 0.4], n)).round(2)
    frame["sex"] = rng.choice(["f", "m"], n)
    frame["weight"] = rng.uniform(0.5, 2.0, n).round(3)
    frame["family"] = np.arange(n) // 2
    return frame


def holed(frame: pd.DataFrame) -> pd.DataFrame:
    """Cells of a and b are missing here and there, and a word."""
    frame = frame.copy()
    frame.loc[frame.index[[1, 5, 9, 13, 17, 22]], "a"] = np.nan
    frame.loc[frame.index[[3, 11, 20]], "b"] = np.nan
    frame.loc[frame.index[7], "ward"] = None
    return frame


def patterned(frame: pd.DataFrame) -> pd.DataFrame:
    """Half of the rows of each region lack b, c and the city."""
    frame = frame.copy()
    lacks = np.arange(len(frame)) // 3 % 2 == 1
    frame.loc[lacks, ["b", "c", "city"]] = None
    return frame


def stacked(frame: pd.DataFrame) -> pd.DataFrame:
    """A part of the rows for each outcome, with one column of labels beside times and events."""
    parts = []
    for k, name in enumerate(("y", "state", "events", "pain", "death")):
        own: Any = frame.iloc[k::3].copy()
        own["kind"] = name
        own["label"] = None if name == "death" else own[name].astype(object)
        if name != "death":
            own[["days", "died"]] = np.nan
        parts.append(own[["kind", "label", "days", "died", *"abcde"]])
    return pd.concat(parts).reset_index(drop=True)
