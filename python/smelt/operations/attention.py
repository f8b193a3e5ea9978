"""Attention: one kernel and the kernels of its derivative, or what they do not take composed of other operations."""
from typing import Any

from smelt._smelt import (
    apply, array, asarray, attention as _attention, attention_vjp as _attention_vjp, bfloat16, bool_, float16, float32,
    tape_tracks,
)
from smelt.operations.creation import arange, zeros
from smelt.operations.elementwise import equal, exp, greater_equal, maximum, stop_gradient, where
from smelt.operations.products import matmul
from smelt.operations.reductions import max, sum
from smelt.operations.shapes import swapaxes
from smelt.operations.types import Array, Stream

__all__ = ["scaled_dot_product_attention"]

_NAME = "scaled_dot_product_attention"
_FLOATS = (float32, float16, bfloat16)
_MOST_DEPTH = 256  # of the kernel


def scaled_dot_product_attention(q: Array, k: Array, v: Array, *, scale: float, mask: str | Array | None = None,
                                 sinks: Array | None = None, stream: Stream = None) -> array:
    """softmax(scale q kᵀ + mask) v, for each head of each batch; (B, N_q, T_q, D_v), computed in float32.

    q: (B, N_q, T_q, D); k: (B, N_kv, T_kv, D); v: (B, N_kv, T_kv, D_v). N_q is a multiple of N_kv: that many heads of q
    in a row share one of k and v. All are float32, float16 or bfloat16; if they differ, the result is float32.
    mask: None; "causal" (row i sees the keys up to i + T_kv - T_q); or an array that can be broadcast to
    (B, N_q, T_q, T_kv): bool, where True means seen, or floats, which are added to the scores.
    sinks: (N_q,): a score per head that takes its part of the sum and has no value.
    A row that sees no key is 0. One kernel computes it, as do kernels the first derivatives by q, k and v. The scores of
    all rows are in memory at once where D or D_v is above 256, dtypes differ, for derivatives by mask or sinks, and for
    derivatives of derivatives. Raises ValueError for other shapes and dtypes."""
    q, k, v = asarray(q), asarray(k), asarray(v)
    _check(q, k, v)
    if isinstance(scale, str) or not (hasattr(scale, "__float__") or hasattr(scale, "__index__")):
        raise TypeError(f"{_NAME}: scale is {scale!r}; expected a number")
    batches, heads, rows, depth = q.shape
    keys = k.shape[2]
    dtype = q.dtype if q.dtype == k.dtype == v.dtype else float32
    shape = (batches, heads, rows, keys)
    causal = isinstance(mask, str)
    mask = _read_mask(mask, shape)
    if sinks is not None:
        sinks = asarray(sinks)
        if sinks.shape != (heads,) or sinks.dtype not in _FLOATS:
            raise ValueError(f"{_NAME}: sinks has shape {sinks.shape} and dtype {sinks.dtype.name}; expected floats of "
                             f"shape ({heads},), one per head of q")
    if keys == 0 or 0 in (batches, heads, rows, v.shape[3]):
        return zeros((batches, heads, rows, v.shape[3]), dtype, device=q.device)
    fused = q.dtype == k.dtype == v.dtype and 0 < depth <= _MOST_DEPTH and v.shape[3] <= _MOST_DEPTH
    if not fused or any(a is not None and tape_tracks(a) for a in (mask, sinks)):
        return _composed(q, k, v, mask, sinks, float(scale), causal)
    if mask is not None:
        mask = mask.reshape((1,) * (4 - mask.ndim) + mask.shape)
        mask = mask if mask.dtype in (bool_, q.dtype) else mask.astype(float32)
    return _fused(q, k, v, mask, None if sinks is None else sinks.astype(float32), float(scale), causal)


def _fused(q: array, k: array, v: array, mask: array | None, sinks: array | None, scale: float, causal: bool) -> array:
    """By the kernels. mask: 4 dimensions, bools, float32 or q's dtype; sinks: float32."""
    arrays = [a for a in (q, k, v, mask, sinks) if a is not None]
    if any(a.device == "graph" for a in arrays):
        return apply("attention", tuple(arrays), numbers=(scale,), starts=(int(causal), int(mask is not None)))
    if not any(tape_tracks(x) for x in (q, k, v)):
        return _attention(q, k, v, mask, sinks, scale, causal)[0]
    from smelt.transforms import custom_function, jvp, vjp  # which is made of these operations

    def composed(q: array, k: array, v: array) -> array:
        return _composed(q, k, v, mask, sinks, scale, causal)

    @custom_function
    def attend(q: array, k: array, v: array) -> tuple[array, array]:
        return _attention(q, k, v, mask, sinks, scale, causal)

    @attend.vjp
    def attend_vjp(primals: Any, cotangents: Any, outputs: Any) -> Any:
        # A derivative of this one is that of the composition.
        if any(tape_tracks(x) for x in (*primals, cotangents[0])):
            return vjp(composed, primals, [cotangents[0]])[1]
        q, k, v = primals
        return _attention_vjp(q, k, v, mask, sinks, scale, causal, outputs[0], outputs[1], cotangents[0].astype(q.dtype))

    @attend.jvp
    def attend_jvp(primals: Any, tangents: Any) -> Any:
        return [jvp(composed, primals, tangents)[1][0], zeros((*q.shape[:3],), float32, device=q.device)]

    return attend(q, k, v)[0]


def _composed(q: array, k: array, v: array, mask: array | None, sinks: array | None, scale: float, causal: bool) -> array:
    """By other operations: gradients pass through to all of the arrays, and it runs wherever they do."""
    batches, heads, rows, depth = q.shape
    key_heads, keys = k.shape[1], k.shape[2]
    dtype = q.dtype if q.dtype == k.dtype == v.dtype else float32
    shape = (batches, heads, rows, keys)
    if causal:
        places = arange(keys - rows, keys, device=q.device).reshape((rows, 1))
        mask = greater_equal(places, arange(keys, device=q.device))
    # The heads of q that share one of k are rows of one product.
    together = (batches, key_heads, heads // key_heads * rows)
    scaled = (q.astype(float32) * scale).reshape((*together, depth))
    scores = matmul(scaled, swapaxes(k.astype(float32), 2, 3)).reshape(shape)
    if mask is not None:
        scores = where(mask, scores, -float("inf")) if mask.dtype == bool_ else scores + mask.astype(float32)
    # The result does not depend on what is subtracted, which only keeps exponentials small.
    top = max(stop_gradient(scores), axis=3, keepdims=True)
    if sinks is not None:
        sinks = sinks.astype(float32).reshape((1, heads, 1, 1))
        top = maximum(top, stop_gradient(sinks))
    top = where(equal(top, -float("inf")), 0.0, top)
    weights = exp(scores - top)
    total = sum(weights, axis=3, keepdims=True)
    if sinks is not None:
        total = total + exp(sinks - top)
    values = matmul(weights.reshape((*together, keys)), v.astype(float32)).reshape((*shape[:3], v.shape[3]))
    return (values / where(equal(total, 0.0), 1.0, total)).astype(dtype)


def _check(q: array, k: array, v: array) -> None:
    for name, x in (("q", q), ("k", k), ("v", v)):
        if x.ndim != 4:
            raise ValueError(f"{_NAME}: {name} has shape {x.shape}; expected 4 dimensions: batches, heads, rows, size of a head")
        if x.dtype not in _FLOATS:
            raise ValueError(f"{_NAME}: {name} has dtype {x.dtype.name}; expected float32, float16 or bfloat16")
    if k.shape[:3] != v.shape[:3]:
        raise ValueError(f"{_NAME}: k has shape {k.shape} and v {v.shape}; expected the same batches, heads and rows")
    if q.shape[0] != k.shape[0] or q.shape[3] != k.shape[3]:
        raise ValueError(f"{_NAME}: q has shape {q.shape} and k {k.shape}; expected the same batches and size of a head")
    if k.shape[1] == 0 or q.shape[1] % k.shape[1]:
        raise ValueError(f"{_NAME}: q has {q.shape[1]} heads and k {k.shape[1]}; expected a multiple")


def _read_mask(mask: str | Array | None, shape: tuple[int, int, int, int]) -> array | None:
    """None, also for "causal", or an array of bools or floats that can be broadcast to the scores' shape."""
    if mask is None:
        return None
    if isinstance(mask, str):
        if mask != "causal":
            raise ValueError(f"{_NAME}: mask is {mask!r}; expected None, 'causal' or an array")
        return None
    mask = asarray(mask)
    if mask.dtype != bool_ and mask.dtype not in _FLOATS:
        raise ValueError(f"{_NAME}: mask has dtype {mask.dtype.name}; expected bool, float32, float16 or bfloat16")
    sizes = (1,) * (4 - mask.ndim) + mask.shape
    if mask.ndim > 4 or any(have not in (1, size) for have, size in zip(sizes, shape)):
        raise ValueError(f"{_NAME}: mask has shape {mask.shape}; expected one that can be broadcast to {shape}")
    return mask
