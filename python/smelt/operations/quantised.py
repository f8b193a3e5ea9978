"""Packed numbers of few bits, and products with matrices of them: one kernel where x has few rows, else the matrix is
unpacked first. Gradients pass through to all that is not packed."""
from typing import Any

from smelt._smelt import (
    Dtype, apply, array, asarray, bfloat16, float16, float32, quantized_matmul as _quantized_matmul, tape_tracks, uint32,
    uint8,
)
from smelt.operations.products import matmul
from smelt.operations.shapes import swapaxes
from smelt.operations.types import Array, Stream

__all__ = ["dequantize", "quantize", "quantized_matmul"]

_NAME = "quantized_matmul"
MOST_ROWS = 32  # of the kernel, which reads w again for each 4 of them
_FLOATS = (float32, float16, bfloat16)
_KERNEL_BITS = (2, 4, 8)  # of the kernel for few rows
# Of each mode: its group sizes and bits, the default first.
_ALLOWED: dict[str, tuple[tuple[int, ...], tuple[int, ...]]] = {
    "affine": ((64, 32, 128), (4, 2, 3, 5, 6, 8)), "mxfp4": ((32,), (4,)), "mxfp8": ((32,), (8,)),
}
MODES = {mode: number for number, mode in enumerate(_ALLOWED)}  # smelt_quantized_mode


def quantize(w: Array, /, group_size: int | None = None, bits: int | None = None, mode: str = "affine", *,
             stream: Stream = None) -> tuple[array, ...]:
    """Packs w, (…, K): (words, scales, biases) in mode "affine", (words, scales) in "mxfp4" and "mxfp8".

    words: (…, K · bits / 32) of uint32, the codes of a row one after the other, the first in the lowest bits, also across
    words. scales and biases: one per group_size elements of a row. "affine": bits 2, 3, 4, 5, 6 or 8 and groups of 32, 64 or
    128 (4 and 64 if None); scales and biases have the dtype of w. "mxfp4" and "mxfp8": groups of 32, scales in uint8.
    w is float32, float16 or bfloat16. Raises ValueError for other shapes and settings."""
    group_size, bits = _read_mode("quantize", mode, group_size, bits)
    w = asarray(w)
    if not w.ndim or w.shape[-1] % group_size:
        raise ValueError(f"quantize: w has shape {w.shape}; expected a last dimension that is a multiple of the group size, "
                         f"{group_size}")
    settings = (bits, group_size, MODES[mode])
    scales = apply("quantize_scales", (w,), starts=settings)
    planes = (scales[0], scales[1]) if mode == "affine" else (scales,)
    return (apply("quantize", (w, *planes), starts=settings), *planes)


def dequantize(w: Array, /, scales: Array, biases: Array | None = None, group_size: int | None = None, bits: int | None = None,
               mode: str = "affine", dtype: Dtype | None = None, *, stream: Stream = None) -> array:
    """The elements that quantize packed: (…, K) of `dtype`; None is that of scales in mode "affine", else bfloat16.

    Gradients pass through to scales and biases of mode "affine". Raises ValueError for shapes and settings that do not fit."""
    group_size, bits = _read_mode("dequantize", mode, group_size, bits)
    if (mode == "affine") != (biases is not None):
        raise ValueError(f"dequantize: biases is {'None' if biases is None else 'an array'}; expected "
                         f"{'an array in mode affine' if biases is None else 'None, as only mode affine has biases'}")
    planes: tuple[Any, ...] = (scales,) if biases is None else (scales, biases)
    if dtype is None and mode != "affine":
        dtype = bfloat16
    return apply("dequantize", (w, *planes), starts=(bits, group_size, MODES[mode]), dtype=dtype)


def quantized_matmul(x: Array, w: Array, /, scales: Array, biases: Array | None = None, transpose: bool = True,
                     group_size: int | None = None, bits: int | None = None, mode: str = "affine", *,
                     stream: Stream = None) -> array:
    """x @ wᵀ, or x @ w if not transpose, where w is packed: the elements of a row, the first in the lowest bits of uint32.

    x: (…, K), float32, float16 or bfloat16. w: (…, N, K · bits / 32), or (…, K, N · bits / 32) if not transpose;
    dimensions before the last two are broadcast with those of x. scales: one value per group_size elements of a row.
    mode "affine": bits 2, 3, 4, 5, 6 or 8 and groups of 32, 64 or 128 (4 and 64 if None); a weight is element · scale + bias.
    "mxfp4" and "mxfp8": fp4_e2m1 and fp8_e4m3 elements in groups of 32, uint8 scales 2^(scale - 127), no biases.
    Sums are float32; the result has the dtype of x, in mode affine the common one of x, scales and biases.
    Where transpose is true, w is a matrix of 2, 4 or 8 bits, x has 32 rows at most and no gradient is wanted, one kernel
    computes it with float32 weights, which it does not store. Otherwise weights are unpacked first: to float32 where a gradient
    is wanted, or where x is float16 and the mode is not affine, else to the dtype of the result.
    Raises ValueError for other shapes, dtypes and settings."""
    x, w, scales = asarray(x), asarray(w), asarray(scales)
    biases = None if biases is None else asarray(biases)
    group_size, bits = _read_mode(_NAME, mode, group_size, bits)
    affine = mode == "affine"
    _check(x, w, scales, biases, affine, group_size, bits)
    rows, columns = w.shape[-2], w.shape[-1] * 32 // bits
    if x.shape[-1] != (columns if transpose else rows):
        raise ValueError(f"{_NAME}: x has {x.shape[-1]} columns; expected {columns if transpose else rows}, as w has shape "
                         f"{w.shape} with {bits} bits per element and transpose is {bool(transpose)}")
    dtypes = {x.dtype, scales.dtype, biases.dtype} if affine and biases is not None else {x.dtype}
    few = x.size <= MOST_ROWS * x.shape[-1] and scales.dtype == (scales if biases is None else biases).dtype
    planes = (scales,) if biases is None else (scales, biases)
    kernel = transpose and w.ndim == 2 and few and columns and bits in _KERNEL_BITS
    if kernel and any(a.device == "graph" for a in (x, w, *planes)):
        x = x if len(dtypes) == 1 else x.astype(float32)
        return apply(_NAME, (x, w, *planes), starts=(bits, group_size, MODES[mode]))
    tracked = any(tape_tracks(a) for a in (x, *planes))
    if kernel and not tracked:
        x = x if len(dtypes) == 1 else x.astype(float32)
        return _quantized_matmul(x, w, scales, biases, bits, group_size, MODES[mode])
    wide = tracked or len(dtypes) > 1 or (not affine and x.dtype == float16)  # powers of two of MX exceed float16
    unpacked = float32 if wide else x.dtype
    weights = apply("dequantize", (w, *planes), starts=(bits, group_size, MODES[mode]), dtype=unpacked)
    product = matmul(x.astype(unpacked), swapaxes(weights, -1, -2) if transpose else weights)
    return product.astype(x.dtype if len(dtypes) == 1 else float32)


def _read_mode(function: str, mode: str, group_size: int | None, bits: int | None) -> tuple[int, int]:
    if mode not in _ALLOWED:
        raise ValueError(f"{function}: mode is {mode!r}; expected 'affine', 'mxfp4' or 'mxfp8'")
    found = []
    for name, value, allowed in (("group_size", group_size, _ALLOWED[mode][0]), ("bits", bits, _ALLOWED[mode][1])):
        if value is not None and value not in allowed:
            raise ValueError(f"{function}: {name} is {value!r}; mode '{mode}' has {', '.join(map(str, sorted(allowed)))}")
        found.append(allowed[0] if value is None else int(value))
    return found[0], found[1]


def _check(x: array, w: array, scales: array, biases: array | None, affine: bool, group_size: int, bits: int) -> None:
    if x.ndim == 0 or x.dtype not in _FLOATS:
        raise ValueError(f"{_NAME}: x has shape {x.shape} and dtype {x.dtype.name}; expected float32, float16 or bfloat16 of "
                         "one dimension or more")
    if w.ndim < 2 or w.dtype != uint32:
        raise ValueError(f"{_NAME}: w has shape {w.shape} and dtype {w.dtype.name}; expected uint32 of two dimensions or more")
    if affine != (biases is not None):
        raise ValueError(f"{_NAME}: biases is {'None' if biases is None else 'an array'}; expected "
                         f"{'an array in mode affine' if affine else 'None, as only mode affine has biases'}")
    columns = w.shape[-1] * 32 // bits
    expected = (*w.shape[:-1], columns // group_size)
    for name, values in (("scales", scales), ("biases", biases)):
        if values is None:
            continue
        if columns % group_size or values.shape != expected:
            raise ValueError(f"{_NAME}: {name} has shape {values.shape}; expected {expected}, one value per {group_size} of the "
                             f"{columns} elements of a row of w")
        if values.dtype not in (_FLOATS if affine else (uint8,)):
            raise ValueError(f"{_NAME}: {name} has dtype {values.dtype.name}; expected "
                             f"{'float32, float16 or bfloat16' if affine else 'uint8'}")
