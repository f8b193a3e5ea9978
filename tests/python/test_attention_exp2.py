"""The exponentials that attention computes by multiply-adds (kernels/tensor/attention_exp2.metal): their polynomials are the best of
their kind, and their results are as near as the file says."""

import pathlib

import numpy as np
import pytest
from smelt import library

TEXT = (pathlib.Path(__file__).parents[2] / "kernels" / "tensor" / "attention_exp2.metal").read_text(encoding="utf-8")
KERNEL = "\nkernel void powers(device const float *x, device float *y, uint i [[thread_position_in_grid]]) { y[i] = exp2_by_fma<%d>(x[i]); }\n"
BOUNDS = {3: 1.02e-4, 4: 2.9e-6}


def powers(degree, x):
    y = np.full_like(x, 7)
    library(TEXT + KERNEL % degree).powers(x, y, threads=len(x), device="cpu")
    return y


def best_error(degree):
    """The least largest relative error of a polynomial that is 1 at 0, for 2^f and |f| <= 1/2: weights of a least-squares fit grow
    where the error is large (Lawson)."""
    f = np.linspace(-0.5, 0.5, 2001)
    matrix, right = f[:, None] ** np.arange(1, degree + 1) * 2**-f[:, None], 1 - 2**-f
    weights, least = np.full(len(f), 1 / len(f)), np.inf
    for _ in range(500):
        root = np.sqrt(weights)
        found = np.linalg.lstsq(matrix * root[:, None], right * root, rcond=None)[0]
        errors = np.abs(matrix @ found - right)
        least = min(least, errors.max())
        weights *= np.sqrt(errors / errors.max() + 1e-12)
        weights /= weights.sum()
    return least


@pytest.mark.parametrize("degree", [3, 4])
def test_results_err_as_little_as_polynomials_can(degree):
    x = np.concatenate([np.linspace(-126, 1, 400_001), np.random.default_rng().uniform(-2, 0, 100_000)]).astype(np.float32)
    error = np.abs(powers(degree, x) / np.exp2(x.astype(np.float64)) - 1).max()
    assert error < BOUNDS[degree]
    assert error < best_error(degree) * 1.05


@pytest.mark.parametrize("degree", [3, 4])
def test_small_powers_are_zero_or_subnormal(degree):
    x = np.array([-np.inf, -3e38, -1e9, -1000, -127.5, -127], np.float32)
    assert not powers(degree, x).any()
    x = np.linspace(-127, -126, 1001).astype(np.float32)
    y = powers(degree, x)
    assert ((y >= 0) & (y < 2.0**-125)).all()


@pytest.mark.parametrize("degree", [3, 4])
def test_powers_of_integers_are_exact(degree):
    x = np.arange(-126, 127, dtype=np.float32)
    np.testing.assert_array_equal(powers(degree, x), np.exp2(x))
