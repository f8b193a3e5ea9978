"""Random arrays. The same seed gives the same numbers on every device: they are Philox's of a 64-bit key.

Functions take `key`, an array of two uint32 made by key() or split(), or go on from the state that seed() sets."""
import secrets
import threading
from collections.abc import Sequence

from smelt._smelt import Dtype, array, float32, int32, random_array
from smelt.operations import floor
from smelt.operations.types import Array, Stream

__all__ = ["bernoulli", "key", "normal", "permutation", "randint", "seed", "split", "uniform"]

_lock = threading.Lock()
_state = secrets.randbits(64)
_WORD = (1 << 64) - 1


def _mix(word: int) -> int:
    """The finaliser of splitmix64 (Steele, Lea, Flood 2014)."""
    word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9 & _WORD
    word = (word ^ (word >> 27)) * 0x94D049BB133111EB & _WORD
    return word ^ (word >> 31)


def _next() -> int:
    global _state
    with _lock:
        _state = (_state + 0x9E3779B97F4A7C15) & _WORD
        return _mix(_state)


def _word(key: array | None) -> int:
    if key is None:
        return _next()
    low, high = key.tolist()
    return low | high << 32


def seed(seed: int) -> None:
    """What numbers come from now on without a key."""
    global _state
    with _lock:
        _state = seed & _WORD


def key(seed: int) -> array:
    """A key of a seed."""
    word = _mix(seed & _WORD)
    return array([word & 0xFFFFFFFF, word >> 32], dtype="uint32")


def split(key: array, num: int = 2, stream: Stream = None) -> array:
    """num new keys, of shape (num, 2)."""
    word = _word(key)
    words = [_mix((word + (i + 1) * 0x9E3779B97F4A7C15) & _WORD) for i in range(num)]
    return array([[word & 0xFFFFFFFF, word >> 32] for word in words], dtype="uint32")


def _placed(made: array) -> array:
    from smelt.execution import default_device
    return made if default_device() == "cpu" else made.to(default_device())


def normal(shape: Sequence[int] = (), dtype: Dtype | None = float32, loc: Array | None = None, scale: Array | None = None,
           key: array | None = None, stream: Stream = None) -> array:
    """Normal numbers of mean loc (0) and standard deviation scale (1), of a float dtype or complex64."""
    made = _placed(random_array("normal", dtype or float32, shape, _word(key)))
    made = made if scale is None else made * scale
    return made if loc is None else made + loc


def uniform(low: Array = 0, high: Array = 1, shape: Sequence[int] = (), dtype: Dtype | None = float32,
            key: array | None = None, stream: Stream = None) -> array:
    """Numbers evenly from low up to, not including, high; of a float dtype. low and high are broadcast to the shape."""
    made = _placed(random_array("uniform", dtype or float32, shape, _word(key)))
    if isinstance(low, (int, float)) and isinstance(high, (int, float)) and (low, high) == (0, 1):
        return made
    return made * (high - low) + low


def randint(low: int, high: int, shape: Sequence[int] = (), dtype: Dtype | None = int32, key: array | None = None,
            stream: Stream = None) -> array:
    """Integers from low up to, not including, high. ValueError if there are none."""
    if high <= low:
        raise ValueError(f"randint: high is {high}; expected more than low, which is {low}")
    span = high - low
    if span >= 1 << 24:  # more than a float32 tells apart
        made = _placed(random_array("uniform", "uint64", shape, _word(key)))
        return ((made >> 1).astype("int64") % span + low).astype(dtype or int32)
    made = _placed(random_array("uniform", float32, shape, _word(key)))
    return (floor(made * span).astype("int32") + low).astype(dtype or int32)


def bernoulli(p: Array = 0.5, shape: Sequence[int] | None = None, key: array | None = None, stream: Stream = None) -> array:
    """True with probability p, as bool."""
    if shape is None:
        shape = p.shape if isinstance(p, array) else ()
    return uniform(shape=shape, key=key) < p


def permutation(x: int | array, axis: int = 0, key: array | None = None, stream: Stream = None) -> array:
    """0 … x - 1 in a random order, or an array with its slices along an axis in one."""
    import random
    count = x if isinstance(x, int) else x.shape[axis]
    places = list(range(count))
    random.Random(_word(key)).shuffle(places)
    order = array(places, dtype="int32")
    if isinstance(x, int):
        return order
    from smelt.operations import take
    return take(x, order, axis)
