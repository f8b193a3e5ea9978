"""ATen's operators as operations on values of smelt's graphs: the table `OPERATORS`, which `smelt.export` uses."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import torch

import smelt
from smelt._smelt import apply as _apply

__all__ = ["OPERATORS", "dtype_of"]

Value = Any  # a smelt.array, or a number
_IGNORED = ("_assert_async", "_assert_scalar", "_assert_tensor_metadata", "sym_constrain_range", "sym_constrain_range_for_size")


def dtype_of(dtype: torch.dtype) -> Any:
    """smelt's dtype for torch's."""
    name = str(dtype).removeprefix("torch.")
    return smelt.bool_ if name == "bool" else getattr(smelt, name)


def _axis(axis: int, rank: int) -> int:
    return axis + rank if axis < 0 else axis


def _axes(axes: Any, rank: int) -> tuple[int, ...]:
    """All of them, if none is given."""
    if axes is None or (not isinstance(axes, int) and not len(axes)):
        return tuple(range(rank))
    return tuple(_axis(axis, rank) for axis in ([axes] if isinstance(axes, int) else axes))


def _as(x: Value, dtype: torch.dtype | None) -> Value:
    return x if dtype is None else x.astype(dtype_of(dtype))


# ---- Elementwise.

def _add(x: Value, y: Value, alpha: Any = 1) -> Value:
    return smelt.add(x, y if alpha == 1 else y * alpha)


def _subtract(x: Value, y: Value, alpha: Any = 1) -> Value:
    return smelt.subtract(x, y if alpha == 1 else y * alpha)


def _divide(x: Value, y: Value, rounding_mode: str | None = None) -> Value:
    if rounding_mode == "floor":
        return smelt.floor_divide(x, y)
    quotient = smelt.divide(x, y)
    return quotient if rounding_mode is None else smelt.where(quotient < 0, smelt.ceil(quotient), smelt.floor(quotient))


def _power(x: Value, y: Value) -> Value:
    return smelt.square(x) if isinstance(y, (int, float)) and y == 2 else smelt.power(x, y)


def _truncated_remainder(x: Value, y: Value) -> Value:
    return smelt.remainder(smelt.abs(x), smelt.abs(y) if isinstance(y, smelt.array) else abs(y)) * smelt.sign(x)


def _gelu(x: Value, approximate: str = "none") -> Value:
    if approximate == "tanh":
        return 0.5 * x * (1 + smelt.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)))
    return 0.5 * x * (1 + smelt.erf(x * math.sqrt(0.5)))


def _clamp(x: Value, low: Value = None, high: Value = None) -> Value:
    x = x if low is None else smelt.maximum(x, low)
    return x if high is None else smelt.minimum(x, high)


def _softplus(x: Value, beta: float = 1.0, threshold: float = 20.0) -> Value:
    return smelt.where(x * beta > threshold, x, smelt.logaddexp(x * beta, 0.0) / beta)


def _elu(x: Value, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0) -> Value:
    return smelt.where(x > 0, x * scale, alpha * scale * smelt.expm1(x * input_scale))


_ELEMENTWISE: dict[str, Callable] = {
    "abs": smelt.abs, "neg": smelt.negative, "exp": smelt.exp, "expm1": smelt.expm1, "log": smelt.log, "log2": smelt.log2,
    "log10": smelt.log10, "log1p": smelt.log1p, "sqrt": smelt.sqrt, "rsqrt": smelt.rsqrt, "reciprocal": smelt.reciprocal,
    "sin": smelt.sin, "cos": smelt.cos, "tan": smelt.tan, "sinh": smelt.sinh, "cosh": smelt.cosh, "tanh": smelt.tanh,
    "asin": smelt.arcsin, "acos": smelt.arccos, "atan": smelt.arctan, "atan2": smelt.arctan2, "erf": smelt.erf,
    "floor": smelt.floor, "ceil": smelt.ceil, "sign": smelt.sign, "sigmoid": smelt.sigmoid, "isnan": smelt.isnan,
    "isinf": smelt.isinf, "logical_not": smelt.logical_not, "bitwise_not": smelt.bitwise_invert,
    "square": smelt.square, "relu": lambda x: smelt.maximum(x, 0), "silu": lambda x: x * smelt.sigmoid(x), "gelu": _gelu,
    "softplus": _softplus, "elu": _elu, "add": _add, "sub": _subtract, "rsub": lambda x, y, alpha=1: _subtract(y, x, alpha),
    "mul": smelt.multiply, "div": _divide, "floor_divide": smelt.floor_divide, "remainder": smelt.remainder, "pow": _power,
    "fmod": _truncated_remainder,
    "maximum": smelt.maximum, "minimum": smelt.minimum, "eq": smelt.equal, "ne": smelt.not_equal, "lt": smelt.less,
    "le": smelt.less_equal, "gt": smelt.greater, "ge": smelt.greater_equal, "logical_and": smelt.logical_and,
    "logical_or": smelt.logical_or, "logical_xor": smelt.not_equal, "bitwise_and": smelt.bitwise_and,
    "bitwise_or": smelt.bitwise_or, "bitwise_xor": smelt.bitwise_xor, "where": smelt.where, "clamp": _clamp,
    "clamp_min": lambda x, low: smelt.maximum(x, low), "clamp_max": lambda x, high: smelt.minimum(x, high),
    "masked_fill": lambda x, mask, value: smelt.where(mask, value, x),
    "leaky_relu": lambda x, slope=0.01: smelt.where(x > 0, x, x * slope),
    "hardtanh": lambda x, low=-1.0, high=1.0: _clamp(x, low, high),
}


# ---- Dtypes and copies.

def _converted(x: Value, *others: Any, dtype: torch.dtype | None = None, **unused: Any) -> Value:
    return _as(x, next((each for each in others if isinstance(each, torch.dtype)), dtype))


def _same(x: Value, *unused: Any, **also: Any) -> Value:
    return x


# ---- Shapes.

def _view(x: Value, shape: Sequence[int]) -> Value:
    return smelt.reshape(x, tuple(shape))


def _permute(x: Value, axes: Sequence[int]) -> Value:
    return smelt.transpose(x, _axes(axes, x.ndim))


def _swap(x: Value, a: int = 0, b: int = 1) -> Value:
    return smelt.swapaxes(x, a, b) if x.ndim > 1 else x


def _unsqueeze(x: Value, axis: int) -> Value:
    return smelt.expand_dims(x, _axis(axis, x.ndim + 1))


def _squeeze(x: Value, axes: Any = None) -> Value:
    single = [axis for axis in _axes(axes, x.ndim) if x.shape[axis] == 1]
    return smelt.reshape(x, tuple(size for axis, size in enumerate(x.shape) if axis not in single))


def _expand(x: Value, shape: Sequence[int], implicit: bool = False) -> Value:
    new = len(shape) - x.ndim
    return smelt.broadcast_to(x, tuple(x.shape[i - new] if size == -1 else size for i, size in enumerate(shape)))


def _flatten(x: Value, first: int = 0, last: int = -1) -> Value:
    first, last = _axis(first, x.ndim), _axis(last, x.ndim)
    return smelt.reshape(x, (*x.shape[:first], math.prod(x.shape[first:last + 1]), *x.shape[last + 1:])) if x.ndim else \
        smelt.reshape(x, (1,))


def _unflatten(x: Value, axis: int, sizes: Sequence[int]) -> Value:
    axis = _axis(axis, x.ndim)
    sizes = list(sizes)
    if -1 in sizes:
        sizes[sizes.index(-1)] = x.shape[axis] // -math.prod(sizes)
    return smelt.reshape(x, (*x.shape[:axis], *sizes, *x.shape[axis + 1:]))


def _concatenate(tensors: Sequence[Value], axis: int = 0) -> Value:
    kept = [x for x in tensors if x.ndim != 1 or x.shape[0]]  # torch skips empty vectors
    return smelt.concatenate(kept or list(tensors), axis=axis)


def _stack(tensors: Sequence[Value], axis: int = 0) -> Value:
    return smelt.concatenate([_unsqueeze(x, axis) for x in tensors], axis=_axis(axis, tensors[0].ndim + 1))


def _cut(x: Value, axis: int, part: Any) -> Value:
    keys: list[Any] = [slice(None)] * x.ndim
    keys[axis] = part
    return x[tuple(keys)]


def _slice(x: Value, axis: int = 0, start: int | None = None, stop: int | None = None, step: int = 1) -> Value:
    return _cut(x, _axis(axis, x.ndim), slice(start, stop, step))


def _select(x: Value, axis: int, index: int) -> Value:
    return _cut(x, _axis(axis, x.ndim), index)


def _split(x: Value, sizes: Any, axis: int = 0) -> list[Value]:
    axis = _axis(axis, x.ndim)
    whole = x.shape[axis]
    if isinstance(sizes, int):
        sizes = [min(sizes, whole - at) for at in range(0, whole, sizes)] or [0]
    starts = [sum(sizes[:i]) for i in range(len(sizes))]
    return [_cut(x, axis, slice(start, start + size)) for start, size in zip(starts, sizes)]


def _chunk(x: Value, count: int, axis: int = 0) -> list[Value]:
    return _split(x, max(1, -(-x.shape[_axis(axis, x.ndim)] // count)), axis)


def _unbind(x: Value, axis: int = 0) -> list[Value]:
    return [_select(x, axis, i) for i in range(x.shape[_axis(axis, x.ndim)])]


def _pad(x: Value, widths: Sequence[int], value: float = 0.0) -> Value:
    """torch counts dimensions from the last, and cuts where a width is negative."""
    pairs = [(0, 0)] * (x.ndim - len(widths) // 2)
    pairs += [(widths[i], widths[i + 1]) for i in range(len(widths) - 2, -1, -2)]
    for axis, (before, after) in enumerate(pairs):
        if before < 0 or after < 0:
            x = _cut(x, axis, slice(max(0, -before), x.shape[axis] - max(0, -after)))
    return smelt.pad(x, tuple((max(0, before), max(0, after)) for before, after in pairs), constant_values=value)


def _repeat(x: Value, counts: Sequence[int]) -> Value:
    return smelt.tile(smelt.reshape(x, (1,) * (len(counts) - x.ndim) + tuple(x.shape)), tuple(counts))


def _flip(x: Value, axes: Sequence[int]) -> Value:
    for axis in _axes(axes, x.ndim):
        x = _cut(x, axis, slice(None, None, -1))
    return x


def _pixel_shuffle(x: Value, factor: int) -> Value:
    *batches, channels, height, width = x.shape
    count = len(batches)
    parts = smelt.reshape(x, (*batches, channels // factor**2, factor, factor, height, width))
    turned = smelt.transpose(parts, (*range(count), count, count + 3, count + 1, count + 4, count + 2))
    return smelt.reshape(turned, (*batches, channels // factor**2, height * factor, width * factor))


def _pixel_unshuffle(x: Value, factor: int) -> Value:
    *batches, channels, height, width = x.shape
    count = len(batches)
    parts = smelt.reshape(x, (*batches, channels, height // factor, factor, width // factor, factor))
    turned = smelt.transpose(parts, (*range(count), count, count + 2, count + 4, count + 1, count + 3))
    return smelt.reshape(turned, (*batches, channels * factor**2, height // factor, width // factor))


# ---- Creation. The dtype is given by the node's result.

def _filled(shape: Sequence[int], value: Any, **unused: Any) -> Value:
    return smelt.full(tuple(shape), value)


def _filled_like(value: Any) -> Callable:
    return lambda x, *given, **unused: smelt.full(x.shape, given[0] if value is None else value)


def _range(*bounds: Any, **unused: Any) -> Value:
    start, stop, step = (0, bounds[0], 1) if len(bounds) == 1 else (*bounds, 1)[:3]
    return smelt.arange(start, stop, step)


def _triangle(function: Callable) -> Callable:
    return lambda x, diagonal=0: function(x, diagonal)


# ---- Reductions.

def _reduced(function: Callable) -> Callable:
    def reduce(x: Value, axes: Any = None, keepdim: bool = False, dtype: torch.dtype | None = None, **unused: Any) -> Value:
        return function(_as(x, dtype), axis=_axes(axes, x.ndim), keepdims=keepdim)
    return reduce


def _extreme(function: Callable, place: Callable) -> Callable:
    """max and min: of all elements; of two tensors; or along an axis, with the places."""
    def find(x: Value, axis: Any = None, keepdim: bool = False) -> Any:
        if axis is None:
            return function(x)
        if not isinstance(axis, int):
            return (smelt.maximum if function is smelt.max else smelt.minimum)(x, axis)
        return [function(x, axis=axis, keepdims=keepdim), place(x, axis=axis, keepdims=keepdim)]
    return find


def _place(function: Callable) -> Callable:
    def find(x: Value, axis: int | None = None, keepdim: bool = False) -> Value:
        return function(x) if axis is None else function(x, axis=axis, keepdims=keepdim)
    return find


def _variance(x: Value, axes: Any = None, *given: Any, correction: Any = 1, keepdim: bool = False, **unused: Any) -> Value:
    if isinstance(axes, bool):  # var(x, unbiased)
        axes, correction = None, int(axes)
    if given:
        correction, keepdim = int(given[0]), bool(given[1]) if len(given) > 1 else keepdim
    return smelt.var(x, axis=_axes(axes, x.ndim), keepdims=keepdim, ddof=1 if correction is None else int(correction))


def _variance_and_mean(x: Value, axes: Any = None, *given: Any, **named: Any) -> list[Value]:
    return [_variance(x, axes, *given, **named), smelt.mean(x, axis=_axes(axes, x.ndim), keepdims=named.get("keepdim", False))]


def _softmax(x: Value, axis: int, dtype: Any = None, **named: Any) -> Value:
    dtype = named.get("dtype", dtype)
    return smelt.softmax(_as(x, dtype if isinstance(dtype, torch.dtype) else None), axis=axis)


def _log_softmax(x: Value, axis: int, dtype: Any = None, **named: Any) -> Value:
    dtype = named.get("dtype", dtype)
    return smelt.log_softmax(_as(x, dtype if isinstance(dtype, torch.dtype) else None), axis=axis)


def _cumulative(function: Callable) -> Callable:
    return lambda x, axis, dtype=None: function(_as(x, dtype), axis=axis)


# ---- Products.

def _linear(x: Value, weight: Value, bias: Value = None) -> Value:
    product = smelt.matmul(x, smelt.transpose(weight))
    return product if bias is None else product + bias


def _added_product(bias: Value, x: Value, y: Value, beta: Any = 1, alpha: Any = 1) -> Value:
    product = smelt.matmul(x, y)
    product = product if alpha == 1 else product * alpha
    return product + (bias if beta == 1 else bias * beta)


def _convolution(x: Value, weight: Value, bias: Value = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, *rest: Any,
                 **named: Any) -> Value:
    """aten.conv1d … conv3d with `groups`; aten.convolution with transposed, output_padding and groups."""
    count = x.ndim - 2
    stride, dilation = ([each] * count if isinstance(each, int) else list(each) * (count // len(each) or 1)
                        for each in (stride, dilation))
    if len(rest) == 3:
        if rest[0]:
            raise NotImplementedError("smelt.export: the operator aten.convolution is transposed, which has no counterpart")
        groups = rest[2]
    else:
        groups = rest[0] if rest else named.get("groups", 1)
    if isinstance(padding, str):
        wide = [d * (k - 1) if padding == "same" else 0 for d, k in zip(dilation, weight.shape[2:])]
        pads: Any = ([w // 2 for w in wide], [w - w // 2 for w in wide])
    else:
        both = [padding] * count if isinstance(padding, int) else list(padding) * (count // len(padding) or 1)
        pads = (both, both)
    spatial = tuple(range(2, x.ndim))
    made = smelt.conv_general(smelt.transpose(x, (0, *spatial, 1)), smelt.transpose(weight, (0, *spatial, 1)), stride=stride,
                              padding=pads, kernel_dilation=dilation, groups=groups)
    made = made if bias is None else made + bias
    return smelt.transpose(made, (0, x.ndim - 1, *range(1, x.ndim - 1)))


# ---- Norms.

def _scaled(x: Value, weight: Value, bias: Value) -> Value:
    x = x if weight is None else x * weight
    return x if bias is None else x + bias


def _layer_norm(x: Value, shape: Sequence[int], weight: Value = None, bias: Value = None, eps: float = 1e-5,
                *unused: Any) -> Value:
    if len(shape) == 1:
        return smelt.layer_norm(x, weight, bias, eps)
    axes = tuple(range(x.ndim - len(shape), x.ndim))
    centred = x - smelt.mean(x, axis=axes, keepdims=True)
    return _scaled(centred * smelt.rsqrt(smelt.mean(smelt.square(centred), axis=axes, keepdims=True) + eps), weight, bias)


def _rms_norm(x: Value, shape: Sequence[int], weight: Value = None, eps: float | None = None) -> Value:
    eps = float(torch.finfo(torch.float32).eps) if eps is None else eps
    if len(shape) == 1:
        return smelt.rms_norm(x, weight, eps)
    axes = tuple(range(x.ndim - len(shape), x.ndim))
    return _scaled(x * smelt.rsqrt(smelt.mean(smelt.square(x), axis=axes, keepdims=True) + eps), weight, None)


def _by_channel(x: Value, values: Value) -> Value:
    return None if values is None else smelt.reshape(values, (1, -1, *(1,) * (x.ndim - 2)))


def _batch_norm(x: Value, weight: Value, bias: Value, mean: Value, variance: Value, eps: float) -> Value:
    """With what was found in training: one product and one sum, as all but x is constant."""
    scale = smelt.rsqrt(variance + eps)
    scale = scale if weight is None else scale * weight
    shift = -mean * scale
    return x * _by_channel(x, scale) + _by_channel(x, shift if bias is None else shift + bias)


def _batch_norm_of_batch(x: Value, weight: Value, bias: Value, *rest: Any) -> list[Value]:
    """Of the batch's own mean and variance: instance norm is made of it. With running ones it is training."""
    if len(rest) != 3:
        _refuse_training()
    axes = (0, *range(2, x.ndim))
    centred = x - smelt.mean(x, axis=axes, keepdims=True)
    normal = centred * smelt.rsqrt(smelt.mean(smelt.square(centred), axis=axes, keepdims=True) + rest[2])
    return [_scaled(normal, _by_channel(x, weight), _by_channel(x, bias)), None, None]


def _refuse_training(*unused: Any, **named: Any) -> Any:
    raise NotImplementedError("smelt.export: a batch norm is in training mode; call model.eval() first")


def _batch_norm_of_aten(x: Value, weight: Value, bias: Value, mean: Value, variance: Value, training: bool, momentum: float,
                        eps: float, *unused: Any) -> Value:
    if training:
        _refuse_training()
    return _batch_norm(x, weight, bias, mean, variance, eps)


def _group_norm(x: Value, groups: int, weight: Value = None, bias: Value = None, eps: float = 1e-5, *unused: Any) -> Value:
    parts = smelt.reshape(x, (x.shape[0], groups, -1))
    centred = parts - smelt.mean(parts, axis=2, keepdims=True)
    normal = centred * smelt.rsqrt(smelt.mean(smelt.square(centred), axis=2, keepdims=True) + eps)
    return _scaled(smelt.reshape(normal, x.shape), _by_channel(x, weight), _by_channel(x, bias))


# ---- Pictures: (batches, channels, height, width).

def _places(x: Value, axis: int, size: Any, scales: Any, align: bool | None) -> tuple[list[float], int]:
    """For each element of the result, where it lies in x; align: None for the nearest."""
    scale = None if scales is None else scales[axis - 2]
    have = x.shape[axis]
    out = int(size[axis - 2]) if size is not None else int(have * scale)
    step = 1 / scale if scale else have / out
    if align is None:
        return [min(math.floor(i * step), have - 1) for i in range(out)], out
    if align:
        return [i * (have - 1) / (out - 1) if out > 1 else 0.0 for i in range(out)], out
    return [min(max((i + 0.5) * step - 0.5, 0.0), have - 1.0) for i in range(out)], out


def _nearest(x: Value, size: Any = None, scales: Any = None, *unused: Any) -> Value:
    for axis in (2, 3):
        x = smelt.take(x, smelt.asarray(_places(x, axis, size, scales, None)[0], dtype=smelt.int32), axis=axis)
    return x


def _bilinear(x: Value, size: Any, align: bool, scales: Any = None, *unused: Any) -> Value:
    for axis in (2, 3):
        places, out = _places(x, axis, size, scales, align)
        low = [min(int(place), x.shape[axis] - 1) for place in places]
        high = [min(i + 1, x.shape[axis] - 1) for i in low]
        part = smelt.asarray([place - i for place, i in zip(places, low)], dtype=smelt.float32).astype(x.dtype)
        a, b = (smelt.take(x, smelt.asarray(at, dtype=smelt.int32), axis=axis) for at in (low, high))
        x = a + (b - a) * smelt.reshape(part, (out, *(1,) * (3 - axis)))
    return x


def _pair(value: Any) -> list[int]:
    return [value, value] if isinstance(value, int) else list(value) * (2 // len(value))


def _windows(x: Value, kernel: Any, stride: Any, padding: Any, fill: float) -> list[Value]:
    """For each place in a window, the elements that lie there."""
    high, wide = _pair(kernel)
    down, across = _pair(stride) if stride else (high, wide)
    top, left = _pair(padding)
    x = smelt.pad(x, (*((0, 0),) * (x.ndim - 2), (top, top), (left, left)), constant_values=fill) if top or left else x
    rows, columns = (x.shape[-2] - high) // down + 1, (x.shape[-1] - wide) // across + 1
    return [_cut(_cut(x, x.ndim - 2, slice(i, i + down * (rows - 1) + 1, down)), x.ndim - 1,
                 slice(j, j + across * (columns - 1) + 1, across)) for i in range(high) for j in range(wide)]


def _max_pool(x: Value, kernel: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False) -> Value:
    if ceil_mode or _pair(dilation) != [1, 1]:
        raise NotImplementedError("smelt.export: the operator aten.max_pool2d has a dilation or ceil_mode; expected neither")
    return functools.reduce(smelt.maximum, _windows(x, kernel, stride, padding, -math.inf))


def _average_pool(x: Value, kernel: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False, count_padding: bool = True,
                  divisor: int | None = None) -> Value:
    if ceil_mode or (not count_padding and _pair(padding) != [0, 0]):
        raise NotImplementedError("smelt.export: the operator aten.avg_pool2d has ceil_mode or does not count its padding; "
                                  "expected neither")
    windows = _windows(x, kernel, stride, padding, 0.0)
    return functools.reduce(smelt.add, windows) / (divisor or len(windows))


def _adaptive_pool(x: Value, size: Any) -> Value:
    rows, columns = _pair(size)
    if x.shape[-2] % rows or x.shape[-1] % columns:
        raise NotImplementedError(f"smelt.export: the operator aten.adaptive_avg_pool2d has {rows} x {columns} results of "
                                  f"{x.shape[-2]} x {x.shape[-1]} elements; expected divisors")
    return _average_pool(x, [x.shape[-2] // rows, x.shape[-1] // columns])


# ---- Indices.

def _narrow(indices: Value) -> Value:
    return indices.astype(smelt.int32) if indices.dtype.name == "int64" else indices


def _index(x: Value, indices: Sequence[Value]) -> Value:
    if any(index is not None and index.dtype.name == "bool" for index in indices):
        raise NotImplementedError("smelt.export: the operator aten.index has an index of bools, whose result has no fixed shape")
    return x[tuple(slice(None) if index is None else _narrow(index) for index in indices)]


def _embedding(weight: Value, indices: Value, *unused: Any) -> Value:
    return smelt.take(weight, _narrow(indices), axis=0)


# ---- Attention.

def _attention(q: Value, k: Value, v: Value, mask: Value = None, dropout: float = 0.0, causal: bool = False, scale: Any = None,
               enable_gqa: bool = False) -> Value:
    """As torch's; where torch's causality counts from the first row, smelt's counts from the last."""
    if dropout:
        raise NotImplementedError("smelt.export: attention has dropout; call model.eval() first")
    lead = q.shape[:-2]
    scale = q.shape[-1]**-0.5 if scale is None else scale
    q4, k4, v4 = (smelt.reshape(x, (1,) * (4 - x.ndim) + tuple(x.shape)) if x.ndim < 4 else x for x in (q, k, v))
    if causal and q4.shape[2] != k4.shape[2]:
        mask, causal = smelt.arange(q4.shape[2]).reshape((-1, 1)) >= smelt.arange(k4.shape[2]), False
    return smelt.reshape(_fused(q4, k4, v4, mask, float(scale), causal), (*lead, q.shape[-2], v.shape[-1]))


def _fused(q: Value, k: Value, v: Value, mask: Value, scale: float, causal: bool) -> Value:
    """By smelt's kernel, or composed where it does not fit."""
    if mask is not None and mask.dtype != smelt.bool_:
        mask = mask.astype(smelt.float32)
    return smelt.scaled_dot_product_attention(q, k, v, scale=scale, mask="causal" if causal else mask)


def _smelt_attention(q: Value, k: Value, v: Value, mask: Value, scale: float, causal: bool, derive_mask: bool) -> list[Value]:
    """smelt::attention, whose second result only gradients need."""
    if mask is not None and causal:
        rows, keys = q.shape[2], k.shape[2]
        seen = smelt.arange(keys - rows, keys).reshape((rows, 1)) >= smelt.arange(keys)
        mask, causal = smelt.where(seen, smelt.where(mask, 0.0, -math.inf) if mask.dtype == smelt.bool_ else mask, -math.inf), False
    return [_fused(q, k, v, mask, scale, causal), None]


def _attention_with_bias(q: Value, k: Value, v: Value, lines: Value, columns: Value, scale: float) -> Value:
    return _apply("attention", (q, k, v, lines, columns), numbers=(scale,), starts=(0, 2))


# ---- Other operations of smelt.torch.

def _smelt_rms_norm(x: Value, weight: Value, eps: float) -> Value:
    return _apply("rms_norm", (x, weight), numbers=(eps,))


def _quantized_linear(x: Value, codes: Value, scales: Value, biases: Value, transpose: bool, mode: str, bits: int,
                      group_size: int) -> Value:
    words = smelt.view(codes, smelt.uint32)
    return smelt.quantized_matmul(x, words, scales, biases, transpose, group_size, bits, mode).astype(x.dtype)


_OTHERS: dict[str, Callable] = {
    "_to_copy": _converted, "to": _converted, "type_as": lambda x, other: x.astype(other.dtype), "clone": _same, "alias": _same,
    "contiguous": _same, "detach": _same, "detach_": _same, "dropout": _same, "lift_fresh_copy": _same, "lift_fresh": _same,
    "view": _view, "reshape": _view, "_unsafe_view": _view, "permute": _permute, "transpose": _swap, "t": _swap,
    "unsqueeze": _unsqueeze, "squeeze": _squeeze, "expand": _expand, "expand_as": lambda x, y: smelt.broadcast_to(x, y.shape),
    "flatten": _flatten, "unflatten": _unflatten, "cat": _concatenate, "stack": _stack, "slice": _slice, "select": _select,
    "split": _split, "split_with_sizes": _split, "chunk": _chunk, "unbind": _unbind, "constant_pad_nd": _pad, "repeat": _repeat,
    "flip": _flip, "pixel_shuffle": _pixel_shuffle, "pixel_unshuffle": _pixel_unshuffle,
    "full": _filled, "zeros": lambda shape, **unused: _filled(shape, 0), "ones": lambda shape, **unused: _filled(shape, 1),
    "new_zeros": lambda x, shape, **unused: _filled(shape, 0), "new_ones": lambda x, shape, **unused: _filled(shape, 1),
    "new_full": lambda x, shape, value, **unused: _filled(shape, value), "scalar_tensor": lambda value, **unused: _filled((), value),
    "zeros_like": _filled_like(0), "ones_like": _filled_like(1), "full_like": _filled_like(None), "arange": _range,
    "tril": _triangle(smelt.tril), "triu": _triangle(smelt.triu),
    "sum": _reduced(smelt.sum), "mean": _reduced(smelt.mean), "amax": _reduced(smelt.max), "amin": _reduced(smelt.min),
    "any": _reduced(smelt.any), "all": _reduced(smelt.all), "prod": _reduced(smelt.prod), "logsumexp": _reduced(smelt.logsumexp),
    "max": _extreme(smelt.max, smelt.argmax), "min": _extreme(smelt.min, smelt.argmin), "argmax": _place(smelt.argmax),
    "argmin": _place(smelt.argmin), "var": _variance, "var_mean": _variance_and_mean, "softmax": _softmax, "_softmax": _softmax,
    "log_softmax": _log_softmax, "_log_softmax": _log_softmax, "cumsum": _cumulative(smelt.cumsum),
    "cumprod": _cumulative(smelt.cumprod),
    "mm": smelt.matmul, "bmm": smelt.matmul, "matmul": smelt.matmul, "mv": smelt.matmul, "dot": smelt.matmul,
    "addmm": _added_product, "baddbmm": _added_product, "linear": _linear, "conv1d": _convolution, "conv2d": _convolution,
    "conv3d": _convolution, "convolution": _convolution,
    "layer_norm": _layer_norm, "rms_norm": _rms_norm, "group_norm": _group_norm, "batch_norm": _batch_norm_of_aten,
    "_native_batch_norm_legit_no_training":
        lambda x, weight, bias, mean, variance, momentum, eps: [_batch_norm(x, weight, bias, mean, variance, eps), None, None],
    "_native_batch_norm_legit": _batch_norm_of_batch, "_native_batch_norm_legit_functional": _refuse_training,
    "upsample_nearest2d": _nearest, "upsample_bilinear2d": _bilinear, "avg_pool2d": _average_pool, "max_pool2d": _max_pool,
    "max_pool2d_with_indices": lambda *args: [_max_pool(*args), None], "adaptive_avg_pool2d": _adaptive_pool,
    "_adaptive_avg_pool2d": _adaptive_pool,
    "index": _index, "embedding": _embedding, "gather": lambda x, axis, index, **unused: smelt.take_along_axis(x, _narrow(index), axis),
    "index_select": lambda x, axis, index: smelt.take(x, _narrow(index), axis=axis), "scaled_dot_product_attention": _attention,
}

OPERATORS: dict[str, Callable] = {
    **{f"aten.{name}": function for name, function in {**_ELEMENTWISE, **_OTHERS}.items()},
    **{f"aten.{name}": lambda *unused, **named: None for name in _IGNORED},
    "smelt.attention": _smelt_attention, "smelt.attention_with_bias": _attention_with_bias, "smelt.rms_norm": _smelt_rms_norm,
    "smelt.linear": _linear, "smelt.quantized_linear": _quantized_linear,
}
"""By the operator's name, without the overload: a function of its arguments, in which tensors are values of the graph, or
arrays, and which returns one or a list of them."""

PYTHON: dict[Callable, Callable] = {operator.getitem: lambda x, i: x[i]}
"""Functions of Python that stand in torch's graphs."""
