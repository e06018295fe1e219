"""Tridiagonal forms of symmetric matrices, and systems of tridiagonal matrices.

For `lax.linalg`. Matrices stand in the last two axes. References are LAPACK through SciPy. What
would break it: a derivative through the solution that forgets that the diagonals' ends are unused.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from numjet.core import dtypes
from numjet.core.array import as_array
from numjet.core.avals import ShapedArray
from numjet.core.lowering import Kernel
from numjet.core.primitive import Primitive, Zero
from numjet.core.structural import broadcast_in_dim, zeros
from numjet.ops.arithmetic import mul, sub
from numjet.ops.families import is_linear
from numjet.ops.linalg_core import (
    batch_matrices,
    check_matrix,
    decomposition,
    each_matrix,
    weak_as_operands,
)
from numjet.ops.linalg_householder import lapack_function
from numjet.ops.shape import pad


def _tridiagonal_abstract(a: ShapedArray, *, lower: bool) -> list[ShapedArray]:
    check_matrix("tridiagonal", a, square=True, oblong=ValueError)
    *batch, n, _ = a.shape
    if not n:
        raise TypeError(f"tridiagonal: the matrix must not be empty, got {a.str_short()}.")
    reals = dtypes.real_of(a.dtype)
    return [a.strong(), ShapedArray((*batch, n), reals), ShapedArray((*batch, n - 1), reals),
            ShapedArray((*batch, n - 1), a.dtype)]


def _tridiagonal_reference(a: np.ndarray, *, lower: bool) -> list[np.ndarray]:
    function = lapack_function("sytrd", "hetrd", a.dtype)

    def one(x: np.ndarray) -> tuple:
        if len(x) == 1:
            return x, x[0].real, x.real[0, :0], x[0, :0]
        factors, d, e, taus, _ = function(x, lower=int(lower))
        # SciPy's wrapper leaves the other triangle undefined.
        kept = np.tril(factors) + np.triu(x, 1) if lower else np.triu(factors) + np.tril(x, -1)
        return np.ascontiguousarray(kept.astype(x.dtype)), d, e, taus

    return each_matrix(one, a)


tridiagonal_p = decomposition("tridiagonal", _tridiagonal_abstract, _tridiagonal_reference)


def tridiagonal(a: Any, *, lower: bool = True) -> list[Any]:
    """A Hermitian matrix reduced to tridiagonal form: [factors, d, e, taus].

    a: [..., n, n]; lower: which triangle is read. Result: d[..., n], the diagonal, and e[..., n-1],
    the one beside it, both real; factors [..., n, n] and taus[..., n-1], the Householder reflectors
    as LAPACK's sytrd and hetrd leave them. No derivative is known (NotImplementedError). Raises
    ValueError for a matrix that is not square. Source: Golub and Van Loan, Matrix Computations,
    section 8.3. TypeError for other dtypes and for less than two axes.

    >>> from numjet import numpy as jnp
    >>> from numjet.lax import linalg
    >>> linalg.tridiagonal(jnp.array([[2.0, 1.0], [1.0, 3.0]]))[1:3]
    [Array([2., 3.], dtype=float32), Array([1.], dtype=float32)]
    """
    return list(tridiagonal_p.bind(as_array(a), lower=bool(lower)))


def _system_abstract(dl: ShapedArray, d: ShapedArray, du: ShapedArray, b: ShapedArray, *,
                     perturb_singular: bool) -> ShapedArray:
    if not dl.dtype == d.dtype == du.dtype == b.dtype:
        raise TypeError("tridiagonal_solve requires arguments to have the same dtypes, got "
                        f"{', '.join(x.str_short() for x in (dl, d, du, b))}.")
    if b.ndim < 2:
        raise TypeError(f"tridiagonal_solve: b must have at least two axes, got {b.str_short()}. "
                        "Add one with b[..., None].")
    check_matrix("tridiagonal_solve", b, narrow=TypeError)
    if not dl.shape == d.shape == du.shape:
        raise TypeError("tridiagonal_solve requires that all diagonal arguments have the same "
                        f"shape, got {dl.str_short()}, {d.str_short()}, {du.str_short()}.")
    if b.shape[:-1] != d.shape:
        raise TypeError("tridiagonal_solve requires that the axes of b but for the last are those "
                        f"of the diagonals, got {b.str_short()} for {d.str_short()}.")
    return b.strong()


def _system_reference(dl: np.ndarray, d: np.ndarray, du: np.ndarray, b: np.ndarray, *,
                      perturb_singular: bool) -> np.ndarray:
    function = lapack_function("gtsv", "gtsv", d.dtype)
    out = np.empty_like(b)
    for at in np.ndindex(*b.shape[:-2]):
        if d.shape[-1] == 1:
            with np.errstate(all="ignore"):
                out[at] = b[at] / d[at] if d[at] else np.nan
        elif b.size:
            *_, x, info = function(dl[at][1:], d[at], du[at][:-1], b[at])
            out[at] = np.nan if info else x
    return out


def _shifted(x: Any, by: int) -> Any:
    """`x` moved along the last axis, zeros where nothing comes from."""
    n = x.aval.shape[-1]
    zero = np.zeros((), x.aval.dtype)
    widths = [(0, 0, 0)] * (x.aval.ndim - 1) + [(by, -by, 0)]
    return pad(x, zero, widths) if n else x


def _rows(x: Any, by: int) -> Any:
    """Row i - by of each matrix as row i, zeros where there is none."""
    zero = np.zeros((), x.aval.dtype)
    return pad(x, zero, [(0, 0, 0)] * (x.aval.ndim - 2) + [(by, -by, 0), (0, 0, 0)])


def _scaled(diagonal: Any, x: Any) -> Any:
    return mul(_across(diagonal, x), x)


def _across(diagonal: Any, x: Any) -> Any:
    """The elements of `diagonal` along the rows of `x`."""
    return broadcast_in_dim(diagonal, x.aval.shape, tuple(range(x.aval.ndim - 1)))


def _system_jvp(primals: tuple, tangents: tuple, **params: Any) -> tuple:
    """T dx = db - dT x."""
    dl, d, du, b = primals
    x = tridiagonal_solve_p.bind(*primals, **params)
    if all(type(t) is Zero for t in tangents):
        return x, Zero(x.aval.tangent())
    tl, td, tu, tb = tangents
    right = zeros(x.aval) if type(tb) is Zero else tb
    for t, by in ((tl, 1), (td, 0), (tu, -1)):
        if type(t) is not Zero:
            right = sub(right, _scaled(t, _rows(x, by) if by else x))
    return x, tridiagonal_solve_p.bind(dl, d, du, right, **params)


def _system_transpose(ct: Any, dl: Any, d: Any, du: Any, b: Any, **params: Any) -> list:
    if any(is_linear(x) for x in (dl, d, du)):
        raise NotImplementedError("tridiagonal_solve is linear in its right hand side only.")
    # Tᵀ has the upper diagonal below, a row further down.
    back = tridiagonal_solve_p.bind(_shifted(du, 1), d, _shifted(dl, -1), ct, **params)
    return [None, None, None, back]


tridiagonal_solve_p = Primitive(
    "tridiagonal_solve",
    abstract=weak_as_operands(_system_abstract),
    reference=_system_reference,
    jvp=_system_jvp,
    linear=True,
    transpose=_system_transpose,
    batch=batch_matrices(lambda: tridiagonal_solve_p, several=False),
    loops=Kernel("tridiagonal_solve"),
)


def tridiagonal_solve(dl: Any, d: Any, du: Any, b: Any, *, perturb_singular: bool = False) -> Any:
    """The x with T x = b, for tridiagonal T.

    dl, d, du: [..., n], the diagonals: T[i, i-1] = dl[i], T[i, i] = d[i], T[i, i+1] = du[i]; dl[0]
    and du[n-1] are not read. b: [..., n, k]. perturb_singular must be False (NotImplementedError).
    Result: b's shape; NaN where T is singular. Differentiable in all four. Gaussian elimination
    with row exchanges (LAPACK's gtsv). Raises TypeError for shapes and dtypes that do not fit.
    Source: LAPACK's gtsv.

    >>> from numjet import numpy as jnp
    >>> from numjet.lax import linalg
    >>> one = jnp.ones(3)
    >>> linalg.tridiagonal_solve(one, 4 * one, one, jnp.array([[6.0], [12.0], [14.0]])).ravel()
    Array([1., 2., 3.], dtype=float32)
    """
    if perturb_singular:
        raise NotImplementedError(
            "tridiagonal_solve: perturb_singular=True is not there. Add a small number to d.")
    return tridiagonal_solve_p.bind(*map(as_array, (dl, d, du, b)), perturb_singular=False)
