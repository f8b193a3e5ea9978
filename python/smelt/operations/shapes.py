"""Shapes: views of the same elements where that can be, copies where not."""
import math
from collections.abc import Sequence
from typing import Any

from smelt._smelt import Dtype, apply, array
from smelt.operations.arguments import axis_of, is_several, whole, wholes
from smelt.operations.types import Array, Axes, Stream

__all__ = [
    "broadcast_arrays", "broadcast_to", "concatenate", "contiguous", "diag", "diagonal", "expand_dims", "flatten", "moveaxis", "pad",
    "repeat", "reshape", "split", "squeeze", "stack", "swapaxes", "tile", "transpose", "tril", "triu", "unflatten",
    "view",
]


def reshape(a: Array, /, shape: Sequence[int], *, stream: Stream = None) -> array:
    """The elements in row-major order in another shape; one size may be -1: the remaining one."""
    return apply("reshape", (a,), shape=shape)


def flatten(a: Array, /, start_axis: int = 0, end_axis: int = -1, *, stream: Stream = None) -> array:
    """The dimensions from start_axis to end_axis as one."""
    return apply("flatten", (a,), axes=(start_axis, end_axis))


def unflatten(a: array, /, axis: int, shape: Sequence[int], *, stream: Stream = None) -> array:
    """One dimension as several; one of their sizes may be -1."""
    sizes, axis = a.shape, axis_of("unflatten", axis, a.ndim)
    shape = wholes("unflatten", "shape", shape)
    if -1 in shape:
        known = 1
        for size in shape:
            known *= size if size != -1 else 1
        shape = [size if size != -1 else sizes[axis] // (known or 1) for size in shape]
    return reshape(a, (*sizes[:axis], *shape, *sizes[axis + 1:]))


def transpose(a: Array, /, axes: Sequence[int] | None = None, *, stream: Stream = None) -> array:
    """A view whose dimension i is dimension axes[i] of a; None: in reverse order."""
    return apply("transpose", (a,), axes=axes)


def swapaxes(a: array, /, axis1: int, axis2: int, *, stream: Stream = None) -> array:
    """A view with two dimensions exchanged."""
    axes = list(range(a.ndim))
    first, second = (axis_of("swapaxes", axis, a.ndim) for axis in (axis1, axis2))
    axes[first], axes[second] = second, first
    return transpose(a, axes)


def moveaxis(a: array, /, source: int, destination: int, *, stream: Stream = None) -> array:
    """A view with one dimension at another place."""
    axes = list(range(a.ndim))
    place = axis_of("moveaxis", destination, a.ndim, "destination")
    axes.insert(place, axes.pop(axis_of("moveaxis", source, a.ndim, "source")))
    return transpose(a, axes)


def broadcast_to(a: Array, /, shape: Sequence[int], *, stream: Stream = None) -> array:
    """A view of a larger shape, which repeats elements."""
    return apply("broadcast_to", (a,), shape=shape)


def broadcast_arrays(*arrays: Array, stream: Stream = None) -> list[array]:
    """Views of the shape that all are broadcast to."""
    found = [a if isinstance(a, array) else array(a) for a in arrays]
    ndim, shape = max((a.ndim for a in found), default=0), []
    for dimension in range(-ndim, 0):
        sizes = {a.shape[dimension] for a in found if a.ndim >= -dimension} - {1}
        if len(sizes) > 1:
            raise ValueError(f"broadcast_arrays: sizes {sorted(sizes)} of dimension {dimension} do not match")
        shape.append(sizes.pop() if sizes else 1)
    return [broadcast_to(a, shape) for a in found]


def expand_dims(a: Array, /, axis: int | Sequence[int], *, stream: Stream = None) -> array:
    """A view with dimensions of size 1 at these places of the result."""
    return apply("expand_dims", (a,), axes=axis)


def squeeze(a: Array, /, axis: Axes = None, *, stream: Stream = None) -> array:
    """A view without these dimensions, which have size 1; None: without all of size 1."""
    return apply("squeeze", (a,), axes=axis)


def concatenate(arrays: Sequence[Array], axis: int | None = 0, *, stream: Stream = None) -> array:
    """Arrays one after the other along an axis; None: flattened."""
    if axis is None:
        return apply("concatenate", tuple(flatten(a) for a in arrays))
    return apply("concatenate", tuple(arrays), axes=axis)


def stack(arrays: Sequence[Array], axis: int | None = 0, *, stream: Stream = None) -> array:
    """Arrays of one shape along a new axis."""
    return apply("stack", tuple(arrays), axes=0 if axis is None else axis)


def split(a: array, /, indices_or_sections: int | Sequence[int], axis: int = 0, *, stream: Stream = None) -> list[array]:
    """Views of so many equal parts along an axis, or of those between the indices. ValueError where parts differ."""
    axis = axis_of("split", axis, a.ndim)
    size = a.shape[axis]
    if is_several(indices_or_sections):
        bounds = wholes("split", "indices_or_sections", indices_or_sections)
    else:
        parts = whole("split", "indices_or_sections", indices_or_sections)
        if parts < 1 or size % parts:
            raise ValueError(f"split: {parts} equal parts do not divide {size} elements")
        part = size // parts
        bounds = list(range(part, size, part))
    ends = [0, *bounds, size]
    return [a[(slice(None),) * axis + (slice(ends[i], ends[i + 1]),)] for i in range(len(ends) - 1)]


def repeat(a: array, /, repeats: int, axis: int | None = None, *, stream: Stream = None) -> array:
    """Each element so many times, one after the other, along an axis; None: of the array flattened."""
    if axis is None:
        a, axis = flatten(a), 0
    axis, repeats = axis_of("repeat", axis, a.ndim), whole("repeat", "repeats", repeats)
    if repeats < 0:
        raise ValueError(f"repeat: repeats is {repeats}; expected 0 or more")
    shape = a.shape
    wide = broadcast_to(expand_dims(a, axis + 1), (*shape[:axis + 1], repeats, *shape[axis + 1:]))
    return flatten(wide, axis, axis + 1)


def tile(a: array, reps: int | Sequence[int], /, *, stream: Stream = None) -> array:
    """The array so many times along each dimension."""
    counts = wholes("tile", "reps", reps)
    if min(counts, default=1) < 0:
        raise ValueError(f"tile: reps is {reps}; expected 0 or more")
    counts = [1] * (a.ndim - len(counts)) + counts
    a = reshape(a, [1] * (len(counts) - a.ndim) + list(a.shape))
    for axis, count in enumerate(counts):
        a = concatenate([a] * count, axis) if count else a[(slice(None),) * axis + (slice(0, 0),)]
    return a


def _pad_pairs(pad_width: Any, ndim: int) -> list[tuple[int, int]]:
    """(before, after) for each dimension."""
    if not is_several(pad_width) or not any(is_several(pair) for pair in pad_width):
        pad_width = [pad_width] * ndim
    elif len(pad_width) == 1:
        pad_width = list(pad_width) * ndim
    pairs = [wholes("pad", "pad_width", pair) for pair in pad_width]
    if len(pairs) != ndim:
        raise ValueError(f"pad: {len(pairs)} pairs for an array of {ndim} dimensions")
    for pair in pairs:
        if not 1 <= len(pair) <= 2:
            raise ValueError(f"pad: pad_width has {len(pair)} numbers for a dimension; expected (before, after)")
    return [(pair[0], pair[-1]) for pair in pairs]


def pad(a: array, /, pad_width: int | tuple, mode: str = "constant", constant_values: Array = 0, *,
        stream: Stream = None) -> array:
    """The array with a border: pad_width is n, (before, after), or one such pair for each dimension.

    mode: "constant" or "edge"."""
    pairs = _pad_pairs(pad_width, a.ndim)
    if mode == "constant":
        return apply("pad", (a, constant_values), starts=[p[0] for p in pairs], stops=[p[1] for p in pairs])
    if mode != "edge":
        raise ValueError(f"pad: mode is '{mode}'; expected 'constant' or 'edge'")
    for axis, (before, after) in enumerate(pairs):
        index = list(range(a.shape[axis]))
        index = [0] * before + index + [len(index) - 1] * after
        a = apply("take", (a, array(index)), axes=axis)
    return a


def tril(x: Array, k: int = 0, *, stream: Stream = None) -> array:
    """The lower triangles of matrices, up to diagonal k; 0 above."""
    return apply("tril", (x,), offset=k)


def triu(x: Array, k: int = 0, *, stream: Stream = None) -> array:
    """The upper triangles of matrices, from diagonal k on; 0 below."""
    return apply("triu", (x,), offset=k)


def diagonal(a: array, offset: int = 0, axis1: int = 0, axis2: int = 1, stream: Stream = None) -> array:
    """The elements of a diagonal of the matrices in two dimensions, as the last dimension."""
    first, second = axis_of("diagonal", axis1, a.ndim, "axis1"), axis_of("diagonal", axis2, a.ndim, "axis2")
    if first == second:
        raise ValueError(f"diagonal: axis1 and axis2 are both {first}; expected two axes")
    offset = whole("diagonal", "offset", offset)
    rest = [d for d in range(a.ndim) if d not in (first, second)]
    a = transpose(a, [*rest, first, second])
    offset = max(-a.shape[-2], min(offset, a.shape[-1]))
    count = min(a.shape[-2] + min(offset, 0), a.shape[-1] - max(offset, 0))
    index = array(list(range(max(count, 0))), dtype="int32")
    return a[..., index - min(offset, 0), index + max(offset, 0)]


def diag(a: array, /, k: int = 0, *, stream: Stream = None) -> array:
    """Of a vector the matrix with it on diagonal k; of a matrix that diagonal."""
    k = whole("diag", "k", k)
    if a.ndim == 2:
        return diagonal(a, k)
    if a.ndim != 1:
        raise ValueError(f"diag: the array has {a.ndim} dimensions; expected 1 or 2")
    size = a.shape[0] + (k if k > 0 else -k)
    eye = apply("eye", (), shape=(size, size), offset=k, dtype=a.dtype, device=a.device)
    wide = pad(a, (k, 0)) if k > 0 else pad(a, (0, -k))
    return apply("where", (eye, wide, False))


def contiguous(a: array, allow_col_major: bool = False, *, stream: Stream = None) -> array:
    """The array with its elements in row-major order, without gaps: itself if it has them."""
    steps = [math.prod(a.shape[d + 1:]) * a.itemsize for d in range(a.ndim)]
    dense = all(size < 2 or stride == step for size, stride, step in zip(a.shape, a.strides, steps))
    return a if dense else apply("contiguous", (a,))


def view(a: Array, dtype: Dtype, stream: Stream = None) -> array:
    """The array's bytes as another dtype; the last dimension has as many elements as fit. Not copied if the array is
    contiguous and its address is aligned for the dtype. ValueError if the last dimension is not a whole number of elements.
    Views as another dtype have no derivative."""
    return apply("view", (a,), dtype=dtype)
