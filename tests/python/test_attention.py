"""smelt.scaled_dot_product_attention against loops in double precision, on fresh random data: values and gradients."""
import os

import numpy as np
import pytest
import smelt

FULL = "SMELT_TEST_FULL" in os.environ
QUICK = True  # the best code is left to make check-long
rng = np.random.default_rng()
ROUNDOFF = {"float32": 2.0**-24, "float16": 2.0**-11, "bfloat16": 2.0**-8}


def values_of(x):
    return np.asarray(x.astype("float32")).astype(np.float64)


def reference(q, k, v, scale, mask=None, sinks=None):
    """Row by row; mask: bools, floats or None."""
    B, N, T, _ = q.shape
    out = np.zeros((B, N, T, v.shape[3]))
    if mask is not None:
        mask = np.broadcast_to(mask, (B, N, T, k.shape[2]))
    for b, n, t in np.ndindex(B, N, T):
        shared = n // (N // k.shape[1])
        scores = scale * k[b, shared] @ q[b, n, t]
        if mask is not None:
            scores = np.where(mask[b, n, t], scores, -np.inf) if mask.dtype == bool else scores + mask[b, n, t]
        top = max(scores.max(initial=-np.inf), -np.inf if sinks is None else sinks[n])
        if top == -np.inf:
            continue
        weights = np.exp(scores - top)
        out[b, n, t] = weights @ v[b, shared] / (weights.sum() + (0 if sinks is None else np.exp(sinks[n] - top)))
    return out


def inputs(dtype, batches, heads, key_heads, rows, keys, depth, value_depth=None):
    shapes = [(batches, heads, rows, depth), (batches, key_heads, keys, depth),
              (batches, key_heads, keys, value_depth or depth)]
    return [smelt.array(rng.standard_normal(shape).astype(np.float32)).astype(dtype) for shape in shapes]


def causal(rows, keys):
    return np.arange(keys) <= np.arange(rows)[:, None] + keys - rows


def compare(arrays, wanted, made, dtype):
    assert made.dtype == smelt.Dtype(dtype) and made.shape == wanted.shape
    allowed = 4 * ROUNDOFF[dtype] + 2e-5
    np.testing.assert_allclose(values_of(made), wanted, rtol=allowed, atol=allowed)


DEPTHS = (1, 40, 64, 80, 96, 128, 256)


HEADS = [*(("float32", depth) for depth in DEPTHS), ("float16", 96), ("bfloat16", 128), ("float16", 257), ("bfloat16", 64)]


# Each case compiles two kernels, so make check runs three: the smallest and largest float32, and one of odd size in 16 bits.
@pytest.mark.parametrize("dtype, depth", HEADS if FULL else [("float32", 1), ("float32", 256), ("float16", 257)])
def test_heads_of_every_size(dtype, depth):
    arrays = inputs(dtype, 2, 4, 2, 17, 33, depth)
    q, k, v = map(values_of, arrays)
    scale = depth**-0.5
    compare(arrays, reference(q, k, v, scale), smelt.scaled_dot_product_attention(*arrays, scale=scale), dtype)
    made = smelt.scaled_dot_product_attention(*arrays, scale=scale, mask="causal")
    compare(arrays, reference(q, k, v, scale, causal(17, 33)), made, dtype)


@pytest.mark.parametrize("dtype", ROUNDOFF)
@pytest.mark.parametrize("heads, key_heads", [(1, 1), (6, 2), (5, 1)])
def test_masks_that_are_broadcast(dtype, heads, key_heads):
    arrays = inputs(dtype, 2, heads, key_heads, 5, 13, 24, 7)
    q, k, v = map(values_of, arrays)
    for shape in [(13,), (5, 13), (5, 1), (heads, 1, 13), (2, 1, 1, 13), (2, heads, 5, 13), ()]:
        seen = rng.random(shape) < 0.6
        made = smelt.scaled_dot_product_attention(*arrays, scale=0.3, mask=smelt.array(seen))
        compare(arrays, reference(q, k, v, 0.3, np.asarray(seen)), made, dtype)
        added = smelt.array(np.where(seen, rng.standard_normal(shape), -np.inf).astype(np.float32)).astype(dtype)
        made = smelt.scaled_dot_product_attention(*arrays, scale=0.3, mask=added)
        compare(arrays, reference(q, k, v, 0.3, values_of(added)), made, dtype)


def test_rows_that_see_no_key_are_zero():
    q, k, v = arrays = inputs("float32", 1, 2, 1, 20, 7, 16)
    made = smelt.scaled_dot_product_attention(q, k, v, scale=0.25, mask="causal")
    assert not values_of(made)[:, :, :13].any()
    compare(arrays, reference(*map(values_of, arrays), 0.25, causal(20, 7)), made, "float32")
    empty = smelt.scaled_dot_product_attention(q, k[:, :, :0], v[:, :, :0], scale=0.25)
    assert empty.shape == q.shape and not values_of(empty).any()
    assert smelt.scaled_dot_product_attention(q[:, :, :0], k, v, scale=1.0).shape == (1, 2, 0, 16)


def test_large_scores_and_nan():
    q, k, v = arrays = inputs("float32", 1, 1, 1, 3, 9, 8)
    made = smelt.scaled_dot_product_attention(q, k, v, scale=1000.0)
    assert np.isfinite(values_of(made)).all()
    np.testing.assert_allclose(values_of(made), reference(*map(values_of, arrays), 1000.0), rtol=2e-2, atol=2e-2)
    spoilt = values_of(q)
    spoilt[0, 0, 1, 2] = np.nan
    made = values_of(smelt.scaled_dot_product_attention(smelt.array(spoilt.astype(np.float32)), k, v, scale=1.0))
    assert np.isnan(made[0, 0, 1]).all() and np.isfinite(made[0, 0, [0, 2]]).all()


def test_sinks():
    arrays = inputs("float16", 2, 4, 2, 6, 11, 32)
    sinks = rng.standard_normal(4).astype(np.float32)
    for mask, seen in ((None, None), ("causal", causal(6, 11))):
        made = smelt.scaled_dot_product_attention(*arrays, scale=0.2, mask=mask, sinks=smelt.array(sinks))
        compare(arrays, reference(*map(values_of, arrays), 0.2, seen, sinks.astype(np.float64)), made, "float16")


def test_dtypes_that_differ_give_float32_and_views_are_read():
    q, k, v = inputs("float32", 2, 4, 2, 8, 8, 16)
    turned = [smelt.array(np.ascontiguousarray(np.swapaxes(np.asarray(x), 1, 2))).transpose(0, 2, 1, 3) for x in (q, k, v)]
    made = smelt.fast.scaled_dot_product_attention(*turned, scale=0.5)
    compare(turned, reference(*map(values_of, (q, k, v)), 0.5), made, "float32")
    half = k.astype("float16")
    made = smelt.scaled_dot_product_attention(q, half, v, scale=0.5)
    compare(turned, reference(*map(values_of, (q, half, v)), 0.5), made, "float32")


@pytest.mark.parametrize("kind", ["all", "causal", "unseen", "bool", "floats", "sinks"])
def test_gradients_are_differences(kind):
    arrays = inputs("float32", 1, 4, 2, 5, 3 if kind == "unseen" else 6, 6, 4)
    doubles = [*map(values_of, arrays)]
    rows, keys = 5, doubles[1].shape[2]
    seen = {"all": None, "causal": causal(rows, keys), "unseen": causal(rows, keys), "bool": rng.random((4, rows, keys)) < 0.5,
            "floats": rng.standard_normal((rows, keys)), "sinks": None}[kind]
    if kind == "bool":
        seen[1, 2] = False
    mask = "causal" if kind in ("causal", "unseen") else None if seen is None else smelt.array(seen)
    if kind in ("floats", "sinks"):  # gradients of these, too
        extra = np.asarray(seen if kind == "floats" else rng.standard_normal(4)).astype(np.float32)
        arrays.append(smelt.array(extra))
        doubles.append(extra.astype(np.float64))
    direction = rng.standard_normal(reference(*doubles[:3], 0.4).shape)

    def smelts(q, k, v, more=None):
        made = smelt.scaled_dot_product_attention(q, k, v, scale=0.4, mask=more if kind == "floats" else mask,
                                                  sinks=more if kind == "sinks" else None)
        return smelt.sum(made * smelt.array(np.asarray(direction, np.float32)))

    def doubled(values):
        return (reference(*values[:3], 0.4, values[3] if kind == "floats" else seen,
                          values[3] if kind == "sinks" else None) * direction).sum()
    gradients = smelt.grad(smelts, tuple(range(len(arrays))))(*arrays)
    for place, gradient in enumerate(gradients):
        wanted = np.zeros_like(doubles[place])
        for i in np.ndindex(wanted.shape):
            moved = [[x.copy() for x in doubles] for _ in range(2)]
            moved[0][place][i] += 1e-5
            moved[1][place][i] -= 1e-5
            wanted[i] = (doubled(moved[0]) - doubled(moved[1])) / 2e-5
        np.testing.assert_allclose(values_of(gradient), wanted, rtol=1e-4, atol=1e-4)


def gradients_of(q, k, v, g, scale, mask=None, sinks=None):
    """By q, k and v, in double precision: scores and weights as matrices."""
    made = [np.zeros_like(x) for x in (q, k, v)]
    for b, n in np.ndindex(q.shape[:2]):
        at = b, n // (q.shape[1] // k.shape[1])
        scores = scale * q[b, n] @ k[at].T
        if mask is not None:
            part = np.broadcast_to(mask, (*q.shape[:3], k.shape[2]))[b, n]
            scores = np.where(part, scores, -np.inf) if part.dtype == bool else scores + part
        top = np.maximum(scores.max(axis=1, keepdims=True), -np.inf if sinks is None else sinks[n])
        top = np.where(top == -np.inf, 0, top)
        weights = np.exp(scores - top)
        total = weights.sum(axis=1, keepdims=True) + (0 if sinks is None else np.exp(sinks[n] - top))
        weights /= np.where(total == 0, 1, total)
        by_weights = g[b, n] @ v[at].T
        by_scores = weights * (by_weights - (weights * by_weights).sum(axis=1, keepdims=True))
        made[0][b, n] += scale * by_scores @ k[at]
        made[1][at] += scale * by_scores.T @ q[b, n]
        made[2][at] += weights.T @ g[b, n]
    return made


GRADIENTS = [
    ("float32", (2, 4, 2, 70, 131, 64, 64)), ("float32", (1, 3, 1, 5, 77, 80, 33)), ("float16", (1, 2, 2, 65, 64, 96, 96)),
    ("bfloat16", (1, 4, 1, 33, 129, 128, 128)), ("float32", (1, 1, 1, 40, 7, 16, 128))]
# Each pair compiles kernels of its own: make check runs two, make check-long all.
PAIRS = [(*sizes, mask) for i, sizes in enumerate(GRADIENTS) for mask in ("all", "causal", "bool", "floats")
         if FULL or mask == (None, "floats", None, "causal", None)[i]]


@pytest.mark.parametrize("dtype, sizes, kind", PAIRS)
def test_gradients_of_the_kernels(dtype, sizes, kind):
    arrays = inputs(dtype, *sizes)
    doubles = [*map(values_of, arrays)]
    heads, rows, keys = sizes[1], sizes[3], sizes[4]
    scale = sizes[5]**-0.5
    seen = {"all": None, "causal": causal(rows, keys), "bool": rng.random((heads, 1, keys)) < 0.7,
            "floats": rng.standard_normal((rows, keys)).astype(np.float32)}[kind]
    sinks = rng.standard_normal(heads).astype(np.float32) if kind == "floats" else None
    mask = "causal" if kind == "causal" else None if seen is None else smelt.array(seen)
    g = smelt.array(rng.standard_normal((*arrays[0].shape[:3], sizes[6])).astype(np.float32)).astype(dtype)
    wanted = gradients_of(*doubles, values_of(g), scale, seen, sinks)
    made = smelt.vjp(lambda q, k, v: smelt.scaled_dot_product_attention(
        q, k, v, scale=scale, mask=mask, sinks=None if sinks is None else smelt.array(sinks)), arrays, [g])[1]
    for gradient, expected in zip(made, wanted):
        assert gradient.dtype == smelt.Dtype(dtype)
        largest = np.abs(expected).max() + 1
        np.testing.assert_allclose(values_of(gradient), expected, rtol=0, atol=largest * (8 * ROUNDOFF[dtype] + 1e-5))


def test_derivatives_of_derivatives_and_tangents():
    arrays = inputs("float32", 1, 2, 1, 4, 5, 8)
    direction = smelt.array(rng.standard_normal((1, 2, 4, 8)).astype(np.float32))

    def loss(q, k, v):
        return smelt.sum(smelt.scaled_dot_product_attention(q, k, v, scale=0.5, mask="causal") * direction)

    def squares(q):
        return smelt.sum(smelt.square(smelt.grad(loss)(q, *arrays[1:])))
    step = rng.standard_normal(arrays[0].shape)
    doubles, g = [*map(values_of, arrays)], values_of(direction)

    def squared(q):
        return (gradients_of(q, *doubles[1:], g, 0.5, causal(4, 5))[0]**2).sum()
    expected = (squared(doubles[0] + 1e-5 * step) - squared(doubles[0] - 1e-5 * step)) / 2e-5
    np.testing.assert_allclose((values_of(smelt.grad(squares)(arrays[0])) * step).sum(), expected, rtol=1e-3, atol=1e-4)
    tangents = [smelt.array(rng.standard_normal(x.shape).astype(np.float32)) for x in arrays]
    made = smelt.jvp(lambda *a: smelt.scaled_dot_product_attention(*a, scale=0.5), arrays, tangents)[1][0]
    moved = [reference(*(x + s * 1e-5 * values_of(t) for x, t in zip(doubles, tangents)), 0.5) for s in (1, -1)]
    np.testing.assert_allclose(values_of(made), (moved[0] - moved[1]) / 2e-5, rtol=1e-4, atol=1e-4)


def test_an_operation_of_torch_has_its_gradients():
    torch = pytest.importorskip("torch")
    import smelt.torch

    def attention(q, k, v):
        return smelt.scaled_dot_product_attention(q, k, v, scale=0.125, mask="causal")

    @smelt.torch.op("smelt_test::attention")
    def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return torch.from_dlpack(attention(q, k, v))

    @attend.vjp
    def attend_vjp(primals, cotangent, output):
        made = smelt.vjp(attention, [smelt.asarray(x) for x in primals], [smelt.asarray(cotangent)])[1]
        return tuple(torch.from_dlpack(x) for x in made)
    attend.fake(lambda q, k, v: q.new_empty(q.shape))
    tensors = [torch.randn(1, 2, 70, 64, requires_grad=True) for _ in range(3)]
    g = torch.randn(1, 2, 70, 64)
    out = attend(*tensors)
    expected = torch.nn.functional.scaled_dot_product_attention(*(x.double() for x in tensors), is_causal=True, scale=0.125)
    torch.testing.assert_close(out.double(), expected, rtol=1e-5, atol=1e-5)
    for made, wanted in zip(torch.autograd.grad(out, tensors, g), torch.autograd.grad(expected, tensors, g.double())):
        torch.testing.assert_close(made, wanted, rtol=1e-4, atol=1e-4)


def test_messages():
    q, k, v = inputs("float32", 1, 4, 2, 3, 5, 8)
    attend = smelt.scaled_dot_product_attention
    for arguments, settings, message in [
        ((q[0], k, v), {}, r"q has shape \(4, 3, 8\); expected 4 dimensions"),
        ((q, k.astype("int32"), v), {}, "k has dtype int32; expected float32, float16 or bfloat16"),
        ((q, k, v[:, :, :4]), {}, r"k has shape \(1, 2, 5, 8\) and v \(1, 2, 4, 8\)"),
        ((q[..., :4], k, v), {}, r"q has shape \(1, 4, 3, 4\) and k \(1, 2, 5, 8\)"),
        ((q[:, :3], k, v), {}, "q has 3 heads and k 2; expected a multiple"),
        ((q, k, v), {"mask": "full"}, "mask is 'full'; expected None, 'causal' or an array"),
        ((q, k, v), {"mask": smelt.zeros((3, 5), "int32")}, "mask has dtype int32"),
        ((q, k, v), {"mask": smelt.zeros((3, 4))}, r"mask has shape \(3, 4\); expected one that can be broadcast to"),
        ((q, k, v), {"mask": smelt.zeros((2, 1, 1, 1))}, r"mask has shape \(2, 1, 1, 1\)"),
        ((q, k, v), {"sinks": smelt.zeros(2)}, r"sinks has shape \(2,\)"),
    ]:
        with pytest.raises(ValueError, match=message):
            attend(*arguments, scale=1.0, **settings)
    for scale in ("0.125", None):
        with pytest.raises(TypeError, match=f"scale is {scale!r}; expected a number"):
            attend(q, k, v, scale=scale)


@pytest.mark.skipif(not any(device.startswith("cuda") for device in smelt.devices()), reason="there is no GPU")
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("heads, key_heads, rows, keys, depth, value_depth",
                         [(1, 1, 128, 128, 128, 128), (2, 1, 129, 300, 64, 64), (3, 3, 17, 1, 96, 64), (2, 2, 200, 130, 80, 40)])
def test_warpgroups_of_a_gpu(dtype, heads, key_heads, rows, keys, depth, value_depth):
    arrays = inputs(dtype, 1, heads, key_heads, rows, keys, depth, value_depth)
    q, k, v = map(values_of, arrays)
    there = [x.to("cuda") for x in arrays]
    sinks, seen = rng.standard_normal(heads).astype(np.float32), rng.random((rows, keys)) < 0.7
    added = rng.standard_normal((rows, keys)).astype(np.float32)
    for scale, mask, wanted, sink in [(0.1, None, None, None), (-0.1, None, None, sinks), (0.2, "causal", causal(rows, keys), sinks),
                                      (0.3, smelt.array(seen), seen, None), (0.3, smelt.array(added), added, sinks)]:
        made = smelt.scaled_dot_product_attention(*there, scale=scale, mask=mask, sinks=None if sink is None else smelt.array(sink))
        # Weights are rounded to the dtype before they are multiplied.
        allowed = 8 * ROUNDOFF[dtype]
        np.testing.assert_allclose(values_of(made.to("cpu")), reference(q, k, v, scale, wanted, sink), rtol=allowed, atol=allowed)


@pytest.mark.skipif(not any(device.startswith("cuda") for device in smelt.devices()), reason="there is no GPU")
@pytest.mark.parametrize("rows, depth, offset", [(196, 80, 0), (130, 64, 8), (64, 64, 4), (3, 64, 0)])
def test_a_gpu_reads_rows_of_one_array(rows, depth, offset):
    """Queries, keys and values of a position behind each other, as linear layers leave them; and parts that are not aligned."""
    batches, heads = 3, 2
    packed = rng.standard_normal((batches, rows, 3 * heads * depth + 2 * offset)).astype(np.float32)
    there = smelt.array(packed).astype("bfloat16").to("cuda")
    packed = values_of(there.to("cpu"))
    parts = [array[..., offset:offset + 3 * heads * depth].reshape(batches, rows, 3, heads, depth)
             .transpose(2, 0, 3, 1, 4) for array in (packed, there)]
    allowed = 8 * ROUNDOFF["bfloat16"]
    for shared in (False, True):  # keys and values of the first batch, for all
        (q, k, v), mine = (tuple(part[i] for i in range(3)) for part in parts)
        if shared:
            k, v = (np.broadcast_to(x[:1], x.shape) for x in (k, v))
            mine = mine[0], *(smelt.broadcast_to(x[:1], x.shape) for x in mine[1:])
        made = smelt.scaled_dot_product_attention(*mine, scale=0.2)
        np.testing.assert_allclose(values_of(made.to("cpu")), reference(q, k, v, 0.2), rtol=allowed, atol=allowed)
