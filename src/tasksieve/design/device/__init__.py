"""Columns on a device that torch knows, a GPU most of the time.

`machine.py`: which device, and how much memory it has. `matrix.py`: X there, as the user's own; `streamed.py`: X that
stays here and passes through. `storage.py`: columns as shards see them. torch is imported only inside of these, and
these only where somebody has a tensor or asks for a device.
"""
