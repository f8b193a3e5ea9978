"""What annotations of operations name."""
from collections.abc import Sequence
from typing import Any

from smelt._smelt import array

# smelt.array, a number, or anything that smelt.array() takes.
Array = array | bool | int | float | complex | Any
Axes = int | Sequence[int] | None
Stream = Any
