"""Variational Newton (`newton`) on a device for several problems at once: the same X, each with its own training rows.

Every array carries the problems as its first axis P. Held-out rows stay in place with weight 0: columns are 0 there, so
such a row adds 1 to the diagonal of K and nothing else. Columns of the working sets are gathered where X lies, centred
and weighted there; a column past the end of a working set is zero. One call of a library serves all problems and tasks,
and a problem whose step would not lower its Phi keeps its point, and takes a damped one in the plain form next time.
"""

from __future__ import annotations

from typing import Any

import torch

_JITTER = 1e-6  # of M's mean diagonal, which is held in single precision
_FIRST_DAMPING, _MORE_DAMPING = 1e-6, 100.0  # of M's mean diagonal, where a step did not lower Phi; then times this


class _Room:
    """Working sets, and what belongs to their point."""

    def __init__(self, problems: int, matrices: int, n: int, tasks: int, width: int, device: Any) -> None:
        def numbers(*shape: int) -> Any:
            return torch.zeros(shape, dtype=torch.float64, device=device)

        small = min(width, n)
        self.columns, self.means = numbers(problems, matrices, n, width), numbers(problems, matrices, width)
        self.lam, self.a, self.damping = numbers(problems, width), numbers(problems, width), numbers(problems)
        # of K or of B, whichever is smaller; residuals' products with the columns, their sizes by row, and Phi
        self.factor = numbers(problems, matrices, small, small)
        self.products, self.sizes = numbers(problems, width, tasks), numbers(problems, width)
        self.value = numbers(problems)


class BatchNewton:
    """Problems on columns `x` (features, padded rows), whose rows are those of X in task order.

    - `rows` (int64 tensor, (matrices, n)): Where the rows of each matrix are; those that fill up have weight 0.
    - `root` (tensor, (P, matrices, n)): Roots of the weights of the training rows of each problem.
    - `labels` (tensor, (P, tasks, n)): Weighted and centred; 0 where the weight is.
    - `fit_intercept`: Whether columns are centred on the training rows.

    One matrix for all tasks, or one for each.
    """

    def __init__(self, x: Any, rows: Any, root: Any, labels: Any, fit_intercept: bool) -> None:
        self._x, self._rows, self._root, self._intercept = x, rows, root, fit_intercept
        self.problems, self.matrices, self.n = root.shape
        self.tasks = labels.shape[1]
        # (P, matrices, n, right-hand sides of a matrix)
        self._one = self.matrices == 1
        self._y = labels.mT[:, None].contiguous() if self._one else labels[..., None]
        totals = (root * root).sum(dim=2, keepdim=True)
        self._share = torch.where(totals > 0.0, 1.0 / totals, 0.0)
        device = x.device
        self._eye = torch.eye(self.n, dtype=torch.float64, device=device)
        self.ridge = torch.zeros(self.problems, dtype=torch.float64, device=device)
        self._room: _Room

    def bytes_of(self, width: int) -> float:
        """Of memory, for working sets of so many columns."""
        small = min(width, self.n)
        per_matrix = 3.0 * self.n * width + 3.0 * small * small + float(width) * small
        return 8.0 * self.problems * (self.matrices * per_matrix + 2.0 * width * width)

    # -- a working set --------------------------------------------------------------------------------------------

    def begin(self, features: Any, lam: Any, a: Any) -> None:
        """Working sets (P, width), with the number of features where there is none, their strengths, and a start."""
        inside = features < len(self._x)
        raw = self._x[torch.where(inside, features, 0)][:, :, self._rows.flatten()].to(torch.float64)
        raw = raw.reshape(*features.shape, self.matrices, self.n).permute(0, 2, 3, 1)  # (P, matrices, n, width)
        raw = raw * inside[:, None, None, :]
        room = _Room(self.problems, self.matrices, self.n, self.tasks, features.shape[1], raw.device)
        self._room = room
        if self._intercept:
            weights = (self._root * self._root * self._share)[:, :, None, :]
            for _ in range(2):  # what rounding leaves of a large mean goes the second time
                mean = weights @ raw
                raw = raw - mean
                room.means += mean[:, :, 0]
        room.columns.copy_(raw * self._root[..., None])
        room.lam.copy_(lam)
        room.a.copy_(a * inside)
        for kept, found in zip(_of_point(room), self._evaluate(room.a), strict=True):
            kept.copy_(found)

    def _evaluate(self, a: Any) -> tuple[Any, Any, Any, Any]:
        """The factor of K or of B, products of the residual with the columns, their sizes by row, and Phi."""
        x, y, lam = self._room.columns, self._y, self._room.lam
        if x.shape[3] < self.n:  # B = I + D G D
            scaled = x * a.sqrt()[:, None, None, :]
            inner = scaled.mT @ scaled
            inner.diagonal(dim1=2, dim2=3).add_(1.0)
            factor, info = torch.linalg.cholesky_ex(inner)
            residual = y - scaled @ _solve(factor, scaled.mT @ y)
        else:  # K = I + X diag(a) X'
            outer = (x * a[:, None, None, :]) @ x.mT
            outer += self._eye
            factor, info = torch.linalg.cholesky_ex(outer)
            residual = _solve(factor, y)
        products = self._by_row(x.mT @ residual)
        sizes = torch.linalg.vector_norm(products, dim=2)
        ridge = self.ridge[:, None]
        strengths = (lam * lam * a / (1.0 - ridge * a)).sum(dim=1)
        value = 0.5 * ((residual * y).sum(dim=(1, 2, 3)) + strengths)
        value = torch.where(info.amax(dim=1) > 0, torch.inf, value)
        return factor, products, sizes, value.nan_to_num(nan=torch.inf)

    def _by_row(self, products: Any) -> Any:
        """(P, matrices, width, right-hand sides) -> (P, width, tasks)."""
        return products[:, 0] if self._one else products[..., 0].mT

    def _by_matrix(self, rows: Any) -> Any:
        """The other way round."""
        return rows[:, None] if self._one else rows.mT[..., None]

    # -- a step ---------------------------------------------------------------------------------------------------

    def step(self, count: int) -> None:
        """Newton's step over at most so many rows of each problem: those that are not zero, then the strongest."""
        room, ridge = self._room, self.ridge[:, None]
        a, sizes, lam = room.a, room.sizes, room.lam
        rank = torch.where(a > 0.0, torch.inf, torch.where(sizes > lam, sizes / lam, -1.0))
        rank, chosen = rank.sort(dim=1, descending=True, stable=True)
        chosen, inside = chosen[:, :count], (rank[:, :count] > 0.0) & (sizes.gather(1, chosen[:, :count]) > 0.0)
        own, strength = a.gather(1, chosen), lam.gather(1, chosen)
        size = torch.where(inside, sizes.gather(1, chosen), 1.0)
        live = inside.to(torch.float64)
        m = self._system(chosen, live / size)
        diagonal = m.diagonal(dim1=1, dim2=2)
        damping, rest = room.damping[:, None], strength / (1.0 - ridge * own)
        damped = damping > 0.0
        more = torch.where(damped, (rest / size) ** 2 / (1.0 - ridge * own), size / strength)
        diagonal.add_((live * ridge * more).to(m.dtype))
        mean = (live * diagonal).sum(dim=1, keepdim=True) / live.sum(dim=1, keepdim=True).clamp(min=1.0)
        diagonal.add_((1.0 - live + (_JITTER + damping) * mean).to(m.dtype))  # rows that fill up: an identity
        right = torch.where(damped, 0.5 * (size - rest) * (size + rest) / size, size * (size / rest - 1.0))
        right, lower = (live * right).to(m.dtype), (-live * own * size).to(m.dtype)
        v = _bounded(m, right, lower).to(torch.float64)
        direction = torch.zeros_like(a).scatter_(1, chosen, live * v / size)
        direction = torch.where((a > 0.0) & (sizes == 0.0), -a, direction)
        following = a + direction
        following = torch.where(following <= 1e-12 * a, 0.0, following)
        # a < 1/ridge is the domain of Phi
        following = torch.where(ridge > 0.0, torch.minimum(following, 0.5 * (a + 1.0 / ridge)), following)
        there = self._evaluate(following)
        lower_phi = there[-1] <= room.value + 1e-13 * room.value.abs()
        less, more = room.damping / _MORE_DAMPING, (_MORE_DAMPING * room.damping).clamp(min=_FIRST_DAMPING)
        room.damping.copy_(torch.where(lower_phi, torch.where(less < _FIRST_DAMPING, 0.0, less), more))
        for kept, found in zip((a, *_of_point(room)), (following, *there), strict=True):
            kept.copy_(torch.where(lower_phi.reshape((-1,) + (1,) * (kept.dim() - 1)), found, kept))

    def _system(self, chosen: Any, factor: Any) -> Any:
        """``M = sum_t (u_t u_t') o X_t' K_t^-1 X_t`` of some columns, in single precision."""
        room, x = self._room, self._room.columns
        u = room.products.gather(1, chosen[:, :, None].expand(-1, -1, self.tasks)) * factor[:, :, None]
        own = x.gather(3, chosen[:, None, None, :].expand(-1, *x.shape[1:3], -1))
        if x.shape[3] >= self.n:
            whitened = torch.linalg.solve_triangular(room.factor, own, upper=False)
            if self._one:
                flat = whitened[:, 0].to(torch.float32)
                return (flat.mT @ flat) * (u @ u.mT).to(torch.float32)
            z = (whitened * u.mT[:, :, None, :]).to(torch.float32).flatten(1, 2)
            return z.mT @ z
        # X'K^-1X = G - G D B^-1 D G, B of all columns in play
        scaled = (x * room.a.sqrt()[:, None, None, :]).mT @ own
        cross = torch.linalg.solve_triangular(room.factor, scaled, upper=False)
        within = own.mT @ own - cross.mT @ cross
        if self._one:
            return (within[:, 0] * (u @ u.mT)).to(torch.float32)
        return (within * (u.mT[:, :, :, None] * u.mT[:, :, None, :])).sum(dim=1).to(torch.float32)

    # -- what was found -------------------------------------------------------------------------------------------

    def coefficients(self) -> Any:
        """Rows of W, (P, width, tasks)."""
        return self._room.a[:, :, None] * self._room.products

    def offsets(self, rows: Any) -> Any:
        """What centring took of the scores of rows of W, (P, tasks)."""
        means = self._room.means
        return (means[:, 0, :, None] * rows).sum(dim=1) if self._one else (means * rows.mT).sum(dim=2)

    def facts(self, rows: Any, rounding: float) -> tuple[Any, Any]:
        """Of rows of W: the residual (P, tasks, n), free of the constant; and, problem by problem, the square of the
        residual (that of the ridge included), its product with the fit, the penalty, and a bound of the largest gauge.
        Products are off by at most `rounding` times the lengths of column and residual."""
        columns, lam = self._room.columns, self._room.lam
        residual = self._y - columns @ self._by_matrix(rows)
        if self._intercept:
            root = self._root[..., None]
            residual = residual - root * ((root * residual).sum(dim=2, keepdim=True) * self._share[..., None])
        ridge = self.ridge[:, None, None]
        products = self._by_row(columns.mT @ residual) - ridge * rows
        square = (residual * residual).sum(dim=(1, 2, 3)) + self.ridge * (rows * rows).sum(dim=(1, 2))
        inner = (products * rows).sum(dim=(1, 2))
        norm = (lam * torch.linalg.vector_norm(rows, dim=2)).sum(dim=1)
        lengths = torch.linalg.vector_norm(columns, dim=2).amax(dim=1)  # what products are off grows with these
        off = rounding * lengths * square.sqrt()[:, None]
        polar = ((torch.linalg.vector_norm(products, dim=2) + off) / lam).amax(dim=1)
        flat = residual[:, 0].mT if self._one else residual[..., 0]
        return flat, torch.stack([square, inner, norm, polar])


def _of_point(room: _Room) -> tuple[Any, Any, Any, Any]:
    return room.factor, room.products, room.sizes, room.value


def _solve(factor: Any, right: Any) -> Any:
    """``(L L')^-1 b`` by two substitutions."""
    half = torch.linalg.solve_triangular(factor, right, upper=False)
    return torch.linalg.solve_triangular(factor.mT, half, upper=True)


def _systems(m: Any, right: Any) -> Any:
    """``M_p^-1 b_p`` of symmetric positive definite systems."""
    return _solve(torch.linalg.cholesky_ex(m)[0], right[..., None])[..., 0]


def _bounded(m: Any, right: Any, lower: Any) -> Any:
    """About ``argmin 1/2 v'Mv - b'v`` over ``v >= lower``: solved, and once more with the rows below their bound at it;
    a direction need not be exact."""
    v = _systems(m, right)
    fixed = ~(v >= lower)
    free = (~fixed).to(m.dtype)
    held = torch.where(fixed, lower, 0.0)
    masked = m * free[:, :, None] * free[:, None, :]
    masked.diagonal(dim1=1, dim2=2).add_(1.0 - free)
    left = (right - (m @ held[..., None])[..., 0]) * free
    return torch.maximum(_systems(masked, left) + held, lower).nan_to_num()
