"""Registering operations."""
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from smelt import _smelt
from smelt.graph.building import TensorType
from smelt.graph.ops import custom

__all__ = ["Operation", "operation"]


def _types(made: Any) -> list[tuple[Any, tuple[int, ...]]]:
    return [(t.dtype, t.shape) for t in (made if isinstance(made, (list, tuple)) else [made])]


def _list(made: Any) -> list:
    return list(made) if isinstance(made, (list, tuple)) else [made]


def _keywords(function: Callable, offered: dict[str, Any], parameters: dict[str, Any]) -> dict[str, Any]:
    """The parameters, and what is offered besides if the function has a keyword for it."""
    known = inspect.signature(function).parameters
    every = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in known.values())
    return {**{name: value for name, value in offered.items() if name in known or every}, **parameters}


class Operation:
    """A registered operation: calling it computes it, or adds a node to the graph of its values."""

    def __init__(self, name: str, function: Callable, shape: Callable | None, opaque: bool = False):
        self.name, self._opaque = name, opaque
        self.__doc__ = function.__doc__
        self._function, self._shape = function, shape
        self._vjp: Callable | None = None
        self._jvp: Callable | None = None
        self._register()

    def __call__(self, *values: Any, out_types: Sequence[TensorType] | None = None, **parameters: Any) -> Any:
        made = custom(self.name, list(values), out_types, parameters)
        return made[0] if len(made) == 1 else made

    def vjp(self, function: Callable) -> Callable:
        """Sets the vector-Jacobian product: function(inputs, cotangents, outputs, **parameters) returns a gradient, or
        None for zeros, for each input. Tuples of arrays."""
        self._vjp = function
        self._register()
        return function

    def jvp(self, function: Callable) -> Callable:
        """Sets the Jacobian-vector product: function(inputs, tangents, outputs, **parameters) returns a tangent for each
        output."""
        self._jvp = function
        self._register()
        return function

    def _register(self) -> None:
        function, shape, vjp, jvp = self._function, self._shape, self._vjp, self._jvp

        def infer(inputs: list, device: str, parameters: dict, types: list) -> list:
            assert shape is not None
            return _types(shape(*inputs, **parameters))

        def run(inputs: list, device: str, parameters: dict, types: list) -> list:
            offered = {"device": device, "out_types": [TensorType(dtype, sizes) for dtype, sizes in types]}
            return _list(function(*inputs, **_keywords(function, offered, parameters)))

        def derivative(rule: Callable) -> Callable:
            def differentiate(inputs: list, device: str, parameters: dict, types: list, outputs: list, others: list) -> list:
                return _list(rule(tuple(inputs), tuple(others), tuple(outputs), **parameters))
            return differentiate

        _smelt.register_operation(self.name, infer if shape else None, run, derivative(vjp) if vjp else None,
                                  derivative(jvp) if jvp else None, self._opaque)


def operation(name: str, shape: Callable | None = None, vjp: Callable | None = None,
              jvp: Callable | None = None, opaque: bool = False) -> Callable[[Callable], Operation]:
    """Registers a function as an operation, for this process.

    The function gets its inputs and, as keywords, the compile-time parameters; `device`, for which it is compiled, and
    `out_types` too if it has keywords of these names. It returns an array or a list of them, computed by smelt's
    functions and kernels. shape(*inputs, **parameters) returns a TensorType or a list of them; without it, uses give
    their out_types. opaque: in graphs, the function is called at each execution, with arrays, not when the graph is
    compiled: for what graphs cannot describe, such as functions of .metal files."""
    def decorate(function: Callable) -> Operation:
        made = Operation(name, function, shape, opaque)
        if vjp:
            made.vjp(vjp)
        if jvp:
            made.jvp(jvp)
        return made
    return decorate
