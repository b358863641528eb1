"""Columns on a device, through torch: imported only when X is a tensor or a device is asked for."""

from .shard import DeviceShard
from .storage import DeviceStorage

__all__ = ["DeviceShard", "DeviceStorage"]
