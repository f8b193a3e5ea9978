"""Building graphs."""
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from smelt import _smelt
from smelt._smelt import Dtype, array
from smelt.graph.driver import as_array

__all__ = ["Graph", "TensorType"]


class TensorType:
    """The dtype and shape of a value; the name, if given, is an input's."""

    def __init__(self, dtype: Any, shape: Iterable[int], name: str | None = None):
        self.shape = tuple(int(size) for size in shape)
        self.dtype: Dtype = _smelt.array([], dtype=dtype).dtype
        self.name = name

    @staticmethod
    def of(value: Any) -> "TensorType":
        """The type of an array or a value."""
        made = as_array(value)
        return TensorType(made.dtype, made.shape)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TensorType) and (self.dtype, self.shape) == (other.dtype, other.shape)

    def __hash__(self) -> int:
        return hash(self.shape)

    def __repr__(self) -> str:
        return f"TensorType({self.dtype}, {list(self.shape)})"


class Graph:
    """A graph with inputs of given types.

    `graph.inputs` are its values, which smelt's functions take; `graph.output(...)` names what it computes. The with
    block only groups the lines that build it."""

    def __init__(self, name: str, input_types: Sequence[TensorType] = (), *, handle: Any = None):
        self.name = name
        self.handle = _smelt.Graph(name) if handle is None else handle
        self.input_types = list(input_types)
        self.inputs: list[array] = []
        self.output_names: list[str] = []
        if handle is None:
            self.inputs = [self.handle.input(t.name, t.dtype, t.shape) for t in self.input_types]

    @staticmethod
    def of(function: Callable, *types: TensorType, name: str | None = None) -> "Graph":
        """The graph of a function of values of these types, which returns one or a list or tuple of them."""
        graph = Graph(name or str(getattr(function, "__name__", "graph")), types)
        made = function(*graph.inputs)
        graph.output(*(made if isinstance(made, (list, tuple)) else (made,)))
        return graph

    def __enter__(self) -> "Graph":
        return self

    def __exit__(self, *exception: object) -> None:
        pass

    def output(self, *values: Any, **named: Any) -> None:
        """Adds outputs: values or arrays, in order; keyword arguments name them."""
        for name, value in [(None, value) for value in values] + list(named.items()):
            self.handle.output(name, as_array(value))
            self.output_names.append(name or f"output{len(self.output_names)}")

    def gradient(self, inputs: Sequence[int] | None = None, output: int = 0) -> "Graph":
        """A new graph that also computes the gradients of an output, summed over its elements, by inputs (their
        numbers; by default all with a float dtype), as further outputs. To differentiate inside a graph, use
        smelt.grad and smelt.value_and_grad on its values."""
        floats = {"float16", "bfloat16", "float32", "float64"}
        wanted = [i for i, t in enumerate(self.input_types) if t.dtype.name in floats] if inputs is None else list(inputs)
        made = Graph(self.name, self.input_types, handle=self.handle.gradient(output, wanted))
        names = [t.name or f"input{i}" for i, t in enumerate(self.input_types)]
        made.output_names = self.output_names + [f"gradient of {names[i]}" for i in wanted]
        return made

    def __str__(self) -> str:
        return self.handle.show()
