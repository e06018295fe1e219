"""Householder reflectors as LAPACK keeps them, tridiagonal forms and systems, updates of Cholesky
factors, symmetric products: what `lax.linalg` has beside the decompositions.

Matrices stand in the last two axes. References are LAPACK through SciPy.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from numjet.core import dtypes
from numjet.core.array import as_array
from numjet.core.avals import ShapedArray
from numjet.core.lowering import Kernel
from numjet.core.primitive import Primitive, Zero
from numjet.core.structural import broadcast_in_dim, reduce_sum, zeros
from numjet.ops.arithmetic import add, div, mul, sub
from numjet.ops.complex_ops import conjugate
from numjet.ops.composed import composed
from numjet.ops.dot import batch_matmul
from numjet.ops.families import constant_like, is_linear
from numjet.ops.linalg_core import (
    batch_matrices,
    check_matrix,
    decomposition,
    each_matrix,
    lower_part,
    transposed,
    upper_part,
)
from numjet.ops.logic import eq
from numjet.ops.scan import scan
from numjet.ops.shape import pad, select_n
from numjet.ops.transcendental import sqrt


def _lapack(real_name: str, complex_name: str, dtype: Any) -> Any:
    from scipy.linalg.lapack import get_lapack_funcs

    name = complex_name if dtypes.is_complex(dtype) else real_name
    return get_lapack_funcs((name,), (np.empty(0, dtype),))[0]


# ------------------------------------------------------------------ geqrf
def _geqrf_abstract(x: ShapedArray) -> list[ShapedArray]:
    check_matrix("geqrf", x)
    *batch, m, n = x.shape
    return [x.strong(), ShapedArray((*batch, min(m, n)), x.dtype)]


def _geqrf_reference(x: np.ndarray) -> list[np.ndarray]:
    function = _lapack("geqrf", "geqrf", x.dtype)

    def one(x: np.ndarray) -> tuple:
        if not x.size:
            return x, np.zeros(min(x.shape), x.dtype)
        factors, taus = function(x)[:2]
        return np.ascontiguousarray(factors), taus

    return each_matrix(one, x)


geqrf_p = decomposition("geqrf", _geqrf_abstract, _geqrf_reference)


def geqrf(a: Any) -> tuple[Any, Any]:
    """(factors, taus) of `a`[..., m, n] as LAPACK's geqrf leaves them: R on and above the diagonal,
    the reflectors below it, and their factors, as many as min(m, n). No derivative is known."""
    factors, taus = geqrf_p.bind(as_array(a))
    return factors, taus


# ------------------------------------------------------------------ ormqr
def _ormqr_abstract(a: ShapedArray, taus: ShapedArray, c: ShapedArray, *, left: bool,
                    transpose: bool) -> ShapedArray:
    for x in (a, c):
        check_matrix("ormqr", x)
    if not a.dtype == taus.dtype == c.dtype:
        raise TypeError(f"ormqr requires arguments to have the same dtypes, got {a.str_short()}, "
                        f"{taus.str_short()}, {c.str_short()}.")
    m = c.shape[-2 if left else -1]
    if a.shape[-2] != m:
        raise ValueError(f"ormqr: with left={left} the reflectors of {a.str_short()} need c to "
                         f"have {a.shape[-2]} {'rows' if left else 'columns'}, got "
                         f"{c.str_short()}.")
    batches = {a.shape[:-2], taus.shape[:-1], c.shape[:-2]}
    if len(batches) > 1 or taus.shape[-1] > min(a.shape[-2:]):
        raise ValueError(f"ormqr: taus {taus.str_short()} do not fit {a.str_short()} and "
                         f"{c.str_short()}: one for each reflector, and the batch's axes before.")
    return c.strong()


def _ormqr_reference(a: np.ndarray, taus: np.ndarray, c: np.ndarray, *, left: bool,
                     transpose: bool) -> np.ndarray:
    function = _lapack("ormqr", "unmqr", a.dtype)
    turned = ("C" if dtypes.is_complex(a.dtype) else "T") if transpose else "N"
    side, batch = "L" if left else "R", c.shape[:-2]
    out = np.empty_like(c)
    for at in np.ndindex(*batch):
        room = 64 * max(c.shape[-2:])
        made = function(side, turned, a[at][:, : taus.shape[-1]], taus[at], c[at], room)[0]
        out[at] = made
    return out


def _ormqr_jvp(primals: tuple, tangents: tuple, **params: Any) -> tuple:
    a, taus, c = primals
    out = ormqr_p.bind(a, taus, c, **params)
    if any(type(t) is not Zero for t in tangents[:2]):
        raise NotImplementedError(
            "ormqr: no derivative is known for the reflectors. Use qr and a product, or "
            "lax.stop_gradient for reflectors whose derivative does not count.")
    t = tangents[2]
    return out, (t if type(t) is Zero else ormqr_p.bind(a, taus, t, **params))


def _ormqr_transpose(ct: Any, a: Any, taus: Any, c: Any, *, left: bool, transpose: bool) -> list:
    # The transpose of c -> Q c is ct -> conj(Qᴴ conj(ct)).
    back = ormqr_p.bind(a, taus, conjugate(ct), left=left, transpose=not transpose)
    return [None, None, conjugate(back)]


ormqr_p = Primitive(
    "ormqr",
    abstract=_ormqr_abstract,
    reference=_ormqr_reference,
    jvp=_ormqr_jvp,
    linear=True,
    transpose=_ormqr_transpose,
    batch=batch_matrices(lambda: ormqr_p, several=False),
    loops=Kernel("ormqr"),
)


def ormqr(a: Any, taus: Any, c: Any, *, left: bool = True, transpose: bool = False) -> Any:
    """The product of a matrix with a Q that is given by Householder reflectors.

    a: [..., m, k], the reflectors below its diagonal, as `numpy.linalg.qr(mode="raw")` gives them,
    transposed. taus: [..., <= k], their factors. c: [..., m, n]; with left=False [..., n, m], and
    the result is c Q. transpose: Qᴴ instead of Q. Linear in c; the derivative in a and taus is not
    known (NotImplementedError). Raises ValueError for shapes that do not fit, TypeError for dtypes
    that differ.

    >>> from numjet import numpy as jnp
    >>> from numjet.lax import linalg
    >>> linalg.ormqr(jnp.zeros((2, 2)), jnp.array([2.0, 0.0]), jnp.ones((2, 1))).ravel()
    Array([-1.,  1.], dtype=float32)
    """
    return ormqr_p.bind(as_array(a), as_array(taus), as_array(c), left=bool(left),
                        transpose=bool(transpose))


# ------------------------------------------------------------------ tridiagonal
def _tridiagonal_abstract(a: ShapedArray, *, lower: bool) -> list[ShapedArray]:
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise ValueError(f"The input to tridiagonal must be a square matrix. Got {a.str_short()}.")
    check_matrix("tridiagonal", a, square=True)
    *batch, n, _ = a.shape
    if not n:
        raise TypeError(f"tridiagonal: the matrix must not be empty, got {a.str_short()}.")
    reals = dtypes.real_of(a.dtype)
    return [a.strong(), ShapedArray((*batch, n), reals), ShapedArray((*batch, n - 1), reals),
            ShapedArray((*batch, n - 1), a.dtype)]


def _tridiagonal_reference(a: np.ndarray, *, lower: bool) -> list[np.ndarray]:
    function = _lapack("sytrd", "hetrd", a.dtype)

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
    ValueError for a matrix that is not square.

    >>> from numjet import numpy as jnp
    >>> from numjet.lax import linalg
    >>> linalg.tridiagonal(jnp.array([[2.0, 1.0], [1.0, 3.0]]))[1:3]
    [Array([2., 3.], dtype=float32), Array([1.], dtype=float32)]
    """
    return list(tridiagonal_p.bind(as_array(a), lower=bool(lower)))


# ------------------------------------------------------------------ tridiagonal_solve
def _system_abstract(dl: ShapedArray, d: ShapedArray, du: ShapedArray, b: ShapedArray, *,
                     perturb_singular: bool) -> ShapedArray:
    if not dl.dtype == d.dtype == du.dtype == b.dtype:
        raise TypeError("tridiagonal_solve requires arguments to have the same dtypes, got "
                        f"{', '.join(x.str_short() for x in (dl, d, du, b))}.")
    if b.ndim < 2:
        raise TypeError(f"tridiagonal_solve: b must have at least two axes, got {b.str_short()}. "
                        "Add one with b[..., None].")
    check_matrix("tridiagonal_solve", b)
    if not dl.shape == d.shape == du.shape:
        raise TypeError("tridiagonal_solve requires that all diagonal arguments have the same "
                        f"shape, got {dl.str_short()}, {d.str_short()}, {du.str_short()}.")
    if b.shape[:-1] != d.shape:
        raise TypeError("tridiagonal_solve requires that the axes of b but for the last are those "
                        f"of the diagonals, got {b.str_short()} for {d.str_short()}.")
    return b.strong()


def _system_reference(dl: np.ndarray, d: np.ndarray, du: np.ndarray, b: np.ndarray, *,
                      perturb_singular: bool) -> np.ndarray:
    function = _lapack("gtsv", "gtsv", d.dtype)
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
    abstract=_system_abstract,
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


# ------------------------------------------------------------------ cholesky_update
def _update(r: Any, w: Any) -> Any:
    """Rows of R from the first to the last, each rotated with what is left of w (Golub & Van Loan,
    Matrix Computations, 6.5.4)."""
    n = r.aval.shape[-1]

    def step(w: Any, row_and_place: tuple) -> tuple:
        row, place = row_and_place
        at = reduce_sum(mul(place, row), (0,))
        x = reduce_sum(mul(place, w), (0,))
        length = sqrt(add(mul(at, at), mul(x, x)))
        flat = eq(length, constant_like(length, 0))
        safe = select_n(flat, length, constant_like(length, 1))
        c = select_n(flat, div(at, safe), constant_like(length, 1))
        s = div(x, safe)
        # What lies before the diagonal stays as it is: there the rotation would mix in w's rest.
        return sub(mul(c, w), mul(s, row)), add(mul(c, row), mul(s, w))

    unit = as_array(np.eye(n, dtype=r.aval.dtype))
    _, rows = scan(step, w, (upper_part(r), unit))
    return add(upper_part(rows), sub(r, upper_part(r)))


def _update_checked(r: Any, w: Any) -> Any:
    if r.aval.ndim != 2 or w.aval.ndim != 1:
        raise TypeError(f"cholesky_update: takes a matrix and a vector, got "
                        f"{r.aval.str_short()} and {w.aval.str_short()}. Use vmap for several.")
    if r.aval.shape != w.aval.shape * 2:
        raise ValueError(
            "Rank-1 update to Cholesky decomposition takes a square matrix and a vector of the "
            f"same size as input. Got {r.aval.str_short()} and {w.aval.str_short()}.")
    if r.aval.dtype != w.aval.dtype or not dtypes.is_floating(r.aval.dtype):
        raise TypeError(f"cholesky_update: takes real floats of one dtype, got "
                        f"{r.aval.str_short()} and {w.aval.str_short()}.")
    return _update(r, w)


cholesky_update_p = composed("cholesky_update", _update_checked)


def cholesky_update(r_matrix: Any, w_vector: Any) -> Any:
    """The upper triangular S with SᵀS = RᵀR + w wᵀ, in O(n²) operations.

    r_matrix: float[n, n], upper triangular, R; what lies below the diagonal is returned as it is.
    w_vector: float[n], w. Result: float[n, n]. Differentiable. Raises ValueError for sizes that
    differ, TypeError for other ranks and for complex numbers. Source: Golub and Van Loan, Matrix
    Computations, section 6.5.4.

    >>> from numjet import numpy as jnp
    >>> from numjet.lax import linalg
    >>> linalg.cholesky_update(jnp.eye(2), jnp.array([3.0, 0.0])).round(4)
    Array([[3.1623, 0.    ],
           [0.    , 1.    ]], dtype=float32)
    """
    return cholesky_update_p.bind(as_array(r_matrix), as_array(w_vector))


# ------------------------------------------------------------------ symmetric_product
def _product(a: Any, c: Any, *, alpha: float, beta: float) -> Any:
    if not dtypes.is_floating(a.aval.dtype) or a.aval.dtype != c.aval.dtype:
        raise TypeError(f"symmetric_product: takes real floats of one dtype, got "
                        f"{a.aval.str_short()} and {c.aval.str_short()}.")
    if a.aval.ndim < 2 or c.aval.shape != (*a.aval.shape[:-2], a.aval.shape[-2], a.aval.shape[-2]):
        raise ValueError("symmetric_product expects matrices of shape (..., n, m) and "
                         f"(..., n, n). Got {a.aval.str_short()} and {c.aval.str_short()}.")
    out = mul(batch_matmul(a, transposed(a)), constant_like(a, alpha))
    return add(out, mul(c, constant_like(c, beta))) if beta else out


symmetric_product_p = composed("symmetric_product", _product)


def symmetric_product(a_matrix: Any, c_matrix: Any, *, alpha: float = 1.0, beta: float = 0.0,
                      symmetrize_output: bool = False) -> Any:
    """alpha · a aᵀ + beta · c, for a symmetric c.

    a_matrix: float[..., n, m]. c_matrix: float[..., n, n], of which the lower triangle alone counts
    with symmetrize_output (the upper one of the result is then its mirror image). alpha, beta:
    numbers. Differentiable. Raises ValueError for shapes that do not fit, TypeError for complex
    numbers.

    >>> from numjet import numpy as jnp
    >>> from numjet.lax import linalg
    >>> linalg.symmetric_product(jnp.array([[1.0], [2.0]]), jnp.eye(2), beta=1.0)
    Array([[2., 2.],
           [2., 5.]], dtype=float32)
    """
    out = symmetric_product_p.bind(as_array(a_matrix), as_array(c_matrix), alpha=float(alpha),
                                   beta=float(beta))
    if symmetrize_output:
        out = add(lower_part(out), transposed(lower_part(out, -1)))
    return out
