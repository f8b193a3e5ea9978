"""Numbers and axes that operations compute with in Python, before they call the library: checked, with a message that
names the operation, the argument and its value."""
import operator
from collections.abc import Sequence
from typing import Any, TypeGuard


def whole(operation: str, name: str, value: Any) -> int:
    """The value as an int. TypeError if it is not a whole number."""
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{operation}: {name} is {value!r}; expected a whole number") from None


def axis_of(operation: str, axis: Any, ndim: int, name: str = "axis") -> int:
    """The axis counted from the front: 0 to ndim - 1. ValueError if an array of ndim dimensions lacks it."""
    number = whole(operation, name, axis)
    if not -ndim <= number < ndim:
        raise ValueError(f"{operation}: {name} {number} is out of range for {ndim} dimensions")
    return number % ndim


def wholes(operation: str, name: str, value: Any) -> list[int]:
    """The values of a sequence, or one value, as ints. TypeError if one is not a whole number."""
    try:
        items = list(value)
    except TypeError:
        items = [value]
    if isinstance(value, str):
        items = [value]
    return [whole(operation, name, item) for item in items]


def is_several(value: Any) -> TypeGuard[Sequence[Any]]:
    """Whether the value is a sequence, as a list or an array of one dimension, and not a number or text."""
    return hasattr(value, "__len__") and not isinstance(value, str) and getattr(value, "ndim", 1) != 0
