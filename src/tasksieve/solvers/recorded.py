"""Work on a device that is done again and again: on a GPU its kernels are recorded once, and replayed from then on.

A record is tied to the memory that it read and wrote. So this memory is kept between fits of the same shape, together
with the records: the next fit writes its own numbers there, and replays. X itself is not kept: where it lies is a part
of what such a shape is, and a record is replayed by fits of an X at the same place only.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any

import torch

_SHAPES = 3  # of fits, whose memory is kept: the path and the folds of a cross-validation, and one more
_SHARE = 0.05  # of the device's memory, that one of them may keep


class Recorded:
    """Memory by name, and work on it by key. One fit uses it at a time (`borrow`)."""

    _kept: OrderedDict[Hashable, Recorded] = OrderedDict()  # noqa: RUF012
    _lock = threading.Lock()

    def __init__(self, shape: Hashable, device: Any) -> None:
        self.shape, self.device = shape, device
        self._memory: dict[str, Any] = {}
        #: whatever else belongs to the memory, by width
        self.rooms: dict[int, Any] = {}
        self._graphs: dict[Hashable, Any] = {}
        self._pool: Any = None
        self._records = device.type == "cuda"

    @classmethod
    def borrow(cls, shape: Hashable, device: Any) -> Recorded:
        """What is kept of this shape, until it is given back."""
        with cls._lock:
            return cls._kept.pop((shape, device), None) or cls(shape, device)

    def give_back(self) -> None:
        """For the next fit of this shape, if it is not too much to keep."""
        held = sum(part.numel() * part.itemsize for part in self._memory.values())
        if not self._records or held > _SHARE * torch.cuda.get_device_properties(self.device).total_memory:
            return
        with self._lock:
            self._kept[self.shape, self.device] = self
            while len(self._kept) > _SHAPES:
                self._kept.popitem(last=False)

    def numbers(self, name: str, *shape: int) -> Any:
        """Numbers in double precision under a name: whatever was left there, zeros at first."""
        if name not in self._memory:
            self._memory[name] = torch.zeros(shape, dtype=torch.float64, device=self.device)
        return self._memory[name]

    def keep(self, name: str, given: Any) -> Any:
        """A tensor under a name, as it is given to this fit."""
        if name not in self._memory:
            self._memory[name] = given.clone(memory_format=torch.contiguous_format)
        else:
            self._memory[name].copy_(given)
        return self._memory[name]

    def run(self, key: Hashable, work: Callable[[], None]) -> None:
        """Do some work that reads and writes nothing but what is kept: as it is the first time, recorded the second.

        Only the main thread records: torch does not record in several threads at once.
        """
        graph = self._graphs.get(key)
        if graph is None or not self._records:
            self._graphs[key] = False
            work()
            return
        if graph is False:
            if threading.current_thread() is not threading.main_thread():
                work()
                return
            graph = torch.cuda.CUDAGraph()
            self._pool = self._pool or torch.cuda.graph_pool_handle()
            try:
                with torch.cuda.graph(graph, pool=self._pool, capture_error_mode="thread_local"):
                    work()
            except RuntimeError:  # a library that cannot be recorded: the same calls, one by one
                self._records = False
                work()
                return
            self._graphs[key] = graph
        graph.replay()
