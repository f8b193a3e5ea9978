"""smelt.torch.optimize: decoders of transformers with parts that run as kernels give what they gave before."""

import copy

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

import smelt.torch  # noqa: E402
from torch import nn  # noqa: E402
from torch_devices import DEVICES  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")

SMALL = {"hidden_size": 128, "intermediate_size": 192, "num_hidden_layers": 2, "num_attention_heads": 4,
         "num_key_value_heads": 2, "vocab_size": 101, "max_position_embeddings": 256}
TOLERANCES = {torch.float32: 1e-4, torch.float16: 1e-2, torch.bfloat16: 6e-2}


@pytest.fixture(autouse=True)
def stock_products(monkeypatch):
    """Reports are the same on all processors: test_torch_linear.py tests linear layers."""
    monkeypatch.setattr("smelt.torch.optimizing.is_faster", lambda: False)


def decoder(kind, **settings):
    torch.manual_seed(torch.seed() % 2**31)
    config = getattr(transformers, f"{kind}Config")(**SMALL, **settings)
    model = getattr(transformers, f"{kind}ForCausalLM")(config).eval()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            weight.normal_(1 if "norm" in name else 0, 0.1)
    return model


DECODERS = {"llama": lambda: decoder("Llama"), "qwen3": lambda: decoder("Qwen3", head_dim=32),
            "mistral": lambda: decoder("Mistral", sliding_window=5),
            "llama, long": lambda: decoder("Llama", rope_parameters={
                "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                "original_max_position_embeddings": 64, "rope_theta": 10000.0})}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", TOLERANCES, ids=lambda dtype: str(dtype).removeprefix("torch."))
@pytest.mark.parametrize("kind", DECODERS)
@torch.no_grad()
def test_outputs_are_those_of_stock(kind, dtype, device):
    model = DECODERS[kind]().to(device, dtype)
    tokens = torch.randint(3, 101, (2, 19), device=device)
    expected = model(tokens).logits.float()
    exact = copy.deepcopy(model).float()(tokens).logits
    report = smelt.torch.optimize(model)
    found = model(tokens).logits.float()
    error = torch.linalg.norm(found - exact) / torch.linalg.norm(exact)
    stock_error = torch.linalg.norm(expected - exact) / torch.linalg.norm(exact)
    assert error < max(TOLERANCES[dtype] / 10, 1.5 * stock_error), f"{error} against stock's {stock_error}"
    kinds = set(", ".join(report.replaced.values()).split(", "))
    assert kinds == {"rms norm", "gated MLP", "rotary positions", "attention"} and not report.left, str(report)
    norms = sum(type(module).__name__ == "RMSNorm" for module in model.modules())
    assert norms == (9 if kind == "qwen3" else 5)


@pytest.mark.parametrize("device", DEVICES)
@torch.no_grad()
def test_generated_tokens_are_those_of_stock(device):
    model = decoder("Llama").to(device)
    tokens = torch.randint(3, 101, (2, 7), device=device)
    settings = {"max_new_tokens": 12, "do_sample": False, "attention_mask": torch.ones_like(tokens), "pad_token_id": 0}
    expected = model.generate(tokens, **settings)
    smelt.torch.optimize(model)
    assert torch.equal(model.generate(tokens, **settings), expected)


def test_models_without_steps_say_so():
    config = transformers.ViTConfig(hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=64, image_size=32)
    model = transformers.ViTModel(config).eval()
    report = smelt.torch.optimize(model, capture=True)
    assert report.left["steps"] == "ViTModel.forward takes no cache, so it has no steps of a decoder to capture"
    assert "steps" not in report.replaced and "forward" not in vars(model)


def test_gradients_are_those_of_stock():
    model = decoder("Llama")
    ours = copy.deepcopy(model)
    smelt.torch.optimize(ours)
    tokens = torch.randint(3, 101, (2, 9))
    for one in (model, ours):
        one(tokens, labels=tokens).loss.backward()
    for (name, theirs), (_, mine) in zip(model.named_parameters(), ours.named_parameters()):
        torch.testing.assert_close(mine.grad, theirs.grad, rtol=1e-3, atol=1e-5, msg=lambda text, name=name: f"{name}: {text}")


def unpacked(layer):
    """The weights that a packed layer stands for, computed here."""
    bits, words = layer.form.bits, layer.codes.to(torch.int64) & 0xFFFFFFFF
    codes = torch.stack([words >> (bits * i) & (1 << bits) - 1 for i in range(32 // bits)], -1).reshape(words.shape[0], -1)
    if layer.form.mode == "affine":
        scales, biases = (x.double().repeat_interleave(layer.form.group_size, 1) for x in (layer.scales, layer.biases))
        return codes * scales + biases
    values = codes.to(torch.uint8).view(torch.float8_e4m3fn).double()
    return values * torch.exp2(layer.scales.double() - 127).repeat_interleave(layer.form.group_size, 1)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("weights, most", [("int4", 0.12), ("int8", 0.008), ("fp8", 0.04)])
@torch.no_grad()
def test_packed_weights(weights, most, device):
    linear = nn.Linear(192, 33, device=device)
    layer = smelt.torch.QuantizedLinear.pack(linear, weights)
    found = unpacked(layer)
    assert torch.linalg.norm(found - linear.weight) < most * torch.linalg.norm(linear.weight)
    for shape in ((192,), (1, 192), (2, 5, 192), (3, 17, 192)):
        x = torch.randn(shape, device=device)
        expected = x.double() @ found.T + linear.bias
        torch.testing.assert_close(layer(x).double(), expected, rtol=1e-5, atol=1e-5)
    x = torch.randn(3, 192, device=device, requires_grad=True)
    with torch.enable_grad():
        layer(x).sum().backward()
    torch.testing.assert_close(x.grad.double(), found.sum(0).expand(3, -1), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=lambda dtype: str(dtype).removeprefix("torch."))
@torch.no_grad()
def test_packed_weights_of_16_bits(dtype, device):
    roundoff = torch.finfo(dtype).eps / 2
    for weights in ("int4", "int8", "fp8"):
        layer = smelt.torch.QuantizedLinear.pack(nn.Linear(192, 33, bias=False, device=device, dtype=dtype), weights)
        found = unpacked(layer)
        for shape in ((192,), (2, 5, 192), (3, 17, 192)):  # the last has more rows than the kernel takes
            x = torch.randn(shape, device=device, dtype=dtype)
            expected, sizes = x.double() @ found.T, x.double().abs() @ found.T.abs()
            made = layer(x)
            assert made.dtype == dtype and made.device == x.device
            assert bool(((made.double() - expected).abs() <= roundoff * (2 * expected.abs() + sizes) + 1e-5 * sizes).all())


@torch.no_grad()
def test_a_model_with_packed_weights_is_the_one_with_their_values():
    model = decoder("Llama")
    report = smelt.torch.optimize(model, weights="int4")
    assert sum("int4 weights" in what for what in report.replaced.values()) == 15
    stock = decoder("Llama")
    for name, module in model.named_modules():
        if name.endswith("gate_up_proj"):  # two layers of stock
            parts = [stock.get_submodule(name.replace("gate_up", part)).weight for part in ("gate", "up")]
            for weight, found in zip(parts, unpacked(module).float().chunk(2)):
                weight.copy_(found)
        elif isinstance(module, smelt.torch.QuantizedLinear):
            stock.get_submodule(name).weight.copy_(unpacked(module).float())
        elif "Norm" in type(module).__name__ or isinstance(module, nn.Embedding):
            stock.get_submodule(name).weight.copy_(module.weight)
    tokens = torch.randint(3, 101, (2, 19))
    torch.testing.assert_close(model(tokens).logits, stock(tokens).logits, rtol=1e-3, atol=1e-3)


class OddRMSNorm(nn.Module):
    """One that adds 1 to its weight, as some models do."""

    def __init__(self):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.zeros(64)), 1e-6

    def forward(self, x):
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + self.eps) * (1 + self.weight)


def test_what_differs_is_left_and_reported():
    model = nn.Sequential(OddRMSNorm(), nn.Linear(64, 64), nn.Linear(64, 5), nn.Linear(5, 3))
    x = torch.randn(2, 64)
    expected = model[0](x)
    report = smelt.torch.optimize(model, weights="int8")
    assert report.left["0"] == "its result is not that of weight · x / rms(x)"
    assert report.left["3"] == "its rows have 5 weights; expected a multiple of 64 for int8"
    assert set(report.replaced) == {"1", "2"}
    assert torch.equal(model[0](x), expected)
    assert str(report).startswith("replaced: 2 × int8 weights\nleft: 0: ")


def apply_rotary_pos_emb(q, k, cos, sin, unsqueeze_dim=1):
    cos, sin = cos.unsqueeze(unsqueeze_dim), sin.unsqueeze(unsqueeze_dim)
    return tuple(x * cos + torch.cat([-x[..., 8:], x[..., :8]], -1) * sin for x in (q, k))


class Rotates(nn.Module):
    head_dim = 16

    def forward(self, q, k, cos, sin, **options):
        return apply_rotary_pos_emb(q, k, cos, sin, **options)


def test_rotary_positions_of_other_forms_are_stocks():
    model = nn.ModuleList([Rotates()])
    assert "rotary positions" in str(smelt.torch.optimize(model))
    cos, sin = torch.randn(2, 5, 16), torch.randn(2, 5, 16)
    for shape, dtype, options in [((2, 3, 5, 16), torch.float32, {}), ((2, 3, 5, 16), torch.bfloat16, {}),
                                  ((2, 5, 3, 16), torch.float32, {"unsqueeze_dim": 2})]:
        q, k = torch.randn(shape), torch.randn(shape).to(dtype)
        for theirs, ours in zip(apply_rotary_pos_emb(q, k, cos, sin, **options), model[0](q, k, cos, sin, **options)):
            torch.testing.assert_close(ours, theirs)


def test_shared_weights_are_left():
    model = decoder("Llama", tie_word_embeddings=True)
    report = smelt.torch.optimize(model, weights="int4")
    assert report.left == {"lm_head": "it shares its weights with an embedding"}


def test_refusals():
    with pytest.raises(ValueError, match="weights is 'int3'; expected None, 'int4', 'int8', 'fp8'"):
        smelt.torch.optimize(nn.Linear(4, 4), weights="int3")
    with pytest.raises(ValueError, match="Linear has no part that can be replaced"):
        smelt.torch.optimize(nn.Linear(4, 4))
    with pytest.raises(TypeError, match="model is of type int"):
        smelt.torch.optimize(3)


def test_attention_of_a_models_own_code_is_left():
    config = transformers.FalconConfig(hidden_size=64, num_hidden_layers=1, num_attention_heads=4, vocab_size=99)
    model = transformers.FalconForCausalLM(config).eval()
    report = smelt.torch.optimize(model)
    assert "attention" not in report.replaced, str(report)
    [(name, why)] = [(name, why) for name, why in report.left.items() if name.endswith("attention")]
    assert name == "attention" and why.startswith("FalconForCausalLM computes it by code of its own"), str(report)
