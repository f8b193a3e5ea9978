#!/usr/bin/env python3
"""The accuracy of smelt.linalg on ill-conditioned matrices, natively and in extended precision, and what that costs.

    python bench/python/linalg_accuracy.py

Prints a table in Markdown, and processor milliseconds, the best of five. docs/linalg.md has a copy."""
import resource
from typing import Literal

import numpy as np

from smelt import HealthError, linalg

Precision = Literal["native", "extended"]
RNG = np.random.default_rng(5)


def with_condition(n: int, condition: float) -> np.ndarray:
    """A symmetric positive definite matrix whose eigenvalues fall evenly, by their logarithms, from 1 to 1 / condition."""
    q, _ = np.linalg.qr(RNG.standard_normal((n, n)))
    a = q * np.logspace(0, -np.log10(condition), n) @ q.T
    return (a + a.T) / 2


def cholesky(a: np.ndarray, precision: Precision) -> str:
    try:
        return f"{linalg.cholesky_residual(a, linalg.cholesky(a, precision=precision)):.1e}"
    except HealthError:
        return "a pivot fails"


def qr(a: np.ndarray, precision: Precision) -> str:
    q, r = linalg.qr(a, precision=precision)
    return f"{linalg.qr_residual(a, q, r):.1e} | {linalg.orthogonality(q):.1e}"


def milliseconds(function, *args, **kwargs) -> float:
    best = float("inf")
    for _ in range(6):
        start = resource.getrusage(resource.RUSAGE_SELF).ru_utime
        function(*args, **kwargs)
        best = min(best, resource.getrusage(resource.RUSAGE_SELF).ru_utime - start)
    return 1e3 * best


def main() -> None:
    cases = [(f"Hilbert, n = {n}", 1 / (np.arange(n)[:, None] + np.arange(n) + 1)) for n in (6, 9, 12)]
    cases += [(f"condition 10^{e}, n = 64", with_condition(64, 10.0**e)) for e in (3, 6, 9, 12)]
    for name, a in cases:
        single = a.astype(np.float32)
        print(f"| {name} | {cholesky(single, 'native')} | {cholesky(a, 'extended')} | {qr(single, 'native')} | {qr(a, 'extended')} |")
    a = with_condition(128, 1e3).astype(np.float32)
    x = RNG.standard_normal((1000, 1000)).astype(np.float32)
    for name, function, args in (("cholesky", linalg.cholesky, (a,)), ("qr", linalg.qr, (a,)), ("dot", linalg.dot, (x, x))):
        native, extended = (milliseconds(function, *args, precision=p) for p in ("native", "extended"))
        print(f"{name}: {native:.2f} ms natively, {extended:.2f} ms extended, {extended / native:.0f} times")


main()
