"""Softmax, norms, rotary positions and their gradients against NumPy in double precision, on fresh random data."""
import numpy as np
import pytest
import smelt
from operation_checks import DTYPES, FULL, check_gradients, compare, part, poison, random, rng, share, values_of

SHAPES = [(3, 5), (2, 33, 7), (5, 32), (4, 1025), (1, 2500), (7, 1), (130, 64)]


def softmax(x, axis):
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


@pytest.mark.parametrize("dtype", DTYPES)
def test_softmax_and_its_logarithm(engine, dtype):
    for layout, shape in share(list(enumerate(SHAPES)), dtype, engine):
        a = random(shape, dtype, layout % 4) * 4
        x = values_of(a)
        for axis in part((-1, 0, tuple(range(len(shape)))), layout // 3, 2):
            wanted = softmax(x, axis)
            compare(smelt.softmax(a, axis), wanted, dtype)
            compare(smelt.log_softmax(a, axis), np.log(wanted), dtype)


def test_softmax_of_special_rows(engine):
    rows = np.zeros((6, 40), np.float32)
    rows[0] = -np.inf
    rows[1, 3] = np.nan
    rows[2, 4:] = -np.inf
    rows[3] = 1e30
    rows[4, ::2] = -1e30
    rows[5, 7] = np.inf
    made, logs = np.asarray(smelt.softmax(smelt.array(rows), -1)), np.asarray(smelt.log_softmax(smelt.array(rows), -1))
    assert np.isnan(made[:2]).all() and np.isnan(logs[1]).all()
    assert np.allclose(made[2, :4], 0.25) and not made[2, 4:].any() and (logs[2, 4:] == -np.inf).all()
    assert np.allclose(made[3], 1 / 40) and np.allclose(made[4, 1::2], 1 / 20) and not made[4, ::2].any()
    assert np.isnan(made[5, 7])
    assert smelt.softmax(smelt.zeros((3, 0)), -1).shape == (3, 0)
    assert smelt.log_softmax(smelt.array([1, 2], dtype="int32")).dtype == smelt.float32


@pytest.mark.parametrize("dtype", DTYPES)
def test_norms(engine, dtype):
    for layout, shape in share(list(enumerate(SHAPES)), dtype, engine):
        a = random(shape, dtype, layout % 4) * 2 + 1
        weight, bias = random(shape[-1:], dtype, layout % 4), random(shape[-1:], dtype)
        x, w, b = values_of(a), values_of(weight), values_of(bias)
        centred = x - x.mean(-1, keepdims=True)
        layer = centred / np.sqrt(x.var(-1, keepdims=True) + 1e-3)
        rms = x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-3)
        compare(smelt.layer_norm(a, weight, bias, 1e-3), layer * w + b, dtype, 2e-5)
        compare(smelt.layer_norm(a, weight, None, 1e-3), layer * w, dtype, 2e-5)
        compare(smelt.layer_norm(a, None, None, 1e-3), layer, dtype, 2e-5)
        compare(smelt.rms_norm(a, weight, 1e-3), rms * w, dtype, 2e-5)
        compare(smelt.fast.rms_norm(a, None, 1e-3), rms, dtype, 2e-5)


@pytest.mark.parametrize("dtype", DTYPES)
def test_few_long_rows(dtype):
    for shape, scale in part([((1, 16384), 1.0), ((2, 20001), 30.0), ((3, 300000), 1.0)], DTYPES.index(dtype)):
        a = random(shape, dtype) * scale
        x = values_of(a)
        weight, bias = random(shape[-1:], dtype), random(shape[-1:], dtype)
        wanted = softmax(x, -1)
        compare(smelt.softmax(a, -1), wanted, dtype)
        # The logarithm is a difference of two numbers that may be as large as x.
        compare(smelt.log_softmax(a, -1), np.log(wanted), dtype, 2e-6 + 2.0 ** -23 * np.abs(x).max())
        layer = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-3)
        rms = x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-3)
        compare(smelt.layer_norm(a, weight, bias, 1e-3), layer * values_of(weight) + values_of(bias), dtype, 2e-5)
        compare(smelt.rms_norm(a, weight, 1e-3), rms * values_of(weight), dtype, 2e-5)
    rows = np.full((5, 20000), -np.inf, np.float32)
    rows[0, 7] = rows[1, 19999] = -1000.0
    rows[2, 100], rows[3] = np.nan, 1e30
    rows[4, 5] = np.inf
    made = np.asarray(smelt.softmax(smelt.array(rows), -1))
    assert made[0, 7] == 1 and made[1, 19999] == 1 and made[:2].sum() == 2
    assert np.isnan(made[2]).all() and np.allclose(made[3], 1 / 20000) and np.isnan(made[4, 5]) and not made[4, 6:].any()


@pytest.mark.parametrize("dtype", DTYPES)
def test_gradients_of_few_long_rows(dtype):
    for shape in part([(1, 16384), (3, 20001), (1, 70007)], DTYPES.index(dtype)):
        a, g, weight = random(shape, dtype) * 2 + 1, random(shape, dtype), random(shape[-1:], dtype)
        x, d, w = values_of(a), values_of(g), values_of(weight)
        y = values_of(smelt.softmax(a, -1))
        back = smelt.vjp(lambda x: smelt.softmax(x, -1), [a], [g])[1][0]
        compare(back, y * (d - (y * d).sum(-1, keepdims=True)), dtype, 1e-5)
        back = smelt.vjp(lambda x: smelt.log_softmax(x, -1), [a], [g])[1][0]
        logarithms = values_of(smelt.log_softmax(a, -1))
        compare(back, d - np.exp(logarithms) * d.sum(-1, keepdims=True), dtype, 1e-5)
        for centred, f in ((True, lambda x, w: smelt.layer_norm(x, w, None, 1e-3)), (False, lambda x, w: smelt.rms_norm(x, w, 1e-3))):
            mean = x.mean(-1, keepdims=True) if centred else 0
            scale = 1 / np.sqrt(((x - mean) ** 2).mean(-1, keepdims=True) + 1e-3)
            n, h = (x - mean) * scale, d * w
            wanted = (h - (h.mean(-1, keepdims=True) if centred else 0) - n * (h * n).mean(-1, keepdims=True)) * scale
            compare(smelt.vjp(f, [a, weight], [g])[1][0], wanted, dtype, 1e-4)


def test_norms_of_many_rows(engine):
    # Rows share teams; the last ones have fewer. The first elements are far from the others.
    for rows in (257, 1030):
        x = rng.standard_normal((rows, 70)).astype(np.float32)
        x[3, :32] += 1000
        x[rows - 1, 0] = -500
        d, a = x.astype(float), smelt.array(x)
        centred = d - d.mean(-1, keepdims=True)
        compare(smelt.layer_norm(a, None, None), centred / np.sqrt(d.var(-1, keepdims=True) + 1e-5), "float32", 2e-5)
        compare(smelt.rms_norm(a, None), d / np.sqrt((d * d).mean(-1, keepdims=True) + 1e-5), "float32", 2e-5)
        x[4, 5] = np.nan
        made = np.asarray(smelt.layer_norm(smelt.array(x), None, None))
        assert np.isnan(made[4]).all() and np.isfinite(made[:4]).all() and np.isfinite(made[5:]).all()


def test_norms_of_large_means_mixed_dtypes_and_nan(engine):
    x = (rng.standard_normal((3, 50)) + 1000).astype(np.float32)
    d = x.astype(np.float64)
    compare(smelt.layer_norm(smelt.array(x), None, None), (d - d.mean(-1, keepdims=True)) / np.sqrt(d.var(-1, keepdims=True) + 1e-5),
            "float32", 3e-4)
    assert smelt.rms_norm(smelt.array(x, dtype="float16"), smelt.ones(50)).dtype == smelt.float32
    x[1, 4] = np.nan
    made = np.asarray(smelt.layer_norm(smelt.array(x), None, None))
    assert np.isnan(made[1]).all() and np.isfinite(made[[0, 2]]).all()


def rope(x, dims, traditional, base, scale, offset, freqs=None):
    half = dims // 2
    frequency = base ** (-np.arange(half) / half) if freqs is None else 1 / freqs
    places = np.arange(x.shape[-2])[:, None] + np.reshape(offset, (-1, *(1,) * (x.ndim - 1)))
    angle = np.broadcast_to(places * scale * frequency, (*x.shape[:-1], half))
    first, second = (x[..., 0:dims:2], x[..., 1:dims:2]) if traditional else (x[..., :half], x[..., half:dims])
    out = x.copy()
    turned = first * np.cos(angle) - second * np.sin(angle), first * np.sin(angle) + second * np.cos(angle)
    out[..., :dims] = np.stack(turned, -1).reshape(first.shape[:-1] + (dims,)) if traditional else np.concatenate(turned, -1)
    return out


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("traditional", [False, True])
def test_rope(engine, dtype, traditional):
    cases = [((2, 3, 9, 20), 16), ((4, 33, 8), 8), ((5, 7), 2), ((2, 2, 3, 5, 65), 64), ((1, 1, 1, 4), 4), ((3, 4, 6), 6)]
    for shape, dims in part(cases, DTYPES.index(dtype) + 3 * traditional + (engine == "cpu-scalar"), 6):
        a = random(shape, dtype, len(shape) % 4)
        for offset in (0, 11, np.arange(shape[0]) * 3 if len(shape) > 2 else 2):
            made = smelt.rope(a, dims, traditional=traditional, base=1000.0, scale=0.7, offset=offset)
            compare(made, rope(values_of(a), dims, traditional, 1000.0, 0.7, offset), dtype, 1e-5)
        freqs = rng.uniform(1, 50, dims // 2).astype(np.float32)
        made = smelt.fast.rope(a, dims, traditional=traditional, base=None, scale=1.0, offset=4, freqs=smelt.array(freqs))
        compare(made, rope(values_of(a), dims, traditional, None, 1.0, 4, freqs.astype(np.float64)), dtype, 1e-5)


@pytest.mark.parametrize("name, f, shapes", [
    ("softmax", lambda x: smelt.softmax(x, -1), [(3, 5)]),
    ("softmax of all", lambda x: smelt.softmax(x), [(3, 5)]),
    ("log_softmax", lambda x: smelt.log_softmax(x, 0), [(3, 5)]),
    ("layer_norm", smelt.layer_norm, [(2, 3, 6), (6,), (6,)]),
    ("layer_norm without weight", lambda x: smelt.layer_norm(x, None, None), [(3, 6)]),
    ("rms_norm", smelt.rms_norm, [(4, 6), (6,)]),
    ("rope", lambda x: smelt.rope(x, 4, traditional=True, base=9.0, scale=0.5, offset=3), [(2, 3, 5)]),
    ("rope in halves", lambda x: smelt.rope(x, 4, traditional=False, base=9.0, scale=0.5, offset=3), [(2, 3, 5)]),
])
def test_gradients_are_differences(name, f, shapes):
    check_gradients(f, [rng.standard_normal(shape) for shape in shapes], second=FULL or name in ("softmax", "rms_norm", "rope"))


def test_gradients_of_long_rows_and_small_dtypes():
    for shape in part([(2, 1500), (3, 65)], 0, 2):
        x, g = rng.standard_normal((2, *shape))
        for f in (lambda a: smelt.softmax(a, -1), lambda a: smelt.log_softmax(a, -1),
                  lambda a: smelt.layer_norm(a, None, None), lambda a: smelt.rms_norm(a, None)):
            def summed(a):
                return smelt.sum(f(a) * smelt.array(g, dtype=a.dtype))
            exact = np.asarray(smelt.grad(summed)(smelt.array(x, dtype="float64")))
            for dtype, allowed in [("float32", 3e-5), ("float16", 4e-3), ("bfloat16", 3e-2)]:
                poison(x.size)
                made = smelt.grad(summed)(smelt.array(x).astype(dtype))
                assert made.dtype == smelt.Dtype(dtype)
                np.testing.assert_allclose(values_of(made), exact, rtol=allowed, atol=allowed * max(1, np.abs(exact).max()))


def test_tangents_follow_the_gradients():
    x, t, g = rng.standard_normal((3, 4, 6)).astype(np.float32)
    for f in (lambda a: smelt.softmax(a, -1), lambda a: smelt.layer_norm(a, None, None),
              lambda a: smelt.rope(a, 6, traditional=False, base=9.0, scale=1.0, offset=2)):
        forward = np.asarray(smelt.jvp(f, [smelt.array(x)], [smelt.array(t)])[1][0])
        backward = np.asarray(smelt.vjp(f, [smelt.array(x)], [smelt.array(g)])[1][0])
        np.testing.assert_allclose((forward * g).sum(), (backward * t).sum(), rtol=1e-4, atol=1e-4)


def test_refusals_name_what_is_wrong():
    x = smelt.ones((2, 3, 8))
    with pytest.raises(ValueError, match=r"layer_norm: weight has shape 7; expected 8, as x has shape 2x3x8"):
        smelt.layer_norm(x, smelt.ones(7), None)
    with pytest.raises(ValueError, match=r"rms_norm: .* x has 0 dimensions"):
        smelt.rms_norm(smelt.array(1.0), None)
    with pytest.raises(ValueError, match="rope: dims is 10; expected an even number up to the 8 elements of a row"):
        smelt.rope(x, 10, traditional=True, base=9.0, scale=1.0, offset=0)
    with pytest.raises(ValueError, match="rope: offset has shape .* one for each of 2 batches"):
        smelt.rope(x, 8, traditional=True, base=9.0, scale=1.0, offset=smelt.array([1, 2, 3]))
    with pytest.raises(ValueError, match="rope: base is None and freqs is None; expected one of them"):
        smelt.rope(x, 8, traditional=True, base=None, scale=1.0, offset=0)
    with pytest.raises(ValueError, match="log_softmax: axis 3 is out of range"):
        smelt.log_softmax(x, 3)


def convolution(x, w, stride, before, after, apart, between, groups, flip):
    """Element by element; all settings one number per spatial dimension."""
    count = x.ndim - 2
    wide = np.zeros((x.shape[0], *[(x.shape[1 + d] - 1) * between[d] + 1 for d in range(count)], x.shape[-1]))
    wide[(slice(None), *[slice(None, None, step) for step in between])] = x
    wide = np.pad(wide, [(0, 0), *[(max(before[d], 0), max(after[d], 0)) for d in range(count)], (0, 0)])
    wide = wide[(slice(None), *[slice(max(-before[d], 0), wide.shape[1 + d] - max(-after[d], 0)) for d in range(count)])]
    if flip:
        w = w[(slice(None), *[slice(None, None, -1)] * count)]
    sizes = [(wide.shape[1 + d] - (w.shape[1 + d] - 1) * apart[d] - 1) // stride[d] + 1 for d in range(count)]
    out = np.zeros((x.shape[0], *sizes, w.shape[0]))
    channels, outputs = w.shape[-1], w.shape[0] // groups
    for tap in np.ndindex(w.shape[1:-1]):
        part = wide[(slice(None), *[slice(tap[d] * apart[d], tap[d] * apart[d] + (sizes[d] - 1) * stride[d] + 1, stride[d])
                                    for d in range(count)])]
        for g in range(groups):
            here = slice(g * outputs, (g + 1) * outputs)
            out[..., here] += part[..., g * channels:(g + 1) * channels] @ w[(here, *tap)].T
    return out


CONVOLUTIONS = [  # x, weight, stride, before, after, kernel dilation, input dilation, groups, flip
    ((2, 9, 3), (4, 3, 3), (1,), (0,), (0,), (1,), (1,), 1, False),
    ((1, 17, 8), (5, 4, 8), (3,), (2,), (4,), (2,), (1,), 1, True),
    ((2, 10, 6), (6, 3, 2), (2,), (1,), (1,), (1,), (1,), 3, False),
    ((3, 7, 6, 4), (5, 3, 2, 4), (1, 2), (1, 0), (1, 2), (1, 1), (1, 1), 1, False),
    ((1, 8, 9, 16), (33, 3, 3, 16), (2, 1), (1, 1), (1, 1), (2, 1), (1, 1), 1, False),
    ((2, 5, 4, 6), (6, 3, 3, 1), (1, 1), (1, 1), (1, 1), (1, 1), (1, 1), 6, False),
    ((1, 4, 5, 2), (3, 3, 3, 2), (1, 1), (2, 2), (2, 3), (1, 1), (3, 2), 1, True),
    ((2, 6, 5, 3), (2, 2, 2, 3), (1, 1), (-1, 0), (0, -2), (1, 1), (1, 1), 1, False),
    ((1, 4, 5, 3, 2), (3, 2, 3, 2, 2), (1, 2, 1), (1, 0, 1), (0, 1, 0), (1, 1, 2), (1, 1, 1), 1, False),
]


@pytest.mark.parametrize("dtype", DTYPES)
def test_convolutions(engine, dtype):
    for case in share(CONVOLUTIONS, dtype, engine):
        x, w = random(case[0], dtype, 2), random(case[1], dtype, 3)
        _, _, stride, before, after, apart, between, groups, flip = case
        made = smelt.conv_general(x, w, stride, (before, after), apart, between, groups, flip)
        compare(made, convolution(values_of(x), values_of(w), *case[2:]), dtype, 1e-5)


@pytest.mark.parametrize("case", CONVOLUTIONS)
def test_gradients_of_convolutions(case):
    _, _, stride, before, after, apart, between, groups, flip = case
    def f(x, w):
        return smelt.conv_general(x, w, stride, (before, after), apart, between, groups, flip)
    x, w, t, u = (rng.standard_normal(shape) for shape in (*case[:2], *case[:2]))
    out = f(smelt.array(x, dtype="float64"), smelt.array(w, dtype="float64"))
    np.testing.assert_allclose(np.asarray(out), convolution(x, w, *case[2:]), rtol=1e-12, atol=1e-12)
    g = rng.standard_normal(out.shape)
    # It is linear in each: a gradient is right if it gives the change for every direction.
    change = (convolution(t, w, *case[2:]) * g).sum(), (convolution(x, u, *case[2:]) * g).sum()
    for dtype, allowed in (("float64", 1e-9), ("float32", 1e-4)):
        gradients = smelt.vjp(f, [smelt.array(x, dtype=dtype), smelt.array(w, dtype=dtype)], [smelt.array(g, dtype=dtype)])[1]
        for gradient, direction, wanted in zip(gradients, (t, u), change):
            np.testing.assert_allclose((np.asarray(gradient, np.float64) * direction).sum(), wanted, rtol=allowed, atol=allowed * 30)


def test_gradients_of_a_convolution_are_differences():
    def f(x, w):
        return smelt.conv2d(x, w, stride=(2, 1), padding=1, groups=2)
    check_gradients(f, [rng.standard_normal((1, 4, 3, 4)), rng.standard_normal((2, 3, 2, 2))])


def test_transposed_convolutions_undo_shapes():
    for count, transposed, plain in ((1, smelt.conv_transpose1d, smelt.conv1d), (2, smelt.conv_transpose2d, smelt.conv2d)):
        w = random((4, *[3, 4][:count], 5))
        y = plain(random((2, *[13, 12][:count], 5)), w, 2, 1)
        g = random(y.shape)
        back = smelt.vjp(lambda a: plain(a, w, 2, 1), [random((2, *[13, 12][:count], 5))], [g])[1][0]
        turned = smelt.array(np.ascontiguousarray(np.moveaxis(np.asarray(w), [0, -1], [-1, 0])))
        more = [(13 + 2 - 3) % 2, (12 + 2 - 4) % 2][:count]
        made = transposed(g, turned, 2, 1, 1, more if count > 1 else more[0])
        np.testing.assert_allclose(np.asarray(made), np.asarray(back), rtol=1e-5, atol=1e-5)


def test_refusals_of_convolutions():
    x, w = smelt.ones((1, 5, 5, 4)), smelt.ones((2, 3, 3, 4))
    with pytest.raises(ValueError, match="conv_general: x has 4 channels, weight 2 outputs of 4 channels, and there are 2 groups"):
        smelt.conv2d(x, w, groups=2)
    with pytest.raises(ValueError, match="spatial dimension 0 has 5 elements with padding, and the kernel spans 7"):
        smelt.conv2d(x, w, dilation=3)
    with pytest.raises(ValueError, match=r"conv1d: input has shape \(1, 5, 5, 4\); expected 1 spatial dimensions"):
        smelt.conv1d(x, w)
    with pytest.raises(ValueError, match="stride 1, kernel dilation -1 and input dilation 1 of spatial dimension 0; expected at least 1"):
        smelt.conv2d(x, w, dilation=-1)
    with pytest.raises(ValueError, match="conv2d: stride has 0; expected at least 1"):
        smelt.conv2d(x, w, stride=(1, 0))
