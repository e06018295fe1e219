"""Linear systems and eigenvalues of sparse matrices: `spsolve`, `lobpcg_standard`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from numjet import lax, numpy as jnp
from numjet.api.callbacks import pure_callback
from numjet.api.compiled.abstract import eval_shape
from numjet.api.derivatives.implicit import custom_linear_solve
from numjet.core import dtypes
from numjet.experimental.sparse.csr import CSR, csr_matvec


def spsolve(
    data: Any, indices: Any, indptr: Any, b: Any, tol: float = 1e-6, reorder: int = 1
) -> Any:
    """The solution of a linear system whose matrix is given by rows, by SciPy's direct solver.

    data, indices, indptr: of the matrix, as of `CSR`. b: a vector, of the dtype of data. tol and
    reorder speak of a GPU's solver, and change nothing here. Derivatives are with respect to data
    and b. A singular matrix gives NaN or infinities. Raises ValueError for shapes that do not fit.

    >>> from numjet import numpy as jnp
    >>> from numjet.experimental import sparse
    >>> from numjet.experimental.sparse.linalg import spsolve
    >>> m = sparse.CSR.fromdense(jnp.array([[2.0, 0.0], [1.0, 4.0]]))
    >>> print(spsolve(m.data, m.indices, m.indptr, jnp.array([2.0, 9.0])))
    [1. 2.]
    """
    del tol, reorder
    data, indices, indptr, b = [jnp.asarray(x) for x in (data, indices, indptr, b)]
    n = indptr.shape[-1] - 1
    if data.ndim != 1 or indices.shape != data.shape or b.shape != (n,):
        raise ValueError(
            "spsolve: expected data and indices of one length and b of as many elements as there "
            f"are rows, {n}, got {data.shape}, {indices.shape} and {b.shape}."
        )
    if not dtypes.is_inexact(b.dtype) or data.dtype != b.dtype:
        raise ValueError(
            f"spsolve: expected data and b of one inexact dtype, got {data.dtype} and {b.dtype}."
        )
    mat = CSR((data, indices, indptr), shape=(n, n))

    def solver(transpose: bool) -> Callable:
        def on_host(data: Any, indices: Any, indptr: Any, b: Any) -> np.ndarray:
            import scipy.sparse
            import scipy.sparse.linalg

            parts = [np.asarray(x) for x in (data, indices, indptr)]
            matrix = scipy.sparse.csr_matrix(tuple(parts), shape=(n, n)).tocsc()
            found = scipy.sparse.linalg.spsolve(matrix.T.tocsc() if transpose else matrix, b)
            return np.asarray(found, np.asarray(b).dtype)

        def solve(_: Callable, b: Any) -> Any:
            parts = [lax.stop_gradient(data), indices, indptr, b]
            return pure_callback(on_host, b, *parts, vmap_method="sequential")

        return solve

    return custom_linear_solve(
        lambda x: csr_matvec(mat, x), b, solver(False), transpose_solve=solver(True)
    )


def lobpcg_standard(
    A: Any, X: Any, m: int = 100, tol: float | None = None
) -> tuple[Any, Any, Any]:
    """The largest eigenvalues of a symmetric (Hermitian) matrix, by the locally optimal block
    preconditioned conjugate gradient method (Knyazev 2001) without a preconditioner.

    Each round takes the best vectors of the space of those before, the directions they came by and
    their residuals, of which an orthonormal basis is kept (Duersch et al. 2018).

    A: an (n, n) array, or a function of an (n, k) array that is its product with it. X: k vectors
    to begin with, (n, k), linearly independent; 0 < 5k < n. m: the most rounds. tol: a residual is
    small below tol·10n(θ + |A v|); the dtype's epsilon unless given. Returns the eigenvalues, the
    largest first, the eigenvectors (n, k) and the number of rounds. Raises ValueError for shapes
    and dtypes that do not fit.

    >>> from numjet import numpy as jnp, random
    >>> from numjet.experimental.sparse.linalg import lobpcg_standard
    >>> theta, u, rounds = lobpcg_standard(jnp.diag(jnp.arange(20.0)), jnp.ones((20, 1)))
    >>> print(theta.round(3))
    [19.]
    """
    X = jnp.asarray(X)
    if X.ndim != 2:
        raise ValueError(f"lobpcg_standard: X must be an (n, k) array, got shape {X.shape}.")
    n, k = X.shape
    if callable(A):
        apply = A
    else:
        matrix = jnp.asarray(A)
        if matrix.shape != (n, n):
            raise ValueError(
                f"lobpcg_standard: A must have shape {(n, n)} as X says, got {matrix.shape}."
            )
        apply = lambda v: matrix @ v  # noqa: E731
    product = eval_shape(apply, X)
    if (product.shape, product.dtype) != (X.shape, X.dtype):
        raise ValueError(
            f"lobpcg_standard: A must be a matrix of shape {(n, n)} and give a product like X, "
            f"{X.dtype}{list(X.shape)}, got {product.dtype}{list(product.shape)}."
        )
    if not 0 < k * 5 < n:
        raise ValueError(f"lobpcg_standard: expected 0 < 5 k < n, got k={k} and n={n}.")
    limit = float(jnp.finfo(X.dtype).eps) if tol is None else tol

    def ritz(basis: Any) -> tuple:
        """The best k vectors of the space of an orthonormal basis, and their coefficients."""
        small = basis.conj().T @ apply(basis)
        values, vectors = jnp.linalg.eigh((small + small.conj().T) / 2)
        best = vectors[:, ::-1][:, :k]
        return values[::-1][:k], basis @ best, best

    def residual(theta: Any, vectors: Any) -> tuple:
        product = apply(vectors)
        rest = product - vectors * theta.astype(vectors.dtype)
        size = jnp.linalg.norm(rest, axis=0)
        allowed = limit * 10 * n * (jnp.abs(theta) + jnp.linalg.norm(product, axis=0))
        return rest, jnp.sum(size > allowed)

    def on(state: tuple) -> Any:
        count, _, _, _, _, open_ones = state
        return (count < m) & (open_ones > 0)

    def advance(state: tuple) -> tuple:
        count, _, vectors, directions, rest, _ = state
        # Columns of length 1, so that small residuals do not drown; twice, against cancellation.
        grown = jnp.linalg.norm(rest, axis=0)
        rest = rest / jnp.where(grown > 0, grown, 1)
        basis = jnp.linalg.qr(jnp.concatenate([vectors, directions, rest], 1))[0]
        basis = jnp.linalg.qr(basis)[0]
        theta, new, best = ritz(basis)
        # Where the new vectors came by: their part outside of the old ones' space.
        moved = jnp.linalg.qr(basis[:, k:] @ best[k:])[0]
        rest, open_ones = residual(theta, new)
        return count + 1, theta, new, moved, rest, open_ones

    start = jnp.linalg.qr(X)[0]
    theta, vectors, _ = ritz(start)
    rest, open_ones = residual(theta, vectors)
    state = (0, theta, vectors, jnp.zeros_like(vectors), rest, open_ones)
    count, theta, vectors, *_ = lax.while_loop(on, advance, state)
    return theta, vectors, count


__all__ = ["lobpcg_standard", "spsolve"]
