"""Transforms of signals: Fourier's, by the names of mx.fft without the module, and Walsh and Hadamard's."""
from collections.abc import Sequence

from smelt._smelt import apply, array, asarray
from smelt.operations.arguments import whole
from smelt.operations.types import Array, Stream

__all__ = ["fft", "fft2", "fftn", "hadamard_transform", "ifft", "ifft2", "ifftn", "irfft", "irfft2", "irfftn", "rfft", "rfft2", "rfftn"]


def hadamard_transform(a: Array, /, scale: float | None = None, *, stream: Stream = None) -> array:
    """The Walsh-Hadamard transform of the last dimension, whose size is a power of two, times scale: None is 1 / sqrt(size)."""
    a = asarray(a)
    size = a.shape[-1] if a.ndim else 1
    return apply("hadamard_transform", (a,), numbers=(size ** -0.5 if scale is None and size else scale or 0.0,))


def fft(a: Array, n: int | None = None, axis: int = -1, *, stream: Stream = None) -> array:
    """The discrete Fourier transform along an axis, of its first n elements (or zeros behind it), as complex64."""
    return apply("fft", (a,), axes=axis, offset=_size("fft", n))


def ifft(a: Array, n: int | None = None, axis: int = -1, *, stream: Stream = None) -> array:
    """The inverse of fft."""
    return apply("fft", (a,), axes=axis, offset=_size("ifft", n), reverse=True)


def rfft(a: Array, n: int | None = None, axis: int = -1, *, stream: Stream = None) -> array:
    """The first n / 2 + 1 elements of the transform of real numbers: the others are their conjugates."""
    return apply("rfft", (a,), axes=axis, offset=_size("rfft", n))


def irfft(a: Array, n: int | None = None, axis: int = -1, *, stream: Stream = None) -> array:
    """The inverse of rfft, n real numbers; None: 2 (size - 1)."""
    return apply("irfft", (a,), axes=axis, offset=_size("irfft", n))


def fftn(a: Array, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, *, stream: Stream = None) -> array:
    """The transform along several axes, in each of the size in s."""
    return _each("fftn", fft, a, s, axes)


def ifftn(a: Array, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, *, stream: Stream = None) -> array:
    """The inverse of fftn."""
    return _each("ifftn", ifft, a, s, axes)


def fft2(a: Array, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1), *, stream: Stream = None) -> array:
    """The transform along two axes."""
    return _each("fft2", fft, a, s, axes)


def ifft2(a: Array, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1), *, stream: Stream = None) -> array:
    """The inverse of fft2."""
    return _each("ifft2", ifft, a, s, axes)


def rfftn(a: Array, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, *, stream: Stream = None) -> array:
    """The transform of real numbers along several axes: along the last rfft, along the others fft."""
    places, sizes = _places("rfftn", asarray(a), s, axes)
    made = rfft(a, sizes[-1], places[-1])
    for axis, size in zip(places[:-1], sizes[:-1]):
        made = fft(made, size, axis)
    return made


def irfftn(a: Array, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, *, stream: Stream = None) -> array:
    """The inverse of rfftn."""
    places, sizes = _places("irfftn", asarray(a), s, axes)
    made = asarray(a)
    for axis, size in zip(places[:-1], sizes[:-1]):
        made = ifft(made, size, axis)
    return irfft(made, sizes[-1], places[-1])


def rfft2(a: Array, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1), *, stream: Stream = None) -> array:
    """rfftn along two axes."""
    return rfftn(a, s, axes)


def irfft2(a: Array, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1), *, stream: Stream = None) -> array:
    """The inverse of rfft2."""
    return irfftn(a, s, axes)


def _size(name: str, n: int | None) -> int | None:
    if n is not None and whole(name, "n", n) < 1:
        raise ValueError(f"{name}: n is {n}; expected at least 1")
    return n


def _places(name: str, a: array, s: Sequence[int] | None, axes: Sequence[int] | None) -> tuple[list[int], list[int | None]]:
    places = list(range(-len(s), 0) if s is not None else range(a.ndim)) if axes is None else list(axes)
    if not places or (s is not None and len(s) != len(places)):
        raise ValueError(f"{name}: s is {s} and axes {axes} for {a.ndim} dimensions; expected one size per axis, and an axis")
    return places, list(s) if s is not None else [None] * len(places)


def _each(name: str, transform: object, a: Array, s: Sequence[int] | None, axes: Sequence[int] | None) -> array:
    made = asarray(a)
    places, sizes = _places(name, made, s, axes)
    for axis, size in zip(places, sizes):
        made = transform(made, size, axis)  # type: ignore[operator]
    return made
