"""`numjet.lax.linalg`: matrix factorizations and solves, over leading batch axes."""
from numjet.ops.linalg_core import (
    cholesky as cholesky,
    cholesky_p as cholesky_p,
    solve as solve,
    triangular_solve as triangular_solve,
    triangular_solve_p as triangular_solve_p,
)
from numjet.ops.linalg_eig import (
    eig as eig,
    eigh as eigh,
    hessenberg as hessenberg,
    schur as schur,
    svd as svd,
)
from numjet.ops.linalg_lu import (
    householder_product as householder_product,
    lu as lu,
    lu_pivots_to_permutation as lu_pivots_to_permutation,
    qr as qr,
)
