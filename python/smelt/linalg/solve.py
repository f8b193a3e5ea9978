"""Systems of equations, least squares, dot products."""

from __future__ import annotations

from smelt._smelt import array, asarray
from smelt.linalg.nodes import in_graphs
from smelt.linalg.options import Policy, Precision, Report, call
from smelt.operations.creation import eye
from smelt.operations.shapes import broadcast_to
from smelt.operations.types import Array, Stream

__all__ = ["dot", "inv", "lstsq", "solve", "solve_triangular"]


@in_graphs
def solve(a: Array, b: Array, stream: Stream = None, *, on_failure: Policy = "error", jitter: float = 0.0,
          attempts: int = 0, tolerance: float = 0.0, report: Report | None = None) -> array:
    """x with a @ x = b, by LU: a (…, n, n), b (…, n, k), or (n,) for one matrix a. Other dimensions are broadcast.

    A pivot that is 0, or at most `tolerance` times the largest magnitude of a, is a failure: see cholesky."""
    return call("solve", a, b, on_failure=on_failure, jitter=jitter, attempts=attempts, tolerance=tolerance,
                report=report)[0]


@in_graphs
def solve_triangular(a: Array, b: Array, *, upper: bool = False, transpose: bool = False, unit: bool = False,
                     right: bool = False, on_failure: Policy = "error", stream: Stream = None) -> array:
    """x with a @ x = b, or x @ a = b (`right`), for a triangular a, of which only one triangle is read; its transpose with
    `transpose`. unit: its diagonal counts as 1. on_failure: "error" (a 0 on the diagonal) or "ignore"."""
    return call("triangular_solve", a, b, upper=upper, transpose=transpose, unit=unit, right=right,
                on_failure=on_failure)[0]


@in_graphs
def inv(a: Array, stream: Stream = None, *, on_failure: Policy = "error", report: Report | None = None) -> array:
    """The inverse of a (…, n, n), by solve."""
    a = asarray(a)
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise ValueError(f"inv: a has shape {a.shape}; expected square matrices")
    one = eye(a.shape[-1], dtype=a.dtype, device=a.device)
    return solve(a, broadcast_to(one, a.shape), on_failure=on_failure, report=report)


@in_graphs
def lstsq(a: Array, b: Array, stream: Stream = None, *, on_failure: Policy = "error", tolerance: float = 0.0,
          report: Report | None = None) -> array:
    """x with the smallest norm of a @ x - b, by QR: a (…, m, n) of full rank, b (…, m, k), or (m,). If m < n, the x of
    smallest norm. A diagonal element of r that is 0, or at most `tolerance` times the largest magnitude of a, is a failure."""
    return call("lstsq", a, b, on_failure=on_failure, tolerance=tolerance, report=report)[0]


@in_graphs
def dot(x: Array, y: Array, stream: Stream = None, *, precision: Precision = "native") -> array:
    """The sums of x * y over the last dimension; the others are broadcast. "extended": each exact, rounded once."""
    return call("dot", x, y, precision=precision)[0]
