"""Sizes of launches by rules of thumb: multiples of a simdgroup, no more threads than there is work, at most 1024."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable

import smelt

#: Threads that run in step on every device: a simdgroup.
EXECUTION_WIDTH = 32
#: The most threads a threadgroup may have, on every device.
MAX_THREADS_PER_THREADGROUP = 1024
#: A shape with no dimension above TINY gets one simdgroup; above SMALL, up to MAX_THREADS_PER_THREADGROUP threads;
#: in between up to SMALL_THREADS.
TINY, SMALL, SMALL_THREADS = 8, 32, 256


def suggest_threadgroup(shape: int | Iterable[int], device: str | None = None) -> tuple[int, int, int]:
    """Threads in a threadgroup for work over `shape`, as (x, y, z); x runs along the last dimension of the shape.

    shape: a length, or one to three dimensions (rows, columns), (planes, rows, columns).
    - no dimension above 8: 32 threads, one simdgroup;
    - no dimension above 32: one thread an element, rounded up to 32, at most 256;
    - else: one thread an element, rounded up to 32, at most 1024.
    In two and three dimensions the sides are powers of two (x first up to 32, then y, z, then x again), so "at most"
    is what is met, and the count may be below one thread an element.

    The product is always a multiple of 32 and at most 1024, so that a launch of any grid is valid with it: groups at
    the edge of a grid are smaller (dispatchThreads), and a side longer than the grid's is cut to it.

    device: a name of smelt.devices(); all of them have the same limits today. ValueError for a device that is not
    there, and for shapes that are empty, too long or not positive."""
    sides = _sides(shape)
    _check_device(device)
    budget = _budget(sides)
    if sides[1] == sides[2] == 1:
        return budget, 1, 1
    ceilings = [1 << (side - 1).bit_length() for side in sides]
    group = [1, 1, 1]
    for axis, cap in ((0, EXECUTION_WIDTH), (1, budget), (2, budget), (0, budget)):
        while group[axis] < min(ceilings[axis], cap) and 2 * math.prod(group) <= budget:
            group[axis] *= 2
    while math.prod(group) < EXECUTION_WIDTH:  # fewer elements than lanes
        group[0] *= 2
    return group[0], group[1], group[2]


def suggest_launch(shape: int | Iterable[int], device: str | None = None, *,
                   cooperative: bool = False) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
    """(grid, threadgroup) for a kernel over `shape`, as suggest_threadgroup reads it.

    cooperative=False: one thread an element; grid is the shape turned round, (columns, rows, planes), in threads.
    cooperative=True: one threadgroup works on the whole matrix, as factorisations do: grid and threadgroup are both
    (threads, 1, 1), and the kernel's loops stride by threads_per_threadgroup.x. No more than 1024 threads are
    launched, however large the shape."""
    if cooperative:
        sides = _sides(shape)
        _check_device(device)
        return (_budget(sides), 1, 1), (_budget(sides), 1, 1)
    return _sides(shape), suggest_threadgroup(shape, device)


def _budget(sides: tuple[int, int, int]) -> int:
    """How many threads a group may have at most, a multiple of 32."""
    cap = MAX_THREADS_PER_THREADGROUP
    if max(sides) <= TINY:
        cap = EXECUTION_WIDTH
    elif max(sides) <= SMALL:
        cap = SMALL_THREADS
    return min(cap, -(-math.prod(sides) // EXECUTION_WIDTH) * EXECUTION_WIDTH)


def _sides(shape: int | Iterable[int]) -> tuple[int, int, int]:
    """The grid over a shape: its dimensions from the last to the first, three of them."""
    try:
        dims = [operator.index(n) for n in shape] if isinstance(shape, Iterable) else [operator.index(shape)]
    except TypeError:
        raise TypeError(f"shape: expected an integer or one to three integers, got {shape!r}") from None
    if not 1 <= len(dims) <= 3:
        raise ValueError(f"shape: expected one to three dimensions, got {len(dims)}: {tuple(dims)}")
    if min(dims) < 1:
        raise ValueError(f"shape: every dimension must be at least 1, got {tuple(dims)}")
    x, y, z = dims[::-1] + [1] * (3 - len(dims))
    return x, y, z


def _check_device(device: str | None) -> None:
    if device is not None and device not in smelt.devices() and f"{device}:0" not in smelt.devices():
        raise ValueError(f"device: expected one of {', '.join(smelt.devices())}, got {device!r}")
