"""`numjet.lax.linalg`: matrix factorizations and solves, over leading batch axes."""

from numjet.api.compiled.hashed import hold as _hold
from numjet.ops.linalg_core import (
    cholesky as cholesky,
    cholesky_p as cholesky_p,
    solve as solve,
    triangular_solve as triangular_solve,
    triangular_solve_p as triangular_solve_p,
)
from numjet.ops.linalg_eig import (
    EighImplementation as EighImplementation,
    EigImplementation as EigImplementation,
    SvdAlgorithm as SvdAlgorithm,
    eig as eig,
    eig_p as eig_p,
    eigh as eigh,
    eigh_p as eigh_p,
    hessenberg as hessenberg,
    hessenberg_p as hessenberg_p,
    schur as schur,
    schur_p as schur_p,
    svd as svd,
    svd_p as svd_p,
)
from numjet.ops.linalg_householder import ormqr as ormqr, ormqr_p as ormqr_p
from numjet.ops.linalg_lu import (
    householder_product as householder_product,
    householder_product_p as householder_product_p,
    lu as lu,
    lu_p as lu_p,
    lu_pivots_to_permutation as lu_pivots_to_permutation,
    lu_pivots_to_permutation_p as lu_pivots_to_permutation_p,
    qr as qr,
    qr_p as qr_p,
)
from numjet.ops.linalg_tridiagonal import (
    tridiagonal as tridiagonal,
    tridiagonal_p as tridiagonal_p,
    tridiagonal_solve as tridiagonal_solve,
    tridiagonal_solve_p as tridiagonal_solve_p,
)
from numjet.ops.linalg_updates import (
    cholesky_update as cholesky_update,
    cholesky_update_p as cholesky_update_p,
    symmetric_product as symmetric_product,
    symmetric_product_p as symmetric_product_p,
)
from numjet.ops.polar import qdwh as qdwh

_hold(globals(), __name__)
