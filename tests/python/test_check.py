"""Checked runs from Python."""
import numpy as np
import pytest

import smelt

BODY = """
uint i = thread_position_in_grid.x;
out[i + shift] = inp[i];
"""


def run(shift, **options):
    kernel = smelt.metal_kernel("moved", ["inp", "shift"], ["out"], BODY)
    return kernel(inputs=[np.arange(8, dtype=np.float32), shift], output_shapes=[(8,)], output_dtypes=[smelt.float32],
                  grid=(8, 1, 1), threadgroup=(8, 1, 1), **options)


def test_findings_are_in_the_exception():
    with pytest.raises(smelt.CheckError, match=r"writes out\[8\], but 'out' has 8 elements") as caught:
        run(1, check=True)
    outside, unwritten = caught.value.findings
    assert (outside.code, outside.kind, outside.argument, outside.index) == ("SM001", "out-of-bounds", "out", 8)
    assert (outside.thread, outside.threadgroup, outside.count, outside.other) == ((7, 0, 0), (0, 0, 0), 1, None)
    assert (unwritten.code, unwritten.index) == ("SM006", 0)
    assert (outside.line, outside.column) == (3, 16)
    assert caught.value.status == "SMELT_ERROR_CHECK"


def test_a_right_kernel_gives_its_results():
    (out,) = run(0, check=True)
    assert np.array_equal(np.asarray(out), np.arange(8))


def test_filled_outputs_need_not_be_written():
    kernel = smelt.metal_kernel("half", ["inp"], ["out"], "uint i = thread_position_in_grid.x; if (i < 4) out[i] = inp[i];")
    (out,) = kernel(inputs=[np.ones(8, dtype=np.float32)], output_shapes=[(8,)], output_dtypes=[smelt.float32], grid=(8, 1, 1),
                    threadgroup=(8, 1, 1), init_value=0, check=True)
    assert np.asarray(out).sum() == 4


def test_negative_strides_reach_before_the_first_element():
    kernel = smelt.metal_kernel("strided", ["inp"], ["out"],
                                "uint i = thread_position_in_grid.x; out[i] = inp[int(i) * inp_strides[0]];",
                                ensure_row_contiguous=False)
    source = np.arange(8, dtype=np.float32)[::-1]
    (out,) = kernel(inputs=[source], output_shapes=[(8,)], output_dtypes=[smelt.float32], grid=(8, 1, 1),
                    threadgroup=(8, 1, 1), check=True)
    assert np.array_equal(np.asarray(out), source)


def test_functions_of_libraries():
    library = smelt.compile_shader("kernel void twice(device float* x, uint i [[thread_position_in_grid]]) { x[2 * i] += 1; }")
    values = smelt.array(np.zeros(8, dtype=np.float32))
    with pytest.raises(smelt.CheckError) as caught:
        library.twice(values, threads=8, check=True)
    assert [(finding.argument, finding.index) for finding in caught.value.findings] == [("x", 8), ("x", 8)]


def test_every_run_is_checked_where_the_environment_says_so(monkeypatch):
    monkeypatch.setenv("SMELT_CHECK", "1")
    with pytest.raises(smelt.CheckError):
        run(1)


def test_arguments_that_begin_at_the_same_address_have_their_own_lengths():
    library = smelt.compile_shader("""
kernel void copy(device float* whole, device float* part, uint i [[thread_position_in_grid]]) {
  whole[i] = 1;
  part[i] = 2;
}""")
    whole = smelt.array(np.zeros(8, dtype=np.float32))
    with pytest.raises(smelt.CheckError) as caught:
        library.copy(whole, whole[:4], threads=8, check=True)
    assert [(finding.code, finding.argument, finding.index) for finding in caught.value.findings] == [("SM001", "part", 4)]


def test_a_read_past_the_end_is_not_one_of_the_array_behind_it():
    """A pointer in a structure keeps its array where lambdas that are copied capture the structure by reference."""
    library = smelt.compile_shader("""
struct Walk {
  device const float *at;
  float next() thread { return *at++; }
};
template <typename F> void call(F f) { f(); }
kernel void sums(device const float *a, device float *o, uint i [[thread_position_in_grid]],
                 uint t [[thread_position_in_threadgroup]]) {
  threadgroup float s[16][3];
  Walk walk = {a + 2 * i};
  call([&]() { call([&]() { for (int k = 0; k < 3; k++) s[t][k] = walk.next(); }); });
  o[i] = s[t][0] + s[t][1];
}""")
    both = smelt.array(np.ones(96, dtype=np.float32))
    library.sums(both[:64], both[64:], threads=32, group_size=16, check=True)
    np.testing.assert_array_equal(np.asarray(both)[64:], 2)


def test_an_index_in_front_of_the_array():
    library = smelt.compile_shader("kernel void back(device float* x, uint i [[thread_position_in_grid]]) { x[int(i) - 1] = 1; }")
    with pytest.raises(smelt.CheckError) as caught:
        library.back(smelt.array(np.zeros(8, dtype=np.float32)), threads=8, check=True)
    (finding,) = caught.value.findings
    assert (finding.index, finding.column) == (-1, 87)


def test_bound_kernels_say_the_same():
    kernel = smelt.metal_kernel("moved", ["inp", "shift"], ["out"], BODY)
    bound = kernel.bind(inputs=[np.arange(8, dtype=np.float32), 1], output_shapes=[(8,)], output_dtypes=[smelt.float32],
                        grid=(8, 1, 1), threadgroup=(8, 1, 1), check=True)
    with pytest.raises(smelt.CheckError) as caught:
        bound()
    assert [(finding.code, finding.line, finding.column, finding.index) for finding in caught.value.findings] == [
        ("SM001", 3, 16, 8), ("SM006", 0, 0, 0)]


def test_a_string_asks_for_more():
    body = "uint i = thread_position_in_grid.x; out[i] = 1 / inp[i];"
    kernel = smelt.metal_kernel("inverse", ["inp", "unused"], ["out"], body)

    def inverse(values, check):
        return kernel(inputs=[values, np.ones(3, dtype=np.float32)], output_shapes=[values.shape], output_dtypes=[smelt.float32],
                      grid=(values.size, 1, 1), threadgroup=(values.size, 1, 1), check=check)

    inverse(np.zeros(4, dtype=np.float32), True)
    assert smelt.findings() == []
    with pytest.raises(smelt.CheckError, match="1 / 0, which is infinite"):
        inverse(np.zeros(4, dtype=np.float32), "not-finite,advice")
    (out,) = inverse(np.full(4, 2, dtype=np.float32), "all")
    assert np.array_equal(np.asarray(out), np.full(4, 0.5))
    assert [(advice.code, advice.kind, advice.argument) for advice in smelt.findings()] == [("SM021", "advice", "unused")]
    with pytest.raises((ValueError, smelt.Error), match="also has 'hints', expected words of not-finite, unsigned, divergent, conversions, advice, all"):
        inverse(np.zeros(4, dtype=np.float32), "advice,hints")


def test_functions_of_libraries_take_a_string():
    library = smelt.compile_shader("kernel void minus(device uint* x, uint i [[thread_position_in_grid]]) { x[i] -= 1; }")
    with pytest.raises(smelt.CheckError, match="computes 0 - 1, which wraps in uint"):
        library.minus(smelt.array(np.zeros(8, dtype=np.uint32)), threads=8, check="unsigned")
