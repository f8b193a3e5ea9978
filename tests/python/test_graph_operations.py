"""Shipped operations as nodes of graphs, and their gradients there: the same numbers as when they are called eagerly."""
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import smelt
from operation_checks import rng
from smelt.graph import Graph, InferenceSession, TensorType, compile


def floats(*shape):
    return smelt.array(rng.standard_normal(shape).astype(np.float32))


CASES: dict[str, tuple[Callable[..., Any], list[tuple[int, ...]]]] = {
    "softmax": (lambda a: smelt.log_softmax(smelt.softmax(a, 0) * 2, -1), [(5, 40)]),
    "norms": (lambda a, w, b: smelt.rms_norm(smelt.layer_norm(a, w, b), w), [(3, 4, 33), (33,), (33,)]),
    "rope": (lambda a: smelt.rope(a, 6, traditional=False, base=100.0, scale=1.0, offset=3), [(2, 3, 5, 8)]),
    "conv": (lambda a, w: smelt.conv2d(a, w, stride=2, padding=1), [(2, 7, 6, 3), (4, 3, 3, 3)]),
    "grouped conv": (lambda a, w: smelt.conv1d(a * 2, w, groups=2), [(2, 9, 4), (4, 3, 2)]),
    "sort": (lambda a: smelt.sort(a + 1, 0) + smelt.cumsum(a, -1), [(5, 40)]),
    "topk": (lambda a: smelt.topk(a, 3), [(5, 40)]),
    "contiguous": (lambda a: smelt.contiguous(smelt.transpose(a)) * 2, [(20, 30)]),
    "view": (lambda a: smelt.view(smelt.transpose(a * 2), "int16").astype("float32") + smelt.view(a, "uint32").view("float32")[0, 0], [(20, 30)]),
    "unaligned view": (lambda a: smelt.view(smelt.view(a, "uint8")[:, 1:9], "uint32") * 1.0, [(5, 6)]),
    "grid_sample": (lambda a, g: smelt.grid_sample(a, g, "bilinear", "border"), [(1, 4, 5, 2), (1, 3, 3, 2)]),
    "chunk_inverse": (lambda a: smelt.chunk_inverse(a * 0.3), [(1, 10, 2, 4)]),
    "hadamard": (smelt.hadamard_transform, [(3, 16)]),
    "fft": (lambda a: smelt.abs(smelt.fft(a)) + smelt.irfft(smelt.rfft(a), 12), [(3, 12)]),
    "gated_delta": (lambda *a: smelt.gated_delta(*a, chunk=4)[0], [(1, 6, 2, 3), (1, 6, 2, 3), (1, 6, 2, 2), (1, 6, 2), (1, 6, 2)]),
}


@pytest.mark.parametrize("name", CASES)
def test_nodes_give_what_calls_give(name):
    f, shapes = CASES[name]
    arrays = [floats(*shape) for shape in shapes]
    np.testing.assert_allclose(np.asarray(compile(f)(*arrays)), np.asarray(f(*arrays)), rtol=2e-5, atol=2e-5)


def causal(*a):
    return smelt.scaled_dot_product_attention(*a[:3], scale=0.3, mask="causal", sinks=a[3] if len(a) > 3 else None)


# With gradients by all arrays.
LIBRARY: dict[str, tuple[Callable[..., Any], list[tuple[int, ...]]]] = {
    "attention": (lambda q, k, v: smelt.scaled_dot_product_attention(q, k, v, scale=0.3) * 2, [(2, 4, 5, 8), (2, 2, 9, 8), (2, 2, 9, 6)]),
    "causal": (causal, [(1, 2, 5, 8), (1, 1, 9, 8), (1, 1, 9, 8)]),
    "sinks": (causal, [(1, 2, 5, 8), (1, 1, 9, 8), (1, 1, 9, 8), (2,)]),
    "mask": (lambda q, k, v, m: smelt.scaled_dot_product_attention(q, k, v, scale=0.3, mask=m), [(1, 2, 5, 8), (1, 2, 7, 8), (1, 2, 7, 8), (5, 7)]),
    "bools": (lambda q, k, v, m: smelt.scaled_dot_product_attention(q, k, v, scale=0.3, mask=m > 0), [(1, 2, 5, 8), (1, 2, 7, 8), (1, 2, 7, 8), (5, 7)]),
}


@pytest.mark.parametrize("name", LIBRARY)
def test_attention_is_a_node_with_gradients(name):
    f, shapes = LIBRARY[name]
    arrays = [floats(*shape) for shape in shapes]
    graph = Graph.of(f, *map(TensorType.of, arrays))
    assert [n["name"] for n in graph.handle.nodes()].count("attention") == 1
    np.testing.assert_allclose(InferenceSession().load(graph).execute(*arrays)[0].to_numpy(), np.asarray(f(*arrays)), rtol=2e-5, atol=2e-5)
    count = len(arrays) - (name == "bools")
    gradient = smelt.grad(lambda *a: smelt.sum(smelt.square(f(*a))), tuple(range(count)))
    for made, wanted in zip(compile(gradient)(*arrays), gradient(*arrays)):
        np.testing.assert_allclose(np.asarray(made), np.asarray(wanted), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("rows, bits", [(3, 4), (3, 5), (40, 8)])
def test_products_with_packed_matrices_in_graphs(rows, bits):
    x, weights = floats(rows, 64), floats(24, 64)
    w, scales, biases = smelt.quantize(weights, 32, bits)

    def f(x, scales, biases):
        return smelt.quantized_matmul(x, w, scales, biases, group_size=32, bits=bits)
    arrays = [x, scales, biases]
    graph = Graph.of(f, *map(TensorType.of, arrays))
    assert ("quantized_matmul" in [n["name"] for n in graph.handle.nodes()]) == (rows == 3 and bits == 4)
    made = InferenceSession().load(graph).execute(*arrays)[0].to_numpy()
    np.testing.assert_allclose(made, np.asarray(f(*arrays)), rtol=1e-4, atol=1e-4)
    gradient = smelt.grad(lambda *a: smelt.sum(smelt.square(f(*a))), (0, 1, 2))
    for one, other in zip(compile(gradient)(*arrays), gradient(*arrays)):
        np.testing.assert_allclose(np.asarray(one), np.asarray(other), rtol=1e-3, atol=1e-2)


@pytest.mark.parametrize("name", ["norms", "conv", "sort", "chunk_inverse"])
def test_gradients_in_graphs(name):
    f, shapes = CASES[name]
    arrays = [floats(*shape) for shape in shapes]
    gradient = smelt.grad(lambda *a: smelt.sum(smelt.square(f(*a))), tuple(range(len(arrays))))
    for made, wanted in zip(compile(gradient)(*arrays), gradient(*arrays)):
        wanted = np.asarray(wanted)
        np.testing.assert_allclose(np.asarray(made), wanted, rtol=1e-3, atol=1e-4 * max(1, np.abs(wanted).max()))


def test_a_view_as_another_dtype_has_no_gradient():
    x = floats(3, 4)
    with pytest.raises(smelt.UnsupportedError, match="through 'view', which has no derivative"):
        smelt.grad(lambda x: smelt.sum(smelt.view(x, "float16")))(x)
    with pytest.raises(smelt.UnsupportedError, match="through 'view', which has no derivative"):
        Graph.of(smelt.grad(lambda x: smelt.sum(x.view("float16"))), TensorType.of(x))
    assert smelt.grad(lambda x: smelt.sum(smelt.view(x, "float32") * x))(x).tolist() == (2 * x).tolist()
