"""What the functions of smelt.linalg have in common: options, reports, warnings."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Literal

from smelt._smelt import array, asarray, linalg as _linalg
from smelt.operations.types import Array

#: What to do about matrices that fail.
Policy = Literal["error", "jitter", "fallback", "ignore"]
#: How sums are computed.
Precision = Literal["native", "extended"]

_POLICIES = ("error", "jitter", "fallback", "ignore")
_PRECISIONS = ("native", "extended")


@dataclass
class Report:
    """What a call found; pass one as `report` to have it filled.

    matrices, failed: how many there are, and how many could not be factorised at first. matrix: the first of those, or
    -1. index, value: its pivot, column or element, and what it is. jitter, attempts: what was added to diagonals at most,
    in how many factorisations. fell_back: whether the CPU computed matrices again. message: a sentence, or "". flags:
    what kernels wrote, float32 (matrices, 16), or None: smelt.launch.DebugFlags.decode_rows reads it."""

    matrices: int = 0
    failed: int = 0
    matrix: int = -1
    index: int = -1
    value: float = 0.0
    jitter: float = 0.0
    attempts: int = 0
    fell_back: bool = False
    message: str = ""
    flags: array | None = None


def call(name: str, a: Array, b: Array | None = None, *, upper: bool = False, unit: bool = False, transpose: bool = False,
         right: bool = False, complete: bool = False, symmetric: bool = False, on_failure: str = "error",
         precision: str = "native", jitter: float = 0.0, attempts: int = 0, tolerance: float = 0.0, wants_q: bool = True,
         report: Report | None = None) -> tuple[Any, Any]:
    """Calls a function of smelt/linalg.h. Warns (FallbackWarning) of what was done about matrices that failed."""
    if on_failure not in _POLICIES:
        raise ValueError(f"{name}: on_failure is {on_failure!r}; expected one of {', '.join(_POLICIES)}")
    if precision not in _PRECISIONS:
        raise ValueError(f"{name}: precision is {precision!r}; expected native or extended")
    made, found, flags = _linalg(name, asarray(a), None if b is None else asarray(b),
                                 (upper, unit, transpose, right, complete, symmetric), _POLICIES.index(on_failure),
                                 _PRECISIONS.index(precision), (float(jitter), attempts, float(tolerance)), wants_q,
                                 report is not None, None)
    if report is not None:
        (report.matrices, report.failed, report.matrix, report.index, report.value, report.jitter, report.attempts,
         report.fell_back, report.message) = found
        report.flags = flags
    if found[8]:
        from smelt.launch import FallbackWarning

        warnings.warn(found[8], FallbackWarning, stacklevel=3)
    return made
