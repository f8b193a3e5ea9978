"""Orders along an axis. Equal elements keep their order, and NaN comes last."""
from smelt._smelt import apply, array, asarray
from smelt.operations.arguments import axis_of, whole
from smelt.operations.shapes import flatten
from smelt.operations.types import Array, Stream

__all__ = ["argpartition", "argsort", "partition", "sort", "topk"]


def sort(a: Array, /, axis: int | None = -1, *, stream: Stream = None) -> array:
    """The elements in ascending order along an axis; None: of the array flattened."""
    return apply("sort", (a,), axes=axis)


def argsort(a: Array, /, axis: int | None = -1, *, stream: Stream = None) -> array:
    """The places of the elements in ascending order along an axis, as int32; None: in the array flattened."""
    return apply("argsort", (a,), axes=axis)


def _check_kth(name: str, a: array, kth: int, axis: int | None) -> None:
    count = a.size if axis is None else a.shape[axis_of(name, axis, a.ndim)]
    if not -count <= whole(name, "kth", kth) < count:
        raise ValueError(f"{name}: kth is {kth}; expected a place among the {count} elements along axis {axis}")


def partition(a: Array, /, kth: int, axis: int | None = -1, *, stream: Stream = None) -> array:
    """The element that sorting puts at kth is there, none before it is larger, none behind it smaller: all are sorted."""
    a = asarray(a)
    _check_kth("partition", a, kth, axis)
    return apply("sort", (a,), axes=axis)


def argpartition(a: Array, /, kth: int, axis: int | None = -1, *, stream: Stream = None) -> array:
    """The places that partition takes the elements from, as int32."""
    a = asarray(a)
    _check_kth("argpartition", a, kth, axis)
    return apply("argsort", (a,), axes=axis)


def topk(a: Array, /, k: int, axis: int | None = -1, *, stream: Stream = None) -> array:
    """The k largest elements along an axis, in ascending order; None: of the array flattened."""
    a = asarray(a)
    if axis is None:
        a, axis = flatten(a), 0
    place = axis_of("topk", axis, a.ndim)
    count = a.shape[place]
    if not 0 < whole("topk", "k", k) <= count:
        raise ValueError(f"topk: k is {k}; expected 1 to {count}, the elements along axis {axis}")
    axis = place
    ordered = apply("sort", (a,), axes=axis)
    return ordered[(slice(None),) * axis + (slice(count - k, None),)]
