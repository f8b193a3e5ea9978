"""smelt.quantized_matmul against double precision, on fresh random codes and scales: values and gradients."""
import numpy as np
import pytest
import smelt
from operation_checks import FULL, part

rng = np.random.default_rng()
ROUNDOFF = {"float32": 2.0**-24, "float16": 2.0**-11, "bfloat16": 2.0**-8}
FP4 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])


def values_of(x):
    return np.asarray(x.astype("float32")).astype(np.float64)


def fp8(code):
    """The value of an e4m3 code, as its standard writes it."""
    exponent, mantissa, sign = code >> 3 & 15, code & 7, -1.0 if code & 128 else 1.0
    return sign * (mantissa / 8 * 2.0**-6 if exponent == 0 else (1 + mantissa / 8) * 2.0 ** (exponent - 7))


def packed(codes, bits):
    """Codes of (…, C) as words of (…, C · bits / 32), bit by bit."""
    words = np.zeros((*codes.shape[:-1], codes.shape[-1] * bits // 32), np.uint32)
    for place in range(codes.shape[-1]):
        code, at = codes[..., place].astype(np.uint64), place * bits
        words[..., at // 32] |= (code << np.uint64(at % 32)).astype(np.uint32)
        if at % 32 + bits > 32:
            words[..., at // 32 + 1] |= (code >> np.uint64(32 - at % 32)).astype(np.uint32)
    return words


def random_weights(shape, mode, bits, group_size, dtype="float32"):
    """Arguments of quantized_matmul, and the weights in double precision."""
    codes = rng.integers(0, 2**bits, shape)
    if mode == "mxfp8":
        codes[codes & 127 == 127] = 1  # not NaN
    groups = (*shape[:-1], shape[-1] // group_size)
    if mode == "affine":
        scales, biases = (smelt.array(rng.standard_normal(groups).astype(np.float32)).astype(dtype) for _ in range(2))
        wide = [np.repeat(values_of(x), group_size, -1) for x in (scales, biases)]
        return smelt.array(packed(codes, bits)), scales, biases, codes * wide[0] + wide[1]
    scales = rng.integers(120, 132, groups).astype(np.uint8)
    values = FP4[codes] if mode == "mxfp4" else np.vectorize(fp8)(codes)
    factors = np.repeat(2.0 ** (scales.astype(np.float64) - 127), group_size, -1)
    return smelt.array(packed(codes, bits)), smelt.array(scales), None, values * factors


def check(made, x, weights, dtype, unpacked=False):
    """unpacked: the weights were first rounded to the dtype."""
    assert made.dtype == smelt.Dtype(dtype)
    wanted, sizes = x @ weights, np.abs(x) @ np.abs(weights)
    assert made.shape == wanted.shape
    # Sums of K terms in float32, then the result's rounding.
    relative = (weights.shape[-2] + 4) * 2.0**-24 + (ROUNDOFF[dtype] if unpacked else 0)
    assert (np.abs(values_of(made) - wanted) <= relative * sizes + 2 * ROUNDOFF[dtype] * np.abs(wanted) + 1e-6).all()


SETTINGS = [*(("affine", bits, group_size) for bits in (2, 3, 4, 5, 6, 8) for group_size in (32, 64, 128)), ("mxfp4", 4, 32),
            ("mxfp8", 8, 32)]


# With SMELT_TEST_FULL=1 all settings with all dtypes.
@pytest.mark.parametrize("dtype, number", [(dtype, number) for number in range(len(SETTINGS)) for which, dtype in enumerate(ROUNDOFF)
                                           if FULL or number % 3 == which])
def test_products(dtype, number):
    mode, bits, group_size = SETTINGS[number]
    for shape in part([(128,), (3, 128), (2, 3, 5, 128), (1, 128), (2, 128), (0, 128), (41, 128)], number, 3):
        x = smelt.array(rng.standard_normal(shape).astype(np.float32)).astype(dtype)
        w, scales, biases, weights = random_weights((70, 128), mode, bits, group_size, dtype)
        made = smelt.quantized_matmul(x, w, scales, biases, group_size=group_size, bits=bits, mode=mode)
        check(made, values_of(x), weights.T, dtype, bits in (3, 5, 6) or x.size > 32 * 128)
        w, scales, biases, weights = random_weights((128, 256), mode, bits, group_size, dtype)
        made = smelt.quantized_matmul(x, w, scales, biases, False, group_size, bits, mode)
        check(made, values_of(x), weights, dtype, True)


@pytest.mark.parametrize("mode, bits, group_size", [("affine", 4, 64), ("mxfp4", 4, 32), ("mxfp8", 8, 32)])
def test_settings_left_out(mode, bits, group_size):
    x = smelt.array(rng.standard_normal((2, 64)).astype(np.float32))
    w, scales, biases, weights = random_weights((2, 9, 64), mode, bits, group_size)
    check(smelt.quantized_matmul(x, w, scales, biases, mode=mode), values_of(x), np.swapaxes(weights, -1, -2), "float32")


def test_every_small_float():
    one = smelt.array(np.eye(1, 256, dtype=np.float32))
    codes = np.arange(256)[None].repeat(256, 0).T
    scales = smelt.array(np.full((256, 8), 127, np.uint8))
    made = values_of(smelt.quantized_matmul(one, smelt.array(packed(codes, 8)), scales, mode="mxfp8"))[0]
    wanted = np.array([np.nan if code & 127 == 127 else fp8(code) for code in range(256)])
    assert np.array_equal(made, wanted, equal_nan=True)
    made = values_of(smelt.quantized_matmul(one, smelt.array(packed(codes % 16, 4)), scales, mode="mxfp4"))[0]
    assert np.array_equal(made, np.tile(FP4, 16))


def test_packed_as_tensors_quantise():
    weights = rng.standard_normal((48, 128)).astype(np.float32)
    tensor, _ = smelt.Tensor.quantise(weights, "uint4")
    words = np.asarray(tensor.array("data")).reshape(-1)[:48 * 64].view(np.uint32).reshape(48, 16)
    scales, biases = (smelt.array(np.asarray(tensor.array(plane)).reshape(48, 2)) for plane in ("scales", "biases"))
    x = smelt.array(rng.standard_normal((3, 128)).astype(np.float32))
    made = smelt.quantized_matmul(x, smelt.array(words), scales, biases)
    check(made, values_of(x), np.asarray(tensor.dequantise()).astype(np.float64).T, "float32")


@pytest.mark.parametrize("mode, bits, group_size", [("affine", 2, 32), ("mxfp4", 4, 32), ("mxfp8", 8, 32)])
@pytest.mark.parametrize("transpose", [True, False])
def test_gradients(mode, bits, group_size, transpose):
    x = smelt.array(rng.standard_normal((3, 64)).astype(np.float32))
    w, scales, biases, weights = random_weights((64, 64), mode, bits, group_size)
    direction = rng.standard_normal((3, 64)).astype(np.float32)

    def product(x, scales, biases):
        made = smelt.quantized_matmul(x, w, scales, biases, transpose, group_size, bits, mode)
        return smelt.sum(made * smelt.array(direction))
    wanted = direction.astype(np.float64) @ (weights if transpose else weights.T)
    np.testing.assert_allclose(values_of(smelt.grad(product)(x, scales, biases)), wanted, rtol=1e-4, atol=1e-3)
    if mode == "affine":
        of_weights = direction.T @ values_of(x) if transpose else values_of(x).T @ direction
        made = smelt.grad(product, 2)(x, scales, biases)
        np.testing.assert_allclose(values_of(made), of_weights.reshape(64, 2, 32).sum(-1), rtol=1e-4, atol=1e-3)


def test_messages():
    x = smelt.zeros((2, 64))
    w, scales, biases, _ = random_weights((8, 64), "affine", 4, 64)
    for arguments, settings, message in [
        ((x, w, scales), {}, "biases is None; expected an array in mode affine"),
        ((x, w, scales, biases), {"mode": "mxfp8"}, "biases is an array; expected None"),
        ((x, w, scales, biases), {"mode": "nf4"}, "mode is 'nf4'; expected 'affine', 'mxfp4' or 'mxfp8'"),
        ((x, w, scales, biases), {"bits": 7}, "bits is 7; mode 'affine' has 2, 3, 4, 5, 6, 8"),
        ((x, w, scales, biases), {"group_size": 16}, "group_size is 16; mode 'affine' has 32, 64, 128"),
        ((x, w, scales, biases), {"group_size": 32}, r"scales has shape \(8, 1\); expected \(8, 2\)"),
        ((x, w, scales, biases), {"transpose": False}, "x has 64 columns; expected 8"),
        ((x, w, scales, smelt.zeros((8, 2))), {}, r"biases has shape \(8, 2\)"),
        ((x, w.astype("int32"), scales, biases), {}, "w has shape .* and dtype int32; expected uint32"),
        ((x.astype("int32"), w, scales, biases), {}, "x has shape .* and dtype int32"),
        ((x, w, scales, None), {"mode": "mxfp4"}, r"scales has shape \(8, 1\); expected \(8, 2\)"),
        ((x, w, smelt.zeros((8, 2)), None), {"mode": "mxfp4"}, "scales has dtype float32; expected uint8"),
    ]:
        with pytest.raises(ValueError, match=message):
            smelt.quantized_matmul(*arguments, **settings)
