"""Over axes: sums, means, extremes, and what runs along an axis.

`axis` is a number, several, or None for all; negative ones count from the end. keepdims leaves sizes of 1."""
from smelt._smelt import apply, array
from smelt.operations.types import Array, Axes, Stream

__all__ = [
    "all", "any", "argmax", "argmin", "cummax", "cummin", "cumprod", "cumsum", "logsumexp", "max", "mean", "min", "prod",
    "softmax", "std", "sum", "var",
]


def _reduce(name: str, a: Array, axis: Axes, keepdims: bool) -> array:
    return apply(name, (a,), axes=axis, keepdims=keepdims)


def all(a: Array, /, axis: Axes = None, keepdims: bool = False, *, stream: Stream = None) -> array:
    """Whether no element is 0; of none: True."""
    return _reduce("all", a, axis, keepdims)


def any(a: Array, /, axis: Axes = None, keepdims: bool = False, *, stream: Stream = None) -> array:
    """Whether an element is not 0; of none: False."""
    return _reduce("any", a, axis, keepdims)


def sum(a: Array, /, axis: Axes = None, keepdims: bool = False, *, stream: Stream = None) -> array:
    """The sum; of none: 0. bool and integers of fewer than 32 bits give int32."""
    return _reduce("sum", a, axis, keepdims)


def prod(a: Array, /, axis: Axes = None, keepdims: bool = False, *, stream: Stream = None) -> array:
    """The product; of none: 1."""
    return _reduce("prod", a, axis, keepdims)


def max(a: Array, /, axis: Axes = None, keepdims: bool = False, *, stream: Stream = None) -> array:
    """The largest; NaN if there is one. ValueError for none."""
    return _reduce("max", a, axis, keepdims)


def min(a: Array, /, axis: Axes = None, keepdims: bool = False, *, stream: Stream = None) -> array:
    """The smallest; NaN if there is one. ValueError for none."""
    return _reduce("min", a, axis, keepdims)


def mean(a: Array, /, axis: Axes = None, keepdims: bool = False, *, stream: Stream = None) -> array:
    """The mean; of integers as float32."""
    return _reduce("mean", a, axis, keepdims)


def var(a: Array, /, axis: Axes = None, keepdims: bool = False, ddof: int = 0, *, stream: Stream = None) -> array:
    """The variance: the sum of squared distances from the mean, by the number of elements less ddof."""
    return apply("var", (a,), axes=axis, keepdims=keepdims, offset=ddof)


def std(a: Array, /, axis: Axes = None, keepdims: bool = False, ddof: int = 0, *, stream: Stream = None) -> array:
    """The standard deviation: the square root of var."""
    return apply("std", (a,), axes=axis, keepdims=keepdims, offset=ddof)


def logsumexp(a: Array, /, axis: Axes = None, keepdims: bool = False, *, stream: Stream = None) -> array:
    """log(sum(exp(a))), without overflow."""
    return _reduce("logsumexp", a, axis, keepdims)


def softmax(a: Array, /, axis: Axes = None, *, precise: bool = False, stream: Stream = None) -> array:
    """exp(a) by its sum over the axes; of the shape of a. It is computed in float32 whatever `precise` says."""
    return apply("softmax", (a,), axes=axis)


def argmax(a: Array, /, axis: int | None = None, keepdims: bool = False, *, stream: Stream = None) -> array:
    """Where the largest is, the first of equals, as int32; None: in the array flattened."""
    return _reduce("argmax", a, axis, keepdims)


def argmin(a: Array, /, axis: int | None = None, keepdims: bool = False, *, stream: Stream = None) -> array:
    """Where the smallest is, the first of equals, as int32; None: in the array flattened."""
    return _reduce("argmin", a, axis, keepdims)


def _along(name: str, a: Array, axis: int | None, reverse: bool, inclusive: bool) -> array:
    return apply(name, (a,), axes=axis, reverse=reverse, exclusive=not inclusive)


def cumsum(a: Array, /, axis: int | None = None, *, reverse: bool = False, inclusive: bool = True,
           stream: Stream = None) -> array:
    """The sum of the elements up to each; None: of the array flattened."""
    return _along("cumsum", a, axis, reverse, inclusive)


def cumprod(a: Array, /, axis: int | None = None, *, reverse: bool = False, inclusive: bool = True,
            stream: Stream = None) -> array:
    """The product of the elements up to each."""
    return _along("cumprod", a, axis, reverse, inclusive)


def cummax(a: Array, /, axis: int | None = None, *, reverse: bool = False, inclusive: bool = True,
           stream: Stream = None) -> array:
    """The largest of the elements up to each."""
    return _along("cummax", a, axis, reverse, inclusive)


def cummin(a: Array, /, axis: int | None = None, *, reverse: bool = False, inclusive: bool = True,
           stream: Stream = None) -> array:
    """The smallest of the elements up to each."""
    return _along("cummin", a, axis, reverse, inclusive)
