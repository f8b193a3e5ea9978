"""Arguments of calls that take a short way: what they are may change from call to call, and nothing leaks."""
import gc
import sys
import threading

import numpy as np
import pytest

import smelt
from smelt._smelt import _round_trip

KINDS = ["?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "q", "Q", "f2", "f4", "f8", "c8"]


@pytest.fixture(scope="module")
def copy():
    return smelt.metal_kernel("copy", ["a"], ["o"], "uint i = thread_position_in_grid.x; o[i] = a[i];")


@pytest.fixture(scope="module")
def library():
    return smelt.library("""
kernel void scale(device float *o, const device float *a, constant float &by, constant int2 &shift,
                  uint i [[thread_position_in_grid]]) { o[i] = a[i] * by + float(shift.x - shift.y); }
""")


def run(kernel, a, **arguments):
    arguments = {"output_shapes": [a.shape], "output_dtypes": [a.dtype], "grid": (a.size, 1, 1),
                 "threadgroup": (32, 1, 1)} | arguments
    return kernel(inputs=[a], **arguments)[0]


# ---- NumPy's arrays, read in place.

@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("order", "=><")
def test_numpy_arrays_of_every_dtype_layout_and_byte_order(kind, order):
    random = np.random.default_rng(7)
    dtype = np.dtype(kind).newbyteorder(order)
    whole = (random.random((5, 6, 7)) * 100 - 20).astype("f4").astype(dtype)
    for view in (whole, whole.T, whole[1:, ::2], whole[::-1, :, ::-3], whole[2, 3], whole[2, 3, 1:2], whole[:0],
                 whole[..., None], np.broadcast_to(whole[0, 0], (3, 7)), np.asfortranarray(whole), whole[1, 2, 3, ...]):
        back = _round_trip(view)
        assert back.shape == view.shape and back.dtype == dtype.newbyteorder("=")
        np.testing.assert_array_equal(back, view)


def test_subclasses_and_scalars_of_numpy():
    class Own(np.ndarray):
        pass

    x = np.arange(6, dtype="f4").reshape(2, 3)
    for o in (x.view(Own), np.float32(2.5), np.int16(-3), np.array(7, "u8"), x.view(np.recarray)):
        np.testing.assert_array_equal(_round_trip(o), np.asarray(o))
    with pytest.raises(TypeError, match="masked"):
        _round_trip(np.ma.masked_array(x, x > 2))


def test_dtypes_without_a_number_in_smelt_are_refused_by_name():
    for dtype, message in (("c16", "complex128 is not supported"), ("M8[s]", r"datetime64\[s\] is not supported"),
                           ("g", "is not supported"), ("O", "object is not supported"), ("S3", "S3 is not supported"),
                           ([("a", "f4")], "is not supported")):
        with pytest.raises(TypeError, match=message):
            _round_trip(np.zeros(3, dtype))


def test_arrays_that_change_between_calls(copy):
    a = np.arange(24, dtype="i4")
    inputs = [a]
    for change in (lambda: None, lambda: setattr(a, "shape", (4, 6)), lambda: setattr(a, "dtype", np.dtype("u4")),
                   lambda: inputs.__setitem__(0, a.T), lambda: inputs.__setitem__(0, a[::2].astype("f2")),
                   lambda: inputs.__setitem__(0, np.float32(4).reshape(1, 1))):
        change()
        x = inputs[0]
        o, = copy(inputs=inputs, output_shapes=[x.shape], output_dtypes=[x.dtype], grid=[x.size], threadgroup=[8])
        np.testing.assert_array_equal(o, x)


def test_an_array_that_became_read_only_is_not_written(copy):
    a, o = np.arange(8, dtype="f4"), np.zeros(8, "f4")
    copy(inputs=[a], out=[o], grid=(8,), threadgroup=(8,))
    o.setflags(write=False)
    with pytest.raises(ValueError, match="out 'o': the array given is read-only"):
        copy(inputs=[a + 1], out=[o], grid=(8,), threadgroup=(8,))
    np.testing.assert_array_equal(o, a)


# ---- Sizes.

def test_sizes_of_every_kind(copy):
    a = np.arange(8, dtype="f4")
    for grid in ((8,), [8], (8, 1), (8, 1, 1), [np.int64(8)], np.array([8, 1]), (np.uint8(8), True), range(8, 9)):
        np.testing.assert_array_equal(run(copy, a, grid=grid), a)
    for grid, error, message in (
            ((0,), ValueError, r"grid is \(0,\): its x is 0, expected at least 1"),
            ((8, -1), ValueError, r"its y is -1, expected at least 1"),
            ((8, 1, 1 << 70), ValueError, "its z is 1180591620717411303424, expected at most 4294967295"),
            ((1 << 40,), ValueError, "grid.x is 1099511627776, expected at most 4294967295"),
            ((8.0,), TypeError, r"its x is 8.0 \(float\); expected an integer"),
            (("8",), TypeError, r"its x is '8' \(str\); expected an integer"),
            ((), ValueError, r"grid is \(\), which has 0 sizes; expected 1 to 3"),
            ((1, 1, 1, 1), ValueError, "which has 4 sizes"),
            (8, TypeError, r"kernel 'copy': grid is 8 \(int\); expected up to three numbers")):
        with pytest.raises(error, match=message):
            run(copy, a, grid=grid)


# ---- Functions of libraries.

def test_numbers_of_a_function_are_rounded_once(library):
    a, o = np.ones(4, "f4"), np.zeros(4, "f4")
    for by in (0.1, 1 + 2.0**-24, 1 + 3 * 2.0**-24, 1e300, -1e-46, float("nan"), 7, np.float64(0.3), np.float32(0.7),
               np.array(2.5), True, [0.25]):
        library.scale(o, a, by, (0, 0), threads=4)
        with np.errstate(over="ignore"):
            np.testing.assert_array_equal(o, np.full(4, np.float32(by[0] if isinstance(by, list) else by)))
    library.scale(o, a, by=2, shift=[5, -6], threads=(4,), group_size=4)
    np.testing.assert_array_equal(o, np.full(4, 13, "f4"))


def test_a_list_that_contains_itself_is_refused(library):
    a, o, endless = np.ones(4, "f4"), np.zeros(4, "f4"), []
    endless.append(endless)
    with pytest.raises(RecursionError):
        library.scale(o, a, endless, (0, 0), threads=4)


def test_messages_name_the_argument_each_time(library):
    a, o = np.ones(4, "f4"), np.zeros(4, "f4")
    for _ in range(3):
        for arguments, sizes, error, message in (
                ((o, a, "x", (0, 0)), {"threads": 4}, TypeError, r"kernel 'scale': argument 2 \('by'\)"),
                ((o, a, 1.0, (0,)), {"threads": 4}, ValueError, r"argument 3 \('shift'\) has 1 numbers"),
                ((2.0, a, 1.0, (0, 0)), {"threads": 4}, TypeError, r"argument 0 \('o'\) is 2.0, but the kernel writes"),
                ((o, a[::2], 1.0, (0, 0)), {"threads": 2}, ValueError, r"argument 1 \('a'\) is not row-contiguous"),
                ((o, a, 1.0), {"threads": 4}, TypeError, r"arguments are missing: shift \(buffer 3\)"),
                ((o, a, 1.0, (0, 0)), {"threads": 0}, ValueError, r"threads is \(0,\): its x is 0"),
                ((o, a, 1.0, (0, 0)), {"threads": 4, "grid": 3}, TypeError, "has no argument 'grid'")):
            with pytest.raises(error, match=message):
                library.scale(*arguments, **sizes)


# ---- References, also after failures half way.

def test_calls_leave_no_references_behind(copy, library):
    a, o = np.arange(8, dtype="f4"), np.zeros(8, "f4")
    objects = [a, o, made := (8,), shapes := [made], inputs := [a]]

    def fails(call, **arguments):
        try:
            call(**arguments)
        except (TypeError, ValueError):
            return
        raise AssertionError(f"no exception for {arguments}")

    def calls():
        good = {"inputs": inputs, "output_shapes": shapes, "output_dtypes": [smelt.float32], "grid": made,
                "threadgroup": made}
        copy(**good)
        copy(inputs=inputs, out=[o], grid=made, threadgroup=made)
        library.scale(o, a, 2.0, (1, 1), threads=8)
        for wrong in ({"output_dtypes": ["no"]}, {"grid": (0,)}, {"template": [("T",)]}, {"out": [a[::2]]}):
            fails(copy, **(good | wrong))
        fails(library.scale, o=o, a=a, by=2.0, shift=(1, "1"), threads=8)

    calls()
    gc.collect()
    before, blocks = [sys.getrefcount(x) for x in objects], sys.getallocatedblocks()
    for _ in range(1000):
        calls()
    gc.collect()
    assert [sys.getrefcount(x) for x in objects] == before
    assert sys.getallocatedblocks() - blocks < 500  # one per round would be 1000; caches of the process vary by 200


def test_threads_call_one_kernel_while_its_list_changes(copy, library):
    small, large = np.arange(40, dtype="f4"), np.arange(40, 80, dtype="f4")
    inputs, failures, done = [small], [], threading.Event()

    def call():
        try:
            o = np.zeros(40, "f4")
            for _ in range(500):
                got, = copy(inputs=inputs, output_shapes=[(40,)], output_dtypes=["float32"], grid=(40,),
                            threadgroup=(8,))
                assert got[0] in (0, 40) and np.array_equal(got - got[0], small)
                library.scale(o, small, 2.0, (3, 1), threads=40)
                assert np.array_equal(o, small * 2 + 2)
        except BaseException as failure:  # noqa: BLE001 - reported by the test
            failures.append(failure)

    def change():
        while not done.is_set():
            inputs[0] = large.copy()
            inputs[0] = small

    threads = [threading.Thread(target=call) for _ in range(3)]
    changing = threading.Thread(target=change)
    for thread in [*threads, changing]:
        thread.start()
    for thread in threads:
        thread.join()
    done.set()
    changing.join()
    assert not failures


# ---- torch.

def test_tensors_that_torch_reads_otherwise(copy):
    torch = pytest.importorskip("torch")
    x = torch.randn(6, dtype=torch.complex64)
    for view in (x, x.conj(), x.conj().imag, x.imag, torch._neg_view(x.real.contiguous()), x.conj()[::2], x.real[1:],
                 torch.randn(4, 3).T, torch.randn(2, 3)[:, 1:], torch.tensor(3.5), torch.empty(0)):
        plain = view.clone().resolve_conj().resolve_neg()
        assert torch.equal(_round_trip(view), plain)
        if view.numel():
            o, = copy(inputs=[view.reshape(-1)], output_shapes=[(view.numel(),)], output_dtypes=[view.dtype],
                      grid=(view.numel(),), threadgroup=(4,))
            assert torch.equal(o, plain.reshape(-1))
    for view in (x.conj(), x.conj().imag):
        with pytest.raises(ValueError, match="conjugates or negates"):
            copy(inputs=[torch.zeros(6, dtype=view.dtype)], out=[view], grid=(6,), threadgroup=(4,))


def test_tensors_that_require_gradients(copy):
    torch = pytest.importorskip("torch")
    x = torch.arange(6.0)
    assert torch.equal(_round_trip(x), x)
    x.requires_grad_()
    with pytest.raises(TypeError, match="requires a gradient"):
        _round_trip(x)
    with torch.no_grad():
        assert torch.equal(_round_trip(x), x)
    with pytest.raises(TypeError, match="requires a gradient"):
        _round_trip(torch.nn.Parameter(torch.ones(2)))
    assert torch.equal(_round_trip(x.detach()), x.detach())
    count = sys.getrefcount(x)
    for _ in range(100):
        _round_trip(x.detach())
        with torch.no_grad():
            _round_trip(x)
    assert sys.getrefcount(x) == count
