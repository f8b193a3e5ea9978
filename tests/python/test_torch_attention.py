"""smelt.torch.scaled_dot_product_attention against torch's in float64: values and gradients, also of masks."""

import pytest

torch = pytest.importorskip("torch")

import smelt.torch  # noqa: E402
from smelt.torch.attention import attention_over_lines  # noqa: E402
from torch_devices import DEVICES  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit:FutureWarning", "ignore:.*torch.jit:DeprecationWarning")
TOLERANCES = {torch.float32: 2e-5, torch.float16: 5e-3, torch.bfloat16: 4e-2}


def inputs(dtype, heads=4, key_heads=2, rows=13, keys=21, depth=24, device="cpu"):
    return [torch.randn(2, size, n, depth, dtype=dtype, device=device, requires_grad=True)
            for n, size in ((heads, rows), (key_heads, keys), (key_heads, keys))]


def expected_of(q, k, v, mask, causal):
    """In float64; tensors are (B, T, N, D)."""
    q, k, v = (x.double().transpose(1, 2) for x in (q, k, v))
    k, v = (x.repeat_interleave(q.shape[1] // x.shape[1], 1) for x in (k, v))
    if causal:
        mask = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool, device=q.device).tril(k.shape[2] - q.shape[2])
    mask = mask.double() if mask is not None and mask.dtype != torch.bool else mask
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", TOLERANCES, ids=str)
@pytest.mark.parametrize("kind", ["all", "causal", "bool", "floats", "floats per row"])
def test_values_and_gradients(dtype, kind, device):
    tensors = inputs(dtype, device=device)
    mask = {"bool": lambda: torch.rand(2, 1, 13, 21, device=device) < 0.7,
            "floats": lambda: torch.randn(2, 4, 13, 21, device=device, requires_grad=True),
            "floats per row": lambda: torch.randn(13, 1, device=device, requires_grad=True)}.get(kind, lambda: None)()
    derived = [*tensors, mask] if kind.startswith("floats") else tensors
    made = smelt.torch.scaled_dot_product_attention(*(x.transpose(1, 2) for x in tensors), mask=mask, causal=kind == "causal")
    expected = expected_of(*tensors, mask, kind == "causal")
    assert made.dtype == dtype
    g = torch.randn_like(made)
    pairs = [(made, expected), *zip(torch.autograd.grad(made, derived, g), torch.autograd.grad(expected, derived, g.double()))]
    for a, b in pairs:
        allowed = TOLERANCES[dtype] * max(1.0, float(b.detach().abs().max()))
        assert float((a.double() - b.double()).abs().max()) <= allowed


@torch.no_grad()
def test_heads_of_a_row_lie_side_by_side():
    """A model joins them next, which then copies nothing: as they are, with gradients, and by relative positions."""
    q, k, v = (x.transpose(1, 2) for x in inputs(torch.float32))
    expected = expected_of(*(x.transpose(1, 2) for x in (q, k, v)), None, False).float()
    lines, columns = torch.zeros(2, 4, 13, 3), torch.zeros(2, 4, 13, 7)
    with torch.enable_grad():
        graded = smelt.torch.scaled_dot_product_attention(q, k, v).detach()
    for made in (smelt.torch.scaled_dot_product_attention(q, k, v), graded,
                 attention_over_lines(q, k, v, lines, columns, scale=24**-0.5)):
        torch.testing.assert_close(made, expected)
        assert made.transpose(1, 2).is_contiguous()


def test_opcheck():
    q, k, v = (x.transpose(1, 2) for x in inputs(torch.float32))
    operation = torch.ops.smelt.attention.default
    torch.library.opcheck(operation, (q, k, v, None, 0.2, True, False))
    torch.library.opcheck(operation, (q, k, v, torch.randn(2, 1, 13, 21, requires_grad=True), 0.2, False, True))


@pytest.mark.parametrize("graded", [True, False])
def test_messages(graded):
    """With gradients, calls go through torch's dispatcher; without, straight to the kernel."""
    q, k, v = (x.transpose(1, 2) for x in inputs(torch.float32))
    for given, mask, message in (
        ((q[0], k, v), None, r"q has shape \(4, 13, 24\); expected 4 dimensions"),
        ((q, k.half(), v), None, "k has dtype torch.float16; expected torch.float32, as q"),
        ((q.double(), k.double(), v.double()), None, "q has dtype torch.float64; expected float32, float16 or bfloat16"),
        (tuple(x.repeat(1, 1, 1, 11) for x in (q, k, v)), None, "q has heads of 264 elements; expected 1 to 256"),
        (tuple(x[..., :0] for x in (q, k, v)), None, "q has heads of 0 elements; expected 1 to 256"),
        ((q, k, v), torch.zeros(13, 21, dtype=torch.int32), r"mask has shape \(13, 21\) and dtype torch.int32"),
    ):
        with torch.set_grad_enabled(graded), pytest.raises(ValueError, match=message):
            smelt.torch.scaled_dot_product_attention(*given, mask=mask)


@torch.no_grad()
def test_calls_without_gradients():
    """Tensors that the extension refuses go through torch's dispatcher."""
    q, k, v = (x.transpose(1, 2) for x in inputs(torch.float32))
    expected = torch.nn.functional.scaled_dot_product_attention(q, k, v, enable_gqa=True)
    torch.testing.assert_close(smelt.torch.scaled_dot_product_attention(q, k, v), expected)
    assert smelt.torch.scaled_dot_product_attention(q[:, :, :0], k, v).shape == (2, 4, 0, 24)
    assert smelt.torch.scaled_dot_product_attention(q[:0], k[:0], v[:0]).shape == (0, 4, 13, 24)
    assert not smelt.torch.scaled_dot_product_attention(q, k[:, :, :0], v[:, :, :0]).any()
    assert smelt.torch.scaled_dot_product_attention(q.to("meta"), k.to("meta"), v.to("meta")).device.type == "meta"
    negated = torch.complex(q, -q).conj().imag  # a view that torch negates when it reads it
    torch.testing.assert_close(smelt.torch.scaled_dot_product_attention(negated, k, v), expected)
