"""Files of arrays in the format of safetensors, as which weights are published. No other package is needed."""

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from smelt import _smelt
from smelt._smelt import array

__all__ = ["File", "load", "save", "tensor"]


class File(NamedTuple):
    """What a file has. Arrays of the formats fp8_e4m3, fp8_e5m2, ue8m0 and fp4_e2m1 are their bytes (uint8), which
    `smelt.Tensor.from_array(file.arrays[name], file.elements[name])` takes without a copy."""

    arrays: dict[str, array]
    """By name, in the order of the data. Pages of the file are read when they are used."""
    elements: dict[str, str]
    """The names of the element types: "float16", "fp8_e4m3"."""
    shapes: dict[str, tuple[int, ...]]
    """The shapes in elements."""
    metadata: dict[str, str]


def load(path: str | os.PathLike[str]) -> File:
    """Opens a file. OSError where it cannot be read, ValueError with the reason where it is damaged."""
    entries, metadata = _smelt._safetensors_load(os.fsdecode(path))
    return File({name: values for name, _, _, values in entries}, {name: element for name, element, _, _ in entries},
                {name: shape for name, _, shape, _ in entries}, metadata)


def tensor(path: str | os.PathLike[str], name: str) -> _smelt.Tensor:
    """A tensor of an array and its scales, which the file has under a related name, as one object: `w` with `w_scale_inv`,
    `w_scale` or `w_scales`; `w_blocks` or `w_packed` with `w_scales` or `w_scale`; `layer.weight` with `layer.scales`.
    Bytes as scales are ue8m0, and bytes or words as data fp4_e2m1 or fp8_e4m3 in groups of 32. ValueError if the file
    lacks either array, or for shapes that do not belong together."""
    if not isinstance(name, str):
        raise TypeError(f"safetensors.tensor: name is of type {type(name).__name__}; expected a string")
    return _smelt._safetensors_tensor(os.fsdecode(path), name)


def save(path: str | os.PathLike[str], arrays: Mapping[str, Any], elements: Mapping[str, Any] | None = None,
         metadata: Mapping[str, str] | None = None) -> None:
    """Writes arrays of any library, or the data of tensors, whole or not at all. `elements`: names of the element types
    of arrays that are bytes of other formats."""
    for what, given in (("arrays", arrays), ("elements", elements or {}), ("metadata", metadata or {})):
        if not isinstance(given, Mapping):
            raise TypeError(f"safetensors.save: {what} is of type {type(given).__name__}; expected a dict")
        for name in given:
            if not isinstance(name, str):
                raise TypeError(f"safetensors.save: {what} has the name {name!r}; expected a string")
    for name, text in (metadata or {}).items():
        if not isinstance(text, str):
            raise TypeError(f"safetensors.save: metadata {name!r} is {text!r}; expected a string")
    unknown = set(elements or {}) - set(arrays)
    if unknown:
        raise ValueError(f"safetensors.save: elements has {sorted(unknown)[0]!r}, which arrays lacks")
    entries: list[tuple[str, Any, Any]] = []
    for name, values in arrays.items():
        element = (elements or {}).get(name)
        if isinstance(values, _smelt.Tensor):
            element = values.dtype if element is None else element
            values = values.array()
        entries.append((name, element, values))
    _smelt._safetensors_save(os.fsdecode(path), entries, list((metadata or {}).items()))
