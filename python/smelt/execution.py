"""The default device, and waiting for work that is under way."""
from typing import Any

from smelt._smelt import array, devices

__all__ = ["default_device", "eval", "set_default_device", "synchronize"]

_default = "cpu"


def default_device() -> str:
    """Where arrays that functions make from nothing are: 'cpu', until set_default_device."""
    return _default


def set_default_device(device: str) -> None:
    """Sets the device of new arrays: 'cpu' or 'cuda:0'. ValueError for an unknown device."""
    global _default
    name = "cuda:0" if device == "cuda" else device
    if name not in devices():
        raise ValueError(f"device '{device}' is not on this machine; expected one of {', '.join(devices())}")
    _default = name


def eval(*arrays: Any) -> None:
    """Waits until the arrays, also those in lists and dictionaries, are computed. On CPUs they always are."""
    from smelt._smelt import wait
    from smelt.tree import leaves
    for device in {a.device for a in leaves(arrays) if isinstance(a, array)} - {"cpu"}:
        wait(device)


def synchronize(device: str | None = None) -> None:
    """Waits for all work on a device, by default the default one; raises late errors."""
    from smelt._smelt import wait
    wait(device or _default)
