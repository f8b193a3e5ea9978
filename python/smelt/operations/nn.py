"""What networks consist of, with the signatures of MLX: norms, rotary positions, convolutions."""
from collections.abc import Sequence
from typing import Any

from smelt._smelt import apply, array, asarray
from smelt.operations.types import Array, Axes, Stream

__all__ = [
    "conv1d", "conv2d", "conv3d", "conv_general", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "layer_norm",
    "log_softmax", "rms_norm", "rope",
]

Sizes = int | Sequence[int]


def log_softmax(a: Array, /, axis: Axes = -1, *, stream: Stream = None) -> array:
    """The logarithm of softmax(a, axis), without overflow; of the shape of a."""
    return apply("log_softmax", (a,), axes=axis)


def layer_norm(x: Array, weight: Array | None, bias: Array | None, eps: float = 1e-5, *, stream: Stream = None) -> array:
    """(x - mean) / sqrt(variance + eps) over the last dimension, times weight and plus bias unless they are None.

    weight, bias: one number per element of a row. Computed in float32; the result has the common dtype of the arrays."""
    if weight is None:
        normal = apply("layer_norm", (x,), numbers=(eps,))
        return normal if bias is None else apply("add", (normal, bias))
    return apply("layer_norm", (x, weight) if bias is None else (x, weight, bias), numbers=(eps,))


def rms_norm(x: Array, weight: Array | None, eps: float = 1e-5, *, stream: Stream = None) -> array:
    """x / sqrt(mean(x²) + eps) over the last dimension, times weight unless it is None: one number per element of a row."""
    return apply("rms_norm", (x,) if weight is None else (x, weight), numbers=(eps,))


def rope(a: Array, dims: int, *, traditional: bool, base: float | None, scale: float, offset: int | Array,
         freqs: Array | None = None, stream: Stream = None) -> array:
    """Rotary positions: pairs of the first dims elements of each row turn by (offset + row) · scale · base^(-2 i / dims).

    a: (batches, …, rows, elements). The pair i is the elements 2i and 2i + 1 if traditional, otherwise i and i + dims / 2.
    offset: an integer, or one per batch. freqs: dims / 2 numbers, the reciprocals of the angles, in place of base.
    Raises ValueError for shapes that do not fit, and if not exactly one of base and freqs is None."""
    if (base is None) == (freqs is None):
        raise ValueError(f"rope: base is {base!r} and freqs is {'None' if freqs is None else 'an array'}; expected one of them")
    inputs = (a, offset) if freqs is None else (a, offset, freqs)
    return apply("rope", inputs, starts=(dims, int(traditional)), numbers=(0.0 if base is None else base, scale))


def _each(name: str, what: str, value: Sizes, count: int) -> tuple[int, ...]:
    """One number for each of the spatial dimensions."""
    if isinstance(value, int):
        return (value,) * count
    numbers = tuple(value)
    if len(numbers) not in (1, count):
        raise ValueError(f"{name}: {what} has {len(numbers)} numbers; expected one, or one for each of {count} spatial dimensions")
    return numbers * count if len(numbers) == 1 else numbers


def conv_general(input: Array, weight: Array, /, stride: Sizes = 1, padding: Sizes | tuple[Sequence[int], Sequence[int]] = 0,
                 kernel_dilation: Sizes = 1, input_dilation: Sizes = 1, groups: int = 1, flip: bool = False, *,
                 stream: Stream = None) -> array:
    """The convolution (without flip: the correlation, as in all networks) of 1 to 3 spatial dimensions, channels last.

    input: (batches, spatial …, channels). weight: (outputs, spatial …, channels / groups). padding: zeros before and
    behind, or a pair of both. kernel_dilation and input_dilation: the distance between neighbours of the kernel and of
    the input, with zeros between. Raises ValueError for sizes that do not fit."""
    return _convolve("conv_general", input, weight, stride, padding, kernel_dilation, input_dilation, groups, flip)


def _convolve(name: str, x: Array, weight: Array, stride: Sizes, padding: Sizes | tuple[Sequence[int], Sequence[int]],
              kernel_dilation: Sizes, input_dilation: Sizes, groups: int, flip: bool, spatial: int | None = None) -> array:
    x, weight = asarray(x), asarray(weight)
    if x.ndim - 2 != (spatial or x.ndim - 2) or not 1 <= x.ndim - 2 <= 3:
        raise ValueError(f"{name}: input has shape {x.shape}; expected {spatial or '1 to 3'} spatial dimensions between batches "
                         "and channels")
    count = x.ndim - 2
    steps = _each(name, "stride", stride, count)
    if 0 in steps:  # which the descriptor reads as "not given"
        raise ValueError(f"{name}: stride has 0; expected at least 1")
    before: Any = padding
    after: Any = padding
    if not isinstance(padding, int) and len(padding) == 2 and not isinstance(padding[0], int):
        before, after = padding
    return apply("conv_general", (x, weight), steps=steps,
                 starts=_each(name, "padding", before, count), stops=_each(name, "padding", after, count),
                 shape=_each(name, "kernel_dilation", kernel_dilation, count),
                 axes=_each(name, "input_dilation", input_dilation, count), offset=groups, reverse=flip)


def conv1d(input: Array, weight: Array, /, stride: int = 1, padding: int = 0, dilation: int = 1, groups: int = 1, *,
           stream: Stream = None) -> array:
    """input (batches, length, channels) with weight (outputs, kernel, channels / groups): see conv_general."""
    return _convolve("conv1d", input, weight, stride, padding, dilation, 1, groups, False, 1)


def conv2d(input: Array, weight: Array, /, stride: Sizes = 1, padding: Sizes = 0, dilation: Sizes = 1, groups: int = 1, *,
           stream: Stream = None) -> array:
    """input (batches, height, width, channels) with weight (outputs, height, width, channels / groups): see conv_general."""
    return _convolve("conv2d", input, weight, stride, padding, dilation, 1, groups, False, 2)


def conv3d(input: Array, weight: Array, /, stride: Sizes = 1, padding: Sizes = 0, dilation: Sizes = 1, groups: int = 1, *,
           stream: Stream = None) -> array:
    """Three spatial dimensions: see conv_general."""
    return _convolve("conv3d", input, weight, stride, padding, dilation, 1, groups, False, 3)


def _transposed(name: str, x: Array, weight: Array, stride: Sizes, padding: Sizes, dilation: Sizes, output_padding: Sizes,
                groups: int, count: int) -> array:
    x, weight = asarray(x), asarray(weight)
    if x.ndim != count + 2 or weight.ndim != count + 2:
        raise ValueError(f"{name}: input has shape {x.shape} and weight {weight.shape}; expected {count + 2} dimensions")
    steps, pads = _each(name, "stride", stride, count), _each(name, "padding", padding, count)
    apart, more = _each(name, "dilation", dilation, count), _each(name, "output_padding", output_padding, count)
    before = [apart[d] * (weight.shape[1 + d] - 1) - pads[d] for d in range(count)]
    after = [before[d] + more[d] for d in range(count)]
    return _convolve(name, x, weight, 1, (before, after), apart, steps, groups, True, count)


def conv_transpose1d(input: Array, weight: Array, /, stride: int = 1, padding: int = 0, dilation: int = 1,
                     output_padding: int = 0, groups: int = 1, *, stream: Stream = None) -> array:
    """The transposed convolution: conv1d's gradient by its input, with a weight of (outputs, kernel, channels / groups)."""
    return _transposed("conv_transpose1d", input, weight, stride, padding, dilation, output_padding, groups, 1)


def conv_transpose2d(input: Array, weight: Array, /, stride: Sizes = 1, padding: Sizes = 0, dilation: Sizes = 1,
                     output_padding: Sizes = 0, groups: int = 1, *, stream: Stream = None) -> array:
    """The transposed convolution of two spatial dimensions."""
    return _transposed("conv_transpose2d", input, weight, stride, padding, dilation, output_padding, groups, 2)


def conv_transpose3d(input: Array, weight: Array, /, stride: Sizes = 1, padding: Sizes = 0, dilation: Sizes = 1,
                     output_padding: Sizes = 0, groups: int = 1, *, stream: Stream = None) -> array:
    """The transposed convolution of three spatial dimensions."""
    return _transposed("conv_transpose3d", input, weight, stride, padding, dilation, output_padding, groups, 3)
