"""examples/python/panel_qr.py: QR by panels, against its residuals and NumPy."""

import runpy
import sys

import numpy as np
import pytest
from operation_checks import FULL
from smelt.launch import FallbackWarning, KernelFlagError


def random_matrix(m, n):
    return np.random.default_rng().standard_normal((m, n)).astype(np.float32)


def assert_is_qr(example, a, q, r):
    """By the residuals; and R equals LAPACK's up to the signs of rows, where A has full rank."""
    rank = min(a.shape)
    assert q.shape == (a.shape[0], rank) and r.shape == (rank, a.shape[1])
    of_a, of_q = example.residuals(a, q, r)
    bound = 4e-7 * max(4, max(a.shape)) ** 0.5
    assert of_a < bound and of_q < bound * rank**0.5, (a.shape, of_a, of_q)
    assert (np.tril(np.asarray(r), -1) == 0).all()


SHAPES = [(1, 1), (1, 7), (7, 1), (5, 5), (33, 17), (17, 40), (100, 37), (64, 64), (129, 130), (300, 33)]
PANELS = [1, 16, 19]


@pytest.mark.parametrize("m, n, panel", [(*shape, panel) for s, shape in enumerate(SHAPES) for p, panel in enumerate(PANELS)
                                         if FULL or (s + p) % 3 == 0])
def test_random_matrices(example, m, n, panel):
    a = random_matrix(m, n)
    assert_is_qr(example, a, *example.kernel_qr(a, panel))


def test_r_is_that_of_lapack_but_for_signs(example):
    a = random_matrix(50, 21)
    r = np.asarray(example.kernel_qr(a)[1])
    expected = np.linalg.qr(a.astype(np.float64))[1]
    signs = np.sign(np.diag(r) / np.diag(expected))[:, None]
    assert np.abs(r - signs * expected).max() < 1e-4


def test_matrices_that_break_careless_kernels(example):
    low_rank = random_matrix(40, 3) @ random_matrix(3, 30)
    for a in (np.zeros((6, 4), np.float32), np.eye(9, dtype=np.float32), np.ones((30, 5), np.float32), low_rank,
              random_matrix(20, 20) * 1e30, random_matrix(20, 20) * 1e-30):
        q, r = example.kernel_qr(np.ascontiguousarray(a, np.float32))
        assert_is_qr(example, a, q, r)


def test_other_inputs_than_a_block_of_memory(example):
    a = random_matrix(40, 60)[::2, 1::3].T
    assert_is_qr(example, a, *example.kernel_qr(a))


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("place", [(0, 0), (19, 19), (3, 17)])
def test_numbers_that_are_not_finite_are_reported(example, value, place):
    a = random_matrix(20, 20)
    a[place] = value
    with pytest.raises(KernelFlagError, match="numerical instability"):
        example.kernel_qr(a)


def test_what_is_too_large_falls_back(example):
    a = random_matrix(30, 3)
    with pytest.raises(KernelFlagError, match="on a 30 × 3 matrix: error 1, .* too large, with the value 30"):
        example.kernel_qr(a, max_side=29)
    example.kernel_qr(a, max_side=30)
    tall = random_matrix(2049, 2)
    with pytest.warns(FallbackWarning, match="kernel_qr failed .*too large.*reference_qr computes"):
        assert_is_qr(example, tall, *example.qr(tall))


def test_it_runs_as_a_program(example, capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["panel_qr.py", "30", "20"])
    runpy.run_path(example.__file__, run_name="__main__")
    assert "||A - QR|| / ||A|| = " in capsys.readouterr().out
