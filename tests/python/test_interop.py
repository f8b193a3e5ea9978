"""Arrays of other libraries in and out: what is shared, what is copied, what is refused, and that nothing leaks.

smelt._smelt._round_trip(x) is what a kernel that gives back its input does: x as an array, and that as x's kind.
"""
import array
import ctypes
import gc
import resource
import subprocess
import sys
import threading

import numpy as np
import pytest

import smelt
from smelt._smelt import _round_trip

DTYPES = ["bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "float16", "float32",
          "complex64", "float64"]


def shares(a, b):
    """Do the two lie in the same memory?"""
    return np.shares_memory(np.asarray(a), np.asarray(b))


def refused(x, error, message):
    with pytest.raises(error, match=message):
        _round_trip(x)


# ---- NumPy.

@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (5,), (2, 3, 4)])
def test_numpy_arrays_are_shared_both_ways(dtype, shape):
    x = np.asarray(np.random.default_rng(1).random(shape) * 100).astype(dtype)
    a = smelt.asarray(x)
    assert a.dtype == dtype and a.shape == shape
    y = _round_trip(x)
    assert type(y) is np.ndarray and y.dtype == x.dtype and y.shape == x.shape and y.flags.writeable
    np.testing.assert_array_equal(y, x)
    if x.size:
        assert shares(a, x) and shares(x, y)


LAYOUTS = {
    "transposed": lambda x: x.T, "backwards": lambda x: x[::-1, ::-1], "broadcast": lambda x: np.broadcast_to(x[:1], (5, 6)),
    "every other": lambda x: x[::2, 1::3], "one column": lambda x: x[:, 2:3], "fortran": np.asfortranarray,
    "window": lambda x: np.lib.stride_tricks.sliding_window_view(x[0], 3),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_numpy_layouts_are_kept(layout):
    x = LAYOUTS[layout](np.arange(24, dtype=np.float32).reshape(4, 6))
    y = _round_trip(x)
    np.testing.assert_array_equal(y, x)
    assert y.shape == x.shape and shares(x, y)
    assert all(n == 1 or s == t for n, s, t in zip(x.shape, x.strides, y.strides))


def test_what_kernels_cannot_read_is_copied():
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    raw = np.zeros(25, np.uint8)
    unaligned = raw[1:].view(np.float32).reshape(2, 3)
    unaligned[...] = x
    record = np.zeros(4, dtype=[("a", "i1"), ("b", "<f4"), ("c", "i1")])
    record["b"] = [1, 2, 3, 4]
    for given in (x.astype(">f4"), x.astype(">f4")[:, ::-1], unaligned, record["b"], record["b"][::-2],
                  np.array([1 + 2j, 3j], ">c8"), np.array([1, -2], ">i8"), np.array([1.5], ">f2")):
        a = smelt.asarray(given)
        np.testing.assert_array_equal(np.asarray(a), given)
        assert not shares(a, given)
        with pytest.raises(ValueError, match="not aligned to its elements, or not in this machine's byte order"):
            smelt.asarray(given, copy=False)


def test_read_only_arrays_are_read_but_not_shared_for_writing():
    x = np.arange(4, dtype=np.float32)
    x.flags.writeable = False
    y = _round_trip(x)
    assert y.tolist() == [0, 1, 2, 3]
    assert not shares(smelt.asarray(x), x)
    with pytest.raises(ValueError, match="read-only; expected one that can be written in place"):
        smelt.asarray(x, copy=False)


@pytest.mark.parametrize("x, message", [
    (np.zeros(2, np.complex128), r"dtype complex128 is not supported; cast it with .astype\(np.complex64\)"),
    (np.zeros(2, np.longdouble), r"dtype (float128|longdouble) is not supported; cast it with .astype\(np.float32\)"),
    (np.array(["a"]), "dtype <U1 is not supported; expected numbers or bool"), (np.array([b"a"]), r"dtype \|S1 is not supported"),
    (np.array([None]), "dtype object is not supported"), (np.zeros(2, "M8[s]"), r"dtype datetime64\[s\] is not supported"),
    (np.zeros(2, "m8[s]"), "timedelta64"), (np.zeros(2, "i4,f4"), "expected numbers or bool"), (np.zeros(2, "V2"), r"\|V2"),
    (np.ma.masked_array([1, 2], [True, False]), r"masked array; fill in its gaps with .filled\(value\)"),
])
def test_numpy_dtypes_that_are_no_numbers_are_named(x, message):
    refused(x, TypeError, message)


def test_more_dimensions_than_arrays_have():
    assert _round_trip(np.zeros((1,) * 16, np.int8)).ndim == 16
    refused(np.zeros((1,) * 17, np.int8), ValueError, "it has 17 dimensions, expected at most 16")


def test_bfloat16_is_ml_dtypes():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    x = np.arange(6).astype(ml_dtypes.bfloat16).reshape(2, 3)
    y = _round_trip(x[:, ::-1])
    assert y.dtype == ml_dtypes.bfloat16 and shares(y.view(np.uint16), x.view(np.uint16))
    np.testing.assert_array_equal(y, x[:, ::-1])
    assert smelt.asarray(x).dtype == smelt.bfloat16
    refused(np.zeros(2, ml_dtypes.float8_e4m3fn), TypeError, "float8_e4m3fn")


def test_numpy_scalars_and_subclasses():
    y = _round_trip(np.int16(7))
    assert isinstance(y, np.ndarray) and y.dtype == np.int16 and y.shape == () and y == 7
    assert smelt.asarray(np.float64(2)).dtype == "float32"  # it is a Python float
    x = np.memmap.__new__(np.memmap, filename=sys.executable, dtype=np.uint8, mode="r", shape=(16,))
    assert _round_trip(x).tobytes() == x.tobytes()

    class Named(np.ndarray):
        pass

    assert type(_round_trip(np.zeros(3, np.int8).view(Named))) is np.ndarray


# ---- Python's numbers, smelt's arrays, buffers.

def test_numbers_become_arrays():
    for number, dtype in ((2.5, "float32"), (2, "int32"), (True, "bool"), (1j, "complex64")):
        a = _round_trip(number)
        assert type(a) is smelt.array and a.dtype == dtype and a.shape == () and a.item() == number
    refused(2**31, ValueError, "2147483648 does not fit in int32")


def test_smelt_arrays_stay_what_they_are():
    a = smelt.array([1, 2, 3])[::2]
    b = _round_trip(a)
    assert type(b) is smelt.array and shares(a, b) and smelt.asarray(a) is a
    assert not shares(smelt.asarray(a, copy=True), a)


@pytest.mark.parametrize("given, dtype, expected", [
    (b"abc", "uint8", [97, 98, 99]), (bytearray(b"ab"), "uint8", [97, 98]), (array.array("d", [1.5]), "float64", [1.5]),
    (array.array("l", [1, -2]), "int64", [1, -2]), (array.array("H", [3]), "uint16", [3]),
    (memoryview(np.arange(6, dtype=np.float16).reshape(2, 3))[::-1], "float16", [[3, 4, 5], [0, 1, 2]]),
    ((ctypes.c_int32 * 3)(1, 2, 3), "int32", [1, 2, 3]), ((ctypes.c_bool * 2)(1, 0), "bool", [True, False]),
    (memoryview(b"\1\0").cast("?"), "bool", [True, False]), (memoryview(b"ab").cast("c"), "uint8", [97, 98]),
    (memoryview(np.array([1, 2], ">i4")), "int32", [1, 2]), (memoryview(np.array([1j], "c8")), "complex64", [1j]),
])
def test_buffers_are_arrays(given, dtype, expected):
    a = _round_trip(given)
    assert type(a) is smelt.array and a.dtype == dtype and a.tolist() == expected


def test_buffers_are_held_while_they_are_used():
    data = bytearray(8)
    a = smelt.asarray(data, copy=False)
    with pytest.raises(BufferError):
        data.append(1)
    np.asarray(a)[0] = 5
    assert data[0] == 5
    del a
    gc.collect()
    data.append(1)


def test_buffers_of_other_things_are_refused():
    refused(memoryview(np.zeros(2, "i4,f4")), TypeError, "the elements of its buffer are 'T.*', expected one number each")
    refused(array.array("u", "ab"), TypeError, "the elements of its buffer are 'w?u?'")
    with pytest.raises(ValueError, match="read-only"):
        smelt.asarray(b"abc", copy=False)


@pytest.mark.parametrize("x", [[1, 2], (1,), "text", None, {}, object(), len, smelt.array, np])
def test_what_is_no_array_is_refused_by_name(x):
    with pytest.raises(TypeError, match=f"object: expected an array .* or a number, got {type(x).__name__}") as info:
        _round_trip(x)
    assert ("smelt.array() converts it" in str(info.value)) == isinstance(x, (list, tuple))


# ---- Other libraries.

def torch_examples(torch):
    base = torch.arange(24).reshape(4, 6)
    for dtype in (torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16,
                  torch.bfloat16, torch.float32, torch.float64, torch.complex64, torch.uint16, torch.uint32, torch.uint64):
        yield base.to(dtype)
    x = base.to(torch.float32)
    yield from (x.T, x[1:, ::2], x[0, 0], x[:0], x[:1].expand(5, 6), torch.nn.Parameter(x, requires_grad=False))


def test_torch_tensors_are_shared_both_ways():
    torch = pytest.importorskip("torch")
    for x in torch_examples(torch):
        a = smelt.asarray(x)
        y = _round_trip(x)
        assert type(y) is torch.Tensor and y.dtype == x.dtype and y.shape == x.shape and y.device == x.device
        assert torch.equal(y, x) and y.data_ptr() == x.data_ptr()
        assert a.dtype == str(x.dtype).removeprefix("torch.") and a.strides == tuple(s * x.itemsize for s in x.stride())
    a = smelt.array([1.0, 2.0])
    t = torch.from_dlpack(a)
    t[0] = 7
    assert a.tolist() == [7, 2]


def test_torch_tensors_that_have_no_memory_of_their_own_are_refused():
    torch = pytest.importorskip("torch")
    x = torch.ones(2, 2)
    grad = torch.ones(2, requires_grad=True)
    refused(grad, TypeError, r"requires a gradient, which kernels do not propagate; pass x.detach\(\)")
    assert torch.equal(_round_trip(grad.detach()), torch.ones(2))
    with torch.no_grad():
        assert torch.equal(_round_trip(grad), torch.ones(2))
    refused(x.to_sparse(), TypeError, r"layout is torch.sparse_coo; expected a dense one, such as x.to_dense\(\)")
    refused(torch.ones(2, device="meta"), TypeError, "does not expose its memory: .*meta$")
    refused(x.to(torch.float8_e4m3fn), TypeError, "dtype float8_e4m3fn")
    refused(x.to(torch.complex128), TypeError, "dtype complex128")
    mode = pytest.importorskip("torch._subclasses").FakeTensorMode()
    with mode:
        fake = torch.ones(2)
    refused(fake, TypeError, "torch is tracing, and this tensor has no elements")


def test_torch_views_that_are_conjugated_when_read():
    torch = pytest.importorskip("torch")
    x = torch.tensor([1 + 2j, 3 - 4j])
    for view in (x.conj(), x.conj().imag):
        assert torch.equal(_round_trip(view), view.clone().resolve_conj().resolve_neg())
        with pytest.raises(ValueError, match="a view that torch conjugates or negates"):
            smelt.asarray(view, copy=False)


def test_jax_arrays_go_in_and_out():
    jax = pytest.importorskip("jax")
    jnp = jax.numpy
    for dtype in (jnp.bool_, jnp.uint8, jnp.int16, jnp.int32, jnp.float16, jnp.bfloat16, jnp.float32, jnp.complex64):
        x = jnp.arange(6).reshape(2, 3).astype(dtype)
        y = _round_trip(x)
        assert isinstance(y, jax.Array) and y.dtype == x.dtype and jnp.array_equal(x, y)
    with pytest.raises(ValueError, match="JAX's arrays are read-only"):
        smelt.asarray(jnp.ones(3), copy=False)
    before = jnp.ones(3)
    np.asarray(smelt.asarray(before))[...] = 2  # a copy
    assert before.tolist() == [1, 1, 1]
    with pytest.raises(TypeError, match="JAX is tracing the function"):
        jax.jit(_round_trip)(jnp.ones(3))


def test_mlx_arrays_go_in_and_out():
    mx = pytest.importorskip("mlx.core")
    for dtype in (mx.bool_, mx.uint8, mx.int16, mx.int32, mx.int64, mx.float16, mx.bfloat16, mx.float32, mx.complex64):
        x = mx.arange(6).reshape(2, 3).astype(dtype)
        y = _round_trip(x)
        assert isinstance(y, mx.array) and y.dtype == x.dtype and mx.array_equal(x, y).item()
        z = _round_trip(x[:, 1:] if dtype == mx.bool_ else (x + x)[:, 1:])  # not computed yet
        assert z.tolist() == (x[:, 1:] if dtype == mx.bool_ else (x + x)[:, 1:]).tolist()


def test_cupy_arrays_go_in_and_out():
    cupy = pytest.importorskip("cupy")
    try:
        cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        pytest.skip(f"CuPy has no GPU: {error}")
    x = cupy.arange(6, dtype=cupy.float32).reshape(2, 3)[:, ::2]
    y = _round_trip(x)
    assert isinstance(y, cupy.ndarray) and (x == y).all() and y.data.ptr == x.data.ptr


# ---- Ownership.

def test_what_is_shared_outlives_its_maker():
    x = np.arange(1000, dtype=np.float32)
    a = smelt.asarray(x)
    del x
    gc.collect()
    y = np.asarray(a[10:20])
    del a
    gc.collect()
    assert y.tolist() == list(range(10, 20))


def test_owners_are_let_go():
    class Owned(np.ndarray):
        pass

    import weakref

    x = np.zeros(4, np.float32).view(Owned)
    gone = weakref.ref(x)
    y = _round_trip(x)
    del x
    gc.collect()
    assert gone() is not None
    del y
    assert gone() is None  # at once: there are no cycles


def resident():
    """Bytes of this process in memory."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def leak(make, rounds):
    """Bytes that `rounds` round trips add to the process, after some that warm it up."""
    for _ in range(rounds // 10):
        _round_trip(make())
    gc.collect()
    before = resident()
    for _ in range(rounds):
        _round_trip(make())
    gc.collect()
    return resident() - before


X = np.zeros((4, 4), np.float32)


@pytest.mark.parametrize("make, rounds", [
    (lambda: X.copy(), 100_000), (lambda: X[:, ::-1], 30_000), (lambda: 2.5, 30_000), (lambda: X.astype(">f4"), 30_000),
    (lambda: bytearray(64), 30_000), (lambda: smelt.array([[1, 2], [3, 4]]), 30_000), (lambda: smelt.asarray(X)[1:], 30_000),
], ids=["numpy", "strided", "number", "swapped", "buffer", "list", "view"])
def test_round_trips_leak_nothing(make, rounds):
    assert leak(make, rounds) < 1 << 20  # 64 bytes each would be 2 MB or more


@pytest.mark.parametrize("library", ["torch", "jax.numpy", "mlx.core"])
def test_round_trips_of_libraries_leak_nothing(library):
    x = pytest.importorskip(library).ones((8, 8))
    assert leak(lambda: x.clone() if library == "torch" else x, 20_000) < 2 << 20
    before = sys.getrefcount(x)
    _round_trip(x)
    gc.collect()
    assert sys.getrefcount(x) == before


@pytest.mark.parametrize("x", [None, [1, "x"], np.zeros(2, np.complex128), np.zeros((1,) * 17), [[1], [2, 3]], 2**40])
def test_failures_leak_nothing(x):
    def fail():
        try:
            smelt.array(x)
        except (TypeError, ValueError):
            return
        raise AssertionError("nothing was raised")

    for _ in range(1000):
        fail()
    gc.collect()
    before = resident()
    for _ in range(10000):
        fail()
    gc.collect()
    assert resident() - before < 1 << 20


# ---- Threads and processes.

def test_threads_share_and_drop_arrays():
    failures = []

    def work(seed):
        x = np.full((32, 32), seed, np.float32)
        for i in range(2000):
            y = _round_trip(x[i % 32:])
            if not (y == seed).all() or smelt.array([[seed, i]]).tolist() != [[seed, i]]:
                failures.append(seed)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_arrays_may_live_until_python_ends():
    code = """
import sys, numpy as np, smelt
from smelt._smelt import _round_trip
class Last:
    def __del__(self):
        smelt.array(np.zeros(3)); print("gone", file=sys.stderr)
x = np.zeros(3, np.float32)
sys.kept = [smelt.asarray(x), _round_trip(x), smelt.array([1.0]), Last()]
loop = [smelt.asarray(x)]; loop.append(loop)
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=1500)
    assert result.returncode == 0 and "Traceback" not in result.stderr, result.stderr


def test_no_library_is_imported_that_the_caller_did_not_import():
    code = """
import sys, smelt
from smelt._smelt import _round_trip
smelt.array([1, 2]); _round_trip(2.5); _round_trip(b"ab")
try: _round_trip(object())
except TypeError: pass
print([m for m in ("torch", "jax", "mlx.core", "cupy", "ml_dtypes") if m in sys.modules])
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=1500)
    assert result.stdout.strip() == "[]", result.stderr
