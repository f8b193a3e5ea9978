"""Sorting and cumulative operations against NumPy, on fresh random data, on both engines."""
import itertools

import numpy as np
import pytest
import smelt
from operation_checks import FULL, check_gradients, part, poison, random, rng, values_of

INTEGERS = ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]


def integers(shape, dtype):
    if dtype == "bool":
        return rng.random(shape) < 0.5
    info = np.iinfo(dtype)
    few = rng.random() < 0.5
    return rng.integers(0 if few else info.min, 9 if few else info.max, shape, dtype)


def check_order(a, axis):
    x = np.asarray(a) if a.dtype.name not in ("bfloat16",) else np.asarray(a.astype("float32"))
    poison(x.size)
    made, places = smelt.sort(a, axis), smelt.argsort(a, axis)
    assert made.dtype == a.dtype and places.dtype == smelt.int32
    back = np.asarray(made) if a.dtype.name != "bfloat16" else np.asarray(made.astype("float32"))
    np.testing.assert_array_equal(back, np.sort(x, axis, kind="stable"))
    np.testing.assert_array_equal(np.asarray(places), np.argsort(x, axis, kind="stable"))


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "bool", "int8", "uint32", "int64"])
def test_orders(engine, dtype):
    cases = list(itertools.product([(1,), (3, 5), (2, 33, 4), (5, 100), (0, 3)], (-1, 0, None)))
    for shape, axis in part(cases, len(dtype) + (engine == "cpu-scalar"), 4):
        if dtype in INTEGERS:
            a = smelt.array(integers(shape, dtype))
        else:
            a = random(shape, dtype, len(shape) % 4)
        check_order(a, axis)


def test_rows_of_several_blocks():
    for count in (2048, 2049, 5000, 20000):
        check_order(smelt.array(rng.integers(-50, 50, (2, count)).astype(np.float32)), -1)
    check_order(random((3, 4100), "bfloat16"), 1)
    check_order(smelt.array(integers((1, 9000), "uint16")), None)


def test_several_blocks_on_the_scalar_engine(engine):
    check_order(random((1, 2500)), -1)


@pytest.mark.parametrize("dtype,shape", [("float32", (1, 32769)), ("bfloat16", (1, 12289)), ("int8", (1, 8200)),
                                         ("uint16", (1, 9000)), ("float16", (3, 8192))])
def test_long_rows(engine, dtype, shape):
    """Half of the elements have random bits, including NaN and subnormal numbers; the others are zeros of both signs, so
    that every tile has equal elements."""
    if engine == "cpu-scalar" and not FULL and dtype in ("uint16", "float16"):
        pytest.skip("make check-long")
    few = rng.random(shape) < 0.5
    if dtype in INTEGERS:
        x = integers(shape, dtype)
    else:
        bits = rng.integers(0, 1 << 32, shape, dtype=np.uint64).astype(np.uint32)
        x = np.where(few, rng.integers(-1, 2, shape) * np.float32(0), bits.view(np.float32))
    with np.errstate(all="ignore"):
        a = smelt.array(x) if dtype in INTEGERS else smelt.array(x).astype(dtype)
    x = np.asarray(a.astype("float32")) if dtype == "bfloat16" else np.asarray(a)
    poison(x.size)
    made, places = smelt.sort(a), np.asarray(smelt.argsort(a))
    np.testing.assert_array_equal(places, np.argsort(x, -1, kind="stable"))
    back = np.asarray(made.astype("float32")) if dtype == "bfloat16" else np.asarray(made)
    assert back.tobytes() == np.take_along_axis(x, places, -1).tobytes()


def test_special_values(engine):
    row = np.array([np.nan, 1, -np.inf, 0.0, -0.0, np.inf, -np.nan, 1, 1e-40, -1e-40], np.float32)
    check_order(smelt.array(np.tile(row, (2, 5))), -1)
    for dtype in ("float16", "bfloat16"):
        check_order(smelt.array(row).astype(dtype), -1)
    check_order(smelt.array(row.astype(np.float64), dtype="float64"), -1)


def test_largest_and_partitions():
    x = rng.standard_normal((4, 37)).astype(np.float32)
    a = smelt.array(x)
    for k in (1, 5, 37):
        np.testing.assert_array_equal(np.asarray(smelt.topk(a, k)), np.sort(x)[:, -k:])
        np.testing.assert_array_equal(np.asarray(smelt.topk(a, min(k, 4), axis=0)), np.sort(x, 0)[-min(k, 4):])
        np.testing.assert_array_equal(np.asarray(smelt.topk(a, k, axis=None)), np.sort(x, None)[-k:])
    split = np.asarray(smelt.partition(a, 10))
    assert (split[:, :10] <= split[:, 10:11]).all() and (split[:, 10:] >= split[:, 10:11]).all()
    places = np.asarray(smelt.argpartition(a, -3, axis=0))
    np.testing.assert_array_equal(np.sort(places, 0), np.tile(np.arange(4)[:, None], (1, 37)))
    for call, words in [(lambda: smelt.topk(a, 38), "topk: k is 38; expected 1 to 37"),
                        (lambda: smelt.partition(a, 40), "partition: kth is 40"),
                        (lambda: smelt.sort(a, 2), "sort: axis 2 is out of range for 2 dimensions"),
                        (lambda: smelt.sort(smelt.array([1j])), "sort is not defined for complex64")]:
        with pytest.raises((ValueError, smelt.UnsupportedError), match=words):
            call()


def test_gradients_are_differences():
    x = rng.permutation(20).reshape(4, 5) + rng.uniform(-0.3, 0.3, (4, 5))
    for f in (lambda a: smelt.sort(a, 0), lambda a: smelt.sort(a, None), lambda a: smelt.topk(a, 2) ** 2):
        check_gradients(f, [x], second=FULL)


SCANS = {"cumsum": np.cumsum, "cumprod": np.cumprod, "cummax": np.maximum.accumulate, "cummin": np.minimum.accumulate}


@pytest.mark.parametrize("name", SCANS)
@pytest.mark.parametrize("reverse", [False, True])
def test_scans_along_rows(engine, name, reverse):
    cases = [((3, 32), "float32"), ((2, 2, 77), "float16"), ((1, 3000), "float32"), ((5, 100), "bfloat16"), ((2, 40), "int8"),
             ((3, 65), "int64"), ((2, 50), "bool")]
    for index, (shape, dtype) in part(list(enumerate(cases)), list(SCANS).index(name) + reverse + (engine == "cpu-scalar"), 2):
        if dtype in INTEGERS:
            a = smelt.array(integers(shape, dtype))
        else:
            a = random(shape, dtype, index % 4) * 0.05 + 1
        x = values_of(a) if dtype not in INTEGERS else np.asarray(a)
        turned = x[..., ::-1] if reverse else x
        wide = turned if dtype in ("int64",) or name in ("cummax", "cummin") else \
            turned.astype(np.int32) if dtype in INTEGERS else turned
        wanted = SCANS[name](wide, axis=-1, dtype=wide.dtype) if name in ("cumsum", "cumprod") else SCANS[name](wide, axis=-1)
        poison(x.size)
        made = getattr(smelt, name)(a, -1, reverse=reverse)
        wanted = wanted[..., ::-1] if reverse else wanted
        if dtype in INTEGERS:
            np.testing.assert_array_equal(np.asarray(made), wanted)
        else:
            allowed = {"float32": 5e-5, "float16": 3e-3, "bfloat16": 2e-2}[dtype]
            np.testing.assert_allclose(values_of(made), wanted, rtol=allowed, atol=allowed)
        if name in ("cumsum", "cumprod") and dtype in ("float32", "int64"):
            before = np.asarray(getattr(smelt, name)(a, -1, reverse=reverse, inclusive=False), np.float64)
            full = np.asarray(wanted, np.float64)
            shifted = np.full_like(full, 0 if name == "cumsum" else 1)
            if reverse:
                shifted[..., :-1] = full[..., 1:]
            else:
                shifted[..., 1:] = full[..., :-1]
            np.testing.assert_allclose(before, shifted, rtol=5e-5, atol=5e-5)


def test_scans_carry_nan(engine):
    x = np.ones((2, 70), np.float32)
    x[0, 40] = np.nan
    for name in SCANS:
        made = np.asarray(getattr(smelt, name)(smelt.array(x), -1))
        assert np.isfinite(made[0, :40]).all() and np.isnan(made[0, 40:]).all() and np.isfinite(made[1]).all()


@pytest.mark.parametrize("name", SCANS)
def test_scans_of_few_long_rows(name):
    for dtype, shape, reverse in part([("float32", (1, 16384), False), ("int32", (3, 20001), True), ("int64", (2, 33000), False),
                                       ("float32", (20, 16500), True)], list(SCANS).index(name), 2):
        x = integers(shape, dtype) if dtype in INTEGERS else rng.uniform(0.999, 1.001, shape).astype(dtype)
        turned = x[:, ::-1] if reverse else x
        wide = turned if dtype in INTEGERS else turned.astype(np.float64)
        wanted = SCANS[name](wide, axis=-1, dtype=wide.dtype) if name in ("cumsum", "cumprod") else SCANS[name](wide, axis=-1)
        wanted = wanted[:, ::-1] if reverse else wanted
        for transposed in (False, True):
            poison(x.size)
            made = np.asarray(getattr(smelt, name)(smelt.array(x.T.copy() if transposed else x), 0 if transposed else -1,
                                                   reverse=reverse))
            np.testing.assert_allclose(made.T if transposed else made, wanted, rtol=0 if dtype in INTEGERS else 3e-4)
        if name in ("cumsum", "cumprod"):
            before = np.asarray(getattr(smelt, name)(smelt.array(x), -1, reverse=reverse, inclusive=False))
            one = (slice(None), slice(-1, None) if reverse else slice(0, 1))
            rest, shifted = ((slice(None, -1), slice(1, None)) if reverse else (slice(1, None), slice(None, -1)))
            assert (before[one] == (name == "cumprod")).all()
            np.testing.assert_allclose(before[:, rest], wanted[:, shifted], rtol=0 if dtype in INTEGERS else 3e-4)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bool", "int8", "uint64"])
def test_extremes_of_long_lines(engine, dtype):
    # Chunks, and with the longest of them chunks of candidates.
    for shape in part([(2, 4097), (1, 9000), (3, 5000)], len(dtype)) + ([(1, 1100000)] if (engine, dtype) == ("cpu", "float32") else []):
        x = rng.standard_normal(shape).astype(dtype) if dtype.startswith("float") else integers(shape, dtype)
        for function, reference in ((smelt.argmax, np.argmax), (smelt.argmin, np.argmin)):
            assert np.array_equal(np.asarray(function(smelt.array(x), -1)), reference(x, -1))
            assert np.array_equal(np.asarray(function(smelt.array(x))), reference(x))
            assert np.array_equal(np.asarray(function(smelt.array(x.T.copy()), 0)), reference(x, -1))
    if dtype == "float32":
        x[0, 4090] = x[0, 300] = np.nan
        assert smelt.argmax(smelt.array(x)).item() == smelt.argmin(smelt.array(x)).item() == 300
