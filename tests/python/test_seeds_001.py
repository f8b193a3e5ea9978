"""Document 001 of the seeds: its host program builds a graph with a custom matrix multiplication, compiles it in a
session and executes it. Only its imports are ours."""

import ast
import re
import typing

import numpy as np
import pytest
import seeds
import smelt.graph
from smelt.graph import CPU, Accelerator, Device, DType, Graph, InferenceSession, Tensor, TensorType, ops


@pytest.fixture(scope="module")
def host_program():
    """The document's function, with the indentation that the text lost: blocks of `def` and `with`, and of brackets."""
    text = seeds.document("001")
    start = text.index("def matrix_multiplication(")
    end = text.index("return result.to(CPU())", start) + len("return result.to(CPU())")
    lines, depth, indent, out = text[start:end].split("\n"), 0, 0, []
    for line in lines:
        if depth == 0 and indent == 2 and line.startswith("print("):
            indent = 1  # what follows graph.output is outside the block
        out.append("    " * (indent + bool(depth)) + line)
        opened = len(re.findall(r"[(\[{]", line)) - len(re.findall(r"[)\]}]", line))
        depth += opened
        if depth == 0 and line.endswith(":"):
            indent += 1
    source = "\n".join(out)
    body = ast.parse(source).body
    assert [type(node) for node in body] == [ast.FunctionDef]
    # The words are the document's: nothing was added or left out.
    assert "".join(source.split()) == "".join(text[start:end].split())
    names = {"NDArray": typing.Any, "np": np, "CPU": CPU, "Device": Device, "DType": DType, "Graph": Graph,
             "InferenceSession": InferenceSession, "Tensor": Tensor, "TensorType": TensorType, "ops": ops}
    names["NDArray"] = list  # subscripted in annotations
    exec(compile(source, "seed 001", "exec"), names)
    return names["matrix_multiplication"]


def devices():
    return [CPU()] + ([Accelerator()] if smelt.graph.accelerator_count() else [])


@pytest.mark.parametrize("algorithm", ["naive", "coalescing", "tiled", "tiled_register", "block_tiled",
                                       "block_tiled_vectorized", "tensor_core"])
def test_host_program(host_program, algorithm, capsys):
    numbers = np.random.default_rng(0)
    a, b = (numbers.standard_normal(shape).astype(np.float32) for shape in ((75, 130), (130, 66)))
    for device in devices():
        result = host_program(a, b, algorithm, InferenceSession(devices=[device]), device)
        tolerance = 2e-2 if algorithm == "tensor_core" and device != CPU() else 1e-4
        assert result.device == CPU()
        assert np.abs(result.to_numpy() - a.astype("d") @ b.astype("d")).max() < tolerance
    assert capsys.readouterr().out == "Compiling...\nExecuting...\n" * len(devices())


def test_unknown_algorithm(host_program):
    a = np.ones((4, 4), np.float32)
    with pytest.raises(ValueError, match="matmul: algorithm 'quickest' is unknown; expected one of naive, "):
        host_program(a, a, "quickest", InferenceSession(devices=[CPU()]), CPU())
