"""smelt.launch: debug flags, decoded, and set by kernels through HEADER."""

import math

import numpy as np
import pytest
import smelt
from smelt.launch import ERROR_CODES, FLAG_COUNT, HEADER, DebugFlags, KernelFlagError, check_flags


def flags(**slots: float) -> np.ndarray:
    """A buffer of flags of a kernel that succeeded, but for the given slots (s13=4: slot 13 is 4)."""
    buffer = np.zeros(FLAG_COUNT, np.float32)
    buffer[[0, 1, 2, 3, 5, 6, 7, 15]] = [1, 30, 20, 20, 64, 128, 5, 1]
    buffer[8:13] = [0.5, 1.5, 2.5, 3.5, 20]
    for slot, value in slots.items():
        buffer[int(slot[1:])] = value
    return buffer


def test_every_slot_has_its_name():
    decoded = DebugFlags.decode(flags(s14=7))
    assert (decoded.started, decoded.success, decoded.ok) == (True, True, True)
    assert (decoded.rows, decoded.columns, decoded.rank) == (30, 20, 20)
    assert (decoded.threads_per_group, decoded.total_threads, decoded.work_per_thread) == (64, 128, 5)
    assert decoded.values == (0.5, 1.5, 2.5, 3.5)
    assert (decoded.iterations, decoded.error_code, decoded.error_value) == (20, 0, 7)
    assert isinstance(decoded.rows, int) and list(decoded) == flags(s14=7).tolist()
    assert decoded.check() is decoded


@pytest.mark.parametrize("slots, sentence", [
    ({"s0": 0, "s15": 0}, "the kernel never started: its start flag is 0"),
    ({"s15": 0}, "the kernel started and did not finish: its success flag is 0, after 20 iterations"),
    ({"s13": 1, "s14": 4096, "s0": 0, "s12": 0},
     "error 1, the matrix is too large, with the value 4096 (found before the work began)"),
    ({"s13": 2, "s14": 1e9, "s12": 0}, "error 2, the work is too large, with the value 1e+09"),
    ({"s13": 3, "s14": 20}, "error 3, too many iterations, with the value 20, after 20 iterations"),
    ({"s13": 4, "s14": math.nan}, "error 4, numerical instability, with the value nan, after 20 iterations"),
    ({"s13": 5, "s14": math.inf}, "error 5, numerical instability, with the value inf, after 20 iterations"),
    ({"s13": 9, "s12": 0}, "error 9, a code missing in the table of codes, with the value 0"),
    ({"s0": math.nan}, "the flags were never written or are overwritten (start nan, error code 0, success 1): "
                       "run the kernel with init_value=0"),
    ({"s15": 0.5}, "the flags were never written or are overwritten (start 1, error code 0, success 0.5): "
                   "run the kernel with init_value=0"),
    ({"s13": 1.5}, "the flags were never written or are overwritten (start 1, error code 1.5, success 1): "
                   "run the kernel with init_value=0"),
    ({"s0": 0}, "the kernel never started: its start flag is 0, yet it reports success"),
])
def test_what_went_wrong_is_a_sentence(slots, sentence):
    decoded = DebugFlags.decode(flags(**slots))
    assert not decoded.ok
    with pytest.raises(KernelFlagError) as caught:
        decoded.check("qr")
    assert str(caught.value) == f"kernel 'qr' on a 30 × 20 matrix: {sentence}"
    assert caught.value.flags is decoded


def test_a_kernel_without_a_name_or_a_size():
    with pytest.raises(KernelFlagError, match="^kernel: the kernel never started"):
        DebugFlags.decode(np.zeros(FLAG_COUNT)).check()


def test_own_codes_join_the_table():
    codes = {1: "the matrix has more than 64 rows", 6: "the matrix is not positive definite"}
    assert "error 6, the matrix is not positive definite" in DebugFlags.decode(flags(s13=6), codes).problem
    assert "error 1, the matrix has more than 64 rows" in DebugFlags.decode(flags(s13=1), codes).problem
    assert "error 3, too many iterations" in DebugFlags.decode(flags(s13=3), codes).problem
    assert ERROR_CODES[1] == "the matrix is too large"


def test_flags_come_in_any_shape_and_kind():
    for buffer in (flags().tolist(), flags().astype(np.float16), flags().astype(np.int64), flags().reshape(4, 4),
                   memoryview(flags())):
        assert DebugFlags.decode(buffer).rows == 30
    for buffer in (np.zeros(15), np.zeros(17), np.zeros((2, 16))):
        with pytest.raises(ValueError, match=f"expected 16 numbers, got {buffer.size}"):
            DebugFlags.decode(buffer)


def test_many_sets_are_checked_at_once():
    good, bad = flags(), flags(s13=3)
    assert [f.ok for f in DebugFlags.decode_rows(np.array([good, bad, good]))] == [True, False, True]
    assert len(check_flags(np.array([[good, good], [good, good]]))) == 4
    with pytest.raises(KernelFlagError, match=r"^kernel 'qr' .*iterations.* \(set 1; 2 of 3 failed\)$") as caught:
        check_flags(np.array([good, bad, bad]), name="qr")
    assert caught.value.flags.error_code == 3
    with pytest.raises(ValueError, match="expected a last dimension of 16, got shape "):
        check_flags(np.zeros((16, 2)))


# ---- Kernels that set them.

SOURCE = """
    uint i = thread_position_in_grid.x;
    if (i == 0) {
        dbg_clear(dbg);
        dbg_threads(dbg, threads_per_threadgroup.x, threads_per_grid.x, 3);
        if (dbg_preflight(dbg, x_shape[0], x_shape[1], 64, WORK, 1000)) {
            float product = 1;
            uint steps = 0;
            for (int k = 0; k < x_shape[0] * x_shape[1]; k++, steps++) {
                product *= x[k];
                if (!dbg_finite(dbg, product, 6)) break;
            }
            dbg_iterations(dbg, steps);
            dbg_value(dbg, 0, product);
            dbg_value(dbg, 3, -product);
            dbg_value(dbg, 4, 99);
            dbg_succeed(dbg);
        }
    }
"""


@pytest.fixture(scope="module", params=[False, True], ids=["plain", "atomic"])
def product_kernel(request):
    kernel = smelt.metal_kernel(name="product", input_names=["x"], output_names=["dbg"], source=SOURCE, header=HEADER,
                                atomic_outputs=request.param)
    return lambda x, work=10: kernel(inputs=[x], template=[("WORK", work)], grid=(64, 1, 1), threadgroup=(32, 1, 1),
                                     output_shapes=[(FLAG_COUNT,)], output_dtypes=[smelt.float32],
                                     init_value=math.nan)[0]


def test_a_kernel_reports_success(product_kernel):
    decoded = DebugFlags.decode(product_kernel(np.full((2, 3), 2, np.float32))).check()
    assert (decoded.rows, decoded.columns, decoded.rank, decoded.iterations) == (2, 3, 2, 6)
    assert (decoded.threads_per_group, decoded.total_threads, decoded.work_per_thread) == (32, 64, 3)
    assert decoded.values == (64, 0, 0, -64)


def test_a_kernel_reports_what_its_preflight_found(product_kernel):
    with pytest.raises(KernelFlagError, match="on a 2 × 65 matrix: error 1, .* value 65 .found before"):
        DebugFlags.decode(product_kernel(np.zeros((2, 65), np.float32))).check()
    with pytest.raises(KernelFlagError, match="error 2, .* value 1001 .found before"):
        DebugFlags.decode(product_kernel(np.zeros((2, 3), np.float32), work=1001)).check()
    DebugFlags.decode(product_kernel(np.zeros((64, 64), np.float32), work=1000)).check()


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan, 1e30])
def test_a_kernel_reports_numbers_that_are_not_finite(product_kernel, value):
    decoded = DebugFlags.decode(product_kernel(np.full((3, 3), value, np.float32)), codes={6: "the product overflows"})
    assert not decoded.success and decoded.error_code == 6 and not math.isfinite(decoded.error_value)
    assert decoded.problem.startswith("error 6, the product overflows")
