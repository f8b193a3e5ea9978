"""Transforms of signals against NumPy in double precision, on fresh random data."""
import numpy as np
import pytest
import smelt
from operation_checks import DTYPES, check_gradients, compare, poison, random, rng, values_of

# One, powers of two, products of small primes, primes, long rows of each kind.
LENGTHS = [1, 2, 3, 4, 5, 8, 12, 13, 17, 30, 37, 64, 77, 128, 210, 509]
LONG = [1024, 2048, 2310, 4096, 4099, 10000, 2 * 2053, 1 << 15]


def signal(shape):
    return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(np.complex64)


def check(made, wanted):
    made = np.asarray(made)
    assert made.shape == wanted.shape and made.dtype in (np.complex64, np.float32)
    scale = max(1e-30, np.abs(wanted).max(initial=0))
    np.testing.assert_allclose(made / scale, wanted / scale, atol=3e-6)


@pytest.mark.parametrize("lengths", [LENGTHS, LONG], ids=["short", "long"])
def test_transforms_along_the_last_axis(lengths):
    for n in lengths:
        x = signal((3, n))
        poison(2 * x.size)
        check(smelt.fft(smelt.array(x)), np.fft.fft(x.astype(complex)))
        check(smelt.ifft(smelt.array(x)), np.fft.ifft(x.astype(complex)))
        y = x.real.copy()
        check(smelt.rfft(smelt.array(y)), np.fft.rfft(y.astype(float)))
        half = np.fft.rfft(y.astype(float)).astype(np.complex64)
        check(smelt.irfft(smelt.array(half), n), np.fft.irfft(half.astype(complex), n))


def test_transforms_on_both_engines(engine):
    for n in (8, 15, 23, 96):
        x = signal((2, n))
        check(smelt.fft(smelt.array(x)), np.fft.fft(x.astype(complex)))


def test_axes_sizes_and_layouts():
    x = signal((4, 5, 6))
    a, d = smelt.array(x), x.astype(complex)
    check(smelt.fft(a, axis=0), np.fft.fft(d, axis=0))
    check(smelt.ifft(a, 9, axis=1), np.fft.ifft(d, 9, axis=1))
    check(smelt.fft(a, 3), np.fft.fft(d, 3))
    check(smelt.fft(smelt.transpose(a)), np.fft.fft(d.T))
    check(smelt.fft(a[::-1, :, ::2]), np.fft.fft(d[::-1, :, ::2]))
    check(smelt.fft2(a), np.fft.fft2(d))
    check(smelt.ifftn(a), np.fft.ifftn(d))
    check(smelt.fftn(a, (7, 2)), np.fft.fftn(d, (7, 2), axes=(-2, -1)))
    check(smelt.rfft(a.real if hasattr(a, "real") else smelt.real(a), 11, axis=0), np.fft.rfft(x.real, 11, axis=0))
    check(smelt.rfft2(smelt.real(a)), np.fft.rfft2(x.real))
    check(smelt.irfft2(a), np.fft.irfft2(d))
    check(smelt.irfftn(a, (4, 8), axes=(0, 2)), np.fft.irfftn(d, (4, 8), axes=(0, 2)))
    check(smelt.fft(smelt.array([1, 2, 3], dtype="int32")), np.fft.fft([1, 2, 3]))
    assert smelt.fft(smelt.zeros((0, 4))).shape == (0, 4)


def test_transforms_refuse():
    with pytest.raises(ValueError, match="fft: axis 2 is out of range for 1 dimensions"):
        smelt.fft(smelt.ones(3), axis=2)
    with pytest.raises(ValueError, match="fft: n is 0; expected at least 1"):
        smelt.fft(smelt.ones(3), 0)
    with pytest.raises(ValueError, match="rfft: x has dtype complex64; expected real numbers"):
        smelt.rfft(smelt.array([1j, 2]))


def hadamard(n):
    return np.array([[1.0]]) if n == 1 else np.kron(np.array([[1, 1], [1, -1]]), hadamard(n // 2))


@pytest.mark.parametrize("dtype", DTYPES)
def test_hadamard(engine, dtype):
    for shape in [(3, 1), (2, 2), (2, 3, 16), (1, 64), (5, 256)]:
        a = random(shape, dtype, len(shape) % 4)
        compare(smelt.hadamard_transform(a), values_of(a) @ hadamard(shape[-1]) / np.sqrt(shape[-1]), dtype, 1e-5)
        compare(smelt.hadamard_transform(a, 0.5), values_of(a) @ hadamard(shape[-1]) * 0.5, dtype, 1e-4)


def test_hadamard_of_long_rows_gradients_and_refusals():
    for n in (2048, 4096, 16384):
        a = random((2, n))
        made = np.asarray(smelt.hadamard_transform(a))
        np.testing.assert_allclose(np.asarray(smelt.hadamard_transform(smelt.array(made))), np.asarray(a), atol=2e-5)
        if n == 2048:
            compare(smelt.hadamard_transform(a), values_of(a) @ hadamard(n) / np.sqrt(n), "float32", 2e-5)
    x = rng.standard_normal((2, 8))
    check_gradients(smelt.hadamard_transform, [x])
    wide = rng.standard_normal((1, 8192)).astype(np.float32)
    gradient = smelt.grad(lambda a: smelt.sum(smelt.hadamard_transform(a) * smelt.array(wide)))(random((1, 8192)))
    np.testing.assert_allclose(np.asarray(gradient), np.asarray(smelt.hadamard_transform(smelt.array(wide))), atol=2e-5)
    with pytest.raises(ValueError, match="hadamard_transform: x has shape 2x6; expected a last dimension of 2.k elements"):
        smelt.hadamard_transform(smelt.ones((2, 6)))
