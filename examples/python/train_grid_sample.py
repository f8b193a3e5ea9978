"""Training a two-layer network with grid_sample and an activation of its own, in one compiled graph.

    python examples/python/train_grid_sample.py [DEVICE]

The network looks at each image at points that it learns, applies a linear layer, the activation, and a second linear
layer. It learns the outputs of a network of the same form. Both grid_sample and the activation are registered
operations: kernels with a shape function and a VJP. Forward pass, backward pass and Adam's update are one graph."""

from __future__ import annotations

import math
import sys

import numpy as np

import smelt
from grid_sample import backward, forward
from smelt.graph import Graph, InferenceSession, TensorType, operation

BATCH, SIZE, CHANNELS, POINTS, HIDDEN, OUTPUTS = 64, 12, 3, 4, 32, 5
GOAL = 0.02  # of the loss, which begins near 1


@operation("grid_sample", shape=lambda x, grid: TensorType(x.dtype, (*grid.shape[:3], x.shape[3])),
           vjp=lambda inputs, cotangents, outputs: backward(*inputs, *cotangents))
def grid_sample(x, grid):
    """Bilinear samples of images x (B, H, W, C) at points (B, N, M, 2): (B, N, M, C)."""
    return forward(x, grid)


# x times the sigmoid of x, and its derivative times a cotangent.
ACTIVATION = "uint i = thread_position_in_grid.x; y[i] = x[i] / (1.0f + metal::exp(-x[i]));"
ACTIVATION_VJP = """
    uint i = thread_position_in_grid.x;
    float s = 1.0f / (1.0f + metal::exp(-x[i]));
    gradient[i] = cotangent[i] * s * (1.0f + x[i] * (1.0f - s));
"""
activation_kernel = smelt.metal_kernel(name="activation", input_names=["x"], output_names=["y"], source=ACTIVATION)
activation_vjp_kernel = smelt.metal_kernel(name="activation_vjp", input_names=["x", "cotangent"],
                                           output_names=["gradient"], source=ACTIVATION_VJP)


def each(kernel, *arrays):
    """A kernel with one thread per element."""
    x = arrays[0]
    return kernel(inputs=list(arrays), grid=(x.size, 1, 1), threadgroup=(256, 1, 1), output_shapes=[x.shape],
                  output_dtypes=[x.dtype])


@operation("activation", shape=lambda x: TensorType(x.dtype, x.shape),
           vjp=lambda inputs, cotangents, outputs: each(activation_vjp_kernel, inputs[0], cotangents[0]))
def activation(x):
    """x times the sigmoid of x."""
    return each(activation_kernel, x)


def network(parameters, images):
    points, w1, b1, w2, b2 = parameters
    batch = images.shape[0]
    grid = smelt.broadcast_to(smelt.tanh(points), (batch, POINTS, POINTS, 2))
    samples = grid_sample(images, smelt.contiguous(grid) + 0.0).reshape(batch, -1)
    return activation(samples @ w1 + b1) @ w2 + b2


def loss(parameters, images, targets):
    return smelt.mean(smelt.square(network(parameters, images) - targets))


def step(*values):
    """Adam: parameters, their first and second moments, the step's number, images and targets to the new ones and the
    loss."""
    count = (len(values) - 3) // 3
    parameters, first, second = (list(values[i * count:(i + 1) * count]) for i in range(3))
    number, images, targets = values[3 * count:]
    value, gradients = smelt.value_and_grad(loss)(parameters, images, targets)
    number = number + 1
    rate = 0.01 * smelt.sqrt(1 - 0.999 ** number) / (1 - 0.9 ** number)
    first = [0.9 * m + 0.1 * g for m, g in zip(first, gradients)]
    second = [0.999 * v + 0.001 * g * g for v, g in zip(second, gradients)]
    parameters = [p - rate * m / (smelt.sqrt(v) + 1e-8) for p, m, v in zip(parameters, first, second)]
    return [*parameters, *first, *second, number, value]


def random_parameters(numbers):
    inputs = POINTS * POINTS * CHANNELS
    shapes = [(1, POINTS, POINTS, 2), (inputs, HIDDEN), (HIDDEN,), (HIDDEN, OUTPUTS), (OUTPUTS,)]
    scales = [0.5, 1.5 / math.sqrt(inputs), 0.1, 1.5 / math.sqrt(HIDDEN), 0.1]
    return [smelt.array(scale * numbers.standard_normal(shape, dtype=np.float32)) for shape, scale in zip(shapes, scales)]


def train(device="cpu", steps=600, seed=0):
    """The losses, and the model of a step."""
    numbers = np.random.default_rng(seed)
    teacher, parameters = random_parameters(numbers), random_parameters(numbers)
    # Smooth images: neighbouring pixels tell in which direction a point should move.
    coarse = numbers.standard_normal((BATCH, SIZE // 3, SIZE // 3, CHANNELS), dtype=np.float32)
    images = smelt.array(np.repeat(np.repeat(coarse, 3, 1), 3, 2))
    targets = network(teacher, images)
    state = parameters + [smelt.zeros(p.shape) for p in parameters] * 2 + [smelt.array(0.0)]
    graph = Graph.of(step, *map(TensorType.of, [*state, images, targets]))
    model = InferenceSession([device]).load(graph)
    # Two sets of arrays take turns, so that a GPU replays the same launches.
    sets = [[a.to(device) for a in state] for _ in range(2)] if device != "cpu" else [state, [a + 0 for a in state]]
    value = [smelt.array(0.0).to(device), smelt.array(0.0).to(device)] if device != "cpu" else [smelt.array(0.0), smelt.array(0.0)]
    fixed = [a.to(device) for a in (images, targets)] if device != "cpu" else [images, targets]
    losses = []
    for i in range(steps):
        here, there = sets[i % 2], sets[1 - i % 2]
        model.run([*here, *fixed], into=[*there, value[i % 2]])
        if i % 50 == 0 or i == steps - 1:
            losses.append(value[i % 2].item())
    return losses, model


def main() -> None:
    losses, model = train(sys.argv[1] if len(sys.argv) > 1 else "cpu")
    info = model.info
    print(f"{info['nodes']} nodes became {info['steps']} steps; {info['peak_bytes']} bytes of planned memory")
    print("loss", " ".join(f"{value:.4f}" for value in losses[::5]), f"{losses[-1]:.4f}")
    assert losses[-1] < GOAL, f"the loss is {losses[-1]}, expected less than {GOAL}"


if __name__ == "__main__":
    main()
