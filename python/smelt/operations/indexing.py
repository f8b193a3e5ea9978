"""a[key] and a[key] = value with arrays among the indices; take and what puts elements back.

Indices below 0 count from the end. An int outside its dimension raises IndexError; a number of an index array outside
it takes the first or last element."""
from typing import Any

from smelt._smelt import apply, array
from smelt.operations.types import Array, Stream

__all__ = ["put_along_axis", "take", "take_along_axis"]


def _is_array(key: Any) -> bool:
    return isinstance(key, (array, list)) or (hasattr(key, "ndim") and key.ndim > 0)


def _expanded(a: array, key: Any) -> tuple[array, list]:
    """The array with a dimension for each None, and a key for each of its dimensions: int, slice or integer array."""
    keys: list = []
    for item in key if isinstance(key, tuple) else (key,):
        if _is_array(item):
            item = item if isinstance(item, array) else array(item)
            if item.dtype.name == "bool":
                keys += _places(item)
                continue
            if not item.dtype.name.startswith(("int", "uint")):
                raise TypeError(f"smelt.array: an index array has dtype {item.dtype.name}; expected an integer dtype or bool")
        elif item is not None and item is not Ellipsis and not isinstance(item, slice):
            if isinstance(item, bool) or not hasattr(item, "__index__"):
                raise TypeError(f"smelt.array: {item!r} is not an index; expected int, slice, array, None or ...")
            item = item.__index__()
        keys.append(item)
    if sum(item is Ellipsis for item in keys) > 1:
        raise IndexError("smelt.array: more than one ... among the indices")
    taken = sum(item is not None and item is not Ellipsis for item in keys)
    if taken > a.ndim:
        raise IndexError(f"smelt.array: {taken} indices for an array of {a.ndim} dimensions")
    at = next((i for i, item in enumerate(keys) if item is Ellipsis), len(keys))
    keys[at:at + 1] = [slice(None)] * (a.ndim - taken)
    new = [i for i, item in enumerate(keys) if item is None]
    if new:
        a = apply("expand_dims", (a,), axes=new)
    keys = [slice(None) if item is None else item for item in keys]
    for i, item in enumerate(keys):
        size = a.shape[i]
        if isinstance(item, int) and not -size <= item < size:
            raise IndexError(f"smelt.array: index {item} is out of range for dimension {i} of size {size}")
    return a, keys


def _places(mask: array) -> list[array]:
    """Where a mask is true: an index array for each of its dimensions."""
    import numpy
    return [array(places.astype("int32")) for places in numpy.nonzero(numpy.asarray(mask))]


def _slice(a: array, keys: list) -> array:
    """What the slices and ints of the keys leave, ints as dimensions of size 1; arrays leave their dimensions whole."""
    starts, stops, steps = [], [], []
    for size, item in zip(a.shape, keys):
        if isinstance(item, int):
            item = slice(item % size, item % size + 1)
        start, stop, step = (item if isinstance(item, slice) else slice(None)).indices(size)
        starts.append(start)
        stops.append(stop)
        steps.append(step)
    return apply("slice", (a,), starts=starts, stops=stops, steps=steps)


def getitem(a: array, key: Any) -> array:
    """a[key]. Arrays among the indices are broadcast to one shape, which stands where they stood, or in front if a slice
    lies between them, as NumPy's; masks of bools stand for the places where they are true."""
    a, keys = _expanded(a, key)
    if not any(isinstance(item, array) for item in keys):
        view = _slice(a, keys)
        ones = [i for i, item in enumerate(keys) if isinstance(item, int)]
        return apply("squeeze", (view,), axes=ones)
    picked = [i for i, item in enumerate(keys) if not isinstance(item, slice)]
    indices = [keys[i] if isinstance(keys[i], array) else array(keys[i]) for i in picked]
    rest = _slice(a, [item if isinstance(item, slice) else slice(None) for item in keys])
    together = picked == list(range(picked[0], picked[-1] + 1))
    return apply("gather", (rest, *indices), axes=picked, offset=picked[0] if together else 0)


def setitem(a: array, key: Any, value: Array) -> array:
    """A copy of a in which a[key] is value, broadcast; where indices repeat, the last one counts."""
    value = apply("astype", (value if isinstance(value, array) else array(value),), dtype=a.dtype)
    plain, keys = _expanded(a, key)
    if plain.ndim == a.ndim and not any(isinstance(item, array) for item in keys):
        return _slice_update(a, keys, value)
    places = getitem(_numbered(a), key)
    flat = apply("reshape", (a,), shape=(-1,))
    value = apply("broadcast_to", (value,), shape=places.shape)
    return apply("reshape", (apply("scatter", (flat, value, places)),), shape=a.shape)


def _numbered(a: array) -> array:
    places = apply("arange", (), numbers=(0, a.size, 1), dtype="int64", device=a.device)
    return apply("reshape", (places,), shape=a.shape)


def _slice_update(a: array, keys: list, value: array) -> array:
    bounds = [slice(k % n, k % n + 1).indices(n) if isinstance(k, int) else k.indices(n) for k, n in zip(keys, a.shape)]
    kept = [i for i, item in enumerate(keys) if isinstance(item, slice)]
    extra = value.ndim - len(kept)
    if extra > 0 and any(size != 1 for size in value.shape[:extra]):
        raise ValueError(f"smelt.array: a value of shape {value.shape} cannot be broadcast to {len(kept)} dimensions")
    shape, own = [1] * a.ndim, list(value.shape)[max(extra, 0):]
    for place, size in zip(kept[len(kept) - len(own):], own):
        shape[place] = size
    value = apply("reshape", (value,), shape=shape)
    return apply("slice_update", (a, value), starts=[b[0] for b in bounds], stops=[b[1] for b in bounds],
                 steps=[b[2] for b in bounds])


def take(a: Array, /, indices: Array, axis: int | None = None, *, stream: Stream = None) -> array:
    """The elements at the indices along an axis; None: of the array flattened."""
    return apply("take", (a, _integers(indices)), axes=axis)


def take_along_axis(a: Array, /, indices: Array, axis: int | None = None, *, stream: Stream = None) -> array:
    """result[…, i, …] = a[…, indices[…, i, …], …] along an axis; None: of both flattened."""
    if axis is None:
        a, indices, axis = apply("flatten", (a,)), apply("flatten", (_integers(indices),)), 0
    return apply("take_along_axis", (a, _integers(indices)), axes=axis)


def put_along_axis(a: array, /, indices: Array, values: Array, axis: int | None = None, *, stream: Stream = None) -> array:
    """A copy of a with a[…, indices[…, i, …], …] = values[…, i, …] along an axis; None: of a flattened."""
    indices = _integers(indices)
    if axis is None:
        places = apply("flatten", (indices,))
    else:
        places = take_along_axis(_numbered(a), indices, axis)
    flat = apply("reshape", (a,), shape=(-1,))
    values = apply("broadcast_to", (values,), shape=places.shape)
    made = apply("scatter", (flat, apply("astype", (values,), dtype=a.dtype), places))
    return apply("reshape", (made,), shape=a.shape)


def _integers(indices: Array) -> array:
    return indices if isinstance(indices, array) else array(indices)
