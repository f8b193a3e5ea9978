"""Factorisations of matrices (…, m, n) of float32, float16, bfloat16, or, on the host, float64."""

from __future__ import annotations

import math
from typing import Literal

from smelt._smelt import array, asarray, int32
from smelt.linalg.nodes import in_graphs
from smelt.linalg.options import Policy, Precision, Report, call
from smelt.operations.creation import arange
from smelt.operations.shapes import tril, triu
from smelt.operations.types import Array, Stream

__all__ = ["Report", "cholesky", "lu", "lu_factor", "qr"]


@in_graphs
def cholesky(a: Array, upper: bool = False, stream: Stream = None, *, on_failure: Policy = "error",
             precision: Precision = "native", jitter: float = 0.0, attempts: int = 0, check_symmetric: bool = False,
             report: Report | None = None) -> array:
    """The lower triangular l with l @ l.T = a, or the upper one with l.T @ l = a. Only that triangle of a is read.

    on_failure: what happens when a pivot is not positive. "error": smelt.HealthError, with its index and value;
    "jitter": `jitter` (default 1e-6) times the largest magnitude is added to the diagonal, ten times more in each of
    `attempts` (default 6), with a FallbackWarning; "fallback": the CPU computes the matrix in float64, with a
    FallbackWarning; "ignore": NaN.
    precision: "extended" keeps sums in integers of 128 bits. check_symmetric: refuse other matrices."""
    return call("cholesky", a, upper=upper, on_failure=on_failure, precision=precision, jitter=jitter,
                attempts=attempts, symmetric=check_symmetric, report=report)[0]


@in_graphs
def qr(a: Array, mode: Literal["reduced", "complete", "r"] = "reduced", stream: Stream = None, *,
       on_failure: Policy = "error", precision: Precision = "native", tolerance: float = 0.0,
       report: Report | None = None) -> tuple[array, array] | array:
    """(q, r) with q @ r = a: q (…, m, k) with orthonormal columns and r (…, k, n) upper triangular, where k is min(m, n), or
    m with mode "complete"; only r with mode "r".

    tolerance: diagonal elements of r of at most this times the largest magnitude of a are failures."""
    if mode not in ("reduced", "complete", "r"):
        raise ValueError(f"qr: mode is {mode!r}; expected reduced, complete or r")
    q, r = call("qr", a, complete=mode == "complete", on_failure=on_failure, precision=precision, tolerance=tolerance,
                wants_q=mode != "r", report=report)
    return r if mode == "r" else (q, r)


@in_graphs
def lu_factor(a: Array, stream: Stream = None, *, on_failure: Policy = "error", tolerance: float = 0.0,
              report: Report | None = None) -> tuple[array, array]:
    """(lu, pivots): l below the diagonal and u on and above it in one array; row i was exchanged with row pivots[i], in this
    order. tolerance: pivots of at most this times the largest magnitude of a are failures."""
    return call("lu", a, on_failure=on_failure, tolerance=tolerance, report=report)


@in_graphs
def lu(a: Array, stream: Stream = None, *, on_failure: Policy = "error", tolerance: float = 0.0,
       report: Report | None = None) -> tuple[array, array, array]:
    """(p, l, u): the rows p of l @ u are a, that is (l @ u)[p] = a for one matrix; l is unit lower and u upper trapezoidal."""
    factors, pivots = lu_factor(a, on_failure=on_failure, tolerance=tolerance, report=report)
    import numpy as np

    m, n = factors.shape[-2:]
    rank, matrices = min(m, n), math.prod(factors.shape[:-2])
    rows = np.tile(np.arange(m, dtype=np.int32), (matrices, 1))
    for order, exchanges in zip(rows, np.asarray(pivots).reshape(matrices, rank)):
        for i, other in enumerate(exchanges):
            order[[i, other]] = order[[other, i]]
    where = np.empty_like(rows)  # where each row of a went
    np.put_along_axis(where, rows, np.arange(m, dtype=np.int32)[None], axis=1)
    p = asarray(where.reshape((*factors.shape[:-2], m)))
    eye = (arange(m, dtype=int32, device=factors.device).reshape((m, 1)) == arange(rank, dtype=int32, device=factors.device))
    return p, tril(factors[..., :rank], -1) + eye.astype(factors.dtype), triu(factors[..., :rank, :])
