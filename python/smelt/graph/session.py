"""Compiling graphs, and executing them."""
import os
from collections.abc import Callable, Sequence
from typing import Any

from smelt import _smelt
from smelt.graph.building import Graph, TensorType
from smelt.graph.driver import Device, Tensor, as_array, device_name

__all__ = ["compile", "InferenceSession", "Model"]


class Model:
    """A compiled graph with its memory on a device."""

    def __init__(self, compiled: Any, device: str, recording: bool = True):
        self.compiled = compiled
        self.device = device
        self.input_types = [TensorType(dtype, shape, name) for name, dtype, shape in compiled.inputs()]
        self.output_types = [TensorType(dtype, shape, name) for name, dtype, shape in compiled.outputs()]
        self.input_names = [t.name for t in self.input_types]
        self.output_names = [t.name for t in self.output_types]
        self._session = compiled.session(not recording)

    @property
    def info(self) -> dict[str, int]:
        """nodes, folded, shared, dead, steps, fused_kernels, fused_nodes, peak_bytes, total_bytes: see smelt/graph.h."""
        return self.compiled.describe()

    def show(self, step: int | None = None) -> str:
        """The steps, one per line; or the Metal text of a step that is a fused kernel."""
        return self.compiled.show(-1 if step is None else step)

    def _arrays(self, given: Sequence[Any], named: dict[str, Any]) -> list:
        left = [name for name in self.input_names[len(given):]]
        unknown = [name for name in named if name not in left]
        if unknown:
            raise ValueError(f"execute: there is no further input '{unknown[0]}'; the inputs are "
                             f"{', '.join(map(str, self.input_names))}")
        missing = [name for name in left if name not in named]
        if missing:
            raise ValueError(f"execute: input '{missing[0]}' is missing")
        return [as_array(value) for value in given] + [as_array(named[str(name)]) for name in left]

    def save(self, path: Any, code: bool = True) -> None:
        """Writes the compiled graph to a file, with machine code for its device: InferenceSession.load(path) and
        `smelt run` then need no compiler, except for kernel bodies, which are stored as text. With code=False the file
        has no machine code, and serves every machine that has the compiler. NotImplementedError for graphs with opaque
        operations."""
        self.compiled.store(os.fspath(path), not code)

    def run(self, inputs: Sequence[Any], into: Sequence[Any] | None = None) -> list:
        """Executes it on arrays: a list of smelt.array. into: for each output an array that receives it, or None."""
        return self._session.execute([as_array(a) for a in inputs], None if into is None else list(into),
                                     len(self.output_names))

    def execute(self, *inputs: Any, **named: Any) -> list[Tensor]:
        """Executes it: inputs in order, or by name. The outputs in order, on the model's device."""
        return [Tensor(a) for a in self.run(self._arrays(inputs, named))]

    def execute_named(self, **inputs: Any) -> dict[str, Tensor]:
        """Executes it: inputs by name, outputs by name."""
        return dict(zip(map(str, self.output_names), self.execute(**inputs)))


class InferenceSession:
    """Loads graphs for a device: the first of `devices`; by default the host."""

    def __init__(self, devices: Sequence[Device | str] | None = None):
        self.device = device_name(devices[0] if devices else None)

    def load(self, graph: Graph | str | os.PathLike[str], *, fuse: bool = True, reuse_memory: bool = True,
             recording: bool = True, streams: int = 0) -> Model:
        """Compiles the graph and allocates its memory; or takes a compiled graph from a file of Model.save. On GPUs,
        executions with the same arrays are recorded as a CUDA graph, and replayed, unless `recording` is false.

        streams: on CPUs, independent steps run at once, on so many threads; good for many small steps, since each then
        has one thread. On GPUs, more than 1 lets replays run independent steps at once, as many as the GPU has room for.
        0: one step after the other. Saved graphs keep it."""
        if not isinstance(graph, Graph):
            return Model(_smelt.load_compiled(os.fspath(graph)), self.device, recording)
        compiled = graph.handle.compile(self.device, not fuse, not reuse_memory, streams)
        return Model(compiled, self.device, recording)


def compile(function: Callable, device: Device | str | None = None) -> Callable:
    """A function that computes what `function` does by compiled graphs: one for each combination of dtypes and shapes
    of its arguments, which are arrays or trees of arrays, as are its results."""
    from smelt.tree import leaves, unflatten
    session = InferenceSession([device_name(device)])
    models: dict[Any, Any] = {}

    def compiled(*arguments: Any) -> Any:
        arrays = [as_array(leaf) for leaf in leaves(arguments)]
        key = (str(unflatten(arguments, [0] * len(arrays))), tuple((a.dtype, a.shape) for a in arrays))
        if key not in models:
            graph = Graph(getattr(function, "__name__", "graph"), [TensorType.of(a) for a in arrays])
            made = function(*unflatten(arguments, graph.inputs))
            graph.output(*leaves(made))
            models[key] = session.load(graph), made
        model, form = models[key]
        return unflatten(form, model.run(arrays))

    return compiled
