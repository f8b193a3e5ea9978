"""kernels/matmul/thin.metal, which smelt itself launches on GPUs only: products of a matrix with few rows, and sums of their parts."""
import pathlib

import numpy as np
import pytest

import smelt

KERNELS = pathlib.Path(__file__).resolve().parents[2] / "kernels/matmul/thin.metal"
# M, N, K, rows at a time, parts of K, products: one element, tails of vectors, edges in each direction, odd lines of halves
FLOATS = [(1, 1, 5, 1, 1, 1), (1, 17, 1000, 1, 1, 2), (19, 70, 2049, 8, 2, 2)]
HALVES = [(5, 300, 1501, 4, 3, 1), (3, 331, 1504, 4, 2, 2), (2, 5, 40, 4, 1, 1)]


@pytest.mark.parametrize("kind", ["rows", "columns"])
@pytest.mark.parametrize(("dtype", "name", "tolerance", "sizes"),
                         [(np.float32, "float", 4e-6, FLOATS), (np.float16, "half", 1e-3, HALVES)])
def test_products(kind, dtype, name, tolerance, sizes):
    library = smelt.library(str(KERNELS))
    random = np.random.default_rng()
    line = 16 // np.dtype(dtype).itemsize
    for m, n, k, rows, parts, products in sizes:
        a = random.standard_normal((products, m, k)).astype(dtype)
        b = random.standard_normal((products, k, n)).astype(dtype)
        lines = np.ascontiguousarray(b.transpose(0, 2, 1)) if kind == "rows" else b
        step = 32 * line if kind == "rows" else 16
        depth = -(-(-(-k // parts)) // step) * step
        parts = -(-k // depth)
        c = np.full((products, m, n), np.nan, dtype)
        partial = np.full((products, parts, m, n), np.nan, np.float32)
        size = np.array([m, n, k, depth], np.int32).tobytes()
        strides = np.array([k, lines.shape[2], n, 1], np.int64).tobytes()
        batches = np.array([m * k, n * k, m * n, 0], np.int64).tobytes()
        columns = 8 if kind == "rows" else 32 * line
        getattr(library, f"thin_{kind}_{name}_{rows}")(
            a, lines, c, partial, size, strides, batches,
            groups=(-(-n // columns), -(-m // rows), products * parts), group_size=(128, 1, 1))
        if parts > 1:
            getattr(library, f"thin_sum_{name}")(partial, c, size, strides, batches, threads=(n, m, products), group_size=(min(n, 128), 1, 1))
        expected = a.astype(np.float64) @ b.astype(np.float64)
        np.testing.assert_allclose(c, expected, rtol=tolerance, atol=tolerance * k ** 0.5, err_msg=f"{m} x {n} x {k}")


def test_sums_of_a_depth_near_the_largest_have_all_parts():
    partial, c = np.arange(1, 1025, dtype=np.float32), np.full(1, np.nan, np.float32)
    size, ones = np.array([1, 1, 2**31 - 4096, 2**21], np.int32).tobytes(), np.ones(4, np.int64).tobytes()
    smelt.library(str(KERNELS)).thin_sum_float(partial, c, size, ones, ones, threads=(1,), group_size=(1,))
    np.testing.assert_array_equal(c, partial.sum())
