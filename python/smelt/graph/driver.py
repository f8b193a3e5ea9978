"""Devices, and tensors on them."""
from typing import Any

import smelt
from smelt._smelt import Dtype, array, devices

__all__ = ["Accelerator", "accelerator_count", "CPU", "Device", "DType", "Tensor"]


class DType:
    """Element types by name: DType.float32 is smelt.float32."""
    bool = smelt.bool_
    int8 = smelt.int8
    int16 = smelt.int16
    int32 = smelt.int32
    int64 = smelt.int64
    uint8 = smelt.uint8
    uint16 = smelt.uint16
    uint32 = smelt.uint32
    uint64 = smelt.uint64
    float16 = smelt.float16
    bfloat16 = smelt.bfloat16
    float32 = smelt.float32
    float64 = smelt.float64
    complex64 = smelt.complex64


class Device:
    """A device by smelt's name for it. ValueError if this machine does not have it."""

    def __init__(self, name: str):
        if name not in devices():
            raise ValueError(f"device '{name}' is not on this machine; expected one of {', '.join(devices())}")
        self.name = name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device) and other.name == self.name

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f"Device('{self.name}')"


def CPU() -> Device:
    """The host."""
    return Device("cpu")


def Accelerator(index: int = 0) -> Device:
    """A GPU by its number. ValueError if this machine does not have it."""
    return Device(f"cuda:{index}")


def accelerator_count() -> int:
    """The number of GPUs that can be used."""
    return sum(name.startswith("cuda") for name in devices())


def device_name(device: "Device | str | None") -> str:
    """smelt's name of a device; None is the host."""
    if device is None:
        return "cpu"
    return device.name if isinstance(device, Device) else Device("cuda:0" if device == "cuda" else device).name


def as_array(value: Any) -> array:
    """The smelt.array of a Tensor, an array of any library, or a number."""
    if isinstance(value, Tensor):
        return value.array
    return value if isinstance(value, array) else smelt.asarray(value)


class Tensor:
    """An array with its device: what goes into a model and comes out of it."""

    def __init__(self, values: Any):
        self.array = as_array(values)

    @staticmethod
    def from_numpy(values: Any) -> "Tensor":
        """A tensor of the elements of a NumPy array, on the host."""
        return Tensor(values)

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes."""
        return self.array.shape

    @property
    def dtype(self) -> Dtype:
        """The element type."""
        return self.array.dtype

    @property
    def device(self) -> Device:
        """The device that holds its elements."""
        return Device(self.array.device)

    def to(self, device: "Device | str") -> "Tensor":
        """The tensor on a device: itself if it is there."""
        name = device_name(device)
        if name.startswith("cpu") and self.array.device == "cpu":
            return self
        return self if self.array.device == name else Tensor(self.array.to(name))

    def to_numpy(self) -> Any:
        """A NumPy array of the elements, on the host."""
        import numpy
        return numpy.array(self.array)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        made = self.to_numpy()
        return made if dtype is None else made.astype(dtype)

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()

    def __getitem__(self, key: Any) -> array:
        return self.array[key]

    def __repr__(self) -> str:
        return f"Tensor({self.array!r}, device={self.array.device})"
