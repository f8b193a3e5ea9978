"""smelt.quantize and dequantize against a plain reference and smelt.Tensor.quantise, on fresh random data; gradients."""

import numpy as np
import pytest
import smelt
from operation_checks import FULL, ROUNDOFF, check_gradients, random, rng, values_of
from test_quantized_matmul import FP4, SETTINGS, fp8, packed, random_weights

QUICK = True  # the best code is left to make check-long


def codes_of(words, bits):
    """The codes, bit by bit."""
    words = np.asarray(words)
    columns = words.shape[-1] * 32 // bits
    codes = np.zeros((*words.shape[:-1], columns), np.uint32)
    for i in range(columns):
        for b in range(bits):
            at = i * bits + b
            codes[..., i] |= (words[..., at // 32] >> np.uint32(at % 32) & 1) << np.uint32(b)
    return codes


@pytest.mark.parametrize("number", range(len(SETTINGS)))
def test_there_and_back(engine, number):
    mode, bits, group = SETTINGS[number]
    for dtype in list(ROUNDOFF) if FULL else [list(ROUNDOFF)[(number + (engine == "cpu-scalar")) % 3]]:
        x = random((3, 5, 128), dtype, number % 3) * 3 + 0.5
        made = smelt.quantize(x, group, bits, mode)
        assert made[0].shape == (3, 5, 4 * bits) and made[0].dtype == smelt.uint32
        assert all(plane.shape == (3, 5, 128 // group) for plane in made[1:]) and len(made) == (3 if mode == "affine" else 2)
        back, wide = smelt.dequantize(*made, group_size=group, bits=bits, mode=mode, dtype="float32"), values_of(x)
        codes = codes_of(made[0], bits)
        if mode == "affine":
            scales, biases = (np.repeat(values_of(plane), group, -1) for plane in made[1:])
            np.testing.assert_allclose(values_of(back), codes * scales + biases, rtol=1e-6, atol=1e-6)
            step = np.abs(scales)
            # Half a step; a range that was shortened so that 0 is a whole step may end a step before the last element.
            ends = (codes == 0) | (codes == (1 << bits) - 1)
            allowed = np.where(ends, 1.51, 0.501) * step + (1 << bits) * step * ROUNDOFF[dtype] + 1e-6
            assert (np.abs(values_of(back) - wide) <= allowed).all()
            lowest = wide.reshape(3, 5, -1, group).min(-1)
            assert (biases[..., ::group] >= lowest - 1e-3 - np.abs(lowest) * ROUNDOFF[dtype]).all() and codes.max() == (1 << bits) - 1
        else:
            scales = np.repeat(2.0 ** (np.asarray(made[1]).astype(float) - 127), group, -1)
            values = FP4[codes] if mode == "mxfp4" else np.vectorize(fp8)(codes)
            np.testing.assert_array_equal(values_of(back), values * scales)
            largest = np.abs(wide).reshape(3, 5, -1, group).max(-1)
            np.testing.assert_array_equal(np.asarray(made[1]), np.floor(np.log2(largest)) - (2 if bits == 4 else 8) + 127)
        assert smelt.dequantize(*made, group_size=group, bits=bits, mode=mode).dtype == (dtype if mode == "affine" else "bfloat16")


@pytest.mark.parametrize("element, mode, bits", [("uint2", "affine", 2), ("uint4", "affine", 4), ("uint8", "affine", 8),
                                                 ("fp4_e2m1", "mxfp4", 4), ("fp8_e4m3", "mxfp8", 8)])
def test_as_tensors_do(element, mode, bits):
    x = random((7, 256)) * 2
    group = 64 if mode == "affine" else 32
    tensor, _ = smelt.Tensor.quantise(np.asarray(x), element, group=group)
    words, scales, *biases = smelt.quantize(x, group, bits, mode)
    wanted = np.asarray(tensor.dequantise()).reshape(7, 256).astype(float)
    made = values_of(smelt.dequantize(words, scales, *biases, group_size=group, bits=bits, mode=mode, dtype="float32"))
    if mode == "affine":
        np.testing.assert_array_equal(np.asarray(scales), np.asarray(tensor.array("scales")).reshape(7, -1))
        np.testing.assert_array_equal(np.asarray(biases[0]), np.asarray(tensor.array("biases")).reshape(7, -1))
        step = np.abs(np.repeat(values_of(scales), group, -1))
        near = np.abs(made - wanted) <= 1e-5 * np.abs(wanted) + 1e-6
        assert near.mean() > 0.999 and (np.abs(made - wanted) <= 1.001 * step).all()  # halves of a step may go either way
    else:
        np.testing.assert_array_equal(made, wanted)


def test_as_mlx_does():
    mx = pytest.importorskip("mlx.core")
    x = rng.standard_normal((6, 256)).astype(np.float32)
    for bits in (2, 3, 4, 5, 6, 8):
        words, scales, biases = smelt.quantize(smelt.array(x), 64, bits)
        theirs = mx.quantize(mx.array(x), 64, bits)
        np.testing.assert_allclose(np.asarray(scales), np.array(theirs[1]), rtol=1e-6)
        np.testing.assert_allclose(np.asarray(biases), np.array(theirs[2]), rtol=1e-6)
        same = codes_of(words, bits) == codes_of(np.array(theirs[0]), bits)
        assert same.mean() > 0.995
        made = smelt.dequantize(*(smelt.array(np.array(a)) for a in theirs), group_size=64, bits=bits)
        np.testing.assert_allclose(np.asarray(made), np.array(mx.dequantize(*theirs, 64, bits)), rtol=1e-5, atol=1e-6)


def test_special_values(engine):
    x = np.zeros((4, 64), np.float32)
    x[1] = 2.5
    x[2, 3], x[2, 7], x[2, 9] = np.nan, np.inf, -3
    x[3] = np.linspace(-1e38, 3e38, 64)
    words, scales, biases = smelt.quantize(smelt.array(x), 32, 4)
    back = np.asarray(smelt.dequantize(words, scales, biases, 32, 4))
    assert np.isfinite(np.asarray(scales)).all() and np.isfinite(np.asarray(biases)).all()
    assert not back[0].any() and np.allclose(back[1], 2.5)
    assert np.allclose(back[2, 9], -3) and np.allclose(back[2, 7], 0, atol=1e-6)
    assert np.isfinite(back[3]).all() and np.allclose(back[3], x[3], atol=1.5e37)
    for mode, bits in (("mxfp4", 4), ("mxfp8", 8)):
        words, scales = smelt.quantize(smelt.array(x), mode=mode)
        back = np.asarray(smelt.dequantize(words, scales, mode=mode, dtype="float32"))
        assert not back[0].any() and np.isnan(back[2, 3]) == (bits == 8) and back[2, 7] == (6 if bits == 4 else 448) * 2.0 ** (1 - (2 if bits == 4 else 8))
        tiny = smelt.array(np.full((1, 32), 2.0**-140, np.float32))
        assert np.asarray(smelt.quantize(tiny, mode=mode)[1]).tolist() == [[0]]


@pytest.mark.parametrize("bits", [3, 4])
def test_gradients(bits):
    w, scales, biases, _ = random_weights((3, 64), "affine", bits, 32)

    def f(scales, biases):
        return smelt.dequantize(w, scales, biases, 32, bits) ** 2
    check_gradients(f, [np.asarray(scales), np.asarray(biases)], second=bits == 4)
    forward = smelt.jvp(f, [scales, biases], [scales, biases])[1][0]
    np.testing.assert_allclose(np.asarray(forward), 2 * np.asarray(f(scales, biases)), rtol=1e-4, atol=1e-4)


def test_packing_in_graphs():
    from smelt.graph import compile
    x = random((4, 96))

    def f(x):
        w, scales, biases = smelt.quantize(x, 32, 5)
        return smelt.dequantize(w, scales * 2, biases, 32, 5)
    np.testing.assert_allclose(np.asarray(compile(f)(x)), np.asarray(f(x)), rtol=1e-6, atol=1e-6)


def test_refusals():
    x = smelt.ones((2, 64))
    w, scales, biases = smelt.quantize(x, 32, 4)
    for call, words in [
        (lambda: smelt.quantize(x, 32, 7), "quantize: bits is 7; mode 'affine' has 2, 3, 4, 5, 6, 8"),
        (lambda: smelt.quantize(x, 128), r"quantize: w has shape \(2, 64\); expected a last dimension that is a multiple of the group size, 128"),
        (lambda: smelt.quantize(x.astype("float64")), "quantize_scales: x has dtype float64"),
        (lambda: smelt.dequantize(w, scales), "dequantize: biases is None; expected an array in mode affine"),
        (lambda: smelt.dequantize(w, scales, biases), r"dequantize: scales has shape 2x2; expected 2x1"),
        (lambda: smelt.dequantize(w.astype("int32"), scales, biases, 32), "dequantize: w has dtype int32; expected uint32"),
        (lambda: smelt.dequantize(w, scales, mode="mxfp4"), "dequantize: scales has dtype float32; expected uint8"),
    ]:
        with pytest.raises((ValueError, smelt.UnsupportedError), match=words):
            call()


def test_packed_by_hand():
    codes = rng.integers(0, 64, (2, 64))
    made = smelt.dequantize(smelt.array(packed(codes, 6)), smelt.ones((2, 2)), smelt.zeros((2, 2)), 32, 6)
    np.testing.assert_array_equal(np.asarray(made), codes)
