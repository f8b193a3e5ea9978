"""Operations of smelt.array against NumPy in double precision, on fresh random data, in odd layouts."""
import itertools

import numpy as np
import pytest
import smelt
from operation_checks import FULL

rng = np.random.default_rng()
turns = itertools.count()


def layouts(values):
    """The same values transposed, reversed, as every second element of a wider array, and row by row; in make check, only row
    by row and, in turn, one of the others."""
    odd = [lambda: smelt.array(np.ascontiguousarray(values.T)).T,
           lambda: smelt.array(np.ascontiguousarray(values[::-1]))[::-1],
           lambda: smelt.array(np.repeat(values, 2, axis=-1))[..., ::2]]
    for make in odd if FULL else [odd[next(turns) % 3]]:
        yield make()
    yield smelt.array(values)


def check(made, wanted, tolerance=1e-5):
    made = np.asarray(made)
    assert made.shape == wanted.shape
    np.testing.assert_allclose(made.astype(np.float64), wanted, rtol=tolerance, atol=tolerance)


UNARY = {
    "abs": np.abs, "arccos": np.arccos, "arcsin": np.arcsin, "arctan": np.arctan, "arctanh": np.arctanh, "arcsinh": np.arcsinh,
    "ceil": np.ceil, "cos": np.cos, "cosh": np.cosh, "degrees": np.degrees, "exp": np.exp, "expm1": np.expm1,
    "floor": np.floor, "negative": np.negative, "radians": np.radians, "reciprocal": np.reciprocal, "round": np.round,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)), "sign": np.sign, "sin": np.sin, "sinh": np.sinh, "square": np.square,
    "tan": np.tan, "tanh": np.tanh,
}
POSITIVE = {
    "arccosh": lambda x: np.arccosh(1 + x), "log": np.log, "log10": np.log10, "log1p": np.log1p, "log2": np.log2,
    "rsqrt": lambda x: 1 / np.sqrt(x), "sqrt": np.sqrt,
}


@pytest.mark.parametrize("name", UNARY)
def test_unary(name):
    values = rng.uniform(-0.95, 0.95, (5, 7)).astype(np.float32)
    for a in layouts(values):
        check(getattr(smelt, name)(a), UNARY[name](values.astype(np.float64)), 2e-5)


@pytest.mark.parametrize("name", POSITIVE)
def test_unary_positive(name):
    values = rng.uniform(0.1, 9, (5, 7)).astype(np.float32)
    for a in layouts(values):
        made = getattr(smelt, name)(a + 1 if name == "arccosh" else a)
        check(made, POSITIVE[name](values.astype(np.float64)), 2e-5)


BINARY = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.divide, "maximum": np.maximum,
    "minimum": np.minimum, "floor_divide": np.floor_divide, "remainder": np.remainder, "arctan2": np.arctan2,
    "logaddexp": np.logaddexp, "equal": np.equal, "not_equal": np.not_equal, "less": np.less, "less_equal": np.less_equal,
    "greater": np.greater, "greater_equal": np.greater_equal, "logical_and": np.logical_and, "logical_or": np.logical_or,
}


@pytest.mark.parametrize("name", BINARY)
def test_binary_broadcast(name):
    x = rng.integers(-4, 5, (3, 1, 7)).astype(np.float32)
    y = rng.integers(1, 5, (5, 7)).astype(np.float32)
    wanted = BINARY[name](x.astype(np.float64), y.astype(np.float64))
    check(getattr(smelt, name)(smelt.array(x), smelt.array(y)), wanted.astype(np.float64))


def test_operators_follow_numpy():
    x, y = rng.integers(1, 9, (2, 4, 3))
    a, b = smelt.array(x), smelt.array(y)
    for symbol in ("+", "-", "*", "//", "%", "&", "|", "^", "<<", ">>", "==", "!=", "<", "<=", ">", ">="):
        made = eval(f"a {symbol} b", {"a": a, "b": b})
        assert np.array_equal(np.asarray(made), eval(f"x {symbol} y", {"x": x, "y": y})), symbol
        mixed = eval(f"x {symbol} b", {"x": x, "b": b})
        assert isinstance(mixed, smelt.array) and np.array_equal(np.asarray(mixed), np.asarray(made)), symbol
    check(a / b, x / y)
    check(2 ** smelt.array([0.5, 3.0]), np.array([2**0.5, 8.0]))
    assert np.array_equal(np.asarray(~smelt.array([True, False])), [False, True])
    assert np.array_equal(np.asarray(-a), -x) and np.array_equal(np.asarray(abs(-a)), x)


def test_python_numbers_take_the_arrays_dtype():
    for dtype in (smelt.float16, smelt.bfloat16, smelt.float32):
        a = smelt.array([1, 2], dtype=dtype)
        assert (a + 1.5).dtype == dtype and (2 * a).dtype == dtype and (a > 0).dtype == smelt.bool_
    assert (smelt.array([1, 2]) * 2).dtype == smelt.int32
    assert (smelt.array([1, 2]) * 2.5).dtype == smelt.float32
    assert (smelt.array([1, 2]) / 2).dtype == smelt.float32


REDUCTIONS = {"sum": np.sum, "prod": np.prod, "max": np.max, "min": np.min, "mean": np.mean, "var": np.var, "std": np.std}


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("axis", [None, 0, -1, (0, 2), (1,)])
@pytest.mark.parametrize("keepdims", [False, True])
def test_reductions(name, axis, keepdims):
    values = rng.uniform(0.5, 1.5, (3, 5, 7)).astype(np.float32)
    wanted = REDUCTIONS[name](values.astype(np.float64), axis=axis, keepdims=keepdims)
    for a in layouts(values):
        check(getattr(smelt, name)(a, axis, keepdims), np.asarray(wanted), 1e-4)
        check(getattr(a, name)(axis=axis, keepdims=keepdims), np.asarray(wanted), 1e-4)


def test_along_axes():
    values = rng.standard_normal((4, 6)).astype(np.float32)
    a = smelt.array(values)
    for name, function in (("argmax", np.argmax), ("argmin", np.argmin)):
        for axis in (None, 0, 1):
            assert np.array_equal(np.asarray(getattr(smelt, name)(a, axis)), function(values, axis))
    check(smelt.cumsum(a, 1), np.cumsum(values, 1), 1e-5)
    check(smelt.cumsum(a, 0, reverse=True, inclusive=False), np.cumsum(values[::-1], 0)[::-1] - values, 1e-5)
    check(smelt.softmax(a, axis=-1), np.exp(values) / np.exp(values).sum(-1, keepdims=True))
    check(smelt.logsumexp(a, axis=0), np.log(np.exp(values.astype(np.float64)).sum(0)))
    assert smelt.all(a == a).item() and not smelt.any(a != a).item()


def test_shapes():
    values = rng.standard_normal((2, 3, 4)).astype(np.float32)
    a = smelt.array(values)
    pairs = [
        (a.reshape(6, 4), values.reshape(6, 4)), (a.reshape((4, -1)), values.reshape(4, -1)),
        (a.transpose(2, 0, 1), values.transpose(2, 0, 1)), (a.T, values.T), (smelt.swapaxes(a, 0, 2), values.swapaxes(0, 2)),
        (smelt.moveaxis(a, 0, -1), np.moveaxis(values, 0, -1)), (smelt.flatten(a, 1), values.reshape(2, 12)),
        (smelt.unflatten(a, 2, (2, -1)), values.reshape(2, 3, 2, 2)),
        (smelt.expand_dims(a, (0, -1)), values[None, ..., None]), (smelt.squeeze(a[:1]), values[0]),
        (smelt.broadcast_to(a[0], (5, 3, 4)), np.broadcast_to(values[0], (5, 3, 4))),
        (smelt.concatenate([a, a], 1), np.concatenate([values, values], 1)), (smelt.stack([a, a], -1), np.stack([values, values], -1)),
        (smelt.concatenate([a, a], None), np.concatenate([values, values], None)),
        (smelt.repeat(a, 3, 1), np.repeat(values, 3, 1)), (smelt.tile(a, (2, 1, 3)), np.tile(values, (2, 1, 3))),
        (smelt.pad(a, ((1, 0), (0, 2), (3, 1)), constant_values=7), np.pad(values, ((1, 0), (0, 2), (3, 1)), constant_values=7)),
        (smelt.pad(a, 1, "edge"), np.pad(values, 1, "edge")), (smelt.tril(a, -1), np.tril(values, -1)),
        (smelt.triu(a, 1), np.triu(values, 1)), (smelt.diagonal(a, 1, 1, 2), np.diagonal(values, 1, 1, 2)),
        (smelt.diag(a[0, 0], -1), np.diag(values[0, 0], -1)), (smelt.diag(a[0, 0], 2), np.diag(values[0, 0], 2)),
        (smelt.contiguous(a.T), values.T), (smelt.view(a, "uint8"), values.view(np.uint8)),
        (smelt.view(smelt.view(a, "uint8")[0, 0, 1:9], "float32"), values.view(np.uint8)[0, 0, 1:9].view(np.float32)),
        (smelt.view(a.T, "int16"), np.ascontiguousarray(values.T).view(np.int16)),
    ]
    for i, (made, wanted) in enumerate(pairs):
        made = np.asarray(made)  # bytes are compared, since views of other elements' bytes may be NaN
        assert (made.shape, made.dtype, made.tobytes()) == (wanted.shape, wanted.dtype, wanted.tobytes()), i
    infinite = np.array([np.inf, -1, np.nan], np.float32)  # beside the diagonal is 0, whatever is on it
    assert np.asarray(smelt.diag(smelt.array(infinite), 1)).tobytes() == np.diag(infinite, 1).tobytes()
    for parts, wanted in ((smelt.split(a, 2, 2), np.split(values, 2, 2)), (smelt.split(a, [1, 2], 1), np.split(values, [1, 2], 1))):
        assert all(np.array_equal(np.asarray(p), w) for p, w in zip(parts, wanted, strict=True))


KEYS = [
    np.s_[0], np.s_[-1, 2], np.s_[..., 1], np.s_[1:, ::-2], np.s_[:, None, 1], np.s_[[0, 1]], np.s_[:, [2, 0, 0], 1:],
    np.s_[[0, 1], [2, 0]], np.s_[[0, 1], :, [3, 1]], np.s_[1, [0, -1]], np.s_[..., [[0, 1], [2, -1]]], np.s_[None, [1], None],
    np.s_[:, np.array([True, False, True])], np.s_[np.array([[True, False, True], [False, False, True]])], np.s_[:, 1:1],
]


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_indices_follow_numpy(key):
    values = rng.standard_normal((2, 3, 4)).astype(np.float32)
    made = smelt.array(values)[key]
    assert np.array_equal(np.asarray(made), values[key])
    a, b = smelt.array(values), values.copy()
    fresh = rng.standard_normal(values[key].shape).astype(np.float32)
    b[key] = fresh
    if not (isinstance(key, list) and len(set(key)) < len(key)):
        a[key] = fresh
        repeated = np.zeros(values.shape, int)
        np.add.at(repeated, key, 1)
        assert np.array_equal(np.asarray(a)[repeated < 2], b[repeated < 2])


def test_assigning_leaves_others_alone():
    a = smelt.zeros((3, 4))
    before, view = a, np.asarray(a)
    row = a[1]
    a[1] = 5
    assert np.asarray(a)[1].tolist() == [5] * 4 and not np.asarray(row).any() and not view.any()
    assert before is a


def test_take_and_put():
    values = rng.standard_normal((4, 5)).astype(np.float32)
    a, order = smelt.array(values), np.argsort(values, 1)
    assert np.array_equal(np.asarray(smelt.take_along_axis(a, smelt.array(order), 1)), np.sort(values, 1))
    assert np.array_equal(np.asarray(smelt.take(a, [3, 0], 0)), values[[3, 0]])
    wanted = values.copy()
    np.put_along_axis(wanted, order[:, :2], 9, 1)
    assert np.array_equal(np.asarray(smelt.put_along_axis(a, order[:, :2], 9.0, 1)), wanted)


def test_products():
    x, y = rng.standard_normal((2, 3, 4, 5)).astype(np.float32), rng.standard_normal((3, 5, 6)).astype(np.float32)
    check(smelt.array(x) @ smelt.array(y), x.astype(np.float64) @ y, 1e-4)
    check(smelt.array(x[0, 0]) @ smelt.array(y[0, :, 0]), x[0, 0] @ y[0, :, 0], 1e-4)
    check(smelt.outer(x[0, 0, 0], y[0, 0]), np.outer(x[0, 0, 0], y[0, 0]))
    check(smelt.tensordot(smelt.array(x), smelt.array(y), [[1, 3], [0, 1]]), np.tensordot(x, y, [[1, 3], [0, 1]]), 1e-4)
    check(smelt.addmm(1.0, smelt.array(x[0, 0]), smelt.array(y[0]), 2.0, 3.0), 2 * (x[0, 0] @ y[0]) + 3, 1e-4)


def test_creation():
    assert np.array_equal(np.asarray(smelt.arange(5)), np.arange(5)) and smelt.arange(5).dtype == smelt.int32
    assert np.array_equal(np.asarray(smelt.arange(1, 10, 3)), [1, 4, 7]) and smelt.arange(0.5, 2).dtype == smelt.float32
    check(smelt.linspace(-1, 1, 5), np.linspace(-1, 1, 5))
    assert np.array_equal(np.asarray(smelt.eye(3, 4, 1)), np.eye(3, 4, 1))
    assert np.array_equal(np.asarray(smelt.full((2, 3), 7)), np.full((2, 3), 7))
    assert smelt.ones_like(smelt.zeros((2,), smelt.bfloat16)).dtype == smelt.bfloat16
    assert np.array_equal(np.asarray(smelt.tri(3)), np.tri(3))


def test_comparisons_of_whole_arrays():
    a = smelt.array([1.0, float("nan")])
    assert not smelt.allclose(a, a).item() and smelt.allclose(a, a, equal_nan=True).item()
    assert not smelt.array_equal(smelt.ones(3), smelt.ones(4)).item()
    assert smelt.isclose(smelt.array([1.0, 2.0]), smelt.array([1.0 + 1e-7, 2.1])).tolist() == [True, False]


def test_random():
    smelt.random.seed(7)
    first = smelt.random.normal((1000,))
    smelt.random.seed(7)
    assert np.array_equal(np.asarray(first), np.asarray(smelt.random.normal((1000,))))
    assert not np.array_equal(np.asarray(first), np.asarray(smelt.random.normal((1000,))))
    assert abs(smelt.mean(first).item()) < 0.2 and abs(smelt.std(first).item() - 1) < 0.2
    u = np.asarray(smelt.random.uniform(-2, 3, (1000,)))
    assert u.min() >= -2 and u.max() < 3 and abs(u.mean() - 0.5) < 0.3
    r = np.asarray(smelt.random.randint(-3, 4, (2000,)))
    assert set(r.tolist()) == set(range(-3, 4))
    key = smelt.random.key(3)
    one, two = smelt.random.split(key)
    same = smelt.random.normal((4,), key=one)
    assert np.array_equal(np.asarray(same), np.asarray(smelt.random.normal((4,), key=one)))
    assert not np.array_equal(np.asarray(same), np.asarray(smelt.random.normal((4,), key=two)))
    assert sorted(smelt.random.permutation(10).tolist()) == list(range(10))
    assert smelt.random.normal(shape=(4, 16)).astype(smelt.float16).dtype == smelt.float16


@pytest.mark.parametrize("call, error, words", [
    (lambda: smelt.ones((2, 3)) + smelt.ones((4,)), ValueError, "3"),
    (lambda: smelt.ones(3)[5], IndexError, "5 is out of range"),
    (lambda: smelt.ones((2, 2))[0, 0, 0], IndexError, "3 indices"),
    (lambda: smelt.ones(3)[1.5], TypeError, "not an index"),
    (lambda: smelt.sum(smelt.ones(3), axis=4), ValueError, "4"),
    (lambda: smelt.max(smelt.zeros((0,))), ValueError, "max"),
    (lambda: smelt.split(smelt.ones(5), 2), ValueError, "equal parts"),
    (lambda: smelt.ones(3) + "x", TypeError, "unsupported operand"),
    (lambda: smelt.random.randint(3, 3), ValueError, "randint"),
    (lambda: smelt.ones((2, 3)).reshape(4, -1), ValueError, "reshape"),
])
def test_errors_say_what_is_wrong(call, error, words):
    with pytest.raises(error, match=words):
        call()
