"""smelt.export: models of PyTorch as packages; their outputs are those of the models."""

import os
import pathlib
import subprocess

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import smelt.torch  # noqa: E402
from smelt.graph import InferenceSession  # noqa: E402
from torch.nn import functional  # noqa: E402

rows_scaled = smelt.torch.TorchMetalKernel(
    name="packagetest::rows_scaled",
    source="uint i = thread_position_in_grid.x; out[i] = T(x[i] * factor[i / x_shape[1]] + PLUS);",
    inputs=["x", "factor"], results=["out"], templates={"T": "x", "PLUS": lambda x, factor: x.shape[0]},
    torch_defn=lambda x, factor: x * factor[:, None] + x.shape[0],
    threads_per_grid=lambda x, factor: (x.numel(),), threads_per_threadgroup=(64,))


class Of(torch.nn.Module):
    """A function of tensors as a model."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *inputs):
        return self.function(*inputs)


def outputs_of(made):
    made = list(made.values()) if hasattr(made, "values") and not isinstance(made, torch.Tensor) else made
    return list(made) if isinstance(made, (list, tuple)) else [made]


@torch.no_grad()
def compare(folder, model, inputs, tolerance=2e-5):
    """Exports, loads and executes it. The arrays are poisoned: outputs come from new memory."""
    model.eval()
    smelt.export(model, inputs, folder / "model.smeltlib", code=False)
    given = list(inputs.values()) if isinstance(inputs, dict) else list(inputs)
    found = InferenceSession().load(folder / "model.smeltlib").execute(*given)
    expected = outputs_of(model(**inputs) if isinstance(inputs, dict) else model(*inputs))
    assert len(found) == len(expected)
    for a, b in zip(found, expected):
        torch.testing.assert_close(torch.from_numpy(a.to_numpy()), b, rtol=tolerance, atol=tolerance)


x, y, positive = torch.randn(3, 4, 5), torch.randn(4, 5), torch.rand(3, 4, 5) + 0.1
numbers = torch.arange(60).reshape(3, 4, 5) - 20

FUNCTIONS = {
    "arithmetic": (lambda x, y: ((x + y) * 2 - y / 3, torch.add(x, y, alpha=2), torch.rsub(x, 1), 1 / (y.abs() + 1)), (x, y)),
    "powers": (lambda p: (p.sqrt(), p.rsqrt(), p.log(), p.log2(), p.log1p(), p**2, p**1.5, 2**p, p.reciprocal()), (positive,)),
    "curves": (lambda x: (x.exp(), x.sin(), x.cos(), x.tanh(), x.sigmoid(), torch.erf(x), x.atan(), x.abs(), -x), (x,)),
    "activations": (lambda x: (functional.relu(x), functional.silu(x), functional.gelu(x), functional.gelu(x, approximate="tanh"),
                               functional.leaky_relu(x), functional.elu(x), functional.softplus(x), functional.hardtanh(x),
                               functional.hardswish(x), functional.mish(x)), (x,)),
    "rounding": (lambda x: (x.floor(), x.ceil(), x.sign(), torch.div(x, 0.3, rounding_mode="floor"),
                            torch.div(x, 0.3, rounding_mode="trunc"), torch.clamp(x, -0.5, 0.7), x.clamp(min=0.1)), (x,)),
    "integers": (lambda n: (n // 7, n % 7, n * 3 + 1, n & 6, n | 1, n ^ 5, ~n, (n > 3) & (n < 9), n.float() / 2), (numbers,)),
    "comparisons": (lambda x, y: (x > y, x <= y, x == x, torch.where(x > 0, x, y), x.masked_fill(x < 0, -1.0),
                                  torch.maximum(x, y), torch.minimum(x, y), torch.isnan(x), torch.logical_not(x > 0)), (x, y)),
    "shapes": (lambda x: (x.reshape(6, 10), x.permute(2, 0, 1), x.transpose(0, 2), x.flatten(1), x.unsqueeze(-1), x[:, None],
                          x[0], x[:, 1:3], x[..., ::2], x[:, -1], x.unflatten(1, (2, -1)), x.mT), (x,)),
    "parts": (lambda x: (*x.chunk(3, 2), *x.split(3, 1), *x.unbind(0), *torch.split(x, [1, 3], 1)), (x,)),
    "joins": (lambda x, y: (torch.cat([x, x[:1]], 0), torch.stack([y, y], 1), x.repeat(2, 1, 3), y.expand(3, 4, 5), x.flip(1),
                            functional.pad(x, (1, 2, 0, 1), value=3.0), functional.pad(x, (-1, 1)), torch.roll(x, 2, 1)), (x, y)),
    "pixels": (lambda x: (functional.pixel_shuffle(x, 2), functional.pixel_unshuffle(x, 2)), (torch.randn(2, 8, 4, 6),)),
    "created": (lambda x: (x + torch.arange(5), x + torch.arange(1, 11, 2).float(), torch.zeros_like(x), torch.ones(3) + x.sum(),
                           x * torch.full((4, 1), 2.5), torch.tril(x), torch.triu(x, 1)), (x,)),
    "reductions": (lambda x: (x.sum(), x.sum(1), x.mean((0, 2), keepdim=True), x.amax(-1), x.amin(0), x.prod(2), x.logsumexp(1),
                              x.var(2), x.var(1, correction=0), x.std(0), (x > 0).any(1), (x > -9).all(), x.norm(dim=1)), (x,)),
    "places": (lambda x: (*x.max(1), *x.min(2), x.argmax(1), x.argmin(), x.cumsum(1), x.cumprod(2)), (x,)),
    "softmax": (lambda x: (x.softmax(1), x.log_softmax(-1), functional.softmin(x, 2)), (x,)),
    "products": (lambda x, y: (x @ y.T, torch.bmm(x, x.mT), y @ y[0], torch.einsum("abc,dc->abd", x, y), torch.outer(y[0], y[1]),
                               torch.addmm(y[:, :4], y, y.T, beta=2, alpha=0.5), functional.linear(x, y, y[:, 0])), (x, y)),
    "indices": (lambda x, i: (x[:, i], x[i], x[i, i], x.index_select(2, i), x.gather(1, i.reshape(1, 2, 1).expand(3, 2, 5)),
                              functional.embedding(i, x[0])), (x, torch.tensor([2, -1 + 1]))),
    "norms": (lambda x: (functional.layer_norm(x, (5,)), functional.layer_norm(x, (4, 5)), functional.rms_norm(x, (5,)),
                         functional.group_norm(x, 2), functional.normalize(x, dim=1), functional.instance_norm(x)), (x,)),
    "dtypes": (lambda x: (x.half() + 1, x.bfloat16().float(), (x * 10).int(), x.double().float(), x.to(torch.int64), x > 0), (x,)),
    "interpolation": (lambda x: (functional.interpolate(x, scale_factor=2.0, mode="nearest"),
                                 functional.interpolate(x, scale_factor=2.0, mode="bilinear"),
                                 functional.interpolate(x, size=(5, 9), mode="bilinear", align_corners=True),
                                 functional.interpolate(x, size=(3, 4), mode="nearest")),
                      (torch.randn(1, 2, 4, 6),)),
    "pooling": (lambda x: (functional.avg_pool2d(x, 2), functional.max_pool2d(x, 3, 2, 1), functional.adaptive_avg_pool2d(x, 1),
                           functional.adaptive_avg_pool2d(x, (2, 3)), functional.avg_pool2d(x, (3, 2), stride=1, padding=1)),
                (torch.randn(1, 2, 4, 6),)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_operators(tmp_path, name):
    function, inputs = FUNCTIONS[name]
    compare(tmp_path, Of(function), inputs)


def test_convolutions(tmp_path):
    class Convolving(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = torch.nn.Conv2d(3, 8, 3, 2, 1), torch.nn.Conv2d(8, 8, (1, 3), padding="same", groups=4, dilation=2)
            self.norm, self.line = torch.nn.BatchNorm2d(8), torch.nn.Conv1d(8, 5, 2, bias=False)
            self.norm.running_mean.normal_()
            self.norm.running_var.uniform_(0.5, 2)

        def forward(self, x):
            x = torch.relu(self.norm(self.second(self.first(x))))
            return x, self.line(x.mean(3))

    compare(tmp_path, Convolving(), (torch.randn(2, 3, 11, 14),))


@pytest.mark.parametrize("attention", [functional.scaled_dot_product_attention, smelt.torch.scaled_dot_product_attention],
                         ids=["torch's", "smelt's"])
def test_attention(tmp_path, attention):
    causal = "is_causal" if attention is functional.scaled_dot_product_attention else "causal"
    masked = "attn_mask" if attention is functional.scaled_dot_product_attention else "mask"
    q, k, v = torch.randn(2, 4, 9, 16), torch.randn(2, 4, 9, 16), torch.randn(2, 4, 9, 8)
    mask = torch.rand(9, 9) < 0.6
    mask[:, 0] = True
    compare(tmp_path, Of(lambda q, k, v, mask: (
        attention(q, k, v), attention(q, k, v, **{causal: True}), attention(q, k, v, scale=0.5, **{masked: mask}),
        attention(q, k, v, **{masked: torch.where(mask, 0.5, -1.0)}))), (q, k, v, mask))


def test_a_kernel_of_ones_own(tmp_path):
    compare(tmp_path, Of(lambda x, factor: torch.tanh(rows_scaled(torch.sin(x), factor)) + 1), (torch.randn(6, 7), torch.randn(6)))


def test_models_of_transformers(tmp_path):
    transformers = pytest.importorskip("transformers")
    smelt.torch.transformers.register()
    config = transformers.ViTConfig(hidden_size=48, num_attention_heads=4, intermediate_size=96, num_hidden_layers=2,
                                    image_size=24, patch_size=8)
    vit = transformers.ViTModel(config).eval()
    vit.set_attn_implementation("smelt")
    compare(tmp_path, vit, (torch.randn(2, 3, 24, 24),))
    config = transformers.LlamaConfig(hidden_size=48, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4,
                                      num_key_value_heads=2, vocab_size=99, use_cache=False)
    for attention in ("sdpa", "smelt"):
        llama = transformers.LlamaForCausalLM(config).eval()
        llama.set_attn_implementation(attention)
        compare(tmp_path, llama, {"input_ids": torch.randint(0, 99, (1, 19))})


def test_relative_positions_of_sam(tmp_path):
    transformers = pytest.importorskip("transformers")
    smelt.torch.transformers.register()
    config = transformers.SamVisionConfig(hidden_size=64, output_channels=32, num_hidden_layers=2, num_attention_heads=2,
                                          image_size=56, patch_size=8, window_size=3, global_attn_indexes=[1], mlp_dim=96)
    model = transformers.SamVisionModel(config).eval()
    for name, weight in model.named_parameters():
        if "rel_pos" in name:
            torch.nn.init.normal_(weight, std=0.5)
    model.set_attn_implementation("smelt")
    compare(tmp_path, model, (torch.randn(1, 3, 56, 56),))


@pytest.mark.parametrize("weights", [None, "int4", "fp8"])
@pytest.mark.parametrize("tokens", [7, 19])
def test_optimized_models(tmp_path, weights, tokens):
    transformers = pytest.importorskip("transformers")
    config = transformers.LlamaConfig(hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
                                      num_key_value_heads=2, vocab_size=99, use_cache=False)
    model = transformers.LlamaForCausalLM(config).eval()
    smelt.torch.optimize(model, weights=weights)
    compare(tmp_path, model, {"input_ids": torch.randint(0, 99, (2, tokens))})


def test_packages_run_by_the_command_without_a_compiler(tmp_path):
    model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.GELU(), torch.nn.Linear(8, 3)).eval()
    inputs = torch.randn(5, 6)
    graph = smelt.export(model, {"input": inputs}, tmp_path / "model.smeltlib", output_names=["scores"])
    assert graph.output_names == ["scores"] and [t.name for t in graph.input_types] == ["input"]
    if "SMELT_BUILD" not in os.environ:
        pytest.skip("needs the command of the build")
    np.save(tmp_path / "x.npy", inputs.numpy())
    done = subprocess.run(
        [pathlib.Path(os.environ["SMELT_BUILD"]) / "bin" / "smelt", "run", tmp_path / "model.smeltlib", "-i",
         f"input={tmp_path}/x.npy", "-o", f"scores={tmp_path}/scores.npy"],
        env={"SMELT_COMPILE": "0", "SMELT_CACHE_DIR": str(tmp_path / "cache")}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    expected = model(inputs).detach()
    torch.testing.assert_close(torch.from_numpy(np.load(tmp_path / "scores.npy")), expected, rtol=1e-5, atol=1e-5)


def test_what_cannot_be_exported_is_named(tmp_path):
    with pytest.raises(NotImplementedError, match=r"the operator aten\.bincount has no counterpart"):
        smelt.export(Of(lambda n: torch.bincount(n, minlength=70)[:70]), (torch.arange(60),), tmp_path / "never")
    with pytest.raises(NotImplementedError, match="an index of bools"):
        smelt.export(Of(lambda x: x[x > 0][:1]), (x,), tmp_path / "never")
    with pytest.raises(NotImplementedError, match="in training mode; call model.eval"):
        smelt.export(torch.nn.BatchNorm1d(4), (x,), tmp_path / "never")
    with pytest.raises(ValueError, match="2 output names are given; the model has 1 outputs"):
        smelt.export(Of(torch.sin), (x,), tmp_path / "never", output_names=["a", "b"])
    assert not (tmp_path / "never").exists()
