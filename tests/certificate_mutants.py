"""Certificates that are spoilt: honest ones with a number changed, and forgeries on scales where numbers underflow.

A mutant is a consistent file: the digests are those of its data. Whether it is false is for `certificate_oracle` to
say; here claims are only made that a careless verifier would believe."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from certificate_oracle import Content, Truth, unpack
from hand_cases import (
    CLASSES,
    LOSSES,
    MACHINES,
    MEANS,
    NUMBERS,
    PENALTIES,
    make_case,
    make_machine,
    penalty_of,
)
from hand_certificates import Case

import tasksieve as ts

Array = np.ndarray[Any, Any]

PARTS = ("plain", "ridge", "graph")
TRIPLES = [(loss, penalty, part) for loss in LOSSES for penalty in PENALTIES for part in PARTS]
OPTIONS: tuple[dict[str, Any], ...] = (
    {"weights": True, "task_weights": True, "intercept": False},
    {"standardize": True, "offset": True, "free": True, "class_weights": True},
    {"positive": True, "feature_weights": True},
    {"standardize": True, "intercept": False, "weights": True},
)
ROWS, FEATURES, TASKS = 4, 3, 2



def from_case(case: Case, margin: float = 1e-3) -> Content:
    header, arrays = case.content(margin)
    weight = [np.ones(len(y)) for y in case.y] if case.weight is None else case.weight
    found = Content(header, arrays, case.x, case.y, weight, case.offset, [(case.coef, case.intercept)])
    found.sign()
    return found.copy()


def by_hand(number: int) -> Content:
    """The format written down by `hand_certificates`, with options of every kind."""
    loss, penalty, part = TRIPLES[number % len(TRIPLES)]
    options = dict(OPTIONS[number % len(OPTIONS)])
    options |= {"ridge": part != "plain", "graph": part == "graph"}
    return from_case(make_case(loss, penalty, number, n_tasks=TASKS, rows=ROWS, d=FEATURES, tol=1e-9, **options))


def machine(number: int) -> Content:
    return from_case(make_machine(MACHINES[number % len(MACHINES)], number, rows=4, d=3, intercept=number % 2 == 0))


def by_library(number: int) -> Content:
    """A fitted model's own certificate."""
    loss, penalty, part = TRIPLES[number % len(TRIPLES)]
    rng = np.random.default_rng(number)
    x = [rng.standard_normal((ROWS + t, FEATURES)) for t in range(TASKS)]
    z = [block @ np.array([1.5, -1.0, 0.0]) + 0.5 * rng.standard_normal(len(block)) for block in x]
    weight = [rng.uniform(0.5, 2.0, len(v)) for v in z] if number % 3 else [np.ones(len(v)) for v in z]
    classes, labels = None, z
    if loss in MEANS:
        labels = [np.exp(np.clip(v, -2.0, 2.0)) for v in z]
        labels = labels if loss == "gamma" else [np.round(v) for v in labels]
    elif loss in CLASSES:
        count = 3 if loss == "multinomial" else 2
        positions = [np.argsort(np.argsort(v)) * count // len(v) for v in z]
        classes = ["a", "b", "c"][:count]
        labels = [np.array(classes)[v] for v in positions]
    kind: Any = ts.MultiTaskRegressor if classes is None else ts.MultiTaskClassifier
    quadratic: dict[str, Any] = {"plain": {}, "ridge": {"ridge": 0.3}}.get(
        part, {"ridge": 0.1, "task_graph": np.ones((TASKS, TASKS)) - np.eye(TASKS), "graph_strength": 0.5}
    )
    model = kind({**NUMBERS, **CLASSES}[loss][0], penalty_of(penalty, FEATURES, rng)[0], tol=1e-9,
                 standardize=number % 2 == 0, **quadratic)  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.alpha = 0.3 * model.alpha_max(x, labels, sample_weight=weight)
        model.fit(x, labels, sample_weight=weight)
        header, arrays = unpack(model.certificate(x, labels, sample_weight=weight).to_bytes())
    y = labels
    if classes is not None:
        y = [np.array([header["classes"].index(one) for one in part], dtype=float) for part in labels]
    header.pop("about", None)
    found = Content(header, arrays, x, [np.asarray(part, dtype=float) for part in y], weight)
    w = np.zeros((FEATURES, arrays["intercept"].shape[1]))
    w[arrays["feature"], arrays["output"]] = arrays["coef"]
    found.others = [(w, arrays["intercept"][0])]
    return found.copy()


def tightened(content: Content, rng: Any) -> Content:
    """Worse coefficients, so that the gap is nothing that rounding decides, and claims as tight as they can be."""
    arrays = content.arrays
    arrays["coef"] = arrays["coef"] * (1.0 + 10.0 ** -rng.uniform(2, 4))
    truth = Truth(content)
    claim(content, truth, truth.D, 1e-7)
    return content


def claim(content: Content, truth: Truth, dual: Any, slack: float, share: float = 1.0) -> None:
    """The objective, and a dual value; a gap of a share of what lies between."""
    primal, dual = float(truth.P), float(dual)
    room = slack * (abs(primal) + abs(dual))
    values = {"objective": primal, "dual_value": dual - room, "gap": share * max(primal - dual, 0.0) + 2 * room}
    content.arrays |= {name: np.array([value]) for name, value in values.items()}


# --- one number changed --------------------------------------------------------------------------------------


def numbers_of(content: Content) -> list[tuple[str, Array]]:
    """All numbers of the file and of the data, as arrays that may be written to."""
    names = ("alpha", "ridge", "intercept", "coef", "dual", "edges", "feature_weights", "group_weights")
    found = [(name, content.arrays[name]) for name in (*names, "sorted_weights", "l1") if name in content.arrays]
    for t, x in enumerate(content.x):
        found += [(f"X of task {t}", x), (f"weights of task {t}", content.weight[t])]
        if content.header["classes"] is None:
            found.append((f"y of task {t}", content.y[t]))
        if content.offset is not None:
            found.append((f"offset of task {t}", content.offset[t]))
    return [(name, values) for name, values in found if values.size]


def change_array(content: Content, rng: Any) -> str:
    name, values = numbers_of(content)[int(rng.integers(len(numbers_of(content))))]
    flat = values.reshape(-1)
    k = int(rng.integers(len(flat)))
    way = int(rng.integers(5))
    factor = 1.0 + 10.0 ** -rng.uniform(0, 6) * rng.choice([-1, 1])
    flat[k] = [flat[k] * factor, -flat[k], flat[(k + 1) % len(flat)], flat[k] * 2.0, flat[k] / 2.0][way]
    if name in ("alpha", "feature_weights", "group_weights", "edges", "ridge") or name.startswith("weights"):
        flat[k] = abs(flat[k])
    if name == "edges":
        values[...] = np.maximum(values, values.T)
    if name == "sorted_weights":
        values[...] = np.sort(np.abs(values))[::-1]
    if content.header["loss"]["name"] in MEANS and name.startswith("y"):
        flat[k] = abs(flat[k])
    return f"{name}[{k}]"


def change_header(content: Content, rng: Any) -> str:
    header = content.header
    loss, penalty = header["loss"], header["penalty"]
    positions: list[tuple[dict[str, Any], str]] = [(header, "unit")]
    positions += [(loss, key) for key in ("mu", "epsilon", "low", "high", "size", "level", "power") if loss.get(key)]
    positions += [(penalty, key) for key in ("group", "l1") if penalty.get(key)]
    if not isinstance(header["intercept"], bool):
        positions.append((header, "intercept"))
    switches = ["standardize"]
    if penalty["name"] != "none" and "feature_weights" not in content.arrays:
        switches.append("positive")
    if header["intercept"] is False:
        switches.append("intercept")
    k = int(rng.integers(len(positions) + len(switches) + 2))
    if k < len(positions):
        node, key = positions[k]
        node[key] = float(node[key]) * float(rng.choice([0.5, 0.9, 0.999, 1.001, 1.1, 2.0]))
        return key
    k -= len(positions)
    if k < len(switches):
        header[switches[k]] = not header[switches[k]]
        return switches[k]
    if k == len(switches) or header["classes"] is None:
        header["task_weights"] = rng.uniform(0.5, 2.0, len(header["tasks"])).tolist()
        return "task_weights"
    header["class_weights"] = rng.uniform(0.5, 2.0, (len(header["tasks"]), len(header["classes"]))).tolist()
    return "class_weights"


def change_claim(content: Content, rng: Any) -> str:
    name = str(rng.choice(["gap", "dual_value", "objective"]))
    gap, step = float(content.arrays["gap"][0]), 10.0 ** -rng.uniform(0, 5)
    change = {"gap": -step * gap, "dual_value": step * gap, "objective": (1 + step) * gap * rng.choice([-1, 1])}
    content.arrays[name] = content.arrays[name] + change[name]
    return name


def change_lists(content: Content, rng: Any) -> str:
    """Zeros and non-zeros, with a gap that may be anything above the true one."""
    d = content.header["n_features"]
    for name, share in (("open", 0.5), ("sure", 0.3)):
        listed = np.flatnonzero(rng.random(d) < share)
        content.arrays |= {name: listed, f"{name}_start": np.array([0, len(listed)])}
    content.arrays["gap"] = content.arrays["gap"] * 10.0 ** rng.uniform(0, 3)
    return "open and sure"


CHANGES = (change_array, change_array, change_header, change_claim, change_lists)


def changed(content: Content, rng: Any) -> tuple[Content, Truth]:
    found = content.copy()
    found.story = CHANGES[int(rng.integers(len(CHANGES)))](found, rng)
    found.sign()
    if rng.random() < 0.05:  # other data than those of the digests, by the last bit of one number
        found = content.copy()
        x = found.x[0].reshape(-1)
        x[0] = np.nextafter(x[0], np.inf)
        found.story = "data that are not signed"
    return found, Truth(found)


# --- scales -------------------------------------------------------------------------------------------------


def power(rng: Any) -> float:
    """10^-320 to 10^290, more often near the ends or near 1."""
    k = rng.choice([rng.uniform(-320, 290), rng.uniform(-320, -150), rng.uniform(-30, 30), rng.uniform(140, 290)])
    return float(10.0**k)


def scale_unit(content: Content, rng: Any) -> None:
    content.header["unit"] = float(content.header["unit"]) * power(rng)


def scale_alpha(content: Content, rng: Any) -> None:
    content.arrays["alpha"] = content.arrays["alpha"] * power(rng)


def scale_strength(content: Content, rng: Any) -> None:
    """Unit and alpha whose product underflows; with the weights, the loss is what it was."""
    down = 10.0 ** -rng.uniform(100, 300)
    content.header["unit"] = float(content.header["unit"]) * down
    content.weight = [w * down for w in content.weight]
    content.arrays["alpha"] = content.arrays["alpha"] * 10.0 ** -rng.uniform(20, 320)


def scale_weights(content: Content, rng: Any) -> None:
    content.weight = [w * power(rng) for w in content.weight]


def scale_rows(content: Content, rng: Any) -> None:
    """Rows of weights that underflow as products, and columns that live in such rows."""
    small = 10.0 ** -rng.uniform(160, 300)
    large = 10.0 ** rng.uniform(100, 280)
    content.header["task_weights"] = [small] * len(content.x)
    content.weight = [w / small for w in content.weight]
    for x, w in zip(content.x, content.weight, strict=True):
        if len(x):
            w[0] = small
            x[0, -1] = large
            x[1:, -1] *= float(rng.choice([1.0, 1e-300, 0.0]))


def scale_tasks(content: Content, rng: Any) -> None:
    content.header["task_weights"] = [power(rng) for _ in content.x]


def scale_classes(content: Content, rng: Any) -> None:
    if content.header["classes"] is not None:
        content.header["class_weights"] = [[power(rng) for _ in content.header["classes"]] for _ in content.x]


def scale_x(content: Content, rng: Any) -> None:
    content.x = [x * power(rng) for x in content.x]


def scale_column(content: Content, rng: Any) -> None:
    j, factor = int(rng.integers(content.header["n_features"])), power(rng)
    for x in content.x:
        x[:, j] *= factor


def scale_far(content: Content, rng: Any) -> None:
    """A column far from 0."""
    j, far = int(rng.integers(content.header["n_features"])), 10.0 ** rng.uniform(6, 15)
    for x in content.x:
        x[:, j] += far


def scale_entries(content: Content, rng: Any) -> None:
    for x in content.x:
        if x.size:
            x.reshape(-1)[int(rng.integers(x.size))] *= power(rng)


def scale_y(content: Content, rng: Any) -> None:
    if content.header["classes"] is None:
        factor = power(rng)
        content.y = [y * factor for y in content.y]
        content.arrays |= {name: content.arrays[name] * factor for name in ("coef", "intercept")}


def scale_features(content: Content, rng: Any) -> None:
    if content.header["penalty"]["name"] in ("rows", "largest", "split"):
        weights = content.arrays.get("feature_weights", np.ones(content.header["n_features"]))
        content.arrays["feature_weights"] = weights * power(rng)


def scale_penalty(content: Content, rng: Any) -> None:
    penalty = content.header["penalty"]
    for key in ("group", "l1"):
        if penalty.get(key) and rng.random() < 0.7:
            penalty[key] = float(penalty[key]) * power(rng)
    for name in ("group_weights", "sorted_weights"):
        if name in content.arrays:
            content.arrays[name] = content.arrays[name] * power(rng)


def scale_loss(content: Content, rng: Any) -> None:
    loss = content.header["loss"]
    if loss["name"] == "clipped":
        loss["mu"] = float(loss["mu"]) * power(rng)


def scale_ridge(content: Content, rng: Any) -> None:
    content.arrays["ridge"] = content.arrays["ridge"] * power(rng)
    if "edges" in content.arrays:
        content.arrays["edges"] = content.arrays["edges"] * power(rng)


SCALES: tuple[Callable[[Content, Any], None], ...] = (
    scale_unit, scale_alpha, scale_strength, scale_strength, scale_weights, scale_rows, scale_rows, scale_tasks,
    scale_classes, scale_x, scale_column, scale_far, scale_entries, scale_y, scale_features, scale_penalty, scale_loss,
    scale_ridge,
)  # fmt: skip


def finite(content: Content) -> bool:
    """Whether the file can hold these numbers."""
    header = content.header
    lists = [header.get("task_weights") or [], *(header.get("class_weights") or [])]
    single = [header["unit"], *(v for part in (header["loss"], header["penalty"]) for v in part.values())]
    plain = [v for v in single if isinstance(v, float)] + [v for one in lists for v in one]
    arrays = [*content.arrays.values(), *content.x, *content.y, *content.weight, *(content.offset or [])]
    whole = all(np.isfinite(a).all() and (np.abs(a) < 1e307).all() for a in arrays) and all(v < 1e307 for v in plain)
    positive = header["unit"] > 0 and (content.arrays["alpha"] > 0).all()
    positive &= header["penalty"]["name"] != "none" or bool((content.arrays["ridge"] > 0).all())
    positive &= (content.arrays.get("group_weights", np.ones(1)) > 0).all()
    weights = content.arrays.get("feature_weights", np.ones(1))
    positive &= not (header["positive"] and (weights == 0).any())
    return whole and positive and all((w > 0).all() for w in content.weight)


def residuals(content: Content) -> Array:
    """Dual vectors of a model without coefficients, in plain floating point."""
    loss, found = content.header["loss"], []
    b = content.arrays["intercept"][0]
    start = 0
    for t, y in enumerate(content.y):
        o = np.zeros(len(y)) if content.offset is None else content.offset[t]
        if loss["name"] == "multinomial":
            count = len(content.header["classes"])
            e = np.exp(b[start : start + count] - b[start : start + count].max())
            found += list((np.eye(count)[y.astype(int)] - e / e.sum()).T)
            start += count
            continue
        z = b[t] + o
        sides = 2.0 * y - 1.0
        if loss["name"] == "logistic":
            p = sides / (1.0 + np.exp(np.clip(sides * z, -700, 700)))
        elif loss["name"] == "poisson":
            p = y - np.exp(np.clip(z, -700, 700))
        elif loss["name"] == "gamma":
            p = y * np.exp(np.clip(-z, -700, 700)) - 1.0
        elif loss["name"] == "tweedie":
            k = loss["power"] - 1.0
            p = y * np.exp(np.clip(-k * z, -700, 700)) - np.exp(np.clip((1.0 - k) * z, -700, 700))
        elif loss["name"] == "negative_binomial":
            p = y - (y + loss["size"]) / (1.0 + loss["size"] * np.exp(np.clip(-z, -700, 700)))
        elif loss["name"] == "log_cosh":
            p = np.tanh(y - z)
        elif loss["name"] == "expectile":
            p = np.where(y > z, loss["level"], 1.0 - loss["level"]) * (y - z)
        elif loss["name"] == "square-root":
            factor = np.float64((content.header.get("task_weights") or [1.0] * len(content.y))[t])
            size = factor * np.sqrt(content.weight[t] @ (y - z) ** 2)
            p = (y - z) / size if size > 0 else 0.0 * y
        else:
            classes = loss["labels"] == "classes"
            r = (sides if classes else y) - z
            low, high = (-np.inf if loss.get("low") is None else loss["low"]), (
                np.inf if loss.get("high") is None else loss["high"])  # fmt: skip
            if classes:
                low, high = np.where(sides > 0, 0.0, -high), np.where(sides > 0, high, 0.0)
            over = np.sign(r) * np.maximum(np.abs(r) - (loss.get("epsilon") or 0.0), 0.0)
            p = np.clip(over / loss["mu"] if loss["mu"] else np.sign(over) * np.inf, low, high)
        found.append(p)
    return np.concatenate(found)[None]


def forged(content: Content, rng: Any) -> tuple[Content, Truth] | None:
    """Some scales changed; perhaps a model without coefficients that is said to be the best; and claims as if the dual
    vector were in the dual ball, or a little tighter than they may be. None if the numbers are no numbers any more."""
    found = content.copy()
    told = [SCALES[int(k)] for k in rng.integers(len(SCALES), size=rng.choice([0, 1, 1, 2, 3]))]
    with np.errstate(all="ignore"):
        for scale in told:
            scale(found, rng)
        if rng.random() < 0.6:
            nothing = np.zeros(0, dtype=np.int64)
            found.arrays |= {"coef": np.zeros(0), "feature": nothing, "output": nothing, "start": np.zeros(2, np.int64)}
            found.arrays["dual"] = residuals(found)
    if not finite(found):
        return None
    found.sign()
    truth = Truth(found)
    style = int(rng.integers(4))
    if style < 2 and truth.norm != "none":
        claim(found, truth, truth.dual(1), float(rng.choice([1e-12, 1e-9, 1e-6])))
    elif style == 2 and truth.half:
        claim(found, truth, truth.forgetful, 1e-9)
    else:
        claim(found, truth, truth.D, 0.0, float(rng.choice([0.0, 0.5, 0.999])))
    if rng.random() < 0.5:
        d = found.header["n_features"]
        opened = np.flatnonzero(rng.random(d) < rng.choice([0.0, 0.5]))
        found.arrays |= {"open": opened, "open_start": np.array([0, len(opened)])}
        if rng.random() < 0.5:  # a gap that is proved, for zeros that may not be
            claim(found, truth, truth.D, 1e-9)
            with np.errstate(over="ignore"):
                found.arrays["gap"] = found.arrays["gap"] * float(rng.choice([1.0, power(rng)]))
    for name in ("objective", "dual_value", "gap"):
        if not abs(found.arrays[name][0]) < 1e307:
            return None
    found.story = f"{', '.join(scale.__name__ for scale in told)}; style {style}"
    return found, truth


def hidden(content: Content, rng: Any) -> tuple[Content, Truth]:
    """A column whose only entry is in a row of a weight that underflows, and a gap so large that it could move; the
    dual vector is 0. The feature is said to be zero in every solution."""
    found = content.copy()
    far, gap = rng.uniform(162, 200), rng.uniform(150, 280)
    small = 10.0**-far
    found.header["task_weights"] = [small] * len(found.x)
    for t, x in enumerate(found.x):
        found.weight[t] = found.weight[t] / small
        x[:, -1] = 0.0
        if len(x):
            found.weight[t][0], x[0, -1] = small, 10.0 ** (rng.uniform(1, 20) + far - gap / 2)
    if (last := found.arrays["feature"] == found.header["n_features"] - 1).any():
        found.arrays |= {name: found.arrays[name][~last] for name in ("feature", "output", "coef")}
        found.arrays["start"] = np.array([0, (~last).sum()])
    found.arrays["dual"] = np.zeros_like(found.arrays["dual"])
    found.sign()
    truth = Truth(found)
    claim(found, truth, truth.D, 1e-9)
    opened = np.arange(found.header["n_features"] - 1)
    found.arrays |= {"gap": np.array([10.0**gap]), "open": opened, "open_start": np.array([0, len(opened)])}
    found.story = "hidden rows"
    return found, truth


def false_mutants(contents: list[Content], count: int, seed: int) -> Iterator[tuple[Content, Truth, list[str]]]:
    """Mutants of these that the oracle says are false, in turn."""
    rng = np.random.default_rng(seed)
    spoilt = [tightened(content.copy(), rng) for content in contents]
    found = 0
    while found < count:
        content = spoilt[int(rng.integers(len(spoilt)))]
        way = rng.random()
        made = changed(content, rng) if way < 0.4 else forged(content, rng) if way < 0.95 else hidden(content, rng)
        if made is None:
            continue
        why = made[1].unsupported()
        if why:
            found += 1
            yield *made, why
