"""Operations for graphs: smelt's own by name, and registered ones."""
from collections.abc import Sequence
from typing import Any

from smelt import _smelt, operations
from smelt._smelt import array
from smelt.graph.building import TensorType
from smelt.graph.driver import as_array
from smelt.operations import *  # noqa: F403

__all__ = ["custom"]
__all__ += operations.__all__


def custom(name: str, values: Sequence[Any], out_types: Sequence[TensorType] | None = None,
           parameters: dict[str, Any] | None = None, device: Any = None) -> list[array]:
    """The outputs of a registered operation: a node's values if one of `values` is a value of a graph.

    out_types: of the outputs; an operation with a shape function needs none. parameters: compile-time parameters, of
    type bool, int, float or str. device: for arrays, where it runs."""
    types = None if out_types is None else [(t.dtype, t.shape) for t in out_types]
    return _smelt.custom(name, [as_array(value) for value in values], types, parameters, device)
