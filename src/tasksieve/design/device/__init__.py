"""Columns on a device that torch knows, a GPU most of the time.

`machine.py`: which device, and how much memory it has. `matrix.py`: X there, as estimators take it; `streamed.py`: X
that stays here and passes through. `storage.py`, `shard.py` and what they use:
columns and all that is features x tasks about them, on the device; these import torch, and are themselves imported only
where X is a tensor or a device was requested.
"""
