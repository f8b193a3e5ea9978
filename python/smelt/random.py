"""Random arrays. The same key gives the same numbers on every device: they are Philox's of its 64 bits.

Functions take `key`, an array of two uint32 made by key() or split(), or go on from the state that seed() sets. In a graph
a key may be one of its inputs; without one, the numbers are a constant of the graph."""
import secrets
import threading
from collections.abc import Sequence
from typing import Any

from smelt._smelt import Dtype, apply, array, asarray, float32, int32
from smelt.execution import default_device
from smelt.operations import less, where
from smelt.operations.arguments import whole
from smelt.operations.types import Array, Stream

__all__ = [
    "bernoulli", "bits", "categorical", "gumbel", "key", "normal", "permutation", "randint", "seed", "split",
    "truncated_normal", "uniform",
]

_lock = threading.Lock()
_state = secrets.randbits(64)
_WORD = (1 << 64) - 1


def _mix(word: int) -> int:
    """The finaliser of splitmix64 (Steele, Lea, Flood 2014)."""
    word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9 & _WORD
    word = (word ^ (word >> 27)) * 0x94D049BB133111EB & _WORD
    return word ^ (word >> 31)


def _array_of(word: int) -> array:
    return array([word & 0xFFFFFFFF, word >> 32], dtype="uint32")


def _next() -> array:
    global _state
    with _lock:
        _state = (_state + 0x9E3779B97F4A7C15) & _WORD
        return _array_of(_mix(_state))


def _apply(name: str, key: array | None, *inputs: Any, **attributes: Any) -> array:
    """On the device of the key or, if that is the host's, on the default device."""
    given = _next() if key is None else key
    device = default_device() if all(not isinstance(a, array) or a.device == "cpu" for a in (given, *inputs)) else None
    return apply(name, (given, *inputs), device=None if device == "cpu" else device, **attributes)


def _sizes(shape: int | Sequence[int]) -> Sequence[int]:
    return (shape,) if isinstance(shape, int) else tuple(shape)


def seed(seed: int) -> None:
    """What numbers come from now on without a key."""
    global _state
    number = whole("seed", "seed", seed)
    with _lock:
        _state = number & _WORD


def key(seed: int) -> array:
    """A key of a seed."""
    return _array_of(_mix(whole("key", "seed", seed) & _WORD))


def split(key: array, num: int = 2, stream: Stream = None) -> array:
    """num new keys, of shape (num, 2), whose numbers are independent of each other and of those of the old key."""
    return _apply("random_split", key, offset=num)


def bits(shape: Sequence[int] = (), width: int = 4, key: array | None = None, stream: Stream = None) -> array:
    """Random unsigned integers of 1, 2, 4 or 8 bytes."""
    if width not in (1, 2, 4, 8):
        raise ValueError(f"bits: width is {width!r}; expected 1, 2, 4 or 8 bytes")
    return _apply("random_bits", key, shape=_sizes(shape), dtype=f"uint{8 * width}")


def normal(shape: Sequence[int] = (), dtype: Dtype | None = float32, loc: Array | None = None, scale: Array | None = None,
           key: array | None = None, stream: Stream = None) -> array:
    """Normal numbers of mean loc (0) and standard deviation scale (1), of a float dtype or complex64."""
    made = _apply("random_normal", key, shape=_sizes(shape), dtype=dtype)
    made = made if scale is None else made * scale
    return made if loc is None else made + loc


def truncated_normal(lower: Array, upper: Array, shape: Sequence[int] | None = None, dtype: Dtype | None = float32,
                     key: array | None = None, stream: Stream = None) -> array:
    """Normal numbers that lie between lower and upper, which are broadcast to the shape; shape None is theirs."""
    return _apply("random_truncated_normal", key, lower, upper, shape=None if shape is None else _sizes(shape), dtype=dtype)


def gumbel(shape: Sequence[int] = (), dtype: Dtype | None = float32, key: array | None = None, stream: Stream = None) -> array:
    """Numbers of the standard Gumbel distribution, -log(-log(u))."""
    return _apply("random_gumbel", key, shape=_sizes(shape), dtype=dtype)


def uniform(low: Array = 0, high: Array = 1, shape: Sequence[int] = (), dtype: Dtype | None = float32,
            key: array | None = None, stream: Stream = None) -> array:
    """Numbers evenly from low up to, not including, high; of a float dtype. low and high are broadcast to the shape."""
    if isinstance(low, (int, float)) and isinstance(high, (int, float)):
        if (low, high) == (0, 0):
            raise ValueError("uniform: low is 0 and high is 0; expected low < high")
        return _apply("random_uniform", key, shape=_sizes(shape), dtype=dtype, numbers=(low, high))
    unit = _apply("random_uniform", key, shape=_sizes(shape), dtype=dtype)
    made = unit * (high - low) + low
    return where(less(made, high), made, low)  # rounding may have reached high


def randint(low: int, high: int, shape: Sequence[int] = (), dtype: Dtype | None = int32, key: array | None = None,
            stream: Stream = None) -> array:
    """Integers from low up to, not including, high. ValueError if there are none, or they are not of the dtype."""
    if high <= low:
        raise ValueError(f"randint: high is {high}; expected more than low, which is {low}")
    return _apply("random_integers", key, shape=_sizes(shape), dtype=dtype or int32, starts=low, stops=high)


def bernoulli(p: Array = 0.5, shape: Sequence[int] | None = None, key: array | None = None, stream: Stream = None) -> array:
    """True with probability p, as bool; p is broadcast to the shape, and None is its own."""
    if isinstance(p, (int, float)) and not shape:
        p = array(float(p))
    return _apply("random_bernoulli", key, p, shape=None if shape is None else _sizes(shape))


def categorical(logits: Array, axis: int = -1, shape: Sequence[int] | None = None, num_samples: int | None = None,
                key: array | None = None, stream: Stream = None) -> array:
    """Indices along an axis, of probabilities that are proportional to exp(logits), as int32.

    One for each line of logits; num_samples of them, as a last dimension; or a shape of them, to which that of the lines can
    be broadcast. Raises ValueError for both."""
    if shape is not None and num_samples is not None:
        raise ValueError(f"categorical: shape is {tuple(shape)} and num_samples {num_samples}; expected one of them")
    logits = asarray(logits)
    if shape is None:
        return _apply("random_categorical", key, logits, axes=axis, offset=num_samples or 0)
    from smelt.operations import broadcast_to, moveaxis
    lines = moveaxis(logits, axis, -1)
    return _apply("random_categorical", key, broadcast_to(lines, (*shape, lines.shape[-1])), axes=-1)


def permutation(x: int | array, axis: int = 0, key: array | None = None, stream: Stream = None) -> array:
    """0 … x - 1 in a random order, or an array with its slices along an axis in one."""
    from smelt.operations import take
    if isinstance(x, int):
        return _apply("random_permutation", key, offset=x)
    order = _apply("random_permutation", key, offset=x.shape[axis])
    return take(x, order, axis)
