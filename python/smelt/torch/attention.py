"""Attention as an operation of PyTorch, with its gradients: `scaled_dot_product_attention`."""

from __future__ import annotations

from typing import Any

import torch

import smelt
from smelt._smelt import attention_of as _attention_of, attention_vjp as _attention_vjp
from smelt.torch.operation import op
from smelt.torch.plans import is_plain

__all__ = ["attention_over_lines", "scaled_dot_product_attention"]

_NAME = "smelt.torch.scaled_dot_product_attention"
_FLOATS = (torch.float32, torch.float16, torch.bfloat16)
_MOST_DEPTH = 256  # of the kernel


@op("smelt::attention", fresh=True)
def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor | None, scale: float, causal: bool,
              derive_mask: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """The result, and the logarithm of each row's sum of exponentials, which its gradients need. mask: None, or four
    dimensions of bool, float32 or q's dtype. derive_mask: its gradient may be asked for."""
    return _attention_of(q, k, v, mask, None, None, None, scale, causal, True)


def _fake_result(q: Any, v: Any) -> Any:
    """The kernel's result lies in memory as (B, T_q, N_q, D_v)."""
    batches, heads, rows, _ = q.shape
    return q.new_empty((batches, rows, heads, v.shape[3])).transpose(1, 2)


@attention.fake
def _attention_fake(q: Any, k: Any, v: Any, mask: Any, scale: Any, causal: Any, derive_mask: Any) -> Any:
    return _fake_result(q, v), q.new_empty(q.shape[:3], dtype=torch.float32)


@attention.vjp
def _attention_backward(primals: Any, cotangents: Any, outputs: Any) -> Any:
    q, k, v, mask, scale, causal, derive_mask = primals
    out, sums = outputs
    g = cotangents[0].to(q.dtype)
    given = [smelt.asarray(x.contiguous()) for x in (out, sums, g)]
    found = [torch.from_dlpack(x) for x in _attention_vjp(*_arrays(q, k, v, mask), None, scale, causal, *given)]
    by_mask = _gradient_of_mask(q, k, v, mask, scale, out, sums, g) if derive_mask else None
    return (*found, by_mask, None, None, None)


def _arrays(q: Any, k: Any, v: Any, mask: Any) -> tuple[Any, Any, Any, Any]:
    return smelt.asarray(q), smelt.asarray(k), smelt.asarray(v), None if mask is None else smelt.asarray(mask)


def _gradient_of_mask(q: Any, k: Any, v: Any, mask: Any, scale: float, out: Any, sums: Any, g: Any) -> torch.Tensor:
    """That of a mask of floats, by matrices of all scores."""
    shared = q.shape[1] // k.shape[1]
    q, k, v, out, g = (x.float() for x in (q, k.repeat_interleave(shared, 1), v.repeat_interleave(shared, 1), out, g))
    sums = torch.where(sums.isneginf(), 0.0, sums)
    weights = torch.exp(scale * q @ k.mT + mask - sums[..., None])
    by_scores = weights * (g @ v.mT - (g * out).sum(-1, keepdim=True))
    return by_scores.sum_to_size(mask.shape).to(mask.dtype)


def scaled_dot_product_attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, scale: float | None = None,
                                 mask: torch.Tensor | None = None, causal: bool = False) -> torch.Tensor:
    """softmax(scale q kᵀ + mask) v, for each head of each batch, by one kernel; (B, N_q, T_q, D_v), in the dtype of q.

    q: (B, N_q, T_q, D); k: (B, N_kv, T_kv, D); v: (B, N_kv, T_kv, D_v). N_q is a multiple of N_kv: that many heads of q
    in a row share one of k and v. D and D_v are at most 256. All are float32, float16 or bfloat16 and have one dtype.
    scale: 1/√D if None. mask: bool, where True means seen, or floats, which are added to the scores; it can be broadcast
    to (B, N_q, T_q, T_kv). causal: row i sees the keys up to i + T_kv - T_q. A row that sees no key is 0.
    There are gradients by q, k, v and a mask of floats; the scores of all rows are in memory at once for the last only.
    The result lies in memory as (B, T_q, N_q, D_v): its .transpose(1, 2) is contiguous, and joins the heads of a row
    without a copy. Gradients of gradients are a RuntimeError. Raises ValueError for other shapes and dtypes."""
    if is_plain((q, k, v) if mask is None else (q, k, v, mask)):
        try:
            seen = mask if mask is None or mask.ndim > 3 else mask.reshape((1,) * (4 - mask.ndim) + tuple(mask.shape))
            return _attention_of(q, k, v, seen, None, None, None, scale, causal, False)
        except (TypeError, ValueError, smelt.UnsupportedError):  # An argument is wrong, not supported here, or converted below.
            pass
    _check(q, k, v, mask)
    if scale is None:
        scale = q.shape[-1]**-0.5
    derive_mask = False
    if mask is not None:
        if mask.dtype != torch.bool:
            mask = mask if mask.dtype == q.dtype else mask.float()
            derive_mask = mask.requires_grad
        mask = mask.reshape((1,) * (4 - mask.ndim) + tuple(mask.shape))
    return attention(q, k, v, mask, float(scale), causal, derive_mask)[0]


@op("smelt::attention_with_bias", fresh=True)
def _with_bias(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, lines: torch.Tensor, columns: torch.Tensor,
               scale: float) -> torch.Tensor:
    return _attention_of(q, k, v, None, None, lines, columns, scale, False, False)


@_with_bias.fake
def _with_bias_fake(q: Any, k: Any, v: Any, lines: Any, columns: Any, scale: Any) -> Any:
    return _fake_result(q, v)


def attention_over_lines(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, lines: torch.Tensor, columns: torch.Tensor, *,
                         scale: float) -> torch.Tensor:
    """scaled_dot_product_attention with relative positions, of keys that are the L lines of W columns of a picture: T_kv is
    L W. lines (B, N_q, T_q, L) and columns (B, N_q, T_q, W) hold what is added to the scores of a line's and a column's keys.

    The kernel reads both as they are if they have the dtype of q and no gradient is needed; otherwise one mask is computed
    from them. Raises ValueError for other shapes."""
    _check(q, k, v, None)
    for name, x in (("lines", lines), ("columns", columns)):
        if x.ndim != 4 or x.shape[:3] != q.shape[:3]:
            raise ValueError(f"smelt.torch.attention_over_lines: {name} has shape {tuple(x.shape)}; expected "
                             f"{tuple(q.shape[:3])} and one more dimension")
    if lines.shape[3] * columns.shape[3] != k.shape[2]:
        raise ValueError(f"smelt.torch.attention_over_lines: lines has {lines.shape[3]} lines, and columns has "
                         f"{columns.shape[3]} columns; expected a product of {k.shape[2]}, the keys")
    wanted = torch.is_grad_enabled() and any(x.requires_grad for x in (q, k, v, lines, columns))
    if not wanted and lines.dtype == q.dtype == columns.dtype:
        return _with_bias(q, k, v, lines, columns, float(scale))
    mask = (lines[..., :, None] + columns[..., None, :]).flatten(3)
    return scaled_dot_product_attention(q, k, v, scale=scale, mask=mask)


def _check(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor | None) -> None:
    for name, x in (("q", q), ("k", k), ("v", v)):
        if x.ndim != 4:
            raise ValueError(f"{_NAME}: {name} has shape {tuple(x.shape)}; expected 4 dimensions: batches, heads, rows, "
                             "size of a head")
        if x.dtype not in _FLOATS or x.dtype != q.dtype:
            raise ValueError(f"{_NAME}: {name} has dtype {x.dtype}; expected "
                             f"{'float32, float16 or bfloat16' if name == 'q' else f'{q.dtype}, as q'}")
        if not 1 <= x.shape[3] <= _MOST_DEPTH:
            raise ValueError(f"{_NAME}: {name} has heads of {x.shape[3]} elements; expected 1 to {_MOST_DEPTH}")
    if mask is not None and (mask.ndim > 4 or mask.dtype not in (torch.bool, *_FLOATS)):
        raise ValueError(f"{_NAME}: mask has shape {tuple(mask.shape)} and dtype {mask.dtype}; expected bool, float32, "
                         "float16 or bfloat16 of at most 4 dimensions")
