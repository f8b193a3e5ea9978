"""kernels/matmul/best_tiles.metal, which smelt itself launches on GPUs only: both sizes of its tiles, whole and at edges, and
sums in parts."""
import pathlib

import numpy as np
import pytest

import smelt

KERNELS = pathlib.Path(__file__).resolve().parents[2] / "kernels/matmul/best_tiles.metal"
# M, N, K: within a tile, whole tiles, rows that are not aligned, edges in each direction
SIZES = [(1, 1, 1), (64, 64, 16), (65, 67, 17), (130, 68, 48), (200, 132, 33), (128, 256, 64), (5, 300, 3)]


@pytest.mark.parametrize(("name", "tile", "threads"), [("best_float_tiles", 128, 128), ("best_float_tiles_small", 64, 64)])
def test_products_of_two_pairs(name, tile, threads):
    library = smelt.library(str(KERNELS))
    kernel = getattr(library, name)
    random = np.random.default_rng()
    for (m, n, k), depth in [*((size, 64) for size in SIZES), ((65, 67, 17), 8), ((130, 68, 48), 16)]:
        a = random.standard_normal((2, m, k)).astype(np.float32)
        b = random.standard_normal((2, k, n)).astype(np.float32)
        parts = -(-k // depth)
        c = np.full((2, m, n), np.nan, np.float32)
        partial = np.full((2, parts, m, n), np.nan, np.float32)
        kernel(a, b, partial, np.array([m, n, k, depth], np.int32).tobytes(), np.array([m * k, k * n], np.int64).tobytes(),
               groups=(-(-n // tile), -(-m // tile), 2 * parts), group_size=(threads, 1, 1))
        library.best_float_sum(partial, c, np.array([m * n, parts], np.int64).tobytes(), threads=(-(-m * n // 4), 2), group_size=(32, 1))
        np.testing.assert_allclose(c, a.astype(np.float64) @ b, rtol=0, atol=2e-5 * k ** 0.5, err_msg=f"{m} x {n} x {k}")
