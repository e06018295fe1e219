"""Solutions of linear systems in the operations that JAX makes them of, as `numpy.jax_forms` has
the others: for who looks at jaxprs (`api.compiled.shown`).

What runs has fewer operations. Each takes the arguments of the function whose calls it shows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from numjet.api.compiled.shown import Shown, form
from numjet.api.derivatives.custom import jvp_of_arrays
from numjet.api.derivatives.implicit import linear_solve
from numjet.api.maps.mapping import vmap
from numjet.core import dtypes
from numjet.core.primitive import REGISTRY
from numjet.core.structural import broadcast_in_dim, convert, scalar
from numjet.numpy import lax_names as lax, linalg
from numjet.numpy.indexing import get, getitem
from numjet.numpy.linalg import inv, lstsq, norm, solve
from numjet.numpy.logic import where
from numjet.numpy.promote import as_arrays, broadcast, int_dtype, one_array, promote_inexact
from numjet.numpy.ranges import eye
from numjet.ops import linalg as core
from numjet.ops.arrange import stop_gradient
from numjet.ops.dot import Precision
from numjet.ops.shape import copy

_INT = np.dtype(np.int32)
_EXACT = (Precision.HIGHEST, Precision.HIGHEST)
_norm = Shown(norm, "norm")


def _product(x: Any, y: Any, precision: Any = None) -> Any:
    return lax.dot_general(
        x, y, (((x.aval.ndim - 1,), (0,)), ((), ())), precision=precision,
        preferred_element_type=x.aval.dtype,
    )  # fmt: skip


def _turned(x: Any) -> Any:
    return lax.transpose(x, (1, 0))


def _plain(*xs: Any) -> bool:
    """Whether these are matrices (and vectors) of floats."""
    return all([
        dtypes.is_floating(x.aval.dtype) and x.aval.dtype.itemsize >= 4 and x.aval.size > 0
        for x in xs
    ]) and xs[0].aval.ndim == 2  # fmt: skip


# ------------------------------------------------------------------ one right-hand side
def _by_factors(factors: Any, order: Any, b: Any, trans: int) -> Any:
    x = broadcast_in_dim(b, (b.aval.size, 1), (0,))
    if not trans:
        x = get(x, (order,))
        x = core.triangular_solve(factors, x, left_side=True, lower=True, unit_diagonal=True)
        x = core.triangular_solve(factors, x, left_side=True)
    else:
        x = core.triangular_solve(factors, x, left_side=True, transpose_a=True)
        x = core.triangular_solve(
            factors, x, left_side=True, lower=True, transpose_a=True, unit_diagonal=True
        )
        _, back = lax.sort([order, lax.iota(_INT, b.aval.size)], num_keys=1)
        x = get(x, (back,))
    return lax.squeeze(x, (1,))


lu_solve_call = Shown(_by_factors, "_lu_solve")


@form("solve")
def solve_in_jax(a: Any, b: Any) -> Any:
    x, y = promote_inexact(*as_arrays("solve", a, b))
    n = x.aval.shape[-1] if x.aval.ndim else 0
    columns = y.aval.ndim == 2 and y.aval.shape[0] == n
    if not _plain(x, y) or x.aval.shape != (n, n) or not columns and y.aval.shape != (n,):
        return solve(a, b)
    factors, _, order = core.lu(stop_gradient(x))
    first = (((0,), (0,)), ((), ()))
    across = lambda v: REGISTRY["reduce_sum"].bind(  # noqa: E731
        lax.dot_general(v, x, first, precision=_EXACT), axes=()
    )
    one = lambda column: linear_solve(  # noqa: E731
        lambda v: lax.dot_general(x, v, (((1,), (0,)), ((), ())), precision=_EXACT),
        column,
        lambda _, v: lu_solve_call.call((factors, order, v, 0), {}),
        lambda _, v: lu_solve_call.call((factors, order, v, 1), {}),
        vecmat=across,
    )
    return vmap(one, 1, 1)(y) if columns else one(y)


_solve = Shown(solve_in_jax, "solve")


@form("inv")
def inv_in_jax(a: Any) -> Any:
    """The solution for the unit matrix."""
    (x,) = promote_inexact(one_array("inv", a))
    if not _plain(x) or x.aval.shape[0] != x.aval.shape[1]:
        return inv(a)
    unit = broadcast(eye(x.aval.shape[0], dtype=x.aval.dtype), x.aval.shape)
    return _solve.call((x, unit), {})


# ------------------------------------------------------------------ by singular values
@form("_lstsq")
def lstsq_in_jax(a: Any, b: Any, rcond: Any = None, *, numpy_resid: bool = False) -> Any:
    x, y = promote_inexact(*as_arrays("lstsq", a, b))
    if not _plain(x, y) or y.aval.ndim > 2 or numpy_resid or y.aval.shape[0] != x.aval.shape[0]:
        return lstsq(a, b, rcond, numpy_resid=numpy_resid)
    columns = y if y.aval.ndim == 2 else broadcast_in_dim(y, (*y.aval.shape, 1), (0,))
    eps = float(np.finfo(x.aval.dtype).eps)
    if rcond is None:
        part = scalar(eps * max(x.aval.shape), x.aval.dtype)
    else:
        part = one_array("lstsq", rcond)
        part = copy(where(lax.lt(part, scalar(0, part.aval.dtype)), eps, part))
    u, s, vh = linalg.svd(x, full_matrices=False)
    some = lax.gt(s, scalar(0, s.aval.dtype))
    kept = lax.bitwise_and(some, lax.ge(s, lax.mul(part, getitem(s, (0,)))))
    rank = lax.reduce_sum(convert(kept, int_dtype()), (0,))
    safe = where(kept, s, 1)
    inverse = where(kept, lax.div(scalar(1, s.aval.dtype), safe), 0)
    inverse = broadcast_in_dim(inverse, (*s.aval.shape, 1), (0,))
    parts, v = _product(_turned(u), columns, _EXACT), _turned(vh)
    out = _product(v, lax.mul(inverse, parts), _EXACT)
    gap = lax.sub(columns, _product(x, out, _EXACT))
    residuals = lax.integer_pow(_norm.call((gap,), {"axis": 0}), 2)
    return lax.reshape(out, out.aval.shape[:1]) if y.aval.ndim == 1 else out, residuals, rank, s


def _pinv_of(x: Any) -> Any:
    dtype = x.aval.dtype
    ten = scalar(10.0 * max(x.aval.shape), dtype)
    part = lax.mul(ten, scalar(np.finfo(dtype).eps, dtype))
    u, s, vh = linalg.svd(x, full_matrices=False)
    cut = lax.mul(broadcast_in_dim(part, (1,), ()), getitem(s, (slice(0, 1),)))
    s = where(lax.gt(s, cut), s, np.inf)
    v = _turned(vh)
    scaled = lax.div(_turned(u), broadcast_in_dim(s, (*s.aval.shape, 1), (0,)))
    return _product(v, scaled, _EXACT)


_pinv_call = Shown(_pinv_of, "_pinv")


def _pinv(x: Any) -> Any:
    return _pinv_call.call((x,), {})


_pinv_in_jax = jvp_of_arrays(_pinv)


def _pinv_jvp(primals: tuple, tangents: tuple) -> tuple:
    """-P dA P + P Pᵀ dAᵀ (1 - A P) + (1 - P A) dAᵀ Pᵀ P (Golub and Pereyra, 1973)."""
    (a,), (da,) = primals, tangents
    p = _pinv_in_jax(a)
    pt, dat = _turned(p), _turned(da)
    whole = _product(_product(p, pt), dat)
    left = lax.sub(whole, _product(_product(whole, a), p))
    turned = _product(_product(dat, pt), p)
    right = lax.sub(turned, _product(p, _product(a, turned)))
    return p, lax.sub(lax.add(left, right), _product(_product(p, da), p))


_pinv_in_jax.defjvp(_pinv_jvp)
form("of pinv")(_pinv_in_jax)
