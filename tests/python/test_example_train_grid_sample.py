"""examples/python/train_grid_sample.py: the network learns, on every device, and its gradients are right."""

import numpy as np
import pytest
import smelt


@pytest.mark.parametrize("device", [d for d in smelt.devices() if d in ("cpu", "cuda:0")])
def test_it_learns(example, device):
    losses, model = example.train(device, 250)
    assert losses[0] > 0.5 and losses[-1] < example.GOAL, losses
    # Fused: far fewer steps than nodes.
    assert model.info["steps"] * 3 < model.info["nodes"]


def test_the_compiled_step_is_the_eager_step(example):
    numbers = np.random.default_rng(0)
    parameters = example.random_parameters(numbers)
    images = smelt.array(numbers.standard_normal((2, 6, 5, example.CHANNELS)).astype("f"))
    targets = smelt.array(numbers.standard_normal((2, example.OUTPUTS)).astype("f"))
    state = [*parameters, *[smelt.zeros(p.shape) for p in parameters] * 2, smelt.array(0.0), images, targets]
    for one, other in zip(smelt.graph.compile(example.step)(*state), example.step(*state)):
        # Gradients of the images are added in any order by atomics; Adam divides by their size.
        np.testing.assert_allclose(np.array(one), np.array(other), rtol=1e-3, atol=1e-5)


def test_gradients_by_finite_differences(example):
    numbers = np.random.default_rng(1)
    parameters = example.random_parameters(numbers)
    images = smelt.array(numbers.standard_normal((2, 6, 5, example.CHANNELS)).astype("f"))
    targets = smelt.array(numbers.standard_normal((2, example.OUTPUTS)).astype("f"))
    gradients = smelt.grad(example.loss)(parameters, images, targets)
    for which, gradient in enumerate(gradients):
        # Along the gradient; points between pixels have kinks, so steps are small.
        direction = np.array(gradient) / np.linalg.norm(np.array(gradient))
        sides = []
        for step in (1e-3, -1e-3):
            moved = list(parameters)
            moved[which] = parameters[which] + smelt.array((step * direction).astype("f"))
            sides.append(float(example.loss(moved, images, targets).item()))
        assert (sides[0] - sides[1]) / 2e-3 == pytest.approx(float(np.linalg.norm(np.array(gradient))), rel=2e-2)
