"""Products of matrices, and comparisons of whole arrays."""
from collections.abc import Sequence

from smelt._smelt import apply, array
from smelt.operations.arguments import is_several, whole, wholes
from smelt.operations.types import Array, Stream

__all__ = ["addmm", "allclose", "array_equal", "inner", "isclose", "matmul", "outer", "tensordot"]


def matmul(a: Array, b: Array, /, *, algorithm: str | None = None, stream: Stream = None) -> array:
    """a @ b: of the last two dimensions, the others are broadcast; a vector is a row on the left, a column on the right.

    algorithm: the kernel that computes the product of two matrices, "naive", "coalescing", "tiled", "tiled_register",
    "block_tiled", "block_tiled_vectorized", "tensor_core" or "best"; None: the fastest way for these arrays."""
    return apply("matmul", (a, b)) if algorithm is None else apply("matmul", (a, b), algorithm=algorithm)


def addmm(c: Array, a: Array, b: Array, /, alpha: float = 1.0, beta: float = 1.0, *, stream: Stream = None) -> array:
    """alpha a @ b + beta c."""
    product = matmul(a, b)
    product = product if alpha == 1 else product * alpha
    return product + (c if beta == 1 else apply("multiply", (c, beta)))


def inner(a: Array, b: Array, /, *, stream: Stream = None) -> array:
    """Sums over the last dimensions of both."""
    return apply("inner", (a, b))


def outer(a: Array, b: Array, /, *, stream: Stream = None) -> array:
    """Every element of a times every element of b."""
    return apply("outer", (a, b))


def tensordot(a: array, b: array, /, axes: int | Sequence[Sequence[int]] = 2, *, stream: Stream = None) -> array:
    """Sums over the last `axes` dimensions of a and the first of b, or over axes[0] of a and axes[1] of b."""
    if not is_several(axes):
        count = whole("tensordot", "axes", axes)
        if not 0 <= count <= min(a.ndim, b.ndim):
            raise ValueError(f"tensordot: axes is {count}; expected 0 to {min(a.ndim, b.ndim)}, the dimensions of both")
        axes = (range(a.ndim - count, a.ndim), range(count))
    elif len(axes) != 2:
        raise ValueError(f"tensordot: axes has {len(axes)} parts; expected the axes of a and those of b")
    of_a, of_b = (wholes("tensordot", "axes", part) for part in axes)
    if len(of_a) != len(of_b):
        raise ValueError(f"tensordot: axes has {len(of_a)} axes of a and {len(of_b)} of b; expected as many of each")
    return apply("tensordot", (a, b), axes=[*of_a, *of_b])


def allclose(a: Array, b: Array, /, rtol: float = 1e-05, atol: float = 1e-08, *, equal_nan: bool = False,
             stream: Stream = None) -> array:
    """Whether |a - b| <= atol + rtol |b| everywhere: one bool."""
    return apply("all_close", (a, b), numbers=(rtol, atol), equal_nan=equal_nan)


def isclose(a: Array, b: Array, /, rtol: float = 1e-05, atol: float = 1e-08, *, equal_nan: bool = False,
            stream: Stream = None) -> array:
    """Whether |a - b| <= atol + rtol |b|, element by element."""
    return apply("is_close", (a, b), numbers=(rtol, atol), equal_nan=equal_nan)


def array_equal(a: Array, b: Array, equal_nan: bool = False, stream: Stream = None) -> array:
    """Whether shapes and all elements are equal: one bool."""
    return apply("array_equal", (a, b), equal_nan=equal_nan)
