"""Packages that a cluster needs, and the client that is to be used."""

from __future__ import annotations

from typing import Any

from ...optional import require
from ..lost import ClusterError


def needed(name: str, what: str) -> Any:
    """A module of the `cluster` extra."""
    return require(name, f"{what} needs", '"tasksieve[cluster]"', ModuleNotFoundError)


def active_client() -> Any:
    """The client that the user has made; never one of our own: where work runs is the user's choice."""
    distributed = needed("distributed", "X on a cluster")
    try:
        return distributed.get_client()
    except ValueError:
        raise ClusterError(
            "X is a dask array or a Zarr store, and there is no active Dask client to work with. Start one: "
            "`from distributed import Client; client = Client()` uses the cores of this machine, `Client(address)` a "
            "cluster that is running."
        ) from None
