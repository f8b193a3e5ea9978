"""grid_sample with all settings, inverses of chunks and the gated delta rule, against plain loops in double precision."""
import itertools

import numpy as np
import pytest
import smelt
from operation_checks import DTYPES, FULL, check_gradients, compare, poison, random, rng, values_of

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
    check_gradients(lambda a, b: smelt.grid_sample(a, b, *settings), [x, grid], second=FULL or settings == SETTINGS[0])


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
        check_gradients(smelt.chunk_inverse, [rng.standard_normal(shape)], second=FULL or shape[0] == 1)
    with pytest.raises(ValueError, match="chunk_inverse: x has shape 1x2x3x129; expected"):
        smelt.chunk_inverse(smelt.ones((1, 2, 3, 129)))


def delta_reference(q, k, v, g, beta, initial, scale):
    B, T, H, K = q.shape
    state = np.zeros((B, H, K, v.shape[3])) if initial is None else initial.copy()
    out = np.zeros(v.shape)
    for t in range(T):
        state = state * np.exp(g[:, t])[..., None, None]
        change = beta[:, t][..., None] * (v[:, t] - np.einsum("bhkv,bhk->bhv", state, k[:, t]))
        state = state + np.einsum("bhk,bhv->bhkv", k[:, t], change)
        out[:, t] = scale * np.einsum("bhkv,bhk->bhv", state, q[:, t])
    return out, state


def delta_inputs(B, T, H, K, V, initial=True):
    q, k = rng.standard_normal((2, B, T, H, K))
    k /= np.linalg.norm(k, axis=-1, keepdims=True)
    v, g, beta = rng.standard_normal((B, T, H, V)), -rng.uniform(0, 0.5, (B, T, H)), rng.uniform(0, 1, (B, T, H))
    return [q, k, v, g, beta, *([rng.standard_normal((B, H, K, V))] if initial else [])]


@pytest.mark.parametrize("dtype", [*DTYPES, "float64"])
def test_gated_delta(dtype):
    for sizes in [(2, 70, 2, 16, 24), (1, 5, 3, 7, 1), (1, 130, 1, 64, 33), (1, 1, 1, 1, 5)]:
        for initial in (False, True):
            rounded = [smelt.array(x, dtype=dtype if i < 3 else "float64" if dtype == "float64" else "float32")
                       for i, x in enumerate(delta_inputs(*sizes, initial))]
            exact = [np.asarray(a if dtype == "float64" else a.astype("float32")).astype(float) for a in rounded]
            wanted = delta_reference(*exact[:5], exact[5] if initial else None, 0.3)
            made = smelt.gated_delta(*rounded[:5], scale=0.3, initial_state=rounded[5] if initial else None)
            if dtype == "float64":
                for a, b in zip(made, wanted):
                    np.testing.assert_allclose(np.asarray(a), b, rtol=1e-11, atol=1e-11)
            else:
                compare(made[0], wanted[0], dtype, 2e-5)
                compare(made[1], wanted[1], "float32", 2e-5)


def test_gated_delta_by_chunks_is_the_recurrence():
    arrays = delta_inputs(1, 37, 2, 5, 4)
    wanted = delta_reference(*arrays, 5 ** -0.5)
    for chunk in (1, 8, 37, 64):
        made = smelt.gated_delta(*[smelt.array(x, dtype="float64") for x in arrays[:5]], chunk=chunk,
                                 initial_state=smelt.array(arrays[5], dtype="float64"))
        for a, b in zip(made, wanted):
            np.testing.assert_allclose(np.asarray(a), b, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("chunk", [3, 64])
def test_gradients_of_gated_delta_are_differences(chunk):
    def f(q, k, v, g, beta, initial):
        out, state = smelt.gated_delta(q, k, v, g, beta, chunk=chunk, initial_state=initial)
        return smelt.concatenate([smelt.flatten(out), smelt.flatten(state)])
    check_gradients(f, delta_inputs(1, 7, 1, 2, 3), second=chunk == 3)


def test_gated_delta_without_an_initial_state_has_gradients():
    arrays = delta_inputs(2, 6, 2, 3, 2, initial=False)
    def f(*a):
        return smelt.gated_delta(*a, chunk=4)[0]
    check_gradients(f, arrays[:5], second=False)
    single = [smelt.array(x.astype(np.float32)) for x in arrays]
    with pytest.raises(ValueError, match="gated delta: k has shape 2x6x2x2; expected 2x6x2x3"):
        f(single[0], single[1][..., :2], *single[2:])
