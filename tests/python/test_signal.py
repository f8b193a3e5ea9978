"""Transforms of signals against NumPy in double precision, on fresh random data; gradients."""
import numpy as np
import pytest
import smelt
from operation_checks import DTYPES, FULL, check_gradients, compare, poison, random, rng, share, values_of

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
    for n in lengths if FULL else lengths[::2] + lengths[-1:]:
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


def slopes(f, x, step=1e-3):
    """The gradient of a real function of a complex array by differences: its real part by real parts, …"""
    made = np.zeros(x.shape, complex)
    for index in np.ndindex(x.shape):
        for unit in (1, 1j) if np.iscomplexobj(x) else (1,):
            ends = []
            for sign in (1, -1):
                moved = x.astype(complex if np.iscomplexobj(x) else float).copy()
                moved[index] += sign * step * unit
                ends.append(f(moved))
            made[index] += unit * (ends[0] - ends[1]) / (2 * step)
    return made if np.iscomplexobj(x) else made.real


# smelt's function, NumPy's, the shape, whether x is complex.
TRANSFORMS = {
    "fft": (smelt.fft, np.fft.fft, (2, 6), True),
    "fft of more": (lambda a: smelt.fft(a, 9), lambda a: np.fft.fft(a, 9), (2, 6), True),
    "fft of fewer": (lambda a: smelt.fft(a, 3, 0), lambda a: np.fft.fft(a, 3, 0), (5, 2), True),
    "fft of real numbers": (smelt.fft, np.fft.fft, (2, 7), False),
    "ifft": (lambda a: smelt.ifft(a, 5), lambda a: np.fft.ifft(a, 5), (2, 6), True),
    "rfft": (smelt.rfft, np.fft.rfft, (2, 6), False),
    "rfft of more": (lambda a: smelt.rfft(a, 9), lambda a: np.fft.rfft(a, 9), (2, 6), False),
    "irfft": (smelt.irfft, np.fft.irfft, (2, 4), True),
    "irfft, odd": (lambda a: smelt.irfft(a, 5), lambda a: np.fft.irfft(a, 5), (2, 4), True),
    "fft2": (smelt.fft2, np.fft.fft2, (2, 3, 4), True),
    "rfftn": (smelt.rfftn, np.fft.rfftn, (2, 3, 4), False),
    "irfftn": (lambda a: smelt.irfftn(a, (3, 6)), lambda a: np.fft.irfftn(a, (3, 6), axes=(0, 1)), (3, 4), True),
    "ifftn": (smelt.ifftn, np.fft.ifftn, (3, 4), True),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_gradients_of_transforms_are_differences(name):
    f, plain, shape, is_complex = TRANSFORMS[name]
    x = signal(shape) if is_complex else signal(shape).real.copy()
    g, t = signal(plain(x).shape), signal(shape)
    if not np.iscomplexobj(plain(x)):
        g = g.real.copy()
    wanted = slopes(lambda a: (plain(a) * g.conj()).real.sum(), x)
    made = np.asarray(smelt.vjp(f, [smelt.array(x)], [smelt.array(g)])[1][0])
    assert made.dtype == x.dtype
    np.testing.assert_allclose(made, wanted, rtol=1e-4, atol=1e-4 * np.abs(wanted).max())
    t = t if is_complex else t.real.copy()
    forward = np.asarray(smelt.jvp(f, [smelt.array(x)], [smelt.array(t)])[1][0])
    np.testing.assert_allclose(forward, plain(t.astype(complex if is_complex else float)), rtol=1e-4, atol=1e-4)


COMPLEX = {  # functions of z and w whose values are real, and of NumPy
    "power of a spectrum": (lambda z, w: smelt.square(smelt.abs(smelt.fft(z * w))), lambda z, w: np.abs(np.fft.fft(z * w)) ** 2),
    "quotient": (lambda z, w: smelt.real(z / w) + smelt.imag(smelt.reciprocal(w)), lambda z, w: (z / w).real + (1 / w).imag),
    "product": (lambda z, w: smelt.real(smelt.matmul(z, smelt.transpose(w))), lambda z, w: (z @ w.T).real),
    "parts": (lambda z, w: smelt.imag(smelt.conjugate(z) * w) + smelt.abs(smelt.square(z) - w),
              lambda z, w: (z.conj() * w).imag + np.abs(z**2 - w)),
    "moved": (lambda z, w: smelt.real(smelt.concatenate([z[:, ::-1], smelt.negative(w)], 1).reshape(-1)[1:] * smelt.array([1j])),
              lambda z, w: (np.concatenate([z[:, ::-1], -w], 1).reshape(-1)[1:] * 1j).real),
    "mixed": (lambda z, w: smelt.real(smelt.real(z) * w) + smelt.real(smelt.sum(z, axis=0)), lambda z, w: (z.real * w).real + z.sum(0).real),
}


@pytest.mark.parametrize("name", COMPLEX)
def test_gradients_by_complex_numbers_are_differences(name):
    f, plain = COMPLEX[name]
    z, w = signal((2, 3)), signal((2, 3)) + 2
    g = rng.standard_normal(plain(z, w).shape).astype(np.float32)

    def summed(*a):
        return smelt.sum(f(*a) * smelt.array(g))
    made = smelt.grad(summed, (0, 1))(smelt.array(z), smelt.array(w))
    directions = signal((2, 3)), signal((2, 3))
    change = smelt.jvp(summed, [smelt.array(z), smelt.array(w)], [smelt.array(d) for d in directions])[1][0]
    by_gradient = sum((np.asarray(m).conj() * d).real.sum() for m, d in zip(made, directions))
    np.testing.assert_allclose(np.asarray(change), by_gradient, rtol=1e-3, atol=1e-3)
    for place, gradient in enumerate(made):
        def moved(a, place=place):
            return (plain(*[a if i == place else v.astype(complex) for i, v in enumerate((z, w))]) * g).sum()
        wanted = slopes(moved, (z, w)[place])
        np.testing.assert_allclose(np.asarray(gradient), wanted, rtol=1e-3, atol=1e-3 * np.abs(wanted).max())


def test_gradients_of_transforms_in_graphs_and_twice():
    from smelt.graph import compile
    x = smelt.array(rng.standard_normal((2, 8)).astype(np.float32))

    def loss(a):
        return smelt.sum(smelt.square(smelt.abs(smelt.rfft(a * a))))
    gradient = smelt.grad(loss)
    np.testing.assert_allclose(np.asarray(compile(gradient)(x)), np.asarray(gradient(x)), rtol=1e-4, atol=1e-3)
    twice = np.asarray(smelt.grad(lambda a: smelt.sum(smelt.square(gradient(a))))(x))
    step = 3e-3
    direction = smelt.array(rng.standard_normal((2, 8)).astype(np.float32))
    ends = [float(np.asarray(smelt.sum(smelt.square(gradient(x + sign * step * direction))))) for sign in (1, -1)]
    terms = twice * np.asarray(direction)
    np.testing.assert_allclose(terms.sum(), (ends[0] - ends[1]) / (2 * step), rtol=2e-2, atol=5e-3 * np.abs(terms).sum())
    with pytest.raises(smelt.UnsupportedError, match="prod has no derivative by or of complex64 arrays"):
        smelt.grad(lambda a: smelt.sum(smelt.abs(smelt.prod(smelt.fft(a)))))(x)


def turned(text):
    """Rows of signs, each the one before turned by one."""
    row = [1 if sign == "+" else -1 for sign in text]
    return np.array([row[-i:] + row[:-i] if i else row for i in range(len(row))])


def paley(q):
    """A symmetric matrix of 2 (q + 1) rows, q a prime of the form 4 n + 1."""
    squares = {i * i % q for i in range(1, q)}
    signs = np.array([[0 if i == j else 1 if (i - j) % q in squares else -1 for j in range(q)] for i in range(q)])
    conference = np.block([[np.zeros((1, 1)), np.ones((1, q))], [np.ones((q, 1)), signs]])
    return np.kron(conference, [[1, 1], [1, -1]]) + np.kron(np.eye(q + 1), [[1, -1], [-1, -1]])


def blocks(*rows):
    return np.block([[turned(text) for text in row.split()] for row in rows])


ORDERS = {
    12: paley(5),
    20: blocks("+---- -++++ --++- -+--+", "+---- +---- +-++- --++-", "++--+ -+--+ +---- +----", "+-++- ++--+ -++++ +----"),
    28: blocks("+------ --++++- -+-++-+ -++--++", "++----+ +------ +--++-- -+-++-+", "+-+--+- -++--++ +------ ++----+",
               "+--++-- +-+--+- --++++- +------"),
}


def hadamard(n):
    """Sylvester's matrix, or one of 12, 20 or 28 rows times it."""
    for order, matrix in ORDERS.items():
        if n == order or (n > order and n % order == 0 and hadamard_exists(n // order)):
            return np.kron(matrix, hadamard(n // order))
    return np.array([[1.0]]) if n == 1 else np.kron(np.array([[1, 1], [1, -1]]), hadamard(n // 2))


def hadamard_exists(n):
    return n & (n - 1) == 0


def test_matrices_of_hadamard_are_orthogonal_and_those_of_mlx():
    mx = pytest.importorskip("mlx.core")
    for n in (12, 20, 28, 24, 80, 112):
        matrix = hadamard(n)
        np.testing.assert_array_equal(matrix @ matrix.T, n * np.eye(n))
        np.testing.assert_array_equal(np.asarray(smelt.hadamard_transform(smelt.eye(n), 1.0)), matrix)
        np.testing.assert_array_equal(np.array(mx.hadamard_transform(mx.eye(n), scale=1.0)).round(), matrix)


@pytest.mark.parametrize("dtype", DTYPES)
def test_hadamard(engine, dtype):
    for shape in share([(3, 1), (2, 2), (2, 3, 16), (1, 64), (5, 256), (3, 12), (2, 40), (2, 56), (2, 3, 160), (1, 28)], dtype, engine):
        a = random(shape, dtype, len(shape) % 4)
        compare(smelt.hadamard_transform(a), values_of(a) @ hadamard(shape[-1]) / np.sqrt(shape[-1]), dtype, 1e-5)
        compare(smelt.hadamard_transform(a, 0.5), values_of(a) @ hadamard(shape[-1]) * 0.5, dtype, 1e-4)


def test_hadamard_of_long_rows_gradients_and_refusals():
    for n in (2048, 16384, 5120, 12 << 10):
        a = random((2, n))
        made = np.asarray(smelt.hadamard_transform(a))
        if n in (2048, 16384):  # symmetric: its own inverse
            np.testing.assert_allclose(np.asarray(smelt.hadamard_transform(smelt.array(made))), np.asarray(a), atol=2e-5)
        if n in (2048, 5120):
            compare(smelt.hadamard_transform(a), values_of(a) @ hadamard(n) / np.sqrt(n), "float32", 2e-5)
    for n in (8, 20):
        check_gradients(smelt.hadamard_transform, [rng.standard_normal((2, n))], second=n == 8)
    x, t, g = (smelt.array(a) for a in rng.standard_normal((3, 2, 56)).astype(np.float32))
    forward, backward = smelt.jvp(smelt.hadamard_transform, [x], [t])[1][0], smelt.vjp(smelt.hadamard_transform, [x], [g])[1][0]
    np.testing.assert_allclose(np.asarray(smelt.sum(forward * g)), np.asarray(smelt.sum(backward * t)), rtol=1e-4, atol=1e-4)
    wide = rng.standard_normal((1, 8192)).astype(np.float32)
    gradient = smelt.grad(lambda a: smelt.sum(smelt.hadamard_transform(a) * smelt.array(wide)))(random((1, 8192)))
    np.testing.assert_allclose(np.asarray(gradient), np.asarray(smelt.hadamard_transform(smelt.array(wide))), atol=2e-5)
    with pytest.raises(ValueError, match="hadamard_transform: x has shape 2x6; expected a last dimension of m 2.k elements, m = 1, 12, 20 or 28"):
        smelt.hadamard_transform(smelt.ones((2, 6)))
