"""`optimize`: a model of Hugging Face transformers whose parts run as kernels of smelt, and a report of what was replaced."""

from __future__ import annotations

import copy
import inspect
import sys
import types
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.nn import functional

import smelt
from smelt._smelt import apply as _apply
from smelt.torch.capturing import capture_steps
from smelt.torch.kernel import TorchMetalKernel
from smelt.torch.linear import Linear, is_faster
from smelt.torch.operation import op
from smelt.torch.plans import is_simple, is_watched
from smelt.torch.quantised import FORMATS, QuantizedLinear

__all__ = ["Report", "optimize"]

_NAME = "smelt.torch.optimize"


class Report(NamedTuple):
    """What `optimize` did with the parts of a model that it looked at, by the names of modules."""

    replaced: dict[str, str]
    """Module → what runs instead: "rms norm", "gated MLP", "rotary positions", "attention", "linear layer",
    "int4 weights" …"""
    left: dict[str, str]
    """Module → why it stays as it was."""

    def __str__(self) -> str:
        counts: dict[str, int] = {}
        for what in self.replaced.values():
            for part in what.split(", "):
                counts[part] = counts.get(part, 0) + 1
        lines = [f"replaced: {count} × {what}" for what, count in sorted(counts.items())] or ["replaced: nothing"]
        return "\n".join([*lines, *(f"left: {name}: {why}" for name, why in self.left.items())])


def optimize(model: nn.Module, *, weights: str | None = None, capture: bool = False) -> Report:
    """Replaces parts of a decoder or encoder of transformers by kernels of smelt, in place.

    RMS norms, gated MLPs (down(silu(gate) · up)) and rotary positions are recognised by what they have, not by name
    alone, and are compared with their replacement on random input first: what differs is left, and the report says
    why. Attention becomes "smelt" (smelt.torch.transformers) where the model lets it be set. Linear layers of float32 on a
    CPU multiply by smelt where its products are faster than torch's (smelt.torch.linear.is_faster).
    weights: "int4" (affine, groups of 64), "int8" (the same with 8 bits) or "fp8" (e4m3 with a power of two per 32
    elements) also packs the weights of linear layers, which rounds them; None leaves them as they are. A layer that
    shares its weights with an embedding is left.
    capture: calls that decode one token with a static cache replay a CUDA graph (smelt.torch.capturing says when), and
    generate() takes a static cache and does not compile, unless its arguments say otherwise. A model whose forward takes no
    cache is left, and the report says so.
    Modules stay on their devices. Only replaced parts with unpacked weights have gradients by their weights.
    Returns a Report. ValueError for other weights, or for a model without any part that can be replaced."""
    if not isinstance(model, nn.Module):
        raise TypeError(f"{_NAME}: model is of type {type(model).__name__}; expected a torch.nn.Module")
    if weights is not None and weights not in FORMATS:
        raise ValueError(f"{_NAME}: weights is {weights!r}; expected None, {', '.join(map(repr, FORMATS))}")
    report = Report({}, {})
    for name, module in list(model.named_modules()):
        for fits, what, build in _PARTS:
            if fits(module):
                _replace(model, name, module, what, build, report)
    _set_attention(model, report)
    if weights is not None:
        _pack(model, weights, report)
    if is_faster():
        _set_products(model, report)
    if capture:
        _capture(model, report)
    if not report.replaced:
        raise ValueError(f"{_NAME}: {type(model).__name__} has no part that can be replaced; expected RMS norms, gated MLPs, "
                         "rotary positions, attention that can be set, or weights to pack")
    return report


def _note(report: Report, name: str, what: str) -> None:
    report.replaced[name] = f"{report.replaced[name]}, {what}" if name in report.replaced else what


def _replace(model: nn.Module, name: str, module: nn.Module, what: str, build: Callable, report: Report) -> None:
    try:
        made = build(module)
    except _Differs as reason:
        report.left[name] = str(reason)
        return
    if made is not module:
        _put(model, name, made)
    _note(report, name, what)


def _put(model: nn.Module, name: str, module: nn.Module) -> None:
    parent, _, last = name.rpartition(".")
    setattr(model.get_submodule(parent), last, module)


class _Differs(Exception):
    """A part does something else than its replacement."""


def _compare(what: str, stock: torch.Tensor, ours: torch.Tensor) -> None:
    """Both are float32, of random input."""
    if stock.shape != ours.shape or not torch.allclose(stock, ours, rtol=1e-4, atol=1e-4):
        raise _Differs(f"its result is not that of {what}")


def _in_float32(module: nn.Module) -> nn.Module:
    """A copy, on the same device, that does not round."""
    return copy.deepcopy(module).float().eval()


# ---- RMS norms.

@op("smelt::rms_norm", fresh=True)
def _rms_norm(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    return _apply("rms_norm", (x, weight), numbers=(eps,), torch=True)


@_rms_norm.fake
def _rms_norm_fake(x: Any, weight: Any, eps: Any) -> Any:
    return x.new_empty(x.shape)


def _rms_norm_vjp(primals: Any, cotangent: Any, output: Any) -> Any:
    x, weight, eps = primals
    wide, g = x.float(), cotangent.float()
    factor = torch.rsqrt(wide.square().mean(-1, keepdim=True) + eps)
    scaled = g * weight.float()
    by_x = factor * (scaled - wide * factor.square() * (scaled * wide).mean(-1, keepdim=True))
    return by_x.to(x.dtype), (g * wide * factor).sum_to_size(weight.shape).to(weight.dtype), None


_rms_norm.vjp(_rms_norm_vjp, differentiable=True)


class RMSNorm(nn.Module):
    """weight · x / √(mean(x²) + eps) over the last dimension, by smelt."""

    def __init__(self, weight: nn.Parameter, eps: float) -> None:
        super().__init__()
        self.weight, self.eps = weight, eps

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        weight, graded = self.weight, torch.is_grad_enabled()
        # What the operation computes, without the dispatcher's time, which counts in a decoder's step.
        if (is_simple(x, graded) and is_simple(weight, graded) and weight.dtype == x.dtype and x.numel() > 0
                and not is_watched()):
            return _apply("rms_norm", (x, weight), numbers=(self.eps,), torch=True)
        return _rms_norm(x, weight.to(x.dtype), self.eps)

    def extra_repr(self) -> str:
        return f"{tuple(self.weight.shape)}, eps={self.eps}, by smelt"


def _is_norm(module: nn.Module) -> bool:
    weight = getattr(module, "weight", None)
    return type(module).__name__.endswith("RMSNorm") and isinstance(weight, nn.Parameter) and weight.ndim == 1


def _build_norm(module: Any) -> nn.Module:
    eps = getattr(module, "variance_epsilon", getattr(module, "eps", None))
    if not isinstance(eps, float):
        raise _Differs("it has no eps")
    stock = _in_float32(module)
    with torch.no_grad():
        weight = torch.nn.init.normal_(stock.weight)
        x = torch.randn(3, weight.shape[0], device=weight.device)
        _compare("weight · x / rms(x)", stock(x), RMSNorm(weight, eps)(x))
    return RMSNorm(module.weight, eps)


# ---- Gated MLPs.

_gated = TorchMetalKernel(
    name="smelt::silu_product",
    source="uint i = thread_position_in_grid.x; float g = gate[i]; out[i] = T(g / (1 + exp(-g)) * float(up[i]));",
    inputs=["gate", "up"], results=["out"], templates={"T": "gate"}, torch_defn=lambda gate, up: functional.silu(gate) * up,
    threads_per_grid=lambda gate, up: (gate.numel(),), threads_per_threadgroup=(256,))


_gated_halves = TorchMetalKernel(
    name="smelt::silu_product_of_halves",
    source="""
        uint i = thread_position_in_grid.x, size = both_shape[both_ndim - 1] / 2;
        ulong at = ulong(thread_position_in_grid.y) * 2 * size + i;
        float g = both[at];
        out[ulong(thread_position_in_grid.y) * size + i] = T(g / (1 + exp(-g)) * float(both[at + size]));
    """,
    inputs=["both"], results=["out"], templates={"T": "both"},
    torch_defn=lambda both: functional.silu(both.chunk(2, -1)[0]) * both.chunk(2, -1)[1],
    threads_per_grid=lambda both: (both.shape[-1] // 2, both.numel() // both.shape[-1]), threads_per_threadgroup=(256,))


def _gated_forward(self: Any, x: torch.Tensor) -> torch.Tensor:
    return self.down_proj(_gated(self.gate_proj(x), self.up_proj(x)))


def _joined_forward(self: Any, x: torch.Tensor) -> torch.Tensor:
    return self.down_proj(_gated_halves(self.gate_up_proj(x)))


def _join_gates(model: nn.Module) -> None:
    """One product instead of two, where both are packed: a step of a decoder takes less time."""
    for module in list(model.modules()):
        parts = [getattr(module, part, None) for part in ("gate_proj", "up_proj")]
        if getattr(module.forward, "__func__", None) is _gated_forward and all(
                type(part) is QuantizedLinear and part.bias is None for part in parts):
            module.gate_up_proj = QuantizedLinear.joined(parts)  # type: ignore[arg-type]
            del module.gate_proj, module.up_proj
            module.forward = types.MethodType(_joined_forward, module)


def _is_gated(module: nn.Module) -> bool:
    return all(isinstance(getattr(module, part, None), nn.Linear) for part in ("gate_proj", "up_proj", "down_proj"))


def _build_gated(module: Any) -> nn.Module:
    stock = _in_float32(module)
    x = torch.randn(3, stock.gate_proj.in_features, device=stock.gate_proj.weight.device)
    with torch.no_grad():
        _compare("down(silu(gate) · up)", stock(x), _gated_forward(stock, x))
    module.forward = types.MethodType(_gated_forward, module)
    return module


# ---- Rotary positions: attention calls a function of its file.

def _rotate(q: torch.Tensor, k: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    def of(x: torch.Tensor) -> torch.Tensor:
        half = x.shape[-1] // 2
        return x * cos[:, None] + torch.cat([-x[..., half:], x[..., :half]], -1) * sin[:, None]
    return of(q), of(k)


_rotated = TorchMetalKernel(
    name="smelt::rotate_half",
    header="""
        template <typename T>
        void rotate(device const T *x, constant const int *shape, constant const int64_t *strides, device T *out, uint head, uint row,
                    uint d, uint batch, float cosine, float sine) {
            uint half_size = shape[3] / 2;
            device const T *here = x + batch * strides[0] + head * strides[1] + row * strides[2];
            float other = d < half_size ? -float(here[(d + half_size) * strides[3]]) : float(here[(d - half_size) * strides[3]]);
            ulong to = ((ulong(batch) * shape[1] + head) * shape[2] + row) * shape[3] + d;
            out[to] = T(float(here[d * strides[3]]) * cosine + other * sine);
        }
    """,
    source="""
        uint d = thread_position_in_grid.x, row = thread_position_in_grid.y, heads = q_shape[1] + k_shape[1];
        uint batch = thread_position_in_grid.z / heads, head = thread_position_in_grid.z % heads;
        long angle = (cos_shape[0] > 1 ? batch * cos_strides[0] : 0) + row * cos_strides[1] + d * cos_strides[2];
        long other = (sin_shape[0] > 1 ? batch * sin_strides[0] : 0) + row * sin_strides[1] + d * sin_strides[2];
        float cosine = cos[angle], sine = sin[other];
        if (head < uint(q_shape[1])) rotate<T>(q, q_shape, q_strides, q_out, head, row, d, batch, cosine, sine);
        else rotate<T>(k, k_shape, k_strides, k_out, head - q_shape[1], row, d, batch, cosine, sine);
    """,
    inputs=["q", "k", "cos", "sin"], results=["q_out", "k_out"], templates={"T": "q"}, torch_defn=_rotate,
    ensure_row_contiguous=False,
    threads_per_grid=lambda q, k, *_: (q.shape[3], q.shape[2], q.shape[0] * (q.shape[1] + k.shape[1])),
    threads_per_threadgroup=lambda q, *_: (q.shape[3], 1, 1))


_ROTARY = "apply_rotary_pos_emb"


def _rotary_function(module: nn.Module) -> Any:
    return getattr(sys.modules.get(type(module).__module__), _ROTARY, None)


def _uses_rotary(module: nn.Module) -> bool:
    forward = inspect.unwrap(type(module).forward)
    return isinstance(forward, types.FunctionType) and _ROTARY in forward.__code__.co_names


def _build_rotary(module: Any) -> nn.Module:
    stock, forward = _rotary_function(module), inspect.unwrap(type(module).forward)
    size = getattr(module, "head_dim", None)
    if not callable(stock) or not isinstance(size, int) or size % 2:
        raise _Differs("its rotary positions have a form of their own")
    q, k = torch.randn(2, 2, 3, size), torch.randn(2, 1, 3, size)
    cos, sin = torch.randn(2, 3, size), torch.randn(2, 3, size)
    try:
        expected = stock(q, k, cos, sin)
    except Exception as error:  # another signature, or other shapes
        raise _Differs(f"its rotary positions cannot be compared: {error}") from error
    for theirs, ours in zip(expected, _rotated(q, k, cos, sin)):
        _compare("pairs half a head apart", theirs, ours)

    def apply(q: torch.Tensor, k: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, *more: Any, **options: Any) -> Any:
        # Heads that are not dimension 1, positions to be selected, and two dtypes are left to the model's function.
        default = all(value is None or (isinstance(value, int) and value == 1) for value in options.values())
        if more or not default or q.dtype != k.dtype:
            return stock(q, k, cos, sin, *more, **options)
        return _rotated(q, k, cos, sin)

    scope = {**forward.__globals__, _ROTARY: apply}
    changed = types.FunctionType(forward.__code__, scope, forward.__name__, forward.__defaults__, forward.__closure__)
    changed.__kwdefaults__ = forward.__kwdefaults__
    module.forward = types.MethodType(changed, module)
    return module


_PARTS: list[tuple[Callable, str, Callable]] = [
    (_is_norm, "rms norm", _build_norm),
    (_is_gated, "gated MLP", _build_gated),
    (_uses_rotary, "rotary positions", _build_rotary),
]


# ---- Attention and weights.

def _set_attention(model: Any, report: Report) -> None:
    if not hasattr(model, "set_attn_implementation"):
        report.left["attention"] = "the model is not one of transformers, whose attention can be set"
        return
    smelt.torch.transformers.register()
    try:
        model.set_attn_implementation("smelt")
    except ValueError as error:
        report.left["attention"] = str(error)
        return
    # transformers only warns where a model's own code computes attention. A model and the one inside it share a configuration.
    reported = set()
    for name, part in model.named_modules():
        config = getattr(part, "config", None)
        own_code = hasattr(part, "set_attn_implementation") and getattr(config, "_attn_implementation", "smelt") != "smelt"
        if own_code and id(config) not in reported:
            reported.add(id(config))
            report.left[f"{name}.attention" if name else "attention"] = (
                f"{type(part).__name__} computes it by code of its own, which transformers cannot replace")
    if "attention" not in report.left:
        report.replaced["attention"] = "attention"


def _set_products(model: nn.Module, report: Report) -> None:
    """Layers keep their parameters, hooks and names."""
    for name, module in model.named_modules():
        if type(module) is nn.Linear and module.weight.dtype == torch.float32 and module.weight.device.type == "cpu":
            module.__class__ = Linear
            _note(report, name, "linear layer")


def _takes_cache(model: nn.Module) -> bool:
    """Whether calls may have the cache that a step needs, by the names of arguments."""
    parameters = inspect.signature(model.forward).parameters.values()
    named = [each.name for each in parameters if each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)]
    return not named or any("cache" in name or "past_key" in name for name in named)


def _capture(model: Any, report: Report) -> None:
    if not _takes_cache(model):
        report.left["steps"] = f"{type(model).__name__}.forward takes no cache, so it has no steps of a decoder to capture"
        return
    settings = getattr(model, "generation_config", None)
    if settings is not None:
        settings.cache_implementation = "static"
        settings.disable_compile = True
    capture_steps(model)
    report.replaced["steps"] = "captured steps"


def _pack(model: nn.Module, weights: str, report: Report) -> None:
    shared = {id(module.weight) for module in model.modules() if isinstance(module, nn.Embedding)}
    for name, module in list(model.named_modules()):
        if type(module) not in (nn.Linear, Linear) or not name:  # the model itself has no place to put another layer
            continue
        if id(module.weight) in shared:
            report.left[name] = "it shares its weights with an embedding"
        elif module.in_features % FORMATS[weights].group_size:
            report.left[name] = (f"its rows have {module.in_features} weights; expected a multiple of "
                                 f"{FORMATS[weights].group_size} for {weights}")
        else:
            _put(model, name, QuantizedLinear.pack(module, weights))
            _note(report, name, f"{weights} weights")
    _join_gates(model)
