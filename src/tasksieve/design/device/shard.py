"""A shard whose columns, norms and anchors lie on a device: only feature lists and sample-sized vectors cross."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from ..shard import LocalShard
from ..storage.base import ProductRequest, part_read
from .anchor_store import DeviceAnchorStore
from .gauges import Thresholds
from .storage import DeviceStorage

Array = np.ndarray[Any, Any]

_EPS = float(np.finfo(np.float64).eps)
_GAUGE_ENTRIES = 1 << 25  # features x tasks looked at together


class DeviceShard(LocalShard):
    """`LocalShard` on a device; what is a few columns, or of the size of the samples, is done as there."""

    #: a pass is cheap enough to be made at every value
    cheap_passes = True
    joint_bounds = False

    storage: DeviceStorage
    _judged: torch.Tensor | None = None
    _surveyed: Any = None
    _entries: torch.Tensor | None = None
    _ranked: tuple[torch.Tensor, ...] | None = None
    _longest: torch.Tensor | None = None
    _limits: tuple[Any, Thresholds] | None = None

    def _there(self, array: Array) -> torch.Tensor:
        return self.storage.on(array)

    def _here(self, found: torch.Tensor) -> Array:
        return np.asarray(found.cpu().numpy())

    def _rooted(self, squares: torch.Tensor) -> torch.Tensor:
        return squares.clamp_(min=0.0).sqrt_()

    def _widest(self) -> torch.Tensor:
        if self._longest is None:
            self._longest = self._norms.amax(dim=1)
        return self._longest

    def _read(self, asked: list[ProductRequest], counted: bool = True) -> list[torch.Tensor]:
        """Squares are a reading of their own here, which is not counted: readings are cheap."""
        self.passes += part_read(asked, self.n_features) if counted else 0.0
        return self.storage.read_there(asked).products

    def _new_anchor_store(self) -> DeviceAnchorStore:
        return DeviceAnchorStore(self._norms, self.samples.n_tasks)

    def scales_there(self) -> torch.Tensor | None:
        """What columns are divided by, (features, tasks or 1), beside them."""
        self.measure()
        return self._scale

    # -- a pass a value -------------------------------------------------------------------------------------------

    def survey(self, vector: Array, penalty: Any, errors: Array) -> None:
        """A full pass: upper bounds of the gauges of all features, errors included, are kept for `reaching` and
        `leading`. The penalty has `thresholds`."""
        limits, samples = self._thresholds(penalty), self.samples
        self._surveyed = penalty
        self._entries = self._ranked = None
        if limits.l1 is not None:  # gauges are roots: only those of a few will be looked for
            self._entries = self._upper_entries(self._penalised_correlations([vector])[0], limits, errors)
            return
        if self.standardize or (samples.shared and samples.n_tasks > 1) or limits.positive:
            self._judged = self._gauges(self._penalised_correlations([vector])[0], penalty, errors)
            return
        # lengths of the rows are all that is needed: no products are kept
        self.measure()
        found = self.storage.lengths(samples.weighted(samples.project(vector)), samples.offsets)
        self.passes += 1.0
        if len(self._fragile):
            positions = self._there(self._fragile)
            found[positions] = torch.linalg.vector_norm(self._correlations([vector], self._fragile)[0], dim=1)
        found += self._widest() * float(np.linalg.norm(errors))
        group = limits.group
        self._judged = torch.where(group > 0.0, found / group, 0.0) if len(self.unpenalised) else found / group

    def reaching(self, least: float) -> tuple[Array, Array]:
        """Features whose gauges at the last `survey` reach a level, ascending, and these gauges."""
        if self._entries is not None:
            return self._entries_reaching(self._entries, least)
        assert self._judged is not None
        features = (self._judged >= least).nonzero()[:, 0]
        both = torch.stack([features.to(torch.float64), self._judged[features]]).cpu().numpy()
        return both[0].astype(np.int64), both[1]

    def _upper_entries(self, products: torch.Tensor, limits: Thresholds, errors: Array) -> torch.Tensor:
        """What counts of each entry at most, in the place of products."""
        off = self._there(errors)
        for part in self._blocks():
            reach = self._norms[part] * off
            products[part] = limits.sizes(reach + (products[part] if limits.positive else products[part].abs()))
        if len(self.unpenalised):
            products[self._there(self.unpenalised)] = 0.0
        return products

    def _entries_reaching(self, entries: torch.Tensor, least: float) -> tuple[Array, Array]:
        """A gauge is v or more if what v leaves of a row, ``||soft(m, v l1)||``, is not below ``v group``."""
        limits = self._thresholds(self._surveyed)
        there = torch.empty(self.n_features, dtype=torch.bool, device=self.storage.device)
        for part in self._blocks():
            own = limits.part(part)
            assert own.l1 is not None
            left = torch.linalg.vector_norm((entries[part] - (least * own.l1)[:, None]).clamp_(min=0.0), dim=1)
            there[part] = (left >= least * own.group) & (left > 0.0)
        features = there.nonzero()[:, 0]
        found = torch.cat([features.to(torch.float64)[:, None], entries[features]], dim=1).cpu().numpy()
        chosen = found[:, 0].astype(np.int64)
        return chosen, self._surveyed.restrict(chosen).row_gauges(np.ascontiguousarray(found[:, 1:]))

    def leading(self, strength: float) -> tuple[Array, Array]:
        """For a norm that sorts its rows: the features of the first ranks, the largest first, and their gauges at unit
        strength. There are as many as `Sorted.leading` has at a strength, or more, so that no sum of more gauges is
        larger beside the weights of its ranks. The rounding of sums over all features is in the gauges."""
        if self._ranked is None:
            assert self._judged is not None
            ranked, order = torch.sort(self._judged, descending=True, stable=True)
            weights = self._there(self._surveyed.weights)
            self._ranked = ranked, order, torch.cumsum(ranked, 0), torch.cumsum(weights / weights[0], 0)
        ranked, order, sums, totals = self._ranked
        excess = sums / strength - totals
        largest, most = excess.max(dim=0)
        # the last rank of the largest ratio
        peak = len(sums) - 1 - torch.argmax((sums / totals).flip(0))
        over, first, second = torch.stack([largest, most.to(largest.dtype), peak.to(largest.dtype)]).tolist()
        count = int(max(first if over > 0.0 else 0.0, second)) + 1
        both = torch.stack([order[:count].to(torch.float64), ranked[:count]]).cpu().numpy()
        return both[0].astype(np.int64), both[1] * (1.0 + 4.0 * _EPS * (self.n_features + 64))

    def _blocks(self) -> list[slice]:
        """All features, some at a time."""
        step = max(1, _GAUGE_ENTRIES // self.samples.n_tasks)
        return [slice(low, low + step) for low in range(0, self.n_features, step)]

    def _gauges(self, products: torch.Tensor | None, penalty: Any, errors: Array | None) -> torch.Tensor:
        if penalty.thresholds() is None:
            found: torch.Tensor = super()._gauges(products, penalty, errors)
            return found
        limits, off = self._thresholds(penalty), None if errors is None else self._there(errors)
        out = torch.empty(self.n_features, dtype=torch.float64, device=self.storage.device)
        for part in self._blocks():
            own, rows = limits.part(part), None if products is None else products[part]
            if off is not None:
                reach = self._norms[part] * off
                rows = reach if rows is None else reach + (rows if own.positive else rows.abs())
            out[part] = own.gauges(own.sizes(rows))
        return out

    def _thresholds(self, penalty: Any) -> Thresholds:
        """Those of a penalty on the device; of the last one they are kept."""
        if self._limits is None or self._limits[0] is not penalty:
            self._limits = penalty, Thresholds(penalty, self.storage.device)
        return self._limits[1]


DeviceStorage.shard_class = DeviceShard
