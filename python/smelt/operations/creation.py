"""New arrays, on the default device unless another one is named."""
from collections.abc import Sequence

from smelt._smelt import Dtype, apply, array, float32, int32
from smelt.execution import default_device
from smelt.operations.arguments import whole
from smelt.operations.types import Array, Stream

__all__ = ["arange", "eye", "full", "full_like", "identity", "linspace", "ones", "ones_like", "tri", "zeros", "zeros_like"]

Shape = int | Sequence[int]


def zeros(shape: Shape, dtype: Dtype | None = float32, *, stream: Stream = None, device: str | None = None) -> array:
    """Zeros."""
    return apply("zeros", (), shape=shape, dtype=dtype, device=device or default_device())


def ones(shape: Shape, dtype: Dtype | None = float32, *, stream: Stream = None, device: str | None = None) -> array:
    """Ones."""
    return apply("ones", (), shape=shape, dtype=dtype, device=device or default_device())


def full(shape: Shape, vals: Array, dtype: Dtype | None = None, *, stream: Stream = None, device: str | None = None) -> array:
    """One number, or an array broadcast to the shape; the dtype is that of vals."""
    value = vals if isinstance(vals, array) else array(vals)
    made = zeros(shape, dtype or value.dtype, device=device or value.device)
    return apply("where", (False, made, value.astype(made.dtype)))


def zeros_like(a: array, /, *, stream: Stream = None) -> array:
    """Zeros of the shape and dtype of a, where it is."""
    return zeros(a.shape, a.dtype, device=a.device)


def ones_like(a: array, /, *, stream: Stream = None) -> array:
    """Ones of the shape and dtype of a, where it is."""
    return ones(a.shape, a.dtype, device=a.device)


def full_like(a: array, /, vals: Array, dtype: Dtype | None = None, *, stream: Stream = None) -> array:
    """vals in the shape of a, of its dtype unless another one is given."""
    return full(a.shape, vals, dtype or a.dtype, device=a.device)


def arange(start: float, stop: float | None = None, step: float = 1, dtype: Dtype | None = None, *, stream: Stream = None,
           device: str | None = None) -> array:
    """start, start + step … below stop; arange(n): 0 … n - 1. int32 where all are integers, else float32."""
    if stop is None:
        start, stop = 0, start
    for name, number in (("start", start), ("stop", stop), ("step", step)):
        if not hasattr(number, "__float__") and not hasattr(number, "__index__"):
            raise TypeError(f"arange: {name} is {number!r}; expected a number")
    if step == 0:
        raise ValueError("arange: step is 0; expected another number")
    integers = all(hasattr(n, "__index__") for n in (start, stop, step))
    dtype = dtype or (int32 if integers else float32)
    return apply("arange", (), numbers=(start, stop, step), dtype=dtype, device=device or default_device())


def linspace(start: float, stop: float, num: int = 50, dtype: Dtype | None = float32, *, stream: Stream = None,
             device: str | None = None) -> array:
    """num numbers from start to stop, both among them, at equal distances."""
    if whole("linspace", "num", num) < 0:
        raise ValueError(f"linspace: num is {num}; expected 0 or more")
    index = arange(num, device=device).astype("float32")
    return (index * ((stop - start) / max(num - 1, 1)) + start).astype(dtype or float32)


def eye(n: int, m: int | None = None, k: int = 0, dtype: Dtype | None = float32, *, stream: Stream = None,
        device: str | None = None) -> array:
    """An n × m matrix (m: n by default) with ones on diagonal k."""
    return apply("eye", (), shape=(n, n if m is None else m), offset=k, dtype=dtype, device=device or default_device())


def identity(n: int, dtype: Dtype | None = float32, *, stream: Stream = None) -> array:
    """The n × n matrix with ones on its diagonal."""
    return eye(n, dtype=dtype)


def tri(n: int, m: int | None = None, k: int = 0, dtype: Dtype | None = float32, *, stream: Stream = None) -> array:
    """An n × m matrix with ones up to diagonal k."""
    return apply("tril", (ones((n, n if m is None else m), dtype),), offset=k)
