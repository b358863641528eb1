"""A shard whose columns, norms and anchors lie on a device: only feature lists and sample-sized vectors cross."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from ..samples import Samples
from ..shard import FRAGILE_RATIO, TAKE_BLOCK, LocalShard
from .anchor_store import DeviceAnchorStore
from .gauges import Thresholds
from .storage import DeviceStorage

Array = np.ndarray[Any, Any]

_EPS = float(np.finfo(np.float64).eps)
_GAUGE_ENTRIES = 1 << 25  # features x tasks looked at together


class DeviceShard(LocalShard):
    """`LocalShard` on a device; what is a few columns, or of the size of the samples, is done as there.

    - `samples`, `standardize`, `unpenalised`, `n_threads`: As of `LocalShard`.
    """

    #: a pass is cheap enough to be made at every value
    cheap_passes = True

    def __init__(
        self, storage: DeviceStorage, samples: Samples, *, standardize: bool, unpenalised: Array, n_threads: int
    ) -> None:
        super().__init__(storage, samples, standardize=standardize, unpenalised=unpenalised, n_threads=n_threads)
        self.columns = storage
        self._lengths: torch.Tensor | None = None  # norms, (features, tasks), or (features, 1) where all tasks agree
        self._scales: torch.Tensor | None = None  # of the same shape
        self._device_shelf: DeviceAnchorStore | None = None
        self._judged: torch.Tensor | None = None
        self._longest: torch.Tensor | None = None
        self._limits: tuple[Any, Thresholds] | None = None

    # -- columns --------------------------------------------------------------------------------------------------

    def measure(self) -> None:
        if self._lengths is None:
            self._measure_columns(None)

    def _measured(self) -> torch.Tensor:
        self.measure()
        assert self._lengths is not None
        return self._lengths

    def norms(self, features: Array | None = None) -> Array:
        found = self._measured()
        chosen = found if features is None else found[self.columns.on(np.asarray(features, dtype=np.int64))]
        return np.broadcast_to(chosen.cpu().numpy(), (len(chosen), self.samples.n_tasks))

    def longest(self, features: Array | None = None) -> Array:
        if self._largest is None:
            self._largest = np.asarray(self._kappa().cpu().numpy())
        return self._largest if features is None else self._largest[features]

    def scale(self, features: Array) -> Array:
        self._measured()
        assert self._scales is not None
        chosen = self._scales[self.columns.on(np.asarray(features, dtype=np.int64))].cpu().numpy()
        return np.broadcast_to(chosen, (len(features), self.samples.n_tasks))

    def correlate(self, r: Array, features: Array | None = None) -> Array:
        return np.asarray(self._correlations(r, features).cpu().numpy())

    def _correlations(self, r: Array, features: Array | None = None) -> torch.Tensor:
        """``<x~_jt, r_t>``, on the device."""
        samples, projected = self.samples, self.samples.project(r)
        if features is None and self._lengths is None:
            out = self._measure_columns(projected)
        else:
            self._measured()
            out = self.columns.multiply([samples.weighted(projected)], samples.offsets, samples.shared, features)[0]
            self.passes += 1.0 if features is None else len(features) / max(self.n_features, 1)
        if len(self._fragile):
            chosen = self._fragile if features is None else np.flatnonzero(np.isin(features, self._fragile))
            for low in range(0, len(chosen), TAKE_BLOCK):
                part = chosen[low : low + TAKE_BLOCK]
                columns = self._centred(part if features is None else features[part]).columns
                out[self.columns.on(part)] = self.columns.on(self._packed_products(columns, projected))
        if self._scales is not None:
            scales = self._scales if features is None else self._scales[self.columns.on(features)]
            out /= scales
        return out

    def _penalised_correlations(self, vector: Array) -> torch.Tensor:
        """Those of all features; 0 for unpenalised ones, whose correlations are never used."""
        products = self._correlations(vector)
        if len(self.unpenalised):
            products[self.columns.on(self.unpenalised)] = 0.0
        return products

    def _measure_columns(self, projected: Array | None) -> torch.Tensor:
        """`LocalShard._first_pass` and `_measure` on the device; raw products with a projected vector if one is given.

        Squares are a reading of their own here: readings are cheap.
        """
        samples, root = self.samples, self.samples.root_weights
        weights = np.ones(samples.n_samples) if root is None else np.square(root)
        offsets, shared = samples.offsets, samples.shared
        if samples.uniform:  # the first task represents all
            n = self.storage.n_rows
            offsets, shared, weights = np.array([0, n]), False, np.ascontiguousarray(weights[:n])
        rows = [samples.weighted(column)[: len(weights)] for column in samples.basis]
        raw = self.columns.multiply([weights], offsets, shared, squares=True)[0]
        loadings = self.columns.multiply(rows, offsets, shared) if rows else []
        products = torch.empty(0)
        if projected is not None:
            products = self.columns.multiply([samples.weighted(projected)], samples.offsets, samples.shared)[0]
        self.passes += 1.0
        self._set_lengths(raw, loadings, weights)
        return products

    def _set_lengths(self, raw: torch.Tensor, loadings: list[torch.Tensor], weights: Array) -> None:
        squares = raw.clone()
        for loading in loadings:
            squares -= loading * loading
        spread = squares
        if self.standardize and loadings and not self.samples.fit_intercept:
            spread = raw
        elif self.standardize and len(loadings) > 1:
            spread = raw - loadings[0] * loadings[0]
        self.rounding = 4.0 * (self.samples.depth + 8) * _EPS
        if len(self.samples.basis):
            lost = self.rounding * raw
            self.rounding *= FRAGILE_RATIO
            low = (squares < raw / FRAGILE_RATIO**2).any(dim=1)
            self._fragile = low.nonzero()[:, 0].cpu().numpy()
            if self.standardize and spread is squares:
                spread = squares.clone()
            squares += lost
            for start in range(0, len(self._fragile), TAKE_BLOCK):
                part = self._fragile[start : start + TAKE_BLOCK]
                found, positions, width = self._centred(part), self.columns.on(part), squares.shape[1]
                whole = np.square(found.sizes)
                left = np.maximum(found.squares, whole / FRAGILE_RATIO**2)[:, :width]
                squares[positions] = self.columns.on(left)
                if self.standardize:
                    spread[positions] = self.columns.on(whole[:, :width])
        if self.standardize:
            totals = self.samples.task_sums(weights) if not self.samples.uniform else np.array([weights.sum()])
            shares = np.divide(1.0, totals, out=np.zeros_like(totals), where=totals > 0.0)
            scales = (spread * self.columns.on(shares)).clamp(min=0.0).sqrt()
            self._scales = torch.where(scales == 0.0, torch.ones_like(scales), scales)
            squares = squares / (self._scales * self._scales)
        self._lengths = squares.clamp_(min=0.0).sqrt_()

    # -- anchors --------------------------------------------------------------------------------------------------

    def remember(self, vector: Array, penalty: Any, errors: Array | None = None) -> Array:
        products = self._penalised_correlations(vector)
        if self._device_shelf is None:
            self._device_shelf = DeviceAnchorStore(self._measured(), self.samples.n_tasks)
        self._device_shelf.store(products)
        return np.asarray(self._gauges(products, penalty, errors).cpu().numpy())

    def error_gauges(self, errors: Array, penalty: Any) -> Array:
        nothing = torch.zeros((self.n_features, self.samples.n_tasks), dtype=torch.float64, device=self.columns.device)
        return np.asarray(self._gauges(nothing, penalty, errors).cpu().numpy())

    def forget(self, m: int) -> None:
        assert self._device_shelf is not None
        self._device_shelf.drop(m)

    def bound(self, vector: Any, penalty: Any, **ball: Any) -> tuple[Array, Array]:
        assert self._device_shelf is not None
        return self._device_shelf.bound(vector, penalty, **ball)

    def ball_bound(self, *arguments: Any) -> Array:
        assert self._device_shelf is not None
        return self._device_shelf.ball_bound(*arguments)

    # -- a pass a value -------------------------------------------------------------------------------------------

    def survey(self, vector: Array, penalty: Any, errors: Array) -> None:
        """A full pass: upper bounds of the gauges of all features, errors included, are kept for `reaching`."""
        thresholds = penalty.thresholds()
        plain = thresholds is not None and thresholds[1] is None and not penalty.positive
        if not plain or self.standardize or (self.samples.shared and self.samples.n_tasks > 1):
            self._judged = self._gauges(self._penalised_correlations(vector), penalty, errors)
            return
        # lengths of the rows are all that is needed: no products are kept
        self.measure()
        samples = self.samples
        found = self.columns.lengths(samples.weighted(samples.project(vector)), samples.offsets)
        self.passes += 1.0
        if len(self._fragile):
            positions = self.columns.on(self._fragile)
            found[positions] = torch.linalg.vector_norm(self._correlations(vector, self._fragile), dim=1)
        found += self._kappa() * float(np.linalg.norm(errors))
        group = self._thresholds(penalty).group
        self._judged = torch.where(group > 0.0, found / group, 0.0) if len(self.unpenalised) else found / group

    def _kappa(self) -> torch.Tensor:
        """Largest norm of each feature over the tasks."""
        if self._longest is None:
            self._longest = self._measured().amax(dim=1)
        return self._longest

    def reaching(self, least: float) -> tuple[Array, Array]:
        """Features whose gauges at the last `survey` reach a level, ascending, and these gauges."""
        assert self._judged is not None
        features = (self._judged >= least).nonzero()[:, 0]
        both = torch.stack([features.to(torch.float64), self._judged[features]]).cpu().numpy()
        return both[0].astype(np.int64), both[1]

    def _gauges(self, products: torch.Tensor, penalty: Any, errors: Array | None) -> torch.Tensor:
        """Gauges, or upper bounds where products of a column of norm 1 may be off by `errors`, task by task."""
        lengths = self._measured()
        out = torch.empty(self.n_features, dtype=torch.float64, device=self.columns.device)
        if penalty.thresholds() is None:
            everything = np.arange(self.n_features)
            for part in penalty.pieces(max(1, _GAUGE_ENTRIES // self.samples.n_tasks)):
                index = part if isinstance(part, slice) else self.columns.on(np.asarray(part))
                own, here = penalty.restrict(everything[part]), products[index].cpu().numpy()
                if errors is None:
                    found = own.row_gauges(here)
                else:
                    found = own.upper_gauges(here, lengths[index].cpu().numpy() * errors)
                out[index] = self.columns.on(np.asarray(found))
            return out
        limits = self._thresholds(penalty)
        off = None if errors is None else self.columns.on(errors)
        step = max(1, _GAUGE_ENTRIES // self.samples.n_tasks)
        for low in range(0, self.n_features, step):
            part = slice(low, min(low + step, self.n_features))
            own_limits, here = limits.part(part), products[part]
            if off is None:
                out[part] = own_limits.gauges(own_limits.sizes(here))
                continue
            sizes = here if own_limits.positive else here.abs()
            sizes = sizes + lengths[part] * off
            out[part] = own_limits.gauges(sizes.clamp(min=0.0) if own_limits.positive else sizes)
        return out

    def _thresholds(self, penalty: Any) -> Thresholds:
        """Those of a penalty on the device; of the last one they are kept."""
        if self._limits is None or self._limits[0] is not penalty:
            self._limits = penalty, Thresholds(penalty, self.columns.device)
        return self._limits[1]


DeviceStorage.shard_class = DeviceShard
