"""kernels/matmul/best_tiles.metal and best.metal in forms that smelt itself launches on GPUs only: tiles of several sizes, whole and
at edges, matrices stored by columns, and sums in parts."""
import pathlib

import ml_dtypes
import numpy as np
import pytest

import smelt

KERNELS = pathlib.Path(__file__).resolve().parents[2] / "kernels/matmul"
# M, N, K: within a tile, whole tiles, rows that are not aligned, edges in each direction
SIZES = [(1, 1, 1), (65, 67, 17), (200, 132, 33), (128, 256, 64), (5, 300, 3)]
SUMS = smelt.library(str(KERNELS / "best.metal"))


def form_of(file, parameters, a_down, b_down):
    form = f"{parameters}, {str(a_down).lower()}, {str(b_down).lower()}"
    text = f'#define BEST_NAME "form"\n#define BEST_FORM {form}\n' + (KERNELS / file).read_text()
    return smelt.library(text).form


def multiply(kernel, operands, output, tile, threads, depth, down, lines):
    """The products of two pairs of matrices, per part of K. `lines`: whether the kernel takes the lengths of rows."""
    a, b = operands
    (_, m, k), n = a.shape, b.shape[2]
    parts, (a_down, b_down) = -(-k // depth), down
    stored = [np.ascontiguousarray(x.swapaxes(1, 2) if turned else x) for x, turned in ((a, a_down), (b, b_down))]
    partial = np.full((2, parts, m, n), np.nan, output)
    rows = [np.array([stored[0].shape[2], stored[1].shape[2]], np.int32).tobytes()] if lines else []
    kernel(*stored, partial, np.array([m, n, k, depth], np.int32).tobytes(), *rows, np.array([m * k, k * n], np.int64).tobytes(),
           groups=(-(-n // tile[1]), -(-m // tile[0]), 2 * parts), group_size=(threads, 1, 1))
    return partial


def add_up(name, partial, dtype):
    (_, parts, m, n) = partial.shape
    c = np.full((2, m, n), np.nan, dtype)
    SUMS.function(f"best_sum_{name}")(partial, c, np.array([m * n, parts], np.int64).tobytes(), threads=(-(-m * n // 4), 2),
                                      group_size=(32, 1))
    return c


@pytest.mark.parametrize(("parameters", "tile", "threads", "down"), [
    ("128, 128, 64, 64", (128, 128), 128, (False, False)), ("64, 64, 64, 32", (64, 64), 64, (False, True)),
    ("64, 64, 32, 32", (64, 64), 128, (True, False)), ("64, 128, 64, 64", (64, 128), 64, (True, True))])
def test_forms_of_float(parameters, tile, threads, down):
    kernel = form_of("best_tiles.metal", parameters, *down)
    random = np.random.default_rng()
    for (m, n, k), depth in [*((size, 64) for size in SIZES), ((65, 67, 17), 8), ((130, 68, 48), 16)]:
        a = random.standard_normal((2, m, k)).astype(np.float32)
        b = random.standard_normal((2, k, n)).astype(np.float32)
        c = add_up("float", multiply(kernel, (a, b), np.float32, tile, threads, depth, down, False), np.float32)
        np.testing.assert_allclose(c, a.astype(np.float64) @ b, rtol=0, atol=2e-5 * k ** 0.5, err_msg=f"{m} x {n} x {k}")


@pytest.mark.parametrize(("name", "dtype", "tile", "threads", "down", "tolerance"), [
    ("half", np.float16, (64, 128), 128, (True, False), 2e-3), ("bfloat", ml_dtypes.bfloat16, (128, 64), 128, (False, True), 2e-2)])
def test_forms_of_sixteen_bits(name, dtype, tile, threads, down, tolerance):
    random = np.random.default_rng()
    parameters = f"{{}}, {tile[0]}, {tile[1]}, {threads // 32}"
    whole, part = (form_of("best.metal", f"{name}, " + parameters.format(output), *down) for output in (name, "float"))
    for (m, n, k), depth in (((70, 140, 130), 192), ((65, 67, 200), 64), ((1, 3, 64), 64)):
        a = random.standard_normal((2, m, k)).astype(dtype)
        b = random.standard_normal((2, k, n)).astype(dtype)
        expected = a.astype(np.float64) @ b.astype(np.float64)
        if k <= depth:
            c = multiply(whole, (a, b), dtype, tile, threads, depth, down, True)[:, 0]
        else:
            c = add_up(name, multiply(part, (a, b), np.float32, tile, threads, depth, down, True), dtype)
        np.testing.assert_allclose(c.astype(np.float64), expected, rtol=tolerance, atol=tolerance, err_msg=f"{m} x {n} x {k}")
