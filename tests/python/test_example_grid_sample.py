"""examples/python/grid_sample.py: samples and gradients against float64, finite differences and PyTorch."""

import runpy

import grid_sample_reference as reference
import numpy as np
import pytest
import smelt

# (B, H, W, C), (N, M): channels on both sides of a simdgroup, odd sizes, single pixels, one wide and one high.
SIZES = [((1, 4, 6, 4), (3, 5)), ((2, 5, 7, 33), (3, 4)), ((1, 9, 3, 1), (4, 4)), ((3, 1, 1, 2), (2, 3)),
         ((2, 3, 8, 31), (1, 7)), ((1, 6, 5, 65), (2, 2))]


def data(shape, points, reach=1.4):
    """Fresh images, points in [-reach, reach] and cotangent."""
    rng = np.random.default_rng()
    grid = rng.uniform(-reach, reach, (shape[0], *points, 2)).astype(np.float32)
    return (rng.standard_normal(shape).astype(np.float32), grid,
            rng.standard_normal((shape[0], *points, shape[3])).astype(np.float32))


def assert_close(actual, expected, tolerance):
    assert actual.shape == expected.shape
    error = np.abs(np.asarray(actual).astype(np.float64) - expected)
    assert (error <= tolerance * (1 + np.abs(expected))).all(), f"off by {error.max()}"


def away_from_borders(grid, height, width):
    """The points, moved off the lines between pixels, where there is no derivative."""
    for axis, size in ((0, width), (1, height)):
        at = ((grid[..., axis].astype(np.float64) + 1) * size - 1) / 2
        grid[..., axis] = ((np.floor(at) + np.clip(at - np.floor(at), 0.1, 0.9)) * 2 + 1) / size - 1
    return grid


@pytest.mark.parametrize("shape, points", SIZES)
def test_samples(example, shape, points):
    x, grid, _ = data(shape, points)
    assert_close(example.forward(x, grid), reference.forward(x, grid), 1e-5)
    assert_close(example.forward(x.astype(np.float16), grid), reference.forward(x.astype(np.float16), grid), 2e-3)


@pytest.mark.parametrize("shape, points", SIZES)
def test_gradients(example, shape, points):
    x, grid, cotangent = data(shape, points)
    grid = away_from_borders(grid, *shape[1:3])
    for actual, expected in zip(example.backward(x, grid, cotangent), reference.backward(x, grid, cotangent)):
        assert_close(actual, expected, 1e-4)


def test_points_far_outside_and_not_finite_read_nothing(example):
    x, grid, cotangent = data((1, 4, 6, 3), (2, 3))
    grid[0, 0] = [[1e30, 0], [0, -1e30], [np.inf, -np.inf]]
    assert (np.asarray(example.forward(x, grid))[0, 0] == 0).all()
    x_grad, grid_grad = example.backward(x, grid, cotangent)
    assert (np.asarray(grid_grad)[0, 0] == 0).all() and np.isfinite(np.asarray(x_grad)).all()


def test_reference_equals_finite_differences():
    x, grid, cotangent = data((2, 3, 5, 4), (2, 3))
    grid = away_from_borders(grid, 3, 5).astype(np.float64)
    x = x.astype(np.float64)
    for index, gradient in enumerate(reference.backward(x, grid, cotangent)):
        array = (x, grid)[index]
        for place in np.random.default_rng().choice(array.size, 12, replace=False):
            at, step = np.unravel_index(place, array.shape), 1e-4
            sums = []
            for sign in (1, -1):
                moved = array.copy()
                moved[at] += sign * step
                arguments = (moved, grid) if index == 0 else (x, moved)
                sums.append((reference.forward(*arguments) * cotangent).sum())
            assert abs((sums[0] - sums[1]) / (2 * step) - gradient[at]) < 1e-6 * (1 + abs(gradient[at]))


def test_the_vjp_is_the_kernels(example):
    x, grid, cotangent = data((2, 5, 7, 33), (3, 4))
    grid = away_from_borders(grid, 5, 7)
    arrays = [smelt.array(a) for a in (x, grid, cotangent)]
    outputs, gradients = smelt.vjp(example.grid_sample, arrays[:2], arrays[2:])
    assert_close(outputs[0], reference.forward(x, grid), 1e-5)
    for actual, expected in zip(gradients, reference.backward(x, grid, cotangent)):
        assert_close(actual, expected, 1e-4)


def test_it_equals_pytorch(example):
    torch = pytest.importorskip("torch")
    x, grid, cotangent = data((2, 5, 7, 33), (3, 4))
    grid = away_from_borders(grid, 5, 7)
    theirs = [torch.tensor(x, dtype=torch.float64).permute(0, 3, 1, 2).requires_grad_(),
              torch.tensor(grid, dtype=torch.float64).requires_grad_()]
    out = torch.nn.functional.grid_sample(*theirs, mode="bilinear", padding_mode="zeros", align_corners=False)
    out.backward(torch.tensor(cotangent, dtype=torch.float64).permute(0, 3, 1, 2))
    assert_close(example.forward(x, grid), out.detach().permute(0, 2, 3, 1).numpy(), 1e-5)
    x_grad, grid_grad = example.backward(x, grid, cotangent)
    assert_close(x_grad, theirs[0].grad.permute(0, 2, 3, 1).numpy(), 1e-4)
    assert_close(grid_grad, theirs[1].grad.numpy(), 1e-4)


def test_it_runs_as_a_program(example, capsys):
    runpy.run_path(example.__file__, run_name="__main__")
    assert "gradient by the images (1, 5, 7, 3) by the points (1, 2, 2, 2)" in capsys.readouterr().out
