"""Dense linear algebra that checks itself: factorisations, solves, least squares, and their residuals."""

from smelt.linalg.factor import Report, cholesky, lu, lu_factor, qr
from smelt.linalg.residuals import cholesky_residual, lower_residual, orthogonality, qr_residual
from smelt.linalg.solve import dot, inv, lstsq, solve, solve_triangular

__all__ = ["Report", "cholesky", "cholesky_residual", "dot", "inv", "lower_residual", "lstsq", "lu", "lu_factor",
           "orthogonality", "qr", "qr_residual", "solve", "solve_triangular"]
