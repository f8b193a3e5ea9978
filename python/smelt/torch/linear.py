"""Linear layers of float32 on CPUs, which `optimize` puts in place of torch's: `Linear`."""

from __future__ import annotations

import functools
import re
from typing import Any

import torch
from torch import nn
from torch.autograd import forward_ad
from torch.nn import functional

from smelt._smelt import apply as _apply
from smelt.torch.operation import op
from smelt.torch.plans import is_simple, is_watched

__all__ = ["Linear", "is_faster"]

# From so many rows and multiply-adds on, smelt's product is faster than torch's, launch included. A product of fewer rows
# only reads the weights, and one of less work takes torch some microseconds.
_LEAST_ROWS = 4
_LEAST_WORK = 1 << 20


@functools.cache
def is_faster() -> bool:
    """Whether smelt's products of float32 are faster than torch's on this machine's CPU. torch's are those of MKL, which
    uses AVX-512 on Intel's processors only. On an AMD EPYC (Zen 5), smelt's took 0.45 to 0.5 of the time with AVX-512, and
    0.85 to 0.9 with AVX2 (50 to 1024 rows, 384 to 3072 columns, one thread, 30 November 2026)."""
    return torch.backends.mkl.is_available() and _vendor() not in ("", "GenuineIntel")


def _vendor() -> str:
    """The processor's, as it names it itself; "" if the system does not say."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            found = re.search(r"^vendor_id\s*:\s*(\S+)", file.read(4096), re.MULTILINE)
    except OSError:
        return ""
    return found.group(1) if found else ""


@op("smelt::linear", fresh=True)
def _linear(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
    size = x.numel()
    if size * weight.shape[0] < _LEAST_WORK or size < _LEAST_ROWS * weight.shape[1]:
        return functional.linear(x, weight, bias)
    out: torch.Tensor = _apply("matmul", (x, weight.t()), torch=True)
    return out if bias is None else out.add_(bias)


@_linear.fake
def _linear_fake(x: Any, weight: Any, bias: Any) -> Any:
    return x.new_empty((*x.shape[:-1], weight.shape[0]))


def _linear_vjp(primals: Any, cotangent: Any, output: Any) -> Any:
    x, weight, bias = primals
    rows = cotangent.reshape(-1, weight.shape[0])
    return (cotangent @ weight, rows.mT @ x.reshape(-1, weight.shape[1]), None if bias is None else rows.sum(0))


_linear.vjp(_linear_vjp, differentiable=True)


def _is_ours(x: torch.Tensor) -> bool:
    if x.dtype != torch.float32 or x.device.type != "cpu" or torch.is_autocast_enabled("cpu"):
        return False
    return getattr(forward_ad, "_current_level", -1) < 0  # The operation has no derivatives in forward mode.


class Linear(nn.Linear):
    """torch's layer, whose products of float32 on a CPU are smelt's."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        weight, bias, graded = self.weight, self.bias, torch.is_grad_enabled()
        if (not _is_ours(x) or weight.dtype != torch.float32 or weight.device != x.device or weight.numel() == 0 or x.ndim == 0
                or x.shape[-1] != weight.shape[1]):
            return functional.linear(x, weight, bias)
        # What the operation computes, without the dispatcher's time, which counts in a decoder's step.
        if (is_simple(x, graded) and is_simple(weight, graded) and (bias is None or is_simple(bias, graded)) and x.numel() > 0
                and not is_watched()):
            return _linear._function(x, weight, bias)
        return _linear(x, weight, bias)

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, by smelt"
