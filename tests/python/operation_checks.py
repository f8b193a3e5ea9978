"""What tests of shipped operations share: arrays of every dtype and layout, gradients as differences."""
import os

import numpy as np
import smelt

rng = np.random.default_rng()
ROUNDOFF = {"float32": 2.0**-24, "float16": 2.0**-11, "bfloat16": 2.0**-8}
DTYPES = list(ROUNDOFF)
FULL = "SMELT_TEST_FULL" in os.environ  # as in make check-long


def part(cases, which, of=len(DTYPES)):
    """Every `of`-th case from number `which` on; all with SMELT_TEST_FULL=1. Kernels of many dtypes and shapes take long to
    compile: in `make check` each dtype has its share of the shapes, and the two engines have different ones."""
    return list(cases) if FULL else list(cases)[which % of::of]


def share(cases, dtype, engine):
    """The part of the cases for a dtype on an engine."""
    return part(cases, DTYPES.index(dtype) + (engine == "cpu-scalar"))


def values_of(x):
    """The elements in double precision."""
    return np.asarray(x.astype("float32")).astype(np.float64)


def poison(count):
    """Leaves NaN in memory that the next arrays of about this size may get."""
    for bytes_each in (2, 4):
        kept = [smelt.array(np.full(count * bytes_each // 4 + 1, np.nan, np.float32)) for _ in range(3)]
        del kept


def random(shape, dtype="float32", layout=0):
    """Normal numbers: row by row, transposed, reversed, or every second of more."""
    values = rng.standard_normal(shape).astype(np.float32)
    poison(values.size)
    if layout == 1:
        made = smelt.array(np.ascontiguousarray(values.T)).astype(dtype)
        return smelt.transpose(made)
    if layout == 2 and values.ndim:
        return smelt.array(np.ascontiguousarray(values[::-1])).astype(dtype)[::-1]
    if layout == 3 and values.ndim:
        return smelt.array(np.repeat(values, 2, axis=-1)).astype(dtype)[..., ::2]
    return smelt.array(values).astype(dtype)


def compare(made, wanted, dtype, allowed=2e-6):
    """Within the dtype's rounding of the result, and a relative error of the float32 computation."""
    assert made.dtype == smelt.Dtype(dtype), made.dtype
    assert made.shape == wanted.shape
    tolerance = allowed + 2 * ROUNDOFF[dtype]
    np.testing.assert_allclose(values_of(made), wanted, rtol=tolerance, atol=tolerance)


def check_gradients(f, arrays, reference=None, second=True):
    """f's gradients by all arrays: in float64 against central differences, in float32 against float64; of `reference`
    where f has no float64. `second`: the gradient of a gradient's sum of squares, too."""
    doubles = [np.asarray(a, np.float64) for a in arrays]
    numbers = tuple(range(len(arrays)))
    direction = rng.standard_normal(np.shape(_numbers(reference or f, doubles)))

    def summed(*x):
        y = f(*x)
        return smelt.sum(y * smelt.array(direction, dtype="float64" if y.dtype == smelt.float64 else "float32"))

    def plain(values):
        return float((_numbers(reference or f, values) * direction).sum())

    wanted = []
    for place in numbers:
        slope = np.zeros_like(doubles[place])
        for i in np.ndindex(slope.shape):
            ends = []
            for step in (1e-5, -1e-5):
                moved = [d.copy() for d in doubles]
                moved[place][i] += step
                ends.append(plain(moved))
            slope[i] = (ends[0] - ends[1]) / 2e-5
        wanted.append(slope)
    if reference is None:
        exact = smelt.grad(summed, numbers)(*[smelt.array(d, dtype="float64") for d in doubles])
        for gradient, slope in zip(exact, wanted):
            np.testing.assert_allclose(np.asarray(gradient), slope, rtol=1e-6, atol=1e-7)
    single = [smelt.array(d.astype(np.float32)) for d in doubles]
    for gradient, slope in zip(smelt.grad(summed, numbers)(*single), wanted):
        assert gradient.dtype == smelt.float32
        np.testing.assert_allclose(np.asarray(gradient), slope, rtol=2e-4, atol=2e-4 * max(1, np.abs(slope).max()))
    if second and reference is None:
        def squares(*x):
            return sum((smelt.sum(g * g) for g in smelt.grad(summed, numbers)(*x)), start=smelt.sum(x[0] * 0))
        fine = smelt.grad(squares, numbers)(*[smelt.array(d, dtype="float64") for d in doubles])
        for gradient, exact in zip(smelt.grad(squares, numbers)(*single), fine):
            exact = np.asarray(exact)
            np.testing.assert_allclose(np.asarray(gradient), exact, rtol=1e-3, atol=1e-3 * max(1, np.abs(exact).max()))


def _numbers(f, values):
    """f in double precision, as NumPy's."""
    made = f(*[smelt.array(v, dtype="float64") for v in values]) if "reference" not in getattr(f, "__name__", "") else f(*values)
    return np.asarray(made)
