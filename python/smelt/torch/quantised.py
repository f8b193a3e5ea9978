"""Linear layers with packed weights: `QuantizedLinear`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import nn

import smelt
from smelt._smelt import quantized_matmul_of as _quantized_matmul_of
from smelt.operations.quantised import MODES, MOST_ROWS
from smelt.torch.operation import op
from smelt.torch.plans import is_simple, is_watched

__all__ = ["FORMATS", "Format", "QuantizedLinear"]


class Format(NamedTuple):
    """How weights are packed: the arguments of smelt.quantized_matmul."""

    mode: str
    bits: int
    group_size: int


FORMATS = {"int4": Format("affine", 4, 64), "int8": Format("affine", 8, 64), "fp8": Format("mxfp8", 8, 32)}


@op("smelt::quantized_linear", fresh=True)
def _product(x: torch.Tensor, codes: torch.Tensor, scales: torch.Tensor, biases: torch.Tensor | None, transpose: bool, mode: str,
             bits: int, group_size: int) -> torch.Tensor:
    if transpose and _is_few(x, codes, scales, biases):
        return _quantized_matmul_of(x, codes, scales, biases, bits, group_size, MODES[mode])
    found = smelt.quantized_matmul(
        smelt.asarray(x), smelt.asarray(codes.view(torch.uint32)), smelt.asarray(scales),
        None if biases is None else smelt.asarray(biases), transpose, group_size, bits, mode)
    return torch.from_dlpack(found.astype(str(x.dtype).removeprefix("torch.")))


def _is_few(x: torch.Tensor, codes: torch.Tensor, scales: torch.Tensor, biases: torch.Tensor | None) -> bool:
    """Does the kernel for few rows take them as they are?"""
    few = 0 < x.numel() <= MOST_ROWS * x.shape[-1]
    return few and codes.is_contiguous() and (biases is None or scales.dtype == x.dtype == biases.dtype)


@_product.fake
def _product_fake(x: Any, codes: Any, scales: Any, biases: Any, transpose: Any, mode: Any, bits: Any, group_size: Any) -> Any:
    return x.new_empty((*x.shape[:-1], codes.shape[0] if transpose else codes.shape[1] * 32 // bits))


@_product.vjp
def _product_vjp(primals: Any, cotangent: Any, output: Any) -> Any:
    x, codes, scales, biases, transpose, mode, bits, group_size = primals
    by_x = _product(cotangent.to(x.dtype), codes, scales, biases, not transpose, mode, bits, group_size)
    return by_x, None, None, None, None, None, None, None


def _packed(codes: torch.Tensor, bits: int) -> torch.Tensor:
    """Codes (N, K) as words (N, K · bits / 32), the first in the lowest bits; int32, as torch computes with that."""
    parts = codes.to(torch.int64).reshape(codes.shape[0], -1, 32 // bits)
    words = (parts << (torch.arange(32 // bits, device=codes.device) * bits)).sum(-1)
    return torch.where(words >= 2**31, words - 2**32, words).to(torch.int32)


def _affine(weight: torch.Tensor, form: Format) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Codes, and scales and biases in the dtype of the weights: a weight is about code · scale + bias."""
    groups = weight.float().reshape(weight.shape[0], -1, form.group_size)
    least, most = groups.amin(-1, keepdim=True), groups.amax(-1, keepdim=True)
    scales = ((most - least) / (2**form.bits - 1)).to(weight.dtype)
    scales, biases = torch.where(scales > 0, scales, 1.0), least.to(weight.dtype)
    codes = ((groups - biases.float()) / scales.float()).round().clamp(0, 2**form.bits - 1)
    return codes.reshape(weight.shape), scales[..., 0], biases[..., 0]


def _mx(weight: torch.Tensor, form: Format) -> tuple[torch.Tensor, torch.Tensor]:
    """Codes of e4m3, and the exponents of each group's power of two, as MX defines them."""
    groups = weight.float().reshape(weight.shape[0], -1, form.group_size)
    most = groups.abs().amax(-1, keepdim=True)
    exponents = (torch.floor(torch.log2(most.clamp(min=2.0**-126))) - 8).clamp(-127, 127)
    codes = (groups * torch.exp2(-exponents)).clamp(-448, 448).to(torch.float8_e4m3fn).view(torch.uint8)
    return codes.reshape(weight.shape), (exponents[..., 0] + 127).to(torch.uint8)


class QuantizedLinear(nn.Module):
    """x @ wᵀ + bias, with packed weights that have no gradients; x has. See `pack`."""

    def __init__(self, codes: torch.Tensor, scales: torch.Tensor, biases: torch.Tensor | None, bias: nn.Parameter | None,
                 form: Format) -> None:
        super().__init__()
        self.register_buffer("codes", codes)
        self.register_buffer("scales", scales)
        self.register_buffer("biases", biases)
        self.bias, self.form = bias, form

    @classmethod
    def pack(cls, linear: nn.Linear, weights: str) -> QuantizedLinear:
        """The layer with its weights in one of FORMATS. Its rows have a multiple of the format's group size."""
        form, weight = FORMATS[weights], linear.weight.detach()
        codes, scales, biases = _affine(weight, form) if form.mode == "affine" else (*_mx(weight, form), None)
        return cls(_packed(codes, form.bits), scales, biases, linear.bias, form)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        codes, scales, biases, form = self.codes, self.scales, self.biases, self.form
        # What the operation computes, without the dispatcher's time, which counts in a decoder's step.
        if is_simple(x, torch.is_grad_enabled()) and _is_few(x, codes, scales, biases) and not is_watched():
            out = _quantized_matmul_of(x, codes, scales, biases, form.bits, form.group_size, MODES[form.mode])
        else:
            out = _product(x, codes, scales, biases, True, form.mode, form.bits, form.group_size)
        return out if self.bias is None else out + self.bias

    @classmethod
    def joined(cls, parts: Sequence[QuantizedLinear]) -> QuantizedLinear:
        """One layer whose result is the concatenation of the parts' results. The parts have the same form, and no bias."""
        codes, scales = (torch.cat([getattr(part, name) for part in parts]) for name in ("codes", "scales"))
        biases = [part.biases for part in parts if part.biases is not None]
        return cls(codes, scales, torch.cat(biases) if biases else None, None, parts[0].form)

    def extra_repr(self) -> str:
        return f"{self.codes.shape[1] * 32 // self.form.bits}, {self.codes.shape[0]}, {self.form}"
