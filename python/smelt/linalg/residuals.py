"""How well factors fit: residuals in float64, the largest of a batch."""

from smelt._smelt import asarray, linalg_residual
from smelt.operations.types import Array

__all__ = ["cholesky_residual", "lower_residual", "orthogonality", "qr_residual"]


def cholesky_residual(a: Array, l: Array, upper: bool = False) -> float:
    """||a - l @ l.T|| / ||a||, of the lower triangle; `upper`: ||a - l.T @ l|| / ||a||, of the upper one."""
    return linalg_residual("cholesky", upper, asarray(a), asarray(l))


def qr_residual(a: Array, q: Array, r: Array) -> float:
    """||a - q @ r|| / ||a||."""
    return linalg_residual("qr", False, asarray(a), asarray(q), asarray(r))


def orthogonality(q: Array) -> float:
    """||I - q.T @ q||."""
    return linalg_residual("orthogonality", False, asarray(q))


def lower_residual(r: Array) -> float:
    """The norm of r below its diagonal, divided by ||r||."""
    return linalg_residual("lower", False, asarray(r))
