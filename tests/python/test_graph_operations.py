"""Shipped operations as nodes of graphs, and their gradients there: the same numbers as when they are called eagerly."""
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import smelt
from operation_checks import rng
from smelt.graph import compile


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


@pytest.mark.parametrize("name", ["norms", "conv", "sort", "chunk_inverse"])
def test_gradients_in_graphs(name):
    f, shapes = CASES[name]
    arrays = [floats(*shape) for shape in shapes]
    gradient = smelt.grad(lambda *a: smelt.sum(smelt.square(f(*a))), tuple(range(len(arrays))))
    for made, wanted in zip(compile(gradient)(*arrays), gradient(*arrays)):
        wanted = np.asarray(wanted)
        np.testing.assert_allclose(np.asarray(made), wanted, rtol=1e-3, atol=1e-4 * max(1, np.abs(wanted).max()))
