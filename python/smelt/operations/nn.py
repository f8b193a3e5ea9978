"""What networks consist of, with the signatures of MLX: norms, rotary positions, the logarithm of softmax."""
from smelt._smelt import apply, array
from smelt.operations.types import Array, Axes, Stream

__all__ = ["layer_norm", "log_softmax", "rms_norm", "rope"]


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
