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

_GAUGE_ENTRIES = 1 << 25  # features x tasks looked at together


class DeviceShard(LocalShard):
    """`LocalShard` on a device; what is a few columns, or of the size of the samples, is done as there."""

    #: a pass is cheap enough to be made at every value
    cheap_passes = True
    joint_bounds = False

    storage: DeviceStorage
    _judged: torch.Tensor | None = None
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

    # -- a pass a value -------------------------------------------------------------------------------------------

    def survey(self, vector: Array, penalty: Any, errors: Array) -> None:
        """A full pass: upper bounds of the gauges of all features, errors included, are kept for `reaching`.

        The penalty is the group norm, coefficients of any sign: `VariationalNewton.needs`.
        """
        if self.standardize or (self.samples.shared and self.samples.n_tasks > 1):
            self._judged = self._gauges(self._penalised_correlations([vector])[0], penalty, errors)
            return
        # lengths of the rows are all that is needed: no products are kept
        self.measure()
        samples = self.samples
        found = self.storage.lengths(samples.weighted(samples.project(vector)), samples.offsets)
        self.passes += 1.0
        if len(self._fragile):
            positions = self._there(self._fragile)
            found[positions] = torch.linalg.vector_norm(self._correlations([vector], self._fragile)[0], dim=1)
        found += self._widest() * float(np.linalg.norm(errors))
        group = self._thresholds(penalty).group
        self._judged = torch.where(group > 0.0, found / group, 0.0) if len(self.unpenalised) else found / group

    def reaching(self, least: float) -> tuple[Array, Array]:
        """Features whose gauges at the last `survey` reach a level, ascending, and these gauges."""
        assert self._judged is not None
        features = (self._judged >= least).nonzero()[:, 0]
        both = torch.stack([features.to(torch.float64), self._judged[features]]).cpu().numpy()
        return both[0].astype(np.int64), both[1]

    def _gauges(self, products: torch.Tensor | None, penalty: Any, errors: Array | None) -> torch.Tensor:
        if penalty.thresholds() is None:
            found: torch.Tensor = super()._gauges(products, penalty, errors)
            return found
        limits, off = self._thresholds(penalty), None if errors is None else self._there(errors)
        out = torch.empty(self.n_features, dtype=torch.float64, device=self.storage.device)
        step = max(1, _GAUGE_ENTRIES // self.samples.n_tasks)
        for low in range(0, self.n_features, step):
            part = slice(low, low + step)
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
