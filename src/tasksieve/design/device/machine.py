"""Which device, and how much memory it has left."""

from __future__ import annotations

from typing import Any

from ...messages import Message, ParameterError, parameter_name, setting, value_error
from ..memory import free_memory

INSTALL = "pip install 'tasksieve[gpu]'"
_KEPT_FREE = 0.15  # of the free memory: for anchors, norms and columns in use


def the_torch(asker: object) -> Any:
    """The module, or an ImportError that says how to get it."""
    try:
        import torch
    except ImportError as error:
        missing = Message("{asker} needs torch, which is not installed: {install}", asker=asker, install=INSTALL)
        raise ImportError(missing) from error
    return torch


def read_device(device: Any) -> Any:
    """A `torch.device` that exists here and computes in double precision, with its number: "cuda", "cuda:1", "cpu"."""
    asked = setting("device", repr(str(device)))
    torch = the_torch(asked)
    try:
        found = torch.device(device)
    except (RuntimeError, TypeError, ValueError) as error:
        raise ParameterError(
            "device", "must name a device that torch knows, such as 'cuda', 'cuda:1' or 'cpu'", device
        ) from error
    if found.type == "cuda":
        if not torch.cuda.is_available():
            built = "is built without CUDA" if torch.version.cuda is None else "finds no driver or no GPU"
            raise value_error(
                "{asked}: torch sees no CUDA device (torch {version} {built}). Install a build of torch for your "
                "GPU, see that nvidia-smi lists it, or leave {it} out: the processor computes the same.",
                asked=asked,
                version=torch.__version__,
                built=built,
                it=parameter_name("device"),
            )
        count = torch.cuda.device_count()
        index = torch.cuda.current_device() if found.index is None else found.index
        if index >= count:
            raise value_error(
                "{asked}: torch sees {count} CUDA device(s), the last is 'cuda:{last}'.",
                asked=asked,
                count=count,
                last=count - 1,
            )
        return torch.device("cuda", index)
    refuse_single_precision(found, "device")
    return found


def refuse_single_precision(device: Any, name: str) -> None:
    """Raise a ValueError for devices on which nothing could be certified, or that hold no numbers."""
    if device.type == "mps":
        raise ValueError(
            f"{name}: 'mps' has no double precision, which certificates need. Use 'cpu', or a CUDA device."
        )
    if device.type == "meta":
        raise ValueError(f"{name}: tensors on 'meta' have no numbers. Use 'cpu', or a CUDA device.")


def free_bytes(device: Any) -> float:
    """Memory that a device could give, with what torch holds there for itself."""
    if device.type != "cuda":
        return free_memory()
    torch = the_torch("a CUDA device")
    free, _ = torch.cuda.mem_get_info(device)
    kept = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return float(free + kept)


def room_on(device: Any) -> float:
    """Bytes of X that a device can hold, with space for all that a fit keeps beside it."""
    return (1.0 - _KEPT_FREE) * free_bytes(device)


def in_words(n_bytes: float) -> str:
    """A size with its unit."""
    for unit, size in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if n_bytes >= size:
            return f"{n_bytes / size:.1f} {unit}"
    return f"{n_bytes:.0f} bytes"


def refuse_too_large(n_bytes: float, device: Any, why: str, instead: str) -> None:
    """Raise a MemoryError where so much more does not fit: how much is needed, how much is there, what to do."""
    free = free_bytes(device)
    if n_bytes > free:
        raise MemoryError(
            f"{why} needs {in_words(n_bytes)} on {device}, where {in_words(free)} are free. {instead}"
        )
