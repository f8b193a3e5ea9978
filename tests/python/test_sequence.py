"""grid_sample with all settings, inverses of chunks and the gated delta rule, against plain loops in double precision."""
import itertools

import numpy as np
import pytest
import smelt
from operation_checks import DTYPES, check_gradients, compare, poison, random, rng, values_of

SETTINGS = list(itertools.product(("bilinear", "nearest"), ("zeros", "border"), (False, True)))


def sample(x, grid, mode, padding, align):
    B, H, W, C = x.shape
    out = np.zeros((*grid.shape[:3], C))
    for b, i, j in np.ndindex(grid.shape[:3]):
        place = []
        for coordinate, size in zip(grid[b, i, j], (W, H)):
            pixel = (coordinate + 1) / 2 * (size - 1) if align else ((coordinate + 1) * size - 1) / 2
            place.append(min(max(pixel, 0), size - 1) if padding == "border" else pixel)
        across, down = place
        if mode == "nearest":
            corners = [(round(across), round(down), 1.0)]
        else:
            left, top = int(np.floor(across)), int(np.floor(down))
            corners = [(left + dx, top + dy, (across - left if dx else 1 - across + left) * (down - top if dy else 1 - down + top))
                       for dx in (0, 1) for dy in (0, 1)]
        for column, row, weight in corners:
            if 0 <= column < W and 0 <= row < H:
                out[b, i, j] += weight * x[b, row, column]
    return out


@pytest.mark.parametrize("settings", SETTINGS)
def test_grid_sample(engine, settings):
    dtype = DTYPES[SETTINGS.index(settings) % 3]
    for shape, points in [((2, 5, 7, 3), (4, 6)), ((1, 1, 9, 33), (3, 2)), ((2, 6, 4, 1), (1, 5))]:
        x = random(shape, dtype, 2)
        grid = rng.uniform(-1.6, 1.6, (shape[0], *points, 2)).astype(np.float32)
        grid[0, 0, 0] = -1, 1
        poison(grid.size * shape[3])
        made = smelt.grid_sample(x, smelt.array(grid), *settings)
        compare(made, sample(values_of(x), grid.astype(np.float64), *settings), dtype, 2e-5)


@pytest.mark.parametrize("settings", SETTINGS)
def test_gradients_of_grid_sample_are_differences(settings):
    x, grid = rng.standard_normal((1, 3, 4, 1)), rng.uniform(-1.4, 1.4, (1, 2, 2, 2))
    # Away from where pixels change, which has no derivative.
    for size, d in ((4, 0), (3, 1)):
        pixel = (grid[..., d] + 1) / 2 * (size - 1) if settings[2] else ((grid[..., d] + 1) * size - 1) / 2
        whole = np.round(pixel * 2) / 2
        pixel = np.where(np.abs(pixel - whole) < 0.05, pixel + 0.1, pixel)
        grid[..., d] = pixel * 2 / (size - 1) - 1 if settings[2] else (2 * pixel + 1) / size - 1
    check_gradients(lambda a, b: smelt.grid_sample(a, b, *settings), [x, grid])


def test_grid_sample_refuses():
    x = smelt.ones((1, 2, 2, 1))
    with pytest.raises(ValueError, match="grid_sample: x has shape 1x2x2x1 and grid 1x2x3; expected"):
        smelt.grid_sample(x, smelt.ones((1, 2, 3)))
    with pytest.raises(ValueError, match="mode is 'bicubic'"):
        smelt.grid_sample(x, smelt.ones((1, 2, 3, 2)), "bicubic")


def inverses(a):
    B, T, H, width = a.shape
    out = np.zeros(a.shape)
    for b, h, first in itertools.product(range(B), range(H), range(0, T, width)):
        rows = min(width, T - first)
        square = np.eye(rows) + np.tril(a[b, first:first + rows, h, :rows], -1)
        out[b, first:first + rows, h, :rows] = np.linalg.inv(square)
    return out


@pytest.mark.parametrize("dtype", DTYPES)
def test_inverses_of_chunks(engine, dtype):
    for shape in [(2, 33, 3, 16), (1, 7, 1, 1), (1, 130, 1, 128), (2, 5, 2, 9)]:
        scaled = random(shape, dtype, len(shape) % 4) * 0.2
        poison(scaled.size)
        compare(smelt.chunk_inverse(scaled), inverses(values_of(scaled)), dtype, 1e-4)


def test_gradients_of_inverses_are_differences():
    for shape in [(1, 7, 2, 3), (2, 4, 1, 4)]:
        check_gradients(smelt.chunk_inverse, [rng.standard_normal(shape)])
    with pytest.raises(ValueError, match="chunk_inverse: x has shape 1x2x3x129; expected"):
        smelt.chunk_inverse(smelt.ones((1, 2, 3, 129)))
