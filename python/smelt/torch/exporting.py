"""Models of PyTorch as packages that run without Python and PyTorch: `export`."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

import torch

import smelt
from smelt.graph import Graph, InferenceSession, TensorType
from smelt.torch.kernel import TorchMetalKernel
from smelt.torch.lowering import OPERATORS, PYTHON, dtype_of

__all__ = ["export"]


class _Progress:
    """Stages on standard error, with their seconds."""

    def __init__(self, shown: bool | None):
        self._shown = sys.stderr.isatty() if shown is None else shown
        self._began = time.perf_counter()

    def __call__(self, stage: str) -> None:
        if self._shown:
            print(f"smelt.export: {stage} ({time.perf_counter() - self._began:.1f} s)", file=sys.stderr, flush=True)


def export(model: torch.nn.Module, inputs: Sequence[torch.Tensor] | Mapping[str, torch.Tensor], path: str | os.PathLike[str], *,
           output_names: Sequence[str] | None = None, code: bool = True, progress: bool | None = None) -> Graph:
    """Writes the model as a package, FILE.smeltlib, that `smelt run`, C programs (smelt_compiled_load) and
    smelt.graph.InferenceSession execute on CPUs, without Python and PyTorch. Returns its graph.

    inputs: an example, tensors by position or by the name of the model's parameters; shapes and dtypes are fixed by it, and
    the package's inputs have the parameters' names. Outputs are "output0", "output1" … or output_names. Weights are in the
    package; those of float32 that float16 can express take half the room.
    code: also write machine code for this CPU; then no compiler is needed where the package runs, except for kernels of
    TorchMetalKernel, which are stored as text. Without it, the package runs on every machine that has the compiler.
    progress: prints stages to standard error; None: if that is a terminal.

    The model is traced by torch.export in the mode it is in: call model.eval() first. NotImplementedError names an operator
    that smelt.torch.lowering.OPERATORS lacks."""
    report = _Progress(progress)
    report("tracing the model")
    program = _traced(model, inputs)
    report(f"{len(program.graph.nodes)} nodes; building the graph")
    graph = _Lowering(program, type(model).__name__).build(output_names)
    report("compiling")
    compiled = InferenceSession().load(graph)
    report(f"{compiled.info['steps']} steps; writing {os.fspath(path)}")
    compiled.save(path, code=code)
    report("done")
    return graph


def _traced(model: torch.nn.Module, inputs: Any) -> Any:
    """The program, in operators of OPERATORS as far as torch can express others by them."""
    by_name = isinstance(inputs, Mapping)
    with torch.no_grad():
        program = torch.export.export(model, () if by_name else tuple(inputs), dict(inputs) if by_name else None)
        table = torch.export.default_decompositions()
        for overload in list(table):
            if _name_of(overload) in OPERATORS:
                del table[overload]
        return program.run_decompositions(table)


def _name_of(target: Any) -> str:
    """"aten.add" of the overload aten.add.Tensor."""
    schema = getattr(target, "_schema", None)
    return str(target) if schema is None else schema.name.replace("::", ".")


class _Lowering:
    """From torch's program to a graph: each node's value."""

    def __init__(self, program: Any, name: str):
        self._program, self._name = program, name
        self._values: dict[Any, Any] = {}
        self._graph: Graph | None = None

    def build(self, output_names: Sequence[str] | None) -> Graph:
        signature = self._program.graph_signature
        given = {**signature.inputs_to_parameters, **signature.inputs_to_buffers, **signature.inputs_to_lifted_tensor_constants}
        holders = [node for node in self._program.graph.nodes if node.op == "placeholder"]
        ports = [node for node in holders if node.name not in given and isinstance(node.meta.get("val"), torch.Tensor)]
        graph = self._graph = Graph(self._name, [
            TensorType(dtype_of(node.meta["val"].dtype), node.meta["val"].shape, node.name) for node in ports])
        self._values.update(zip(ports, graph.inputs))
        for node in holders:
            if node.name in given:
                self._values[node] = self._constant(given[node.name])
        for node in self._program.graph.nodes:
            if node.op == "call_function":
                self._values[node] = self._lower(node)
        self._add_outputs(graph, output_names)
        return graph

    def _constant(self, name: str) -> Any:
        program = self._program
        tensor = program.state_dict[name] if name in program.state_dict else program.constants[name]
        return smelt.asarray(tensor.detach().cpu().contiguous())

    def _add_outputs(self, graph: Graph, names: Sequence[str] | None) -> None:
        output = next(node for node in self._program.graph.nodes if node.op == "output")
        kinds = self._program.graph_signature.output_specs
        wanted = [node for node, spec in zip(output.args[0], kinds)
                  if spec.kind == torch.export.graph_signature.OutputKind.USER_OUTPUT and isinstance(node, torch.fx.Node)]
        if names is not None and len(names) != len(wanted):
            raise ValueError(f"smelt.export: {len(names)} output names are given; the model has {len(wanted)} outputs")
        for i, node in enumerate(wanted):
            graph.output(**{names[i] if names else f"output{i}": self._values[node]})

    def _lower(self, node: Any) -> Any:
        args, named = torch.fx.map_arg(node.args, self._values.get), torch.fx.map_arg(node.kwargs, self._values.get)
        if node.target in PYTHON:
            return PYTHON[node.target](*args, **named)
        kernel = TorchMetalKernel.of(node.target)
        name = _name_of(node.target)
        function = OPERATORS.get(name)
        if kernel is not None:
            made = self._launch(kernel, node, args)
        elif function is not None:
            made = function(*args, **named)
        else:
            raise NotImplementedError(f"smelt.export: the operator {name} has no counterpart in smelt's graphs; it is "
                                      f"{node.format_node()}")
        return self._typed(node, made)

    def _launch(self, kernel: Any, node: Any, args: Sequence[Any]) -> Any:
        """A kernel of TorchMetalKernel; its sizes come from tensors without elements."""
        seen = torch.fx.map_arg(node.args, lambda each: each.meta["val"])
        return kernel.trace(args, seen)

    def _typed(self, node: Any, made: Any) -> Any:
        """In the dtype of torch's result, whose shape it must have."""
        expected = node.meta.get("val")
        if isinstance(made, list) and isinstance(expected, (list, tuple)):
            return [self._checked(node, each, like) for each, like in zip(made, expected)]
        return self._checked(node, made, expected)

    def _checked(self, node: Any, made: Any, expected: Any) -> Any:
        if made is None or not isinstance(expected, torch.Tensor):
            return made
        made = smelt.asarray(made)
        dtype = dtype_of(expected.dtype)
        if tuple(made.shape) != tuple(expected.shape):
            raise NotImplementedError(f"smelt.export: {node.format_node()} has shape {tuple(made.shape)} here; torch gives it "
                                      f"{tuple(expected.shape)}")
        return made if made.dtype == dtype else made.astype(dtype)
