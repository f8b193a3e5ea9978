"""smelt.linalg against NumPy, its options, and what it reports."""
import warnings

import numpy as np
import pytest

import smelt
from smelt import linalg
from smelt.launch import DebugFlags, FallbackWarning

RNG = np.random.default_rng(18)


def normal(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def definite(*shape):
    a = RNG.standard_normal(shape)
    return (a @ a.swapaxes(-1, -2) / shape[-1] + np.eye(shape[-1])).astype(np.float32)


def test_factors_are_those_of_numpy():
    a = definite(3, 20, 20)
    assert np.allclose(linalg.cholesky(a), np.linalg.cholesky(a), atol=1e-5)
    assert np.allclose(linalg.cholesky(a, upper=True), np.linalg.cholesky(a).swapaxes(1, 2), atol=1e-5)
    b = normal(2, 30, 9)
    for mode in ("reduced", "complete"):
        q, r = linalg.qr(b, mode=mode)
        q_np, r_np = np.linalg.qr(b, mode=mode)
        assert np.allclose(r, r_np, atol=1e-4)
        assert np.asarray(q).shape == q_np.shape
        assert np.allclose(np.asarray(q)[..., :9], q_np[..., :9], atol=1e-4)
    assert np.allclose(linalg.qr(b, mode="r"), np.linalg.qr(b, mode="r"), atol=1e-4)
    x = normal(3, 20, 4)
    assert np.allclose(linalg.solve(a, x), np.linalg.solve(a, x), atol=1e-4)
    assert np.allclose(linalg.inv(a), np.linalg.inv(a), atol=1e-4)
    assert np.allclose(linalg.lstsq(b[0], x[0, :1].repeat(30, 0)), np.linalg.lstsq(b[0], x[0, :1].repeat(30, 0))[0], atol=1e-4)
    assert np.allclose(linalg.solve_triangular(np.tril(a), x), np.linalg.solve(np.tril(a), x), atol=1e-4)


def test_lu_has_the_rows_of_a():
    for shape in ((2, 7, 7), (9, 4), (4, 9), (0, 0), (3, 0), (0, 3, 3)):
        a = normal(*shape)
        p, l, u = linalg.lu(a)
        product = np.asarray(smelt.matmul(l, u))
        assert np.allclose(np.take_along_axis(product, np.asarray(p)[..., None], axis=-2), a, atol=1e-5)
        assert np.allclose(np.asarray(u), np.triu(u))


def test_jitter_grows_with_the_matrix():
    a = (1e6 * np.eye(6)).astype(np.float32)
    a[4, 4] = -20
    report = linalg.Report()
    for symmetric in (False, True):
        with pytest.warns(FallbackWarning, match="100 was added"):
            linalg.cholesky(a, on_failure="jitter", report=report, check_symmetric=symmetric)
        assert (report.attempts, report.jitter) == (3, 100)  # 1, 10, 100


def test_failures_are_reported():
    a = np.eye(6, dtype=np.float32)
    a[4, 4] = -2
    report = linalg.Report()
    with pytest.raises(smelt.HealthError, match=r"cholesky: pivot 4 is -2, expected a positive number"):
        linalg.cholesky(a)
    with pytest.warns(FallbackWarning, match=r"pivot 4 is -2.*; 3 was added to the diagonal"):
        l = linalg.cholesky(a, on_failure="jitter", jitter=1.5, report=report)
    assert (report.failed, report.index, report.value, report.attempts, report.jitter) == (1, 4, -2, 1, 3)
    assert np.allclose(l[4, 4], 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        l = linalg.cholesky(a, on_failure="ignore", report=report)
    flags = DebugFlags.decode_rows(report.flags, {6: "not positive"})[0]
    assert not flags.ok and flags.error_code == 6 and flags.error_value == -2
    assert np.isnan(l[4, 4]) and l[3, 3] == 1
    with pytest.raises(ValueError, match="on_failure is 'never'"):
        linalg.cholesky(a, on_failure="never")
    with pytest.raises(ValueError, match="expected square matrices"):
        linalg.cholesky(a[:3])
    for f in (linalg.cholesky, linalg.lu_factor, linalg.qr):
        with pytest.raises(ValueError, match="a has shape 65536x4096x1x1, expected fewer than 268435456 matrices"):
            f(smelt.broadcast_to(smelt.array([[1.0]]), (65536, 4096, 1, 1)))
    with pytest.raises(smelt.HealthError, match="differ"):
        linalg.cholesky(np.tril(np.ones((3, 3), np.float32)) + 3 * np.eye(3, dtype=np.float32), check_symmetric=True)


def test_gradients_pass_through():
    a, b = definite(12, 12), normal(12, 3)
    gradient = smelt.grad(lambda a: linalg.solve(a, b).sum())(smelt.array(a))
    x = np.linalg.solve(a.astype(np.float64), b)
    expected = -np.linalg.solve(a.T.astype(np.float64), np.ones((12, 3))) @ x.T
    assert np.allclose(gradient, expected, atol=1e-4)
    # log det a = 2 sum log diag l, whose gradient is the inverse.
    logdet = smelt.grad(lambda a: 2 * smelt.log(linalg.cholesky(a) * np.eye(12, dtype=np.float32)
                                                + (1 - np.eye(12, dtype=np.float32))).sum())
    assert np.allclose(logdet(smelt.array(a)), np.linalg.inv(a), atol=1e-4)


def test_extended_precision_and_residuals():
    hilbert = 1 / (np.arange(9)[:, None] + np.arange(9) + 1)
    l = linalg.cholesky(hilbert, precision="extended")
    assert np.asarray(l).dtype == np.float64
    assert linalg.cholesky_residual(hilbert, l) < 1e-13
    with pytest.raises(smelt.HealthError):
        linalg.cholesky(hilbert.astype(np.float32))
    x, y = np.float32([1e20, 1, -1e20]), np.float32([1, 1, 1])
    assert linalg.dot(x, y, precision="extended") == 1
    q, r = linalg.qr(normal(40, 10))
    assert linalg.qr_residual(smelt.matmul(q, r), q, r) < 1e-6
    assert linalg.orthogonality(q) < 1e-5 and linalg.lower_residual(r) == 0
