"""smelt.graph: random graphs of elementwise operations, broadcasts, reductions, products of matrices, registered operations and
kernels, with constants and several outputs. Executed twice and with other inputs between, fused, unfused and from a file,
they give the bits of the operations one by one; these are near the same operations in float64."""

import os
import random

import numpy as np
import pytest
import smelt
from smelt.graph import Graph, InferenceSession, TensorType, operation

FULL = bool(os.environ.get("SMELT_TEST_FULL"))  # make check-long


# ---- Nodes. Results are of moderate size and change little where their inputs do, so that float64 is a measure.

@operation("fuzz_turn", shape=lambda x, y, *, angle: [TensorType(x.dtype, x.shape)] * 2)
def turn(x, y, *, angle, device):
    """Two outputs, of which one may be dead."""
    return [x * np.cos(angle) - y * np.sin(angle), x * np.sin(angle) + y * np.cos(angle)]


HALVES = smelt.metal_kernel(name="fuzz_halves", input_names=["x"], output_names=["low", "high"],
                            source="uint i = thread_position_in_grid.x; low[i] = min(x[i], 0.25f); high[i] = max(x[i], 0.25f);")


def halves(x):
    """A kernel; float64 arrays, which kernels do not take, are computed by operations."""
    if x.dtype != smelt.float32 or not x.size:
        return [smelt.minimum(x, 0.25), smelt.maximum(x, 0.25)]
    return HALVES(inputs=[x], grid=(x.size, 1, 1), threadgroup=(min(x.size, 64), 1, 1), output_shapes=[x.shape] * 2,
                  output_dtypes=[x.dtype] * 2)


UNARY = [smelt.tanh, smelt.sin, smelt.abs, smelt.negative, smelt.sigmoid, lambda x: x * 0.75, lambda x: 0.5 - x,
         lambda x: smelt.exp(-smelt.abs(x)), lambda x: smelt.square(smelt.tanh(x)), lambda x: smelt.sqrt(smelt.square(x) + 0.5),
         lambda x: smelt.log(smelt.abs(x) + 1.5)]
BINARY = [smelt.add, smelt.subtract, smelt.maximum, smelt.minimum, lambda x, y: x * smelt.tanh(y),
          lambda x, y: x / (smelt.abs(y) + 2)]
REDUCE = [smelt.mean, smelt.max, smelt.min, lambda x, **k: smelt.tanh(smelt.sum(x, **k)),
          lambda x, **k: smelt.var(smelt.tanh(x), **k)]


def fuzz_step(draw, pool, numbers, bodies):
    """The next values."""
    x, kind = draw.choice(pool[-5:]), draw.random()
    if kind < 0.25:
        return [draw.choice(UNARY)(x)]
    if kind < 0.5:
        return [draw.choice(BINARY)(x, draw.choice(pool))]
    if kind < 0.56:
        shape = [size if draw.random() < 0.6 else 1 for size in x.shape]
        return [x + numbers.standard_normal(shape).astype("f")]
    if kind < 0.7 and x.ndim:
        axes = tuple(draw.sample(range(x.ndim), draw.randint(1, x.ndim)))
        return [draw.choice(REDUCE)(x, axis=axes, keepdims=draw.random() < 0.6)]
    if kind < 0.76 and x.ndim >= 2:
        width = draw.choice([1, 3, 17])
        weights = numbers.standard_normal((x.shape[-1], width)).astype("f")
        return [x @ (weights / np.float32(max(x.shape[-1], 1)))]
    if kind < 0.8 and x.ndim >= 2:
        return [(x @ smelt.transpose(x, (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))) * (1 / max(x.shape[-1], 1))]
    if kind < 0.84:
        y = draw.choice(pool)
        return turn(x, y, angle=draw.random()) if tuple(y.shape) == tuple(x.shape) else [x]
    if kind < 0.87:
        return halves(x) if bodies else [x]
    if kind < 0.9 and x.ndim and x.size:
        # Of parts: smelt.softmax of an array is a kernel of its own.
        exps = smelt.exp(x - smelt.max(x, axis=-1, keepdims=True))
        return [exps / smelt.sum(exps, axis=-1, keepdims=True)]
    if kind < 0.93:
        return [smelt.transpose(x)]
    if kind < 0.95 and x.ndim:
        return [smelt.concatenate([x, x * 2], axis=draw.randrange(x.ndim))]
    if kind < 0.97 and x.ndim and x.shape[0] > 2:
        return [x[1::2]]
    return [smelt.reshape(x, (-1,))]


def fuzz_function(seed, nodes, bodies):
    def function(*values):
        draw, numbers, pool = random.Random(seed), np.random.default_rng(seed), list(values)
        for _ in range(nodes):
            try:
                pool += [v for v in fuzz_step(draw, pool, numbers, bodies) if v.size <= 40000]
            except ValueError:
                continue  # shapes that cannot be broadcast
        chosen = [pool[-1]] + [draw.choice(pool) for _ in range(draw.randint(0, 3))]
        return chosen + [chosen[0]] if draw.random() < 0.2 else chosen
    return function


def fuzz_inputs(draw, numbers):
    base = [draw.choice([1, 2, 3, 8, 31, 33, 70]) for _ in range(draw.choice([1, 2, 2, 3]))]
    shapes = [[1 if draw.random() < 0.25 else size for size in base][draw.choice([0, 0, 1]) if len(base) > 1 else 0:]
              for _ in range(draw.randint(1, 4))]
    return [[numbers.standard_normal(shape).astype("f") for shape in shapes] for _ in range(2)]


def assert_same_bits(got, want):
    got, want = np.array(got), np.array(want)
    assert got.dtype == want.dtype and got.shape == want.shape
    np.testing.assert_array_equal(got.view("u4"), want.view("u4"))


@pytest.mark.parametrize("seed", range(400 if FULL else 5))
def test_random_graphs_against_float64_and_files(seed, tmp_path):
    draw, numbers = random.Random(seed), np.random.default_rng(seed)
    bodies = seed % 3 == 2  # packages do not hold them
    inputs, others = fuzz_inputs(draw, numbers)
    function = fuzz_function(seed, draw.randint(4, 20 if FULL else 14), bodies)
    graph = Graph.of(function, *map(TensorType.of, inputs))
    model = InferenceSession().load(graph)
    models = [model]
    if FULL or seed % 3 == 0:
        models.append(InferenceSession().load(graph, fuse=False))
    if not bodies:
        model.save(tmp_path / "fuzz.graph")
        models.append(InferenceSession().load(tmp_path / "fuzz.graph"))
    for given in (inputs, others, inputs):
        eager = function(*map(smelt.array, given))
        wide = function(*(smelt.array(a, dtype=smelt.float64) for a in given))
        for results in (m.execute(*given) for m in models):
            assert len(results) == len(eager)
            for got, want in zip(results, eager):
                assert_same_bits(got.to_numpy(), want)
        for got, want in zip(eager, wide):
            want = np.array(want)
            assert want.dtype == np.float64
            np.testing.assert_allclose(np.array(got), want, rtol=1e-4, atol=1e-4 * (1 + np.abs(want).max(initial=0)))
