"""Householder reflectors as LAPACK keeps them: QR factors in one array, and products with their Q.

For `lax.linalg` and `numpy.factorizations`. Matrices stand in the last two axes. References are
LAPACK through SciPy.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from numjet.core import dtypes
from numjet.core.array import as_array
from numjet.core.avals import ShapedArray
from numjet.core.dims import smallest
from numjet.core.lowering import Kernel
from numjet.core.primitive import Primitive, Zero
from numjet.ops.complex_ops import conjugate
from numjet.ops.linalg_core import (
    batch_matrices,
    check_matrix,
    decomposition,
    each_matrix,
    weak_as_operands,
)


def lapack_function(real_name: str, complex_name: str, dtype: Any) -> Any:
    """LAPACK's routine of that name for real or complex numbers of a dtype."""
    from scipy.linalg.lapack import get_lapack_funcs

    name = complex_name if dtypes.is_complex(dtype) else real_name
    return get_lapack_funcs((name,), (np.empty(0, dtype),))[0]


# ------------------------------------------------------------------ geqrf
def _geqrf_abstract(x: ShapedArray) -> list[ShapedArray]:
    check_matrix("geqrf", x)
    *batch, m, n = x.shape
    return [x.strong(), ShapedArray((*batch, smallest(m, n)), x.dtype)]


def _geqrf_reference(x: np.ndarray) -> list[np.ndarray]:
    function = lapack_function("geqrf", "geqrf", x.dtype)

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
        check_matrix("ormqr", x, narrow=TypeError)
    if not a.dtype == taus.dtype == c.dtype:
        raise TypeError(f"ormqr requires arguments to have the same dtypes, got {a.str_short()}, "
                        f"{taus.str_short()}, {c.str_short()}.")
    m = c.shape[-2 if left else -1]
    if a.shape[-2] != m:
        raise ValueError(f"ormqr: with left={left} the reflectors of {a.str_short()} need c to "
                         f"have {a.shape[-2]} {'rows' if left else 'columns'}, got "
                         f"{c.str_short()}.")
    batches = {a.shape[:-2], taus.shape[:-1], c.shape[:-2]}
    if len(batches) > 1 or not taus.shape or taus.shape[-1] > min(a.shape[-2:]):
        raise ValueError(f"ormqr: taus {taus.str_short()} do not fit {a.str_short()} and "
                         f"{c.str_short()}: one for each reflector, and the batch's axes before.")
    return c.strong()


def _ormqr_reference(a: np.ndarray, taus: np.ndarray, c: np.ndarray, *, left: bool,
                     transpose: bool) -> np.ndarray:
    function = lapack_function("ormqr", "unmqr", a.dtype)
    transposed = ("C" if dtypes.is_complex(a.dtype) else "T") if transpose else "N"
    side, batch = "L" if left else "R", c.shape[:-2]
    out = np.empty_like(c)
    for at in np.ndindex(*batch):
        lwork = 64 * max(c.shape[-2:])
        made = function(side, transposed, a[at][:, : taus.shape[-1]], taus[at], c[at], lwork)[0]
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
    abstract=weak_as_operands(_ormqr_abstract),
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
    that differ. Source: LAPACK's ormqr and unmqr.

    >>> from numjet import numpy as jnp
    >>> from numjet.lax import linalg
    >>> linalg.ormqr(jnp.zeros((2, 2)), jnp.array([2.0, 0.0]), jnp.ones((2, 1))).ravel()
    Array([-1.,  1.], dtype=float32)
    """
    return ormqr_p.bind(as_array(a), as_array(taus), as_array(c), left=bool(left),
                        transpose=bool(transpose))




# ------------------------------------------------------------------ symmetric_product


