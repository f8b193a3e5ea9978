"""Public MLX packages: their kernels, run by smelt, agree with their own way in array operations, or MLX's.

mlx-recurrence and zmlx are in build/venv; mlx-lm comes with `make mlx-packages`. Each test skips without its package."""
import numpy as np
import pytest

mx = pytest.importorskip("mlx.core", reason="MLX is not installed")
if mx.metal.is_available():
    pytest.skip("MLX has Metal here", allow_module_level=True)

import smelt.mlx  # noqa: E402


@pytest.fixture(scope="module", autouse=True)
def installed():
    with smelt.mlx.install(pretend_metal=True):
        yield


@pytest.fixture
def ran(monkeypatch):
    """Names of the kernels that the test ran."""
    names, call = [], smelt.mlx.MetalKernel.__call__

    def noting(self, **arguments):
        names.append(self.name)
        return call(self, **arguments)

    monkeypatch.setattr(smelt.mlx.MetalKernel, "__call__", noting)
    mx.random.seed(7)
    return names


def package(module, reason, ran):
    """What the fixture of a package does: a test that ran none of its kernels tested nothing."""
    yield pytest.importorskip(module, reason=reason)
    assert ran, "no kernel ran"


def normal(*shape, dtype=mx.float32):
    return mx.random.normal(shape).astype(dtype)


def between(low, high, *shape, dtype=mx.float32):
    return mx.random.uniform(low, high, shape).astype(dtype)


def close(a, b, tolerance=1e-5):
    """Equal shapes and dtypes; differences up to `tolerance` times the largest value."""
    assert a.shape == b.shape and a.dtype == b.dtype
    a, b = (np.array(x.astype(mx.float32)) for x in (a, b))
    assert np.all(np.isfinite(b))
    np.testing.assert_allclose(a, b, rtol=0, atol=tolerance * max(1e-6, np.abs(b).max()))


def first(result):
    return result[0] if isinstance(result, (tuple, list)) else result


def close_with_gradients(f, reference, arguments, tolerance=1e-4):
    """f and reference agree, and so do all gradients of a weighted sum of what they return."""
    expected = first(reference(*arguments))
    close(first(f(*arguments)), expected, tolerance)
    weights = normal(*expected.shape)
    which = list(range(len(arguments)))

    def gradients(function):
        return mx.grad(lambda *a: (first(function(*a)) * weights).sum(), argnums=which)(*arguments)

    for ours, theirs in zip(gradients(f), gradients(reference)):
        close(ours, theirs, tolerance)


# ---- mlx-recurrence: linear recurrences with backward kernels of their own.


@pytest.fixture
def recurrence(ran):
    yield from package("mlx_recurrence", "mlx-recurrence is not installed", ran)


def test_recurrence_ssd(recurrence, ran):
    arguments = [normal(2, 64, 2, 32), between(0.1, 0.9, 2, 64, 2), normal(2, 64, 2, 8), normal(2, 64, 2, 8),
                 -between(0.1, 1, 2, 8)]
    close_with_gradients(recurrence.ssd_scan, recurrence.ssd_scan_reference, arguments)
    assert len(set(ran)) == 2  # forward and backward


def test_recurrence_gla(recurrence):
    arguments = [normal(2, 64, 2, 32) * 0.2, normal(2, 64, 2, 32) * 0.2, normal(2, 64, 2, 32),
                 between(0.8, 0.99, 2, 64, 2)]
    close_with_gradients(recurrence.gla_scan, recurrence.gla_scan_reference, arguments)


def test_recurrence_rglru(recurrence):
    close_with_gradients(recurrence.rglru_scan, recurrence.rglru_scan_reference,
                         [between(0.5, 0.99, 2, 96, 64), normal(2, 96, 64)])


def test_recurrence_rotlru(recurrence):
    angle = normal(2, 64, 32)
    close_with_gradients(recurrence.rotlru_scan, recurrence.rotlru_scan_reference,
                         [between(0.5, 0.99, 2, 64, 32), mx.cos(angle), mx.sin(angle), normal(2, 64, 64)])


def test_recurrence_selective_scan(recurrence):
    arguments = [normal(2, 32, 64), between(0.1, 0.5, 2, 32, 64), normal(2, 32, 16), normal(2, 32, 16),
                 -between(0.1, 1, 64, 16)]
    close_with_gradients(recurrence.selective_scan_metal, recurrence.selective_scan_chunked, arguments, 1e-3)


def test_recurrence_gla_of_old(recurrence):
    arguments = [normal(1, 32, 2, 32) * 0.2, normal(1, 32, 2, 32) * 0.2, normal(1, 32, 2, 32),
                 between(0.8, 0.99, 1, 32, 2)]
    close_with_gradients(recurrence.gla_scan_metal, recurrence.gla_scan_reference, arguments, 1e-3)


# ---- zmlx: a catalogue of kernels.


@pytest.fixture
def zmlx(ran):
    yield from package("zmlx.kernels", "zmlx is not installed", ran)


@pytest.mark.parametrize("dtype", [mx.float32, mx.float16, mx.bfloat16], ids=str)
def test_zmlx_softmax_and_norms(zmlx, dtype):
    from zmlx.kernels import norms, softmax
    x, weight = normal(6, 300, dtype=dtype), normal(300, dtype=dtype)
    tolerance = 1e-5 if dtype == mx.float32 else 1e-2
    close(softmax.softmax_lastdim(x), mx.softmax(x, axis=-1, precise=True), tolerance)
    close(norms.rmsnorm(x, weight), mx.fast.rms_norm(x, weight, 1e-6), tolerance)
    close(norms.layernorm(x, weight, weight), mx.fast.layer_norm(x, weight, weight, 1e-5), tolerance)


def test_zmlx_reductions_and_scans(zmlx):
    from zmlx.kernels import reductions, scan
    x = normal(5, 1000)
    close(reductions.sum_lastdim(x), x.sum(-1), 1e-4)
    close(reductions.max_lastdim(x), x.max(-1))
    assert reductions.argmax_lastdim(x).tolist() == mx.argmax(x, axis=-1).tolist()
    close(scan.cumsum_lastdim(x), mx.cumsum(x, axis=-1), 1e-4)


def test_zmlx_packed_quantisation(zmlx):
    from zmlx.kernels import quant
    weights = normal(16, 128)
    packed, scales, biases = mx.quantize(weights, group_size=32, bits=4)
    expected = mx.dequantize(packed, scales, biases, group_size=32, bits=4)
    close(quant.dequantize_affine_packed(packed, scales, biases, bits=4, group_size=32).astype(mx.float32), expected)


# ---- mlx-lm: what language models are made of.


@pytest.fixture
def lm(ran):
    yield from package("mlx_lm.models", "mlx-lm is not installed (make mlx-packages)", ran)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("vectorized", [False, True])
@pytest.mark.parametrize("dtype", [mx.float32, mx.bfloat16], ids=str)
def test_lm_gated_delta(lm, masked, vectorized, dtype):
    from mlx_lm.models import gated_delta
    B, T, Hk, Hv, Dk, Dv = 2, 9, 2, 4, 64, 48
    q, k, v = (normal(B, T, H, D, dtype=dtype) * 0.1 for H, D in ((Hk, Dk), (Hk, Dk), (Hv, Dv)))
    g = between(0.5, 1, *((B, T, Hv, Dk) if vectorized else (B, T, Hv)))
    beta, state = between(0, 1, B, T, Hv, dtype=dtype), normal(B, Hv, Dv, Dk)
    mask = mx.array(np.arange(T)[None] < np.array([[T], [T - 3]])) if masked else None
    ours = gated_delta.gated_delta_kernel(q, k, v, g, beta, state, mask)
    theirs = gated_delta.gated_delta_ops(q, k, v, g, beta, state, mask)
    tolerance = 1e-5 if dtype == mx.float32 else 2e-2
    seen = slice(None) if mask is None else slice(0, T - 3)  # what lies behind the mask is nobody's
    close(ours[0][:, seen], theirs[0][:, seen], tolerance)
    close(ours[1], theirs[1], tolerance)


def test_lm_gated_delta_packed_is_its_comparator_bit_for_bit(lm):
    from mlx_lm.models import gated_delta
    B, T, Hk, Hv, Dk, Dv = 1, 5, 2, 4, 128, 64
    arguments = [normal(B, T, Hk, Dk) * 0.1, normal(B, T, Hk, Dk) * 0.1, normal(B, T, Hv, Dv), between(0.5, 1, B, T, Hv),
                 between(0, 1, B, T, Hv), normal(B, Hv, Dv, Dk)]
    packed = gated_delta.gated_delta_kernel(*arguments)
    tree = gated_delta.gated_delta_kernel_xtree(*arguments)
    assert all(mx.array_equal(a, b).item() for a, b in zip(packed, tree))
    for a, b in zip(packed, gated_delta.gated_delta_ops(*arguments)):
        close(a, b)


@pytest.mark.parametrize("dtype", [mx.float32, mx.bfloat16], ids=str)
def test_lm_ssm(lm, dtype):
    from mlx_lm.models import ssm
    B, H, D, G, N = 2, 8, 32, 2, 64
    arguments = [normal(B, 1, H, D, dtype=dtype), normal(H), normal(B, 1, G, N, dtype=dtype),
                 normal(B, 1, G, N, dtype=dtype), normal(H), normal(B, 1, H, dtype=dtype), normal(H)]
    state = normal(B, H, D, N, dtype=dtype)
    for a, b in zip(ssm.ssm_update(*arguments, state=state), ssm.ssm_attn(*arguments, state=state)):
        close(a.astype(mx.float32), b.astype(mx.float32), 1e-4 if dtype == mx.float32 else 3e-2)


def test_lm_rwkv7(lm):
    from mlx_lm.models import rwkv7
    B, T, H, D = 2, 6, 2, 64
    r, w, k, v, a, b = (normal(B, T, H, D) * 0.2 for _ in range(6))
    state = start = normal(B, H, D, D) * 0.2
    steps = []
    for t in range(T):
        y, state = rwkv7._wkv7_step_ops(r[:, t], w[:, t], k[:, t], v[:, t], a[:, t], b[:, t], state)
        steps.append(y)
    y, end = rwkv7.wkv7_kernel(r, w, k, v, a, b, start)
    close(y, mx.stack(steps, axis=1).reshape(y.shape))
    close(end, state)


def test_lm_deepseek_sinkhorn(lm):
    deepseek = pytest.importorskip("mlx_lm.models.deepseek_v41", reason="this mlx-lm has no deepseek_v41")
    comb, eps = between(0.1, 1, 3, 5, 4, 4), mx.array([1e-6])
    ours = deepseek._sinkhorn(comb, iters=7, eps=eps)
    with mx.stream(mx.cpu):
        close(ours, deepseek._sinkhorn(comb, iters=7, eps=eps))


def test_lm_kimi_residuals(lm):
    kimi = pytest.importorskip("mlx_lm.models.kimi_k3", reason="this mlx-lm has no kimi_k3")

    class Blocks:
        raw, inv_rms = normal(3, 2, 5, 256), between(0.5, 2, 3, 2, 5)

    arguments = [Blocks, normal(2, 5, 256), normal(256), 1e-6]
    close(kimi._attn_res_mix(*arguments), kimi._attn_res_mix(*arguments, use_kernel=False), 1e-4)


@pytest.mark.parametrize("inverted", [False, True])
def test_lm_bitlinear(lm, inverted):
    from mlx_lm.models import bitlinear_layers
    layer = bitlinear_layers.BitLinear(256, 64, bias=False, invert_weight_scales=inverted)
    ternary = np.random.default_rng(0).integers(0, 3, (4, 16, 256))  # row i + 16 j of the weights lies in bits 2 j
    layer.weight = mx.array(sum(ternary[j] << (2 * j) for j in range(4)).astype(np.uint8))
    layer.weight_scale = mx.array([0.7])
    x = normal(3, 256)
    expected = x @ mx.array((ternary.reshape(64, 256) - 1).astype(np.float32)).T
    close(layer(x), expected / 0.7 if inverted else expected * 0.7, 1e-5)


def test_lm_fused_norms(lm):
    norms = pytest.importorskip("mlx_lm.kernels.qk_norm_rope", reason="this mlx-lm has no mlx_lm.kernels")
    from mlx_lm.kernels.rms_norm_sigmoid_gate import rms_norm_sigmoid_gate
    heads, kv_heads, D = 4, 2, 96
    x = normal(2, 5, 2 * (heads + kv_heads) * D)
    q, k = norms.qk_norm_rope(x, n_heads=heads, n_kv_heads=kv_heads, head_dim=D, eps=1e-5, query_scale=0.3,
                              rope_base=1e4, offset=11)
    for ours, first_head, count, scale in ((q, 0, heads, 0.3), (k, heads, kv_heads, 1)):
        part = x[..., first_head * D:(first_head + count) * D].reshape(2, 5, count, D).transpose(0, 2, 1, 3)
        rotated = mx.fast.rope(mx.fast.rms_norm(part, None, 1e-5) * scale, D, traditional=True, base=1e4, scale=1.0,
                               offset=11)
        close(ours, rotated.transpose(0, 2, 1, 3))
    y, gate = normal(2, 5, 4, 80).transpose(0, 2, 1, 3), normal(2, 5, 640)[..., ::2]  # views, by their strides
    normed = mx.fast.rms_norm(y, None, 1e-5).transpose(0, 2, 1, 3).reshape(2, 5, 320)
    close(rms_norm_sigmoid_gate(y, gate, eps=1e-5), normed * mx.sigmoid(gate))


def test_lm_expert_routing(lm):
    routing = pytest.importorskip("mlx_lm.kernels.expert_routing", reason="this mlx-lm has no mlx_lm.kernels")
    logits, bias = normal(9, 100), normal(100) * 0.1
    experts, weights = routing.expert_routing(logits, bias, top_k=6, multiplier=1.7, score_eps=1e-9, route_scale=2.5)
    scores = mx.sigmoid(logits * 1.7)
    chosen = mx.argsort(-(scores + bias), axis=-1)[:, :6]
    assert experts.tolist() == chosen.tolist()
    expected = mx.take_along_axis(scores, chosen, -1)
    close(weights, expected / expected.sum(-1, keepdims=True) * 2.5)


def test_lm_whole_models(lm):
    """A small model with recurrent layers gives the same logits by kernels and by array operations."""
    from mlx_lm.models import mamba2
    arguments = mamba2.ModelArgs(
        model_type="mamba2", num_heads=8, head_dim=16, vocab_size=100, hidden_size=64, intermediate_size=128,
        state_size=32, num_hidden_layers=2, layer_norm_epsilon=1e-4, conv_kernel=3, n_groups=2, use_bias=False,
        use_conv_bias=False, tie_word_embeddings=True, time_step_limit=(0.01, 10), time_step_rank="auto")
    model = mamba2.Model(arguments)

    def logits():
        cache = model.make_cache()
        return mx.concatenate([model(mx.array([[token]]), cache=cache) for token in (3, 14, 15, 92)])

    ours = logits()
    with mx.stream(mx.cpu):
        close(ours, logits(), 1e-4)
