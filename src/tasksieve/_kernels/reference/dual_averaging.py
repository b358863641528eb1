"""NumPy twin of the online learner: Algorithm 1 of Yang, Lyu & King (2010), every weight recomputed at every row.

The compiled learner keeps what it needs to touch only the features of a row; here everything is written out, O(d T) a
row, so that it can be read beside the formulas.
"""

from __future__ import annotations

import numpy as np

from .losses import log1p_exp, sigmoid

L21, L11, L1_L21 = 0, 1, 2
PER_TASK, IMPORTANCE, ROUNDS = 0, 1, 2
SQUARED, LOGISTIC, HINGE = 0, 1, 2

# gamma = "auto"
SHARE = 0.5  # of L m^2
BEFORE = 30.0  # rows of zeros before the first
CUT = 4.0  # a row counts at most so many times the mean before it
WAY = 1.0  # of the way to its target that a row may go by itself
OFFSET = 1.0  # the intercepts' feature
CROWDING = 0.25  # u_i = (t s_i / t_q) to this power
# A row is beyond learning where squares could overflow, or targets vanish in the rounding of predictions.
SQUARES, ROUNDING = 1e280, 2.0**52

FORESIGHT = ("weight", "loss", "hits", "mean", "spread")


def soft(u, threshold):
    return np.sign(u) * np.maximum(np.abs(u) - threshold, 0.0)


def derivative(loss, z, y):
    if loss == SQUARED:
        return z - y
    if loss == LOGISTIC:
        return -y * sigmoid(-y * z)
    return -y if y * z < 1.0 else 0.0


def value(loss, z, y):
    if loss == SQUARED:
        return 0.5 * (z - y) ** 2
    return log1p_exp(-y * z) if loss == LOGISTIC else max(0.0, 1.0 - y * z)


class AutoGamma:
    """L/2 m^2 with m the mean size of the rows so far, and u^2 for the intercepts: see dual_averaging.hpp."""

    def __init__(self, size=0.0, rows=0.0, crowd=0.0, every=0.0, used=0.0, following=0.0, offset=0.0, offset_next=0.0):
        self.size, self.rows, self.crowd, self.every = size, rows, crowd, every  # sums, and of how many rows
        self.used, self.next, self.offset_used, self.offset_next = used, following, offset, offset_next

    def copy(self):
        return AutoGamma(*vars(self).values())

    def then(self, norm, crowding, curvature):
        """After one more row."""
        new = self.copy()
        new.crowd += min(crowding, CUT * self.crowd / self.every) if self.every else crowding
        new.every += 1.0
        new.offset_next = max(self.offset_next, OFFSET * (new.crowd / new.every) ** 2)
        if norm > 0:
            size = norm * crowding
            new.size += min(size, CUT * self.size / self.rows) if self.rows else size
            new.rows += 1.0
            new.next = max(self.next, SHARE * curvature * (new.size / (new.rows + BEFORE)) ** 2)
        return new


class DualAveraging:
    """State and steps; the same methods as the compiled class."""

    def __init__(self):
        self.features = self.tasks = self.steps = self.rows = 0
        self.sums = np.zeros((0, 0))  # tasks x features
        self.total = np.zeros((0, 0))
        self.l1, self.l1_default = np.zeros(0), 0.0
        self.weight = np.zeros(0)
        self.offset_sums, self.offset_total = np.zeros(0), np.zeros(0)
        self.round = []  # (task, gradient, features, values)
        self.fixed_gamma = np.nan
        self.automatic, self.largest = AutoGamma(), 0.0  # largest: |y| so far
        # how well rows were predicted before they were learned (see dual_averaging.hpp)
        self.foresight, self.curve = {name: np.zeros(0) for name in FORESIGHT}, []

    def configure(self, penalty, rule, loss, alpha, gamma, ridge, enhanced, intercept, average, l1):
        self.penalty, self.rule, self.loss = penalty, rule, loss
        if np.isnan(gamma) and self.rows and not np.isnan(self.fixed_gamma):  # go on from the fixed one
            own = self.automatic
            own.next = own.used = max(own.next, self.fixed_gamma)
            own.offset_next = own.offset_used = max(own.offset_next, self.fixed_gamma)
        self.alpha, self.fixed_gamma, self.ridge, self.enhanced = alpha, gamma, ridge, enhanced  # NaN: "auto"
        self.intercept, self.average = intercept, average
        if not np.isnan(l1):  # NaN: as `set_l1` says
            self.l1_default = l1
            self.l1 = np.full(self.features, float(l1))

    def set_l1(self, values):
        self.l1 = np.array(values)

    def resize(self, features, tasks):
        features, tasks = max(features, self.features), max(tasks, self.tasks)
        more = (0, tasks - self.tasks), (0, features - self.features)
        self.sums, self.total = np.pad(self.sums, more), np.pad(self.total, more)
        self.l1 = np.pad(self.l1, more[1], constant_values=self.l1_default)
        self.weight = np.pad(self.weight, more[0])
        self.offset_sums = np.pad(self.offset_sums, more[0])
        self.offset_total = np.pad(self.offset_total, more[0])
        self.foresight = {name: np.pad(sums, more[0]) for name, sums in self.foresight.items()}
        self.features, self.tasks = features, tasks

    @property
    def gamma(self):
        """What "auto" has come to."""
        return self.automatic.next

    def flip(self, task):
        for array in (self.sums, self.total, self.offset_sums, self.offset_total):
            array[task] *= -1.0
        self.round = [(q, -g if q == task else g, j, x) for q, g, j, x in self.round]

    # -- equations (9) to (12), with ridge and enhancement -------------------------------------------------------

    def iterate(self):
        """Weights (tasks x features) and intercepts after the steps made so far."""
        if self.steps == 0:
            return np.zeros_like(self.sums), np.zeros(self.tasks)
        t = float(self.steps)
        if self.rule == PER_TASK:
            mean = np.divide(1.0, self.weight, out=np.zeros(self.tasks), where=self.weight > 0)
        else:
            mean = np.full(self.tasks, 1.0 / t)
        u = self.sums * mean[:, None]
        auto = np.isnan(self.fixed_gamma)
        gamma = (self.automatic.used or 1.0) if auto else self.fixed_gamma
        k = self.alpha + self.enhanced * gamma / np.sqrt(t)
        eta = 1.0 / (self.ridge + gamma / np.sqrt(t))
        if self.penalty == L11:
            w = -eta * soft(u, k)
        else:
            v = u if self.penalty == L21 else soft(u, k * self.l1)
            size = np.sqrt(np.einsum("qj,qj->j", v, v))
            ratio = np.divide(k, size, out=np.ones_like(size), where=size > k)
            w = -eta * v * (1.0 - ratio)
        own = self.automatic.offset_used if auto else gamma
        scale = np.sqrt(t) / own if own > 0 else eta
        b = -scale * self.offset_sums * mean if self.intercept else np.zeros(self.tasks)
        return w, b

    def close_round(self):
        if not self.round:
            return
        for q, g, j, x in self.round:
            np.add.at(self.sums[q], j, g * x)  # hashed names may fall together
            self.offset_sums[q] += g
        self.round = []
        self._end_step()

    def _end_step(self):
        self.steps += 1
        self.automatic.used, self.automatic.offset_used = self.automatic.next, self.automatic.offset_next

    def _reach(self, task, weight):
        """What a gradient (its weight included) is multiplied by in the mean after this step."""
        return 1.0 / (self.steps + 1) if self.rule == ROUNDS else 1.0 / (self.weight[task] + weight)

    def _possible(self, z, g, size, y, task, weight):
        """Whether a row with prediction z and gradient g can be learned."""
        if not np.isfinite(z) or not np.isfinite(y) or not size * g * g <= SQUARES:
            return False
        if self.loss != SQUARED:
            return True
        most = ROUNDING * max(self.largest, abs(y))
        if not abs(z) <= most:
            return False
        if np.isnan(self.fixed_gamma):
            return True
        root = np.sqrt(self.steps + 1)
        return abs(g) * size * root * self._reach(task, weight) <= most * (self.ridge * root + self.fixed_gamma)

    @property
    def _curvature(self):
        return 0.25 if self.loss == LOGISTIC else 1.0

    def _after(self, size, task, weight):
        """What gamma becomes with one more row."""
        share = weight * (self.steps + 1) * self._reach(task, weight)
        return self.automatic.then(np.sqrt(size), share**CROWDING, self._curvature)

    def _shortened(self, g, size, task, weight):
        """The gradient cut so that the row's own prediction goes no further than to its target."""
        root, gamma = np.sqrt(self.steps + 1), self.automatic.next
        moved = size / (self.ridge + gamma / root) if size > 0 else 0.0
        moved += root / self.automatic.offset_next if self.intercept else 0.0
        moved *= weight * self._reach(task, weight) * self._curvature
        return g * (WAY / moved) if moved > WAY else g

    def _foresee(self, y, z, task, weight):
        seen = self.foresight
        seen["weight"][task] += weight
        seen["loss"][task] += weight * value(self.loss, z, y)
        seen["hits"][task] += weight * (y * z > 0)
        away = y - seen["mean"][task]
        seen["mean"][task] += away * (weight / seen["weight"][task])
        seen["spread"][task] += weight * away * (y - seen["mean"][task])
        if self.rows & (self.rows - 1) == 0:
            self.curve += [seen["weight"].sum(), seen["loss"].sum()]

    def _learn(self, j, x, y, task, weight):
        with np.errstate(over="ignore", invalid="ignore"):
            size = float(np.bincount(j, x, minlength=1) @ np.bincount(j, x, minlength=1))
            if any(q == task for q, *_ in self.round):
                g = weight * derivative(self.loss, 0.0, y)  # an absurd row ends no round
                if not self._possible(0.0, g, size, y, task, weight):
                    return False
                self.close_round()
            w, b = self.iterate()
            z = float(x @ w[task, j] + b[task])
            g = weight * derivative(self.loss, z, y)
            if not self._possible(z, g, size, y, task, weight):
                return False
        if np.isnan(self.fixed_gamma) or self.rule == ROUNDS:
            self.automatic = self._after(size, task, weight)
        if np.isnan(self.fixed_gamma):
            g = self._shortened(g, size, task, weight)
        if self.average and not self.round:
            self.total += w
            self.offset_total += b
        self.rows += 1
        self._foresee(y, z, task, weight)
        self.largest = max(self.largest, abs(y))
        self.weight[task] += weight
        if self.rule == ROUNDS:
            self.round.append((task, g, np.array(j), np.array(x)))
            return True
        if self.rule == IMPORTANCE:
            g *= (self.steps + 1) / self.weight[task]
        np.add.at(self.sums[task], j, g * x)
        self.offset_sums[task] += g
        self._end_step()
        return True

    # -- rows ------------------------------------------------------------------------------------------------------

    def learn_dense(self, x, y, task, weight):
        every = np.arange(self.features)
        for i in range(len(x)):
            s = 1.0 if weight is None else weight[i]
            if s > 0 and not self._learn(every, x[i], y[i], task[i], s):
                return i
        return len(x)

    def learn_sparse(self, data, indices, indptr, y, task, weight):
        for i in range(len(indptr) - 1):
            span = slice(indptr[i], indptr[i + 1])
            s = 1.0 if weight is None else weight[i]
            if s > 0 and not self._learn(indices[span], data[span], y[i], task[i], s):
                return i
        return len(indptr) - 1

    # Chunks in the plainest form: -1, with nothing done, if an entry is not finite, an index out of range or a label
    # has no code.

    def learn_plain_dense(self, x, y, label, table):
        codes = self._codes(label, table)
        plain = np.all(np.isfinite(x)) and np.all(np.isfinite(y)) and np.all(codes >= 0)
        return self.learn_dense(x, y, codes, None) if plain else -1

    def learn_plain_sparse(self, data, indices, indptr, y, label, table):
        codes = self._codes(label, table)
        plain = np.all(np.isfinite(data)) and np.all(np.isfinite(y)) and np.all(codes >= 0)
        inside = indptr[0] == 0 and indptr[-1] <= len(indices) and np.all(np.diff(indptr) >= 0)
        inside = inside and np.all((indices >= 0) & (indices < self.features))
        return self.learn_sparse(data, indices, indptr, y, codes, None) if plain and inside else -1

    @staticmethod
    def _codes(label, table):
        known = (label >= 0) & (label < len(table))
        return np.where(known, np.append(table, -1)[np.where(known, label, -1)], -1)

    def learn_array(self, x, y, task, weight):
        self._check(x)
        return self._learn(np.arange(self.features), x, y, task, weight)

    def learn_dict(self, x, vocabulary, y, task, weight):
        values = np.array([float(value) for value in x.values()])
        if not np.all(np.isfinite(values)):
            raise ValueError("x contains NaN or infinity")
        fresh = [name for name in x if name not in vocabulary]
        if fresh:  # they become features, if the row can be learned
            with np.errstate(over="ignore"):
                z = self.score_dict(x, vocabulary, task)
                g = weight * derivative(self.loss, z, y)
                if not self._possible(z, g, float(values @ values), y, task, weight):
                    return False
            vocabulary.update({name: self.features + k for k, name in enumerate(fresh)})
            self.resize(self.features + len(fresh), self.tasks)
        index = np.array([vocabulary[name] for name in x], dtype=np.int64)
        return self._learn(index, values, y, task, weight)

    def score_array(self, x, task):
        self._check(x)
        return self.score_sparse(x, np.arange(self.features), task)

    def score_dict(self, x, vocabulary, task):
        known = [name for name in x if name in vocabulary]
        index = np.array([vocabulary[name] for name in known], dtype=np.int64)
        return self.score_sparse(np.array([float(x[name]) for name in known]), index, task)

    def score_sparse(self, value, index, task):
        w, b = self._closed().iterate()
        return float(value @ w[task, index] + b[task])

    def _check(self, x):
        if len(x) != self.features:
            raise ValueError("x has the wrong number of features")
        if not np.all(np.isfinite(x)):
            raise ValueError("x contains NaN or infinity")

    # -- what it has learned -----------------------------------------------------------------------------------------

    def _closed(self):
        """As if the open round ended now."""
        if not self.round:
            return self
        copy = DualAveraging()
        copy.__dict__.update(self.__dict__)
        copy.sums, copy.offset_sums = self.sums.copy(), self.offset_sums.copy()
        copy.automatic = self.automatic.copy()
        copy.close_round()
        return copy

    def coefficients(self, out):
        out[...] = self._closed().iterate()[0]

    def intercepts(self, out):
        out[...] = self._closed().iterate()[1]

    def state(self):
        index = [j for _, _, j, _ in self.round]
        return {
            "shape": np.array([self.features, self.tasks, self.steps, self.rows, 1, 0, 0], dtype=np.int64),
            "sums": self.sums.flatten(),
            "total": self.total.flatten() if self.average else np.zeros(0),
            "sizes": np.zeros(self.features),
            "l1": self.l1.copy(),
            "weight": self.weight.copy(),
            "offset_sums": self.offset_sums.copy(),
            "offset_total": self.offset_total.copy(),
            "round_task": np.array([q for q, *_ in self.round], dtype=np.int64),
            "round_start": np.cumsum([0, *map(len, index)], dtype=np.int64)[:-1],
            "round_index": np.concatenate([*index, np.zeros(0, dtype=np.int64)]).astype(np.int64),
            "round_gradient": np.array([g for _, g, _, _ in self.round], dtype=np.float64),
            "round_value": np.concatenate([*(x for *_, x in self.round), np.zeros(0)]),
            "automatic": np.array([*vars(self.automatic).values(), self.largest]),
            **{f"seen_{name}": sums.copy() for name, sums in self.foresight.items()},
            "seen_curve": np.array(self.curve, dtype=np.float64),
        }

    def restore(self, state):
        features, tasks, self.steps, self.rows, *_ = (int(n) for n in state["shape"])
        self.resize(features, tasks)
        self.sums = state["sums"].reshape(tasks, features).copy()
        if self.average and len(state["total"]):
            self.total = state["total"].reshape(tasks, features).copy()
        self.l1 = state["l1"].copy()
        self.weight = state["weight"].copy()
        self.offset_sums, self.offset_total = state["offset_sums"].copy(), state["offset_total"].copy()
        *own, self.largest = state["automatic"].tolist()
        self.automatic = AutoGamma(*own)
        self.foresight = {name: state[f"seen_{name}"].copy() for name in FORESIGHT}
        self.curve = state["seen_curve"].tolist()
        ends = np.append(state["round_start"][1:], len(state["round_index"])).astype(np.int64)
        self.round = [
            (int(q), float(g), state["round_index"][a:b].copy(), state["round_value"][a:b].copy())
            for q, g, a, b in zip(
                state["round_task"], state["round_gradient"], state["round_start"], ends, strict=False
            )
        ]
