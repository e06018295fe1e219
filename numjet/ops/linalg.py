"""The linear algebra operations in one place, in the names of lax.linalg."""

from __future__ import annotations

from numjet.ops.linalg_core import (
    cholesky,
    cholesky_p,
    solve,
    solve_p,
    triangular_solve,
    triangular_solve_p,
)
from numjet.ops.linalg_eig import (
    EighImplementation,
    EigImplementation,
    SvdAlgorithm,
    eig,
    eig_p,
    eigh,
    eigh_p,
    hessenberg,
    hessenberg_p,
    schur,
    schur_p,
    svd,
    svd_p,
)
from numjet.ops.linalg_householder import geqrf, geqrf_p, ormqr, ormqr_p
from numjet.ops.linalg_lu import (
    householder_product,
    householder_product_p,
    lu,
    lu_p,
    lu_pivots_to_permutation,
    lu_pivots_to_permutation_p,
    qr,
    qr_p,
)
from numjet.ops.linalg_tridiagonal import (
    tridiagonal,
    tridiagonal_p,
    tridiagonal_solve,
    tridiagonal_solve_p,
)
from numjet.ops.linalg_updates import (
    cholesky_update,
    cholesky_update_p,
    symmetric_product,
    symmetric_product_p,
)

__all__ = [
    "EigImplementation",
    "EighImplementation",
    "SvdAlgorithm",
    "cholesky",
    "cholesky_p",
    "cholesky_update",
    "cholesky_update_p",
    "eig",
    "eig_p",
    "eigh",
    "eigh_p",
    "geqrf",
    "geqrf_p",
    "hessenberg",
    "hessenberg_p",
    "householder_product",
    "householder_product_p",
    "lu",
    "lu_p",
    "lu_pivots_to_permutation",
    "lu_pivots_to_permutation_p",
    "ormqr",
    "ormqr_p",
    "qr",
    "qr_p",
    "schur",
    "schur_p",
    "solve",
    "solve_p",
    "svd",
    "svd_p",
    "symmetric_product",
    "symmetric_product_p",
    "triangular_solve",
    "triangular_solve_p",
    "tridiagonal",
    "tridiagonal_p",
    "tridiagonal_solve",
    "tridiagonal_solve_p",
]
